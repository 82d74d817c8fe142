//! The three replacements, which keep a little of everything free for the next request.
//!
//! Each looks from the tail of the LRU list: for a virtual block that is no reference, for a data block, or for a
//! difference of a block that is no reference. Nothing is dropped before it is durable elsewhere. A step does one
//! thing and ends, for it may change whatever was looked at.

use std::collections::BTreeSet;

use crate::error::ArrayError;
use crate::icash::blocks::{Content, Form, Id, Virtual};
use crate::icash::parameters::{SPARE_SEGMENTS, SPARE_SLOTS, SPARE_VIRTUAL_BLOCKS};
use crate::icash::state::ICash;

impl ICash {
    /// Makes what a request may need: room in the log, virtual blocks, data blocks, segments.
    pub(super) fn make_ready(&mut self) -> Result<(), ArrayError> {
        self.refuse_if_stopped()?;
        if self.is_flush_due() {
            self.keep_room()?;
            self.commit()?;
            self.counters.own_flushes += 1;
        }
        self.keep_room()?;
        self.keep_within_journal()?;
        while self.blocks.left() < SPARE_VIRTUAL_BLOCKS {
            self.replace_virtual_block()?;
            self.keep_room()?;
        }
        while self.pool.free() < SPARE_SLOTS && self.replace_data_block()? {
            self.keep_room()?;
        }
        while self.segments.left() < SPARE_SEGMENTS {
            self.replace_delta()?;
            self.keep_room()?;
        }
        Ok(())
    }

    /// What follows a request, in the background: a scan if it is time, and what the next request may need.
    pub(super) fn end_of_request(&mut self) {
        self.media.begin_background();
        if self.stopped.is_some() {
            return;
        }
        self.accesses_since_scan += 1;
        let scanned = match self.accesses_since_scan >= self.options.scan_every {
            true => self.scan(),
            false => Ok(()),
        };
        if scanned.and_then(|()| self.make_ready()).is_err() {
            self.counters.background_failures += 1;
        }
    }

    /// Replacement 1: the oldest virtual block that is no reference.
    pub(super) fn replace_virtual_block(&mut self) -> Result<(), ArrayError> {
        let victim = self.oldest(|id, found| !found.is_stuck && !self.is_reference(id));
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
        let Some(id) = self.oldest(|_, found| !found.is_stuck && found.slot.is_some()) else {
            return Ok(false);
        };
        if let Some(slot) = self.blocks.get(id).slot.filter(|_| self.is_reference(id)) {
            self.release_reference(slot)?;
        } else if self.make_droppable(id)? {
            self.forget_frozen_signature(id);
            self.set_content(id, Content::Stored, 0);
            self.give_up_slot(id);
            self.counters.data_replaced += 1;
        }
        Ok(true)
    }

    /// Replacement 3: the oldest difference of a block that is no reference, with its virtual block. If there is
    /// none, the oldest of a reference, which stays and finds it in the log.
    pub(super) fn replace_delta(&mut self) -> Result<(), ArrayError> {
        let is_held = |found: &Virtual| matches!(found.content, Content::Held(..));
        let can_go = |found: &Virtual| !found.is_stuck || found.slot.is_none();
        let victim =
            self.oldest(|id, found| is_held(found) && can_go(found) && !self.is_reference(id));
        if let Some(id) = victim {
            if self.make_droppable(id)? {
                self.drop_virtual(id);
                self.counters.deltas_replaced += 1;
            }
            return Ok(());
        }
        let own = self.oldest(|_, found| is_held(found));
        let id = own.ok_or(ArrayError::NoRoom("no difference can leave RAM"))?;
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
        found.unrecorded == 0 && !self.needs_home(id)
    }

    /// Whether the content of a virtual block, durable or present, needs its data block.
    fn needs_home(&self, id: Id) -> bool {
        let found = self.blocks.get(id);
        let names_own = found.slot.is_some() && self.place_of(id).own_slot() == found.slot;
        let is_own = match found.content {
            Content::Slot => true,
            Content::Held(Form::Delta(base), _) => found.slot == Some(base),
            _ => false,
        };
        names_own || found.unrecorded > 0 && is_own
    }

    /// Does what lets a virtual block that is no reference end. True if nothing had to be done.
    fn make_droppable(&mut self, id: Id) -> Result<bool, ArrayError> {
        if self.is_droppable(id) {
            return Ok(true);
        }
        if self.needs_home(id) {
            let batch = self.oldest_to_write_home(id);
            self.write_back(&batch)?;
        } else {
            self.commit()?;
        }
        Ok(false)
    }

    /// The blocks of a virtual block and of the oldest others that are only in their data blocks.
    fn oldest_to_write_home(&self, id: Id) -> BTreeSet<u32> {
        let with_it = self.blocks.get(id).block.into_iter();
        let others = self.blocks.oldest_first().filter(|(other, found)| {
            !found.is_stuck && !self.is_reference(*other) && self.needs_home(*other)
        });
        let others = others.filter_map(|(_, found)| found.block);
        with_it
            .chain(others.take(self.options.write_back_batch))
            .collect()
    }

    /// Writes blocks home that are differences from a data block; when none is left, their virtual blocks end.
    fn release_reference(&mut self, slot: u32) -> Result<(), ArrayError> {
        let users = self.pool.users(slot);
        let associates: Vec<Id> = users.associates.iter().copied().collect();
        let mut blocks: Vec<u32> = users.dependents.iter().copied().collect();
        blocks.extend(
            associates
                .iter()
                .filter_map(|&id| self.blocks.get(id).block),
        );
        if blocks.iter().any(|block| self.unrecorded.contains(block)) {
            return self.commit();
        }
        let batch = self.options.write_back_batch;
        let dependents: BTreeSet<u32> = users.dependents.iter().copied().take(batch).collect();
        if dependents.is_empty() {
            for id in associates {
                self.drop_virtual(id);
            }
            self.counters.references_released += 1;
            return Ok(());
        }
        self.write_back(&dependents)
    }

    /// The virtual block nearest to the tail that is as wanted.
    fn oldest(&self, wanted: impl Fn(Id, &Virtual) -> bool) -> Option<Id> {
        let mut oldest = self.blocks.oldest_first();
        oldest
            .find(|(id, found)| wanted(*id, found))
            .map(|(id, _)| id)
    }

    /// Whether so much is not durable that the element flushes by itself.
    fn is_flush_due(&self) -> bool {
        let room = crate::icash::format::block::ROOM as u64;
        self.unrecorded_bytes >= u64::from(self.options.flush_blocks) * room
    }
}
