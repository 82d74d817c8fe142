//! Volumes as large as a tebibyte on a machine that has room for their records and tables alone: what they take and how
//! fast they are. `tools/large-volumes.py` calls this and makes the tables of `docs/performance.md`.
//!
//! ```text
//! cargo run --release -p flashlore-volume --example large -- fill DIR SIZE SYSTEM [--changes N]
//! cargo run --release -p flashlore-volume --example large -- settle DIR MEMORY [--changes N]
//! cargo run --release -p flashlore-volume --example large -- run DIR MEMORY SECONDS JOBS [--changes N]
//! cargo run --release -p flashlore-volume --example large -- kill DIR MEMORY SECONDS [--changes N]
//! cargo run --release -p flashlore-volume --example large -- check DIR MEMORY
//! ```
//!
//! `fill` makes a volume of SIZE GiB and writes all of its pages in order. `settle` opens it within MEMORY MiB, waits until
//! its fingerprint index, which has another size than with other memory, knows everything, and closes it. `run` opens it
//! within MEMORY MiB, does each of JOBS for so many seconds, and closes it. `kill` opens it, writes at random for so many
//! seconds and ends without a word, as `kill -9` would end it. `check` checks it within MEMORY MiB, all tables and no data.
//! Each prints one line of JSON. A job is what is done and how addresses are drawn: `write-uniform`, `write-zipf`,
//! `read-uniform`, `read-zipf`, 4 KiB each, by two threads, or by N where `@N` follows.
//!
//! Data are elided ([`flashlore_medium::Elided`]): each page follows from its address and the number of its write, and what
//! is read is compared with that. With `--changes N` an overwrite differs from the page before in N words at most, so that
//! deltas are stored where the system makes them.

mod draw;
mod load;
mod media;

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use flashlore_volume::disk::{BlockDevice, Disk, Maintainer};
use flashlore_volume::{
    CheckOptions, MemoryShares, Recovery, Volume, check_within, load as of_medium,
    stored_index_bytes,
};

use load::{Job, Load};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match carry_out(&arguments) {
        Ok(told) => {
            println!("{told}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn carry_out(arguments: &[String]) -> Result<String> {
    let (arguments, changes) = match arguments {
        [first @ .., option, changes] if option == "--changes" => (first, changes.parse()?),
        all => (all, 0),
    };
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["fill", directory, gib, system] => fill(directory.as_ref(), gib.parse()?, system, changes),
        ["run", directory, memory, seconds, jobs] => {
            let jobs: Result<Vec<Job>> = jobs.split(',').map(Job::of).collect();
            let seconds = seconds.parse()?;
            let (disk, opened) = open(directory.as_ref(), memory.parse()?)?;
            let load = Load::new(Arc::clone(&disk), changes)?;
            let maintainer = Maintainer::start(&disk)?;
            let done: Result<Vec<String>> = jobs?
                .into_iter()
                .map(|job| load.run(job, seconds))
                .collect();
            let (done, before) = (done?.join(", "), Instant::now());
            drop(maintainer);
            disk.close()?;
            let closing = before.elapsed().as_secs_f64();
            Ok(format!(
                "{{{opened}, \"jobs\": [{done}], \"close_seconds\": {closing:.3}}}"
            ))
        }
        ["settle", directory, memory] => settle(directory.as_ref(), memory.parse()?),
        ["kill", directory, memory, seconds] => {
            let (disk, opened) = open(directory.as_ref(), memory.parse()?)?;
            let load = Load::new(Arc::clone(&disk), changes)?;
            let _maintainer = Maintainer::start(&disk)?;
            let done = load.run(Job::of("write-uniform")?, seconds.parse()?)?;
            println!("{{{opened}, \"jobs\": [{done}]}}");
            // Nothing is dropped, flushed or closed.
            std::process::abort()
        }
        ["check", directory, memory] => check(directory.as_ref(), memory.parse()?),
        _ => Err(
            "expected fill, settle, run, kill or check with its arguments: see the head of this program"
                .into(),
        ),
    }
}

/// Makes a volume and writes all of it.
fn fill(directory: &Path, gib: u64, system: &str, changes: u32) -> Result<String> {
    media::make(directory, gib << 30, system)?;
    let (disk, _) = open(directory, 4 << 10)?;
    let maintainer = Maintainer::start(&disk)?;
    let load = Load::new(Arc::clone(&disk), changes)?;
    let filled = load.fill()?;
    drop(maintainer);
    let before = Instant::now();
    disk.close()?;
    let closing = before.elapsed().as_secs_f64();
    Ok(format!("{{{filled}, \"close_seconds\": {closing:.3}}}"))
}

/// Waits until nothing is left of what an opening puts off.
fn settle(directory: &Path, mib: u64) -> Result<String> {
    let began = Instant::now();
    let (disk, opened) = open(directory, mib)?;
    let maintainer = Maintainer::start(&disk)?;
    while disk.with(|volume| volume.chores().rest)? {
        std::thread::sleep(Duration::from_millis(50));
    }
    let (seconds, peak) = (began.elapsed().as_secs_f64(), load::peak()?);
    drop(maintainer);
    disk.close()?;
    Ok(format!(
        "{{{opened}, \"settle_seconds\": {seconds:.1}, \"settle_peak\": {peak}}}"
    ))
}

/// Checks a volume that is not open.
fn check(directory: &Path, mib: u64) -> Result<String> {
    load::forget_peak()?;
    let options = CheckOptions {
        data: false,
        memory: Some(mib << 20),
        ..CheckOptions::default()
    };
    let before = Instant::now();
    let report = check_within(media::open(directory)?, &options)?;
    let seconds = before.elapsed().as_secs_f64();
    let (clean, mapped, stored) = (report.is_clean(), report.mapped, report.stored);
    for what in report.errors.iter().take(5) {
        eprintln!("{what}");
    }
    let peak = load::peak()?;
    Ok(format!(
        "{{\"check_seconds\": {seconds:.1}, \"check_peak\": {peak}, \"clean\": {clean}, \"mapped\": {mapped}, \"stored\": {stored}}}"
    ))
}

/// Opens a volume within so many MiB; what that took.
fn open(directory: &Path, mib: u64) -> Result<(Arc<Disk>, String)> {
    load::forget_peak()?;
    let medium = media::open(directory)?;
    let id = of_medium::superblock(&medium)?.identity;
    let shares = MemoryShares::within(&id, mib << 20, None)?;
    let before = Instant::now();
    let index = media::index(directory, stored_index_bytes(&id, &shares))?;
    let (volume, recovery) = Volume::open_keeping_index(medium, shares, index)?;
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH);
    clock()?;
    let now = move || clock().map_or(0, |since| since.as_nanos() as u64);
    let disk = Arc::new(Disk::new(volume, Arc::new(now)));
    let mut page = [0; 4096];
    disk.read(0, &mut page)?;
    let seconds = before.elapsed().as_secs_f64();
    let Recovery {
        events,
        units,
        closed,
        ..
    } = recovery;
    let peak = load::peak()?;
    Ok((
        disk,
        format!(
            "\"open_seconds\": {seconds:.3}, \"open_peak\": {peak}, \"closed\": {closed}, \"events\": {events}, \"units\": {units}"
        ),
    ))
}
