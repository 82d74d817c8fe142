//! Where everything lies: two roots, two places for each page of counts, and the slots.
//!
//! Commit n has root n mod 2. A page of counts is written to the place that the last root does not name.

use crate::address::Slot;
use crate::page::PAGE_BYTES;
use crate::root;
use crate::space::COUNTS_PER_PAGE;

const PAGE: u64 = PAGE_BYTES as u64;

/// The part of a medium that a store has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Area {
    /// Where it begins: a multiple of the bytes of a page.
    pub at: u64,
    /// Slots there are. All pages of all tables, and as many more as are changed between two commits, have to fit.
    pub slots: u32,
    /// Tables there may be.
    pub tables: u16,
    /// Bytes that a root has for its user.
    pub user_bytes: u32,
}

impl Area {
    /// Bytes that it takes.
    pub fn bytes(&self) -> u64 {
        self.slots_at() + u64::from(self.slots) * PAGE - self.at
    }

    /// Bytes of a root.
    pub fn root_bytes(&self) -> usize {
        root::bytes(self).next_multiple_of(PAGE_BYTES)
    }

    /// Where the root of a commit lies.
    pub fn root(&self, commit: u64) -> u64 {
        self.at + commit % 2 * self.root_bytes() as u64
    }

    /// Pages of counts.
    pub fn count_pages(&self) -> u32 {
        self.slots.div_ceil(COUNTS_PER_PAGE)
    }

    fn counts_at(&self) -> u64 {
        self.at + 2 * self.root_bytes() as u64
    }

    /// The place of a copy, 0 or 1, of a page of counts.
    pub fn counts(&self, page: u32, copy: u32) -> u64 {
        self.counts_at() + (u64::from(page) * 2 + u64::from(copy)) * PAGE
    }

    fn slots_at(&self) -> u64 {
        self.counts_at() + u64::from(self.count_pages()) * 2 * PAGE
    }

    /// Where a slot lies.
    pub fn slot(&self, slot: Slot) -> u64 {
        self.slots_at() + u64::from(slot) * PAGE
    }
}
