//! The sets of the bounded index, one after the other.
//!
//! Invariants: a set begins with a cache line; a set that was never changed takes no memory. So an index of gigabytes is made
//! in no time, and takes room as it fills.

use std::ops::{Deref, DerefMut, Range};

use bytemuck::{Pod, Zeroable};
use flashlore_flash::hints::on_large_pages;

use super::set::{EntrySet, SET_BYTES};

const SET_WORDS: usize = SET_BYTES / size_of::<u64>();

// SAFETY: numbers without padding between them, of which any will do.
unsafe impl Pod for EntrySet {}
// SAFETY: a set of zeros is empty.
unsafe impl Zeroable for EntrySet {}

/// So many sets. Memory that is asked for as zeros of machine words is handed out by the system as it is touched; asked for
/// as something that begins with a cache line, it would be filled.
#[derive(Debug)]
pub struct Sets {
    words: Vec<u64>,
    /// The word where the first one begins.
    begin: usize,
}

impl Sets {
    /// As they are made, without entries.
    pub fn new(count: usize) -> Self {
        let words = match count {
            0 => Vec::new(),
            _ => on_large_pages(vec![0; (count + 1) * SET_WORDS]),
        };
        let begin = words.as_ptr().align_offset(SET_BYTES);
        Sets { words, begin }
    }

    /// Memory that they take once all of them have been changed, in bytes.
    pub fn bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }

    /// The words of all of them, if there are any.
    #[inline(always)]
    fn range(&self) -> Option<Range<usize>> {
        let words = self.words.len().checked_sub(SET_WORDS)?;
        Some(self.begin..self.begin + words)
    }
}

impl Deref for Sets {
    type Target = [EntrySet];

    #[inline(always)]
    fn deref(&self) -> &[EntrySet] {
        match self.range() {
            Some(range) => bytemuck::cast_slice(&self.words[range]),
            None => &[],
        }
    }
}

impl DerefMut for Sets {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [EntrySet] {
        match self.range() {
            Some(range) => bytemuck::cast_slice_mut(&mut self.words[range]),
            None => &mut [],
        }
    }
}

impl Clone for Sets {
    fn clone(&self) -> Self {
        let mut sets = Sets::new(self.len());
        sets.copy_from_slice(self);
        sets
    }
}
