//! The way of a change to the map: the read of its old content if it is partial, the hash unit, its turn,
//! the read of its candidate if that is compared, its commit.
//!
//! * **The hash unit** is a server that takes changes one at a time in order of readiness; one that is
//!   not hashed keeps its place in that order and takes no time.
//! * **A partly written unit** costs a read of its old content first; a verified duplicate costs the
//!   read of its candidate. Such a write is *plan, fetch, commit*: the map changes at the commit, and
//!   changes to one page are committed in order of arrival ([`crate::engine::order`]).
//!
//! Invariants: the hash queue is in order of completion; while `ordered`, every change on its way has a
//! ticket, and with sampling that is always.

use std::cmp::Reverse;
use std::ops::DerefMut;

use flashlore_content::PageTag;
use flashlore_flash::{Cause, Completion, Lpn, Ready, Tag, Time, When};
use flashlore_ftl::{Candidate, Unhashed};

use super::encoding::Encoding;
use super::{Driver, FIRST_FETCH_TAG, Result, SCAN_FETCH};
use crate::config::ReadOrder;
use crate::engine::system::System;

/// What happens to a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum What {
    /// It is written in full.
    Write,
    /// It is written in part: its old content is needed.
    Modify,
    /// It is forgotten.
    Trim,
    /// It was stored without being hashed, which is made up for: no change of the host's.
    Scan,
}

/// The write or trim of one unit on its way to the map.
#[derive(Debug, Clone, Copy)]
pub(super) struct Change {
    pub number: u64,
    pub lpn: Lpn,
    pub value: PageTag,
    /// R_c as the trace has it, in 1/65535; 0 where it has none.
    pub ratio: u16,
    /// The request that asks for it; its arrival is that of the change.
    pub slot: u32,
    pub what: What,
    /// Whether it is hashed, once that is decided.
    pub hashing: Hashing,
    /// How far its encoding is.
    pub encoding: Encoding,
}

/// What a change has to do with the hash unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hashing {
    /// It is hashed for itself.
    Alone,
    /// It is hashed, and others are held until it has been looked up.
    Sample,
    /// It is not hashed.
    Not(Unhashed),
}

impl Change {
    #[inline(always)]
    pub fn is_hashed(&self) -> bool {
        !matches!(self.hashing, Hashing::Not(_))
    }
}

/// Where a change goes on.
#[derive(Debug, Clone, Copy)]
pub(super) enum Next {
    /// With the read of its old content.
    FetchOld(Change),
    /// With its commit, or the read of its candidate.
    Commit(Change),
    /// It is a read of the host, of the request of a slot.
    Read(u32),
}

/// What a fetch was for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fetched {
    /// The old content of a partly written unit: hashing is next.
    Old,
    /// The candidate: the commit is next, if it is the candidate still.
    Candidate(Candidate<PageTag>),
    /// What a write is to be a delta from: encoding is next.
    Base(Candidate<PageTag>),
    /// A page that the host reads, whole.
    Whole,
    /// The same, to be decoded.
    Encoded,
}

/// Reads that something waits for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fetch {
    pub change: Change,
    pub what: Fetched,
    /// Reads whose end is not known.
    pub left: u8,
    /// When the first of those that are known began, and the last ended.
    pub start: Time,
    pub end: Time,
}

impl<S: System, D: DerefMut<Target = S>> Driver<D> {
    #[inline(always)]
    pub(super) fn change(&mut self, lpn: Lpn, value: PageTag, slot: u32, what: What) -> Change {
        self.changes += 1;
        Change {
            number: self.changes,
            lpn,
            value,
            ratio: 0,
            slot,
            what,
            hashing: Hashing::Not(Unhashed::Off),
            encoding: Encoding::Undecided,
        }
    }

    /// What a write without content is said to write: another value each time, where it matters.
    pub(super) fn unnamed_value(&self) -> PageTag {
        if S::ENCODES {
            PageTag((self.changes % u64::from(u32::MAX)) as u32)
        } else {
            PageTag::FOREIGN
        }
    }

    /// A change begins: with the read of its old content if it is partial, else at the hash unit.
    #[inline(always)]
    pub(super) fn begin_change(&mut self, at: Time, change: Change) -> Result<()> {
        if !S::HASHES {
            return self.modify_in_place(at, change);
        }
        if change.what == What::Modify && !self.ordered {
            self.keep_order();
        }
        let first = self.takes_place(&change);
        if change.what != What::Modify {
            return self.enter_hash(at, change);
        }
        if first {
            return self.fetch_old(at, change);
        }
        self.order
            .park(change.lpn, change.number, Next::FetchOld(change));
        Ok(())
    }

    /// A change is under way from now on; whether none of its page is before it, as far as that matters.
    #[inline(always)]
    pub(super) fn takes_place(&mut self, change: &Change) -> bool {
        if self.host.read_order == ReadOrder::Fifo {
            self.barrier.arrive(change.number);
        }
        !self.ordered || self.order.arrive(change.lpn, change.number)
    }

    /// From now on changes may overtake each other: those under way take their places.
    #[cold]
    pub(super) fn keep_order(&mut self) {
        self.ordered = true;
        for (_, change) in &self.hash_queue {
            if change.what != What::Scan {
                self.order.arrive(change.lpn, change.number);
            }
        }
    }

    /// Reads the old content of a partly written unit.
    fn fetch_old(&mut self, at: Time, change: Change) -> Result<()> {
        let tag = self.next_fetch();
        if S::ENCODES {
            let parts = self.system.read_parts(at, change.lpn, Cause::Modify, tag)?;
            if parts.is_mapped() {
                self.await_all(at, change, Fetched::Old, parts.done);
                return Ok(());
            }
            return self.enter_hash(at, change);
        }
        match self.system.read(at, change.lpn, Cause::Modify, tag)? {
            Some(done) => self.await_fetch(change, Fetched::Old, done),
            None => self.enter_hash(at, change),
        }
    }

    /// Without a hash unit the program follows the read of the old content by itself.
    fn modify_in_place(&mut self, at: Time, change: Change) -> Result<()> {
        let mut ready = Ready::At(at);
        if change.what == What::Modify
            && let Some(old) = self.system.read(at, change.lpn, Cause::Modify, Tag::NONE)?
        {
            if let Completion::At { start, .. } = old {
                let flight = self.requests.get_mut(change.slot);
                flight.start = flight.start.min(start);
            }
            ready = Ready::from(old);
        }
        self.write_unit(When { ready, at }, change)
    }

    /// The tag of the read that the next fetch waits for.
    #[inline(always)]
    pub(super) fn next_fetch(&self) -> Tag {
        let free = self.free_fetches.last();
        Tag(FIRST_FETCH_TAG + free.copied().unwrap_or(self.fetches.len() as u32))
    }

    /// Begins to wait for so many reads.
    fn open_fetch(&mut self, change: Change, what: Fetched, left: u8) -> u32 {
        let record = Fetch {
            change,
            what,
            left,
            start: Time::MAX,
            end: 0,
        };
        if let Some(fetch) = self.free_fetches.pop() {
            self.fetches[fetch as usize] = record;
            return fetch;
        }
        self.fetches.push(record);
        (self.fetches.len() - 1) as u32
    }

    /// A change waits for a read with the tag of the next fetch, which is the last thing at this instant: if
    /// nothing else happens before it ends, the change goes on at once.
    #[inline(always)]
    pub(super) fn await_fetch(
        &mut self,
        change: Change,
        what: Fetched,
        done: Completion,
    ) -> Result<()> {
        if let Completion::At { start, end } = done
            && self.goes_on_at(end)?
        {
            let flight = self.requests.get_mut(change.slot);
            flight.start = flight.start.min(start);
            return self.fetched(end, change, what, start);
        }
        let fetch = self.open_fetch(change, what, 1);
        self.await_read(fetch, done);
        Ok(())
    }

    /// Waits for up to two reads with the tag of the next fetch.
    pub(super) fn await_all(
        &mut self,
        at: Time,
        change: Change,
        what: Fetched,
        done: [Option<Completion>; 2],
    ) {
        let reads = done.iter().flatten().count();
        let fetch = self.open_fetch(change, what, reads.max(1) as u8);
        if reads == 0 {
            self.fetch_ends(fetch, at, at);
        }
        for done in done.into_iter().flatten() {
            self.await_read(fetch, done);
        }
    }

    pub(super) fn await_read(&mut self, fetch: u32, done: Completion) {
        match done {
            Completion::At { start, end } => self.fetch_ends(fetch, start, end),
            Completion::Later(_) => self.open_fetches += 1,
        }
    }

    pub(super) fn fetch_ends(&mut self, fetch: u32, start: Time, end: Time) {
        let mut last = end;
        if fetch != SCAN_FETCH {
            let record = &mut self.fetches[fetch as usize];
            record.start = record.start.min(start);
            record.end = record.end.max(end);
            record.left -= 1;
            if record.left > 0 {
                return;
            }
            last = record.end;
            let reads = matches!(record.what, Fetched::Whole | Fetched::Encoded);
            let (slot, first) = (record.change.slot, record.start);
            // The slot of a read that has just begun is written when all its reads have.
            if !reads {
                let flight = self.requests.get_mut(slot);
                flight.start = flight.start.min(first);
            }
        }
        self.fetched.push(Reverse((last, fetch)));
    }

    pub(super) fn after_fetch(&mut self, at: Time, fetch: u32) -> Result<()> {
        if fetch == SCAN_FETCH {
            return self.hash_scanned(at);
        }
        let Fetch {
            change,
            what,
            start,
            ..
        } = self.fetches[fetch as usize];
        self.free_fetches.push(fetch);
        self.fetched(at, change, what, start)
    }

    /// What a change waited for is there.
    #[inline(always)]
    fn fetched(&mut self, at: Time, change: Change, what: Fetched, start: Time) -> Result<()> {
        match what {
            Fetched::Base(base) => self.after_base(at, change, base),
            Fetched::Encoded => self.after_parts(at, change, start),
            Fetched::Whole => {
                self.unit_done(change.slot, start, at);
                Ok(())
            }
            Fetched::Old => self.enter_hash(at, change),
            Fetched::Candidate(read) => self.take_turn(at, change, Some(read)),
        }
    }

    /// A change takes its place at the hash unit; one that is not hashed takes no time there.
    #[inline(always)]
    pub(super) fn enter_hash(&mut self, at: Time, mut change: Change) -> Result<()> {
        if change.what != What::Trim && self.system.wants_hash() {
            change.hashing = Hashing::Alone;
        }
        self.line_up(at, change)
    }

    /// A change lines up at the hash unit.
    #[inline(always)]
    pub(super) fn line_up(&mut self, at: Time, change: Change) -> Result<()> {
        let duration = if change.is_hashed() {
            self.host.hash
        } else {
            0
        };
        let start = at.max(self.hash_free_at);
        let end = start + duration;
        if end == at {
            return self.after_hash(at, change);
        }
        self.hash_free_at = end;
        let flight = self.requests.get_mut(change.slot);
        flight.start = flight.start.min(start);
        if self.goes_on_at(end)? {
            return self.after_hash(end, change);
        }
        self.hash_queue.push_back((end, change));
        Ok(())
    }

    #[inline(always)]
    pub(super) fn after_hash(&mut self, at: Time, change: Change) -> Result<()> {
        if change.hashing == Hashing::Sample {
            return self.after_sample(at, change);
        }
        self.await_turn(at, change)
    }

    /// A change goes on when those to its page that arrived before it are through.
    #[inline(always)]
    pub(super) fn await_turn(&mut self, at: Time, change: Change) -> Result<()> {
        if self.ordered && !self.order.is_first(change.lpn, change.number) {
            self.order
                .park(change.lpn, change.number, Next::Commit(change));
            return Ok(());
        }
        self.take_turn(at, change, None)
    }

    /// It is the turn of a change: its candidate is read if it has to be compared and is not what was
    /// `read` already, or it commits.
    #[inline(always)]
    pub(super) fn take_turn(
        &mut self,
        at: Time,
        change: Change,
        read: Option<Candidate<PageTag>>,
    ) -> Result<()> {
        match self.ready_to_commit(at, change, read)? {
            Some(change) => self.commit(self.now, change),
            None => Ok(()),
        }
    }

    /// The change, if nothing has to be read or encoded before its commit.
    #[inline(always)]
    fn ready_to_commit(
        &mut self,
        at: Time,
        change: Change,
        read: Option<Candidate<PageTag>>,
    ) -> Result<Option<Change>> {
        if change.is_hashed() && self.fetch_candidate(at, change, read)? {
            return Ok(None);
        }
        if S::ENCODES {
            return self.awaits_encoding(at, change);
        }
        Ok(Some(change))
    }

    /// Reads the candidate of a hashed write if it has to be compared; whether one is being read.
    #[inline(always)]
    pub(super) fn fetch_candidate(
        &mut self,
        at: Time,
        change: Change,
        read: Option<Candidate<PageTag>>,
    ) -> Result<bool> {
        if !self.system.verifies() {
            return Ok(false);
        }
        let tag = self.next_fetch();
        let fetched = self.system.fetch_candidate(at, change.value, read, tag)?;
        if let Some((candidate, done)) = fetched {
            self.await_fetch(change, Fetched::Candidate(candidate), done)?;
        }
        Ok(fetched.is_some())
    }

    /// A change is committed, and what is parked behind it goes on.
    #[inline(always)]
    fn commit(&mut self, at: Time, change: Change) -> Result<()> {
        self.apply(at, change)?;
        if self.ordered {
            self.commit_in_order(change)?;
        }
        Ok(())
    }

    fn commit_in_order(&mut self, change: Change) -> Result<()> {
        while let Some(next) = self.order.commit(change.lpn) {
            match next {
                Next::FetchOld(next) => return self.fetch_old(self.now, next),
                Next::Read(slot) => self.resume_read(self.now, change.lpn, slot)?,
                Next::Commit(next) => match self.ready_to_commit(self.now, next, None)? {
                    Some(next) => self.apply(self.now, next)?,
                    None => return Ok(()),
                },
            }
        }
        // With nothing on its way the hash unit keeps the order by itself until the next fetch.
        self.ordered = self.keeps_order || !self.order.is_empty();
        Ok(())
    }

    /// The map changes: reads that waited for that go on.
    #[inline(always)]
    pub(super) fn apply(&mut self, at: Time, change: Change) -> Result<()> {
        if change.what == What::Trim {
            self.stamp(&change, None);
            self.system.trim(change.lpn)?;
            self.unit_done(change.slot, at, at);
        } else {
            let ready = Ready::At(at + self.host.record);
            self.write_unit(When { ready, at }, change)?;
        }
        if S::HASHES && self.host.read_order == ReadOrder::Fifo {
            self.pass_barrier(at, change.number)?;
        }
        Ok(())
    }

    /// What a change ends is an old version from the instant at which the host asked for it.
    #[inline(always)]
    fn stamp(&mut self, change: &Change, value: Option<PageTag>) {
        #[cfg(test)]
        self.seen
            .changed(change.lpn, self.requests.get_mut(change.slot).arrival);
        if S::ENCODES {
            let stamp = self.requests.get_mut(change.slot).arrival;
            self.system.set_instant(stamp);
            if let Some(truth) = &mut self.truth {
                truth.change(stamp, change.lpn, value);
            }
        }
    }

    #[inline(always)]
    fn write_unit(&mut self, when: When, change: Change) -> Result<()> {
        let Change {
            lpn,
            value,
            hashing,
            encoding,
            slot,
            ratio,
            ..
        } = change;
        let unhashed = match hashing {
            Hashing::Not(why) => Some(why),
            Hashing::Alone | Hashing::Sample => None,
        };
        let encode = matches!(encoding, Encoding::Done(_));
        self.stamp(&change, Some(value));
        if S::ENCODES {
            self.system.tell_ratio(ratio);
        }
        let done = self
            .system
            .write(when, lpn, value, unhashed, encode, Tag(slot))?;
        match done {
            Completion::At { start, end } => self.unit_done(slot, start, end),
            Completion::Later(_) => {}
        }
        self.expect_flush(when.at);
        self.collect_finished()
    }
}
