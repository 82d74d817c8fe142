//! The line of changes that wait for a place in a buffer or a queue, in order of arrival.
//!
//! Each has a number, so that a read that came behind some of them can tell when they are through.
//!
//! Invariants: the numbers of the line ascend; of each page with changes in the line it is known how many they
//! are, and the number of the last.

use std::collections::VecDeque;

use flashlore_flash::Lpn;
use rustc_hash::FxHashMap;

use super::UnitChange;

/// The changes of one page that wait.
#[derive(Debug, Clone, Copy)]
struct OfPage {
    count: u32,
    last: u64,
}

/// The changes that wait for a place.
#[derive(Debug, Default)]
pub(in crate::engine) struct Line {
    changes: VecDeque<(u64, UnitChange)>,
    pages: FxHashMap<Lpn, OfPage>,
    /// Changes that have come so far.
    numbers: u64,
}

impl Line {
    pub fn push(&mut self, unit: UnitChange) {
        let number = self.numbers;
        self.numbers += 1;
        self.changes.push_back((number, unit));
        let of_page = self.pages.entry(unit.lpn).or_insert(OfPage {
            count: 0,
            last: number,
        });
        of_page.count += 1;
        of_page.last = number;
    }

    pub fn first(&self) -> Option<UnitChange> {
        self.changes.front().map(|&(_, unit)| unit)
    }

    pub fn pop(&mut self) {
        let Some((_, unit)) = self.changes.pop_front() else {
            return;
        };
        if let Some(of_page) = self.pages.get_mut(&unit.lpn) {
            of_page.count -= 1;
            if of_page.count == 0 {
                self.pages.remove(&unit.lpn);
            }
        }
    }

    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Pages of which changes wait.
    pub fn pages(&self) -> usize {
        self.pages.len()
    }

    /// Whether a change of this page waits.
    pub fn has(&self, lpn: Lpn) -> bool {
        self.pages.contains_key(&lpn)
    }

    /// The changes of a page need no place any more.
    pub fn take_all(&mut self, lpn: Lpn, mut taken: impl FnMut(UnitChange)) {
        if self.pages.remove(&lpn).is_none() {
            return;
        }
        self.changes.retain(|(_, unit)| {
            if unit.lpn == lpn {
                taken(*unit);
            }
            unit.lpn != lpn
        });
    }

    /// The number of the last change that waits; with a page, of the last one of that.
    pub fn last(&self, lpn: Option<Lpn>) -> Option<u64> {
        match lpn {
            Some(lpn) => self.pages.get(&lpn).map(|of_page| of_page.last),
            None => self.changes.back().map(|&(number, _)| number),
        }
    }

    /// Whether the change of a number, and all before it, have left the line.
    pub fn has_passed(&self, number: u64) -> bool {
        self.changes
            .front()
            .is_none_or(|&(first, _)| first > number)
    }
}

#[cfg(test)]
mod tests {
    use flashlore_content::PageTag;

    use super::*;
    use crate::engine::driver::What;

    fn change(lpn: u32) -> UnitChange {
        UnitChange {
            lpn: Lpn(lpn),
            value: PageTag(0),
            ratio: 0,
            what: What::Write,
            slot: 0,
            arrival: 0,
        }
    }

    #[test]
    fn a_read_is_behind_the_last_change_of_its_page_or_of_all() {
        let mut line = Line::default();
        for lpn in [7, 8, 7, 9] {
            line.push(change(lpn));
        }
        assert_eq!((line.len(), line.pages()), (4, 3));
        assert_eq!(line.last(Some(Lpn(7))), Some(2));
        assert_eq!((line.last(Some(Lpn(1))), line.last(None)), (None, Some(3)));
        line.pop();
        line.pop();
        assert!(line.has(Lpn(7)) && !line.has(Lpn(8)));
        assert!(line.has_passed(1) && !line.has_passed(2));
        line.pop();
        assert!(line.has_passed(2) && !line.has(Lpn(7)));
        let mut taken = 0;
        line.take_all(Lpn(9), |_| taken += 1);
        assert_eq!((taken, line.len(), line.last(None)), (1, 0, None));
        assert!(line.has_passed(3));
    }
}
