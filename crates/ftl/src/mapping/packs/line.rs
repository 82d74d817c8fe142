//! The packed pages that may be merged, in the order in which they were filled.
//!
//! Invariant: what is foremost was filled before everything else in line.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use flashlore_flash::{PackId, Table};

use super::row::Pack;

/// Turns of pages given up that may stand in the order besides as many as there are live pages.
pub(super) const SPARE_TURNS: usize = 1024;

/// A page and its number.
pub(super) type Turn = (PackId, u32);

/// Pages on flash in the order in which they were filled: to be merged when there are too many. Some are given
/// up by now. A page without live slots is not in line, or leaves it when its turn comes, and comes back to its place
/// when it has one again.
#[derive(Debug, Clone, Default)]
pub(super) struct Line {
    pub first: VecDeque<Turn>,
    /// Those that came back: number and page.
    back: BinaryHeap<Reverse<(u64, PackId)>>,
}

impl Line {
    /// A page comes to its place; so many were ever filled.
    pub(super) fn bring_back(&mut self, pack: PackId, number: u32, filled: u64) {
        self.back.push(Reverse((nth(number, filled), pack)));
    }

    /// The next that came back, if it was filled before the first of the others.
    pub(super) fn foremost_back(&self, filled: u64) -> Option<Turn> {
        let &Reverse((back, pack)) = self.back.peek()?;
        let first = self.first.front().map(|&(_, number)| nth(number, filled));
        first
            .is_none_or(|first| back < first)
            .then_some((pack, back as u32))
    }

    pub(super) fn foremost(&self, filled: u64) -> Option<Turn> {
        let back = self.foremost_back(filled);
        back.or_else(|| self.first.front().copied())
    }

    pub(super) fn pop(&mut self, filled: u64) {
        match self.foremost_back(filled) {
            Some(_) => _ = self.back.pop(),
            None => _ = self.first.pop_front(),
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.first.capacity() * size_of::<Turn>()
            + self.back.capacity() * size_of::<Reverse<(u64, PackId)>>()
    }
}

/// Which of so many pages that were ever filled has this number, the lower half of it.
pub(super) fn nth(number: u32, filled: u64) -> u64 {
    let ago = (filled as u32).wrapping_sub(number);
    filled.wrapping_sub(u64::from(ago))
}

/// Whether a page is still what it was when it got this turn, and has live slots. Without these it leaves the line.
pub(super) fn stays_in_line(rows: &mut impl Table<Pack>, (pack, number): Turn) -> bool {
    let row = rows.get(pack.index());
    let is_current = row.number == number && row.named_bytes > 0 && row.location.is_some();
    if is_current && row.live_slots == 0 {
        rows.change(pack.index(), |row| row.in_line = false);
    }
    is_current && row.live_slots > 0
}
