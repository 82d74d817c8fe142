//! Writes newer than the checkpoint, by the blocks that hold them.
//!
//! A recovery learns of such a write from the record of its page. Before a block is erased the journal therefore says
//! which of them it held.
//!
//! Invariants: each block that holds a copy of such a write has it in its list; each is declared dead once at most.

use flashlore_flash::{BlockId, Lpn, ObjectId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::format::packed::Head;

/// A write since the checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Young {
    pub write_seq: u64,
    pub lpn: Lpn,
    pub stamp: u64,
    /// The object that it made.
    pub object: ObjectId,
}

/// All of them.
pub(crate) struct YoungWrites {
    by_block: FxHashMap<BlockId, Vec<Young>>,
    count: u64,
    dead: FxHashSet<u64>,
}

impl YoungWrites {
    /// Those that a recovery found.
    pub fn new(by_block: FxHashMap<BlockId, Vec<Young>>) -> Self {
        YoungWrites {
            count: by_block.values().map(|writes| writes.len() as u64).sum(),
            by_block,
            dead: FxHashSet::default(),
        }
    }

    /// How many there are, copies apart.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// A block holds a write, or a copy of it.
    pub fn note(&mut self, block: BlockId, write: Young, is_new: bool) {
        self.by_block.entry(block).or_default().push(write);
        self.count += u64::from(is_new);
    }

    /// Those that a block holds.
    pub fn in_block(&self, block: BlockId) -> &[Young] {
        self.by_block.get(&block).map_or(&[], Vec::as_slice)
    }

    /// A block is erased; what it held.
    pub fn take_block(&mut self, block: BlockId) -> Vec<Young> {
        self.by_block.remove(&block).unwrap_or_default()
    }

    /// A write is to be declared dead; whether it was not before.
    pub fn is_first_death(&mut self, write_seq: u64) -> bool {
        self.dead.insert(write_seq)
    }

    /// A checkpoint holds everything up to an event, so many of these among it.
    pub fn forget(&mut self, sequence: u64, count: u64) {
        self.by_block.retain(|_, writes| {
            writes.retain(|young| young.write_seq > sequence);
            !writes.is_empty()
        });
        self.count -= count;
        self.dead.retain(|&write_seq| write_seq > sequence);
    }

    /// The one with this number.
    pub fn find(&self, write_seq: u64) -> Option<Young> {
        let mut all = self.by_block.values().flatten();
        all.find(|young| young.write_seq == write_seq).copied()
    }

    /// The head of a value that was lost says which write it was: a recovery may have nothing else to tell it.
    pub fn name_lost(&self, head: Head) -> Head {
        match head.lost.then(|| self.find(head.write_seq)).flatten() {
            Some(Young { lpn, stamp, .. }) => Head { lpn, stamp, ..head },
            None => head,
        }
    }
}
