//! Write-through: nothing durable depends on the fast medium, which may be lost at any time.
//!
//! Invariants, in that mode:
//!
//! - Every data block that a durable place names is frozen, unless it could not be read when it should have been.
//! - What is not recorded yet needs no data block that is not frozen: it is whole, compressed, or a delta from a frozen
//!   one. So a group of the log can always be written, whatever became of the fast medium meanwhile.
//!
//! Deltas of recorded blocks in RAM may be based on what the fast medium alone has: where they cannot be decoded any
//! more, the durable content is read. A scan freezes the bases it finds, all together, and only then writes become deltas
//! from them. The image of a machine is compared with blocks of the native one that were frozen before.
//!
//! An array that was used in write-back before is brought to this state when it is opened.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::error::ArrayError;
use crate::icash::blocks::{Content, Form, Id};
use crate::icash::parameters::{Mode, SPARE_FROZEN, Similarity};
use crate::icash::place::DataBlock;
use crate::icash::pool::Users;
use crate::icash::state::ICash;
use crate::index::ArrayBlock;

/// Blocks of a native machine that are frozen together for the image of another one.
const LOADED_AT_ONCE: u32 = 64;

/// Native blocks that were brought to the pool for some blocks of an image.
pub(super) struct Loaded {
    /// The block of the image behind the last of these.
    pub end: ArrayBlock,
    pub brought: BTreeSet<ArrayBlock>,
}

impl ICash {
    /// Whether a group of the log may name a data block as what a delta is based on.
    pub(super) fn may_record_from(&self, base: DataBlock) -> bool {
        self.options.mode == Mode::WriteBack || self.pool.is_frozen(Some(base))
    }

    pub(super) fn may_record_as(&self, form: Form) -> bool {
        match form {
            Form::Delta(base) => self.may_record_from(base),
            Form::Alone | Form::Whole => true,
        }
    }

    /// Freezes the bases of deltas that lie on the fast medium alone, those used last first: as many as go home at once.
    pub(super) fn freeze_bases_on_fast_alone(&mut self) -> Result<(), ArrayError> {
        if self.options.mode == Mode::WriteBack {
            return Ok(());
        }
        self.make_ready()?;
        let most = self.options.write_back_batch;
        let bases = self.blocks.newest_first().filter_map(|(_, found)| {
            let data = found.data?;
            let wants = self.pool.is_base(found.data) && !self.pool.is_frozen(found.data);
            wants.then_some(data)
        });
        let bases: Vec<DataBlock> = bases.take(most).collect();
        self.counters.references_frozen += self.freeze_data(&bases)?;
        Ok(())
    }

    /// Loads the blocks of a native machine that some blocks of another one are going to be compared with, the first of
    /// these, and freezes what deltas would be based on.
    pub(super) fn load_frozen(
        &mut self,
        native: u8,
        blocks: Range<ArrayBlock>,
    ) -> Result<Loaded, ArrayError> {
        let compares = self.options.similarity != Similarity::Nothing;
        if self.options.mode == Mode::WriteBack || !compares {
            return Ok(Loaded {
                end: blocks.end,
                brought: BTreeSet::new(),
            });
        }
        // No more than fit beside what is there.
        let most = LOADED_AT_ONCE.min(self.pool.slots() / 4).max(1);
        let blocks = blocks.start..blocks.end.min(blocks.start + most);
        let natives = ArrayBlock::each(blocks.clone()).filter_map(|block| {
            let counterpart = self.addresses.counterpart_in(block, native);
            counterpart.filter(|&counterpart| counterpart != block)
        });
        let natives: Vec<ArrayBlock> = natives.collect();
        let mut brought = BTreeSet::new();
        for &block in &natives {
            self.make_ready()?;
            if self.load_native(block)? {
                brought.insert(block);
            }
        }
        let bases = { natives.iter() }.filter_map(|&block| self.native_base(block));
        let bases = bases.filter(|&base| !self.pool.is_frozen(Some(base)));
        let bases: BTreeSet<DataBlock> = bases.collect();
        self.make_ready()?;
        let held = { bases.into_iter() }.filter(|&base| self.pool.users(base).holder.is_some());
        let held: Vec<DataBlock> = held.collect();
        self.freeze_data(&held)?;
        Ok(Loaded {
            end: blocks.end,
            brought,
        })
    }

    /// Whether the next references might find no frozen place.
    pub(super) fn lacks_frozen_places(&self) -> bool {
        let spare = SPARE_FROZEN.min(self.shape.frozen_blocks / 2);
        self.options.mode == Mode::WriteThrough && self.pool.free_places() < spare
    }

    /// Does something that lets the frozen place of the oldest data block become free: what depends on it goes home.
    /// False if there is none that can go.
    pub(super) fn replace_frozen(&mut self) -> Result<bool, ArrayError> {
        let oldest = self.blocks.oldest_first();
        let victim = { oldest }.find_map(|(id, found)| {
            let is_one = self.pool.is_frozen(found.data) && !found.is_stuck;
            is_one.then_some(id).zip(found.data)
        });
        let Some((id, data)) = victim else {
            return Ok(false);
        };
        match self.is_reference(id) {
            true => self.release_reference(id, data)?,
            false => self.replace_own_data(id)?,
        }
        Ok(true)
    }

    /// Freezes every data block that a durable place names, or lets what depends on it go home.
    pub(super) fn secure_all(&mut self) -> Result<(), ArrayError> {
        if self.options.mode == Mode::WriteBack {
            return Ok(());
        }
        loop {
            self.keep_room()?;
            let exposed = self.on_fast_alone().filter(|d| !self.exposed.contains(d));
            let exposed: Vec<DataBlock> = exposed.take(self.options.write_back_batch).collect();
            let Some(&first) = exposed.first() else {
                return Ok(());
            };
            if self.freeze_data(&exposed)? == 0 {
                self.send_dependents_home(first)?;
            }
        }
    }

    /// Brings some of the blocks home whose durable content needs a data block. If none could be, the data block is
    /// known to be exposed.
    fn send_dependents_home(&mut self, data: DataBlock) -> Result<(), ArrayError> {
        let users = self.pool.users(data);
        let blocks = users.named_by.into_iter();
        let blocks = blocks.chain(users.dependents.iter().copied());
        let blocks: BTreeSet<ArrayBlock> = blocks.take(self.options.write_back_batch).collect();
        self.write_back(&blocks)?;
        let needs_it = |block: &ArrayBlock| self.table.get(*block).place.data() == Some(data);
        if blocks.iter().all(needs_it) {
            self.exposed.insert(data);
        }
        Ok(())
    }

    /// The data blocks that durable places name and that are not frozen.
    fn on_fast_alone(&self) -> impl Iterator<Item = DataBlock> {
        let is_named = |users: &Users| users.named_by.is_some() || !users.dependents.is_empty();
        let all = self.pool.in_use().into_iter();
        all.filter(move |&data| {
            let users = self.pool.users(data);
            is_named(users) && users.frozen().is_none()
        })
    }

    /// Nothing durable, and nothing that is to become durable, needs the fast medium.
    pub(super) fn check_write_through(&self) -> Result<(), String> {
        if self.options.mode == Mode::WriteBack {
            return Ok(());
        }
        if let Some(data) = self.on_fast_alone().find(|d| !self.exposed.contains(d)) {
            let users = self.pool.users(data);
            return Err(format!(
                "{data:?} is named durably and lies on the fast medium alone: {users:?}"
            ));
        }
        for (id, found) in self.blocks.newest_first() {
            if found.unrecorded > 0 && !self.is_safe(id) {
                return Err(format!(
                    "what is not recorded yet needs the fast medium: {found:?}"
                ));
            }
        }
        Ok(())
    }

    /// Whether the present content of a virtual block needs nothing that lies on the fast medium alone.
    fn is_safe(&self, id: Id) -> bool {
        let found = self.blocks.get(id);
        match found.content {
            Content::Held(form, _) => self.may_record_as(form),
            Content::Slot => self.pool.is_frozen(found.data),
            Content::Stored => true,
        }
    }
}
