//! `resize`: a volume becomes larger.

use flashlore_serve::served::recovery_told;
use flashlore_volume::options::capacity;

use super::{failed, home, human, mode, tell_of};
use crate::cli::ResizeArgs;
use crate::error::CliError;
use crate::output::tell;

pub fn resize(args: &ResizeArgs) -> Result<(), CliError> {
    let home = home(&args.volume);
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
        "{}: size from {} to {}, capacity from {} to {}; open it takes up to {} of memory",
        home.volume().display(),
        size(from.exported),
        size(to.exported),
        human(capacity(&from)),
        human(capacity(&to)),
        human(flashlore_volume::memory_needed(&to)),
    ));
    Ok(())
}
