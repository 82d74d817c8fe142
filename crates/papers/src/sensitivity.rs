//! What results depend on: runs repeated with one choice changed that the paper leaves open.
//!
//! Two tables come of them: figures that the definition names, and which claims stay inside what they accept. The
//! second answers whether any single setting satisfies all claims of a paper at once. Both are of the first seed.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::definition::{Aspect, Column, Paper, Row, Variant};
use crate::error::PaperError;
use crate::experiment::{Experiment, suffix};
use crate::expression::Expression;
use crate::figures::Figures;
use crate::verdict::accepts;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SensitivityTable {
    /// The largest factor on the workloads under a changed setting, where it is less than that of the claims. The first
    /// row is of the whole workloads all the same.
    pub scale: Option<f64>,
    /// What is shown: table and head of each column.
    pub columns: Vec<(String, String)>,
    /// What is changed, with the figures. The first row has nothing changed.
    pub rows: Vec<(String, Vec<Option<f64>>)>,
    /// The aspects of claims with judged numbers of runs that are repeated; the other numbers do not count here.
    pub claims: Vec<(String, Aspect)>,
    /// What is changed, with whether these aspects are inside what is accepted. The rows are those above.
    pub inside: Vec<(String, Vec<bool>)>,
}

/// The judged numbers of an aspect of a claim.
type Numbers<'a> = BTreeMap<(&'a str, Aspect), Vec<&'a Row>>;

impl SensitivityTable {
    pub(crate) fn of(experiment: &Experiment<'_>, runs: &Figures) -> Result<Self, PaperError> {
        let paper = experiment.paper;
        let is_done = |e: &Expression| {
            let mut needed = BTreeSet::new();
            e.needs(&mut needed);
            !needed.iter().any(|(run, _)| experiment.is_left_out(run))
        };
        let named = paper.sensitivity.column.iter().zip(paper.columns()?);
        let columns: Vec<(&Column, Expression)> = named.filter(|(_, e)| is_done(e)).collect();
        let scale = experiment.options.scale;
        let figures = |suffix: &str| {
            let value = |(_, e): &(&Column, Expression)| {
                Some(e.value(runs, scale, suffix)).filter(|value| value.is_finite())
            };
            columns.iter().map(value).collect()
        };
        let numbers = varied(experiment);
        let inside = |suffix: &str| {
            let is = |row: &&Row| {
                accepts(
                    row.accept,
                    &row.values(std::slice::from_ref(runs), scale, suffix),
                )
            };
            numbers.values().map(|rows| rows.iter().all(is)).collect()
        };
        let settings = settings(paper);
        Ok(SensitivityTable {
            scale: paper.sensitivity.scale.filter(|of| *of < scale),
            columns: columns
                .iter()
                .map(|(column, _)| (column.table.clone(), column.name.clone()))
                .collect(),
            rows: settings
                .iter()
                .map(|(name, suffix)| (name.clone(), figures(suffix)))
                .collect(),
            claims: numbers
                .keys()
                .map(|(id, aspect)| ((*id).to_owned(), *aspect))
                .collect(),
            inside: settings
                .iter()
                .map(|(name, suffix)| (name.clone(), inside(suffix)))
                .collect(),
        })
    }

    /// The settings under which the most aspects are inside, and so many.
    pub fn best(&self) -> (usize, Vec<&str>) {
        let count = |inside: &Vec<bool>| inside.iter().filter(|inside| **inside).count();
        let most = self.inside.iter().map(|(_, inside)| count(inside)).max();
        let most = most.unwrap_or(0);
        let best = self
            .inside
            .iter()
            .filter(|(_, inside)| count(inside) == most);
        (most, best.map(|(name, _)| name.as_str()).collect())
    }
}

/// Every setting with what its runs have behind their names.
fn settings(paper: &Paper) -> Vec<(String, String)> {
    let unchanged = match paper.calibration {
        Some(_) => "as calibrated",
        None => "as defined",
    };
    let changed = |variant: &Variant| (variant.name.clone(), suffix(variant));
    let variants = paper.sensitivity.variant.iter().map(changed);
    [(unchanged.to_owned(), String::new())]
        .into_iter()
        .chain(variants)
        .collect()
}

/// The aspects of claims with those of their judged numbers that can be had for every variant.
fn varied<'a>(experiment: &'a Experiment<'_>) -> Numbers<'a> {
    let sensitivity = &experiment.paper.sensitivity;
    let is_varied = |run: &String| {
        let (workload, system) = run.rsplit_once('/').unwrap_or((run, ""));
        sensitivity.workloads.iter().any(|id| id == workload)
            && sensitivity.systems.iter().any(|name| name == system)
    };
    let mut numbers = Numbers::new();
    for chosen in experiment.claims() {
        for aspect in Aspect::JUDGED {
            let of = chosen.rows.iter().map(|(row, _)| row);
            let rows: Vec<&Row> = of
                .filter(|row| row.aspect == aspect && row.standing.is_judged())
                .filter(|row| row.runs().iter().all(is_varied))
                .collect();
            if rows.iter().any(|row| !row.runs().is_empty()) {
                numbers.insert((chosen.claim.id.as_str(), aspect), rows);
            }
        }
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_settings_are_those_with_the_most_inside() {
        let inside = |name: &str, of: [bool; 2]| (name.to_owned(), of.to_vec());
        let found = SensitivityTable {
            scale: None,
            columns: Vec::new(),
            rows: Vec::new(),
            claims: vec![("C1".to_owned(), Aspect::Size); 2],
            inside: vec![
                inside("as defined", [true, false]),
                inside("one die", [false, false]),
                inside("no buffer", [false, true]),
            ],
        };
        assert_eq!(found.best(), (1, vec!["as defined", "no buffer"]));
    }
}
