//! The runs of one workload: it is made once, in memory, and replayed by each.

use flashlore_sim::config::{RunConfig, config_hash};
use flashlore_sim::engine::{MeasureOptions, RunOptions, Ticker, simulate};
use flashlore_synth::{Profile, Source, SynthOptions, load_profile};
use flashlore_trace::{
    ContentModel, Format, PageSource, ReadOptions, TraceReader, UNIT_BYTES, WorkloadOptions,
};

use crate::definition::{Requests, Workload};
use crate::error::PaperError;
use crate::expression::Expression;
use crate::figures::{Figures, of_run};
use crate::recipe::Recipe;
use crate::search::{SETTING, Search, crossing};
use crate::values;

/// A workload, and what is to be measured on it.
#[derive(Debug, Clone)]
pub struct Group {
    /// The workload.
    pub workload: Workload,
    /// Seed of workload and content.
    pub seed: u64,
    /// Requests of the workload.
    pub requests: u64,
    /// Runs by name.
    pub runs: Vec<(String, RunConfig)>,
    /// Searches.
    pub trials: Vec<Trial>,
    /// The name of the count of values, if they are counted.
    pub count: Option<String>,
}

/// A search on the group's workload.
#[derive(Debug, Clone)]
pub struct Trial {
    /// What is searched.
    pub search: Search,
    /// Its measure.
    pub measure: Expression,
    /// What its runs are made of, but for the value.
    pub recipe: Recipe,
    /// Settings that win over the recipe's.
    pub set: Vec<String>,
}

/// What a group found.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// Figures of its runs.
    pub figures: Figures,
    /// Hash of the configuration of each run on a device.
    pub configurations: Vec<(String, String)>,
    /// The profile's name and hash, if the workload is made from one.
    pub profile: Option<(String, String)>,
}

/// A workload while it is replayed.
struct Replay<'a> {
    made: flashlore_trace::Workload,
    pages: Option<&'a dyn PageSource>,
    ticker: &'a mut dyn Ticker,
    found: Found,
}

impl Group {
    /// So many requests its workload has.
    ///
    /// # Errors
    /// When the profile cannot be used.
    pub fn requests(workload: &Workload) -> Result<u64, PaperError> {
        match &workload.requests {
            Requests::Profile(name) => {
                let (profile, _) = load_profile(name)?;
                Ok(options(workload, 0).scaled(&profile).requests)
            }
            Requests::Given(text) => Ok(text.lines().count() as u64),
        }
    }

    /// Makes the workload and does the runs.
    ///
    /// # Errors
    /// A profile that cannot be used, a run that cannot begin or go on.
    pub fn run(&self, ticker: &mut dyn Ticker) -> Result<Found, PaperError> {
        match &self.workload.requests {
            Requests::Profile(name) => self.run_profile(name, ticker),
            Requests::Given(text) => {
                let read = ReadOptions {
                    format: Some(Format::Spc),
                    ..ReadOptions::default()
                };
                let name = self.workload.id.as_str();
                let reader = TraceReader::from_bytes(name, text.clone().into_bytes(), &read)?;
                let content = WorkloadOptions::new(ContentModel::Distinct);
                let mut replay = Replay {
                    made: flashlore_trace::Workload::from_readers(vec![reader], &content)?,
                    pages: None,
                    ticker,
                    found: Found::default(),
                };
                self.replay(&mut replay)?;
                Ok(replay.found)
            }
        }
    }

    fn run_profile(&self, name: &str, ticker: &mut dyn Ticker) -> Result<Found, PaperError> {
        let options = options(&self.workload, self.seed);
        let source = Source::new(name, options)?;
        let (profile, _) = load_profile(name)?;
        let content = WorkloadOptions::new(self.content(&source, &profile));
        let reader = || vec![source.open()];
        let mut found = Found {
            profile: Some((profile.name.clone(), source.hash.clone())),
            ..Found::default()
        };
        if !self.runs.is_empty() || !self.trials.is_empty() {
            let needs_bytes = self.runs.iter().any(|(_, c)| c.system.needs_bytes());
            let recipes = (needs_bytes && self.workload.zipf.is_none())
                .then(|| source.recipes())
                .flatten();
            let mut replay = Replay {
                made: flashlore_trace::Workload::from_readers(reader(), &content)?,
                pages: recipes.as_ref().map(|recipes| recipes as &dyn PageSource),
                ticker,
                found,
            };
            self.replay(&mut replay)?;
            found = replay.found;
        }
        if let Some(name) = &self.count {
            let counted = values::count(reader(), &content, self.workload.scale)?;
            found.figures.insert(name, counted);
        }
        Ok(found)
    }

    fn replay(&self, replay: &mut Replay<'_>) -> Result<(), PaperError> {
        for (name, config) in &self.runs {
            self.once(name, config, replay)?;
        }
        for trial in &self.trials {
            self.search(trial, replay)?;
        }
        Ok(())
    }

    fn once(
        &self,
        name: &str,
        config: &RunConfig,
        replay: &mut Replay<'_>,
    ) -> Result<(), PaperError> {
        let history = config.system.history.enabled;
        let run = RunOptions {
            measure: MeasureOptions::default(),
            progress: Some(&mut *replay.ticker),
            recovery_check: self.workload.recovery_check.filter(|_| history),
            pages: replay.pages,
        };
        let done = simulate(config, &mut replay.made, run).map_err(|source| PaperError::Run {
            run: name.to_owned(),
            source: Box::new(source),
        })?;
        replay.found.figures.insert(name, of_run(&done));
        let configuration = (name.to_owned(), config_hash(config));
        replay.found.configurations.push(configuration);
        Ok(())
    }

    /// Repeats a run with other values of a setting. What its last run gave stays under the name of the
    /// search, with the value; nothing stays if none was found.
    fn search(&self, trial: &Trial, replay: &mut Replay<'_>) -> Result<(), PaperError> {
        let name = &trial.search.name;
        let reached = crossing(&trial.search, |value| -> Result<f64, PaperError> {
            let mut texts = trial.set.clone();
            texts.push(trial.search.text(value));
            let config = trial.recipe.config(&texts)?;
            replay.found.configurations.retain(|(run, _)| run != name);
            self.once(name, &config, replay)?;
            let figures = &mut replay.found.figures;
            figures.set(name, SETTING, value);
            Ok(trial.measure.value(figures, self.workload.scale, ""))
        })?;
        if reached.is_none() {
            replay.found.figures.remove(name);
            replay.found.configurations.retain(|(run, _)| run != name);
        }
        Ok(())
    }

    fn content(&self, source: &Source, profile: &Profile) -> ContentModel {
        let Some((exponent, per_write)) = self.workload.zipf else {
            return ContentModel::FromTrace;
        };
        let requests = source.options.scaled(profile).writes;
        let mean_pages = profile.requests.write_size.0 as f64 / UNIT_BYTES as f64;
        let writes = requests as f64 * mean_pages;
        ContentModel::Zipf {
            exponent,
            values: (writes * per_write).round().max(1.0) as u32,
            seed: self.seed,
        }
    }
}

/// How the workload's profile is generated.
fn options(workload: &Workload, seed: u64) -> SynthOptions {
    SynthOptions {
        scale: workload.scale,
        requests: None,
        seed,
    }
}
