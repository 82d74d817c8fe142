//! The place table: of each block where its durable content is, and of each frozen place what is in it, as the last durable
//! group left it. It lies on the slow medium, page by page; some of its pages are in memory.
//!
//! In memory are the pages that differ from the newest checkpoint, until the next one, and of all others those that were
//! used lately, as a clock tells them. A page that was never written needs no memory before something is noted in it.
//!
//! An opening reads every page, so what does not hold is found then. A page that cannot be read later is an error to whoever
//! only looks ([`Table::look`]). What a change needs of it is not known, and nothing is written any more ([`Halt`]): to that
//! change its blocks were never written, and what was to be noted in it is not.
//!
//! Invariants: `dirty` has every page with an entry that the newest checkpoint does not know; each of them is in memory.
//! Every other page in memory is in `waiting` once. With room for all pages none leaves.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use flashlore_medium::Medium;

use crate::error::ArrayError;
use crate::icash::format::Areas;
use crate::icash::format::table::{self, ENTRIES, PageEntries, pages_of};
use crate::icash::parameters::BLOCK_BYTES;
use crate::icash::place::{BlockEntry, Frozen, RawEntry};
use crate::index::{ArrayBlock, FrozenPlace, TablePage};
use crate::media::Halt;

/// Copies of each page, which lie side by side.
const COPIES: usize = 2;
/// Pages that are looked at together where all are: a mebibyte.
const TOGETHER: u32 = 128;

/// Where the pages lie that are not in memory.
pub struct TableSource {
    pub medium: Arc<dyn Medium>,
    pub areas: Areas,
    pub tag: u64,
    /// The checkpoint that wrote the newest of them.
    pub checkpoint: u64,
    pub halt: Halt,
}

pub struct Table {
    blocks: u32,
    frozen: u32,
    source: TableSource,
    /// As in [`crate::icash::format::Root::copies`].
    copies: Vec<u8>,
    dirty: BTreeSet<TablePage>,
    /// Pages in memory, but for those that are dirty.
    most: usize,
    frames: RefCell<Frames>,
    /// The first page that could not be read when a change needed it, in a sentence.
    failure: OnceCell<String>,
}

/// The pages in memory.
struct Frames {
    of_page: Vec<Option<Box<Frame>>>,
    /// How many there are.
    count: usize,
    /// Pages that may leave, the one first that was asked for longest ago.
    waiting: VecDeque<TablePage>,
    /// Pages that could not be read when something was to be noted in them.
    outdated: BTreeSet<TablePage>,
}

/// Pages side by side, both copies of each; nothing if they could not be read together.
struct PageRun {
    first: TablePage,
    bytes: Option<Vec<u8>>,
}

/// A block, and what is noted of it.
type Noted = (ArrayBlock, BlockEntry);

struct Frame {
    entries: PageEntries,
    is_dirty: bool,
    /// Whether it was used since it came, or was passed over.
    is_used: bool,
    is_waiting: bool,
}

/// The page of a block or of a place behind `first` pages, and which of its entries.
fn split(first: u32, number: u32) -> (TablePage, usize) {
    let page = TablePage(first + number / ENTRIES as u32);
    (page, number as usize % ENTRIES)
}

/// The range that begins with this page, of so many pages.
fn range_from(first: u32, pages: u32) -> Range<TablePage> {
    TablePage(first)..TablePage(pages.min(first + TOGETHER))
}

impl Table {
    /// That of so many blocks and frozen places, with these copies of its pages, of which so many may be in memory.
    pub fn new(
        source: TableSource,
        (blocks, frozen): (u64, u32),
        copies: Vec<u8>,
        most: u32,
    ) -> Self {
        Table {
            blocks: blocks as u32,
            frozen,
            source,
            frames: RefCell::new(Frames {
                of_page: std::iter::repeat_with(|| None).take(copies.len()).collect(),
                count: 0,
                waiting: VecDeque::new(),
                outdated: BTreeSet::new(),
            }),
            failure: OnceCell::new(),
            copies,
            dirty: BTreeSet::new(),
            most: most as usize,
        }
    }

    pub fn len(&self) -> u32 {
        self.blocks
    }

    pub fn has(&self, block: ArrayBlock) -> bool {
        block.0 < self.len()
    }

    /// All blocks, in order.
    pub fn blocks(&self) -> impl Iterator<Item = ArrayBlock> + use<> {
        ArrayBlock::first(self.len())
    }

    /// What a change has to know of a block.
    pub fn get(&self, block: ArrayBlock) -> BlockEntry {
        self.look(block).unwrap_or_else(|why| self.fail(why))
    }

    /// What is noted of a block.
    ///
    /// # Errors
    /// Its page cannot be read, in a sentence.
    pub fn look(&self, block: ArrayBlock) -> Result<BlockEntry, String> {
        let (page, at) = split(0, block.0);
        let raw = self.raw(page, at)?;
        Ok(raw.entry().expect("only entries are stored"))
    }

    pub fn set(&mut self, block: ArrayBlock, entry: BlockEntry) {
        self.change(split(0, block.0), entry.into());
    }

    /// How many frozen places there are.
    pub fn frozen_places(&self) -> u32 {
        self.frozen
    }

    /// What a frozen place is said to hold. If nobody uses that data block any more the place is free.
    pub fn frozen(&self, place: FrozenPlace) -> Option<Frozen> {
        let (page, at) = split(self.block_pages(), place.0);
        let raw = self.raw(page, at).unwrap_or_else(|why| self.fail(why));
        raw.frozen().expect("only entries are stored")
    }

    pub fn set_frozen(&mut self, place: FrozenPlace, frozen: Frozen) {
        self.change(split(self.block_pages(), place.0), frozen.into());
    }

    /// Refuses to go on if a page could not be read of which something had to be known.
    ///
    /// # Errors
    /// Which page that was first.
    pub fn demand_whole(&self) -> Result<(), ArrayError> {
        let why = self.failure.get();
        why.map_or(Ok(()), |why| Err(ArrayError::Damaged(why.clone())))
    }

    /// Pages of blocks in ranges that are looked at together.
    pub fn ranges(&self) -> impl Iterator<Item = Range<TablePage>> + use<> {
        let pages = self.block_pages();
        let starts = (0..pages).step_by(TOGETHER as usize);
        starts.map(move |first| range_from(first, pages))
    }

    /// The range of pages with a block, and the first block of the next one.
    pub fn range_with(&self, block: ArrayBlock) -> (Range<TablePage>, Option<ArrayBlock>) {
        let (page, _) = split(0, block.0);
        let range = range_from(page.0 / TOGETHER * TOGETHER, self.block_pages());
        let next = ArrayBlock(range.end.0.saturating_mul(ENTRIES as u32));
        (range, Some(next).filter(|&next| self.has(next)))
    }

    /// What is noted of the blocks of some pages, all of which are needed.
    ///
    /// # Errors
    /// The first page that cannot be read.
    pub fn all_noted_in(&self, pages: Range<TablePage>) -> Result<Vec<Noted>, ArrayError> {
        match self.noted_in(pages) {
            (noted, None) => Ok(noted),
            (_, Some(why)) => Err(ArrayError::Damaged(why)),
        }
    }

    /// What is noted of the blocks of some pages; of those that are not named nothing is. What is not in memory of these
    /// pages is read at once, and pushes no others out. Pages that cannot be read are passed over; the first of them is told
    /// in a sentence.
    pub fn noted_in(&self, pages: Range<TablePage>) -> (Vec<Noted>, Option<String>) {
        let frames = self.frames.borrow();
        let is_in_memory = |page: TablePage| frames.of_page[page.index()].is_some();
        let is_away = |page: &TablePage| self.copies[page.index()] > 0 && !is_in_memory(*page);
        let mut away = TablePage::each(pages.clone()).filter(is_away);
        let run = away.next().map(|first| {
            let last = away.next_back().unwrap_or(first);
            self.source.read_run(first..last + 1)
        });
        let (mut noted, mut unread) = (Vec::new(), None);
        for page in TablePage::each(pages) {
            let entries = match (&frames.of_page[page.index()], &run) {
                (Some(frame), _) => frame.entries,
                (None, Some(run)) if is_away(&page) => {
                    match self.source.in_run(run, page, self.copies[page.index()] - 1) {
                        Ok(entries) => entries,
                        Err(why) => {
                            unread.get_or_insert(why);
                            continue;
                        }
                    }
                }
                _ => continue,
            };
            let first = ArrayBlock(page.0 * ENTRIES as u32);
            let entries = (0..).map(|at| first + at).zip(&entries);
            noted.extend(entries.filter_map(|(block, raw)| {
                let entry = raw.entry().filter(|entry| *entry != BlockEntry::ZERO)?;
                self.has(block).then_some((block, entry))
            }));
        }
        (noted, unread)
    }

    /// The bytes of a dirty page, as this checkpoint writes it there.
    ///
    /// # Panics
    /// If it is not dirty.
    pub fn encode(&self, page: TablePage, checkpoint: u64, offset: u64) -> Vec<u8> {
        let frames = self.frames.borrow();
        let frame = frames.of_page[page.index()].as_ref();
        let entries = &frame.expect("what is dirty is in memory").entries;
        table::encode(entries, self.source.tag, page, checkpoint, offset)
    }

    /// Pages that a checkpoint must write.
    pub fn dirty(&self) -> &BTreeSet<TablePage> {
        &self.dirty
    }

    /// Whether so many pages are dirty that it is time for a checkpoint.
    pub fn is_checkpoint_due(&self) -> bool {
        self.dirty.len() > self.most / 2
    }

    /// Which copy of each page counts.
    pub fn copies(&self) -> &[u8] {
        &self.copies
    }

    /// Notes that a checkpoint wrote the dirty pages, and where.
    pub fn checkpointed(&mut self, checkpoint: u64, copies: Vec<u8>) {
        self.source.checkpoint = checkpoint;
        self.copies = copies;
        let frames = self.frames.get_mut();
        for page in std::mem::take(&mut self.dirty) {
            frames.may_leave(page);
        }
        while frames.count > self.most && frames.drop_oldest() {}
    }

    pub fn heap_bytes(&self) -> usize {
        let frames = self.frames.borrow();
        frames.count * size_of::<Frame>()
            + frames.of_page.capacity() * size_of::<Option<Box<Frame>>>()
            + frames.waiting.capacity() * size_of::<TablePage>()
            + self.copies.capacity()
    }

    /// Recounts which pages are in memory and may leave.
    pub fn check(&self) -> Result<(), String> {
        let frames = self.frames.borrow();
        let mut waiting: Vec<TablePage> = frames.waiting.iter().copied().collect();
        waiting.sort_unstable();
        let mut expected = Vec::new();
        for (page, frame) in (0..).map(TablePage).zip(&frames.of_page) {
            let Some(frame) = frame else {
                continue;
            };
            if frame.is_dirty != self.dirty.contains(&page) || !frame.is_dirty && !frame.is_waiting
            {
                return Err(format!(
                    "page {page} of the place table is dirty or may leave, and should not"
                ));
            }
            if frame.is_waiting {
                expected.push(page);
            }
        }
        let found = frames.of_page.iter().flatten().count();
        let is_within = found <= self.most.max(1) + self.dirty.len();
        if waiting != expected || found != frames.count || !is_within {
            return Err(format!(
                "{found} pages of the place table are in memory, counted are {}, dirty {}; {waiting:?} may leave, counted \
                 are {expected:?}",
                frames.count,
                self.dirty.len()
            ));
        }
        Ok(())
    }

    fn block_pages(&self) -> u32 {
        pages_of(self.blocks.into()) as u32
    }

    /// A change cannot know what it has to: it is the last one.
    #[cold]
    fn fail<T: Default>(&self, why: String) -> T {
        self.source.halt.set(why.clone());
        self.failure.get_or_init(|| why);
        T::default()
    }

    fn raw(&self, page: TablePage, at: usize) -> Result<RawEntry, String> {
        let mut frames = self.frames.borrow_mut();
        if let Some(frame) = &mut frames.of_page[page.index()] {
            frame.is_used = true;
            return Ok(frame.entries[at]);
        }
        let entries = self.load(&mut frames, page)?;
        Ok(entries.map_or(RawEntry::default(), |entries| entries[at]))
    }

    /// Brings a page to memory, if it was ever written.
    #[cold]
    fn load<'a>(
        &self,
        frames: &'a mut Frames,
        page: TablePage,
    ) -> Result<Option<&'a mut PageEntries>, String> {
        let Some(copy) = self.copies[page.index()].checked_sub(1) else {
            return Ok(None);
        };
        if frames.outdated.contains(&page) {
            return Err(format!(
                "page {page} of the place table could not be read before"
            ));
        }
        let entries = self.source.read(page, copy, page.0 >= self.block_pages())?;
        Ok(Some(&mut frames.insert(page, entries, self.most).entries))
    }

    fn change(&mut self, (page, at): (TablePage, usize), entry: RawEntry) {
        let mut frames = self.frames.borrow_mut();
        if frames.of_page[page.index()].is_none() {
            match self.load(&mut frames, page).map(|found| found.is_some()) {
                Ok(true) => {}
                Ok(false) => {
                    frames.insert(page, [RawEntry::default(); ENTRIES], self.most);
                }
                Err(why) => {
                    frames.outdated.insert(page);
                    return self.fail(why);
                }
            }
        }
        let frame = frames.of_page[page.index()].as_mut();
        let frame = frame.expect("it was brought to memory");
        frame.entries[at] = entry;
        frame.is_used = true;
        if !std::mem::replace(&mut frame.is_dirty, true) {
            self.dirty.insert(page);
        }
    }
}

impl TableSource {
    /// Reads a page, or says in a sentence that it does not hold.
    fn read(&self, page: TablePage, copy: u8, is_of_frozen: bool) -> Result<PageEntries, String> {
        let offset = self.areas.table_page(page, copy);
        let mut bytes = [0; BLOCK_BYTES];
        let read = self.medium.read(offset, &mut bytes).ok();
        let bytes = read.map(|()| &bytes[..]);
        self.parse(bytes, (page, copy), is_of_frozen)
    }

    /// Reads pages side by side, both copies of each.
    fn read_run(&self, pages: Range<TablePage>) -> PageRun {
        let mut bytes = vec![0; COPIES * BLOCK_BYTES * (pages.end - pages.start) as usize];
        let offset = self.areas.table_page(pages.start, 0);
        let read = self.medium.read(offset, &mut bytes);
        PageRun {
            first: pages.start,
            bytes: read.ok().map(|()| bytes),
        }
    }

    /// A page of blocks from a run, or by itself if that could not be read.
    fn in_run(&self, run: &PageRun, page: TablePage, copy: u8) -> Result<PageEntries, String> {
        match &run.bytes {
            Some(bytes) => {
                let at = COPIES * (page - run.first) as usize + usize::from(copy);
                let bytes = &bytes[at * BLOCK_BYTES..(at + 1) * BLOCK_BYTES];
                self.parse(Some(bytes), (page, copy), false)
            }
            None => self.read(page, copy, false),
        }
    }

    fn parse(
        &self,
        bytes: Option<&[u8]>,
        (page, copy): (TablePage, u8),
        is_of_frozen: bool,
    ) -> Result<PageEntries, String> {
        let offset = self.areas.table_page(page, copy);
        let is_one = |raw: &RawEntry| match is_of_frozen {
            true => raw.frozen().is_some(),
            false => raw.entry().is_some(),
        };
        bytes
            .and_then(|bytes| table::parse(bytes, self.tag, page, self.checkpoint, offset))
            .filter(|entries| entries.iter().all(is_one))
            .ok_or_else(|| {
                format!(
                    "page {page} of the place table, at byte {offset} of the slow medium, does not hold"
                )
            })
    }
}

impl Frames {
    /// Takes a page in; if there is no room, others leave for it.
    fn insert(&mut self, page: TablePage, entries: PageEntries, most: usize) -> &mut Frame {
        while self.count >= most && self.drop_oldest() {}
        self.count += 1;
        self.waiting.push_back(page);
        self.of_page[page.index()].insert(Box::new(Frame {
            entries,
            is_dirty: false,
            is_used: false,
            is_waiting: true,
        }))
    }

    /// A dirty page is as the newest checkpoint knows it.
    fn may_leave(&mut self, page: TablePage) {
        let frame = self.of_page[page.index()].as_mut();
        let frame = frame.expect("what is dirty is in memory");
        frame.is_dirty = false;
        if !std::mem::replace(&mut frame.is_waiting, true) {
            self.waiting.push_back(page);
        }
    }

    /// Drops the page that was not used for longest; false if all are dirty.
    fn drop_oldest(&mut self) -> bool {
        while let Some(page) = self.waiting.pop_front() {
            let place = &mut self.of_page[page.index()];
            let frame = place.as_mut().expect("what waits is in memory");
            if frame.is_dirty {
                frame.is_waiting = false;
            } else if std::mem::take(&mut frame.is_used) {
                self.waiting.push_back(page);
            } else {
                *place = None;
                self.count -= 1;
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::icash::place::BlockPlace;
    use crate::icash::{Machine, Shape};
    use flashlore_medium::MemoryMedium;

    fn table(blocks: u32) -> Table {
        let shape = Shape {
            machines: vec![Machine { number: 0, blocks }],
            slots: 4,
            log_segments: 4,
            segment_blocks: 4,
            journal_blocks: 0,
            frozen_blocks: 3,
        };
        let areas = Areas::of(&shape);
        let source = TableSource {
            medium: Arc::new(MemoryMedium::new(1 << 20)),
            areas,
            tag: 1,
            checkpoint: 1,
            halt: Halt::default(),
        };
        let copies = vec![0; areas.table_pages as usize];
        Table::new(source, (blocks.into(), 3), copies, 2)
    }

    /// From block to block ranges lead to each other as they follow each other, and end where the blocks do.
    #[test]
    fn ranges_have_every_block_once() {
        let of_range = TOGETHER * ENTRIES as u32;
        for blocks in [
            1,
            254,
            255,
            of_range - 1,
            of_range,
            of_range + 1,
            5 * of_range + 7,
        ] {
            let table = table(blocks);
            let mut at = Some(ArrayBlock(0));
            for pages in table.ranges() {
                let first = at.expect("a range for each");
                let (found, next) = table.range_with(first);
                let end = next.unwrap_or(ArrayBlock(blocks));
                assert_eq!(
                    (found, table.range_with(ArrayBlock(end.0 - 1)).1),
                    (pages, next)
                );
                at = next;
            }
            assert_eq!(at, None, "{blocks}");
            assert!(table.range_with(ArrayBlock(blocks)).1.is_none());
        }
    }

    #[test]
    fn what_is_noted_is_found_in_its_range_alone() {
        let mut table = table(3 * TOGETHER * ENTRIES as u32);
        let entry = BlockEntry {
            place: BlockPlace::Home,
            crc: 9,
            has_home: true,
        };
        let noted = [3, 253, 254, 40_000, 90_000].map(|block| (ArrayBlock(block), entry));
        for (block, entry) in noted {
            table.set(block, entry);
        }
        let ranges = table.ranges().map(|pages| table.all_noted_in(pages));
        let ranges: Result<Vec<_>, _> = ranges.collect();
        let ranges = ranges.unwrap();
        assert_eq!(ranges, [&noted[..3], &noted[3..4], &noted[4..]]);
        table.check().unwrap();
    }
}
