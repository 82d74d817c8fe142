//! The oracle outside the translation layer that names every program of a value
//! (CA-SSD section 5.1; `W_unique`, `W_dup`, `W_reborn`).
//!
//! * unique: the value was never programmed before in this run;
//! * duplicate: a valid page holds it (only possible after its index entry was evicted);
//! * reborn: it was programmed before, but no valid page holds it now.
//!
//! It is optional because it costs four bytes a distinct value and a lookup a program.

use crate::page::PageTag;

/// Programs by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Census {
    /// Programs of values never programmed before.
    pub unique: u64,
    /// Programs of values a valid page holds.
    pub duplicate: u64,
    /// Programs of values that had died.
    pub reborn: u64,
}

/// Told of every program and of every death of a stored value.
pub trait Ledger<C> {
    /// A new page holds this value from now on.
    fn born(&mut self, content: C);
    /// This value is stored from now on without a page of its own.
    fn stored(&mut self, content: C);
    /// A page that held this value is no longer valid, or what stored it otherwise.
    fn died(&mut self, content: C);
    /// The counts so far; `None` when nobody counts.
    fn census(&self) -> Option<Census>;
    /// Forgets the counts, not what is stored: the end of warm-up.
    fn restart(&mut self);
}

/// Nobody counts.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoCensus;

impl<C> Ledger<C> for NoCensus {
    #[inline(always)]
    fn born(&mut self, _: C) {}
    #[inline(always)]
    fn stored(&mut self, _: C) {}
    #[inline(always)]
    fn died(&mut self, _: C) {}
    fn census(&self) -> Option<Census> {
        None
    }
    fn restart(&mut self) {}
}

/// Somebody counts, or nobody does.
impl<C, L: Ledger<C>> Ledger<C> for Option<L> {
    fn born(&mut self, content: C) {
        if let Some(ledger) = self {
            ledger.born(content);
        }
    }
    fn stored(&mut self, content: C) {
        if let Some(ledger) = self {
            ledger.stored(content);
        }
    }
    fn died(&mut self, content: C) {
        if let Some(ledger) = self {
            ledger.died(content);
        }
    }
    fn census(&self) -> Option<Census> {
        self.as_ref().and_then(Ledger::census)
    }
    fn restart(&mut self) {
        if let Some(ledger) = self {
            ledger.restart();
        }
    }
}

/// Counts by value. Per value: valid pages in the upper bits, "programmed before" in bit 0.
#[derive(Debug, Clone, Default)]
pub struct ValueLedger {
    values: Vec<u32>,
    counts: Census,
}

impl ValueLedger {
    /// Notes that a value is stored once more; answers its record before. Foreign content has none.
    fn add(&mut self, content: PageTag) -> Option<u32> {
        if content == PageTag::FOREIGN {
            return None;
        }
        let index = content.0 as usize;
        if index >= self.values.len() {
            self.values.resize(index + 1, 0);
        }
        let before = self.values[index];
        self.values[index] = (before | 1) + 2;
        Some(before)
    }

    /// Bytes held.
    pub fn heap_bytes(&self) -> usize {
        self.values.capacity() * size_of::<u32>()
    }
}

impl Ledger<PageTag> for ValueLedger {
    fn born(&mut self, content: PageTag) {
        match self.add(content) {
            None => {}
            Some(0) => self.counts.unique += 1,
            Some(1) => self.counts.reborn += 1,
            Some(_) => self.counts.duplicate += 1,
        }
    }

    fn stored(&mut self, content: PageTag) {
        self.add(content);
    }

    fn died(&mut self, content: PageTag) {
        if content.0 != u32::MAX {
            self.values[content.0 as usize] -= 2;
        }
    }

    fn census(&self) -> Option<Census> {
        Some(self.counts)
    }

    fn restart(&mut self) {
        self.counts = Census::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_unique_then_duplicate_then_reborn() {
        let mut ledger = ValueLedger::default();
        ledger.born(PageTag(3));
        ledger.born(PageTag(3));
        ledger.died(PageTag(3));
        ledger.born(PageTag(3));
        ledger.died(PageTag(3));
        ledger.died(PageTag(3));
        ledger.born(PageTag(3));
        let counted = Census {
            unique: 1,
            duplicate: 2,
            reborn: 1,
        };
        assert_eq!(ledger.census(), Some(counted));
    }
}
