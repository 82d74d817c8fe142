//! Who only looks changes nothing: no medium, no order, no count of accesses.

use super::{media, open, options, page};
use crate::element::Element;
use crate::icash::state::ICash;

/// What a request would change.
fn traces(element: &ICash) -> impl PartialEq + std::fmt::Debug {
    let statistics = element.statistics();
    (
        element.newest_blocks(400),
        (statistics.fast.writes, statistics.fast.syncs),
        (statistics.slow.writes, statistics.slow.syncs),
        (element.heatmap.recorded(), element.segments_used()),
        (element.pool.free(), element.status()),
        (statistics.reads, element.counters.fills),
    )
}

/// A reference that is frozen with its associate, blocks at home, in slots, in the log and in RAM, and a hole.
fn mixed() -> ICash {
    let media = media(&options(), 4);
    let mut element = open(&media, options());
    for block in [0, 1] {
        element.write_page(block, page(1, [1; 8]));
    }
    element.scan_now();
    for block in 2..9 {
        element.write_page(block, page(10 + block, [10 + block as u8; 8]));
    }
    element.flush().unwrap();
    while element.counters.references_frozen == 0 || element.is_on_fast(1) {
        assert!(element.replace_data_block().unwrap());
    }
    element.send_home(7);
    element.trim(8).unwrap();
    element.write_page(6, page(40, [40; 8]));
    element
}

impl ICash {
    fn is_on_fast(&self, block: u32) -> bool {
        let data = self.blocks.get(self.id(block)).data;
        data.is_some_and(|data| self.pool.is_resident(data))
    }
}

#[test]
fn a_look_reads_what_a_request_reads_and_changes_nothing() {
    let mut element = mixed();
    let before = format!("{:?}", traces(&element));
    let mut looked = Vec::new();
    for block in 0..10 {
        let lba = element.lba_of(block);
        let mut found = [1; 4096];
        element.look(lba, &mut found).unwrap();
        element.verify_block(lba).unwrap();
        element.check().unwrap();
        looked.push(found);
    }
    assert_eq!(format!("{:?}", traces(&element)), before);
    assert_eq!(element.newest_blocks(1), [Some(6)]);
    // The next request is the first to bring anything back.
    element.write_page(6, page(41, [41; 8]));
    assert!(!element.is_on_fast(1));
    looked[6] = page(41, [41; 8]);
    for (block, expected) in (0..).zip(looked) {
        element.holds(block, expected);
    }
    assert!(format!("{:?}", traces(&element)) != before && element.counters.fills > 0);
    assert!(element.is_on_fast(1));
}

#[test]
fn a_look_at_what_does_not_exist_is_an_error() {
    let mut element = mixed();
    assert!(element.look(u64::MAX, &mut [0; 4096]).is_err());
}
