//! A disk: serves one request at a time, reads ahead and destages between them.
//!
//! * `run` brings the disk to an instant: requests that have ended are reported, the next begins where the
//!   last has ended, and a piece is destaged where the disk would otherwise have idled *before* that
//!   instant. A request that comes at the instant itself is therefore served first.
//! * A read-ahead is not a sequence of events. Its front is known at the instant it last was looked at, and
//!   brought up to date when a request, a piece or the caller comes.
//! * A request that finds the disk idle begins at once, also if others come at the same instant.
//!
//! Invariants: while requests wait one is being served; instants of service never decrease; once queue and
//! list of the ended have reached their size nothing is allocated.

use std::collections::VecDeque;

use super::buffer::Buffer;
use super::cache::Dirty;
use super::geometry::{SECTOR_BYTES, Track};
use super::mechanism::{Mechanism, Passage, Run};
use super::parameters::{Options, Overhead, ParameterError, Parameters, Power};
use super::queue::{Queue, Waiting};
use super::statistics::Statistics;
use super::{Completion, Op, Request, RequestError, Time};

/// A read-ahead, running or stopped at its limit.
#[derive(Debug, Clone, Copy)]
struct ReadAhead {
    /// The segment it fills.
    segment: usize,
    /// The next sector.
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

/// A hard disk.
#[derive(Debug, Clone)]
pub struct Hdd {
    mechanism: Mechanism,
    capacity: u64,
    overhead: Overhead,
    /// Picoseconds of a sector on the bus.
    bus_sector: u64,
    read_ahead_sectors: u64,
    write_back: bool,
    power: Option<Power>,

    queue: Queue,
    serving: Option<Completion>,
    ended: VecDeque<Completion>,
    /// The present.
    now: Time,
    /// The end of the last request.
    idle_since: Time,

    at: Track,
    buffer: Buffer,
    read_ahead: Option<ReadAhead>,
    dirty: Dirty,
    /// The end of the last piece that was destaged.
    destaged_at: Time,

    statistics: Statistics,
    busy_until: Time,
    /// Behind the last request that was served.
    last_end: u64,
}

impl Hdd {
    /// An idle disk at time 0, its heads over the outermost cylinder.
    ///
    /// # Errors
    /// When the parameters contradict themselves.
    pub fn new(parameters: &Parameters, options: Options) -> Result<Self, ParameterError> {
        let buffer = parameters.buffer;
        Ok(Hdd {
            mechanism: parameters.mechanism()?,
            capacity: parameters.sectors,
            overhead: parameters.overhead,
            bus_sector: SECTOR_BYTES * 1_000_000_000_000 / parameters.bus_rate,
            read_ahead_sectors: u64::from(buffer.read_ahead),
            write_back: options.write_back,
            power: parameters.power,
            queue: Queue::new(options.scheduler),
            serving: None,
            ended: VecDeque::new(),
            now: 0,
            idle_since: 0,
            at: Track {
                cylinder: 0,
                head: 0,
            },
            buffer: Buffer::new(buffer.segments, buffer.segment_sectors),
            read_ahead: None,
            dirty: Dirty::new(parameters.write_cache),
            destaged_at: 0,
            statistics: Statistics::default(),
            busy_until: 0,
            last_end: 0,
        })
    }

    /// Capacity in sectors.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// What the disk has done up to the present: the latest instant given to any method.
    pub fn statistics(&self) -> Statistics {
        let ahead = self.busy_until.saturating_sub(self.now);
        Statistics {
            busy: self.statistics.busy - ahead,
            ..self.statistics
        }
    }

    /// Energy up to the present in joules, where the power is known.
    pub fn energy(&self) -> Option<f64> {
        let power = self.power?;
        let busy = self.statistics().busy as f64;
        let idle = self.now as f64 - busy;
        Some((power.idle * idle + power.active * busy) * 1e-9)
    }

    /// Submits a request under a name of the caller's. It is reported by [`Hdd::advance`].
    ///
    /// # Errors
    /// When the request is not within the disk, or its time before the present or too late.
    pub fn submit(&mut self, time: Time, id: u64, request: Request) -> Result<(), RequestError> {
        request.check(self.capacity, time, self.now)?;
        self.run(time);
        self.queue.push(id, time, request);
        if self.serving.is_none() {
            self.begin_next(time.max(self.idle_since));
        }
        Ok(())
    }

    /// When the next request ends, if any is under way.
    pub fn next_event(&self) -> Option<Time> {
        let ended = self.ended.front().or(self.serving.as_ref());
        ended.map(|completion| completion.at)
    }

    /// Lets time pass to `until` and appends what has ended by then to `done`, in order of time.
    pub fn advance(&mut self, until: Time, done: &mut Vec<Completion>) {
        self.run(until);
        self.settle(self.now);
        done.extend(self.ended.drain(..));
    }

    /// Serves one request by itself, as soon as those before it have ended, and returns its end. The
    /// present is `time` afterwards: the next request may come before this one has ended.
    ///
    /// # Errors
    /// As [`Hdd::submit`], and when submitted requests are under way.
    pub fn serve(&mut self, time: Time, request: Request) -> Result<Time, RequestError> {
        request.check(self.capacity, time, self.now)?;
        self.run(time);
        if self.serving.is_some() {
            let waiting = 1 + self.queue.len();
            return Err(RequestError::Busy { waiting });
        }
        self.queue.push(0, time, request);
        self.begin_next(time.max(self.idle_since));
        if let Some(served) = self.serving.take() {
            self.idle_since = served.at;
        }
        Ok(self.idle_since)
    }

    /// Brings the disk to an instant.
    fn run(&mut self, until: Time) {
        self.now = self.now.max(until);
        loop {
            if let Some(served) = self.serving {
                if served.at > until {
                    return;
                }
                self.serving = None;
                self.idle_since = served.at;
                self.ended.push_back(served);
                self.begin_next(served.at);
            } else if !self.destage_before(until) {
                return;
            }
        }
    }

    /// Destages a piece if the disk has nothing better to do before this instant.
    fn destage_before(&mut self, until: Time) -> bool {
        if self.dirty.is_empty() {
            return false;
        }
        let begin = self
            .idle_since
            .max(self.destaged_at)
            .max(self.read_ahead_ends());
        if begin >= until {
            return false;
        }
        self.destage(begin);
        true
    }

    /// When the read-ahead would stop by itself.
    fn read_ahead_ends(&self) -> Time {
        match self.read_ahead {
            Some(ahead) if ahead.next < ahead.limit => {
                let run = Run {
                    lba: ahead.next,
                    sectors: ahead.limit - ahead.next,
                    write: false,
                };
                let passage = self.mechanism.pass(self.at, ahead.since, ahead.since, run);
                passage.end
            }
            _ => 0,
        }
    }

    fn begin_next(&mut self, at: Time) {
        let Some(Waiting {
            id,
            arrived,
            request,
            ..
        }) = self.queue.take()
        else {
            return;
        };
        self.settle(at);
        self.count(&request);
        let end = match request.op {
            Op::Read => self.read(at, request.lba, u64::from(request.sectors)),
            Op::Write => self.write(at, request.lba, u64::from(request.sectors)),
            Op::Flush => self.flush(at),
        };
        self.statistics.queued += at - arrived;
        self.statistics.service += end - at;
        self.occupy(at, end);
        self.serving = Some(Completion { id, at: end });
    }

    fn count(&mut self, request: &Request) {
        let sectors = u64::from(request.sectors);
        match request.op {
            Op::Read => {
                self.statistics.reads += 1;
                self.statistics.read_sectors += sectors;
            }
            Op::Write => {
                self.statistics.writes += 1;
                self.statistics.written_sectors += sectors;
            }
            Op::Flush => {
                self.statistics.flushes += 1;
                return;
            }
        }
        self.statistics.sequential += u64::from(request.lba == self.last_end);
        self.last_end = request.lba + sectors;
    }

    /// Counts a span as busy; spans come in order of their beginning.
    fn occupy(&mut self, from: Time, to: Time) {
        let from = from.max(self.busy_until);
        if to > from {
            self.statistics.busy += to - from;
            self.busy_until = to;
        }
    }

    /// How long so many sectors take on the bus.
    fn bus(&self, sectors: u64) -> Time {
        sectors * self.bus_sector / 1_000
    }
}

/// Requests. Each returns when it ends.
impl Hdd {
    fn read(&mut self, at: Time, lba: u64, sectors: u64) -> Time {
        let end = lba + sectors;
        let looked = at + self.overhead.hit;
        self.settle(looked);
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
        done
    }

    fn is_filling(&self, segment: usize) -> bool {
        self.read_ahead
            .is_some_and(|ahead| ahead.segment == segment)
    }

    /// Reads on with the segment that is being filled, up to `end`.
    fn follow(&mut self, ready: Time, segment: usize, end: u64) -> Time {
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

    fn write(&mut self, at: Time, lba: u64, sectors: u64) -> Time {
        let ready = at + self.overhead.write;
        self.statistics.overhead += self.overhead.write;
        if !self.write_back || !self.dirty.can_hold(sectors) {
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
            return passage.end;
        }
        let mut room_at = ready;
        self.forget_destaged(room_at);
        while !self.dirty.has_room(lba, lba + sectors) {
            self.occupy(at, room_at);
            if self.destaged_at > room_at {
                room_at = self.destaged_at;
                self.forget_destaged(room_at);
            } else {
                room_at = self.destage(room_at);
            }
        }
        self.dirty.insert(lba, lba + sectors);
        self.statistics.cached_writes += 1;
        self.statistics.held_up += room_at - ready;
        self.statistics.bus += self.bus(sectors);
        room_at + self.bus(sectors)
    }

    fn flush(&mut self, at: Time) -> Time {
        let ready = at + self.overhead.write;
        let mut clean_at = ready.max(self.destaged_at);
        while !self.dirty.is_empty() {
            self.occupy(at, clean_at);
            self.destage(clean_at);
            clean_at = self.destaged_at;
        }
        self.statistics.overhead += self.overhead.write;
        self.statistics.held_up += clean_at - ready;
        clean_at
    }

    fn account(&mut self, passage: &Passage) {
        self.statistics.seek += passage.seek;
        self.statistics.rotation += passage.rotation;
        self.statistics.transfer += passage.transfer;
        self.statistics.switch += passage.switch;
    }
}

/// What the mechanism does by itself.
impl Hdd {
    /// Takes the mechanism for a request from this instant on; returns when it is at hand.
    fn claim(&mut self, ready: Time) -> Time {
        let begin = self.stop_read_ahead(ready).max(self.destaged_at);
        self.statistics.held_up += begin - ready;
        begin
    }

    /// Brings a piece of the write cache to the media, from this instant on or as soon as the mechanism is at
    /// hand, and returns when that is. The piece is out of the list of runs then; its room is free at the end.
    fn destage(&mut self, at: Time) -> Time {
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
    fn forget_destaged(&mut self, now: Time) {
        if self.destaged_at <= now {
            self.dirty.left();
        }
    }

    /// After a request has been read up to `end`: the mechanism reads on from there.
    fn read_on(&mut self, segment: usize, end: u64, passage: &Passage) {
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
    fn consume(&mut self, segment: usize, end: u64, now: Time) {
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
    fn settle(&mut self, now: Time) {
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
            let slot = u64::from(place.slot);
            let per_track = place.sectors_per_track;
            let after_mark = geometry.begins(slot, per_track) + (now - first);
            let passed = (geometry.ended(after_mark, per_track) - slot).min(wanted);
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
