//! R_c: the size of a page write's compressed delta to the page's old content, over the size of
//! a page.

use serde::{Deserialize, Serialize};

use super::draw::Draws;
use crate::convert::RateWrites;
use crate::error::{Error, Result};
use crate::record::{Op, Record, chunks};

/// The ratio 1, in the unit of all ratios: 1/65535.
pub const FULL_RATIO: u16 = u16::MAX;

/// The stream of random numbers that ratios take.
const STREAM: u64 = 0x0064_656c_7461;

/// Where R_c comes from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum DeltaModel {
    /// The trace's own ratios; none where it has none.
    FromTrace,
    /// Normally distributed and independent for each page write; what falls outside (0, 1] becomes
    /// the nearest ratio within.
    Gaussian {
        /// Mean, above 0 and at most 1.
        mean: f64,
        /// Standard deviation, at least 0.
        std: f64,
        /// Seed of the draws.
        seed: u64,
    },
}

impl DeltaModel {
    /// What gives a trace's writes ratios when it is converted; `None` where they stay its own.
    ///
    /// Chunks are numbered as page writes are: over whole pages, and with all devices kept, it draws
    /// what a workload of the model has.
    pub fn rater(&self) -> Result<Option<Box<dyn RateWrites>>> {
        let ratios = self.begin()?;
        Ok(ratios.map(|ratios| Box::new(RateByDraw { ratios, next: 0 }) as _))
    }

    /// What draws the ratios of one pass; `None` where the trace itself tells.
    pub(crate) fn begin(&self) -> Result<Option<Ratios>> {
        let DeltaModel::Gaussian { mean, std, seed } = *self else {
            return Ok(None);
        };
        if !(mean > 0.0 && mean <= 1.0) {
            return Err(Error::Layout(format!(
                "the mean of R_c is {mean}, expected a number above 0 and at most 1"
            )));
        }
        if !(std >= 0.0 && std.is_finite()) {
            return Err(Error::Layout(format!(
                "the standard deviation of R_c is {std}, expected a number of at least 0"
            )));
        }
        Ok(Some(Ratios {
            mean,
            std,
            draws: Draws::new(seed, STREAM),
        }))
    }
}

/// Gives each chunk written what is drawn for its number.
struct RateByDraw {
    ratios: Ratios,
    next: u64,
}

impl RateWrites for RateByDraw {
    fn rate(&mut self, record: &Record<'_>, out: &mut Vec<u16>) -> std::result::Result<(), String> {
        if record.op == Op::Write {
            let end = self.next + chunks(record.length);
            out.extend((self.next..end).map(|number| self.ratios.of(number)));
            self.next = end;
        }
        Ok(())
    }
}

/// Draws the ratios of page writes.
#[derive(Debug)]
pub(crate) struct Ratios {
    mean: f64,
    std: f64,
    draws: Draws,
}

impl Ratios {
    /// R_c of a page write, in 1/65535; never 0.
    #[inline]
    pub(crate) fn of(&self, number: u64) -> u16 {
        let mut random = self.draws.of(number);
        // Box and Muller; the first fraction is above 0.
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - random.fraction()));
        let normal = radius * libm::cos(std::f64::consts::TAU * random.fraction());
        let ratio = (self.mean + self.std * normal) * f64::from(FULL_RATIO);
        ratio.round().clamp(1.0, f64::from(FULL_RATIO)) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratios(mean: f64, std: f64, seed: u64) -> Vec<f64> {
        let model = DeltaModel::Gaussian { mean, std, seed };
        let ratios = model.begin().unwrap().unwrap();
        (0..200_000)
            .map(|number| f64::from(ratios.of(number)) / f64::from(FULL_RATIO))
            .collect()
    }

    #[test]
    fn mean_spread_and_shape_are_those_asked_for() {
        for (mean, std) in [(0.5, 0.1), (0.35, 0.1), (0.2, 0.04)] {
            let all = ratios(mean, std, 5);
            let n = all.len() as f64;
            let found = all.iter().sum::<f64>() / n;
            let spread = (all.iter().map(|r| (r - found).powi(2)).sum::<f64>() / n).sqrt();
            assert!((found - mean).abs() < 4.0 * std / n.sqrt(), "{found}");
            assert!((spread / std - 1.0).abs() < 0.01, "{spread}");
            // Shares within one, two and three standard deviations.
            for (times, share) in [(1.0, 0.682_69), (2.0, 0.954_50), (3.0, 0.997_30)] {
                let within = all
                    .iter()
                    .filter(|r| (*r - mean).abs() < times * std)
                    .count();
                assert!(
                    (within as f64 / n - share).abs() < 0.005,
                    "{times}: {within}"
                );
            }
        }
        assert_eq!(ratios(0.4, 0.1, 1), ratios(0.4, 0.1, 1));
        assert_ne!(ratios(0.4, 0.1, 1), ratios(0.4, 0.1, 2));
    }

    #[test]
    fn ratios_stay_above_0_and_at_most_1() {
        let all = ratios(0.5, 1.0, 0);
        let (low, high) = (1.0 / f64::from(FULL_RATIO), 1.0);
        assert!(all.iter().all(|ratio| (low..=high).contains(ratio)));
        // 30.85 % of a normal distribution lie half a deviation below its mean, as many above.
        for end in [low, high] {
            let share = all.iter().filter(|&&ratio| ratio == end).count() as f64 / 200_000.0;
            assert!((share - 0.3085).abs() < 0.005, "{share}");
        }
        assert!(
            ratios(0.25, 0.0, 0)
                .iter()
                .all(|ratio| (ratio - 0.25).abs() < 1e-5)
        );
    }

    #[test]
    fn parameters_out_of_bounds_are_named() {
        for (mean, std, wanted) in [
            (0.0, 0.1, "the mean of R_c is 0, expected"),
            (1.1, 0.1, "the mean of R_c is 1.1"),
            (f64::NAN, 0.1, "the mean of R_c is NaN"),
            (0.5, -0.1, "the standard deviation of R_c is -0.1"),
            (0.5, f64::INFINITY, "the standard deviation of R_c is inf"),
        ] {
            let model = DeltaModel::Gaussian { mean, std, seed: 0 };
            let error = model.begin().unwrap_err().to_string();
            assert!(error.contains(wanted), "{error}");
        }
    }
}
