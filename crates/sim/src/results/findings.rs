//! What to mind before a number is trusted: the one list that tables, pages and Python tell.
//!
//! Findings follow from records alone ([`findings`]), so that they can be had of every results file. Each has a stable
//! name, a sentence, the numbers behind it and the metrics it concerns. A metric that a *doubtful* finding names is
//! shown and not judged: no system is said to be the best by it ([`Findings::doubts`]).

mod runs;
mod seeds;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::interval::{group_by_configuration, workload_key};
use super::record::RunResult;

/// What is found. The names stand in results and stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingId {
    /// An open loop sends more than the device can do.
    Saturated,
    /// An open loop sends all requests at one instant.
    ArrivesAtOnce,
    /// A closed loop ignores the trace's times.
    ClosedLoop,
    /// No block was erased.
    NoErase,
    /// The lengths of encoded values were drawn.
    RatioDrawn,
    /// The content of writes was assumed.
    ContentAssumed,
    /// Percentiles of few requests.
    FewRequests,
    /// Seeds change nothing.
    SeedsChangeNothing,
    /// A difference that may be chance.
    WithinIntervals,
    /// Two systems did the same.
    SameAs,
    /// Malformed records were left out.
    RecordsSkipped,
    /// Times of the trace ran backwards.
    TimesRaised,
    /// Much of what was written was never programmed.
    LeftInBuffer,
    /// Blocks wore out.
    WornOut,
    /// The devices of systems differ.
    DevicesDiffer,
    /// Some systems answer writes before they are on flash, others do not.
    AnswersEarly,
}

/// Something to mind before a number is trusted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// What it is; the names stand in docs/results.md and stay.
    pub id: FindingId,
    /// The trace.
    pub trace: String,
    /// The systems.
    pub systems: Vec<String>,
    /// The device of each of them.
    pub devices: Vec<String>,
    /// What to know, and what to do about it.
    pub sentence: String,
    /// The numbers behind it.
    pub numbers: BTreeMap<String, f64>,
    /// The metrics it concerns: paths in a record, each with all that lies below it, and `units` for all units
    /// programmed.
    pub metrics: Vec<String>,
    /// Whether the metrics must not be judged by.
    pub doubtful: bool,
}

/// What is found in one run or group, before it is known who else has it.
struct Found {
    id: FindingId,
    sentence: String,
    numbers: BTreeMap<String, f64>,
    metrics: Vec<String>,
    doubtful: bool,
}

impl Found {
    fn new(id: FindingId, sentence: String, metrics: &[&str], doubtful: bool) -> Self {
        Found {
            id,
            sentence,
            numbers: BTreeMap::new(),
            metrics: metrics.iter().map(ToString::to_string).collect(),
            doubtful,
        }
    }

    fn with(mut self, name: &str, value: f64) -> Self {
        self.numbers.insert(name.to_string(), value);
        self
    }

    /// As [`Found::of`], of several runs of one trace; nothing if there is none.
    fn of_all<'a>(self, mut runs: impl Iterator<Item = &'a RunResult>) -> Option<Finding> {
        let mut finding = self.of(runs.next()?);
        for run in runs {
            finding.systems.push(run.system.clone());
            finding.devices.push(run.device.clone());
        }
        Some(finding)
    }

    fn of(self, run: &RunResult) -> Finding {
        Finding {
            id: self.id,
            trace: run.trace.clone(),
            systems: vec![run.system.clone()],
            devices: vec![run.device.clone()],
            sentence: self.sentence,
            numbers: self.numbers,
            metrics: self.metrics,
            doubtful: self.doubtful,
        }
    }
}

/// What is found in runs: for each trace first what concerns single systems, then what concerns several. Of several
/// seeds the first tells. Systems of which the same is to be said share a finding.
pub fn findings(runs: &[RunResult]) -> Vec<Finding> {
    let groups = group_by_configuration(runs);
    let mut all = Vec::new();
    let mut done: Vec<&RunResult> = Vec::new();
    for group in &groups {
        let first = group[0];
        if done
            .iter()
            .any(|seen| workload_key(seen) == workload_key(first))
        {
            continue;
        }
        done.push(first);
        let of_trace: Vec<&Vec<&RunResult>> = groups
            .iter()
            .filter(|other| workload_key(other[0]) == workload_key(first))
            .collect();
        all.extend(of_one_trace(&of_trace));
    }
    all
}

fn of_one_trace(columns: &[&Vec<&RunResult>]) -> Vec<Finding> {
    let mut all: Vec<Finding> = Vec::new();
    for column in columns {
        let single = runs::of_run(column[0]).into_iter();
        for found in single.chain(seeds::of_seeds(column)) {
            let same = |known: &&mut Finding| {
                known.id == found.id
                    && known.sentence == found.sentence
                    && known.metrics == found.metrics
            };
            match all.iter_mut().find(same) {
                Some(known) => {
                    known.systems.push(column[0].system.clone());
                    known.devices.push(column[0].device.clone());
                }
                None => all.push(found.of(column[0])),
            }
        }
    }
    all.extend(seeds::of_pairs(columns));
    all
}

/// Findings as tables and pages look them up.
#[derive(Debug, Clone, Copy)]
pub struct Findings<'a>(pub &'a [Finding]);

impl Findings<'_> {
    /// Whether some finding about this run says that a metric must not be judged by.
    pub fn doubts(self, run: &RunResult, metric: &str) -> bool {
        self.0.iter().any(|finding| {
            let about = finding.systems.iter().zip(&finding.devices);
            finding.doubtful
                && finding.trace == run.trace
                && about
                    .clone()
                    .any(|(s, d)| *s == run.system && *d == run.device)
                && finding.metrics.iter().any(|known| concerns(known, metric))
        })
    }
}

/// Whether a metric is another one or lies below it.
fn concerns(known: &str, metric: &str) -> bool {
    metric
        .strip_prefix(known)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The findings as lines of text.
pub fn findings_text(findings: &[Finding]) -> String {
    let line = |finding: &Finding| {
        let mark = if finding.doubtful { "?" } else { "-" };
        format!(
            "{mark} {}: {}\n",
            finding.systems.join(", "),
            finding.sentence
        )
    };
    findings.iter().map(line).collect()
}
