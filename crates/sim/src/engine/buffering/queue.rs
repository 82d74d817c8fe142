//! The sorting write queue in front of the translation layer.
//!
//! Writes and trims are changes; each takes a place, and no version of a page is left out. A change
//! that finds no free place waits in line: the bucket of its address goes on, or the largest. No bucket
//! goes on for one that waits while half of the changes leave: what is queued is sorted even where the
//! host asks for more than the flash can do. All of the queue goes on a period after the first change
//! since the last time, and when more requests than it has places have come and nothing has left it. A
//! page written in part needs no read of its old content if its newest version is here.
//!
//! Invariants: a change waits only while no place is free, and while one waits, a change leaves; changes
//! are taken in order of arrival; there is a deadline while changes are held.

use flashlore_flash::{Lpn, Time};
use flashlore_ftl::buffer::{BufferPlace, WriteQueue};

use super::line::Line;
use super::{Buffering, BufferingStep, Here, Traffic, UnitChange, most_leaving};
use crate::engine::driver::What;
use crate::results::QueueTraffic;

/// A write queue and those that wait for it.
pub(super) struct QueuedWrites {
    queue: WriteQueue<UnitChange>,
    line: Line,
    places: u32,
    early_ack: bool,
    period: Time,
    due: Option<Time>,
    /// Requests since a change left.
    requests: u32,
    writes: u64,
    counted: QueueTraffic,
}

impl QueuedWrites {
    pub fn new(places: u32, bucket_pages: u32, early_ack: bool, period: Time) -> Self {
        QueuedWrites {
            queue: WriteQueue::new(places, bucket_pages),
            line: Line::default(),
            places,
            early_ack,
            period,
            due: None,
            requests: 0,
            writes: 0,
            counted: QueueTraffic::default(),
        }
    }

    /// A change takes a place, if one is free.
    fn enter(&mut self, mut unit: UnitChange, at: Time, steps: &mut Vec<BufferingStep>) -> bool {
        let newest = self.queue.get(unit.lpn);
        if unit.what == What::Modify && newest.is_some_and(|n| n.what != What::Modify) {
            unit.what = What::Write;
        }
        if !self.queue.push(unit.lpn, unit) {
            return false;
        }
        if self.early_ack {
            steps.push(BufferingStep::Answer(unit.slot, at));
        }
        if self.due.is_none() {
            self.due = Some(at.saturating_add(self.period));
        }
        true
    }

    /// For each change that waits another leaves; `lpn` is the page of one that waits.
    fn make_room(&mut self, lpn: Lpn, steps: &mut Vec<BufferingStep>) {
        let wanted = self.line.len().min(most_leaving(self.places) as usize);
        while (self.queue.leaving() as usize) < wanted {
            let bucket = self.queue.flush_bucket_of(lpn);
            if bucket.is_empty() {
                return;
            }
            self.leave(&bucket, steps);
        }
    }

    fn leave(&mut self, bucket: &[BufferPlace], steps: &mut Vec<BufferingStep>) {
        self.requests = 0;
        self.counted.flushes += 1;
        self.counted.flushed += bucket.len() as u64;
        for &place in bucket {
            let (_, unit) = self.queue.change(place);
            steps.push(BufferingStep::Leave(place, unit));
        }
    }

    fn flush_all(&mut self, steps: &mut Vec<BufferingStep>) {
        self.due = None;
        self.requests = 0;
        loop {
            let bucket = self.queue.flush_largest();
            if bucket.is_empty() {
                return;
            }
            self.leave(&bucket, steps);
        }
    }

    fn changes(&self) -> u64 {
        u64::from(self.queue.held()) + self.line.len() as u64
    }
}

impl Buffering for QueuedWrites {
    fn request(&mut self, steps: &mut Vec<BufferingStep>) {
        if self.queue.leaving() > 0 {
            self.requests = 0;
            return;
        }
        self.requests = self.requests.saturating_add(1);
        if self.requests > self.places {
            self.flush_all(steps);
        }
    }

    fn change(&mut self, unit: UnitChange, steps: &mut Vec<BufferingStep>) {
        self.writes += u64::from(unit.what != What::Trim);
        if !self.enter(unit, unit.arrival, steps) {
            self.line.push(unit);
            self.make_room(unit.lpn, steps);
        }
    }

    fn reads(&mut self, lpn: Lpn) -> Option<Here> {
        let newest = self.queue.get(lpn)?;
        let whole = newest.what != What::Modify;
        self.counted.read_hits += u64::from(whole);
        Some((newest.arrival, whole))
    }

    fn line(&self) -> &Line {
        &self.line
    }

    fn left(&mut self, place: BufferPlace, start: Time, at: Time, steps: &mut Vec<BufferingStep>) {
        let (_, unit) = self.queue.change(place);
        self.queue.free(place);
        if !self.early_ack {
            steps.push(BufferingStep::Answer(unit.slot, start));
        }
        while let Some(first) = self.line.first()
            && self.enter(first, at, steps)
        {
            self.line.pop();
        }
        if let Some(first) = self.line.first() {
            self.make_room(first.lpn, steps);
        }
    }

    fn due(&self) -> Option<Time> {
        self.due
    }

    fn happen(&mut self, steps: &mut Vec<BufferingStep>) {
        self.flush_all(steps);
    }

    fn writes(&self) -> u64 {
        self.writes
    }

    fn read_hits(&self) -> u64 {
        self.counted.read_hits
    }

    fn traffic(&self) -> Traffic {
        let counted = QueueTraffic {
            changes_end: self.changes(),
            ..self.counted
        };
        Traffic::Queue(counted.with_mean())
    }

    fn restart(&mut self) {
        self.writes = 0;
        self.counted = QueueTraffic {
            changes_begin: self.changes(),
            ..QueueTraffic::default()
        };
    }
}
