//! Speed of simulated disks: requests a second, one thread.
//!
//! `cargo bench -p flashlore-array --bench hdd` prints the best of interleaved rounds in wall time, what the
//! disk made of the requests, and a hash of every end. Without `--bench` (as `cargo test --bench hdd`) it
//! runs small and checks the hash. Either way all rounds must end the same.

use std::time::{Duration, Instant};

use flashlore_array::hdd::{
    Completion, DiskOptions, DiskStatistics, Hdd, Raid0, Request, Scheduler, Time, drives,
};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const DRIVE: &str = "barracuda-7200.7-160g";
const SMALL_HASH: &str = "3e981c4e7a2bed4b";

/// A load; all are closed loops without thinking time.
#[derive(Clone, Copy)]
enum Load {
    /// Random reads of 4 KiB, one at a time.
    RandomAlone,
    /// Sequential reads of 64 KiB, one at a time.
    Sequential,
    /// Random reads of 4 KiB, so many in flight, under an elevator.
    RandomDeep { depth: usize },
    /// Random reads and cached writes of 4 KiB in halves, 16 in flight, first come first served.
    WriteBack,
    /// Random reads of 4 KiB on four disks, 64 in flight.
    Striped,
}

const LOADS: [(&str, Load); 6] = [
    ("random reads of 4 KiB, alone", Load::RandomAlone),
    ("sequential reads of 64 KiB, alone", Load::Sequential),
    (
        "random reads, 16 in flight, C-LOOK",
        Load::RandomDeep { depth: 16 },
    ),
    (
        "random reads, 256 in flight, C-LOOK",
        Load::RandomDeep { depth: 256 },
    ),
    ("reads and cached writes, 16 in flight", Load::WriteBack),
    ("random reads, RAID-0 of 4, 64 in flight", Load::Striped),
];

fn main() {
    let full = std::env::args().any(|argument| argument == "--bench");
    let (rounds, requests) = if full { (5, 1_000_000) } else { (1, 5_000) };
    let mut best = [Duration::MAX; LOADS.len()];
    let mut outcomes: Vec<Option<Outcome>> = vec![None; LOADS.len()];
    for _ in 0..rounds {
        for (index, &(name, load)) in LOADS.iter().enumerate() {
            let begin = Instant::now();
            let outcome = run(load, requests);
            best[index] = best[index].min(begin.elapsed());
            let first = outcomes[index].get_or_insert_with(|| outcome.clone());
            assert!(*first == outcome, "{name}: two rounds differ");
        }
    }
    let mut hasher = blake3::Hasher::new();
    for (index, (name, _)) in LOADS.iter().enumerate() {
        let Some(Outcome {
            ends,
            statistics,
            disks,
        }) = &outcomes[index]
        else {
            continue;
        };
        let rate = requests as f64 / best[index].as_secs_f64() / 1e6;
        let last = ends.iter().max().copied().unwrap_or(0) as f64;
        println!(
            "{name:40} {rate:6.2} million requests/s; simulated {:7.1} requests/s, busy {:3.0} %",
            requests as f64 / last * 1e9,
            100.0 * statistics.busy as f64 / (last * f64::from(*disks))
        );
        for end in ends {
            hasher.update(&end.to_le_bytes());
        }
    }
    let hash = &hasher.finalize().to_hex()[..16];
    println!("hash {hash}");
    assert!(
        full || hash == SMALL_HASH,
        "the small run ended otherwise: {hash}"
    );
}

/// What a load came to.
#[derive(Clone, PartialEq)]
struct Outcome {
    /// In order of their names.
    ends: Vec<Time>,
    statistics: DiskStatistics,
    disks: u8,
}

fn run(load: Load, requests: u64) -> Outcome {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut below =
        move |bound: u64| ((u128::from(random.next_u64()) * u128::from(bound)) >> 64) as u64;
    let mut hdd = disk(load);
    let pages = hdd.capacity() / 8;
    let mut ends = vec![0; requests as usize];
    match load {
        Load::RandomAlone | Load::Sequential => {
            let mut now = 0;
            for (number, end) in ends.iter_mut().enumerate() {
                let request = match load {
                    Load::Sequential => Request::read(number as u64 * 128 % (pages * 8 - 128), 128),
                    _ => Request::read(below(pages) * 8, 8),
                };
                now = hdd.serve(now, request).expect("a request that fits");
                *end = now;
            }
        }
        Load::RandomDeep { depth } => drive(&mut hdd, depth, &mut ends, |_| {
            Request::read(below(pages) * 8, 8)
        }),
        Load::WriteBack => drive(&mut hdd, 16, &mut ends, |number| match number % 2 {
            0 => Request::read(below(pages) * 8, 8),
            _ => Request::write(below(pages) * 8, 8),
        }),
        Load::Striped => {
            let disks = vec![hdd; 4];
            let mut array = Raid0::new(disks, 128).expect("an array");
            drive(&mut array, 64, &mut ends, |_| {
                Request::read(below(4 * pages - 64) * 8, 8)
            });
            let statistics = array.statistics();
            return Outcome {
                ends,
                statistics,
                disks: 4,
            };
        }
    }
    let statistics = hdd.statistics();
    Outcome {
        ends,
        statistics,
        disks: 1,
    }
}

fn disk(load: Load) -> Hdd {
    let scheduler = match load {
        Load::RandomDeep { .. } => Scheduler::CLook,
        _ => Scheduler::Fcfs,
    };
    let write_back = matches!(load, Load::WriteBack);
    let parameters = drives::named(DRIVE).expect("a drive of this name");
    let options = DiskOptions {
        scheduler,
        write_back,
    };
    Hdd::new(&parameters, options).expect("a drive that can be")
}

/// A disk or several.
trait Disk {
    fn submit(&mut self, time: Time, id: u64, request: Request);
    fn next_event(&self) -> Option<Time>;
    fn advance(&mut self, until: Time, done: &mut Vec<Completion>);
}

macro_rules! disk {
    ($name:ty) => {
        impl Disk for $name {
            fn submit(&mut self, time: Time, id: u64, request: Request) {
                <$name>::submit(self, time, id, request).expect("a request that fits");
            }
            fn next_event(&self) -> Option<Time> {
                <$name>::next_event(self)
            }
            fn advance(&mut self, until: Time, done: &mut Vec<Completion>) {
                <$name>::advance(self, until, done);
            }
        }
    };
}

disk!(Hdd);
disk!(Raid0);

/// Keeps so many requests in flight until each has an end.
fn drive(
    disk: &mut impl Disk,
    depth: usize,
    ends: &mut [Time],
    mut request: impl FnMut(u64) -> Request,
) {
    let (mut submitted, mut in_flight) = (0, 0);
    let (mut now, mut done) = (0, Vec::new());
    while in_flight > 0 || submitted < ends.len() {
        while in_flight < depth && submitted < ends.len() {
            disk.submit(now, submitted as u64, request(submitted as u64));
            submitted += 1;
            in_flight += 1;
        }
        now = disk.next_event().expect("a request under way");
        disk.advance(now, &mut done);
        in_flight -= done.len();
        for completion in done.drain(..) {
            ends[completion.id as usize] = completion.at;
        }
    }
}
