//! The mark of a volume in use: it is durable before an opening changes anything else, and an orderly close alone
//! takes it away. So whoever opens a volume is told that it was killed, lost its power, or is a copy of one in use.

use std::sync::Arc;

use flashlore_flash::Lpn;
use flashlore_medium::{CrashMedium, Medium, MemoryMedium, Style};
use flashlore_volume::open::rebuild_superblocks;
use flashlore_volume::{Identity, Policy, Volume, VolumeError, bytes_needed, check, create};

use crate::support::{POLICIES, Shape, contents, page};

/// Bytes of both superblocks.
const SUPERBLOCKS: usize = 8192;

fn identity(policy: Policy) -> Identity {
    Shape {
        exported: 24,
        blocks: 12,
        pages_per_block: 4,
        units_per_page: 2,
        alignment: 512,
        index_entries: 16,
        journal_bytes: 64 << 10,
    }
    .identity(policy)
}

fn bytes(medium: &dyn Medium) -> Vec<u8> {
    let mut bytes = vec![0; medium.len() as usize];
    medium.read(0, &mut bytes).unwrap();
    bytes
}

/// Whether the volume was closed, as a check and an opening say.
fn closed(image: Vec<u8>) -> bool {
    let medium = Arc::new(MemoryMedium::from_bytes(image));
    let checked = check(Arc::clone(&medium), true).unwrap();
    // A power cut may have torn one of the superblocks.
    assert!(
        checked.findings.is_empty() && checked.errors.is_empty(),
        "{checked:?}"
    );
    let (_, recovery) = Volume::open(medium).unwrap();
    assert_eq!(checked.recovery.closed, recovery.closed);
    recovery.closed
}

/// Opens, writes a value to every address, and closes.
fn used(medium: &Arc<impl Medium + 'static>, value: u32) -> Result<(), VolumeError> {
    let (mut volume, _) = Volume::open(Arc::clone(medium))?;
    for lpn in 0..volume.exported() {
        volume.write(u64::from(value), Lpn(lpn), &page(value))?;
    }
    volume.close()
}

#[test]
fn a_copy_right_after_a_checkpoint_is_told() {
    for policy in POLICIES {
        let id = identity(policy);
        let medium = Arc::new(MemoryMedium::new(bytes_needed(&id).unwrap() as usize));
        create(&*medium, &id).unwrap();
        assert!(closed(bytes(&*medium)), "a new volume");
        let (mut volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
        assert!(!closed(bytes(&*medium)), "only opened");
        for lpn in 0..20 {
            volume.write(7, Lpn(lpn), &page(3)).unwrap();
        }
        volume.checkpoint().unwrap();
        assert!(!closed(bytes(&*medium)), "after a checkpoint");
        volume.flush().unwrap();
        assert!(!closed(bytes(&*medium)), "after a flush");
        volume.close().unwrap();
        assert!(closed(bytes(&*medium)), "after the close");
    }
}

#[test]
fn whoever_does_not_know_says_not_closed() {
    let id = identity(Policy::Dedup);
    let medium = Arc::new(MemoryMedium::new(bytes_needed(&id).unwrap() as usize));
    create(&*medium, &id).unwrap();
    used(&medium, 1).unwrap();
    let old = bytes(&*medium)[..SUPERBLOCKS].to_vec();
    used(&medium, 2).unwrap();
    medium.write(0, &old).unwrap();
    rebuild_superblocks(&*medium).unwrap();
    assert!(!closed(bytes(&*medium)));
}

/// Where the power is cut while a closed volume is opened, used and closed, counted in calls.
fn stages(image: &[u8]) -> (u64, u64, u64) {
    let medium = Arc::new(CrashMedium::from_bytes(image.to_vec()));
    let (mut volume, recovery) = Volume::open(Arc::clone(&medium)).unwrap();
    assert!(recovery.closed);
    let opened = medium.calls();
    for lpn in 0..volume.exported() {
        volume.write(2, Lpn(lpn), &page(2)).unwrap();
    }
    let used = medium.calls();
    volume.close().unwrap();
    (opened, used, medium.calls())
}

#[test]
fn the_mark_is_there_from_before_the_first_change_until_after_the_last() {
    let (mut marked, mut unmarked) = (0, 0);
    for policy in POLICIES {
        let id = identity(policy);
        let medium = Arc::new(MemoryMedium::new(bytes_needed(&id).unwrap() as usize));
        create(&*medium, &id).unwrap();
        used(&medium, 1).unwrap();
        let before = bytes(&*medium);
        let (opened, used_until, end) = stages(&before);
        for cut in 1..=end {
            for (seed, style) in (0..).zip(Style::SEARCH) {
                let medium = Arc::new(CrashMedium::from_bytes(before.clone()));
                medium.cut_at(cut);
                used(&medium, 2).unwrap_err();
                let left = medium.survivors(seed, style);
                let is_closed = closed(left.clone());
                let what = format!("{policy:?}, cut at call {cut} of {end}, {style:?}");
                if is_closed && cut <= opened {
                    unmarked += 1;
                    assert!(left[SUPERBLOCKS..] == before[SUPERBLOCKS..], "{what}");
                } else if is_closed {
                    assert!(cut > used_until, "{what}");
                    let (mut volume, _) = Volume::open(MemoryMedium::from_bytes(left)).unwrap();
                    assert_eq!(contents(&mut volume), vec![2; 24], "{what}");
                    unmarked += 1;
                } else {
                    marked += 1;
                }
            }
        }
        used(&medium, 2).unwrap();
        assert!(closed(bytes(&*medium)));
    }
    // Both occur.
    assert!(marked > 0 && unmarked > 0, "{marked} {unmarked}");
}
