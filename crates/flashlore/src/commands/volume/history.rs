//! `log`, `snapshot`, `mark`, `recover`, `diff`, `purge`: the past of a volume.

use std::fmt::Write as _;

use flashlore_serve::clock::told;
use flashlore_serve::moment::Time;
use flashlore_serve::request::{Erased, LogEntry, Snapshot};
use flashlore_serve::{Answer, Request};

use super::{json, request, unexpected};
use crate::cli::{
    DiffArgs, LogArgs, MarkArgs, PurgeArgs, RecoverArgs, SnapshotCommand, SnapshotListArgs,
};
use crate::error::CliError;
use crate::output::{print, tell};

pub fn log(args: &LogArgs) -> Result<(), CliError> {
    let most = args.most;
    let answer = request(&args.volume, &Request::Log { most })?;
    let Answer::Log {
        oldest, entries, ..
    } = &answer
    else {
        return Err(unexpected(&args.volume));
    };
    if args.json {
        return print(&json(&answer));
    }
    let mut text = String::new();
    // Purges and changes of the clock are told that are older.
    let before = entries.partition_point(|entry| entry.instant() < *oldest);
    for (at, entry) in entries.iter().enumerate() {
        if at == before {
            begins(&mut text, *oldest);
        }
        let what = match entry {
            LogEntry::Changes { first, last, pages } => {
                let pages = format!("{pages} page{} changed", if *pages == 1 { "" } else { "s" });
                match last - first {
                    0 => pages,
                    _ => format!("{pages}, the last at {}", Time(*last)),
                }
            }
            LogEntry::Snapshot(Snapshot { name, .. }) => match name {
                Some(name) => format!("snapshot {name}"),
                None => "snapshot without a name".to_owned(),
            },
            LogEntry::Mark { name, .. } => format!("mark {name}"),
            LogEntry::Purge { range: None, .. } => {
                "purge of everything before the last change".to_owned()
            }
            LogEntry::Purge {
                range: Some((first, length)),
                ..
            } => format!("purge of {length} bytes from {first} on: earlier instants lack them"),
            LogEntry::Clock {
                instant,
                wall,
                unproven,
            } => told(*instant, *wall, *unproven),
        };
        // Writing to a text cannot fail.
        let _ = writeln!(text, "{}  {what}", Time(entry.instant()));
    }
    if before == entries.len() {
        begins(&mut text, *oldest);
    }
    print(&text)
}

fn begins(text: &mut String, oldest: u64) {
    let _ = writeln!(text, "{}  the history begins", Time(oldest));
}

pub fn snapshot(command: &SnapshotCommand) -> Result<(), CliError> {
    match command {
        SnapshotCommand::Create(args) => {
            let asked = Request::SnapshotCreate {
                name: args.name.clone(),
                at: args.at.clone(),
            };
            let Answer::Instant { instant } = request(&args.volume, &asked)? else {
                return Err(unexpected(&args.volume));
            };
            tell(&format!("{} is kept as {}", Time(instant), args.name));
            Ok(())
        }
        SnapshotCommand::List(args) => list_snapshots(args),
        SnapshotCommand::Delete(args) => {
            let snapshot = args.snapshot.clone();
            let asked = Request::SnapshotDelete { snapshot };
            let Answer::Instant { instant } = request(&args.volume, &asked)? else {
                return Err(unexpected(&args.volume));
            };
            tell(&format!("the snapshot of {} is given up", Time(instant)));
            Ok(())
        }
    }
}

fn list_snapshots(args: &SnapshotListArgs) -> Result<(), CliError> {
    let answer = request(&args.volume, &Request::SnapshotList)?;
    let Answer::Snapshots { snapshots } = &answer else {
        return Err(unexpected(&args.volume));
    };
    if args.json {
        return print(&json(&answer));
    }
    let mut text = String::new();
    for snapshot in snapshots {
        let name = snapshot.name.as_deref().unwrap_or("-");
        let _ = writeln!(text, "{}  {name}", Time(snapshot.instant));
    }
    print(&text)
}

pub fn mark(args: &MarkArgs) -> Result<(), CliError> {
    let name = args.name.clone();
    let Answer::Instant { instant } = request(&args.volume, &Request::Mark { name })? else {
        return Err(unexpected(&args.volume));
    };
    tell(&format!("{} is marked as {}", Time(instant), args.name));
    Ok(())
}

pub fn recover(args: &RecoverArgs) -> Result<(), CliError> {
    let asked = Request::Recover {
        to: args.to.clone(),
        mark: args.to_mark,
        dry_run: args.dry_run,
        disconnect: args.disconnect,
        allow_missing: args.allow_missing,
    };
    let answer = request(&args.memory.of(&args.volume), &asked)?;
    let Answer::Recovered {
        instant,
        changed,
        before,
        missing,
    } = &answer
    else {
        return Err(unexpected(&args.volume));
    };
    if args.json {
        return print(&json(&answer));
    }
    let (instant, before) = (Time(*instant), Time(*before));
    tell_missing(missing, "read as zeros");
    if args.dry_run {
        tell(&format!(
            "{changed} pages hold something else now than at {instant}"
        ));
        return Ok(());
    }
    tell(&format!(
        "the volume is as it was at {instant}; {changed} pages changed\n\
         to undo it: flashlore recover {} --to {before}",
        args.volume.directory.display()
    ));
    Ok(())
}

/// Tells of what was purged, and what that means.
pub(super) fn tell_missing(missing: &[(u64, u64)], what: &str) {
    for (first, length) in missing {
        tell(&format!(
            "{length} bytes from {first} on were purged: they {what}"
        ));
    }
}

pub fn diff(args: &DiffArgs) -> Result<(), CliError> {
    let asked = Request::Diff {
        from: args.from.clone(),
        to: args.to.clone(),
        allow_missing: args.allow_missing,
    };
    let answer = request(&args.volume, &asked)?;
    let Answer::Differences { ranges, missing } = &answer else {
        return Err(unexpected(&args.volume));
    };
    if args.json {
        return print(&json(&answer));
    }
    tell_missing(missing, "may differ or not");
    let lines = ranges
        .iter()
        .map(|(first, length)| format!("{first} {length}\n"));
    print(&lines.collect::<String>())
}

pub fn purge(args: &PurgeArgs) -> Result<(), CliError> {
    let range = args.offset.zip(args.length);
    let asked = Request::Purge {
        range: range.map(|(offset, length)| (offset.0, length.0)),
        before: args.before.clone(),
        erase: args.erase,
    };
    let answer = request(&args.volume, &asked)?;
    let Answer::Purged {
        ended,
        oldest,
        erased,
    } = answer
    else {
        return Err(unexpected(&args.volume));
    };
    for snapshot in ended {
        let name = snapshot.name.unwrap_or_else(|| "without a name".to_owned());
        tell(&format!(
            "the snapshot {name} of {} ended: what it held is purged",
            Time(snapshot.instant)
        ));
    }
    if range.is_none() {
        tell(&format!("the history begins at {} now", Time(oldest)));
    }
    let Some(Erased {
        blocks,
        copied,
        left,
    }) = erased
    else {
        tell("forgotten; what nothing needs is erased by collection in time");
        return Ok(());
    };
    let erased = format!("{blocks} blocks, {copied} pages copied out of them");
    if left == 0 {
        tell(&format!("forgotten and erased: {erased}"));
        return Ok(());
    }
    Err(CliError::Differs(format!(
        "{}: forgotten, but not all of it is erased ({erased}): {left} block{} left as {}, because something in {} that is \
         needed cannot be read, and may still hold what was purged. `check` names the pages: write them again, or trim \
         them, then purge with --erase again",
        args.volume.directory.display(),
        if left == 1 { " was" } else { "s were" },
        if left == 1 { "it is" } else { "they are" },
        if left == 1 { "it" } else { "them" },
    )))
}
