//! Reads that fail for a while: while a volume is opened, and while it is in use.

use std::sync::Arc;

use flashlore_flash::Lpn;
use flashlore_medium::{Faults, FaultyMedium, MemoryMedium, ReadFault, When};
use flashlore_volume::{Volume, VolumeError};

use super::killed::{Killed, SHAPE, SYSTEMS};
use super::verdict::{unreadable, unreadable_past};
use crate::support::{Draw, page};

fn sound(killed: &Killed) -> Arc<FaultyMedium<MemoryMedium>> {
    let inner = MemoryMedium::from_bytes(killed.image.to_vec());
    Arc::new(FaultyMedium::new(inner, Faults::default()))
}

fn failing(reads: ReadFault) -> Faults {
    Faults {
        reads: Some(reads),
        ..Faults::default()
    }
}

fn reads_of_an_opening(killed: &Killed) -> u64 {
    let medium = sound(killed);
    Volume::open(Arc::clone(&medium)).unwrap();
    medium.reads()
}

/// Lets reads fail in so many openings of a killed volume, one in each: it is not opened and nothing is written, and
/// the next opening finds everything.
fn fail_reads(killed: &Killed, openings: u32) {
    let reads = reads_of_an_opening(killed);
    let mut draw = Draw::new(5);
    for _ in 0..openings {
        let nth = 1 + u64::from(draw.below(reads as u32));
        let what = format!("{}, read {nth} of {reads}", killed.name);
        let medium = sound(killed);
        medium.set_faults(failing(ReadFault::Calls(When::Only(nth))));
        match Volume::open(Arc::clone(&medium)) {
            Err(VolumeError::Medium(_)) => {}
            Err(other) => panic!("{what}: {other}"),
            Ok(_) => panic!("{what}: opened"),
        }
        assert_eq!(medium.writes(), 0, "{what}");
        medium.set_faults(Faults::default());
        let (mut volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
        let bad = unreadable(&mut volume, &killed.contents, &what);
        assert!(bad.is_empty(), "{what}: {bad:?}");
        assert_eq!(unreadable_past(&mut volume, &killed.past, &what), 0);
    }
}

#[test]
fn a_read_that_fails_ends_an_opening_and_changes_nothing() {
    for system in SYSTEMS {
        fail_reads(&Killed::new(system, 3), 30);
    }
}

/// 210 openings of each system, of six volumes.
#[test]
#[ignore = "takes minutes"]
fn many_reads_that_fail_end_openings_and_change_nothing() {
    for system in SYSTEMS {
        for seed in 1..=6 {
            fail_reads(&Killed::new(system, seed), 35);
        }
    }
}

/// What cannot be read for a while, is there when it can be again, whatever collection did meanwhile.
#[test]
fn reads_that_fail_for_a_while_lose_nothing() {
    for system in SYSTEMS {
        for seed in 1..4 {
            let what = format!("{system}, seed {seed}");
            let killed = Killed::new(system, seed);
            let medium = sound(&killed);
            let (mut volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
            medium.set_faults(failing(ReadFault::Share {
                seed,
                per_mille: 20,
            }));
            let mut contents = killed.contents.clone();
            let mut draw = Draw::new(seed);
            let mut refused = 0;
            for n in 0..600 {
                let lpn = draw.below(SHAPE.exported / 2);
                let value = 1000 + draw.below(300);
                match volume.write(1 << 40, Lpn(lpn), &page(value)) {
                    Ok(()) => contents[lpn as usize] = value,
                    // What it was to be compared with or made of could not be read: nothing has changed.
                    Err(VolumeError::Unreadable { .. }) => refused += 1,
                    Err(error) => panic!("{what}: write {n}: {error}"),
                }
                if n % 20 == 19 {
                    volume.flush().unwrap_or_else(|e| panic!("{what}: {e}"));
                    while volume
                        .collect_step()
                        .unwrap_or_else(|e| panic!("{what}: {e}"))
                    {}
                }
            }
            medium.set_faults(Faults::default());
            println!("{what}: {refused} writes refused");
            volume.check().unwrap_or_else(|e| panic!("{what}: {e}"));
            let bad = unreadable(&mut volume, &contents, &what);
            assert!(bad.is_empty(), "{what}: {bad:?}");
            assert_eq!(
                unreadable_past(&mut volume, &killed.past, &what),
                0,
                "{what}"
            );
            volume.close().unwrap();
            let (mut volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
            let bad = unreadable(&mut volume, &contents, &what);
            assert!(bad.is_empty(), "{what}, opened again: {bad:?}");
        }
    }
}
