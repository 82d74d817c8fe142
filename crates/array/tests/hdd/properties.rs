//! What must hold of any disk, tried on the named drives.

use flashlore_array::hdd::{
    Completion, DiskOptions, Hdd, Op, ParameterError, Raid0, Request, RequestError, Scheduler,
    Seek, SeekCurve, SeekError, Time, drives,
};

use crate::common::{Random, drive, keep_busy, media_rate, scheduled};

/// Reads and writes of a few sizes, one in four where the last one ended.
fn mixed(seed: u64, capacity: u64) -> impl FnMut(u64) -> Request {
    let mut random = Random::new(seed);
    let mut next = 0;
    move |_| {
        let sectors = [1, 8, 64, 2_000][random.below(4) as usize];
        let lba = match random.below(4) == 0 && next + sectors <= capacity {
            true => next,
            false => random.below(capacity - sectors),
        };
        next = lba + sectors;
        match random.below(3) {
            0 => Request::write(lba, sectors as u32),
            _ => Request::read(lba, sectors as u32),
        }
    }
}

fn random_reads(seed: u64, capacity: u64) -> impl FnMut(u64) -> Request {
    let mut random = Random::new(seed);
    move |_| Request::read(random.below(capacity / 8) * 8, 8)
}

/// Milliseconds from the first submission to the last end.
fn milliseconds(done: &[Completion]) -> f64 {
    done.last().expect("a completion").at as f64 * 1e-6
}

#[test]
fn no_request_ends_before_it_could() {
    for name in drives::NAMES {
        let parameters = drives::named(name).expect("a drive");
        let mut disk = drive(name, DiskOptions::default());
        let per_track = parameters.zones.iter().map(|zone| zone.sectors_per_track);
        let per_track = u64::from(per_track.max().expect("a zone"));
        let mut request = mixed(1, disk.capacity());
        let mut now = 0;
        for number in 0..2_000 {
            let request = request(number);
            let end = disk.serve(now, request).expect("a request that fits");
            let sectors = u64::from(request.sectors);
            let bus = sectors * 512 * 1_000_000_000 / parameters.bus_rate;
            let media = sectors * parameters.rotation / per_track;
            let least = match request.op {
                // A buffer may hold all of it.
                Op::Read => parameters.overhead.hit + bus,
                _ => parameters.overhead.write + media - 1,
            };
            assert!(end >= now + least, "{name}: {request:?} took {}", end - now);
            now = end;
        }
    }
}

#[test]
fn first_come_is_first_served() {
    for name in drives::NAMES {
        let mut disk = drive(name, DiskOptions::default());
        let capacity = disk.capacity();
        let done = keep_busy(&mut disk, 16, 1_000, mixed(2, capacity));
        assert!(done.iter().map(|completion| completion.id).eq(0..1_000));
    }
}

#[test]
fn an_elevator_starves_no_request() {
    for scheduler in [Scheduler::Look, Scheduler::CLook] {
        for name in drives::NAMES {
            let mut disk = drive(name, scheduled(scheduler));
            let (capacity, mut random) = (disk.capacity(), Random::new(3));
            // Two far off, and a crowd around the middle that never ends.
            let done = keep_busy(&mut disk, 12, 2_000, |number| match number {
                1 => Request::read(0, 8),
                2 => Request::read(capacity - 8, 8),
                _ => Request::read(capacity / 2 + random.below(2_000) * 8, 8),
            });
            for far in [1, 2] {
                let place = done.iter().position(|completion| completion.id == far);
                let overtaken = place.expect("a completion");
                assert!(
                    overtaken < 100,
                    "{name}, {scheduler:?}: after {overtaken} others"
                );
            }
        }
    }
}

#[test]
fn sequential_reads_reach_the_rate_of_their_zone() {
    for name in drives::NAMES {
        let parameters = drives::named(name).expect("a drive");
        for (zone, at_end) in [(0, false), (parameters.zones.len() - 1, true)] {
            let mut disk = drive(name, DiskOptions::default());
            let sectors = 128;
            let count = 6_000 * sectors;
            let from = if at_end { disk.capacity() - count } else { 0 };
            let (mut now, mut first) = (0, 0);
            for lba in (from..from + count).step_by(sectors as usize) {
                now = disk
                    .serve(now, Request::read(lba, sectors as u32))
                    .expect("a read");
                first = if lba == from { now } else { first };
            }
            let rate = ((count - sectors) * 512) as f64 / (now - first) as f64 * 1e9;
            let expected = media_rate(&parameters, zone);
            let error = rate / expected - 1.0;
            assert!(
                error.abs() < 0.01,
                "{name}, zone {zone}: {rate} instead of {expected}"
            );
            assert!(disk.statistics().sequential >= count / sectors - 1);
        }
    }
}

#[test]
fn sequential_writes_reach_the_rate_of_their_zone_only_through_the_write_cache() {
    for name in drives::NAMES {
        let parameters = drives::named(name).expect("a drive");
        let options = DiskOptions {
            write_back: true,
            ..DiskOptions::default()
        };
        let (mut cached, mut through) = (drive(name, options), drive(name, DiskOptions::default()));
        let (sectors, count) = (128, 2_000);
        let (mut now, mut slow) = (0, 0);
        for number in 0..count {
            let request = Request::write(number * sectors, sectors as u32);
            now = cached.serve(now, request).expect("a write");
            if number < 500 {
                slow = through.serve(slow, request).expect("a write");
            }
        }
        now = cached.serve(now, Request::FLUSH).expect("a flush");
        let rate = (count * sectors * 512) as f64 / now as f64 * 1e9;
        let expected = media_rate(&parameters, 0);
        assert!(
            (rate / expected - 1.0).abs() < 0.02,
            "{name}: {rate}, not {expected}"
        );
        // The next sector has just passed when the next request comes: each waits for it to come again.
        let turns = slow as f64 / 500.0 / parameters.rotation as f64;
        let transfer = (sectors * 512) as f64 / expected / (parameters.rotation as f64 * 1e-9);
        let error = turns - (1.0 + transfer);
        assert!(
            error.abs() < 0.03,
            "{name}: {turns} turns a write, of which {transfer} transfer"
        );
    }
}

#[test]
fn random_reads_take_seek_half_a_turn_and_transfer() {
    for name in drives::NAMES {
        let parameters = drives::named(name).expect("a drive");
        let mut disk = drive(name, DiskOptions::default());
        let (count, capacity) = (20_000, disk.capacity());
        let done = keep_busy(&mut disk, 1, count, random_reads(4, capacity));
        let seek = match &parameters.reads.seek {
            Seek::Fitted(times) => times.average as f64,
            Seek::Measured(points) => {
                let curve = SeekCurve::measured(points).expect("a curve");
                curve.average(parameters.cylinders())
            }
        };
        let zones = &parameters.zones;
        let per_track: u32 = zones.iter().map(|zone| zone.sectors_per_track).sum();
        let per_track = f64::from(per_track) / zones.len() as f64;
        let turn = parameters.rotation as f64;
        let transfer = 8.0 / per_track * turn;
        let expected = seek + turn / 2.0 + transfer + parameters.overhead.read as f64;
        let mean = milliseconds(&done) * 1e6 / count as f64;
        let error = mean / expected - 1.0;
        assert!(
            error.abs() < 0.04,
            "{name}: {mean} instead of {expected} ({error:+.3})"
        );
        let statistics = disk.statistics();
        let half = statistics.rotation as f64 / count as f64 / (turn / 2.0);
        assert!((half - 1.0).abs() < 0.02, "{name}: {half} of half a turn");
        assert_eq!(statistics.parts(), statistics.service);
    }
}

#[test]
fn a_deep_queue_is_served_faster_by_an_elevator() {
    for name in drives::NAMES {
        let time = |scheduler| {
            let mut disk = drive(name, scheduled(scheduler));
            let capacity = disk.capacity();
            let reads = random_reads(5, capacity);
            milliseconds(&keep_busy(&mut disk, 16, 4_000, reads))
        };
        let fcfs = time(Scheduler::Fcfs);
        for scheduler in [Scheduler::Look, Scheduler::CLook] {
            let faster = fcfs / time(scheduler);
            assert!(faster > 1.25, "{name}, {scheduler:?}: {faster}");
        }
    }
}

#[test]
fn a_shift_by_whole_turns_shifts_every_end() {
    for (name, write_back) in drives::NAMES.iter().zip([false, true].iter().cycle()) {
        let options = DiskOptions {
            scheduler: Scheduler::CLook,
            write_back: *write_back,
        };
        let rotation = drives::named(name).expect("a drive").rotation;
        let run = |shift: Time| {
            let mut disk = drive(name, options);
            let (mut random, mut done) = (Random::new(6), Vec::new());
            let mut request = mixed(7, disk.capacity());
            let mut at = shift;
            for id in 0..500 {
                at += random.below(20_000_000);
                disk.submit(at, id, request(id))
                    .expect("a request that fits");
            }
            disk.advance(at + 2_000 * rotation, &mut done);
            (done, disk.statistics())
        };
        let (plain, statistics) = run(0);
        assert_eq!(plain.len(), 500);
        assert_eq!(
            run(0),
            (plain.clone(), statistics),
            "{name} is not deterministic"
        );
        for turns in [1, 1_000_003] {
            let (shifted, same) = run(turns * rotation);
            let back = shifted.iter().map(|&Completion { id, at }| Completion {
                id,
                at: at - turns * rotation,
            });
            assert!(back.eq(plain.iter().copied()), "{name}, {turns} turns");
            assert_eq!(same, statistics);
        }
    }
}

#[test]
fn a_write_ends_in_the_cache_and_a_flush_when_the_media_have_it() {
    let options = DiskOptions {
        write_back: true,
        ..DiskOptions::default()
    };
    let mut disk = drive("barracuda-7200.7-160g", options);
    let overhead = 200_000;
    let first = disk
        .serve(0, Request::write(1_000_000, 8))
        .expect("a write");
    assert_eq!(first, overhead + 8 * 512 * 1_000 / 150);
    let second = disk
        .serve(first, Request::write(200_000_000, 8))
        .expect("a write");
    assert!(second < first + 1_000_000);
    let read = disk
        .serve(second, Request::read(1_000_002, 4))
        .expect("a read");
    assert!(read < second + 1_000_000, "the cache holds what is read");
    let flushed = disk.serve(read, Request::FLUSH).expect("a flush");
    assert!(flushed > read + 8_000_000, "two seeks and two turns");
    let again = disk.serve(flushed, Request::FLUSH).expect("a flush");
    assert_eq!(again, flushed + overhead);
    let statistics = disk.statistics();
    assert_eq!(
        (statistics.cached_writes, statistics.destaged_sectors),
        (2, 16)
    );
}

/// Found against the stepped disk: what a disk did before a cached write, and before a write that waits for
/// room, was not counted.
#[test]
fn a_disk_that_never_rests_is_busy_all_the_time() {
    let options = DiskOptions {
        write_back: true,
        ..DiskOptions::default()
    };
    let mut disk = drive("barracuda-7200.7-160g", options);
    let end = disk.serve(0, Request::read(1_000_000, 8)).expect("a read");
    // The disk still reads ahead.
    let write = end + 1_000_000;
    let end = disk.serve(write, Request::write(9, 8)).expect("a write");
    disk.advance(end, &mut Vec::new());
    assert_eq!(disk.statistics().busy, end);

    for name in drives::NAMES {
        let mut disk = drive(name, options);
        let capacity = disk.capacity();
        let done = keep_busy(&mut disk, 4, 2_000, mixed(10, capacity));
        let end = done.last().expect("a completion").at;
        assert_eq!(disk.statistics().busy, end, "{name}");
        assert!(
            disk.statistics().held_up > 0,
            "{name}: nothing waited for room"
        );
    }
}

#[test]
fn an_idle_disk_destages_by_itself() {
    let options = DiskOptions {
        write_back: true,
        ..DiskOptions::default()
    };
    let mut disk = drive("constellation.2-1t", options);
    let end = disk
        .serve(0, Request::write(500_000_000, 8))
        .expect("a write");
    let second = 1_000_000_000;
    let flushed = disk.serve(end + second, Request::FLUSH).expect("a flush");
    assert_eq!(flushed, end + second + 200_000);
}

#[test]
fn what_was_read_ahead_costs_the_controller_and_the_bus() {
    let mut disk = drive("barracuda-7200.7-160g", DiskOptions::default());
    let end = disk.serve(0, Request::read(5_000_000, 8)).expect("a read");
    let later = end + 50_000_000;
    let hit = disk
        .serve(later, Request::read(5_000_008, 256))
        .expect("a read");
    assert_eq!(hit - later, 50_000 + 256 * 512 * 1_000 / 150);
    assert_eq!(disk.statistics().buffer_hits, 1);
}

#[test]
fn an_array_of_one_is_its_disk_and_of_four_reads_four_times_as_fast() {
    let name = "cheetah-15k.7-300g";
    let mut single = drive(name, DiskOptions::default());
    let disks = vec![drive(name, DiskOptions::default())];
    let mut array = Raid0::new(disks, 128).expect("an array");
    let (mut one, mut other) = (Vec::new(), Vec::new());
    let mut request = mixed(8, array.capacity());
    for id in 0..300 {
        let request = request(id);
        single
            .submit(id * 1_000_000, id, request)
            .expect("a request that fits");
        array
            .submit(id * 1_000_000, id, request)
            .expect("a request that fits");
    }
    single.advance(u64::MAX >> 1, &mut one);
    array.advance(u64::MAX >> 1, &mut other);
    assert_eq!(one, other);

    let seconds = |disks: usize| {
        let disks = (0..disks)
            .map(|_| drive(name, DiskOptions::default()))
            .collect();
        let mut array = Raid0::new(disks, 128).expect("an array");
        let mut now = 0;
        for number in 0..500 {
            now = array
                .serve(now, Request::read(number * 4_096, 4_096))
                .expect("a read");
        }
        now as f64
    };
    let faster = seconds(1) / seconds(4);
    assert!((3.7..=4.0).contains(&faster), "{faster} times");
}

#[test]
fn an_array_waits_for_the_last_part_and_keeps_all_disks_busy() {
    let name = "barracuda-7200.7-160g";
    let disks: Vec<Hdd> = (0..4)
        .map(|_| drive(name, DiskOptions::default()))
        .collect();
    let mut array = Raid0::new(disks, 128).expect("an array");
    assert_eq!(array.capacity() % (4 * 128), 0);
    let (mut random, mut done) = (Random::new(9), Vec::new());
    let mut submitted = 0;
    let mut now = 0;
    while done.len() < 2_000 {
        while submitted < done.len() as u64 + 32 {
            let lba = random.below(array.capacity() / 8) * 8;
            array
                .submit(now, submitted, Request::read(lba, 8))
                .expect("a read");
            submitted += 1;
        }
        now = array.next_event().expect("a request under way");
        array.advance(now, &mut done);
    }
    assert!(done.is_sorted_by_key(|completion| completion.at));
    // With exponential service four servers and 32 customers would work 32 / (32 + 4 - 1) of the time.
    let busy = array.statistics().busy as f64 / (4.0 * now as f64);
    assert!((32.0 / 35.0..1.0).contains(&busy), "{busy}");
    // All that were submitted end, each once.
    array.advance(now + 60_000_000_000, &mut done);
    let mut ids: Vec<u64> = done.iter().map(|completion| completion.id).collect();
    ids.sort_unstable();
    assert!(ids.into_iter().eq(0..submitted));
    assert_eq!(array.statistics().reads, submitted);
    assert_eq!(array.next_event(), None);
}

#[test]
fn energy_is_power_by_time() {
    let mut disk = drive("barracuda-7200.7-160g", DiskOptions::default());
    let mut done = Vec::new();
    disk.advance(10_000_000_000, &mut done);
    assert_eq!(disk.energy(), Some(75.0));
    let end = disk
        .serve(10_000_000_000, Request::write(0, 8))
        .expect("a write");
    disk.advance(20_000_000_000, &mut done);
    let busy = (end - 10_000_000_000) as f64 * 1e-9;
    let energy = disk.energy().expect("a known power");
    assert!((energy - (150.0 + 4.5 * busy)).abs() < 1e-9);
    assert_eq!(
        drive("cheetah-9lp-9g", DiskOptions::default()).energy(),
        None
    );
}

#[test]
fn what_cannot_be_served_is_refused_with_what_was_expected() {
    let mut disk = drive("cheetah-9lp-9g", DiskOptions::default());
    let capacity = disk.capacity();
    for request in [
        Request::read(capacity, 1),
        Request::read(u64::MAX, 2),
        Request::write(0, 0),
        Request {
            sectors: 1,
            ..Request::FLUSH
        },
    ] {
        let error = disk.submit(0, 0, request).expect_err("a bad request");
        assert_eq!(error, RequestError::Range { request, capacity });
        assert!(error.to_string().contains("below 17783240"), "{error}");
    }
    assert!(disk.submit(u64::MAX, 0, Request::FLUSH).is_err());
    disk.submit(5, 0, Request::read(0, 1)).expect("a read");
    let past = disk.submit(4, 0, Request::read(0, 1));
    assert_eq!(past, Err(RequestError::Past { time: 4, now: 5 }));
    let busy = disk.serve(5, Request::read(0, 1));
    assert_eq!(busy, Err(RequestError::Busy { waiting: 1 }));
}

#[test]
fn a_drive_that_cannot_be_is_refused_with_the_field_at_fault() {
    let good = drives::named("constellation.2-1t").expect("a drive");
    let refused = |change: fn(&mut flashlore_array::hdd::Parameters)| {
        let mut bad = good.clone();
        change(&mut bad);
        Hdd::new(&bad, DiskOptions::default()).expect_err("a bad drive")
    };
    let field = |error: ParameterError| match error {
        ParameterError::Field { field, .. } => field,
        ParameterError::Seek { .. } => "seek",
    };
    assert_eq!(field(refused(|p| p.rotation = 0)), "rotation");
    assert_eq!(field(refused(|p| p.heads = 0)), "heads");
    assert_eq!(field(refused(|p| p.zones.clear())), "sectors");
    assert_eq!(field(refused(|p| p.sectors = u64::MAX)), "sectors");
    assert_eq!(field(refused(|p| p.bus_rate = 100_000_000)), "bus_rate");
    assert_eq!(field(refused(|p| p.overhead.read = 0)), "overhead.read");
    assert_eq!(
        field(refused(|p| p.zones[3].cylinders = 0)),
        "zones.cylinders"
    );
    assert_eq!(
        field(refused(|p| p.zones[3].track_skew = 5_000)),
        "zones skew"
    );
    assert_eq!(
        field(refused(|p| p.buffer.read_ahead = 5_000)),
        "buffer.read_ahead"
    );
    let error = refused(|p| p.reads.seek = Seek::Measured(Vec::new()));
    assert!(matches!(
        error,
        ParameterError::Seek {
            error: SeekError::NoPoints,
            ..
        }
    ));
    let error = refused(|p| p.zones[0].sectors_per_track = 0).to_string();
    assert!(
        error.contains("`zones.sectors_per_track` is 0, expected 1 to"),
        "{error}"
    );
}
