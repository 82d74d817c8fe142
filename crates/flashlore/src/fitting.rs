//! The coarsest fit that behaves like its trace when both are replayed.
//!
//! A fit has a detail: how many epochs, how long a context, whether sharing is told apart. Fits are
//! tried from the coarsest on, each generated from several seeds and replayed. The first whose mean
//! over the seeds is within the tolerance is taken, else the one that misses least. It is then
//! replayed from seeds that had no part in the choice.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::PathBuf;

use flashlore_sim::results::RunResult;
use flashlore_synth::fit::{Detail, Estimator};
use flashlore_synth::{Fit, ProfileSource, SynthOptions};
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
    pub system: String,
    /// `waf_gc-1`, or a program cause over the pages that the host writes.
    pub figure: &'static str,
    pub trace: f64,
    /// On the fit, from the seeds that chose it: their mean.
    pub fit: f64,
    /// From other seeds: the mean, the least and the greatest.
    pub check: f64,
    pub check_min: f64,
    pub check_max: f64,
    /// How far `fit` may be from `trace`.
    pub tolerance: f64,
    /// Whether it is.
    pub met: bool,
}

pub struct Chosen {
    pub fit: Fit,
    /// How detailed it is.
    pub detail: Detail,
    pub figures: Vec<Figure>,
    pub tried: usize,
    /// Fits that were not, because they have too many lines.
    pub too_long: usize,
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
    let trace = mean(&replays(&[Input::load(paths, options, false)?], target)?);
    let options = WorkloadOptions {
        devices: Vec::new(),
        ..options.clone()
    };
    choose(
        details().map(|detail| (detail, estimator.fit(name, source, detail))),
        &trace,
        (target.seeds, target.tolerance),
        |fit, seeds| of_seeds(fit, seeds, &options, target),
    )
}

/// The first of the fits that is within the tolerance of the trace, or the one that misses least.
/// `look` replays a fit from seeds.
fn choose<E>(
    fits: impl Iterator<Item = (Detail, Fit)>,
    trace: &Shown,
    (seeds, tolerance): (u64, f64),
    look: impl Fn(&Fit, Range<u64>) -> Result<Vec<Shown>, E>,
) -> Result<Chosen, E> {
    let mut best: Option<(f64, Detail, Fit, Vec<Shown>)> = None;
    let (mut tried, mut too_long) = (0, 0);
    for (detail, fit) in fits {
        if best.is_some() && fit.lines() as u64 > fit.pages() / MOST_LINES {
            too_long += 1;
            continue;
        }
        let miss = |shown: &[Shown]| worst(trace, &mean(shown), tolerance);
        // Few seeds tell what misses by far.
        let few = seeds.min(FEW);
        let mut shown = look(&fit, 1..1 + few)?;
        if miss(&shown) <= HOPE {
            shown.extend(look(&fit, 1 + few..1 + seeds)?);
        }
        let missed = miss(&shown);
        tried += 1;
        if best.as_ref().is_none_or(|best| missed < best.0) {
            best = Some((missed, detail, fit, shown));
        }
        if missed <= 1.0 {
            break;
        }
    }
    let (_, detail, fit, mut chose) = best.expect("a fit was tried");
    chose.extend(look(&fit, 1 + chose.len() as u64..1 + seeds)?);
    let others = look(&fit, 1 + seeds..1 + 2 * seeds)?;
    Ok(Chosen {
        figures: figures(trace, &mean(&chose), &others, tolerance),
        fit,
        detail,
        tried,
        too_long,
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

/// What the workloads of a fit show, one of each seed, as many of which are in memory as run at a time.
fn of_seeds(
    fit: &Fit,
    seeds: Range<u64>,
    options: &WorkloadOptions,
    target: &Target<'_>,
) -> Result<Vec<Shown>, CliError> {
    let seeds: Vec<u64> = seeds.collect();
    let mut all = Vec::new();
    for some in seeds.chunks(target.threads.get()) {
        let made = in_parallel(some, target.threads, |&seed| {
            let of_seed = SynthOptions {
                seed,
                ..SynthOptions::default()
            };
            Input::made(&ProfileSource::of_fit(fit.clone(), of_seed), options)
        })?;
        all.extend(replays(&made, target)?);
    }
    Ok(all)
}

/// What every input shows on all systems.
fn replays(inputs: &[Input], target: &Target<'_>) -> Result<Vec<Shown>, CliError> {
    let mut jobs = Vec::new();
    for input in inputs {
        for config in target
            .plan
            .configurations(input.summary(), input.machine_pages())?
        {
            jobs.push(Job {
                input,
                config,
                draw: 0,
            });
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
        let trace = shown(0.5, 0.1);
        let miss = |waf, gc| worst(&trace, &shown(waf, gc), 0.1);
        assert!((miss(0.55, 0.1) - 1.0).abs() < 1e-9);
        assert!((miss(0.5, 0.06) - 2.0).abs() < 1e-9);
        // Of much collection, the tolerance is a share of it too.
        assert!((worst(&shown(0.5, 0.5), &shown(0.5, 0.4), 0.1) - 2.0).abs() < 1e-9);
        // Of hardly any amplification, a thousandth is as good as none.
        assert!(worst(&shown(0.0, 0.0), &shown(0.0009, 0.0), 0.1) < 1.0);
        assert!(worst(&shown(0.0, 0.0), &shown(0.0011, 0.0), 0.1) > 1.0);
    }

    /// Fits of 100 page accesses and so many lines each.
    fn fits(lines: &[u32]) -> Vec<(Detail, Fit)> {
        let fit = |&lines: &u32| {
            let runs = (0..lines).map(|line| {
                let pages = if line == 0 { 101 - lines } else { 1 };
                format!("1 w {pages} back:{}+0 -\n", line + 1)
            });
            let text = format!(
                "name = 'x'\ndescription = 'x'\nsource = 'x'\n[fit]\ncontent = false\nburst = 1.0\n\
                 within = '0ns'\n[sizes]\nreads = [[1, 1.0]]\nwrites = [[1, 1.0]]\n[following]\n\
                 classes = ''\ntable = ''\n[[epoch]]\nduration = '1s'\nruns = \"\"\"\n{}\"\"\"\n",
                runs.collect::<String>()
            );
            let detail = Detail {
                epochs: lines,
                steps: 1,
                context: 1,
                sharing: false,
            };
            (detail, Fit::parse("test", &text).unwrap())
        };
        lines.iter().map(fit).collect()
    }

    /// Chooses among fits of which the one with so many lines shows so much from a seed.
    fn chosen(lines: &[u32], seeds: u64, shows: impl Fn(usize, u64) -> f64) -> Chosen {
        let trace = shown(1.0, 0.0);
        let look = |fit: &Fit, seeds: Range<u64>| -> Result<Vec<Shown>, ()> {
            Ok(seeds
                .map(|seed| shown(shows(fit.lines(), seed), 0.0))
                .collect())
        };
        choose(fits(lines).into_iter(), &trace, (seeds, 0.1), look).unwrap()
    }

    #[test]
    fn the_first_fit_within_the_tolerance_is_taken() {
        let chosen = chosen(&[1, 2, 3], 4, |lines, _| [9.0, 1.15, 1.05, 1.0][lines]);
        assert_eq!((chosen.fit.lines(), chosen.tried), (2, 2));
        assert!(chosen.figures.iter().all(|figure| figure.met));
        let chosen = self::chosen(&[1, 2, 3], 4, |lines, _| {
            f64::min([9.0, 1.15, 1.05, 1.0][lines], 1.09)
        });
        assert_eq!((chosen.fit.lines(), chosen.tried), (1, 1));
    }

    #[test]
    fn else_the_one_that_misses_least_is_taken_and_says_so() {
        let chosen = chosen(&[1, 2, 3], 4, |lines, _| [9.0, 1.5, 1.2, 1.3][lines]);
        assert_eq!((chosen.fit.lines(), chosen.tried), (2, 3));
        assert!(!chosen.figures[0].met);
    }

    #[test]
    fn a_fit_is_shown_from_all_seeds_and_checked_from_others() {
        // What looks hopeless from two seeds may be all there is.
        let chosen = chosen(
            &[1],
            8,
            |_, seed| if seed <= 8 { seed as f64 } else { 100.0 },
        );
        let waf = &chosen.figures[0];
        assert_eq!((waf.fit, waf.check), (4.5, 100.0));
        // Two seeds that are far off end the look at a fit; two that are near do not.
        let chosen = self::chosen(&[1, 2], 8, |lines, seed| match (lines, seed) {
            (1, ..=2) => 1.3,
            (1, _) => 1.0,
            _ => 1.09,
        });
        assert_eq!(chosen.fit.lines(), 2);
        let chosen = self::chosen(&[1, 2], 8, |lines, seed| match (lines, seed) {
            (1, ..=2) => 1.15,
            (1, _) => 1.0,
            _ => 1.09,
        });
        assert_eq!(chosen.fit.lines(), 1);
    }

    #[test]
    fn fits_of_too_many_lines_are_left_out_but_for_the_first() {
        let chosen = chosen(&[60, 51, 50], 2, |lines, _| lines as f64);
        assert_eq!((chosen.tried, chosen.too_long), (2, 1));
        assert_eq!(chosen.fit.lines(), 50);
        assert_eq!(self::chosen(&[60, 51], 2, |_, _| 9.0).tried, 1);
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
