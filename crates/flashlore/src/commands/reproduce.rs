//! `flashlore reproduce`: a paper's experiments, repeated and judged.

use flashlore_papers::experiment::{Experiment, ReproduceOptions};
use flashlore_papers::{Group, Verdict, load};

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
    };
    let experiment = Experiment::new(&paper, options)?;
    let mut calibrating = Progress::phase("calibrating");
    let calibrated = experiment.calibrate(&mut calibrating)?;
    drop(calibrating);
    let mut groups = experiment.groups(calibrated.as_ref())?;
    // The longest first, so that none is left to one thread at the end.
    groups.sort_by_key(|group| std::cmp::Reverse(replayed(group)));
    let runs = groups.iter().map(|g| g.runs.len() + g.trials.len()).sum();
    let progress = Progress::requests(groups.iter().map(replayed).sum(), runs);
    let found = in_parallel(&groups, threads(args.jobs), |group| {
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
fn replayed(group: &Group) -> u64 {
    group.requests * group.runs.len() as u64
}
