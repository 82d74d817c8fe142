//! `create`: a new volume, or a new array.

use std::path::PathBuf;

use flashlore_array::icash::Mode;
use flashlore_serve::Home;
use flashlore_serve::array::CreateArray;
use flashlore_volume::options::default_capacity;
use flashlore_volume::{CreateOptions, Encoding, HistoryIdentity, Policy};

use super::{clocks, human};
use crate::cli::{ArrayArgs, ArrayMode, CreateArgs, OnPressure, VolumeSystem};
use crate::error::CliError;
use crate::output::tell;

/// Policy, deltas, compression, history; nothing of an array.
fn parts(system: VolumeSystem) -> Option<(Policy, bool, bool, bool)> {
    Some(match system {
        VolumeSystem::Plain => (Policy::Plain, false, false, false),
        VolumeSystem::CaSsd => (Policy::Dedup, false, false, false),
        VolumeSystem::CaSsdTrusted => (Policy::DedupTrusted, false, false, false),
        VolumeSystem::Compress => (Policy::Plain, false, true, false),
        VolumeSystem::DeltaFtl => (Policy::Plain, true, false, false),
        VolumeSystem::Bvssd => (Policy::Plain, false, false, true),
        VolumeSystem::Combined => (Policy::Dedup, true, true, true),
        VolumeSystem::ICash => return None,
    })
}

/// What is made.
pub(super) enum Asked {
    Volume(CreateOptions),
    Array(CreateArray),
}

pub(super) fn random<const N: usize>() -> Result<[u8; N], CliError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|e| CliError::Usage(format!("the system gives no random bytes: {e}")))?;
    Ok(bytes)
}

/// What the flags ask for.
pub(super) fn asked(args: &CreateArgs) -> Result<Asked, CliError> {
    let Some(parts) = parts(args.system) else {
        return array(args).map(Asked::Array);
    };
    let given = &args.array;
    let paths = given.fast.is_some() || given.slow.is_some();
    let numbers =
        given.machines.is_some() || given.fast_size.is_some() || given.delta_ram.is_some();
    let ways = given.ordered || given.mode.is_some() || given.strict || given.overwrite;
    if paths || numbers || ways {
        return Err(CliError::Usage(
            "--fast, --slow, --machines, --fast-size, --delta-ram, --ordered, --mode, --strict and --overwrite are for \
             --system i-cash"
                .to_owned(),
        ));
    }
    volume(args, parts).map(Asked::Volume)
}

fn array(args: &CreateArgs) -> Result<CreateArray, CliError> {
    if args.capacity.is_some() || args.min_window.is_some() {
        return Err(CliError::Usage(
            "--capacity and --min-window are for volumes: an array holds what it shows, and keeps no history"
                .to_owned(),
        ));
    }
    let ArrayArgs {
        fast,
        slow,
        machines,
        fast_size,
        delta_ram,
        ordered,
        mode,
        strict,
        overwrite,
    } = &args.array;
    let needed = |path: &Option<PathBuf>| {
        path.clone().ok_or_else(|| {
            CliError::Usage("--system i-cash needs --fast FILE and --slow FILE".to_owned())
        })
    };
    Ok(CreateArray {
        fast: needed(fast)?,
        slow: needed(slow)?,
        size: args.size.0,
        machines: machines.unwrap_or(1),
        fast_size: fast_size.map(|size| size.0),
        delta_ram: delta_ram.map(|size| size.0),
        ordered: *ordered,
        mode: match mode {
            Some(ArrayMode::WriteThrough) => Mode::WriteThrough,
            Some(ArrayMode::WriteBack) | None => Mode::WriteBack,
        },
        strict: *strict,
        overwrite: *overwrite,
        identity: random()?,
    })
}

fn volume(
    args: &CreateArgs,
    (policy, deltas, compression, history): (Policy, bool, bool, bool),
) -> Result<CreateOptions, CliError> {
    if args.min_window.is_some() && !history {
        return Err(CliError::Usage(
            "--min-window needs a system with a history: bvssd or combined".to_owned(),
        ));
    }
    let size = args.size.0;
    Ok(CreateOptions {
        policy,
        history: history.then(|| HistoryIdentity {
            entries: 0,
            least_window: args.min_window.map_or(0, |window| window.0),
            protected: args.on_pressure == OnPressure::Enospc,
        }),
        encoding: Encoding {
            deltas,
            compression,
        },
        size,
        capacity: args
            .capacity
            .map_or(default_capacity(size, history), |capacity| capacity.0),
        now: clocks().wall(),
        seed: random()?,
    })
}

pub fn create(args: &CreateArgs) -> Result<(), CliError> {
    tell(&make(args)?);
    Ok(())
}

/// Makes a volume or an array; answers a sentence about it.
pub fn make(args: &CreateArgs) -> Result<String, CliError> {
    let home = Home::new(&args.directory);
    let failed = |source| CliError::serve(&args.directory, source);
    Ok(match asked(args)? {
        Asked::Volume(options) => {
            let id = home.create(&options).map_err(failed)?;
            format!(
                "created {} ({} pages of 4 KiB, room for {}; open it takes up to {} of memory)",
                home.volume().display(),
                id.exported,
                options.capacity / 4096,
                human(flashlore_volume::memory_needed(&id)),
            )
        }
        Asked::Array(asked) => {
            let made = home.create_array(&asked).map_err(failed)?;
            format!(
                "created {} ({} of {}; it takes {} of the fast medium and {} of the slow one; open it takes about {} \
                 of memory)",
                home.description().display(),
                match made.shape.machines.len() {
                    1 => "1 machine".to_owned(),
                    machines => format!("{machines} machines"),
                },
                human(asked.size),
                human(made.bytes.0),
                human(made.bytes.1),
                human(made.memory()),
            )
        }
    })
}
