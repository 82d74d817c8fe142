//! The image of a new virtual machine (paper, section 3.1): each of its blocks is compared with the block at the same
//! address of a native machine, and only the delta is stored.
//!
//! The native block, or its reference, has to be in the pool as the base of the delta. Blocks are loaded for
//! that while they displace no other reference, and one that turned out to be no base leaves again. What finds no
//! base is compressed, if blocks are, or goes home as it is. With ordered write-back it is written like any other
//! block, for only whole batches go home. In write-through the native blocks of a few blocks are loaded together, and
//! frozen before deltas are based on them.

use std::collections::BTreeMap;
use std::ops::Range;

use flashlore_delta::Page;

use crate::addresses::lba;
use crate::counts::counts;
use crate::error::ArrayError;
use crate::icash::blocks::Class;
use crate::icash::content::ZEROS;
use crate::icash::parameters::{SPARE_SLOTS, Similarity};
use crate::icash::place::{BlockPlace, DataBlock};
use crate::icash::state::ICash;
use crate::icash::write_through::Loaded;
use crate::index::{Address, ArrayBlock};

/// Blocks that go home at once.
const STAGED: usize = 256;

counts! {
    /// How the blocks of an image are stored.
    pub struct Image {
        /// As nothing: they are zeros.
        pub zeros: u64,
        pub deltas: u64,
        pub delta_bytes: u64,
        pub compressed: u64,
        pub compressed_bytes: u64,
        pub whole: u64,
    }
}

impl ICash {
    /// Fills a machine with an image, compared with a native machine unless similarity is not looked for. `read`
    /// fills a page with the content of an address of the image.
    ///
    /// # Errors
    /// There is no such machine, `read` failed, no room, or a medium failed. Then some blocks have the content of
    /// the image and the others what they had.
    pub fn create_image(
        &mut self,
        native: u8,
        machine: u8,
        read: &mut dyn FnMut(u64, &mut Page) -> Result<(), ArrayError>,
    ) -> Result<Image, ArrayError> {
        let all = self.addresses_of(machine)?;
        self.create_image_part(native, machine, all, read)
    }

    /// As [`ICash::create_image`] for some addresses of the machine, so that others may be served in between.
    ///
    /// # Errors
    /// As there, or there are no such addresses.
    pub fn create_image_part(
        &mut self,
        native: u8,
        machine: u8,
        addresses: Range<Address>,
        read: &mut dyn FnMut(u64, &mut Page) -> Result<(), ArrayError>,
    ) -> Result<Image, ArrayError> {
        let first = self.addresses.blocks_of(machine)?.start;
        self.fill_image(native, machine, addresses, &mut |_, block, page| {
            read(u64::from(block - first), page)
        })
    }

    /// Fills a machine with what a native one holds. Where that one has fewer blocks, the rest becomes zeros.
    ///
    /// # Errors
    /// As for [`ICash::create_image`].
    pub fn clone_machine(&mut self, native: u8, machine: u8) -> Result<Image, ArrayError> {
        let all = self.addresses_of(machine)?;
        self.clone_machine_part(native, machine, all)
    }

    /// As [`ICash::clone_machine`] for some addresses.
    ///
    /// # Errors
    /// As for [`ICash::create_image_part`].
    pub fn clone_machine_part(
        &mut self,
        native: u8,
        machine: u8,
        addresses: Range<Address>,
    ) -> Result<Image, ArrayError> {
        self.fill_image(native, machine, addresses, &mut |element, block, page| {
            *page = ZEROS;
            if let Some(counterpart) = element.addresses.counterpart_in(block, native) {
                let content = element.present(counterpart);
                *page =
                    content.map_err(|source| element.addresses.unreadable(counterpart, source))?;
            }
            Ok(())
        })
    }

    /// [`Element::lay_in`](crate::element::Element::lay_in).
    pub(super) fn lay_in_blocks(
        &mut self,
        pages: &mut dyn Iterator<Item = (u64, Page)>,
    ) -> Result<(), ArrayError> {
        let mut staged = BTreeMap::new();
        for (lba, page) in pages {
            let block = self.addresses.block(lba)?;
            if self.table.get(block).place != BlockPlace::Zero
                || self.blocks.find(block).is_some()
                || self.is_bare(block)
                || staged.contains_key(&block)
            {
                return Err(ArrayError::Occupied { block });
            }
            match page == ZEROS {
                true => {}
                false if self.goes_straight_home(block) => {
                    staged.insert(block, page);
                }
                false => {
                    self.make_ready()?;
                    self.write_block(block, &page)?;
                }
            }
            if staged.len() == STAGED {
                self.make_ready()?;
                self.write_new_home(&std::mem::take(&mut staged))?;
            }
        }
        self.make_ready()?;
        self.write_new_home(&staged)
    }

    fn addresses_of(&self, machine: u8) -> Result<Range<Address>, ArrayError> {
        let blocks = self.addresses.blocks_of(machine)?;
        Ok(Address(0)..Address(blocks.end - blocks.start))
    }

    fn fill_image(
        &mut self,
        native: u8,
        machine: u8,
        part: Range<Address>,
        read: &mut dyn FnMut(&mut Self, ArrayBlock, &mut Page) -> Result<(), ArrayError>,
    ) -> Result<Image, ArrayError> {
        self.addresses.blocks_of(native)?;
        let first = self.addresses.blocks_of(machine)?.start;
        if let Some(last) = Address::each(part.clone()).next_back() {
            self.addresses.block(lba(machine, last.into()))?;
        }
        let mut image = Image::default();
        let mut staged = BTreeMap::new();
        let mut page = ZEROS;
        let blocks = first + part.start.0..first + part.end.0;
        let mut loaded = self.load_frozen(native, blocks.clone())?;
        for block in ArrayBlock::each(blocks.clone()) {
            if block >= loaded.end {
                loaded = self.load_frozen(native, block..blocks.end)?;
            }
            read(self, block, &mut page)?;
            self.make_ready()?;
            if page == ZEROS {
                self.trim_block(block);
                image.zeros += 1;
                continue;
            }
            if self.write_compared(native, block, &page, &loaded, &mut image)? {
                continue;
            }
            image.whole += 1;
            if self.goes_straight_home(block) {
                staged.insert(block, page);
            } else {
                self.write_block(block, &page)?;
            }
            if staged.len() == STAGED {
                self.write_new_home(&std::mem::take(&mut staged))?;
            }
        }
        self.make_ready()?;
        self.write_new_home(&staged)?;
        Ok(image)
    }

    /// Stores a block of an image as a delta from the native one, or compressed, and counts it; false if
    /// neither is short.
    fn write_compared(
        &mut self,
        native: u8,
        block: ArrayBlock,
        page: &Page,
        before: &Loaded,
        image: &mut Image,
    ) -> Result<bool, ArrayError> {
        let compares = self.options.similarity != Similarity::Nothing;
        let counterpart = self.addresses.counterpart_in(block, native);
        let counterpart = counterpart.filter(|&counterpart| compares && counterpart != block);
        let loaded = match counterpart {
            Some(counterpart) => {
                let is_new = self.load_native(counterpart)?;
                (is_new || before.brought.contains(&counterpart)).then_some(counterpart)
            }
            None => None,
        };
        let base = counterpart.and_then(|counterpart| self.native_base(counterpart));
        let base = base.filter(|&base| self.may_record_from(base));
        let counted = self.counters;
        let is_encoded = self.write_encoded(block, page, base);
        if is_encoded {
            let done = self.counters.since(&counted);
            image.deltas += done.deltas;
            image.delta_bytes += done.delta_bytes;
            image.compressed += done.alone;
            image.compressed_bytes += done.alone_bytes;
        }
        if let Some(id) = loaded.and_then(|counterpart| self.blocks.find(counterpart))
            && !self.is_reference(id)
            && self.is_droppable(id)
        {
            self.drop_virtual(id);
        }
        Ok(is_encoded)
    }

    /// Brings a native block to the pool, if it is not there and no other reference has to go for it. True if it
    /// was brought.
    pub(super) fn load_native(&mut self, counterpart: ArrayBlock) -> Result<bool, ArrayError> {
        if self.blocks.find(counterpart).is_some() || !self.may_load() {
            return Ok(false);
        }
        let mut page = ZEROS;
        self.read_block(counterpart, &mut page)?;
        // A base must be on the fast medium: whether reads fill it is not asked here.
        if let Some(id) = self.blocks.find(counterpart) {
            self.fill(id, &page);
        }
        self.make_ready()?;
        Ok(true)
    }

    /// The data block that a cached block is in or is a delta from.
    pub(super) fn native_base(&self, counterpart: ArrayBlock) -> Option<DataBlock> {
        let id = self.blocks.find(counterpart)?;
        let data = self.base_of(id).or(self.blocks.get(id).data);
        data.filter(|&data| self.pool.users(data).holder.is_some())
    }

    fn may_load(&mut self) -> bool {
        let oldest = self.oldest(Class::WithSlot, |_| true);
        let displaces_reference = oldest.is_some_and(|id| self.is_reference(id));
        self.pool.free() > SPARE_SLOTS || !displaces_reference
    }

    /// Whether the native place of a block can be written before it is said to hold anything: it holds nothing, and
    /// nothing will put content of the block there meanwhile.
    fn goes_straight_home(&self, block: ArrayBlock) -> bool {
        let is_ordered = self.shape.journal_blocks > 0;
        !is_ordered
            && self.table.get(block).place == BlockPlace::Zero
            && self.blocks.find(block).is_none()
            && !self.is_bare(block)
    }
}
