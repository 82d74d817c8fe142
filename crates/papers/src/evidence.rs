//! Evidence: whether the experiments that a known difference names move the figures that are outside.
//!
//! A cause is shown by a run in which it is away and the figure is nearer to what is accepted. So an experiment counts
//! if it takes one of the outside figures a quarter of the way towards its range at least, or shortens the largest step
//! by which an order is broken as much. All of it is of the first seed, like the changed settings.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::definition::{Accept, Aspect, Claim, Difference, Paper, Row};
use crate::experiment::{Chosen, Experiment, suffix};
use crate::figures::Figures;

/// The least share of the distance to what is accepted.
const PART_OF_THE_WAY: f64 = 0.25;

/// What an experiment does with a figure that is outside.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evidence {
    /// As the difference names it.
    pub by: String,
    pub aspect: Aspect,
    /// The number of the claim.
    pub item: String,
    /// Its figures as they are defined, and those of the experiment.
    pub before: Vec<f64>,
    pub after: Vec<f64>,
    /// Whether they are nearer to what is accepted.
    pub moves: bool,
    /// Whether they are inside.
    pub inside: bool,
}

/// What a known difference names to show its cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown<'a> {
    /// A setting of the sensitivity.
    Variant(&'a str),
    /// A number of a claim that stands in the place of another.
    Item { claim: &'a str, name: &'a str },
}

impl<'a> Shown<'a> {
    /// Reads `variant NAME` or `item CLAIM/NAME`.
    pub fn parse(text: &'a str) -> Option<Self> {
        if let Some(name) = text.strip_prefix("variant ") {
            return Some(Self::Variant(name));
        }
        let (claim, name) = text.strip_prefix("item ")?.split_once('/')?;
        Some(Self::Item { claim, name })
    }
}

/// What is found about the outside numbers of a claim.
#[derive(Debug, Default)]
pub(crate) struct FoundEvidence {
    pub all: Vec<Evidence>,
    /// Whether something that is named was not run, as without the changed settings.
    partly: bool,
}

impl FoundEvidence {
    pub fn about(experiment: &Experiment<'_>, chosen: &Chosen<'_>, runs: &Figures) -> Self {
        let mut found = FoundEvidence::default();
        for by in named(experiment.paper, chosen.claim) {
            let Some(instead) = Substitute::of(experiment, by) else {
                found.partly = true;
                continue;
            };
            for (row, _) in chosen
                .rows
                .iter()
                .filter(|(row, _)| row.standing.is_judged())
            {
                let values = |row: &Row, suffix: &str| {
                    let runs = std::slice::from_ref(runs);
                    let values = row.values(runs, experiment.options.scale, suffix);
                    values.into_iter().flatten().collect::<Vec<f64>>()
                };
                let to = match &instead {
                    Substitute::Suffix(suffix) => Some(values(row, suffix)),
                    Substitute::Rows(rows) => {
                        let of = rows
                            .iter()
                            .find(|other| other.stands_for(chosen.claim, row));
                        of.map(|other| values(other, ""))
                    }
                };
                found
                    .all
                    .extend(to.and_then(|to| compare(by, row, values(row, ""), to)));
            }
        }
        found
    }

    /// Whether something shows why an aspect is outside. What was not run is believed: the definition names it because
    /// it was seen to.
    pub fn explains(&self, aspect: Aspect) -> bool {
        self.partly || self.all.iter().any(|e| e.aspect == aspect && e.moves)
    }
}

/// Where the figures of an experiment are.
enum Substitute<'a> {
    /// Those of the runs whose names end so.
    Suffix(String),
    /// Those of these numbers.
    Rows(Vec<&'a Row>),
}

impl<'a> Substitute<'a> {
    /// Nothing if it was not run.
    fn of(experiment: &'a Experiment<'_>, by: &str) -> Option<Self> {
        match Shown::parse(by)? {
            Shown::Variant(name) => {
                let variants = &experiment.paper.sensitivity.variant;
                let mut of = variants.iter().filter(|_| experiment.has_variants());
                Some(Self::Suffix(suffix(of.find(|v| v.name == name)?)))
            }
            Shown::Item { claim, name } => {
                let of = experiment.claims().iter().filter(|c| c.claim.id == claim);
                let rows = of.flat_map(|chosen| &chosen.rows).map(|(row, _)| row);
                let by = |row: &&Row| row.instead_of.as_ref().is_some_and(|of| of.by == name);
                Some(rows.filter(by).collect::<Vec<_>>())
                    .filter(|rows| !rows.is_empty())
                    .map(Self::Rows)
            }
        }
    }
}

/// Nothing where a figure is absent, or the number is not outside.
fn compare(by: &str, row: &Row, before: Vec<f64>, after: Vec<f64>) -> Option<Evidence> {
    let (far, near) = (off(row.accept, &before)?, off(row.accept, &after)?);
    (far > 0.0).then(|| Evidence {
        by: by.to_owned(),
        aspect: row.aspect,
        item: row.name.clone(),
        before,
        after,
        moves: near <= far * (1.0 - PART_OF_THE_WAY),
        inside: near == 0.0,
    })
}

/// The experiments that are named for a claim, each once.
fn named<'a>(paper: &'a Paper, claim: &Claim) -> impl Iterator<Item = &'a str> {
    let about = |d: &&Difference| d.claims.contains(&claim.id);
    let all = paper.difference.iter().filter(about);
    let all: BTreeSet<&str> = all.flat_map(|d| &d.shown_by).map(String::as_str).collect();
    all.into_iter()
}

/// How far figures are from what is accepted: 0 inside, nothing where one is absent.
fn off(accept: Accept, values: &[f64]) -> Option<f64> {
    if !values.iter().all(|value| value.is_finite()) {
        return None;
    }
    let distances: Vec<f64> = match accept {
        Accept::Within(low, high) => {
            let distance = |value: &f64| (low - value).max(value - high);
            values.iter().map(distance).collect()
        }
        Accept::Falling(slack) => {
            let above = |pair: &[f64]| pair[1] - (pair[0] + slack * pair[0].abs());
            values.windows(2).map(above).collect()
        }
        Accept::Shown => Vec::new(),
    };
    Some(distances.into_iter().fold(0.0, f64::max))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::ReproduceOptions;
    use crate::verdict::Verdict;

    #[test]
    fn distances_are_0_inside() {
        let within = Accept::Within(1.0, 2.0);
        assert_eq!(off(within, &[1.0, 2.0]), Some(0.0));
        assert_eq!(off(within, &[0.5, 3.5]), Some(1.5));
        assert_eq!(off(within, &[f64::NAN]), None);
        assert_eq!(off(Accept::Falling(0.0), &[3.0, 2.0, 2.0]), Some(0.0));
        assert_eq!(off(Accept::Falling(0.0), &[3.0, 3.5, 3.75]), Some(0.5));
        assert_eq!(off(Accept::Falling(0.5), &[2.0, 3.5]), Some(0.5));
        assert_eq!(off(Accept::Shown, &[7.0]), Some(0.0));
    }

    const PAPER: &str = r#"
name = "small"
title = "t"
source = "s"
traces = ["web", "mail"]
system.plain = { preset = "plain" }
workload = [
    { id = "{profile}", profiles = ["web", "mail"], device = "ca-ssd-4g", systems = ["plain"] },
    { id = "other/{profile}", profiles = ["web", "mail"], device = "ca-ssd-4g", systems = ["plain"] },
]
sensitivity = { workloads = ["web"], systems = ["plain"], column = [], variant = [{ name = "v" }, { name = "w" }] }
difference = [{ claims = ["C1"], title = "t", shown_by = [SHOWN], text = "x" }]
[[claim]]
id = "C1"
places = ["1"]
statement = "c"
source = "s"
kind = "measured"
item = [
    { name = "{trace}", measure = "erases@{trace}/plain", published = 5, tolerance = 1 },
    { name = "order", falling = ["erases@web/plain", "erases@mail/plain"] },
]
[[claim]]
id = "C2"
places = ["1"]
statement = "c"
source = "s"
kind = "measured"
unjudged = "u"
item = [
    { name = "{trace}, other", instead_of = "C1/{trace}", measure = "erases@other/{trace}/plain" },
]
"#;

    /// The verdicts on size and order of C1, and what is found: name, number, and whether it moves it.
    fn judged(shown: &str, variants: bool) -> (Verdict, Verdict, Vec<(String, String, bool)>) {
        let paper = Paper::parse("small", &PAPER.replace("SHOWN", shown)).unwrap();
        let experiment = Experiment::new(&paper, ReproduceOptions::of_tests(variants)).unwrap();
        let mut runs = Figures::default();
        let all = [
            ("web/plain", 10.0),
            ("web/plain#v", 9.1),
            ("web/plain#w", 8.9),
            ("mail/plain", 12.0),
            ("other/web/plain", 20.0),
            ("other/mail/plain", 4.5),
        ];
        for (run, value) in all {
            runs.insert(run, [("erases", value)]);
        }
        let group = crate::group::Found {
            seed: 1,
            figures: runs,
            profile: None,
            configurations: Default::default(),
        };
        let report = experiment.report(None, vec![group]).unwrap();
        let claim = &report.claims[0];
        let found = claim.evidence.iter();
        (
            claim.verdicts[&Aspect::Size],
            claim.verdicts[&Aspect::Order],
            found
                .map(|e| (e.by.clone(), e.item.clone(), e.moves))
                .collect(),
        )
    }

    fn of(by: &str, item: &str, moves: bool) -> (String, String, bool) {
        (by.to_owned(), item.to_owned(), moves)
    }

    #[test]
    fn an_experiment_that_moves_nothing_explains_nothing() {
        use Verdict::{CauseUnknown, Differs};
        // web is 4 above its range with nothing changed, 3.1 under v and 2.9 under w; mail is not varied.
        let v = (
            CauseUnknown,
            CauseUnknown,
            vec![of("variant v", "web", false)],
        );
        assert_eq!(judged("\"variant v\"", true), v);
        let w = (Differs, CauseUnknown, vec![of("variant w", "web", true)]);
        assert_eq!(judged("\"variant w\"", true), w);
        // A number in the place of web is further away, one in the place of mail inside.
        let item = "item C2/{trace}, other";
        let found = vec![of(item, "web", false), of(item, "mail", true)];
        assert_eq!(
            judged(&format!("\"{item}\""), true),
            (Differs, CauseUnknown, found)
        );
        assert_eq!(judged("", true), (CauseUnknown, CauseUnknown, Vec::new()));
    }

    #[test]
    fn an_experiment_that_was_not_run_is_believed() {
        use Verdict::Differs;
        assert_eq!(
            judged("\"variant v\"", false),
            (Differs, Differs, Vec::new())
        );
    }
}
