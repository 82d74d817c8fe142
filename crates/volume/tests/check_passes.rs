//! A check in many passes: what it tells does not depend on how many there are, and whatever a row says that does not agree with
//! the others is named, wherever it lies.

use std::ops::Range;
use std::sync::Arc;

use flashlore_content::PAGE_BYTES;
use flashlore_flash::Lpn;
use flashlore_medium::{Medium, MemoryMedium};
use flashlore_metadata::{MetadataError, Row, Stored, StoredPage, UnreadPage};
use flashlore_volume::format::{Areas, Table};
use flashlore_volume::{
    CheckOptions, CheckReport, Encoding, HistoryIdentity, Identity, Policy, Volume, VolumeError,
    bytes_needed, check_within, create, load,
};

use crate::rows::{resealed, row_at};
use crate::support::{Draw, Shape, page};

/// Several pages of each table that has many rows.
const SHAPE: Shape = Shape {
    exported: 600,
    blocks: 64,
    pages_per_block: 16,
    units_per_page: 2,
    alignment: 512,
    index_entries: 600,
    journal_bytes: 256 << 10,
};

const HISTORY: HistoryIdentity = HistoryIdentity {
    entries: 300,
    least_window: 0,
    protected: false,
};

const KINDS: usize = 5;

fn kind(kind: usize) -> Identity {
    let with = |policy, history: bool, all: bool| Identity {
        history: history.then_some(HISTORY),
        encoding: Encoding {
            deltas: all,
            compression: all,
        },
        ..SHAPE.identity(policy)
    };
    match kind {
        0 => with(Policy::Plain, false, false),
        1 => with(Policy::Dedup, false, false),
        2 => with(Policy::DedupTrusted, true, false),
        3 => with(Policy::Dedup, false, true),
        _ => with(Policy::Dedup, true, true),
    }
}

/// A page that differs little from others.
fn edited(value: u32) -> [u8; PAGE_BYTES] {
    let mut edited = page(1 + value / 8);
    let at = value as usize % 8 * 100;
    edited[at..at + 4].copy_from_slice(&value.to_le_bytes());
    edited
}

/// A volume after a drawn life; closed, or killed with something in its journal.
fn lived(id: &Identity, seed: u64, closed: bool) -> Vec<u8> {
    let medium = Arc::new(MemoryMedium::new(bytes_needed(id).unwrap() as usize));
    create(&*medium, id).unwrap();
    let (mut volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
    let mut draw = Draw::new(seed);
    for step in 0..1500u32 {
        let lpn = Lpn(draw.below(id.exported));
        let now = u64::from(step);
        let done = match draw.below(100) {
            0..4 => volume.trim(now, lpn),
            4 if id.history.is_some() && draw.below(8) == 0 => volume.snapshot(now).map(drop),
            5 => volume.flush(),
            6 if draw.below(4) == 0 => volume.checkpoint(),
            _ => volume.write(now, lpn, &edited(draw.below(1200))),
        };
        match done {
            Ok(()) | Err(VolumeError::Held { .. } | VolumeError::HistoryFull { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    match closed {
        true => volume.close().unwrap(),
        false => {
            volume.flush().unwrap();
            drop(volume);
        }
    }
    Arc::into_inner(medium).unwrap().into_bytes()
}

fn checked(bytes: &[u8], shortest_ranges: bool) -> Result<CheckReport, VolumeError> {
    let options = CheckOptions {
        shortest_ranges,
        ..CheckOptions::default()
    };
    check_within(MemoryMedium::from_bytes(bytes.to_vec()), &options)
}

/// What is told in one pass, and in as many as can be.
fn in_one_and_in_many(bytes: &[u8], what: &str) -> Result<CheckReport, String> {
    // Of the history it tells what is wrong in the first range of pages in which anything is.
    let ordered = |report: Result<CheckReport, VolumeError>| match report {
        Ok(mut report) => {
            let is_history = |error: &String| error.starts_with("the history: ");
            let has_history = report.errors.iter().any(is_history);
            report.errors.retain(|error| !is_history(error));
            report.errors.sort();
            Ok((report, has_history))
        }
        Err(error) => Err(error.to_string()),
    };
    let [one, many] = [false, true].map(|shortest| checked(bytes, shortest));
    let told = match &one {
        Ok(report) => Ok(report.clone()),
        Err(error) => Err(error.to_string()),
    };
    assert_eq!(ordered(one), ordered(many), "{what}");
    told
}

#[test]
fn in_many_passes_a_sound_volume_is_clean_as_in_one() {
    for number in 0..KINDS {
        let id = kind(number);
        for seed in 1..4 {
            for closed in [true, false] {
                let what = format!("kind {number}, seed {seed}, closed {closed}");
                let report = in_one_and_in_many(&lived(&id, seed, closed), &what).unwrap();
                assert!(report.is_clean(), "{what}: {report:?}");
                assert!(report.mapped > 300, "{what}: {report:?}");
                assert_eq!(report.recovery.events == 0, closed, "{what}");
            }
        }
    }
}

fn number_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// What all is counted anew by the translation layer, which has it in memory, finds wrong too is told by a check, and each
/// in one pass as in many.
#[test]
fn what_a_volume_finds_wrong_in_itself_a_check_tells() {
    let tables = [
        Table::Map,
        Table::Objects,
        Table::Packs,
        Table::Versions,
        Table::Kept,
        Table::Owners,
        Table::FreeHandles,
        Table::Valid,
        Table::Heads,
        Table::KeptHeads,
    ];
    let mut wrong = 0;
    for number in 0..KINDS {
        let id = kind(number);
        let bytes = lived(&id, 7, true);
        let mut draw = Draw::new(number as u64 + 1);
        for table in tables.into_iter().filter(|table| table.rows(&id) > 0) {
            for _ in 0..6 {
                let row = draw.below(table.rows(&id));
                let Some(at) = row_at(&bytes, &id, table, row) else {
                    continue;
                };
                let at = at + draw.below(table.row_bytes(&id).into()) as usize;
                let bit = 1 << draw.below(8);
                let changed = resealed(&id, bytes.clone(), |bytes| bytes[at] ^= bit);
                let what = format!("kind {number}, {table:?} row {row}, byte {at}, {bit}");
                let report = in_one_and_in_many(&changed, &what);
                let opened = Volume::open(MemoryMedium::from_bytes(changed));
                let sound = opened.map(|(volume, _)| volume.check());
                if !matches!(sound, Ok(Ok(()))) {
                    let is_told = !report.as_ref().is_ok_and(CheckReport::is_clean);
                    assert!(is_told, "{what}: {sound:?}, {report:?}");
                    wrong += 1;
                }
            }
        }
    }
    assert!(wrong > 40, "{wrong} of them were wrong");
}

/// A row of the objects behind the first ranges that has a unit of its own and one reference.
fn late_object(bytes: &[u8], id: &Identity, behind: u32) -> (u32, usize) {
    let rows = (behind..Table::Objects.rows(id)).rev();
    let mut written = rows.filter_map(|row| Some((row, row_at(bytes, id, Table::Objects, row)?)));
    let is_whole = |&(_, at): &(u32, usize)| {
        let counts = number_at(bytes, at + 4);
        counts & 0x1f_ffff == 1 && counts >> 29 & 3 == 0
    };
    written.find(is_whole).expect("an object in a unit")
}

/// A free row of a table behind the first ranges; `is_free` is asked for its bytes.
fn late_row(
    bytes: &[u8],
    id: &Identity,
    table: Table,
    is_it: impl Fn(&[u8]) -> bool,
) -> (u32, usize) {
    let rows = (0..table.rows(id)).rev();
    let mut written = rows.filter_map(|row| Some((row, row_at(bytes, id, table, row)?)));
    let length = usize::from(table.row_bytes(id));
    written
        .find(|(_, at)| is_it(&bytes[*at..*at + length]))
        .expect("such a row")
}

/// What is told of a change to the tables of a volume of a kind, in one pass as in many.
fn told_of(number: usize, change: impl FnOnce(&mut [u8], &Identity), expected: &str) {
    let id = kind(number);
    let bytes = resealed(&id, lived(&id, 3, true), |bytes| change(bytes, &id));
    let report = in_one_and_in_many(&bytes, expected).unwrap();
    let is_told = report.errors.iter().any(|error| error.contains(expected));
    assert!(is_told, "{expected}: {report:?}");
    assert!(!checked(&bytes, true).unwrap().is_clean());
}

#[test]
fn a_wrong_reference_count_is_named() {
    told_of(
        2,
        |bytes, id| {
            let (_, at) = late_object(bytes, id, 127);
            bytes[at + 4] += 1;
        },
        "is stored as",
    );
}

#[test]
fn a_page_that_is_lost_is_named() {
    told_of(
        2,
        |bytes, id| {
            let is_valid = |word: &[u8]| word.iter().any(|byte| *byte != 0);
            let (row, at) = late_row(bytes, id, Table::Valid, is_valid);
            assert!(row > 4, "{row}");
            let byte = (at..at + 8).find(|at| bytes[*at] != 0).unwrap();
            bytes[byte] &= bytes[byte] - 1;
        },
        "and noted as free",
    );
}

#[test]
fn a_page_with_two_owners_is_named() {
    told_of(
        2,
        |bytes, id| {
            let (row, at) = late_object(bytes, id, 127);
            let (other, from) = late_object(bytes, id, 0);
            let (other, from) = match other == row {
                false => (other, from),
                true => (0..row)
                    .rev()
                    .filter_map(|row| Some((row, row_at(bytes, id, Table::Objects, row)?)))
                    .find(|&(_, at)| {
                        let counts = number_at(bytes, at + 4);
                        counts & 0x1f_ffff > 0 && counts >> 29 & 3 == 0
                    })
                    .unwrap(),
            };
            assert_ne!(row, other);
            let unit: [u8; 4] = bytes[from..from + 4].try_into().unwrap();
            bytes[at..at + 4].copy_from_slice(&unit);
        },
        "is owned by both object",
    );
}

/// The root of an earlier checkpoint in place of the newest one, as if that had never been written; and one whose tables are
/// newer than what it tells of them.
#[test]
fn a_stale_root_is_named() {
    let id = kind(4);
    let bytes = lived(&id, 3, false);
    let areas = Areas::new(&id).unwrap();
    let image = MemoryMedium::from_bytes(bytes.clone());
    let newest = load::root(&image, &id, &areas).unwrap();
    let parity = newest.checkpoint % 2;
    let mut stale = bytes.clone();
    let at = areas.store.root(parity) as usize;
    stale[at..at + areas.store.root_bytes()].fill(0);
    let told = in_one_and_in_many(&stale, "no root").unwrap_err();
    assert!(told.contains("its root does not hold"), "{told}");
    told_of(
        4,
        |bytes, id| {
            let image = MemoryMedium::from_bytes(bytes.to_vec());
            let root = load::root(&image, id, &Areas::new(id).unwrap()).unwrap();
            let encoded = root.encode();
            let is_root = |at: &usize| bytes[*at..].starts_with(&encoded);
            let store = Areas::new(id).unwrap().store;
            let first = store.root(0) as usize;
            let at = (first..first + 2 * store.root_bytes())
                .find(is_root)
                .unwrap();
            // Of the stored values those to which pages refer: one less.
            let referenced = number_at(bytes, at + 52) - 1;
            bytes[at + 52..at + 56].copy_from_slice(&referenced.to_le_bytes());
        },
        "the root tells",
    );
}

#[test]
fn a_wrong_link_and_a_wrong_head_of_old_versions_are_named() {
    let is_entry = |entry: &[u8]| entry[..8] != [0; 8] && entry[8..12] != [0xff; 4];
    told_of(
        2,
        |bytes, id| {
            let image = MemoryMedium::from_bytes(bytes.to_vec());
            let root = load::root(&image, id, &Areas::new(id).unwrap()).unwrap();
            let queue = root.history.window.queue;
            let rows = Table::Versions.rows(id);
            // The newest entry of a page that has an older one in the window.
            let linked = (0..queue.len).rev().find_map(|place| {
                let at = row_at(bytes, id, Table::Versions, (queue.row + place) % rows)?;
                let older = number_at(bytes, at + 16).wrapping_sub(queue.first.0);
                let of = row_at(
                    bytes,
                    id,
                    Table::Versions,
                    (queue.row + older % rows) % rows,
                )?;
                let is_older = older < place && bytes[of + 8..of + 12] == bytes[at + 8..at + 12];
                (is_older && is_entry(&bytes[at..at + 20])).then_some(at)
            });
            bytes[linked.unwrap() + 16] ^= 1;
        },
        "linked",
    );
    told_of(
        2,
        |bytes, id| {
            let image = MemoryMedium::from_bytes(bytes.to_vec());
            let root = load::root(&image, id, &Areas::new(id).unwrap()).unwrap();
            let queue = root.history.window.queue;
            let rows = Table::Versions.rows(id);
            let pages = (0..queue.len).filter_map(|place| {
                let at = row_at(bytes, id, Table::Versions, (queue.row + place) % rows)?;
                is_entry(&bytes[at..at + 20]).then(|| number_at(bytes, at + 8))
            });
            let last = pages.max().unwrap();
            assert!(last > 500, "{last}");
            let at = row_at(bytes, id, Table::Heads, last).unwrap();
            bytes[at] ^= 1;
        },
        ": head",
    );
}

#[test]
fn a_wrong_free_list_is_named() {
    told_of(
        2,
        |bytes, id| {
            // The last page whose first free row is not its first one.
            let (row, at) = late_row(bytes, id, Table::FreeHandles, |first| first[0] != 0);
            assert!(row > 2, "{row}");
            bytes[at] = 0xff - u8::from(bytes[at] == 0xff) * 0xff;
        },
        "listed as free",
    );
}

#[test]
fn what_is_counted_wrong_of_a_packed_page_is_named() {
    let holds = |pack: &[u8]| pack[10..12] != [0; 2];
    told_of(
        4,
        |bytes, id| {
            let (row, at) = late_row(bytes, id, Table::Packs, holds);
            assert!(row > 64, "{row}");
            bytes[at + 10] ^= 1;
        },
        "its objects take",
    );
    told_of(
        4,
        |bytes, id| {
            let image = MemoryMedium::from_bytes(bytes.to_vec());
            let root = load::root(&image, id, &Areas::new(id).unwrap()).unwrap();
            let free = root.tallies.packs.free;
            let at = row_at(bytes, id, Table::Packs, free.0).unwrap();
            // The list ends with its first number.
            bytes[at..at + 4].fill(0xff);
        },
        "free numbers of packed pages",
    );
}

/// Data that rot in the last block in use, and all that needs them: named in many passes as in one.
#[test]
fn rot_is_named_with_all_addresses_in_many_passes_as_in_one() {
    for number in 0..KINDS {
        let id = kind(number);
        for closed in [true, false] {
            let bytes = lived(&id, 5, closed);
            let areas = Areas::new(&id).unwrap();
            let (mut named, mut draw) = (0, Draw::new(9));
            for _ in 0..6 {
                let mut rotten = bytes.clone();
                for _ in 0..8 {
                    let unit = draw.below(id.blocks * id.pages_per_block * id.units_per_page);
                    let at = areas.unit(flashlore_flash::Ppn(unit)) as usize;
                    rotten[at + draw.below(4096) as usize] ^= 1;
                }
                let what = format!("kind {number}, closed {closed}");
                let report = in_one_and_in_many(&rotten, &what);
                let Ok((mut volume, _)) = Volume::open(MemoryMedium::from_bytes(rotten)) else {
                    report.unwrap_err();
                    continue;
                };
                let report = report.unwrap();
                let mut expected = Vec::new();
                for lpn in (0..id.exported).map(Lpn) {
                    match volume.read(lpn, &mut [0; PAGE_BYTES]) {
                        Ok(()) => {}
                        Err(VolumeError::Unreadable { .. }) => expected.push(lpn),
                        Err(error) => panic!("{what}: {error}"),
                    }
                }
                let addresses = report
                    .findings
                    .iter()
                    .flat_map(|finding| &finding.addresses);
                let mut found: Vec<Lpn> = addresses.copied().collect();
                found.sort();
                found.dedup();
                assert_eq!(found, expected, "{what}: {report:?}");
                named += found.len();
            }
            assert!(named > 0, "kind {number}, closed {closed}");
        }
    }
}

/// The pages of a table, leaves and others, each where it lies with the rows that it covers.
fn pages_of(bytes: &[u8], id: &Identity, table: Table) -> Vec<(u8, usize, Range<u32>)> {
    let areas = Areas::new(id).unwrap();
    let image = MemoryMedium::from_bytes(bytes.to_vec());
    let stored = Stored::open(&image, areas.store, id.key).unwrap();
    let shape = table.shape(id);
    let mut pages = Vec::new();
    let mut note = |page: Result<&StoredPage<'_>, UnreadPage>| {
        let page = page?;
        let rows = page.node.rows(&shape);
        let at = areas.store.slot(page.slot) as usize;
        let end = rows.end.min(shape.rows.into()) as u32;
        pages.push((page.node.level, at, rows.start as u32..end));
        Ok::<_, MetadataError>(())
    };
    let all = Row(0)..Row(u32::MAX);
    stored.each_page(table.id(), all, &mut note).unwrap();
    pages
}

fn live_tables(id: &Identity) -> impl Iterator<Item = Table> {
    let id = id.clone();
    let all = Table::all(&id).iter().copied();
    all.filter(|table| table.is_live())
}

/// What is told of rows that cannot be read, up to why.
fn missing_rows(table: Table, rows: &Range<u32>) -> String {
    let (first, last) = (rows.start, rows.end - 1);
    let mut told = format!("rows {first} to {last} of {table} cannot be read");
    if [Table::Map, Table::Heads, Table::KeptHeads].contains(&table) {
        let bytes = rows.len() * PAGE_BYTES;
        told += &format!(
            ", those of logical pages {first} to {last} ({bytes} bytes at {})",
            first as usize * PAGE_BYTES
        );
    }
    told + ": "
}

/// What is told of a volume that lacks these pages is what they are, and that counts are not compared: nothing that follows
/// from rows that are not known.
fn expect_missing(bytes: &[u8], pages: &[(Table, Range<u32>)], what: &str) {
    let report = in_one_and_in_many(bytes, what).unwrap();
    let missing: Vec<String> = pages
        .iter()
        .map(|(table, rows)| missing_rows(*table, rows))
        .collect();
    for told in &missing {
        let is_told = report.errors.iter().any(|error| error.starts_with(told));
        assert!(is_told, "{what}: {told}: {report:?}");
    }
    let is_expected = |error: &&String| {
        missing.iter().any(|told| error.starts_with(told))
            || error.starts_with("what is stored of counts was not compared")
    };
    let other = report.errors.iter().find(|error| !is_expected(error));
    assert_eq!(other, None, "{what}");
    assert_eq!(report.findings, [], "{what}");
    assert!(!report.is_clean(), "{what}");
}

/// Each page of each table whose rows are read where they are needed, damaged alone: it is named with its rows, and nothing
/// is said of others.
#[test]
fn a_page_of_the_tables_that_cannot_be_read_is_named_with_its_rows_and_nothing_else_is() {
    let mut named = Vec::new();
    let mut above = 0;
    for number in 0..KINDS {
        let id = kind(number);
        for closed in [true, false] {
            let bytes = lived(&id, 8, closed);
            for table in live_tables(&id) {
                let pages = pages_of(&bytes, &id, table);
                let (many, step) = (pages.len(), pages.len().div_ceil(4).max(1));
                for (level, at, rows) in pages.into_iter().step_by(step) {
                    let mut damaged = bytes.clone();
                    damaged[at + 200] ^= 1;
                    let what = format!("kind {number}, closed {closed}, {table:?} {rows:?}");
                    if checked(&damaged, false).is_err() {
                        // An opening needs it.
                        let opened = Volume::open(MemoryMedium::from_bytes(damaged));
                        assert!(opened.is_err(), "{what}");
                        continue;
                    }
                    expect_missing(&damaged, &[(table, rows)], &what);
                    named.push(table);
                    above += u32::from(level > 0 && many > 2);
                }
            }
        }
    }
    for table in live_tables(&kind(4)) {
        assert!(named.contains(&table), "{table:?}");
    }
    assert!(above > 5, "{above}");
}

#[test]
fn pages_of_two_tables_that_cannot_be_read_are_both_named() {
    let id = kind(4);
    let bytes = lived(&id, 8, true);
    let has_pages = |table: &Table| !pages_of(&bytes, &id, *table).is_empty();
    let tables: Vec<Table> = live_tables(&id).filter(has_pages).collect();
    let mut named = 0;
    for (number, &first) in tables.iter().enumerate() {
        for &second in &tables[number + 1..] {
            let mut damaged = bytes.clone();
            let pages = [first, second].map(|table| {
                let leaves = pages_of(&bytes, &id, table);
                let (_, at, rows) = leaves.into_iter().find(|page| page.0 == 0).unwrap();
                damaged[at + 200] ^= 1;
                (table, rows)
            });
            if Volume::open(MemoryMedium::from_bytes(damaged.clone())).is_ok() {
                expect_missing(&damaged, &pages, &format!("{first:?} and {second:?}"));
                named += 1;
            }
        }
    }
    assert!(named > 20, "{named}");
}

/// A program that was wrong wrote them: who needs such a page gets an error, as of one that cannot be read.
#[test]
fn a_page_of_rows_that_name_what_there_is_not_is_passed_over_as_one_that_cannot_be_read() {
    let id = kind(2);
    let bytes = lived(&id, 3, true);
    let mut named = 0;
    for table in [Table::Map, Table::Objects, Table::Versions, Table::Owners] {
        let leaves = pages_of(&bytes, &id, table);
        let (_, at, rows) = leaves.into_iter().find(|page| page.0 == 0).unwrap();
        // The first field of a row, but of a version that is the stamp.
        let field = at + 32 + if table == Table::Versions { 12 } else { 0 };
        let changed = resealed(&id, bytes.clone(), |bytes| {
            bytes[field..field + 4].copy_from_slice(&(1u32 << 28).to_le_bytes());
        });
        let what = format!("{table:?} {rows:?}");
        if Volume::open(MemoryMedium::from_bytes(changed.clone())).is_ok() {
            expect_missing(&changed, &[(table, rows)], &what);
            named += 1;
        }
    }
    assert!(named > 2, "{named}");
}

#[test]
fn too_little_memory_is_refused_with_a_figure() {
    let id = kind(4);
    let options = CheckOptions {
        memory: Some(1 << 20),
        ..CheckOptions::default()
    };
    let medium = MemoryMedium::from_bytes(lived(&id, 1, true));
    let before = medium.len();
    let refused = check_within(medium, &options).unwrap_err().to_string();
    assert!(
        refused.contains("1 MiB of memory are too little"),
        "{before}: {refused}"
    );
}
