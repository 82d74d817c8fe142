//! Models as users write them: `trace`, `distinct`, `zipf:a=0.8,n=2000000,seed=7`,
//! `uniform:n=2000000`; `trace`, `gaussian:mean=0.35,std=0.1`.

use std::fmt;
use std::str::FromStr;

use super::delta::DeltaModel;
use super::model::ContentModel;

const CONTENT_FORMS: &str =
    "trace, distinct, zipf:a=EXPONENT,n=VALUES[,seed=SEED] or uniform:n=VALUES[,seed=SEED]";
const DELTA_FORMS: &str = "trace or gaussian:mean=MEAN,std=DEVIATION[,seed=SEED]";

impl FromStr for ContentModel {
    type Err = String;

    fn from_str(text: &str) -> Result<ContentModel, String> {
        let (name, settings) = text.split_once(':').unwrap_or((text, ""));
        let fail = |what: String| format!("content '{text}' {what}; expected {CONTENT_FORMS}");
        let mut settings = Settings::parse(settings).map_err(fail)?;
        let missing_values = || "lacks n: how many values there are cannot be guessed".to_owned();
        let model = match name {
            "trace" => ContentModel::FromTrace,
            "distinct" => ContentModel::Distinct,
            "zipf" => {
                let exponent = settings.take("a").map_err(fail)?;
                let exponent: f64 = exponent.ok_or_else(|| fail("lacks a".to_owned()))?;
                let values = settings.take("n").map_err(fail)?;
                let seed = settings.take("seed").map_err(fail)?.unwrap_or(0);
                match (exponent, values) {
                    (0.0, _) => ContentModel::Distinct,
                    (_, None) => return Err(fail(missing_values())),
                    (exponent, Some(values)) => ContentModel::Zipf {
                        exponent,
                        values,
                        seed,
                    },
                }
            }
            "uniform" => ContentModel::Uniform {
                values: settings
                    .take("n")
                    .map_err(fail)?
                    .ok_or_else(|| fail(missing_values()))?,
                seed: settings.take("seed").map_err(fail)?.unwrap_or(0),
            },
            _ => return Err(fail("is not known".to_owned())),
        };
        settings.finish().map_err(fail)?;
        model
            .begin()
            .map_err(|error| fail(format!("does not work ({error})")))?;
        Ok(model)
    }
}

impl fmt::Display for ContentModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ContentModel::FromTrace => f.write_str("trace"),
            ContentModel::Distinct => f.write_str("distinct"),
            ContentModel::Zipf {
                exponent,
                values,
                seed,
            } => write!(f, "zipf:a={exponent},n={values},seed={seed}"),
            ContentModel::Uniform { values, seed } => write!(f, "uniform:n={values},seed={seed}"),
            ContentModel::Named(named) => named.fmt(f),
        }
    }
}

impl FromStr for DeltaModel {
    type Err = String;

    fn from_str(text: &str) -> Result<DeltaModel, String> {
        let fail = |what: String| format!("R_c '{text}' {what}; expected {DELTA_FORMS}");
        let (name, settings) = text.split_once(':').unwrap_or((text, ""));
        let mut settings = Settings::parse(settings).map_err(fail)?;
        match name {
            "trace" => {
                settings.finish().map_err(fail)?;
                return Ok(DeltaModel::FromTrace);
            }
            "gaussian" => {}
            _ => return Err(fail("is not known".to_owned())),
        }
        let mut number = |key: &'static str| {
            let value: Option<f64> = settings.take(key).map_err(fail)?;
            value.ok_or_else(|| fail(format!("lacks {key}")))
        };
        let (mean, std) = (number("mean")?, number("std")?);
        let seed = settings.take("seed").map_err(fail)?.unwrap_or(0);
        settings.finish().map_err(fail)?;
        let model = DeltaModel::Gaussian { mean, std, seed };
        model
            .begin()
            .map_err(|error| fail(format!("does not work ({error})")))?;
        Ok(model)
    }
}

impl fmt::Display for DeltaModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeltaModel::FromTrace => f.write_str("trace"),
            DeltaModel::Gaussian { mean, std, seed } => {
                write!(f, "gaussian:mean={mean},std={std},seed={seed}")
            }
        }
    }
}

/// `key=value` pairs between commas, each of which must be taken.
struct Settings<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Settings<'a> {
    fn parse(text: &'a str) -> Result<Self, String> {
        let pair = |part: &'a str| {
            part.split_once('=')
                .ok_or_else(|| format!("has '{part}', which is not KEY=VALUE"))
        };
        let parts = text.split(',').filter(|_| !text.is_empty());
        Ok(Settings(parts.map(pair).collect::<Result<_, _>>()?))
    }

    fn take<T: FromStr>(&mut self, key: &str) -> Result<Option<T>, String> {
        let Some(at) = self.0.iter().position(|(name, _)| *name == key) else {
            return Ok(None);
        };
        let (_, value) = self.0.remove(at);
        let number = value
            .parse()
            .map_err(|_| format!("has {key}={value}, which is not a number in its range"))?;
        Ok(Some(number))
    }

    /// Demands that nothing is left.
    fn finish(&self) -> Result<(), String> {
        match self.0.first() {
            None => Ok(()),
            Some((key, value)) => Err(format!("has {key}={value}, which does not belong there")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_read_and_written() {
        for (text, written) in [
            ("trace", "trace"),
            ("distinct", "distinct"),
            ("zipf:a=0.8,n=2000000,seed=7", "zipf:a=0.8,n=2000000,seed=7"),
            ("zipf:n=2000000,a=1", "zipf:a=1,n=2000000,seed=0"),
            ("zipf:a=0", "distinct"),
            ("zipf:a=0.0,n=5", "distinct"),
            ("uniform:n=4294967294", "uniform:n=4294967294,seed=0"),
        ] {
            let model: ContentModel = text.parse().unwrap();
            assert_eq!(model.to_string(), written);
            assert_eq!(written.parse(), Ok(model));
        }
        let text = "gaussian:mean=0.35,std=0.1";
        let model: DeltaModel = text.parse().unwrap();
        let wanted = DeltaModel::Gaussian {
            mean: 0.35,
            std: 0.1,
            seed: 0,
        };
        assert_eq!(model, wanted);
        assert_eq!(model.to_string(), format!("{text},seed=0"));
        assert_eq!("trace".parse(), Ok(DeltaModel::FromTrace));
        assert_eq!(DeltaModel::FromTrace.to_string(), "trace");
    }

    #[test]
    fn mistakes_are_explained() {
        for (text, wanted) in [
            ("zipfian", "is not known; expected trace, distinct, zipf:a="),
            ("zipf:n=5", "lacks a"),
            (
                "zipf:a=0.8",
                "lacks n: how many values there are cannot be guessed",
            ),
            ("uniform", "lacks n"),
            (
                "zipf:a=x,n=5",
                "has a=x, which is not a number in its range",
            ),
            (
                "zipf:a=1,n=5000000000",
                "has n=5000000000, which is not a number in its range",
            ),
            ("zipf:a=1,n=0", "drawn from 0 values"),
            ("zipf:a=-1,n=5", "the zipf exponent is -1"),
            ("zipf:a=1,n=5,m=6", "has m=6, which does not belong there"),
            ("zipf:a=1,a=2,n=5", "has a=2, which does not belong there"),
            ("distinct:n=5", "has n=5, which does not belong there"),
            ("uniform:5", "has '5', which is not KEY=VALUE"),
        ] {
            let error = text.parse::<ContentModel>().unwrap_err();
            assert!(error.contains(wanted) && error.contains(text), "{error}");
        }
        for (text, wanted) in [
            (
                "normal:mean=0.35",
                "is not known; expected trace or gaussian:mean=",
            ),
            ("trace:seed=1", "has seed=1, which does not belong there"),
            ("gaussian:mean=0.35", "lacks std"),
            ("gaussian:std=0.1", "lacks mean"),
            ("gaussian:mean=2,std=0.1", "the mean of R_c is 2"),
            ("gaussian:mean=0.5,std=0.1,seed=-1", "has seed=-1"),
        ] {
            let error = text.parse::<DeltaModel>().unwrap_err();
            assert!(error.contains(wanted) && error.contains(text), "{error}");
        }
    }
}
