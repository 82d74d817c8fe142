//! `check`, `scrub`, `dump`: whether a volume holds, and what lies on it.
//!
//! What `check --json` prints are classes of `python/flashlore/volume_info.py`, which `tools/records.py` makes.

use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};

use flashlore_medium::Access;
use flashlore_serve::array::{self, check::ArrayFinding, check::ArrayReport};
use flashlore_serve::request::Unreadable;
use flashlore_serve::served::{recovery_told, unclosed_volume_told};
use flashlore_serve::{Answer, Budget, Request};
use flashlore_volume::dump::DumpError;
use flashlore_volume::{CheckReport, DumpParts, Finding, Lpn, Ppn, load};
use serde::Serialize;
use serde_json::{Value, json};

use super::{DirectoryNames, failed, home, medium, mode, named, reach, tell_of, unexpected};
use crate::cli::{CheckArgs, DumpArgs, DumpPart, ScrubArgs, VolumeArgs};
use crate::error::CliError;
use crate::output::print;
use crate::progress::Progress;

/// Checks a volume or an array that is not open.
pub fn check(args: &CheckArgs) -> Result<(), CliError> {
    let directory = &args.volume.directory;
    if args.rebuild_superblocks {
        rebuild_superblocks(&args.volume)?;
    }
    let memory = args.memory.map(|size| size.0);
    let volume = VolumeArgs {
        budget: Budget {
            memory,
            index: None,
        },
        ..args.volume.clone()
    };
    let progress = Progress::blocks("checking");
    let checked = checked(&volume, args.quick, &|done, of| progress.at(done, of));
    drop(progress);
    let checked = checked?;
    tell_of(&args.volume, checked.recovered());
    print(&if args.json {
        format!("{}\n", checked.json())
    } else if args.affected {
        checked.affected()
    } else {
        checked.text()
    })?;
    match checked.is_clean() {
        true => Ok(()),
        false => Err(CliError::Differs(format!(
            "{}: the {} is not clean",
            directory.display(),
            checked.what()
        ))),
    }
}

/// Derives the superblocks of a volume from the rest.
fn rebuild_superblocks(args: &VolumeArgs) -> Result<(), CliError> {
    let failed = failed(args);
    let home = home(args);
    if home.is_array() {
        return Err(CliError::Usage(format!(
            "{}: an array has no superblocks to derive, --rebuild-superblocks is for volumes",
            args.directory.display()
        )));
    }
    let medium = home.medium(mode(args), Access::Change).map_err(&failed)?;
    let epoch = flashlore_volume::open::rebuild_superblocks(&medium);
    let epoch = epoch.map_err(|error| failed(error.into()))?;
    eprintln!(
        "{}: superblocks of session {epoch} written",
        args.directory.display()
    );
    Ok(())
}

/// What a check of a volume that nobody has open found.
#[derive(Serialize)]
pub struct VolumeCheck {
    /// Whether everything holds.
    pub clean: bool,
    /// Whether whoever used it last closed it; else it was killed, or is a copy of one in use.
    pub closed: bool,
    /// Pages that hold something.
    pub mapped: u64,
    /// Values stored for them and for old versions.
    pub stored: u64,
    /// Copies of the superblock that hold, of two.
    pub superblocks: u32,
    /// What an opening would replay.
    pub events_to_replay: u64,
    /// Stored pages that cannot be read.
    pub findings: Vec<Unreadable>,
    /// Things that must not be, each a sentence.
    pub errors: Vec<String>,
}

/// What a check of an array that nobody has open found.
#[derive(Serialize)]
pub struct ArrayCheck {
    /// Whether everything holds.
    pub clean: bool,
    /// Whether whoever used it last closed it; else it was killed, or its media are copies of one in use.
    pub closed: bool,
    /// Blocks that hold something.
    pub mapped: u64,
    /// Blocks that cannot be read, or are not what they were recorded as.
    pub findings: Vec<ArrayFinding>,
    /// Invariants that do not hold, each a sentence.
    pub errors: Vec<String>,
}

pub enum Checked {
    Volume(CheckReport),
    Array(ArrayReport),
}

/// Checks a volume or an array that is not open; unless it is to be `quick`, every stored page is read too.
/// `progress` is told how far the check of a volume is.
pub fn checked(
    args: &VolumeArgs,
    quick: bool,
    progress: &dyn Fn(u64, u64),
) -> Result<Checked, CliError> {
    let (home, mode) = (home(args), mode(args));
    let failed = failed(args);
    if home.is_array() {
        if args.budget != Budget::default() {
            let what = "takes the memory that its array.json gives it, so --memory is of no use";
            home.demand_volume(what).map_err(&failed)?;
        }
        let report = array::check::check(&home, mode, !quick).map_err(failed)?;
        return Ok(Checked::Array(report));
    }
    let report = home.check(mode, !quick, progress);
    Ok(Checked::Volume(report.map_err(failed)?))
}

impl Checked {
    fn what(&self) -> &'static str {
        match self {
            Checked::Volume(_) => "volume",
            Checked::Array(_) => "array",
        }
    }

    /// What is to be known of what was not closed, as a sentence.
    fn recovered(&self) -> Option<String> {
        match self {
            Checked::Volume(report) => recovery_told(&report.recovery),
            Checked::Array(report) => report.last_use.told(),
        }
    }

    fn is_clean(&self) -> bool {
        match self {
            Checked::Volume(report) => report.is_clean(),
            Checked::Array(report) => report.is_clean(),
        }
    }

    pub fn json(&self) -> Value {
        match self {
            Checked::Volume(report) => json!(VolumeCheck {
                clean: report.is_clean(),
                closed: report.recovery.closed,
                mapped: report.mapped,
                stored: report.stored,
                superblocks: report.superblocks,
                events_to_replay: report.recovery.events,
                findings: report.findings.iter().map(Unreadable::from).collect(),
                errors: report.errors.clone(),
            }),
            Checked::Array(report) => json!(ArrayCheck {
                clean: report.is_clean(),
                closed: report.last_use.is_closed(),
                mapped: report.kept,
                findings: report.findings.clone(),
                errors: report.error.iter().cloned().collect(),
            }),
        }
    }

    /// The addresses that cannot be read, one a line.
    fn affected(&self) -> String {
        match self {
            Checked::Volume(report) => {
                let addresses = report.findings.iter().flat_map(|f| &f.addresses);
                let mut affected: Vec<Lpn> = addresses.copied().collect();
                affected.sort_unstable();
                affected.iter().map(|lpn| format!("{lpn}\n")).collect()
            }
            Checked::Array(report) => {
                let one = |f: &ArrayFinding| format!("{} {}\n", f.machine, f.block);
                report.findings.iter().map(one).collect()
            }
        }
    }

    fn text(&self) -> String {
        match self {
            Checked::Volume(report) => volume_text(report),
            Checked::Array(report) => {
                let head = format!("{} blocks hold something\n", report.kept);
                let error = report.error.iter().map(|error| format!("{error}\n"));
                let findings = report.findings.iter().map(|f| format!("{}\n", f.why));
                std::iter::once(head).chain(error).chain(findings).collect()
            }
        }
    }
}

fn volume_text(report: &CheckReport) -> String {
    let mut text = format!(
        "{} pages hold something, {} are stored; {} events to replay\n",
        report.mapped, report.stored, report.recovery.events
    );
    if report.superblocks < 2 {
        text += "one copy of the superblock does not hold; opening the volume rewrites it\n";
    }
    for line in &report.errors {
        // Writing to a text cannot fail.
        let _ = writeln!(text, "{line}");
    }
    for finding in &report.findings {
        let _ = writeln!(text, "{finding}");
    }
    text
}

pub fn scrub(args: &ScrubArgs) -> Result<(), CliError> {
    let mut reach = reach(&args.memory.of(&args.volume))?;
    let DirectoryNames {
        is_array, units, ..
    } = named(&args.volume);
    let progress = Progress::phase("scrubbing");
    let (mut next, mut read, mut findings) = (Some(0), 0, Vec::<Unreadable>::new());
    while let Some(from) = next {
        let step = reach.ask(&Request::Scrub { from });
        let step = step.map_err(failed(&args.volume))?;
        let Answer::Scrubbed {
            next: then,
            read: count,
            findings: new,
        } = step
        else {
            return Err(unexpected(&args.volume));
        };
        read += count;
        for found in new {
            // Several values may lie on one page.
            if findings.contains(&found) {
                continue;
            }
            let is_hidden = found.unit.is_none();
            let last = findings.last_mut();
            match last.filter(|last| is_hidden && last.unit.is_none() && last.why == found.why) {
                // A page of the tables hides many addresses, which are told in steps.
                Some(last) => last.addresses.extend(found.addresses),
                None => findings.push(found),
            }
        }
        next = then;
    }
    drop(progress);
    if args.json {
        let json = json!({"read": read, "findings": findings});
        print(&format!("{json}\n"))?;
    } else {
        let mut text = format!("{read} {units} read, {} findings\n", findings.len());
        for Unreadable {
            unit,
            why,
            addresses,
        } in findings.clone()
        {
            // That of an array names machine and block itself.
            if is_array {
                let _ = writeln!(text, "{why}");
                continue;
            }
            let finding = Finding {
                unit: unit.map_or(Ppn::NONE, Ppn),
                why,
                addresses: addresses.into_iter().map(Lpn).collect(),
            };
            let _ = writeln!(text, "{finding}");
        }
        print(&text)?;
    }
    reach.close().map_err(failed(&args.volume))?;
    if findings.is_empty() {
        return Ok(());
    }
    Err(CliError::Differs(format!(
        "{}: some {units} cannot be read",
        args.volume.directory.display()
    )))
}

pub fn dump(args: &DumpArgs) -> Result<(), CliError> {
    let medium = medium(&args.volume)?;
    // One without a superblock is shown too.
    let superblock = load::superblock(&medium).ok();
    tell_of(
        &args.volume,
        superblock.as_ref().and_then(unclosed_volume_told),
    );
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
        Err(DumpError::Volume(error)) => Err(failed(&args.volume)(error.into())),
    }
}
