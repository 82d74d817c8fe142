//! Which blocks lie in which slot of the fast medium, and which slots were used last.
//!
//! Invariants, which `check` recounts:
//!
//! - a block lies in one slot at most, and is clean or dirty there; `slot_of` and the slots name the same pairs;
//! - a slot in which a block lies is in the LRU list; any other slot is free; none is both.

use std::collections::{BTreeSet, HashMap};

use crate::lru::Lru;

/// Whether the native place of a block holds its content too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotState {
    Clean,
    Dirty,
}

#[derive(Debug, Default)]
struct Slot {
    clean: BTreeSet<u32>,
    dirty: BTreeSet<u32>,
}

impl Slot {
    fn len(&self) -> usize {
        self.clean.len() + self.dirty.len()
    }
}

#[derive(Debug)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    slot_of: HashMap<u32, u32>,
    free: Vec<u32>,
    order: Lru,
}

impl Slots {
    /// So many free slots. The one with the lowest number is used first.
    pub fn new(count: u32) -> Self {
        Slots {
            slots: (0..count).map(|_| Slot::default()).collect(),
            slot_of: HashMap::new(),
            free: (0..count).rev().collect(),
            order: Lru::new(),
        }
    }

    pub fn slot_of(&self, block: u32) -> Option<u32> {
        self.slot_of.get(&block).copied()
    }

    pub fn blocks(&self) -> u64 {
        self.slot_of.len() as u64
    }

    pub fn blocks_in(&self, slot: u32) -> usize {
        self.slots[slot as usize].len()
    }

    /// Dirty blocks in a slot, in order.
    pub fn dirty_in(&self, slot: u32) -> &BTreeSet<u32> {
        &self.slots[slot as usize].dirty
    }

    /// The slot that is used next, if one is free.
    pub fn next_free(&self) -> Option<u32> {
        self.free.last().copied()
    }

    /// From the slot used longest ago to the one used last.
    pub fn oldest_first(&self) -> impl Iterator<Item = u32> {
        self.order.oldest_first()
    }

    pub fn touch(&mut self, slot: u32) {
        self.order.touch(slot);
    }

    /// Puts a block into a slot, which is the next free one or has blocks. Gives the slot that is free because of
    /// it.
    pub fn put(&mut self, block: u32, slot: u32, state: SlotState) -> Option<u32> {
        if self.next_free() == Some(slot) {
            self.free.pop();
        }
        let former = self.take(block);
        let own = &mut self.slots[slot as usize];
        match state {
            SlotState::Clean => own.clean.insert(block),
            SlotState::Dirty => own.dirty.insert(block),
        };
        self.slot_of.insert(block, slot);
        self.touch(slot);
        former.filter(|&former| self.release(former))
    }

    /// Takes a block out. Gives the slot that is free because of it.
    pub fn remove(&mut self, block: u32) -> Option<u32> {
        self.take(block).filter(|&slot| self.release(slot))
    }

    /// Takes all blocks out of a slot and frees it. Gives their number.
    pub fn clear(&mut self, slot: u32) -> u64 {
        let Slot { clean, dirty } = std::mem::take(&mut self.slots[slot as usize]);
        for block in clean.iter().chain(&dirty) {
            self.slot_of.remove(block);
        }
        self.release(slot);
        (clean.len() + dirty.len()) as u64
    }

    /// Notes that a dirty block was written home.
    pub fn make_clean(&mut self, block: u32) {
        let slot = self
            .slot_of(block)
            .map(|slot| &mut self.slots[slot as usize]);
        if let Some(slot) = slot
            && slot.dirty.remove(&block)
        {
            slot.clean.insert(block);
        }
    }

    fn take(&mut self, block: u32) -> Option<u32> {
        let slot = self.slot_of.remove(&block)?;
        let found = &mut self.slots[slot as usize];
        if !found.clean.remove(&block) {
            found.dirty.remove(&block);
        }
        Some(slot)
    }

    /// Frees a slot that lost its last block. True if it did.
    fn release(&mut self, slot: u32) -> bool {
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
        let free: BTreeSet<u32> = self.free.iter().copied().collect();
        let used: BTreeSet<u32> = self.order.newest_first().collect();
        for (number, slot) in (0..).zip(&self.slots) {
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
