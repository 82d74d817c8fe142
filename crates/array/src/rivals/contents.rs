//! Which content lies in which slot, by a strong hash.
//!
//! Invariant, which `check` recounts: a slot with a digest is found by it, and by nothing else; no two slots have
//! the same.

use std::collections::HashMap;

use flashlore_content::{Digest, VolumeKey};
use flashlore_delta::Page;

use crate::index::Slot;

/// Digests need no secret in a simulation.
const KEY: VolumeKey = VolumeKey([0; 32]);

pub(super) fn digest_of(page: &Page) -> Digest {
    KEY.digest(page)
}

#[derive(Debug)]
pub(super) struct Contents {
    digests: Vec<Option<Digest>>,
    slots: HashMap<Digest, Slot>,
}

impl Contents {
    /// Nothing is known of so many slots.
    pub fn new(slots: u32) -> Self {
        Contents {
            digests: vec![None; slots as usize],
            slots: HashMap::new(),
        }
    }

    pub fn find(&self, digest: Digest) -> Option<Slot> {
        self.slots.get(&digest).copied()
    }

    /// Notes what was written to a slot of which nothing is known.
    pub fn learn(&mut self, slot: Slot, digest: Digest) {
        self.digests[slot.index()] = Some(digest);
        self.slots.insert(digest, slot);
    }

    /// Notes that a slot is free or about to be overwritten.
    pub fn forget(&mut self, slot: Slot) {
        if let Some(digest) = self.digests[slot.index()].take() {
            self.slots.remove(&digest);
        }
    }

    /// Recounts both directions, and whether only slots with blocks are known.
    pub fn check(&self, has_blocks: impl Fn(Slot) -> bool) -> Result<(), String> {
        let mut known = 0;
        for (slot, digest) in (0..).map(Slot).zip(&self.digests) {
            let Some(digest) = digest else {
                continue;
            };
            known += 1;
            if self.find(*digest) != Some(slot) || !has_blocks(slot) {
                return Err(format!(
                    "{digest:?} of slot {slot} is found in {:?}; the slot has blocks: {}",
                    self.find(*digest),
                    has_blocks(slot)
                ));
            }
        }
        if known != self.slots.len() {
            return Err(format!(
                "{known} slots have a digest, {} are found by one",
                self.slots.len()
            ));
        }
        Ok(())
    }
}
