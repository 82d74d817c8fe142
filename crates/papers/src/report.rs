//! Checks with their verdicts, and everything needed to understand them.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::definition::{Accept, Column, Difference, FigureKind, Row, Variant, Workload};
use crate::error::PaperError;
use crate::experiment::{Calibrated, Chosen, Experiment, LeftOut, suffix};
use crate::expression::Expression;
use crate::figures::Figures;
use crate::group::Found;

/// What became of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The figure is in the accepted range.
    Holds,
    /// The figure is in the accepted range, and an input was chosen so that it is.
    Fitted,
    /// It is not in the accepted range, or there is none.
    Differs,
    /// It is in the accepted range, which is meant for larger runs than those it comes from.
    ScaledInside,
    /// It is not in the accepted range, which is meant for larger runs than those it comes from.
    ScaledOutside,
    /// The paper contradicts itself; the figure is shown.
    Contradictory,
    /// It depends on what is not published; the figure is shown.
    NotReproducible,
}

impl Verdict {
    /// All of them, as a summary has them.
    pub const ALL: [Self; 7] = [
        Self::Holds,
        Self::Fitted,
        Self::Differs,
        Self::ScaledInside,
        Self::ScaledOutside,
        Self::Contradictory,
        Self::NotReproducible,
    ];

    /// The verdict on figures of a kind that are accepted or not. Of `reduced` runs, smaller ones than those that
    /// the accepted range is meant for, only what must come out whatever the workload is judged.
    pub fn of(kind: FigureKind, accepted: bool, reduced: bool) -> Self {
        match (kind, accepted) {
            (FigureKind::Contradictory, _) => Self::Contradictory,
            (FigureKind::NotReproducible, _) => Self::NotReproducible,
            (FigureKind::Exact, true) => Self::Holds,
            (FigureKind::Exact, false) => Self::Differs,
            (FigureKind::Shape | FigureKind::Fitted, true) if reduced => Self::ScaledInside,
            (FigureKind::Shape | FigureKind::Fitted, false) if reduced => Self::ScaledOutside,
            (FigureKind::Shape, true) => Self::Holds,
            (FigureKind::Fitted, true) => Self::Fitted,
            (FigureKind::Shape | FigureKind::Fitted, false) => Self::Differs,
        }
    }

    /// Whether it tells of runs that are too small to be judged.
    pub fn is_scaled(self) -> bool {
        matches!(self, Self::ScaledInside | Self::ScaledOutside)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Fitted => "fitted",
            Self::Differs => "differs",
            Self::ScaledInside => "in range, scaled",
            Self::ScaledOutside => "out of range, scaled",
            Self::Contradictory => "contradictory",
            Self::NotReproducible => "not reproducible",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    pub paper: String,
    pub title: String,
    pub source: String,
    pub version: &'static str,
    /// The largest factor on a workload, its device and its index.
    pub scale: f64,
    /// The figures that were asked for; none for all.
    pub figures: Vec<String>,
    pub seed: u64,
    pub calibration: Option<Calibrated>,
    /// Hash of the text of each profile.
    pub profiles: BTreeMap<String, String>,
    pub checks: Vec<CheckReport>,
    /// Numbers that were not done, for want of captures.
    pub left_out: Vec<LeftOut>,
    /// Where and why results are known to differ from what was published.
    pub differences: Vec<Difference>,
    /// What depends on the fitted and the assumed inputs.
    pub sensitivity: Option<Sensitivity>,
    pub runs: Figures,
    /// Hash of the configuration of every run, its seed left out.
    pub configurations: BTreeMap<String, String>,
    /// What the workloads were made of and the settings of their runs.
    pub workloads: Vec<Workload>,
}

/// One claim.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CheckReport {
    pub id: String,
    /// Figures, tables or sections of the paper.
    pub figures: Vec<String>,
    pub claim: String,
    pub source: String,
    pub items: Vec<ItemReport>,
}

/// One number of a claim.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ItemReport {
    pub name: String,
    pub kind: FigureKind,
    pub reason: Option<String>,
    pub published: Option<f64>,
    /// What was measured; several for an order, absent where there is none.
    pub measured: Vec<Option<f64>>,
    /// What is accepted, in words.
    pub accepted: String,
    /// The accepted range, if it is one.
    pub within: Option<(f64, f64)>,
    pub unit: String,
    pub verdict: Verdict,
}

/// Figures with something changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sensitivity {
    /// What is shown: table and head of each column.
    pub columns: Vec<(String, String)>,
    /// What is changed, with the figures.
    pub rows: Vec<(String, Vec<Option<f64>>)>,
}

impl Report {
    pub(crate) fn new(
        experiment: &Experiment<'_>,
        calibration: Option<Calibrated>,
        found: Vec<Found>,
    ) -> Result<Self, PaperError> {
        let paper = experiment.paper;
        let profiles = found.iter().filter_map(|found| found.profile.clone());
        let profiles = profiles.collect();
        let mut runs = Figures::default();
        let mut configurations = BTreeMap::new();
        for found in found {
            runs.extend(found.figures);
            configurations.extend(found.configurations);
        }
        let scale = experiment.options.scale;
        let check = |chosen: &Chosen| CheckReport {
            id: chosen.check.id.clone(),
            figures: chosen.check.figures.clone(),
            claim: chosen.check.claim.clone(),
            source: chosen.check.source.clone(),
            items: chosen
                .rows
                .iter()
                .map(|(row, reduced)| ItemReport::of(row, &runs, scale, *reduced))
                .collect(),
        };
        let checks = experiment.checks().iter().map(check).collect();
        let sensitivity = match experiment.has_variants() {
            true => Some(Sensitivity::of(experiment, &runs)?),
            false => None,
        };
        Ok(Report {
            paper: paper.name.clone(),
            title: paper.title.clone(),
            source: paper.source.clone(),
            version: env!("CARGO_PKG_VERSION"),
            scale,
            figures: experiment.options.figures.clone(),
            seed: experiment.options.seed,
            calibration,
            profiles,
            checks,
            left_out: experiment.left_out().to_vec(),
            differences: experiment.differences(),
            sensitivity,
            runs,
            configurations,
            workloads: experiment.used_workloads(),
        })
    }

    /// How many numbers became of each verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        let items = self.checks.iter().flat_map(|check| &check.items);
        items.filter(|item| item.verdict == verdict).count()
    }
}

impl ItemReport {
    fn of(row: &Row, runs: &Figures, scale: f64, reduced: bool) -> Self {
        let measured: Vec<f64> = row
            .measures
            .iter()
            .map(|e| e.value(runs, scale, ""))
            .collect();
        ItemReport {
            name: row.name.clone(),
            kind: row.kind,
            reason: row.reason.clone(),
            published: row.published,
            accepted: describe(row.accept),
            within: match row.accept {
                Accept::Within(low, high) => Some((low, high)),
                Accept::Falling(_) | Accept::Shown => None,
            },
            unit: row.unit.clone(),
            verdict: Verdict::of(row.kind, accepts(row.accept, &measured), reduced),
            measured: measured.into_iter().map(finite).collect(),
        }
    }
}

impl Sensitivity {
    fn of(experiment: &Experiment<'_>, runs: &Figures) -> Result<Self, PaperError> {
        let paper = experiment.paper;
        let is_done = |e: &Expression| {
            let mut needed = BTreeSet::new();
            e.needs(&mut needed);
            !needed.iter().any(|(run, _)| experiment.is_left_out(run))
        };
        let named = paper.sensitivity.column.iter().zip(paper.columns()?);
        let columns: Vec<(&Column, Expression)> = named.filter(|(_, e)| is_done(e)).collect();
        let scale = experiment.options.scale;
        let row = |name: &str, suffix: &str| {
            let value = |(_, e): &(&Column, Expression)| finite(e.value(runs, scale, suffix));
            (name.to_owned(), columns.iter().map(value).collect())
        };
        let changed = |variant: &Variant| row(&variant.name, &suffix(variant));
        let unchanged = match paper.calibration {
            Some(_) => "as calibrated",
            None => "as defined",
        };
        let first = [row(unchanged, "")];
        let variants = paper.sensitivity.variant.iter();
        Ok(Sensitivity {
            rows: first.into_iter().chain(variants.map(changed)).collect(),
            columns: columns
                .iter()
                .map(|(column, _)| (column.table.clone(), column.name.clone()))
                .collect(),
        })
    }
}

fn finite(value: f64) -> Option<f64> {
    Some(value).filter(|value| value.is_finite())
}

fn accepts(accept: Accept, measured: &[f64]) -> bool {
    measured.iter().all(|value| value.is_finite())
        && match accept {
            Accept::Within(low, high) => measured.iter().all(|v| (low..=high).contains(v)),
            Accept::Falling(slack) => measured.is_sorted_by(|a, b| *b <= a + slack * a.abs()),
            Accept::Shown => true,
        }
}

fn describe(accept: Accept) -> String {
    match accept {
        Accept::Within(low, high) => format!("{} to {}", short(low), short(high)),
        Accept::Falling(0.0) => "falling".to_owned(),
        Accept::Falling(slack) => format!("falling, {} % slack", short(100.0 * slack)),
        Accept::Shown => String::new(),
    }
}

/// A number to four digits, without zeros at the end.
pub(crate) fn short(value: f64) -> String {
    let whole = value.abs().max(1.0).log10().floor() as i32 + 1;
    let decimals = (4 - whole).clamp(0, 3) as usize;
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_follow_from_kind_and_range() {
        use FigureKind::{Contradictory, Exact, NotReproducible, Shape};
        let all = [
            (Exact, true, Verdict::Holds),
            (Exact, false, Verdict::Differs),
            (Shape, true, Verdict::Holds),
            (Shape, false, Verdict::Differs),
            (FigureKind::Fitted, true, Verdict::Fitted),
            (FigureKind::Fitted, false, Verdict::Differs),
            (Contradictory, true, Verdict::Contradictory),
            (Contradictory, false, Verdict::Contradictory),
            (NotReproducible, true, Verdict::NotReproducible),
            (NotReproducible, false, Verdict::NotReproducible),
        ];
        for (kind, accepted, verdict) in all {
            assert_eq!(Verdict::of(kind, accepted, false), verdict);
        }
        let reduced = |kind| [true, false].map(|accepted| Verdict::of(kind, accepted, true));
        assert_eq!(reduced(Exact), [Verdict::Holds, Verdict::Differs]);
        for kind in [Shape, FigureKind::Fitted] {
            let scaled = [Verdict::ScaledInside, Verdict::ScaledOutside];
            assert_eq!(reduced(kind), scaled);
        }
        assert_eq!(reduced(NotReproducible), [Verdict::NotReproducible; 2]);
    }

    #[test]
    fn ranges_and_orders() {
        assert!(accepts(Accept::Within(1.0, 2.0), &[2.0]));
        assert!(!accepts(Accept::Within(1.0, 2.0), &[2.001]));
        assert!(!accepts(Accept::Within(1.0, 2.0), &[f64::NAN]));
        assert!(accepts(Accept::Falling(0.0), &[3.0, 2.0, 2.0, 1.0]));
        assert!(!accepts(Accept::Falling(0.0), &[3.0, 2.0, 2.01]));
        assert!(accepts(Accept::Falling(0.01), &[3.0, 2.0, 2.01]));
        assert!(!accepts(Accept::Falling(0.0), &[f64::INFINITY, 2.0]));
        assert!(accepts(Accept::Falling(0.0), &[-1.0, -2.0]));
        assert!(!accepts(Accept::Shown, &[f64::NAN]));
    }

    #[test]
    fn numbers_are_short() {
        let shown = [0.0, 0.0151, 7.0, 33.2, 75.2711, 47819.0, 1234.5, -3.25].map(short);
        assert_eq!(
            shown,
            ["0", "0.015", "7", "33.2", "75.27", "47819", "1234", "-3.25"]
        );
    }
}
