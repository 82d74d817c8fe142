//! A profile as a trace: by the name of a preset or of a file, with settings of its generation, as in
//! `mail,scale=0.1,seed=2`.
//!
//! What the records depend on, the profile's text and the settings, is the trace's identity, so that
//! a changed profile is noticed as a changed file would be.

use std::str::FromStr;

use flashlore_trace::TraceReader;

use crate::definition::Definition;
use crate::error::ProfileError;
use crate::fit::Fit;
use crate::generate::SynthOptions;
use crate::presets::load;
use crate::profile::profile_hash;
use crate::similarity::{Recipes, image_pages, recipes};

/// What the name of a profile begins with wherever a trace or a content model may stand.
pub const PREFIX: &str = "profile:";

/// The most pages and requests of a generated workload: both are counted in 32 bits.
const MOST: u64 = u32::MAX as u64 - 1;

/// The most runs of an epoch of a fit, which are in memory at a time: half a gigabyte.
const MOST_RUNS: f64 = 16_777_216.0;

/// A profile that was read, and how it is generated.
#[derive(Debug, Clone)]
pub struct ProfileSource {
    /// As it was asked for, without the prefix.
    pub name: String,
    pub definition: Definition,
    /// 16 hexadecimal digits that its text determines.
    pub hash: String,
    pub options: SynthOptions,
    text: String,
}

impl ProfileSource {
    /// A profile by `NAME` or `FILE` and options.
    pub fn new(name: &str, options: SynthOptions) -> Result<ProfileSource, ProfileError> {
        let (definition, text) = load(name)?;
        options.check(name, &definition)?;
        Ok(ProfileSource {
            name: name.to_owned(),
            definition,
            hash: profile_hash(&text),
            options,
            text,
        })
    }

    /// A fit that is in no file yet.
    pub fn of_fit(fit: Fit, options: SynthOptions) -> ProfileSource {
        let text = fit.to_text();
        ProfileSource {
            name: fit.name.clone(),
            definition: Definition::Fit(Box::new(fit)),
            hash: profile_hash(&text),
            options,
            text,
        }
    }

    /// A profile as `NAME` or `FILE` with `,scale=FACTOR`, `,requests=N` and `,seed=N` behind it,
    /// each of which may be left out.
    pub fn parse(spec: &str) -> Result<ProfileSource, ProfileError> {
        let mut parts = spec.split(',');
        let name = parts.next().unwrap_or_default();
        let mut options = SynthOptions::default();
        for part in parts {
            match part.split_once('=') {
                Some(("scale", value)) => options.scale = number(name, part, value)?,
                Some(("requests", value)) => options.requests = Some(number(name, part, value)?),
                Some(("seed", value)) => options.seed = number(name, part, value)?,
                _ => return Err(unknown(name, part, "scale=FACTOR, requests=N or seed=N")),
            }
        }
        let source = ProfileSource::new(name, options)?;
        Ok(ProfileSource {
            name: spec.to_owned(),
            ..source
        })
    }

    /// What tells the bytes of the records' values, by their numbers; absent when the profile has no
    /// `[similarity]`. Makes the whole workload once.
    pub fn recipes(&self) -> Option<Recipes> {
        recipes(self.definition.profile()?, &self.options)
    }

    /// Pages of each virtual machine whose image the records touch; absent when the profile has no
    /// `similarity.images`.
    pub fn image_pages(&self) -> Option<u32> {
        image_pages(self.definition.profile()?, &self.options)
    }

    /// The records, which are made while they are read.
    pub fn open(&self) -> TraceReader {
        let SynthOptions {
            scale,
            requests,
            seed,
        } = self.options;
        let settings = format!("{}\n{scale} {requests:?} {seed}", self.text);
        TraceReader::made(
            format!("{PREFIX}{}", self.name),
            *blake3::hash(settings.as_bytes()).as_bytes(),
            self.definition.generate(&self.options),
        )
    }
}

impl SynthOptions {
    /// Refuses what a profile cannot be generated with.
    fn check(&self, name: &str, definition: &Definition) -> Result<(), ProfileError> {
        let fault = |message: String| ProfileError::Setting {
            name: name.to_owned(),
            message,
        };
        if !(self.scale > 0.0 && self.scale.is_finite()) {
            return Err(fault(format!(
                "scale={}: expected a number above 0",
                self.scale
            )));
        }
        if self.requests == Some(0) {
            return Err(fault("requests=0: expected at least 1".to_owned()));
        }
        let profile = match definition {
            Definition::Profile(profile) => profile,
            Definition::Fit(fit) => return self.check_fit(fit).map_err(fault),
        };
        let scaled = self.scaled(profile);
        for (what, number) in [("requests", scaled.requests), ("pages", scaled.pages)] {
            if number > MOST {
                return Err(fault(format!(
                    "{number} {what} with scale={}: expected at most {MOST}",
                    self.scale
                )));
            }
        }
        if scaled.writes > 0 && scaled.read_only == scaled.pages {
            return Err(fault(format!(
                "with scale={} and address.read_only={} no page is written, which {} requests \
                 need; expected at least one",
                self.scale, profile.address.read_only, scaled.writes
            )));
        }
        Ok(())
    }

    fn check_fit(&self, fit: &Fit) -> Result<(), String> {
        let pages = fit.pages() as f64 * self.scale;
        if pages > MOST as f64 {
            return Err(format!(
                "{pages:.0} page accesses with scale={}: expected at most {MOST}",
                self.scale
            ));
        }
        let epochs = fit.epochs.iter().map(|epoch| {
            let runs = epoch
                .runs
                .iter()
                .map(|run| f64::from(run.count) * self.scale);
            runs.sum::<f64>()
        });
        let runs = epochs.fold(0.0, f64::max);
        if runs > MOST_RUNS {
            return Err(format!(
                "{runs:.0} runs in an epoch with scale={}: expected at most {MOST_RUNS:.0}",
                self.scale
            ));
        }
        let about = (fit.requests() as f64 * self.scale).max(1.0);
        match self.requests {
            Some(wanted) if wanted as f64 > about => Err(format!(
                "requests={wanted}: with scale={} the fit makes about {about:.0}, of which requests=N \
                 keeps the first; expected less, or a larger scale",
                self.scale
            )),
            _ => Ok(()),
        }
    }
}

/// The number that `value` is; `part` is the whole setting.
pub(crate) fn number<T: FromStr>(name: &str, part: &str, value: &str) -> Result<T, ProfileError> {
    value.parse().map_err(|_| ProfileError::Setting {
        name: name.to_owned(),
        message: format!("{part}: expected a number in its range"),
    })
}

/// A setting that does not exist.
pub(crate) fn unknown(name: &str, part: &str, expected: &str) -> ProfileError {
    ProfileError::Setting {
        name: name.to_owned(),
        message: format!("'{part}' is no setting; expected {expected}"),
    }
}

#[cfg(test)]
mod tests {
    use flashlore_trace::Batch;

    use super::*;
    use crate::generate::Generator;
    use crate::presets::load_profile;

    #[test]
    fn settings_are_read_and_change_the_identity() {
        let source = ProfileSource::parse("mail,seed=7,scale=0.01,requests=50").unwrap();
        let wanted = SynthOptions {
            scale: 0.01,
            requests: Some(50),
            seed: 7,
        };
        assert_eq!(source.options, wanted);
        assert_eq!(
            source.open().path(),
            "profile:mail,seed=7,scale=0.01,requests=50"
        );
        let identity = |spec: &str| ProfileSource::parse(spec).unwrap().open().sha256();
        let specs = [
            "mail",
            "mail,seed=2",
            "mail,scale=0.5",
            "mail,requests=9",
            "web",
        ];
        for (at, spec) in specs.iter().enumerate() {
            for other in &specs[..at] {
                assert_ne!(identity(spec), identity(other), "{spec} {other}");
            }
        }
        assert_eq!(identity("mail"), identity("mail,scale=1.0,seed=1"));
    }

    #[test]
    fn reads_need_no_page_that_is_only_read() {
        let (mut profile, _) = load_profile("homes-1d").unwrap();
        profile.address.read_only = 0.0;
        let options = SynthOptions {
            scale: 0.01,
            ..SynthOptions::default()
        };
        let definition = Definition::Profile(Box::new(profile.clone()));
        options.check("own", &definition).unwrap();
        let mut generator = Generator::new(&profile, &options);
        let mut batch = Batch::default();
        assert!(generator.next_batch(&mut batch));
        assert!(batch.op.contains(&flashlore_trace::Op::Read));
    }

    #[test]
    fn mistakes_are_explained() {
        for (spec, wanted) in [
            (
                "male",
                "there is no profile 'male'; expected a file or one of mail web",
            ),
            ("mail,scale=x", "profile 'mail': scale=x: expected a number"),
            ("mail,scale=0", "scale=0: expected a number above 0"),
            ("mail,scale=NaN", "scale=NaN: expected"),
            ("mail,scale=1e9", "expected at most 4294967294"),
            ("mail,requests=0", "requests=0: expected at least 1"),
            ("mail,seed=-1", "seed=-1: expected"),
            ("mail,speed=1", "'speed=1' is no setting; expected scale="),
            (
                "mail,scale=1e-7",
                "no page is written, which 1 requests need",
            ),
            ("absent.toml", "cannot read the profile absent.toml"),
        ] {
            let error = ProfileSource::parse(spec).unwrap_err().to_string();
            assert!(error.contains(wanted), "{spec}: {error}");
        }
    }
}
