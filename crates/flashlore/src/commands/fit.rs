//! `flashlore trace fit`.

use std::path::Path;

use flashlore_synth::fit::Estimator;
use flashlore_synth::profile_hash;
use flashlore_trace::output::write_whole;
use flashlore_trace::{ContentModel, Existing, WorkloadOptions, for_each_access};
use serde_json::json;

use crate::cli::FitArgs;
use crate::error::CliError;
use crate::fitting::{Chosen, Figure, Target, search};
use crate::input::{open, profile, same_file};
use crate::output::{print, print_json};
use crate::plan::{Plan, PlanOptions};
use crate::progress::Progress;
use crate::runs::threads;

/// More seeds would not tell more.
const MOST_SEEDS: u64 = 1000;

pub fn fit(args: &FitArgs) -> Result<(), CliError> {
    refuse_contradictions(args)?;
    let existing = Existing::from(args.force);
    existing.check_file(&args.output)?;
    let options = WorkloadOptions {
        read: args.read.options(),
        compact: true,
        devices: args.device.clone(),
        ..WorkloadOptions::new(ContentModel::FromTrace)
    };
    let progress = Progress::phase("following the trace");
    let estimator = follow(args, &options)?;
    drop(progress);
    if estimator.pages() == 0 {
        return Err(CliError::Usage(format!(
            "{} touches no page that could be fitted",
            args.trace.display()
        )));
    }
    let name = args.name.clone().unwrap_or_else(|| stem(&args.trace));
    let systems: &[&str] = match estimator.has_content() {
        true => &["plain", "ca-ssd"],
        false => &["plain"],
    };
    let plan = Plan::new(&PlanOptions {
        systems: &systems.iter().map(ToString::to_string).collect::<Vec<_>>(),
        device: "auto",
        set: &[],
        seeds: 1,
        different_devices: false,
    })?;
    let target = Target {
        plan: &plan,
        seeds: args.seeds.get(),
        tolerance: args.tolerance.get(),
        threads: threads(args.jobs),
    };
    let source = file_name(&args.trace);
    let paths = [args.trace.clone()];
    let chosen = search(&estimator, (&name, &source), &paths, &options, &target)?;
    let text = chosen.fit.to_text();
    write_whole(&args.output, existing, |out| out.write_all(text.as_bytes()))?;
    let hash = profile_hash(&text);
    match args.json {
        true => print_json(&to_json(&chosen, &hash)),
        false => print(&to_text(&chosen, &hash, &estimator, args)),
    }
}

fn refuse_contradictions(args: &FitArgs) -> Result<(), CliError> {
    if args.seeds.get() > MOST_SEEDS {
        return Err(CliError::Usage(format!(
            "--seeds {}: expected at most {MOST_SEEDS}",
            args.seeds
        )));
    }
    if args.trace == Path::new("-") {
        return Err(CliError::Usage(
            "a fit reads the trace twice, which standard input does not allow; name a file"
                .to_owned(),
        ));
    }
    let trace = profile(&args.trace).map_or(args.trace.as_path(), |spec| {
        Path::new(spec.split(',').next().unwrap_or_default())
    });
    if same_file(trace, &args.output) {
        return Err(CliError::Usage(format!(
            "{} is both trace and output; name another file for the output",
            args.output.display()
        )));
    }
    Ok(())
}

fn follow(args: &FitArgs, options: &WorkloadOptions) -> Result<Estimator, CliError> {
    let mut estimator = Estimator::default();
    let reader = open(&args.trace, &options.read)?;
    for_each_access(vec![reader], options, |access| {
        estimator.observe(access);
        Ok(())
    })?;
    Ok(estimator)
}

/// The last part of a trace's name.
fn file_name(trace: &Path) -> String {
    let trace = profile(trace).map_or(trace, Path::new);
    trace.file_name().map_or_else(
        || trace.display().to_string(),
        |name| name.to_string_lossy().into_owned(),
    )
}

/// The trace's name up to its first dot.
fn stem(trace: &Path) -> String {
    let name = file_name(trace);
    name.split(['.', ',', ':'])
        .find(|part| !part.is_empty())
        .unwrap_or("fit")
        .to_owned()
}

fn to_json(chosen: &Chosen, hash: &str) -> serde_json::Value {
    json!({
        "name": chosen.fit.name,
        "hash": hash,
        "epochs": chosen.detail.epochs,
        "context": chosen.detail.context,
        "sharing": chosen.detail.sharing,
        "lines": chosen.fit.lines(),
        "pages": chosen.fit.pages(),
        "fits_tried": chosen.tried,
        "fits_too_long": chosen.too_long,
        "met": chosen.figures.iter().all(|figure| figure.met),
        "figures": chosen.figures,
    })
}

fn to_text(chosen: &Chosen, hash: &str, estimator: &Estimator, args: &FitArgs) -> String {
    let mut text = format!(
        "fit {}, hash {hash}, in {}\n{} page accesses on {} pages as {} lines: {} epochs, contexts \
         of up to {}, sharing {}; fit {} of those tried\n\n",
        chosen.fit.name,
        args.output.display(),
        estimator.pages(),
        estimator.footprint(),
        chosen.fit.lines(),
        chosen.detail.epochs,
        chosen.detail.context,
        if chosen.detail.sharing {
            "told apart"
        } else {
            "not told apart"
        },
        chosen.tried,
    );
    text.push_str(&format!(
        "replayed on device auto; the fit from {} seeds, then from as many others\n\
         {:<8} {:<10} {:>8} {:>8} {:>8}  {:<17} {}\n",
        args.seeds, "system", "figure", "trace", "fit", "others", "range of others", "within"
    ));
    for figure in chosen.figures.iter().filter(|figure| shows(figure)) {
        text.push_str(&line(figure));
    }
    let missed = chosen.figures.iter().filter(|figure| !figure.met).count();
    text.push_str(&match missed {
        0 => "\nall figures are within their tolerances\n".to_owned(),
        n => format!(
            "\n{n} of {} figures are not within their tolerances; {}\n",
            chosen.figures.len(),
            match chosen.too_long {
                0 => "no finer fit did better".to_owned(),
                n =>
                    format!("{n} finer fits were not tried, with a line for two accesses and more"),
            }
        ),
    });
    text
}

/// Whether there is anything to see.
fn shows(figure: &Figure) -> bool {
    figure.trace > 0.0 || figure.check_max > 0.0 || !figure.met
}

fn line(figure: &Figure) -> String {
    let range = format!("{:.4} to {:.4}", figure.check_min, figure.check_max);
    format!(
        "{:<8} {:<10} {:>8.4} {:>8.4} {:>8.4}  {range:<17} {:.4} {}\n",
        figure.system,
        figure.figure,
        figure.trace,
        figure.fit,
        figure.check,
        figure.tolerance,
        if figure.met { "yes" } else { "NO" },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fits_are_named_like_their_traces() {
        for (trace, wanted) in [
            ("/data/mail.fiu.xz", "mail"),
            ("profile:web,scale=0.1", "web"),
            ("profile:/some/where/own.toml", "own"),
            ("demo:maildir", "demo"),
            (".hidden", "hidden"),
        ] {
            assert_eq!(stem(Path::new(trace)), wanted);
        }
    }
}
