//! RAID-0: stripe units go round over several disks. An address map and nothing else: each disk has its own
//! queue, and a request ends when the last of its parts does.
//!
//! Invariant: a request has one part on each disk it touches, because units that follow each other on a
//! disk are neighbours there.

use crate::index::index;
use crate::put;

use super::{Completion, DiskStatistics, Hdd, Request, RequestError, Time};

index!(
    /// A disk, by its place in the array.
    DiskId
);
index!(
    /// A request of which a part is under way.
    RequestId
);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RaidError {
    #[error("RAID-0 over no disk, expected at least one")]
    NoDisk,
    #[error("a stripe unit of {unit} sectors, expected 1 to {most}, the smallest disk")]
    Unit { unit: u32, most: u64 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stripes {
    disks: u64,
    unit: u64,
}

/// What a request has on one disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    pub disk: DiskId,
    pub lba: u64,
    pub sectors: u32,
}

impl Stripes {
    /// A map over so many disks with units of so many sectors, both at least 1.
    pub fn new(disks: usize, unit: u32) -> Self {
        Stripes {
            disks: disks.max(1) as u64,
            unit: u64::from(unit.max(1)),
        }
    }

    /// The parts of a run of at least one sector, in order of their disks.
    pub fn parts(self, lba: u64, sectors: u32) -> impl Iterator<Item = Part> {
        let last = lba + u64::from(sectors) - 1;
        (0..self.disks).filter_map(move |disk| self.part(disk, lba, last))
    }

    /// What each disk has of a request; all have a flush.
    fn split(self, request: Request) -> impl Iterator<Item = (DiskId, Request)> {
        let last = (request.lba + u64::from(request.sectors)).saturating_sub(1);
        (0..self.disks).filter_map(move |disk| {
            if request.sectors == 0 {
                return Some((DiskId(disk as u32), request));
            }
            let Part { disk, lba, sectors } = self.part(disk, request.lba, last)?;
            let op = request.op;
            Some((disk, Request { op, lba, sectors }))
        })
    }

    fn part(self, disk: u64, lba: u64, last: u64) -> Option<Part> {
        let (first_unit, last_unit) = (lba / self.unit, last / self.unit);
        let from = first_unit + (disk + self.disks - first_unit % self.disks) % self.disks;
        if from > last_unit {
            return None;
        }
        let to = last_unit - (last_unit % self.disks + self.disks - disk) % self.disks;
        let inside = if from == first_unit {
            lba % self.unit
        } else {
            0
        };
        let begin = from / self.disks * self.unit + inside;
        let inside = match to == last_unit {
            true => last % self.unit + 1,
            false => self.unit,
        };
        let end = to / self.disks * self.unit + inside;
        Some(Part {
            disk: DiskId(disk as u32),
            lba: begin,
            sectors: (end - begin) as u32,
        })
    }
}

/// A request whose parts are under way, or a free place for one.
#[derive(Debug, Clone, Copy)]
struct InFlight {
    id: u64,
    parts: u32,
    at: Time,
}

#[derive(Debug, Clone)]
pub struct Raid0 {
    stripes: Stripes,
    disks: Vec<Hdd>,
    capacity: u64,
    in_flight: Vec<InFlight>,
    free: Vec<RequestId>,
    /// Parts that ended, for one call.
    ended: Vec<Completion>,
    now: Time,
}

impl Raid0 {
    /// An array of idle disks with a stripe unit in sectors.
    ///
    /// # Errors
    /// When there is no disk, or a disk has no room for a unit.
    pub fn new(disks: Vec<Hdd>, unit: u32) -> Result<Self, RaidError> {
        let smallest = disks.iter().map(Hdd::capacity).min();
        let most = smallest.ok_or(RaidError::NoDisk)?;
        if unit == 0 || u64::from(unit) > most {
            return Err(RaidError::Unit { unit, most });
        }
        Ok(Raid0 {
            stripes: Stripes::new(disks.len(), unit),
            capacity: most / u64::from(unit) * u64::from(unit) * disks.len() as u64,
            disks,
            in_flight: Vec::new(),
            free: Vec::new(),
            ended: Vec::new(),
            now: 0,
        })
    }

    /// Capacity in sectors.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    pub fn statistics(&self) -> DiskStatistics {
        let mut sum = DiskStatistics::default();
        for disk in &self.disks {
            sum += disk.statistics();
        }
        sum
    }

    /// Energy of all disks in joules, where the power of all is known.
    pub fn energy(&self) -> Option<f64> {
        self.disks.iter().map(Hdd::energy).sum()
    }

    /// Submits a request, as [`Hdd::submit`]. A flush goes to every disk.
    ///
    /// # Errors
    /// When the request is not within the array, or its time before the present or too late.
    pub fn submit(&mut self, time: Time, id: u64, request: Request) -> Result<(), RequestError> {
        request.check(self.capacity, time, self.now)?;
        let new = InFlight {
            id,
            parts: 0,
            at: 0,
        };
        let number = put(&mut self.in_flight, &mut self.free, new);
        let mut parts = 0;
        for (disk, part) in self.stripes.split(request) {
            self.disks[disk.index()].submit(time, number.into(), part)?;
            parts += 1;
        }
        self.in_flight[number.index()].parts = parts;
        self.now = time;
        Ok(())
    }

    /// When the next part of a request ends, if any is under way; advancing to it makes progress.
    pub fn next_event(&self) -> Option<Time> {
        self.disks.iter().filter_map(Hdd::next_event).min()
    }

    /// Lets time pass to `until` and appends the requests that have ended by then to `done`, in order of
    /// time; at one instant in order of their names.
    pub fn advance(&mut self, until: Time, done: &mut Vec<Completion>) {
        self.now = self.now.max(until);
        let before = done.len();
        for disk in &mut self.disks {
            disk.advance(until, &mut self.ended);
        }
        for part in self.ended.drain(..) {
            let number = RequestId(part.id as u32);
            let request = &mut self.in_flight[number.index()];
            request.parts -= 1;
            request.at = request.at.max(part.at);
            if request.parts == 0 {
                let InFlight { id, at, .. } = *request;
                done.push(Completion { id, at });
                self.free.push(number);
            }
        }
        done[before..].sort_unstable_by_key(|completion| (completion.at, completion.id));
    }

    /// Serves one request by itself, as [`Hdd::serve`].
    ///
    /// # Errors
    /// As [`Raid0::submit`], and when submitted requests are under way.
    pub fn serve(&mut self, time: Time, request: Request) -> Result<Time, RequestError> {
        request.check(self.capacity, time, self.now)?;
        self.now = time;
        let mut end = time;
        for (disk, part) in self.stripes.split(request) {
            end = end.max(self.disks[disk.index()].serve(time, part)?);
        }
        Ok(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_are_the_sectors_of_a_walk(
            disks in 1usize..6, unit in 1u32..9, lba in 0u64..200, sectors in 1u32..100,
        ) {
            let mut walked: Vec<Vec<u64>> = vec![Vec::new(); disks];
            for sector in lba..lba + u64::from(sectors) {
                let stripe = sector / u64::from(unit);
                let (row, disk) = (stripe / disks as u64, stripe % disks as u64);
                walked[disk as usize].push(row * u64::from(unit) + sector % u64::from(unit));
            }
            let mut parts = vec![Vec::new(); disks];
            for part in Stripes::new(disks, unit).parts(lba, sectors) {
                let own = &mut parts[part.disk.index()];
                prop_assert!(own.is_empty());
                *own = (part.lba..part.lba + u64::from(part.sectors)).collect();
            }
            prop_assert_eq!(parts, walked);
        }
    }
}
