//! `resize`: a volume or an array becomes larger.

use flashlore_array::icash::Shape;
use flashlore_serve::array::grow::Grow;
use flashlore_serve::served::recovery_told;
use flashlore_volume::options::capacity;

use super::{failed, home, human, memory_told, mode, tell_of};
use crate::cli::ResizeArgs;
use crate::error::CliError;
use crate::output::tell;

pub fn resize(args: &ResizeArgs) -> Result<(), CliError> {
    let home = home(&args.volume);
    if home.is_array() {
        return resize_array(args);
    }
    if args.machines.is_some() || args.overwrite {
        return Err(CliError::Usage(
            "--machines and --overwrite are for arrays".to_owned(),
        ));
    }
    let (size, room) = (
        args.grow.map(|size| size.0),
        args.capacity.map(|room| room.0),
    );
    let (from, to, recovery) = home
        .grow(size, room, mode(&args.volume))
        .map_err(failed(&args.volume))?;
    tell_of(&args.volume, recovery_told(&recovery));
    let size = |pages: u32| human(u64::from(pages) * 4096);
    tell(&format!(
        "{}: size from {} to {}, capacity from {} to {}; open it takes {}",
        home.volume().display(),
        size(from.exported),
        size(to.exported),
        human(capacity(&from)),
        human(capacity(&to)),
        memory_told(&to),
    ));
    Ok(())
}

fn resize_array(args: &ResizeArgs) -> Result<(), CliError> {
    if args.capacity.is_some() {
        return Err(CliError::Usage(
            "--capacity is for volumes: an array holds what it shows".to_owned(),
        ));
    }
    let asked = Grow {
        size: args.grow.map(|size| size.0),
        machines: args.machines,
        overwrite: args.overwrite,
    };
    let grown = home(&args.volume).grow_array(&asked, mode(&args.volume));
    let grown = grown.map_err(failed(&args.volume))?;
    let told = |shape: &Shape| {
        let blocks = shape.machines.first().map_or(0, |machine| machine.blocks);
        let size = human(u64::from(blocks) * 4096);
        format!("{} x {size}", shape.machines.len())
    };
    tell(&format!(
        "{}: machines from {} to {}; it reaches to {} of its slow medium; open it takes about {} of memory",
        args.volume.directory.display(),
        told(&grown.from),
        told(&grown.to),
        human(grown.end),
        human(grown.memory),
    ));
    Ok(())
}
