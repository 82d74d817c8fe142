//! Traces of the Linux block layer: blkparse and fio.

use crate::common;

use common::*;
use flashlore_trace::formats::blkparse::Action;
use flashlore_trace::{Format, Op, ReadOptions, RequestSource, TraceReader, Workload};

const SDA: u32 = 8 << 20;
const DM: u32 = 253 << 20 | 1;

#[test]
fn blkparse_takes_queue_events() {
    let (reader, all) = opened(&fixture("sda.blkparse"));
    assert_eq!(reader.format(), Format::Blkparse(Some(Action::Queued)));
    assert_eq!(reader.format().to_string(), "blkparse:Q");
    assert_eq!(
        all,
        [
            record(0, SDA, Op::Write, 223_490 * 512, 4096),
            record(6_171, DM, Op::Read, 8192, 32768),
            record(19_171, SDA, Op::Flush, 0, 0),
            record(19_171, SDA, Op::Write, 223_498 * 512, 8192),
            record(20_171, SDA, Op::Flush, 0, 0),
            record(21_171, SDA, Op::Trim, 4096 * 512, 1 << 20),
            record(24_171, SDA, Op::Flush, 0, 0),
        ]
    );
    // Five events of other actions and a command that is neither read nor write.
    assert_eq!(reader.stats().passed_over, 6);
    assert_eq!(reader.device_names().name(DM), "253,1");
}

#[test]
fn the_action_can_be_named() {
    for (name, times) in [
        ("blkparse:D", vec![9_500]),
        ("blkparse:C", vec![25_000]),
        (
            "blkparse",
            vec![1_829, 8_000, 21_000, 21_000, 22_000, 23_000, 26_000],
        ),
    ] {
        let options = ReadOptions {
            format: Some(name.parse().unwrap()),
            ..strict()
        };
        let mut reader = TraceReader::open(fixture("sda.blkparse"), &options).unwrap();
        let all = records(&mut reader).unwrap();
        let found: Vec<u64> = all.iter().map(|r| r.time_ns + reader.origin_ns()).collect();
        assert_eq!(found, times, "{name}");
    }
    let error = "blkparse:X".parse::<Format>().unwrap_err();
    assert!(error.contains("blkparse:Q, :I, :D or :C"), "{error}");
    // No event of the action asked for.
    let options = ReadOptions {
        format: Some(Format::Blkparse(Some(Action::Inserted))),
        ..strict()
    };
    let bytes = std::fs::read(fixture("sda.blkparse")).unwrap();
    let error = read_bytes(&bytes, &options).unwrap_err().to_string();
    assert!(error.contains("12 events are no requests"), "{error}");
}

#[test]
fn without_queue_events_the_next_action_is_chosen() {
    let event = |action: &str| format!("8,0 0 1 0.5 7 {action} R 8 + 8 [x]\n");
    let action_of = |actions: &[&str]| {
        let text: String = actions.iter().map(|action| event(action)).collect();
        let reader = TraceReader::from_bytes("x", text.into_bytes(), &strict()).unwrap();
        reader.format().name()
    };
    assert_eq!(action_of(&["I", "D", "C"]), "blkparse:D");
    assert_eq!(action_of(&["C", "I"]), "blkparse:I");
    assert_eq!(action_of(&["C"]), "blkparse:C");
    assert_eq!(action_of(&["C", "D", "I", "Q"]), "blkparse:Q");
}

#[test]
fn every_kind_of_request_is_told_by_its_letters() {
    let of = |letters: &str, rest: &str| {
        let text = format!("8,0 0 1 0.5 7 Q R 8 + 8 [x]\n8,0 0 1 0.5 7 Q {letters} {rest}\n");
        let ops: Vec<Op> = read_bytes(text.as_bytes(), &strict())
            .unwrap()
            .into_iter()
            .skip(1)
            .map(|record| record.op)
            .collect();
        ops
    };
    for (letters, rest, ops) in [
        ("R", "8 + 8 [x]", vec![Op::Read]),
        ("RAM", "8 + 8 [x]", vec![Op::Read]),
        ("WS", "8 + 8 [x]", vec![Op::Write]),
        ("WFS", "8 + 8 [x]", vec![Op::Write]),
        ("FWS", "8 + 8 [x]", vec![Op::Flush, Op::Write]),
        ("FWS", "[x]", vec![Op::Flush]),
        ("FWS", "0 [0]", vec![Op::Flush]),
        ("FWS", "8 + 0 [x]", vec![Op::Flush]),
        ("FF", "[x]", vec![Op::Flush]),
        ("F", "[x]", vec![Op::Flush]),
        ("FN", "[x]", vec![Op::Flush]),
        ("D", "8 + 8 [x]", vec![Op::Trim]),
        ("DE", "8 + 8 [x]", vec![Op::Trim]),
        ("N", "8 + 8 [x]", vec![]),
        ("W", "8 + 0 [x]", vec![]),
        ("WS", "[x]", vec![]),
    ] {
        assert_eq!(of(letters, rest), ops, "{letters} {rest}");
    }
}

#[test]
fn bad_events_are_named() {
    let good = "8,0 0 1 0.5 7 Q R 8 + 8 [x]\n";
    for (line, wanted) in [
        (
            "8 0 1 0.5 7 Q R 8 + 8 [x]",
            "device is '8', expected major,minor",
        ),
        ("4096,0 0 1 0.5 7 Q R 8 + 8 [x]", "major is '4096'"),
        ("8,0 0 1 0.5x 7 Q R 8 + 8 [x]", "time is '0.5x'"),
        ("8,0 0 1 0.5 7 Q! R 8 + 8 [x]", "action is 'Q!'"),
        ("8,0 0 1 0.5 7", "action is missing"),
        (
            "8,0 0 1 0.5 7 Q X 8 + 8 [x]",
            "RWBS is 'X', expected letters",
        ),
        (
            "8,0 0 1 0.5 7 Q R 8 - 8 [x]",
            "what follows the sector is '-'",
        ),
        ("8,0 0 1 0.5 7 Q R 8 + x [x]", "number of sectors is 'x'"),
        ("8,0 0 1 0.5 7 Q R 8 + 99999999 [x]", "at most 2^30 bytes"),
        ("what is this", "device is 'what'"),
    ] {
        expect_complaint(good, line, wanted);
    }
    let found = complaint(format!("{good}CPU0 (8,0):\n Reads Queued: 1\n{good}").as_bytes());
    assert!(
        found.contains("line 4: the line is '8,0") && found.contains("no event after the summary"),
        "{found}"
    );
}

#[test]
fn fio_without_times_has_only_its_pauses() {
    let (reader, all) = opened(&fixture("pauses.fio"));
    assert_eq!(reader.format(), Format::Fio);
    assert_eq!(
        all,
        [
            record(0, 0, Op::Write, 4096, 8192),
            record(250_000, 1, Op::Read, 512, 512),
            record(250_000, 0, Op::Trim, 1 << 20, 65536),
            record(1_250_000, 0, Op::Flush, 0, 0),
            record(1_250_000, 1, Op::Flush, 0, 0),
        ]
    );
    let names = reader.device_names();
    assert_eq!([names.name(0), names.name(1)], ["/dev/sdb", "data/log.0"]);
    assert_eq!(reader.stats().passed_over, 0);
}

#[test]
fn fio_with_times_in_microseconds() {
    let (reader, all) = opened(&fixture("times.fio"));
    assert_eq!(
        all,
        [
            record(0, 0, Op::Write, 0, 16384),
            record(10_000, 0, Op::Read, 8192, 4096),
            record(13_000, 0, Op::Flush, 0, 0),
        ]
    );
    assert_eq!(reader.origin_ns(), 878_000);
    assert_eq!(reader.stats().passed_over, 2, "sync_file_range and a pause");
}

#[test]
fn fio_logs_put_together_go_on() {
    let two = std::fs::read(fixture("pauses.fio")).unwrap();
    let all = read_bytes(&two.repeat(2), &strict()).unwrap();
    assert_eq!(all[5].time_ns, 1_250_000);
    assert_eq!(all[9].time_ns, 2_500_000);
}

#[test]
fn joined_fio_logs_share_files_by_name() {
    let log = |first: &str, second: &str| {
        format!(
            "fio version 3 iolog\n0 {first} add\n0 {second} add\n0 {first} write 0 4096\n5 {second} \
             write 4096 4096\n"
        )
    };
    let readers = [log("a", "b"), log("b", "c")]
        .map(|text| TraceReader::from_bytes("log", text.into_bytes(), &strict()).unwrap());
    let workload = Workload::from_readers(readers.into(), &from_trace()).unwrap();
    let found: Vec<_> = workload
        .summary()
        .devices
        .iter()
        .map(|device| (device.name.as_str(), device.footprint_units))
        .collect();
    assert_eq!(found, [("a", 1), ("b", 2), ("c", 1)]);
}

#[test]
fn bad_lines_of_fio_are_named() {
    let header = "fio version 2 iolog\nx add\nx write 0 512\n";
    for (line, wanted) in [
        (
            "y write 0 512",
            "file is 'y', expected one that was added before",
        ),
        ("y open", "file is 'y', expected one that was added before"),
        (
            "x scribble 0 512",
            "action is 'scribble', expected an action",
        ),
        ("x write 0", "length is missing"),
        ("x write 0 0", "size is 0"),
        ("x write 0 512 7", "end of the line is '7'"),
        ("x open 5", "end of the line is '5'"),
        ("x wait x", "pause is 'x'"),
        (
            "x wait 18446744073709551",
            "pauses that together stay below",
        ),
        ("fio version 4 iolog", "version is 'fio version 4 iolog'"),
    ] {
        let text = format!("{header}x wait 999999\n{line}\nx read 0 512\n");
        let found = complaint(text.as_bytes());
        assert!(found.starts_with("bytes, line 5: "), "{found}");
        assert!(found.contains(wanted), "{found}\n  lacks {wanted}");
        assert_eq!(read_bytes(text.as_bytes(), &lenient()).unwrap().len(), 2);
    }
    let found = complaint(b"fio version 4 iolog\nx add\n");
    assert!(found.contains("expected 'fio version 2 iolog'"), "{found}");
    let options = ReadOptions {
        format: Some(Format::Fio),
        ..strict()
    };
    let error = read_bytes(b"x read 0 512\n", &options).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("the first line is 'x read 0 512'"),
        "{error}"
    );
}
