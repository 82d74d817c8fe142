//! Recounting every invariant.

use std::collections::BTreeSet;

use crate::error::ArrayError;
use crate::icash::blocks::{Content, Form};
use crate::icash::format::block::RECORD_BYTES;
use crate::icash::parameters::DELTA_LIMIT;
use crate::icash::place::BlockPlace;
use crate::icash::signature::Signature;
use crate::icash::state::ICash;

impl ICash {
    /// Recounts the invariants of the state in RAM (spec 6, numbers 2 to 6 and 8).
    pub fn check(&self) -> Result<(), String> {
        self.blocks.check(|found| self.pool.is_base(found.slot))?;
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
        self.check_users()?;
        self.pool.check()?;
        self.check_away()?;
        self.check_log()
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
            if let Some(slot) = v.slot
                && self.pool.users(slot).holder != Some(id)
            {
                return Err(format!(
                    "data block {slot} is not held by its virtual block {v:?}"
                ));
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
            if v.content == Content::Slot && v.slot.is_none() {
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
            if v.slot.is_some() {
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
        let mut bytes = (RECORD_BYTES * self.trimmed.len()) as u64;
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
        let slots = self.pool.len() as usize;
        let mut named = vec![None; slots];
        let mut dependents = vec![BTreeSet::new(); slots];
        let mut associates = vec![BTreeSet::new(); slots];
        let mut holders = vec![None; slots];
        for block in 0..self.table.len() {
            let place = self.table.get(block).place;
            if let Some(slot) = place.own_slot() {
                named[slot as usize] = Some(block);
            }
            if let BlockPlace::Delta { base, .. } = place {
                dependents[base as usize].insert(block);
            }
        }
        for (id, v) in self.blocks.newest_first() {
            if let Some(slot) = v.slot {
                holders[slot as usize] = Some(id);
            }
            if let Some(base) = self.base_of(id) {
                associates[base as usize].insert(id);
            }
        }
        for slot in 0..slots {
            let users = self.pool.users(slot as u32);
            let holds = users.holder == holders[slot]
                && users.named_by == named[slot]
                && users.dependents == dependents[slot]
                && users.associates == associates[slot];
            if !holds {
                return Err(format!(
                    "data block {slot} has the users {users:?}, expected {:?}, {:?}, {:?}, {:?}",
                    holders[slot], named[slot], dependents[slot], associates[slot]
                ));
            }
            let waits = named[slot].is_some_and(|block: u32| self.unrecorded.contains(&block));
            if users.holder.is_none() && (users.is_base() || named[slot].is_some() && !waits) {
                return Err(format!("data block {slot} is held by nobody: {users:?}"));
            }
        }
        Ok(())
    }

    /// Which blocks are not at home.
    fn check_away(&self) -> Result<(), String> {
        let is_ordered = self.shape.journal_blocks > 0;
        let blocks =
            (0..self.table.len()).filter(|&block| is_ordered && self.table.get(block).is_away());
        let away: BTreeSet<u32> = blocks.collect();
        if away != self.away {
            return Err(format!(
                "away from home are {away:?}, counted are {:?}",
                self.away
            ));
        }
        Ok(())
    }

    /// What lives in the segments of the log.
    fn check_log(&self) -> Result<(), String> {
        let mut live = vec![0; self.space.segments() as usize];
        for block in 0..self.table.len() {
            if let Some((log, bytes)) = self.table.get(block).place.log() {
                live[(log / self.space.segment_blocks) as usize] += u64::from(bytes);
            }
        }
        self.space.check(&live)
    }

    /// Reads the durable content of every block that has nothing unrecorded, and compares it with its present
    /// content; and compares the signatures of data blocks with what is in them.
    ///
    /// # Errors
    /// The first block whose contents cannot be read or differ.
    pub fn verify(&mut self) -> Result<(), ArrayError> {
        for block in 0..self.table.len() {
            self.verify_block(self.addresses.lba(block))?;
        }
        self.verify_signatures()
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
        let entry = self.table.get(block);
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
            "the durable content of block {lba:#x} at {place:?} is not what it holds"
        )))
    }

    /// The signature of a virtual block with a data block is that of what is in there: others are compared with it
    /// (spec 6, number 3).
    fn verify_signatures(&mut self) -> Result<(), ArrayError> {
        let known = self.blocks.newest_first();
        let known: Vec<_> = known
            .filter_map(|(_, v)| Some((v.slot?, v.signature?)))
            .collect();
        for (slot, signature) in known {
            let Ok(page) = self.read_slot(slot) else {
                continue;
            };
            if Signature::of(&page) != signature {
                return Err(ArrayError::Damaged(format!(
                    "data block {slot} has the signature {:?}, its virtual block says {signature:?}",
                    Signature::of(&page)
                )));
            }
        }
        Ok(())
    }
}
