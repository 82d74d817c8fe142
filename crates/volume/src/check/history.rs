//! Whether the entries of the history stand in order, each with a link to the one of its page before it, and whether the heads
//! name the newest ones: for a range of logical pages at a time.

use flashlore_content::history::{ChainRecount, ChainsAt, PinnedInstant};
use flashlore_flash::{EntryNumber, Lpn, Row};

use super::subject::{Sentences, Subject, ranges};
use crate::error::VolumeError;
use crate::format::Table;

/// Bytes that are taken for a logical page.
pub(super) const PAGE_BYTES: u64 = size_of::<u32>() as u64;
/// The least logical pages at a time.
const LEAST: u32 = 8;

/// Entries and heads of the window, or of what these instants keep behind it.
struct StoredChains<'a> {
    entries: Table,
    heads: Table,
    at: ChainsAt,
    kept_by: Option<&'a [PinnedInstant]>,
}

/// Compares what all entries say of each other, where all of them can be read. Of window and of what is kept it tells the first
/// thing that is wrong of each kind.
///
/// # Errors
/// A page of the tables cannot be read.
pub(super) fn check_history(on: &Subject<'_>, told: &mut Sentences) -> Result<(), VolumeError> {
    let history = &on.root.history;
    let pins = match on.rows.pins(on.root) {
        Err(_) if on.rows.lacks(&[Table::Pins]) => return Ok(()),
        pins => pins?.0,
    };
    let chains = [
        StoredChains {
            entries: Table::Versions,
            heads: Table::Heads,
            at: history.window,
            kept_by: None,
        },
        StoredChains {
            entries: Table::Kept,
            heads: Table::KeptHeads,
            at: history.kept,
            kept_by: Some(&pins),
        },
    ];
    for chains in &chains {
        for what in chains.check(on)? {
            told.push(format!("the history: {what}"));
        }
    }
    Ok(())
}

impl StoredChains<'_> {
    /// What does not hold, in the first range of pages in which anything does not.
    fn check(&self, on: &Subject<'_>) -> Result<Vec<String>, VolumeError> {
        let mut newest = Vec::new();
        // Without entries no head means anything.
        let pages = match self.at.queue.len {
            0 => LEAST.min(on.id.exported),
            _ => on.id.exported,
        };
        for range in ranges(pages, PAGE_BYTES, on.room, LEAST) {
            newest.resize(range.len(), 0);
            let pages = Lpn(range.start)..Lpn(range.end);
            let recount = ChainRecount::new(self.at, on.id.exported, pages, &mut newest);
            let recount = match self.kept_by {
                Some(pins) => recount.kept_by(pins, on.root.history.oldest),
                None => Ok(recount),
            };
            let mut recount = match recount {
                Ok(recount) => recount,
                Err(what) => return Ok(vec![what]),
            };
            let mut entries = Ok(());
            on.rows.each_entry(self.entries, &self.at, |entry| {
                let holds = recount.entry(entry);
                keep_first(&mut entries, holds);
            })?;
            if on.rows.lacks(&[self.entries]) {
                return Ok(Vec::new());
            }
            let mut heads = Ok(());
            on.rows.each_row(self.heads, range, |row, bytes| {
                let holds = recount.head(Lpn(row.0), EntryNumber(u32::decode(bytes)));
                keep_first(&mut heads, holds);
            })?;
            let all = [recount.gaps(), entries, heads];
            let wrong: Vec<String> = all.into_iter().filter_map(Result::err).collect();
            if !wrong.is_empty() {
                return Ok(wrong);
            }
        }
        Ok(Vec::new())
    }
}

fn keep_first(first: &mut Result<(), String>, next: Result<(), String>) {
    if first.is_ok() {
        *first = next;
    }
}
