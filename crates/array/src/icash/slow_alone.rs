//! What the slow medium alone holds, with ordered write-back: a state at one earlier instant, to be read.

use std::collections::BTreeMap;
use std::sync::Arc;

use flashlore_delta::Page;
use flashlore_medium::Medium;

use crate::addresses::{Addresses, Machine};
use crate::element::Device;
use crate::error::{ArrayError, ContentError};
use crate::icash::content::{ZEROS, crc_of};
use crate::icash::format::Areas;
use crate::icash::kept::Kept;
use crate::icash::open::recover_whole;
use crate::icash::ordered::committed;
use crate::icash::place::BlockPlace;
use crate::icash::table::Table;
use crate::index::{ArrayBlock, JournalPlace};
use crate::media::Media;

/// The native places of an array and the batch that was on its way there.
pub struct SlowAlone {
    media: Media,
    areas: Areas,
    addresses: Addresses,
    was_closed: bool,
    table: Table,
    /// Place and checksum of the image of each block in the journal.
    images: BTreeMap<ArrayBlock, (JournalPlace, u32)>,
}

impl SlowAlone {
    /// Opens the slow medium of an array without the fast one. Nothing is written.
    ///
    /// # Errors
    /// It is none, it is damaged, or its blocks are not written home in order.
    pub fn open(slow: Arc<dyn Medium>) -> Result<Self, ArrayError> {
        // The fast one is never asked.
        let mut media = Media::new(slow.clone(), slow);
        let recovered = recover_whole(&mut media)?;
        if recovered.superblock.shape.journal_blocks == 0 {
            return Err(ArrayError::Shape(
                "this array was made without ordered write-back: its slow medium alone holds no state".into(),
            ));
        }
        let images = committed(&mut media, &recovered.areas, recovered.tag).images;
        let placed = (0..).map(JournalPlace).zip(&images);
        Ok(SlowAlone {
            media,
            was_closed: recovered.was_closed(),
            areas: recovered.areas,
            addresses: recovered.addresses,
            table: recovered.table,
            images: placed
                .map(|(place, image)| (image.block, (place, image.crc)))
                .collect(),
        })
    }

    /// Reads what a block held at that instant. What changed since is known by a checksum only where it did not
    /// change: rot of a block that did may go unnoticed.
    ///
    /// # Errors
    /// No such address, or its content cannot be read.
    pub fn read(&mut self, lba: u64, page: &mut Page) -> Result<(), ArrayError> {
        let block = self.addresses.block(lba)?;
        let content = self.content(block);
        *page = content.map_err(|source| self.addresses.unreadable(block, source))?;
        Ok(())
    }

    /// Whether the last user of the array closed it.
    pub fn was_closed(&self) -> bool {
        self.was_closed
    }

    pub fn machines(&self) -> &[Machine] {
        self.addresses.machines()
    }

    /// In which form a block is kept: whole, or not at all.
    pub fn kept(&self, lba: u64) -> Result<Kept, ArrayError> {
        let block = self.addresses.block(lba)?;
        let entry = self.table.look(block).map_err(ContentError::Place);
        let entry = entry.map_err(|source| self.addresses.unreadable(block, source))?;
        let is_there = self.images.contains_key(&block) || entry.has_home;
        Ok(if is_there { Kept::Whole } else { Kept::Nothing })
    }

    fn content(&mut self, block: ArrayBlock) -> Result<Page, ContentError> {
        let entry = self.table.look(block).map_err(ContentError::Place)?;
        if entry.place == BlockPlace::Lost {
            return Err(ContentError::Lost);
        }
        let image = self.images.get(&block).copied();
        let (offset, expected) = match (image, entry.has_home) {
            (Some((place, crc)), _) => (self.areas.image(place), Some(crc)),
            (None, true) => (
                self.areas.home_of(block),
                (entry.place == BlockPlace::Home).then_some(entry.crc),
            ),
            (None, false) => return Ok(ZEROS),
        };
        let mut page = ZEROS;
        self.media.read(Device::Slow, offset, &mut page)?;
        let found = crc_of(&page);
        match expected {
            Some(expected) if expected != found => Err(ContentError::Checksum { found, expected }),
            _ => Ok(page),
        }
    }
}
