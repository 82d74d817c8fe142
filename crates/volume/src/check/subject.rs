//! What a check looks at, how much of it at a time, and what it says.

use std::cell::Cell;
use std::ops::Range;

use crate::format::{Identity, Root, Table};
use crate::load::Rows;

/// Sentences that are kept; of more is said how many there were.
const MOST_SENTENCES: usize = 200;

/// The checkpoint that is looked at.
pub(super) struct Subject<'a> {
    pub id: &'a Identity,
    pub root: &'a Root,
    pub rows: &'a Rows<'a>,
    /// Bytes of memory for what is counted of a range of rows.
    pub room: u64,
    pub effort: &'a Effort<'a>,
}

/// The tables of which each row counts: what is counted of them all is not known where one lacks a page.
const COUNTED: [Table; 6] = [
    Table::Map,
    Table::Objects,
    Table::Packs,
    Table::Versions,
    Table::Kept,
    Table::Spilled,
];

impl Subject<'_> {
    /// Whether all is known that refers to objects and to what lies on units, and what is counted of it.
    pub fn knows_all(&self) -> bool {
        !self.rows.lacks(&COUNTED)
    }

    /// Says of which tables it is not.
    pub fn not_compared(&self) -> Option<String> {
        let lacking = COUNTED.iter().filter(|table| self.rows.lacks(&[**table]));
        let lacking: Vec<String> = lacking.map(Table::to_string).collect();
        (!lacking.is_empty()).then(|| {
            format!(
                "what is stored of counts was not compared, since rows of {} cannot be read",
                lacking.join(", ")
            )
        })
    }
}

/// So many rows in ranges of which each takes no more memory than there is, with so many bytes for a row, but for the least
/// range that there is. All ranges begin at a multiple of that.
pub(super) fn ranges(
    rows: u32,
    row_bytes: u64,
    room: u64,
    least: u32,
) -> impl Iterator<Item = Range<u32>> {
    let most = u32::try_from(room / row_bytes).unwrap_or(u32::MAX);
    let step = (most / least).max(1).saturating_mul(least);
    (0..rows.div_ceil(step)).map(move |range| {
        let start = range * step;
        start..start.saturating_add(step).min(rows)
    })
}

/// What must not be, a sentence each.
#[derive(Default)]
pub(super) struct Sentences {
    said: Vec<String>,
    more: u64,
}

impl Sentences {
    /// One that was said is not said again: the checkpoint and the present may lack the same.
    pub fn push(&mut self, sentence: String) {
        if self.said.contains(&sentence) {
            return;
        }
        match self.said.len() < MOST_SENTENCES {
            true => self.said.push(sentence),
            false => self.more += 1,
        }
    }

    /// All of them.
    pub fn into_all(mut self) -> Vec<String> {
        if self.more > 0 {
            let more = self.more;
            self.said.push(format!(
                "{more} more things are wrong that are not listed here"
            ));
        }
        self.said
    }
}

/// How far a check is, in bytes of what it reads.
pub(super) struct Effort<'a> {
    done: Cell<u64>,
    of: u64,
    tell: &'a dyn Fn(u64, u64),
}

impl<'a> Effort<'a> {
    /// Nothing of so many is done.
    pub fn new(of: u64, tell: &'a dyn Fn(u64, u64)) -> Self {
        let done = Cell::new(0);
        Effort { done, of, tell }
    }

    /// So many bytes more have been read.
    pub fn advance(&self, bytes: u64) {
        let done = (self.done.get() + bytes).min(self.of);
        self.done.set(done);
        (self.tell)(done, self.of);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_as_long_as_there_is_room_and_leave_nothing_out() {
        let of = |rows, room| ranges(rows, 16, room, 10).collect::<Vec<_>>();
        assert_eq!(of(25, 0), [0..10, 10..20, 20..25]);
        assert_eq!(of(25, 16 * 29), [0..20, 20..25]);
        assert_eq!(of(25, 16 * 1000).len(), 1);
        assert_eq!(of(25, u64::MAX).len(), 1);
        assert_eq!(
            of(u32::MAX, u64::MAX)
                .iter()
                .map(|r| r.len())
                .sum::<usize>(),
            u32::MAX as usize
        );
        assert_eq!(of(0, 100), []);
    }

    #[test]
    fn sentences_that_are_not_kept_are_counted() {
        let mut sentences = Sentences::default();
        (0..MOST_SENTENCES + 3).for_each(|n| sentences.push(n.to_string()));
        let all = sentences.into_all();
        assert_eq!(all.len(), MOST_SENTENCES + 1);
        assert!(
            all[MOST_SENTENCES].starts_with("3 more"),
            "{:?}",
            all.last()
        );
    }
}
