//! Both superblocks were put back to an earlier state: the volume is refused before anything is written, by a check
//! too, and they can be derived from the rest.

use std::sync::Arc;

use flashlore_content::VolumeKey;
use flashlore_flash::Lpn;
use flashlore_medium::{Medium, MemoryMedium};
use flashlore_volume::open::rebuild_superblocks;
use flashlore_volume::{Identity, Volume, VolumeError, bytes_needed, check, create};

use super::killed::{SYSTEMS, identity};
use super::verdict::unreadable;
use crate::support::{Contents, page};

/// How a session ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Closed,
    Killed,
}

fn bytes(medium: &MemoryMedium) -> Vec<u8> {
    let mut bytes = vec![0; medium.len() as usize];
    medium.read(0, &mut bytes).unwrap();
    bytes
}

/// Opens the volume, writes some pages, flushes, and ends.
fn session(medium: &Arc<MemoryMedium>, contents: &mut Contents, value: u32, end: End) {
    let (mut volume, _) = Volume::open(Arc::clone(medium)).unwrap();
    for lpn in 0..20 {
        let value = value + lpn % 7;
        volume
            .write(u64::from(value), Lpn(lpn), &page(value))
            .unwrap();
        contents[lpn as usize] = value;
    }
    volume.trim(1, Lpn(value % 20)).unwrap();
    contents[(value % 20) as usize] = 0;
    volume.flush().unwrap();
    if end == End::Closed {
        volume.close().unwrap();
    }
}

/// A medium after some sessions, with the superblocks it had before the last `older` of them.
fn put_back(system: &str, ends: &[End], older: usize) -> (Arc<MemoryMedium>, Contents) {
    let id = identity(system);
    let medium = Arc::new(MemoryMedium::new(bytes_needed(&id).unwrap() as usize));
    create(&*medium, &id).unwrap();
    let mut contents = vec![0; id.exported as usize];
    let mut superblocks = Vec::new();
    for (n, &end) in (1..).zip(ends) {
        superblocks.push(bytes(&medium)[..8192].to_vec());
        session(&medium, &mut contents, 100 * n, end);
    }
    let mut now = bytes(&medium);
    now[..8192].copy_from_slice(&superblocks[ends.len() - older]);
    (Arc::new(MemoryMedium::from_bytes(now)), contents)
}

#[test]
fn superblocks_that_are_older_than_the_rest_are_refused_and_derived_from_it() {
    use End::{Closed, Killed};
    for system in SYSTEMS {
        for ends in [
            &[Closed, Closed, Closed][..],
            &[Closed, Killed],
            &[Closed, Killed, Killed],
            &[Killed, Killed, Killed, Closed],
            &[Closed, Killed, Closed, Killed],
        ] {
            for older in 1..ends.len() {
                let what = format!("{system}, {ends:?}, superblocks of {older} sessions before");
                let (medium, contents) = put_back(system, ends, older);
                let before = bytes(&medium);
                let refused = |result: Option<VolumeError>| {
                    matches!(result, Some(VolumeError::OldSuperblocks { .. }))
                };
                assert!(
                    refused(check(Arc::clone(&medium), true).err()),
                    "{what}: checked"
                );
                let opened = Volume::open(Arc::clone(&medium)).err();
                assert!(refused(opened), "{what}: opened");
                assert!(bytes(&medium) == before, "{what}: written to");
                rebuild_superblocks(&*medium).unwrap_or_else(|e| panic!("{what}: {e}"));
                assert!(
                    check(Arc::clone(&medium), true).unwrap().is_clean(),
                    "{what}"
                );
                let (mut volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
                assert_eq!(unreadable(&mut volume, &contents, &what), [], "{what}");
                volume.close().unwrap();
                assert!(
                    rebuild_superblocks(&*medium).is_err(),
                    "{what}: derived though they are new"
                );
            }
        }
    }
}

/// One copy is that of another volume, which was opened more often.
#[test]
fn a_superblock_of_another_volume_is_not_taken_for_its_own() {
    let own = identity("ca-ssd");
    let other = Identity {
        uuid: [2; 16],
        key: VolumeKey([5; 32]),
        ..own.clone()
    };
    let ended = |id: &Identity, sessions: u32| {
        let medium = Arc::new(MemoryMedium::new(bytes_needed(id).unwrap() as usize));
        create(&*medium, id).unwrap();
        let mut contents = vec![0; id.exported as usize];
        for n in 1..=sessions {
            session(&medium, &mut contents, 100 * n, End::Closed);
        }
        (bytes(&medium), contents)
    };
    let (image, contents) = ended(&own, 2);
    let (foreign, _) = ended(&other, 5);
    for copy in [0..4096, 4096..8192] {
        let mut image = image.clone();
        image[copy.clone()].copy_from_slice(&foreign[copy]);
        let medium = Arc::new(MemoryMedium::from_bytes(image));
        let checked = check(Arc::clone(&medium), true).unwrap();
        assert_eq!((checked.superblocks, checked.is_clean()), (1, false));
        let (mut volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
        assert_eq!(unreadable(&mut volume, &contents, "foreign"), []);
        volume.close().unwrap();
        // The opening has written its own over it.
        assert_eq!(check(Arc::clone(&medium), true).unwrap().superblocks, 2);
    }
}
