//! Pages of the tables that requests will need, as far as those in memory say which: they are read before the request is
//! carried out, by whoever makes it, while others use the volume ([`crate::disk`]).
//!
//! What is forgotten here is read where it is asked for, while everybody waits: that is slower and nothing else.

use std::ops::Range;

use flashlore_content::history::VersionEntry;
use flashlore_flash::{EntryNumber, Lpn, ObjectId, Owned, Owner, PackId, Ppn, TableName};
use flashlore_metadata::{Fetch, Fetched, TablePlan};

use crate::fetch::Prepared;
use crate::format::{Identity, ObjectRow, Table};
use crate::volume::Volume;

/// Flash pages of a victim whose owners are looked up before they are moved.
const MOVES_AHEAD: u32 = 2;
/// Handles that nobody ever had which are passed over at a time: their pages are looked for and nothing else.
const PASSED_OVER: u32 = 1 << 20;

impl Volume {
    /// Pages of the tables that are missing for reads.
    pub(crate) fn missing_for_reads(&self, pages: Range<Lpn>) -> Vec<Fetch> {
        let id = self.identity();
        self.tables.plan(|plan| {
            for lpn in Lpn::each(pages) {
                want_page(plan, id, lpn);
            }
        })
    }

    /// The same for changes: what pages refer to now, old versions that make room, and what collection moves meanwhile.
    pub(crate) fn missing_for_changes(&self, pages: Range<Lpn>) -> Vec<Fetch> {
        self.missing_for(pages, Vec::new())
    }

    /// The same for writes of pages from an address on, with what may hold the same.
    pub(crate) fn missing_for_writes(&self, first: Lpn, pages: &[Prepared]) -> Vec<Fetch> {
        let hints = pages.iter().flat_map(|page| self.layer.hints(page.digest));
        self.missing_for(first..first + pages.len() as u32, hints.collect())
    }

    fn missing_for(&self, pages: Range<Lpn>, hints: Vec<ObjectId>) -> Vec<Fetch> {
        let id = self.identity();
        let entries = self.next_to_go(pages.end.0 - pages.start.0 + 1);
        let moves = self.layer.core().next_moves(MOVES_AHEAD);
        self.tables.plan(|plan| {
            for lpn in Lpn::each(pages) {
                want_page(plan, id, lpn);
                if id.history.is_some() {
                    plan.row::<u32>(TableName::Heads, lpn.index());
                }
            }
            for object in hints {
                want_object(plan, id, object);
            }
            for row in entries {
                let entry: Option<VersionEntry> = plan.row(TableName::Versions, row);
                let object = entry.map_or(ObjectId::NONE, |entry| entry.object);
                want_object(plan, id, object);
            }
            moves.for_each(|unit| want_unit(plan, id, unit));
        })
    }

    /// The same for the next steps of collection.
    pub(crate) fn missing_for_collection(&self) -> Vec<Fetch> {
        let id = self.identity();
        let moves = self.layer.core().next_moves(MOVES_AHEAD);
        self.tables
            .plan(|plan| moves.for_each(|unit| want_unit(plan, id, unit)))
    }

    /// The same for so many objects and packed pages that nobody has looked at since the volume was opened.
    pub(crate) fn missing_for_rest(&self, most: u32) -> Vec<Fetch> {
        let unindexed = self.next_unindexed();
        let rows = |first: u32| first..first.saturating_add(most);
        self.tables.plan(|plan| {
            if let Some(object) = unindexed {
                plan.want(TableName::Objects, rows(object.0));
            }
            if let Some(pack) = self.layer.next_pack_to_look_at() {
                plan.want(TableName::Packs, rows(pack.0));
            }
        })
    }

    /// The object from which on the index is not filled; of those that there never were it passes over many.
    pub(crate) fn next_unindexed(&self) -> Option<ObjectId> {
        Some(self.next_object(self.unindexed?))
    }

    /// The first object from one on that there may have been: it passes over many that there never were.
    pub(crate) fn next_object(&self, from: ObjectId) -> ObjectId {
        let tables = self.stored_tables();
        ObjectId(tables.first_written(TableName::Objects, from.0, PASSED_OVER))
    }

    /// Looks at what was stored when the volume was opened ([`Volume::look_at_rest`]), with these pages for that alone.
    pub(crate) fn look_at_rest_in(&mut self, pages: &[Fetched], most: u32) -> bool {
        let tables = self.stored_tables();
        tables.with_pages(pages, || self.look_at_rest(most))
    }

    /// Rows of the entries that leave the window next.
    fn next_to_go(&self, count: u32) -> impl Iterator<Item = usize> + use<> {
        let at = self.layer.history().map(|history| history.window_at());
        let rows = Table::Versions.rows(self.identity());
        at.into_iter().flat_map(move |at| {
            let numbers = (0..count.min(at.len)).map(move |i| at.first.plus(i));
            numbers.map(move |number: EntryNumber| at.row_of(number, rows) as usize)
        })
    }
}

fn want_page(plan: &mut TablePlan<'_>, id: &Identity, lpn: Lpn) {
    let refers: Option<ObjectId> = plan.row(TableName::Map, lpn.index());
    if let Some(object) = refers.filter(|_| id.has_objects()) {
        want_object(plan, id, object);
    }
}

fn want_object(plan: &mut TablePlan<'_>, id: &Identity, object: ObjectId) {
    let row = |plan: &mut TablePlan<'_>, object: ObjectId| {
        let decode = |bytes: &[u8]| ObjectRow::decode(id, bytes);
        plan.read(TableName::Objects, object.index(), decode)
    };
    let packed = row(plan, object).and_then(|row| Some((row.pack()?, row.base())));
    if let Some((pack, base)) = packed {
        want_pack(plan, pack);
        base.and_then(|base| row(plan, base));
    }
}

fn want_pack(plan: &mut TablePlan<'_>, pack: PackId) {
    plan.read(TableName::Packs, pack.index(), |_| ());
}

fn want_unit(plan: &mut TablePlan<'_>, id: &Identity, unit: Ppn) {
    let owner: Option<Owner> = plan.row(TableName::Owners, unit.index());
    let Some(owner) = owner else {
        return;
    };
    match (id.has_objects(), id.encoding.is_on()) {
        (false, _) => want_page(plan, id, owner.as_page()),
        (true, false) => want_object(plan, id, owner.as_object()),
        (true, true) => match owner.owned() {
            Owned::Value(object) => want_object(plan, id, object),
            Owned::Pack(pack) => want_pack(plan, pack),
            _ => {}
        },
    }
}
