//! Ordered write-back: blocks go home in batches, each of which makes the native places one state.
//!
//! A batch is everything that is not at home after a commit. Its images are written to the journal, then its heads,
//! then the native places; each is durable before the next begins. So at any time either the native places are one
//! state, or the journal holds what they lack. The journal is made void before new images are written, which
//! happens only when the last batch is home and the table says so durably.
//!
//! A block that cannot be read is left out: its native place keeps older content until it is written again. But if the
//! fast medium is gone no batch is made without what it had: the native places stay the state they are.

use std::collections::BTreeMap;

use crate::element::Device;
use crate::error::ArrayError;
use crate::icash::commit::Extra;
use crate::icash::content::{ZEROS, crc_of};
use crate::icash::format::Areas;
use crate::icash::format::journal::{self, HomeImage};
use crate::icash::parameters::{BLOCK_BYTES, LONGEST_RUN, Mode};
use crate::icash::place::BlockEntry;
use crate::icash::state::ICash;
use crate::index::{ArrayBlock, JournalPlace};
use crate::media::Media;

/// The batch in the journal.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub images: Vec<HomeImage>,
    /// When it was taken, in seconds since 1970.
    pub taken: Option<u32>,
}

/// The batch in the journal; one of no images if there is no whole one.
pub(super) fn committed(media: &mut Media, areas: &Areas, tag: u64) -> Batch {
    let mut heads = vec![0; areas.journal_heads as usize * BLOCK_BYTES];
    let read = media.read(Device::Slow, areas.journal * BLOCK_BYTES as u64, &mut heads);
    let parsed = read.ok().and_then(|()| journal::parse(&heads, tag));
    let batch = parsed.map(|images| Batch {
        images,
        taken: journal::taken(&heads),
    });
    batch.unwrap_or_default()
}

impl ICash {
    /// Notes whether a block is at home.
    pub(super) fn note_away(&mut self, block: ArrayBlock, entry: &BlockEntry) {
        if self.shape.journal_blocks == 0 {
            return;
        }
        match entry.is_away() {
            true => self.away.insert(block),
            false => self.away.remove(&block),
        };
    }

    /// Writes everything home before more is away than the journal could hold.
    pub(super) fn keep_within_journal(&mut self) -> Result<(), ArrayError> {
        if self.is_batch_due() {
            self.write_back_all()?;
            self.keep_room()?;
        }
        match self.is_batch_due() {
            true => Err(ArrayError::NoRoom(
                "too many blocks that cannot be read are not at home",
            )),
            false => Ok(()),
        }
    }

    /// Whether more may soon be away than the journal could hold.
    pub(super) fn is_batch_due(&self) -> bool {
        let away = self.away.len() + self.unrecorded.len() + 2;
        self.shape.journal_blocks > 0 && away > self.shape.journal_blocks as usize
    }

    /// Writes everything home that is not there.
    pub(super) fn write_back_all(&mut self) -> Result<(), ArrayError> {
        self.commit()?;
        if self.is_copying {
            self.finish_batch()?;
        }
        let offset = self.areas.journal * BLOCK_BYTES as u64;
        self.media.write(Device::Slow, offset, &ZEROS)?;
        self.sync(Device::Slow)?;
        let images = self.write_images()?;
        if images.len() < self.away.len() && self.options.mode == Mode::WriteBack {
            // If the fast medium is gone more than that cannot be read: what is left would be no state.
            self.sync(Device::Fast)?;
        }
        self.sync(Device::Slow)?;
        if images.is_empty() {
            return Ok(());
        }
        let taken = self.clock.map_or(0, |clock| clock());
        let heads = journal::encode(&images, self.tag, taken);
        self.is_copying = true;
        self.media.write(Device::Slow, offset, &heads)?;
        self.sync(Device::Slow)?;
        let copied = self.copy_home(&images)?;
        self.counters.batches += 1;
        self.counters.written_home += images.len() as u64;
        let homes: BTreeMap<ArrayBlock, u32> = copied
            .iter()
            .map(|image| (image.block, image.crc))
            .collect();
        self.commit_with(Extra::homes(homes))?;
        self.is_copying = false;
        Ok(())
    }

    /// Writes what is not at home to the journal, in the order of addresses.
    fn write_images(&mut self) -> Result<Vec<HomeImage>, ArrayError> {
        let mut images = Vec::new();
        let mut run = Vec::new();
        for block in self.away.clone() {
            let Ok(page) = self.present(block) else {
                self.stick(block);
                continue;
            };
            images.push(HomeImage {
                block,
                crc: crc_of(&page),
            });
            run.extend_from_slice(&page);
            if run.len() == LONGEST_RUN * BLOCK_BYTES {
                self.write_image_run(&images, &mut run)?;
            }
        }
        self.write_image_run(&images, &mut run)?;
        Ok(images)
    }

    fn write_image_run(
        &mut self,
        images: &[HomeImage],
        run: &mut Vec<u8>,
    ) -> Result<(), ArrayError> {
        let first = images.len() - run.len() / BLOCK_BYTES;
        self.write_run_at(self.areas.image(JournalPlace(first as u32)), run)
    }

    /// Writes what a run holds, if it holds anything, and empties it.
    fn write_run_at(&mut self, offset: u64, run: &mut Vec<u8>) -> Result<(), ArrayError> {
        if !run.is_empty() {
            self.media.write(Device::Slow, offset, run)?;
        }
        run.clear();
        Ok(())
    }

    /// Finishes the batch in the journal, if there is one. What is home already is written again. That there is
    /// something at home must be known before the journal is void.
    pub(super) fn finish_batch(&mut self) -> Result<(), ArrayError> {
        if self.shape.journal_blocks == 0 {
            return Ok(());
        }
        // Heads that could not be written, or not synced, are perhaps not durable yet.
        self.sync(Device::Slow)?;
        let images = committed(&mut self.media, &self.areas, self.tag).images;
        let exists = |image: &&HomeImage| self.table.has(image.block);
        let images: Vec<HomeImage> = images.iter().filter(exists).copied().collect();
        let copied = self.copy_home(&images)?;
        let unknown = copied
            .iter()
            .filter(|image| !self.table.get(image.block).has_home);
        let unknown: Vec<ArrayBlock> = unknown.map(|image| image.block).collect();
        for &block in &unknown {
            let entry = BlockEntry {
                has_home: true,
                ..self.table.get(block)
            };
            self.table.set(block, entry);
            self.note_away(block, &entry);
        }
        if !unknown.is_empty() {
            self.write_checkpoint()?;
        }
        self.is_copying = false;
        Ok(())
    }

    /// Copies images from the journal to the native places and makes them durable. Answers those that could be
    /// read: of the others the native place keeps what it has, and the block is still where it was.
    fn copy_home(&mut self, images: &[HomeImage]) -> Result<Vec<HomeImage>, ArrayError> {
        let mut copied = Vec::new();
        let mut run: Vec<u8> = Vec::new();
        let mut next = ArrayBlock(0);
        for (place, image) in (0..).map(JournalPlace).zip(images) {
            let mut page = ZEROS;
            let read = self
                .media
                .read(Device::Slow, self.areas.image(place), &mut page);
            let holds = read.is_ok() && crc_of(&page) == image.crc;
            if image.block != next || !holds || run.len() == LONGEST_RUN * BLOCK_BYTES {
                self.write_home_run(next, &mut run)?;
                next = image.block;
            }
            if holds {
                run.extend_from_slice(&page);
                next += 1;
                copied.push(*image);
            } else {
                self.stick(image.block);
            }
        }
        self.write_home_run(next, &mut run)?;
        self.sync(Device::Slow)?;
        Ok(copied)
    }

    /// Writes contents to the native places of the blocks before `next`.
    fn write_home_run(&mut self, next: ArrayBlock, run: &mut Vec<u8>) -> Result<(), ArrayError> {
        let first = ArrayBlock(next.0 - (run.len() / BLOCK_BYTES) as u32);
        self.write_run_at(self.areas.home_of(first), run)
    }
}
