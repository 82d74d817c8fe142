//! Bases chosen by similarity: pages become deltas from pages elsewhere, and outlive what these held.

use crate::common;

use common::policies::{DELTAS, VERSIONS};
use common::values::{Lengths, Page, V};
use common::{Medium, medium};
use flashlore_content::{DedupOptions, NoCensus};
use flashlore_flash::{Cause, Geometry, Lpn, ObjectId, Tag, When};
use flashlore_ftl::content::decision::Write;
use flashlore_ftl::content::parts::Past;
use flashlore_ftl::map_cache::Resident;
use flashlore_ftl::policies::options::{EncodingOptions, NEVER, SimilarOptions};
use flashlore_ftl::{ContentFtl, FtlOptions, Outcome, Policies};

type Device = ContentFtl<V, Medium<Page>, NoCensus, Resident, Lengths, Past>;

const PAGES: u32 = 60;

/// Values of one family, [`V`] 1000 to 1003, share all their super-features; 4000 has none of them.
const BASE: u32 = 1000;
const ALIKE: u32 = 1001;
const ALSO_ALIKE: u32 = 1002;
const OTHER: u32 = 4000;

/// What is not the same in all devices here.
#[derive(Clone, Copy)]
struct Policy {
    sharers: u32,
    lambda: u32,
    compress: bool,
    history: bool,
}

const PLAIN: Policy = Policy {
    sharers: 100,
    lambda: 250,
    compress: false,
    history: false,
};

/// Deduplication is on; a second write of a page is a delta from its own.
fn device(policy: Policy) -> Device {
    device_with_index(policy, 100)
}

/// The same, with so many entries of the fingerprint index.
fn device_with_index(policy: Policy, index_entries: u32) -> Device {
    let dedup = DedupOptions {
        index_entries: Some(index_entries),
        fingerprint_bits: 64,
        verify: false,
        bypass: None,
        out_of_line: false,
    };
    let delta = EncodingOptions {
        compress: policy.compress,
        hot_reads: NEVER,
        lambda: policy.lambda,
        similar: Some(SimilarOptions {
            entries: 100,
            sharers: policy.sharers,
        }),
        ..DELTAS
    };
    let versions = policy.history.then_some(VERSIONS);
    let encoder = Lengths {
        least: 1000,
        most: 1000,
        alone: 100,
    };
    let policies = Policies {
        dedup,
        encoding: Some(delta),
        versions,
        encoder,
    };
    let geometry = Geometry::single_plane(16, 8, 4096).unwrap();
    let medium = medium(&geometry);
    let options = FtlOptions::new(PAGES);
    let ftl = ContentFtl::with_policies(medium, options, policies, NoCensus, Resident);
    let mut ftl = ftl.unwrap();
    ftl.begin_history();
    ftl
}

fn write(ftl: &mut Device, lpn: Lpn, value: u32) -> Outcome {
    let outcome = ftl.write(When::now(0), lpn, V(value), Tag::NONE).unwrap().0;
    ftl.check().unwrap();
    outcome
}

fn read(ftl: &mut Device, lpn: Lpn) -> Option<u32> {
    let (page, _) = ftl.read(0, lpn, Cause::Host, Tag::NONE).unwrap();
    page.map(|page| page.value().0)
}

fn object(ftl: &Device, lpn: Lpn) -> ObjectId {
    ftl.objects().object_of(lpn).expect("it was written")
}

/// The page whose object another page's needs.
fn base_of(ftl: &Device, lpn: Lpn) -> Option<ObjectId> {
    let (_, base) = ftl.objects().packed(object(ftl, lpn))?;
    Some(base)
}

fn is_indexed(ftl: &Device, object: ObjectId) -> bool {
    let similar = ftl.delta().and_then(|delta| delta.similar.as_ref());
    similar.expect("it is on").index.holds(object)
}

#[test]
fn a_first_write_becomes_a_delta_from_another_address() {
    let mut ftl = device(PLAIN);
    assert_eq!(write(&mut ftl, Lpn(0), BASE), Outcome::Programmed);
    assert_eq!(write(&mut ftl, Lpn(1), OTHER), Outcome::Programmed);
    assert_eq!(write(&mut ftl, Lpn(2), ALIKE), Outcome::Packed);
    assert_eq!(base_of(&ftl, Lpn(2)), Some(object(&ftl, Lpn(0))));
    assert_eq!(read(&mut ftl, Lpn(2)), Some(ALIKE));
    let counters = ftl.encoding_counters().unwrap().similar;
    assert_eq!((counters.asked, counters.found), (3, 1));
    assert_eq!((counters.taken, counters.taken_bytes), (1, 1000));
    assert!(
        !is_indexed(&ftl, object(&ftl, Lpn(2))),
        "a delta is no base"
    );
}

#[test]
fn a_base_outlives_its_own_address() {
    let mut ftl = device(PLAIN);
    write(&mut ftl, Lpn(0), BASE);
    write(&mut ftl, Lpn(2), ALIKE);
    let base = object(&ftl, Lpn(0));
    write(&mut ftl, Lpn(0), OTHER);
    assert_eq!(ftl.objects().references(base), 0);
    assert_eq!(read(&mut ftl, Lpn(2)), Some(ALIKE));
    ftl.trim(Lpn(0)).unwrap();
    ftl.check().unwrap();
    ftl.settle(0).unwrap();
    assert_eq!(
        (read(&mut ftl, Lpn(0)), read(&mut ftl, Lpn(2))),
        (None, Some(ALIKE))
    );
    // It is found still: what resembles it costs no base.
    assert_eq!(write(&mut ftl, Lpn(3), ALSO_ALIKE), Outcome::Packed);
    assert_eq!(base_of(&ftl, Lpn(3)), Some(base));
    ftl.trim(Lpn(2)).unwrap();
    ftl.trim(Lpn(3)).unwrap();
    ftl.check().unwrap();
    assert!(!ftl.objects().is_alive(base));
    assert!(!is_indexed(&ftl, base), "what has died is not found");
    assert_eq!(write(&mut ftl, Lpn(4), ALIKE), Outcome::Programmed);
}

#[test]
fn a_base_with_as_many_deltas_as_may_be_is_not_offered() {
    let mut ftl = device(Policy {
        sharers: 1,
        ..PLAIN
    });
    write(&mut ftl, Lpn(0), BASE);
    assert_eq!(write(&mut ftl, Lpn(1), ALIKE), Outcome::Packed);
    assert_eq!(write(&mut ftl, Lpn(2), ALSO_ALIKE), Outcome::Programmed);
    // That one is whole, and a base itself.
    assert_eq!(write(&mut ftl, Lpn(3), 1003), Outcome::Packed);
    assert_eq!(base_of(&ftl, Lpn(3)), Some(object(&ftl, Lpn(2))));
    // Once its delta has gone the first is offered again.
    ftl.trim(Lpn(1)).unwrap();
    assert_eq!(write(&mut ftl, Lpn(4), 1001), Outcome::Packed);
    assert_eq!(base_of(&ftl, Lpn(4)), Some(object(&ftl, Lpn(0))));
}

#[test]
fn a_page_that_has_a_base_of_its_own_takes_that() {
    let mut ftl = device(PLAIN);
    write(&mut ftl, Lpn(0), BASE);
    write(&mut ftl, Lpn(1), OTHER);
    // Its second write: what it held is its base, though it resembles another page.
    assert_eq!(write(&mut ftl, Lpn(1), ALIKE), Outcome::Packed);
    let base = base_of(&ftl, Lpn(1)).unwrap();
    assert_eq!(ftl.objects().content(base), V(OTHER));
    assert_eq!(ftl.encoding_counters().unwrap().similar.asked, 2);
}

#[test]
fn a_base_that_would_die_with_the_write_has_its_price() {
    for (lambda, outcome) in [(250, Outcome::Packed), (1000, Outcome::Programmed)] {
        let mut ftl = device(Policy { lambda, ..PLAIN });
        write(&mut ftl, Lpn(0), BASE);
        // The page is cold after a scan: it has no base of its own, and resembles what it held.
        ftl.begin_cold_scan();
        assert_eq!(write(&mut ftl, Lpn(0), ALIKE), outcome, "{lambda}");
        assert_eq!(read(&mut ftl, Lpn(0)), Some(ALIKE));
    }
}

#[test]
fn values_compressed_by_themselves_are_bases() {
    let mut ftl = device(Policy {
        compress: true,
        ..PLAIN
    });
    assert_eq!(write(&mut ftl, Lpn(0), BASE), Outcome::Packed);
    assert_eq!(base_of(&ftl, Lpn(0)), Some(ObjectId::NONE));
    // 1000 bytes against 2000 by itself.
    assert_eq!(write(&mut ftl, Lpn(1), ALIKE), Outcome::Packed);
    assert_eq!(base_of(&ftl, Lpn(1)), Some(object(&ftl, Lpn(0))));
    ftl.flush_packs(0).unwrap();
    ftl.trim(Lpn(0)).unwrap();
    ftl.check().unwrap();
    assert_eq!(read(&mut ftl, Lpn(1)), Some(ALIKE));
}

#[test]
fn an_old_version_keeps_the_base_of_another_address() {
    let mut ftl = device(Policy {
        history: true,
        ..PLAIN
    });
    ftl.set_instant(1);
    write(&mut ftl, Lpn(0), BASE);
    ftl.set_instant(2);
    write(&mut ftl, Lpn(1), ALIKE);
    ftl.set_instant(3);
    ftl.trim(Lpn(0)).unwrap();
    ftl.set_instant(4);
    ftl.trim(Lpn(1)).unwrap();
    ftl.check().unwrap();
    ftl.rewind_to(2).unwrap();
    ftl.check().unwrap();
    assert_eq!(
        (read(&mut ftl, Lpn(0)), read(&mut ftl, Lpn(1))),
        (Some(BASE), Some(ALIKE))
    );
}

/// A base has been read for page 5; then a page that resembles it as much is stored whole.
fn read_and_rivalled(ftl: &mut Device) -> (ObjectId, Option<flashlore_ftl::Candidate<V>>) {
    write(ftl, Lpn(0), BASE);
    assert!(ftl.begin_write(Lpn(5)));
    let read = ftl
        .fetch_base(0, Lpn(5), V(ALIKE), None, Tag::NONE)
        .unwrap();
    // The base has its only delta now, so the next one is whole.
    assert_eq!(write(ftl, Lpn(6), 1003), Outcome::Packed);
    assert_eq!(write(ftl, Lpn(7), ALSO_ALIKE), Outcome::Programmed);
    (object(ftl, Lpn(0)), read.map(|(candidate, _)| candidate))
}

#[test]
fn what_was_read_for_a_write_stays_its_base_if_it_may() {
    let mut ftl = device(Policy {
        sharers: 1,
        ..PLAIN
    });
    let (base, read) = read_and_rivalled(&mut ftl);
    ftl.trim(Lpn(6)).unwrap();
    let again = ftl
        .fetch_base(0, Lpn(5), V(ALIKE), read, Tag::NONE)
        .unwrap();
    assert!(again.is_none(), "nothing else is read");
    ftl.commit(
        When::now(0),
        Write {
            encode: true,
            ..Write::new(Lpn(5), V(ALIKE))
        },
        ContentFtl::is_same,
        Tag::NONE,
    )
    .unwrap();
    assert_eq!(base_of(&ftl, Lpn(5)), Some(base));
    ftl.check().unwrap();
}

#[test]
fn what_was_read_for_a_write_is_given_up_if_others_took_it() {
    let mut ftl = device(Policy {
        sharers: 1,
        ..PLAIN
    });
    let (_, read) = read_and_rivalled(&mut ftl);
    let again = ftl
        .fetch_base(0, Lpn(5), V(ALIKE), read, Tag::NONE)
        .unwrap();
    let (other, _) = again.expect("another is read");
    let again = ftl
        .fetch_base(0, Lpn(5), V(ALIKE), Some(other), Tag::NONE)
        .unwrap();
    assert!(again.is_none());
    ftl.commit(
        When::now(0),
        Write {
            encode: true,
            ..Write::new(Lpn(5), V(ALIKE))
        },
        ContentFtl::is_same,
        Tag::NONE,
    )
    .unwrap();
    assert_eq!(base_of(&ftl, Lpn(5)), Some(object(&ftl, Lpn(7))));
    ftl.check().unwrap();
}

#[test]
fn what_was_read_for_one_page_is_not_the_base_of_another() {
    let mut ftl = device(PLAIN);
    write(&mut ftl, Lpn(0), BASE);
    assert!(ftl.begin_write(Lpn(5)));
    let read = ftl
        .fetch_base(0, Lpn(5), V(ALIKE), None, Tag::NONE)
        .unwrap();
    assert!(read.is_some());
    assert_eq!(write(&mut ftl, Lpn(6), OTHER), Outcome::Programmed);
}

/// A packed value has no unit of its own whose digest could be read.
#[test]
fn the_entry_of_a_packed_value_is_not_restored() {
    let mut ftl = device_with_index(PLAIN, 2).with_prefetch(4);
    write(&mut ftl, Lpn(0), BASE);
    assert_eq!(write(&mut ftl, Lpn(1), ALIKE), Outcome::Packed);
    assert_eq!(write(&mut ftl, Lpn(3), BASE), Outcome::Shared);
    // The index has two entries: that of the packed value goes.
    write(&mut ftl, Lpn(2), OTHER);
    assert_eq!(write(&mut ftl, Lpn(4), BASE), Outcome::Shared);
    let counters = ftl.prefetch_counters();
    assert_eq!((counters.looked_up, counters.restored), (0, 0));
}

/// Every delta takes half a page and too little less for two of them to share one: packed anew they take as
/// many pages as before, so that the oldest are materialized instead.
#[test]
fn deltas_of_half_a_page_are_not_packed_anew_without_end() {
    let delta = EncodingOptions {
        hot_reads: NEVER,
        similar: Some(SimilarOptions {
            entries: 100,
            sharers: 100,
        }),
        ..DELTAS
    };
    let policies = Policies {
        dedup: DedupOptions {
            index_entries: Some(100),
            fingerprint_bits: 64,
            verify: false,
            bypass: None,
            out_of_line: false,
        },
        encoding: Some(delta),
        versions: None,
        encoder: Lengths {
            least: 2040,
            most: 2040,
            alone: 100,
        },
    };
    let geometry = Geometry::single_plane(16, 8, 4096).unwrap();
    let medium = medium(&geometry);
    let mut options = FtlOptions::new(PAGES);
    // What packs without end wears the device out.
    options.wear.endurance = 100;
    let ftl = ContentFtl::with_policies(medium, options, policies, NoCensus, Resident);
    let mut ftl = ftl.unwrap();
    for lpn in 0..PAGES {
        write(&mut ftl, Lpn(lpn), 1000 + lpn);
    }
    let counters = ftl.encoding_counters().unwrap();
    assert!(counters.similar.taken > 30 && counters.merges_room > 0);
    for lpn in 0..PAGES {
        assert_eq!(read(&mut ftl, Lpn(lpn)), Some(1000 + lpn));
    }
}

/// Overwrites leave packed pages nearly empty: what is left in them is packed anew, and nothing materialized.
#[test]
fn nearly_empty_packed_pages_are_packed_anew_before_anything_is_materialized() {
    let mut ftl = device(PLAIN);
    let mut random = common::Random::new(3);
    for _ in 0..3000 {
        let lpn = random.below(PAGES);
        write(&mut ftl, Lpn(lpn), 1000 + random.below(10_000));
    }
    let counters = ftl.encoding_counters().unwrap();
    assert!(counters.repacked > 1000);
    assert_eq!(counters.merges_room, 0);
}
