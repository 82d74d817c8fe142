//! `info`: the state of a volume or an array.

use std::fmt::Write as _;

use flashlore_serve::clock::told;
use flashlore_serve::moment::Time;
use flashlore_serve::request::{ArrayInfo, ClientCounts, ElementInfo, Info};
use flashlore_serve::troubles::Failures;
use flashlore_serve::{Answer, Request};
use flashlore_sim::config::Nanos;

use super::{human, json, request, unexpected};
use crate::cli::InfoVolumeArgs;
use crate::error::CliError;
use crate::output::print;

pub fn info(args: &InfoVolumeArgs) -> Result<(), CliError> {
    let answer = request(&args.volume, &Request::Info)?;
    let text = match &answer {
        Answer::Info(info) => text(info),
        Answer::Array(info) => array_text(info),
        _ => return Err(unexpected(&args.volume)),
    };
    match args.json {
        true => print(&json(&answer)),
        false => print(&text),
    }
}

fn array_text(info: &ArrayInfo) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        // Writing to a text cannot fail.
        let _ = writeln!(text, "{name:<12} {value}");
    };
    line("system", info.system.clone());
    line("fast medium", info.fast.display().to_string());
    line("slow medium", {
        let slow = info.slow.display();
        match info.image {
            None => slow.to_string(),
            Some(bytes) => format!("{slow}, around a disk image of {}", human(bytes)),
        }
    });
    line("mode", {
        let ordered = { info.element.as_ref() }.is_none_or(|element| element.most_away > 0);
        let ordered = if ordered { ", ordered" } else { "" };
        let strict = if info.strict { ", strict" } else { "" };
        format!("{}{ordered}{strict}", info.mode)
    });
    for machine in &info.machines {
        let (size, logical) = (human(machine.size), human(machine.logical));
        line(
            &format!("machine {}", machine.number),
            format!("{size}, {logical} in use, served as {}", machine.name),
        );
    }
    match &info.element {
        None => line(
            "state",
            "as the slow medium holds it alone, read-only".to_owned(),
        ),
        Some(element) => element_lines(element, &mut line),
    }
    last_use_line(info.closed, &mut line);
    clients_line(info.clients, &mut line);
    failures_line(info.failures.as_ref(), &mut line);
    line(
        "health",
        match &info.failure {
            Some(failure) => format!("read-only until it is opened again: {failure}"),
            None if info.element.is_none() => "read-only".to_owned(),
            None => "it can be written to".to_owned(),
        },
    );
    text
}

fn last_use_line(was_closed: bool, line: &mut dyn FnMut(&str, String)) {
    if !was_closed {
        line(
            "last use",
            "it was not closed before this opening".to_owned(),
        );
    }
}

fn clients_line(clients: Option<ClientCounts>, line: &mut dyn FnMut(&str, String)) {
    if let Some(ClientCounts { writers, readers }) = clients {
        line(
            "clients",
            format!("{writers} that may write, {readers} that only read"),
        );
    }
}

fn failures_line(failures: Option<&Failures>, line: &mut dyn FnMut(&str, String)) {
    if let Some(Failures { count, at, last }) = failures {
        let at = Time(*at);
        line(
            "failures",
            format!("{count} since it was opened, the last one at {at}: {last}"),
        );
    }
}

fn element_lines(element: &ElementInfo, line: &mut dyn FnMut(&str, String)) {
    let states = element.references + element.associates + element.independents;
    line("blocks", {
        let ElementInfo {
            references,
            associates,
            independents,
            virtual_blocks,
            ..
        } = element;
        format!(
            "{states} of {virtual_blocks} known in RAM: {references} references, {associates} associates, \
             {independents} independents"
        )
    });
    let of = |used: u64, limit: u64| {
        let share = 100.0 * used as f64 / limit.max(1) as f64;
        format!("{} of {} ({share:.0} %)", human(used), human(limit))
    };
    line("delta RAM", {
        let used = of(element.delta_ram, element.delta_ram_limit);
        format!("{used}, {} at most so far", human(element.delta_ram_peak))
    });
    line("fast in use", of(element.fast_used, element.fast_limit));
    if element.frozen_limit > 0 {
        line(
            "frozen places",
            of(element.frozen_used, element.frozen_limit),
        );
    }
    let log_used = element.log_limit - element.log_free;
    line("log in use", of(log_used, element.log_limit));
    if element.most_away > 0 {
        let (away, most) = (element.away, element.most_away);
        line("not at home", format!("{away} of at most {most} blocks"));
    }
    line("dirty", {
        let (dirty, target) = (human(element.dirty), human(element.dirty_target));
        format!("{dirty} are not at home; above {target} blocks go home ahead")
    });
    let count = |name: &str| element.counters.get(name).copied().unwrap_or(0);
    line("since opened", {
        let (deltas, bytes) = (count("deltas"), count("delta_bytes"));
        let mean = bytes as f64 / deltas.max(1) as f64;
        format!(
            "{deltas} deltas of {mean:.0} bytes on average made, {} blocks written to the fast medium, {} home",
            count("slot_writes"),
            count("written_home")
        )
    });
    line("passed by", {
        let bytes = |name: &str| human(count(name) * 4096);
        let (read, written) = (bytes("bypassed_reads"), bytes("bypassed_writes"));
        format!("{read} read and {written} written in long sequential streams")
    });
    for traffic in &element.traffic {
        line(
            &traffic.medium,
            format!(
                "{} reads, {} writes, {} syncs; {} read, {} written",
                traffic.reads,
                traffic.writes,
                traffic.syncs,
                human(traffic.read_bytes),
                human(traffic.written_bytes)
            ),
        );
    }
    line(
        "durable",
        match element.waiting {
            0 => "everything".to_owned(),
            waiting => format!("all but the last changes of {waiting} blocks"),
        },
    );
    line("opened", format!("{} times", element.epoch));
}

fn text(info: &Info) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        // Writing to a text cannot fail.
        let _ = writeln!(text, "{name:<12} {value}");
    };
    line("system", info.system.clone());
    line("size", human(info.size));
    line("in use", human(info.logical));
    let share = 100.0 * info.stored as f64 / info.capacity.max(1) as f64;
    let capacity = human(info.capacity);
    line(
        "stored",
        format!("{} of {capacity} ({share:.0} %)", human(info.stored)),
    );
    let saved = &info.saved;
    line("saved", {
        let (dedup, delta) = (human(saved.dedup), human(saved.delta));
        let compression = human(saved.compression);
        format!("{dedup} by dedup, {delta} by delta, {compression} by compression")
    });
    if let Some(index) = &info.index {
        line("index", {
            let share = 100.0 * index.entries as f64 / index.most_entries.max(1) as f64;
            format!(
                "{} of {} entries ({share:.0} %); of {} pages not found since it was opened a larger one might have \
                 found {}",
                index.entries, index.most_entries, index.misses, index.doubtful_misses
            )
        });
    }
    line("tables", {
        let tables = &info.tables;
        let asked = (tables.hits + tables.misses).max(1);
        format!(
            "{} of {} in memory; {:.1} % of the rows asked for were there",
            human(tables.memory),
            human(tables.most_memory),
            100.0 * tables.hits as f64 / asked as f64
        )
    });
    match &info.history {
        None => line("history", "none".to_owned()),
        Some(history) => {
            line("old versions", human(info.kept));
            line("back to", {
                let oldest = Time(history.oldest);
                match history.missing {
                    0 => oldest.to_string(),
                    bytes => format!(
                        "{oldest}, but for {} that were purged, see log",
                        human(bytes)
                    ),
                }
            });
            line("last change", Time(history.newest).to_string());
            line("changes", {
                let (held, most) = (history.entries, history.most_entries);
                format!("{held} of {most} remembered")
            });
            line("snapshots", history.snapshots.to_string());
            if history.least_window > 0 {
                let on_pressure = match history.protected {
                    true => "else writes fail",
                    false => "if it fits",
                };
                let least = Nanos(history.least_window);
                line("least window", format!("{least}, {on_pressure}"));
            }
        }
    }
    line(
        "durable",
        match info.waiting {
            0 => "everything".to_owned(),
            waiting => format!("all but the last {waiting} changes"),
        },
    );
    line("opened", format!("{} times", info.epoch));
    last_use_line(info.closed, &mut line);
    let (time, wall) = info.clock;
    if wall.abs_diff(time) >= 1_000_000_000 {
        line("clock", told(time, wall, 0));
    }
    for warning in &info.warnings {
        line("warning", warning.clone());
    }
    clients_line(info.clients, &mut line);
    failures_line(info.failures.as_ref(), &mut line);
    line(
        "health",
        match (&info.failure, info.findings.len()) {
            (Some(failure), _) => format!("read-only: {failure}"),
            (None, 0) => "no page is known to be unreadable".to_owned(),
            (None, count) => format!("{count} stored pages cannot be read, see check"),
        },
    );
    text
}
