//! What several seeds draw anew: seed number N of a comparison adds N to every seed that its workload is drawn with.
//!
//! | what is drawn | its seed, of the first run | its stream |
//! |---|---|---|
//! | the records of `profile:NAME` | `seed=` of the profile, 1 | of the profile's generator |
//! | the content that `--content` assumes | `seed=` of the model | of page writes' values |
//! | the R_c that `--delta` draws | `seed=` of the model | of page writes' ratios |
//! | choices of device and system, drawn lengths | `host.seed` | one each |
//!
//! Each has a generator or a stream of its own, so that equal seeds do not make one depend on another. The first seed
//! is that of a run with one seed.

use std::path::PathBuf;

use flashlore_synth::{ProfileSource, overlay, source::PREFIX};
use flashlore_trace::{ContentModel, DeltaModel, WorkloadOptions};

use crate::error::CliError;
use crate::input::profile;

/// Traces and options with every seed `number` above what it is; nothing if none of it is drawn.
///
/// # Errors
/// A profile that is not there any more.
pub fn redrawn(
    paths: &[PathBuf],
    options: &WorkloadOptions,
    number: u64,
) -> Result<Option<(Vec<PathBuf>, WorkloadOptions)>, CliError> {
    let again = paths
        .iter()
        .map(|path| match profile(path) {
            Some(spec) => Ok(PathBuf::from(format!(
                "{PREFIX}{}",
                reseeded(spec, number)?
            ))),
            None => Ok(path.clone()),
        })
        .collect::<Result<Vec<_>, CliError>>()?;
    let mut anew = options.clone();
    anew.content = content(&options.content, number)?;
    anew.delta = options.delta.map(|model| ratios(model, number));
    let is_drawn = again != paths || anew != *options;
    Ok(is_drawn.then_some((again, anew)))
}

/// A profile's text with another seed.
fn reseeded(spec: &str, number: u64) -> Result<String, CliError> {
    let seed = ProfileSource::parse(spec)?
        .options
        .seed
        .wrapping_add(number);
    let kept = spec.split(',').filter(|part| !part.starts_with("seed="));
    let kept: Vec<&str> = kept.collect();
    Ok(format!("{},seed={seed}", kept.join(",")))
}

fn content(model: &ContentModel, number: u64) -> Result<ContentModel, CliError> {
    let mut model = model.clone();
    match &mut model {
        ContentModel::FromTrace | ContentModel::Distinct => {}
        ContentModel::Zipf { seed, .. } | ContentModel::Uniform { seed, .. } => {
            *seed = seed.wrapping_add(number);
        }
        ContentModel::Named(named) => {
            let parameters = named.parameters();
            let seed = parameters.get("seed").and_then(|seed| seed.parse().ok());
            if let (Some(name), Some(seed)) = (named.name().strip_prefix(PREFIX), seed) {
                let seed = number.wrapping_add(seed);
                let hash = parameters.get("hash").map(|hash| format!(",hash={hash}"));
                let spec = format!("{name},seed={seed}{}", hash.unwrap_or_default());
                model = ContentModel::Named(overlay::parse(&spec)?);
            }
        }
    }
    Ok(model)
}

fn ratios(model: DeltaModel, number: u64) -> DeltaModel {
    match model {
        DeltaModel::FromTrace => model,
        DeltaModel::Gaussian { mean, std, seed } => DeltaModel::Gaussian {
            mean,
            std,
            seed: seed.wrapping_add(number),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str, content: &str, delta: Option<&str>) -> Option<(String, String, String)> {
        let options = WorkloadOptions {
            delta: delta.map(|text| text.parse().unwrap()),
            ..WorkloadOptions::new(crate::input::content_model(content).unwrap())
        };
        let (paths, options) = redrawn(&[path.into()], &options, 2).unwrap()?;
        let delta = options.delta.map(|delta| delta.to_string());
        let path = paths[0].display().to_string();
        Some((path, options.content.to_string(), delta.unwrap_or_default()))
    }

    #[test]
    fn everything_drawn_is_drawn_anew_and_nothing_else() {
        assert_eq!(of("t.fiu", "trace", None), None);
        assert_eq!(of("t.fiu", "distinct", Some("trace")), None);
        let (path, ..) = of("profile:mail,seed=7,scale=0.1", "trace", None).unwrap();
        assert_eq!(path, "profile:mail,scale=0.1,seed=9");
        let (path, ..) = of("profile:mail", "trace", None).unwrap();
        assert_eq!(path, "profile:mail,seed=3");
        let (_, content, _) = of("t.fiu", "uniform:n=9,seed=4", None).unwrap();
        assert_eq!(content, "uniform:n=9,seed=6");
        let (_, content, _) = of("t.fiu", "profile:web,seed=4", None).unwrap();
        assert!(content.contains("seed=6"), "{content}");
        let (.., delta) = of("t.fiu", "trace", Some("gaussian:mean=0.3,std=0.1,seed=4")).unwrap();
        assert!(delta.contains("seed=6"), "{delta}");
    }
}
