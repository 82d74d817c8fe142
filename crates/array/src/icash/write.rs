//! Writes and trims: a delta from the block's reference where that is short, else a data block of its own.

use flashlore_content::Sketch;
use flashlore_delta::Page;

use crate::element::{Device, Work};
use crate::error::ArrayError;
use crate::icash::blocks::{Content, Form, Id};
use crate::icash::content::crc_of;
use crate::icash::format::Areas;
use crate::icash::parameters::{BLOCK_BYTES, Compression, Similarity, TooBig};
use crate::icash::place::{BlockPlace, DataBlock};
use crate::icash::signature::Signature;
use crate::icash::state::ICash;
use crate::index::ArrayBlock;

/// Where new content was put before the block is said to hold it.
enum New {
    Slot(DataBlock),
    Held(Form, crate::icash::segments::Chain),
}

impl ICash {
    /// Gives a block new content. Virtual block, data block and segments for it are free.
    pub(super) fn write_block(&mut self, block: ArrayBlock, page: &Page) -> Result<(), ArrayError> {
        self.thawed = None;
        let id = self.blocks.find(block);
        match id {
            Some(id) => self.count_hit(id),
            None => self.counters.misses += 1,
        }
        let (signature, sketch) = self.signatures_of(page);
        if self.options.answers_early {
            self.media.begin_background();
        }
        let base = self.base_for(block, id, &signature, sketch.as_ref());
        let base = base.filter(|&base| self.may_record_from(base));
        let new = self.put(page, base)?;
        self.take_new(block, id, new, page, (signature, sketch));
        self.bring_back();
        self.ram.put(block, page);
        Ok(())
    }

    /// Gives a block content as a delta from a data block, or compressed, if that is short.
    pub(super) fn write_encoded(
        &mut self,
        block: ArrayBlock,
        page: &Page,
        base: Option<DataBlock>,
    ) -> bool {
        let Some((form, bytes)) = self.encode(page, base.as_slice()) else {
            return false;
        };
        let Some(chain) = self.segments.store(&bytes) else {
            return false;
        };
        let signatures = self.signatures_of(page);
        let id = self.blocks.find(block);
        self.take_new(block, id, New::Held(form, chain), page, signatures);
        true
    }

    /// Lets a block hold content that was put somewhere.
    fn take_new(
        &mut self,
        block: ArrayBlock,
        id: Option<Id>,
        new: New,
        page: &Page,
        (signature, sketch): (Signature, Option<Sketch>),
    ) {
        self.ram.remove(block);
        let id = self.virtual_for(block, id, &new);
        match new {
            New::Slot(data) => {
                self.set_content(id, Content::Stored, 0);
                self.give_up_data(id);
                self.hold_data(id, data);
                self.set_content(id, Content::Slot, crc_of(page));
            }
            New::Held(form, chain) => {
                self.set_content(id, Content::Held(form, chain), crc_of(page));
                self.give_up_unused_data(id);
            }
        }
        // The signature of a reference is that of its frozen content, which others are compared with.
        if self.blocks.get(id).data.is_none() || matches!(new, New::Slot(_)) {
            let found = self.blocks.get_mut(id);
            (found.signature, found.sketch) = (Some(signature), sketch);
        }
        self.must_record(id);
        self.access(id);
    }

    /// Gives the content of a block up.
    pub(super) fn trim_block(&mut self, block: ArrayBlock) {
        self.end_virtual(block);
        self.end_bare(block);
        self.set_trimmed(block, self.table.get(block).place != BlockPlace::Zero);
    }

    /// The data block that new content of a block is compared with.
    fn base_for(
        &mut self,
        block: ArrayBlock,
        id: Option<Id>,
        signature: &Signature,
        sketch: Option<&Sketch>,
    ) -> Option<DataBlock> {
        if self.options.similarity == Similarity::Nothing {
            return None;
        }
        if let Some(id) = id {
            let own = self.blocks.get(id).data.filter(|_| self.is_reference(id));
            return own.or(self.base_of(id));
        }
        match self.table.get(block).place {
            BlockPlace::Delta { base, .. } if !self.is_bare(block) => Some(base),
            _ => {
                let counterpart = self.counterpart(block, signature, sketch);
                self.counters.same_address += u64::from(counterpart.is_some());
                counterpart
            }
        }
    }

    /// The data block of a cached block with the same address in another machine, or of its reference, if that
    /// resembles this signature: the one that does most. A frozen one is left alone: for a delta the disk would be read.
    pub(super) fn counterpart(
        &self,
        block: ArrayBlock,
        signature: &Signature,
        sketch: Option<&Sketch>,
    ) -> Option<DataBlock> {
        if self.options.similarity == Similarity::Nothing {
            return None;
        }
        let mut best = None;
        for counterpart in self.addresses.counterparts(block) {
            let base = self.native_base(counterpart);
            let Some(base) = base.filter(|&base| self.pool.is_resident(base)) else {
                continue;
            };
            let Some(holder) = self.pool.users(base).holder else {
                continue;
            };
            let likeness = self.likeness(holder, signature, sketch);
            if likeness > 0 && best.is_none_or(|(most, _)| likeness > most) {
                best = Some((likeness, base));
            }
        }
        best.map(|(_, base)| base)
    }

    /// How much a virtual block resembles a signature or sketch; 0 if not enough to compare contents.
    pub(super) fn likeness(&self, id: Id, signature: &Signature, sketch: Option<&Sketch>) -> u32 {
        let found = self.blocks.get(id);
        if self.uses_sketches() {
            let both = found.sketch.as_ref().zip(sketch);
            return both.map_or(0, |(a, b)| a.shared(b));
        }
        let shared = found.signature.map_or(0, |s| s.shared(signature));
        if shared >= self.options.similar_positions {
            shared
        } else {
            0
        }
    }

    /// Puts content where it belongs: a delta or compressed bytes into RAM, otherwise the block itself to the
    /// fast medium or, whole, into RAM for the log.
    fn put(&mut self, page: &Page, base: Option<DataBlock>) -> Result<New, ArrayError> {
        let encoded = self.encode(page, base.as_slice());
        self.counters.too_big += u64::from(base.is_some() && encoded.is_none());
        let (form, bytes) = match encoded {
            Some(encoded) => encoded,
            None if self.options.too_big == TooBig::Fast => match self.write_data(page)? {
                Some(data) => return Ok(New::Slot(data)),
                None => (Form::Whole, page.to_vec()),
            },
            None => (Form::Whole, page.to_vec()),
        };
        self.counters.whole += u64::from(form == Form::Whole);
        match self.segments.store(&bytes) {
            Some(chain) => Ok(New::Held(form, chain)),
            None => Err(ArrayError::NoRoom("no segments are left for a block")),
        }
    }

    /// The shortest encoding of content within the limit, as a delta from one of these data blocks or compressed.
    pub(super) fn encode(&mut self, page: &Page, bases: &[DataBlock]) -> Option<(Form, Vec<u8>)> {
        let codec = self.options.codec;
        let mut limit = self.options.delta_limit;
        let mut best = None;
        for &base in bases {
            let Ok(frozen) = self.read_data(base) else {
                continue;
            };
            self.media.work(Work::Encode, BLOCK_BYTES);
            if let Some(bytes) = self.encoder.delta(codec, &frozen, page, limit) {
                best = Some((Form::Delta(base), bytes.to_vec()));
                limit = bytes.len().saturating_sub(1);
            }
        }
        if self.options.compression == Compression::IfShorter {
            self.media.work(Work::Encode, BLOCK_BYTES);
            if let Some(bytes) = self.encoder.alone(codec, page, limit) {
                best = Some((Form::Alone, bytes.to_vec()));
            }
        }
        self.count_encoded(best.as_ref());
        best
    }

    fn count_encoded(&mut self, encoded: Option<&(Form, Vec<u8>)>) {
        match encoded {
            Some((Form::Delta(_), bytes)) => {
                self.counters.deltas += 1;
                self.counters.delta_bytes += bytes.len() as u64;
            }
            Some((Form::Alone, bytes)) => {
                self.counters.alone += 1;
                self.counters.alone_bytes += bytes.len() as u64;
            }
            _ => {}
        }
    }

    /// Writes content to a new data block; nothing if no slot is free.
    pub(super) fn write_data(&mut self, page: &Page) -> Result<Option<DataBlock>, ArrayError> {
        let Some((data, slot)) = self.pool.take() else {
            return Ok(None);
        };
        if let Err(error) = self.media.write(Device::Fast, Areas::slot(slot), page) {
            self.pool.release(data);
            return Err(error.into());
        }
        self.counters.slot_writes += 1;
        Ok(Some(data))
    }

    /// The virtual block that gets new content. A reference whose content goes to a data block of its own, or
    /// becomes a delta from another reference, leaves its frozen one behind.
    fn virtual_for(&mut self, block: ArrayBlock, id: Option<Id>, new: &New) -> Id {
        self.end_bare(block);
        let leaves_slot = |id: Id| match *new {
            New::Slot(_) => true,
            New::Held(Form::Delta(base), _) => self.blocks.get(id).data != Some(base),
            New::Held(..) => false,
        };
        match id {
            Some(id) if leaves_slot(id) && self.is_reference(id) => {
                self.counters.detached += 1;
                self.detach(id);
                self.blocks.insert(Some(block))
            }
            Some(id) => {
                let is_own = matches!(new, New::Held(Form::Delta(base), _) if self.blocks.get(id).data == Some(*base));
                self.counters.own_deltas += u64::from(is_own);
                id
            }
            None => self.blocks.insert(Some(block)),
        }
    }

    /// Gives up a data block that is neither content nor base of anything; false if it is not given up.
    pub(super) fn give_up_unused_data(&mut self, id: Id) -> bool {
        let found = self.blocks.get(id);
        let is_elsewhere = match found.content {
            Content::Held(Form::Delta(base), _) => found.data != Some(base),
            Content::Held(..) => true,
            Content::Slot | Content::Stored => false,
        };
        let gives_up = is_elsewhere && !self.is_reference(id);
        if gives_up {
            self.give_up_data(id);
        }
        gives_up
    }
}
