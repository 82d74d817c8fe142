//! What collection moved since the checkpoint, and whose copy is damaged: where it lay something else lies by now, so it is
//! lost, alone.

use crate::support;

use std::sync::Arc;

use flashlore_content::PAGE_BYTES;
use flashlore_flash::{Lpn, Ppn};
use flashlore_medium::MemoryMedium;
use flashlore_volume::format::Areas;
use flashlore_volume::{Identity, Volume, VolumeError, bytes_needed, create};
use support::{POLICIES, Shape, page};

const SHAPE: Shape = Shape {
    exported: 26,
    blocks: 9,
    pages_per_block: 4,
    units_per_page: 2,
    alignment: 512,
    index_entries: 40,
    journal_bytes: 64 << 10,
};

fn block_of(ppn: Ppn) -> u32 {
    ppn.0 / (SHAPE.pages_per_block * SHAPE.units_per_page)
}

/// A volume of which nothing was checkpointed since it was filled, and a page that was moved since then, from a block that
/// holds another page by now: after so many writes at least.
fn moved(id: &Identity, medium: &Arc<MemoryMedium>, writes: u32) -> (Vec<u32>, Lpn, Ppn) {
    create(&**medium, id).unwrap();
    let (mut volume, _) = Volume::open(Arc::clone(medium)).unwrap();
    let mut values: Vec<u32> = (1..=SHAPE.exported).collect();
    for (lpn, &value) in (0..).zip(&values) {
        volume.write(1, Lpn(lpn), &page(value)).unwrap();
    }
    volume.checkpoint().unwrap();
    let checkpoint = volume.status().checkpoint;
    let at = |volume: &Volume, lpn: u32| volume.location(Lpn(lpn)).unwrap();
    let before: Vec<Ppn> = (0..SHAPE.exported).map(|lpn| at(&volume, lpn)).collect();
    for value in 1000..2000 {
        let lpn = value * 7 % (SHAPE.exported / 2) * 2;
        volume.write(1, Lpn(lpn), &page(value)).unwrap();
        values[lpn as usize] = value;
        volume.flush().unwrap();
        let now: Vec<Ppn> = (0..SHAPE.exported).map(|lpn| at(&volume, lpn)).collect();
        let is_used_again = |lpn: &usize| {
            let block = block_of(before[*lpn]);
            now[*lpn] != before[*lpn] && now.iter().any(|&unit| block_of(unit) == block)
        };
        // What the host did not write was moved.
        let found = (1..SHAPE.exported as usize).step_by(2).find(is_used_again);
        if let Some(lpn) = found.filter(|_| value - 1000 >= writes) {
            assert_eq!(volume.status().checkpoint, checkpoint);
            return (values, Lpn(lpn as u32), now[lpn]);
        }
    }
    panic!("collection moved nothing whose block was used again");
}

fn expect_contents(volume: &mut Volume, values: &[u32], lost: Option<Lpn>) {
    for (lpn, &value) in (0..).map(Lpn).zip(values) {
        let mut found = [0; PAGE_BYTES];
        let read = volume.read(lpn, &mut found);
        if lost == Some(lpn) {
            assert!(
                matches!(read, Err(VolumeError::Unreadable { .. })),
                "{read:?}"
            );
        } else {
            read.unwrap();
            assert_eq!(found, page(value), "page {lpn}");
        }
    }
    volume.check().unwrap();
}

#[test]
fn a_page_whose_copy_is_damaged_is_lost_alone() {
    for policy in POLICIES {
        let id = SHAPE.identity(policy);
        let areas = Areas::new(&id).unwrap();
        let mut times = 0;
        for writes in 0..40 {
            let medium = Arc::new(MemoryMedium::new(bytes_needed(&id).unwrap() as usize));
            let (mut values, page_of, copy) = moved(&id, &medium, writes);
            let record = areas.page(areas.page_of(copy)) + areas.record_in_page(copy).start as u64;
            medium.flip(record + 10, 3).unwrap();

            let (mut volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
            // It may have been moved twice, and an earlier copy be there.
            let found = volume.read(page_of, &mut [0; PAGE_BYTES]);
            let lost = found.is_err().then_some(page_of);
            times += u32::from(found.is_err());
            expect_contents(&mut volume, &values, lost);
            volume.checkpoint().unwrap();
            let (mut volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
            expect_contents(&mut volume, &values, lost);
            values[page_of.index()] = 5000;
            volume.write(1, page_of, &page(5000)).unwrap();
            volume.close().unwrap();
            let (mut volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
            expect_contents(&mut volume, &values, None);
        }
        assert!(times > 0, "{policy:?}: there always was another copy");
    }
}
