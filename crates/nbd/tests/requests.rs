//! Every command, every flag and every error of transmission, and the bytes of the replies.

use crate::exercise;

use exercise::shop::request;
use flashlore_nbd::transmission::{
    Command, Extents, Piece, Refused, Replies, Request, RequestEvent, RequestReader, Rules,
};
use flashlore_nbd::{Errno, ExportInfo, Limits};

const FUA: u16 = 1;
const NO_HOLE: u16 = 2;
const DF: u16 = 4;
const REQ_ONE: u16 = 8;
const FAST_ZERO: u16 = 16;
const CODES: [u16; 7] = [0, 1, 3, 4, 5, 6, 7];

const SIZE: u64 = 1 << 20;

fn rules(change: impl FnOnce(&mut ExportInfo)) -> Rules {
    let mut info = ExportInfo::writable(SIZE);
    change(&mut info);
    Rules::of(&info, true, true, &Limits::default())
}

fn errno(rules: &Rules, flags: u16, code: u16, offset: u64, length: u32) -> Option<Errno> {
    let length = if code == 3 { 0 } else { length };
    rules
        .check(1, code, flags, offset, length)
        .err()
        .map(|refused| refused.errno)
}

#[test]
fn each_command_takes_its_flags_and_no_others() {
    let all = rules(|_| ());
    for code in CODES {
        let own = match code {
            0 => DF,
            6 => NO_HOLE | FAST_ZERO,
            7 => REQ_ONE,
            _ => 0,
        };
        for bit in 0..16 {
            let flag = 1 << bit;
            let known = flag == FUA || own & flag != 0;
            let expected = (!known).then_some(Errno::Invalid);
            assert_eq!(
                errno(&all, flag, code, 0, 512),
                expected,
                "{code} {flag:#x}"
            );
        }
        assert_eq!(errno(&all, FUA | own, code, 0, 512), None);
    }
}

#[test]
fn flags_and_commands_that_were_not_offered_are_invalid() {
    let invalid = Some(Errno::Invalid);
    let plain = rules(|info| {
        info.flush = false;
        info.trim = false;
        info.cache = false;
        info.fast_zero = false;
    });
    assert_eq!(errno(&plain, FUA, 1, 0, 512), invalid);
    for code in [3, 4, 5] {
        assert_eq!(errno(&plain, 0, code, 0, 512), invalid);
    }
    assert_eq!(errno(&plain, FAST_ZERO, 6, 0, 512), invalid);
    assert_eq!(errno(&plain, NO_HOLE, 6, 0, 512), None);
    assert_eq!(
        errno(&rules(|info| info.write_zeroes = false), 0, 6, 0, 512),
        invalid
    );

    let info = ExportInfo::writable(SIZE);
    let simple = Rules::of(&info, false, true, &Limits::default());
    assert_eq!(
        errno(&simple, DF, 0, 0, 512),
        invalid,
        "DF without structured replies"
    );
    assert_eq!(errno(&simple, 0, 7, 0, 512), invalid);
    let without = Rules::of(&info, true, false, &Limits::default());
    assert_eq!(
        errno(&without, 0, 7, 0, 512),
        invalid,
        "status without contexts"
    );
    for code in [2, 8, 9, 255, u16::MAX] {
        assert_eq!(errno(&rules(|_| ()), 0, code, 0, 512), invalid);
    }
}

#[test]
fn nothing_changes_a_read_only_export() {
    let info = ExportInfo::read_only(SIZE);
    let rules = Rules::of(&info, true, true, &Limits::default());
    for code in CODES {
        let expected = [1, 4, 6].contains(&code).then_some(Errno::NotPermitted);
        assert_eq!(errno(&rules, 0, code, 0, 512), expected);
    }
}

#[test]
fn beyond_the_end_there_is_no_space_to_write_and_nothing_to_read() {
    let rules = rules(|_| ());
    for code in [0, 1, 4, 5, 6, 7] {
        let beyond = if [1, 6].contains(&code) {
            Errno::NoSpace
        } else {
            Errno::Invalid
        };
        assert_eq!(errno(&rules, 0, code, SIZE - 512, 512), None);
        for (offset, length) in [
            (SIZE - 511, 512),
            (SIZE, 1),
            (u64::MAX, 1),
            (u64::MAX - 4, 512),
        ] {
            assert_eq!(errno(&rules, 0, code, offset, length), Some(beyond));
        }
    }
}

#[test]
fn requests_are_aligned_to_the_minimum_block_size() {
    let rules = rules(|info| info.block_sizes.minimum = 512);
    for code in [0, 1, 4, 5, 6, 7] {
        assert_eq!(errno(&rules, 0, code, 512, 1024), None);
        assert_eq!(errno(&rules, 0, code, 511, 512), Some(Errno::Invalid));
        assert_eq!(errno(&rules, 0, code, 512, 513), Some(Errno::Invalid));
    }
}

#[test]
fn payloads_have_a_limit_and_other_lengths_have_none() {
    let limits = Limits {
        payload_bytes: 8192,
        ..Limits::default()
    };
    let rules = Rules::of(&ExportInfo::writable(1 << 40), true, true, &limits);
    let long = 8193;
    assert_eq!(errno(&rules, 0, 0, 0, long), Some(Errno::Invalid));
    assert_eq!(errno(&rules, DF, 0, 0, long), Some(Errno::Overflow));
    assert_eq!(errno(&rules, 0, 1, 0, long), Some(Errno::Invalid));
    for code in [4, 5, 6, 7] {
        assert_eq!(errno(&rules, 0, code, 0, u32::MAX), None);
    }
}

#[test]
fn a_request_of_no_bytes_is_allowed_where_there_can_be_an_answer() {
    let rules = rules(|_| ());
    for code in [0, 1, 4, 5, 6] {
        assert_eq!(errno(&rules, 0, code, 0, 0), None);
    }
    assert_eq!(errno(&rules, 0, 7, 0, 0), Some(Errno::Invalid));
    for (offset, length) in [(1, 0), (0, 1)] {
        assert!(
            rules.check(1, 3, 0, offset, length).is_err(),
            "a flush has neither"
        );
    }
}

#[test]
fn a_refused_write_leaves_the_stream_in_step() {
    let limits = Limits::default();
    let rules = Rules::of(&ExportInfo::read_only(SIZE), true, true, &limits);
    let mut reader = RequestReader::new(rules, &limits);
    let stream = [
        request(0, 1, 7, 0, 100),
        vec![9; 100],
        request(0, 0, 8, 0, 10),
    ]
    .concat();
    let first = reader.receive(&stream).unwrap();
    assert_eq!((first.consumed, first.event), (28, None));
    let second = reader.receive(&stream[28..]).unwrap();
    assert!(matches!(
        second.event,
        Some(RequestEvent::Refused(Refused {
            cookie: 7,
            errno: Errno::NotPermitted,
            ..
        }))
    ));
    let third = reader.receive(&stream[28 + second.consumed..]).unwrap();
    assert!(matches!(
        third.event,
        Some(RequestEvent::Request(Request { cookie: 8, .. }))
    ));
}

#[test]
fn payload_may_be_taken_past_the_reader() {
    let limits = Limits::default();
    let mut reader = RequestReader::new(rules(|_| ()), &limits);
    reader.receive(&request(0, 1, 7, 0, 100)).unwrap();
    assert_eq!(reader.payload_left(), 100);
    reader.payload_taken(60);
    assert_eq!(reader.payload_left(), 40);
    assert!(!reader.is_idle());
    reader.payload_taken(1000);
    assert_eq!(reader.payload_left(), 0);
    assert!(reader.is_idle());
}

fn read(flags: u16, offset: u64, length: u32) -> Request {
    Request {
        cookie: 0x0102_0304_0506_0708,
        command: Command::Read,
        offset,
        length,
        flags,
    }
}

const COOKIE: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

#[test]
fn simple_replies_byte_by_byte() {
    let replies = Replies::new(false);
    let mut out = Vec::new();
    replies.read(
        &read(0, 9, 4),
        &[Piece::Data(b"ab"), Piece::Zeroes(2)],
        &mut out,
    );
    assert_eq!(
        out,
        [
            &[0x67, 0x44, 0x66, 0x98, 0, 0, 0, 0],
            &COOKIE[..],
            b"ab\0\0"
        ]
        .concat()
    );
    out.clear();
    replies.error(0x0102_0304_0506_0708, Errno::NoSpace, "full", &mut out);
    assert_eq!(
        out,
        [&[0x67, 0x44, 0x66, 0x98, 0, 0, 0, 28], &COOKIE[..]].concat()
    );
}

#[test]
fn structured_replies_byte_by_byte() {
    let replies = Replies::new(true);
    let head = |flags: u8, kind: [u8; 2], length: u8| {
        [
            &[0x66, 0x8e, 0x33, 0xef, 0, flags, kind[0], kind[1]],
            &COOKIE[..],
            &[0, 0, 0, length],
        ]
        .concat()
    };
    let mut out = Vec::new();
    replies.read(
        &read(0, 9, 4),
        &[Piece::Data(b"ab"), Piece::Zeroes(2)],
        &mut out,
    );
    let data = [
        head(0, [0, 1], 10),
        vec![0, 0, 0, 0, 0, 0, 0, 9],
        b"ab".to_vec(),
    ]
    .concat();
    let hole = [
        head(1, [0, 2], 12),
        vec![0, 0, 0, 0, 0, 0, 0, 11, 0, 0, 0, 2],
    ]
    .concat();
    assert_eq!(out, [data, hole].concat());

    out.clear();
    replies.read(
        &read(DF, 9, 4),
        &[Piece::Data(b"ab"), Piece::Zeroes(2)],
        &mut out,
    );
    let whole = [
        head(1, [0, 1], 12),
        vec![0, 0, 0, 0, 0, 0, 0, 9],
        b"ab\0\0".to_vec(),
    ]
    .concat();
    assert_eq!(out, whole);

    out.clear();
    replies.read(&read(0, 9, 0), &[], &mut out);
    assert_eq!(out, head(1, [0, 0], 0));

    out.clear();
    replies.error_at(0x0102_0304_0506_0708, Errno::Io, "rot", 5, &mut out);
    let error = [0, 0, 0, 5, 0, 3, b'r', b'o', b't', 0, 0, 0, 0, 0, 0, 0, 5];
    assert_eq!(out, [head(1, [0x80, 2], 17), error.to_vec()].concat());
}

#[test]
fn pieces_that_do_not_add_up_still_make_a_reply_of_the_right_length() {
    for structured in [false, true] {
        for flags in [0, DF] {
            for pieces in [&[][..], &[Piece::Data(b"abcdefgh")], &[Piece::Zeroes(9)]] {
                let mut out = Vec::new();
                Replies::new(structured).read(&read(flags, 0, 4), pieces, &mut out);
                let lengths = match (structured, flags) {
                    (false, _) => 20..=20,
                    (true, DF) => 32..=32,
                    _ => 32..=32,
                };
                assert!(lengths.contains(&out.len()), "{structured} {flags} {out:?}");
            }
        }
    }
}

#[test]
fn sentences_are_cut_between_characters() {
    let mut out = Vec::new();
    Replies::new(true).error(1, Errno::Io, &"ä".repeat(3000), &mut out);
    assert_eq!(out.len(), 20 + 6 + 4096);
    out.clear();
    Replies::new(true).error(1, Errno::Io, &format!("a{}", "ä".repeat(3000)), &mut out);
    assert_eq!(out.len(), 20 + 6 + 4095);
}

#[test]
fn extents_keep_the_rules_whatever_is_pushed() {
    let request = |flags| Request {
        command: Command::BlockStatus,
        ..read(flags, 0, 100)
    };
    let finish = |flags, most, pushed: &[(u64, u32)]| {
        let mut extents = Extents::new(&request(flags), most);
        for (length, flags) in pushed {
            extents.push(*length, *flags);
        }
        extents.finish()
    };
    assert_eq!(finish(0, 9, &[]), [(100, 0)]);
    assert_eq!(finish(0, 9, &[(0, 1), (10, 1), (0, 2), (10, 1)]), [(20, 1)]);
    assert_eq!(
        finish(0, 9, &[(10, 1), (1 << 40, 2), (5, 3)]),
        [(10, 1), (90, 2)]
    );
    assert_eq!(
        finish(REQ_ONE, 9, &[(10, 1), (10, 1), (10, 2), (10, 1)]),
        [(20, 1)]
    );
    assert_eq!(
        finish(0, 2, &[(10, 1), (10, 2), (10, 3), (10, 2)]),
        [(10, 1), (10, 2)]
    );
}

#[test]
fn error_numbers_are_those_of_the_protocol() {
    let codes = Errno::ALL.map(Errno::code);
    assert_eq!(codes, [1, 5, 12, 22, 28, 75, 95, 108]);
    for errno in Errno::ALL {
        assert_eq!(Errno::from_code(errno.code()), errno);
    }
    assert_eq!(Errno::from_code(2), Errno::Invalid);
}
