//! Addresses drawn at random: all alike, or some far more often than others.

use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// How often which address comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addresses {
    Uniform,
    /// The n-th most frequent one in proportion to n^-.99, as YCSB has it; those lie all over the volume.
    Zipf,
}

const EXPONENT: f64 = 0.99;
/// A prime, so that multiplying by it modulo any number of pages below it takes no two ranks to one page.
const SPREAD: u64 = 4_294_967_291;

/// Draws addresses of so many pages.
pub struct Draw {
    addresses: Addresses,
    pages: u64,
    zipf: Zipf,
}

impl Draw {
    pub fn new(addresses: Addresses, pages: u32) -> Self {
        Draw {
            addresses,
            pages: pages.into(),
            zipf: Zipf::new(pages.into()),
        }
    }

    pub fn next(&self, random: &mut Xoshiro256PlusPlus) -> u32 {
        let drawn = match self.addresses {
            Addresses::Uniform => random.next_u64() % self.pages,
            Addresses::Zipf => self.zipf.rank(random) * SPREAD % self.pages,
        };
        drawn as u32
    }
}

/// Ranks from 0, by rejection from the inverse of a function that bounds the distribution (Hörmann and Derflinger 1996).
struct Zipf {
    count: f64,
    first: f64,
    last: f64,
    near: f64,
}

impl Zipf {
    fn new(count: u64) -> Self {
        let count = count as f64;
        Zipf {
            count,
            first: integral(1.5) - 1.0,
            last: integral(count + 0.5),
            near: 2.0 - inverse(integral(2.5) - density(2.0)),
        }
    }

    fn rank(&self, random: &mut Xoshiro256PlusPlus) -> u64 {
        loop {
            let unit = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
            let at = self.last + unit * (self.first - self.last);
            let x = inverse(at);
            let rank = x.round().clamp(1.0, self.count);
            if rank - x <= self.near || at >= integral(rank + 0.5) - density(rank) {
                return rank as u64 - 1;
            }
        }
    }
}

fn density(x: f64) -> f64 {
    x.powf(-EXPONENT)
}

fn integral(x: f64) -> f64 {
    (x.powf(1.0 - EXPONENT) - 1.0) / (1.0 - EXPONENT)
}

fn inverse(y: f64) -> f64 {
    (1.0 + (1.0 - EXPONENT) * y).powf(1.0 / (1.0 - EXPONENT))
}
