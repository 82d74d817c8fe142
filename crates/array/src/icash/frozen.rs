//! References leave the fast medium and come back, while their associates and all deltas stay as they are (paper,
//! section 4.3: the data block of a reference can be evicted too).
//!
//! What deltas are based on never changes. So it is written to the slow medium once, to a frozen place: the content,
//! a sync, and a group of the log that says what lies there. Only when that is durable the slot may become free.
//! Several references that are old go together, for they share the syncs.
//!
//! A frozen data block that was read for a request is copied to a free slot again. RAM alone knows that: after a crash
//! it is frozen as before, and when it has to leave once more nothing is written.

use crate::element::Device;
use crate::error::ArrayError;
use crate::icash::blocks::{Class, Content, Id};
use crate::icash::commit::Extra;
use crate::icash::content::crc_of;
use crate::icash::format::Areas;
use crate::icash::parameters::LONGEST_RUN;
use crate::icash::place::{DataBlock, Frozen};
use crate::icash::state::ICash;
use crate::index::FrozenPlace;
use flashlore_delta::Page;

impl ICash {
    /// Takes a data block from the fast medium if it is frozen; false if it is not.
    pub(super) fn leave_if_frozen(&mut self, id: Id, data: DataBlock) -> bool {
        let is_frozen = self.pool.is_frozen(Some(data));
        if is_frozen {
            self.pool.leave_slot(data);
            self.blocks.set_resident(id, false);
            self.counters.frozen_replaced += 1;
        }
        is_frozen
    }

    /// Freezes the data blocks of a reference and of others that are old, too: their turn is next. False if none could
    /// be. Whatever was given up may have ended with the group that says so, even the reference.
    pub(super) fn freeze(&mut self, id: Id) -> Result<bool, ArrayError> {
        let ids = self.oldest_to_freeze(id);
        let data: Vec<DataBlock> = { ids.into_iter() }
            .filter_map(|id| self.blocks.get(id).data)
            .collect();
        let count = self.freeze_data(&data)?;
        self.counters.references_frozen += count;
        Ok(count > 0)
    }

    /// Freezes data blocks that somebody holds, as many as can be read and there are places for; answers how many.
    pub(super) fn freeze_data(&mut self, data: &[DataBlock]) -> Result<u64, ArrayError> {
        let mut contents = Vec::new();
        for &data in data {
            contents.extend(self.content_to_freeze(data));
        }
        let places = self.pool.some_free_places(contents.len());
        let frozen = self.write_frozen(&places, &contents);
        if frozen.is_empty() {
            return Ok(0);
        }
        self.sync(Device::Slow)?;
        let count = frozen.len() as u64;
        self.commit_with(Extra::frozen(frozen))?;
        Ok(count)
    }

    /// A reference and those among the oldest holders of slots that are references and not frozen, no more than there
    /// is room for.
    fn oldest_to_freeze(&mut self, id: Id) -> Vec<Id> {
        let most = self.options.write_back_batch;
        let oldest =
            self.blocks
                .oldest(Class::WithSlot, most, |_| false, |_, found| !found.is_stuck);
        let others = oldest.into_iter().filter(|&other| {
            let is_frozen = self.pool.is_frozen(self.blocks.get(other).data);
            other != id && self.is_reference(other) && !is_frozen
        });
        let room = most.min(self.pool.free_places() as usize);
        std::iter::once(id).chain(others).take(room).collect()
    }

    /// The content of a data block, if that can be read and is what it should be.
    fn content_to_freeze(&mut self, data: DataBlock) -> Option<(Frozen, Page)> {
        let holder = self.pool.users(data).holder?;
        let found = self.blocks.get(holder);
        let known = (found.content == Content::Slot).then_some(found.crc);
        let page = self.read_data(data).ok()?;
        let crc = crc_of(&page);
        let holds = known.is_none_or(|known| known == crc);
        holds.then_some((Frozen { data, crc }, page))
    }

    /// Writes contents to frozen places, those that are neighbours at once. Answers what was written.
    fn write_frozen(
        &mut self,
        places: &[FrozenPlace],
        contents: &[(Frozen, Page)],
    ) -> Vec<(FrozenPlace, Frozen)> {
        let placed: Vec<_> = places.iter().copied().zip(contents).collect();
        let mut frozen = Vec::new();
        let runs = placed.chunk_by(|&(place, _), &(next, _)| place + 1 == next);
        for run in runs.flat_map(|run| run.chunks(LONGEST_RUN)) {
            let pages: Vec<&[u8]> = run.iter().map(|(_, (_, page))| &page[..]).collect();
            let offset = self.areas.frozen_place(run[0].0);
            if self
                .media
                .write(Device::Slow, offset, &pages.concat())
                .is_err()
            {
                self.counters.background_failures += 1;
                continue;
            }
            frozen.extend(run.iter().map(|&(place, &(content, _))| (place, content)));
        }
        frozen
    }

    /// Copies the frozen data block that was read last to the fast medium, if a slot is free. No request waits for it.
    pub(super) fn bring_back(&mut self) {
        let Some((data, page)) = self.thawed.take() else {
            return;
        };
        let is_frozen_only = self.pool.is_frozen(Some(data)) && !self.pool.is_resident(data);
        if self.is_stopped() || !is_frozen_only {
            return;
        }
        let Some(slot) = self.pool.enter_slot(data) else {
            return;
        };
        self.media.begin_background();
        if self
            .media
            .write(Device::Fast, Areas::slot(slot), &page)
            .is_err()
        {
            self.pool.leave_slot(data);
            self.counters.background_failures += 1;
            return;
        }
        if let Some(holder) = self.pool.users(data).holder {
            self.blocks.set_resident(holder, true);
        }
        self.counters.brought_back += 1;
    }
}
