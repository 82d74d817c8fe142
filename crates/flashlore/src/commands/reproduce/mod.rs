//! `flashlore reproduce`: the experiments of papers, repeated and judged.

mod pool;

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::path::Path;

use flashlore_papers::experiment::{Captures, Experiment, ReproduceOptions};
use flashlore_papers::original::Original;
use flashlore_papers::{PAPERS, Paper, PaperError, Report, load, table};
use flashlore_trace::Existing;
use serde_json::json;

use super::page;
use crate::cli::ReproduceArgs;
use crate::error::CliError;
use crate::output::{print, print_json};
use crate::python::{Python, as_text};
use crate::runs::threads;

/// How many seeds a whole experiment has.
const SEEDS: NonZeroU32 = NonZeroU32::new(5).unwrap();

/// What stands for all experiments that come with the program.
const ALL: &str = "all";

/// What became of an experiment.
struct Done<'a> {
    paper: &'a Paper,
    report: Result<Report, PaperError>,
}

pub fn reproduce(args: &ReproduceArgs, python: &dyn Python) -> Result<(), CliError> {
    if let Some(page) = &args.report {
        python.demand("reproduce --report")?;
        page::demand_place(page, Existing::from(args.force))?;
        args.captures.as_deref().map(as_text).transpose()?;
    }
    let papers = papers(args)?;
    if let Some(directory) = &args.traces {
        demand_a_trace(&papers, directory)?;
    }
    let experiments = papers
        .iter()
        .map(|paper| Experiment::new(paper, options(args, paper)?))
        .collect::<Result<Vec<_>, PaperError>>()?;
    let reports = pool::run(&experiments, threads(args.jobs));
    let done: Vec<Done> = papers
        .iter()
        .zip(reports)
        .map(|(paper, report)| Done { paper, report })
        .collect();
    if args.paper == ALL {
        finish_all(args, &done, python)
    } else {
        let one = done
            .into_iter()
            .map(|done| done.report)
            .collect::<Result<Vec<_>, _>>()?;
        finish_one(args, &one, python)
    }
}

/// Refuses a directory without any of the traces that the experiments know.
fn demand_a_trace(papers: &[Paper], directory: &Path) -> Result<(), CliError> {
    for paper in papers {
        if !Original::all(paper, directory)?.is_empty() {
            return Ok(());
        }
    }
    let known = papers.iter().flat_map(|paper| paper.original.values());
    let known: BTreeSet<&str> = known.map(String::as_str).collect();
    let known: Vec<&str> = known.into_iter().collect();
    Err(CliError::Usage(format!(
        "{}: there is none of the traces that are known by name; expected one of {}",
        directory.display(),
        known.join(", ")
    )))
}

/// The paper that is asked for, or all of those that have the figure.
fn papers(args: &ReproduceArgs) -> Result<Vec<Paper>, CliError> {
    if args.paper != ALL {
        return Ok(vec![load(&args.paper)?]);
    }
    let all = PAPERS.iter().map(|(name, _)| load(name));
    let all = all.collect::<Result<Vec<_>, PaperError>>()?;
    let Some(figure) = &args.figure else {
        return Ok(all);
    };
    let known: Vec<String> = all
        .iter()
        .map(|paper| {
            let figures: Vec<&str> = paper.figures().into_iter().collect();
            format!("{} of {}", figures.join(", "), paper.name)
        })
        .collect();
    let has = |paper: &Paper| paper.figures().contains(figure.as_str());
    let chosen: Vec<Paper> = all.into_iter().filter(has).collect();
    match chosen.is_empty() {
        true => Err(CliError::Usage(format!(
            "no claim belongs to figure '{figure}'; expected one of {}",
            known.join("; ")
        ))),
        false => Ok(chosen),
    }
}

fn options(args: &ReproduceArgs, paper: &Paper) -> Result<ReproduceOptions, PaperError> {
    let captures = match &args.captures {
        Some(directory) => Captures::In(directory.clone()),
        None if args.paper == ALL => Captures::LeftOut,
        None => Captures::Missing,
    };
    let (scale, figures) = match (args.quick, &paper.quick) {
        (false, _) => (args.scale, args.figure.iter().cloned().collect()),
        (true, Some(quick)) => (quick.scale, quick.figures.clone()),
        (true, None) => {
            return Err(PaperError::NoQuick {
                paper: paper.name.clone(),
            });
        }
    };
    Ok(ReproduceOptions {
        figures,
        variants: !args.quick,
        scale,
        seed: args.seed,
        seeds: args
            .seeds
            .unwrap_or(if args.quick { NonZeroU32::MIN } else { SEEDS }),
        captures,
        traces: args.traces.clone(),
    })
}

fn finish_one(
    args: &ReproduceArgs,
    reports: &[Report],
    python: &dyn Python,
) -> Result<(), CliError> {
    for report in reports {
        match args.json {
            true => print_json(report)?,
            false => print(&report.to_string())?,
        }
    }
    let reports: Vec<&Report> = reports.iter().collect();
    write_page(args, &reports, &[], python)?;
    refuse_differing(args, &reports)
}

/// Prints what there is, even if experiments failed.
fn finish_all(
    args: &ReproduceArgs,
    done: &[Done<'_>],
    python: &dyn Python,
) -> Result<(), CliError> {
    let reports: Vec<&Report> = done.iter().filter_map(|d| d.report.as_ref().ok()).collect();
    let failed = |done: &Done| {
        Some((
            done.paper.name.clone(),
            done.report.as_ref().err()?.to_string(),
        ))
    };
    let failed: Vec<(String, String)> = done.iter().filter_map(failed).collect();
    if args.json {
        print_json(&document(&reports, &failed))?;
    } else {
        for report in &reports {
            print(&format!("{report}\n"))?;
        }
        print(&format!("{}\n", table::summary(&reports)))?;
    }
    write_page(args, &reports, &failed, python)?;
    if failed.is_empty() {
        return refuse_differing(args, &reports);
    }
    let told: Vec<String> = failed
        .iter()
        .map(|(name, why)| format!("{name}: {why}"))
        .collect();
    Err(CliError::Failed(format!(
        "{} of {} experiments failed\n{}",
        failed.len(),
        done.len(),
        told.join("\n")
    )))
}

/// The reports of several experiments, and why others have none.
fn document(reports: &[&Report], failed: &[(String, String)]) -> serde_json::Value {
    let failed: Vec<_> = failed
        .iter()
        .map(|(paper, error)| json!({ "paper": paper, "error": error }))
        .collect();
    json!({ "papers": reports, "failed": failed })
}

fn write_page(
    args: &ReproduceArgs,
    reports: &[&Report],
    failed: &[(String, String)],
    python: &dyn Python,
) -> Result<(), CliError> {
    let Some(output) = &args.report else {
        return Ok(());
    };
    let arguments = json!({
        "document": document(reports, failed),
        "asked": args.paper,
        "output": as_text(output)?,
        "quick": args.quick,
        "force": args.force,
        "captures": args.captures.as_deref().map(as_text).transpose()?,
    });
    python.call("papers", arguments)
}

fn refuse_differing(args: &ReproduceArgs, reports: &[&Report]) -> Result<(), CliError> {
    let broken: usize = reports.iter().map(|r| r.identities().1).sum();
    match reports.iter().map(|r| r.outside()).sum::<usize>() + broken {
        differing @ 1usize.. if args.strict => Err(CliError::Differs(format!(
            "claims with a number outside what is accepted, and broken identities: {differing}"
        ))),
        _ => Ok(()),
    }
}
