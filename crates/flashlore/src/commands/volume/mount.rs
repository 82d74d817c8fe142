//! `mount`: a volume as a file, until it is unmounted or a signal ends it.

use flashlore_fuse::{MountPoint, Mounted};

use super::named;
use super::running::{How, Running};
use crate::cli::MountArgs;
use crate::error::CliError;
use crate::output::tell;

/// Mounts a volume until somebody unmounts it, or SIGTERM or SIGINT.
pub fn mount(args: &MountArgs) -> Result<(), CliError> {
    let point = MountPoint::new(&args.point)?;
    let directory = &args.volume.directory;
    if point.hides(directory) {
        return Err(CliError::Usage(format!(
            "{} holds {} and lies in {}: what is mounted there would hide it; name another directory",
            directory.display(),
            named(&args.volume).whole,
            args.point.display()
        )));
    }
    let how = How::of(args.slow_alone);
    let read_only = args.read_only || how.is_read_only();
    let mut running = Running::open(&args.memory.of(&args.volume), how, read_only)?;
    let waits = running.handle();
    let ended = move || waits.close();
    let mut mounted = flashlore_fuse::mount(running.service(), read_only, point, ended)?;
    let control = running.control()?;
    for file in mounted.files() {
        tell(&format!("mounted {}", file.display()));
    }
    if running.signalled() && !ends(&mut mounted, &mut running)? {
        drop(control);
        return running.close(Some("programs that still used the mounted files were"));
    }
    drop(control);
    mounted.join()?;
    running.close(None)
}

/// Unmounts and waits until nobody uses it, or for another signal; whether it has ended.
fn ends(mounted: &mut Mounted, running: &mut Running) -> Result<bool, CliError> {
    tell("unmounting");
    if mounted.unmount()? {
        let open = mounted.open_files();
        tell(&format!(
            "it is still used, {open} file{} open: waiting for the end of that; another signal cuts it off",
            if open == 1 { " is" } else { "s are" }
        ));
    }
    Ok(!running.signalled())
}
