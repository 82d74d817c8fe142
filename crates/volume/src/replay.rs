//! From a checkpoint, the journal and the pages found after it to the state at one instant.
//!
//! Events are applied in order of their sequence numbers and stop at the first one that is missing.
//! Within an epoch numbers follow one another; an epoch ends where the superblock says the next one
//! goes on after it, so that what an earlier life left beyond its cut never counts.
//!
//! Invariants: the state is that after event `sequence`; an event that was durable once is never
//! missing without an error; every address maps to content with that birth, in the best copy found.

use std::collections::{BTreeMap, HashMap};

use flashlore_flash::{BlockId, Geometry, Ppn};

use crate::error::VolumeError;
use crate::format::{Entry, EpochStart, Identity, Policy, Root, Superblock};
use crate::layer::{ObjectRow, UNSHAREABLE};
use crate::load::{BlockState, JournalTail, Tables, entries};
use crate::nand::first_event;
use crate::scan::{ActiveBlock, FoundUnit, Quality};

const NOWHERE: u32 = u32::MAX;

/// The state after the last event that counts.
pub(crate) struct Replayed {
    /// The last event.
    pub sequence: u64,
    /// Its stamp, or a later one seen before it.
    pub stamp: u64,
    /// Plain: unit of every page. Otherwise its object.
    pub map: Vec<u32>,
    /// Objects by handle.
    pub objects: Vec<ObjectRow>,
    /// Rows of the map that changed since the checkpoint.
    pub changed_pages: Vec<u32>,
    /// Rows of the object table that changed since the checkpoint.
    pub changed_objects: Vec<u32>,
    /// Births newer than the checkpoint, by block, with their addresses.
    pub young: HashMap<u32, Vec<(u64, u32)>>,
    /// Events applied.
    pub events: u64,
}

#[derive(Debug, Clone, Copy)]
enum Event {
    Page { lpn: u32 },
    Share { lpn: u32, birth: u64 },
    Trim { lpn: u32 },
}

/// What is known of the journal and the pages.
struct Evidence {
    events: HashMap<u64, Event>,
    /// The best unit of every birth.
    best: HashMap<u64, FoundUnit>,
    /// Lost pages of a plain volume whose birth was lost too: it is not newer than the checkpoint.
    nameless: Vec<FoundUnit>,
    durable: u64,
}

/// Replays.
///
/// # Errors
/// Something that was durable once is missing.
pub(crate) fn replay(
    superblock: &Superblock,
    geometry: &Geometry,
    root: &Root,
    tables: Tables,
    tail: &JournalTail,
    active: &BTreeMap<u32, ActiveBlock>,
    found: &[FoundUnit],
) -> Result<Replayed, VolumeError> {
    let id = &superblock.identity;
    let evidence = Evidence::gather(root, tail, found);
    let mut order = order(root.sequence, &superblock.epochs, &evidence)?;
    let state = loop {
        let mut state = State::new(id, root, &tables);
        for &event in &order {
            state.apply(event, &evidence)?;
        }
        let Some(birth) = state.without_content(&evidence) else {
            break state;
        };
        order.truncate(order.partition_point(|&event| event < birth));
    };
    let sequence = order.last().copied().unwrap_or(root.sequence);
    if superblock.epochs.iter().any(|e| e.after > sequence) {
        return Err(VolumeError::Damaged(format!(
            "the content of an event after {sequence} was durable once and is missing"
        )));
    }
    let mut replayed = state.finish(id, &evidence)?;
    replayed.sequence = sequence;
    replayed.events = order.len() as u64;
    replayed.young = young(root, geometry, &order, found);
    check_locations(id, geometry, &tables, active, &replayed)?;
    Ok(replayed)
}

impl Evidence {
    fn gather(root: &Root, tail: &JournalTail, found: &[FoundUnit]) -> Evidence {
        let mut best: HashMap<u64, FoundUnit> = HashMap::new();
        let (nameless, named): (Vec<FoundUnit>, Vec<FoundUnit>) =
            found.iter().partition(|u| u.record.birth == 0);
        for unit in named {
            let at = best.entry(unit.record.birth).or_insert(unit);
            if at.rank() < unit.rank() {
                *at = unit;
            }
        }
        let mut events = HashMap::new();
        for entry in entries(tail) {
            match entry {
                Entry::Share {
                    lpn,
                    sequence,
                    birth,
                } => {
                    events.insert(sequence, Event::Share { lpn, birth });
                }
                Entry::Trim { lpn, sequence } => {
                    events.insert(sequence, Event::Trim { lpn });
                }
                Entry::Dead { lpn, birth } => {
                    events.insert(birth, Event::Page { lpn });
                }
                Entry::Open { .. } => {}
            }
        }
        for (&birth, unit) in &best {
            // A page with broken data counts only if it was whole once: then it has rotted.
            let whole = unit.quality > Quality::Broken || birth <= tail.durable;
            if birth > root.sequence && whole {
                let lpn = unit.record.lpn;
                events.insert(birth, Event::Page { lpn });
            }
        }
        Evidence {
            events,
            best,
            nameless,
            durable: tail.durable,
        }
    }
}

/// The numbers of the events that count, in order.
fn order(start: u64, epochs: &[EpochStart], evidence: &Evidence) -> Result<Vec<u64>, VolumeError> {
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
/// birth since.
struct State<'a> {
    tables: &'a Tables,
    plain: bool,
    /// By address: a row of the checkpoint (plain: the unit; otherwise the object), or `NOWHERE`.
    old: Vec<u32>,
    /// By address: the birth it holds, if that is newer than the checkpoint.
    new: HashMap<u32, u64>,
    changed: Vec<u32>,
    /// Objects of the checkpoint by birth, as far as something names them.
    handles: HashMap<u64, u32>,
    since: u64,
    stamp: u64,
}

impl<'a> State<'a> {
    fn new(id: &Identity, root: &Root, tables: &'a Tables) -> Self {
        State {
            plain: id.policy == Policy::Plain,
            old: tables.map.clone(),
            new: HashMap::new(),
            changed: Vec::new(),
            handles: alive(tables)
                .map(|handle| (tables.objects[handle as usize].birth, handle))
                .collect(),
            tables,
            since: root.sequence,
            stamp: root.stamp,
        }
    }

    fn apply(&mut self, sequence: u64, evidence: &Evidence) -> Result<(), VolumeError> {
        let event = evidence.events[&sequence];
        let (Event::Page { lpn } | Event::Share { lpn, .. } | Event::Trim { lpn }) = event;
        if lpn as usize >= self.old.len() {
            return Err(VolumeError::Damaged(format!(
                "event {sequence} names logical page {lpn}, which does not exist"
            )));
        }
        self.changed.push(lpn);
        match event {
            Event::Page { .. } => {
                if let Some(unit) = evidence.best.get(&sequence) {
                    self.stamp = self.stamp.max(unit.record.stamp);
                }
                self.set(lpn, sequence)
            }
            Event::Trim { .. } => {
                self.new.remove(&lpn);
                self.old[lpn as usize] = NOWHERE;
            }
            Event::Share { birth, .. } if birth > self.since => self.set(lpn, birth),
            Event::Share { birth, .. } => {
                let handle = self.handles.get(&birth).copied();
                let handle = handle.filter(|_| !self.plain).ok_or_else(|| {
                    VolumeError::Damaged(format!(
                        "event {sequence} shares the object of birth {birth}, which does not exist"
                    ))
                })?;
                self.new.remove(&lpn);
                self.old[lpn as usize] = handle;
            }
        }
        Ok(())
    }

    fn set(&mut self, lpn: u32, birth: u64) {
        self.new.insert(lpn, birth);
        self.old[lpn as usize] = NOWHERE;
    }

    /// The first birth that is referenced, was not durable for certain, and is known from its death
    /// alone: the journal reached the medium, the page did not, nor did what followed it. Such an
    /// event did not happen yet.
    fn without_content(&self, evidence: &Evidence) -> Option<u64> {
        let whole = |birth: &u64| {
            let unit = evidence.best.get(birth);
            unit.is_some_and(|unit| unit.quality > Quality::Broken)
        };
        let births = self.new.values().copied();
        births
            .filter(|birth| *birth > evidence.durable && !whole(birth))
            .min()
    }

    /// Places everything that is referenced in the end.
    fn finish(mut self, id: &Identity, evidence: &Evidence) -> Result<Replayed, VolumeError> {
        self.changed.sort_unstable();
        self.changed.dedup();
        let mut replayed = Replayed {
            sequence: self.since,
            stamp: self.stamp,
            map: Vec::new(),
            objects: Vec::new(),
            changed_pages: std::mem::take(&mut self.changed),
            changed_objects: Vec::new(),
            young: HashMap::new(),
            events: 0,
        };
        if id.policy == Policy::Plain {
            self.place_pages(evidence, &mut replayed)?;
        } else {
            let trusted = id.policy == Policy::DedupTrusted;
            self.place_objects(evidence, trusted, &mut replayed)?;
        }
        Ok(replayed)
    }

    fn place_pages(self, evidence: &Evidence, out: &mut Replayed) -> Result<(), VolumeError> {
        out.map = self.old;
        // A copy of an older birth is a copy of what the checkpoint holds there.
        for unit in evidence.best.values().chain(&evidence.nameless) {
            let (lpn, birth) = (unit.record.lpn, unit.record.birth);
            let Some(row) = out.map.get_mut(lpn as usize) else {
                continue;
            };
            if birth <= self.since && *row != NOWHERE && unit.quality > Quality::Broken {
                *row = unit.ppn.0;
                out.changed_pages.push(lpn);
            }
        }
        for (lpn, birth) in self.new {
            out.map[lpn as usize] = located(birth, evidence)?.ppn.0;
        }
        Ok(())
    }

    fn place_objects(
        self,
        evidence: &Evidence,
        trusted: bool,
        out: &mut Replayed,
    ) -> Result<(), VolumeError> {
        out.map = self.old;
        out.objects = self.tables.objects.clone();
        let mut used = vec![false; out.objects.len()];
        for &handle in out.map.iter().filter(|&&h| h != NOWHERE) {
            used[handle as usize] = true;
        }
        for unit in evidence.best.values() {
            let Some(&handle) = self.handles.get(&unit.record.birth) else {
                continue;
            };
            if used[handle as usize] && unit.quality > Quality::Broken {
                out.objects[handle as usize].location = unit.ppn;
                if trusted && unit.quality < Quality::Good {
                    out.objects[handle as usize].digest = UNSHAREABLE;
                }
                out.changed_objects.push(handle);
            }
        }
        let mut free = (0..out.objects.len() as u32).filter(|&h| !used[h as usize]);
        let mut made: HashMap<u64, u32> = HashMap::new();
        let mut new: Vec<(u32, u64)> = self.new.into_iter().collect();
        new.sort_unstable();
        for (lpn, birth) in new {
            let handle = match made.get(&birth) {
                Some(&handle) => handle,
                None => {
                    let unit = located(birth, evidence)?;
                    let handle = free.next().ok_or_else(|| {
                        VolumeError::Damaged("more objects than the table holds".to_string())
                    })?;
                    out.objects[handle as usize] = ObjectRow {
                        location: unit.ppn,
                        birth,
                        digest: match unit.quality {
                            Quality::Lost | Quality::Broken if trusted => UNSHAREABLE,
                            _ => unit.record.digest,
                        },
                    };
                    made.insert(birth, handle);
                    out.changed_objects.push(handle);
                    handle
                }
            };
            out.map[lpn as usize] = handle;
        }
        Ok(())
    }
}

/// Handles that the map of a checkpoint names, each once or more.
fn alive(tables: &Tables) -> impl Iterator<Item = u32> + '_ {
    let objects = tables.objects.len() as u32;
    tables.map.iter().copied().filter(move |&h| h < objects)
}

/// The best unit of a birth since the checkpoint that is referenced in the end.
fn located(birth: u64, evidence: &Evidence) -> Result<FoundUnit, VolumeError> {
    evidence.best.get(&birth).copied().ok_or_else(|| {
        VolumeError::Damaged(format!(
            "the content of birth {birth} is referenced, but no page holds it"
        ))
    })
}

/// Births since the checkpoint that count, in the blocks they lie in.
fn young(
    root: &Root,
    geometry: &Geometry,
    order: &[u64],
    found: &[FoundUnit],
) -> HashMap<u32, Vec<(u64, u32)>> {
    let mut young: HashMap<u32, Vec<(u64, u32)>> = HashMap::new();
    for unit in found {
        let birth = unit.record.birth;
        if birth > root.sequence && order.binary_search(&birth).is_ok() {
            let block = geometry.block_of(unit.ppn);
            young
                .entry(block.0)
                .or_default()
                .push((birth, unit.record.lpn));
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
    active: &BTreeMap<u32, ActiveBlock>,
    replayed: &Replayed,
) -> Result<(), VolumeError> {
    let changed: std::collections::HashSet<u32> = if id.policy == Policy::Plain {
        replayed.changed_pages.iter().copied().collect()
    } else {
        replayed.changed_objects.iter().copied().collect()
    };
    let mut owned = vec![0u64; (geometry.units() as usize).div_ceil(64)];
    let mut check = |row: u32, ppn: Ppn| -> Result<(), VolumeError> {
        let lost = |what: &str| {
            Err(VolumeError::Damaged(format!(
                "row {row} lies on unit {}, {what}",
                ppn.0
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
        let block: BlockId = geometry.block_of(ppn);
        let page = geometry.page_of(ppn).0 - geometry.first_page(block).0;
        match active.get(&block.0) {
            Some(a) if page >= a.taken => lost("which was never programmed"),
            Some(a) if page >= a.known => Ok(()),
            Some(a) if a.known == 0 && !changed.contains(&row) => {
                lost("whose block was erased; its copy is missing")
            }
            Some(_) => Ok(()),
            None if tables.blocks[block.index()].state == BlockState::Free => {
                lost("whose block is free")
            }
            None => Ok(()),
        }
    };
    if id.policy == Policy::Plain {
        for (lpn, &ppn) in replayed.map.iter().enumerate() {
            if ppn != NOWHERE {
                check(lpn as u32, Ppn(ppn))?;
            }
        }
        return Ok(());
    }
    let mut seen = vec![false; replayed.objects.len()];
    for &handle in replayed.map.iter().filter(|&&h| h != NOWHERE) {
        if !std::mem::replace(&mut seen[handle as usize], true) {
            check(handle, replayed.objects[handle as usize].location)?;
        }
    }
    Ok(())
}
