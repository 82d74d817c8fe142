//! A disk: serves one request at a time, reads ahead and destages between them.
//!
//! * `run` brings the disk to an instant: the request that is served takes its steps, the next begins where
//!   it ends, and a piece is destaged where the mechanism would otherwise have idled *before* that instant.
//!   A request that comes at the instant itself therefore comes first.
//! * Destaging begins while no read waits or is served, except from the buffer, and no write passes the
//!   cache by; or when a write finds no room, or a flush comes.
//! * A read-ahead is not a sequence of events. Its front is known at the instant it last was looked at, and
//!   brought up to date when a request, a piece or the caller comes.
//! * A request that finds the disk idle begins at once, also if others come at the same instant.
//!
//! Invariants: while requests wait one is being served; instants of service never decrease; once queue and
//! list of the ended have reached their size nothing is allocated.

mod background;
mod requests;

use std::collections::VecDeque;

use self::background::ReadAhead;
use super::buffer::SegmentBuffer;
use super::cache::Dirty;
use super::geometry::{SECTOR_BYTES, Track};
use super::mechanism::Mechanism;
use super::parameters::{DiskOptions, Overhead, ParameterError, Parameters, Power};
use super::queue::{Queue, Waiting};
use super::statistics::DiskStatistics;
use super::{Completion, Op, Request, RequestError, Time};

/// What the request that is served waits for.
#[derive(Debug, Clone, Copy)]
enum ServingStage {
    /// Its end, which is known.
    Ending,
    /// The controller or room in the write cache, for these sectors.
    Entering { lba: u64, end: u64 },
    /// The controller or an empty write cache.
    Draining,
}

#[derive(Debug, Clone, Copy)]
struct Serving {
    id: u64,
    /// Its next step.
    at: Time,
    stage: ServingStage,
}

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
    serving: Option<Serving>,
    ended: VecDeque<Completion>,
    now: Time,
    /// The end of the last request.
    idle_since: Time,

    at: Track,
    buffer: SegmentBuffer,
    read_ahead: Option<ReadAhead>,
    dirty: Dirty,
    /// Since when something is dirty, if anything is.
    dirty_since: Time,
    /// The end of the last piece that was destaged.
    destaged_at: Time,
    /// From when on no request has needed the mechanism.
    quiet_since: Time,

    statistics: DiskStatistics,
    busy_until: Time,
    /// Behind the last request that was served.
    last_end: u64,
}

impl Hdd {
    /// An idle disk at time 0, its heads over the outermost cylinder.
    pub fn new(parameters: &Parameters, options: DiskOptions) -> Result<Self, ParameterError> {
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
            buffer: SegmentBuffer::new(buffer.segments, buffer.segment_sectors),
            read_ahead: None,
            dirty: Dirty::new(parameters.write_cache),
            dirty_since: 0,
            destaged_at: 0,
            quiet_since: 0,
            statistics: DiskStatistics::default(),
            busy_until: 0,
            last_end: u64::MAX,
        })
    }

    /// Capacity in sectors.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// What the disk has done up to the present: the latest instant given to any method.
    pub fn statistics(&self) -> DiskStatistics {
        let ahead = self.busy_until.saturating_sub(self.now);
        DiskStatistics {
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
        self.now = time;
        self.run(time);
        self.queue.push(id, time, request);
        if self.serving.is_none() {
            self.begin_next(time.max(self.idle_since));
        }
        Ok(())
    }

    /// The next step of what is under way, if anything is: a request may end there. Advancing to it makes
    /// progress.
    pub fn next_event(&self) -> Option<Time> {
        let ended = self.ended.front().map(|completion| completion.at);
        ended.or(self.serving.map(|serving| serving.at))
    }

    /// Lets time pass to `until` and appends what has ended by then to `done`, in order of time.
    pub fn advance(&mut self, until: Time, done: &mut Vec<Completion>) {
        self.now = self.now.max(until);
        self.run(self.now);
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
        self.now = time;
        self.run(time);
        if self.serving.is_some() {
            let waiting = 1 + self.queue.len();
            return Err(RequestError::Busy { waiting });
        }
        self.queue.push(0, time, request);
        self.begin_next(time.max(self.idle_since));
        while let Some(serving) = self.serving {
            self.run(serving.at);
        }
        self.ended.pop_back();
        Ok(self.idle_since)
    }

    /// Brings the disk to an instant.
    fn run(&mut self, until: Time) {
        loop {
            let step = self.serving.map_or(until, |serving| serving.at.min(until));
            if self.destage_before(step) {
                continue;
            }
            match self.serving {
                Some(serving) if serving.at <= until => self.step(serving),
                _ => return,
            }
        }
    }

    fn step(&mut self, serving: Serving) {
        match serving.stage {
            ServingStage::Ending => {
                let Serving { id, at, .. } = serving;
                self.serving = None;
                self.idle_since = at;
                self.ended.push_back(Completion { id, at });
                self.begin_next(at);
            }
            ServingStage::Entering { lba, end } => self.enter(serving, lba, end),
            ServingStage::Draining => self.drain(serving),
        }
    }

    /// The request that is served goes on at an instant.
    fn go_on(&mut self, serving: Serving, at: Time, stage: ServingStage) {
        self.occupy(serving.at, at);
        self.statistics.service += at - serving.at;
        self.serving = Some(Serving {
            at,
            stage,
            ..serving
        });
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
        self.statistics.queued += at - arrived;
        let sectors = u64::from(request.sectors);
        let end = request.lba + sectors;
        let (until, stage) = match request.op {
            Op::Read => (self.read(at, request.lba, sectors), ServingStage::Ending),
            Op::Write if self.write_back && self.dirty.can_hold(sectors) => {
                let lba = request.lba;
                (self.prepare(at), ServingStage::Entering { lba, end })
            }
            Op::Write => (self.write(at, request.lba, sectors), ServingStage::Ending),
            Op::Flush => (self.prepare(at), ServingStage::Draining),
        };
        let serving = Serving { id, at, stage };
        self.go_on(serving, until, stage);
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

    fn bus(&self, sectors: u64) -> Time {
        sectors.saturating_mul(self.bus_sector) / 1_000
    }
}
