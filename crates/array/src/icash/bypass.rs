//! Long sequential streams pass by: they neither fill the fast medium nor push what is used again out of RAM.
//!
//! A read of such a stream is answered from wherever the content is, and changes nothing: not the LRU list, not the
//! heatmap, not what is cached. What a write of it replaces is not cached any more; its content waits in `passing`, whole
//! and without a virtual block, for the next group of the log, which makes it durable like everything else. From the
//! log it goes home, in sequence and many blocks at once.
//!
//! Invariants: a block in `passing` is unrecorded, holds what it says there, and has no virtual block and is not
//! trimmed. `to_home` has the blocks that passed by and were whole in the log then; those that are elsewhere since are
//! left out when they would go home.

use std::collections::BTreeSet;

use flashlore_delta::Page;

use crate::error::ArrayError;
use crate::icash::content::crc_of;
use crate::icash::format::block::RECORD_BYTES;
use crate::icash::parameters::BLOCK_BYTES;
use crate::icash::place::BlockPlace;
use crate::icash::state::ICash;
use crate::index::ArrayBlock;

/// Bytes that the record of such a block takes in the log.
const PASSING_BYTES: u64 = (RECORD_BYTES + BLOCK_BYTES) as u64;

/// Content that waits for the log.
#[derive(Debug)]
pub(super) struct Passing {
    pub page: Box<Page>,
    pub crc: u32,
}

impl ICash {
    /// Notes an access. Whether it belongs to a stream that passes by.
    pub(super) fn passes_by(&mut self, block: ArrayBlock, is_write: bool) -> bool {
        let cutoff = self.options.sequential_cutoff;
        cutoff > 0 && self.streams.note(block, is_write) > cutoff
    }

    /// Reads a block and leaves everything as it is.
    pub(super) fn read_past(
        &mut self,
        block: ArrayBlock,
        page: &mut Page,
    ) -> Result<(), ArrayError> {
        let content = self.present(block);
        // It was read for nobody who comes again.
        self.thawed = None;
        *page = content.map_err(|source| self.addresses.unreadable(block, source))?;
        self.counters.bypassed_reads += 1;
        Ok(())
    }

    /// Gives a block new content that goes to the log as it is. Room for it is there.
    pub(super) fn write_past(&mut self, block: ArrayBlock, page: &Page) {
        self.end_virtual(block);
        self.end_bare(block);
        let passing = Passing {
            page: Box::new(*page),
            crc: crc_of(page),
        };
        self.passing.insert(block, passing);
        self.unrecorded.insert(block);
        self.unrecorded_bytes += PASSING_BYTES;
        self.counters.bypassed_writes += 1;
    }

    /// Ends what a block without a virtual block holds besides its durable content: it is recorded, or given up.
    pub(super) fn end_bare(&mut self, block: ArrayBlock) {
        self.set_trimmed(block, false);
        if self.passing.remove(&block).is_some() {
            self.unrecorded.remove(&block);
            self.unrecorded_bytes -= PASSING_BYTES;
        }
    }

    /// Whether a block has no virtual block and holds something else than what is durable.
    pub(super) fn is_bare(&self, block: ArrayBlock) -> bool {
        self.trimmed.contains(&block) || self.passing.contains_key(&block)
    }

    /// A group recorded a block: if it passed by and is in the log, it goes home from there. With ordered write-back
    /// everything does anyway.
    pub(super) fn note_passed(&mut self, block: ArrayBlock, place: &BlockPlace) {
        let is_in_log = matches!(place, BlockPlace::Whole(_));
        if is_in_log && self.shape.journal_blocks == 0 && self.passing.contains_key(&block) {
            self.to_home.insert(block);
        }
    }

    /// Whether so many blocks passed by that a batch of them goes home.
    pub(super) fn is_passed_batch_due(&self) -> bool {
        self.to_home.len() >= self.options.write_back_batch
    }

    /// Brings a batch of blocks home that passed by.
    pub(super) fn send_passed_home(&mut self) -> Result<(), ArrayError> {
        let mut batch = BTreeSet::new();
        while batch.len() < self.options.write_back_batch
            && let Some(block) = self.to_home.pop_first()
        {
            let is_in_log = matches!(self.table.get(block).place, BlockPlace::Whole(_));
            if is_in_log && !self.unrecorded.contains(&block) {
                batch.insert(block);
            }
        }
        self.counters.bypassed_home += batch.len() as u64;
        match batch.is_empty() {
            true => Ok(()),
            false => self.write_back(&batch),
        }
    }

    /// Recounts what passes by.
    pub(super) fn check_passing(&self) -> Result<(), String> {
        for (&block, passing) in &self.passing {
            let is_alone = self.blocks.find(block).is_none() && !self.trimmed.contains(&block);
            if !is_alone || passing.crc != crc_of(&passing.page) {
                return Err(format!(
                    "block {block} passes by and is cached or trimmed too, or has another checksum"
                ));
            }
        }
        Ok(())
    }

    /// Bytes that the records of what passes by will take.
    pub(super) fn passing_bytes(&self) -> u64 {
        self.passing.len() as u64 * PASSING_BYTES
    }
}
