//! What the caller decides.

use serde::{Deserialize, Serialize};

use crate::error::CharacterizeError;

/// Sizes of the index at which the misses of popular values are counted, unless others are given.
pub const DEFAULT_INDEX_SIZES: [u64; 5] = [16 << 10, 64 << 10, 128 << 10, 256 << 10, 1 << 20];

/// What is looked at, and how closely.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// Length of a slice of trace time in nanoseconds; without it there are no slices.
    pub slice_ns: Option<u64>,
    /// Share of the values and of the pages that are followed, above 0 and at most 1. At 1
    /// everything is exact.
    pub sample_rate: f64,
    /// Sizes of the fingerprint index, in entries, for the misses of popular values.
    pub index_sizes: Vec<u64>,
    /// Capacities in bytes whose protection window is asked for.
    pub capacities: Vec<u64>,
}

impl Default for Options {
    /// Everything exact, no slices, no capacities.
    fn default() -> Self {
        Self {
            slice_ns: None,
            sample_rate: 1.0,
            index_sizes: DEFAULT_INDEX_SIZES.to_vec(),
            capacities: Vec::new(),
        }
    }
}

impl Options {
    /// Whether the options mean something.
    ///
    /// # Errors
    /// Names the option that does not, with what it may be.
    pub fn check(&self) -> Result<(), CharacterizeError> {
        let bad = |option, found: String, expected| {
            Err(CharacterizeError::Option {
                option,
                found,
                expected,
            })
        };
        if self.slice_ns == Some(0) {
            return bad("slice", "0".into(), "a duration above 0");
        }
        if !(self.sample_rate > 0.0 && self.sample_rate <= 1.0) {
            let found = self.sample_rate.to_string();
            return bad("sample", found, "a share above 0 and at most 1");
        }
        if self.index_sizes.contains(&0) {
            return bad("index size", "0".into(), "at least one entry");
        }
        if self.capacities.contains(&0) {
            return bad("capacity", "0".into(), "a size above 0");
        }
        Ok(())
    }
}

/// Bytes of a page.
pub const PAGE_BYTES: usize = 4096;

/// Gives the bytes of values.
pub trait PageSource {
    /// Fills `into` with the bytes of a value and says whether they are known; where they are not,
    /// `into` may hold anything.
    fn fill(&self, value: u32, into: &mut [u8; PAGE_BYTES]) -> bool;
}
