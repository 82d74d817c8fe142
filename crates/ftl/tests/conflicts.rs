//! The conflict checklist of deduplication, deltas and history together (`spec/matrix.md`), a scenario for
//! each line, in its order; then what the model test (`model`) found, each as small as it could be made.

use crate::common;

use common::policies::{DELTAS, VERSIONS};
use common::values::{Lengths, Page, V};
use common::{Medium, medium};
use flashlore_content::history::{HistoryOptions, Version};
use flashlore_content::{Content, DedupOptions, NoCensus};
use flashlore_flash::{Cause, Geometry, Lpn, ObjectId, Ppn, Tag, When};
use flashlore_ftl::buffer::WriteQueue;
use flashlore_ftl::content::parts::Past;
use flashlore_ftl::map_cache::Resident;
use flashlore_ftl::policies::history::VersionsOptions;
use flashlore_ftl::policies::options::{EncodingOptions, NEVER};
use flashlore_ftl::{ContentFtl, FtlOptions, Outcome, Policies, Unhashed, VictimChoice};

type Device = ContentFtl<V, Medium<Page>, NoCensus, Resident, Lengths, Past>;

const PAGES: u32 = 40;

/// Any second write of a page is a delta, of 1000 bytes; nothing is read-hot.
const DELTA: EncodingOptions = EncodingOptions {
    hot_writes: 1,
    hot_reads: NEVER,
    ..DELTAS
};

/// What is on.
#[derive(Debug, Clone)]
struct Policy {
    /// Entries of the fingerprint index; 0 for no deduplication.
    index: u32,
    /// Bits of a fingerprint; with fewer than 64 duplicates are compared.
    bits: u32,
    delta: Option<EncodingOptions>,
    /// Whether old versions are kept, and how.
    versions: Option<VersionsOptions>,
}

/// Everything is on, and nothing limited.
const ALL: Policy = Policy {
    index: 100,
    bits: 64,
    delta: Some(DELTA),
    versions: Some(VERSIONS),
};

/// Old versions in so many entries.
fn in_entries(most: u32) -> Option<VersionsOptions> {
    Some(VersionsOptions {
        history: HistoryOptions {
            max_entries: Some(most),
            schedule: None,
        },
        ..VERSIONS
    })
}

/// A device whose every step has an instant of its own, and is checked.
struct Small {
    ftl: Device,
    now: u64,
}

impl Small {
    fn new(policy: Policy) -> Self {
        let dedup = DedupOptions {
            index_entries: Some(policy.index),
            fingerprint_bits: policy.bits,
            verify: policy.bits < 64,
            bypass: None,
            out_of_line: false,
        };
        let encoder = Lengths {
            least: 1000,
            most: 1000,
            alone: 0,
        };
        let policies = Policies {
            dedup,
            encoding: policy.delta,
            versions: policy.versions,
            encoder,
        };
        let geometry = Geometry::single_plane(16, 8, 4096).unwrap();
        let medium = medium(&geometry);
        let mut options = FtlOptions::new(PAGES);
        options.collect.victims = VictimChoice::Fifo;
        let ftl = ContentFtl::with_policies(medium, options, policies, NoCensus, Resident);
        let mut ftl = ftl.unwrap();
        ftl.begin_history();
        Small { ftl, now: 0 }
    }

    fn tick(&mut self) {
        self.now += 1;
        self.ftl.set_instant(self.now);
    }

    /// Writes a page at an instant of its own.
    fn write(&mut self, lpn: Lpn, value: u32) -> Outcome {
        self.tick();
        self.write_at(lpn, value)
    }

    fn write_at(&mut self, lpn: Lpn, value: u32) -> Outcome {
        let now = When::now(self.now);
        let done = self.ftl.write(now, lpn, V(value), Tag::NONE);
        self.ftl.check().unwrap();
        done.unwrap().0
    }

    fn trim(&mut self, lpn: Lpn) {
        self.tick();
        self.ftl.trim(lpn).unwrap();
        self.ftl.check().unwrap();
    }

    fn rewind_to(&mut self, instant: u64) {
        self.tick();
        self.ftl.rewind_to(instant).unwrap();
        self.ftl.check().unwrap();
    }

    fn advance(&mut self, to: u64) {
        self.ftl.advance_window(to);
        self.ftl.check().unwrap();
    }

    fn read(&mut self, lpn: Lpn) -> Option<u32> {
        let read = self.ftl.read(self.now, lpn, Cause::Host, Tag::NONE);
        read.unwrap().0.map(|page| page.value().0)
    }

    fn object_at(&self, lpn: Lpn, instant: u64) -> Option<ObjectId> {
        match self.ftl.version_at(lpn, instant).unwrap() {
            Version::Object(object) => Some(object),
            _ => None,
        }
    }

    /// What a page held at an instant, read from where it lies.
    fn at(&mut self, lpn: Lpn, instant: u64) -> Option<u32> {
        let object = self.object_at(lpn, instant)?;
        Some(self.ftl.read_version(object).unwrap().value().0)
    }

    fn object(&self, lpn: Lpn) -> ObjectId {
        self.ftl.objects().object_of(lpn).unwrap()
    }

    fn base_of(&self, lpn: Lpn) -> ObjectId {
        let (_, base) = self.ftl.objects().packed(self.object(lpn)).unwrap();
        base
    }

    fn is_delta(&self, lpn: Lpn) -> bool {
        self.ftl.objects().is_delta(self.object(lpn))
    }

    /// References of an object: of pages, of old versions, of deltas.
    fn references(&self, object: ObjectId) -> (u32, u32, u32) {
        let objects = self.ftl.objects();
        (
            objects.references(object),
            objects.kept(object),
            objects.pins(object),
        )
    }

    fn place(&self, object: ObjectId) -> Ppn {
        self.ftl.objects().at(object)
    }

    fn is_valid(&self, ppn: Ppn) -> bool {
        self.ftl.core().blocks().is_valid(ppn)
    }

    /// Trims a page of the upper half, writes a value there that the index does not learn of, and forgets what was.
    fn fill(&mut self, number: u32) {
        let lpn = PAGES / 2 + number % (PAGES / 2);
        self.trim(Lpn(lpn));
        self.tick();
        let (now, filler) = (When::now(self.now), V(1_000_000 + self.now as u32));
        let off = Unhashed::Off;
        let written = self
            .ftl
            .write_unhashed(now, Lpn(lpn), filler, off, Tag::NONE);
        written.unwrap();
        self.ftl.check().unwrap();
        self.advance(self.now);
    }

    /// The same until an object lies elsewhere.
    fn collect(&mut self, object: ObjectId) {
        let before = self.place(object);
        let moved = (0..1000).any(|number| {
            self.fill(number);
            self.place(object) != before
        });
        assert!(moved, "object {object} was never collected");
    }

    /// Trims the upper half of the pages and writes new values, so often that every block was collected.
    fn collect_all(&mut self) {
        let erases = self.ftl.core().counters().erases + 64;
        for number in 0.. {
            if self.ftl.core().counters().erases >= erases {
                return;
            }
            let lpn = PAGES / 2 + number % (PAGES / 2);
            self.trim(Lpn(lpn));
            self.write(Lpn(lpn), 1_000_000 + self.now as u32);
        }
    }
}

#[test]
fn a_shared_base_that_all_its_pages_left_stays_for_the_delta() {
    let mut device = Small::new(Policy {
        versions: None,
        ..ALL
    });
    assert_eq!(device.write(Lpn(0), 1), Outcome::Programmed);
    assert_eq!(device.write(Lpn(1), 1), Outcome::Shared);
    assert_eq!(device.write(Lpn(2), 1), Outcome::Shared);
    assert_eq!(device.write(Lpn(0), 2), Outcome::Packed);
    let base = device.base_of(Lpn(0));
    assert_eq!(device.references(base), (2, 0, 1));
    // One page leaves by a trim, the other by a write.
    device.trim(Lpn(1));
    assert_eq!(device.write(Lpn(2), 2), Outcome::Shared);
    assert_eq!(device.references(base), (0, 0, 1));
    device.collect_all();
    assert_eq!(
        (device.read(Lpn(0)), device.read(Lpn(2))),
        (Some(2), Some(2))
    );
    device.trim(Lpn(0));
    assert_eq!(device.read(Lpn(2)), Some(2));
    device.trim(Lpn(2));
    assert!(
        !device.ftl.objects().is_alive(base),
        "nothing needs it any more"
    );
}

#[test]
fn two_pages_hold_different_deltas_from_one_base() {
    let mut device = Small::new(Policy {
        versions: None,
        ..ALL
    });
    device.write(Lpn(0), 1);
    device.write(Lpn(1), 1);
    assert_eq!(device.write(Lpn(0), 2), Outcome::Packed);
    assert_eq!(device.write(Lpn(1), 3), Outcome::Packed);
    let base = device.base_of(Lpn(0));
    assert_eq!(device.base_of(Lpn(1)), base);
    assert_eq!(device.references(base), (0, 0, 2));
    device.collect_all();
    assert_eq!(
        (device.read(Lpn(0)), device.read(Lpn(1))),
        (Some(2), Some(3))
    );
    // A newer delta of one, and the end of it, are nothing to the other.
    assert_eq!(device.write(Lpn(0), 4), Outcome::Packed);
    device.trim(Lpn(0));
    assert_eq!(device.references(base), (0, 0, 1));
    device.collect_all();
    assert_eq!((device.read(Lpn(0)), device.read(Lpn(1))), (None, Some(3)));
}

#[test]
fn collection_moves_a_value_that_a_page_an_old_version_and_a_delta_need() {
    let mut device = Small::new(ALL);
    device.write(Lpn(0), 1);
    device.write(Lpn(1), 1);
    device.ftl.snapshot(2).unwrap();
    assert_eq!(device.write(Lpn(0), 2), Outcome::Packed);
    let base = device.object(Lpn(1));
    let before = device.place(base);
    assert_eq!(device.references(base), (1, 1, 1));
    device.collect_all();
    assert_ne!(device.place(base), before, "it was moved");
    assert_eq!(device.references(base), (1, 1, 1));
    let all = |d: &mut Small| {
        (
            d.read(Lpn(1)),
            d.read(Lpn(0)),
            d.at(Lpn(0), 2),
            d.at(Lpn(1), 2),
        )
    };
    assert_eq!(all(&mut device), (Some(1), Some(2), Some(1), Some(1)));
    // It ends with the last of its references, whichever that is.
    device.trim(Lpn(1));
    device.trim(Lpn(0));
    device.advance(device.now);
    assert_eq!(device.references(base), (0, 2, 0));
    assert_eq!(
        (device.at(Lpn(0), 2), device.at(Lpn(1), 2)),
        (Some(1), Some(1))
    );
    let place = device.place(base);
    assert!(device.ftl.delete_snapshot(2));
    assert!(!device.is_valid(place) && !device.ftl.objects().is_alive(base));
}

#[test]
fn a_return_finds_a_delta_of_which_the_base_was_merged() {
    for window_passes in [false, true] {
        let mut device = Small::new(Policy {
            index: 0,
            delta: Some(EncodingOptions {
                hot_reads: 1,
                ..DELTA
            }),
            ..ALL
        });
        device.write(Lpn(0), 1);
        assert_eq!(device.write(Lpn(0), 2), Outcome::Packed);
        let (base, then) = (device.base_of(Lpn(0)), device.now);
        assert_eq!(device.read(Lpn(0)), Some(2));
        let now = When::now(device.now);
        assert!(device.ftl.merge_if_read_hot(now, Lpn(0)).unwrap());
        assert!(!device.is_delta(Lpn(0)));
        assert_eq!(device.references(base), (0, 1, 0));
        device.write(Lpn(0), 3);
        if window_passes {
            device.advance(then);
            assert!(!device.ftl.objects().is_alive(base));
        }
        assert_eq!(device.at(Lpn(0), then), Some(2));
        device.rewind_to(then);
        assert_eq!(device.read(Lpn(0)), Some(2));
        device.rewind_to(device.now - 1);
        assert_eq!(device.read(Lpn(0)), Some(3));
    }
}

/// Collection meets the base of a delta whose page it lets share another object with that value: the
/// delta stays for an old version, and so must its base.
#[test]
fn collection_merges_a_delta_that_an_old_version_needs() {
    let mut device = Small::new(Policy {
        index: 2,
        delta: Some(EncodingOptions {
            hot_reads: 1,
            ..DELTA
        }),
        ..ALL
    });
    // Collection has a block open from now on.
    device.write(Lpn(9), 100);
    device.collect(device.object(Lpn(9)));
    device.write(Lpn(0), 1);
    assert_eq!(device.write(Lpn(0), 2), Outcome::Packed);
    let (base, delta) = (device.base_of(Lpn(0)), device.object(Lpn(0)));
    assert_eq!(device.write(Lpn(1), 2), Outcome::Shared);
    let then = device.now;
    device.ftl.snapshot(then).unwrap();
    device.trim(Lpn(1));
    device.advance(device.now);
    assert_eq!(device.references(delta), (1, 1, 0));
    assert_eq!(device.references(base), (0, 0, 1));
    // The index forgets the delta, so its value is stored once more.
    device.write(Lpn(2), 8);
    device.write(Lpn(3), 9);
    assert_eq!(device.write(Lpn(4), 2), Outcome::Programmed);
    assert_eq!(device.read(Lpn(0)), Some(2));
    device.collect(base);
    assert_eq!(
        device.object(Lpn(0)),
        device.object(Lpn(4)),
        "it was merged"
    );
    assert_eq!(device.references(delta), (0, 1, 0));
    assert_eq!(
        (device.read(Lpn(0)), device.at(Lpn(1), then)),
        (Some(2), Some(2))
    );
}

#[test]
fn a_trimmed_page_comes_back_with_the_base_of_its_delta() {
    let mut device = Small::new(ALL);
    device.write(Lpn(0), 1);
    assert_eq!(device.write(Lpn(0), 2), Outcome::Packed);
    let (base, then) = (device.base_of(Lpn(0)), device.now);
    device.ftl.snapshot(then).unwrap();
    device.trim(Lpn(0));
    let trimmed = device.now;
    device.ftl.snapshot(trimmed).unwrap();
    assert_eq!(device.read(Lpn(0)), None);
    device.collect_all();
    // The snapshot keeps the delta, and that its base.
    device.advance(trimmed);
    assert_eq!(device.references(base), (0, 0, 1));
    device.rewind_to(then);
    assert_eq!(device.read(Lpn(0)), Some(2));
    device.rewind_to(trimmed);
    assert_eq!(
        (device.read(Lpn(0)), device.at(Lpn(0), then)),
        (None, Some(2))
    );
}

#[test]
fn a_write_revives_an_old_version_that_the_window_passes_at_that() {
    // The third entry makes the history full, and the first two go.
    let mut device = Small::new(Policy {
        delta: None,
        versions: in_entries(3),
        ..ALL
    });
    device.write(Lpn(0), 1);
    device.write(Lpn(0), 2);
    let old = device.object_at(Lpn(0), 1).unwrap();
    device.advance(1);
    assert_eq!(device.references(old), (0, 1, 0));
    device.write(Lpn(1), 3);
    assert_eq!(device.references(old), (0, 1, 0));
    assert_eq!(device.write(Lpn(2), 1), Outcome::Shared);
    assert_eq!(device.object(Lpn(2)), old);
    assert_eq!(
        device.references(old),
        (1, 0, 0),
        "the window has passed it"
    );
    device.collect_all();
    assert_eq!(device.read(Lpn(2)), Some(1));
}

#[test]
fn power_fails_while_the_queue_holds_two_versions_of_a_page() {
    let changes = [(0, 1), (9, 2), (0, 3), (9, 4), (5, 5)];
    for flushed in [None, Some(0), Some(9)] {
        let mut device = Small::new(ALL);
        let mut queue = WriteQueue::new(8, 1);
        for (lpn, value) in changes {
            device.tick();
            assert!(queue.push(Lpn(lpn), (value, device.now)));
        }
        for place in flushed.map_or(Vec::new(), |lpn| queue.flush_bucket_of(Lpn(lpn))) {
            let (lpn, (value, arrival)) = queue.change(place);
            device.ftl.set_instant(arrival);
            device.write_at(lpn, value);
            queue.free(place); // acknowledged, where that waits for the program
        }
        // Power fails: the queue is gone. Of a page all versions went on, or none did.
        let held = queue.held();
        drop(queue);
        let survived = |lpn| flushed == Some(lpn);
        assert_eq!(
            held as usize,
            changes.len() - changes.iter().filter(|c| survived(c.0)).count()
        );
        for instant in 0..=device.now {
            for lpn in [0, 5, 9] {
                let arrived = (1..)
                    .zip(changes)
                    .filter(|&(at, (page, _))| at <= instant && page == lpn);
                let last = arrived.last().map(|(_, (_, value))| value);
                let expected = last.filter(|_| survived(lpn));
                assert_eq!(device.at(Lpn(lpn), instant), expected, "{lpn} at {instant}");
            }
        }
        // A change acknowledged when it was queued may be lost though a later one of another page is not.
        let inverted = device.read(Lpn(9)).is_some() && device.read(Lpn(0)).is_none();
        assert_eq!(inverted, flushed == Some(9));
    }
}

#[test]
fn a_value_that_the_index_forgot_becomes_a_base() {
    let mut device = Small::new(Policy {
        index: 1,
        versions: None,
        ..ALL
    });
    device.write(Lpn(0), 1);
    device.write(Lpn(1), 1);
    let base = device.object(Lpn(0));
    assert_eq!(device.write(Lpn(5), 9), Outcome::Programmed);
    assert!(!device.ftl.objects().is_indexed(base));
    assert_eq!(device.write(Lpn(0), 2), Outcome::Packed);
    assert_eq!(device.write(Lpn(1), 3), Outcome::Packed);
    assert_eq!(device.references(base), (0, 0, 2));
    // A second copy of its value is indexed: the death of the base is nothing to it.
    assert_eq!(device.write(Lpn(6), 1), Outcome::Programmed);
    device.trim(Lpn(0));
    device.trim(Lpn(1));
    assert!(!device.ftl.objects().is_alive(base));
    assert_eq!(device.write(Lpn(7), 1), Outcome::Shared);
    assert_eq!(
        (device.read(Lpn(6)), device.read(Lpn(7))),
        (Some(1), Some(1))
    );
}

#[test]
fn the_window_passes_the_version_that_was_the_base_of_a_newer_one() {
    let mut device = Small::new(Policy { index: 0, ..ALL });
    device.write(Lpn(0), 1);
    assert_eq!(device.write(Lpn(0), 2), Outcome::Packed);
    let base = device.base_of(Lpn(0));
    assert_eq!(device.references(base), (0, 1, 1));
    device.advance(device.now);
    assert_eq!(device.references(base), (0, 0, 1), "it is not freed");
    device.collect_all();
    assert_eq!(device.read(Lpn(0)), Some(2));
    // The same again, where the delta is an old version by now.
    assert_eq!(device.write(Lpn(0), 3), Outcome::Packed);
    assert_eq!(device.base_of(Lpn(0)), base);
    let before = device.now - 1;
    device.ftl.snapshot(before).unwrap();
    device.advance(device.now);
    assert_eq!(device.references(base), (0, 0, 2));
    device.trim(Lpn(0));
    device.advance(device.now);
    assert_eq!(device.references(base), (0, 0, 1));
    device.collect_all();
    assert_eq!(device.at(Lpn(0), before), Some(2));
    assert!(device.ftl.delete_snapshot(before));
    assert!(!device.ftl.objects().is_alive(base));
}

#[test]
fn a_snapshot_keeps_a_page_that_lost_its_address() {
    let mut device = Small::new(ALL);
    device.write(Lpn(0), 1);
    let (then, object) = (device.now, device.object(Lpn(0)));
    device.ftl.snapshot(then).unwrap();
    device.trim(Lpn(0));
    // The window passes it under pressure, and the page it lies on is collected.
    let before = device.place(object);
    device.collect_all();
    assert!(device.ftl.versions().unwrap().history.oldest() > then);
    assert_ne!(device.place(object), before);
    assert_eq!(device.references(object), (0, 1, 0));
    assert_eq!(
        (device.read(Lpn(0)), device.at(Lpn(0), then)),
        (None, Some(1))
    );
    let place = device.place(object);
    assert!(device.ftl.delete_snapshot(then));
    assert!(!device.is_valid(place) && !device.ftl.objects().is_alive(object));
    assert!(device.ftl.version_at(Lpn(0), then).is_err());
}

/// The next value from `from` on with the fingerprint of another.
fn colliding(value: u32, bits: u32, from: u32) -> u32 {
    let of = |value| V(value).fingerprint(bits);
    (from..)
        .find(|&v| v != value && of(v) == of(value))
        .unwrap()
}

#[test]
fn the_value_with_the_fingerprint_of_a_write_may_end_while_room_is_made_for_it() {
    const BITS: u32 = 8;
    let mut device = Small::new(Policy {
        bits: BITS,
        delta: None,
        ..ALL
    });
    device.write(Lpn(0), 1);
    device.write(Lpn(0), 2);
    while u64::from(device.ftl.objects().live()) < device.ftl.core().most_live() {
        device.tick();
        let (now, lpn) = (When::now(device.now), device.now as u32 % PAGES);
        let filler = V(1000 + lpn);
        let written = device
            .ftl
            .write_unhashed(now, Lpn(lpn), filler, Unhashed::Off, Tag::NONE);
        written.unwrap();
    }
    let old = device.object_at(Lpn(0), 1).unwrap();
    let written = colliding(1, BITS, 10);
    assert_eq!(device.ftl.candidate(V(written)), Some(old));
    assert_eq!(device.write(Lpn(1), written), Outcome::Programmed);
    assert!(
        device.ftl.version_at(Lpn(0), 1).is_err(),
        "it had to make room"
    );
    assert_eq!(device.read(Lpn(1)), Some(written));
}

#[test]
fn a_merge_does_not_share_another_value_with_the_same_fingerprint() {
    const BITS: u32 = 8;
    let hot = EncodingOptions {
        hot_reads: 1,
        ..DELTA
    };
    let mut device = Small::new(Policy {
        bits: BITS,
        delta: Some(hot),
        versions: None,
        ..ALL
    });
    device.write(Lpn(0), 1);
    assert_eq!(device.write(Lpn(0), 2), Outcome::Packed);
    let other = colliding(2, BITS, 10);
    assert_eq!(device.write(Lpn(3), other), Outcome::Programmed);
    assert_eq!(device.read(Lpn(0)), Some(2));
    let now = When::now(device.now);
    assert!(device.ftl.merge_if_read_hot(now, Lpn(0)).unwrap());
    assert_eq!(
        (device.read(Lpn(0)), device.read(Lpn(3))),
        (Some(2), Some(other))
    );
    device.ftl.check().unwrap();
}

/// A rewind records what it changes; where the history has no room for that, it does not give up what the pages
/// that come later return to.
#[test]
fn a_return_that_fills_the_history_returns_every_page() {
    let mut small = Small::new(Policy {
        versions: in_entries(12),
        // No value is kept as the base of another.
        delta: None,
        ..ALL
    });
    for lpn in 0..8 {
        small.write(Lpn(lpn), 100 + lpn);
    }
    let instant = small.now;
    // What has one stamp goes together.
    small.tick();
    for lpn in 0..8 {
        small.write_at(Lpn(lpn), 200 + lpn);
    }
    small.rewind_to(instant);
    for lpn in 0..8 {
        assert_eq!(small.read(Lpn(lpn)), Some(100 + lpn), "page {lpn}");
    }
}

/// The reserve is no reason to forget what the least window has; a lack of room is.
#[test]
fn the_reserve_is_free_of_old_versions_as_far_as_the_least_window_allows() {
    for (least_window, reserve, left) in [(0, 0, 0), (0, 20, 20), (10_000, 20, 0)] {
        let mut small = Small::new(Policy {
            index: 0,
            delta: None,
            versions: Some(VersionsOptions {
                least_window,
                reserve,
                ..VERSIONS
            }),
            ..ALL
        });
        for write in 0..400 {
            small.write(Lpn(write % PAGES), write);
        }
        let core = small.ftl.core();
        let free = core.most_live() - core.blocks().valid_units();
        assert_eq!(free, left, "least window {least_window}, reserve {reserve}");
    }
}
