//! What an open volume says about its past in words: names of snapshots, marks, purges, and the clock.
//!
//! It changes with the events of the volume and with nothing else, in the same way while the volume is open and in a
//! replay. So a name is there exactly if its snapshot is.
//!
//! Invariants: a snapshot has one name at most, and a name stands for one snapshot at most; marks, purges and clocks
//! are in the order of their instants; there are never more notes than the table has rows.

use std::collections::BTreeMap;

use flashlore_flash::Lpn;

use crate::format::notes::{
    ClockNote, MOST_CLOCKS, MOST_PURGES, Note, NoteKind, PurgeNote, most_marks, name_of,
};
use crate::format::{Change, Identity, Table};

/// A mark: an instant with a name, which nothing keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    pub instant: u64,
    /// The name; several marks may have it.
    pub name: String,
}

/// The notes of a volume.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Notes {
    /// Names by the instants of their snapshots.
    names: BTreeMap<u64, String>,
    marks: Vec<Mark>,
    purges: Vec<PurgeNote>,
    clocks: Vec<ClockNote>,
    most_marks: usize,
}

impl Notes {
    /// The notes that a checkpoint holds.
    pub(crate) fn restore(id: &Identity, rows: &[Note]) -> Self {
        let kept = id.history.filter(|_| Table::Notes.rows(id) > 0);
        let mut notes = Notes {
            most_marks: kept.map_or(0, |h| most_marks(h.entries)) as usize,
            ..Notes::default()
        };
        for row in rows {
            match row.clone() {
                Note::Snapshot { instant, name } => drop(notes.names.insert(instant, name)),
                Note::Mark { instant, name } => notes.add_mark(Mark { instant, name }),
                Note::Purge(purge) => notes.purges.push(purge),
                Note::Clock(clock) => notes.clocks.push(clock),
            }
        }
        notes
    }

    /// All of them, as they are stored; none where there is no table for them.
    pub(crate) fn rows(&self) -> Vec<Note> {
        if self.most_marks == 0 {
            return Vec::new();
        }
        let names = self.names.iter().map(|(&instant, name)| Note::Snapshot {
            instant,
            name: name.clone(),
        });
        let clocks = self.clocks.iter().copied().map(Note::Clock);
        let purges = self.purges.iter().copied().map(Note::Purge);
        let marks = self.marks.iter().map(|mark| Note::Mark {
            instant: mark.instant,
            name: mark.name.clone(),
        });
        clocks.chain(purges).chain(names).chain(marks).collect()
    }

    /// An event happened, at a stamp and with this payload; it may have ended snapshots. Whether the payload is what
    /// the event asks for.
    pub(crate) fn apply(
        &mut self,
        stamp: u64,
        change: Change,
        payload: &[u8],
        ended: &[u64],
    ) -> bool {
        for instant in ended {
            self.names.remove(instant);
        }
        match change {
            Change::Snapshot { instant, name } if name > 0 => {
                let name = name_of(payload);
                name.map(|name| self.names.insert(instant, name)).is_some()
            }
            Change::DeleteSnapshot { instant } => {
                self.names.remove(&instant);
                true
            }
            Change::Purge { first, end } => {
                self.add_purge(stamp, Some((first, end)));
                true
            }
            Change::Forget { .. } => {
                self.add_purge(stamp, None);
                true
            }
            Change::Note {
                kind: NoteKind::Mark,
                instant,
                ..
            } => {
                let name = name_of(payload);
                name.map(|name| self.add_mark(Mark { instant, name }))
                    .is_some()
            }
            Change::Note {
                kind: NoteKind::Clock,
                instant,
                ..
            } => {
                let clock = ClockNote::of(instant, payload);
                clock.map(|clock| self.add_clock(clock)).is_some()
            }
            _ => true,
        }
    }

    fn add_mark(&mut self, mark: Mark) {
        let at = self.marks.partition_point(|m| m.instant <= mark.instant);
        self.marks.insert(at, mark);
        let extra = self.marks.len().saturating_sub(self.most_marks);
        self.marks.drain(..extra);
    }

    fn add_purge(&mut self, stamp: u64, pages: Option<(Lpn, Lpn)>) {
        self.purges.push(PurgeNote { stamp, pages });
        let extra = self.purges.len().saturating_sub(MOST_PURGES as usize);
        self.purges.drain(..extra);
    }

    /// The oldest reading that goes hands its unproven time to the next one: what is protected stays so for longer
    /// then, not for shorter.
    fn add_clock(&mut self, clock: ClockNote) {
        self.clocks.push(clock);
        while self.clocks.len() > MOST_CLOCKS as usize {
            let gone = self.clocks.remove(0);
            if let Some(next) = self.clocks.first_mut() {
                next.unproven = next.unproven.saturating_add(gone.unproven);
            }
        }
    }

    /// The name of the snapshot of an instant.
    pub fn name_of(&self, instant: u64) -> Option<&str> {
        self.names.get(&instant).map(String::as_str)
    }

    /// The instant of the snapshot with a name.
    pub fn snapshot(&self, name: &str) -> Option<u64> {
        let mut names = self.names.iter();
        names
            .find(|(_, found)| *found == name)
            .map(|(&instant, _)| instant)
    }

    /// Marks, oldest first.
    pub fn marks(&self) -> &[Mark] {
        &self.marks
    }

    /// The instant of the last mark with a name.
    pub fn mark(&self, name: &str) -> Option<u64> {
        let mut marks = self.marks.iter().rev();
        marks
            .find(|mark| mark.name == name)
            .map(|mark| mark.instant)
    }

    /// The last mark at an instant or before.
    pub fn mark_before(&self, instant: u64) -> Option<&Mark> {
        self.marks[..self.marks.partition_point(|m| m.instant <= instant)].last()
    }

    /// Purges, oldest first.
    pub fn purges(&self) -> &[PurgeNote] {
        &self.purges
    }

    /// Readings of the clocks, oldest first.
    pub fn clocks(&self) -> &[ClockNote] {
        &self.clocks
    }

    /// The last reading of the clocks.
    pub fn clock(&self) -> Option<&ClockNote> {
        self.clocks.last()
    }

    /// By the ends of times for which only the wall clock vouches, how long those were; oldest first.
    pub(crate) fn unproven(&self) -> Vec<(u64, u64)> {
        let clocks = self.clocks.iter().filter(|clock| clock.unproven > 0);
        clocks.map(|clock| (clock.time, clock.unproven)).collect()
    }
}
