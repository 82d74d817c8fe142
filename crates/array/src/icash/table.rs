//! The place table in RAM: of each block where its durable content is, as the last durable group left it.
//!
//! Invariant: `dirty` has every page with an entry that the newest checkpoint does not know.

use std::collections::BTreeSet;

use crate::icash::format::table::ENTRIES;
use crate::icash::place::{BlockEntry, RawEntry};

#[derive(Debug)]
pub struct Table {
    entries: Vec<RawEntry>,
    dirty: BTreeSet<u32>,
    /// As in [`crate::icash::format::Root::copies`].
    copies: Vec<u8>,
}

impl Table {
    /// That of so many blocks never written, with these copies of its pages.
    pub fn new(blocks: u64, copies: Vec<u8>) -> Self {
        Table {
            entries: vec![RawEntry::default(); blocks as usize],
            dirty: BTreeSet::new(),
            copies,
        }
    }

    pub fn len(&self) -> u32 {
        self.entries.len() as u32
    }

    pub fn get(&self, block: u32) -> BlockEntry {
        let raw = self.entries[block as usize];
        raw.entry().expect("only entries are stored")
    }

    pub fn set(&mut self, block: u32, entry: BlockEntry) {
        self.entries[block as usize] = entry.into();
        self.dirty.insert(block / ENTRIES as u32);
    }

    /// Fills a page with what a checkpoint wrote; false if an entry is none.
    pub fn load(&mut self, page: u32, entries: &[RawEntry]) -> bool {
        let first = page as usize * ENTRIES;
        let places = self.entries[first..].iter_mut().zip(entries);
        for (place, &entry) in places {
            if entry.entry().is_none() {
                return false;
            }
            *place = entry;
        }
        true
    }

    pub fn page(&self, page: u32) -> &[RawEntry] {
        let first = page as usize * ENTRIES;
        &self.entries[first..self.entries.len().min(first + ENTRIES)]
    }

    /// Pages that a checkpoint must write.
    pub fn dirty(&self) -> &BTreeSet<u32> {
        &self.dirty
    }

    /// Which copy of each page counts.
    pub fn copies(&self) -> &[u8] {
        &self.copies
    }

    /// Notes that a checkpoint wrote the dirty pages, and where.
    pub fn checkpointed(&mut self, copies: Vec<u8>) {
        self.copies = copies;
        self.dirty.clear();
    }

    pub fn heap_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<RawEntry>() + self.copies.capacity()
    }
}
