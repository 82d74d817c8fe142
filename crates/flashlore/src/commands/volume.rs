//! `create`, `import`, `export`, `check`, `scrub`, `dump`: persistent volumes.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use flashlore_medium::{FileMedium, Mode};
use flashlore_volume::dump::DumpError;
use flashlore_volume::{CreateOptions, DumpParts, Encoding, Finding, Policy, Volume, VolumeError};

use crate::cli::{
    CheckArgs, CreateArgs, DumpArgs, DumpPart, ImageArgs, ScrubArgs, VolumeArgs, VolumeSystem,
};
use crate::error::CliError;
use crate::output::{print, tell};
use crate::progress::Progress;

const PAGE: usize = 4096;
/// Pages between two flushes while an image is copied in.
const FLUSH_EVERY: u32 = 1 << 16;
/// Addresses of one step of a scrub.
const SCRUB_STEP: u32 = 1024;

fn volume_file(directory: &Path) -> PathBuf {
    directory.join("volume.flashlore")
}

fn file_error<'a>(action: &'static str, path: &'a Path) -> impl Fn(io::Error) -> CliError + 'a {
    move |source| CliError::File {
        action,
        path: path.to_path_buf(),
        source,
    }
}

fn failed(directory: &Path) -> impl Fn(VolumeError) -> CliError + '_ {
    move |source| CliError::Volume {
        directory: directory.to_path_buf(),
        source,
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |d| d.as_nanos() as u64)
}

/// Makes a volume.
pub fn create(args: &CreateArgs) -> Result<(), CliError> {
    let mut seed = [0; 48];
    getrandom::fill(&mut seed)
        .map_err(|e| CliError::Usage(format!("the system gives no random bytes: {e}")))?;
    let options = CreateOptions {
        policy: match args.system {
            VolumeSystem::Plain => Policy::Plain,
            VolumeSystem::CaSsd => Policy::Dedup,
            VolumeSystem::CaSsdTrusted => Policy::DedupTrusted,
        },
        history: None,
        encoding: Encoding::default(),
        size: args.size.0,
        capacity: args.capacity.unwrap_or(args.size).0,
        now: now(),
        seed,
    };
    let id = options
        .identity()
        .map_err(|e| CliError::Usage(e.to_string()))?;
    let directory = &args.directory;
    std::fs::create_dir_all(directory).map_err(file_error("create", directory))?;
    let path = volume_file(directory);
    let bytes = flashlore_volume::bytes_needed(&id).map_err(failed(directory))?;
    let medium = FileMedium::create(&path, bytes, Mode::Buffered)
        .map_err(|e| failed(directory)(e.into()))?;
    if let Err(error) = flashlore_volume::create(&medium, &id) {
        // Nothing half-written stays behind.
        let _ = std::fs::remove_file(&path);
        return Err(failed(directory)(error));
    }
    tell(&format!(
        "created {} ({} pages of 4 KiB, room for {})",
        path.display(),
        id.exported,
        options.capacity / PAGE as u64,
    ));
    Ok(())
}

fn medium(args: &VolumeArgs) -> Result<FileMedium, CliError> {
    let mode = if args.direct {
        Mode::Direct
    } else {
        Mode::Buffered
    };
    FileMedium::open(volume_file(&args.directory), mode)
        .map_err(|e| failed(&args.directory)(e.into()))
}

fn open(args: &VolumeArgs) -> Result<Volume<FileMedium>, CliError> {
    let (volume, recovery) = Volume::open(medium(args)?).map_err(failed(&args.directory))?;
    if recovery.events > 0 {
        tell(&format!(
            "recovered {} events from {} units in {} blocks",
            recovery.events, recovery.units, recovery.blocks
        ));
    }
    Ok(volume)
}

/// Copies a raw image into a volume.
pub fn import(args: &ImageArgs) -> Result<(), CliError> {
    let directory = &args.volume.directory;
    let path = &args.image;
    let mut image = File::open(path).map_err(file_error("open", path))?;
    let mut volume = open(&args.volume)?;
    let length = image.metadata().map_err(file_error("read", path))?.len();
    let room = u64::from(volume.exported()) * PAGE as u64;
    if length > room {
        return Err(CliError::Usage(format!(
            "{} has {length} bytes, the volume shows {room}",
            path.display()
        )));
    }
    let progress = Progress::phase("importing");
    for lpn in 0..volume.exported() {
        let mut page = [0; PAGE];
        if fill(&mut image, &mut page).map_err(file_error("read", path))? == 0 {
            break;
        }
        let done = if page == [0; PAGE] {
            volume.trim(now(), lpn)
        } else {
            volume.write(now(), lpn, &page)
        };
        done.map_err(failed(directory))?;
        if lpn % FLUSH_EVERY == FLUSH_EVERY - 1 {
            volume.flush().map_err(failed(directory))?;
        }
    }
    drop(progress);
    let status = volume.status();
    volume.close().map_err(failed(directory))?;
    tell(&format!("{} pages are stored", status.stored));
    Ok(())
}

/// Reads until the buffer is full or the file ends.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match from.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(filled)
}

/// Copies a volume into a raw image.
pub fn export(args: &ImageArgs) -> Result<(), CliError> {
    let path = &args.image;
    let mut volume = open(&args.volume)?;
    let image = File::create_new(path).map_err(file_error("create", path))?;
    let copied = copy_out(
        &mut volume,
        BufWriter::new(image),
        path,
        &args.volume.directory,
    );
    if copied.is_err() {
        // Nothing half-written stays behind.
        let _ = std::fs::remove_file(path);
    }
    copied
}

fn copy_out(
    volume: &mut Volume<FileMedium>,
    mut image: BufWriter<File>,
    path: &Path,
    directory: &Path,
) -> Result<(), CliError> {
    let mut page = [0; PAGE];
    for lpn in 0..volume.exported() {
        volume.read(lpn, &mut page).map_err(failed(directory))?;
        image.write_all(&page).map_err(file_error("write", path))?;
    }
    image.flush().map_err(file_error("write", path))
}

/// Checks a volume that is not open.
pub fn check(args: &CheckArgs) -> Result<(), CliError> {
    let directory = &args.volume.directory;
    let medium = medium(&args.volume)?;
    let report = flashlore_volume::check(&medium, !args.quick).map_err(failed(directory))?;
    if args.json {
        let json = serde_json::json!({
            "clean": report.is_clean(),
            "mapped": report.mapped,
            "stored": report.stored,
            "superblocks": report.superblocks,
            "events_to_replay": report.recovery.events,
            "findings": findings_json(&report.findings),
            "errors": report.errors,
        });
        print(&format!("{json}\n"))?;
    } else if args.affected {
        let mut affected: Vec<u32> = report
            .findings
            .iter()
            .flat_map(|f| f.addresses.iter().copied())
            .collect();
        affected.sort_unstable();
        let lines: String = affected.iter().map(|lpn| format!("{lpn}\n")).collect();
        print(&lines)?;
    } else {
        let mut text = format!(
            "{} pages hold something, {} are stored; {} events to replay\n",
            report.mapped, report.stored, report.recovery.events
        );
        if report.superblocks < 2 {
            text += "one copy of the superblock does not hold; opening the volume rewrites it\n";
        }
        for line in report.errors.iter().map(String::as_str) {
            let _ = writeln!(text, "{line}");
        }
        for finding in &report.findings {
            let _ = writeln!(text, "{finding}");
        }
        print(&text)?;
    }
    if report.is_clean() {
        return Ok(());
    }
    Err(CliError::Differs(format!(
        "{}: the volume is not clean",
        directory.display()
    )))
}

fn findings_json(findings: &[Finding]) -> serde_json::Value {
    let one =
        |f: &Finding| serde_json::json!({"unit": f.unit, "why": f.why, "addresses": f.addresses});
    findings.iter().map(one).collect()
}

/// Reads every stored page.
pub fn scrub(args: &ScrubArgs) -> Result<(), CliError> {
    let mut volume = open(&args.volume)?;
    let progress = Progress::phase("scrubbing");
    let (mut next, mut read) = (Some(0), 0u64);
    while let Some(from) = next {
        let step = volume.scrub(from, SCRUB_STEP);
        read += u64::from(step.read);
        next = step.next;
    }
    drop(progress);
    let findings = volume.take_findings();
    if args.json {
        let json = serde_json::json!({"read": read, "findings": findings_json(&findings)});
        print(&format!("{json}\n"))?;
    } else {
        let mut text = format!("{read} addresses read, {} findings\n", findings.len());
        for finding in &findings {
            let _ = writeln!(text, "{finding}");
        }
        print(&text)?;
    }
    volume.close().map_err(failed(&args.volume.directory))?;
    if findings.is_empty() {
        return Ok(());
    }
    Err(CliError::Differs(format!(
        "{}: some pages cannot be read",
        args.volume.directory.display()
    )))
}

/// Shows what lies on the medium.
pub fn dump(args: &DumpArgs) -> Result<(), CliError> {
    let medium = medium(&args.volume)?;
    let has = |part| args.part.contains(&part);
    let parts = DumpParts {
        heads: has(DumpPart::Heads),
        tables: has(DumpPart::Tables),
        journal: has(DumpPart::Journal),
        records: has(DumpPart::Records),
    };
    let mut out = BufWriter::new(io::stdout().lock());
    let dumped = flashlore_volume::dump(&medium, parts, &mut out);
    match dumped {
        Ok(()) => out.flush().map_err(CliError::Output),
        Err(DumpError::Output(error)) => Err(CliError::Output(error)),
        Err(DumpError::Volume(error)) => Err(failed(&args.volume.directory)(error)),
    }
}
