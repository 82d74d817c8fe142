//! A page is one read of the medium: what is read proves itself by the digest that its object has. Where that is not known
//! the record is read as well.

use std::sync::Arc;

use flashlore_content::PAGE_BYTES;
use flashlore_flash::Lpn;
use flashlore_volume::{Codec, Encoding, HistoryIdentity, Identity, Policy, Volume};

use crate::support::{Counted, Shape, counted, page};

const SHAPE: Shape = Shape {
    exported: 64,
    blocks: 24,
    pages_per_block: 4,
    units_per_page: 4,
    alignment: 512,
    index_entries: 64,
    journal_bytes: 64 << 10,
};

/// Reads of the medium for some pages that are fetched together.
fn reads(medium: &Counted, volume: &mut Volume, pages: std::ops::Range<u32>) -> u64 {
    let mut bytes = vec![1; pages.len() * PAGE_BYTES];
    let plans = pages.clone().map(|lpn| volume.plan_read(Lpn(lpn)).unwrap());
    let plans: Vec<_> = plans.collect();
    let before = medium.reads();
    assert_eq!(volume.reader().fetch(&plans, &mut bytes), None);
    let reads = medium.reads() - before;
    for (lpn, found) in pages.zip(bytes.chunks(PAGE_BYTES)) {
        let mut expected = [0; PAGE_BYTES];
        volume.read(Lpn(lpn), &mut expected).unwrap();
        assert_eq!(found, expected, "page {lpn}");
    }
    reads
}

#[test]
fn a_page_and_a_run_of_pages_are_one_read() {
    let versions = Some(HistoryIdentity {
        entries: 200,
        least_window: 0,
        protected: false,
    });
    let kinds = [
        (SHAPE.identity(Policy::Plain), 2),
        (SHAPE.identity(Policy::Dedup), 1),
        (SHAPE.identity(Policy::DedupTrusted), 1),
        (
            Identity {
                history: versions,
                ..SHAPE.identity(Policy::Plain)
            },
            1,
        ),
    ];
    for (id, expected) in kinds {
        let (medium, mut volume) = counted(&id);
        for lpn in 0..40 {
            volume.write(1, Lpn(lpn), &page(lpn + 1)).unwrap();
        }
        volume.flush().unwrap();
        let all = reads(&medium, &mut volume, 0..4);
        assert_eq!(all, expected, "four pages of {:?}", id.policy);
        assert_eq!(
            reads(&medium, &mut volume, 5..6),
            expected,
            "{:?}",
            id.policy
        );
        volume.close().unwrap();
        let (mut volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
        assert_eq!(reads(&medium, &mut volume, 5..6), expected, "opened anew");
    }
}

#[test]
fn a_delta_is_read_with_its_base_and_nothing_else() {
    let id = Identity {
        encoding: Encoding {
            deltas: true,
            compression: false,
        },
        ..SHAPE.identity(Policy::Dedup)
    };
    let (medium, mut volume) = counted(&id);
    let noise = |seed: u32| {
        let mut random = seed.wrapping_mul(0x9E37_79B9) | 1;
        [0; PAGE_BYTES].map(|_: u8| {
            random ^= random << 13;
            random ^= random >> 17;
            random ^= random << 5;
            random as u8
        })
    };
    for lpn in 0..40 {
        volume.write(1, Lpn(lpn), &noise(lpn + 1)).unwrap();
    }
    for round in 0..6 {
        for lpn in 0..40 {
            let mut page = noise(lpn + 1);
            page[7] = round;
            volume.write(1, Lpn(lpn), &page).unwrap();
        }
    }
    volume.checkpoint().unwrap();
    let deltas = (0..40).filter(|&lpn| volume.stored_as(Lpn(lpn)).is_some_and(|how| how.is_delta));
    let deltas: Vec<u32> = deltas.collect();
    assert!(deltas.len() > 10, "{} deltas", deltas.len());
    for lpn in deltas {
        assert_eq!(reads(&medium, &mut volume, lpn..lpn + 1), 2, "page {lpn}");
    }
}

#[test]
fn a_duplicate_is_read_before_its_write_and_not_by_it() {
    for compression in [false, true] {
        let id = Identity {
            encoding: Encoding {
                deltas: false,
                compression,
            },
            ..SHAPE.identity(Policy::Dedup)
        };
        let (medium, mut volume) = counted(&id);
        for lpn in 0..20 {
            volume.write(1, Lpn(lpn), &page(lpn + 1)).unwrap();
        }
        volume.checkpoint().unwrap();
        for lpn in 20..40 {
            let mut prepared = volume.preparer().prepare(&page(lpn - 19));
            let plan = volume.plan_write(Lpn(lpn), &prepared).unwrap();
            let before = medium.reads();
            let reader = volume.reader();
            reader.work_ahead(&mut Codec::default(), &plan, &mut prepared);
            let ahead = medium.reads();
            volume.write_prepared(2, Lpn(lpn), prepared).unwrap();
            let reads = (ahead - before, medium.reads() - ahead);
            // The unit, and its record: all of it must hold.
            assert_eq!(reads, (2, 0), "compression {compression}, page {lpn}");
            assert!(volume.stored_as(Lpn(lpn)).is_some_and(|how| how.shared));
        }
    }
}
