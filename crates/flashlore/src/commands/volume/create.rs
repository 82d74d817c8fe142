//! `create`: a new volume.

use flashlore_serve::Home;
use flashlore_volume::{CreateOptions, Encoding, HistoryIdentity, Policy};

use super::{human, now};
use crate::cli::{CreateArgs, OnPressure, VolumeSystem};
use crate::error::CliError;
use crate::output::tell;

/// Policy, differences, compression, history.
fn parts(system: VolumeSystem) -> (Policy, bool, bool, bool) {
    match system {
        VolumeSystem::Plain => (Policy::Plain, false, false, false),
        VolumeSystem::CaSsd => (Policy::Dedup, false, false, false),
        VolumeSystem::CaSsdTrusted => (Policy::DedupTrusted, false, false, false),
        VolumeSystem::Compress => (Policy::Plain, false, true, false),
        VolumeSystem::DeltaFtl => (Policy::Plain, true, false, false),
        VolumeSystem::Bvssd => (Policy::Plain, false, false, true),
        VolumeSystem::Combined => (Policy::Dedup, true, true, true),
    }
}

/// What the flags ask for.
pub(super) fn options(args: &CreateArgs) -> Result<CreateOptions, CliError> {
    let mut seed = [0; 48];
    getrandom::fill(&mut seed)
        .map_err(|e| CliError::Usage(format!("the system gives no random bytes: {e}")))?;
    let (policy, differences, compression, history) = parts(args.system);
    if args.min_window.is_some() && !history {
        return Err(CliError::Usage(
            "--min-window needs a system with a history: bvssd or combined".to_owned(),
        ));
    }
    let size = args.size.0;
    let old_versions = if history { size / 2 / 4096 * 4096 } else { 0 };
    Ok(CreateOptions {
        policy,
        history: history.then(|| HistoryIdentity {
            entries: 0,
            least_window: args.min_window.map_or(0, |window| window.0),
            protected: args.on_pressure == OnPressure::Enospc,
        }),
        encoding: Encoding {
            differences,
            compression,
        },
        size,
        capacity: args
            .capacity
            .map_or(size.saturating_add(old_versions), |capacity| capacity.0),
        now: now(),
        seed,
    })
}

/// Makes a volume.
pub fn create(args: &CreateArgs) -> Result<(), CliError> {
    let options = options(args)?;
    let home = Home::new(&args.directory);
    let id = home
        .create(&options)
        .map_err(|source| CliError::serve(&args.directory, source))?;
    tell(&format!(
        "created {} ({} pages of 4 KiB, room for {}; open it takes up to {} of memory)",
        home.volume().display(),
        id.exported,
        options.capacity / 4096,
        human(flashlore_volume::memory_needed(&id)),
    ));
    Ok(())
}
