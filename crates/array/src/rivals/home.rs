//! Dirty blocks go home: in batches from the slots used longest ago, in the order of addresses, blocks next to
//! each other at once.

use flashlore_delta::Page;
use flashlore_medium::MediumError;

use crate::element::Device;
use crate::icash::parameters::{BLOCK_BYTES, LONGEST_RUN};
use crate::index::ArrayBlock;
use crate::media::Media;
use crate::rivals::cache::{Cache, begin_of, home_of};

/// Dirty blocks, in the order of addresses, and what they hold.
struct HomeBatch {
    contents: Vec<Page>,
    /// Each block with the position of its content.
    blocks: Vec<(ArrayBlock, usize)>,
}

impl HomeBatch {
    /// Parts of blocks next to each other.
    fn runs(&self) -> impl Iterator<Item = &[(ArrayBlock, usize)]> {
        let neighbours = |a: &(ArrayBlock, usize), b: &(ArrayBlock, usize)| a.0 + 1 == b.0;
        let runs = self.blocks.chunk_by(neighbours);
        runs.flat_map(|run| run.chunks(LONGEST_RUN))
    }
}

impl Cache {
    /// Writes dirty blocks home until they are as many as the option says: all those of the slot used longest ago,
    /// then of the next one that has any. They stay cached.
    pub fn write_home(&mut self, media: &mut Media) -> Result<(), MediumError> {
        let batch = self.oldest_dirty(media)?;
        for run in batch.runs() {
            let mut bytes = Vec::with_capacity(run.len() * BLOCK_BYTES);
            for &(_, content) in run {
                bytes.extend_from_slice(&batch.contents[content]);
            }
            media.write(Device::Slow, home_of(run[0].0), &bytes)?;
            for &(block, _) in run {
                self.slots.make_clean(block);
            }
            self.counters.written_home += run.len() as u64;
        }
        self.counters.batches += 1;
        Ok(())
    }

    /// Reads the contents of a batch, each once.
    fn oldest_dirty(&self, media: &mut Media) -> Result<HomeBatch, MediumError> {
        let mut batch = HomeBatch {
            contents: Vec::new(),
            blocks: Vec::new(),
        };
        for slot in self.slots.oldest_first() {
            if batch.blocks.len() >= self.options.write_back_batch {
                break;
            }
            let dirty = self.slots.dirty_in(slot);
            if dirty.is_empty() {
                continue;
            }
            let mut page = [0; BLOCK_BYTES];
            media.read(Device::Fast, begin_of(slot), &mut page)?;
            let content = batch.contents.len();
            batch.contents.push(page);
            batch
                .blocks
                .extend(dirty.iter().map(|&block| (block, content)));
        }
        batch.blocks.sort_unstable();
        Ok(batch)
    }
}
