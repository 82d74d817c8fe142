//! A device that fails: the failure reaches the caller, nothing panics, and outside of a collection
//! nothing is lost or changed.

use crate::common::{Medium, medium};
use flashlore_content::PageTag;
use flashlore_flash::faults::{FaultError, Faulty, Odds};
use flashlore_flash::{Cause, Geometry, Lpn, Tag, When};
use flashlore_ftl::{FtlError, FtlOptions, PlainFtl};

type Media = Faulty<Medium<PageTag>>;

fn device(odds: Odds) -> PlainFtl<Media> {
    let geometry = Geometry::single_plane(16, 8, 4096).unwrap();
    let options = FtlOptions::new(64);
    let medium = Faulty::new(medium(&geometry), odds, 3);
    PlainFtl::new(medium, options).unwrap()
}

fn injected<T>(result: Result<T, FtlError<<Media as flashlore_flash::Flash>::Error>>) -> bool {
    match result {
        Ok(_) => false,
        Err(FtlError::Device(FaultError::Injected { .. })) => true,
        Err(other) => panic!("not an injected fault: {other}"),
    }
}

#[test]
fn failed_reads_and_writes_are_reported_and_leave_everything_as_it_was() {
    let mut ftl = device(Odds {
        read: 4,
        program: 4,
        erase: 0,
    });
    let mut stored = [None; 64];
    let (mut failed_writes, mut failed_reads) = (0, 0);
    // 88 writes fill 11 of 16 blocks: nothing is collected.
    for value in 0..88u32 {
        let lpn = value * 7 % 64;
        if injected(ftl.write(When::now(0), Lpn(lpn), PageTag(value), Tag::NONE)) {
            failed_writes += 1;
        } else {
            stored[lpn as usize] = Some(PageTag(value));
        }
        ftl.check().unwrap();
    }
    for lpn in 0..64 {
        let result = ftl.read(0, Lpn(lpn), Cause::Host, Tag::NONE);
        if let Ok((found, _)) = &result {
            assert_eq!(*found, stored[lpn as usize], "page {lpn}");
        }
        failed_reads += u32::from(injected(result));
        ftl.check().unwrap();
    }
    assert!(
        failed_writes > 5 && failed_reads > 5,
        "{failed_writes} {failed_reads}"
    );
    assert_eq!(ftl.core().counters().programs(), 88 - failed_writes);
}

#[test]
fn equal_seeds_fail_at_the_same_operations() {
    let odds = Odds {
        program: 3,
        ..Odds::default()
    };
    let run = || -> Vec<bool> {
        let mut ftl = device(odds);
        (0..60)
            .map(|lpn| injected(ftl.write(When::now(0), Lpn(lpn), PageTag(lpn), Tag::NONE)))
            .collect()
    };
    assert_eq!(run(), run());
    assert!(run().contains(&true) && run().contains(&false));
}

#[test]
fn a_block_whose_erase_fails_is_retired_and_nothing_is_lost() {
    // One erase in four fails, until too few blocks are left.
    let mut ftl = device(Odds {
        erase: 4,
        ..Odds::default()
    });
    let mut stored = [None; 64];
    let mut refused = 0;
    for i in 0..3000u32 {
        let lpn = i * 7 % 64;
        match ftl.write(When::now(0), Lpn(lpn), PageTag(i), Tag::NONE) {
            Ok(_) => stored[lpn as usize] = Some(PageTag(i)),
            Err(FtlError::WornOut {
                retired, blocks, ..
            }) => {
                assert_eq!((retired, blocks), (ftl.core().retired(), 16));
                refused += 1;
            }
            Err(other) => panic!("not worn out: {other}"),
        }
        ftl.check().unwrap();
    }
    let c = ftl.core().counters();
    assert_eq!(c.retired, u64::from(ftl.core().retired()));
    assert!(c.retired >= 4 && c.erases > c.retired && refused > 1000);
    for (lpn, stored) in (0..).zip(stored) {
        assert_eq!(
            ftl.read(0, Lpn(lpn), Cause::Host, Tag::NONE).unwrap().0,
            stored
        );
    }
}
