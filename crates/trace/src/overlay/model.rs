//! The models of content, and what each becomes for one pass over a trace.

use serde::{Deserialize, Serialize};

use super::draw::Draws;
use super::named::NamedOverlay;
use super::zipf::Zipf;
use crate::digests::MAX_VALUES;
use crate::error::{Error, Result};

/// The stream of random numbers that values take.
const STREAM: u64 = 0x0076_616c_7565;

/// Where the content of the pages comes from.
///
/// Every model but the first lays its values over the trace, whatever that says: each page write has
/// one, also of units written in part, and reads and the prefill carry none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ContentModel {
    /// The trace's own value ids; none where it has none.
    FromTrace,
    /// Every page write has a value of its own, numbered from 0.
    Distinct,
    /// Independent draws: rank k of `values` has a probability proportional to k^-`exponent`, and
    /// the value id k - 1.
    Zipf {
        /// The exponent, at least 0. An exponent of 0 means [`ContentModel::Distinct`].
        exponent: f64,
        /// Number of values that can occur.
        values: u32,
        /// Seed of the draws.
        seed: u64,
    },
    /// Independent draws of `values` equally likely values.
    Uniform { values: u32, seed: u64 },
    /// A model made elsewhere.
    Named(NamedOverlay),
}

/// Gives page writes their values during one pass over a trace.
pub trait Overlay: Send {
    /// The value id of the page write `number` to a unit of a device. It is called once for each
    /// page write, in order of their numbers, from 0 on; devices are numbered from 0 in order of
    /// first appearance.
    fn write(&mut self, device: u32, unit: u64, number: u64) -> u32;

    /// A number that all value ids given so far are below.
    fn value_ids(&self) -> u32;
}

impl ContentModel {
    /// The overlay of a pass in its first state; `None` where the trace itself tells.
    ///
    /// # Errors
    /// When a parameter is out of bounds or the model is known by name only.
    pub(crate) fn begin(&self) -> Result<Option<Box<dyn Overlay>>> {
        Ok(Some(match *self {
            ContentModel::FromTrace => return Ok(None),
            ContentModel::Distinct => Box::new(Distinct::default()),
            ContentModel::Zipf {
                exponent,
                values,
                seed,
            } => {
                if !(exponent >= 0.0 && exponent.is_finite()) {
                    return Err(Error::Layout(format!(
                        "the zipf exponent is {exponent}, expected a number of at least 0"
                    )));
                }
                if exponent == 0.0 {
                    return ContentModel::Distinct.begin();
                }
                check_values(values)?;
                Box::new(ZipfValues {
                    zipf: Zipf::new(exponent, values),
                    values,
                    draws: Draws::new(seed, STREAM),
                })
            }
            ContentModel::Uniform { values, seed } => {
                check_values(values)?;
                Box::new(UniformValues {
                    values,
                    draws: Draws::new(seed, STREAM),
                })
            }
            ContentModel::Named(ref named) => named.begin()?,
        }))
    }
}

fn check_values(values: u32) -> Result<()> {
    if values == 0 || values > MAX_VALUES {
        return Err(Error::Layout(format!(
            "the content is drawn from {values} values, expected 1 to {MAX_VALUES}"
        )));
    }
    Ok(())
}

#[derive(Default)]
struct Distinct {
    count: u64,
}

impl Overlay for Distinct {
    #[inline]
    fn write(&mut self, _device: u32, _unit: u64, number: u64) -> u32 {
        self.count = number + 1;
        number as u32
    }

    fn value_ids(&self) -> u32 {
        // Beyond the range of ids it is too many either way.
        u32::try_from(self.count).unwrap_or(u32::MAX)
    }
}

struct ZipfValues {
    zipf: Zipf,
    values: u32,
    draws: Draws,
}

impl Overlay for ZipfValues {
    #[inline]
    fn write(&mut self, _device: u32, _unit: u64, number: u64) -> u32 {
        self.zipf.draw(&mut self.draws.of(number)) - 1
    }

    fn value_ids(&self) -> u32 {
        self.values
    }
}

struct UniformValues {
    values: u32,
    draws: Draws,
}

impl Overlay for UniformValues {
    #[inline]
    fn write(&mut self, _device: u32, _unit: u64, number: u64) -> u32 {
        self.draws.of(number).below(self.values)
    }

    fn value_ids(&self) -> u32 {
        self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(model: &ContentModel, writes: u64) -> Vec<u32> {
        let mut overlay = model.begin().unwrap().unwrap();
        let mut counts = Vec::new();
        for number in 0..writes {
            let value = overlay.write(0, number, number) as usize;
            counts.resize(counts.len().max(value + 1), 0);
            counts[value] += 1;
        }
        assert!(counts.len() as u64 <= u64::from(overlay.value_ids()));
        counts
    }

    /// Share of the writes that brings a new value, and the fewest values that make half of them.
    fn shape(model: &ContentModel, writes: u64) -> (f64, usize) {
        let mut counts = counts(model, writes);
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let distinct = counts.iter().take_while(|&&count| count > 0).count();
        let mut sum = 0;
        let half = counts.iter().position(|&count| {
            sum += u64::from(count);
            sum * 2 >= writes
        });
        (distinct as f64 / writes as f64, half.unwrap() + 1)
    }

    /// The expected number of distinct values, summed exactly over the ranks.
    #[test]
    fn as_many_values_occur_as_should() {
        let (writes, values) = (300_000, 200_000);
        for exponent in [0.0, 0.4, 0.8, 1.0, 1.2] {
            let weights: Vec<f64> = (1..=values).map(|k| f64::from(k).powf(-exponent)).collect();
            let sum: f64 = weights.iter().sum();
            let missed = |weight: &f64| (writes as f64 * (-weight / sum).ln_1p()).exp();
            let expected: f64 = weights.iter().map(|weight| 1.0 - missed(weight)).sum();
            let model = match exponent {
                0.0 => ContentModel::Uniform { values, seed: 4 },
                _ => ContentModel::Zipf {
                    exponent,
                    values,
                    seed: 4,
                },
            };
            let found = shape(&model, writes).0 * writes as f64;
            // The variance is below that of independent values.
            let slack = 5.0
                * weights
                    .iter()
                    .map(|w| missed(w) * (1.0 - missed(w)))
                    .sum::<f64>()
                    .sqrt();
            assert!(
                (found - expected).abs() < slack,
                "{exponent}: {found}, {expected}"
            );
        }
    }

    #[test]
    fn distinct_writes_are_distinct_and_exponent_0_means_that() {
        let zero = ContentModel::Zipf {
            exponent: 0.0,
            values: 3,
            seed: 1,
        };
        for model in [ContentModel::Distinct, zero] {
            assert_eq!(shape(&model, 1000), (1.0, 500));
        }
    }

    #[test]
    fn values_depend_on_seed_and_number_alone() {
        let model = |seed| ContentModel::Zipf {
            exponent: 0.9,
            values: 1000,
            seed,
        };
        let draw = |seed, number| model(seed).begin().unwrap().unwrap().write(7, 9, number);
        let mut in_order = model(3).begin().unwrap().unwrap();
        let values: Vec<u32> = (0..200)
            .map(|number| in_order.write(0, 0, number))
            .collect();
        for number in (0..200).rev() {
            assert_eq!(draw(3, number), values[number as usize]);
        }
        assert!((0..200).any(|number| draw(4, number) != values[number as usize]));
    }

    #[test]
    fn parameters_out_of_bounds_are_named() {
        for (exponent, values, wanted) in [
            (-0.1, 5, "the zipf exponent is -0.1, expected"),
            (f64::NAN, 5, "the zipf exponent is NaN"),
            (0.5, 0, "drawn from 0 values, expected 1 to"),
            (0.5, u32::MAX, "drawn from 4294967295 values"),
        ] {
            let model = ContentModel::Zipf {
                exponent,
                values,
                seed: 0,
            };
            let error = model.begin().err().unwrap().to_string();
            assert!(error.contains(wanted), "{error}");
        }
        let error = ContentModel::Uniform { values: 0, seed: 0 }.begin().err();
        assert!(error.unwrap().to_string().contains("drawn from 0 values"));
    }

    /// Published expectations for 9.0 million writes: values in millions that make half of them, and
    /// the share of distinct values, each to the last digit given or 3 %.
    #[test]
    #[ignore = "nine million draws for each of sixteen models take half a minute"]
    fn nine_million_writes_have_the_expected_shape() {
        let table = [
            (6e6, [1.41, 1.11, 0.20, 0.002], [0.518, 0.483, 0.176]),
            (9e6, [1.78, 1.50, 0.28, 0.002], [0.632, 0.587, 0.197]),
            (20e6, [2.75, 2.33, 0.51, 0.003], [0.805, 0.758, 0.235]),
            (100e6, [4.11, 3.92, 1.41, 0.007], [0.956, 0.935, 0.304]),
        ];
        let writes = 9_000_000;
        let close = |found: f64, wanted: f64, digit: f64| {
            (found - wanted).abs() <= (0.03 * wanted).max(digit / 2.0)
        };
        for (values, halves, shares) in table {
            for (exponent, wanted) in [0.0, 0.4, 0.8, 1.0].into_iter().zip(halves) {
                let (values, seed) = (values as u32, 11);
                let model = match exponent {
                    0.0 => ContentModel::Uniform { values, seed },
                    _ => ContentModel::Zipf {
                        exponent,
                        values,
                        seed,
                    },
                };
                let (share, half) = shape(&model, writes);
                let half = half as f64 / 1e6;
                println!("n {values} a {exponent}: half by {half:.4} M, distinct {share:.4}");
                let digit = if exponent == 1.0 { 0.001 } else { 0.01 };
                assert!(
                    close(half, wanted, digit),
                    "n {values} a {exponent}: {half}, {wanted}"
                );
                let place = [0.0, 0.4, 1.0].iter().position(|&a| a == exponent);
                if let Some(wanted) = place.map(|place| shares[place]) {
                    assert!(
                        close(share, wanted, 0.001),
                        "n {values} a {exponent}: {share}, {wanted}"
                    );
                }
            }
        }
    }
}
