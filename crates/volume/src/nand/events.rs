//! Events with their numbers, the journal that tells of those that program no page, and what is not written any more
//! once a write has failed.
//!
//! Invariants: numbers of events follow one another within an epoch; what belongs to an event stands in its batch of the
//! journal or an earlier one; after a failure nothing reaches the medium.

use std::sync::Arc;

use flashlore_content::PAGE_BYTES;
use flashlore_medium::MediumError;

use super::Nand;
use crate::error::NandError;
use crate::format::notes::PART_BYTES;
use crate::format::superblock::{EPOCH_SHIFT, first_event};
use crate::format::{Change, JournalEntry};
use crate::journal::JournalError;
use crate::young::Young;

impl Nand {
    /// The number the next event will have.
    pub(crate) fn next_sequence(&self) -> u64 {
        if self.sequence >> EPOCH_SHIFT == u64::from(self.epoch) {
            self.sequence + 1
        } else {
            first_event(self.epoch)
        }
    }

    /// Events that are not durable yet. Those of earlier epochs all are.
    pub(crate) fn waiting(&self) -> u64 {
        let before = first_event(self.epoch) - 1;
        self.sequence.saturating_sub(self.durable.max(before))
    }

    /// The next event has happened; a change that programs no page goes into the journal.
    pub(crate) fn take_event(
        &mut self,
        stamp: u64,
        change: Option<Change>,
    ) -> Result<(), NandError> {
        self.heed_tables()?;
        self.sequence = self.next_sequence();
        let sequence = self.sequence;
        match change {
            None => Ok(()),
            Some(change) => self.note(JournalEntry::Event {
                sequence,
                stamp,
                change,
            }),
        }
    }

    /// An event with a payload, which is in the same batch of the journal.
    pub(crate) fn take_event_with(
        &mut self,
        stamp: u64,
        change: Change,
        payload: &[u8],
    ) -> Result<(), NandError> {
        let sequence = self.next_sequence();
        for (number, part) in (0..).zip(payload.chunks(PART_BYTES)) {
            let mut bytes = [0; PART_BYTES];
            bytes[..part.len()].copy_from_slice(part);
            self.journal.push(JournalEntry::Part {
                sequence,
                number,
                bytes,
            });
        }
        self.take_event(stamp, Some(change))
    }

    /// Events that programmed a page since the checkpoint.
    pub(crate) fn young_count(&self) -> u64 {
        self.young.count()
    }

    /// Units of the flash pages programmed since then, by collection too: a recovery reads them.
    pub(crate) fn units_since_checkpoint(&self) -> u64 {
        (self.programs - self.programs_before) * u64::from(self.id.units_per_page)
    }

    /// Why nothing is written any more, if so.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// From now on nothing is written if a page of the tables could not be had since this was asked last: then not all
    /// of a change was made. Refuses to write if so, or if anything failed before.
    pub(crate) fn heed_tables(&mut self) -> Result<(), NandError> {
        if let Some(why) = self.forgive_tables(self.heeded.get()) {
            self.fail(why.to_string());
        }
        self.writable()
    }

    /// How many pages of the tables could not be had so far.
    pub(crate) fn failures_of_tables(&self) -> u64 {
        self.tables.failures()
    }

    /// Why a page of the tables could not be had, if one could not since so many could not. Where nothing was changed in
    /// between that concerns nobody else.
    pub(crate) fn forgive_tables(&self, before: u64) -> Option<NandError> {
        let since = self.tables.failures() - before;
        if since == 0 {
            return None;
        }
        self.heeded.set(self.heeded.get() + since);
        let error = self.tables.take_error();
        let why = error.map(|error| error.to_string()).unwrap_or_default();
        Some(NandError::Tables(why))
    }

    /// From now on nothing is written.
    pub(crate) fn fail(&mut self, why: String) {
        self.failed.get_or_insert(why);
    }

    pub(crate) fn writable(&self) -> Result<(), NandError> {
        match &self.failed {
            Some(why) => Err(NandError::ReadOnly(why.clone())),
            None => Ok(()),
        }
    }

    /// Notes an event or a fact for the journal.
    pub(crate) fn note(&mut self, entry: JournalEntry) -> Result<(), NandError> {
        self.journal.push(entry);
        if self.journal.is_due() {
            self.write_journal()?;
        }
        Ok(())
    }

    pub(crate) fn write_journal(&mut self) -> Result<(), NandError> {
        self.heed_tables()?;
        self.finish_checkpoint()?;
        if self.window > self.window_noted {
            self.window_noted = self.window;
            self.journal.push(JournalEntry::Window {
                oldest: self.window,
            });
        }
        let durable = self.durable;
        let written = self
            .journal
            .write(&self.medium, &self.areas, self.epoch, durable);
        match written {
            Ok(()) => Ok(()),
            Err(JournalError::Full) => {
                self.fail(NandError::JournalFull.to_string());
                Err(NandError::JournalFull)
            }
            Err(JournalError::Medium(error)) => Err(self.failed_with(error)),
        }
    }

    pub(super) fn write_mark(&mut self) -> Result<(), NandError> {
        self.writable()?;
        let (epoch, durable) = (self.epoch, self.durable);
        let medium = &self.medium;
        let written = self.journal.write_mark(medium, &self.areas, epoch, durable);
        written.map_err(|error| self.failed_with(error))
    }

    pub(crate) fn failed_with(&mut self, error: MediumError) -> NandError {
        self.fail(error.to_string());
        NandError::Medium(error)
    }

    /// Writes to the medium; a failure makes the volume read-only.
    pub(crate) fn put(&mut self, offset: u64, bytes: &[u8]) -> Result<(), NandError> {
        self.heed_tables()?;
        let written = self.medium.write(offset, bytes);
        written.map_err(|error| self.failed_with(error))
    }

    /// Everything written so far becomes durable; a failure makes the volume read-only.
    pub(crate) fn sync(&mut self) -> Result<(), NandError> {
        self.writable()?;
        let synced = self.medium.sync();
        synced.map_err(|error| self.failed_with(error))
    }

    /// What waits in RAM goes into the journal: values, and that writes happened whose values are needed no
    /// more.
    pub(super) fn note_waiting(&mut self) {
        let waiting = Arc::clone(&self.waiting);
        let mut waiting = waiting.lock();
        let due = waiting.due(self.sequence);
        let zeros = [0; PAGE_BYTES];
        for value in due.values {
            let write_seq = |object| self.write_seq(object).unwrap_or(0);
            let (head, bytes) = value.parts(write_seq, &zeros);
            let head = self.young.name_lost(head);
            self.journal.push_value(head, bytes);
            value.note_safe();
        }
        for Young {
            write_seq,
            lpn,
            stamp,
            object,
        } in due.forgotten
        {
            let happened = write_seq > self.since && write_seq <= self.sequence;
            if happened && self.young.is_first_death(write_seq) {
                self.journal.push(JournalEntry::Dead {
                    lpn,
                    write_seq,
                    stamp,
                    object,
                });
            }
        }
    }
}
