//! `--memory`: a bound for the memory of a volume that is open for long.

use flashlore_paged::Pager;
use flashlore_serve::Home;
use flashlore_sim::config::Size;
use flashlore_volume::{least_memory, memory_needed};

use super::{failed, human, mode};
use crate::cli::VolumeArgs;
use crate::error::CliError;
use crate::output::tell;

/// Keeps the memory of this process below a limit from now on, if the volume may need more; as long as the answer
/// lives.
pub fn bound(home: &Home, args: &VolumeArgs, limit: Size) -> Result<Option<Pager>, CliError> {
    let id = home.identity(mode(args)).map_err(failed(args))?;
    let (need, least) = (memory_needed(&id), least_memory(&id));
    if limit.0 >= need {
        return Ok(None);
    }
    if limit.0 < least {
        // Of a small volume next to nothing can be paged, and paging takes memory too.
        let needs = match least < need {
            true => format!(
                "{} of it, and {} if nothing is to be paged",
                human(least),
                human(need)
            ),
            false => format!("{} of it, and so small a one is not paged", human(need)),
        };
        return Err(CliError::Usage(format!(
            "--memory is {}, this volume needs at least {needs}",
            human(limit.0)
        )));
    }
    let pager = flashlore_paged::start(home.directory(), limit.0, need)
        .map_err(|error| CliError::Differs(error.to_string()))?;
    tell(&format!(
        "the volume may need {} of memory: what is beyond {} goes to a scratch file in {}",
        human(need),
        human(limit.0),
        home.directory().display()
    ));
    Ok(Some(pager))
}
