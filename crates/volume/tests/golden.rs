//! An image of every format version that is read, kept as a fixture: the present one opens and reads; an older one is
//! brought to it first, and reads the same.
//!
//! The image of the present version is written anew by
//! `FLASHLORE_WRITE_GOLDEN=1 cargo test -p flashlore-volume --test all golden`, which is needed only
//! together with a new version number: the image of a version never changes.

use std::path::PathBuf;
use std::sync::Arc;

use flashlore_content::{PAGE_BYTES, PageBytes, VolumeKey};
use flashlore_flash::Lpn;
use flashlore_medium::{CrashMedium, MemoryMedium, Style};
use flashlore_volume::format::old::OldAreas;
use flashlore_volume::format::old::tables::{TABLE_PAGE_BYTES, TableSlot};
use flashlore_volume::format::superblock::{OLDEST_VERSION, VERSION};
use flashlore_volume::{
    Encoding, Growth, HistoryIdentity, Identity, Policy, Volume, VolumeError, bytes_needed, check,
    create, load,
};

const PAGES: u32 = 48;

/// A volume that uses content in one way, or in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Dedup,
    DedupTrusted,
    Everything,
}

const KINDS: [Kind; 4] = [
    Kind::Plain,
    Kind::Dedup,
    Kind::DedupTrusted,
    Kind::Everything,
];

fn identity(kind: Kind) -> Identity {
    let all = kind == Kind::Everything;
    Identity {
        version: VERSION,
        policy: match kind {
            Kind::Plain => Policy::Plain,
            Kind::Dedup | Kind::Everything => Policy::Dedup,
            Kind::DedupTrusted => Policy::DedupTrusted,
        },
        history: all.then_some(HistoryIdentity {
            entries: 200,
            least_window: 0,
            protected: false,
        }),
        encoding: Encoding {
            deltas: all,
            compression: all,
        },
        uuid: *b"golden image v4.",
        key: VolumeKey(*b"a key that everybody may know...".first_chunk().unwrap()),
        created: 1_700_000_000_000_000_000,
        exported: PAGES,
        blocks: if all { 24 } else { 14 },
        pages_per_block: 4,
        units_per_page: 2,
        alignment: 512,
        index_entries: 32,
        journal_bytes: 64 << 10,
    }
}

fn page(value: u32) -> PageBytes {
    let mut page = [value as u8; PAGE_BYTES];
    page[..4].copy_from_slice(&value.to_le_bytes());
    page
}

/// What the checkpoint of the image holds: one page in five is the same.
fn before(lpn: Lpn) -> u32 {
    if lpn.0.is_multiple_of(5) {
        7
    } else {
        100 + lpn.0
    }
}

/// What the image holds: some of it in the checkpoint, some in pages and journal after it.
fn expected_at(lpn: Lpn) -> u32 {
    match lpn.0 {
        3 | 40.. => 0,
        30..40 => 1000 + lpn.0,
        4 => 7,
        _ => before(lpn),
    }
}

fn write(kind: Kind) -> Vec<u8> {
    let id = identity(kind);
    let medium = std::sync::Arc::new(MemoryMedium::new(bytes_needed(&id).unwrap() as usize));
    create(&medium, &id).unwrap();
    let (mut volume, _) = Volume::open(std::sync::Arc::clone(&medium)).unwrap();
    for lpn in 0..40 {
        volume
            .write(
                id.created + u64::from(lpn),
                Lpn(lpn),
                &page(before(Lpn(lpn))),
            )
            .unwrap();
    }
    volume.close().unwrap();
    let (mut volume, _) = Volume::open(std::sync::Arc::clone(&medium)).unwrap();
    if kind == Kind::Everything {
        let instant = id.created + SNAPSHOT;
        let kept = volume.snapshot_as(instant, None, "golden").unwrap();
        assert_eq!(kept, instant);
    }
    for lpn in 30..40 {
        volume
            .write(id.created, Lpn(lpn), &page(1000 + lpn))
            .unwrap();
    }
    volume.trim(0, Lpn(3)).unwrap();
    volume.write(id.created, Lpn(4), &page(7)).unwrap();
    if kind == Kind::Everything {
        volume.mark(0, "silver").unwrap();
        volume.purge(0, Lpn(38)..Lpn(39)).unwrap();
    }
    volume.flush().unwrap();
    drop(volume);
    std::sync::Arc::into_inner(medium).unwrap().into_bytes()
}

fn file(version: u32, kind: Kind) -> PathBuf {
    let name = format!("v{version}-{kind:?}.image.zst").to_lowercase();
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name)
}

/// When the snapshot is made, after the creation.
const SNAPSHOT: u64 = 1_000_000;

/// What the snapshot of an image with everything holds: what the first life wrote.
fn expect_snapshot(volume: &mut Volume) {
    let Ok(status) = volume.history_status() else {
        return;
    };
    let instant = identity(Kind::Everything).created + SNAPSHOT;
    assert_eq!(status.snapshots, [instant]);
    let purged = volume.missing_at(instant).unwrap();
    for lpn in (0..40).map(Lpn).filter(|lpn| !purged.contains(lpn)) {
        let mut found = [1; PAGE_BYTES];
        volume.read_at(instant, lpn, &mut found).unwrap();
        assert_eq!(found, page(before(lpn)), "page {lpn} at the snapshot");
    }
}

#[test]
fn images_of_this_version_open_and_read() {
    for kind in KINDS {
        let medium = Arc::new(MemoryMedium::from_bytes(image(VERSION, kind)));
        let report = check(Arc::clone(&medium), true).unwrap();
        assert!(report.is_clean(), "{report:?}");
        assert!(report.recovery.events >= 12, "{report:?}");
        let (mut volume, _) = Volume::open(medium).unwrap();
        volume.check().unwrap();
        for lpn in 0..PAGES {
            let mut found = [1; PAGE_BYTES];
            volume.read(Lpn(lpn), &mut found).unwrap();
            assert_eq!(found, page(expected_at(Lpn(lpn))), "{kind:?} page {lpn}");
        }
        expect_snapshot(&mut volume);
        if kind == Kind::Everything {
            let instant = identity(kind).created + SNAPSHOT;
            assert_eq!(volume.missing_at(instant).unwrap(), [Lpn(38)]);
            let notes = volume.notes();
            assert_eq!(notes.name_of(instant), Some("golden"));
            assert!(notes.mark("silver") > Some(instant));
            let [purge] = notes.purges() else {
                panic!("{notes:?}");
            };
            assert_eq!(purge.pages, Some((Lpn(38), Lpn(39))));
        }
        volume.write(0, Lpn(0), &page(5)).unwrap();
        volume.close().unwrap();
    }
}

fn image(version: u32, kind: Kind) -> Vec<u8> {
    let packed = std::fs::read(file(version, kind)).unwrap();
    zstd::decode_all(&packed[..]).unwrap()
}

/// A volume of an older version is refused as it is, checked as it is, and then brought to the present one.
#[test]
fn images_of_older_versions_are_upgraded() {
    for version in OLDEST_VERSION..VERSION {
        for kind in KINDS {
            let mut bytes = image(version, kind);
            let medium = Arc::new(MemoryMedium::from_bytes(bytes.clone()));
            let report = check(Arc::clone(&medium), true).unwrap();
            assert!(report.is_clean(), "{report:?}");
            let growth = Growth::upgrade(&load::superblock(&medium).unwrap()).unwrap();
            let refused = Volume::open(medium).map(|_| ()).unwrap_err();
            let expected =
                matches!(refused, VolumeError::OldVersion { found, .. } if found == version);
            assert!(expected, "{refused}");
            bytes.resize(growth.bytes() as usize, 0);
            let medium = std::sync::Arc::new(MemoryMedium::from_bytes(bytes));
            let found = growth.carry_out(std::sync::Arc::clone(&medium)).unwrap();
            assert!(!found.closed, "the images were left open");
            assert!(check(Arc::clone(&medium), true).unwrap().is_clean());
            let (mut volume, recovery) = Volume::open(medium).unwrap();
            assert!(recovery.closed, "an upgrade ends in order");
            assert_eq!(volume.identity().version, VERSION);
            volume.check().unwrap();
            for lpn in 0..PAGES {
                let mut found = [1; PAGE_BYTES];
                volume.read(Lpn(lpn), &mut found).unwrap();
                assert_eq!(
                    found,
                    page(expected_at(Lpn(lpn))),
                    "{version} {kind:?} page {lpn}"
                );
            }
            expect_snapshot(&mut volume);
            volume.write(0, Lpn(0), &page(5)).unwrap();
            volume.close().unwrap();
        }
    }
}

/// Packed pages of an older version are collected: up to version 5 they do not name the objects in them, and an object that
/// is packed anew takes more bytes than there.
#[test]
fn packed_pages_of_older_versions_are_collected() {
    let kind = Kind::Everything;
    for version in OLDEST_VERSION..=VERSION {
        let mut bytes = image(version, kind);
        let superblock = load::superblock(&MemoryMedium::from_bytes(bytes.clone())).unwrap();
        let growth = Growth::upgrade(&superblock).unwrap();
        bytes.resize(growth.bytes() as usize, 0);
        let medium = Arc::new(MemoryMedium::from_bytes(bytes));
        growth.carry_out(Arc::clone(&medium)).unwrap();
        let (mut volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
        for lpn in (1..40).step_by(2).map(Lpn) {
            volume.write(0, lpn, &page(5)).unwrap();
        }
        // What they held is in packed pages with what the others hold, and is not to be readable any more.
        volume.purge_and_erase(0, Lpn(0)..Lpn(PAGES)).unwrap();
        let repacked = volume.encoding_counters().unwrap().repacked;
        assert!(
            repacked > 10,
            "{version}: {repacked}, {:?}",
            volume.counters()
        );
        volume.check().unwrap();
        let untouched = |volume: &mut Volume| {
            for lpn in (0..PAGES).filter(|lpn| *lpn >= 40 || lpn % 2 == 0).map(Lpn) {
                let mut found = [1; PAGE_BYTES];
                volume.read(lpn, &mut found).unwrap();
                assert_eq!(found, page(expected_at(lpn)), "{version} page {lpn}");
            }
        };
        untouched(&mut volume);
        // A power loss: nothing was flushed since.
        volume.flush().unwrap();
        drop(volume);
        assert!(
            check(Arc::clone(&medium), true).unwrap().is_clean(),
            "{version}"
        );
        let (mut volume, _) = Volume::open(medium).unwrap();
        volume.check().unwrap();
        untouched(&mut volume);
    }
}

/// A power cut at any call of an upgrade leaves the old version or the new one, with everything.
#[test]
fn a_power_cut_at_any_call_of_an_upgrade_leaves_one_version_whole() {
    let (mut old, mut new) = (0, 0);
    for version in OLDEST_VERSION..VERSION {
        for kind in KINDS {
            let mut bytes = image(version, kind);
            let superblock = load::superblock(&MemoryMedium::from_bytes(bytes.clone())).unwrap();
            let upgrade = Growth::upgrade(&superblock).unwrap();
            bytes.resize(upgrade.bytes() as usize, 0);
            let medium = |cut: u64| {
                let medium = CrashMedium::from_bytes(bytes.clone()).with_garbage_after_discard();
                medium.cut_at(cut);
                Arc::new(medium)
            };
            let whole = medium(u64::MAX);
            upgrade.clone().carry_out(Arc::clone(&whole)).unwrap();
            for cut in 1..=whole.calls() {
                let medium = medium(cut);
                let done = upgrade.clone().carry_out(Arc::clone(&medium));
                assert!(done.is_err() || cut == whole.calls());
                let style = Style::SEARCH[cut as usize % Style::SEARCH.len()];
                let left = Arc::new(MemoryMedium::from_bytes(medium.survivors(cut, style)));
                match load::superblock(&*left).unwrap().identity.version {
                    VERSION => new += 1,
                    _ => {
                        let found = load::superblock(&*left).unwrap();
                        let upgrade = Growth::upgrade(&found).unwrap();
                        upgrade.carry_out(Arc::clone(&left)).unwrap();
                        old += 1;
                    }
                }
                assert!(check(Arc::clone(&left), true).unwrap().is_clean());
                let (mut volume, _) = Volume::open(left).unwrap();
                for lpn in 0..PAGES {
                    let mut found = [1; PAGE_BYTES];
                    volume.read(Lpn(lpn), &mut found).unwrap();
                    let what = format!("{version} {kind:?} cut {cut} page {lpn}");
                    assert_eq!(found, page(expected_at(Lpn(lpn))), "{what}");
                }
                expect_snapshot(&mut volume);
            }
        }
    }
    assert!(old > 50 && new > 10, "{old} old and {new} new");
}

/// Until version 4 a page of a table lay under a number of its own, and the root had a sum of all of them: one that holds by
/// itself and is not of this checkpoint is damage.
#[test]
fn a_page_of_an_old_version_that_is_not_of_its_checkpoint_is_refused() {
    let bytes = image(4, Kind::Everything);
    let superblock = load::superblock(&MemoryMedium::from_bytes(bytes.clone())).unwrap();
    let id = &superblock.identity;
    let areas = OldAreas::at(id, superblock.metadata);
    let (mut refused, mut unused) = (0, 0);
    for slot in (0..areas.slots).map(TableSlot) {
        let at = areas.slot(slot) as usize;
        if bytes[at..at + 4] != *b"FLTP" {
            continue;
        }
        let mut bytes = bytes.clone();
        let page = &mut bytes[at..at + TABLE_PAGE_BYTES];
        page[TABLE_PAGE_BYTES - 1] ^= 1;
        let sum = id
            .key
            .checksum(u64::from(slot), &[&page[..24], &page[32..]]);
        page[24..32].copy_from_slice(&sum.to_le_bytes());
        let growth = Growth::upgrade(&superblock).unwrap();
        bytes.resize(growth.bytes() as usize, 0);
        let medium = std::sync::Arc::new(MemoryMedium::from_bytes(bytes));
        match check(Arc::clone(&medium), false) {
            Err(VolumeError::Damaged(_)) => refused += 1,
            // It is that of the checkpoint before.
            Ok(report) if report.is_clean() => {
                unused += 1;
                continue;
            }
            other => panic!("slot {slot}: {other:?}"),
        }
        let upgraded = growth.carry_out(medium).map(|_| ());
        assert!(
            matches!(upgraded, Err(VolumeError::Damaged(_))),
            "slot {slot}: {upgraded:?}"
        );
    }
    assert!(refused > 5, "{refused} refused, {unused} not in use");
}

/// Not a comparison of bytes: what is written may differ within a version, what is read may not.
#[test]
fn what_is_written_today_reads_the_same() {
    for kind in KINDS {
        let (mut volume, _) = Volume::open(MemoryMedium::from_bytes(write(kind))).unwrap();
        for lpn in 0..PAGES {
            let mut found = [1; PAGE_BYTES];
            volume.read(Lpn(lpn), &mut found).unwrap();
            assert_eq!(found, page(expected_at(Lpn(lpn))), "{kind:?} page {lpn}");
        }
    }
}

#[test]
fn images_are_written_on_request() {
    if std::env::var_os("FLASHLORE_WRITE_GOLDEN").is_none() {
        return;
    }
    for kind in KINDS {
        let path = file(VERSION, kind);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, zstd::encode_all(&write(kind)[..], 19).unwrap()).unwrap();
    }
}
