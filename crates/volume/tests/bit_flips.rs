//! Rot: every bit of everything in use is flipped, one at a time. A page reads as it should, or gives
//! an error, or the volume does not open; it never reads as something else, and the check reports it.
//!
//! The short form flips one bit of each byte that is filled, in each record another one, and samples the rest; the long
//! one (`--ignored`, or FLASHLORE_LONG set) flips every bit.

use crate::support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use flashlore_content::PAGE_BYTES;
use flashlore_flash::{Lpn, PageId, Ppn};
use flashlore_medium::{Medium, MediumError, MemoryMedium, SECTOR};
use flashlore_volume::format::journal::{ENTRY_BYTES, HEADER_BYTES};
use flashlore_volume::format::packed;
use flashlore_volume::format::record::RECORD_BYTES;
use flashlore_volume::format::superblock::SUPERBLOCK_BYTES;
use flashlore_volume::format::{Areas, Batch, Policy};
use flashlore_volume::{
    Encoding, HistoryIdentity, Identity, Volume, VolumeError, bytes_needed, check, create,
};
use parking_lot::Mutex;
use support::loaded::Loaded;
use support::verdict::judge_refusal;
use support::{Contents, Mix, POLICIES, Shape, after, history, read};

const SHAPE: Shape = Shape {
    exported: 24,
    blocks: 12,
    pages_per_block: 3,
    units_per_page: 2,
    alignment: 512,
    index_entries: 24,
    journal_bytes: 64 << 10,
};

/// Bytes of a page of tables or counts.
const TABLE_PAGE_BYTES: u64 = flashlore_metadata::PAGE_BYTES as u64;

/// The kind of a packed unit in its record.
const PACKED: u8 = 3;

/// An image with one bit flipped, over which an opening may write; the image itself stays.
struct Overlay {
    image: Arc<Vec<u8>>,
    flipped: (u64, u8),
    written: Mutex<BTreeMap<u64, [u8; SECTOR]>>,
}

impl Overlay {
    fn new(image: &Arc<Vec<u8>>, flipped: (u64, u8)) -> Self {
        Overlay {
            image: Arc::clone(image),
            flipped,
            written: Mutex::default(),
        }
    }
}

impl Medium for Overlay {
    fn len(&self) -> u64 {
        self.image.len() as u64
    }

    fn alignment(&self) -> u32 {
        SECTOR as u32
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), MediumError> {
        buf.copy_from_slice(&self.image[offset as usize..][..buf.len()]);
        let (at, bit) = self.flipped;
        if (offset..offset + buf.len() as u64).contains(&at) {
            buf[(at - offset) as usize] ^= 1 << bit;
        }
        let end = offset + buf.len() as u64;
        for (&at, sector) in self.written.lock().range(offset..end) {
            buf[(at - offset) as usize..][..SECTOR].copy_from_slice(sector);
        }
        Ok(())
    }

    fn write(&self, offset: u64, buf: &[u8]) -> Result<(), MediumError> {
        let mut written = self.written.lock();
        for (i, sector) in buf.chunks_exact(SECTOR).enumerate() {
            let at = offset + (i * SECTOR) as u64;
            written.insert(at, sector.try_into().unwrap());
        }
        Ok(())
    }

    fn discard(&self, _offset: u64, _len: u64) -> Result<(), MediumError> {
        Ok(())
    }

    fn sync(&self) -> Result<(), MediumError> {
        Ok(())
    }
}

/// What must follow from a flip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Duty {
    /// The check reports it.
    Reported,
    /// The check reports it, unless a recovery took another copy of this unit's content.
    ReportedOrElsewhere(Ppn),
    /// Nothing that counts is lost: everything reads as before.
    Harmless,
    /// Either of them: what has been superseded, but is read by a recovery.
    Either,
}

/// Bytes of one kind.
struct Part {
    name: &'static str,
    start: u64,
    /// Bytes of each of which the short form flips a bit.
    dense: u64,
    len: u64,
    duty: Duty,
}

struct Case {
    name: String,
    image: Arc<Vec<u8>>,
    expected: Contents,
    parts: Vec<Part>,
}

/// Which life the image had before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Closed,
    /// Flushed, then stopped.
    Stopped,
    /// Stopped, opened and written to again, stopped.
    Reopened,
}

fn case(name: &str, id: &Identity, end: End) -> Case {
    let medium = Arc::new(MemoryMedium::new(bytes_needed(id).unwrap() as usize));
    create(&*medium, id).unwrap();
    let encodes = id.encoding.deltas || id.encoding.compression;
    // What is flushed before it is packed stands in the journal, too.
    let mix = Mix {
        trims: 10,
        flushes: if encodes { 0 } else { 2 },
        checkpoints: 0,
        values: if encodes { 1000 } else { 30 },
    };
    let mut expected = vec![0; SHAPE.exported as usize];
    let mut encoded = 0;
    let mut live = |seed, steps, last: &dyn Fn(Volume)| {
        let (mut volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
        for step in history(seed, steps, SHAPE.exported, mix) {
            step.run(&mut volume).unwrap();
            expected = after(&expected, step);
        }
        let counters = volume.encoding_counters();
        encoded += counters.map_or(0, |c| c.deltas + c.compressed);
        last(volume);
    };
    live(1, 100, &|volume| volume.close().unwrap());
    if end != End::Closed {
        let steps = if encodes { 60 } else { 30 };
        live(2, steps, &|mut volume| volume.flush().unwrap());
    }
    if end == End::Reopened {
        live(3, 10, &|mut volume| volume.flush().unwrap());
    }
    assert!(encoded > 10 || !encodes, "{encoded} values are encoded");
    let medium = Arc::into_inner(medium).unwrap();
    let parts = parts(&medium, end);
    Case {
        name: format!("{name}, {end:?}"),
        image: Arc::new(medium.into_bytes()),
        expected,
        parts,
    }
}

/// What of the medium is in use, found by reading the format, not by asking the volume.
fn parts(medium: &MemoryMedium, end: End) -> Vec<Part> {
    let Loaded {
        superblock,
        areas,
        root,
        tail,
        mark_at,
        table_pages,
        count_pages,
        ..
    } = Loaded::of(medium).unwrap();
    let id = &superblock.identity;
    let mut parts = Vec::new();
    let mut add = |name, start, dense, len, duty| {
        parts.push(Part {
            name,
            start,
            dense,
            len,
            duty,
        });
    };
    for copy in 0..2 {
        let at = areas.superblock(copy);
        let filled = 144 + 16 * superblock.epochs.len() as u64;
        add(
            "superblock",
            at,
            filled,
            SUPERBLOCK_BYTES as u64 - 8,
            Duty::Reported,
        );
        let check = at + SUPERBLOCK_BYTES as u64 - 8;
        add("superblock checksum", check, 8, 8, Duty::Reported);
    }
    // Its header, eight tables, the places of counts, and what a volume puts there.
    let len = areas.store.root_bytes() as u64;
    for (name, checkpoint, duty) in [
        ("root", root.checkpoint, Duty::Reported),
        ("older root", root.checkpoint + 1, Duty::Harmless),
    ] {
        add(name, areas.store.root(checkpoint), 220, len, duty);
    }
    let mut at = areas.journal(root.checkpoint);
    for batch in &tail.batches {
        let dense = (HEADER_BYTES + batch.entries.len() * ENTRY_BYTES) as u64;
        let filled = dense + batch.value_bytes() as u64;
        let len = Batch::bytes(
            batch.entries.len(),
            batch.value_bytes(),
            id.alignment as usize,
        ) as u64;
        // One without records says that a segment has begun.
        let empty = batch.entries.is_empty() && batch.values.is_empty();
        let duty = match empty {
            true => Duty::Either,
            false => Duty::Reported,
        };
        add("journal", at, dense, filled, duty);
        add(
            "journal padding",
            at + filled,
            0,
            len - filled,
            Duty::Harmless,
        );
        at += len;
    }
    // Without it less is known to be durable.
    add("mark", mark_at, 32, SECTOR as u64, Duty::Harmless);
    for at in table_pages {
        add("table", at, 200, TABLE_PAGE_BYTES, Duty::Reported);
    }
    for at in count_pages {
        add("counts", at, 200, TABLE_PAGE_BYTES, Duty::Reported);
    }
    // What is dead and checkpointed is not read again.
    let dead = match end {
        End::Closed => Duty::Harmless,
        End::Stopped | End::Reopened => Duty::Either,
    };
    units(medium, &mut add, &areas, id.units_per_page, dead);
    parts
}

/// Units by what refers to them: live ones, and whatever else is programmed.
fn units(
    medium: &MemoryMedium,
    add: &mut impl FnMut(&'static str, u64, u64, u64, Duty),
    areas: &Areas,
    units_per_page: u32,
    dead: Duty,
) {
    let mut bytes = vec![0; medium.len() as usize];
    medium.read(0, &mut bytes).unwrap();
    let copy = Arc::new(MemoryMedium::from_bytes(bytes.clone()));
    let (volume, _) = Volume::open(Arc::clone(&copy)).unwrap();
    let live: Vec<Ppn> = (0..SHAPE.exported)
        .filter_map(|lpn| volume.location(Lpn(lpn)))
        .collect();
    let pages = SHAPE.blocks * SHAPE.pages_per_block;
    for ppn in (0..pages * units_per_page).map(Ppn) {
        let page = PageId(ppn.0 / units_per_page);
        let slot = u64::from(ppn.0 % units_per_page);
        let record = areas.records(page) + slot * RECORD_BYTES as u64;
        let (len, data) = (RECORD_BYTES as u64, PAGE_BYTES as u64);
        let at = areas.unit(ppn);
        let front = match bytes[record as usize] {
            PACKED => packed::front_bytes(&bytes[at as usize..][..PAGE_BYTES]),
            _ => None,
        };
        let front = front.unwrap_or(0) as u64;
        if live.contains(&ppn) {
            let duty = Duty::ReportedOrElsewhere(ppn);
            add("record", record, len, len, duty);
            add("data", at, front, data, duty);
        } else {
            add("dead record", record, 1, len, dead);
            add("dead data", at, 0, data, dead);
        }
    }
}

impl Part {
    /// The bits to flip.
    fn bits(&self, long: bool) -> impl Iterator<Item = (u64, u8)> + '_ {
        let filled = move |at: u64| at < self.dense;
        let is_sampled = move |at: u64| {
            // A byte in each 128; of data one in every second sector.
            let every = if self.name.ends_with("data") {
                1024
            } else {
                128
            };
            at % every == at / every * 37 % every
        };
        let turn = self.start / RECORD_BYTES as u64;
        (0..self.len).flat_map(move |within| {
            let one = |bit: u64| (bit % 8) as u8..(bit % 8) as u8 + 1;
            let bits = match long {
                true => 0..8,
                false if filled(within) => one(within * 5 + turn),
                false if is_sampled(within) => one(within / 64),
                false => 0..0,
            };
            bits.map(move |bit| (self.start + within, bit))
        })
    }
}

#[derive(Debug, Default, Clone, Copy)]
struct Outcome {
    flips: u64,
    refused: u64,
    unreadable: u64,
    unharmed: u64,
}

impl Outcome {
    fn add(&mut self, more: Outcome) {
        self.flips += more.flips;
        self.refused += more.refused;
        self.unreadable += more.unreadable;
        self.unharmed += more.unharmed;
    }
}

impl Case {
    fn flip(&self, part: &Part, flipped: (u64, u8), outcome: &mut Outcome) {
        let place = || {
            format!(
                "{}: bit {} of byte {} ({})",
                self.name, flipped.1, flipped.0, part.name
            )
        };
        let report = check(Overlay::new(&self.image, flipped), true);
        let reported = !report.as_ref().is_ok_and(|r| r.is_clean());
        outcome.flips += 1;
        let mut elsewhere = false;
        let harmed = match Volume::open(Overlay::new(&self.image, flipped)) {
            Err(error) => {
                outcome.refused += 1;
                judge_refusal(&error, &report).unwrap_or_else(|how| panic!("{}: {how}", place()));
                true
            }
            Ok((mut volume, _)) => {
                let mut errors = 0;
                for (lpn, &value) in self.expected.iter().enumerate() {
                    match read(&mut volume, Lpn(lpn as u32)) {
                        Ok(found) => assert_eq!(found, value, "{}: page {lpn}", place()),
                        Err(VolumeError::Unreadable { .. }) => errors += 1,
                        Err(other) => panic!("{}: page {lpn}: {other}", place()),
                    }
                }
                let sound = volume.check();
                if volume.table_failures() > 0 {
                    assert!(reported, "{}: {report:?}", place());
                } else {
                    sound.unwrap_or_else(|e| panic!("{}: {e}", place()));
                }
                if let Duty::ReportedOrElsewhere(unit) = part.duty {
                    let lies = |lpn| volume.location(lpn) == Some(unit);
                    elsewhere = !(0..SHAPE.exported).map(Lpn).any(lies);
                }
                outcome.unreadable += u64::from(errors > 0);
                outcome.unharmed += u64::from(errors == 0);
                errors > 0
            }
        };
        assert!(reported || !harmed, "{}: harm, but a clean check", place());
        match part.duty {
            Duty::Reported => assert!(reported, "{}: not reported", place()),
            Duty::ReportedOrElsewhere(_) => {
                assert!(reported || elsewhere, "{}: not reported", place());
            }
            Duty::Harmless => assert!(!harmed, "{}: harm, but not in use", place()),
            Duty::Either => {}
        }
    }
}

/// Flips the bits of all parts, on all processors.
fn flip_all(case: &Case, long: bool) -> BTreeMap<&'static str, Outcome> {
    let next = AtomicUsize::new(0);
    let total = Mutex::new(BTreeMap::<&'static str, Outcome>::new());
    let work = || {
        while let Some(part) = case.parts.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut outcome = Outcome::default();
            for flipped in part.bits(long) {
                case.flip(part, flipped, &mut outcome);
            }
            total.lock().entry(part.name).or_default().add(outcome);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, |n| n.get()) {
            scope.spawn(work);
        }
    });
    total.into_inner()
}

fn run(policy: Policy, end: End, long: bool) {
    run_on(&format!("{policy:?}"), &SHAPE.identity(policy), end, long);
}

/// A volume that keeps old versions and encodes what it can.
fn run_encoding(policy: Policy, end: End, long: bool) {
    let id = Identity {
        history: Some(HistoryIdentity {
            entries: 20,
            least_window: 0,
            protected: false,
        }),
        encoding: Encoding {
            deltas: true,
            compression: true,
        },
        ..SHAPE.identity(policy)
    };
    run_on(&format!("{policy:?}, encoding"), &id, end, long);
}

fn run_on(name: &str, id: &Identity, end: End, long: bool) {
    let case = case(name, id, end);
    for (name, o) in flip_all(&case, long) {
        println!(
            "{}, {name}: {} flips, {} not opened, {} unreadable, {} unharmed",
            case.name, o.flips, o.refused, o.unreadable, o.unharmed
        );
        assert!(o.flips > 0 || name == "journal padding");
    }
}

#[test]
fn a_flipped_bit_is_an_error_and_never_other_content() {
    let long = std::env::var_os("FLASHLORE_LONG").is_some();
    for end in [End::Closed, End::Stopped] {
        run(Policy::Dedup, end, long);
    }
    run(Policy::Plain, End::Stopped, long);
    run(Policy::DedupTrusted, End::Reopened, long);
    run_encoding(Policy::Dedup, End::Stopped, long);
}

#[test]
#[ignore = "minutes: every bit of every image"]
fn every_bit_of_every_image() {
    for policy in POLICIES {
        for end in [End::Closed, End::Stopped, End::Reopened] {
            run(policy, end, true);
            run_encoding(policy, end, true);
        }
    }
}
