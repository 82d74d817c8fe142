//! What several seeds, and several systems, say about each other's numbers.

use super::{Finding, FindingId, Found};
use crate::config::{Acknowledge, Sampling};
use crate::results::interval::{Estimate, estimate};
use crate::results::record::RunResult;

/// A figure that systems are judged by: its path, its name, and where it is.
type Judged = (&'static str, &'static str, fn(&RunResult) -> Option<f64>);

/// The figures that systems are judged by; less is better.
const JUDGED: [Judged; 9] = [
    ("units", "units programmed", |run| {
        Some(run.programs.total() as f64)
    }),
    ("waf_total", "write amplification", |run| run.waf_total),
    ("waf_gc", "amplification of collection", |run| run.waf_gc),
    ("flash.block_erases", "block erases", |run| {
        Some(run.flash.block_erases as f64)
    }),
    (
        "gc.mean_valid_per_victim",
        "valid units per victim",
        |run| run.gc.mean_valid_per_victim,
    ),
    ("response_us.all.mean", "mean response", |run| {
        run.response_us.all.mean
    }),
    ("response_us.all.p99", "99 % response", |run| {
        run.response_us.all.p99
    }),
    ("response_us.read.mean", "mean read", |run| {
        run.response_us.read.mean
    }),
    ("response_us.write.mean", "mean write", |run| {
        run.response_us.write.mean
    }),
];

/// What the seeds of one configuration say.
pub(super) fn of_seeds(column: &[&RunResult]) -> Option<Found> {
    if column.len() < 2 || !column.iter().all(|run| same(run, column[0])) {
        return None;
    }
    let sentence = format!(
        "{} seeds gave the same figures: nothing in these runs is drawn at random, and ± 0 says nothing about how \
         certain they are.",
        column.len()
    );
    let found = Found::new(FindingId::SeedsChangeNothing, sentence, &["seeds"], false);
    Some(found.with("seeds", column.len() as f64))
}

/// What columns say of each other: changes against the baseline that may be chance, and systems that did the same.
pub(super) fn of_pairs(columns: &[&Vec<&RunResult>]) -> Vec<Finding> {
    let base = super::super::compare::baseline(columns);
    let mut all = Vec::new();
    for (at, column) in columns.iter().enumerate() {
        if at != base {
            all.extend(within(columns[base], column));
        }
        let alike = columns[..at].iter().find(|other| same(other[0], column[0]));
        all.extend(alike.map(|other| same_as(other[0], column[0])));
    }
    let firsts: Vec<&RunResult> = columns.iter().map(|column| column[0]).collect();
    all.extend(devices_differ(&firsts, base));
    all.extend(answers_early(&firsts));
    all
}

/// Systems whose device is another one than the baseline's.
fn devices_differ(runs: &[&RunResult], base: usize) -> Option<Finding> {
    let hardware = |run: &RunResult| {
        let device = &run.configuration.device;
        (
            device.geometry.clone(),
            device.timing.clone(),
            device.space.clone(),
        )
    };
    let own = hardware(runs[base]);
    let others = runs.iter().filter(|run| hardware(run) != own);
    let sentence = format!(
        "The device differs from that of {} in size or timing, so differences are not due to the systems alone.",
        runs[base].system
    );
    let found = Found::new(FindingId::DevicesDiffer, sentence, &[], false);
    found.of_all(others.copied())
}

/// Systems that answer writes before they are on flash, where others do not.
fn answers_early(runs: &[&RunResult]) -> Option<Finding> {
    let early = |run: &&&RunResult| {
        let queue = &run.configuration.system.queue;
        queue.enabled && queue.ack == Acknowledge::Enqueue
    };
    if runs.iter().all(|run| early(&run)) {
        return None;
    }
    let sentence = "Writes are answered when they are in a queue in RAM, those to other systems when they are on flash: \
                    response times say as much about that as about the systems.";
    let found = Found::new(
        FindingId::AnswersEarly,
        sentence.to_string(),
        &["response_us"],
        false,
    );
    found.of_all(runs.iter().filter(early).copied())
}

fn within(base: &[&RunResult], column: &[&RunResult]) -> Option<Finding> {
    let chance = |(_, _, figure): &&Judged| {
        let [base, value] = [base, column].map(|runs| of_all(runs, *figure));
        let (Some(base), Some(value)) = (base, value) else {
            return false;
        };
        let room = base.ci95.zip(value.ci95).map(|(a, b)| a + b);
        let apart = (base.mean - value.mean).abs();
        room.is_some_and(|room| apart > 0.0 && apart <= room)
    };
    let judged: Vec<&Judged> = JUDGED.iter().filter(chance).collect();
    if judged.is_empty() {
        return None;
    }
    let names: Vec<&str> = judged.iter().map(|(_, name, _)| *name).collect();
    let metrics: Vec<&str> = judged.iter().map(|(path, ..)| *path).collect();
    let sentence = format!(
        "The difference from {} in {} is within the 95 % intervals and may be chance.",
        base[0].system,
        names.join(", ")
    );
    let found = Found::new(FindingId::WithinIntervals, sentence, &metrics, true);
    Some(found.with("seeds", column.len() as f64).of(column[0]))
}

/// Mean and interval of a figure that all runs have.
fn of_all(runs: &[&RunResult], figure: fn(&RunResult) -> Option<f64>) -> Option<Estimate> {
    let values: Option<Vec<f64>> = runs.iter().map(|run| figure(run)).collect();
    estimate(&values?)
}

fn same_as(one: &RunResult, other: &RunResult) -> Finding {
    let samples = |run: &RunResult| run.configuration.system.dedup.sampling != Sampling::Off;
    let why = match samples(one) != samples(other) {
        true => {
            " Sampling hashes one page of each request, and here requests are of single pages, so that it hashes \
             them all. If they were longer before they were recorded, --coalesce joins them."
        }
        false => "",
    };
    let sentence = format!("It did exactly what {} did.{why}", one.system);
    let found = Found::new(FindingId::SameAs, sentence, &[], false);
    found.of(other)
}

/// Whether two runs gave the same figures.
fn same(one: &RunResult, other: &RunResult) -> bool {
    (
        &one.host,
        &one.flash,
        &one.programs,
        &one.response_us,
        &one.erases,
    ) == (
        &other.host,
        &other.flash,
        &other.programs,
        &other.response_us,
        &other.erases,
    )
}
