//! What the mechanism does between requests: reading ahead and destaging.
//!
//! Invariants: a read-ahead in progress is where it was at the instant it was last looked at, or later; a
//! piece that has begun is finished; there is no read-ahead while a piece is destaged.

use super::super::Time;
use super::super::mechanism::{Passage, Run};
use super::Hdd;

/// A read-ahead, running or stopped at its limit.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadAhead {
    segment: usize,
    next: u64,
    /// From when on the mechanism is at work on it: the end of the sector before, or a new start.
    since: Time,
    /// The sector at which it stops.
    limit: u64,
    /// Behind the last sector that was asked for.
    consumed: u64,
    /// Counted as busy up to here.
    counted: Time,
}

impl Hdd {
    /// Destages a piece if the mechanism has nothing better to do from an instant before this one.
    pub(super) fn destage_before(&mut self, until: Time) -> bool {
        if self.dirty.is_empty() || self.queue.has_reads() {
            return false;
        }
        let quiet = self.quiet_since.max(self.dirty_since);
        let mut begin = quiet.max(self.destaged_at);
        // The end of a read-ahead takes long to find.
        if begin < until {
            begin = begin.max(self.read_ahead_ends());
        }
        if begin < until {
            self.destage(begin);
        }
        begin < until
    }

    /// When the read-ahead stops by itself, or has stopped.
    fn read_ahead_ends(&self) -> Time {
        let Some(ahead) = self.read_ahead else {
            return 0;
        };
        if ahead.next == ahead.limit {
            return ahead.since;
        }
        let run = Run {
            lba: ahead.next,
            sectors: ahead.limit - ahead.next,
            write: false,
        };
        let passage = self.mechanism.pass(self.at, ahead.since, ahead.since, run);
        passage.end
    }

    /// Takes the mechanism for a request from this instant on; returns when it is at hand.
    pub(super) fn claim(&mut self, ready: Time) -> Time {
        let begin = self.stop_read_ahead(ready).max(self.destaged_at);
        self.statistics.held_up += begin - ready;
        begin
    }

    /// Brings a piece of the write cache to the media, from this instant on or as soon as the mechanism is at
    /// hand, and returns when that is. The piece is out of the list of runs then; its room is free at the end.
    pub(super) fn destage(&mut self, at: Time) -> Time {
        let begin = self.stop_read_ahead(at);
        self.forget_destaged(begin);
        let Some((lba, sectors)) = self.dirty.take_piece() else {
            return begin;
        };
        let run = Run {
            lba,
            sectors,
            write: true,
        };
        let passage = self.mechanism.pass(self.at, begin, begin, run);
        self.at = passage.at;
        self.destaged_at = passage.end;
        self.occupy(at, passage.end);
        self.statistics.destages += 1;
        self.statistics.destaged_sectors += sectors;
        self.statistics.destaging += passage.end - begin;
        begin
    }

    /// Frees the room of the piece that was destaged, if it is on the media.
    pub(super) fn forget_destaged(&mut self, now: Time) {
        if self.destaged_at <= now {
            self.dirty.left();
        }
    }

    /// Whether the read-ahead fills this segment.
    pub(super) fn is_filling(&self, segment: usize) -> bool {
        self.read_ahead
            .is_some_and(|ahead| ahead.segment == segment)
    }

    /// Reads on for a request with the segment that is being filled, up to `end`; returns when that has
    /// passed.
    pub(super) fn follow(&mut self, ready: Time, segment: usize, end: u64) -> Time {
        let Some(ahead) = self.read_ahead else {
            return ready;
        };
        if ahead.next >= end {
            // It came while the controller was at work.
            self.consume(segment, end, ready);
            self.statistics.stream_hits += 1;
            return ready;
        }
        let runs = ahead.next < ahead.limit;
        let since = if runs { ahead.since } else { ready };
        let run = Run {
            lba: ahead.next,
            sectors: end - ahead.next,
            write: false,
        };
        let passage = self.mechanism.pass(self.at, since, since, run);
        if runs {
            self.statistics.stream_hits += 1;
            self.statistics.stream += passage.end - ready;
        } else {
            self.account(&passage);
        }
        self.read_on(segment, end, &passage);
        passage.end
    }

    /// After a request has been read up to `end`: the mechanism reads on from there.
    pub(super) fn read_on(&mut self, segment: usize, end: u64, passage: &Passage) {
        self.at = passage.at;
        self.buffer.grow(segment, end);
        self.read_ahead = Some(ReadAhead {
            segment,
            next: end,
            since: passage.end,
            limit: self.capacity.min(end + self.read_ahead_sectors),
            consumed: end,
            counted: passage.end,
        });
    }

    /// A request took sectors up to `end` out of a segment. If that is being filled, the limit of the
    /// read-ahead moves on; one that has stopped goes on once half of what it reads ahead is used up.
    pub(super) fn consume(&mut self, segment: usize, end: u64, now: Time) {
        let Some(ahead) = &mut self.read_ahead else {
            return;
        };
        if ahead.segment != segment {
            return;
        }
        ahead.consumed = ahead.consumed.max(end);
        let limit = self.capacity.min(ahead.consumed + self.read_ahead_sectors);
        let stopped = ahead.next == ahead.limit;
        if stopped && ahead.next - ahead.consumed <= self.read_ahead_sectors / 2 {
            ahead.since = ahead.since.max(now);
            ahead.counted = ahead.since;
            ahead.limit = limit;
        } else if !stopped {
            ahead.limit = limit;
        }
    }

    /// Brings the front of the read-ahead up to this instant.
    pub(super) fn settle(&mut self, now: Time) {
        let Some(mut ahead) = self.read_ahead else {
            return;
        };
        let geometry = &self.mechanism.geometry;
        while ahead.next < ahead.limit {
            let place = geometry.locate(ahead.next);
            let ready = ahead.since + self.mechanism.moving(self.at, place.track, false);
            let first = geometry.under_head(&place, ready);
            if first >= now {
                break;
            }
            let on_track = u64::from(place.sectors_per_track - place.sector);
            let wanted = on_track.min(ahead.limit - ahead.next);
            let passed = match first + geometry.passing(&place, wanted) <= now {
                true => wanted,
                false => geometry.passed(&place, now - first),
            };
            if passed == 0 {
                break;
            }
            ahead.next += passed;
            ahead.since = first + geometry.passing(&place, passed);
            self.at = place.track;
            if passed < wanted {
                break;
            }
        }
        self.buffer.grow(ahead.segment, ahead.next);
        let until = match ahead.next < ahead.limit {
            true => now,
            false => now.min(ahead.since),
        };
        let from = ahead.counted;
        ahead.counted = ahead.counted.max(until);
        self.read_ahead = Some(ahead);
        self.occupy(from, until);
    }

    /// Ends the read-ahead; the mechanism is at hand at the instant returned. A change of track under way
    /// is finished.
    fn stop_read_ahead(&mut self, now: Time) -> Time {
        self.settle(now);
        let Some(ahead) = self.read_ahead.take() else {
            return now;
        };
        if ahead.next == ahead.limit {
            return now;
        }
        let to = self.mechanism.geometry.locate(ahead.next).track;
        let there = ahead.since + self.mechanism.moving(self.at, to, false);
        self.at = to;
        self.occupy(ahead.counted, there);
        now.max(there)
    }
}
