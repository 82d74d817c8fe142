//! What has to run for the checks that are asked for, and the calibration before it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use flashlore_sim::config::RunConfig;
use flashlore_sim::engine::Ticker;
use serde::Serialize;

use crate::definition::{Calibration, Check, Paper, Requests, VALUES, Variant, Workload};
use crate::error::PaperError;
use crate::group::{Found, Group, Trial};
use crate::recipe::Recipe;
use crate::report::Report;

/// The most runs of a calibration.
const MOST_STEPS: usize = 12;

/// What is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct ReproduceOptions {
    /// Only the checks of this figure, with the runs they need.
    pub figure: Option<String>,
    /// The largest factor on a workload, its device and its index, above 0 and at most 1.
    pub scale: f64,
    /// Seed of all random choices.
    pub seed: u64,
    /// Where captures are.
    pub captures: Option<PathBuf>,
}

/// The calibrated setting.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Calibrated {
    /// The setting.
    pub setting: String,
    /// Its value, frozen for all runs.
    pub value: f64,
    /// What it was searched for.
    pub figure: String,
    /// The published value.
    pub target: f64,
    /// What it gives.
    pub reached: f64,
    /// Whether that is within the tolerance of the search.
    pub within_tolerance: bool,
    /// Values tried, with what they gave.
    pub tried: Vec<(f64, f64)>,
}

/// A paper's experiment, cut down to what is asked for.
#[derive(Debug)]
pub struct Experiment<'a> {
    /// The paper.
    pub paper: &'a Paper,
    /// What is asked for.
    pub options: ReproduceOptions,
    checks: Vec<&'a Check>,
    workloads: Vec<Workload>,
    /// Runs whose figures the checks use.
    needed: BTreeSet<String>,
}

impl<'a> Experiment<'a> {
    /// Chooses the checks and the runs.
    ///
    /// # Errors
    /// A figure without checks, a scale out of range.
    pub fn new(paper: &'a Paper, options: ReproduceOptions) -> Result<Self, PaperError> {
        if !(options.scale > 0.0 && options.scale <= 1.0) {
            return Err(PaperError::Scale {
                found: options.scale,
            });
        }
        let asked = |check: &&Check| match &options.figure {
            Some(figure) => check.figures.contains(figure),
            None => true,
        };
        let checks: Vec<&Check> = paper.check.iter().filter(asked).collect();
        if let (true, Some(figure)) = (checks.is_empty(), &options.figure) {
            let known: BTreeSet<&str> = paper
                .check
                .iter()
                .flat_map(|c| &c.figures)
                .map(String::as_str)
                .collect();
            return Err(PaperError::UnknownFigure {
                paper: paper.name.clone(),
                figure: figure.clone(),
                known: known.into_iter().collect::<Vec<_>>().join(", "),
            });
        }
        let mut needed = BTreeSet::new();
        for check in &checks {
            for row in paper.rows(check)? {
                row.measures.iter().for_each(|e| e.needs(&mut needed));
            }
        }
        let mut workloads = paper.workloads();
        for workload in &mut workloads {
            workload.scale = workload.scale.min(options.scale);
        }
        Ok(Experiment {
            paper,
            options,
            checks,
            workloads,
            needed: needed.into_iter().map(|(run, _)| run).collect(),
        })
    }

    /// The checks that are asked for.
    pub fn checks(&self) -> &[&'a Check] {
        &self.checks
    }

    /// Whether variants are run: those there are, with all checks.
    pub fn has_variants(&self) -> bool {
        self.options.figure.is_none() && !self.paper.sensitivity.variant.is_empty()
    }

    /// Searches the setting of the calibration; nothing when no run on a device is needed.
    ///
    /// # Errors
    /// As [`Group::run`].
    pub fn calibrate(&self, ticker: &mut dyn Ticker) -> Result<Option<Calibrated>, PaperError> {
        let simulated = |run: &String| !run.ends_with(&format!("/{VALUES}"));
        if !self.needed.iter().any(simulated) {
            return Ok(None);
        }
        let Some(calibration) = &self.paper.calibration else {
            return Ok(None);
        };
        let (workload, system) = self.run_of(&calibration.run);
        let measure = |value: f64| -> Result<f64, PaperError> {
            let frozen = [setting_text(&calibration.setting, value)];
            let config = self.configure(workload, system, &frozen)?;
            let group = Group {
                workload: workload.clone(),
                seed: self.options.seed,
                captures: self.options.captures.clone(),
                runs: vec![(calibration.run.clone(), config)],
                trials: Vec::new(),
                count: None,
            };
            let found = group.run(ticker)?;
            let reached = found.figures.get(&calibration.run, &calibration.figure);
            Ok(reached.unwrap_or(0.0))
        };
        let tried = search(calibration, measure)?;
        let nearest = |a: &&(f64, f64), b: &&(f64, f64)| {
            let off = |tried: &(f64, f64)| (tried.1 - calibration.target).abs();
            off(a).total_cmp(&off(b))
        };
        let (value, reached) = *tried
            .iter()
            .min_by(nearest)
            .expect("a search tries something");
        Ok(Some(Calibrated {
            setting: calibration.setting.clone(),
            value,
            figure: format!("{}@{}", calibration.figure, calibration.run),
            target: calibration.target,
            reached,
            within_tolerance: (reached - calibration.target).abs() <= calibration.tolerance,
            tried,
        }))
    }

    /// The groups to be run, in any order.
    ///
    /// # Errors
    /// A setting that does not exist or a configuration that contradicts itself.
    pub fn groups(&self, calibrated: Option<&Calibrated>) -> Result<Vec<Group>, PaperError> {
        let mut groups = Vec::new();
        for workload in &self.workloads {
            let mut runs = Vec::new();
            for system in &workload.systems {
                let name = workload.run(system);
                if self.needed.contains(&name) {
                    let frozen = self.frozen(calibrated, None);
                    runs.push((name, self.configure(workload, system, &frozen)?));
                }
            }
            runs.extend(self.variants(workload, calibrated)?);
            let trials = self.trials(workload, calibrated)?;
            let count = Some(workload.run(VALUES)).filter(|name| self.needed.contains(name));
            if !runs.is_empty() || !trials.is_empty() || count.is_some() {
                groups.push(Group {
                    workload: workload.clone(),
                    seed: self.options.seed,
                    captures: self.options.captures.clone(),
                    runs,
                    trials,
                    count,
                });
            }
        }
        Ok(groups)
    }

    fn variants(
        &self,
        workload: &Workload,
        calibrated: Option<&Calibrated>,
    ) -> Result<Vec<(String, RunConfig)>, PaperError> {
        let sensitivity = &self.paper.sensitivity;
        let mut runs = Vec::new();
        if !self.has_variants() || !sensitivity.workloads.contains(&workload.id) {
            return Ok(runs);
        }
        for variant in &sensitivity.variant {
            for system in &sensitivity.systems {
                let mut texts = self.frozen(calibrated, Some(variant));
                texts.extend(variant.set.iter().cloned());
                let name = format!("{}{}", workload.run(system), suffix(variant));
                runs.push((name, self.configure(workload, system, &texts)?));
            }
        }
        Ok(runs)
    }

    /// The searches on a workload that are needed.
    fn trials(
        &self,
        workload: &Workload,
        calibrated: Option<&Calibrated>,
    ) -> Result<Vec<Trial>, PaperError> {
        let mut trials = Vec::new();
        for search in &self.paper.search {
            let (id, system) = search.place();
            if id == workload.id && self.needed.contains(&search.name) {
                trials.push(Trial {
                    search: search.clone(),
                    measure: self.paper.measure(search)?,
                    recipe: self.recipe(workload, system),
                    set: self.frozen(calibrated, None),
                });
            }
        }
        Ok(trials)
    }

    /// The workloads of which something is needed.
    pub(crate) fn used_workloads(&self) -> Vec<Workload> {
        let used = |w: &&Workload| {
            let systems = w.systems.iter().map(String::as_str);
            let searches = self.paper.search.iter();
            let searched = |name: &&str| self.needed.contains(*name);
            let mut names = searches
                .filter(|s| s.place().0 == w.id)
                .map(|s| s.name.as_str());
            systems
                .chain([VALUES])
                .any(|s| self.needed.contains(&w.run(s)))
                || names.any(|name| searched(&name))
        };
        self.workloads.iter().filter(used).cloned().collect()
    }

    /// What the groups found, judged.
    ///
    /// # Errors
    /// None that the definition did not have before.
    pub fn report(
        &self,
        calibrated: Option<Calibrated>,
        found: Vec<Found>,
    ) -> Result<Report, PaperError> {
        Report::new(self, calibrated, found)
    }

    /// The workload and the system of a run's name, which the definition was checked to have.
    fn run_of<'b>(&'b self, run: &'b str) -> (&'b Workload, &'b str) {
        let (id, system) = run.rsplit_once('/').unwrap_or((run, ""));
        let workload = self.workloads.iter().find(|w| w.id == id);
        (workload.expect("a checked definition"), system)
    }

    /// The calibrated setting as text, moved by a variant.
    fn frozen(&self, calibrated: Option<&Calibrated>, variant: Option<&Variant>) -> Vec<String> {
        let offset = variant.map_or(0.0, |variant| variant.offset);
        let text = |c: &Calibrated| setting_text(&c.setting, c.value + offset);
        calibrated.map(text).into_iter().collect()
    }

    /// The configuration of a run.
    fn configure(
        &self,
        workload: &Workload,
        system: &str,
        more: &[String],
    ) -> Result<RunConfig, PaperError> {
        self.recipe(workload, system).config(more)
    }

    fn recipe(&self, workload: &Workload, system: &str) -> Recipe {
        let choice = &self.paper.system[system];
        let scaled = matches!(workload.requests, Requests::Profile(_));
        Recipe {
            name: system.to_owned(),
            preset: choice.preset.clone(),
            device: workload.device.clone(),
            set: choice.set.iter().chain(&workload.set).cloned().collect(),
            scale: if scaled { workload.scale } else { 1.0 },
            seed: self.options.seed,
        }
    }
}

/// What distinguishes the runs of a variant.
pub(crate) fn suffix(variant: &Variant) -> String {
    format!("#{}", variant.name)
}

fn setting_text(setting: &str, value: f64) -> String {
    format!("{setting}={value:.4}")
}

/// Both ends, then interpolation between the nearest values on either side of the target, to four
/// decimals; nothing further when the target is not between the ends.
fn search(
    calibration: &Calibration,
    mut measure: impl FnMut(f64) -> Result<f64, PaperError>,
) -> Result<Vec<(f64, f64)>, PaperError> {
    let target = calibration.target;
    let mut low = (calibration.from, measure(calibration.from)?);
    let mut high = (calibration.to, measure(calibration.to)?);
    let mut tried = vec![low, high];
    while low.1 > target && high.1 < target && tried.len() < MOST_STEPS {
        let share = (low.1 - target) / (low.1 - high.1);
        let at = low.0 + (high.0 - low.0) * share.clamp(0.05, 0.95);
        let at = (at * 1e4).round() / 1e4;
        if at <= low.0 || at >= high.0 {
            break;
        }
        let here = (at, measure(at)?);
        tried.push(here);
        if (here.1 - target).abs() <= calibration.tolerance {
            break;
        }
        if here.1 > target {
            low = here;
        } else {
            high = here;
        }
    }
    Ok(tried)
}

/// Names of the profiles with the hash of each.
pub(crate) fn profiles(found: &[Found]) -> BTreeMap<String, String> {
    found
        .iter()
        .filter_map(|found| found.profile.clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calibration() -> Calibration {
        Calibration {
            run: "web/plain".to_owned(),
            figure: "valid_per_victim".to_owned(),
            target: 33.2,
            tolerance: 0.01,
            setting: "device.space.over_provisioning".to_owned(),
            from: 0.1,
            to: 0.4,
        }
    }

    #[test]
    fn the_search_finds_where_a_falling_curve_meets_the_target() {
        // 40 at 0.1, 20 at 0.4, bent.
        let curve = |x: f64| Ok(60.0 - 46.67 * x.powf(0.4) - 1.42);
        let tried = search(&calibration(), curve).unwrap();
        let (at, reached) = *tried.last().unwrap();
        assert!((reached - 33.2).abs() <= 0.01, "{tried:?}");
        assert!((0.1..0.4).contains(&at) && tried.len() < 9, "{tried:?}");
    }

    #[test]
    fn a_target_beyond_the_ends_is_not_searched() {
        let tried = search(&calibration(), |x| Ok(10.0 - x)).unwrap();
        assert_eq!(tried, [(0.1, 9.9), (0.4, 9.6)]);
    }
}
