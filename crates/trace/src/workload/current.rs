//! The value every unit holds at this point of a trace.

use std::collections::BTreeMap;

/// Units of one chunk.
const CHUNK_UNITS: u64 = 256;

/// Says that a unit's content is not known. No value has this id.
pub const NO_VALUE: u32 = u32::MAX;

/// Value ids by device slot and unit, in memory proportional to what is touched.
#[derive(Debug, Default)]
pub struct CurrentValues {
    index: BTreeMap<(u32, u64), u32>,
    chunks: Vec<[u32; CHUNK_UNITS as usize]>,
    cached: Option<((u32, u64), u32)>,
}

impl CurrentValues {
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Replaces the value of a unit and returns the one before.
    #[inline]
    pub fn replace(&mut self, device: u32, unit: u64, value: u32) -> u32 {
        let key = (device, unit / CHUNK_UNITS);
        let slot = match self.slot(key) {
            Some(slot) => slot,
            None if value == NO_VALUE => return NO_VALUE,
            None => {
                let slot = self.chunks.len() as u32;
                self.chunks.push([NO_VALUE; CHUNK_UNITS as usize]);
                self.index.insert(key, slot);
                slot
            }
        };
        self.cached = Some((key, slot));
        let place = &mut self.chunks[slot as usize][(unit % CHUNK_UNITS) as usize];
        std::mem::replace(place, value)
    }

    #[inline]
    pub fn get(&mut self, device: u32, unit: u64) -> u32 {
        let key = (device, unit / CHUNK_UNITS);
        match self.slot(key) {
            None => NO_VALUE,
            Some(slot) => self.chunks[slot as usize][(unit % CHUNK_UNITS) as usize],
        }
    }

    /// Forgets the values of the units `from..to`.
    pub fn forget(&mut self, device: u32, from: u64, to: u64) {
        if from >= to {
            return;
        }
        let keys = (device, from / CHUNK_UNITS)..=(device, (to - 1) / CHUNK_UNITS);
        for (&(_, chunk), &slot) in self.index.range(keys) {
            let first = chunk * CHUNK_UNITS;
            let low = from.saturating_sub(first) as usize;
            let high = (to - first).min(CHUNK_UNITS) as usize;
            self.chunks[slot as usize][low..high].fill(NO_VALUE);
        }
    }

    #[inline]
    fn slot(&self, key: (u32, u64)) -> Option<u32> {
        match self.cached {
            Some((cached, slot)) if cached == key => Some(slot),
            _ => self.index.get(&key).copied(),
        }
    }
}
