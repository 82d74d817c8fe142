//! Random draws. Profiles are frozen by a hash, and so is what they generate: nothing here depends on
//! an algorithm that another library may change.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A stream of random numbers that its seed determines (xoshiro256++; Blackman, Vigna 2019).
#[derive(Debug, Clone)]
pub(crate) struct Draw(Xoshiro256PlusPlus);

impl Draw {
    /// The stream number `stream` of a seed; streams are independent of one another.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mixed = seed ^ stream.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Draw(Xoshiro256PlusPlus::seed_from_u64(mixed))
    }

    #[inline]
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number in [0, 1).
    #[inline]
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Whether an event of this probability happens.
    #[inline]
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// A whole number below `limit`, which is not 0 (Lemire 2019, without its correction: the bias
    /// is below 2^-32).
    #[inline]
    pub(crate) fn below(&mut self, limit: u32) -> u32 {
        ((u64::from(self.bits() as u32) * u64::from(limit)) >> 32) as u32
    }

    /// An exponentially distributed number.
    #[inline]
    pub(crate) fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }

    /// A whole number from 1 up, geometrically distributed with this mean, which is at least 1.
    #[inline]
    pub(crate) fn geometric(&mut self, mean: f64) -> u32 {
        if mean <= 1.0 {
            return 1;
        }
        let ratio = (1.0 - self.unit()).ln() / (1.0 - 1.0 / mean).ln();
        1 + ratio.min(f64::from(u32::MAX - 1)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_their_means() {
        let mut draw = Draw::new(7, 1);
        let n = 200_000;
        let mean = |f: &mut dyn FnMut() -> f64| (0..n).map(|_| f()).sum::<f64>() / f64::from(n);
        let exponential = mean(&mut || draw.exponential(40.0));
        assert!((exponential - 40.0).abs() < 0.5, "{exponential}");
        let geometric = mean(&mut || f64::from(draw.geometric(6.2)));
        assert!((geometric - 6.2).abs() < 0.06, "{geometric}");
        let below = mean(&mut || f64::from(draw.below(11)));
        assert!((below - 5.0).abs() < 0.03, "{below}");
        assert_eq!(draw.geometric(1.0), 1);
    }

    #[test]
    fn streams_differ_and_repeat() {
        let first = |stream| Draw::new(1, stream).bits();
        assert_ne!(first(0), first(1));
        assert_eq!(first(5), first(5));
    }
}
