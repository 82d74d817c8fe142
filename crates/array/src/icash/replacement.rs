//! The three replacements, which keep a little of everything free for the next request.
//!
//! Each looks from the tail of the LRU list: for a virtual block that is no reference, for a data block, or for a
//! delta of a block that is no reference. Nothing is dropped before it is durable elsewhere. A step does one
//! thing and ends, for it may change whatever was looked at. What makes room for references in `frozen.rs` is one of
//! them.
//!
//! The loops that repeat steps end. Nothing in them makes a virtual block, puts content into RAM or leaves something
//! unrecorded. A step that finds a victim ends it, or makes everything recorded, or brings the victim's content home
//! or, if that cannot be, marks it as stuck, and what is stuck is no victim again; a reference is frozen, or some of
//! the blocks that depend on it and on the next ones go home. None of that can be done twice for the same block, so
//! that there are at most four steps for each virtual block and one for each batch of dependents. A step that cannot
//! do what it must fails, and that ends the loop too.

use std::collections::BTreeSet;

use crate::error::ArrayError;
use crate::icash::blocks::{Class, Content, Form, Id, Virtual};
use crate::icash::parameters::{SPARE_SEGMENTS, SPARE_SLOTS, SPARE_VIRTUAL_BLOCKS};
use crate::icash::place::{BlockPlace, DataBlock};
use crate::icash::state::ICash;
use crate::icash::table::Table;
use crate::index::ArrayBlock;

impl ICash {
    /// Makes what a request may need: room in the log, virtual blocks, data blocks, segments.
    pub(super) fn make_ready(&mut self) -> Result<(), ArrayError> {
        // Where somebody makes more room at any moment a request takes the last slot.
        let slots = match self.leaves_work {
            true => 1,
            false => SPARE_SLOTS,
        };
        while self.ready_step(slots)? {}
        Ok(())
    }

    /// One step towards what a request may need, so many free slots among it; false if all of it is there.
    pub(super) fn ready_step(&mut self, slots: u32) -> Result<bool, ArrayError> {
        self.refuse_if_stopped()?;
        if self.is_flush_due() {
            self.keep_room()?;
            self.commit()?;
            self.counters.own_flushes += 1;
        }
        self.keep_room()?;
        self.keep_within_journal()?;
        if self.blocks.left() < SPARE_VIRTUAL_BLOCKS {
            self.replace_virtual_block()?;
            return Ok(true);
        }
        if self.pool.free() < slots && self.replace_data_block()? {
            return Ok(true);
        }
        if self.segments.left() < SPARE_SEGMENTS {
            self.replace_delta()?;
            return Ok(true);
        }
        if self.lacks_frozen_places() && self.replace_frozen()? {
            return Ok(true);
        }
        Ok(false)
    }

    /// Replacement 1: the oldest virtual block that is no reference.
    pub(super) fn replace_virtual_block(&mut self) -> Result<(), ArrayError> {
        let victim = self.oldest(Class::Replaceable, |found| !found.is_stuck);
        let id = victim.ok_or(ArrayError::NoRoom(
            "every virtual block is a reference or unreadable",
        ))?;
        if self.make_droppable(id)? {
            self.drop_virtual(id);
            self.counters.virtual_replaced += 1;
        }
        Ok(())
    }

    /// Replacement 2: the oldest data block, even a reference's. False if there is none that can go.
    pub(super) fn replace_data_block(&mut self) -> Result<bool, ArrayError> {
        let Some(id) = self.oldest(Class::WithSlot, |found| !found.is_stuck) else {
            return Ok(false);
        };
        let data = self.blocks.get(id).data;
        if data.is_some_and(|data| self.leave_if_frozen(id, data)) {
            return Ok(true);
        }
        if let Some(data) = data.filter(|_| self.is_reference(id)) {
            // Where nothing can be frozen its associates go.
            if !self.freeze(id)? {
                self.release_reference(id, data)?;
            }
        } else {
            self.replace_own_data(id)?;
        }
        Ok(true)
    }

    /// Takes the data block from a virtual block that is no reference, or does what lets it go.
    pub(super) fn replace_own_data(&mut self, id: Id) -> Result<(), ArrayError> {
        if self.make_droppable(id)? {
            self.forget_frozen_signature(id);
            self.set_content(id, Content::Stored, 0);
            self.give_up_data(id);
            self.counters.data_replaced += 1;
        }
        Ok(())
    }

    /// Replacement 3: the oldest delta of a block that is no reference, with its virtual block. If there is
    /// none, the oldest of a reference, which stays and finds it in the log.
    pub(super) fn replace_delta(&mut self) -> Result<(), ArrayError> {
        let can_go = |found: &Virtual| !found.is_stuck || found.data.is_none();
        let victim = self.oldest(Class::Held, can_go);
        if let Some(id) = victim {
            if self.make_droppable(id)? {
                self.drop_virtual(id);
                self.counters.deltas_replaced += 1;
            }
            return Ok(());
        }
        let is_held = |found: &Virtual| matches!(found.content, Content::Held(..));
        let own = self.blocks.oldest_first();
        let own = { own }.find_map(|(id, found)| is_held(found).then_some(id));
        let id = own.ok_or(ArrayError::NoRoom("no delta can leave RAM"))?;
        if self.blocks.get(id).unrecorded > 0 {
            return self.commit();
        }
        self.set_content(id, Content::Stored, 0);
        self.counters.own_deltas_dropped += 1;
        Ok(())
    }

    /// Whether a virtual block that is no reference can end at once: what its block holds is durable, and not in
    /// its data block.
    pub(super) fn is_droppable(&self, id: Id) -> bool {
        let found = self.blocks.get(id);
        found.unrecorded == 0 && !needs_home(&self.table, found)
    }

    /// Does what lets a virtual block that is no reference end. True if nothing had to be done.
    fn make_droppable(&mut self, id: Id) -> Result<bool, ArrayError> {
        if self.is_droppable(id) {
            return Ok(true);
        }
        if needs_home(&self.table, self.blocks.get(id)) {
            let batch = self.oldest_to_write_home(id);
            self.write_back(&batch)?;
        } else {
            self.commit()?;
        }
        Ok(false)
    }

    /// What goes home together: what the data block of one virtual block needs to become free, and what those of the
    /// oldest others do. If the first is a reference, references are among the others: their turn is next.
    fn oldest_to_write_home(&mut self, id: Id) -> BTreeSet<ArrayBlock> {
        let for_reference = self.is_reference(id);
        let (pool, table) = (&self.pool, &self.table);
        let goes_too = |_, found: &Virtual| match pool.is_base(found.data) {
            _ if found.is_stuck => false,
            true => for_reference && !pool.is_frozen(found.data),
            false => needs_home(table, found),
        };
        let most = self.options.write_back_batch;
        let others = self
            .blocks
            .oldest(Class::WithSlot, most, |_| false, goes_too);
        let mut blocks = BTreeSet::new();
        for id in std::iter::once(id).chain(others) {
            let found = self.blocks.get(id);
            let room = most.saturating_sub(blocks.len());
            if let Some(data) = found.data.filter(|&data| self.pool.users(data).is_base()) {
                blocks.extend(self.based_on(data).take(room));
            }
            // That of a reference too: it is going to be in the way when its dependents are gone.
            blocks.extend(found.block.filter(|_| needs_home(&self.table, found)));
            if room <= 1 {
                break;
            }
        }
        blocks
    }

    /// Blocks that go home before a reference's data block can be replaced: those whose durable content needs it,
    /// and those whose next record would.
    fn based_on(&self, data: DataBlock) -> impl Iterator<Item = ArrayBlock> {
        let users = self.pool.users(data);
        let associates = users.associates.iter();
        let present = associates.filter_map(|&id| self.blocks.get(id).block);
        let unrecorded = present.filter(|block| self.unrecorded.contains(block));
        users.dependents.iter().copied().chain(unrecorded)
    }

    /// Writes blocks home that are deltas from a reference's data block; when none is left, their virtual
    /// blocks end.
    pub(super) fn release_reference(&mut self, id: Id, data: DataBlock) -> Result<(), ArrayError> {
        if self.based_on(data).next().is_some() {
            let batch = self.oldest_to_write_home(id);
            return self.write_back(&batch);
        }
        let associates: Vec<Id> = self.pool.users(data).associates.iter().copied().collect();
        for id in associates {
            self.drop_virtual(id);
        }
        self.counters.references_released += 1;
        Ok(())
    }

    /// The one of a class nearest to the tail that is as wanted.
    pub(super) fn oldest(&mut self, class: Class, wanted: impl Fn(&Virtual) -> bool) -> Option<Id> {
        let pool = &self.pool;
        let is_reference = |found: &Virtual| pool.is_base(found.data);
        let oldest = self
            .blocks
            .oldest(class, 1, is_reference, |_, found| wanted(found));
        oldest.first().copied()
    }

    /// Whether so much is not durable that the element flushes by itself.
    pub(super) fn is_flush_due(&self) -> bool {
        let room = crate::icash::format::block::ROOM as u64;
        self.unrecorded_bytes >= u64::from(self.options.flush_blocks) * room
    }
}

/// Whether the content of a virtual block, durable or present, needs its data block.
pub(super) fn needs_home(table: &Table, found: &Virtual) -> bool {
    let place = found
        .block
        .map_or(BlockPlace::Zero, |block| table.get(block).place);
    let names_own = found.data.is_some() && place.own_data() == found.data;
    let is_own = match found.content {
        Content::Slot => true,
        Content::Held(Form::Delta(base), _) => found.data == Some(base),
        _ => false,
    };
    names_own || found.unrecorded > 0 && is_own
}
