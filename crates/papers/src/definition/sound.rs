//! What makes a definition sound: whatever it names exists, no two runs have one name, and what claims
//! and differences name is there.

use std::collections::BTreeSet;

use super::{Difference, EXPECTED_SCALE, Instead, Paper, Requests, VALUES, is_scale};
use crate::error::PaperError;
use crate::evidence::Shown;
use crate::figures::RUN_FIGURES;
use crate::values::VALUE_FIGURES;

impl Paper {
    pub(super) fn check_definition(&self) -> Result<(), PaperError> {
        let workloads = self.workloads();
        let mut runs = BTreeSet::new();
        for workload in &workloads {
            let place = || format!("workload {}", workload.id);
            if let Some(system) = workload
                .systems
                .iter()
                .find(|s| !self.system.contains_key(*s))
            {
                return Err(self.fault(place(), format!("there is no system {system}")));
            }
            if workload.requests == Requests::Given(String::new()) {
                return Err(self.fault(
                    place(),
                    "expected profiles, captures or requests".to_owned(),
                ));
            }
            if workload.hours.is_some() && !workload.systems.is_empty() {
                let message = "hours are for values alone, and there are systems".to_owned();
                return Err(self.fault(place(), message));
            }
            for run in workload.runs() {
                if !runs.insert(run.clone()) {
                    return Err(self.fault(place(), format!("there are two runs {run}")));
                }
            }
        }
        let mut needed = BTreeSet::new();
        let mut ids = BTreeSet::new();
        for claim in &self.claim {
            if !ids.insert(&claim.id) || claim.places.is_empty() {
                let place = format!("claim {}", claim.id);
                let message = "expected an id of its own, and one place at least".to_owned();
                return Err(self.fault(place, message));
            }
            for row in self.rows(claim)? {
                row.measures.iter().for_each(|e| e.needs(&mut needed));
            }
        }
        self.check_words()?;
        for variant in &self.sensitivity.variant {
            let varied = &self.sensitivity.workloads;
            if let Some(id) = variant.set_for.keys().find(|id| !varied.contains(id)) {
                let place = format!("variant {}", variant.name);
                return Err(self.fault(place, format!("set_for {id}: it is not varied")));
            }
        }
        self.columns()?.iter().for_each(|e| e.needs(&mut needed));
        let calibration = self.calibration.iter();
        needed.extend(calibration.map(|c| (c.run.clone(), c.figure.clone())));
        for search in &self.search {
            let place = || format!("search {}", search.name);
            if !workloads.iter().any(|w| w.id == search.place().0)
                || !self.system.contains_key(search.place().1)
            {
                return Err(self.fault(place(), format!("there is no run {}", search.run)));
            }
            if !runs.insert(search.name.clone()) {
                return Err(self.fault(place(), "there is a run of that name".to_owned()));
            }
            self.measure(search)?.needs(&mut needed);
        }
        for (run, figure) in needed {
            let counted = run.ends_with(&format!("/{VALUES}"));
            let known = match counted {
                true => &VALUE_FIGURES[..],
                false => &RUN_FIGURES[..],
            };
            let place = format!("{figure}@{run}");
            if !runs.contains(&run) {
                return Err(self.fault(place, "there is no such run".to_owned()));
            }
            if !known.contains(&figure.as_str()) {
                let message = format!("expected one of {}", known.join(", "));
                return Err(self.fault(place, message));
            }
        }
        Ok(())
    }

    /// What a quick look and the differences name has to exist.
    fn check_words(&self) -> Result<(), PaperError> {
        for difference in &self.difference {
            let place = || format!("difference {}", difference.title);
            let known = |id: &String| self.claim.iter().any(|claim| claim.id == *id);
            if let Some(id) = difference.claims.iter().find(|id| !known(id)) {
                return Err(self.fault(place(), format!("there is no claim {id}")));
            }
            let mut by = difference.shown_by.iter();
            if let Some(by) = by.find(|by| !self.is_experiment(by, difference)) {
                let message = format!(
                    "shown_by '{by}': expected `variant NAME`, or `item CLAIM/NAME` with instead_of, of those that \
                     there are"
                );
                return Err(self.fault(place(), message));
            }
        }
        let replayed = |name: &String| self.workload.iter().any(|w| w.profiles.contains(name));
        if let Some(name) = self.original.keys().find(|name| !replayed(name)) {
            return Err(self.fault(
                format!("original {name}"),
                "no workload replays it".to_owned(),
            ));
        }
        let claimed = self.figures();
        if let Some(place) = self
            .without_claim
            .keys()
            .find(|place| claimed.contains(place.as_str()))
        {
            let message = "there are claims of it".to_owned();
            return Err(self.fault(format!("without_claim {place}"), message));
        }
        if let Some(scale) = self.sensitivity.scale {
            self.check_scale("sensitivity", scale)?;
        }
        let Some(quick) = &self.quick else {
            return Ok(());
        };
        self.check_scale("quick", quick.scale)?;
        let place = "quick".to_owned();
        match quick
            .figures
            .iter()
            .find(|f| !self.figures().contains(f.as_str()))
        {
            Some(figure) => {
                Err(self.fault(place, format!("no claim belongs to figure '{figure}'")))
            }
            None => Ok(()),
        }
    }

    fn check_scale(&self, place: &str, scale: f64) -> Result<(), PaperError> {
        match is_scale(scale) {
            true => Ok(()),
            false => Err(self.fault(place.to_owned(), format!("scale {scale}: {EXPECTED_SCALE}"))),
        }
    }

    /// Whether `variant NAME` or `item CLAIM/NAME` names something that can show why a claim of a difference is outside.
    fn is_experiment(&self, text: &str, difference: &Difference) -> bool {
        match Shown::parse(text) {
            Some(Shown::Variant(name)) => self.sensitivity.variant.iter().any(|v| v.name == name),
            Some(Shown::Item { claim: id, name }) => {
                let rows = |id: &str| {
                    let of = self.claim.iter().find(|claim| claim.id == id);
                    of.and_then(|claim| self.rows(claim).ok())
                        .unwrap_or_default()
                };
                let is_about = |of: &Instead| {
                    of.by == name
                        && difference.claims.contains(&of.claim)
                        && rows(&of.claim).iter().any(|row| row.name == of.item)
                };
                let instead = rows(id);
                let mut instead = instead.iter().filter_map(|row| row.instead_of.as_ref());
                instead.any(is_about)
            }
            None => false,
        }
    }
}
