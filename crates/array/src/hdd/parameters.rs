//! What a disk is described by, and the check that it can be.

use super::cache::WriteCache;
use super::geometry::{self, Geometry, SECTOR_BYTES, Zone};
use super::mechanism::{Mechanism, Moves};
use super::queue::Scheduler;
use super::seek::{SeekCurve, SeekError, SeekTimes};
use super::{LATEST, Time};

/// Longest rotation and most sectors of a track: products of both stay far below 64 bits.
const LONGEST_ROTATION: Time = 1_000_000_000;
const MOST_SECTORS_PER_TRACK: u32 = 1 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seek {
    Fitted(SeekTimes),
    /// Measured points: distance in cylinders, nanoseconds.
    Measured(Vec<(u32, Time)>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Positioning {
    pub seek: Seek,
    /// Change of head inside a cylinder, in nanoseconds.
    pub head_switch: Time,
}

/// What the controller takes before anything else happens with a request, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overhead {
    /// A read that the buffer holds, from the beginning of service.
    pub hit: Time,
    /// Any other read.
    pub read: Time,
    /// A write or a flush.
    pub write: Time,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffer {
    /// Segments; without any nothing is buffered and nothing is read ahead.
    pub segments: u32,
    pub segment_sectors: u32,
    /// So many sectors behind the last one asked for are read ahead.
    pub read_ahead: u32,
}

/// Electrical power in watts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Power {
    /// Spinning, nothing to do.
    pub idle: f64,
    /// Serving a request, reading ahead or destaging.
    pub active: f64,
}

/// A drive as its data sheet and measurements describe it. Durations are in nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters {
    pub name: &'static str,
    pub rotation: Time,
    /// Surfaces with data.
    pub heads: u32,
    /// From the outermost inwards. They may hold more than `sectors`.
    pub zones: Vec<Zone>,
    /// Capacity in sectors of 512 bytes.
    pub sectors: u64,
    /// How the heads move before they read.
    pub reads: Positioning,
    /// How the heads move before they write.
    pub writes: Positioning,
    pub overhead: Overhead,
    /// Bytes a second between host and buffer; at least the rate of the fastest track.
    pub bus_rate: u64,
    pub buffer: Buffer,
    /// The write cache, where it is on.
    pub write_cache: WriteCache,
    pub power: Option<Power>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiskOptions {
    pub scheduler: Scheduler,
    /// Whether a write ends when it is in the write cache.
    pub write_back: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParameterError {
    #[error("drive {drive}: `{field}` is {found}, expected {expected}")]
    Field {
        drive: &'static str,
        field: &'static str,
        found: String,
        expected: String,
    },
    #[error("drive {drive}: {error}")]
    Seek {
        drive: &'static str,
        error: SeekError,
    },
}

impl Parameters {
    /// Cylinders that hold the sectors of the drive; all there are if they are too few.
    pub fn cylinders(&self) -> u32 {
        let (mut cylinders, mut left) = (0, self.sectors);
        for zone in &self.zones {
            let held = geometry::sectors(self.heads, zone);
            if left <= held {
                let cylinder = held / u64::from(zone.cylinders.max(1));
                return cylinders + left.div_ceil(cylinder.max(1)) as u32;
            }
            left -= held;
            cylinders += zone.cylinders;
        }
        cylinders
    }

    /// Checks the description and makes what moves.
    pub(super) fn mechanism(&self) -> Result<Mechanism, ParameterError> {
        self.check_layout()?;
        self.check_electronics()?;
        Ok(Mechanism {
            geometry: Geometry::new(self.rotation, self.heads, &self.zones),
            reads: self.moves(&self.reads)?,
            writes: self.moves(&self.writes)?,
        })
    }

    fn moves(&self, positioning: &Positioning) -> Result<Moves, ParameterError> {
        let seek = match &positioning.seek {
            Seek::Fitted(times) => SeekCurve::fit(*times, self.cylinders()),
            Seek::Measured(points) => SeekCurve::measured(points),
        };
        let seek = seek.map_err(|error| ParameterError::Seek {
            drive: self.name,
            error,
        })?;
        Ok(Moves {
            seek,
            head_switch: positioning.head_switch,
        })
    }

    fn check_layout(&self) -> Result<(), ParameterError> {
        let range = format!("1 to {LONGEST_ROTATION} ns");
        self.expect(
            "rotation",
            self.rotation,
            (1..=LONGEST_ROTATION).contains(&self.rotation),
            &range,
        )?;
        self.expect("heads", self.heads, self.heads > 0, "at least 1")?;
        let most = MOST_SECTORS_PER_TRACK.min(self.rotation as u32);
        for zone in &self.zones {
            let per_track = zone.sectors_per_track;
            let range = format!("1 to {most}, none shorter than a nanosecond");
            let fits = (1..=most).contains(&per_track);
            self.expect("zones.sectors_per_track", per_track, fits, &range)?;
            self.expect(
                "zones.cylinders",
                zone.cylinders,
                zone.cylinders > 0,
                "at least 1",
            )?;
            for skew in [zone.track_skew, zone.cylinder_skew] {
                let range = format!("less than the {per_track} sectors of a track");
                self.expect("zones skew", skew, skew < per_track, &range)?;
            }
        }
        let cylinders: u64 = self
            .zones
            .iter()
            .map(|zone| u64::from(zone.cylinders))
            .sum();
        let fits = cylinders <= u64::from(u32::MAX / self.heads);
        self.expect("zones", cylinders, fits, "tracks that 32 bits can count")?;
        let held: u64 = self
            .zones
            .iter()
            .map(|z| geometry::sectors(self.heads, z))
            .sum();
        let range = format!("1 to the {held} that the zones hold");
        let fits = (1..=held).contains(&self.sectors);
        self.expect("sectors", self.sectors, fits, &range)
    }

    fn check_electronics(&self) -> Result<(), ParameterError> {
        let most = self.zones.iter().map(|zone| zone.sectors_per_track).max();
        let per_rotation = u128::from(most.unwrap_or(0)) * u128::from(SECTOR_BYTES);
        let least = (per_rotation * 1_000_000_000).div_ceil(u128::from(self.rotation));
        let range = format!("at least {least} bytes a second, the rate of the fastest track");
        let fits = u128::from(self.bus_rate) >= least;
        self.expect("bus_rate", self.bus_rate, fits, &range)?;
        for time in [
            self.reads.head_switch,
            self.writes.head_switch,
            self.overhead.hit,
            self.overhead.read,
            self.overhead.write,
        ] {
            self.expect("durations", time, time < LATEST >> 32, "less than a second")?;
        }
        let Overhead { hit, read, .. } = self.overhead;
        self.expect("overhead.read", read, read >= hit, "at least that of a hit")?;
        let ahead = self.buffer.read_ahead;
        let fits = ahead <= self.buffer.segment_sectors;
        self.expect("buffer.read_ahead", ahead, fits, "at most a segment")?;
        let cache = self.write_cache;
        self.expect("write_cache.runs", cache.runs, cache.runs > 0, "at least 1")?;
        self.expect(
            "write_cache.piece",
            cache.piece,
            cache.piece > 0,
            "at least 1",
        )
    }

    fn expect(
        &self,
        field: &'static str,
        found: impl ToString,
        fits: bool,
        expected: &str,
    ) -> Result<(), ParameterError> {
        match fits {
            true => Ok(()),
            false => Err(ParameterError::Field {
                drive: self.name,
                field,
                found: found.to_string(),
                expected: expected.to_string(),
            }),
        }
    }
}
