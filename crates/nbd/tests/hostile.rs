//! Clients that mean harm: each case by name. None takes memory beyond the limits, keeps the machine
//! busy without sending bytes itself, or gets more than it may.

use crate::exercise;

use exercise::shop::{FLAGS, Shop, announced, info, meta, option, replies, request};
use exercise::{TIGHT, negotiate};
use flashlore_nbd::handshake::{Received, ServerHandshake, Tls};
use flashlore_nbd::transmission::{RequestEvent, RequestReader, Rules};
use flashlore_nbd::{ExportInfo, Limits, ProtocolError};

const UNSUP: u32 = 0x8000_0001;
const INVALID: u32 = 0x8000_0003;
const TOO_BIG: u32 = 0x8000_0009;

fn after_flags(stream: &[u8]) -> (Vec<(u32, u32)>, Vec<String>) {
    let talk = negotiate(
        Tls::Absent,
        Limits::default(),
        &[&FLAGS, stream].concat(),
        &[],
    );
    let said = replies(&talk.said);
    (
        said.into_iter().map(|(o, k, _)| (o, k)).collect(),
        talk.events,
    )
}

fn reader() -> RequestReader {
    let limits = Limits::default();
    let rules = Rules::of(&ExportInfo::writable(1 << 30), true, true, &limits);
    RequestReader::new(rules, &limits)
}

#[test]
fn an_option_of_four_gigabytes_ends_the_connection_with_an_answer() {
    let (said, events) = after_flags(&announced(7, u32::MAX, b""));
    assert_eq!(said, [(7, TOO_BIG)]);
    assert!(events[0].contains("4294967295 bytes"), "{events:?}");
}

#[test]
fn a_long_option_is_passed_over_without_being_held() {
    let mut out = Vec::new();
    let mut machine = ServerHandshake::new(Tls::Absent, Limits::default(), &mut out);
    let stream = [&FLAGS[..], &announced(3, 900_000, b"")].concat();
    machine.receive(&stream, &Shop, &mut out).unwrap();
    for _ in 0..9 {
        assert!(machine.held() < 1024);
        machine.receive(&[0; 100_000], &Shop, &mut out).unwrap();
    }
    assert_eq!(replies(&out)[0].1, TOO_BIG);
    let Received { consumed, .. } = machine.receive(&option(3, b""), &Shop, &mut out).unwrap();
    assert_eq!(consumed, 16, "the negotiation goes on behind it");
    assert_eq!(replies(&out).last().unwrap().1, 1);
}

#[test]
fn an_announced_option_takes_memory_only_as_it_comes() {
    let mut out = Vec::new();
    let mut machine = ServerHandshake::new(Tls::Absent, Limits::default(), &mut out);
    let stream = [&FLAGS[..], &announced(7, 65_536, b"abc")].concat();
    machine.receive(&stream, &Shop, &mut out).unwrap();
    assert!(machine.held() < 256, "{} bytes for 3", machine.held());
}

#[test]
fn options_without_end_end_the_connection() {
    let (said, events) = after_flags(&option(99, b"").repeat(1025));
    assert_eq!(said.len(), 1024);
    assert!(said.iter().all(|reply| *reply == (99, UNSUP)));
    assert_eq!(events, ["the negotiation has more than 1024 options"]);
}

#[test]
fn one_call_answers_one_option_so_that_unread_answers_do_not_pile_up() {
    let mut out = Vec::new();
    let mut machine = ServerHandshake::new(Tls::Absent, Limits::default(), &mut out);
    let stream = [&FLAGS[..], &option(3, b"").repeat(500)].concat();
    machine.receive(&stream, &Shop, &mut out).unwrap();
    assert!(out.len() < 200, "{}", out.len());
}

#[test]
fn lengths_inside_an_option_that_lie_are_refused() {
    for data in [
        vec![0xff; 4],
        vec![0xff; 40],
        [&[0, 0, 0, 5][..], b"disk"].concat(),
        [info("disk", &[]), vec![0]].concat(),
        [&info("disk", &[])[..8], &[0xff, 0xff, 0, 1]].concat(),
        vec![],
    ] {
        for which in [6, 7] {
            assert_eq!(after_flags(&option(which, &data)).0, [(which, INVALID)]);
        }
        let stream = [option(8, b""), option(10, &data)].concat();
        let said = after_flags(&stream).0;
        assert!(matches!(said[1..], [(10, INVALID | TOO_BIG)]), "{said:?}");
    }
}

#[test]
fn four_billion_queries_are_refused_before_any_is_read() {
    let mut data = meta("disk", &[]);
    let end = data.len();
    data[end - 4..].fill(0xff);
    let stream = [option(8, b""), option(10, &data)].concat();
    assert_eq!(after_flags(&stream).0[1..], [(10, TOO_BIG)]);
}

#[test]
fn limits_are_met_exactly() {
    let bytes = |lengths: &[usize]| {
        let options = lengths.iter().map(|length| option(99, &vec![0; *length]));
        after_flags(&options.collect::<Vec<_>>().concat())
    };
    // 1 MiB of data in all, 64 KiB in one option.
    let (said, events) = bytes(&[1 << 16; 16]);
    assert_eq!((said, events.len()), (vec![(99, UNSUP); 16], 0));
    assert_eq!(bytes(&[(1 << 16) + 1]).0, [(99, TOO_BIG)]);
    let mut lengths = [1 << 16; 17];
    lengths[16] = 1;
    assert_eq!(bytes(&lengths).1.len(), 1);

    let queries = |count: usize| {
        let list = vec!["base:allocation"; count];
        let stream = [option(8, b""), option(10, &meta("disk", &list))].concat();
        after_flags(&stream).0[1]
    };
    assert_eq!(queries(256), (10, 4));
    assert_eq!(queries(257), (10, TOO_BIG));
}

#[test]
fn contexts_beyond_the_limit_are_refused_and_none_is_chosen() {
    let names: Vec<String> = (0..20)
        .map(|n| format!("flashlore:changed-since={n}"))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let stream = [
        option(8, b""),
        option(10, &meta("disk", &["base:allocation"])),
        option(10, &meta("disk", &names)),
        option(7, &info("disk", &[])),
    ]
    .concat();
    let (said, events) = after_flags(&stream);
    assert!(said.contains(&(10, TOO_BIG)));
    assert!(events[0].contains("contexts: []"), "{events:?}");
}

#[test]
fn names_that_are_no_text_or_too_long_are_refused() {
    let long = "x".repeat(4097);
    assert_eq!(after_flags(&option(7, &info(&long, &[]))).0, [(7, TOO_BIG)]);
    assert_eq!(
        after_flags(&option(7, &info("a\0b", &[]))).0,
        [(7, INVALID)]
    );
    let mut data = info("disk", &[]);
    data[4] = 0xff;
    assert_eq!(after_flags(&option(7, &data)).0, [(7, INVALID)]);
    assert!(after_flags(&option(1, long.as_bytes())).1[0].contains("4096"));
}

#[test]
fn wrong_magic_and_unknown_client_flags_end_the_connection() {
    let (_, events) = after_flags(b"GET / HTTP/1.1\r\n");
    assert!(
        events[0].contains("expected 0x49484156454f5054"),
        "{events:?}"
    );
    let talk = negotiate(Tls::Absent, TIGHT, &[0, 0, 0, 7], &[]);
    assert!(talk.events[0].contains("0x7"), "{:?}", talk.events);
    let not_fixed = [&[0, 0, 0, 0][..], &option(3, b"")].concat();
    let talk = negotiate(Tls::Absent, TIGHT, &not_fixed, &[]);
    assert!(talk.events[0].contains("option 3"), "{:?}", talk.events);
}

#[test]
fn what_a_stranger_agreed_before_tls_is_forgotten() {
    let stream = [
        &FLAGS[..],
        &option(8, b""),
        &option(10, &meta("disk", &["base:allocation"])),
        &option(5, b""),
        &option(7, &info("disk", &[])),
    ]
    .concat();
    let talk = negotiate(Tls::Offered, Limits::default(), &stream, &[]);
    assert_eq!(talk.events[0], "StartTls");
    assert!(
        talk.events[1].contains("structured: false"),
        "{:?}",
        talk.events
    );
    assert!(
        talk.events[1].contains("contexts: [] })"),
        "{:?}",
        talk.events
    );
}

#[test]
fn nothing_behind_starttls_is_taken_as_plain_text() {
    let mut out = Vec::new();
    let mut machine = ServerHandshake::new(Tls::Required, Limits::default(), &mut out);
    let start = [&FLAGS[..], &option(5, b"")].concat();
    let stream = [start.clone(), option(7, &info("disk", &[]))].concat();
    let received = machine.receive(&stream, &Shop, &mut out).unwrap();
    assert_eq!(received.consumed, start.len());
}

#[test]
fn nothing_is_told_before_tls_where_it_is_required() {
    for which in [3, 6, 7, 8, 9, 10, 11, 77] {
        let stream = [&FLAGS[..], &option(which, &info("disk", &[]))].concat();
        let talk = negotiate(Tls::Required, Limits::default(), &stream, &[]);
        assert_eq!(replies(&talk.said)[0].1, 0x8000_0005);
        assert!(talk.events.is_empty());
    }
    let stream = [&FLAGS[..], &option(1, b"disk")].concat();
    let talk = negotiate(Tls::Required, Limits::default(), &stream, &[]);
    assert!(talk.events[0].contains("TLS"), "{:?}", talk.events);
    assert_eq!(talk.said.len(), 18);
}

#[test]
fn a_write_of_four_gigabytes_ends_the_connection() {
    let error = reader()
        .receive(&request(0, 1, 1, 0, u32::MAX))
        .unwrap_err();
    assert!(
        matches!(error, ProtocolError::PayloadTooLong { .. }),
        "{error}"
    );
}

#[test]
fn the_payload_of_a_write_above_the_limit_is_passed_over_and_then_refused() {
    let mut reader = reader();
    let length = (32 << 20) + 1;
    let mut input: &[u8] = &request(0, 1, 9, 0, length);
    let received = reader.receive(input).unwrap();
    assert_eq!((received.consumed, received.event), (28, None));
    let zeroes = [0; 65536];
    let mut left = length as usize;
    let refused = loop {
        input = &zeroes[..left.min(zeroes.len())];
        let received = reader.receive(input).unwrap();
        left -= received.consumed;
        if let Some(event) = received.event {
            break event;
        }
    };
    assert_eq!(left, 0);
    assert!(matches!(refused, RequestEvent::Refused(refused) if refused.cookie == 9));
    assert!(reader.is_idle());
}

#[test]
fn a_reader_holds_the_same_whatever_comes() {
    // No heap behind it: this is all that a connection in transmission holds for its requests.
    assert!(
        size_of::<RequestReader>() <= 128,
        "{}",
        size_of::<RequestReader>()
    );
}

#[test]
fn offsets_that_overflow_are_beyond_the_end() {
    for (code, length) in [(0, 4096), (4, u32::MAX), (6, u32::MAX), (7, 1), (1, 0)] {
        let stream = request(0, code, 1, u64::MAX, length);
        let received = reader().receive(&stream).map(|r| r.event);
        assert!(
            matches!(received, Ok(Some(RequestEvent::Refused(_)))),
            "{code} {received:?}"
        );
    }
}

#[test]
fn one_byte_at_a_time_is_as_good_as_all_at_once() {
    let mut reader = reader();
    let stream = [
        request(0, 1, 5, 0, 3),
        vec![1, 2, 3],
        request(0, 2, 0, 0, 0),
    ]
    .concat();
    let mut events = Vec::new();
    for byte in &stream {
        let received = reader.receive(std::slice::from_ref(byte)).unwrap();
        assert_eq!(received.consumed, 1);
        events.extend(received.event.map(|event| format!("{event:?}")));
    }
    assert_eq!(events.len(), 5, "{events:?}");
    assert_eq!(events[4], "Disconnect");
}
