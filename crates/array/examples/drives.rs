//! What the named drives do with simple loads: the table of `docs/hdd.md`.
//!
//! `cargo run --release -p flashlore-array --example drives`

use flashlore_array::hdd::{DiskOptions, Hdd, Request, Scheduler, Time, drives};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const REQUESTS: u64 = 20_000;

fn main() {
    println!(
        "{:22} {:>9} {:>9} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}",
        "", "outer", "inner", "write", "through", "random", "16 FCFS", "16 LOOK", "C-LOOK"
    );
    for name in drives::NAMES {
        let cached = DiskOptions {
            write_back: true,
            ..DiskOptions::default()
        };
        let through = DiskOptions::default();
        println!(
            "{name:22} {:9.1} {:9.1} {:8.1} {:8.1} {:8.2} {:8.1} {:8.1} {:8.1}",
            sequential(name, through, false, Request::read),
            sequential(name, through, true, Request::read),
            sequential(name, cached, false, Request::write),
            sequential(name, through, false, Request::write),
            1e3 / random(name, Scheduler::Fcfs, 1),
            random(name, Scheduler::Fcfs, 16),
            random(name, Scheduler::Look, 16),
            random(name, Scheduler::CLook, 16),
        );
    }
}

fn disk(name: &str, options: DiskOptions) -> Hdd {
    let parameters = drives::named(name).expect("a drive of this name");
    Hdd::new(&parameters, options).expect("a drive that can be")
}

/// Megabytes a second of requests of 64 KiB, one after the other, at the outer or the inner end.
fn sequential(name: &str, options: DiskOptions, inner: bool, op: fn(u64, u32) -> Request) -> f64 {
    let mut disk = disk(name, options);
    let sectors = REQUESTS / 4 * 128;
    let from = if inner { disk.capacity() - sectors } else { 0 };
    let mut now = 0;
    for lba in (from..from + sectors).step_by(128) {
        now = disk.serve(now, op(lba, 128)).expect("a request that fits");
    }
    now = disk.serve(now, Request::FLUSH).expect("a flush");
    sectors as f64 * 512.0 / now as f64 * 1e3
}

/// Requests a second of reads of 4 KiB, so many in flight.
fn random(name: &str, scheduler: Scheduler, depth: u64) -> f64 {
    let options = DiskOptions {
        scheduler,
        ..DiskOptions::default()
    };
    let mut disk = disk(name, options);
    let pages = disk.capacity() / 8;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut lba = || ((u128::from(random.next_u64()) * u128::from(pages)) >> 64) as u64 * 8;
    let (mut now, mut submitted, mut ended): (Time, u64, u64) = (0, 0, 0);
    let mut done = Vec::new();
    while ended < REQUESTS {
        while submitted < (ended + depth).min(REQUESTS) {
            disk.submit(now, submitted, Request::read(lba(), 8))
                .expect("a read");
            submitted += 1;
        }
        now = disk.next_event().expect("a request under way");
        disk.advance(now, &mut done);
        ended += done.drain(..).count() as u64;
    }
    REQUESTS as f64 / now as f64 * 1e9
}
