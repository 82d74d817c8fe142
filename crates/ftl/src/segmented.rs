//! A segmented LRU list of logical pages: whose entries are cached.
//!
//! An entry enters the probationary segment; the next use moves it to the protected one, whose last falls
//! back to the head of the probationary; the entry at the tail of that leaves. Without a protected segment
//! it is plain LRU.
//!
//! Invariants: an entry is in one segment at most; the protected segment is no longer than its share.

use flashlore_content::list::{List, Node};
use flashlore_flash::Lpn;

/// What a use of an entry led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// It was there.
    Hit,
    /// It is there now; this one, if there was no room, is not any more.
    Loaded(Option<Lpn>),
}

/// Entries by logical page.
#[derive(Debug, Clone)]
pub(crate) struct Segments {
    nodes: Vec<Node<()>>,
    /// By logical page: the segment, or [`NEITHER`].
    segment: Vec<u8>,
    lists: [List<Lpn>; 2],
    entries: u32,
    protected: u32,
}

const PROBATION: usize = 0;
const PROTECTED: usize = 1;
const NEITHER: u8 = 2;

impl Segments {
    /// No entry yet; at most so many of so many pages, and so many of those in the protected segment.
    pub fn new(pages: u32, entries: u32, protected: u32) -> Self {
        Segments {
            nodes: vec![Node::new(()); pages as usize],
            segment: vec![NEITHER; pages as usize],
            lists: Default::default(),
            entries: entries.max(1),
            protected: protected.min(entries.saturating_sub(1)),
        }
    }

    /// An entry is used.
    #[inline(always)]
    pub fn touch(&mut self, lpn: Lpn) -> Use {
        match usize::from(self.segment[lpn.index()]) {
            PROBATION if self.protected > 0 => {
                self.remove(lpn);
                self.push(lpn, PROTECTED);
                if self.lists[PROTECTED].len() > self.protected {
                    self.fall_back();
                }
                Use::Hit
            }
            segment @ (PROBATION | PROTECTED) => {
                self.remove(lpn);
                self.push(lpn, segment);
                Use::Hit
            }
            _ => {
                let held = self.lists[PROBATION].len() + self.lists[PROTECTED].len();
                let last = self.lists[PROBATION].tail();
                let leaves = last.filter(|_| held == self.entries);
                if let Some(last) = leaves {
                    self.remove(last);
                }
                self.push(lpn, PROBATION);
                Use::Loaded(leaves)
            }
        }
    }

    /// The last of the protected segment goes to the head of the probationary one.
    fn fall_back(&mut self) {
        if let Some(last) = self.lists[PROTECTED].tail() {
            self.remove(last);
            self.push(last, PROBATION);
        }
    }

    /// An entry leaves, if it is there.
    pub fn remove(&mut self, lpn: Lpn) {
        let segment = std::mem::replace(&mut self.segment[lpn.index()], NEITHER);
        if let Some(list) = self.lists.get_mut(usize::from(segment)) {
            list.remove(&mut self.nodes, lpn);
        }
    }

    fn push(&mut self, lpn: Lpn, segment: usize) {
        self.lists[segment].push_head(&mut self.nodes, lpn);
        self.segment[lpn.index()] = segment as u8;
    }

    /// Whether an entry is there.
    #[inline(always)]
    pub fn holds(&self, lpn: Lpn) -> bool {
        self.segment[lpn.index()] != NEITHER
    }

    /// Recounts the segments.
    ///
    /// # Errors
    /// A sentence that says what does not hold.
    pub fn check(&self) -> Result<(), String> {
        for (segment, list) in self.lists.iter().enumerate() {
            let strange = |&lpn: &Lpn| usize::from(self.segment[lpn.index()]) != segment;
            if let Some(lpn) = list.iter(&self.nodes).find(strange) {
                return Err(format!(
                    "entry {lpn} is listed in segment {segment}, marked elsewhere"
                ));
            }
            let marked = self.segment.iter().filter(|&&s| usize::from(s) == segment);
            let counted = (list.iter(&self.nodes).count(), marked.count());
            if counted != (list.len() as usize, list.len() as usize) {
                return Err(format!(
                    "segment {segment} counts {} entries, listed and marked are {counted:?}",
                    list.len()
                ));
            }
        }
        let [probation, protected] = [&self.lists[PROBATION], &self.lists[PROTECTED]];
        if probation.len() + protected.len() > self.entries || protected.len() > self.protected {
            return Err(format!(
                "{} + {} entries in segments with room for {}, {} of them protected",
                probation.len(),
                protected.len(),
                self.entries,
                self.protected
            ));
        }
        Ok(())
    }

    /// Bytes held.
    pub fn heap_bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node<()>>() + self.segment.capacity()
    }
}
