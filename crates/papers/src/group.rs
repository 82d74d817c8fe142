//! The runs of one workload: it is made once, in memory, and replayed by each.

use std::path::PathBuf;

use flashlore_sim::config::{RunConfig, config_hash};
use flashlore_sim::engine::{MeasureOptions, RunOptions, Ticker, simulate};
use flashlore_synth::{Profile, ProfileSource, SynthOptions, load_profile};
use flashlore_trace::{
    ContentModel, Format, PageSource, ReadOptions, RequestSource, TraceReader, UNIT_BYTES,
    WorkloadOptions,
};

use crate::capture::Capture;
use crate::definition::{Requests, Workload};
use crate::error::PaperError;
use crate::expression::Expression;
use crate::figures::{FACTOR, Figures, of_run};
use crate::original::Original;
use crate::recipe::Recipe;
use crate::search::{SETTING, Search, crossing};
use crate::values;

/// A workload, and what is to be measured on it.
#[derive(Debug, Clone)]
pub struct Group {
    pub workload: Workload,
    /// Seed of workload and content.
    pub seed: u64,
    pub captures: Option<PathBuf>,
    /// Runs by name.
    pub runs: Vec<(String, RunConfig)>,
    pub trials: Vec<Trial>,
    /// The name of the count of values, if they are counted.
    pub count: Option<String>,
}

/// A search on the group's workload.
#[derive(Debug, Clone)]
pub struct Trial {
    pub search: Search,
    pub measure: Expression,
    /// What its runs are made of, but for the value.
    pub recipe: Recipe,
    /// Settings that win over the recipe's.
    pub set: Vec<String>,
}

/// What a group found.
#[derive(Debug, Clone, Default)]
pub struct Found {
    pub seed: u64,
    pub figures: Figures,
    /// Hash of the configuration of each run on a device.
    pub configurations: Vec<(String, String)>,
    /// The profile's name and hash, if the workload is made from one.
    pub profile: Option<(String, String)>,
}

impl Group {
    /// So many requests its workload has.
    pub fn requests(&self) -> Result<u64, PaperError> {
        match &self.workload.requests {
            Requests::Profile(name) => {
                let (profile, _) = load_profile(name)?;
                Ok(options(&self.workload, 0).scaled(&profile).requests)
            }
            Requests::Capture(name) => self.capture(name)?.requests(),
            Requests::Given(text) => Ok(text.lines().count() as u64),
            Requests::Original(original) => Ok(original.extent()?.requests),
        }
    }

    /// Makes the workload and does the runs.
    pub fn run(&self, ticker: &mut dyn Ticker) -> Result<Found, PaperError> {
        match &self.workload.requests {
            Requests::Profile(name) => self.run_profile(name, ticker),
            Requests::Capture(name) => self.run_capture(&self.capture(name)?, ticker),
            Requests::Original(original) => self.run_original(original, ticker),
            Requests::Given(text) => {
                let read = ReadOptions {
                    format: Some(Format::Spc),
                    ..ReadOptions::default()
                };
                let name = self.workload.id.as_str();
                let reader = TraceReader::from_bytes(name, text.clone().into_bytes(), &read)?;
                let mut found = self.nothing();
                let content = WorkloadOptions::new(ContentModel::Distinct);
                self.replay(vec![reader], &content, None, ticker, &mut found)?;
                Ok(found)
            }
        }
    }

    /// What there is before anything was found.
    fn nothing(&self) -> Found {
        Found {
            seed: self.seed,
            ..Found::default()
        }
    }

    fn run_profile(&self, name: &str, ticker: &mut dyn Ticker) -> Result<Found, PaperError> {
        let options = options(&self.workload, self.seed);
        let source = ProfileSource::new(name, options)?;
        let (profile, _) = load_profile(name)?;
        let content = WorkloadOptions::new(self.content(&source, &profile));
        let reader = || vec![source.open()];
        let mut found = Found {
            profile: Some((profile.name.clone(), source.hash.clone())),
            ..self.nothing()
        };
        if !self.runs.is_empty() || !self.trials.is_empty() {
            let recipes = (self.needs_bytes()? && self.workload.zipf.is_none())
                .then(|| source.recipes())
                .flatten();
            let pages = recipes.as_ref().map(|recipes| recipes as &dyn PageSource);
            self.replay(reader(), &content, pages, ticker, &mut found)?;
        }
        self.count(reader(), &content, &mut found)?;
        Ok(found)
    }

    /// Pages of each virtual machine of the profile, if it has several.
    fn machine_pages(&self) -> Result<Option<u32>, PaperError> {
        match &self.workload.requests {
            Requests::Profile(name) => {
                Ok(ProfileSource::new(name, options(&self.workload, self.seed))?.image_pages())
            }
            Requests::Capture(_) | Requests::Given(_) | Requests::Original(_) => Ok(None),
        }
    }

    fn capture(&self, name: &str) -> Result<Capture, PaperError> {
        match &self.captures {
            Some(directory) => Ok(Capture::of(directory, name)),
            None => Err(PaperError::NoCaptures {
                workload: self.workload.id.clone(),
                capture: name.to_owned(),
            }),
        }
    }

    fn run_capture(&self, capture: &Capture, ticker: &mut dyn Ticker) -> Result<Found, PaperError> {
        let pages = self.needs_bytes()?.then(|| capture.pages()).transpose()?;
        let pages = pages.as_ref().map(|pages| pages as &dyn PageSource);
        let content = WorkloadOptions::new(ContentModel::FromTrace);
        let mut found = self.nothing();
        self.replay(vec![capture.open()?], &content, pages, ticker, &mut found)?;
        self.count(vec![capture.open()?], &content, &mut found)?;
        Ok(found)
    }

    fn run_original(
        &self,
        original: &Original,
        ticker: &mut dyn Ticker,
    ) -> Result<Found, PaperError> {
        let extent = original.extent()?;
        let model = match self.workload.zipf {
            Some(zipf) => self.zipf(zipf, extent.page_writes as f64),
            None => extent.content(),
        };
        let content = WorkloadOptions::new(model);
        let mut found = self.nothing();
        if !self.runs.is_empty() || !self.trials.is_empty() {
            self.replay(original.open()?, &content, None, ticker, &mut found)?;
        }
        self.count(original.open()?, &content, &mut found)?;
        Ok(found)
    }

    /// Whether something is so of some run, those of searches included.
    fn any(&self, is_so: impl Fn(&RunConfig) -> bool) -> Result<bool, PaperError> {
        for trial in &self.trials {
            if is_so(&trial.recipe.config(&trial.set)?) {
                return Ok(true);
            }
        }
        Ok(self.runs.iter().any(|(_, config)| is_so(config)))
    }

    fn needs_bytes(&self) -> Result<bool, PaperError> {
        self.any(|config| config.system.needs_bytes())
    }

    fn replay(
        &self,
        readers: Vec<TraceReader>,
        content: &WorkloadOptions,
        pages: Option<&dyn PageSource>,
        ticker: &mut dyn Ticker,
        found: &mut Found,
    ) -> Result<(), PaperError> {
        // A device that is sized from the workload has no room for holes.
        let content = WorkloadOptions {
            // Nor has one for the addresses of a trace that was recorded on a larger device.
            compact: self.workload.is_original()
                || self.any(|c| c.device.auto.is_some() && !c.system.array.is_some())?,
            ..content.clone()
        };
        let mut made = flashlore_trace::Workload::from_readers(readers, &content)?;
        for (name, config) in &self.runs {
            self.once(name, config, &mut made, pages, ticker, found)?;
        }
        for trial in &self.trials {
            self.search(trial, &mut made, pages, ticker, found)?;
        }
        Ok(())
    }

    fn once(
        &self,
        name: &str,
        config: &RunConfig,
        made: &mut flashlore_trace::Workload,
        pages: Option<&dyn PageSource>,
        ticker: &mut dyn Ticker,
        found: &mut Found,
    ) -> Result<(), PaperError> {
        let mut config = config.clone();
        let summary = made.summary();
        let machine_pages = match summary.options.compact {
            true => None,
            false => self.machine_pages()?,
        };
        config.fit(summary.footprint_units, summary.lpn_count, machine_pages)?;
        let history = config.system.history.enabled;
        let run = RunOptions {
            measure: MeasureOptions::default(),
            progress: Some(ticker),
            recovery_check: self.workload.recovery_check.filter(|_| history),
            pages,
        };
        let done = simulate(&config, made, run).map_err(|source| PaperError::Run {
            run: name.to_owned(),
            source: Box::new(source),
        })?;
        found.figures.insert(name, of_run(&done));
        found.figures.set(name, FACTOR, self.factor());
        let configuration = (name.to_owned(), config_hash(&config));
        found.configurations.push(configuration);
        Ok(())
    }

    /// Counts the values, if they are asked for.
    fn count(
        &self,
        readers: Vec<TraceReader>,
        content: &WorkloadOptions,
        found: &mut Found,
    ) -> Result<(), PaperError> {
        if let Some(name) = &self.count {
            let factor = self.factor();
            let counted = values::count(readers, content, factor, self.workload.hours)?;
            found.figures.insert(name, counted);
            found.figures.set(name, FACTOR, factor);
        }
        Ok(())
    }

    /// The factor on what is replayed: profiles alone are made smaller.
    fn factor(&self) -> f64 {
        match self.workload.requests {
            Requests::Profile(_) => self.workload.scale,
            Requests::Capture(_) | Requests::Given(_) | Requests::Original(_) => 1.0,
        }
    }

    /// Repeats a run with other values of a setting. What its last run gave stays under the name of the
    /// search, with the value; nothing stays if none was found.
    fn search(
        &self,
        trial: &Trial,
        made: &mut flashlore_trace::Workload,
        pages: Option<&dyn PageSource>,
        ticker: &mut dyn Ticker,
        found: &mut Found,
    ) -> Result<(), PaperError> {
        let name = &trial.search.name;
        let reached = crossing(&trial.search, |value| -> Result<f64, PaperError> {
            let mut texts = trial.set.clone();
            texts.push(trial.search.text(value));
            let config = trial.recipe.config(&texts)?;
            found.configurations.retain(|(run, _)| run != name);
            self.once(name, &config, made, pages, ticker, found)?;
            found.figures.set(name, SETTING, value);
            Ok(trial.measure.value(&found.figures, self.workload.scale, ""))
        })?;
        if reached.is_none() {
            found.figures.remove(name);
            found.configurations.retain(|(run, _)| run != name);
        }
        Ok(())
    }

    fn content(&self, source: &ProfileSource, profile: &Profile) -> ContentModel {
        let Some(zipf) = self.workload.zipf else {
            return ContentModel::FromTrace;
        };
        let requests = source.options.scaled(profile).writes;
        let mean_pages = profile.requests.write_size.0 as f64 / UNIT_BYTES as f64;
        self.zipf(zipf, requests as f64 * mean_pages)
    }

    /// Draws for so many page writes; the pair is that of [`Workload::zipf`].
    fn zipf(&self, (exponent, per_write): (f64, f64), page_writes: f64) -> ContentModel {
        ContentModel::Zipf {
            exponent,
            values: (page_writes * per_write).round().max(1.0) as u32,
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
