//! Reads: a hit is decoded from RAM and the fast medium; a miss is read from the slow one and comes to RAM.

use flashlore_content::Sketch;
use flashlore_delta::Page;

use crate::error::{ArrayError, ContentError};
use crate::icash::blocks::{Class, Content, Form, Id};
use crate::icash::content::{ZEROS, crc_of, in_log_block};
use crate::icash::format::{Block, RecordKind};
use crate::icash::parameters::{Fill, SPARE_SEGMENTS, SPARE_VIRTUAL_BLOCKS};
use crate::icash::place::{BlockEntry, BlockPlace, LogPlace};
use crate::icash::segments::segments_of;
use crate::icash::signature::Signature;
use crate::icash::state::ICash;
use crate::index::{ArrayBlock, LogBlock};

/// A delta found in a block of the log.
struct Neighbour {
    block: ArrayBlock,
    at: LogPlace,
    bytes: Vec<u8>,
}

/// A block of the log with its bytes.
struct LogPage {
    number: LogBlock,
    bytes: Page,
}

/// How the bytes at a place in the log give the content.
fn form_of(place: &BlockPlace) -> Option<Form> {
    match *place {
        BlockPlace::Own { data: base, .. } | BlockPlace::Delta { base, .. } => {
            Some(Form::Delta(base))
        }
        BlockPlace::Alone(_) => Some(Form::Alone),
        _ => None,
    }
}

impl ICash {
    /// Reads a block only to look at it: unlike a request of a host it changes nothing, neither what is in RAM nor what
    /// is on a medium, and counts as no access.
    ///
    /// # Errors
    /// No such address, or its content cannot be read.
    pub fn look(&mut self, lba: u64, page: &mut Page) -> Result<(), ArrayError> {
        let block = self.addresses.block(lba)?;
        let content = self.present(block);
        *page = content.map_err(|source| self.addresses.unreadable(block, source))?;
        Ok(())
    }

    pub(super) fn read_block(
        &mut self,
        block: ArrayBlock,
        page: &mut Page,
    ) -> Result<(), ArrayError> {
        self.thawed = None;
        match self.blocks.find(block) {
            Some(id) => self.read_hit(block, id, page),
            None => self.read_miss(block, page),
        }
    }

    fn read_hit(&mut self, block: ArrayBlock, id: Id, page: &mut Page) -> Result<(), ArrayError> {
        self.counters.ram_hits += u64::from(self.ram.get(block).is_some());
        let content = self.present_of(id);
        *page = content.map_err(|source| self.addresses.unreadable(block, source))?;
        self.ram.put(block, page);
        self.count_hit(id);
        self.media.begin_background();
        self.bring_back();
        self.know_signature(id, page);
        self.access(id);
        if self.options.fill != Fill::Never {
            self.fill(id, page);
        }
        Ok(())
    }

    /// Reads a block without a virtual block. One that holds zeros gets none; any other gets one, if there is room.
    fn read_miss(&mut self, block: ArrayBlock, page: &mut Page) -> Result<(), ArrayError> {
        self.counters.misses += 1;
        if self.trimmed.contains(&block) {
            *page = ZEROS;
            return Ok(());
        }
        if let Some(passing) = self.passing.get(&block) {
            *page = *passing.page;
            return Ok(());
        }
        let entry = self.look_up(block)?;
        let read = self.read_stored(block, &entry);
        let (content, log) = read.map_err(|source| self.addresses.unreadable(block, source))?;
        *page = content;
        self.media.begin_background();
        self.bring_back();
        if entry.place == BlockPlace::Zero || self.is_stopped() {
            return Ok(());
        }
        if let Some(log) = &log
            && self.options.unpack_all
        {
            self.unpack_neighbours(block, log);
        }
        let ready = match self.leaves_work {
            // A read can do without: it remembers the block where there is room for it.
            true => Ok(()),
            false => self.make_ready(),
        };
        let has_room = self.blocks.left() > 0 && self.segments.left() >= SPARE_SEGMENTS;
        match ready {
            // Making room may have moved the block: then it waits for its next access.
            Ok(()) if has_room && self.durable_entry(block).is_ok_and(|now| now == entry) => {
                self.admit(block, &entry, page, log.as_ref())
            }
            Ok(()) => {}
            Err(_) => self.counters.background_failures += 1,
        }
        Ok(())
    }

    /// The content at a durable place, and the block of the log that was read for it.
    fn read_stored(
        &mut self,
        block: ArrayBlock,
        entry: &BlockEntry,
    ) -> Result<(Page, Option<LogPage>), ContentError> {
        let (Some(at), Some(form)) = (entry.place.at(), form_of(&entry.place)) else {
            return Ok((self.stored(block, entry)?, None));
        };
        let log = LogPage {
            number: at.block,
            bytes: self.read_slow(self.areas.log_block(at.block))?,
        };
        let content = self.expand(form, in_log_block(&log.bytes, at), entry.crc)?;
        Ok((content, Some(log)))
    }

    /// Gives a block that was read a virtual block: with the bytes that were read, as an associate of the block with
    /// the same address elsewhere, or with a data block.
    fn admit(&mut self, block: ArrayBlock, entry: &BlockEntry, page: &Page, log: Option<&LogPage>) {
        let (signature, sketch) = self.signatures_of(page);
        let content = match (log, entry.place.at(), form_of(&entry.place)) {
            (Some(log), Some(at), Some(form)) => {
                let chain = self.segments.store(in_log_block(&log.bytes, at));
                chain.map(|chain| Content::Held(form, chain))
            }
            _ => self.as_counterpart(block, page, &signature, sketch.as_ref()),
        };
        let id = self.blocks.insert(Some(block));
        let found = self.blocks.get_mut(id);
        (found.signature, found.sketch) = (Some(signature), sketch);
        self.set_content(id, content.unwrap_or(Content::Stored), crc_of(page));
        self.ram.put(block, page);
        self.access(id);
        if self.options.fill == Fill::Read {
            self.fill(id, page);
        }
    }

    /// The content as a delta from the block with the same address in another machine.
    fn as_counterpart(
        &mut self,
        block: ArrayBlock,
        page: &Page,
        signature: &Signature,
        sketch: Option<&Sketch>,
    ) -> Option<Content> {
        let base = self.counterpart(block, signature, sketch)?;
        let (form, bytes) = self.encode(page, &[base])?;
        let chain = self.segments.store(&bytes)?;
        self.counters.same_address += u64::from(form == Form::Delta(base));
        Some(Content::Held(form, chain))
    }

    /// Copies content that is on the slow medium alone to a data block, if one is free.
    pub(super) fn fill(&mut self, id: Id, page: &Page) {
        let found = self.blocks.get(id);
        let is_slow = found.content == Content::Stored
            && found.data.is_none()
            && matches!(self.place_of(id), BlockPlace::Home | BlockPlace::Whole(_));
        if !is_slow || self.is_stopped() || self.pool.free() == 0 {
            return;
        }
        match self.write_data(page) {
            Ok(Some(data)) => {
                self.counters.fills += 1;
                self.hold_data(id, data);
                self.set_content(id, Content::Slot, crc_of(page));
            }
            Ok(None) => {}
            Err(_) => self.counters.background_failures += 1,
        }
    }

    /// Brings the other deltas of a block of the log to RAM, as far as that displaces nothing that would have
    /// to be written.
    fn unpack_neighbours(&mut self, wanted: ArrayBlock, log: &LogPage) {
        for neighbour in self.neighbours(log) {
            let Neighbour { block, at, bytes } = neighbour;
            if block == wanted || !self.make_room_for_neighbour(bytes.len()) {
                continue;
            }
            // What made room may have been its base.
            let Ok(entry) = self.durable_entry(block) else {
                continue;
            };
            let is_known = self.blocks.find(block).is_some() || self.is_bare(block);
            let form = form_of(&entry.place).filter(|_| !is_known && entry.place.at() == Some(at));
            if let Some(form) = form
                && let Some(chain) = self.segments.store(&bytes)
            {
                self.counters.unpacked += 1;
                let id = self.blocks.insert(Some(block));
                self.set_content(id, Content::Held(form, chain), entry.crc);
                self.touch_reference(id);
            }
        }
    }

    /// The deltas and compressed contents in a block of the log, whether they count or not.
    fn neighbours(&self, log: &LogPage) -> Vec<Neighbour> {
        let Some(block) = Block::parse(&log.bytes, self.tag, log.number) else {
            return Vec::new();
        };
        let mut neighbours = Vec::new();
        for (record, offset) in &block.records {
            let is_encoded = matches!(record.kind, RecordKind::Delta | RecordKind::Alone);
            let Ok(number) = self.addresses.block(record.lba) else {
                continue;
            };
            if is_encoded {
                neighbours.push(Neighbour {
                    block: number,
                    at: LogPlace {
                        block: log.number,
                        offset: *offset,
                        bytes: record.payload.len() as u16,
                    },
                    bytes: record.payload.to_vec(),
                });
            }
        }
        neighbours
    }

    /// Ends old virtual blocks that hold nothing unrecorded until another one with so many bytes fits.
    fn make_room_for_neighbour(&mut self, bytes: usize) -> bool {
        loop {
            let needs_virtual = self.blocks.left() <= SPARE_VIRTUAL_BLOCKS;
            let needs_segments = self.segments.left() < SPARE_SEGMENTS + segments_of(bytes);
            if !needs_virtual && !needs_segments {
                return true;
            }
            let class = if needs_virtual {
                Class::Replaceable
            } else {
                Class::Held
            };
            let victim = self.oldest(class, |_| true);
            match victim {
                Some(id) if self.is_droppable(id) => self.drop_virtual(id),
                _ => return false,
            }
        }
    }

    /// Learns the signature of a virtual block that came without, from its present content. That of a reference is
    /// of its frozen content.
    fn know_signature(&mut self, id: Id, page: &Page) {
        if self.blocks.get(id).signature.is_some() {
            return;
        }
        let frozen = match self.blocks.get(id).data {
            Some(data) if self.blocks.get(id).content != Content::Slot => self.read_data(data).ok(),
            _ => Some(*page),
        };
        if let Some(frozen) = frozen {
            let (signature, sketch) = self.signatures_of(&frozen);
            let found = self.blocks.get_mut(id);
            (found.signature, found.sketch) = (Some(signature), sketch);
        }
    }

    /// Counts a hit by the state of the virtual block.
    pub(super) fn count_hit(&mut self, id: Id) {
        if self.is_reference(id) {
            self.counters.hits_reference += 1;
        } else if self.base_of(id).is_some() {
            self.counters.hits_associate += 1;
        } else {
            self.counters.hits_independent += 1;
        }
    }
}
