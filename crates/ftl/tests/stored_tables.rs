//! A device whose tables are pages on a medium, of which few are in memory, does what one does whose tables are vectors:
//! the same flash operations in the same order, the same answers, the same counts. So does one that keeps no slots of packed
//! pages, but notes with each object in which slot it lies and reads the directories of the pages.

use crate::common;

use std::fmt::Debug;
use std::sync::{Arc, OnceLock};

use common::policies::{DELTAS, VERSIONS};
use common::values::{Encoded, Lengths, Page, V};
use common::{Medium, Random, medium};
use flashlore_content::bytes::VolumeKey;
use flashlore_content::delta::{Encoder, Value};
use flashlore_content::{DedupOptions, NoCensus};
use flashlore_flash::record::Op;
use flashlore_flash::{
    Cause, Flash, Geometry, Lpn, Note, ObjectId, Owner, PackSlot, Row, Tag, When,
};
use flashlore_ftl::content::parts::{Parts, Past};
use flashlore_ftl::map_cache::Resident;
use flashlore_ftl::{ContentDevice, ContentFtl, FtlOptions, PlainFtl, Policies};
use flashlore_medium::{Medium as _, MemoryMedium};
use flashlore_metadata::{Area, Empty, Shape, Store, StoredTables, TableId};

/// Flash whose tables are in a store.
struct OnStore<P, N: Note> {
    device: Medium<P>,
    tables: StoredTables<N>,
}

impl<P: Clone, N: Note> Flash for OnStore<P, N> {
    type Page = P;
    type Error = <Medium<P> as Flash>::Error;
    type Tables = StoredTables<N>;

    flashlore_flash::pass_on!(device: geometry, read, program, erase, content, prove, prove_copy, barrier,
        window_begins, validity_changed, advance, idle_since, next_event);

    fn tables(&self) -> StoredTables<N> {
        self.tables.clone()
    }
}

const PAGES: u32 = 16_000;

fn geometry() -> Geometry {
    Geometry::single_plane(80, 256, 4096).unwrap()
}

/// Tables in memory, of which as few pages are cached as can be.
fn stored<P: Clone, N: Note>() -> OnStore<P, N> {
    let area = Area {
        at: 0,
        slots: 6000,
        tables: 10,
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
    let objects = shape(4 * units, 16 + N::BYTES as u16, Empty::Zeros);
    let tables = [
        shape(PAGES, 4, Empty::Ones),
        objects,
        shape(objects.leaves(), 1, Empty::Zeros),
        shape(units, 4, Empty::Zeros),
        shape(units, 12, Empty::Zeros),
        shape(units, 16, Empty::Zeros),
        shape(12 * units, 20, Empty::Zeros),
        shape(PAGES, 4, Empty::Zeros),
        shape(12 * units, 20, Empty::Zeros),
        shape(PAGES, 4, Empty::Zeros),
    ];
    let numbered: Vec<(u8, Shape)> = (0..).zip(tables).collect();
    Store::create(&medium, &area, &key, 1, &numbered, &[]).unwrap();
    let (store, _) = Store::open(medium, area, key, 32).unwrap();
    OnStore {
        device: common::medium(&geometry()),
        tables: StoredTables::new(store, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map(TableId)),
    }
}

/// Makes durable what changed, as whoever has a store does now and then.
fn commit<N: Note>(tables: &StoredTables<N>) {
    tables.with(|store| store.commit_at_once(&[])).unwrap();
}

const LENGTHS: Lengths = Lengths {
    least: 300,
    most: 1500,
    alone: 60,
};

fn policies<E>(encoder: E) -> Policies<E> {
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
        encoder,
    }
}

/// In which slot an object lies, and how long that is.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Noted {
    slot: u16,
    length: u16,
}

impl Row for Noted {
    const BYTES: usize = 4;

    fn encode(self, out: &mut [u8]) {
        out[..2].copy_from_slice(&self.slot.to_le_bytes());
        out[2..].copy_from_slice(&self.length.to_le_bytes());
    }

    fn decode(bytes: &[u8]) -> Self {
        let [slot, length] = [0, 2].map(|at| u16::from_le_bytes([bytes[at], bytes[at + 1]]));
        Noted { slot, length }
    }
}

impl Note for Noted {
    /// So few that what is merged next has to be found again and again.
    const MOST_REMEMBERED: usize = 8;

    fn note_slot(&mut self, slot: PackSlot, length: u16) {
        self.slot = slot.0;
        self.length = length;
    }

    fn slot(&self) -> Option<(PackSlot, u16)> {
        Some((PackSlot(self.slot), self.length))
    }
}

/// An encoded value that knows what the directory of its page says of it.
#[derive(Debug, Clone, PartialEq)]
struct Listed {
    encoded: Encoded,
    object: Arc<OnceLock<ObjectId>>,
    lpn: Lpn,
    length: u16,
}

/// What a unit holds.
#[derive(Debug, Clone, PartialEq)]
enum ListedPage {
    Whole(V),
    Packed(Vec<Listed>),
}

impl From<V> for ListedPage {
    fn from(value: V) -> Self {
        ListedPage::Whole(value)
    }
}

impl ListedPage {
    fn whole(&self) -> Page {
        match self {
            ListedPage::Whole(value) => Page::Whole(*value),
            ListedPage::Packed(_) => panic!("a packed page was taken for a value"),
        }
    }
}

/// An encoder whose packed pages have directories.
struct WithDirectory {
    /// The page that is written.
    lpn: Lpn,
}

impl WithDirectory {
    fn listed(&self, short: Option<(u16, Encoded)>) -> Option<(u16, Listed)> {
        let (length, encoded) = short?;
        let object = Arc::new(OnceLock::new());
        let lpn = self.lpn;
        Some((
            length,
            Listed {
                encoded,
                object,
                lpn,
                length,
            },
        ))
    }
}

impl Encoder<V, ListedPage> for WithDirectory {
    type Encoded = Listed;

    fn delta(
        &mut self,
        base: Value<'_, V, ListedPage>,
        new: Value<'_, V, ListedPage>,
        limit: u16,
    ) -> Option<(u16, Listed)> {
        let (old, page) = (base.page.whole(), new.page.whole());
        let base = Value {
            content: base.content,
            page: &old,
        };
        let new = Value {
            content: new.content,
            page: &page,
        };
        let short = { LENGTHS }.delta(base, new, limit);
        self.listed(short)
    }

    fn alone(&mut self, new: Value<'_, V, ListedPage>, limit: u16) -> Option<(u16, Listed)> {
        let page = new.page.whole();
        let new = Value {
            content: new.content,
            page: &page,
        };
        let short = { LENGTHS }.alone(new, limit);
        self.listed(short)
    }

    fn decode(&mut self, base: Option<&ListedPage>, listed: &Listed) -> ListedPage {
        let base = base.map(ListedPage::whole);
        ListedPage::Whole({ LENGTHS }.decode(base.as_ref(), &listed.encoded).value())
    }

    fn hold(&mut self, object: ObjectId, _base: ObjectId, listed: &Listed) {
        assert_eq!(*listed.object.get_or_init(|| object), object);
    }

    fn pack(&mut self, values: &[Listed]) -> ListedPage {
        ListedPage::Packed(values.to_vec())
    }

    fn unpack(&mut self, page: &ListedPage, slot: PackSlot) -> Listed {
        match page {
            ListedPage::Whole(value) => panic!("{value:?} was taken for a packed page"),
            ListedPage::Packed(values) => values[slot.index()].clone(),
        }
    }

    fn each_slot(&mut self, page: &ListedPage, take: &mut dyn FnMut(ObjectId, Lpn, u16)) {
        if let ListedPage::Packed(values) = page {
            for listed in values {
                let object = listed.object.get().copied();
                take(object.unwrap_or(ObjectId::NONE), listed.lpn, listed.length);
            }
        }
    }
}

/// An encoder is told which page is written.
trait Told {
    fn writes(&mut self, lpn: Lpn);
}

impl Told for Lengths {
    fn writes(&mut self, _lpn: Lpn) {}
}

impl Told for WithDirectory {
    fn writes(&mut self, lpn: Lpn) {
        self.lpn = lpn;
    }
}

type Device<F, E> = ContentFtl<V, F, NoCensus, Resident, E, Past>;

fn device<F, E>(flash: F, encoder: E) -> Device<F, E>
where
    F: Flash<Page: Clone + From<V>>,
    E: Encoder<V, F::Page>,
{
    let options = FtlOptions::new(PAGES);
    let ftl = ContentFtl::with_policies(flash, options, policies(encoder), NoCensus, Resident);
    let mut ftl = ftl.unwrap();
    ftl.begin_history();
    ftl
}

/// One step of a history, drawn; what it answers.
fn step<T>(ftl: &mut ContentDevice<T>, at: u64, random: &mut Random) -> String
where
    T: Parts<Content = V, Encoder: Told>,
    T::Flash: Flash<Page: From<V> + Debug>,
{
    ftl.set_instant(at);
    // Half of all is at one page in eight.
    let pages = if random.below(2) == 0 {
        PAGES
    } else {
        PAGES / 8
    };
    let (lpn, value) = (Lpn(random.below(pages)), V(random.below(200_000)));
    ftl.encoder_mut().writes(lpn);
    match random.below(100) {
        0..70 => format!("{:?}", ftl.write(When::now(0), lpn, value, Tag::NONE)),
        70..90 => format!("{:?}", ftl.read(0, lpn, Cause::Host, Tag::NONE)),
        90..98 => format!("{:?}", ftl.trim(lpn)),
        98 => format!("{:?}", ftl.core_mut().flush(0)),
        _ => travel(ftl, at, lpn, random),
    }
}

/// Snapshots that there are at a time.
const MOST_SNAPSHOTS: usize = 3;

/// Goes back, or does something about instants and old versions; what it answers.
fn travel<T>(ftl: &mut ContentDevice<T>, at: u64, lpn: Lpn, random: &mut Random) -> String
where
    T: Parts<Content = V>,
{
    let snapshots = ftl.versions().unwrap().history.snapshots();
    let snapshots: Vec<u64> = snapshots.collect();
    let instant = at - u64::from(random.below(60)).min(at);
    match random.below(6) {
        0 if snapshots.len() < MOST_SNAPSHOTS => format!("{:?}", ftl.snapshot(instant)),
        0 | 1 if !snapshots.is_empty() => {
            let which = random.below(snapshots.len() as u32) as usize;
            format!("{}", ftl.delete_snapshot(snapshots[which]))
        }
        2 => {
            ftl.purge(lpn..Lpn(lpn.0 + 20));
            "purged".to_string()
        }
        3 if !snapshots.is_empty() => format!("{:?}", ftl.rewind_to(snapshots[0])),
        _ => format!("{:?}", ftl.rewind_to(instant)),
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

/// Runs the same history on a device whose tables are in a store and on one whose tables are vectors.
fn compare<P, N, E>(encoder: E)
where
    P: Clone + Debug + From<V>,
    N: Note,
    E: Encoder<V, P> + Told,
{
    let on_store: OnStore<P, N> = stored();
    let tables = on_store.tables.clone();
    let mut far = device(on_store, encoder);
    let mut near = device(medium(&geometry()), LENGTHS);
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
    let (there, here) = (
        &far.versions().unwrap().history,
        &near.versions().unwrap().history,
    );
    assert_eq!(
        (there.recorded(), there.len()),
        (here.recorded(), here.len())
    );
    assert!(there.pinned().eq(here.pinned()) && there.kept() == here.kept());
    assert!(
        there
            .window()
            .map(|e| (e.stamp, e.lpn))
            .eq(here.window().map(|e| (e.stamp, e.lpn)))
    );
    // Blocks were collected, values packed anew, and pages of tables came and went.
    let repacked = far.encoding_counters().unwrap().repacked;
    assert!(erased > 40 && repacked > 100 && tables.fetched_at_once() > 1000);
}

#[test]
fn a_device_with_stored_tables_does_what_one_with_vectors_does() {
    compare::<Page, (), _>(LENGTHS);
}

#[test]
fn one_that_reads_directories_does_what_one_does_that_keeps_slots() {
    compare::<ListedPage, Noted, _>(WithDirectory { lpn: Lpn(0) });
}

#[test]
fn so_does_a_plain_one() {
    let on_store: OnStore<Page, ()> = stored();
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
    let on_store: OnStore<Page, ()> = stored();
    let tables = on_store.tables.clone();
    let mut far = device(on_store, LENGTHS);
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
