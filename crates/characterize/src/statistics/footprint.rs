//! Distinct pages, by what is done with them (definition 4).

use serde::{Deserialize, Serialize};

use crate::ids::Sampler;
use crate::measures::place;

const READ: u8 = 1;
const WRITTEN: u8 = 2;
const READ_FIRST: u8 = 4;

/// Distinct pages read or written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Footprint {
    /// Pages read or written.
    pub pages: u64,
    /// Pages read and never written.
    pub only_read: u64,
    /// Pages written and never read.
    pub only_written: u64,
    /// Pages read and written.
    pub both: u64,
    /// Pages whose first access is a read.
    pub read_first: u64,
}

/// Remembers what was done with each page that is followed.
#[derive(Debug, Default)]
pub(crate) struct FootprintCounter {
    pages: Vec<u8>,
}

impl FootprintCounter {
    /// A page is read or written.
    pub fn observe(&mut self, page: u32, write: bool) {
        let marks = place(&mut self.pages, page as usize, 0);
        *marks |= match (write, *marks) {
            (true, _) => WRITTEN,
            (false, 0) => READ | READ_FIRST,
            (false, _) => READ,
        };
    }

    /// The counts.
    pub fn finish(self, sampler: Sampler) -> Footprint {
        let count = |wanted: fn(u8) -> bool| {
            let pages = self.pages.iter().filter(|marks| wanted(**marks)).count();
            sampler.scale(pages as u64)
        };
        let only_read = count(|marks| marks & (READ | WRITTEN) == READ);
        let only_written = count(|marks| marks & (READ | WRITTEN) == WRITTEN);
        let both = count(|marks| marks & (READ | WRITTEN) == READ | WRITTEN);
        Footprint {
            pages: only_read + only_written + both,
            only_read,
            only_written,
            both,
            read_first: count(|marks| marks & READ_FIRST != 0),
        }
    }

    /// Bytes held.
    pub fn heap_bytes(&self) -> usize {
        self.pages.capacity()
    }
}
