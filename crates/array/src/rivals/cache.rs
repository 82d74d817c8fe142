//! What a cache does with a request. With `contents` it keeps one copy of each content, without it one of each
//! block; all else is the same.
//!
//! Invariants: those of `slots.rs` and `contents.rs`. What a clean block holds is at home too.

use flashlore_content::Digest;
use flashlore_delta::Page;
use flashlore_medium::MediumError;

use crate::element::{Device, Work};
use crate::icash::parameters::BLOCK_BYTES;
use crate::index::{ArrayBlock, Slot};
use crate::media::Media;
use crate::rivals::contents::{Contents, digest_of};
use crate::rivals::counters::RivalCounters;
use crate::rivals::options::CacheOptions;
use crate::rivals::slots::{SlotState, Slots};

/// Byte at which a block's native place begins on its medium.
pub(super) fn home_of(block: ArrayBlock) -> u64 {
    bytes_of(block.0)
}

/// Byte at which a slot begins on the fast medium.
pub(super) fn begin_of(slot: Slot) -> u64 {
    bytes_of(slot.0)
}

/// Bytes of so many blocks.
pub(super) fn bytes_of(blocks: u32) -> u64 {
    u64::from(blocks) * BLOCK_BYTES as u64
}

#[derive(Debug)]
pub(super) struct Cache {
    pub slots: Slots,
    pub counters: RivalCounters,
    pub options: CacheOptions,
    contents: Option<Contents>,
}

impl Cache {
    pub fn new(options: CacheOptions, shares_contents: bool) -> Self {
        Cache {
            slots: Slots::new(options.slots),
            counters: RivalCounters::default(),
            contents: shares_contents.then(|| Contents::new(options.slots)),
            options,
        }
    }

    /// Reads a block. False if it was not cached: [`Cache::fill`] should follow.
    pub fn read(
        &mut self,
        media: &mut Media,
        block: ArrayBlock,
        page: &mut Page,
    ) -> Result<bool, MediumError> {
        let Some(slot) = self.slots.slot_of(block) else {
            media.read(Device::Slow, home_of(block), page)?;
            self.counters.read_misses += 1;
            return Ok(false);
        };
        media.read(Device::Fast, begin_of(slot), page)?;
        self.counters.read_hits += 1;
        self.slots.touch(slot);
        Ok(true)
    }

    /// Caches what was read from home.
    pub fn fill(
        &mut self,
        media: &mut Media,
        block: ArrayBlock,
        page: &Page,
    ) -> Result<(), MediumError> {
        let digest = self.digest(media, page);
        if let Some(slot) = self.find(digest) {
            self.counters.shared_fills += 1;
            self.put(block, slot, SlotState::Clean);
            return Ok(());
        }
        let slot = self.free_slot(media)?;
        self.store(media, slot, digest, page)?;
        self.counters.fills += 1;
        self.put(block, slot, SlotState::Clean);
        Ok(())
    }

    pub fn write(
        &mut self,
        media: &mut Media,
        block: ArrayBlock,
        page: &Page,
    ) -> Result<(), MediumError> {
        let digest = self.digest(media, page);
        let own = self.slots.slot_of(block);
        match self.find(digest) {
            Some(slot) if own == Some(slot) => {
                self.counters.silent_writes += 1;
                self.slots.touch(slot);
            }
            Some(slot) => {
                self.counters.shared_writes += 1;
                self.put(block, slot, SlotState::Dirty);
            }
            None => {
                // A slot that no other block lies in is overwritten.
                let slot = match own {
                    Some(slot) if self.slots.blocks_in(slot) == 1 => slot,
                    _ => self.free_slot(media)?,
                };
                self.store(media, slot, digest, page)?;
                self.put(block, slot, SlotState::Dirty);
            }
        }
        match own {
            Some(_) => self.counters.write_hits += 1,
            None => self.counters.write_misses += 1,
        }
        Ok(())
    }

    pub fn trim(&mut self, block: ArrayBlock) {
        let freed = self.slots.remove(block);
        self.forget(freed);
    }

    /// If the next new content replaces a slot with dirty blocks, writes them home now.
    pub fn clean_ahead(&mut self, media: &mut Media) -> Result<(), MediumError> {
        match self.oldest_if_full() {
            Some(slot) if !self.slots.dirty_in(slot).is_empty() => self.write_home(media),
            _ => Ok(()),
        }
    }

    pub fn check(&self) -> Result<(), String> {
        self.slots.check()?;
        let has_blocks = |slot| self.slots.blocks_in(slot) > 0;
        self.contents
            .as_ref()
            .map_or(Ok(()), |c| c.check(has_blocks))
    }

    /// A free slot. If there is none, the one used longest ago is given up, with all its blocks.
    fn free_slot(&mut self, media: &mut Media) -> Result<Slot, MediumError> {
        if let Some(slot) = self.oldest_if_full() {
            if !self.slots.dirty_in(slot).is_empty() {
                self.write_home(media)?;
            }
            self.counters.replaced += 1;
            self.counters.replaced_blocks += self.slots.clear(slot);
            self.forget(Some(slot));
        }
        Ok(self.slots.next_free().expect("one was just made free"))
    }

    fn oldest_if_full(&self) -> Option<Slot> {
        match self.slots.next_free() {
            Some(_) => None,
            None => self.slots.oldest_first().next(),
        }
    }

    /// Writes content to a slot, of which nothing is known until that is done.
    fn store(
        &mut self,
        media: &mut Media,
        slot: Slot,
        digest: Option<Digest>,
        page: &Page,
    ) -> Result<(), MediumError> {
        self.forget(Some(slot));
        media.write(Device::Fast, begin_of(slot), page)?;
        if let Some((contents, digest)) = self.contents.as_mut().zip(digest) {
            contents.learn(slot, digest);
        }
        Ok(())
    }

    fn put(&mut self, block: ArrayBlock, slot: Slot, state: SlotState) {
        let freed = self.slots.put(block, slot, state);
        self.forget(freed);
        self.counters.most_blocks = self.counters.most_blocks.max(self.slots.blocks());
    }

    fn digest(&self, media: &mut Media, page: &Page) -> Option<Digest> {
        self.contents.as_ref()?;
        media.work(Work::Fingerprint, BLOCK_BYTES);
        Some(digest_of(page))
    }

    fn find(&self, digest: Option<Digest>) -> Option<Slot> {
        self.contents.as_ref()?.find(digest?)
    }

    fn forget(&mut self, slot: Option<Slot>) {
        if let Some((contents, slot)) = self.contents.as_mut().zip(slot) {
            contents.forget(slot);
        }
    }
}
