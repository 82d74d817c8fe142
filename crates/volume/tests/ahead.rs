//! Pages compared and encoded before they are written: the volume becomes what it would be without, byte for byte, however old the
//! plan is by then.

use crate::support;
use flashlore_flash::Lpn;

use std::collections::VecDeque;
use std::sync::Arc;

use flashlore_content::{PAGE_BYTES, PageBytes};
use flashlore_medium::{Medium, MemoryMedium};
use flashlore_volume::{
    Codec, Encoding, HistoryIdentity, Identity, Policy, Volume, bytes_needed, create,
};
use support::{Draw, POLICIES, Shape};

const PAGES: u32 = 40;
const STEPS: u32 = 2_000;

fn identity(policy: Policy, encoding: Encoding, history: bool) -> Identity {
    let shape = Shape {
        exported: PAGES,
        blocks: 26,
        pages_per_block: 4,
        units_per_page: 2,
        alignment: 512,
        index_entries: 64,
        journal_bytes: 64 << 10,
    };
    Identity {
        encoding,
        history: history.then_some(HistoryIdentity {
            entries: 300,
            least_window: 0,
            protected: false,
        }),
        ..shape.identity(policy)
    }
}

/// A page that resembles the others of its family, and may be one of them; some do not compress.
fn page(draw: &mut Draw) -> PageBytes {
    let mut page = [0; PAGE_BYTES];
    let family = draw.below(4);
    let mut same = Draw::new(u64::from(family) + 1);
    page.iter_mut()
        .for_each(|byte| *byte = same.below(if family == 0 { 4 } else { 256 }) as u8);
    for _ in 0..draw.below(40).saturating_sub(8) {
        page[draw.below(PAGE_BYTES as u32) as usize] = draw.below(256) as u8;
    }
    page
}

struct Store {
    medium: Arc<MemoryMedium>,
    volume: Volume,
}

impl Store {
    fn new(id: &Identity) -> Store {
        let medium = Arc::new(MemoryMedium::new(bytes_needed(id).unwrap() as usize));
        create(&medium, id).unwrap();
        let (volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
        Store { medium, volume }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.medium.len() as usize];
        self.medium.read(0, &mut bytes).unwrap();
        bytes
    }
}

/// Runs one history on two volumes; how many pages were compared and how many encoded ahead.
fn run(id: &Identity, seed: u64) -> (u32, u32) {
    let mut draw = Draw::new(seed);
    let (mut plain, mut ahead) = (Store::new(id), Store::new(id));
    let (preparer, reader) = (ahead.volume.preparer(), ahead.volume.reader());
    let mut codec = Codec::default();
    // Writes that are planned and not carried out yet.
    let mut planned = VecDeque::new();
    let (mut compared, mut encoded) = (0, 0);
    for now in 0..u64::from(STEPS) {
        let lpn = draw.below(PAGES);
        let bytes = page(&mut draw);
        let mut prepared = preparer.prepare(&bytes);
        let plan = ahead.volume.plan_write(Lpn(lpn), &prepared).unwrap();
        compared += u32::from(plan.compares());
        encoded += u32::from(plan.encodes());
        planned.push_back((lpn, bytes, plan));
        if planned.len() as u32 > draw.below(8) {
            let (lpn, bytes, plan) = planned.pop_front().unwrap();
            prepared = preparer.prepare(&bytes);
            reader.work_ahead(&mut codec, &plan, &mut prepared);
            plain.volume.write(now, Lpn(lpn), &bytes).unwrap();
            ahead
                .volume
                .write_prepared(now, Lpn(lpn), prepared)
                .unwrap();
            let mut found = [0; PAGE_BYTES];
            ahead.volume.read(Lpn(lpn), &mut found).unwrap();
            assert!(found == bytes, "{id:?}: page {lpn} at {now}");
        }
        let other = draw.below(PAGES);
        for volume in [&mut plain.volume, &mut ahead.volume] {
            match now % 50 {
                20 => volume.trim(now, Lpn(other)).unwrap(),
                30 => volume.flush().unwrap(),
                _ => {}
            }
        }
    }
    ahead.volume.check().unwrap();
    assert_eq!(
        plain.volume.encoding_counters(),
        ahead.volume.encoding_counters()
    );
    plain.volume.flush().unwrap();
    ahead.volume.flush().unwrap();
    assert!(plain.bytes() == ahead.bytes(), "{id:?}");
    (compared, encoded)
}

#[test]
fn what_is_done_ahead_changes_nothing() {
    for policy in POLICIES {
        for (deltas, compression) in [(true, false), (false, true), (true, true)] {
            let encoding = Encoding {
                deltas,
                compression,
            };
            for history in [false, true] {
                let (compared, encoded) = run(&identity(policy, encoding, history), 7);
                assert!(encoded > STEPS / 8, "{policy:?} {encoding:?}: {encoded}");
                assert_eq!(
                    compared > STEPS / 100,
                    policy == Policy::Dedup,
                    "{policy:?}: {compared}"
                );
            }
        }
    }
}

/// Nothing is read to be compared where digests are trusted or nothing is shared.
#[test]
fn a_volume_that_does_not_encode_compares_at_most() {
    for policy in POLICIES {
        let (compared, encoded) = run(&identity(policy, Encoding::default(), true), 3);
        assert_eq!(
            compared > STEPS / 100,
            policy == Policy::Dedup,
            "{policy:?}: {compared}"
        );
        assert_eq!(encoded, 0);
    }
}
