//! The runs of one workload: it is made once, in memory, and replayed by each.

use flashlore_sim::config::{RunConfig, config_hash};
use flashlore_sim::engine::{MeasureOptions, RunOptions, Ticker, simulate};
use flashlore_synth::{Profile, Source, SynthOptions, load_profile};
use flashlore_trace::{ContentModel, PageSource, UNIT_BYTES, WorkloadOptions};

use crate::definition::Workload;
use crate::error::PaperError;
use crate::figures::{Figures, of_run};
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
    /// The name of the count of values, if they are counted.
    pub count: Option<String>,
}

/// What a group found.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// Figures of its runs.
    pub figures: Figures,
    /// Hash of the configuration of each run on a device.
    pub configurations: Vec<(String, String)>,
    /// The profile's name and hash.
    pub profile: (String, String),
}

impl Group {
    /// So many requests its workload has.
    ///
    /// # Errors
    /// When the profile cannot be used.
    pub fn requests(workload: &Workload) -> Result<u64, PaperError> {
        let (profile, _) = load_profile(&workload.profile)?;
        Ok(options(workload, 0).scaled(&profile).requests)
    }

    /// Makes the workload and does the runs.
    ///
    /// # Errors
    /// A profile that cannot be used, a run that cannot begin or go on.
    pub fn run(&self, ticker: &mut dyn Ticker) -> Result<Found, PaperError> {
        let options = options(&self.workload, self.seed);
        let source = Source::new(&self.workload.profile, options)?;
        let (profile, _) = load_profile(&self.workload.profile)?;
        let content = WorkloadOptions::new(self.content(&source, &profile));
        let reader = || vec![source.open()];
        let mut found = Found {
            profile: (profile.name.clone(), source.hash.clone()),
            ..Found::default()
        };
        if !self.runs.is_empty() {
            let made = flashlore_trace::Workload::from_readers(reader(), &content)?;
            let needs_bytes = self.runs.iter().any(|(_, c)| c.system.needs_bytes());
            let recipes = (needs_bytes && self.workload.zipf.is_none())
                .then(|| source.recipes())
                .flatten();
            let pages = recipes.as_ref().map(|recipes| recipes as &dyn PageSource);
            self.simulate(made, pages, ticker, &mut found)?;
        }
        if let Some(name) = &self.count {
            let counted = values::count(reader(), &content, self.workload.scale)?;
            found.figures.insert(name, counted);
        }
        Ok(found)
    }

    fn simulate(
        &self,
        mut made: flashlore_trace::Workload,
        pages: Option<&dyn PageSource>,
        ticker: &mut dyn Ticker,
        found: &mut Found,
    ) -> Result<(), PaperError> {
        for (name, config) in &self.runs {
            let run = RunOptions {
                measure: MeasureOptions::default(),
                progress: Some(&mut *ticker),
                recovery_check: None,
                pages,
            };
            let done = simulate(config, &mut made, run).map_err(|source| PaperError::Run {
                run: name.clone(),
                source: Box::new(source),
            })?;
            found.figures.insert(name, of_run(&done.result));
            found
                .configurations
                .push((name.clone(), config_hash(config)));
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
