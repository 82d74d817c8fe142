//! The memory that an open volume needs, known before it is made, and how what it may take is divided.
//!
//! Most of it is for pages of the tables and for the fingerprint index: both may be smaller than what there is. What is needed
//! beside them is most while a volume is opened: what happened since the checkpoint exists together with what is made of it.
//! The figures are those of a volume that is as full as it can be; docs/volume.md sets measurements beside them.

use std::mem::size_of;

use flashlore_content::history::VersionEntry;
use flashlore_flash::{Ppn, Row};
use flashlore_ftl::mapping::objects::FoundObject;
use flashlore_ftl::mapping::packs::NewPack;

use crate::bounds::RecoveryBounds;
use crate::error::VolumeError;
use crate::format::areas::slots;
use crate::format::journal::ENTRY_BYTES;
use crate::format::rows::MOST_REMEMBERED;
use crate::format::superblock;
use crate::format::{BlockRow, Identity, JournalEntry, ObjectNote, ObjectRow, Table};
use crate::nand::BlockLife;
use crate::policies::index_entries;
use crate::scan::FoundUnit;
use crate::young::Young;

/// What a process may take is not all for it: a control group is charged for page tables and for pages of files that are
/// being read or written, too. One byte in so many is left for them, as far as it is not needed.
const LEFT: u64 = 32;
/// The program, its threads and their buffers, pages of the tables among them.
const PROGRAM: u64 = 24 << 20;
/// Units that may be programmed before a checkpoint that is due: what a write owes collection, and a flush.
const OVERDUE: u64 = 1 << 12;
/// Bytes of what the index has for an entry.
const INDEX: u64 = 8;
/// Bytes of an entry of the history with its number.
const VERSION: u64 = 24;
/// Where everything is counted anew: bytes of what refers to an object, or of a packed page; and of the owner of a unit, in a
/// tree.
const COUNTED: u64 = 24;
const OWNED: u64 = 24;
/// The least that pages of the tables have, and that the index has, unless all of them take less.
const LEAST_TABLES: u64 = 32 << 20;
const LEAST_INDEX: u64 = 4 << 20;
/// A page of the tables in memory, with what is kept of it.
const TABLE_PAGE: u64 = flashlore_metadata::PAGE_BYTES as u64 + 64;
/// Bytes of the count of a slot of the tables, and of what is marked of it.
const SLOT: u64 = 3;
/// Bytes of a packed page in the line of those that are to be merged, with what that grows by and what a round finds meanwhile.
const IN_LINE: u64 = 48;
/// Bitmaps of valid units while a volume is opened: as the checkpoint has it, as it is in the end, and one that is compared.
const VALID: u64 = 3;
/// Bytes of the translation layer's record of a block, and of its free list or its queue.
const BLOCK: u64 = 64;

/// The least for a range of what a check counts; bytes of what it finds unreadable, of the link of a packed page, and of the
/// count of a slot of the tables.
const LEAST_RANGES: u64 = 8 << 20;
const FINDINGS: u64 = 16 << 20;
const LINK: u64 = 4;
const COUNTED_SLOT: u64 = 2;
/// While a check replays, pages of tables have one byte in so many more of what is not needed at least, and no more than this.
const MORE_TABLES: u64 = 8;
const MOST_TABLES: u64 = 256 << 20;

fn bytes<T>(count: u64) -> u64 {
    count * size_of::<T>() as u64
}

/// A hash map whose entries have so many bytes: a power of two of slots, of which seven eighths are filled at most.
fn hashed(count: u64, entry: u64) -> u64 {
    (count * 8 / 7 + 1).next_power_of_two() * (entry + 1)
}

/// What the sizes of a volume come to.
struct Sizes {
    exported: u64,
    units: u64,
    blocks: u64,
    /// Rows of objects and of packed pages.
    objects: u64,
    packs: u64,
    /// Entries of history and index.
    versions: u64,
    index: u64,
    /// Pages of the tables that are read and changed where they lie.
    table_pages: u64,
    /// Units since the checkpoint, those that collection copied included; of them those of new events; and events in
    /// the journal.
    found: u64,
    programmed: u64,
    journalled: u64,
    /// Rows that events of the history may change.
    bulk: u64,
    /// Slots of the store of tables.
    slots: u64,
    /// Handles that objects can have.
    handles: u64,
    /// The format version.
    version: u32,
}

impl Sizes {
    fn of(id: &Identity) -> Self {
        let units =
            u64::from(id.blocks) * u64::from(id.pages_per_block) * u64::from(id.units_per_page);
        let rows = |table: Table| u64::from(table.rows(id));
        let (exported, versions) = (rows(Table::Map), rows(Table::Versions));
        // A base that nothing else refers to is rare: it was written before what differs from it.
        let objects = rows(Table::Objects).min((exported + versions) * 9 / 8 + 1);
        let bounds = RecoveryBounds::default();
        // A superblock that was made up may tell of any journal.
        let journalled = (id.journal_bytes / 2 / ENTRY_BYTES as u64).min(u32::MAX.into());
        Sizes {
            exported,
            units,
            blocks: rows(Table::Blocks),
            objects,
            packs: rows(Table::Packs),
            versions,
            index: index_entries(id).into(),
            table_pages: [
                Table::Map,
                Table::Objects,
                Table::Owners,
                Table::FreeHandles,
                Table::Packs,
                Table::Versions,
                Table::Kept,
                Table::Heads,
                Table::KeptHeads,
            ]
            .iter()
            .map(|table| u64::from(table.pages(id)))
            .sum(),
            found: (bounds.units + OVERDUE).min(units),
            // What was erased meanwhile has an entry in the journal.
            programmed: bounds.events.min(units),
            journalled,
            bulk: if versions > 0 { bounds.rows } else { 0 },
            slots: slots(id).into(),
            handles: rows(Table::Objects),
            version: id.version,
        }
    }

    /// Events since the checkpoint, each with the rows that it changes.
    fn changes(&self) -> u64 {
        self.programmed + self.journalled + self.bulk
    }

    /// What happened since the checkpoint.
    fn events(&self) -> u64 {
        let (programmed, all) = (self.programmed, self.programmed + self.journalled);
        bytes::<FoundUnit>(self.found)
            + hashed(self.found, 16)
            + hashed(all, 56)
            + bytes::<JournalEntry>(self.journalled)
            + hashed(programmed.min(self.exported), 16)
            + self.young()
            + 12 * all
    }

    /// Writes that the checkpoint does not know, with the copies of them.
    fn young(&self) -> u64 {
        2 * bytes::<Young>(self.found)
    }

    /// What was recorded since the checkpoint of old versions, and kept of those that left the window, with the newest of
    /// their pages.
    fn recorded(&self) -> u64 {
        let entries = self.changes().min(self.versions);
        2 * (hashed(entries, VERSION) + hashed(entries.min(self.exported), 16))
    }

    /// What is read of a checkpoint as a whole: blocks.
    fn loaded(&self) -> u64 {
        bytes::<BlockRow>(self.blocks)
    }

    /// All pages of the tables, and the whole index.
    fn all_tables(&self) -> u64 {
        self.table_pages * TABLE_PAGE
    }

    fn whole_index(&self) -> u64 {
        match self.objects {
            0 => 0,
            _ => self.index * INDEX,
        }
    }

    /// What differs from the rows of the checkpoint: pages, objects, packed pages, and references that came and went.
    fn differing(&self) -> u64 {
        let objects = self.found.min(self.objects);
        let packs = self.found.min(self.packs);
        hashed(self.changes().min(self.exported), 8)
            + hashed(objects, 4 + size_of::<ObjectRow>() as u64)
            + 2 * hashed(objects + self.changes(), 16)
            + bytes::<FoundObject<u128, ObjectNote>>(objects)
            + hashed(packs, 16)
            + bytes::<NewPack>(packs)
    }

    /// While the events are replayed over the tables.
    fn replaying(&self) -> u64 {
        self.loaded() + self.recorded() + VALID * self.units / 8 + self.differing() + self.events()
    }

    /// While the translation layer is made of what was found.
    fn restoring(&self) -> u64 {
        self.running() + VALID * self.units / 8 + self.differing() + self.recorded() + self.events()
    }

    /// While it is open.
    fn running(&self) -> u64 {
        let mut bytes_held = self.young()
            + self.slots * SLOT
            + self.units / 8
            + self.blocks * (BLOCK + size_of::<BlockLife>() as u64);
        if self.packs > 0 {
            // No more than every second unit can be in line.
            let in_line = (self.packs / 2).min(MOST_REMEMBERED as u64);
            bytes_held += in_line * IN_LINE + self.exported;
        }
        bytes_held
    }
}

impl Sizes {
    /// What is needed beside pages of the tables while the volume is opened; nearly nothing is in the index then.
    fn opening(&self) -> u64 {
        PROGRAM + self.replaying().max(self.restoring())
    }

    /// What is needed beside pages of the tables and the index once it is open.
    fn rest(&self) -> u64 {
        PROGRAM + self.running()
    }

    /// The least with which it is opened and works; with an index of so many bytes, if that is said.
    fn needed(&self, index: Option<u64>) -> u64 {
        let (tables, least_index) = self.least();
        let open = self.rest() + tables + index.unwrap_or(least_index);
        open.max(self.opening() + tables)
    }

    /// The least that pages of the tables and the index have.
    fn least(&self) -> (u64, u64) {
        let (tables, index) = (self.all_tables(), self.whole_index());
        (tables.min(LEAST_TABLES), index.min(LEAST_INDEX))
    }

    /// Bytes for pages of the tables and for the index, of so many: the least, half of the others for each, and what one does
    /// not need for the other.
    fn divided(&self, bytes: u64) -> (u64, u64) {
        let (tables, index) = (self.all_tables(), self.whole_index());
        let (least_tables, least_index) = self.least();
        let half = bytes.saturating_sub(least_tables + least_index) / 2;
        let index = index.min((least_index + half).max(bytes.saturating_sub(tables)));
        (tables.min(bytes.saturating_sub(index)), index)
    }
}

/// How much of what grows with a volume is in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryShares {
    /// Bytes of pages of the tables while the volume is opened.
    pub tables_at_opening: u64,
    /// The same once it is open.
    pub tables: u64,
    /// Most entries of the fingerprint index; what leaves it is not found any more.
    pub index_entries: u32,
}

impl Default for MemoryShares {
    /// A gibibyte of tables, and the whole index.
    fn default() -> Self {
        MemoryShares {
            tables_at_opening: 1 << 30,
            tables: 1 << 30,
            index_entries: u32::MAX,
        }
    }
}

impl MemoryShares {
    /// Those with which a volume takes no more than so many bytes in all; `index` are bytes of the index, if that is not
    /// left to a rule.
    ///
    /// # Errors
    /// Too few bytes.
    pub fn within(id: &Identity, limit: u64, index: Option<u64>) -> Result<Self, VolumeError> {
        let sizes = Sizes::of(id);
        let given = index.map(|index| index.min(sizes.whole_index()));
        let least = sizes.needed(given);
        if limit < least {
            return Err(VolumeError::TooLittleMemory { limit, least });
        }
        let limit = limit - (limit / LEFT).min(limit - least);
        let pages = |bytes: u64| bytes / TABLE_PAGE * flashlore_metadata::PAGE_BYTES as u64;
        let at_opening = (limit - sizes.opening()).min(sizes.all_tables());
        let left = limit - sizes.rest();
        let (tables, given) = match given {
            None => sizes.divided(left),
            Some(index) => ((left - index).min(sizes.all_tables()), index),
        };
        Ok(MemoryShares {
            tables_at_opening: pages(at_opening.min(tables)),
            tables: pages(tables),
            index_entries: u32::try_from(given / INDEX).unwrap_or(u32::MAX),
        })
    }
}

/// Bytes of memory that a volume takes at most: while it is opened after a crash, and as full as it can be, with all of its
/// tables and the whole index in memory.
pub fn memory_needed(id: &Identity) -> u64 {
    let sizes = Sizes::of(id);
    let open = sizes.rest() + sizes.whole_index();
    open.max(sizes.opening()) + sizes.all_tables()
}

/// What an open volume takes at most unless it is given more: of a tebibyte with everything a bit more than its index needs.
pub const USUAL_MEMORY: u64 = 4 << 30;

/// Bytes of memory that are taken where all tables are gone through at once: by an upgrade and a growth.
pub fn memory_to_go_through(id: &Identity) -> u64 {
    Sizes::of(id).through()
}

/// How much of what a check counts is in memory at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckShares {
    /// Bytes of pages of the tables while what happened since the checkpoint is replayed.
    pub tables: u64,
    /// Bytes of what is counted of a range of rows.
    pub ranges: u64,
}

impl CheckShares {
    /// Those with which a check takes no more than so many bytes in all.
    ///
    /// # Errors
    /// Too few bytes.
    pub fn within(id: &Identity, limit: u64) -> Result<Self, VolumeError> {
        let sizes = Sizes::of(id);
        let least = sizes.checking().least;
        if limit < least {
            return Err(VolumeError::TooLittleMemory { limit, least });
        }
        let (least_tables, _) = sizes.least();
        let more = ((limit - least) / MORE_TABLES).min(MOST_TABLES);
        let tables = (least_tables + more).min(sizes.all_tables());
        Ok(CheckShares {
            tables: tables / TABLE_PAGE * flashlore_metadata::PAGE_BYTES as u64,
            ranges: limit - sizes.checking().beside - (tables - least_tables),
        })
    }
}

/// What a check takes.
struct CheckSizes {
    /// Beside what is counted of a range of rows.
    beside: u64,
    /// In all.
    least: u64,
}

impl Sizes {
    /// Replaying what happened since the checkpoint takes most for a moment; what is found of it stays, with a bit for each
    /// object that is mapped, named and alive. Pages of tables count to the end: what they leave may not go back to the system. Then there are the ranges, or the links of all free packed pages, and before that
    /// a count for each slot of the tables.
    fn checking(&self) -> CheckSizes {
        let replaying = PROGRAM + self.replaying() + self.least().0;
        let found = PROGRAM + FINDINGS + self.loaded() + VALID * self.units / 8 + self.differing();
        let beside = match self.version < superblock::VERSION {
            true => self.through() + FINDINGS,
            false => found,
        } + 3 * self.handles / 8
            + self.least().0;
        let ranges = LEAST_RANGES.max(self.packs * LINK + self.packs / 8);
        let pointers = found + self.slots * (SLOT + COUNTED_SLOT);
        CheckSizes {
            beside,
            least: (beside + ranges).max(replaying).max(pointers),
        }
    }

    /// Where all tables are gone through in memory.
    fn through(&self) -> u64 {
        let objects = self.objects * (size_of::<ObjectRow>() as u64 + COUNTED);
        self.opening()
            + self.exported * size_of::<Ppn>() as u64
            + objects
            + self.packs * COUNTED
            + self.units * OWNED
            + self.versions * (VersionEntry::BYTES as u64 + 2 * VERSION)
    }
}

/// Bytes of memory with which a volume can be checked.
pub fn least_memory_to_check(id: &Identity) -> u64 {
    Sizes::of(id).checking().least
}

/// Bytes of memory with which a volume works.
pub fn least_memory(id: &Identity) -> u64 {
    Sizes::of(id).needed(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::CreateOptions;
    use crate::{Encoding, HistoryIdentity, Policy};

    fn identity(gib: u64, policy: Policy, all: bool) -> Identity {
        let size = gib << 30;
        CreateOptions {
            policy,
            history: all.then_some(HistoryIdentity {
                entries: 0,
                least_window: 0,
                protected: false,
            }),
            encoding: Encoding {
                deltas: all,
                compression: all,
            },
            size,
            capacity: size + if all { size / 2 } else { 0 },
            now: 0,
            seed: [0; 48],
        }
        .identity()
        .unwrap()
    }

    #[test]
    fn more_needs_more_and_the_least_is_less() {
        for (policy, all) in [
            (Policy::Plain, false),
            (Policy::Dedup, false),
            (Policy::DedupTrusted, false),
            (Policy::Dedup, true),
        ] {
            let mut before = 0;
            for gib in [1, 2, 8, 100, 1024, 8 << 10] {
                let id = identity(gib, policy, all);
                let need = memory_needed(&id);
                assert!(need > before, "{policy:?} {all} {gib} GiB");
                assert!(least_memory(&id) <= need, "{policy:?} {all} {gib} GiB");
                before = need;
            }
        }
        let of = |policy, all| memory_needed(&identity(100, policy, all));
        assert!(of(Policy::Plain, false) < of(Policy::Dedup, false));
        assert!(of(Policy::Dedup, false) <= of(Policy::DedupTrusted, false));
        assert!(of(Policy::DedupTrusted, false) < of(Policy::Dedup, true));
    }

    /// A full volume of 256 GiB with everything is checked within a gibibyte, a tebibyte within four; what is given is divided,
    /// and less is refused.
    #[test]
    fn a_check_takes_what_it_is_given() {
        for (gib, most) in [(1, 1 << 30), (256, 1 << 30), (1024, 4 << 30)] {
            for (policy, all) in [
                (Policy::Plain, false),
                (Policy::Dedup, false),
                (Policy::DedupTrusted, true),
            ] {
                let id = identity(gib, policy, all);
                let least = least_memory_to_check(&id);
                assert!(least <= most, "{policy:?} {gib} GiB: {least}");
                let refused = CheckShares::within(&id, least - 1);
                assert!(matches!(
                    refused,
                    Err(VolumeError::TooLittleMemory { least: told, .. }) if told == least
                ));
                let sizes = Sizes::of(&id);
                for limit in [least, least + (100 << 20), 64 << 30] {
                    let shares = CheckShares::within(&id, limit).unwrap();
                    assert!(shares.ranges >= LEAST_RANGES.max(sizes.packs * LINK));
                    assert!(shares.tables >= sizes.least().0 / TABLE_PAGE * 4096);
                    assert!(shares.ranges + sizes.checking().beside <= limit);
                    assert!(PROGRAM + sizes.replaying() + shares.tables <= limit);
                }
            }
        }
    }

    /// A tebibyte of anything works within four gibibytes, and within less if it is told so.
    #[test]
    fn shares_come_to_what_is_given() {
        for (policy, all) in [
            (Policy::Plain, false),
            (Policy::Dedup, false),
            (Policy::Dedup, true),
        ] {
            for gib in [1, 64, 1024] {
                let id = identity(gib, policy, all);
                let (sizes, least) = (Sizes::of(&id), least_memory(&id));
                assert!(least < USUAL_MEMORY / 2, "{policy:?} {gib} GiB: {least}");
                for limit in [least, least + (100 << 20), USUAL_MEMORY, memory_needed(&id)] {
                    let shares = MemoryShares::within(&id, limit, None).unwrap();
                    // As much as that is left where there is more than the least.
                    let limit = limit - (limit / LEFT).min(limit - least);
                    let index = u64::from(shares.index_entries) * INDEX;
                    let page = flashlore_metadata::PAGE_BYTES as u64;
                    let taken = sizes.rest() + shares.tables / page * TABLE_PAGE + index;
                    assert!(
                        taken <= limit,
                        "{policy:?} {gib} GiB in {limit}: {shares:?}"
                    );
                    assert!(shares.tables_at_opening <= shares.tables);
                    let tables = shares.tables_at_opening / page * TABLE_PAGE;
                    let at_opening = sizes.opening() + tables;
                    assert!(at_opening <= limit, "{policy:?} {gib} GiB in {limit}");
                    let is_all = index >= sizes.whole_index() / INDEX * INDEX;
                    assert!(is_all || taken + (1 << 20) > limit);
                }
                assert!(MemoryShares::within(&id, least - 1, None).is_err());
                let more = MemoryShares::within(&id, least, Some(u64::MAX));
                let with_all = sizes.needed(Some(sizes.whole_index()));
                assert_eq!(more.is_err(), with_all > least);
                let given = MemoryShares::within(&id, USUAL_MEMORY, Some(8 << 20)).unwrap();
                assert!(u64::from(given.index_entries) * INDEX <= 8 << 20);
            }
        }
    }
}
