//! The place table in RAM: of each block where its durable content is, and of each frozen place what is in it, as the
//! last durable group left it.
//!
//! Invariant: `dirty` has every page with an entry that the newest checkpoint does not know.

use std::collections::BTreeSet;

use crate::icash::format::table::{ENTRIES, pages_of};
use crate::icash::place::{BlockEntry, Frozen, RawEntry};
use crate::index::{ArrayBlock, FrozenPlace, TablePage};

#[derive(Debug)]
pub struct Table {
    entries: Vec<RawEntry>,
    frozen: Vec<RawEntry>,
    dirty: BTreeSet<TablePage>,
    /// As in [`crate::icash::format::Root::copies`].
    copies: Vec<u8>,
}

impl Table {
    /// That of so many blocks and frozen places never written, with these copies of its pages.
    pub fn new(blocks: u64, frozen: u32, copies: Vec<u8>) -> Self {
        Table {
            entries: vec![RawEntry::default(); blocks as usize],
            frozen: vec![RawEntry::default(); frozen as usize],
            dirty: BTreeSet::new(),
            copies,
        }
    }

    pub fn len(&self) -> u32 {
        self.entries.len() as u32
    }

    pub fn has(&self, block: ArrayBlock) -> bool {
        block.0 < self.len()
    }

    /// All blocks, in order.
    pub fn blocks(&self) -> impl Iterator<Item = ArrayBlock> + use<> {
        ArrayBlock::first(self.len())
    }

    pub fn get(&self, block: ArrayBlock) -> BlockEntry {
        let raw = self.entries[block.index()];
        raw.entry().expect("only entries are stored")
    }

    pub fn set(&mut self, block: ArrayBlock, entry: BlockEntry) {
        self.entries[block.index()] = entry.into();
        self.dirty.insert(TablePage(block.0 / ENTRIES as u32));
    }

    /// How many frozen places there are.
    pub fn frozen_places(&self) -> u32 {
        self.frozen.len() as u32
    }

    /// What a frozen place is said to hold. If nobody uses that data block any more the place is free.
    pub fn frozen(&self, place: FrozenPlace) -> Option<Frozen> {
        let raw = self.frozen[place.index()];
        raw.frozen().expect("only entries are stored")
    }

    pub fn set_frozen(&mut self, place: FrozenPlace, frozen: Frozen) {
        self.frozen[place.index()] = frozen.into();
        let page = self.block_pages() + place.0 / ENTRIES as u32;
        self.dirty.insert(TablePage(page));
    }

    fn block_pages(&self) -> u32 {
        pages_of(self.entries.len() as u64) as u32
    }

    /// Fills a page with what a checkpoint wrote; false if an entry is none.
    pub fn load(&mut self, page: TablePage, entries: &[RawEntry]) -> bool {
        let (is_one, places): (fn(&RawEntry) -> bool, _) =
            match page.0.checked_sub(self.block_pages()) {
                Some(page) => (
                    |raw| raw.frozen().is_some(),
                    &mut self.frozen[page as usize * ENTRIES..],
                ),
                None => (
                    |raw| raw.entry().is_some(),
                    &mut self.entries[page.index() * ENTRIES..],
                ),
            };
        for (place, &entry) in places.iter_mut().zip(entries) {
            if !is_one(&entry) {
                return false;
            }
            *place = entry;
        }
        true
    }

    pub fn page(&self, page: TablePage) -> &[RawEntry] {
        let (entries, page) = match page.0.checked_sub(self.block_pages()) {
            Some(page) => (&self.frozen, page as usize),
            None => (&self.entries, page.index()),
        };
        let first = page * ENTRIES;
        &entries[first..entries.len().min(first + ENTRIES)]
    }

    /// Pages that a checkpoint must write.
    pub fn dirty(&self) -> &BTreeSet<TablePage> {
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
        (self.entries.capacity() + self.frozen.capacity()) * size_of::<RawEntry>()
            + self.copies.capacity()
    }
}
