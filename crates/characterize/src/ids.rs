//! Dense numbers for the pages and values that are followed, and who is followed.
//!
//! A page is one 64-bit key: the number of its *region* (2^32 units of one device) and the unit
//! within it. Keys differ exactly where pages do.

use std::hash::Hash;

use flashlore_trace::Access;
use flashlore_trace::overlay::splitmix64;
use rustc_hash::FxHashMap;

use crate::error::CharacterizeError;

/// The most pages, and the most values, that can be followed.
const LIMIT: u32 = 1 << 31;

/// Bits of a page key that count units within a region.
const REGION_BITS: u32 = 32;

/// Follows a fixed share of all keys, chosen by a hash: spatial sampling (SHARDS, Waldspurger et
/// al., FAST 2015).
#[derive(Debug, Clone, Copy)]
pub struct Sampler {
    rate: f64,
    threshold: u64,
}

impl Sampler {
    /// Follows this share, above 0 and at most 1.
    pub fn new(rate: f64) -> Self {
        Self {
            rate,
            // A float becomes the nearest integer there is, so 1.0 is everything.
            threshold: (rate * 2_f64.powi(64)) as u64,
        }
    }

    /// Whether every key is followed.
    pub fn is_exact(&self) -> bool {
        self.threshold == u64::MAX
    }

    /// The share.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Whether this key is followed.
    pub fn follows(&self, key: u64) -> bool {
        self.is_exact() || splitmix64(key) < self.threshold
    }

    /// How many there are when `followed` are followed.
    pub fn scale(&self, followed: u64) -> u64 {
        if self.is_exact() {
            followed
        } else {
            (followed as f64 / self.rate).round() as u64
        }
    }
}

/// Numbers keys from 0 on in order of first appearance.
#[derive(Debug)]
pub struct Ids<K> {
    what: &'static str,
    map: FxHashMap<K, u32>,
}

impl<K: Copy + Eq + Hash> Ids<K> {
    /// No keys yet; `what` they are is for the error.
    pub fn new(what: &'static str) -> Self {
        Self {
            what,
            map: FxHashMap::default(),
        }
    }

    /// How many keys have a number.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// The number of a key, if it has one.
    pub fn get(&self, key: K) -> Option<u32> {
        self.map.get(&key).copied()
    }

    /// The number of a key, which gets one if it has none.
    ///
    /// # Errors
    /// When there are too many.
    pub fn intern(&mut self, key: K) -> Result<u32, CharacterizeError> {
        let next = self.map.len() as u32;
        let id = *self.map.entry(key).or_insert(next);
        if id >= LIMIT {
            return Err(CharacterizeError::TooMany {
                what: self.what,
                limit: LIMIT,
            });
        }
        Ok(id)
    }

    /// All keys with their numbers, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (K, u32)> {
        self.map.iter().map(|(key, id)| (*key, *id))
    }

    /// Bytes held.
    pub fn heap_bytes(&self) -> usize {
        map_bytes(&self.map)
    }
}

/// Bytes a hash table holds: one control byte an entry, and at most seven eighths full.
pub fn map_bytes<K, V>(map: &FxHashMap<K, V>) -> usize {
    map.capacity() * 8 / 7 * (size_of::<(K, V)>() + 1)
}

/// Gives pages their keys.
#[derive(Debug, Default)]
pub struct PageKeys {
    regions: FxHashMap<(u32, u32), u32>,
    cached: Option<((u32, u32), u32)>,
}

impl PageKeys {
    /// The key of a unit of a device.
    pub fn key(&mut self, device: u32, unit: u64) -> u64 {
        let region = (device, (unit >> REGION_BITS) as u32);
        let number = match self.cached {
            Some((cached, number)) if cached == region => number,
            _ => {
                let next = self.regions.len() as u32;
                *self.regions.entry(region).or_insert(next)
            }
        };
        self.cached = Some((region, number));
        u64::from(number) << REGION_BITS | (unit & u64::from(u32::MAX))
    }

    /// The keys of the units of an access, as ranges.
    pub fn ranges(&mut self, access: &Access<'_>) -> Vec<std::ops::Range<u64>> {
        let mut ranges = Vec::new();
        let (mut unit, end) = (access.unit, access.unit + u64::from(access.units));
        while unit < end {
            let to = end.min(((unit >> REGION_BITS) + 1) << REGION_BITS);
            let key = self.key(access.device, unit);
            ranges.push(key..key + (to - unit));
            unit = to;
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    use flashlore_trace::Op;

    use super::*;

    #[test]
    fn keys_differ_where_pages_do() {
        let mut keys = PageKeys::default();
        let mut seen = std::collections::HashSet::new();
        for device in [0, 1, u32::MAX] {
            for unit in [0, 1, u64::from(u32::MAX), 1 << 32, 1 << 33, (1 << 52) - 1] {
                let key = keys.key(device, unit);
                assert!(seen.insert(key));
                assert_eq!(keys.key(device, unit), key);
            }
        }
    }

    #[test]
    fn ranges_break_where_regions_do() {
        let mut keys = PageKeys::default();
        let access = Access {
            time_ns: 0,
            op: Op::Trim,
            device: 3,
            offset: 0,
            length: 0,
            unit: (1 << 32) - 2,
            units: 5,
            values: None,
            delta_ratios: None,
        };
        let ranges = keys.ranges(&access);
        let listed: Vec<u64> = ranges.into_iter().flatten().collect();
        let expected: Vec<u64> = (0..5).map(|at| keys.key(3, (1 << 32) - 2 + at)).collect();
        assert_eq!(listed, expected);
    }

    #[test]
    fn a_sampler_follows_its_share() {
        for rate in [0.5, 0.1, 0.01] {
            let sampler = Sampler::new(rate);
            let followed = (0..200_000).filter(|key| sampler.follows(*key)).count() as f64;
            assert!((followed / 200_000.0 - rate).abs() < 4.0 * (rate / 200_000.0).sqrt());
        }
        assert!(Sampler::new(1.0).is_exact() && Sampler::new(1.0).follows(u64::MAX));
    }
}
