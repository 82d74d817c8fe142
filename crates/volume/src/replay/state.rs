//! The state while events are applied.
//!
//! Addresses hold a value: content the checkpoint knows, or a write sequence number since. The history names values by
//! numbers: a row of the checkpoint's objects, or beyond those a write since in the order in which it came to be named.
//! The window advances after all events: what it gives up, no event needed.
//!
//! Invariant: an address has a row in `old` or a write in `new`, or neither if it holds nothing.

use flashlore_content::history::{History, TooOld, Version};
use flashlore_flash::{Lpn, ObjectId};
use rustc_hash::FxHashMap;

use super::evidence::{Evidence, ReplayEvent, ReplayEventKind};
use super::history::{ReplayTables, ReplayedHistory, renamed};
use super::names::ObjectNames;
use super::overlay::RowOverlay;
use crate::error::VolumeError;
use crate::format::{Change, Identity, MapRow, NoteKind, ObjectName, ObjectRow, Root};
use crate::load::{Known, Tables};
use crate::notes::Notes;
use crate::place::Name;
use crate::policies::history_options;
use crate::scan::{FoundUnit, Quality};

/// What addresses hold, and what is remembered of them.
pub(super) struct ReplayState<'a> {
    pub known: Known<'a>,
    plain: bool,
    /// By address what the checkpoint knows: the unit on a plain volume, otherwise the object.
    pub old: RowOverlay<'a, MapRow>,
    /// By address: the write sequence number it holds, if that is newer than the checkpoint.
    pub new: FxHashMap<Lpn, u64>,
    pub changed: Vec<Lpn>,
    /// Which objects the events mean.
    pub names: &'a ObjectNames<'a>,
    pub history: Option<ReplayedHistory>,
    history_tables: ReplayTables,
    /// By number, how many more entries of the history refer to an object than in the checkpoint.
    pub kept: FxHashMap<ObjectId, i64>,
    pub notes: Notes,
    /// Writes since the checkpoint that the history has named, and their numbers.
    pub born: Vec<u64>,
    numbers: FxHashMap<u64, ObjectId>,
    pub since: u64,
    pub stamp: u64,
    /// Whether there was an event that may change many rows at once.
    pub has_bulk: bool,
}

impl<'a> ReplayState<'a> {
    pub fn new(
        id: &Identity,
        root: &Root,
        (tables, known): (&Tables, Known<'a>),
        names: &'a ObjectNames<'a>,
    ) -> Self {
        let history_tables = match known {
            Known::Loaded(_) => ReplayTables::empty(),
            Known::Stored(rows) => ReplayTables::over(rows.tables(), id),
        };
        let history = history_options(id).map(|options| match known {
            Known::Loaded(_) => {
                let stands = (root.history.oldest, &tables.pins[..]);
                let window = tables.versions.iter().copied();
                let kept = tables.kept.iter().copied();
                History::restore(&history_tables, id.exported, options, stands, window, kept)
            }
            Known::Stored(_) => {
                let at = root.history.at(&tables.pins);
                History::stored(&history_tables, id.exported, options, &at)
            }
        });
        ReplayState {
            plain: !id.has_objects(),
            old: RowOverlay::new(known.pages(), move |row| {
                (row < known.pages()).then(|| known.map_row(Lpn(row as u32)))
            }),
            known,
            kept: FxHashMap::default(),
            new: FxHashMap::default(),
            changed: Vec::new(),
            names,
            history,
            history_tables,
            notes: Notes::restore(id, &tables.notes),
            born: Vec::new(),
            numbers: FxHashMap::default(),
            since: root.sequence,
            stamp: root.stamp,
            has_bulk: false,
        }
    }

    pub fn apply(&mut self, sequence: u64, evidence: &Evidence<'_>) -> Result<(), VolumeError> {
        let ReplayEvent { stamp, what } = evidence.events[&sequence];
        if let ReplayEventKind::Page { lpn }
        | ReplayEventKind::Change(Change::Share { lpn, .. } | Change::Trim { lpn }) = what
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
            ReplayEventKind::Page { lpn } => {
                self.record(lpn, stamp);
                self.set(lpn, sequence);
            }
            ReplayEventKind::Change(Change::Share { lpn, object }) => {
                self.record(lpn, stamp);
                self.share(sequence, lpn, object)?;
            }
            ReplayEventKind::Change(Change::Trim { lpn }) => {
                self.record(lpn, stamp);
                self.clear(lpn);
            }
            ReplayEventKind::Change(change) => {
                let payload = evidence.payload(sequence, change);
                self.apply_to_history(sequence, stamp, change, payload)?;
            }
        }
        Ok(())
    }

    fn share(&mut self, sequence: u64, lpn: Lpn, object: ObjectName) -> Result<(), VolumeError> {
        match self.names.meant(object, sequence).filter(|_| !self.plain) {
            Some(Name::New(write_seq)) => self.set(lpn, write_seq),
            Some(Name::Old(handle)) => {
                self.clear(lpn);
                self.old.set(lpn.index(), MapRow::of_object(handle));
            }
            None => {
                return Err(VolumeError::Damaged(format!(
                    "event {sequence} shares {object}, which does not exist"
                )));
            }
        }
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
        let is_small = match change {
            Change::Snapshot { .. } | Change::Share { .. } | Change::Trim { .. } => true,
            Change::Note { kind, .. } => kind != NoteKind::Window,
            _ => false,
        };
        self.has_bulk |= !is_small;
        let mut ended = Vec::new();
        let kept = &mut self.kept;
        let mut give_up = |object: ObjectId| *kept.entry(object).or_default() -= 1;
        let forgotten = |error: TooOld| VolumeError::Damaged(format!("event {sequence}: {error}"));
        match change {
            Change::Rewind { instant } => {
                let changed = history.changed_since(instant).map_err(forgotten)?;
                let at = |lpn| Ok((lpn, history.at(lpn, instant)?));
                let then: Result<Vec<_>, TooOld> = changed.iter().map(at).collect();
                for (lpn, version) in then.map_err(forgotten)? {
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
                history.delete_snapshot(instant, &mut give_up);
            }
            Change::Purge { first, end } => history.purge(first..end, &mut give_up),
            Change::Forget { before } => ended = history.forget_before(before, &mut give_up),
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
            let row = self.old.get(lpn.index());
            return row.unwrap_or(MapRow::NONE).as_object();
        };
        let next = ObjectId((self.known.handles() + self.born.len()) as u32);
        let number = *self.numbers.entry(write_seq).or_insert(next);
        if number == next {
            self.born.push(write_seq);
        }
        number
    }

    fn set_number(&mut self, lpn: Lpn, number: ObjectId) {
        let rows = self.known.handles();
        self.clear(lpn);
        match self.born.get(number.index().wrapping_sub(rows)) {
            Some(&write_seq) => self.set(lpn, write_seq),
            None => self.old.set(lpn.index(), MapRow::of_object(number)),
        }
    }

    /// What an address holds becomes an old version.
    fn record(&mut self, lpn: Lpn, stamp: u64) {
        self.changed.push(lpn);
        if self.history.is_some() {
            let number = self.number(lpn);
            if number.is_some() {
                *self.kept.entry(number).or_default() += 1;
            }
            if let Some(history) = &mut self.history {
                history.record(lpn, number, stamp);
            }
        }
    }

    /// Names what the history recorded anew.
    pub fn rename(
        &self,
        id: &Identity,
        history: ReplayedHistory,
        name: impl Fn(ObjectId) -> ObjectId,
    ) -> ReplayedHistory {
        renamed(history, id, &self.history_tables, name)
    }

    fn set(&mut self, lpn: Lpn, write_seq: u64) {
        self.new.insert(lpn, write_seq);
        self.old.set(lpn.index(), MapRow::NONE);
    }

    fn clear(&mut self, lpn: Lpn) {
        self.new.remove(&lpn);
        self.old.set(lpn.index(), MapRow::NONE);
    }

    /// All events have been applied: the window begins where it must.
    pub fn advance(&mut self, evidence: &Evidence<'_>) {
        let kept = &mut self.kept;
        let mut give_up = |object: ObjectId| *kept.entry(object).or_default() -= 1;
        if let Some(history) = &mut self.history {
            history.advance(evidence.window, &mut give_up);
            // That the window began later still, for entries to have room, may have been lost.
            while history.is_over()
                && let Some(to) = history.stamp_to_drop(1)
                && history.advance(to, &mut give_up)
            {}
            // What made it begin there may be lost; what comes is later all the same.
            self.stamp = self.stamp.max(evidence.window);
        }
    }

    /// Writes since the checkpoint that something refers to.
    pub fn write_seqs(&self) -> impl Iterator<Item = u64> + '_ {
        let rows = self.known.handles();
        let kept = self.kept.iter().filter(|(_, more)| **more > 0);
        let kept = kept.filter_map(move |(number, _)| {
            let at = number.index().checked_sub(rows)?;
            self.born.get(at).copied()
        });
        self.new.values().copied().chain(kept)
    }

    /// The first write that is referenced, was not durable for certain, and is known from its death
    /// alone: the journal reached the medium, the page did not, nor did what followed it. Such an
    /// event did not happen yet.
    pub fn without_content(&self, evidence: &Evidence<'_>) -> Option<u64> {
        let is_there = |write_seq: &u64| {
            let unit = evidence.best.get(*write_seq);
            unit.filter(|unit| unit.quality > Quality::Broken)
        };
        // A base is no delta: if it was materialized before this was encoded, and that copy is not there, what
        // was encoded has not happened yet either.
        let is_no_delta = |unit: &FoundUnit| unit.slot.is_none_or(|slot| slot.base.is_none());
        let has_base = |base: ObjectName, event: u64| match self.names.meant(base, event) {
            Some(Name::New(base)) => is_there(&base).is_some_and(is_no_delta),
            Some(Name::Old(handle)) => {
                let row = self.known.object(handle).unwrap_or(ObjectRow::NONE);
                is_there(&row.write_seq).map_or(row.base().is_none(), is_no_delta)
            }
            None => false,
        };
        let whole = |write_seq: &u64| {
            let base = |unit: &FoundUnit| unit.slot.and_then(|slot| slot.base);
            let unit = is_there(write_seq);
            unit.is_some_and(|unit| base(unit).is_none_or(|base| has_base(base, *write_seq)))
        };
        self.write_seqs()
            .filter(|write_seq| *write_seq > evidence.durable && !whole(write_seq))
            .min()
    }
}
