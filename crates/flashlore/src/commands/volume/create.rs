//! `create`: a new volume, or a new array.

use std::path::PathBuf;

use flashlore_array::icash::Mode;
use flashlore_serve::Home;
use flashlore_serve::array::adopt::image_bytes;
use flashlore_serve::array::{CreateArray, Made};
use flashlore_volume::options::default_capacity;
use flashlore_volume::{CreateOptions, Encoding, HistoryIdentity, Policy};

use super::{clocks, human, memory_told};
use crate::cli::{ArrayArgs, ArrayMode, CreateArgs, OnPressure, VolumeSystem};
use crate::error::CliError;
use crate::output::tell;
use crate::progress::Progress;

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
    /// An array around a disk image, which is its slow medium.
    Adopted(CreateArray),
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
        let asked = array(args)?;
        return Ok(match args.array.adopt {
            Some(_) => Asked::Adopted(asked),
            None => Asked::Array(asked),
        });
    };
    let given = &args.array;
    let paths = given.fast.is_some() || given.slow.is_some() || given.adopt.is_some();
    let budgets = given.budgets;
    let numbers =
        given.machines.is_some() || budgets.fast_size.is_some() || budgets.delta_ram.is_some();
    let ways = given.ordered || given.mode.is_some() || given.strict || given.overwrite;
    if paths || numbers || ways {
        return Err(CliError::Usage(
            "--fast, --slow, --adopt, --machines, --fast-size, --delta-ram, --ordered, --mode, --strict and --overwrite \
             are for --system i-cash"
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
        adopt,
        machines,
        budgets,
        ordered,
        mode,
        strict,
        overwrite,
    } = &args.array;
    let needed = |path: &Option<PathBuf>| {
        path.clone().ok_or_else(|| {
            CliError::Usage(
                "--system i-cash needs --fast FILE and --slow FILE, or --adopt IMAGE".to_owned(),
            )
        })
    };
    let size = match (args.size, adopt) {
        (Some(size), _) => size.0,
        (None, Some(image)) => {
            image_bytes(image).map_err(|source| CliError::serve(&args.directory, source))?
        }
        (None, None) => return Err(no_size()),
    };
    Ok(CreateArray {
        fast: needed(fast)?,
        slow: match adopt {
            Some(image) => image.clone(),
            None => needed(slow)?,
        },
        size,
        machines: machines.unwrap_or(1),
        fast_size: budgets.fast_size.map(|size| size.0),
        delta_ram: budgets.delta_ram.map(|size| size.0),
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
    let size = args.size.ok_or_else(no_size)?.0;
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

/// Nobody said how large it is to be, which the arguments do not allow.
fn no_size() -> CliError {
    CliError::Usage("--size says how many bytes it shows".to_owned())
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
                "created {} ({} pages of 4 KiB, room for {}; open it takes {})",
                home.volume().display(),
                id.exported,
                options.capacity / 4096,
                memory_told(&id),
            )
        }
        Asked::Array(asked) => {
            let made = home.create_array(&asked).map_err(failed)?;
            array_told(&home, &asked, &made)
        }
        Asked::Adopted(asked) => {
            let progress = Progress::blocks("reading the image");
            let made = home.adopt_image(&asked, &mut |read, of| progress.at(read, of));
            drop(progress);
            let made = made.map_err(failed)?;
            format!(
                "{}; {} is what machine 0 holds",
                array_told(&home, &asked, &made),
                asked.slow.display()
            )
        }
    })
}

fn array_told(home: &Home, asked: &CreateArray, made: &Made) -> String {
    format!(
        "created {} ({} of {}; it takes {} of the fast medium and {} of the slow one; open it takes about {} of memory)",
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
