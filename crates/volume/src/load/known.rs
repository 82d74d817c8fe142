//! The rows of a checkpoint that a replay asks for: of tables that were loaded as a whole, or of the store, where a page is
//! read when one of its rows is asked for.
//!
//! Invariant: once a page of the store could not be read, the store has noted it ([`StoredTables::take_error`]), and nothing
//! that was answered since can be trusted.

use flashlore_content::{Content, Digest, DigestTag};
use flashlore_flash::{Lpn, ObjectId, Owner, PackId, Ppn, Row, TableName};
use flashlore_ftl::mapping::objects::Object;
use flashlore_ftl::mapping::packs::{Pack, PackTallies, RestoredPack};
use flashlore_metadata::StoredTables;

use super::spilled::SpilledCounts;
use super::{Tables, of_store};
use crate::error::VolumeError;
use crate::format::{Identity, MapRow, ObjectNote, ObjectRow, Root, Table};

/// Map and objects of a checkpoint.
#[derive(Clone, Copy)]
pub(crate) enum Known<'a> {
    /// All rows are in memory.
    Loaded(&'a Tables),
    /// They are in the store.
    Stored(&'a StoredRows),
}

impl Known<'_> {
    /// What a logical page refers to.
    pub fn map_row(self, lpn: Lpn) -> MapRow {
        match self {
            Known::Loaded(tables) => tables.map.get(lpn.index()).copied(),
            Known::Stored(rows) => rows.map_row(lpn),
        }
        .unwrap_or(MapRow::NONE)
    }

    /// Logical pages.
    pub fn pages(self) -> usize {
        match self {
            Known::Loaded(tables) => tables.map.len(),
            Known::Stored(rows) => rows.id.exported as usize,
        }
    }

    /// The row of an object, if there is such a handle.
    pub fn object(self, handle: ObjectId) -> Option<ObjectRow> {
        match self {
            Known::Loaded(tables) => tables.objects.get(handle.index()).copied(),
            Known::Stored(rows) => rows.object(handle),
        }
    }

    /// A packed page that holds something.
    pub fn pack(self, number: PackId) -> Option<RestoredPack> {
        match self {
            Known::Loaded(tables) => tables.packs.get(number.index()).copied().flatten(),
            Known::Stored(rows) => rows.pack(number)?.on_flash(),
        }
    }

    /// Numbers that packed pages can have.
    pub fn packs(self) -> usize {
        match self {
            Known::Loaded(tables) => tables.packs.len(),
            Known::Stored(rows) => Table::Packs.rows(&rows.id) as usize,
        }
    }

    /// Handles that have a row.
    pub fn handles(self) -> usize {
        match self {
            Known::Loaded(tables) => tables.objects.len(),
            Known::Stored(rows) => Table::Objects.rows(&rows.id) as usize,
        }
    }
}

/// Map and objects of a checkpoint in the store, and what else it says of units and references.
pub(crate) struct StoredRows {
    id: Identity,
    tables: StoredTables<ObjectNote>,
    /// References that have no room in the rows of their objects.
    spilled: SpilledCounts,
    /// A bit for each unit that is valid.
    valid: Vec<u64>,
    /// What is counted of all packed pages.
    packs: PackTallies,
}

impl StoredRows {
    /// Those of the checkpoint with this root, with its spilled counts and valid units.
    pub(super) fn new(
        id: &Identity,
        root: &Root,
        tables: StoredTables<ObjectNote>,
        spilled: SpilledCounts,
        valid: Vec<u64>,
    ) -> Self {
        StoredRows {
            id: id.clone(),
            tables,
            spilled,
            valid,
            packs: root.tallies.packs,
        }
    }

    fn map_row(&self, lpn: Lpn) -> Option<MapRow> {
        let decode = |bytes: &[u8]| MapRow::of_object(ObjectId::decode(bytes));
        self.tables.read(TableName::Map, lpn.index(), decode)
    }

    pub fn object(&self, handle: ObjectId) -> Option<ObjectRow> {
        let decode = |bytes: &[u8]| ObjectRow::decode(&self.id, bytes);
        let row = handle.index();
        self.tables.read(TableName::Objects, row, decode)
    }

    /// What is counted of a packed page, if the number was ever used.
    pub fn pack(&self, number: PackId) -> Option<Pack> {
        let is_used = number.0 < self.packs.numbers;
        let read = || {
            self.tables
                .read(TableName::Packs, number.index(), Pack::decode)
        };
        is_used.then(read).flatten()
    }

    /// Packed pages that hold something.
    pub fn packs_on_flash(&self) -> u32 {
        self.packs.on_flash
    }

    /// The objects that lie in packed pages of which this holds: all rows are looked at.
    pub fn packed_in(&self, is_wanted: impl Fn(PackId) -> bool) -> Vec<ObjectId> {
        let handles = (0..Table::handles(&self.id)).map(ObjectId);
        let is_there = |handle: &ObjectId| {
            let pack = self.object(*handle).and_then(|row| row.pack());
            pack.is_some_and(&is_wanted) && self.references(*handle) > 0
        };
        handles.filter(is_there).collect()
    }

    /// What refers to an object: logical pages, old versions, and deltas that need it.
    pub fn references(&self, handle: ObjectId) -> u64 {
        let held = match self.id.trusts_digests() {
            false => self.held::<DigestTag>(handle),
            true => self.held::<Digest>(handle),
        };
        let spilled = self.spilled.get(&handle).copied().unwrap_or_default();
        u64::from(held) + spilled.iter().map(|&part| u64::from(part)).sum::<u64>()
    }

    fn held<C: Content>(&self, handle: ObjectId) -> u32 {
        let held = |bytes: &[u8]| Object::<C, ObjectNote>::decode(bytes).held();
        let row = handle.index();
        let held = self.tables.read(TableName::Objects, row, held);
        held.unwrap_or(0)
    }

    /// Whose a unit is that is valid.
    pub fn owner(&self, ppn: Ppn) -> Option<Owner> {
        let word = self.valid.get(ppn.index() / 64)?;
        if word >> (ppn.0 % 64) & 1 == 0 {
            return None;
        }
        let unit = ppn.index();
        self.tables.read(TableName::Owners, unit, Owner::decode)
    }

    /// The tables.
    pub fn tables(&self) -> StoredTables<ObjectNote> {
        self.tables.clone()
    }

    /// Whether pages refer to objects, not to units.
    pub fn has_objects(&self) -> bool {
        self.id.has_objects()
    }

    /// The bits of all units.
    pub fn valid(&self) -> &[u64] {
        &self.valid
    }

    /// Why a page could not be read, if one could not since the last call.
    ///
    /// # Errors
    /// That.
    pub fn heed(&self) -> Result<(), VolumeError> {
        self.tables
            .take_error()
            .map_or(Ok(()), |error| Err(of_store(error)))
    }
}
