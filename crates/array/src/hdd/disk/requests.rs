//! The requests of a disk: from controller to bus.
//!
//! A read and a write to the media take no step in between: each knows its end when it begins, because
//! nothing else may take the mechanism meanwhile. A write to the cache and a flush look anew at each instant
//! at which a piece has been destaged.
//!
//! Invariant: every nanosecond of service is in one part of the statistics.

use super::super::Time;
use super::super::mechanism::{Passage, Run};
use super::{Hdd, Serving, ServingStage};

impl Hdd {
    /// Serves a read and returns when it ends. It waits for nothing that is not known, so all of it is decided
    /// when it begins.
    pub(super) fn read(&mut self, at: Time, lba: u64, sectors: u64) -> Time {
        let end = lba + sectors;
        let looked = at + self.overhead.hit;
        self.settle(looked);
        self.forget_destaged(looked);
        let segment = self.buffer.find(lba);
        if let Some(segment) = segment {
            self.buffer.touch(segment);
        }
        let held = segment.filter(|&segment| self.buffer.end(segment) >= end);
        if held.is_some() || self.dirty.holds(lba, end) {
            if let Some(segment) = held {
                self.consume(segment, end, looked);
            }
            self.statistics.buffer_hits += 1;
            self.statistics.overhead += self.overhead.hit;
            self.statistics.bus += self.bus(sectors);
            self.quiet_since = looked;
            return looked + self.bus(sectors);
        }
        let ready = at + self.overhead.read;
        self.statistics.overhead += self.overhead.read;
        self.settle(ready);
        let on_media = match segment {
            Some(segment) if self.is_filling(segment) => self.follow(ready, segment, end),
            _ => self.fetch(ready, segment, lba, end),
        };
        let last = self.bus(1);
        let done = (on_media + last).max(ready + self.bus(sectors));
        self.statistics.bus += done - on_media.max(ready);
        self.quiet_since = done;
        done
    }

    /// Positions and reads what the segment does not hold, or everything without a segment.
    fn fetch(&mut self, ready: Time, segment: Option<usize>, lba: u64, end: u64) -> Time {
        let begin = self.claim(ready);
        let (segment, from) = match segment {
            Some(segment) => (Some(segment), self.buffer.end(segment)),
            None => (self.buffer.replace(lba), lba),
        };
        let run = Run {
            lba: from,
            sectors: end - from,
            write: false,
        };
        let passage = self.mechanism.pass(self.at, begin, begin, run);
        self.account(&passage);
        self.at = passage.at;
        if let Some(segment) = segment {
            self.buffer.touch(segment);
            self.read_on(segment, end, &passage);
        }
        passage.end
    }

    /// A write that passes the cache by.
    pub(super) fn write(&mut self, at: Time, lba: u64, sectors: u64) -> Time {
        let ready = self.prepare(at);
        let begin = self.claim(ready);
        let run = Run {
            lba,
            sectors,
            write: true,
        };
        let data = ready + self.bus(1);
        let passage = self.mechanism.pass(self.at, begin, data, run);
        self.account(&passage);
        self.at = passage.at;
        self.quiet_since = passage.end;
        passage.end
    }

    /// The controller prepares a write or a flush.
    pub(super) fn prepare(&mut self, at: Time) -> Time {
        self.statistics.overhead += self.overhead.write;
        at + self.overhead.write
    }

    /// A write enters the cache, or waits until it may look for room again.
    pub(super) fn enter(&mut self, serving: Serving, lba: u64, end: u64) {
        let now = serving.at;
        self.forget_destaged(now);
        let mut again = now;
        if !self.dirty.has_room(lba, end) {
            again = self.room_may_be(now);
        }
        if again > now || !self.dirty.has_room(lba, end) {
            self.statistics.held_up += again - now;
            self.go_on(serving, again, serving.stage);
            return;
        }
        if self.dirty.is_empty() {
            self.dirty_since = now;
        }
        self.dirty.insert(lba, end);
        self.statistics.cached_writes += 1;
        let bus = self.bus(end - lba);
        self.statistics.bus += bus;
        self.go_on(serving, now + bus, ServingStage::Ending);
    }

    /// The cache is full: when there may be room. The piece being destaged ends then, or, if there was none,
    /// one begins.
    fn room_may_be(&mut self, now: Time) -> Time {
        match self.destaged_at > now {
            true => self.destaged_at,
            false => self.destage(now),
        }
    }

    /// A flush ends if nothing is dirty, or waits for the next piece.
    pub(super) fn drain(&mut self, serving: Serving) {
        let now = serving.at;
        if self.destaged_at <= now && !self.dirty.is_empty() {
            self.destage(now);
        }
        let clean = self.destaged_at <= now;
        let at = self.destaged_at.max(now);
        self.statistics.held_up += at - now;
        let stage = if clean {
            ServingStage::Ending
        } else {
            ServingStage::Draining
        };
        self.go_on(serving, at, stage);
    }

    pub(super) fn account(&mut self, passage: &Passage) {
        self.statistics.seek += passage.seek;
        self.statistics.rotation += passage.rotation;
        self.statistics.transfer += passage.transfer;
        self.statistics.switch += passage.switch;
    }
}
