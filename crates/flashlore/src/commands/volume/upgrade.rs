//! `upgrade`: a volume gets the present format.

use flashlore_serve::served::recovery_told;

use super::{failed, home, mode, tell_of};
use crate::cli::UpgradeArgs;
use crate::error::CliError;
use crate::output::tell;

pub fn upgrade(args: &UpgradeArgs) -> Result<(), CliError> {
    let home = home(&args.volume);
    let (from, to, recovery) = home
        .upgrade(mode(&args.volume))
        .map_err(failed(&args.volume))?;
    if let Some(recovery) = recovery {
        tell_of(&args.volume, recovery_told(&recovery));
    }
    let name = home.volume();
    tell(&match from == to {
        true => format!("{}: it has format version {to}", name.display()),
        false => format!("{}: format version from {from} to {to}", name.display()),
    });
    Ok(())
}
