//! Recordings: request by request the truth, whole at the end, and nothing else.

mod support;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flashlore_medium::MemoryMedium;
use flashlore_serve::recording::{Options, Recording, Report};
use flashlore_trace::{Batch, Op, Pages, ReadOptions, TraceReader};
use flashlore_volume::disk::filters::Recorded;
use flashlore_volume::disk::filters::record::{Done, Log};
use flashlore_volume::disk::live::Clock;
use flashlore_volume::disk::{BlockDevice, Disk};
use flashlore_volume::{Volume, bytes_needed, create};
use proptest::prelude::*;

use support::options;

const PAGE: usize = 4096;
const SIZE: usize = 1 << 20;

/// Time goes on by 10 with each look.
fn ticks() -> Clock {
    let time = AtomicU64::new(1_000_000);
    Arc::new(move || time.fetch_add(10, Ordering::SeqCst))
}

fn disk() -> Disk {
    let options = options(1);
    let id = options.identity().unwrap();
    let medium = Arc::new(MemoryMedium::new(bytes_needed(&id).unwrap() as usize));
    create(&medium, &id).unwrap();
    let (volume, _) = Volume::open(medium).unwrap();
    Disk::new(volume, ticks())
}

fn recording(directory: &Path, most_values: u32) -> Arc<Recording> {
    let options = Options {
        trace: directory.join("t.parquet"),
        pages: Some(directory.join("t.pages.zst")),
        most_values,
    };
    let started = Recording::start(options, ticks(), Box::new(|_| ()));
    Arc::new(started.unwrap())
}

/// A record as a trace has it, with its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Record {
    time: u64,
    op: Op,
    offset: u64,
    length: u64,
    bytes: Vec<u8>,
}

/// What is in the files; values are numbered as they first appear.
fn read_back(directory: &Path) -> Vec<Record> {
    let pages = Pages::open(directory.join("t.pages.zst"), 1 << 30).unwrap();
    let trace = directory.join("t.parquet");
    let mut reader = TraceReader::open(trace, &ReadOptions::default()).unwrap();
    let (mut batch, mut records, mut next) = (Batch::default(), Vec::new(), 0);
    while reader.next_batch(&mut batch).unwrap() {
        for record in batch.iter() {
            let mut bytes = Vec::new();
            for &value in record.content.unwrap_or_default() {
                assert!(value <= next, "values in the order in which they appear");
                next = next.max(value + 1);
                bytes.extend_from_slice(pages.page(value).unwrap());
            }
            records.push(Record {
                time: record.time_ns,
                op: record.op,
                offset: record.offset,
                length: record.length,
                bytes,
            });
        }
    }
    assert_eq!(pages.len() as u32, next);
    records
}

/// A request of a session: what, offset, length, byte.
type Step = (u8, usize, usize, u8);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let offset = prop_oneof![(0..SIZE / PAGE).prop_map(|p| p * PAGE), 0..SIZE];
    let length = prop_oneof![(0..5usize).prop_map(|p| p * PAGE), 0..3 * PAGE];
    prop::collection::vec((0..6u8, offset, length, 0..9u8), 1..40)
}

fn carry_out(device: &dyn BlockDevice, (what, offset, length, byte): Step) {
    let length = length.min(SIZE - offset);
    let (at, bytes) = (offset as u64, length as u64);
    let done = match what {
        0 => device.write(at, &vec![byte; length]),
        1 => device.read(at, &mut vec![0; length]),
        2 => device.write_zeroes(at, bytes, true),
        3 => device.write_zeroes(at, bytes, false),
        4 => device.trim(at, bytes),
        _ => device.flush(),
    };
    done.unwrap();
}

/// What the trace has to say of a request, whose time is left to the caller. The model is brought on.
fn truth((what, offset, length, byte): Step, model: &mut [u8]) -> Vec<Record> {
    let end = offset + length.min(SIZE - offset);
    let record = |op, range: Range<usize>, bytes: &[u8]| Record {
        time: 0,
        op,
        offset: range.start as u64,
        length: range.len() as u64,
        bytes: bytes.to_vec(),
    };
    if what == 5 {
        return vec![record(Op::Flush, 0..0, &[])];
    }
    if offset == end {
        return Vec::new();
    }
    let outer = offset / PAGE * PAGE..end.next_multiple_of(PAGE);
    let (first, last) = (offset.next_multiple_of(PAGE), end / PAGE * PAGE);
    let inner = first..last.max(first);
    match what {
        0 => model[offset..end].fill(byte),
        1 => {}
        2 | 3 => model[offset..end].fill(0),
        _ => model[inner.clone()].fill(0),
    }
    let whole = |op, range: Range<usize>| record(op, range.clone(), &model[range]);
    let forgotten = || match inner.is_empty() {
        true => Vec::new(),
        false => vec![record(Op::Trim, inner.clone(), &[])],
    };
    match what {
        0 => vec![whole(Op::Write, outer)],
        1 => vec![whole(Op::Read, outer)],
        4 => forgotten(),
        _ => {
            // The pages of which a part is zeroed, and then those that are zeroed whole.
            let edges = outer.step_by(PAGE).filter(|at| !inner.contains(at));
            let mut told: Vec<Record> = edges.map(|at| whole(Op::Write, at..at + PAGE)).collect();
            match what {
                2 if inner.is_empty() => {}
                2 => told.push(whole(Op::Write, inner.clone())),
                _ => told.extend(forgotten()),
            }
            told
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn a_session_is_in_its_trace_request_by_request(session in steps()) {
        let directory = tempfile::tempdir().unwrap();
        let recording = recording(directory.path(), 1 << 20);
        let device = Recorded::new(disk(), Arc::clone(&recording));
        let mut model = vec![0; SIZE];
        let mut expected = Vec::new();
        for (number, &step) in session.iter().enumerate() {
            carry_out(&device, step);
            let time = 10 * number as u64;
            let told = truth(step, &mut model).into_iter();
            expected.extend(told.map(|record| Record { time, ..record }));
        }
        let finished = recording.finish();
        let Some(first) = expected.first().map(|record| record.time) else {
            prop_assert!(finished.is_err());
            return Ok(());
        };
        expected.iter_mut().for_each(|record| record.time -= first);
        prop_assert_eq!(finished.unwrap().records, expected.len() as u64);
        prop_assert!(read_back(directory.path()) == expected);
    }
}

#[test]
fn what_ended_is_in_the_trace_though_an_earlier_request_has_not() {
    let directory = tempfile::tempdir().unwrap();
    let recording = recording(directory.path(), 100);
    let pages: Vec<[u8; PAGE]> = (0..3).map(|byte| [byte; PAGE]).collect();
    let numbers: Vec<u64> = pages.iter().map(|_| recording.begin()).collect();
    for at in [2, 1] {
        let done = Done::Write(at as u64 * PAGE as u64, &pages[at]);
        recording.end(numbers[at], Some(&[done]));
    }
    let failed = recording.begin();
    recording.end(failed, None);
    let report = recording.finish().unwrap();
    let expected = Report {
        records: 2,
        values: 2,
        failed: 1,
        unfinished: 1,
        missed: 0,
    };
    assert_eq!(report, expected);
    // It came too late.
    recording.end(numbers[0], Some(&[Done::Flush]));
    let records = read_back(directory.path());
    assert_eq!((records[0].offset, records[1].offset), (4096, 8192));
    assert_eq!((records[0].time, records[1].time), (0, 10));
    assert_eq!(records[1].bytes, pages[2]);
    assert!(recording.finish().is_err(), "it is finished already");
}

#[test]
fn a_recording_that_ends_early_holds_whole_requests() {
    let directory = tempfile::tempdir().unwrap();
    let recording = recording(directory.path(), 3);
    let write = |bytes: &[u8]| {
        let number = recording.begin();
        recording.end(number, Some(&[Done::Write(0, bytes)]));
    };
    write(&[1; PAGE]);
    write(&[2; PAGE]);
    // One page more than there may be: nothing of the write is kept.
    let mut two = vec![3; 2 * PAGE];
    two[PAGE..].fill(4);
    write(&two);
    write(&[1; PAGE]);
    let report = recording.finish().unwrap();
    assert_eq!((report.records, report.values, report.missed), (2, 2, 2));
    assert_eq!(read_back(directory.path()).len(), 2);
}

#[test]
fn many_threads_are_recorded_whole() {
    let directory = tempfile::tempdir().unwrap();
    let recording = recording(directory.path(), 1 << 20);
    let disk = Arc::new(disk());
    let device = Recorded::new(Arc::clone(&disk), Arc::clone(&recording));
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let device = &device;
            scope.spawn(move || {
                for step in 0..100usize {
                    // Parts of pages that all write to.
                    let at = step * 997 % 40 * 1024 + usize::from(thread) * 256;
                    let bytes = vec![thread * 60 + step as u8 % 60; 300];
                    device.write(at as u64, &bytes).unwrap();
                }
            });
        }
    });
    assert_eq!(recording.finish().unwrap().records, 400);
    let mut model = vec![0; SIZE];
    let mut last = 0;
    for record in read_back(directory.path()) {
        assert!(record.time >= last);
        last = record.time;
        let at = record.offset as usize;
        model[at..at + record.bytes.len()].copy_from_slice(&record.bytes);
    }
    let mut bytes = vec![0; SIZE];
    disk.read(0, &mut bytes).unwrap();
    assert!(bytes == model, "the trace ends with what the volume holds");
}
