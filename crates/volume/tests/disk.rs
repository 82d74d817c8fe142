//! A volume as a block device: bytes, threads, filters.

use crate::support;
use flashlore_flash::Lpn;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use flashlore_content::PAGE_BYTES;
use flashlore_medium::{CrashMedium, Faults, FaultyMedium, MemoryMedium, Style, When};
use flashlore_volume::disk::device::{CHANGED, COMPRESSED, DELTA, HOLE, SHARED, UNIQUE};
use flashlore_volume::disk::filters::{Count, Delay, Fault, Filtered};
use flashlore_volume::disk::live::Clock;
use flashlore_volume::disk::{
    About, BlockDevice, Disk, DiskError, ErrorKind, InstantDevice, Maintainer,
};
use flashlore_volume::{
    Encoding, HistoryIdentity, Identity, MemoryShares, Policy, Volume, VolumeError, bytes_needed,
    create,
};
use support::{Draw, Shape, page, value_of};

const PAGE: u64 = PAGE_BYTES as u64;

const ENCODED: Encoding = Encoding {
    deltas: true,
    compression: true,
};

fn identity(exported: u32, policy: Policy, encoding: Encoding, history: bool) -> Identity {
    let shape = Shape {
        exported,
        blocks: exported / 12 + 12,
        pages_per_block: 4,
        units_per_page: 4,
        alignment: 512,
        index_entries: 2 * exported,
        journal_bytes: 256 << 10,
    };
    Identity {
        encoding,
        history: history.then_some(HistoryIdentity {
            entries: 8 * exported,
            least_window: 0,
            protected: false,
        }),
        ..shape.identity(policy)
    }
}

/// Every kind of volume.
fn kinds() -> Vec<(Policy, Encoding, bool)> {
    let mut kinds = Vec::new();
    for policy in support::POLICIES {
        for encoding in [Encoding::default(), ENCODED] {
            kinds.extend([(policy, encoding, false), (policy, encoding, true)]);
        }
    }
    kinds
}

/// Time goes on by one with each change.
fn ticks() -> Clock {
    let time = AtomicU64::new(1000);
    Arc::new(move || time.fetch_add(1, Ordering::SeqCst))
}

fn disk(id: &Identity) -> Arc<Disk> {
    let medium = Arc::new(MemoryMedium::new(bytes_needed(id).unwrap() as usize));
    create(&medium, id).unwrap();
    let (volume, _) = Volume::open(medium).unwrap();
    Arc::new(Disk::new(volume, ticks()))
}

/// Bytes that resemble each other, or not.
fn bytes(draw: &mut Draw, length: usize) -> Vec<u8> {
    let kind = draw.below(3);
    let base = draw.below(4) as u8;
    let some = |i: usize, draw: &mut Draw| match kind {
        0 => base,
        1 => (i % 251) as u8 ^ base,
        _ => draw.below(256) as u8,
    };
    (0..length).map(|i| some(i, draw)).collect()
}

/// Reads and writes at random of a volume whose tables have many times the pages that have room in memory: nearly all that
/// are missing are read before the volume is held.
#[test]
fn pages_of_tables_are_read_by_who_needs_them_while_others_use_the_volume() {
    const PAGES: u32 = 20_000;
    let kinds = [
        (Policy::Plain, Encoding::default(), false),
        (Policy::Dedup, Encoding::default(), false),
        (Policy::Dedup, ENCODED, true),
    ];
    for (policy, encoding, history) in kinds {
        let id = identity(PAGES, policy, encoding, history);
        let medium = Arc::new(MemoryMedium::new(bytes_needed(&id).unwrap() as usize));
        create(&medium, &id).unwrap();
        // Without objects there are a map of twenty pages and the owners of units.
        let room = if id.has_objects() { 64 } else { 12 } * PAGE;
        let few = MemoryShares {
            tables_at_opening: room,
            tables: room,
            ..MemoryShares::default()
        };
        let (volume, _) = Volume::open_within(medium, few).unwrap();
        let disk = Disk::new(volume, ticks());
        let offset = |lpn: u32| u64::from(lpn) * PAGE;
        for lpn in 0..PAGES {
            disk.write(offset(lpn), &page(lpn + 1)).unwrap();
        }
        let mut draw = Draw::new(7);
        let name = format!("{policy:?} {encoding:?} {history}");
        for writes in [false, true] {
            let before = disk.with(|volume| volume.table_state()).unwrap();
            for round in 0..3000 {
                let lpn = draw.below(PAGES);
                if writes {
                    let value = 2 * PAGES + round;
                    disk.write(offset(lpn), &page(value)).unwrap();
                    continue;
                }
                let mut found = [0; PAGE as usize];
                disk.read(offset(lpn), &mut found).unwrap();
                assert_eq!(found, page(lpn + 1), "{name}: page {lpn}");
            }
            let after = disk.with(|volume| volume.table_state()).unwrap();
            let missed = after.misses - before.misses;
            let while_held = after.read_while_held - before.read_while_held;
            assert!(missed > 1000, "{name}, {writes}: {missed} missed");
            // What lies in a packed page that collection empties, its directory alone says.
            let most = match (writes, encoding.is_on()) {
                (false, _) => missed / 50,
                (true, false) => missed / 4,
                (true, true) => missed * 2 / 5,
            };
            assert!(
                while_held <= most,
                "{name}, {writes}: {while_held} of {missed}"
            );
        }
        disk.with(|volume| volume.check()).unwrap().unwrap();
    }
}

#[test]
fn any_ranges_of_bytes_are_read_as_they_were_written() {
    for (number, (policy, encoding, history)) in kinds().into_iter().enumerate() {
        let disk = disk(&identity(48, policy, encoding, history));
        let mut model = vec![0; 48 * PAGE_BYTES];
        let mut draw = Draw::new(number as u64 + 1);
        let size = model.len() as u32;
        for step in 0..600 {
            let offset = match draw.below(3) {
                0 => draw.below(size) / 4096 * 4096,
                1 => draw.below(size) / 512 * 512,
                _ => draw.below(size),
            };
            let most = (size - offset).min(1 + draw.below(5 * 4096));
            let length = match draw.below(2) {
                0 => most,
                _ => most / 4096 * 4096,
            };
            let range = offset as usize..(offset + length) as usize;
            match draw.below(10) {
                0..5 => {
                    let data = bytes(&mut draw, range.len());
                    disk.write(offset.into(), &data).unwrap();
                    model[range].copy_from_slice(&data);
                }
                5 => {
                    let allocate = draw.below(2) == 0;
                    disk.write_zeroes(offset.into(), length.into(), allocate)
                        .unwrap();
                    model[range].fill(0);
                }
                6 => {
                    disk.trim(offset.into(), length.into()).unwrap();
                    let first = offset.next_multiple_of(4096) as usize;
                    let end = (offset + length) as usize / 4096 * 4096;
                    if first < end {
                        model[first..end].fill(0);
                    }
                }
                7 => disk.flush().unwrap(),
                _ => {
                    let mut found = vec![1; range.len()];
                    disk.read(offset.into(), &mut found).unwrap();
                    assert!(found == model[range], "{policy:?}, step {step}");
                }
            }
        }
        disk.with(|volume| volume.check()).unwrap().unwrap();
        let mut all = vec![1; model.len()];
        disk.read(0, &mut all).unwrap();
        assert!(all == model, "{policy:?} {encoding:?} {history}");
        disk.close().unwrap();
        assert!(matches!(disk.flush(), Err(DiskError::Closed)));
    }
}

#[test]
fn what_lies_beyond_the_end_is_refused_and_nothing_is_written() {
    let disk = disk(&identity(16, Policy::Plain, Encoding::default(), false));
    let size = disk.size();
    let ends = [(size, 1), (size - 1, 2), (0, size + 1), (u64::MAX, 2)];
    for (offset, length) in ends {
        let all = [
            disk.write_zeroes(offset, length, false),
            disk.trim(offset, length),
            disk.ask(About::Allocation, offset, length, &mut |_, _| true),
        ];
        for done in all {
            assert_eq!(done.unwrap_err().kind(), ErrorKind::Invalid);
        }
    }
    let beyond = disk.write(size - 1, &[1, 2]).unwrap_err();
    assert_eq!(
        beyond.to_string(),
        format!(
            "bytes {} to {} do not exist, the device has {size}",
            size - 1,
            size + 1
        )
    );
    let mut last = [1];
    disk.read(size - 1, &mut last).unwrap();
    assert_eq!(last, [0]);
    disk.write(size, &[]).unwrap();
}

/// What a device tells of itself, page by page.
fn told(device: &dyn BlockDevice, about: About) -> Vec<u32> {
    let mut flags = Vec::new();
    let size = device.size();
    device
        .ask(about, 0, size, &mut |length, flag| {
            assert_eq!(length, PAGE);
            flags.push(flag);
            true
        })
        .unwrap();
    flags
}

#[test]
fn a_device_tells_how_it_is_stored_and_what_has_changed() {
    let disk = disk(&identity(16, Policy::Dedup, ENCODED, true));
    let random = |seed| {
        let mut draw = Draw::new(seed);
        let page: Vec<u8> = (0..PAGE_BYTES).map(|_| draw.below(256) as u8).collect();
        page
    };
    let (one, other) = (random(1), random(2));
    disk.write(0, &one).unwrap();
    disk.write(PAGE, &one).unwrap();
    disk.write(2 * PAGE, &other).unwrap();
    disk.write(3 * PAGE, &[5; PAGE_BYTES]).unwrap();
    let before = disk.with(|v| v.history_status().unwrap().newest).unwrap();
    let mut changed = other.clone();
    changed[7] ^= 1;
    // Twice, because what is written once is not taken for hot.
    for _ in 0..3 {
        changed[9] = changed[9].wrapping_add(1);
        disk.write(2 * PAGE, &changed).unwrap();
    }
    let stored = told(&*disk, About::Stored);
    assert_eq!(stored[..2], [SHARED, SHARED]);
    assert_eq!(stored[2], UNIQUE | DELTA);
    assert_eq!(stored[3], UNIQUE | COMPRESSED);
    assert_eq!(stored[4], 0);
    assert_eq!(told(&*disk, About::Allocation)[..5], [0, 0, 0, 0, HOLE]);
    let since = told(&*disk, About::ChangedSince(before));
    let expected: Vec<u32> = (0..16).map(|lpn| u32::from(lpn == 2) * CHANGED).collect();
    assert_eq!(since, expected);
    // What was told is not told again once it is not true any more.
    disk.write(5 * PAGE, &one).unwrap();
    let since = told(&*disk, About::ChangedSince(before));
    assert_eq!((since[2], since[5]), (CHANGED, CHANGED));
    // A question about a part of a page tells about that part.
    let mut pieces = Vec::new();
    let mut note = |length, flags| {
        pieces.push((length, flags));
        pieces.len() < 2
    };
    disk.ask(About::Allocation, 3 * PAGE + 5, 3 * PAGE, &mut note)
        .unwrap();
    assert_eq!(pieces, [(PAGE - 5, 0), (PAGE, HOLE)]);
}

#[test]
fn an_instant_is_read_while_the_volume_is_written() {
    let disk = disk(&identity(32, Policy::Dedup, ENCODED, true));
    let mut draw = Draw::new(5);
    let mut contents: Vec<u32> = (1..=32).collect();
    for lpn in 0..32 {
        disk.write(u64::from(lpn) * PAGE, &page(lpn + 1)).unwrap();
    }
    let instant = disk.with(|v| v.history_status().unwrap().newest).unwrap();
    let then = InstantDevice::new(Arc::clone(&disk), instant).unwrap();
    assert!(InstantDevice::new(Arc::clone(&disk), u64::MAX).is_err());
    for step in 0..150 {
        let lpn = draw.below(32);
        contents[lpn as usize] = 100 + step;
        disk.write(u64::from(lpn) * PAGE, &page(100 + step))
            .unwrap();
        let mut old = vec![0; 32 * PAGE_BYTES];
        match then.read(0, &mut old) {
            Ok(()) => {
                for (expected, page) in (1..).zip(old.as_chunks().0) {
                    assert_eq!(value_of(page), Some(expected), "step {step}");
                }
            }
            // The window has passed it, and it says so.
            Err(error) => {
                assert!(matches!(&error, DiskError::Volume(VolumeError::TooOld(_))));
                assert!(step > 20, "{error}");
                return;
            }
        }
    }
    let mut part = [0; 100];
    then.read(PAGE - 50, &mut part).unwrap();
    assert_eq!(part[..50], page(1)[PAGE_BYTES - 50..]);
    assert_eq!(part[50..], page(2)[..50]);
    assert!(matches!(then.write(0, &[1]), Err(DiskError::ReadOnly)));
    assert_eq!(told(&then, About::Allocation), vec![0; 32]);
}

/// Each page is a register: it holds what one writer wrote last, and writers tell in it who they are and how often
/// they wrote. What a thread reads is never older than what it or, before its read began, anybody finished writing.
#[test]
fn pages_are_registers_for_many_threads() {
    const WRITERS: u32 = 3;
    const PAGES: u32 = 24;
    for (policy, encoding, history) in kinds() {
        let disk = disk(&identity(PAGES, policy, encoding, history));
        // By page and writer: the last round that has returned.
        let finished: Vec<AtomicU32> = (0..PAGES * WRITERS).map(|_| AtomicU32::new(0)).collect();
        let begun: Vec<AtomicU32> = (0..PAGES * WRITERS).map(|_| AtomicU32::new(0)).collect();
        let at = |lpn: u32, writer: u32| (lpn * WRITERS + writer) as usize;
        let over = AtomicBool::new(false);
        let _maintainer = Maintainer::start(&disk).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::SeqCst) {
                    disk.checkpoint().unwrap();
                }
            });
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| {
                    let (disk, begun, finished) = (&disk, &begun, &finished);
                    scope.spawn(move || {
                        let mut draw = Draw::new(u64::from(writer) + 1);
                        for round in 1..=400 {
                            let lpn = draw.below(PAGES);
                            begun[at(lpn, writer)].store(round, Ordering::SeqCst);
                            let value = round * WRITERS + writer;
                            disk.write(u64::from(lpn) * PAGE, &page(value)).unwrap();
                            finished[at(lpn, writer)].store(round, Ordering::SeqCst);
                            if draw.below(20) == 0 {
                                disk.flush().unwrap();
                            }
                        }
                    })
                })
                .collect();
            for reader in 0..2 {
                let (disk, begun, finished, over) = (&disk, &begun, &finished, &over);
                scope.spawn(move || {
                    let mut draw = Draw::new(100 + reader);
                    let mut bytes = [0; PAGE_BYTES];
                    while !over.load(Ordering::SeqCst) {
                        let lpn = draw.below(PAGES);
                        let least: Vec<u32> = (0..WRITERS)
                            .map(|w| finished[at(lpn, w)].load(Ordering::SeqCst))
                            .collect();
                        disk.read(u64::from(lpn) * PAGE, &mut bytes).unwrap();
                        let value = value_of(&bytes).expect("a page that was written");
                        if value == 0 {
                            assert!(least.iter().all(|&round| round == 0), "a write was lost");
                            continue;
                        }
                        let (writer, round) = (value % WRITERS, value / WRITERS);
                        assert!(round <= begun[at(lpn, writer)].load(Ordering::SeqCst));
                        // Of its own writer nothing older than what had finished.
                        assert!(round >= least[writer as usize], "an old value came back");
                    }
                });
            }
            for writer in writers {
                writer.join().unwrap();
            }
            over.store(true, Ordering::SeqCst);
        });
        disk.with(|volume| volume.check()).unwrap().unwrap();
    }
}

/// The power is cut under many threads. What a thread had flushed is there, and what is there somebody wrote.
#[test]
fn what_threads_flushed_survives_a_power_cut() {
    const PAGES: u32 = 24;
    const THREADS: u32 = 3;
    for (number, (policy, encoding, history)) in kinds().into_iter().enumerate() {
        for cut in [7, 40, 90, 200] {
            let id = identity(PAGES, policy, encoding, history);
            let medium = Arc::new(CrashMedium::new(bytes_needed(&id).unwrap() as usize));
            create(&medium, &id).unwrap();
            let (volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
            let disk = Arc::new(Disk::new(volume, ticks()));
            let _maintainer = Maintainer::start(&disk).unwrap();
            medium.cut_at(medium.calls() + cut);
            // Each thread has pages of its own: the last round written to each, and the last flushed.
            let threads = std::thread::scope(|scope| {
                let run = |thread: u32| {
                    let disk = &disk;
                    scope.spawn(move || write_until_the_cut(disk, thread, cut))
                };
                let threads: Vec<_> = (0..THREADS).map(run).collect();
                scope.spawn(|| while disk.checkpoint().is_ok() {});
                let done = threads.into_iter().map(|t| t.join().unwrap());
                done.collect::<Vec<_>>()
            });
            for style in [Style::Nothing, Style::All, Style::Sectors { percent: 50 }] {
                let left = medium.survivors(number as u64, style);
                let (mut volume, _) = Volume::open(CrashMedium::from_bytes(left)).unwrap();
                volume.check().unwrap();
                for lpn in 0..PAGES {
                    let Survived { written, flushed } = threads[(lpn % THREADS) as usize][&lpn];
                    let mut bytes = [0; PAGE_BYTES];
                    volume.read(Lpn(lpn), &mut bytes).unwrap();
                    let found = value_of(&bytes).expect("a page that was written");
                    let allowed = flushed..=written;
                    assert!(
                        allowed.contains(&found),
                        "{policy:?}, cut {cut}: page {lpn} holds {found}, expected {allowed:?}"
                    );
                }
            }
        }
    }

    fn write_until_the_cut(
        disk: &Disk,
        thread: u32,
        seed: u64,
    ) -> std::collections::BTreeMap<u32, Survived> {
        let mine: Vec<u32> = (0..PAGES).filter(|lpn| lpn % THREADS == thread).collect();
        let mut pages: std::collections::BTreeMap<u32, Survived> =
            mine.iter().map(|&lpn| (lpn, Survived::default())).collect();
        let mut draw = Draw::new(seed * 10 + u64::from(thread));
        for round in 1..400 {
            let lpn = mine[draw.below(mine.len() as u32) as usize];
            if let Some(page) = pages.get_mut(&lpn) {
                page.written = round;
            }
            if disk.write(u64::from(lpn) * PAGE, &page(round)).is_err() {
                break;
            }
            if draw.below(8) == 0 {
                if disk.flush().is_err() {
                    break;
                }
                pages
                    .values_mut()
                    .for_each(|page| page.flushed = page.written);
            }
        }
        pages
    }
}

/// Whether something comes about while nobody does anything.
fn comes_about(mut what: impl FnMut() -> bool) -> bool {
    (0..12_000).any(|_| {
        std::thread::sleep(Duration::from_millis(5));
        what()
    })
}

#[test]
fn what_is_to_be_done_is_done_while_nobody_uses_the_volume() {
    let id = identity(96, Policy::Dedup, Encoding::default(), false);
    let disk = disk(&id);
    let mut draw = Draw::new(3);
    let mut value = 0;
    let chores = || disk.with(|volume| volume.chores()).unwrap();
    while !chores().collection {
        value += 1;
        let lpn = u64::from(draw.below(96));
        disk.write(lpn * PAGE, &page(value)).unwrap();
    }
    while !chores().checkpoint {
        disk.flush().unwrap();
        disk.write(0, &page(value + 1)).unwrap();
        value += 1;
    }
    let checkpoint = || disk.with(|volume| volume.status().checkpoint).unwrap();
    let before = checkpoint();
    let maintainer = Maintainer::start(&disk).unwrap();
    // It learns of it with the next change.
    disk.write(0, &page(value + 1)).unwrap();
    assert!(comes_about(|| checkpoint() > before));
    assert!(comes_about(|| !chores().collection));
    disk.trim(0, 96 * PAGE).unwrap();
    disk.flush().unwrap();
    assert!(comes_about(|| !chores().discard));
    disk.with(|volume| volume.check()).unwrap().unwrap();
    drop(maintainer);
    disk.close().unwrap();
}

/// Rounds of a page.
#[derive(Debug, Clone, Copy, Default)]
struct Survived {
    written: u32,
    flushed: u32,
}

/// A flush, and a checkpoint, whose sync failed: each of the syncs that it takes.
#[test]
fn what_could_not_be_synced_is_reported_and_nothing_is_written_after_it() {
    for (is_checkpoint, nth) in [(false, 1), (true, 1), (true, 2)] {
        let id = identity(16, Policy::Dedup, ENCODED, true);
        let inner = MemoryMedium::new(bytes_needed(&id).unwrap() as usize);
        create(&inner, &id).unwrap();
        let medium = Arc::new(FaultyMedium::new(inner, Faults::default()));
        let (volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
        let disk = Disk::new(volume, ticks());
        disk.write(0, &page(1)).unwrap();
        disk.flush().unwrap();
        disk.write(0, &page(2)).unwrap();
        medium.set_faults(Faults {
            syncs: Some(When::Only(medium.syncs() + nth)),
            ..Faults::default()
        });
        let done = match is_checkpoint {
            true => disk.checkpoint(),
            false => disk.flush(),
        };
        let name = format!("checkpoint {is_checkpoint}, sync {nth}");
        assert_eq!(done.unwrap_err().kind(), ErrorKind::Failed, "{name}");
        assert!(disk.flush().is_err(), "{name}");
        assert!(disk.write(0, &page(3)).is_err(), "{name}");
        let mut bytes = [0; PAGE_BYTES];
        disk.read(0, &mut bytes).unwrap();
        assert_eq!(value_of(&bytes), Some(2), "{name}");
    }
}

#[test]
fn nobody_trusts_a_volume_that_somebody_panicked_with() {
    let disk = disk(&identity(16, Policy::Plain, Encoding::default(), false));
    disk.write(0, &page(1)).unwrap();
    let worker = Arc::clone(&disk);
    let panicked = std::thread::spawn(move || {
        let _ = worker.with(|_| panic!("planned"));
    });
    assert!(panicked.join().is_err());
    let read = disk.read(0, &mut [0; PAGE_BYTES]);
    assert!(matches!(read, Err(DiskError::Broken)), "{read:?}");
    let closed = disk.close();
    assert!(matches!(closed, Err(DiskError::Broken)), "{closed:?}");
}

#[test]
fn filters_count_delay_and_fail() {
    let disk = disk(&identity(16, Policy::Plain, Encoding::default(), false));
    let count = Count::default();
    let slow = Filtered::new(
        Arc::clone(&disk),
        Delay {
            flushes: Duration::from_millis(2),
            ..Delay::default()
        },
    );
    let faulty = Filtered::new(slow, Fault::new(0.5, 0.0, 0.0, 7));
    let device = Filtered::new(faulty, count.clone());
    device.write(0, &[1; 100]).unwrap();
    device.write_zeroes(0, 50, false).unwrap();
    device.trim(0, 4096).unwrap();
    device.flush().unwrap();
    let mut failed = BTreeSet::new();
    for n in 0..100u32 {
        match device.read(0, &mut [0; 10]) {
            Ok(()) => {}
            Err(DiskError::Injected) => {
                failed.insert(n);
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert!((20..80).contains(&failed.len()), "{failed:?}");
    let [read, write, zero, trim, flush] = count.counts().kinds;
    assert_eq!(read.errors, failed.len() as u64);
    assert_eq!(read.requests, 100 - read.errors);
    assert_eq!(read.bytes, 10 * read.requests);
    assert_eq!((write.requests, write.bytes), (1, 100));
    assert_eq!((zero.requests, zero.bytes), (1, 50));
    assert_eq!((trim.requests, trim.bytes), (1, 4096));
    assert_eq!(flush.requests, 1);
    assert!(flush.times.max() >= 2_000_000);
    assert_eq!(device.size(), disk.size());
    let mut again = Vec::new();
    let repeated = Filtered::new(Arc::clone(&disk), Fault::new(0.5, 0.0, 0.0, 7));
    for n in 0..100u32 {
        // Writes and flushes before drew too.
        if n == 0 {
            repeated.write(0, &[1; 100]).unwrap();
            repeated.write_zeroes(0, 50, false).unwrap();
            repeated.trim(0, 4096).unwrap();
            repeated.flush().unwrap();
        }
        if repeated.read(0, &mut [0; 10]).is_err() {
            again.push(n);
        }
    }
    assert_eq!(again, failed.into_iter().collect::<Vec<_>>());
}
