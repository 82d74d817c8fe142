//! Seeded draws.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A source of numbers that depends on its seed alone.
pub struct Draw(Xoshiro256PlusPlus);

impl Draw {
    pub fn new(seed: u64) -> Self {
        Draw(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    pub fn number(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `limit`, which is not 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0.next_u64() % limit
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// At most `count` of the numbers from 1 to `last`, in order.
    pub fn sample(&mut self, last: u64, count: usize) -> Vec<u64> {
        let mut numbers: Vec<u64> = (1..=last).collect();
        while numbers.len() > count {
            let index = self.below(numbers.len() as u64) as usize;
            numbers.swap_remove(index);
        }
        numbers.sort_unstable();
        numbers
    }
}
