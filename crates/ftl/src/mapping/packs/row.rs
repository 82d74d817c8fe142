//! What is counted of one packed page, as a row of a table, and of all of them.
//!
//! Invariant: a row is 16 bytes, in the order of its fields.

use flashlore_flash::geometry::UNIT_BYTES;
use flashlore_flash::{PackId, Ppn, Row};

use super::HEADER_BYTES;

/// What is counted of one packed page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pack {
    /// Where it lies; nowhere while it is being filled; of a free one, the next free one.
    pub(super) location: Ppn,
    /// Which of the pages that were ever filled it is.
    pub(super) number: u32,
    /// What all slots take, and the named ones.
    pub(super) written_bytes: u16,
    pub(super) named_bytes: u16,
    pub(super) live_slots: u16,
    /// Whether it stands in line to be merged.
    pub(super) in_line: bool,
}

impl Pack {
    /// One that is free, before another.
    pub(super) fn free(next: PackId) -> Self {
        Pack {
            location: Ppn(next.0),
            number: 0,
            written_bytes: 0,
            named_bytes: 0,
            live_slots: 0,
            in_line: false,
        }
    }

    /// One that holds something and lies on flash, if it does.
    pub fn on_flash(&self) -> Option<RestoredPack> {
        let is_it = self.named_bytes > 0 && self.location.is_some();
        is_it.then_some(RestoredPack {
            location: self.location,
            number: self.number,
            written_bytes: self.written_bytes,
        })
    }

    /// Of a free one, the next free one.
    pub fn next_free(&self) -> PackId {
        PackId(self.location.0)
    }

    /// Whether it may be on a device of so many units.
    pub fn is_possible(&self, units: u32) -> bool {
        let lies = self.location.0 < units || !self.location.is_some();
        let written = self.written_bytes;
        lies && self.named_bytes <= written && u32::from(written) + HEADER_BYTES <= UNIT_BYTES
    }

    /// What its slots take, those that name no object too, and what those take that do; how many are live.
    pub fn counted(&self) -> (u16, u16, u16) {
        (self.written_bytes, self.named_bytes, self.live_slots)
    }

    pub(super) fn is_live(&self) -> bool {
        self.live_slots > 0 && self.location.is_some()
    }

    /// Bytes of its unit that nobody refers to.
    pub(super) fn dead_bytes(&self) -> u32 {
        u32::from(self.written_bytes.saturating_sub(self.named_bytes))
    }
}

impl Row for Pack {
    const BYTES: usize = 16;

    fn encode(self, out: &mut [u8]) {
        self.location.encode(&mut out[..4]);
        self.number.encode(&mut out[4..8]);
        let in_line = u16::from(self.in_line);
        let counts = [
            self.written_bytes,
            self.named_bytes,
            self.live_slots,
            in_line,
        ];
        for (count, out) in counts.iter().zip(out[8..16].chunks_exact_mut(2)) {
            out.copy_from_slice(&count.to_le_bytes());
        }
    }

    fn decode(bytes: &[u8]) -> Self {
        let number = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        Pack {
            location: Ppn::decode(&bytes[..4]),
            number: u32::decode(&bytes[4..8]),
            written_bytes: number(8),
            named_bytes: number(10),
            live_slots: number(12),
            in_line: number(14) & 1 != 0,
        }
    }
}

/// What is counted of all packed pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackTallies {
    /// Numbers that were ever used.
    pub numbers: u32,
    /// The first free one of them.
    pub free: PackId,
    /// Pages on flash that hold anything.
    pub on_flash: u32,
    /// Those of them with deltas that logical pages need.
    pub live: u32,
    /// How many pages were ever filled.
    pub filled: u64,
}

impl Default for PackTallies {
    fn default() -> Self {
        PackTallies {
            numbers: 0,
            free: PackId::NONE,
            on_flash: 0,
            live: 0,
            filled: 0,
        }
    }
}

/// A packed page on flash as a recovery found it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestoredPack {
    /// Where it lies.
    pub location: Ppn,
    /// Which of the pages that were ever filled it is.
    pub number: u32,
    /// What its slots take, those of no object too.
    pub written_bytes: u16,
}

/// A packed page on flash that has no number yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewPack {
    /// Where it lies.
    pub location: Ppn,
    /// What its slots take, those of no object too.
    pub written_bytes: u16,
}
