//! Pages in memory, as many as the budget allows.
//!
//! Who leaves is found as CLOCK finds it: the hand passes over pages that were used since it came by last. A page that
//! has not changed is preferred while at most half of them have; else those that have not would be too few to hold the
//! way to a page that is wanted.
//!
//! Invariants: a page that has changed keeps its parent in memory, as that will have to name its new place; a page with
//! changed children, or that somebody pins, does not leave; what was found lately is where it was found.

use std::cell::Cell;
use std::collections::BTreeSet;

use flashlore_medium::AlignedBuf;
use rustc_hash::FxHashMap;

use crate::address::{Node, Slot};
use crate::error::MetadataError;
use crate::page::PAGE_BYTES;

/// Pages that are taken from the system at once.
const CHUNK: usize = 64;
/// Pages that the hand looks at before it takes one that has changed.
const SEARCH: usize = 64;

/// Pages that are known without a look into the table of all, a power of two.
const LATELY: usize = 256;
/// The key of no page.
const NO_KEY: u64 = u64::MAX;

/// The place of a page among those found lately, by the highest bits of a product with the golden ratio (Knuth, The Art of
/// Computer Programming 3, section 6.4).
#[inline(always)]
fn place_of(key: u64) -> usize {
    (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - LATELY.ilog2())) as usize
}

/// Where a page is in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameId(u32);

/// A page in memory.
#[derive(Debug)]
pub(crate) struct Frame {
    pub node: Node,
    /// Where it lies, or may be written again; none if it needs a new place.
    pub slot: Option<Slot>,
    pub dirty: bool,
    /// Of its children in memory so many have changed.
    pub dirty_children: u32,
    pub pins: u32,
    used: bool,
    taken: bool,
}

/// What became of questions to the cache since the store was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheCounters {
    /// Rows that were there.
    pub hits: u64,
    /// Rows whose page had to be read.
    pub misses: u64,
    /// Pages that were written to make room: those that left, and with them others of their table.
    pub written_for_room: u64,
    /// Pages that left as they were.
    pub evicted_clean: u64,
}

/// The pages in memory.
#[derive(Debug)]
pub(crate) struct Cache {
    frames: Vec<Frame>,
    bytes: Vec<AlignedBuf>,
    most: usize,
    /// Pages beyond those, which leave again soon.
    lent: usize,
    by_node: FxHashMap<u64, u32>,
    /// Of pages found lately where they are: the rows of one are asked for again and again.
    lately: [Cell<(u64, u32)>; LATELY],
    unused: Vec<u32>,
    hand: usize,
    /// Pages that have changed, by level, then in the order of their table.
    dirty: BTreeSet<(u8, Node)>,
    pub counters: CacheCounters,
}

impl Cache {
    /// Room for so many pages.
    pub fn new(most: usize) -> Self {
        Cache {
            frames: Vec::new(),
            bytes: Vec::new(),
            most,
            lent: 0,
            by_node: FxHashMap::default(),
            lately: [const { Cell::new((NO_KEY, 0)) }; LATELY],
            unused: Vec::new(),
            hand: 0,
            dirty: BTreeSet::new(),
            counters: CacheCounters::default(),
        }
    }

    /// Pages it may hold.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Pages that have changed.
    pub fn dirty(&self) -> &BTreeSet<(u8, Node)> {
        &self.dirty
    }

    /// The frame of a page that is in memory.
    #[inline(always)]
    pub fn find(&self, node: Node) -> Option<FrameId> {
        let key = node.key();
        let lately = &self.lately[place_of(key)];
        if let (known, frame) = lately.get()
            && known == key
        {
            return Some(FrameId(frame));
        }
        let frame = self.by_node.get(&key).copied()?;
        lately.set((key, frame));
        Some(FrameId(frame))
    }

    #[inline(always)]
    pub fn frame(&self, frame: FrameId) -> &Frame {
        &self.frames[frame.0 as usize]
    }

    #[inline(always)]
    pub fn frame_mut(&mut self, frame: FrameId) -> &mut Frame {
        &mut self.frames[frame.0 as usize]
    }

    /// A page is used.
    #[inline(always)]
    pub fn touch(&mut self, frame: FrameId) {
        self.frames[frame.0 as usize].used = true;
    }

    #[inline(always)]
    pub fn page(&self, frame: FrameId) -> &[u8] {
        let (chunk, at) = (frame.0 as usize / CHUNK, frame.0 as usize % CHUNK);
        &self.bytes[chunk][at * PAGE_BYTES..(at + 1) * PAGE_BYTES]
    }

    #[inline(always)]
    pub fn page_mut(&mut self, frame: FrameId) -> &mut [u8] {
        let (chunk, at) = (frame.0 as usize / CHUNK, frame.0 as usize % CHUNK);
        &mut self.bytes[chunk][at * PAGE_BYTES..(at + 1) * PAGE_BYTES]
    }

    /// Marks a page as changed or not.
    pub fn set_dirty(&mut self, frame: FrameId, dirty: bool) {
        let frame = self.frame_mut(frame);
        frame.dirty = dirty;
        let page = (frame.node.level, frame.node);
        match dirty {
            true => self.dirty.insert(page),
            false => self.dirty.remove(&page),
        };
    }

    /// Whether another page has room beside those that are in memory.
    pub fn has_room(&self) -> bool {
        self.frames.len() - self.unused.len() < self.most + self.lent
    }

    /// A frame for a page that leaves again soon, beside as many as there may be.
    pub fn lend(&mut self, node: Node) -> FrameId {
        self.lent += 1;
        self.place(node)
    }

    /// That page leaves, or is one of those that there may be from now on.
    pub fn give_back(&mut self) {
        self.lent -= 1;
    }

    /// From now on it may hold so many pages, at least as many as it has room for now.
    pub fn grow(&mut self, most: usize) {
        self.most = self.most.max(most);
    }

    /// A frame for a page that is not in memory and lies nowhere yet, if there is room for it.
    pub fn add(&mut self, node: Node) -> Option<FrameId> {
        self.has_room().then(|| self.place(node))
    }

    fn place(&mut self, node: Node) -> FrameId {
        let new = Frame {
            node,
            slot: None,
            dirty: false,
            dirty_children: 0,
            pins: 0,
            used: true,
            taken: true,
        };
        let frame = match self.unused.pop() {
            Some(frame) => {
                self.frames[frame as usize] = new;
                frame
            }
            None => {
                if self.frames.len().is_multiple_of(CHUNK) {
                    self.bytes.push(AlignedBuf::zeroed(CHUNK * PAGE_BYTES));
                }
                self.frames.push(new);
                self.frames.len() as u32 - 1
            }
        };
        self.by_node.insert(node.key(), frame);
        FrameId(frame)
    }

    /// A page leaves; it has not changed.
    pub fn remove(&mut self, frame: FrameId) {
        debug_assert!(!self.frame(frame).dirty);
        let key = self.frame(frame).node.key();
        self.by_node.remove(&key);
        let lately = &self.lately[place_of(key)];
        if lately.get().0 == key {
            lately.set((NO_KEY, 0));
        }
        self.frame_mut(frame).taken = false;
        self.unused.push(frame.0);
    }

    /// The page that is to leave.
    pub fn victim(&mut self) -> Result<FrameId, MetadataError> {
        let frames = self.frames.len();
        let mut changed = None;
        let search = if 2 * self.dirty.len() > frames {
            0
        } else {
            SEARCH
        };
        // Twice around: after the first time nothing counts as used.
        for step in 0..2 * frames + 1 {
            if step >= search && changed.is_some() {
                break;
            }
            let at = self.hand;
            self.hand = (self.hand + 1) % frames;
            let frame = &mut self.frames[at];
            if !frame.taken || frame.pins > 0 || frame.dirty_children > 0 {
                continue;
            }
            if std::mem::take(&mut frame.used) {
                continue;
            }
            if !frame.dirty {
                return Ok(FrameId(at as u32));
            }
            changed.get_or_insert(FrameId(at as u32));
        }
        changed.ok_or(MetadataError::Crowded { frames })
    }

    /// The pages in memory.
    pub fn all(&self) -> impl Iterator<Item = (FrameId, &Frame)> {
        let frames = (0..).map(FrameId).zip(&self.frames);
        frames.filter(|(_, frame)| frame.taken)
    }

    /// Bytes held.
    pub fn heap_bytes(&self) -> usize {
        let node = size_of::<(u64, u32)>() + 1;
        self.bytes.len() * CHUNK * PAGE_BYTES
            + self.frames.capacity() * size_of::<Frame>()
            + self.by_node.capacity() * node
    }
}
