//! What the accesses of a trace are to the pages and values they touch.
//!
//! Time is counted in *uses*: each write of a page and the first read of one is a use, and takes the
//! next position. Reads of known pages and trims look back but take no position.

use flashlore_trace::Op;
use rustc_hash::FxHashMap;

use crate::recency::NOWHERE;

/// No position, no value.
pub(super) const NONE: u32 = NOWHERE;

/// One access to one page.
#[derive(Debug, Clone, Copy)]
pub(super) struct Feature {
    pub(super) op: Op,
    /// Uses before this one.
    pub(super) position: u32,
    /// The page's number, and the position of its last use or [`NONE`].
    pub(super) page: u64,
    pub(super) last: u32,
    /// Whether another page holds the value that goes.
    pub(super) shared: bool,
    pub(super) worth: Seen,
}

/// What an access does to the value of its page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    /// Nothing, or nothing is known.
    Absent,
    /// It brings a value that did not occur before.
    New,
    /// It writes what the page holds.
    Same,
    /// It brings what other pages hold; the value was last used at this position.
    Copy { last: u32 },
    /// It brings what no page holds any more.
    Reborn { last: u32 },
}

/// A page: the position of its last use, and the value it holds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Page {
    pub(super) last: u32,
    pub(super) held: u32,
}

impl Page {
    pub(super) const UNUSED: Page = Page {
        last: NONE,
        held: NONE,
    };
}

/// A value: the position of its last use, and how many pages hold it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Value {
    pub(super) last: u32,
    pub(super) copies: u32,
}

impl Value {
    pub(super) const UNUSED: Value = Value {
        last: NONE,
        copies: 0,
    };
}

/// Pages and values as far as a trace was followed.
#[derive(Debug, Default)]
pub(super) struct Follower {
    pages: FxHashMap<u64, Page>,
    values: FxHashMap<u32, Value>,
    position: u32,
}

impl Follower {
    /// Follows one access. A trim of a page that was not used is none.
    pub(super) fn follow(&mut self, op: Op, page: u64, value: Option<u32>) -> Option<Feature> {
        let known = self.pages.get(&page).copied();
        let uses = match op {
            Op::Write => true,
            Op::Trim => known.map(|_| false)?,
            _ => known.is_none(),
        };
        let before = known.unwrap_or(Page::UNUSED);
        let mut feature = Feature {
            op,
            position: self.position,
            page,
            last: before.last,
            shared: self.copies(before.held) > 1,
            worth: Seen::Absent,
        };
        if uses {
            feature.worth = self.seen(before.held, value);
            let held = value.unwrap_or(NONE);
            self.exchange(before.held, held);
            let last = self.position;
            self.pages.insert(page, Page { last, held });
            if let Some(value) = self.values.get_mut(&held) {
                value.last = last;
            }
            self.position += 1;
        } else if op == Op::Trim {
            self.exchange(before.held, NONE);
            let held = NONE;
            self.pages.insert(page, Page { held, ..before });
        }
        Some(feature)
    }

    fn copies(&self, value: u32) -> u32 {
        self.values.get(&value).map_or(0, |value| value.copies)
    }

    fn seen(&self, held: u32, value: Option<u32>) -> Seen {
        let Some(value) = value else {
            return Seen::Absent;
        };
        match self.values.get(&value) {
            _ if value == held => Seen::Same,
            None => Seen::New,
            Some(&Value { last, copies: 0 }) => Seen::Reborn { last },
            Some(&Value { last, .. }) => Seen::Copy { last },
        }
    }

    /// A page holds `to` instead of `from`.
    fn exchange(&mut self, from: u32, to: u32) {
        if from == to {
            return;
        }
        if let Some(value) = self.values.get_mut(&from) {
            value.copies -= 1;
        }
        if to != NONE {
            self.values.entry(to).or_insert(Value::UNUSED).copies += 1;
        }
    }

    pub(super) fn footprint(&self) -> u64 {
        self.pages.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_is_what_happened_to_its_page_and_value_before() {
        use Op::{Read, Trim, Write};
        let mut follower = Follower::default();
        let mut follow = |op, page, value| follower.follow(op, page, value);
        let (a, b) = (Some(1), Some(2));
        let first = follow(Write, 10, a).unwrap();
        assert_eq!((first.last, first.worth), (NONE, Seen::New));
        let copy = follow(Write, 11, a).unwrap();
        assert_eq!(copy.worth, Seen::Copy { last: 0 });
        // A read of a known page takes no position; the first read of a page does.
        assert_eq!(follow(Read, 10, a).unwrap().last, 0);
        let found = follow(Read, 12, b).unwrap();
        assert_eq!((found.position, found.worth), (2, Seen::New));
        let over = follow(Write, 10, b).unwrap();
        assert!(over.shared);
        assert_eq!((over.last, over.worth), (0, Seen::Copy { last: 2 }));
        assert_eq!(follow(Write, 10, b).unwrap().worth, Seen::Same);
        assert!(!follow(Trim, 11, None).unwrap().shared);
        assert_eq!(
            follow(Write, 13, a).unwrap().worth,
            Seen::Reborn { last: 1 }
        );
        assert!(follow(Trim, 99, None).is_none());
        assert_eq!(follower.footprint(), 4);
    }
}
