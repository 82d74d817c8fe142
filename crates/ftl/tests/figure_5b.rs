//! The worked example of CA-SSD's Figure 5(b) (`spec/ca-ssd.md` section 3), event by event.

use crate::common::{Medium, medium};
use flashlore_content::{DedupOptions, Ledger, PageTag, ValueLedger};
use flashlore_flash::{Geometry, Lpn, ObjectId, Ppn, Tag, When};
use flashlore_ftl::{ContentFtl, FtlOptions, Outcome};

type Device = ContentFtl<PageTag, Medium<PageTag>, ValueLedger>;

const V1: PageTag = PageTag(1);
const V2: PageTag = PageTag(2);
const V3: PageTag = PageTag(3);

fn write(device: &mut Device, lpn: Lpn, value: PageTag) -> Outcome {
    let (outcome, _) = device.write(When::now(0), lpn, value, Tag::NONE).unwrap();
    outcome
}

/// LPT: where the content of a logical page lies.
fn lpt(device: &Device, lpn: Lpn) -> Option<Ppn> {
    let object = device.objects().get(lpn);
    (object != ObjectId(u32::MAX)).then(|| device.objects().at(object))
}

/// iLPT: the logical pages that a physical page serves.
fn ilpt(device: &Device, page: Ppn) -> Vec<u32> {
    (0..device.objects().len())
        .filter(|&lpn| lpt(device, Lpn(lpn)) == Some(page))
        .collect()
}

/// HPT from head to tail: value and where it lies.
fn hpt(device: &Device) -> Vec<(PageTag, Ppn)> {
    let objects = device.objects();
    let named = device.dedup().index.objects(objects);
    named
        .map(|object| (objects.content(object), objects.at(object)))
        .collect()
}

#[test]
fn figure_5b() {
    // Either order of H1 and H2 in the index is a start state of the figure.
    for first in [V1, V2] {
        let geometry = Geometry::single_plane(8, 4, 4096).unwrap();
        let medium = medium(&geometry);
        let dedup = DedupOptions {
            index_entries: Some(3),
            fingerprint_bits: 128,
            verify: false,
            bypass: None,
            out_of_line: false,
        };
        let ledger = ValueLedger::default();
        let mut device = ContentFtl::new(medium, FtlOptions::new(8), dedup, ledger).unwrap();
        let start = if first == V1 {
            [(1, V1), (2, V2)]
        } else {
            [(2, V2), (1, V1)]
        };
        for (lpn, value) in start {
            assert_eq!(write(&mut device, Lpn(lpn), value), Outcome::Programmed);
        }
        let (p1, p2) = (lpt(&device, Lpn(1)).unwrap(), lpt(&device, Lpn(2)).unwrap());
        assert_eq!((ilpt(&device, p1), ilpt(&device, p2)), (vec![1], vec![2]));
        device.restart_counters();

        // 1. WRITE(L3, V3), both new: a miss programs P3.
        assert_eq!(write(&mut device, Lpn(3), V3), Outcome::Programmed);
        let p3 = lpt(&device, Lpn(3)).unwrap();
        assert_eq!(
            (lpt(&device, Lpn(1)), lpt(&device, Lpn(2))),
            (Some(p1), Some(p2))
        );
        assert!(p3 != p1 && p3 != p2);
        assert_eq!(ilpt(&device, p3), [3]);
        let index = hpt(&device);
        assert_eq!(index[0], (V3, p3));
        assert!(index.len() == 3 && index.contains(&(V1, p1)) && index.contains(&(V2, p2)));
        assert_eq!(device.core().counters().programs(), 1);

        // 2. WRITE(L2, V1), an update: a hit; P2 and everything about it goes.
        assert_eq!(write(&mut device, Lpn(2), V1), Outcome::Shared);
        assert_eq!(
            (lpt(&device, Lpn(1)), lpt(&device, Lpn(2))),
            (Some(p1), Some(p1))
        );
        assert_eq!(lpt(&device, Lpn(3)), Some(p3));
        assert_eq!(ilpt(&device, p1), [1, 2]);
        assert_eq!(ilpt(&device, p3), [3]);
        assert!(ilpt(&device, p2).is_empty() && !device.core().blocks().is_valid(p2));
        assert!(device.core().blocks().is_valid(p1) && device.core().blocks().is_valid(p3));
        assert_eq!(hpt(&device), [(V1, p1), (V3, p3)]);
        assert_eq!(device.core().counters().programs(), 1);

        let census = device.ledger().census().unwrap();
        assert_eq!((census.unique, census.duplicate, census.reborn), (1, 0, 0));
        let counters = device.dedup_counters();
        assert_eq!(
            (counters.hits, counters.misses, counters.evictions),
            (1, 1, 0)
        );
        device.check().unwrap();
    }
}
