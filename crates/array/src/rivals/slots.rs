//! Which blocks lie in which slot of the fast medium, and which slots were used last.
//!
//! Invariants, which `check` recounts:
//!
//! - a block lies in one slot at most, and is clean or dirty there; `slot_of` and the slots name the same pairs;
//! - a slot in which a block lies is in the LRU list; any other slot is free; none is both.

use std::collections::{BTreeSet, HashMap};

use crate::index::{ArrayBlock, Slot};
use crate::lru::Lru;

/// Whether the native place of a block holds its content too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotState {
    Clean,
    Dirty,
}

/// The blocks that lie in a slot.
#[derive(Debug, Default)]
struct Lying {
    clean: BTreeSet<ArrayBlock>,
    dirty: BTreeSet<ArrayBlock>,
}

impl Lying {
    fn len(&self) -> usize {
        self.clean.len() + self.dirty.len()
    }
}

#[derive(Debug)]
pub(super) struct Slots {
    slots: Vec<Lying>,
    slot_of: HashMap<ArrayBlock, Slot>,
    free: Vec<Slot>,
    order: Lru<Slot>,
}

impl Slots {
    /// So many free slots. The one with the lowest number is used first.
    pub fn new(count: u32) -> Self {
        Slots {
            slots: (0..count).map(|_| Lying::default()).collect(),
            slot_of: HashMap::new(),
            free: Slot::first(count).rev().collect(),
            order: Lru::new(),
        }
    }

    pub fn slot_of(&self, block: ArrayBlock) -> Option<Slot> {
        self.slot_of.get(&block).copied()
    }

    pub fn blocks(&self) -> u64 {
        self.slot_of.len() as u64
    }

    pub fn blocks_in(&self, slot: Slot) -> usize {
        self.slots[slot.index()].len()
    }

    /// Dirty blocks in a slot, in order.
    pub fn dirty_in(&self, slot: Slot) -> &BTreeSet<ArrayBlock> {
        &self.slots[slot.index()].dirty
    }

    /// The slot that is used next, if one is free.
    pub fn next_free(&self) -> Option<Slot> {
        self.free.last().copied()
    }

    /// From the slot used longest ago to the one used last.
    pub fn oldest_first(&self) -> impl Iterator<Item = Slot> {
        self.order.oldest_first()
    }

    pub fn touch(&mut self, slot: Slot) {
        self.order.touch(slot);
    }

    /// Puts a block into a slot, which is the next free one or has blocks. Gives the slot that is free because of
    /// it.
    pub fn put(&mut self, block: ArrayBlock, slot: Slot, state: SlotState) -> Option<Slot> {
        if self.next_free() == Some(slot) {
            self.free.pop();
        }
        let former = self.take(block);
        let own = &mut self.slots[slot.index()];
        match state {
            SlotState::Clean => own.clean.insert(block),
            SlotState::Dirty => own.dirty.insert(block),
        };
        self.slot_of.insert(block, slot);
        self.touch(slot);
        former.filter(|&former| self.release(former))
    }

    /// Takes a block out. Gives the slot that is free because of it.
    pub fn remove(&mut self, block: ArrayBlock) -> Option<Slot> {
        self.take(block).filter(|&slot| self.release(slot))
    }

    /// Takes all blocks out of a slot and frees it. Gives their number.
    pub fn clear(&mut self, slot: Slot) -> u64 {
        let Lying { clean, dirty } = std::mem::take(&mut self.slots[slot.index()]);
        for block in clean.iter().chain(&dirty) {
            self.slot_of.remove(block);
        }
        self.release(slot);
        (clean.len() + dirty.len()) as u64
    }

    /// Notes that a dirty block was written home.
    pub fn make_clean(&mut self, block: ArrayBlock) {
        let slot = self
            .slot_of(block)
            .map(|slot| &mut self.slots[slot.index()]);
        if let Some(slot) = slot
            && slot.dirty.remove(&block)
        {
            slot.clean.insert(block);
        }
    }

    fn take(&mut self, block: ArrayBlock) -> Option<Slot> {
        let slot = self.slot_of.remove(&block)?;
        let found = &mut self.slots[slot.index()];
        if !found.clean.remove(&block) {
            found.dirty.remove(&block);
        }
        Some(slot)
    }

    /// Frees a slot that lost its last block. True if it did.
    fn release(&mut self, slot: Slot) -> bool {
        let is_free = self.blocks_in(slot) == 0;
        if is_free {
            self.order.remove(slot);
            self.free.push(slot);
        }
        is_free
    }

    pub fn check(&self) -> Result<(), String> {
        self.order.check()?;
        let mut blocks = 0;
        let free: BTreeSet<Slot> = self.free.iter().copied().collect();
        let used: BTreeSet<Slot> = self.order.newest_first().collect();
        for (number, slot) in (0..).map(Slot).zip(&self.slots) {
            blocks += slot.len();
            let strays = slot.clean.iter().chain(&slot.dirty);
            if let Some(stray) = strays.copied().find(|&b| self.slot_of(b) != Some(number)) {
                return Err(format!(
                    "block {stray} lies in slot {number} and is looked for in {:?}",
                    self.slot_of(stray)
                ));
            }
            let has_blocks = slot.len() > 0;
            if used.contains(&number) != has_blocks || free.contains(&number) == has_blocks {
                return Err(format!(
                    "slot {number} with {slot:?} is in the LRU list: {}, is free: {}",
                    used.contains(&number),
                    free.contains(&number)
                ));
            }
        }
        if blocks != self.slot_of.len() || free.len() != self.free.len() {
            return Err(format!(
                "{blocks} blocks lie in slots, {} are looked for there; {} slots are free, {} are listed",
                self.slot_of.len(),
                free.len(),
                self.free.len()
            ));
        }
        Ok(())
    }
}
