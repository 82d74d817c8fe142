//! What has to run for the claims that are asked for, and the calibration before it.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::path::PathBuf;

use flashlore_sim::config::RunConfig;
use flashlore_sim::engine::Ticker;
use serde::Serialize;

use crate::definition::{
    Calibration, Claim, Difference, Paper, Requests, Row, Standing, VALUES, Variant, Workload,
    is_scale,
};
use crate::error::PaperError;
use crate::group::{Found, Group, Trial};
use crate::original::Original;
use crate::recipe::Recipe;
use crate::report::Report;

/// The most runs of a calibration.
const MOST_STEPS: usize = 12;

#[derive(Debug, Clone, PartialEq)]
pub struct ReproduceOptions {
    /// Only the claims of these figures, with the runs they need; none for all.
    pub figures: Vec<String>,
    /// Whether runs are repeated with something changed, if all figures are asked for.
    pub variants: bool,
    /// The largest factor on a workload, its device and its index, above 0 and at most 1.
    pub scale: f64,
    /// The first seed. A calibration and the variants are of it alone.
    pub seed: u64,
    /// How many seeds, one after another from the first.
    pub seeds: NonZeroU32,
    pub captures: Captures,
    /// Where traces are that papers used; those that are there are replayed instead of their profiles.
    pub traces: Option<PathBuf>,
}

#[cfg(test)]
impl ReproduceOptions {
    /// All claims at full size, with the first seed alone.
    pub(crate) fn of_tests(variants: bool) -> Self {
        ReproduceOptions {
            figures: Vec::new(),
            variants,
            scale: 1.0,
            seed: 1,
            seeds: NonZeroU32::MIN,
            captures: Captures::Missing,
            traces: None,
        }
    }
}

/// Where captures are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Captures {
    In(PathBuf),
    /// Nowhere, and what needs one fails.
    Missing,
    /// Nowhere, and numbers that need one are left out.
    LeftOut,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Calibrated {
    pub setting: String,
    /// Its value, frozen for all runs.
    pub value: f64,
    /// What it was searched for.
    pub figure: String,
    pub target: f64,
    /// What it gives.
    pub reached: f64,
    pub within_tolerance: bool,
    /// Values tried, with what they gave.
    pub tried: Vec<(f64, f64)>,
}

/// A paper's experiment, cut down to what is asked for.
#[derive(Debug)]
pub struct Experiment<'a> {
    pub paper: &'a Paper,
    pub options: ReproduceOptions,
    claims: Vec<Chosen<'a>>,
    workloads: Vec<Workload>,
    /// Workloads that are made smaller than they are defined.
    reduced: BTreeSet<String>,
    /// Runs whose figures the claims use.
    needed: BTreeSet<String>,
    left_out: Vec<LeftOut>,
}

/// A claim with those of its numbers that are done.
#[derive(Debug)]
pub struct Chosen<'a> {
    pub claim: &'a Claim,
    /// Its numbers, with whether a run of theirs is smaller than it is defined.
    pub rows: Vec<(Row, bool)>,
}

/// A number that is not done, for want of a capture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    pub claim: String,
    pub name: String,
}

impl<'a> Experiment<'a> {
    /// Chooses the claims and the runs.
    pub fn new(paper: &'a Paper, options: ReproduceOptions) -> Result<Self, PaperError> {
        if !is_scale(options.scale) {
            return Err(PaperError::Scale {
                found: options.scale,
            });
        }
        let known = paper.figures();
        if let Some(figure) = options.figures.iter().find(|f| !known.contains(f.as_str())) {
            return Err(PaperError::UnknownFigure {
                paper: paper.name.clone(),
                figure: figure.clone(),
                known: known.into_iter().collect::<Vec<_>>().join(", "),
            });
        }
        let mut workloads = paper.workloads();
        replace_by_originals(paper, &options, &mut workloads)?;
        let mut reduced = BTreeSet::new();
        for workload in &mut workloads {
            let generated = matches!(workload.requests, Requests::Profile(_));
            if generated && options.scale < workload.scale {
                reduced.insert(workload.id.clone());
            }
            workload.scale = workload.scale.min(options.scale);
        }
        let mut experiment = Experiment {
            paper,
            options,
            claims: Vec::new(),
            workloads,
            reduced,
            needed: BTreeSet::new(),
            left_out: Vec::new(),
        };
        let asked = |claim: &&Claim| {
            let figures = &experiment.options.figures;
            figures.is_empty() || claim.places.iter().any(|place| figures.contains(place))
        };
        for claim in paper.claim.iter().filter(asked).collect::<Vec<_>>() {
            experiment.choose(claim)?;
        }
        Ok(experiment)
    }

    /// Adds a claim, but for numbers that have to be left out.
    fn choose(&mut self, claim: &'a Claim) -> Result<(), PaperError> {
        let mut rows = Vec::new();
        for mut row in self.paper.rows(claim)? {
            let runs = row.runs();
            let original = |run: &String| self.workload_of(run).is_original();
            if matches!(row.standing, Standing::Fitted(_)) && runs.iter().all(original) {
                row.standing = Standing::Judged;
            }
            if runs.iter().any(|run| self.is_left_out(run)) {
                self.left_out.push(LeftOut {
                    claim: claim.id.clone(),
                    name: row.name,
                });
                continue;
            }
            let smaller = |run: &String| self.reduced.contains(&self.workload_of(run).id);
            rows.push((row, runs.iter().any(smaller)));
            self.needed.extend(runs);
        }
        if !rows.is_empty() {
            self.claims.push(Chosen { claim, rows });
        }
        Ok(())
    }

    /// Whether a run replays a capture that is not to be asked for.
    pub(crate) fn is_left_out(&self, run: &str) -> bool {
        self.options.captures == Captures::LeftOut
            && matches!(self.workload_of(run).requests, Requests::Capture(_))
    }

    pub fn claims(&self) -> &[Chosen<'a>] {
        &self.claims
    }

    pub fn seeds(&self) -> impl Iterator<Item = u64> + use<> {
        let first = self.options.seed;
        (0..u64::from(self.options.seeds.get())).map(move |more| first.wrapping_add(more))
    }

    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// What is known of the claims that are done.
    pub fn differences(&self) -> Vec<Difference> {
        let done = |id: &String| self.claims.iter().any(|chosen| chosen.claim.id == *id);
        let told = |d: &&Difference| d.claims.is_empty() || d.claims.iter().any(done);
        self.paper.difference.iter().filter(told).cloned().collect()
    }

    /// Whether variants are run: those there are, with all claims.
    pub fn has_variants(&self) -> bool {
        let all = self.options.variants && self.options.figures.is_empty();
        all && !self.paper.sensitivity.variant.is_empty()
    }

    /// Whether a setting is searched before anything else: that of the paper, if a run on a device is needed.
    pub fn has_calibration(&self) -> bool {
        let simulated = |run: &String| !run.ends_with(&format!("/{VALUES}"));
        self.paper.calibration.is_some() && self.needed.iter().any(simulated)
    }

    /// Searches the setting of the calibration, if there is one.
    pub fn calibrate(&self, ticker: &mut dyn Ticker) -> Result<Option<Calibrated>, PaperError> {
        let Some(calibration) = self
            .paper
            .calibration
            .as_ref()
            .filter(|_| self.has_calibration())
        else {
            return Ok(None);
        };
        let (workload, system) = self.run_of(&calibration.run);
        let measure = |value: f64| -> Result<f64, PaperError> {
            let frozen = [setting_text(&calibration.setting, value)];
            let config = self
                .recipe(workload, system, self.options.seed)
                .config(&frozen)?;
            let group = Group {
                workload: workload.clone(),
                seed: self.options.seed,
                captures: self.captures(),
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

    /// The groups to be run, in any order: each workload once for each seed, variants for the first alone.
    pub fn groups(&self, calibrated: Option<&Calibrated>) -> Result<Vec<Group>, PaperError> {
        let mut groups = Vec::new();
        for seed in self.seeds() {
            for workload in &self.workloads {
                groups.extend(self.group(workload, seed, calibrated)?);
            }
        }
        if let Some(scale) = self.paper.sensitivity.scale {
            for workload in &self.workloads {
                groups.extend(self.small_variants(workload, scale, calibrated)?);
            }
        }
        Ok(groups)
    }

    /// What is needed of a workload, if anything is.
    fn group(
        &self,
        workload: &Workload,
        seed: u64,
        calibrated: Option<&Calibrated>,
    ) -> Result<Option<Group>, PaperError> {
        let mut runs = Vec::new();
        for system in &workload.systems {
            let name = workload.run(system);
            if self.needed.contains(&name) {
                let frozen = self.frozen(calibrated, None);
                runs.push((name, self.recipe(workload, system, seed).config(&frozen)?));
            }
        }
        if seed == self.options.seed && self.paper.sensitivity.scale.is_none() {
            runs.extend(self.variants(workload, calibrated)?);
        }
        let trials = self.trials(workload, seed, calibrated)?;
        let count = Some(workload.run(VALUES)).filter(|name| self.needed.contains(name));
        let empty = runs.is_empty() && trials.is_empty() && count.is_none();
        Ok((!empty).then(|| Group {
            workload: workload.clone(),
            seed,
            captures: self.captures(),
            runs,
            trials,
            count,
        }))
    }

    /// The variants of a workload that is smaller than that of the other runs.
    fn small_variants(
        &self,
        workload: &Workload,
        scale: f64,
        calibrated: Option<&Calibrated>,
    ) -> Result<Option<Group>, PaperError> {
        let mut workload = workload.clone();
        workload.scale = workload.scale.min(scale);
        let runs = self.variants(&workload, calibrated)?;
        Ok((!runs.is_empty()).then(|| Group {
            workload,
            seed: self.options.seed,
            captures: self.captures(),
            runs,
            trials: Vec::new(),
            count: None,
        }))
    }

    fn variants(
        &self,
        workload: &Workload,
        calibrated: Option<&Calibrated>,
    ) -> Result<Vec<(String, RunConfig)>, PaperError> {
        let sensitivity = &self.paper.sensitivity;
        let mut runs = Vec::new();
        let varied = self.has_variants() && sensitivity.workloads.contains(&workload.id);
        if !varied || self.is_left_out(&workload.run("")) {
            return Ok(runs);
        }
        for variant in &sensitivity.variant {
            for system in &sensitivity.systems {
                let mut texts = self.frozen(calibrated, Some(variant));
                texts.extend(variant.set.iter().cloned());
                texts.extend(
                    variant
                        .set_for
                        .get(&workload.id)
                        .into_iter()
                        .flatten()
                        .cloned(),
                );
                let name = format!("{}{}", workload.run(system), suffix(variant));
                let recipe = self.recipe(workload, system, self.options.seed);
                runs.push((name, recipe.config(&texts)?));
            }
        }
        Ok(runs)
    }

    /// The searches on a workload that are needed.
    fn trials(
        &self,
        workload: &Workload,
        seed: u64,
        calibrated: Option<&Calibrated>,
    ) -> Result<Vec<Trial>, PaperError> {
        let mut trials = Vec::new();
        for search in &self.paper.search {
            let (id, system) = search.place();
            if id == workload.id && self.needed.contains(&search.name) {
                trials.push(Trial {
                    search: search.clone(),
                    measure: self.paper.measure(search)?,
                    recipe: self.recipe(workload, system, seed),
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
            let searches = self.paper.search.iter().filter(|s| s.place().0 == w.id);
            let runs = systems.chain([VALUES]).map(|system| w.run(system));
            let mut all = runs.chain(searches.map(|search| search.name.clone()));
            all.any(|run| self.needed.contains(&run))
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
    fn run_of<'b>(&self, run: &'b str) -> (&Workload, &'b str) {
        let (id, system) = run.rsplit_once('/').unwrap_or((run, ""));
        let workload = self.workloads.iter().find(|w| w.id == id);
        (workload.expect("a checked definition"), system)
    }

    /// The workload of a run, which may be one that is searched.
    fn workload_of(&self, run: &str) -> &Workload {
        let searched = self.paper.search.iter().find(|search| search.name == run);
        self.run_of(searched.map_or(run, |search| &search.run)).0
    }

    fn captures(&self) -> Option<PathBuf> {
        match &self.options.captures {
            Captures::In(directory) => Some(directory.clone()),
            Captures::Missing | Captures::LeftOut => None,
        }
    }

    /// The calibrated setting as text, moved by a variant.
    fn frozen(&self, calibrated: Option<&Calibrated>, variant: Option<&Variant>) -> Vec<String> {
        let offset = variant.map_or(0.0, |variant| variant.offset);
        let text = |c: &Calibrated| setting_text(&c.setting, c.value + offset);
        calibrated.map(text).into_iter().collect()
    }

    fn recipe(&self, workload: &Workload, system: &str, seed: u64) -> Recipe {
        let choice = &self.paper.system[system];
        let scaled = matches!(workload.requests, Requests::Profile(_));
        Recipe {
            name: system.to_owned(),
            preset: choice.preset.clone(),
            device: workload.device.clone(),
            set: choice.set.iter().chain(&workload.set).cloned().collect(),
            scale: if scaled { workload.scale } else { 1.0 },
            seed,
        }
    }
}

/// Puts the traces that the user has in the place of the profiles that stand for them, whole.
fn replace_by_originals(
    paper: &Paper,
    options: &ReproduceOptions,
    workloads: &mut [Workload],
) -> Result<(), PaperError> {
    let Some(directory) = &options.traces else {
        return Ok(());
    };
    if options.scale < 1.0 {
        return Err(PaperError::ScaledOriginals {
            scale: options.scale,
        });
    }
    let originals = Original::all(paper, directory)?;
    for workload in workloads {
        if let Requests::Profile(name) = &workload.requests
            && let Some(original) = originals.get(name)
        {
            workload.requests = Requests::Original(original.clone());
            workload.scale = 1.0;
        }
    }
    Ok(())
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
    fn small_variants_replay_a_smaller_workload_and_leave_the_others_alone() {
        let text = r#"
name = "small"
title = "t"
source = "s"
traces = ["web"]
system.plain = { preset = "plain" }
workload = [{ id = "{profile}", profiles = ["web"], scale = 0.5, device = "ca-ssd-4g", systems = ["plain"] }]
sensitivity = { workloads = ["web"], systems = ["plain"], SCALE column = [], variant = [{ name = "v" }] }
[[claim]]
id = "C1"
places = ["1"]
statement = "c"
source = "s"
kind = "measured"
item = [{ name = "n", measure = "erases@web/plain", published = 5, tolerance = 2 }]
"#;
        let groups = |scale: &str| {
            let paper = Paper::parse("small", &text.replace("SCALE", scale)).unwrap();
            let options = ReproduceOptions {
                seeds: NonZeroU32::new(2).unwrap(),
                ..ReproduceOptions::of_tests(true)
            };
            let experiment = Experiment::new(&paper, options).unwrap();
            let groups = experiment.groups(None).unwrap().into_iter();
            let told = |group: Group| {
                let runs = group.runs.into_iter().map(|(name, _)| name);
                (
                    group.seed,
                    group.workload.scale,
                    runs.collect::<Vec<_>>().join(" "),
                )
            };
            groups.map(told).collect::<Vec<_>>()
        };
        let run = |seed, scale, names: &str| (seed, scale, names.to_owned());
        let alone = [run(1, 0.5, "web/plain"), run(2, 0.5, "web/plain")];
        assert_eq!(
            groups("scale = 0.1,"),
            [&alone[..], &[run(1, 0.1, "web/plain#v")]].concat()
        );
        assert_eq!(
            groups(""),
            [run(1, 0.5, "web/plain web/plain#v"), alone[1].clone()]
        );
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

    #[test]
    fn a_variant_may_set_more_for_one_workload() {
        let text = r#"
name = "small"
title = "t"
source = "s"
traces = []
system.plain = { preset = "plain" }
workload = [{ id = "{profile}", profiles = ["web", "mail"], device = "ca-ssd-4g", systems = ["plain"] }]
[sensitivity]
workloads = ["web", "mail"]
systems = ["plain"]
column = []
[[sensitivity.variant]]
name = "dies"
set = ["device.geometry.channels=2", "device.geometry.blocks_per_plane=1000"]
set_for = { mail = ["device.geometry.blocks_per_plane=2000"] }
[[claim]]
id = "C1"
places = ["1"]
kind = "ours"
statement = "s"
source = "s"
item = [{ name = "n", falling = ["erases@web/plain", "erases@mail/plain"] }]
"#;
        let paper = Paper::parse("small", text).unwrap();
        let experiment = Experiment::new(&paper, ReproduceOptions::of_tests(true)).unwrap();
        let groups = experiment.groups(None).unwrap();
        let blocks = groups
            .iter()
            .flat_map(|group| &group.runs)
            .map(|(name, config)| {
                let geometry = &config.device.geometry;
                (name.as_str(), geometry.channels, geometry.blocks_per_plane)
            });
        let wanted = [
            ("web/plain", 8, Some(2048)),
            ("web/plain#dies", 2, Some(1000)),
            ("mail/plain", 8, Some(2048)),
            ("mail/plain#dies", 2, Some(2000)),
        ];
        assert_eq!(blocks.collect::<Vec<_>>(), wanted);
    }
}
