//! The events that the journal and the pages found since the checkpoint tell of, and which of them count.
//!
//! Invariants: an event that counts follows the one before it without a gap, or begins the epoch that goes on after
//! that; one that was durable once and is missing is an error.

use flashlore_flash::{Lpn, ObjectId};
use rustc_hash::FxHashMap;

use crate::best::Best;
use crate::error::VolumeError;
use crate::format::notes::{MOST_PAYLOAD, PART_BYTES, Payload};
use crate::format::superblock::first_event;
use crate::format::{Change, EpochStart, JournalEntry, Root};
use crate::load::{JournalTail, entries};
use crate::scan::{FoundUnit, Quality};

/// What happened, and when.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReplayEvent {
    pub stamp: u64,
    pub what: ReplayEventKind,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum ReplayEventKind {
    Page { lpn: Lpn },
    Change(Change),
}

/// What is known of the journal and the pages.
pub(super) struct Evidence<'a> {
    pub events: FxHashMap<u64, ReplayEvent>,
    /// Payloads of events.
    payloads: FxHashMap<u64, Payload>,
    /// Writes of which the journal says that they are dead, and the objects that they made.
    dead: Vec<(ObjectId, u64)>,
    /// The best unit of every write.
    pub best: Best<'a>,
    /// Lost pages of a plain volume whose write sequence number was lost too: it is not newer than the checkpoint.
    pub nameless: Vec<FoundUnit>,
    /// Everything up to this event was durable once.
    pub durable: u64,
    /// Old versions that ended at this instant or before are given up.
    pub window: u64,
}

impl<'a> Evidence<'a> {
    pub fn gather(root: &Root, tail: &JournalTail, found: &'a [FoundUnit]) -> Self {
        let best = Best::of(found);
        let nameless = found.iter().filter(|unit| unit.record.write_seq == 0);
        let nameless: Vec<FoundUnit> = nameless.copied().collect();
        let mut events = FxHashMap::default();
        let mut dead = Vec::new();
        let mut payloads: FxHashMap<u64, Payload> = FxHashMap::default();
        let mut window = root.history.oldest;
        for entry in entries(tail) {
            match entry {
                JournalEntry::Event {
                    sequence,
                    stamp,
                    change,
                } => {
                    let what = ReplayEventKind::Change(change);
                    events.insert(sequence, ReplayEvent { stamp, what });
                }
                JournalEntry::Dead {
                    lpn,
                    write_seq,
                    stamp,
                    object,
                } => {
                    dead.push((object, write_seq));
                    let what = ReplayEventKind::Page { lpn };
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
                let what = ReplayEventKind::Page { lpn };
                events.insert(write_seq, ReplayEvent { stamp, what });
            }
        }
        Evidence {
            events,
            payloads,
            dead,
            best,
            nameless,
            durable: tail.durable,
            window,
        }
    }
}

impl Evidence<'_> {
    /// The objects that writes made, some of them older than the checkpoint; each once or more.
    pub fn makers(&self) -> impl Iterator<Item = (ObjectId, u64)> + '_ {
        let found = self.best.units();
        let found = found.map(|unit| (unit.object, unit.record.write_seq));
        let all = found.chain(self.dead.iter().copied());
        all.filter(|(object, _)| object.is_some())
    }

    /// The payload of an event; nothing if it should have one and has none.
    pub fn payload(&self, sequence: u64, change: Change) -> &[u8] {
        let payload = self.payloads.get(&sequence);
        payload.map_or(&[], |payload| &payload[..change.payload()])
    }

    /// The numbers of the events that count, in order.
    pub fn order(&self, start: u64, epochs: &[EpochStart]) -> Result<Vec<u64>, VolumeError> {
        let mut order = Vec::new();
        let mut at = start;
        loop {
            // The newest epoch that goes on after this event; ones without events share the place.
            let next_epoch = epochs.iter().rev().find(|e| e.after == at);
            let next = match next_epoch {
                Some(e) => first_event(e.epoch),
                None => at + 1,
            };
            if self.events.contains_key(&next) {
                order.push(next);
                at = next;
                continue;
            }
            let needed = epochs.iter().any(|e| e.after > at);
            if needed || next <= self.durable {
                return Err(VolumeError::Damaged(format!(
                    "event {next} was durable once and is missing"
                )));
            }
            return Ok(order);
        }
    }
}
