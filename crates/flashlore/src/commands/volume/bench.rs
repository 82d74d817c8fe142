//! `bench`: a load on a volume, and how fast it was.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flashlore_medium::Access;
use flashlore_serve::load::{Load, Pattern, Until, Went};
use flashlore_serve::{Home, served};
use flashlore_sim::config::{Share, Size};
use flashlore_volume::disk::filters::count::RequestCounts;
use flashlore_volume::disk::filters::{Count, Filtered};
use flashlore_volume::disk::{BlockDevice, DiskError};
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use tempfile::TempDir;

use super::create::{Asked, asked};
use super::{DirectoryNames, clocks, disk_failed, failed, mode, named, open};
use crate::cli::{
    ArrayArgs, ArrayBudgets, BenchArgs, BenchPattern, CreateArgs, OnPressure, VolumeSystem,
};
use crate::error::CliError;
use crate::output::{print, tell};

const PAGE: usize = 4096;
/// Bytes of a request at most: what an NBD client may ask for.
const MOST_BYTES: u64 = 32 << 20;
/// Threads, and bytes of the requests of all of them, at most.
const MOST_DEPTH: usize = 1024;
const MOST_AT_ONCE: u64 = 1 << 30;
/// Of a volume made for this, unless said.
const SIZE: u64 = 256 << 20;

pub fn bench(args: &BenchArgs) -> Result<(), CliError> {
    let load = load(args)?;
    let directory = &args.volume.directory;
    let home = Home::new(directory);
    let (home, made) = match home.exists() {
        true => {
            refuse_what_makes_volumes(args)?;
            (home, None)
        }
        false => {
            let (home, made) = make(args)?;
            (home, Some(made))
        }
    };
    let disk_failed = disk_failed(&args.volume);
    let service = match &made {
        // As it is served, with what it does by itself.
        None => open(&args.volume)?,
        Some(_) => served::open(&home, mode(&args.volume), clocks(), Access::Change)
            .map_err(failed(&args.volume))?,
    };
    let disk = Arc::clone(&service.lives()[0].device);
    let stored = service.space(0).map_err(&disk_failed)?.stored;
    let measured = check(args, &load, disk.size(), stored, made.is_some())
        .and_then(|()| measure(&load, &disk, made.is_some()).map_err(&disk_failed));
    let closed = service.close().map_err(disk_failed);
    let (count, went) = measured?;
    closed?;
    let kinds: Vec<RequestCounts> = count.counts().kinds.into();
    let kinds: Vec<RequestCounts> = kinds.into_iter().filter(|kind| kind.requests > 0).collect();
    match args.json {
        true => print(&as_json(args, &load, &kinds, went)),
        false => print(&as_text(&load, &kinds, went)),
    }
}

fn load(args: &BenchArgs) -> Result<Load, CliError> {
    let bytes = args.block_size.0;
    if bytes == 0 || bytes > MOST_BYTES {
        return Err(CliError::Usage(format!(
            "--block-size is {bytes} bytes, expected 1 to {MOST_BYTES}"
        )));
    }
    let depth = args.depth.get();
    if depth > MOST_DEPTH || depth as u64 * bytes > MOST_AT_ONCE {
        return Err(CliError::Usage(format!(
            "--depth is {depth} requests of {bytes} bytes, expected at most {MOST_DEPTH} and {MOST_AT_ONCE} bytes in all"
        )));
    }
    let is_mixed = matches!(args.pattern, BenchPattern::Mixed);
    if !is_mixed && (args.reads.is_some() || args.trims.is_some()) {
        return Err(CliError::Usage(
            "--reads and --trims are for --pattern mixed alone".to_owned(),
        ));
    }
    let share = |given: Option<Share>, default| given.map_or(default, Share::get);
    let (reads, trims) = (share(args.reads, 0.5), share(args.trims, 0.0));
    if reads + trims > 1.0 {
        return Err(CliError::Usage(format!(
            "--reads and --trims are {reads} and {trims}, expected at most 1 together"
        )));
    }
    let (random, reads, trims) = match args.pattern {
        BenchPattern::Randwrite => (true, 0.0, 0.0),
        BenchPattern::Randread => (true, 1.0, 0.0),
        BenchPattern::Write => (false, 0.0, 0.0),
        BenchPattern::Read => (false, 1.0, 0.0),
        BenchPattern::Mixed => (true, reads, trims),
    };
    Ok(Load {
        pattern: Pattern {
            random,
            reads,
            trims,
        },
        rate: args.rate.map(|rate| rate.get() as f64),
        depth,
        bytes: bytes as usize,
        duplicates: args.duplicates.get(),
        compressible: args.compressible.get(),
        flush_every: args.flush_every,
        seed: args.seed,
        until: match args.operations {
            Some(most) => Until::Requests(most.get()),
            None => Until::Time(Duration::from_nanos(args.time.0)),
        },
    })
}

fn refuse_what_makes_volumes(args: &BenchArgs) -> Result<(), CliError> {
    match args.size.is_some() || args.system.is_some() {
        true => Err(CliError::Usage(format!(
            "{} holds {}; --size and --system are for one made for this",
            args.volume.directory.display(),
            named(&args.volume).whole
        ))),
        false => Ok(()),
    }
}

/// A volume in a directory of its own, which is removed with it.
fn make(args: &BenchArgs) -> Result<(Home, TempDir), CliError> {
    let directory = &args.volume.directory;
    let temporary = tempfile::Builder::new()
        .prefix(".flashlore-bench-")
        .tempdir_in(directory)
        .map_err(CliError::file("make a directory in", directory))?;
    let system = args.system.unwrap_or(VolumeSystem::Combined);
    let within = |name: &str| (system == VolumeSystem::ICash).then(|| temporary.path().join(name));
    let create = CreateArgs {
        directory: temporary.path().to_path_buf(),
        size: Some(args.size.unwrap_or(Size(SIZE))),
        system,
        capacity: None,
        min_window: None,
        on_pressure: OnPressure::Shrink,
        array: ArrayArgs {
            fast: within("fast"),
            slow: within("slow"),
            adopt: None,
            machines: None,
            budgets: ArrayBudgets::default(),
            ordered: false,
            mode: None,
            strict: false,
            overwrite: false,
        },
    };
    let home = Home::new(temporary.path());
    match asked(&create)? {
        Asked::Volume(options) => home.create(&options).map(drop),
        Asked::Array(asked) | Asked::Adopted(asked) => home.create_array(&asked).map(drop),
    }
    .map_err(failed(&args.volume))?;
    Ok((home, temporary))
}

/// Refuses what does not fit, or would overwrite what somebody keeps.
fn check(
    args: &BenchArgs,
    load: &Load,
    size: u64,
    stored: u64,
    made: bool,
) -> Result<(), CliError> {
    let directory: &Path = &args.volume.directory;
    let DirectoryNames { disk, units, .. } = named(&args.volume);
    if load.bytes as u64 > size {
        return Err(CliError::Usage(format!(
            "--block-size is {} bytes, the {disk} has {size}",
            load.bytes
        )));
    }
    match stored > 0 && load.pattern.changes() && !args.overwrite && !made {
        true => Err(CliError::Usage(format!(
            "{}: the {disk} holds {stored} {units}, which would be overwritten: say --overwrite, or name a \
             directory without a volume or an array",
            directory.display()
        ))),
        false => Ok(()),
    }
}

/// Puts the load on a volume, which is filled before if it is new and read.
fn measure(
    load: &Load,
    disk: &Arc<dyn BlockDevice>,
    is_new: bool,
) -> Result<(Count, Went), DiskError> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // Without it a signal ends the program as it always does.
        let _ = signal_hook::flag::register(signal, Arc::clone(&stop));
    }
    if is_new && load.pattern.reads > 0.0 {
        tell("filling the volume");
        let fill = Load {
            pattern: Pattern {
                random: false,
                reads: 0.0,
                trims: 0.0,
            },
            rate: None,
            bytes: PAGE,
            until: Until::Requests(disk.size() / PAGE as u64),
            flush_every: 0,
            ..*load
        };
        fill.run(&**disk, &stop)?;
    }
    let count = Count::default();
    let went = load.run(&Filtered::new(Arc::clone(disk), count.clone()), &stop)?;
    if stop.load(Ordering::Relaxed) {
        tell("ended by a signal");
    }
    Ok((count, went))
}

fn per_second(number: u64, took: Duration) -> f64 {
    number as f64 / took.as_secs_f64().max(1e-9)
}

fn as_json(args: &BenchArgs, load: &Load, kinds: &[RequestCounts], went: Went) -> String {
    let took = went.took;
    let of = |kind: &RequestCounts| {
        let at = |share: f64| kind.times.value_at_quantile(share);
        json!({
            "kind": kind.name,
            "requests": kind.requests,
            "bytes": kind.bytes,
            "requests_per_s": per_second(kind.requests, took),
            "bytes_per_s": per_second(kind.bytes, took),
            "mean_ns": kind.total as f64 / kind.requests as f64,
            "p50_ns": at(0.5),
            "p90_ns": at(0.9),
            "p99_ns": at(0.99),
            "p999_ns": at(0.999),
            "max_ns": kind.times.max(),
        })
    };
    let result = json!({
        "pattern": format!("{:?}", args.pattern).to_lowercase(),
        "depth": load.depth,
        "block_size": load.bytes,
        "reads": load.pattern.reads,
        "trims": load.pattern.trims,
        "rate": load.rate,
        "latest_ns": went.latest.as_nanos() as u64,
        "duplicates": load.duplicates,
        "compressible": load.compressible,
        "flush_every": load.flush_every,
        "seed": load.seed,
        "seconds": took.as_secs_f64(),
        "kinds": kinds.iter().map(of).collect::<Vec<_>>(),
    });
    format!("{result}\n")
}

fn as_text(load: &Load, kinds: &[RequestCounts], went: Went) -> String {
    let took = went.took;
    let mut text = format!("{:.3} s; times in us\n", took.as_secs_f64());
    let heads = ["requests/s", "MiB/s", "mean", "p50", "p99", "p99.9", "max"];
    // Writing to a text cannot fail.
    let _ = write!(text, "{:<8}{:>12}", "", "requests");
    heads.iter().for_each(|head| {
        let _ = write!(text, "{head:>12}");
    });
    text.push('\n');
    for kind in kinds {
        let us = |nanos: u64| nanos as f64 / 1e3;
        let at = |share: f64| us(kind.times.value_at_quantile(share));
        let values = [
            per_second(kind.requests, took),
            per_second(kind.bytes, took) / f64::from(1 << 20),
            kind.total as f64 / kind.requests as f64 / 1e3,
            at(0.5),
            at(0.99),
            at(0.999),
            us(kind.times.max()),
        ];
        let _ = write!(text, "{:<8}{:>12}", kind.name, kind.requests);
        values.iter().for_each(|value| {
            let _ = write!(text, "{value:>12.1}");
        });
        text.push('\n');
    }
    if load.rate.is_some() {
        let latest = went.latest.as_secs_f64() * 1e6;
        let _ = writeln!(
            text,
            "a request began at most {latest:.1} us after its turn"
        );
    }
    text
}
