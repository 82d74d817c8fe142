//! Seeded random numbers, and a host that keeps a disk busy.

use flashlore_array::hdd::{
    Completion, DiskOptions, Hdd, Parameters, Request, Scheduler, Time, drives,
};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

pub struct Random(Xoshiro256PlusPlus);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(bound)) >> 64) as u64
    }
}

pub fn drive(name: &str, options: DiskOptions) -> Hdd {
    let parameters = drives::named(name).expect("a drive of this name");
    Hdd::new(&parameters, options).expect("a drive that can be")
}

pub fn scheduled(scheduler: Scheduler) -> DiskOptions {
    DiskOptions {
        scheduler,
        ..DiskOptions::default()
    }
}

/// Keeps `depth` requests in flight until `count` have been submitted; returns the completions in order.
pub fn keep_busy(
    disk: &mut Hdd,
    depth: usize,
    count: u64,
    mut request: impl FnMut(u64) -> Request,
) -> Vec<Completion> {
    let mut done = Vec::new();
    let (mut submitted, mut in_flight, mut now): (u64, usize, Time) = (0, 0, 0);
    while submitted < count || in_flight > 0 {
        while in_flight < depth && submitted < count {
            disk.submit(now, submitted, request(submitted))
                .expect("a request that fits");
            submitted += 1;
            in_flight += 1;
        }
        let before = done.len();
        now = disk.next_event().expect("a request under way");
        disk.advance(now, &mut done);
        let step = disk.next_event().is_none_or(|next| next > now);
        assert!(step || done.len() > before, "an event without progress");
        in_flight -= done.len() - before;
    }
    done
}

/// Bytes a second of a zone that is read from end to end: its sectors, and the skew at each change of track.
pub fn media_rate(parameters: &Parameters, zone: usize) -> f64 {
    let zone = &parameters.zones[zone];
    let (heads, per_track) = (
        f64::from(parameters.heads),
        f64::from(zone.sectors_per_track),
    );
    let skew = (heads - 1.0) * f64::from(zone.track_skew) + f64::from(zone.cylinder_skew);
    let turns = heads + skew / per_track;
    heads * per_track * 512.0 / (turns * parameters.rotation as f64) * 1e9
}
