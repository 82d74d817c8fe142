//! The figures that a run or a count of values gives, by name.

use std::collections::BTreeMap;

use flashlore_sim::results::RunResult;
use serde::Serialize;

/// Names of the figures of a run on a device.
pub const RUN_FIGURES: [&str; 15] = [
    "requests",
    "host_writes",
    "programs",
    "host_programs",
    "gc_programs",
    "unique",
    "duplicate",
    "reborn",
    "erases",
    "valid_per_victim",
    "waf_gc",
    "hit_rate",
    "response_mean_ms",
    "response_std_ms",
    "die_busy",
];

/// Figures by run and name.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Figures(BTreeMap<String, BTreeMap<&'static str, f64>>);

impl Figures {
    /// A figure of a run, if it has a meaning there.
    pub fn get(&self, run: &str, figure: &str) -> Option<f64> {
        self.0.get(run)?.get(figure).copied()
    }

    /// Sets the figures of a run.
    pub fn insert(&mut self, run: &str, figures: impl IntoIterator<Item = (&'static str, f64)>) {
        self.0.insert(run.to_owned(), figures.into_iter().collect());
    }

    /// Adds those of other runs.
    pub fn extend(&mut self, other: Figures) {
        self.0.extend(other.0);
    }
}

/// The figures of a run, in the order of [`RUN_FIGURES`]; those without meaning are left out.
pub fn of_run(run: &RunResult) -> impl Iterator<Item = (&'static str, f64)> {
    let p = &run.programs;
    let count = |n: u64| Some(n as f64);
    let share = |n: Option<u64>| n.map(|n| n as f64);
    let ms = |us: Option<f64>| us.map(|us| us / 1e3);
    let values = [
        count(run.host.requests),
        count(run.host.write_pages),
        count(p.total()),
        count(p.foreground()),
        count(p.gc),
        share(p.unique),
        share(p.duplicate),
        share(p.reborn),
        count(run.flash.block_erases),
        run.gc.mean_valid_per_victim,
        run.waf_gc,
        run.dedup.hit_rate(),
        ms(run.response_us.all.mean),
        ms(run.response_us.all.std),
        run.utilization.die_mean,
    ];
    let pairs = RUN_FIGURES.into_iter().zip(values);
    pairs.filter_map(|(name, value)| Some((name, value?)))
}
