//! The element: its state, and the changes of it that all others are made of.
//!
//! Invariants, which `check` recounts:
//!
//! - The table says where the durable content of each block is, as the last group of the log left it.
//! - What a block holds at present is what its virtual block says; without one it is zeros if the block is in
//!   `trimmed`, what is in `passing` if it is there, else what the table says.
//! - `unrecorded` has exactly the blocks in `trimmed` and `passing` and those whose virtual block is to be recorded. All
//!   others hold at present what the table says.
//! - A data block that is in use is held by one virtual block, or waits for the group that records that its block
//!   is elsewhere. It may be on the fast medium, frozen on the slow one, or both.
//! - In write-through every data block that a durable place names is frozen, and unrecorded content needs no data block
//!   that is not: `write_through.rs`.
//! - A virtual block whose data block is the base of others' deltas is a reference and is not replaced while
//!   it is; one whose content is a delta from another's data block is an associate; all others are
//!   independent. No associate has a data block, so none can be a reference.

use std::collections::{BTreeMap, BTreeSet};

use flashlore_delta::Encoder;
use roaring::RoaringBitmap;

use crate::addresses::Addresses;
use crate::element::{Device, Element, Observer, Statistics, Work};
use crate::error::ArrayError;
use crate::icash::blocks::{Content, Form, Id, VirtualBlocks};
use crate::icash::bypass::Passing;
use crate::icash::clean;
use crate::icash::counters::{Counters, Memory, States, Status};
use crate::icash::format::block::RECORD_BYTES;
use crate::icash::format::superblock::Session;
use crate::icash::format::{Areas, Shape};
use crate::icash::heatmap::Heatmap;
use crate::icash::log::Space;
use crate::icash::parameters::{BLOCK_BYTES, Options};
use crate::icash::place::{BlockEntry, BlockPlace, DataBlock};
use crate::icash::pool::Pool;
use crate::icash::ram::DataBlocks;
use crate::icash::scan::Scan;
use crate::icash::segments::Segments;
use crate::icash::signature::Signature;
use crate::icash::streams::Streams;
use crate::icash::table::Table;
use crate::index::ArrayBlock;
use crate::media::Media;
use flashlore_content::Sketch;
use flashlore_delta::Page;

pub struct ICash {
    pub(super) media: Media,
    pub(super) id: [u8; 16],
    pub(super) session: Session,
    /// Whether the fast medium is a new one that the slow one does not know durably yet.
    pub(super) is_fresh: bool,
    /// What the next root says: everybody finds the array in use until it is closed.
    pub(super) in_use: bool,
    pub(super) was_closed: bool,
    /// Names the array in every structure: the first half of its identity.
    pub(super) tag: u64,
    pub(super) shape: Shape,
    pub(super) areas: Areas,
    pub(super) addresses: Addresses,
    pub(super) options: Options,
    pub(super) table: Table,
    pub(super) space: Space,
    pub(super) pool: Pool,
    pub(super) blocks: VirtualBlocks,
    pub(super) segments: Segments,
    pub(super) heatmap: Heatmap,
    pub(super) ram: DataBlocks,
    pub(super) trimmed: BTreeSet<ArrayBlock>,
    /// Content that passes by and waits for the log.
    pub(super) passing: BTreeMap<ArrayBlock, Passing>,
    /// Blocks that passed by and go home from the log.
    pub(super) to_home: BTreeSet<ArrayBlock>,
    pub(super) streams: Streams,
    /// Blocks whose durable content is not at home.
    pub(super) dirty: u64,
    /// Where the search for such blocks goes on.
    pub(super) next_ahead: ArrayBlock,
    /// Blocks that durably hold nothing, and whose homes were written once and not given back since.
    pub(super) unused_homes: RoaringBitmap,
    pub(super) unrecorded: BTreeSet<ArrayBlock>,
    /// With ordered write-back the blocks whose durable content is not at home.
    pub(super) away: BTreeSet<ArrayBlock>,
    /// Whether the last batch may not be at home completely.
    pub(super) is_copying: bool,
    /// Bytes the records of all of them will take.
    pub(super) unrecorded_bytes: u64,
    pub(super) epoch: u32,
    /// The last durable group.
    pub(super) group: u64,
    /// Groups that were begun in this epoch, failed ones too: no number is used twice.
    pub(super) groups_begun: u64,
    pub(super) checkpoint: u64,
    pub(super) encoder: Encoder,
    /// The frozen data block that was read last for a request or a scan, which may come back to the fast medium.
    pub(super) thawed: Option<(DataBlock, Page)>,
    pub(super) requests_since_scan: u64,
    /// Whether requests leave work that they can go on without.
    pub(super) leaves_work: bool,
    /// The scan under way.
    pub(super) scanning: Option<Scan>,
    /// Segments of the log that were cleaned since there was too little room, until there is enough.
    pub(super) cleaning: Option<u64>,
    /// Whether the next block belongs to the request of the one before.
    pub(super) continues_request: bool,
    pub(super) counters: Counters,
    pub(super) statistics: Statistics,
    /// In write-through the data blocks that durable places name although they could be neither frozen nor done without:
    /// an array that was used in write-back had them where they cannot be read any more.
    pub(super) exposed: BTreeSet<DataBlock>,
    /// Who tells the time, in seconds since 1970: batches note when they were taken.
    pub(super) clock: Option<fn() -> u32>,
}

impl ICash {
    pub fn observe(&mut self, observer: Box<dyn Observer>) {
        self.media.observe(observer);
    }

    /// Lets somebody tell the time, in seconds since 1970.
    pub fn tell_time(&mut self, clock: fn() -> u32) {
        self.clock = Some(clock);
    }

    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    pub fn options(&self) -> &Options {
        &self.options
    }

    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// How many virtual blocks are in which state.
    pub fn states(&self) -> States {
        let mut states = States::default();
        for (id, found) in self.blocks.newest_first() {
            if self.is_reference(id) {
                states.references += 1;
                states.detached += u64::from(found.block.is_none());
                let is_frozen = |data| !self.pool.is_resident(data);
                states.frozen += u64::from(found.data.is_some_and(is_frozen));
            } else if self.base_of(id).is_some() {
                states.associates += 1;
            } else {
                states.independents += 1;
            }
        }
        states
    }

    /// Segments of deltas in RAM: in use, and the most that ever were.
    pub fn segments_used(&self) -> (u32, u32) {
        (self.segments.used(), self.segments.most_used())
    }

    pub fn memory(&self) -> Memory {
        Memory {
            segments: self.segments.heap_bytes(),
            virtual_blocks: self.blocks.heap_bytes(),
            heatmap: self.heatmap.heap_bytes(),
            data_blocks: self.ram.heap_bytes(),
            table: self.table.heap_bytes(),
            pool: self.pool.heap_bytes(),
        }
    }

    /// How far it is, and what room it has.
    pub fn status(&self) -> Status {
        Status {
            unrecorded: self.unrecorded.len() as u64,
            free_slots: self.pool.free(),
            free_frozen: self.pool.free_places(),
            dirty: self.dirty,
            free_log_segments: self.space.free().len() as u32,
            away: self.away.len() as u64,
            epoch: self.epoch,
            checkpoint: self.checkpoint,
            stopped: self.media.halt().why().map(str::to_owned),
        }
    }

    /// Whether its last user closed it. If not, that one was killed or lost its power, or the media are copies that
    /// were made while the array was in use.
    pub fn was_closed(&self) -> bool {
        self.was_closed
    }

    /// Makes everything durable and, with ordered write-back, brings all of it home: the slow medium alone then holds
    /// the present state. The session ends: a copy of a medium from before it is told from one of now, and the next
    /// opening finds an array that was closed.
    ///
    /// # Errors
    /// As for a flush, which comes first.
    pub fn close(mut self) -> Result<(), ArrayError> {
        self.flush()?;
        if self.shape.journal_blocks > 0 && !self.away.is_empty() {
            self.write_back_all()?;
            self.keep_room()?;
        }
        self.in_use = false;
        self.next_session()
    }

    /// Takes over of these options what may change while the element is open: when it scans, how many blocks go home at
    /// once, what is copied to the fast medium when it is read, and which streams pass by. Everything is durable then.
    ///
    /// # Errors
    /// They cannot work with this element, or a medium failed. Nothing has changed then.
    pub fn tune(&mut self, asked: &Options) -> Result<(), ArrayError> {
        let tuned = Options {
            scan_every: asked.scan_every,
            write_back_batch: asked.write_back_batch,
            fill: asked.fill,
            sequential_cutoff: asked.sequential_cutoff,
            ..self.options.clone()
        };
        tuned.validate(self.shape.data_blocks())?;
        clean::validate(&self.shape, &tuned)?;
        // Larger batches take more room in the log, which has to be there before the first of them.
        self.keep_room()?;
        self.commit()?;
        let before = std::mem::replace(&mut self.options, tuned);
        self.keep_room().inspect_err(|_| self.options = before)
    }

    /// Refuses to go on after a failure that leaves open what a medium holds.
    pub(super) fn refuse_if_stopped(&self) -> Result<(), ArrayError> {
        match self.media.halt().why() {
            Some(why) => Err(ArrayError::Stopped(why.to_owned())),
            None => Ok(()),
        }
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.media.halt().why().is_some()
    }

    /// Makes a medium durable, or stops for good: what a failed sync should have covered may be lost.
    pub(super) fn sync(&mut self, device: Device) -> Result<(), ArrayError> {
        self.media.sync(device).map_err(|error| {
            self.media.halt().set(error.to_string());
            error.into()
        })
    }

    /// Whether deltas of others are based on its data block.
    pub(super) fn is_reference(&self, id: Id) -> bool {
        self.pool.is_base(self.blocks.get(id).data)
    }

    /// The data block of the reference it is an associate of.
    pub(super) fn base_of(&self, id: Id) -> Option<DataBlock> {
        let found = self.blocks.get(id);
        match found.content {
            Content::Held(Form::Delta(base), _) if found.data != Some(base) => Some(base),
            _ => None,
        }
    }

    /// The durable place of its block, if it has one.
    pub(super) fn place_of(&self, id: Id) -> BlockPlace {
        let block = self.blocks.get(id).block;
        block.map_or(BlockPlace::Zero, |block| self.table.get(block).place)
    }

    /// Gives a virtual block other present content; chain and base of the one before are given up.
    pub(super) fn set_content(&mut self, id: Id, content: Content, crc: u32) {
        let old_base = self.base_of(id);
        let old = self.blocks.set_content(id, content);
        let found = self.blocks.get_mut(id);
        found.crc = crc;
        found.is_stuck = false;
        if let Content::Held(_, chain) = old {
            self.segments.free(chain);
        }
        let new_base = self.base_of(id);
        if old_base == new_base {
            return;
        }
        if let Some(base) = new_base {
            self.pool.users_mut(base).associates.insert(id);
        }
        if let Some(base) = old_base {
            self.pool.users_mut(base).associates.remove(&id);
            self.lost_dependent(base);
        }
    }

    /// Makes a data block that nobody holds that of a virtual block that has none.
    pub(super) fn hold_data(&mut self, id: Id, data: DataBlock) {
        self.pool.users_mut(data).holder = Some(id);
        self.blocks.set_data(id, Some(data));
        self.blocks.set_resident(id, self.pool.is_resident(data));
    }

    /// Takes the data block from a virtual block that is no reference and does not need it.
    pub(super) fn give_up_data(&mut self, id: Id) {
        if let Some(data) = self.blocks.set_data(id, None) {
            self.pool.users_mut(data).holder = None;
            self.pool.release(data);
        }
    }

    /// A virtual block loses its data block: the signature of what was frozen there is not that of its content.
    pub(super) fn forget_frozen_signature(&mut self, id: Id) {
        let found = self.blocks.get_mut(id);
        if found.content != Content::Slot {
            (found.signature, found.sketch) = (None, None);
        }
    }

    /// A delta from a data block is gone. Without any its holder is no reference any more, and one without an
    /// address has no use.
    fn lost_dependent(&mut self, data: DataBlock) {
        let users = self.pool.users(data);
        if !users.is_base()
            && let Some(holder) = users.holder
        {
            self.counters.demotions += 1;
            self.blocks.is_no_reference(holder);
            let found = self.blocks.get_mut(holder);
            found.is_stuck = false;
            if found.block.is_none() {
                self.give_up_data(holder);
                self.blocks.remove(holder);
            } else if self.give_up_unused_data(holder) {
                self.forget_frozen_signature(holder);
            }
        }
        self.pool.release(data);
    }

    /// Notes that the next group must record the present content of a virtual block.
    pub(super) fn must_record(&mut self, id: Id) {
        let found = self.blocks.get_mut(id);
        let payload = match found.content {
            Content::Held(_, chain) => chain.bytes(),
            Content::Slot | Content::Stored => 0,
        };
        let bytes = (RECORD_BYTES + payload) as u32;
        let before = std::mem::replace(&mut found.unrecorded, bytes);
        if let Some(block) = found.block {
            self.unrecorded.insert(block);
        }
        self.unrecorded_bytes += u64::from(bytes);
        self.unrecorded_bytes -= u64::from(before);
    }

    /// Notes that the present content of a virtual block needs no record.
    pub(super) fn need_not_record(&mut self, id: Id) {
        let found = self.blocks.get_mut(id);
        let before = std::mem::take(&mut found.unrecorded);
        if let Some(block) = found.block {
            self.unrecorded.remove(&block);
        }
        self.unrecorded_bytes -= u64::from(before);
    }

    /// Notes that a block without a virtual block is zeros, or is not any more.
    pub(super) fn set_trimmed(&mut self, block: ArrayBlock, is_trimmed: bool) {
        if is_trimmed && self.trimmed.insert(block) {
            self.unrecorded.insert(block);
            self.unrecorded_bytes += RECORD_BYTES as u64;
        }
        if !is_trimmed && self.trimmed.remove(&block) {
            self.unrecorded.remove(&block);
            self.unrecorded_bytes -= RECORD_BYTES as u64;
        }
    }

    /// Takes the address from a reference; what deltas are based on stays.
    pub(super) fn detach(&mut self, id: Id) {
        if let Some(block) = self.blocks.get(id).block {
            self.ram.remove(block);
        }
        self.set_content(id, Content::Stored, 0);
        self.need_not_record(id);
        self.blocks.detach(id);
    }

    /// Ends the virtual block of a block whose content is replaced or given up. A reference keeps what deltas are based
    /// on, without an address.
    pub(super) fn end_virtual(&mut self, block: ArrayBlock) {
        match self.blocks.find(block) {
            Some(id) if self.is_reference(id) => self.detach(id),
            Some(id) => {
                self.need_not_record(id);
                self.drop_virtual(id);
            }
            None => {}
        }
        debug_assert!(self.ram.get(block).is_none());
    }

    /// Ends a virtual block that is no reference and holds nothing that is not durable elsewhere.
    pub(super) fn drop_virtual(&mut self, id: Id) {
        if let Some(block) = self.blocks.get(id).block {
            self.ram.remove(block);
        }
        self.set_content(id, Content::Stored, 0);
        self.give_up_data(id);
        self.blocks.remove(id);
    }

    /// Changes the durable place of a block. Who uses what is noted before what the old place used is given up.
    pub(super) fn set_place(&mut self, block: ArrayBlock, place: BlockPlace, crc: u32) {
        let old = self.table.get(block);
        let has_home = old.has_home || place == BlockPlace::Home;
        let entry = BlockEntry {
            place,
            crc,
            has_home,
        };
        self.use_place(block, &place);
        self.table.set(block, entry);
        self.note_away(block, &entry);
        self.note_dirty(&old.place, &place);
        self.note_unused_home(block, &entry);
        if let Some((log, bytes)) = old.place.log() {
            self.space.remove_live(log, bytes);
        }
        if let Some(data) = old.place.own_data()
            && place.own_data() != Some(data)
        {
            self.pool.users_mut(data).named_by = None;
            self.pool.release(data);
        }
        if let BlockPlace::Delta { base, .. } = old.place
            && !matches!(place, BlockPlace::Delta { base: new, .. } if new == base)
        {
            self.pool.users_mut(base).dependents.remove(&block);
            self.lost_dependent(base);
        }
    }

    /// Notes what the durable place of a block uses.
    pub(super) fn use_place(&mut self, block: ArrayBlock, place: &BlockPlace) {
        if let Some((log, bytes)) = place.log() {
            self.space.add_live(log, bytes);
        }
        if let Some(data) = place.own_data() {
            self.pool.users_mut(data).named_by = Some(block);
        }
        if let BlockPlace::Delta { base, .. } = *place {
            self.pool.users_mut(base).dependents.insert(block);
        }
    }

    /// An access to a virtual block: its signature is counted, it moves to the head of the LRU list, and its
    /// reference ahead of it.
    pub(super) fn access(&mut self, id: Id) {
        if let Some(signature) = self.blocks.get(id).signature {
            self.heatmap.record(&signature.0);
        }
        self.blocks.touch(id);
        self.touch_reference(id);
    }

    /// Moves the reference of an associate to the head of the LRU list.
    pub(super) fn touch_reference(&mut self, id: Id) {
        let holder = self.base_of(id).map(|base| self.pool.users(base).holder);
        if let Some(Some(holder)) = holder {
            self.blocks.touch(holder);
        }
    }

    /// What similarity is judged by.
    pub(super) fn signatures_of(&mut self, page: &Page) -> (Signature, Option<Sketch>) {
        self.media.work(Work::Signature, BLOCK_BYTES);
        let sketch = self
            .uses_sketches()
            .then(|| Sketch(flashlore_delta::sketch(page)));
        (Signature::of(page), sketch)
    }

    pub(super) fn uses_sketches(&self) -> bool {
        self.options.similarity == crate::icash::parameters::Similarity::SuperFeatures
    }
}

impl Element for ICash {
    fn read(&mut self, lba: u64, page: &mut Page) -> Result<(), ArrayError> {
        let continues = std::mem::take(&mut self.continues_request);
        let block = self.addresses.block(lba)?;
        self.statistics.reads += 1;
        match self.passes_by(block, false) {
            true => self.read_past(block, page)?,
            false => self.read_block(block, page)?,
        }
        self.end_of_request(continues);
        Ok(())
    }

    fn write(&mut self, lba: u64, page: &Page) -> Result<(), ArrayError> {
        let continues = std::mem::take(&mut self.continues_request);
        let block = self.addresses.block(lba)?;
        self.make_ready()?;
        match self.passes_by(block, true) {
            true => self.write_past(block, page),
            false => self.write_block(block, page)?,
        }
        // A page of the table may have been lost on the way: then no group ever records it.
        self.refuse_if_stopped()?;
        self.statistics.writes += 1;
        self.end_of_request(continues);
        Ok(())
    }

    fn trim(&mut self, lba: u64) -> Result<(), ArrayError> {
        let continues = std::mem::take(&mut self.continues_request);
        let block = self.addresses.block(lba)?;
        self.make_ready()?;
        self.trim_block(block);
        self.refuse_if_stopped()?;
        self.statistics.trims += 1;
        self.end_of_request(continues);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ArrayError> {
        self.keep_room()?;
        self.commit()?;
        self.statistics.flushes += 1;
        Ok(())
    }

    fn continue_request(&mut self) {
        self.continues_request = true;
    }

    fn work(&mut self) -> Result<bool, ArrayError> {
        self.work_step()
    }

    fn lay_in(&mut self, pages: &mut dyn Iterator<Item = (u64, Page)>) -> Result<(), ArrayError> {
        self.lay_in_blocks(pages)
    }

    fn statistics(&self) -> Statistics {
        self.media.complete(self.statistics)
    }
}
