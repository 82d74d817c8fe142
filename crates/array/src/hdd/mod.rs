//! A hard disk in simulated time: when its requests end, and what it does meanwhile.
//!
//! Time is in nanoseconds, an argument and a result; nobody asks a clock. Content is not modelled. What the
//! model is, its formulas and what it leaves out stand in `docs/hdd.md`.
//!
//! | module | what it is |
//! |---|---|
//! | [`disk`] | a disk: its events; in `disk/` its requests, and what it does between them |
//! | [`raid`] | RAID-0: an address map over several disks |
//! | [`drives`] | named drives, each figure with its source |
//! | [`parameters`] | what a disk is described by, and its check |
//! | [`seek`] | seek time by distance, fitted or measured |
//! | [`queue`] | which waiting request is next |
//! | [`cache`] | the write cache |
//! | [`statistics`] | what a disk has done |
//! | `geometry`, `mechanism` | where a sector lies, and its angle; how sectors are passed |
//! | `buffer` | segments of the track buffer |
//!
//! Flow of a request: queue, controller, then buffer, write cache or mechanism, then bus. One request at a
//! time is served. Between requests the mechanism reads ahead or destages; a request that needs it ends a
//! read-ahead at once (a change of track under way is finished) and waits for the piece being destaged.
//! Nothing is booked ahead: what is served next is chosen when the disk becomes free, among what has
//! arrived.

mod buffer;
pub mod cache;
pub mod disk;
pub mod drives;
mod geometry;
mod mechanism;
pub mod parameters;
pub mod queue;
pub mod raid;
pub mod seek;
pub mod statistics;

pub use cache::WriteCache;
pub use disk::Hdd;
pub use geometry::{SECTOR_BYTES, Zone};
pub use parameters::{
    Buffer, DiskOptions, Overhead, ParameterError, Parameters, Positioning, Power, Seek,
};
pub use queue::Scheduler;
pub use raid::{Raid0, RaidError};
pub use seek::{SeekCurve, SeekError, SeekTimes};
pub use statistics::DiskStatistics;

/// Simulated time in nanoseconds since the start of a run, or a duration.
pub type Time = u64;

/// The last instant at which a request may be submitted: 146 years. What lies above is left for what
/// requests add.
pub const LATEST: Time = 1 << 62;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Op {
    Read,
    /// Sectors are to be written: to the write cache if it is on, to the media otherwise.
    Write,
    /// Everything that was written is to be on the media. It has no sectors.
    Flush,
}

/// A request to a disk or an array. Sectors have 512 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    pub op: Op,
    pub lba: u64,
    /// How many; at least one, and 0 for a flush.
    pub sectors: u32,
}

impl Request {
    pub const FLUSH: Request = Request {
        op: Op::Flush,
        lba: 0,
        sectors: 0,
    };

    pub fn read(lba: u64, sectors: u32) -> Self {
        let op = Op::Read;
        Request { op, lba, sectors }
    }

    pub fn write(lba: u64, sectors: u32) -> Self {
        let op = Op::Write;
        Request { op, lba, sectors }
    }

    /// Checks the request against a capacity in sectors, and its time against the present.
    fn check(&self, capacity: u64, time: Time, now: Time) -> Result<(), RequestError> {
        let fits = match self.op {
            Op::Flush => self.sectors == 0,
            Op::Read | Op::Write => {
                let end = self.lba.checked_add(u64::from(self.sectors));
                self.sectors > 0 && end.is_some_and(|end| end <= capacity)
            }
        };
        match time {
            _ if !fits => Err(RequestError::Range {
                request: *self,
                capacity,
            }),
            _ if time < now => Err(RequestError::Past { time, now }),
            _ if time > LATEST => Err(RequestError::TooLate { time }),
            _ => Ok(()),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// The caller's name for it.
    pub id: u64,
    pub at: Time,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    #[error(
        "{:?} of {} sectors at sector {}: expected a run of at least one sector below {capacity}, and \
         a flush of none",
        request.op, request.sectors, request.lba
    )]
    Range { request: Request, capacity: u64 },
    #[error("a request at {time} ns, expected none before the present, {now} ns")]
    Past { time: Time, now: Time },
    /// It comes too late for sums of durations to fit 64 bits.
    #[error("a request at {time} ns, expected none after {LATEST} ns")]
    TooLate { time: Time },
    #[error("{waiting} requests are under way, expected none where one is served by itself")]
    Busy { waiting: usize },
}
