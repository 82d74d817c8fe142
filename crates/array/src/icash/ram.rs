//! Data blocks in RAM: the contents that were read or written last (paper, sections 3.2 and 3.3, Figure 5).
//!
//! Invariants: at most as many as the budget says; each is the present content of its block. Nothing depends on one:
//! what it holds is in the log, on a medium or in a delta as well.

use std::collections::HashMap;

use flashlore_delta::Page;

use crate::index::{ArrayBlock, index};
use crate::lru::Lru;
use crate::put;

index!(
    /// A place for one of them.
    RamPlace
);

#[derive(Debug)]
pub struct DataBlocks {
    budget: u32,
    /// By place: the block and its content.
    held: Vec<(ArrayBlock, Box<Page>)>,
    free: Vec<RamPlace>,
    of_block: HashMap<ArrayBlock, RamPlace>,
    order: Lru<RamPlace>,
}

impl DataBlocks {
    /// None yet, and at most so many.
    pub fn new(budget: u32) -> Self {
        DataBlocks {
            budget,
            held: Vec::new(),
            free: Vec::new(),
            of_block: HashMap::new(),
            order: Lru::new(),
        }
    }

    pub fn get(&self, block: ArrayBlock) -> Option<&Page> {
        let place = self.of_block.get(&block)?;
        Some(&self.held[place.index()].1)
    }

    /// Holds the present content of a block, as that of the last access; the oldest gives way.
    pub fn put(&mut self, block: ArrayBlock, page: &Page) {
        if self.budget == 0 {
            return;
        }
        if let Some(&place) = self.of_block.get(&block) {
            self.held[place.index()].1.copy_from_slice(page);
            self.order.touch(place);
            return;
        }
        if self.order.len() == self.budget {
            let oldest = self.order.oldest_first().next();
            if let Some(oldest) = oldest {
                self.remove(self.held[oldest.index()].0);
            }
        }
        let place = put(&mut self.held, &mut self.free, (block, Box::new(*page)));
        self.of_block.insert(block, place);
        self.order.touch(place);
    }

    /// Forgets a block whose content changes, or that nobody remembers any more.
    pub fn remove(&mut self, block: ArrayBlock) {
        if let Some(place) = self.of_block.remove(&block) {
            self.order.remove(place);
            self.free.push(place);
        }
    }

    /// The blocks whose contents are here.
    pub fn blocks(&self) -> impl Iterator<Item = ArrayBlock> + '_ {
        self.of_block.keys().copied()
    }

    pub fn heap_bytes(&self) -> usize {
        self.held.capacity() * size_of::<(ArrayBlock, Box<Page>)>()
            + self.held.len() * size_of::<Page>()
            + self.order.heap_bytes()
            + self.of_block.capacity() * (size_of::<(ArrayBlock, RamPlace)>() + 1)
    }

    pub fn check(&self) -> Result<(), String> {
        self.order.check()?;
        let count = self.order.len();
        let found = self
            .order
            .newest_first()
            .filter(|place| self.of_block.get(&self.held[place.index()].0) == Some(place));
        let holds = count <= self.budget
            && found.count() == count as usize
            && self.of_block.len() == count as usize;
        match holds {
            true => Ok(()),
            false => Err(format!(
                "{count} data blocks are in RAM, {} are found, {} may be",
                self.of_block.len(),
                self.budget
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_gives_way_and_nothing_is_held_without_a_budget() {
        let page = |byte| [byte; 4096];
        let mut ram = DataBlocks::new(2);
        let [first, second, third] = [7, 8, 9].map(ArrayBlock);
        ram.put(first, &page(1));
        ram.put(second, &page(2));
        ram.put(first, &page(3));
        ram.put(third, &page(4));
        assert_eq!(ram.get(first), Some(&page(3)));
        assert_eq!((ram.get(second), ram.get(third)), (None, Some(&page(4))));
        ram.remove(first);
        ram.check().unwrap();
        assert_eq!(ram.blocks().collect::<Vec<_>>(), [third]);
        let mut none = DataBlocks::new(0);
        none.put(first, &page(1));
        assert_eq!(none.get(first), None);
        none.check().unwrap();
    }
}
