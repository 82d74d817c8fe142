//! Every combination of policies on the simulated translation layer and on the volume: histories with collection,
//! trims, flushes, checkpoints, snapshots and rewinds give the same places, the same counts, the same old
//! versions and the same refusals. Plain volumes and those that only deduplicate are compared in `differential`.

use crate::support;

use std::sync::Arc;

use crate::support::with_tables::WithTables;
use flashlore_content::delta::{Short, Value};
use flashlore_content::{Digest, Encoder, NoCensus, PageBytes, VolumeKey};
use flashlore_delta::Codec;
use flashlore_flash::faults::{Faulty, Odds};
use flashlore_flash::memory::MemoryFlash;
use flashlore_flash::{Lpn, PackSlot, Ppn, Tag, When};
use flashlore_ftl::content::decision::Write;
use flashlore_ftl::content::parts::Past;
use flashlore_ftl::map_cache::Resident;
use flashlore_ftl::{ContentFtl, FtlError, Policies};
use flashlore_medium::MemoryMedium;
use flashlore_volume::format::areas::geometry;
use flashlore_volume::format::packed::EXTRA_BYTES;
use flashlore_volume::policies::{dedup_options, encoding_options, ftl_options, versions_options};
use flashlore_volume::{
    Encoding, HistoryIdentity, Identity, Policy, Volume, VolumeError, bytes_needed, create,
};
use support::{Draw, POLICIES, Shape, page};

/// What a unit of the simulated device holds.
#[derive(Debug, Clone)]
enum Unit {
    Page(Arc<PageBytes>),
    Packed(Arc<[Arc<[u8]>]>),
}

impl Unit {
    fn page(&self) -> &PageBytes {
        match self {
            Unit::Page(page) => page,
            Unit::Packed(_) => panic!("a packed page is not the value of an address"),
        }
    }
}

/// Encodes as a volume does, without heads, which count all the same.
struct Bytes(flashlore_delta::Encoder);

fn encoded(bytes: Option<&[u8]>) -> Short<Arc<[u8]>> {
    bytes.map(|bytes| (bytes.len() as u16 + EXTRA_BYTES, bytes.into()))
}

impl Encoder<Digest, Unit> for Bytes {
    type Encoded = Arc<[u8]>;

    fn delta(
        &mut self,
        base: Value<'_, Digest, Unit>,
        new: Value<'_, Digest, Unit>,
        limit: u16,
    ) -> Short<Arc<[u8]>> {
        let limit = usize::from(limit - EXTRA_BYTES);
        let (old, new) = (base.page.page(), new.page.page());
        encoded(self.0.delta(Codec::default(), old, new, limit))
    }

    fn alone(&mut self, new: Value<'_, Digest, Unit>, limit: u16) -> Short<Arc<[u8]>> {
        let limit = usize::from(limit - EXTRA_BYTES);
        encoded(self.0.alone(Codec::default(), new.page.page(), limit))
    }

    fn decode(&mut self, base: Option<&Unit>, value: &Arc<[u8]>) -> Unit {
        let mut page = [0; 4096];
        flashlore_delta::decode(value, base.map(Unit::page), &mut page).unwrap();
        Unit::Page(Arc::new(page))
    }

    fn pack(&mut self, values: &[Arc<[u8]>]) -> Unit {
        Unit::Packed(values.into())
    }

    fn unpack(&mut self, page: &Unit, slot: PackSlot) -> Arc<[u8]> {
        match page {
            Unit::Packed(values) => Arc::clone(&values[slot.index()]),
            Unit::Page(_) => panic!("nothing was packed there"),
        }
    }
}

/// A device that might fail, so that victims are read before they are emptied, and never does.
type Device = Faulty<WithTables<MemoryFlash<Unit>>>;
type Simulated = ContentFtl<Digest, Device, NoCensus, Resident, Bytes, Past>;

fn simulated(id: &Identity) -> Simulated {
    let flash = WithTables::new(MemoryFlash::new(geometry(id).unwrap()), id);
    let flash = Faulty::new(flash, Odds::default(), 0);
    let policies = Policies {
        dedup: dedup_options(id, u32::MAX),
        encoding: encoding_options(id),
        versions: versions_options(id),
        encoder: Bytes(flashlore_delta::Encoder::new()),
    };
    let mut simulated =
        ContentFtl::with_policies(flash, ftl_options(id), policies, NoCensus, Resident).unwrap();
    // A volume has no past before it was made.
    simulated.advance_window(id.created);
    simulated.begin_history();
    simulated
}

/// Why something was refused; the volume and the simulated one have different words for it.
#[derive(Debug, PartialEq, Eq)]
enum Refusal {
    Space,
    History,
}

fn of_volume<T>(result: Result<T, VolumeError>) -> Result<T, Refusal> {
    result.map_err(|error| match error {
        VolumeError::NoSpace { .. } | VolumeError::Held { .. } => Refusal::Space,
        VolumeError::HistoryFull { .. } => Refusal::History,
        other => panic!("{other}"),
    })
}

fn of_simulated<T, E: std::error::Error>(result: Result<T, FtlError<E>>) -> Result<T, Refusal> {
    result.map_err(|error| match error {
        FtlError::Full { .. } | FtlError::Protected { .. } => Refusal::Space,
        FtlError::ProtectedEntries { .. } => Refusal::History,
        other => panic!("{other}"),
    })
}

/// What happens to both.
#[derive(Debug, Clone, Copy)]
enum Op {
    Write { lpn: Lpn, value: u32 },
    Trim { lpn: Lpn },
    Flush,
    Checkpoint,
    Collect,
    Snapshot,
    DeleteSnapshot { pick: u32 },
    Rewind { pick: u32 },
}

fn draw_op(draw: &mut Draw, exported: u32, values: u32) -> Op {
    let lpn = draw.below(exported) * draw.below(4) / 3 % exported;
    match draw.below(200) {
        0..12 => Op::Trim { lpn: Lpn(lpn) },
        12..18 => Op::Flush,
        18..20 => Op::Checkpoint,
        20..26 => Op::Collect,
        26 => Op::Snapshot,
        27 => Op::DeleteSnapshot {
            pick: draw.below(10),
        },
        28 => Op::Rewind {
            pick: draw.below(1000),
        },
        _ => Op::Write {
            lpn: Lpn(lpn),
            value: 1 + draw.below(values),
        },
    }
}

/// A page that resembles others: of three values one looks random, one is mostly zeros, and one differs in a few bytes
/// from what all of its family have in common.
fn alike(value: u32) -> PageBytes {
    match value % 3 {
        0 => page(value),
        1 => {
            let mut bytes = [0; 4096];
            bytes[..900].copy_from_slice(&page(value)[..900]);
            bytes
        }
        _ => {
            let mut bytes = page(1_000_000 + value / 3 % 4);
            for at in [9, 1000, 2000, 4000] {
                bytes[at..at + 8].copy_from_slice(&page(value)[at..at + 8]);
            }
            bytes
        }
    }
}

struct Pair {
    volume: Volume,
    simulated: Simulated,
    key: VolumeKey,
    kept: Option<HistoryIdentity>,
    now: u64,
    /// Instants at which something was changed.
    instants: Vec<u64>,
    tally: Tally,
    name: String,
}

/// What was reached.
#[derive(Debug, Default)]
struct Tally {
    rewinds: u64,
    changed: u64,
    rewinds_refused: u64,
    snapshots: u64,
    refused: u64,
    past: u64,
}

impl Pair {
    fn new(id: &Identity, name: String) -> Pair {
        let medium = Arc::new(MemoryMedium::new(bytes_needed(id).unwrap() as usize));
        create(&medium, id).unwrap();
        Pair {
            volume: Volume::open(medium).unwrap().0,
            simulated: simulated(id),
            key: id.key,
            kept: id.history,
            now: 1_000_000,
            instants: Vec::new(),
            tally: Tally::default(),
            name,
        }
    }

    /// A change begins in the simulated device as it does in a volume.
    fn begin(&mut self) -> Result<(), Refusal> {
        self.simulated.set_instant(self.now);
        self.simulated.limit_history();
        match self.simulated.versions() {
            Some(versions) if versions.history.is_full() => Err(Refusal::History),
            _ => Ok(()),
        }
    }

    fn write_simulated(&mut self, lpn: Lpn, bytes: &PageBytes) -> Result<(), Refusal> {
        self.begin()?;
        of_simulated(self.simulated.keep_pace())?;
        let gives_way = self.simulated.versions().is_some() || self.simulated.packing().is_some();
        let stored = match gives_way {
            true => self.simulated.referenced_objects(),
            false => self.simulated.objects().live(),
        };
        let write = Write {
            lpn,
            content: self.key.digest(bytes),
            page: Unit::Page(Arc::new(*bytes)),
            encode: self.simulated.begin_write(lpn),
            unhashed: None,
            may_grow: u64::from(stored) < self.simulated.core().most_live(),
        };
        let done = self
            .simulated
            .commit(When::now(0), write, ContentFtl::is_same, Tag::NONE);
        of_simulated(done).map(drop)
    }

    /// Does an operation on both; whether it was refused, which is the same for both.
    fn run(&mut self, op: Op) {
        self.now += 10;
        let now = self.now;
        let (here, there) = match op {
            Op::Write { lpn, value } => {
                let bytes = alike(value);
                let here = of_volume(self.volume.write(now, lpn, &bytes));
                (here, self.write_simulated(lpn, &bytes))
            }
            Op::Trim { lpn } => {
                let here = of_volume(self.volume.trim(now, lpn));
                let there = self
                    .begin()
                    .and_then(|()| of_simulated(self.simulated.trim(lpn)));
                (here, there)
            }
            Op::Flush => {
                let there = of_simulated(self.simulated.reclaim_empty(0));
                let there = there.and_then(|()| of_simulated(self.simulated.core_mut().barrier(0)));
                (of_volume(self.volume.flush()), there)
            }
            Op::Checkpoint => {
                let there = of_simulated(self.simulated.program_packs());
                let there =
                    there.and_then(|()| of_simulated(self.simulated.core_mut().flush_all(0)));
                (of_volume(self.volume.checkpoint()), there)
            }
            Op::Collect => {
                let here = of_volume(self.volume.collect_step());
                let there = of_simulated(self.simulated.collect_step());
                assert_eq!(here, there, "{}", self.name);
                (Ok(()), Ok(()))
            }
            Op::Snapshot => match self.simulated.versions().is_some() {
                true => self.snapshot(),
                false => return,
            },
            Op::DeleteSnapshot { pick } => return self.delete_snapshot(pick),
            Op::Rewind { pick } => return self.rewind_to(pick),
        };
        assert_eq!(here, there, "{}, {op:?}", self.name);
        self.tally.refused += u64::from(here.is_err());
        if matches!(op, Op::Write { .. } | Op::Trim { .. }) {
            self.instants.push(now);
        }
    }

    fn snapshot(&mut self) -> (Result<(), Refusal>, Result<(), Refusal>) {
        let here = of_volume(self.volume.snapshot(self.now)).map(drop);
        let there = self.begin();
        if there.is_ok() {
            self.simulated.snapshot(self.now).unwrap();
            self.tally.snapshots += 1;
        }
        (here, there)
    }

    fn delete_snapshot(&mut self, pick: u32) {
        let Ok(status) = self.volume.history_status() else {
            return;
        };
        let among = status.snapshots.len().max(1);
        let Some(&instant) = status.snapshots.get(pick as usize % among) else {
            return;
        };
        assert!(self.volume.delete_snapshot(self.now, instant).unwrap());
        self.simulated.set_instant(self.now);
        assert!(self.simulated.delete_snapshot(instant));
    }

    fn rewind_to(&mut self, pick: u32) {
        let Ok(status) = self.volume.history_status() else {
            return;
        };
        let known = self.instants.iter().rev().take(60);
        let known: Vec<u64> = known.copied().filter(|&i| i >= status.oldest).collect();
        let Some(&instant) = known.get(pick as usize % known.len().max(1)) else {
            return;
        };
        let here = of_volume(self.volume.rewind_to(self.now, instant));
        assert_eq!(
            here.is_ok(),
            self.rewind_fits(instant),
            "{}: rewind to {instant}",
            self.name
        );
        let Ok(changed) = here else {
            self.tally.rewinds_refused += 1;
            return;
        };
        self.simulated.guard_instant(Some(instant));
        self.begin().unwrap();
        self.simulated.guard_instant(None);
        let there = self.simulated.rewind_to(instant).unwrap();
        assert_eq!(changed, there, "{}: rewind to {instant}", self.name);
        self.tally.rewinds += 1;
        self.tally.changed += changed;
    }

    /// Whether the history of the simulated device takes what a rewind changes: what the pages refer to now is kept, and
    /// what they referred to then stays.
    fn rewind_fits(&self, instant: u64) -> bool {
        let versions = self.simulated.versions().unwrap();
        let changed = versions.history.changed_since(instant).unwrap().len() as usize;
        let latest = match self.kept {
            Some(kept) if kept.protected => self.now.saturating_sub(kept.least_window),
            _ => u64::MAX,
        };
        changed == 0 || versions.history.has_room_for(2 * changed, latest)
    }

    fn location(&self, lpn: Lpn) -> Option<Ppn> {
        let object = self.simulated.objects().object_of(lpn)?;
        let [base, own] = self.simulated.places(object);
        own.or(base)
    }

    fn compare(&self, at: usize) {
        let name = &self.name;
        for lpn in 0..self.volume.exported() {
            let (here, there) = (self.volume.location(Lpn(lpn)), self.location(Lpn(lpn)));
            assert_eq!(here, there, "{name}, step {at}: place of page {lpn}");
        }
        let counters = self.volume.counters();
        assert_eq!(
            counters,
            self.simulated.core().counters(),
            "{name}, step {at}"
        );
        let dedup = self.volume.dedup_counters();
        assert_eq!(
            dedup,
            Some(self.simulated.dedup_counters()),
            "{name}, step {at}"
        );
        let encoding = self.volume.encoding_counters();
        assert_eq!(
            encoding,
            self.simulated.encoding_counters(),
            "{name}, step {at}"
        );
        if let (Ok(status), Some(versions)) =
            (self.volume.history_status(), self.simulated.versions())
        {
            let history = &versions.history;
            let found = (status.oldest, status.entries);
            let expected = (history.oldest(), history.len() as u64);
            assert_eq!(found, expected, "{name}, step {at}: the history");
        }
    }

    fn compare_contents(&mut self) {
        let zeros = self.key.digest(&[0; 4096]);
        let mut bytes = [1; 4096];
        for lpn in 0..self.volume.exported() {
            self.volume.read(Lpn(lpn), &mut bytes).unwrap();
            let object = self.simulated.objects().object_of(Lpn(lpn));
            let expected = object.map_or(zeros, |object| self.simulated.objects().content(object));
            assert_eq!(self.key.digest(&bytes), expected, "{}: {lpn}", self.name);
            if let Some(object) = object {
                let page = self.simulated.read_version(object).unwrap();
                assert_eq!(*page.page(), bytes, "{}: {lpn}", self.name);
            }
        }
        if let Ok(status) = self.volume.history_status() {
            let instants = std::mem::take(&mut self.instants);
            for &instant in instants.iter().filter(|&&i| i >= status.oldest).step_by(7) {
                for lpn in 0..self.volume.exported() {
                    self.volume.read_at(instant, Lpn(lpn), &mut bytes).unwrap();
                    let expected = self
                        .simulated
                        .content_at_instant(Lpn(lpn), instant)
                        .unwrap();
                    let found = self.key.digest(&bytes);
                    assert_eq!(found, expected.unwrap_or(zeros), "{}: {lpn}", self.name);
                }
                self.tally.past += 1;
            }
        }
        self.volume.check().unwrap();
        self.simulated.check().unwrap();
    }
}

const SHAPES: [Shape; 3] = [
    Shape {
        exported: 50,
        blocks: 24,
        pages_per_block: 4,
        units_per_page: 1,
        alignment: 512,
        index_entries: 20,
        journal_bytes: 4 << 20,
    },
    Shape {
        exported: 90,
        blocks: 24,
        pages_per_block: 4,
        units_per_page: 2,
        alignment: 512,
        index_entries: 200,
        journal_bytes: 4 << 20,
    },
    // More is exported than fits.
    Shape {
        exported: 500,
        blocks: 20,
        pages_per_block: 3,
        units_per_page: 4,
        alignment: 4096,
        index_entries: 60,
        journal_bytes: 4 << 20,
    },
];

const HISTORIES: [Option<HistoryIdentity>; 3] = [
    None,
    Some(HistoryIdentity {
        entries: 300,
        least_window: 0,
        protected: false,
    }),
    Some(HistoryIdentity {
        entries: 60,
        least_window: 200,
        protected: true,
    }),
];

/// Whether values may be deltas, and whether they may be compressed.
const ENCODINGS: [(bool, bool); 4] = [(false, false), (true, false), (false, true), (true, true)];

#[test]
fn the_volume_does_what_the_simulation_says_with_every_combination_of_policies() {
    let mut reached = Reached::default();
    for policy in POLICIES {
        for (deltas, compression) in ENCODINGS {
            for history in HISTORIES {
                // Those without objects, or without an encoder, are another translation layer.
                if (deltas, compression, history) == (false, false, None) {
                    continue;
                }
                let mut with_these = Reached::default();
                for (number, shape) in SHAPES.into_iter().enumerate() {
                    let id = Identity {
                        history,
                        encoding: Encoding {
                            deltas,
                            compression,
                        },
                        ..shape.identity(policy)
                    };
                    let name = format!("{policy:?}, {:?}, {history:?}, {number}", id.encoding);
                    let pair = exercise(&id, number as u64, name);
                    with_these.add(&pair);
                    reached.add(&pair);
                }
                with_these.assert_uses(policy, (deltas, compression), history);
            }
        }
    }
    println!("{reached:?}");
    reached.assert_covers();
}

/// The same history on both.
fn exercise(id: &Identity, seed: u64, name: String) -> Pair {
    let mut pair = Pair::new(id, name);
    let mut draw = Draw::new(seed + 1);
    let values = [60, 600, 100_000][seed as usize % 3];
    for at in 0..700 {
        pair.run(draw_op(&mut draw, id.exported, values));
        pair.compare(at);
    }
    pair.compare_contents();
    pair
}

/// What all pairs together went through.
#[derive(Debug, Default)]
struct Reached {
    collections: u64,
    deltas: u64,
    compressed: u64,
    merged: u64,
    hits: u64,
    tally: Tally,
}

impl Reached {
    fn add(&mut self, pair: &Pair) {
        self.collections += pair.volume.counters().victims;
        self.hits += pair.simulated.dedup_counters().hits;
        if let Some(counted) = pair.volume.encoding_counters() {
            self.deltas += counted.deltas;
            self.compressed += counted.compressed;
            self.merged += counted.merges_gc + counted.merges_room + counted.merges_shared;
        }
        self.tally.rewinds += pair.tally.rewinds;
        self.tally.changed += pair.tally.changed;
        self.tally.rewinds_refused += pair.tally.rewinds_refused;
        self.tally.snapshots += pair.tally.snapshots;
        self.tally.refused += pair.tally.refused;
        self.tally.past += pair.tally.past;
    }

    /// Whether the histories of one combination met what it has.
    fn assert_uses(
        &self,
        policy: Policy,
        (deltas, compression): (bool, bool),
        history: Option<HistoryIdentity>,
    ) {
        let what = format!("{policy:?}, {deltas}, {compression}, {history:?}: {self:?}");
        assert!(self.collections > 0, "{what}");
        assert_eq!(self.hits > 0, policy != Policy::Plain, "{what}");
        assert_eq!(self.deltas > 0, deltas, "{what}");
        assert_eq!(self.compressed > 0, compression, "{what}");
        let of_history = [
            self.tally.rewinds,
            self.tally.changed,
            self.tally.snapshots,
            self.tally.past,
        ];
        for count in of_history {
            assert_eq!(count > 0, history.is_some(), "{what}");
        }
    }

    fn assert_covers(&self) {
        let counts = [
            self.collections,
            self.deltas,
            self.compressed,
            self.merged,
            self.hits,
            self.tally.rewinds,
            self.tally.changed,
            self.tally.rewinds_refused,
            self.tally.snapshots,
            self.tally.refused,
            self.tally.past,
        ];
        assert!(counts.iter().all(|&count| count >= 50), "{self:?}");
    }
}
