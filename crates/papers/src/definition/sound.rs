//! What makes a definition sound: whatever it names exists, no two runs have one name, and every check can be judged.

use std::collections::BTreeSet;

use super::{EXPECTED_SCALE, Paper, Requests, VALUES, is_scale};
use crate::error::PaperError;
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
            for run in workload.runs() {
                if !runs.insert(run.clone()) {
                    return Err(self.fault(place(), format!("there are two runs {run}")));
                }
            }
        }
        let mut needed = BTreeSet::new();
        for check in &self.check {
            for row in self.rows(check)? {
                row.measures.iter().for_each(|e| e.needs(&mut needed));
            }
        }
        self.check_words()?;
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
            let known = |id: &String| self.check.iter().any(|check| check.id == *id);
            if let Some(id) = difference.checks.iter().find(|id| !known(id)) {
                let place = format!("difference {}", difference.title);
                return Err(self.fault(place, format!("there is no check {id}")));
            }
        }
        let Some(quick) = &self.quick else {
            return Ok(());
        };
        let place = "quick".to_owned();
        if !is_scale(quick.scale) {
            let message = format!("scale {}: {EXPECTED_SCALE}", quick.scale);
            return Err(self.fault(place, message));
        }
        match quick
            .figures
            .iter()
            .find(|f| !self.figures().contains(f.as_str()))
        {
            Some(figure) => {
                Err(self.fault(place, format!("no check belongs to figure '{figure}'")))
            }
            None => Ok(()),
        }
    }
}
