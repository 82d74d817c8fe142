//! `check`, `scrub`, `dump`: whether a volume holds, and what lies on it.

use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use flashlore_serve::array::{self, check::ArrayFinding};
use flashlore_serve::request::Unreadable;
use flashlore_serve::{Answer, Home, Request, ServeError};
use flashlore_volume::dump::DumpError;
use flashlore_volume::{DumpParts, Finding};

use super::{home, medium, mode, reach, unexpected};
use crate::cli::{CheckArgs, DumpArgs, DumpPart, ScrubArgs};
use crate::error::CliError;
use crate::output::print;
use crate::progress::Progress;

/// Checks a volume that is not open.
pub fn check(args: &CheckArgs) -> Result<(), CliError> {
    let directory = &args.volume.directory;
    let home = home(&args.volume);
    if home.is_array() {
        return check_array(args, &home);
    }
    let medium = home
        .affordable(mode(&args.volume))
        .map_err(|source| CliError::serve(directory, source))?;
    let report = flashlore_volume::check(&medium, !args.quick)
        .map_err(|error| CliError::serve(directory, error.into()))?;
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
    demand_clean(report.is_clean(), directory, "volume")
}

fn demand_clean(is_clean: bool, directory: &Path, what: &str) -> Result<(), CliError> {
    match is_clean {
        true => Ok(()),
        false => Err(CliError::Differs(format!(
            "{}: the {what} is not clean",
            directory.display()
        ))),
    }
}

/// Checks an array that is not open.
fn check_array(args: &CheckArgs, home: &Home) -> Result<(), CliError> {
    let directory = &args.volume.directory;
    let report = array::check::check(home, mode(&args.volume), !args.quick)
        .map_err(|source| CliError::serve(directory, source))?;
    let findings = report.findings.iter();
    let text: String = if args.json {
        let one = |f: &ArrayFinding| serde_json::json!({"machine": f.machine, "block": f.block, "why": f.why});
        let json = serde_json::json!({
            "clean": report.is_clean(),
            "mapped": report.kept,
            "findings": findings.map(one).collect::<Vec<_>>(),
            "errors": Vec::from_iter(&report.error),
        });
        format!("{json}\n")
    } else if args.affected {
        let one = |f: &ArrayFinding| format!("{} {}\n", f.machine, f.block);
        findings.map(one).collect()
    } else {
        let head = format!("{} blocks hold something\n", report.kept);
        let error = report.error.iter().map(|error| format!("{error}\n"));
        let one = |f: &ArrayFinding| format!("{}\n", f.why);
        std::iter::once(head)
            .chain(error)
            .chain(findings.map(one))
            .collect()
    };
    print(&text)?;
    demand_clean(report.is_clean(), directory, "array")
}

fn findings_json(findings: &[Finding]) -> serde_json::Value {
    let one =
        |f: &Finding| serde_json::json!({"unit": f.unit, "why": f.why, "addresses": f.addresses});
    findings.iter().map(one).collect()
}

/// Reads every stored page.
pub fn scrub(args: &ScrubArgs) -> Result<(), CliError> {
    let mut reach = reach(&args.volume)?;
    let progress = Progress::phase("scrubbing");
    let (mut next, mut read, mut findings) = (Some(0), 0, Vec::<Unreadable>::new());
    while let Some(from) = next {
        let step = reach.ask(&Request::Scrub { from });
        let step = step.map_err(|source| CliError::serve(&args.volume.directory, source))?;
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
            if !findings.contains(&found) {
                findings.push(found);
            }
        }
        next = then;
    }
    drop(progress);
    if args.json {
        let json = serde_json::json!({"read": read, "findings": findings});
        print(&format!("{json}\n"))?;
    } else {
        let mut text = format!("{read} pages read, {} findings\n", findings.len());
        for Unreadable {
            unit,
            why,
            addresses,
        } in findings.clone()
        {
            let finding = Finding {
                unit,
                why,
                addresses,
            };
            let _ = writeln!(text, "{finding}");
        }
        print(&text)?;
    }
    let closed = reach.close();
    closed.map_err(|source| CliError::serve(&args.volume.directory, source))?;
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
        Err(DumpError::Volume(error)) => Err(CliError::serve(
            &args.volume.directory,
            ServeError::Volume(error),
        )),
    }
}
