//! The tables of a checkpoint in their store: more than one page of them, and what a program that is wrong would write.

use std::sync::Arc;

use flashlore_content::history::ChainsAt;
use flashlore_content::{PAGE_BYTES, VolumeKey};
use flashlore_flash::{Lpn, QueueAt};
use flashlore_ftl::mapping::tallies::Tallies;
use flashlore_medium::{CrashMedium, Medium, MemoryMedium, Style};
use flashlore_metadata::{
    MetadataError, PAGE_BYTES as TABLE_PAGE_BYTES, Row, Slot, Store, Stored, StoredPage, UnreadPage,
};
use flashlore_volume::format::{Areas, HistoryRoot, Identity, Policy, Root, Superblock, Table};
use flashlore_volume::{
    Encoding, Growth, HistoryIdentity, Volume, VolumeError, bytes_needed, check, create, load,
};

use crate::exercise::seal_store;
use crate::support::{FEW_PAGES, Shape, contents, page, read};

const SHAPE: Shape = Shape {
    exported: 20,
    blocks: 12,
    pages_per_block: 4,
    units_per_page: 2,
    alignment: 512,
    index_entries: 20,
    journal_bytes: 64 << 10,
};

/// Several pages of each table.
const WIDE: Shape = Shape {
    exported: 2500,
    blocks: 200,
    pages_per_block: 16,
    index_entries: 2500,
    ..SHAPE
};

fn made(id: &Identity) -> Arc<MemoryMedium> {
    let medium = Arc::new(MemoryMedium::new(bytes_needed(id).unwrap() as usize));
    create(&*medium, id).unwrap();
    medium
}

fn open(medium: &Arc<MemoryMedium>) -> Volume {
    Volume::open(Arc::clone(medium)).unwrap().0
}

/// A program that is wrong wrote this: it is damage to whoever opens it.
fn assert_damaged(medium: &Arc<MemoryMedium>, what: &str) {
    match Volume::open(Arc::clone(medium)).map(|_| ()) {
        Err(VolumeError::Damaged(_)) => {}
        other => panic!("{what}: {other:?}"),
    }
    assert!(
        matches!(
            check(Arc::clone(medium), false),
            Err(VolumeError::Damaged(_))
        ),
        "{what}"
    );
}

#[test]
fn what_a_recovery_changes_on_any_page_of_the_map_is_in_the_next_checkpoint() {
    let medium = made(&WIDE.identity(Policy::Dedup));
    let mut volume = open(&medium);
    for lpn in 0..2500 {
        volume.write(1, Lpn(lpn), &page(lpn % 700 + 1)).unwrap();
    }
    volume.checkpoint().unwrap();
    let mut expected = contents(&mut volume);
    for lpn in [0, 1100, 2300, 2499] {
        volume.write(2, Lpn(lpn), &page(500)).unwrap();
        expected[lpn as usize] = 500;
    }
    volume.trim(3, Lpn(1500)).unwrap();
    expected[1500] = 0;
    volume.flush().unwrap();
    drop(volume);
    let mut volume = open(&medium);
    assert_eq!(contents(&mut volume), expected);
    volume.checkpoint().unwrap();
    drop(volume);
    let mut volume = open(&medium);
    assert_eq!(contents(&mut volume), expected);
    volume.check().unwrap();
}

/// A checkpoint has begun, and pages of tables are written to make room: none goes where the last root has one, for that is
/// what a crash leaves.
#[test]
fn pages_of_the_last_root_stay_until_the_next_one_is_durable() {
    let id = WIDE.identity(Policy::Dedup);
    let medium = Arc::new(CrashMedium::new(bytes_needed(&id).unwrap() as usize));
    create(&*medium, &id).unwrap();
    // As few pages in memory as can be.
    let (mut volume, _) = Volume::open_within(Arc::clone(&medium), FEW_PAGES).unwrap();
    for lpn in 0..2500 {
        volume.write(1, Lpn(lpn), &page(lpn + 1)).unwrap();
    }
    volume.checkpoint().unwrap();
    for turn in 1..40 {
        for lpn in (0..2500).step_by(50) {
            let value = turn * 10_000 + lpn;
            volume.write(1, Lpn(lpn), &page(value)).unwrap();
        }
        let expected = contents(&mut volume);
        let _open = volume.begin_checkpoint().unwrap();
        for from in 1..20 {
            for lpn in (from..2500).step_by(50) {
                let value = turn * 10_000 + lpn;
                volume.write(1, Lpn(lpn), &page(value)).unwrap();
            }
        }
        // The root has not been written, whatever else has.
        let left = medium.survivors(u64::from(turn), Style::All);
        let (mut found, _) = Volume::open(CrashMedium::from_bytes(left)).unwrap();
        found
            .check()
            .unwrap_or_else(|why| panic!("turn {turn}: {why}"));
        assert_eq!(contents(&mut found)[2499], expected[2499]);
        volume.flush().unwrap();
    }
}

#[test]
fn a_count_of_pointers_that_is_wrong_is_told_by_check() {
    let id = Identity {
        key: VolumeKey([9; 32]),
        ..SHAPE.identity(Policy::Dedup)
    };
    let medium = made(&id);
    let mut volume = open(&medium);
    for lpn in 0..20 {
        volume.write(1, Lpn(lpn), &page(lpn + 1)).unwrap();
    }
    volume.close().unwrap();
    let areas = Areas::new(&id).unwrap();
    let mut bytes = Arc::into_inner(medium).unwrap().into_bytes();
    for copy in 0..2 {
        let at = areas.store.counts(0, copy) as usize + 32;
        let counts = bytes[at..at + 4064].chunks_exact_mut(2);
        // A slot that is in use, by one more.
        counts
            .filter(|count| count[0] == 1)
            .take(1)
            .for_each(|count| count[0] = 2);
    }
    seal_store(&mut bytes, &areas.store, &id.key);
    let medium = MemoryMedium::from_bytes(bytes);
    let report = check(medium, true).unwrap();
    let told = report
        .errors
        .iter()
        .any(|error| error.contains("counted are 1"));
    assert!(told && !report.is_clean(), "{report:?}");
}

#[test]
fn tables_of_another_volume_are_refused() {
    let id = SHAPE.identity(Policy::Plain);
    let medium = made(&id);
    open(&medium).close().unwrap();
    let found = load::superblock(&*medium).unwrap();
    let larger = Superblock {
        identity: Identity {
            exported: id.exported + 1,
            ..id
        },
        ..found
    };
    for copy in 0..2 {
        medium.write(copy * 4096, &larger.encode()).unwrap();
    }
    assert_damaged(&medium, "a page more");
}

#[test]
fn rows_that_a_root_names_must_have_been_written() {
    let id = Identity {
        history: Some(HistoryIdentity {
            entries: 100,
            least_window: 0,
            protected: false,
        }),
        ..SHAPE.identity(Policy::Dedup)
    };
    for (entries, pins, notes) in [(5, 0, 0), (0, 1, 0), (0, 0, 1), (200, 0, 0)] {
        let medium = made(&id);
        let areas = Areas::new(&id).unwrap();
        let root = Root {
            checkpoint: 1,
            epoch: 0,
            sequence: 0,
            stamp: 5,
            history: HistoryRoot {
                oldest: 5,
                window: ChainsAt {
                    queue: QueueAt {
                        row: 3,
                        len: entries,
                        ..QueueAt::default()
                    },
                    gaps: 0,
                },
                kept: ChainsAt::default(),
                pins,
                notes,
            },
            tallies: Tallies::default(),
        };
        let (tables, user) = (Table::shapes(&id), root.encode());
        Store::create(&*medium, &areas.store, &id.key, 1, &tables, &user).unwrap();
        assert_damaged(
            &medium,
            &format!("{entries} entries, {pins} pins, {notes} notes"),
        );
    }
}

/// Changes bytes of a closed volume's tables, and makes all checks hold again.
fn rewritten(
    id: &Identity,
    medium: Arc<MemoryMedium>,
    change: impl FnOnce(&mut [u8], &Areas),
) -> Arc<MemoryMedium> {
    let areas = Areas::new(id).unwrap();
    let mut bytes = Arc::into_inner(medium).unwrap().into_bytes();
    change(&mut bytes, &areas);
    seal_store(&mut bytes, &areas.store, &id.key);
    Arc::new(MemoryMedium::from_bytes(bytes))
}

/// Where pages of the rows of a table lie, by its kind.
fn leaves(bytes: &[u8], areas: &Areas, kind: u8) -> Vec<usize> {
    let slots = (0..areas.store.slots).map(|slot| areas.store.slot(Slot(slot)) as usize);
    let is_leaf = |&at: &usize| bytes[at..at + 6] == [b'F', b'L', b'M', b'P', kind, 0];
    slots.filter(is_leaf).collect()
}

#[test]
fn an_object_that_cannot_be_is_an_error_in_the_map() {
    for policy in [Policy::Dedup, Policy::DedupTrusted] {
        let id = SHAPE.identity(policy);
        for object in [u32::MAX - 1, u32::MAX - 2, 1 << 20] {
            let medium = made(&id);
            let mut volume = open(&medium);
            (0..20).for_each(|lpn| volume.write(1, Lpn(lpn), &page(lpn + 1)).unwrap());
            volume.close().unwrap();
            let medium = rewritten(&id, medium, |bytes, areas| {
                for at in leaves(bytes, areas, 0) {
                    bytes[at + 32..at + 36].copy_from_slice(&object.to_le_bytes());
                }
            });
            let what = format!("{policy:?}, object {object}");
            let report = check(Arc::clone(&medium), false).unwrap();
            let is_told = |error: &String| error.ends_with("it names what there is not");
            assert!(report.errors.iter().any(is_told), "{what}: {report:?}");
            // All pages lie in one page of the map.
            let mut volume = open(&medium);
            let found = volume.read(Lpn(7), &mut [0; PAGE_BYTES]);
            assert!(
                matches!(found, Err(VolumeError::Unreadable { .. })),
                "{what}"
            );
            assert!(volume.write(2, Lpn(7), &page(1)).is_err(), "{what}");
        }
    }
}

/// Two pages whose digests agree in the half that the index looks at: only one who can choose digests has them.
#[test]
fn trusted_digests_are_compared_whole_and_a_wrong_one_is_told_by_check() {
    let id = SHAPE.identity(Policy::DedupTrusted);
    let medium = made(&id);
    let mut volume = open(&medium);
    volume.write(1, Lpn(0), &page(1)).unwrap();
    volume.close().unwrap();
    let (digest, other) = (id.key.digest(&page(1)).0, id.key.digest(&page(2)).0);
    let medium = rewritten(&id, medium, |bytes, areas| {
        for at in leaves(bytes, areas, 1) {
            let row = &mut bytes[at + 32 + 24..at + 32 + 40];
            assert_eq!(row, digest.to_le_bytes());
            row[..8].copy_from_slice(&other.to_le_bytes()[..8]);
        }
    });
    let report = check(Arc::clone(&medium), true).unwrap();
    assert!(
        report
            .errors
            .iter()
            .any(|error| error.contains("of a digest")),
        "{report:?}"
    );
    let mut volume = open(&medium);
    volume.write(2, Lpn(1), &page(2)).unwrap();
    assert_eq!(contents(&mut volume)[..2], [1, 2]);
}

/// What the tables say of each other: a row that is wrong is told by check. It keeps nobody from reading, and tables that are
/// made anew do not have it.
#[test]
fn a_wrong_count_owner_or_free_handle_is_told_by_check() {
    let id = Identity {
        encoding: Encoding {
            deltas: true,
            compression: true,
        },
        ..SHAPE.identity(Policy::Dedup)
    };
    let wrong: [(&str, u8, usize, u8, &str); 12] = [
        ("a reference too many", 1, 4, 1, "is stored as"),
        ("an object without references", 1, 4, 3, "is stored as"),
        ("an old version that is not there", 1, 5, 2, "is stored as"),
        ("a base for nobody", 1, 8, 1, "is stored as"),
        (
            "a free handle that holds something",
            1,
            43 * 32 + 12,
            1,
            "is stored as",
        ),
        ("a list in a circle", 1, 43 * 32, 0xff, "in a circle"),
        ("bytes in a packed page", 2, 10, 1, "is stored as"),
        ("a live delta in a packed page", 2, 12, 1, "is stored as"),
        ("a unit of another", 8, 0, 1, "is noted as that of"),
        ("a handle that is lost", 9, 0, 1, "listed as free"),
        ("a value on a free unit", 11, 0, 1, "noted as free"),
        ("a unit with nothing on it", 11, 7, 0x80, "noted as valid"),
    ];
    for (what, table, at, bits, expected) in wrong {
        let medium = made(&id);
        let mut volume = open(&medium);
        for lpn in 0..20 {
            volume.write(1, Lpn(lpn), &page(lpn % 7 + 1)).unwrap();
        }
        // What is freed leaves nothing behind.
        volume.write(1, Lpn(19), &page(50)).unwrap();
        volume.write(1, Lpn(19), &page(19 % 7 + 1)).unwrap();
        volume.close().unwrap();
        assert!(
            check(Arc::clone(&medium), true).unwrap().is_clean(),
            "{what}"
        );
        let medium = rewritten(&id, medium, |bytes, areas| {
            for leaf in leaves(bytes, areas, table) {
                bytes[leaf + 32 + at] ^= bits;
            }
        });
        let report = check(Arc::clone(&medium), true).unwrap();
        let is_told = report.errors.iter().any(|error| error.contains(expected));
        assert!(is_told, "{what}: {report:?}");
        match Volume::open(Arc::clone(&medium)) {
            Ok((mut volume, _)) => {
                for lpn in 0..20 {
                    let mut found = [0; PAGE_BYTES];
                    volume.read(Lpn(lpn), &mut found).unwrap();
                    assert_eq!(found, page(lpn % 7 + 1), "{what}, page {lpn}");
                }
            }
            Err(error) => assert!(error.to_string().contains("never programmed"), "{what}"),
        }
        let growth = Growth::plan(&load::superblock(&medium).unwrap(), id.clone()).unwrap();
        let larger = MemoryMedium::new(growth.bytes() as usize);
        let mut bytes = vec![0; medium.len() as usize];
        medium.read(0, &mut bytes).unwrap();
        larger.write(0, &bytes).unwrap();
        let medium = Arc::new(larger);
        growth.carry_out(Arc::clone(&medium)).unwrap();
        let volume = open(&medium);
        volume.check().unwrap_or_else(|why| panic!("{what}: {why}"));
        volume.close().unwrap();
        let report = check(Arc::clone(&medium), true).unwrap();
        assert!(report.is_clean(), "{what}: {report:?}");
    }
}

/// A packed page that was begun and holds nothing when a checkpoint is taken has no number.
#[test]
fn an_emptied_page_gives_its_number_back() {
    let id = Identity {
        encoding: Encoding {
            deltas: false,
            compression: true,
        },
        ..SHAPE.identity(Policy::Dedup)
    };
    let medium = made(&id);
    for round in 0..3 {
        let mut volume = open(&medium);
        volume.write(1, Lpn(0), &page(round + 1)).unwrap();
        volume.trim(1, Lpn(0)).unwrap();
        volume.close().unwrap();
        let report = check(Arc::clone(&medium), true).unwrap();
        assert!(report.is_clean(), "{report:?}");
    }
}

/// More references than the row of an object counts, and the rest elsewhere.
#[test]
fn a_wrong_spilled_count_is_told_by_check() {
    let shape = Shape {
        exported: 700,
        ..SHAPE
    };
    let id = shape.identity(Policy::Dedup);
    // Its object, what is counted, and how much of it.
    for (at, flipped) in [(0, 1), (4, 1), (9, 2)] {
        let medium = made(&id);
        let mut volume = open(&medium);
        for lpn in 0..700 {
            volume.write(1, Lpn(lpn), &page(1)).unwrap();
        }
        volume.close().unwrap();
        assert!(check(Arc::clone(&medium), true).unwrap().is_clean());
        let mut changed = 0;
        let medium = rewritten(&id, medium, |bytes, areas| {
            for leaf in leaves(bytes, areas, 10) {
                bytes[leaf + 32 + at] ^= flipped;
                changed += 1;
            }
        });
        assert_eq!(changed, 1);
        let report = check(Arc::clone(&medium), true).unwrap();
        let is_told = report.errors.iter().any(|e| e.contains("is stored as"));
        assert!(is_told, "byte {at}: {report:?}");
    }
}

/// What is spilled of a count comes back half a word's worth at a time: anything else would never be used up, or too soon.
#[test]
fn a_spilled_count_that_cannot_be_is_refused() {
    let shape = Shape {
        exported: 700,
        ..SHAPE
    };
    let id = shape.identity(Policy::Dedup);
    for part in [1u32, 255, 257, u32::MAX] {
        let medium = made(&id);
        let mut volume = open(&medium);
        for lpn in 0..700 {
            volume.write(1, Lpn(lpn), &page(1)).unwrap();
        }
        volume.close().unwrap();
        let medium = rewritten(&id, medium, |bytes, areas| {
            for leaf in leaves(bytes, areas, 10) {
                bytes[leaf + 40..leaf + 44].copy_from_slice(&part.to_le_bytes());
            }
        });
        assert_damaged(&medium, &format!("a part of {part}"));
    }
}

/// Rows of objects name another packed page than theirs, one that is free among them. Once that is filled anew nothing of the
/// objects is there, and they are lost, whoever asks for them: who reads them, compares with them, or writes in their place.
#[test]
fn an_object_that_names_a_packed_page_of_others_is_lost() {
    let id = Identity {
        encoding: Encoding {
            deltas: false,
            compression: true,
        },
        ..SHAPE.identity(Policy::Dedup)
    };
    let mut lost = 0;
    for number in 0..4u32 {
        let medium = made(&id);
        let mut volume = open(&medium);
        volume.write(1, Lpn(0), &page(1)).unwrap();
        volume.write(1, Lpn(1), &page(2)).unwrap();
        volume.close().unwrap();
        let medium = rewritten(&id, medium, |bytes, areas| {
            const PACKED: u8 = 1 << 6;
            for leaf in leaves(bytes, areas, 1) {
                let rows = bytes[leaf + 32..leaf + TABLE_PAGE_BYTES].chunks_exact_mut(32);
                for row in rows.filter(|row| row[7] & PACKED != 0) {
                    row[..4].copy_from_slice(&number.to_le_bytes());
                }
            }
        });
        let mut volume = open(&medium);
        volume.write(2, Lpn(5), &page(3)).unwrap();
        for lpn in 0..2 {
            if let Ok(plan) = volume.plan_read(Lpn(lpn)) {
                volume.reader().fetch(&[plan], &mut [0; PAGE_BYTES]);
            }
            match read(&mut volume, Lpn(lpn)) {
                Ok(found) => assert_eq!(found, lpn + 1),
                Err(_) => lost += 1,
            }
        }
        volume.write(2, Lpn(6), &page(1)).unwrap();
        volume.write(2, Lpn(0), &page(4)).unwrap();
        volume.trim(2, Lpn(1)).unwrap();
        volume.checkpoint().unwrap();
        for (lpn, value) in [(0, 4), (1, 0), (5, 3), (6, 1)] {
            // Who leaves a page that is not its own takes what is there along.
            if let Ok(found) = read(&mut volume, Lpn(lpn)) {
                assert_eq!(found, value, "page {lpn}, packed page {number}");
            }
        }
    }
    assert!(lost > 0);
}

/// A volume whose history has more entries than a page of its table holds.
fn with_history() -> Identity {
    Identity {
        history: Some(HistoryIdentity {
            entries: 600,
            least_window: 0,
            protected: false,
        }),
        ..SHAPE.identity(Policy::Dedup)
    }
}

/// What the tables say of old versions: an entry, a link or a head that is wrong is told by check.
#[test]
fn a_wrong_link_of_old_versions_is_told_by_check() {
    let id = with_history();
    const ENTRY: usize = 20;
    let wrong: [(&str, u8, usize, &[u8], &str); 6] = [
        ("the head of a page", 12, 4 * 3, &[1], "head"),
        (
            "the head of a page in what is kept",
            13,
            4 * 2,
            &[1],
            "head",
        ),
        ("an older entry", 4, 60 * ENTRY + 16, &[1], "linked"),
        (
            "a page that does not have it",
            4,
            60 * ENTRY + 8,
            &[1],
            "entry",
        ),
        ("a gap nobody counts", 4, 60 * ENTRY + 8, &[0xff; 8], "gaps"),
        ("what no pin keeps", 6, 0, &[0; 8], "no pin keeps"),
    ];
    for (what, table, at, put, expected) in wrong {
        let medium = made(&id);
        let mut volume = open(&medium);
        let write = |volume: &mut Volume, n: u32| {
            let (now, lpn) = (u64::from(n), Lpn(n % 20));
            volume.write(now, lpn, &page(n % 30 + 1)).unwrap();
        };
        (0..20).for_each(|n| write(&mut volume, n));
        let instant = volume.snapshot(20).unwrap();
        (21..100).for_each(|n| write(&mut volume, n));
        // What the first two of these pages held at the snapshot is kept, and nothing else.
        volume.forget_before(200, instant + 2).unwrap();
        volume.close().unwrap();
        assert!(
            check(Arc::clone(&medium), true).unwrap().is_clean(),
            "{what}"
        );
        let medium = rewritten(&id, medium, |bytes, areas| {
            for leaf in leaves(bytes, areas, table) {
                let here = &mut bytes[leaf + 32 + at..][..put.len()];
                match put {
                    [bits] => here[0] ^= bits,
                    put => here.copy_from_slice(put),
                }
            }
        });
        let report = check(Arc::clone(&medium), true).unwrap();
        let is_told = |error: &String| error.contains("history") && error.contains(expected);
        assert!(report.errors.iter().any(is_told), "{what}: {report:?}");
    }
}

#[test]
fn pages_of_the_history_that_nobody_needs_may_rot() {
    let id = with_history();
    let medium = made(&id);
    let mut volume = open(&medium);
    for n in 0..700u32 {
        volume
            .write(u64::from(n), Lpn(n % 20), &page(n % 30 + 1))
            .unwrap();
    }
    volume.checkpoint().unwrap();
    let newest = volume.history_status().unwrap().newest;
    volume.forget_before(newest + 1, newest - 5).unwrap();
    volume.close().unwrap();
    let areas = Areas::new(&id).unwrap();
    let bytes = Arc::into_inner(medium).unwrap().into_bytes();
    let mut harmless = 0;
    for at in leaves(&bytes, &areas, 4) {
        let mut bytes = bytes.clone();
        bytes[at + 100] ^= 1;
        let medium = Arc::new(MemoryMedium::from_bytes(bytes));
        if let Ok((mut volume, _)) = Volume::open(medium) {
            assert_eq!(contents(&mut volume).len(), 20);
            harmless += 1;
        }
    }
    assert!(harmless > 0, "every page of the history is needed");
}

/// Whoever changes a row needs the pages above it, whichever row that is: they are read before the volume is used, also
/// where no row below them is in use.
#[test]
fn a_page_above_rows_that_nobody_needs_is_missed_by_an_opening() {
    let id = with_history();
    let medium = made(&id);
    let mut volume = open(&medium);
    volume.write(1, Lpn(0), &page(1)).unwrap();
    let instant = volume.snapshot_as(2, None, "one").unwrap();
    volume.checkpoint().unwrap();
    volume.delete_snapshot(3, instant).unwrap();
    volume.close().unwrap();
    let areas = Areas::new(&id).unwrap();
    let bytes = Arc::into_inner(medium).unwrap().into_bytes();
    let image = MemoryMedium::from_bytes(bytes.clone());
    let stored = Stored::open(&image, areas.store, id.key).unwrap();
    let mut above = Vec::new();
    for &table in Table::all(&id) {
        let mut note = |page: Result<&StoredPage<'_>, UnreadPage>| {
            let page = page?;
            if page.node.level > 0 {
                above.push(areas.store.slot(page.slot) as usize);
            }
            Ok::<_, MetadataError>(())
        };
        let all = Row(0)..Row(u32::MAX);
        stored.each_page(table.id(), all, &mut note).unwrap();
    }
    assert!(above.len() > 1, "{above:?}");
    for at in above {
        let mut bytes = bytes.clone();
        bytes[at + 4000] ^= 1;
        let medium = Arc::new(MemoryMedium::from_bytes(bytes));
        assert_damaged(&medium, &format!("page at {at}"));
    }
}
