//! Pages of the tables that are read when they are needed: what becomes of those that cannot be.

use std::collections::BTreeSet;
use std::sync::Arc;

use flashlore_content::PAGE_BYTES;
use flashlore_flash::{Lpn, ObjectId};
use flashlore_medium::{
    Failure, Faults, FaultyMedium, Medium, MemoryMedium, ReadFault, When, WriteFault,
};
use flashlore_metadata::{MetadataError, Row, Stored, StoredPage, UnreadPage};
use flashlore_volume::format::{Areas, Identity, Policy, Table};
use flashlore_volume::{
    Encoding, HistoryIdentity, MemoryShares, NandError, Volume, VolumeError, bytes_needed, check,
    create,
};

use crate::support::{Contents, FEW_PAGES, Shape, contents, page, read};

/// The map has three pages.
const WIDE: Shape = Shape {
    exported: 2500,
    blocks: 200,
    pages_per_block: 16,
    units_per_page: 2,
    alignment: 512,
    index_entries: 500,
    journal_bytes: 64 << 10,
};

/// Of these addresses something is written.
const STRIDE: u32 = 40;

type Flaky = Arc<FaultyMedium<MemoryMedium>>;

/// A volume with as few pages of tables in memory as can be, and what it holds: one page in so many has its number, and
/// one.
fn crowded(id: &Identity, stride: u32) -> (Flaky, Volume, Contents) {
    let medium = MemoryMedium::new(bytes_needed(id).unwrap() as usize);
    create(&medium, id).unwrap();
    let medium = Arc::new(FaultyMedium::new(medium, Faults::default()));
    let (mut volume, _) = Volume::open_within(Arc::clone(&medium), FEW_PAGES).unwrap();
    let mut expected = vec![0; id.exported as usize];
    for lpn in (0..id.exported).step_by(stride as usize) {
        volume.write(1, Lpn(lpn), &page(lpn + 1)).unwrap();
        expected[lpn as usize] = lpn + 1;
    }
    volume.checkpoint().unwrap();
    (medium, volume, expected)
}

/// Where the leaves of a table lie, in their order.
fn leaves(medium: &dyn Medium, id: &Identity, table: Table) -> Vec<u64> {
    let areas = Areas::new(id).unwrap();
    let stored = Stored::open(medium, areas.store, id.key).unwrap();
    let mut places = Vec::new();
    let mut note = |page: Result<&StoredPage<'_>, UnreadPage>| {
        let page = page?;
        if page.node.level == 0 {
            places.push(areas.store.slot(page.slot));
        }
        Ok::<_, MetadataError>(())
    };
    let all = Row(0)..Row(u32::MAX);
    stored.each_page(table.id(), all, &mut note).unwrap();
    places
}

fn unreadable(at: u64) -> Faults {
    Faults {
        unreadable: std::iter::once(at..at + PAGE_BYTES as u64).collect(),
        ..Faults::default()
    }
}

/// Memory that a recovery may need is for pages of the tables once it is over.
#[test]
fn pages_have_more_memory_once_the_volume_is_open() {
    let id = WIDE.identity(Policy::Dedup);
    let medium = Arc::new(MemoryMedium::new(bytes_needed(&id).unwrap() as usize));
    create(&medium, &id).unwrap();
    let shares = MemoryShares {
        tables: 300 * PAGE_BYTES as u64,
        ..FEW_PAGES
    };
    for shares in [FEW_PAGES, shares] {
        let (volume, _) = Volume::open_within(Arc::clone(&medium), shares).unwrap();
        let most = volume.table_state().most_memory;
        let few = 100 * PAGE_BYTES as u64;
        assert!(most == shares.tables || (shares.tables == 0 && most < few));
    }
}

/// An input/output error for the addresses of a page of the map, and nothing for the others.
#[test]
fn a_page_of_the_map_that_cannot_be_read_concerns_its_addresses_alone() {
    for policy in [Policy::Plain, Policy::Dedup] {
        let id = WIDE.identity(policy);
        let (medium, mut volume, expected) = crowded(&id, 1);
        let per_page = Table::Map.shape(&id).rows_per_page();
        let places = leaves(&*medium, &id, Table::Map);
        assert_eq!(places.len(), 3);
        // What is in memory is not read.
        for lpn in 2 * per_page..WIDE.exported {
            read(&mut volume, Lpn(lpn)).unwrap();
        }
        medium.set_faults(unreadable(places[0]));
        let mut errors = 0;
        for (lpn, &value) in (0..).zip(&expected) {
            match read(&mut volume, Lpn(lpn)) {
                Ok(found) => assert_eq!(found, value, "{policy:?} page {lpn}"),
                Err(VolumeError::Unreadable {
                    source: NandError::Tables(_),
                    ..
                }) if lpn < per_page => errors += 1,
                Err(other) => panic!("{policy:?} page {lpn}: {other}"),
            }
        }
        assert_eq!(errors, per_page, "{policy:?}");
        let refused = volume.write(2, Lpn(5), &page(7)).unwrap_err();
        assert!(
            matches!(refused, VolumeError::Unreadable { .. }),
            "{refused}"
        );
        let refused = volume.trim(2, Lpn(5)).unwrap_err();
        assert!(
            matches!(refused, VolumeError::Unreadable { .. }),
            "{refused}"
        );
        volume.write(3, Lpn(2400), &page(8)).unwrap();
        medium.set_faults(Faults::default());
        volume.write(4, Lpn(5), &page(9)).unwrap();
        let mut expected = expected;
        (expected[5], expected[2400]) = (9, 8);
        assert_eq!(contents(&mut volume), expected, "{policy:?}");
        volume.check().unwrap();
        volume.close().unwrap();
        assert!(
            check(Arc::clone(&medium), true).unwrap().is_clean(),
            "{policy:?}"
        );
    }
}

/// Whether a page can be read as a disk reads it: where it is planned, else by the volume.
fn is_readable(volume: &mut Volume, lpn: Lpn) -> bool {
    let planned = volume.plan_read(lpn).is_ok_and(|plan| {
        let mut bytes = [0; PAGE_BYTES];
        volume.reader().fetch(&[plan], &mut bytes).is_none()
    });
    planned || read(volume, lpn).is_ok()
}

/// What a scrub, a look at findings and reads meet in a page of the tables that cannot be read concerns nobody else: the
/// addresses of which it does not tell are told, no other unit is accused, and the volume goes on.
#[test]
fn who_looks_past_a_page_that_cannot_be_read_stops_nobody() {
    let id = Identity {
        encoding: Encoding {
            deltas: true,
            compression: true,
        },
        history: Some(HistoryIdentity {
            entries: 4000,
            least_window: 0,
            protected: false,
        }),
        ..WIDE.identity(Policy::Dedup)
    };
    let tables = [
        (Table::Map, true),
        (Table::Objects, true),
        (Table::Packs, true),
        (Table::Owners, false),
        (Table::Versions, false),
        (Table::Heads, false),
    ];
    for (table, hides) in tables {
        let (medium, mut volume, _) = crowded(&id, 1);
        medium.set_faults(unreadable(leaves(&*medium, &id, table)[0]));
        let (mut next, mut findings) = (Some(ObjectId(0)), Vec::new());
        while let Some(from) = next {
            let step = volume.scrub(from, 300);
            findings.extend(step.unreadable);
            next = step.next;
        }
        findings.extend(volume.take_findings());
        let told = { findings.iter() }.flat_map(|finding| finding.addresses.clone());
        let told: BTreeSet<Lpn> = told.collect();
        let lost = Lpn::each(Lpn(0)..Lpn(WIDE.exported));
        let lost: BTreeSet<Lpn> = lost.filter(|&lpn| !is_readable(&mut volume, lpn)).collect();
        assert_eq!(told, lost, "{table:?}");
        assert_eq!(!lost.is_empty(), hides, "{table:?}");
        assert!(
            findings.iter().all(|finding| !finding.unit.is_some()),
            "{findings:?}"
        );
        for finding in &findings {
            assert_eq!(volume.still_found(finding).as_ref(), Some(finding));
        }
        // What a change needs of its address is looked at before it is made; whose the unit is that it fills is not.
        if table != Table::Owners {
            for lpn in [0, 1] {
                let done = volume.write(9, Lpn(lpn), &page(5000 + lpn)).is_ok();
                assert_eq!(done, table == Table::Versions, "{table:?}: page {lpn}");
            }
            let done = volume.write(9, Lpn(2400), &page(9));
            done.unwrap_or_else(|why| panic!("{table:?}: {why}"));
        }
        assert_eq!(volume.failure(), None, "{table:?}");
        medium.set_faults(Faults::default());
        assert!(
            findings
                .iter()
                .all(|finding| volume.still_found(finding).is_none())
        );
        volume.close().unwrap();
        assert!(
            check(Arc::clone(&medium), true).unwrap().is_clean(),
            "{table:?}"
        );
    }
}

/// Where the medium fails under a page of the map a check goes on, and names the addresses.
#[test]
fn a_check_names_the_addresses_of_a_page_of_the_map_that_the_medium_does_not_give() {
    for policy in [Policy::Plain, Policy::Dedup] {
        let id = WIDE.identity(policy);
        let (medium, volume, _) = crowded(&id, 1);
        volume.close().unwrap();
        let places = leaves(&*medium, &id, Table::Map);
        medium.set_faults(unreadable(places[1]));
        let report = check(Arc::clone(&medium), true).unwrap();
        let (named, other): (Vec<_>, Vec<_>) = report
            .errors
            .iter()
            .partition(|error| error.contains("of the map cannot be read, those of"));
        assert_eq!(named.len(), 1, "{policy:?}: {report:?}");
        let expected = "logical pages 1016 to 2031 (4161536 bytes at 4161536): page 1 of level 0";
        assert!(named[0].contains(expected), "{policy:?}: {named:?}");
        assert_eq!(other.len(), 1, "{policy:?}: {report:?}");
        assert!(other[0].starts_with("what is stored of counts was not compared"));
        assert_eq!(report.mapped, 2500 - 1016, "{policy:?}");
        assert!(!report.is_clean(), "{policy:?}");
    }
}

/// Whatever read or write of the medium fails once in a change: either nothing was changed and all goes on, or nothing is
/// written any more, and the next opening has everything that was durable.
#[test]
fn a_failure_in_a_change_loses_nothing() {
    for policy in [Policy::Plain, Policy::Dedup] {
        let id = WIDE.identity(policy);
        let (mut went_on, mut ended, mut done) = (0, 0, 0);
        for nth in 1..30 {
            for is_read in [true, false] {
                let (medium, mut volume, expected) = crowded(&id, STRIDE);
                let once = When::Only(nth);
                medium.set_faults(Faults {
                    reads: is_read.then_some(ReadFault::Calls(once)),
                    writes: (!is_read).then_some(WriteFault {
                        when: once,
                        failure: Failure::Eio,
                    }),
                    ..Faults::default()
                });
                let changed = volume
                    .write(2, Lpn(40), &page(100))
                    .and_then(|()| volume.trim(3, Lpn(1200)));
                medium.set_faults(Faults::default());
                let what = format!("{policy:?}, {nth}, {is_read}: {changed:?}");
                done += u32::from(changed.is_ok());
                let later = volume
                    .write(4, Lpn(2400), &page(200))
                    .and_then(|()| volume.flush());
                match later {
                    Ok(()) => went_on += 1,
                    Err(_) => {
                        assert!(changed.is_err(), "{what}");
                        assert!(volume.failure().is_some(), "{what}");
                        ended += 1;
                    }
                }
                let goes_on = later.is_ok();
                if goes_on {
                    volume.check().unwrap_or_else(|why| panic!("{what}: {why}"));
                }
                drop(volume);
                let report = check(Arc::clone(&medium), true).unwrap();
                assert!(report.is_clean(), "{what}: {report:?}");
                let (mut volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
                volume.check().unwrap_or_else(|why| panic!("{what}: {why}"));
                for lpn in (0..WIDE.exported).step_by(STRIDE as usize) {
                    let before = expected[lpn as usize];
                    let found = read(&mut volume, Lpn(lpn)).unwrap();
                    let may_be = match lpn {
                        40 => vec![before, 100],
                        1200 => vec![before, 0],
                        2400 if goes_on => vec![200],
                        2400 => vec![before, 200],
                        _ => vec![before],
                    };
                    assert!(may_be.contains(&found), "{what}: page {lpn} holds {found}");
                    if changed.is_ok() && goes_on && [40, 1200].contains(&lpn) {
                        assert_ne!(found, before, "{what}: page {lpn}");
                    }
                }
            }
        }
        assert!(went_on > 20 && done > 5, "{went_on} {done}");
        assert!(ended > 0, "{policy:?}: {went_on} went on");
    }
}

/// Where it is not known which handles are free none is taken that somebody has: what is there stays readable as it is.
#[test]
fn a_page_of_free_handles_that_cannot_be_read_gives_away_nobodys_row() {
    for policy in [Policy::Dedup, Policy::DedupTrusted] {
        let id = WIDE.identity(policy);
        let (medium, mut volume, expected) = crowded(&id, 1);
        let places = leaves(&*medium, &id, Table::FreeHandles);
        assert_eq!(places.len(), 1);
        medium.set_faults(unreadable(places[0]));
        let mut refused = 0;
        for lpn in (0..WIDE.exported).rev().step_by(50) {
            // What other rows need takes its place in memory.
            let before = read(&mut volume, Lpn(lpn / 2)).unwrap();
            assert_eq!(before, expected[lpn as usize / 2], "{policy:?} page {lpn}");
            refused += u32::from(volume.write(2, Lpn(lpn), &page(9000 + lpn)).is_err());
        }
        assert!(refused > 0 && volume.failure().is_some(), "{policy:?}");
        medium.set_faults(Faults::default());
        for (lpn, &value) in (0..).zip(&expected) {
            let found = read(&mut volume, Lpn(lpn)).unwrap();
            let may_be = [value, 9000 + lpn];
            assert!(
                may_be.contains(&found),
                "{policy:?} page {lpn} holds {found}"
            );
        }
        drop(volume);
        let (mut volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
        assert_eq!(contents(&mut volume), expected, "{policy:?}");
    }
}
