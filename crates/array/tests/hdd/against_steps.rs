//! The disk against one that is stepped nanosecond by nanosecond (`oracle::disk`), on small disks that turn
//! in about a microsecond: equal to the nanosecond in the end of every request and in busy time.

use flashlore_array::hdd::{
    Buffer, DiskOptions, Hdd, Op, Overhead, Parameters, Positioning, Request, Scheduler, Seek,
    Time, WriteCache, Zone,
};
use flashlore_oracle::disk::{
    Arrival, DiskOutcome, DiskRules, MoveRules, Order, RequestKind, simulate,
};
use proptest::prelude::*;

use crate::common::Random;

/// A small disk, and how it is used.
#[derive(Debug, Clone)]
struct Small {
    parameters: Parameters,
    options: DiskOptions,
}

fn small(random: &mut Random) -> Small {
    let rotation = 200 + random.below(1_300);
    let heads = 1 + random.below(3) as u32;
    let zones: Vec<Zone> = (0..1 + random.below(3)).map(|_| zone(random)).collect();
    let cylinders: u32 = zones.iter().map(|zone| zone.cylinders).sum();
    let held = zones.iter().map(|zone| {
        u64::from(heads) * u64::from(zone.cylinders) * u64::from(zone.sectors_per_track)
    });
    let held: u64 = held.sum();
    // A sector on the bus takes at most as long as the shortest under a head.
    let most = zones.iter().map(|zone| u64::from(zone.sectors_per_track));
    let shortest = rotation * 1_000 / most.max().expect("a zone");
    let bus_sector = 1 + random.below(shortest);
    let hit = random.below(100);
    let segment_sectors = random.below(25) as u32;
    let parameters = Parameters {
        name: "small",
        rotation,
        heads,
        zones,
        sectors: held - random.below(held.min(5)),
        reads: positioning(random, cylinders),
        writes: positioning(random, cylinders),
        overhead: Overhead {
            hit,
            read: hit + random.below(300),
            write: random.below(300),
        },
        bus_rate: 512_000_000_000_000 / bus_sector,
        buffer: Buffer {
            segments: random.below(4) as u32,
            segment_sectors,
            read_ahead: random.below(u64::from(segment_sectors) + 1) as u32,
        },
        write_cache: WriteCache {
            sectors: 1 + random.below(30) as u32,
            runs: 1 + random.below(5) as u32,
            piece: 1 + random.below(12) as u32,
        },
        power: None,
    };
    let schedulers = [Scheduler::Fcfs, Scheduler::Look, Scheduler::CLook];
    let options = DiskOptions {
        scheduler: schedulers[random.below(3) as usize],
        write_back: random.below(2) == 0,
    };
    Small {
        parameters,
        options,
    }
}

fn zone(random: &mut Random) -> Zone {
    let sectors_per_track = 3 + random.below(10) as u32;
    let skew = |random: &mut Random| random.below(u64::from(sectors_per_track)) as u32;
    Zone {
        cylinders: 1 + random.below(5) as u32,
        sectors_per_track,
        track_skew: skew(random),
        cylinder_skew: skew(random),
    }
}

/// Seek times of every distance, so that nothing is between points.
fn positioning(random: &mut Random, cylinders: u32) -> Positioning {
    let mut time = random.below(200);
    let points = (1..cylinders.max(2)).map(|distance| {
        time += random.below(150);
        (distance, time)
    });
    Positioning {
        seek: Seek::Measured(points.collect()),
        head_switch: random.below(250),
    }
}

fn arrivals(random: &mut Random, capacity: u64, count: usize) -> Vec<Arrival> {
    let mut at = 0;
    let gap = [10, 500, 3_000][random.below(3) as usize];
    let mut next = 0;
    let request = |_| {
        at += random.below(gap);
        let kind = match random.below(20) {
            0 => RequestKind::Flush,
            1..=11 => RequestKind::Read,
            _ => RequestKind::Write,
        };
        // Half of them go on where the last one ended.
        let lba = match random.below(2) == 0 && next < capacity {
            true => next,
            false => random.below(capacity),
        };
        let sectors = (1 + random.below(20)).min(capacity - lba);
        let (lba, sectors) = if kind == RequestKind::Flush {
            (0, 0)
        } else {
            (lba, sectors)
        };
        if kind != RequestKind::Flush {
            next = lba + sectors;
        }
        Arrival {
            at,
            kind,
            lba,
            sectors,
        }
    };
    (0..count).map(request).collect()
}

fn rules(small: &Small) -> DiskRules {
    let Parameters {
        zones,
        overhead,
        buffer,
        write_cache: cache,
        ..
    } = &small.parameters;
    let moves = |positioning: &Positioning| {
        let Seek::Measured(points) = &positioning.seek else {
            panic!("not measured");
        };
        MoveRules {
            seek: std::iter::once(0)
                .chain(points.iter().map(|&(_, time)| time))
                .collect(),
            head_switch: positioning.head_switch,
        }
    };
    let zone = |zone: &Zone| {
        (
            u64::from(zone.cylinders),
            u64::from(zone.sectors_per_track),
            u64::from(zone.track_skew),
            u64::from(zone.cylinder_skew),
        )
    };
    let cache = (
        u64::from(cache.sectors),
        cache.runs as usize,
        u64::from(cache.piece),
    );
    DiskRules {
        rotation: small.parameters.rotation,
        heads: u64::from(small.parameters.heads),
        zones: zones.iter().map(zone).collect(),
        sectors: small.parameters.sectors,
        reads: moves(&small.parameters.reads),
        writes: moves(&small.parameters.writes),
        overhead: (overhead.hit, overhead.read, overhead.write),
        bus_sector: 512_000_000_000_000 / small.parameters.bus_rate,
        buffer: (
            buffer.segments as usize,
            u64::from(buffer.segment_sectors),
            u64::from(buffer.read_ahead),
        ),
        cache: small.options.write_back.then_some(cache),
        order: match small.options.scheduler {
            Scheduler::Fcfs => Order::Arrival,
            Scheduler::Look => Order::UpAndDown,
            Scheduler::CLook => Order::UpOnly,
        },
    }
}

fn request(arrival: &Arrival) -> Request {
    let op = match arrival.kind {
        RequestKind::Read => Op::Read,
        RequestKind::Write => Op::Write,
        RequestKind::Flush => Op::Flush,
    };
    Request {
        op,
        lba: arrival.lba,
        sectors: arrival.sectors as u32,
    }
}

/// Submits all, looks at the disk at odd instants between, and compares at the horizon.
fn run(
    small: &Small,
    arrivals: &[Arrival],
    horizon: Time,
    looks: &mut Random,
) -> (DiskOutcome, Hdd) {
    let mut disk = Hdd::new(&small.parameters, small.options).expect("a disk");
    let mut done = Vec::new();
    let mut now = 0;
    for (number, arrival) in arrivals.iter().enumerate() {
        if looks.below(3) == 0 {
            now += looks.below(arrival.at - now + 1);
            disk.advance(now, &mut done);
        }
        now = arrival.at;
        disk.submit(now, number as u64, request(arrival))
            .expect("a request that fits");
    }
    disk.advance(horizon, &mut done);
    assert!(done.is_sorted_by_key(|completion| completion.at));
    let mut ends = vec![None; arrivals.len()];
    for completion in done {
        let end = &mut ends[completion.id as usize];
        assert_eq!(*end, None, "request {} ended twice", completion.id);
        *end = Some(completion.at);
    }
    let busy = disk.statistics().busy;
    (DiskOutcome { ends, busy }, disk)
}

/// Compares one seed; returns how many requests ended.
fn compare(seed: u64, count: usize) -> usize {
    let mut random = Random::new(seed);
    let small = small(&mut random);
    let arrivals = arrivals(&mut random, small.parameters.sectors, count);
    let last = arrivals.last().map_or(0, |arrival| arrival.at);
    let horizon = last + 1 + random.below(20 * small.parameters.rotation * count as u64);
    let (found, disk) = run(&small, &arrivals, horizon, &mut random);
    let expected = simulate(&rules(&small), &arrivals, horizon);
    let differs = (0..count).find(|&n| found.ends[n] != expected.ends[n]);
    if let Some(number) = differs {
        panic!(
            "seed {seed}: request {number} ended at {:?}, expected {:?}\n{:?}\n{small:#?}\n{:?}",
            found.ends[number],
            expected.ends[number],
            arrivals[number],
            &arrivals[..=number]
        );
    }
    assert_eq!(
        found.busy, expected.busy,
        "seed {seed}: busy time\n{small:#?}"
    );
    let statistics = disk.statistics();
    assert_eq!(
        statistics.parts(),
        statistics.service,
        "seed {seed}: {statistics:#?}"
    );
    found.ends.iter().flatten().count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn requests_end_when_a_disk_stepped_by_nanoseconds_ends_them(seed: u64) {
        compare(seed, 40);
    }
}

#[test]
fn what_once_differed_is_equal() {
    for seed in [
        // Busy time before a cached write, and before one that waits for room, was lost.
        2_054_174_812_843_878_067,
        2_054_174_812_844_620_209,
        // A write found room only when the piece had ended that had been the last of its run.
        1_523_000_187_712_688_955,
        // Each look into an empty queue turned the elevator.
        2_348_669_818_939_238_621,
        // A piece began before the end of a read-ahead that had stopped meanwhile.
        2_496_969_145_299_713_100,
    ] {
        compare(seed, 40);
    }
}

#[test]
fn nearly_all_requests_that_are_compared_end() {
    let ended: usize = (0..50).map(|seed| compare(seed, 30)).sum();
    assert!(ended > 50 * 30 * 3 / 4, "{ended} of 1500");
}
