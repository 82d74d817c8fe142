//! The content of blocks: reading it from wherever it is, and checking that it is what was stored.

use flashlore_delta::Page;

use crate::element::{Device, Work};
use crate::error::{ArrayError, ContentError};
use crate::icash::blocks::{Content, Form, Id};
use crate::icash::format::Areas;
use crate::icash::parameters::BLOCK_BYTES;
use crate::icash::place::{BlockEntry, BlockPlace, DataBlock, Frozen, LogPlace};
use crate::icash::state::ICash;
use crate::index::{ArrayBlock, FrozenPlace, Slot};

/// What a block holds that was never written.
pub(super) const ZEROS: Page = [0; BLOCK_BYTES];

pub(super) fn crc_of(page: &Page) -> u32 {
    crc32fast::hash(page)
}

/// The bytes at a place in a block of the log.
pub(super) fn in_log_block(block: &Page, at: LogPlace) -> &[u8] {
    let start = usize::from(at.offset);
    let end = (start + usize::from(at.bytes)).min(BLOCK_BYTES);
    &block[start..end]
}

fn verified(page: Page, expected: u32) -> Result<Page, ContentError> {
    let found = crc_of(&page);
    if found != expected {
        return Err(ContentError::Checksum { found, expected });
    }
    Ok(page)
}

impl ICash {
    /// What a block holds at present.
    pub(super) fn present(&mut self, block: ArrayBlock) -> Result<Page, ContentError> {
        match self.blocks.find(block) {
            Some(id) => self.present_of(id),
            None if self.trimmed.contains(&block) => Ok(ZEROS),
            None => match self.passing.get(&block) {
                Some(passing) => Ok(*passing.page),
                None => self.durable(block),
            },
        }
    }

    /// What the durable place of a block says.
    ///
    /// # Errors
    /// Its page of the table cannot be read.
    pub(super) fn durable_entry(&self, block: ArrayBlock) -> Result<BlockEntry, ContentError> {
        self.table.look(block).map_err(ContentError::Place)
    }

    /// The same for whoever asks for the block.
    ///
    /// # Errors
    /// As there.
    pub(super) fn look_up(&self, block: ArrayBlock) -> Result<BlockEntry, ArrayError> {
        let entry = self.durable_entry(block);
        entry.map_err(|source| self.addresses.unreadable(block, source))
    }

    /// What is durable of a block.
    fn durable(&mut self, block: ArrayBlock) -> Result<Page, ContentError> {
        let entry = self.durable_entry(block)?;
        self.stored(block, &entry)
    }

    /// What the block of a virtual block holds at present. A copy that cannot be read is not needed where the same is
    /// durable elsewhere.
    pub(super) fn present_of(&mut self, id: Id) -> Result<Page, ContentError> {
        let found = self.blocks.get(id);
        let durable = found.block.filter(|_| found.unrecorded == 0);
        self.copy_of(id).or_else(|error| {
            let stored = durable.map(|block| self.durable(block));
            stored.and_then(Result::ok).ok_or(error)
        })
    }

    /// What a virtual block holds, in RAM or where it says that it is.
    fn copy_of(&mut self, id: Id) -> Result<Page, ContentError> {
        let found = self.blocks.get(id);
        let (crc, data, block) = (found.crc, found.data, found.block);
        if let Some(page) = block.and_then(|block| self.ram.get(block)) {
            return Ok(*page);
        }
        match found.content {
            Content::Held(form, chain) => {
                let mut bytes = Vec::new();
                self.segments.read(chain, &mut bytes);
                self.expand(form, &bytes, crc)
            }
            Content::Slot => match data {
                Some(data) => verified(self.read_data(data)?, crc),
                None => Ok(ZEROS),
            },
            Content::Stored => match block {
                Some(block) => self.durable(block),
                None => Ok(ZEROS),
            },
        }
    }

    /// The content of a block at a durable place.
    pub(super) fn stored(
        &mut self,
        block: ArrayBlock,
        entry: &BlockEntry,
    ) -> Result<Page, ContentError> {
        match entry.place {
            BlockPlace::Zero => Ok(ZEROS),
            BlockPlace::Slot(data) => verified(self.read_data(data)?, entry.crc),
            BlockPlace::Home => verified(self.read_slow(self.areas.home_of(block))?, entry.crc),
            BlockPlace::Whole(log) => {
                verified(self.read_slow(self.areas.log_block(log))?, entry.crc)
            }
            BlockPlace::Own { data: base, at } | BlockPlace::Delta { base, at } => {
                let bytes = self.read_log(at)?;
                self.expand(Form::Delta(base), &bytes, entry.crc)
            }
            BlockPlace::Alone(at) => {
                let bytes = self.read_log(at)?;
                self.expand(Form::Alone, &bytes, entry.crc)
            }
            BlockPlace::Lost => Err(ContentError::Lost),
        }
    }

    /// The content that bytes of a delta, of compressed or of whole content stand for.
    pub(super) fn expand(
        &mut self,
        form: Form,
        bytes: &[u8],
        crc: u32,
    ) -> Result<Page, ContentError> {
        let mut page = ZEROS;
        match form {
            Form::Whole => {
                let length = bytes.len().min(BLOCK_BYTES);
                page[..length].copy_from_slice(&bytes[..length]);
            }
            Form::Alone => {
                flashlore_delta::decode(bytes, None, &mut page)?;
                self.media.work(Work::Decode, BLOCK_BYTES);
            }
            Form::Delta(base) => {
                let base = self.read_data(base)?;
                flashlore_delta::decode(bytes, Some(&base), &mut page)?;
                self.media.work(Work::Decode, BLOCK_BYTES);
            }
        }
        verified(page, crc)
    }

    /// What a data block holds. If it is frozen it must be what was frozen, and is read there if it is not on the fast
    /// medium or cannot be read; otherwise it may be anything, and what is made of it is verified.
    pub(super) fn read_data(&mut self, data: DataBlock) -> Result<Page, ContentError> {
        let users = self.pool.users(data);
        let place = users.frozen();
        let frozen = place.and_then(|place| Some((place, self.table.frozen(place)?)));
        match (users.slot(), frozen) {
            (Some(slot), None) => self.read_slot(slot),
            (Some(slot), Some((place, frozen))) => {
                let page = self.read_slot(slot);
                let page = page.and_then(|page| verified(page, frozen.crc));
                page.or_else(|_| self.read_frozen(place, frozen))
            }
            (None, Some((place, frozen))) => {
                let page = self.read_frozen(place, frozen)?;
                self.thawed = Some((data, page));
                Ok(page)
            }
            (None, None) => Err(ContentError::NoData { data }),
        }
    }

    fn read_slot(&mut self, slot: Slot) -> Result<Page, ContentError> {
        let mut page = ZEROS;
        self.media
            .read(Device::Fast, Areas::slot(slot), &mut page)?;
        Ok(page)
    }

    /// What lies in a frozen place, if it is what should.
    pub(super) fn read_frozen(
        &mut self,
        place: FrozenPlace,
        frozen: Frozen,
    ) -> Result<Page, ContentError> {
        self.counters.frozen_reads += 1;
        verified(self.read_slow(self.areas.frozen_place(place))?, frozen.crc)
    }

    pub(super) fn read_slow(&mut self, offset: u64) -> Result<Page, ContentError> {
        let mut page = ZEROS;
        self.media.read(Device::Slow, offset, &mut page)?;
        Ok(page)
    }

    /// Bytes in a block of the log.
    fn read_log(&mut self, at: LogPlace) -> Result<Vec<u8>, ContentError> {
        let page = self.read_slow(self.areas.log_block(at.block))?;
        Ok(in_log_block(&page, at).to_vec())
    }
}
