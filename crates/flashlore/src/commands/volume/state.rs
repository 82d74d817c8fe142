//! `info`: the state of a volume.

use std::fmt::Write as _;

use flashlore_serve::moment::Time;
use flashlore_serve::request::Info;
use flashlore_serve::{Answer, Request};
use flashlore_sim::config::Nanos;

use super::{human, json, request, unexpected};
use crate::cli::InfoVolumeArgs;
use crate::error::CliError;
use crate::output::print;

/// Shows the state of a volume.
pub fn info(args: &InfoVolumeArgs) -> Result<(), CliError> {
    let answer = request(&args.volume, &Request::Info)?;
    let Answer::Info(info) = &answer else {
        return Err(unexpected(&args.volume));
    };
    match args.json {
        true => print(&json(&answer)),
        false => print(&text(info)),
    }
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
    match &info.history {
        None => line("history", "none".to_owned()),
        Some(history) => {
            line("old versions", human(info.kept));
            line("back to", Time(history.oldest).to_string());
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
    if let Some((writers, readers)) = info.clients {
        line(
            "clients",
            format!("{writers} that may write, {readers} that only read"),
        );
    }
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
