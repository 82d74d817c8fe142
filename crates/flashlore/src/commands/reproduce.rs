//! `flashlore reproduce`: a paper's experiments, repeated and judged.

use flashlore_papers::experiment::{Experiment, ReproduceOptions};
use flashlore_papers::{Group, PaperError, Verdict, load};

use crate::cli::ReproduceArgs;
use crate::error::CliError;
use crate::output::print;
use crate::progress::Progress;
use crate::runs::{in_parallel, threads};

/// Calibrates, runs, judges and prints.
pub fn reproduce(args: &ReproduceArgs) -> Result<(), CliError> {
    let paper = load(&args.paper)?;
    let options = ReproduceOptions {
        figure: args.figure.clone(),
        scale: args.scale,
        seed: args.seed,
        captures: args.captures.clone(),
    };
    let experiment = Experiment::new(&paper, options)?;
    let mut calibrating = Progress::phase("calibrating");
    let calibrated = experiment.calibrate(&mut calibrating)?;
    drop(calibrating);
    let groups = experiment.groups(calibrated.as_ref())?;
    // The longest first, so that none is left to one thread at the end.
    let mut groups = groups
        .into_iter()
        .map(|group| Ok((replayed(&group)?, group)))
        .collect::<Result<Vec<_>, PaperError>>()?;
    groups.sort_by_key(|(requests, _)| std::cmp::Reverse(*requests));
    let runs = groups.iter().map(|(_, g)| g.runs.len() + g.trials.len());
    let requests = groups.iter().map(|(requests, _)| requests).sum();
    let progress = Progress::requests(requests, runs.sum());
    let found = in_parallel(&groups, threads(args.jobs), |(_, group)| {
        group.run(&mut progress.clone())
    })?;
    drop(progress);
    let report = experiment.report(calibrated, found)?;
    if args.json {
        let json = serde_json::to_string_pretty(&report)
            .map_err(|source| CliError::Output(std::io::Error::other(source)))?;
        print(&format!("{json}\n"))?;
    } else {
        print(&report.to_string())?;
    }
    match report.count(Verdict::Differs) {
        differing @ 1.. if args.strict => Err(CliError::Differs(format!(
            "numbers that differ from what is accepted: {differing}"
        ))),
        _ => Ok(()),
    }
}

/// Requests of all runs of a group.
fn replayed(group: &Group) -> Result<u64, PaperError> {
    Ok(group.requests()? * group.runs.len() as u64)
}
