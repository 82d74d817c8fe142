//! What several test files of this crate share: small devices with simple settings, devices
//! drawn at random, and a seeded source of random numbers.
#![allow(dead_code)]

pub mod devices;
pub mod maps;
pub mod policies;
pub mod values;

use flashlore_flash::memory::MemoryFlash;
use flashlore_flash::record::Recorded;
use flashlore_flash::rules::Checked;
use flashlore_flash::sim::{Concurrency, NandSim, Timing};
use flashlore_flash::{Geometry, Time};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Exported pages of a device with spare space given as (raw - exported) / exported.
pub fn exported(geometry: &Geometry, spare: f64) -> u32 {
    (f64::from(geometry.units()) / (1.0 + spare)).round() as u32
}

/// Flash in memory that holds every operation to the rules of NAND and writes it down. One type for all tests:
/// a device on each other type is compiled anew.
pub type Medium<P> = Recorded<Checked<MemoryFlash<P>>>;

/// Empty flash.
pub fn medium<P: Clone>(geometry: &Geometry) -> Medium<P> {
    Recorded::new(Checked::new(MemoryFlash::new(geometry.clone())))
}

/// SLC with the bus of `spec/timing.md` section 8, private channels.
pub fn slc() -> Timing {
    Timing {
        read: 25_000,
        program: vec![200_000],
        erase: 1_500_000,
        transfer: 102_400,
        shared_channel: false,
        concurrency: Concurrency::Die,
        erase_suspend: false,
    }
}

/// One die with one plane, in simulated time.
pub fn single_plane(blocks: u32, pages_per_block: u32, timing: Timing) -> NandSim {
    let geometry = Geometry::single_plane(blocks, pages_per_block, 4096).unwrap();
    NandSim::new(geometry, timing)
}

/// A seeded source of random numbers.
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// A number below `bound`, each with the same chance.
    pub fn below(&mut self, bound: u32) -> u32 {
        ((u128::from(self.0.next_u64()) * u128::from(bound)) >> 64) as u32
    }

    /// A number of the open interval (0, 1).
    pub fn unit(&mut self) -> f64 {
        ((self.0.next_u64() >> 12) as f64 + 0.5) / (1u64 << 52) as f64
    }

    /// An exponentially distributed time.
    pub fn exponential(&mut self, mean: f64) -> Time {
        (-mean * self.unit().ln()) as Time
    }
}
