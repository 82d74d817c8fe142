//! Whether the rows of objects count what refers to them, and whether the free lists name those to which nothing does: for a
//! range of handles at a time.
//!
//! Of a range everything that refers to an object of it is counted: rows of the map, entries of the history, deltas. Then the
//! rows of the range are compared with that, and the list of each of their pages.

use std::ops::Range;

use flashlore_content::Content;
use flashlore_flash::{ObjectId, Row};
use flashlore_ftl::mapping::objects::{Object, References};
use flashlore_metadata::LinkedRows;
use rustc_hash::FxHashSet;

use super::bits::HandleBits;
use super::named::NamedObjects;
use super::subject::{Sentences, Subject, ranges};
use super::view::RowView;
use crate::error::VolumeError;
use crate::format::{Identity, ObjectNote, Root, RowId, Table};
use crate::load::{Rows, SpilledCounts, Stretch, spilled};

/// Bytes that are taken for an object.
pub(super) const OBJECT_BYTES: u64 = size_of::<References>() as u64;

/// Compares the rows of all objects, whose contents have this type. Answers how many of those are packed to which something
/// refers.
///
/// # Errors
/// A page of the tables cannot be read.
pub(super) fn check_objects<C: Content>(
    on: &Subject<'_>,
    view: &RowView<'_>,
    named: &NamedObjects,
    told: &mut Sentences,
) -> Result<u32, VolumeError> {
    let mut packed = 0;
    let shape = Table::Objects.shape(on.id);
    let first_free = FirstFree::read(on.rows, shape.leaves())?;
    let mut counted = Vec::new();
    for range in ranges(shape.rows, OBJECT_BYTES, on.room, shape.rows_per_page()) {
        counted.clear();
        // Of what nobody refers to nothing is to be counted.
        if named.alive.has_any(range.clone()) {
            count(on, view, named, &range, &mut counted)?;
        }
        let all = ObjectId(range.start)..ObjectId(range.end);
        let spilled = match spilled(on.rows, on.root.tallies.spilled, all) {
            Err(VolumeError::Damaged(what)) => {
                told.push(what);
                continue;
            }
            other => other?,
        };
        let mut compared = ObjectRange {
            on,
            linked: LinkedRows::of(&shape),
            per_page: shape.rows_per_page(),
            first_free: &first_free,
            alive: &named.alive,
            counted: &counted,
            pages_with_spilled: spilled
                .keys()
                .map(|object| object.0 / shape.rows_per_page())
                .collect(),
            spilled,
            range,
            links: Vec::new(),
            packed: 0,
        };
        compared.compare_all::<C>(told)?;
        packed += compared.packed;
    }
    Ok(packed)
}

/// Whether an object can be what it is.
fn check_place<C: Content>(
    on: &Subject<'_>,
    handle: ObjectId,
    object: &Object<C, ObjectNote>,
    references: &References,
    told: &mut Sentences,
) {
    let numbers = on.root.tallies.packs.numbers;
    if let Some((pack, _)) = object.packed().filter(|(pack, _)| pack.0 >= numbers) {
        told.push(format!(
            "object {handle} lies in packed page {pack}, and only {numbers} were ever used"
        ));
    }
    if references.pins > 0 && object.packed().is_some_and(|(_, base)| base.is_some()) {
        told.push(format!(
            "object {handle} is a delta, and another object is a delta from it"
        ));
    }
}

/// Counts what refers to the objects of a range.
fn count(
    on: &Subject<'_>,
    view: &RowView<'_>,
    named: &NamedObjects,
    range: &Range<u32>,
    counted: &mut Vec<References>,
) -> Result<(), VolumeError> {
    counted.clear();
    counted.resize(range.len(), References::default());
    let place = |object: ObjectId| {
        let is_in = range.contains(&object.0);
        is_in.then(|| (object.0 - range.start) as usize)
    };
    view.each_mapped(|_, row| {
        if let Some(at) = place(row.as_object()) {
            counted[at].live += 1;
        }
    })?;
    view.each_kept(&mut |object| {
        if let Some(at) = place(object) {
            counted[at].kept += 1;
        }
    })?;
    if on.id.encoding.is_on() {
        view.each_object(0..Table::Objects.rows(on.id), |object, row| {
            if let Some(at) = row.base().and_then(place)
                && named.alive.has(object)
            {
                counted[at].pins += 1;
                counted[at].dependents ^= object.0;
            }
        })?;
    }
    on.effort.advance(scan_bytes(on.id, on.root));
    Ok(())
}

/// Bytes that are read for a range, about.
pub(super) fn scan_bytes(id: &Identity, root: &Root) -> u64 {
    let history = &root.history;
    let entries = u64::from(history.window.queue.len) + u64::from(history.kept.queue.len);
    let bytes = |table: Table, rows: u64| rows * u64::from(table.row_bytes(id));
    let objects = u64::from(root.tallies.stored);
    bytes(Table::Map, id.exported.into())
        + bytes(Table::Versions, entries)
        + bytes(Table::Objects, objects)
}

/// Of each page of all objects the first free row.
struct FirstFree {
    first: Vec<u8>,
    /// The pages of which it is not known.
    missing: Vec<Range<u32>>,
}

impl FirstFree {
    fn read(rows: &Rows<'_>, pages: u32) -> Result<Self, VolumeError> {
        let mut first = vec![0; pages as usize];
        let mut missing = Vec::new();
        rows.each_row_or_gap(Table::FreeHandles, 0..pages, |stretch| match stretch {
            Stretch::Row(page, bytes) => first[page.index()] = bytes[0],
            Stretch::Missing(pages) => missing.push(pages),
            Stretch::Unwritten(..) => {}
        })?;
        Ok(FirstFree { first, missing })
    }

    /// That of a page, if it is known.
    fn of(&self, page: u32) -> Option<u8> {
        let is_missing = self.missing.iter().any(|pages| pages.contains(&page));
        (!is_missing).then(|| self.first[page as usize])
    }
}

/// The rows of a range, while they go by, with what is counted of them.
struct ObjectRange<'a> {
    on: &'a Subject<'a>,
    linked: LinkedRows,
    per_page: u32,
    first_free: &'a FirstFree,
    alive: &'a HandleBits,
    /// Nothing if nobody refers to any of them.
    counted: &'a [References],
    spilled: SpilledCounts,
    pages_with_spilled: FxHashSet<u32>,
    range: Range<u32>,
    /// The links of the rows of the page that goes by.
    links: Vec<u32>,
    /// Objects that are packed, to which something refers.
    packed: u32,
}

impl ObjectRange<'_> {
    fn compare_all<C: Content>(&mut self, told: &mut Sentences) -> Result<(), VolumeError> {
        let (rows, range) = (self.on.rows, self.range.clone());
        rows.each_row_or_gap(Table::Objects, range, |stretch| match stretch {
            Stretch::Row(row, bytes) => self.compare::<C>(row, bytes, told),
            Stretch::Unwritten(rows, begins) => {
                for start in rows.clone().step_by(self.per_page as usize) {
                    let page = start..(start + self.per_page).min(rows.end);
                    if !self.is_unused(&page) {
                        page.for_each(|row| self.compare::<C>(RowId(row), begins, told));
                    }
                }
            }
            Stretch::Missing(_) => {}
        })
    }

    /// Whether a page that was never written is as it must be: nearly all are.
    fn is_unused(&self, rows: &Range<u32>) -> bool {
        let page = rows.start / self.per_page;
        self.first_free.of(page).is_none_or(|first| first == 0)
            && !self.alive.has_any(rows.clone())
            && !self.pages_with_spilled.contains(&page)
    }

    fn compare<C: Content>(&mut self, row: RowId, bytes: &[u8], told: &mut Sentences) {
        let object = Object::<C, ObjectNote>::decode(bytes);
        let handle = ObjectId(row.0);
        let references = self.counted.get((row.0 - self.range.start) as usize);
        let references = references.copied().unwrap_or_default();
        let spilled = self.spilled.get(&handle).copied().unwrap_or_default();
        if !object.has(&references, spilled) && self.on.knows_all() {
            told.push(format!(
                "object {row} is stored as {object:?} with {spilled:?} elsewhere, counted are {references:?}"
            ));
        }
        if !references.is_none() {
            self.packed += u32::from(object.packed().is_some());
            check_place(self.on, handle, &object, &references, told);
        }
        let is_last = row.0 + 1 == self.range.end;
        self.pass(row, u32::decode(&bytes[..4]), is_last, told);
    }

    /// The next row; the last one of a page, or of the table, makes its list complete.
    fn pass(&mut self, row: RowId, link: u32, is_last: bool, told: &mut Sentences) {
        self.links.push(link);
        if self.links.len() == self.per_page as usize || is_last {
            self.check(row.0, told);
        }
    }

    /// Whether the list of the page with this last row has those objects to which nothing refers.
    fn check(&mut self, last: u32, told: &mut Sentences) {
        let start = last + 1 - self.links.len() as u32;
        let links = std::mem::take(&mut self.links);
        let page = last / self.per_page;
        let Some(first) = self.first_free.of(page) else {
            return;
        };
        let link = |row: usize| links[row - start as usize];
        let free = match self.linked.list(page as usize, first, link) {
            Ok(free) => free,
            Err(what) => return told.push(what),
        };
        let mut is_free = vec![false; links.len()];
        free.into_iter()
            .for_each(|row| is_free[row - start as usize] = true);
        let knows_all = self.on.knows_all();
        for (row, is_free) in (start..=last).zip(is_free) {
            match (self.alive.has(ObjectId(row)), is_free) {
                (true, true) => told.push(format!("object {row} is in use, and listed as free")),
                // The last row is nobody's.
                (false, false) if !self.linked.is_nobodys(row as usize) && knows_all => {
                    told.push(format!(
                        "nothing refers to object {row}, and it is not listed as free"
                    ));
                }
                _ => {}
            }
        }
    }
}
