//! A device whose tables are pages on a medium, of which few are in memory, does what one does whose tables are vectors:
//! the same flash operations in the same order, the same answers, the same counts.

use crate::common;

use std::sync::Arc;

use common::policies::{DELTAS, VERSIONS};
use common::values::{Lengths, Page, V};
use common::{Medium, Random, medium};
use flashlore_content::bytes::VolumeKey;
use flashlore_content::{DedupOptions, NoCensus};
use flashlore_flash::record::Op;
use flashlore_flash::{Cause, Flash, Geometry, Lpn, ObjectId, Owner, Tag, When};
use flashlore_ftl::content::parts::{Parts, Past};
use flashlore_ftl::map_cache::Resident;
use flashlore_ftl::{ContentDevice, ContentFtl, FtlOptions, PlainFtl, Policies};
use flashlore_medium::{Medium as _, MemoryMedium};
use flashlore_metadata::{Area, Empty, Shape, Store, StoredTables, TableId};

/// Flash whose tables are in a store.
struct OnStore {
    device: Medium<Page>,
    tables: StoredTables<()>,
}

impl Flash for OnStore {
    type Page = Page;
    type Error = <Medium<Page> as Flash>::Error;
    type Tables = StoredTables<()>;

    flashlore_flash::pass_on!(device: geometry, read, program, erase, content, prove, prove_copy, barrier,
        window_begins, validity_changed, advance, idle_since, next_event);

    fn tables(&self) -> StoredTables<()> {
        self.tables.clone()
    }
}

const PAGES: u32 = 16_000;

fn geometry() -> Geometry {
    Geometry::single_plane(80, 256, 4096).unwrap()
}

/// Tables in memory, of which as few pages are cached as can be.
fn stored() -> OnStore {
    let area = Area {
        at: 0,
        slots: 1000,
        tables: 8,
        user_bytes: 0,
    };
    let medium = Arc::new(MemoryMedium::new(area.bytes() as usize));
    let key = VolumeKey([7; 32]);
    let units = geometry().units();
    let shape = |rows, row_bytes, empty| Shape {
        rows,
        row_bytes,
        empty,
    };
    // In the order of their names.
    // Old versions and bases of deltas come on top of what pages hold.
    let objects = shape(4 * units, 16, Empty::Zeros);
    let tables = [
        shape(PAGES, 4, Empty::Ones),
        objects,
        shape(objects.leaves(), 1, Empty::Zeros),
        shape(units, 4, Empty::Zeros),
        shape(units, 12, Empty::Zeros),
        shape(units, 16, Empty::Zeros),
    ];
    let numbered: Vec<(u8, Shape)> = (0..).zip(tables).collect();
    Store::create(&medium, &area, &key, 1, &numbered, &[]).unwrap();
    let (store, _) = Store::open(medium, area, key, 32).unwrap();
    OnStore {
        device: common::medium(&geometry()),
        tables: StoredTables::new(store, [0, 1, 2, 3, 4, 5].map(TableId)),
    }
}

/// Makes durable what changed, as whoever has a store does now and then.
fn commit(tables: &StoredTables<()>) {
    tables.with(|store| store.commit_at_once(&[])).unwrap();
}

fn policies() -> Policies<Lengths> {
    Policies {
        dedup: DedupOptions {
            index_entries: Some(3000),
            fingerprint_bits: 64,
            verify: false,
            bypass: None,
            out_of_line: false,
        },
        encoding: Some(DELTAS),
        versions: Some(VERSIONS),
        encoder: Lengths {
            least: 300,
            most: 1500,
            alone: 60,
        },
    }
}

type Device<F> = ContentFtl<V, F, NoCensus, Resident, Lengths, Past>;

fn device<F: Flash<Page = Page>>(flash: F) -> Device<F> {
    let options = FtlOptions::new(PAGES);
    let ftl = ContentFtl::with_policies(flash, options, policies(), NoCensus, Resident);
    let mut ftl = ftl.unwrap();
    ftl.begin_history();
    ftl
}

/// One step of a history, drawn; what it answers.
fn step<T>(ftl: &mut ContentDevice<T>, at: u64, random: &mut Random) -> String
where
    T: Parts<Content = V>,
    T::Flash: Flash<Page = Page>,
{
    ftl.set_instant(at);
    // Half of all is at one page in eight.
    let pages = if random.below(2) == 0 {
        PAGES
    } else {
        PAGES / 8
    };
    let (lpn, value) = (Lpn(random.below(pages)), V(random.below(200_000)));
    match random.below(100) {
        0..70 => format!("{:?}", ftl.write(When::now(0), lpn, value, Tag::NONE)),
        70..90 => format!("{:?}", ftl.read(0, lpn, Cause::Host, Tag::NONE)),
        90..98 => format!("{:?}", ftl.trim(lpn)),
        98 => format!("{:?}", ftl.core_mut().flush(0)),
        _ => format!(
            "{:?}",
            ftl.rewind_to(at - u64::from(random.below(60)).min(at))
        ),
    }
}

/// Operations without the handles that they name: each kind of tables gives them out in its own order.
fn nameless(ops: Vec<Op>) -> Vec<Op> {
    let without = |op| match op {
        Op::Program { ppn, owner, from } => Op::Program {
            ppn,
            owner: owner.map(|_| Owner::object(ObjectId(0))),
            from,
        },
        other => other,
    };
    ops.into_iter().map(without).collect()
}

#[test]
fn a_device_with_stored_tables_does_what_one_with_vectors_does() {
    let on_store = stored();
    let tables = on_store.tables.clone();
    let (mut far, mut near) = (device(on_store), device(medium(&geometry())));
    let (mut one, mut other) = (Random::new(26), Random::new(26));
    let mut erased = 0;
    for at in 0..60_000 {
        let answers = (
            step(&mut far, at, &mut one),
            step(&mut near, at, &mut other),
        );
        assert_eq!(answers.0, answers.1, "step {at}");
        let done = nameless(far.core_mut().flash_mut().device.take());
        let there = nameless(near.core_mut().flash_mut().take());
        assert_eq!(done, there, "step {at}");
        erased += done
            .iter()
            .filter(|op| matches!(op, Op::Erase { .. }))
            .count();
        if at % 4000 == 0 || tables.with(|store| store.wants_commit()) {
            commit(&tables);
        }
    }
    assert_eq!(far.check(), Ok(()));
    assert_eq!(tables.with(|store| store.check()), Ok(()));
    assert_eq!(far.core().counters(), near.core().counters());
    assert_eq!(far.dedup_counters(), near.dedup_counters());
    assert_eq!(far.encoding_counters(), near.encoding_counters());
    assert_eq!(tables.failures(), 0);
    // Blocks were collected, and pages of tables came and went.
    assert!(erased > 40 && tables.fetched_at_once() > 1000, "{erased}");
}

#[test]
fn so_does_a_plain_one() {
    let on_store = stored();
    let tables = on_store.tables.clone();
    let mut far = PlainFtl::new(on_store, FtlOptions::new(PAGES)).unwrap();
    let mut near = PlainFtl::new(medium(&geometry()), FtlOptions::new(PAGES)).unwrap();
    let mut random = Random::new(26);
    for number in 0..20_000 {
        let lpn = Lpn(random.below(PAGES));
        for page in [lpn, Lpn(random.below(PAGES))] {
            let value = Page::Whole(V(number));
            let done = far.write(When::now(0), page, value.clone(), Tag::NONE);
            done.unwrap();
            near.write(When::now(0), page, value, Tag::NONE).unwrap();
        }
        let (a, b) = (
            far.read(0, lpn, Cause::Host, Tag::NONE).unwrap().0,
            near.read(0, lpn, Cause::Host, Tag::NONE).unwrap().0,
        );
        assert_eq!(a, b);
        if tables.with(|store| store.wants_commit()) {
            commit(&tables);
        }
    }
    let done = far.core_mut().flash_mut().device.take();
    assert_eq!(done, near.core_mut().flash_mut().take());
    assert_eq!(far.check(), Ok(()));
    assert_eq!(tables.failures(), 0);
}

/// A page of a table that cannot be read is told, and ends nothing but the trust in the device.
#[test]
fn a_page_that_cannot_be_had_is_told() {
    let on_store = stored();
    let tables = on_store.tables.clone();
    let mut far = device(on_store);
    for lpn in (0..PAGES).map(Lpn) {
        far.write(When::now(0), lpn, V(lpn.0), Tag::NONE).unwrap();
    }
    commit(&tables);
    let (medium, area, _) = tables.with(|store| store.place());
    let noise = vec![0xA5; area.bytes() as usize - 4096 * 40];
    medium.write(4096 * 40, &noise).unwrap();
    let mut lpn = 0;
    while tables.failures() == 0 && lpn < PAGES {
        let _ = far.read(0, Lpn(lpn), Cause::Host, Tag::NONE);
        lpn += 1;
    }
    let error = tables.take_error().unwrap().to_string();
    assert!(error.contains("page") && error.contains("slot"), "{error}");
}
