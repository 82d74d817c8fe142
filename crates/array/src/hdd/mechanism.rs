//! Arm, heads and platters: how long it takes from a track and an instant to read or write some sectors.
//!
//! * A change of track inside a cylinder takes the head switch; one of cylinder the seek, or the head switch
//!   if that is longer. Writes have times of their own for both, because they need the heads steadier.
//! * Then the first sector is awaited, and each track is passed without a pause. At the end of a track the
//!   next one is reached as above; the skew is there so that no rotation is lost.

use super::Time;
use super::geometry::{Geometry, SectorPlace, Track};
use super::seek::SeekCurve;

#[derive(Debug, Clone)]
pub(super) struct Moves {
    pub seek: SeekCurve,
    pub head_switch: Time,
}

/// What does not change of the mechanism.
#[derive(Debug, Clone)]
pub(super) struct Mechanism {
    pub geometry: Geometry,
    pub reads: Moves,
    pub writes: Moves,
}

/// A run of sectors to be passed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    pub lba: u64,
    pub sectors: u64,
    pub write: bool,
}

/// How a run was passed. The parts are consecutive: they add up to `end` minus the beginning.
#[derive(Debug, Clone, Copy)]
pub(super) struct Passage {
    /// Moving to the first track.
    pub seek: Time,
    /// Waiting there for the first sector.
    pub rotation: Time,
    /// Sectors under a head.
    pub transfer: Time,
    /// From the last sector of a track to the first of the next.
    pub switch: Time,
    /// The last sector has passed.
    pub end: Time,
    pub at: Track,
}

impl Mechanism {
    /// How long the heads take from a track to another, without rotation.
    #[inline]
    pub fn moving(&self, from: Track, to: Track, write: bool) -> Time {
        if from == to {
            return 0;
        }
        let moves = if write { &self.writes } else { &self.reads };
        let switch = match from.head == to.head {
            true => 0,
            false => moves.head_switch,
        };
        let arm = moves.seek.time(from.cylinder.abs_diff(to.cylinder));
        switch.max(arm)
    }

    /// Passes a run from a track and an instant on. The first sector does not begin before `data`.
    pub fn pass(&self, from: Track, begin: Time, data: Time, run: Run) -> Passage {
        let place = self.geometry.locate(run.lba);
        let seek = self.moving(from, place.track, run.write);
        let first = self.geometry.under_head(&place, (begin + seek).max(data));
        let mut passage = Passage {
            seek,
            rotation: first - begin - seek,
            transfer: 0,
            switch: 0,
            end: first,
            at: place.track,
        };
        let passed = self.pass_track(&mut passage, &place, run.sectors);
        let (mut lba, mut left) = (run.lba + passed, run.sectors - passed);
        while left > 0 {
            let place = self.geometry.locate(lba);
            let ready = passage.end + self.moving(passage.at, place.track, run.write);
            let first = self.geometry.under_head(&place, ready);
            passage.switch += first - passage.end;
            passage.end = first;
            passage.at = place.track;
            let passed = self.pass_track(&mut passage, &place, left);
            lba += passed;
            left -= passed;
        }
        passage
    }

    fn pass_track(&self, passage: &mut Passage, place: &SectorPlace, sectors: u64) -> u64 {
        let here = u64::from(place.sectors_per_track - place.sector).min(sectors);
        let time = self.geometry.passing(place, here);
        passage.transfer += time;
        passage.end += time;
        here
    }
}
