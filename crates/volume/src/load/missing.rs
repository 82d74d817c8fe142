//! Pages of the tables that cannot be read, or whose rows name what there is not: what a check passes over.
//!
//! Invariant: what is told of a page does not depend on how often it is met.

use std::cell::{Cell, RefCell};
use std::ops::Range;

use flashlore_content::PAGE_BYTES;
use flashlore_metadata::{Judge, MetadataError, Shape, StoredPage, UnreadPage};

use crate::format::superblock::VERSION;
use crate::format::{Identity, Table};
use crate::tables::judge;

/// Pages that are told of; of more is said that there are.
const MOST_PAGES: usize = 200;

/// The pages that are missing.
pub(crate) struct MissingPages<'a> {
    id: &'a Identity,
    judge: Option<Judge>,
    /// A bit for each table that lacks a page.
    lacking: Cell<u32>,
    said: RefCell<Vec<String>>,
    has_more: Cell<bool>,
}

impl<'a> MissingPages<'a> {
    /// None is known to be missing.
    pub fn of(id: &'a Identity) -> Self {
        MissingPages {
            id,
            // Rows of older formats are looked at when they are loaded.
            judge: (id.version == VERSION).then(|| judge(id)),
            lacking: Cell::new(0),
            said: RefCell::default(),
            has_more: Cell::new(false),
        }
    }

    /// A page that can be used; one that cannot be is noted, and its rows are answered.
    pub fn usable<'p, 'm>(
        &self,
        page: Result<&'p StoredPage<'m>, UnreadPage>,
    ) -> Result<&'p StoredPage<'m>, Range<u32>> {
        let judged = page.and_then(|page| {
            let (node, slot) = (page.node, page.slot);
            let judge = self.judge.as_ref().filter(|_| node.level == 0);
            match judge.and_then(|judge| judge(node.table, page.rows())) {
                None => Ok(page),
                Some(why) => Err(UnreadPage {
                    node,
                    error: MetadataError::Damaged { node, slot, why },
                }),
            }
        });
        judged.map_err(|missing| self.note(&missing))
    }

    /// Remembers a page; answers its rows, or those below it.
    fn note(&self, missing: &UnreadPage) -> Range<u32> {
        let table = Table::all(self.id)[missing.node.table.index()];
        let shape = table.shape(self.id);
        let rows = rows_of(missing, &shape);
        self.lacking.set(self.lacking.get() | 1 << table as u32);
        let sentence = self.told(table, &rows, missing);
        let mut said = self.said.borrow_mut();
        if !said.contains(&sentence) {
            match said.len() < MOST_PAGES {
                true => said.push(sentence),
                false => self.has_more.set(true),
            }
        }
        rows
    }

    /// What is told of a page with these rows.
    fn told(&self, table: Table, rows: &Range<u32>, missing: &UnreadPage) -> String {
        let (first, last) = (rows.start, rows.end.saturating_sub(1));
        let addresses = match table.is_by_page() {
            true => format!(
                ", those of logical pages {first} to {last} ({} bytes at {})",
                rows.len() * PAGE_BYTES,
                u64::from(first) * PAGE_BYTES as u64
            ),
            false => String::new(),
        };
        let page = match &missing.error {
            // It names the page itself.
            error @ MetadataError::Damaged { .. } => error.to_string(),
            error => format!("{}: {error}", missing.node),
        };
        format!("rows {first} to {last} of {table} cannot be read{addresses}: {page}")
    }

    /// Whether a page of one of these tables is missing.
    pub fn lacks(&self, tables: &[Table]) -> bool {
        tables
            .iter()
            .any(|&table| self.lacking.get() >> table as u32 & 1 == 1)
    }

    /// What is to be told, a sentence for each page.
    pub fn into_sentences(self) -> Vec<String> {
        let mut said = self.said.into_inner();
        if self.has_more.get() {
            said.push(
                "more pages of the tables cannot be read that are not listed here".to_owned(),
            );
        }
        said
    }
}

/// The rows of a page, or those below it.
fn rows_of(missing: &UnreadPage, shape: &Shape) -> Range<u32> {
    let rows = missing.node.rows(shape);
    let within = |row: u64| row.min(shape.rows.into()) as u32;
    within(rows.start)..within(rows.end)
}
