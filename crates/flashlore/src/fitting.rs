//! The coarsest fit that behaves like its trace when both are replayed.
//!
//! A fit has a detail: how many epochs, how long a context, whether sharing is told apart. Fits are
//! tried from the coarsest on, each generated from several seeds and replayed. The first whose mean
//! over the seeds is within the tolerance is taken, else the one that misses least. It is then
//! replayed from seeds that had no part in the choice.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use flashlore_sim::results::RunResult;
use flashlore_synth::fit::{Detail, Estimator};
use flashlore_synth::{Fit, Source, SynthOptions};
use flashlore_trace::WorkloadOptions;
use serde::Serialize;

use crate::error::CliError;
use crate::input::Input;
use crate::plan::Plan;
use crate::runs::{Job, Recording, in_parallel, run_all};

/// Program causes may differ by so many programs a page that the host writes.
const CAUSES: f64 = 0.02;

/// Amplifications that differ by less than this do not differ: a program in a thousand host writes.
const LEAST: f64 = 0.001;

/// Steps to a doubling by which gaps are told apart. Finer ones changed no result on the captures.
const STEPS: u32 = 64;

/// A fit of more lines than one for so many page accesses would be a copy of the trace.
const MOST_LINES: u64 = 2;

/// A fit that misses by more than so many times what is allowed from the first seeds is not taken
/// for good by more of them.
const HOPE: f64 = 2.0;

/// The first seeds.
const FEW: u64 = 2;

/// What is replayed on, and how well the fit shall do.
pub struct Target<'a> {
    /// Systems and device.
    pub plan: &'a Plan,
    /// Seeds from which each fit is generated; as many others check it.
    pub seeds: u64,
    /// How far the amplification by collection, less 1, may be from the trace's, as a share of it.
    pub tolerance: f64,
    /// Runs at a time.
    pub threads: NonZeroUsize,
}

/// A figure of a system, of the trace and of the fit.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    /// The system.
    pub system: String,
    /// `waf_gc-1`, or a program cause over the pages that the host writes.
    pub figure: &'static str,
    /// On the trace.
    pub trace: f64,
    /// On the fit, from the seeds that chose it: their mean.
    pub fit: f64,
    /// From other seeds: the mean, the least and the greatest.
    pub check: f64,
    /// The least of them.
    pub check_min: f64,
    /// The greatest of them.
    pub check_max: f64,
    /// How far `fit` may be from `trace`.
    pub tolerance: f64,
    /// Whether it is.
    pub met: bool,
}

/// The fit that was taken.
pub struct Chosen {
    /// The fit.
    pub fit: Fit,
    /// How detailed it is.
    pub detail: Detail,
    /// Figures of every system.
    pub figures: Vec<Figure>,
    /// Fits that were tried.
    pub tried: usize,
}

/// What one run shows.
type Shown = Vec<(String, &'static str, f64)>;

/// Searches the fit of a trace, all of which `estimator` followed and `paths` name.
///
/// # Errors
/// A run that cannot begin or go on.
pub fn search(
    estimator: &Estimator,
    names: (&str, &str),
    paths: &[PathBuf],
    options: &WorkloadOptions,
    target: &Target<'_>,
) -> Result<Chosen, CliError> {
    let (name, source) = names;
    let trace = mean(&replays(&[Input::load(paths, options)?], target)?);
    let mut best: Option<(f64, Detail, Fit, Shown)> = None;
    let mut tried = 0;
    for detail in details() {
        let fit = estimator.fit(name, source, detail);
        if best.is_some() && fit.lines() as u64 > estimator.pages() / MOST_LINES {
            continue;
        }
        let look = |seeds| {
            let inputs = made(&fit, 1, seeds, options, target)?;
            let shown = mean(&replays(&inputs, target)?);
            let miss = worst(&trace, &shown, target.tolerance);
            Ok::<_, CliError>((miss, shown))
        };
        // Few seeds tell what misses by far.
        let (mut miss, mut shown) = look(target.seeds.min(FEW))?;
        if miss <= HOPE && target.seeds > FEW {
            (miss, shown) = look(target.seeds)?;
        }
        tried += 1;
        if best.as_ref().is_none_or(|best| miss < best.0) {
            best = Some((miss, detail, fit, shown));
        }
        if miss <= 1.0 {
            break;
        }
    }
    let (_, detail, fit, shown) = best.expect("a fit was tried");
    let others = made(&fit, 1 + target.seeds, target.seeds, options, target)?;
    let others = replays(&others, target)?;
    Ok(Chosen {
        figures: figures(&trace, &shown, &others, target.tolerance),
        fit,
        detail,
        tried,
    })
}

/// From the coarsest, which has the fewest lines, to the finest.
fn details() -> impl Iterator<Item = Detail> {
    let contexts = [1, 8].into_iter();
    contexts.flat_map(|context| {
        [64, 128, 256, 512, 1024]
            .into_iter()
            .flat_map(move |epochs| {
                [false, true].into_iter().map(move |sharing| Detail {
                    epochs,
                    steps: STEPS,
                    context,
                    sharing,
                })
            })
    })
}

/// Workloads of a fit, of as many seeds from `first` on.
fn made(
    fit: &Fit,
    first: u64,
    seeds: u64,
    options: &WorkloadOptions,
    target: &Target<'_>,
) -> Result<Vec<Input>, CliError> {
    let seeds: Vec<u64> = (first..first + seeds).collect();
    let options = WorkloadOptions {
        devices: Vec::new(),
        ..options.clone()
    };
    in_parallel(&seeds, target.threads, |&seed| {
        let of_seed = SynthOptions {
            seed,
            ..SynthOptions::default()
        };
        Input::made(&Source::of_fit(fit.clone(), of_seed), &options)
    })
}

/// What every input shows on all systems.
fn replays(inputs: &[Input], target: &Target<'_>) -> Result<Vec<Shown>, CliError> {
    let mut jobs = Vec::new();
    for input in inputs {
        for config in target.plan.configurations(input.summary())? {
            jobs.push(Job { input, config });
        }
    }
    let outputs = run_all(&jobs, target.threads, &Recording::default())?;
    let systems = jobs.len() / inputs.len();
    let results: Vec<RunResult> = outputs.into_iter().map(|output| output.result).collect();
    Ok(results
        .chunks(systems)
        .map(|runs| runs.iter().flat_map(shown).collect())
        .collect())
}

/// The amplification and every program cause that a run knows.
fn shown(run: &RunResult) -> Shown {
    let programs = &run.programs;
    let pages = run.host.write_pages.max(1) as f64;
    let causes = [
        ("host", Some(programs.host)),
        ("unique", programs.unique),
        ("duplicate", programs.duplicate),
        ("reborn", programs.reborn),
        ("gc", Some(programs.gc)),
        ("wear", Some(programs.wear)),
        ("map", Some(programs.map)),
        ("padding", Some(programs.padding)),
    ];
    let share = |(cause, count): (&'static str, Option<u64>)| {
        Some((run.system.clone(), cause, count? as f64 / pages))
    };
    let amplification = run.waf_gc.map_or(0.0, |waf| waf - 1.0);
    let first = (run.system.clone(), AMPLIFICATION, amplification);
    std::iter::once(first)
        .chain(causes.into_iter().filter_map(share))
        .collect()
}

const AMPLIFICATION: &str = "waf_gc-1";

fn mean(all: &[Shown]) -> Shown {
    let mut mean = all[0].clone();
    for (at, figure) in mean.iter_mut().enumerate() {
        figure.2 = all.iter().map(|shown| shown[at].2).sum::<f64>() / all.len() as f64;
    }
    mean
}

/// How far a figure may be from the trace's.
fn allowed(figure: &str, trace: f64, tolerance: f64) -> f64 {
    match figure {
        AMPLIFICATION => (trace * tolerance).max(LEAST),
        // Collection is what the amplification is made of.
        "gc" => (trace * tolerance).max(CAUSES),
        _ => CAUSES,
    }
}

/// The greatest miss, where 1 is as much as is allowed.
fn worst(trace: &Shown, fit: &Shown, tolerance: f64) -> f64 {
    let misses = trace
        .iter()
        .zip(fit)
        .map(|((_, figure, trace), (_, _, fit))| {
            (fit - trace).abs() / allowed(figure, *trace, tolerance)
        });
    misses.fold(0.0, f64::max)
}

fn figures(trace: &Shown, fit: &Shown, others: &[Shown], tolerance: f64) -> Vec<Figure> {
    let checked = mean(others);
    let figure = |at: usize| {
        let (system, name, value) = &trace[at];
        let of_seeds = || others.iter().map(|shown| shown[at].2);
        let allowed = allowed(name, *value, tolerance);
        Figure {
            system: system.clone(),
            figure: name,
            trace: *value,
            fit: fit[at].2,
            check: checked[at].2,
            check_min: of_seeds().fold(f64::INFINITY, f64::min),
            check_max: of_seeds().fold(0.0, f64::max),
            tolerance: allowed,
            met: (fit[at].2 - value).abs() <= allowed,
        }
    };
    (0..trace.len()).map(figure).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(waf: f64, gc: f64) -> Shown {
        vec![
            ("plain".to_owned(), AMPLIFICATION, waf),
            ("plain".to_owned(), "gc", gc),
        ]
    }

    #[test]
    fn a_miss_of_one_is_as_much_as_is_allowed() {
        let trace = shown(0.5, 0.5);
        let miss = |waf, gc| worst(&trace, &shown(waf, gc), 0.1);
        assert!((miss(0.55, 0.5) - 1.0).abs() < 1e-9);
        assert!((miss(0.5, 0.46) - 2.0).abs() < 1e-9);
        // Of hardly any amplification, a thousandth is as good as none.
        assert!(worst(&shown(0.0, 0.0), &shown(0.0009, 0.0), 0.1) < 1.0);
        assert!(worst(&shown(0.0, 0.0), &shown(0.0011, 0.0), 0.1) > 1.0);
    }

    #[test]
    fn means_and_ranges_are_of_all_seeds() {
        let others = [shown(0.4, 0.4), shown(0.8, 0.5)];
        let figures = figures(&shown(0.5, 0.5), &shown(0.5, 0.5), &others, 0.1);
        let waf = &figures[0];
        assert!((waf.check - 0.6).abs() < 1e-9);
        assert_eq!((waf.check_min, waf.check_max, waf.met), (0.4, 0.8, true));
    }
}
