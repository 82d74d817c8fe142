//! Claims with their verdicts, and everything needed to understand them.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::definition::{Accept, Aspect, ClaimKind, Difference, Row, Standing, Workload};
use crate::error::PaperError;
use crate::evidence::{self, Evidence};
use crate::experiment::{Calibrated, Chosen, Experiment, LeftOut};
use crate::figures::Figures;
use crate::group::Found;
use crate::sensitivity::SensitivityTable;
use crate::verdict::{Judged, Measured, Verdict, accepts};

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
    pub seeds: Vec<u64>,
    pub calibration: Option<Calibrated>,
    /// Hash of the text of each profile.
    pub profiles: BTreeMap<String, String>,
    pub claims: Vec<ClaimReport>,
    /// Figures and tables of the paper without a measurable claim, and why.
    pub without_claim: BTreeMap<String, String>,
    /// Numbers that were not done, for want of captures.
    pub left_out: Vec<LeftOut>,
    /// Where and why results are known to differ from what was published.
    pub differences: Vec<Difference>,
    /// What depends on the fitted and the assumed inputs.
    pub sensitivity: Option<SensitivityTable>,
    /// Of the first seed.
    pub runs: Figures,
    /// Hash of the configuration of every run, its seed left out.
    pub configurations: BTreeMap<String, String>,
    /// What the workloads were made of and the settings of their runs.
    pub workloads: Vec<Workload>,
}

/// One claim.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClaimReport {
    pub id: String,
    /// Figures, tables or sections of the paper.
    pub places: Vec<String>,
    pub kind: ClaimKind,
    pub statement: String,
    pub quote: Option<String>,
    pub source: String,
    /// How the published values were read.
    pub reading: String,
    /// Of each aspect that has numbers.
    pub verdicts: BTreeMap<Aspect, Verdict>,
    pub items: Vec<ItemReport>,
    /// What the experiments that known differences name do with the numbers that are outside.
    pub evidence: Vec<Evidence>,
}

/// One number of a claim.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ItemReport {
    pub name: String,
    pub aspect: Aspect,
    pub standing: Standing,
    pub published: Option<f64>,
    /// What was measured; several for an order, absent where there is none.
    pub measured: Vec<Option<Measured>>,
    /// What is accepted, in words.
    pub accepted: String,
    /// The accepted range, if it is one.
    pub within: Option<(f64, f64)>,
    pub unit: String,
    /// Whether what was measured is accepted; absent if nothing is.
    pub inside: Option<bool>,
    /// Whether the range is meant for larger runs. What must come out whatever the workload is judged all the same.
    pub scaled: bool,
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
        let mut runs: BTreeMap<u64, Figures> = BTreeMap::new();
        let mut configurations = BTreeMap::new();
        for found in found {
            runs.entry(found.seed).or_default().extend(found.figures);
            configurations.extend(found.configurations);
        }
        let seeds: Vec<u64> = experiment.seeds().collect();
        let runs: Vec<Figures> = seeds
            .iter()
            .map(|s| runs.remove(s).unwrap_or_default())
            .collect();
        let scale = experiment.options.scale;
        let claim = |chosen: &Chosen| {
            let evidence = evidence::FoundEvidence::about(experiment, chosen, &runs[0]);
            ClaimReport::of(chosen, &runs, scale, evidence)
        };
        let claims = experiment.claims().iter().map(claim).collect();
        let sensitivity = match experiment.has_variants() {
            true => Some(SensitivityTable::of(experiment, &runs[0])?),
            false => None,
        };
        Ok(Report {
            paper: paper.name.clone(),
            title: paper.title.clone(),
            source: paper.source.clone(),
            version: env!("CARGO_PKG_VERSION"),
            scale,
            figures: experiment.options.figures.clone(),
            seeds,
            calibration,
            profiles,
            claims,
            without_claim: paper.without_claim.clone(),
            left_out: experiment.left_out().to_vec(),
            differences: experiment.differences(),
            sensitivity,
            runs: runs.into_iter().next().unwrap_or_default(),
            configurations,
            workloads: experiment.used_workloads(),
        })
    }

    /// Claims of a kind that have a verdict on something: each once, whatever it has numbers of.
    pub fn claims_of(&self, kind: ClaimKind) -> usize {
        let counted = |claim: &&ClaimReport| claim.kind == kind && !claim.verdicts.is_empty();
        self.claims.iter().filter(counted).count()
    }

    /// Claims with a verdict on an aspect.
    pub fn count(&self, aspect: Aspect, verdict: Verdict) -> usize {
        let has = |claim: &&ClaimReport| claim.verdicts.get(&aspect) == Some(&verdict);
        self.claims.iter().filter(has).count()
    }

    /// Claims of which some number is outside what is accepted.
    pub fn outside(&self) -> usize {
        let outside = |claim: &&ClaimReport| claim.verdicts.values().any(|v| v.is_outside());
        self.claims.iter().filter(outside).count()
    }

    /// How many identities hold, and how many do not.
    pub fn identities(&self) -> (usize, usize) {
        let items = self.claims.iter().flat_map(|claim| &claim.items);
        let of = items.filter(|item| item.aspect == Aspect::Identity);
        let (hold, broken): (Vec<_>, Vec<_>) = of.partition(|item| item.inside == Some(true));
        (hold.len(), broken.len())
    }
}

impl ClaimReport {
    fn of(
        chosen: &Chosen<'_>,
        runs: &[Figures],
        scale: f64,
        evidence: evidence::FoundEvidence,
    ) -> Self {
        let claim = chosen.claim;
        let items: Vec<ItemReport> = chosen
            .rows
            .iter()
            .map(|(row, reduced)| ItemReport::of(row, runs, scale, *reduced))
            .collect();
        let verdict = |aspect: Aspect| {
            let of = items.iter().filter(|item| item.aspect == aspect);
            let numbers: Vec<Judged<'_>> = of.map(ItemReport::judged).collect();
            let explained = evidence.explains(aspect);
            Some((aspect, Verdict::of(claim.kind, &numbers, explained)?))
        };
        ClaimReport {
            id: claim.id.clone(),
            places: claim.places.clone(),
            kind: claim.kind,
            statement: claim.statement.clone(),
            quote: claim.quote.clone(),
            source: claim.source.clone(),
            reading: claim.reading.clone(),
            verdicts: Aspect::JUDGED.into_iter().filter_map(verdict).collect(),
            items,
            evidence: evidence.all,
        }
    }
}

impl ItemReport {
    fn of(row: &Row, runs: &[Figures], scale: f64, reduced: bool) -> Self {
        let figures = row.values(runs, scale, "");
        let accepted = row.accept != Accept::Shown;
        ItemReport {
            name: row.name.clone(),
            aspect: row.aspect,
            standing: row.standing.clone(),
            published: row.published,
            accepted: describe(row.accept),
            within: match row.accept {
                Accept::Within(low, high) => Some((low, high)),
                Accept::Falling(_) | Accept::Shown => None,
            },
            unit: row.unit.clone(),
            inside: accepted.then(|| accepts(row.accept, &figures)),
            scaled: reduced && row.aspect != Aspect::Identity,
            measured: figures.iter().map(|of| Measured::of(of)).collect(),
        }
    }

    fn judged(&self) -> Judged<'_> {
        Judged {
            standing: &self.standing,
            inside: self.inside == Some(true),
            scaled: self.scaled,
        }
    }

    /// What to say of it in a word or three.
    pub fn word(&self) -> &'static str {
        match (self.inside, self.aspect, self.standing.is_judged()) {
            (Some(true), Aspect::Identity, _) => "holds",
            (Some(false), Aspect::Identity, _) => "broken",
            (None, ..) | (_, _, false) => "shown",
            (Some(true), ..) if self.scaled => "in range, scaled",
            (Some(false), ..) if self.scaled => "outside, scaled",
            (Some(true), ..) => "inside",
            (Some(false), ..) => "outside",
        }
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
    fn numbers_are_short() {
        let shown = [0.0, 0.0151, 7.0, 33.2, 75.2711, 47819.0, 1234.5, -3.25].map(short);
        assert_eq!(
            shown,
            ["0", "0.015", "7", "33.2", "75.27", "47819", "1234", "-3.25"]
        );
    }
}
