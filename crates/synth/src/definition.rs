//! What a workload is made from: a profile of figures, or a fit.

use flashlore_trace::Batch;

use crate::error::ProfileError;
use crate::fit::{Fit, FitGenerator};
use crate::generate::{Generator, SynthOptions};
use crate::profile::Profile;

#[derive(Debug, Clone, PartialEq)]
pub enum Definition {
    /// Models and their parameters, chosen so that published figures hold.
    Profile(Box<Profile>),
    /// Structure measured on a trace.
    Fit(Box<Fit>),
}

impl Definition {
    /// Reads either: a fit is what has a table `[fit]`.
    pub fn parse(origin: &str, text: &str) -> Result<Definition, ProfileError> {
        let has_table = |table: toml_edit::DocumentMut| table.contains_key("fit");
        if text.parse().is_ok_and(has_table) {
            return Ok(Definition::Fit(Box::new(Fit::parse(origin, text)?)));
        }
        Ok(Definition::Profile(Box::new(Profile::parse(origin, text)?)))
    }

    pub fn name(&self) -> &str {
        match self {
            Definition::Profile(profile) => &profile.name,
            Definition::Fit(fit) => &fit.name,
        }
    }

    /// One line for lists.
    pub fn description(&self) -> &str {
        match self {
            Definition::Profile(profile) => &profile.description,
            Definition::Fit(fit) => &fit.description,
        }
    }

    pub fn source(&self) -> &str {
        match self {
            Definition::Profile(profile) => &profile.source,
            Definition::Fit(fit) => &fit.source,
        }
    }

    /// Its requests at full scale; of a fit, about.
    pub fn requests(&self) -> u64 {
        match self {
            Definition::Profile(profile) => profile.requests.count,
            Definition::Fit(fit) => fit.requests(),
        }
    }

    pub fn has_content(&self) -> bool {
        match self {
            Definition::Profile(profile) => profile.values.is_some(),
            Definition::Fit(fit) => fit.content,
        }
    }

    pub fn profile(&self) -> Option<&Profile> {
        match self {
            Definition::Profile(profile) => Some(profile),
            Definition::Fit(_) => None,
        }
    }

    /// What replaces the contents of a batch with the next records, until there are none.
    pub(crate) fn generate(
        &self,
        options: &SynthOptions,
    ) -> Box<dyn FnMut(&mut Batch) -> bool + Send> {
        match self {
            Definition::Profile(profile) => {
                let mut generator = Generator::new(profile, options);
                Box::new(move |batch| generator.next_batch(batch))
            }
            Definition::Fit(fit) => {
                let mut generator = FitGenerator::new(fit, options);
                Box::new(move |batch| generator.next_batch(batch))
            }
        }
    }
}
