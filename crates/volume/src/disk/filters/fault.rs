//! Making requests fail, by chance from a seed: the same requests in the same order fail again.

use parking_lot::Mutex;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{Filter, Request};
use crate::disk::device::DiskError;

/// Makes a share of requests fail before the device sees them.
#[derive(Debug)]
pub struct Fault {
    /// Shares from 0 to 1: reads, changes, flushes.
    shares: [f64; 3],
    draws: Mutex<Xoshiro256PlusPlus>,
}

impl Fault {
    /// Shares of reads, of writes, zeroes and trims, and of flushes, from 0 to 1.
    pub fn new(reads: f64, writes: f64, flushes: f64, seed: u64) -> Self {
        Fault {
            shares: [reads, writes, flushes],
            draws: Mutex::new(Xoshiro256PlusPlus::seed_from_u64(seed)),
        }
    }
}

impl Filter for Fault {
    fn around(
        &self,
        request: Request<'_>,
        inner: &mut dyn FnMut() -> Result<(), DiskError>,
    ) -> Result<(), DiskError> {
        let share = match request {
            Request::Read(..) => self.shares[0],
            Request::Write(..) | Request::Zero(..) | Request::Trim(..) => self.shares[1],
            Request::Flush => self.shares[2],
        };
        let mut draws = self.draws.lock();
        // 53 bits are what a double holds.
        let drawn = (draws.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        drop(draws);
        match drawn < share {
            true => Err(DiskError::Injected),
            false => inner(),
        }
    }
}
