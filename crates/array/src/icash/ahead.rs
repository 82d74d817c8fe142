//! Blocks go home before anything needs the places they have: whoever has the element asks for that, as far as it likes.
//!
//! A block is *dirty* while its durable content is not at home but in a data block or in the log. The fewer of them there
//! are, the fewer requests have to wait for a batch that makes room.
//!
//! Invariant: `dirty` counts the blocks that the table says are dirty.

use std::collections::BTreeSet;

use crate::error::ArrayError;
use crate::icash::blocks::{Class, Virtual};
use crate::icash::place::BlockPlace;
use crate::icash::replacement::needs_home;
use crate::icash::state::ICash;
use crate::index::ArrayBlock;

/// Ranges of pages of the table that one step looks at (chosen here), all of it where there is one: some milliseconds'
/// worth.
const LOOKED_AT: u32 = 2;

/// Which dirty blocks may go home.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Those whose data block was accessed longest ago: what makes room on the fast medium.
    Oldest,
    /// When there are none, any others too: it takes reads of the log.
    All,
}

impl BlockPlace {
    pub(super) fn is_dirty(&self) -> bool {
        !matches!(self, BlockPlace::Zero | BlockPlace::Home)
    }
}

impl ICash {
    /// Blocks whose durable content is not at home.
    pub fn dirty(&self) -> u64 {
        self.dirty
    }

    /// Notes that the durable content of a block moved.
    pub(super) fn note_dirty(&mut self, from: &BlockPlace, to: &BlockPlace) {
        self.dirty += u64::from(to.is_dirty());
        self.dirty -= u64::from(from.is_dirty());
    }

    /// Brings some dirty blocks home, at most `most` where blocks do not go home in order; answers how many.
    ///
    /// # Errors
    /// A medium failed, or there is no room. What it was for is counted.
    pub fn write_back_ahead(&mut self, reach: Reach, most: usize) -> Result<u64, ArrayError> {
        if self.is_stopped() {
            return Ok(0);
        }
        let before = self.counters.written_home;
        let done = self.send_ahead(reach, most);
        self.counters.background_failures += u64::from(done.is_err());
        done?;
        let count = self.counters.written_home - before;
        self.counters.written_ahead += count;
        Ok(count)
    }

    fn send_ahead(&mut self, reach: Reach, most: usize) -> Result<(), ArrayError> {
        // The group that says so needs room, as any other.
        self.keep_room()?;
        let mut batch = self.oldest_dirty(most);
        if batch.is_empty() && reach == Reach::All {
            batch = self.next_dirty(most);
        }
        match batch.is_empty() {
            true => Ok(()),
            false => self.write_back(&batch),
        }
    }

    /// Blocks whose data block was accessed longest ago and is needed.
    fn oldest_dirty(&mut self, most: usize) -> BTreeSet<ArrayBlock> {
        let table = &self.table;
        // What is noted of a block on a page that does not hold is asked for by nobody who only looks around.
        let is_known = |found: &Virtual| found.block.is_none_or(|block| table.look(block).is_ok());
        let wanted =
            |_, found: &Virtual| !found.is_stuck && is_known(found) && needs_home(table, found);
        let oldest = self.blocks.oldest(Class::WithSlot, most, |_| false, wanted);
        let blocks = oldest.into_iter();
        blocks.filter_map(|id| self.blocks.get(id).block).collect()
    }

    /// Dirty blocks in the order of addresses, from where the last search ended.
    fn next_dirty(&mut self, most: usize) -> BTreeSet<ArrayBlock> {
        let mut found = BTreeSet::new();
        for _ in 0..LOOKED_AT {
            let (pages, behind) = self.table.range_with(self.next_ahead);
            let (noted, _) = self.table.noted_in(pages);
            for (block, entry) in noted {
                let is_next = block >= self.next_ahead && entry.place.is_dirty();
                if is_next && !self.unrecorded.contains(&block) {
                    found.insert(block);
                }
                if found.len() >= most {
                    self.next_ahead = block + 1;
                    return found;
                }
            }
            self.next_ahead = behind.unwrap_or(ArrayBlock(0));
        }
        found
    }
}
