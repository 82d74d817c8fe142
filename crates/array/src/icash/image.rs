//! The image of a new virtual machine (paper, section 3.1): each of its blocks is compared with the block at the same
//! address of a native machine, and only the difference is stored.
//!
//! The native block, or its reference, has to be in the pool as the base of the difference. Blocks are loaded for
//! that while they displace no other reference; what finds no base goes home as it is. With ordered write-back it
//! is written like any other block, for only whole batches go home.

use std::collections::BTreeMap;
use std::ops::Range;

use flashlore_delta::Page;

use crate::addresses::lba;
use crate::error::ArrayError;
use crate::icash::content::ZEROS;
use crate::icash::parameters::SPARE_SLOTS;
use crate::icash::place::Place;
use crate::icash::state::ICash;

/// Blocks that go home at once.
const STAGED: usize = 256;

/// How the blocks of an image are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Image {
    /// As nothing: they are zeros.
    pub zeros: u64,
    /// As differences.
    pub differences: u64,
    /// Bytes of them.
    pub difference_bytes: u64,
    /// Whole.
    pub whole: u64,
}

impl Image {
    /// Counts the blocks of another part too.
    pub fn add(&mut self, other: &Image) {
        self.zeros += other.zeros;
        self.differences += other.differences;
        self.difference_bytes += other.difference_bytes;
        self.whole += other.whole;
    }
}

impl ICash {
    /// Fills a machine with an image, compared with a native machine. `read` fills a page with the content of an
    /// address of the image.
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
        addresses: Range<u32>,
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
        addresses: Range<u32>,
    ) -> Result<Image, ArrayError> {
        self.fill_image(native, machine, addresses, &mut |element, block, page| {
            *page = ZEROS;
            if let Some(twin) = element.addresses.twin_in(block, native) {
                let content = element.present(twin);
                *page = content.map_err(|source| element.addresses.unreadable(twin, source))?;
            }
            Ok(())
        })
    }

    /// The addresses of a machine.
    fn addresses_of(&self, machine: u8) -> Result<Range<u32>, ArrayError> {
        let blocks = self.addresses.blocks_of(machine)?;
        Ok(0..blocks.end - blocks.start)
    }

    fn fill_image(
        &mut self,
        native: u8,
        machine: u8,
        part: Range<u32>,
        read: &mut dyn FnMut(&mut Self, u32, &mut Page) -> Result<(), ArrayError>,
    ) -> Result<Image, ArrayError> {
        self.addresses.blocks_of(native)?;
        let first = self.addresses.blocks_of(machine)?.start;
        if let Some(last) = part.clone().next_back() {
            self.addresses.block(lba(machine, last.into()))?;
        }
        let mut image = Image::default();
        let mut staged = BTreeMap::new();
        let mut page = ZEROS;
        for block in part.map(|address| first + address) {
            read(self, block, &mut page)?;
            self.make_ready()?;
            if page == ZEROS {
                self.trim_block(block);
                image.zeros += 1;
                continue;
            }
            let twin = self
                .addresses
                .twin_in(block, native)
                .filter(|&twin| twin != block);
            let base = match twin {
                Some(twin) => self.native_base(twin)?,
                None => None,
            };
            let bytes = self.counters.delta_bytes;
            if base.is_some_and(|base| self.write_as_difference(block, &page, base)) {
                image.differences += 1;
                image.difference_bytes += self.counters.delta_bytes - bytes;
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

    /// The data block that a native block is in or is a difference from. It is loaded if no other reference has to
    /// go for it.
    fn native_base(&mut self, twin: u32) -> Result<Option<u32>, ArrayError> {
        if self.blocks.find(twin).is_none() && self.may_load() {
            self.read_block(twin, &mut ZEROS.clone())?;
            self.make_ready()?;
        }
        let id = self.blocks.find(twin);
        let slot = id.and_then(|id| self.base_of(id).or(self.blocks.get(id).slot));
        Ok(slot.filter(|&slot| self.pool.users(slot).holder.is_some()))
    }

    fn may_load(&self) -> bool {
        let mut oldest = self
            .blocks
            .oldest_first()
            .filter(|(_, found)| found.slot.is_some());
        let displaces_reference = oldest.next().is_some_and(|(id, _)| self.is_reference(id));
        self.pool.free() > SPARE_SLOTS || !displaces_reference
    }

    /// Whether the native place of a block can be written before it is said to hold anything: it holds nothing, and
    /// nothing will put content of the block there meanwhile.
    fn goes_straight_home(&self, block: u32) -> bool {
        let is_ordered = self.shape.journal_blocks > 0;
        !is_ordered
            && self.table.get(block).place == Place::Zero
            && self.blocks.find(block).is_none()
    }
}
