//! `--memory`: a bound for the memory of a volume that is open for long.

use flashlore_paged::Pager;
use flashlore_serve::Home;
use flashlore_sim::config::Size;
use flashlore_volume::{TABLE_MEMORY, least_memory, memory_needed, table_memory_within};

use super::{failed, human, mode};
use crate::cli::VolumeArgs;
use crate::error::CliError;
use crate::output::tell;

/// How the memory of a volume is bounded, as long as it lives.
pub struct Bound {
    /// Bytes for pages of the tables.
    pub table_memory: u64,
    /// Keeps the memory of this process below a limit.
    pub pager: Option<Pager>,
}

/// Keeps the memory of this process below a limit from now on: pages of the tables get what the rest of the volume leaves, and
/// if that is too little, what is beyond the limit is paged.
pub fn bound(home: &Home, args: &VolumeArgs, limit: Size) -> Result<Bound, CliError> {
    let id = home.identity(mode(args)).map_err(failed(args))?;
    if let Some(table_memory) = table_memory_within(&id, limit.0) {
        let pager = None;
        return Ok(Bound {
            table_memory,
            pager,
        });
    }
    let (need, least) = (memory_needed(&id), least_memory(&id));
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
    Ok(Bound {
        table_memory: TABLE_MEMORY,
        pager: Some(pager),
    })
}
