//! Lengths drawn at random: what a simulation without bytes knows of a delta.
//!
//! DeltaFTL (EuroSys 2012, section 5.1) emulates content by a compression ratio R_c of Gaussian
//! distribution, drawn for each write anew. Here the draw depends on the seed, on the two values and on
//! nothing else, so that it does not matter in which order writes are encoded, or how often.

use flashlore_flash::PackSlot;

use super::{Encoder, Value};
use crate::page::{PageTag, spread};

const PAGE_BYTES: f64 = 4096.0;

/// How long encoded values are, as shares of a page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// Mean of R_c.
    pub mean: f64,
    /// Its standard deviation.
    pub deviation: f64,
}

/// The smallest R_c that is drawn; there is no largest, and what is longer than its limit is not
/// encoded (`spec/delta-ftl.md` sections 4 and 8.12).
const LEAST: f64 = 0.01;

/// Draws lengths.
#[derive(Debug, Clone, Copy)]
pub struct Drawn {
    delta: Ratio,
    alone: Ratio,
    seed: u64,
}

impl Drawn {
    /// Of deltas, and of values compressed by themselves.
    pub fn new(delta: Ratio, alone: Ratio, seed: u64) -> Self {
        Drawn { delta, alone, seed }
    }

    /// The length of one draw, if it is at most `limit`.
    fn draw(&self, ratio: Ratio, key: u64, limit: u16) -> Option<u16> {
        let r_c = (ratio.mean + ratio.deviation * normal(self.seed, key)).max(LEAST);
        let bytes = (r_c * PAGE_BYTES).round();
        (bytes <= f64::from(limit)).then_some(bytes as u16)
    }
}

impl Encoder<PageTag, ()> for Drawn {
    type Encoded = ();

    fn delta(
        &mut self,
        base: Value<'_, PageTag, ()>,
        new: Value<'_, PageTag, ()>,
        limit: u16,
    ) -> Option<(u16, ())> {
        let key = u64::from(base.content.0) << 32 | u64::from(new.content.0);
        Some((self.draw(self.delta, key, limit)?, ()))
    }

    fn alone(&mut self, new: Value<'_, PageTag, ()>, limit: u16) -> Option<(u16, ())> {
        // Not the key of any two values that differ.
        let key = u64::from(new.content.0) << 32 | u64::from(new.content.0);
        Some((self.draw(self.alone, key, limit)?, ()))
    }

    fn decode(&mut self, _base: Option<&()>, _encoded: &()) {}

    fn pack(&mut self, _values: &[()]) {}

    fn unpack(&mut self, _page: &(), _slot: PackSlot) {}
}

/// A number of the standard normal distribution for a seed and a key (Box and Muller, 1958).
fn normal(seed: u64, key: u64) -> f64 {
    let first = spread(seed ^ spread(key));
    let second = spread(first);
    let unit = |bits: u64| ((bits >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    (-2.0 * unit(first).ln()).sqrt() * (std::f64::consts::TAU * unit(second)).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_the_mean_and_deviation_asked_for_and_repeat() {
        let ratio = Ratio {
            mean: 0.35,
            deviation: 0.05,
        };
        let mut drawn = Drawn::new(ratio, ratio, 7);
        let mut length = |base, new| {
            let value = |content| Value {
                content: PageTag(content),
                page: &(),
            };
            drawn.delta(value(base), value(new), 4084)
        };
        let lengths: Vec<f64> = (0..20_000)
            .map(|new| f64::from(length(3, new).unwrap().0) / 4096.0)
            .collect();
        let mean = lengths.iter().sum::<f64>() / 20_000.0;
        let square = lengths.iter().map(|l| (l - mean).powi(2)).sum::<f64>() / 20_000.0;
        assert!((mean - 0.35).abs() < 0.002, "{mean}");
        assert!((square.sqrt() - 0.05).abs() < 0.002, "{}", square.sqrt());
        assert_eq!(length(3, 5), length(3, 5));
        assert_ne!(length(3, 5), length(5, 3));
    }

    #[test]
    fn what_is_longer_than_the_limit_is_not_encoded() {
        let ratio = Ratio {
            mean: 0.5,
            deviation: 0.0,
        };
        let mut drawn = Drawn::new(ratio, ratio, 7);
        let value = Value {
            content: PageTag(1),
            page: &(),
        };
        assert_eq!(drawn.alone(value, 2047), None);
        assert_eq!(drawn.alone(value, 2048), Some((2048, ())));
    }
}
