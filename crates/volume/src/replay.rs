//! From a checkpoint, the journal and the pages found after it to the state at one instant.
//!
//! Events are applied in order of their sequence numbers and stop at the first one that is missing.
//! Within an epoch numbers follow one another; an epoch ends where the superblock says the next one
//! goes on after it, so that what an earlier life left beyond its cut never counts.
//!
//! Invariants: the state is that after event `sequence`; an event that was durable once is never missing without an
//! error; every address maps to content with that write sequence number, in the best copy found, or is lost; nothing
//! that the checkpoint placed is looked for in a block that was opened again since.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use flashlore_content::history::{History, TooOld, Version};
use flashlore_flash::{BlockId, Geometry, Lpn, ObjectId, Ppn};

use crate::best::Best;
use crate::error::VolumeError;
use crate::format::notes::{MOST_PAYLOAD, PART_BYTES, Payload};
use crate::format::{
    BlockState, Change, EpochStart, Identity, JournalEntry, MapRow, ObjectPlace, Root, RowId,
    Superblock, Table,
};
use crate::load::{JournalTail, Tables, entries, objects_of};
use crate::lost::{Lost, stand_in};
use crate::nand::{Young, first_event};
use crate::notes::Notes;
use crate::place::{Copies, Name, Placed, place};
use crate::policies::history_options;
use crate::scan::{ActiveBlock, FoundUnit, Quality};
use crate::unit::Units;

/// The state after the last event that counts.
pub(crate) struct Replayed {
    /// The last event.
    pub sequence: u64,
    /// Its stamp, or a later one seen before it.
    pub stamp: u64,
    /// Plain: unit of every page. Otherwise its object.
    pub map: Vec<MapRow>,
    /// Objects and packed pages.
    pub placed: Placed,
    /// Rows of the map that changed since the checkpoint.
    pub changed_pages: Vec<Lpn>,
    /// Old versions, where they are kept.
    pub history: Option<History>,
    /// What is said about them.
    pub notes: Notes,
    /// The start of the window as far as it is durable.
    pub window: u64,
    /// Writes newer than the checkpoint, by block.
    pub young: HashMap<BlockId, Vec<Young>>,
    /// Events applied.
    pub events: u64,
    /// What is nowhere any more, by owner.
    pub lost: Vec<Lost>,
}

/// What happened, and when.
#[derive(Debug, Clone, Copy)]
struct ReplayEvent {
    stamp: u64,
    what: What,
}

#[derive(Debug, Clone, Copy)]
enum What {
    Page { lpn: Lpn },
    Change(Change),
}

/// What is known of the journal and the pages.
struct Evidence<'a> {
    events: HashMap<u64, ReplayEvent>,
    /// Payloads of events.
    payloads: HashMap<u64, Payload>,
    /// The best unit of every write.
    best: Best<'a>,
    /// Lost pages of a plain volume whose write sequence number was lost too: it is not newer than the checkpoint.
    nameless: Vec<FoundUnit>,
    durable: u64,
    /// Old versions that ended at this instant or before are given up.
    window: u64,
}

/// What a replay stands on.
pub(crate) struct Basis<'a> {
    pub units: Units<'a>,
    pub superblock: &'a Superblock,
    pub geometry: &'a Geometry,
    pub root: &'a Root,
}

/// Replays.
///
/// # Errors
/// Something that was durable once is missing, or the medium fails.
pub(crate) fn replay(
    on: &Basis<'_>,
    tables: Tables,
    tail: &JournalTail,
    active: &BTreeMap<BlockId, ActiveBlock>,
    found: &[FoundUnit],
) -> Result<Replayed, VolumeError> {
    let Basis {
        units,
        superblock,
        geometry,
        root,
    } = on;
    let id = &superblock.identity;
    let was_reopened = |ppn: Ppn| {
        let page = geometry.page_in_block(geometry.page_of(ppn));
        let active = active.get(&geometry.block_of(ppn));
        ppn.0 < geometry.units() && active.is_some_and(|active| page.0 >= active.known)
    };
    let evidence = Evidence::gather(root, tail, found);
    let mut order = order(root.sequence, &superblock.epochs, &evidence)?;
    let state = loop {
        let mut state = ReplayState::new(id, root, &tables);
        for &event in &order {
            state.apply(event, &evidence)?;
        }
        state.advance(&evidence);
        let Some(write_seq) = state.without_content(&evidence) else {
            break state;
        };
        order.truncate(order.partition_point(|&event| event < write_seq));
    };
    let sequence = order.last().copied().unwrap_or(root.sequence);
    if superblock.epochs.iter().any(|e| e.after > sequence) {
        return Err(VolumeError::Damaged(format!(
            "the content of an event after {sequence} was durable once and is missing"
        )));
    }
    let mut replayed = state.finish(id, &evidence, found, &was_reopened)?;
    stand_in(units, geometry, &tables, active, &mut replayed)?;
    replayed.sequence = sequence;
    replayed.events = order.len() as u64;
    replayed.young = young(root, geometry, &order, found);
    for lost in replayed
        .lost
        .iter()
        .filter(|lost| lost.write_seq > root.sequence)
    {
        // Its event is known: it may not be forgotten with the unit that stands for it.
        let ReplayEvent { stamp, what } = evidence.events[&lost.write_seq];
        if let What::Page { lpn } = what {
            let block = geometry.block_of(lost.unit);
            let young = replayed.young.entry(block).or_default();
            young.push(Young {
                write_seq: lost.write_seq,
                lpn,
                stamp,
            });
        }
    }
    check_locations(id, geometry, &tables, active, &replayed)?;
    Ok(replayed)
}

impl<'a> Evidence<'a> {
    fn gather(root: &Root, tail: &JournalTail, found: &'a [FoundUnit]) -> Self {
        let best = Best::of(found);
        let nameless = found.iter().filter(|unit| unit.record.write_seq == 0);
        let nameless: Vec<FoundUnit> = nameless.copied().collect();
        let mut events = HashMap::new();
        let mut payloads: HashMap<u64, Payload> = HashMap::new();
        let mut window = root.history.oldest;
        for entry in entries(tail) {
            match entry {
                JournalEntry::Event {
                    sequence,
                    stamp,
                    change,
                } => {
                    let what = What::Change(change);
                    events.insert(sequence, ReplayEvent { stamp, what });
                }
                JournalEntry::Dead {
                    lpn,
                    write_seq,
                    stamp,
                } => {
                    let what = What::Page { lpn };
                    events.insert(write_seq, ReplayEvent { stamp, what });
                }
                JournalEntry::Window { oldest } => window = window.max(oldest),
                JournalEntry::Part {
                    sequence,
                    number,
                    bytes,
                } => {
                    let payload = payloads.entry(sequence).or_insert([0; MOST_PAYLOAD]);
                    let at = usize::from(number) * PART_BYTES;
                    if let Some(part) = payload.get_mut(at..at + PART_BYTES) {
                        part.copy_from_slice(&bytes);
                    }
                }
                JournalEntry::Open { .. } => {}
            }
        }
        for unit in best.units() {
            let write_seq = unit.record.write_seq;
            // A page with broken data counts only if it was whole once: then it has rotted.
            let whole = unit.quality > Quality::Broken || write_seq <= tail.durable;
            if write_seq > root.sequence && whole {
                let (lpn, stamp) = (unit.record.lpn, unit.record.stamp);
                let what = What::Page { lpn };
                events.insert(write_seq, ReplayEvent { stamp, what });
            }
        }
        Evidence {
            events,
            payloads,
            best,
            nameless,
            durable: tail.durable,
            window,
        }
    }
}

impl Evidence<'_> {
    /// The payload of an event; nothing if it should have one and has none.
    fn payload(&self, sequence: u64, change: Change) -> &[u8] {
        let payload = self.payloads.get(&sequence);
        payload.map_or(&[], |payload| &payload[..change.payload()])
    }
}

/// The numbers of the events that count, in order.
fn order(
    start: u64,
    epochs: &[EpochStart],
    evidence: &Evidence<'_>,
) -> Result<Vec<u64>, VolumeError> {
    let mut order = Vec::new();
    let mut at = start;
    loop {
        // The newest epoch that goes on after this event; ones without events share the place.
        let next_epoch = epochs.iter().rev().find(|e| e.after == at);
        let next = match next_epoch {
            Some(e) => first_event(e.epoch),
            None => at + 1,
        };
        if evidence.events.contains_key(&next) {
            order.push(next);
            at = next;
            continue;
        }
        let needed = epochs.iter().any(|e| e.after > at);
        if needed || next <= evidence.durable {
            return Err(VolumeError::Damaged(format!(
                "event {next} was durable once and is missing"
            )));
        }
        return Ok(order);
    }
}

/// The state while events are applied. Addresses hold a value: content the checkpoint knows, or a
/// write sequence number since.
///
/// The history names values by numbers: a row of the checkpoint's objects, or beyond those a write since in
/// the order in which it came to be named. The window advances after all events: what it gives up, no event
/// needed.
struct ReplayState<'a> {
    tables: &'a Tables,
    plain: bool,
    /// By address what the checkpoint knows: the unit on a plain volume, otherwise the object.
    old: Vec<MapRow>,
    /// By address: the write sequence number it holds, if that is newer than the checkpoint.
    new: HashMap<Lpn, u64>,
    changed: Vec<Lpn>,
    /// Objects of the checkpoint by write sequence number, as far as something names them.
    handles: HashMap<u64, ObjectId>,
    history: Option<History>,
    notes: Notes,
    /// Writes since the checkpoint that the history has named, and their numbers.
    born: Vec<u64>,
    numbers: HashMap<u64, ObjectId>,
    since: u64,
    stamp: u64,
}

impl<'a> ReplayState<'a> {
    fn new(id: &Identity, root: &Root, tables: &'a Tables) -> Self {
        let history = history_options(id).map(|options| {
            let versions = tables.versions.iter().copied();
            let pins = tables.pins.iter().cloned();
            History::restore(id.exported, options, root.history.oldest, versions, pins)
        });
        ReplayState {
            plain: !id.has_objects(),
            old: tables.map.clone(),
            new: HashMap::new(),
            changed: Vec::new(),
            handles: alive(tables)
                .map(|handle| (tables.objects[handle.index()].write_seq, handle))
                .collect(),
            history,
            notes: Notes::restore(id, &tables.notes),
            born: Vec::new(),
            numbers: HashMap::new(),
            tables,
            since: root.sequence,
            stamp: root.stamp,
        }
    }

    fn apply(&mut self, sequence: u64, evidence: &Evidence<'_>) -> Result<(), VolumeError> {
        let ReplayEvent { stamp, what } = evidence.events[&sequence];
        if let What::Page { lpn } | What::Change(Change::Share { lpn, .. } | Change::Trim { lpn }) =
            what
            && lpn.index() >= self.old.len()
        {
            return Err(VolumeError::Damaged(format!(
                "event {sequence} names logical page {lpn}, which does not exist"
            )));
        }
        if stamp < self.stamp && self.history.is_some() {
            return Err(VolumeError::Damaged(format!(
                "event {sequence} happened at {stamp}, before the one before it, at {}",
                self.stamp
            )));
        }
        self.stamp = self.stamp.max(stamp);
        match what {
            What::Page { lpn } => {
                self.record(lpn, stamp);
                self.set(lpn, sequence);
            }
            What::Change(Change::Share { lpn, write_seq }) => {
                self.record(lpn, stamp);
                self.share(sequence, lpn, write_seq)?;
            }
            What::Change(Change::Trim { lpn }) => {
                self.record(lpn, stamp);
                self.clear(lpn);
            }
            What::Change(change) => {
                let payload = evidence.payload(sequence, change);
                self.apply_to_history(sequence, stamp, change, payload)?;
            }
        }
        Ok(())
    }

    fn share(&mut self, sequence: u64, lpn: Lpn, write_seq: u64) -> Result<(), VolumeError> {
        if write_seq > self.since {
            self.set(lpn, write_seq);
            return Ok(());
        }
        let handle = self.handles.get(&write_seq).copied();
        let handle = handle.filter(|_| !self.plain).ok_or_else(|| {
            VolumeError::Damaged(format!(
                "event {sequence} shares the object of write sequence number {write_seq}, which does not exist"
            ))
        })?;
        self.clear(lpn);
        self.old[lpn.index()] = MapRow::of_object(handle);
        Ok(())
    }

    fn apply_to_history(
        &mut self,
        sequence: u64,
        stamp: u64,
        change: Change,
        payload: &[u8],
    ) -> Result<(), VolumeError> {
        let Some(history) = &mut self.history else {
            return Err(VolumeError::Damaged(format!(
                "event {sequence} concerns the history, and there is none"
            )));
        };
        let mut ended = Vec::new();
        let forgotten = |error: TooOld| VolumeError::Damaged(format!("event {sequence}: {error}"));
        match change {
            Change::Rewind { instant } => {
                let mut changes = Vec::new();
                let told = history.changed_since(instant, |lpn, version| {
                    changes.push((lpn, version));
                });
                told.map_err(forgotten)?;
                for (lpn, version) in changes {
                    let target = match version {
                        Version::Object(number) => number,
                        Version::Nothing | Version::Purged => ObjectId::NONE,
                        Version::Current => continue,
                    };
                    if self.number(lpn) != target {
                        self.record(lpn, stamp);
                        self.set_number(lpn, target);
                    }
                }
            }
            Change::Snapshot { instant, .. } => history.snapshot(instant).map_err(forgotten)?,
            Change::DeleteSnapshot { instant } => {
                history.delete_snapshot(instant, &mut |_| {});
            }
            Change::Purge { first, end } => history.purge(first..end, &mut |_| {}),
            Change::Forget { before } => ended = history.forget_before(before, &mut |_| {}),
            Change::Note { .. } | Change::Share { .. } | Change::Trim { .. } => {}
        }
        match self.notes.apply(stamp, change, payload, &ended) {
            true => Ok(()),
            false => Err(VolumeError::Damaged(format!(
                "event {sequence} lacks the name or the numbers it brings"
            ))),
        }
    }

    /// What an address holds, as the history names it.
    fn number(&mut self, lpn: Lpn) -> ObjectId {
        let Some(&write_seq) = self.new.get(&lpn) else {
            return self.old[lpn.index()].as_object();
        };
        let next = ObjectId((self.tables.objects.len() + self.born.len()) as u32);
        let number = *self.numbers.entry(write_seq).or_insert(next);
        if number == next {
            self.born.push(write_seq);
        }
        number
    }

    fn set_number(&mut self, lpn: Lpn, number: ObjectId) {
        let rows = self.tables.objects.len();
        self.clear(lpn);
        match self.born.get(number.index().wrapping_sub(rows)) {
            Some(&write_seq) => self.set(lpn, write_seq),
            None => self.old[lpn.index()] = MapRow::of_object(number),
        }
    }

    /// What an address holds becomes an old version.
    fn record(&mut self, lpn: Lpn, stamp: u64) {
        self.changed.push(lpn);
        if self.history.is_some() {
            let number = self.number(lpn);
            if let Some(history) = &mut self.history {
                history.record(lpn, number, stamp);
            }
        }
    }

    fn set(&mut self, lpn: Lpn, write_seq: u64) {
        self.new.insert(lpn, write_seq);
        self.old[lpn.index()] = MapRow::NONE;
    }

    fn clear(&mut self, lpn: Lpn) {
        self.new.remove(&lpn);
        self.old[lpn.index()] = MapRow::NONE;
    }

    /// All events have been applied: the window begins where it must.
    fn advance(&mut self, evidence: &Evidence<'_>) {
        if let Some(history) = &mut self.history {
            history.advance(evidence.window, &mut |_| {});
            // That the window began later still, for entries to have room, may have been lost.
            while history.is_over()
                && let Some(to) = history.stamp_to_drop(1)
            {
                history.advance(to, &mut |_| {});
            }
            // What made it begin there may be lost; what comes is later all the same.
            self.stamp = self.stamp.max(evidence.window);
        }
    }

    /// Writes since the checkpoint that something refers to.
    fn write_seqs(&self) -> impl Iterator<Item = u64> + '_ {
        let rows = self.tables.objects.len();
        let kept = self.history.iter().flat_map(History::objects);
        let kept = kept.filter_map(move |number| {
            let at = number.index().checked_sub(rows)?;
            self.born.get(at).copied()
        });
        self.new.values().copied().chain(kept)
    }

    /// The first write that is referenced, was not durable for certain, and is known from its death
    /// alone: the journal reached the medium, the page did not, nor did what followed it. Such an
    /// event did not happen yet.
    fn without_content(&self, evidence: &Evidence<'_>) -> Option<u64> {
        let is_there = |write_seq: &u64| {
            let unit = evidence.best.get(*write_seq);
            unit.filter(|unit| unit.quality > Quality::Broken)
        };
        // A base is no delta: if it was materialized before this was encoded, and that copy is not there, what
        // was encoded has not happened yet either.
        let has_base = |base: u64| match (is_there(&base), self.handles.get(&base)) {
            _ if base == 0 => true,
            (Some(copy), _) => copy.slot.is_none_or(|slot| slot.base == 0),
            (None, Some(&handle)) => self.tables.objects[handle.index()].base().is_none(),
            (None, None) => false,
        };
        let whole = |write_seq: &u64| {
            let slot = |unit: &FoundUnit| unit.slot.is_none_or(|slot| has_base(slot.base));
            is_there(write_seq).is_some_and(slot)
        };
        self.write_seqs()
            .filter(|write_seq| *write_seq > evidence.durable && !whole(write_seq))
            .min()
    }

    /// Places everything that is referenced in the end.
    fn finish(
        mut self,
        id: &Identity,
        evidence: &Evidence<'_>,
        found: &[FoundUnit],
        was_reopened: &dyn Fn(Ppn) -> bool,
    ) -> Result<Replayed, VolumeError> {
        self.changed.sort_unstable();
        self.changed.dedup();
        let mut replayed = Replayed {
            sequence: self.since,
            stamp: self.stamp,
            map: Vec::new(),
            placed: Placed::default(),
            changed_pages: std::mem::take(&mut self.changed),
            history: self.history.take(),
            notes: std::mem::take(&mut self.notes),
            window: evidence.window,
            young: HashMap::new(),
            events: 0,
            lost: Vec::new(),
        };
        if id.has_objects() {
            self.place_objects(id, evidence, found, was_reopened, &mut replayed)?;
        } else {
            self.place_pages(evidence, was_reopened, &mut replayed);
        }
        Ok(replayed)
    }

    fn place_pages(
        self,
        evidence: &Evidence<'_>,
        was_reopened: &dyn Fn(Ppn) -> bool,
        out: &mut Replayed,
    ) {
        out.map = self.old;
        // What lay in a block that was opened again lies elsewhere now, or is lost.
        let mut lost: BTreeSet<Lpn> = BTreeSet::new();
        for (lpn, &row) in (0..).map(Lpn).zip(&out.map) {
            if row.is_some() && was_reopened(row.as_unit()) {
                lost.insert(lpn);
            }
        }
        // A copy of an older write is a copy of what the checkpoint holds there.
        for unit in evidence.best.units().chain(&evidence.nameless) {
            let (lpn, write_seq) = (unit.record.lpn, unit.record.write_seq);
            let Some(row) = out.map.get_mut(lpn.index()) else {
                continue;
            };
            if write_seq <= self.since && row.is_some() && unit.quality > Quality::Broken {
                *row = MapRow::of_unit(unit.ppn);
                lost.remove(&lpn);
                out.changed_pages.push(lpn);
            }
        }
        for (&lpn, &write_seq) in &self.new {
            match evidence.best.get(write_seq) {
                Some(unit) => out.map[lpn.index()] = MapRow::of_unit(unit.ppn),
                None => _ = lost.insert(lpn),
            }
        }
        out.changed_pages.extend(&lost);
        let write_seq = |lpn: &Lpn| self.new.get(lpn).copied().unwrap_or(0);
        out.lost = lost
            .iter()
            .map(|lpn| Lost::new(ObjectId::of_page(*lpn), write_seq(lpn)))
            .collect();
    }

    fn place_objects(
        self,
        id: &Identity,
        evidence: &Evidence<'_>,
        found: &[FoundUnit],
        was_reopened: &dyn Fn(Ppn) -> bool,
        out: &mut Replayed,
    ) -> Result<(), VolumeError> {
        out.map = self.old;
        let rows = self.tables.objects.len();
        let born = &self.born;
        let name = |number: ObjectId| match born.get(number.index().wrapping_sub(rows)) {
            Some(&write_seq) => Name::New(write_seq),
            None => Name::Old(number),
        };
        let kept = out.history.iter().flat_map(History::objects).map(name);
        let old = objects_of(&out.map).filter(|handle| handle.is_some());
        let named = old.map(Name::Old);
        let named = named.chain(self.new.values().map(|&write_seq| Name::New(write_seq)));
        let copies = Copies {
            tables: self.tables,
            handles: &self.handles,
            best: &evidence.best,
            found,
            since: self.since,
            trusted: id.trusts_digests(),
            most: Table::Objects.rows(id),
            was_reopened,
        };
        let page_of = match self.tables.packs.is_empty() {
            true => HashMap::new(),
            false => objects_of(&out.map)
                .zip((0..).map(Lpn))
                .filter(|(handle, _)| handle.is_some())
                .collect(),
        };
        let placed = place(&copies, named.chain(kept), &page_of)?;
        for (lpn, write_seq) in self.new {
            out.map[lpn.index()] = MapRow::of_object(placed.made[&write_seq]);
        }
        if let Some(history) = &mut out.history {
            history.rename(|number| match name(number) {
                Name::New(write_seq) => placed.made[&write_seq],
                Name::Old(handle) => handle,
            });
        }
        let write_seq = |handle: ObjectId| placed.objects[handle.index()].write_seq;
        out.lost = placed
            .lost
            .iter()
            .map(|&h| Lost::new(h, write_seq(h)))
            .collect();
        out.placed = placed;
        Ok(())
    }
}

/// Handles that the map or the history of a checkpoint names, and the bases of those; each once or more.
fn alive(tables: &Tables) -> impl Iterator<Item = ObjectId> + '_ {
    let objects = tables.objects.len();
    let named = objects_of(&tables.map).chain(tables.kept());
    let named = named.filter(move |handle| handle.index() < objects);
    named.flat_map(move |handle| {
        let base = tables.objects[handle.index()].base();
        let base = base.filter(|base| base.index() < objects);
        std::iter::once(handle).chain(base)
    })
}

/// Writes since the checkpoint that count, in the blocks they lie in.
fn young(
    root: &Root,
    geometry: &Geometry,
    order: &[u64],
    found: &[FoundUnit],
) -> HashMap<BlockId, Vec<Young>> {
    let mut young: HashMap<BlockId, Vec<Young>> = HashMap::new();
    for unit in found {
        let write_seq = unit.record.write_seq;
        let in_journal = unit.slot.is_some_and(|slot| slot.in_journal);
        if write_seq > root.sequence && !in_journal && order.binary_search(&write_seq).is_ok() {
            let block = geometry.block_of(unit.ppn);
            young.entry(block).or_default().push(Young {
                write_seq,
                lpn: unit.record.lpn,
                stamp: unit.record.stamp,
            });
        }
    }
    young
}

/// Everything referenced lies in a page that was taken, on a unit of its own, and nothing lies where a
/// block was opened anew.
fn check_locations(
    id: &Identity,
    geometry: &Geometry,
    tables: &Tables,
    active: &BTreeMap<BlockId, ActiveBlock>,
    replayed: &Replayed,
) -> Result<(), VolumeError> {
    let changed: HashSet<RowId> = match id.has_objects() {
        true => rows_of(&replayed.placed.changed),
        false => rows_of(&replayed.changed_pages),
    };
    let mut owned = vec![0u64; (geometry.units() as usize).div_ceil(64)];
    let mut check = location_check(geometry, tables, active, &changed, &mut owned);
    if !id.has_objects() {
        for (lpn, &row) in (0..).map(Lpn).zip(&replayed.map) {
            if row.is_some() {
                check(lpn.into(), row.as_unit())?;
            }
        }
        return Ok(());
    }
    let Placed { objects, packs, .. } = &replayed.placed;
    let mut seen = vec![false; objects.len()];
    let kept = replayed.history.iter().flat_map(History::objects);
    for handle in objects_of(&replayed.map)
        .chain(kept)
        .filter(|handle| handle.is_some())
    {
        let base = objects[handle.index()].base();
        for handle in [Some(handle), base].into_iter().flatten() {
            let before = std::mem::replace(&mut seen[handle.index()], true);
            if let ObjectPlace::Unit(unit) = objects[handle.index()].place
                && !before
            {
                check(handle.into(), unit)?;
            }
        }
    }
    drop(check);
    let changed = rows_of(&replayed.placed.changed_packs);
    let mut check = location_check(geometry, tables, active, &changed, &mut owned);
    for (number, pack) in (0..).map(RowId).zip(packs) {
        if let Some(pack) = pack {
            check(number, pack.location)?;
        }
    }
    Ok(())
}

fn rows_of<R: Copy + Into<RowId>>(changed: &[R]) -> HashSet<RowId> {
    changed.iter().map(|&row| row.into()).collect()
}

/// A check of rows and where they lie; those `changed` lie there since the checkpoint.
fn location_check<'a>(
    geometry: &'a Geometry,
    tables: &'a Tables,
    active: &'a BTreeMap<BlockId, ActiveBlock>,
    changed: &'a HashSet<RowId>,
    owned: &'a mut [u64],
) -> impl FnMut(RowId, Ppn) -> Result<(), VolumeError> + 'a {
    move |row: RowId, ppn: Ppn| {
        let lost = |what: &str| {
            Err(VolumeError::Damaged(format!(
                "row {row} lies on unit {ppn}, {what}"
            )))
        };
        if ppn.0 >= geometry.units() {
            return lost("which does not exist");
        }
        let (word, bit) = (&mut owned[ppn.index() / 64], 1 << (ppn.0 % 64));
        if *word & bit != 0 {
            return lost("where another row lies");
        }
        *word |= bit;
        let block = geometry.block_of(ppn);
        let page = geometry.page_in_block(geometry.page_of(ppn));
        match active.get(&block) {
            Some(a) if page.0 >= a.taken => lost("which was never programmed"),
            Some(a) if page.0 >= a.known && !changed.contains(&row) => {
                lost("whose block was erased; its copy is missing")
            }
            Some(_) => Ok(()),
            None if tables.blocks[block.index()].state == BlockState::Free => {
                lost("whose block is free")
            }
            None => Ok(()),
        }
    }
}
