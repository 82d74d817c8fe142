//! A write of a page of a checkpoint's tables that never reached the medium: what lies there is the same page of an
//! earlier checkpoint, and holds by itself. The checkpoint is refused, or whoever needs that page is, whichever it is.

use std::sync::Arc;

use flashlore_content::PAGE_BYTES;
use flashlore_flash::Lpn;
use flashlore_medium::{Medium, MemoryMedium};
use flashlore_volume::{Volume, VolumeError, bytes_needed, check, create};

use super::killed::{SYSTEMS, identity};
use crate::support::loaded::Loaded;
use crate::support::page;
use crate::support::strike::Strike;

/// So many that a slot gets the page again that lay there before.
const CHECKPOINTS: u32 = 120;

/// What lies on the medium after each of some checkpoints.
fn checkpoints(system: &str) -> Vec<Vec<u8>> {
    let id = identity(system);
    let medium = Arc::new(MemoryMedium::new(bytes_needed(&id).unwrap() as usize));
    create(&*medium, &id).unwrap();
    let (mut volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
    let mut snapshot = None;
    let after = |n: u32| {
        for lpn in 0..20 {
            let value = n * 100 + lpn % 7;
            let now = u64::from(value);
            volume.write(now, Lpn(lpn), &page(value)).unwrap();
        }
        if id.history.is_some() {
            // The notes change too, and stay as many: one snapshot after the other has a name.
            let now = u64::from(n) * 100 + 50;
            if let Some(before) = snapshot {
                volume.delete_snapshot(now, before).unwrap();
            }
            let name = format!("s{n}");
            snapshot = Some(volume.snapshot_as(now, None, &name).unwrap());
        }
        volume.checkpoint().unwrap();
        let mut bytes = vec![0; medium.len() as usize];
        medium.read(0, &mut bytes).unwrap();
        bytes
    };
    (1..=CHECKPOINTS).map(after).collect()
}

/// The volume holds what a checkpoint of this number has.
fn expect_contents(volume: &mut Volume, n: u32) {
    for lpn in 0..20 {
        let mut found = [0; PAGE_BYTES];
        volume.read(Lpn(lpn), &mut found).unwrap();
        assert_eq!(found, page(n * 100 + lpn % 7), "page {lpn}");
    }
}

#[test]
fn a_page_of_the_tables_of_an_earlier_checkpoint_is_refused() {
    for system in SYSTEMS {
        let images = checkpoints(system);
        let mut count = 0;
        for (n, now) in images.iter().enumerate().skip(CHECKPOINTS as usize - 2) {
            let loaded = Loaded::of(&MemoryMedium::from_bytes(now.clone())).unwrap();
            let struck = images[..n].iter().flat_map(|before| {
                let older = loaded.older_tables(now, before);
                older.into_iter().map(move |at| (at, before))
            });
            for (at, before) in struck {
                let mut image = now.clone();
                let len = flashlore_metadata::PAGE_BYTES;
                assert!(Strike::Put { at, len }.on(&mut image, before));
                let medium = Arc::new(MemoryMedium::from_bytes(image));
                let checked = check(Arc::clone(&medium), false);
                let tells = !checked.is_ok_and(|it| it.is_clean());
                assert!(tells, "{system}: byte {at}");
                let (mut volume, _) = match Volume::open(medium) {
                    Err(VolumeError::Damaged(_)) => {
                        count += 1;
                        continue;
                    }
                    other => other.unwrap_or_else(|error| panic!("{system}: byte {at}: {error}")),
                };
                // Whoever needs its rows is told, if anybody does.
                if volume.check().is_ok() {
                    expect_contents(&mut volume, n as u32 + 1);
                } else {
                    assert!(volume.table_failures() > 0, "{system}: byte {at}");
                }
                count += 1;
            }
        }
        assert!(count > 0, "{system}: no page lay where it lay before");
    }
}
