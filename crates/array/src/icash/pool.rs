//! The pool of data blocks on the fast medium: who uses which.
//!
//! A data block is in use while a virtual block holds it, a durable place names it as its own, or deltas are
//! based on it, durable ones (of blocks) or present ones (of virtual blocks). It is free when none of that is left.
//! What is in use is never overwritten.
//!
//! Invariant: `free` has each data block without a user, once.

use std::collections::{BTreeSet, VecDeque};

use crate::icash::blocks::Id;

#[derive(Debug, Default)]
pub struct Users {
    /// The virtual block whose data block it is.
    pub holder: Option<Id>,
    /// The block whose durable place names it as its own.
    pub named_by: Option<u32>,
    /// Blocks whose durable place is a delta from it.
    pub dependents: BTreeSet<u32>,
    /// Virtual blocks, not its holder, whose present content is a delta from it in RAM.
    pub associates: BTreeSet<Id>,
    is_free: bool,
}

impl Users {
    /// Whether deltas of others are based on it: then its holder is a reference.
    pub fn is_base(&self) -> bool {
        !self.dependents.is_empty() || !self.associates.is_empty()
    }

    fn is_none(&self) -> bool {
        self.holder.is_none() && self.named_by.is_none() && !self.is_base()
    }
}

#[derive(Debug)]
pub struct Pool {
    users: Vec<Users>,
    free: VecDeque<u32>,
}

impl Pool {
    /// So many data blocks without users. They are free once [`Pool::collect_free`] was called.
    pub fn new(slots: u32) -> Self {
        Pool {
            users: (0..slots).map(|_| Users::default()).collect(),
            free: VecDeque::new(),
        }
    }

    /// Finds the data blocks without users.
    pub fn collect_free(&mut self) {
        (0..self.len()).for_each(|slot| self.release(slot));
    }

    pub fn len(&self) -> u32 {
        self.users.len() as u32
    }

    pub fn free(&self) -> u32 {
        self.free.len() as u32
    }

    pub fn users(&self, slot: u32) -> &Users {
        &self.users[slot as usize]
    }

    /// Whether deltas of others are based on a data block, if there is one.
    pub fn is_base(&self, slot: Option<u32>) -> bool {
        slot.is_some_and(|slot| self.users(slot).is_base())
    }

    /// Who uses a data block. [`Pool::release`] must be called when a user went.
    pub fn users_mut(&mut self, slot: u32) -> &mut Users {
        &mut self.users[slot as usize]
    }

    /// A free data block; it must get a user or be given back with [`Pool::release`]. The one that was free longest,
    /// so that one that fails is not tried again at once.
    pub fn take(&mut self) -> Option<u32> {
        let slot = self.free.pop_front()?;
        self.users_mut(slot).is_free = false;
        Some(slot)
    }

    /// Notes that a user went: a data block without users is free.
    pub fn release(&mut self, slot: u32) {
        let users = self.users_mut(slot);
        if users.is_none() && !users.is_free {
            users.is_free = true;
            self.free.push_back(slot);
        }
    }

    /// Bytes held, without the sets of users.
    pub fn heap_bytes(&self) -> usize {
        self.users.capacity() * size_of::<Users>() + self.free.capacity() * size_of::<u32>()
    }

    pub fn check(&self) -> Result<(), String> {
        let free: BTreeSet<u32> = self.free.iter().copied().collect();
        for slot in 0..self.len() {
            if free.contains(&slot) != self.users(slot).is_none() {
                return Err(format!(
                    "data block {slot} has the users {:?} and is {}",
                    self.users(slot),
                    if free.contains(&slot) {
                        "free"
                    } else {
                        "not free"
                    }
                ));
            }
        }
        if free.len() != self.free.len() {
            return Err("a data block is free twice".into());
        }
        Ok(())
    }
}
