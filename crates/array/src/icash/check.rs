//! Recounting every invariant.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::ArrayError;
use crate::icash::blocks::{Content, Form, Id, Virtual};
use crate::icash::format::block::RECORD_BYTES;
use crate::icash::parameters::DELTA_LIMIT;
use crate::icash::place::{BlockPlace, DataBlock};
use crate::icash::signature::Signature;
use crate::icash::state::ICash;
use crate::index::ArrayBlock;

/// The users of a data block, counted anew.
#[derive(Debug, Default)]
struct Counted {
    holder: Option<Id>,
    named_by: Option<ArrayBlock>,
    dependents: BTreeSet<ArrayBlock>,
    associates: BTreeSet<Id>,
}

impl ICash {
    /// Recounts the invariants of the state in RAM (spec 6, numbers 2 to 6 and 8). What was changed when a page of the
    /// place table could not be read is none of them.
    pub fn check(&self) -> Result<(), String> {
        let checked = self.check_all();
        // If a page of it could not be read by then, nothing that is counted need hold.
        let whole = self.table.demand_whole();
        whole.map_err(|error| error.to_string()).and(checked)
    }

    fn check_all(&self) -> Result<(), String> {
        let is_reference = |found: &Virtual| self.pool.is_base(found.data);
        self.blocks
            .check(is_reference, |data| self.pool.is_resident(data))?;
        self.heatmap.check()?;
        let chains = self
            .blocks
            .newest_first()
            .filter_map(|(_, v)| match v.content {
                Content::Held(_, chain) => Some(chain),
                _ => None,
            });
        self.segments.check(chains)?;
        self.check_states()?;
        self.check_ram()?;
        self.check_unrecorded()?;
        self.check_passing()?;
        self.check_users()?;
        self.pool.check(|place| self.table.frozen(place))?;
        self.check_away()?;
        self.check_dirty()?;
        self.check_unused_homes()?;
        self.check_write_through()?;
        self.check_log()?;
        self.table.check()
    }

    /// Data blocks in RAM are of blocks with virtual blocks.
    fn check_ram(&self) -> Result<(), String> {
        self.ram.check()?;
        match self
            .ram
            .blocks()
            .find(|&block| self.blocks.find(block).is_none())
        {
            Some(block) => Err(format!(
                "RAM has the content of block {block}, which has no virtual block"
            )),
            None => Ok(()),
        }
    }

    /// Each virtual block by itself, and its reference.
    fn check_states(&self) -> Result<(), String> {
        for (id, v) in self.blocks.newest_first() {
            if let Some(data) = v.data
                && self.pool.users(data).holder != Some(id)
            {
                return Err(format!("{data:?} is not held by its virtual block {v:?}"));
            }
            let is_too_long = |form, bytes| form != Form::Whole && bytes > DELTA_LIMIT;
            if let Content::Held(form, chain) = v.content
                && is_too_long(form, chain.bytes())
            {
                return Err(format!(
                    "a delta of {} bytes is too long: {v:?}",
                    chain.bytes()
                ));
            }
            if v.content == Content::Slot && v.data.is_none() {
                return Err(format!(
                    "a virtual block has its content in no data block: {v:?}"
                ));
            }
            if v.block.is_none() && (!self.is_reference(id) || v.content != Content::Stored) {
                return Err(format!(
                    "a virtual block has neither an address nor associates: {v:?}"
                ));
            }
            let place = self.place_of(id);
            let is_known = !v.block.is_some_and(|block| self.trimmed.contains(&block));
            if v.content == Content::Stored && matches!(place, BlockPlace::Delta { .. }) && is_known
            {
                return Err(format!(
                    "a delta is neither in RAM nor without virtual block: {v:?}"
                ));
            }
            let Some(base) = self.base_of(id) else {
                continue;
            };
            if v.data.is_some() {
                return Err(format!("an associate has a data block: {v:?}"));
            }
            let Some(holder) = self.pool.users(base).holder else {
                return Err(format!("the reference of {v:?} has no virtual block"));
            };
            if self.base_of(holder).is_some() || !self.is_reference(holder) {
                return Err(format!(
                    "the reference of {v:?} is none: {:?}",
                    self.blocks.get(holder)
                ));
            }
            if !self.blocks.is_newer(holder, id) {
                return Err(format!("an associate is ahead of its reference: {v:?}"));
            }
        }
        Ok(())
    }

    /// What the next group has to record.
    fn check_unrecorded(&self) -> Result<(), String> {
        let mut blocks = self.trimmed.clone();
        blocks.extend(self.passing.keys());
        let mut bytes = (RECORD_BYTES * self.trimmed.len()) as u64 + self.passing_bytes();
        for (_, v) in self.blocks.newest_first() {
            bytes += u64::from(v.unrecorded);
            let payload = match v.content {
                Content::Held(_, chain) => chain.bytes(),
                _ => 0,
            };
            if v.unrecorded > 0 && v.unrecorded as usize != RECORD_BYTES + payload {
                return Err(format!(
                    "the record of {v:?} takes {}",
                    RECORD_BYTES + payload
                ));
            }
            if let (Some(block), true) = (v.block, v.unrecorded > 0) {
                blocks.insert(block);
            }
            if v.block.is_some_and(|block| self.trimmed.contains(&block)) {
                return Err(format!(
                    "a block is trimmed and has the virtual block {v:?}"
                ));
            }
        }
        if blocks != self.unrecorded || bytes != self.unrecorded_bytes {
            return Err(format!(
                "unrecorded are {blocks:?} with {bytes} bytes, counted are {:?} with {}",
                self.unrecorded, self.unrecorded_bytes
            ));
        }
        Ok(())
    }

    /// Who uses which data block.
    fn check_users(&self) -> Result<(), String> {
        let mut all: BTreeMap<DataBlock, Counted> = BTreeMap::new();
        for block in self.table.blocks() {
            let place = self.table.get(block).place;
            if let Some(data) = place.own_data() {
                all.entry(data).or_default().named_by = Some(block);
            }
            if let BlockPlace::Delta { base, .. } = place {
                all.entry(base).or_default().dependents.insert(block);
            }
        }
        for (id, v) in self.blocks.newest_first() {
            if let Some(data) = v.data {
                all.entry(data).or_default().holder = Some(id);
            }
            if let Some(base) = self.base_of(id) {
                all.entry(base).or_default().associates.insert(id);
            }
        }
        let in_use: Vec<DataBlock> = all.keys().copied().collect();
        if in_use != self.pool.in_use() {
            return Err(format!(
                "in use are {in_use:?}, counted are {:?}",
                self.pool.in_use()
            ));
        }
        for (data, counted) in all {
            let users = self.pool.users(data);
            let holds = users.holder == counted.holder
                && users.named_by == counted.named_by
                && users.dependents == counted.dependents
                && users.associates == counted.associates;
            if !holds {
                return Err(format!(
                    "{data:?} has the users {users:?}, expected {counted:?}"
                ));
            }
            let is_named = users.named_by.is_some();
            let waits = users
                .named_by
                .is_some_and(|block| self.unrecorded.contains(&block));
            if users.holder.is_none() && (users.is_base() || is_named && !waits) {
                return Err(format!("{data:?} is held by nobody: {users:?}"));
            }
        }
        Ok(())
    }

    /// Which blocks are not at home.
    fn check_away(&self) -> Result<(), String> {
        let is_ordered = self.shape.journal_blocks > 0;
        let blocks = self.table.blocks();
        let blocks = blocks.filter(|&block| is_ordered && self.table.get(block).is_away());
        let away: BTreeSet<ArrayBlock> = blocks.collect();
        if away != self.away {
            return Err(format!(
                "away from home are {away:?}, counted are {:?}",
                self.away
            ));
        }
        Ok(())
    }

    /// How many blocks are not at home.
    fn check_dirty(&self) -> Result<(), String> {
        let blocks = self.table.blocks();
        let dirty = blocks.filter(|&block| self.table.get(block).place.is_dirty());
        match dirty.count() as u64 {
            dirty if dirty == self.dirty => Ok(()),
            dirty => Err(format!(
                "{dirty} blocks are not at home, counted are {}",
                self.dirty
            )),
        }
    }

    /// What lives in the segments of the log.
    fn check_log(&self) -> Result<(), String> {
        let mut live = vec![0; self.space.segments() as usize];
        for block in self.table.blocks() {
            if let Some((log, bytes)) = self.table.get(block).place.log() {
                let segment = log.segment(self.space.segment_blocks);
                live[segment.index()] += u64::from(bytes);
            }
        }
        self.space.check(&live)
    }

    /// Reads the durable content of every block that has nothing unrecorded, and compares it with its present
    /// content; reads what is frozen; and compares the signatures of data blocks with what is in them.
    ///
    /// # Errors
    /// The first block whose contents cannot be read or differ.
    pub fn verify(&mut self) -> Result<(), ArrayError> {
        for block in self.table.blocks() {
            self.verify_block(self.addresses.lba(block))?;
        }
        self.verify_frozen()?;
        self.verify_signatures()
    }

    /// What lies in a frozen place is what was frozen, as long as somebody uses it.
    fn verify_frozen(&mut self) -> Result<(), ArrayError> {
        for data in self.pool.in_use() {
            let Some(place) = self.pool.users(data).frozen() else {
                continue;
            };
            let frozen = self.table.frozen(place);
            let read = frozen.map(|frozen| self.read_frozen(place, frozen));
            if let Some(Err(why)) = read {
                return Err(ArrayError::Damaged(format!(
                    "data block {} in frozen place {place} cannot be read: {why}",
                    data.name()
                )));
            }
        }
        Ok(())
    }

    /// Reads the present content of a block, and its durable content if that should be the same, and compares them.
    /// Nothing changes: neither what is in RAM nor what is on a medium.
    ///
    /// # Errors
    /// No such address; one of them cannot be read, or they differ.
    pub fn verify_block(&mut self, lba: u64) -> Result<(), ArrayError> {
        let block = self.addresses.block(lba)?;
        let present = self.present(block);
        let present = present.map_err(|source| self.addresses.unreadable(block, source))?;
        let entry = self.look_up(block)?;
        if self.unrecorded.contains(&block) {
            return Ok(());
        }
        let stored = self.stored(block, &entry);
        let stored = stored.map_err(|source| self.addresses.unreadable(block, source))?;
        if stored == present {
            return Ok(());
        }
        let place = entry.place;
        Err(ArrayError::Damaged(format!(
            "block {lba:#x} is recorded in {place}, and what is there is not its content"
        )))
    }

    /// The signature of a virtual block with a data block is that of what is in there: others are compared with it
    /// (spec 6, number 3).
    fn verify_signatures(&mut self) -> Result<(), ArrayError> {
        let known = self.blocks.newest_first();
        let known: Vec<_> = known
            .filter_map(|(_, v)| Some((v.data?, v.signature?)))
            .collect();
        for (data, signature) in known {
            let Ok(page) = self.read_data(data) else {
                continue;
            };
            if Signature::of(&page) != signature {
                return Err(ArrayError::Damaged(format!(
                    "data block {} has the signature {:?}, its virtual block says {signature:?}",
                    data.name(),
                    Signature::of(&page)
                )));
            }
        }
        Ok(())
    }
}
