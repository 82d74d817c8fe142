//! Data blocks in RAM: the contents that were read or written last (paper, sections 3.2 and 3.3, Figure 5).
//!
//! Invariants: at most as many as the budget says; each is the present content of its block. Nothing depends on one:
//! what it holds is in the log, on a medium or in a delta as well.

use std::collections::HashMap;

use flashlore_delta::Page;

use crate::lru::Lru;
use crate::put;

#[derive(Debug)]
pub struct DataBlocks {
    budget: u32,
    /// By number: the block and its content.
    held: Vec<(u32, Box<Page>)>,
    free: Vec<u32>,
    of_block: HashMap<u32, u32>,
    order: Lru,
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

    pub fn get(&self, block: u32) -> Option<&Page> {
        let number = *self.of_block.get(&block)?;
        Some(&self.held[number as usize].1)
    }

    /// Holds the present content of a block, as that of the last access; the oldest gives way.
    pub fn put(&mut self, block: u32, page: &Page) {
        if self.budget == 0 {
            return;
        }
        if let Some(&number) = self.of_block.get(&block) {
            self.held[number as usize].1.copy_from_slice(page);
            self.order.touch(number);
            return;
        }
        if self.order.len() == self.budget {
            let oldest = self.order.oldest_first().next();
            if let Some(oldest) = oldest {
                self.remove(self.held[oldest as usize].0);
            }
        }
        let number = put(&mut self.held, &mut self.free, (block, Box::new(*page)));
        self.of_block.insert(block, number);
        self.order.touch(number);
    }

    /// Forgets a block whose content changes, or that nobody remembers any more.
    pub fn remove(&mut self, block: u32) {
        if let Some(number) = self.of_block.remove(&block) {
            self.order.remove(number);
            self.free.push(number);
        }
    }

    /// The blocks whose contents are here.
    pub fn blocks(&self) -> impl Iterator<Item = u32> + '_ {
        self.of_block.keys().copied()
    }

    pub fn heap_bytes(&self) -> usize {
        self.held.capacity() * size_of::<(u32, Box<Page>)>()
            + self.held.len() * size_of::<Page>()
            + self.order.heap_bytes()
            + self.of_block.capacity() * (size_of::<(u32, u32)>() + 1)
    }

    pub fn check(&self) -> Result<(), String> {
        self.order.check()?;
        let count = self.order.len();
        let found = self
            .order
            .newest_first()
            .filter(|&number| self.of_block.get(&self.held[number as usize].0) == Some(&number));
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
        ram.put(7, &page(1));
        ram.put(8, &page(2));
        ram.put(7, &page(3));
        ram.put(9, &page(4));
        assert_eq!(ram.get(7), Some(&page(3)));
        assert_eq!((ram.get(8), ram.get(9)), (None, Some(&page(4))));
        ram.remove(7);
        ram.check().unwrap();
        assert_eq!(ram.blocks().collect::<Vec<_>>(), [9]);
        let mut none = DataBlocks::new(0);
        none.put(1, &page(1));
        assert_eq!(none.get(1), None);
        none.check().unwrap();
    }
}
