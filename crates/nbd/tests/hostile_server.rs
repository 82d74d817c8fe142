//! Servers that mean harm to a client: each case by name. Every one ends the connection with a reason.

use crate::exercise;

use crate::client::{Call, ClientHandshake, ClientSession, Goal, MAX_IN_FLIGHT, ReplyReader};
use exercise::read_replies;
use exercise::shop::option;
use flashlore_nbd::transmission::Command;

const DONE: u16 = 1;

fn chunk(flags: u16, kind: u16, cookie: u64, data: &[u8]) -> Vec<u8> {
    announced(flags, kind, cookie, data.len() as u32, data)
}

fn announced(flags: u16, kind: u16, cookie: u64, length: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = 0x668e_33efu32.to_be_bytes().to_vec();
    bytes.extend(flags.to_be_bytes());
    bytes.extend(kind.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes.extend(length.to_be_bytes());
    bytes.extend(data);
    bytes
}

fn simple(error: u32, cookie: u64) -> Vec<u8> {
    let mut bytes = 0x6744_6698u32.to_be_bytes().to_vec();
    bytes.extend(error.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes
}

fn data(offset: u64, length: usize) -> Vec<u8> {
    [&offset.to_be_bytes()[..], &vec![5; length]].concat()
}

fn status(context: u32, extents: &[(u32, u32)]) -> Vec<u8> {
    let mut bytes = context.to_be_bytes().to_vec();
    for (length, flags) in extents {
        bytes.extend(length.to_be_bytes());
        bytes.extend(flags.to_be_bytes());
    }
    bytes
}

/// The last line of what a client makes of a stream; the requests are those of `exercise::calls`.
fn last(stream: &[Vec<u8>]) -> String {
    read_replies(true, &stream.concat(), &[]).pop().unwrap()
}

fn ends(stream: &[Vec<u8>], why: &str) {
    let last = last(stream);
    assert!(last.contains(why), "{last:?}, expected {why:?}");
}

#[test]
fn data_that_are_no_part_of_the_request() {
    let why = "no part of the request";
    for (offset, length) in [
        (4095, 1),
        (4136, 1),
        (4096 + 30, 11),
        (u64::MAX, 1),
        (0, 40),
    ] {
        ends(&[chunk(0, 1, 1, &data(offset, length))], why);
        let hole = [&offset.to_be_bytes()[..], &(length as u32).to_be_bytes()].concat();
        ends(&[chunk(0, 2, 1, &hole)], why);
    }
    ends(&[chunk(0, 1, 3, &data(0, 1))], why);
}

#[test]
fn more_data_than_were_asked_for() {
    let all = chunk(0, 1, 1, &data(4096, 40));
    ends(
        &[all.clone(), chunk(0, 1, 1, &data(4096, 1))],
        "no part of the request",
    );
    ends(&[announced(0, 1, 1, u32::MAX, &[])], "has 4294967295 bytes");
    ends(&[announced(0, 1, 1, 49, &[])], "has 49 bytes");
    let mut done = all;
    done[5] = 1;
    assert!(last(&[done]).contains("Done { cookie: 1, error: None }"));
}

#[test]
fn a_success_that_lacks_something() {
    ends(&[chunk(DONE, 1, 1, &data(4096, 39))], "without all");
    ends(&[chunk(DONE, 0, 1, &[])], "without all");
    ends(&[chunk(DONE, 0, 4, &[])], "without all");
    ends(&[chunk(0, 0, 3, &[])], "does not end");
}

#[test]
fn two_pieces_where_one_was_demanded() {
    let first = chunk(0, 1, 2, &data(0, 8));
    ends(&[first, chunk(DONE, 1, 2, &data(8, 8))], "a second piece");
}

#[test]
fn extents_that_break_the_rules() {
    let good = chunk(0, 5, 4, &status(1, &[(4096, 0), (9999, 3)]));
    assert!(last(std::slice::from_ref(&good)).contains("[(4096, 0), (4096, 3)]"));
    ends(&[good.clone(), good], "a second time");
    ends(&[chunk(0, 5, 4, &status(3, &[(1, 0)]))], "not negotiated");
    ends(&[chunk(0, 5, 4, &status(1, &[]))], "without extents");
    ends(&[chunk(0, 5, 4, &status(1, &[(0, 0)]))], "empty or beyond");
    ends(
        &[chunk(0, 5, 4, &status(1, &[(8192, 0), (1, 1)]))],
        "empty or beyond",
    );
    ends(
        &[chunk(0, 5, 5, &status(1, &[(1, 0), (1, 1)]))],
        "empty or beyond",
    );
    ends(
        &[chunk(0, 5, 4, &status(1, &[(1, 0)])[..9])],
        "within a field",
    );
    ends(&[chunk(0, 5, 1, &status(1, &[(1, 0)]))], "not asked for");
    ends(
        &[announced(0, 5, 4, (1 << 20) + 1, &[])],
        "has 1048577 bytes",
    );
}

#[test]
fn replies_to_nothing_and_of_no_kind() {
    ends(&[simple(0, 99)], "no request has the cookie 0x63");
    ends(&[chunk(DONE, 0, 99, &[])], "no request has the cookie");
    ends(
        &[simple(0, 3), simple(0, 3)],
        "no request has the cookie 0x3",
    );
    ends(&[chunk(DONE, 7, 1, &[])], "unknown type 7");
    ends(&[vec![1, 2, 3, 4]], "begins with 0x1020304");
    ends(&[simple(0, 1)], "where a structured one is due");
    ends(
        &[chunk(0, 1, 1, &data(4096, 1)), simple(5, 1)],
        "in the middle",
    );
}

#[test]
fn errors_that_lie_about_their_lengths() {
    let error = |code: u32, length: u16, text: &[u8]| {
        [&code.to_be_bytes()[..], &length.to_be_bytes(), text].concat()
    };
    let told = chunk(DONE, 0x8001, 1, &error(5, 3, b"a\x07b"));
    assert!(last(std::slice::from_ref(&told)).contains("error: Some(Io)"));
    let lines = read_replies(true, &told, &[]);
    assert!(lines[0].contains("message: \"ab\""), "{lines:?}");
    ends(
        &[chunk(DONE, 0x8001, 1, &error(5, 4, b"abc"))],
        "within a field",
    );
    ends(&[chunk(DONE, 0x8001, 1, &error(0, 0, b""))], "or is none");
    ends(
        &[chunk(DONE, 0x8002, 1, &error(5, 0, b""))],
        "without its offset",
    );
    ends(
        &[announced(DONE, 0x8001, 1, 70_000, &[])],
        "has 70000 bytes",
    );
}

#[test]
fn structured_replies_that_were_not_agreed_upon() {
    let lines = read_replies(false, &chunk(DONE, 0, 3, &[]), &[]);
    assert!(lines[0].contains("begins with 0x668e33ef"), "{lines:?}");
}

#[test]
fn requests_in_flight_have_a_limit() {
    let mut reader = ReplyReader::new(&ClientSession::default());
    let call = |cookie| Call {
        cookie,
        command: Command::Flush,
        flags: 0,
        offset: 0,
        length: 0,
    };
    for cookie in 0..MAX_IN_FLIGHT as u64 {
        assert!(reader.expect(&call(cookie)));
    }
    assert!(!reader.expect(&call(u64::MAX)));
}

/// What a client that wants a list says to a stream behind a sound greeting.
fn list(stream: &[u8]) -> String {
    let mut client = ClientHandshake::new(Goal::List, false);
    let greeting = b"NBDMAGICIHAVEOPT\x00\x03";
    client.receive(greeting, &mut Vec::new()).unwrap();
    let error = client.receive(stream, &mut Vec::new()).unwrap_err();
    assert!(client.receive(&[0], &mut Vec::new()).is_err());
    error.to_string()
}

fn answer(option: u32, kind: u32, length: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = 0x0003_e889_0455_65a9u64.to_be_bytes().to_vec();
    bytes.extend(option.to_be_bytes());
    bytes.extend(kind.to_be_bytes());
    bytes.extend(length.to_be_bytes());
    bytes.extend(data);
    bytes
}

#[test]
fn negotiations_without_end_or_sense() {
    assert!(list(&answer(3, 2, u32::MAX, &[])).contains("4294967295 bytes"));
    assert!(list(&answer(7, 1, 0, &[])).contains("option 7, expected 3"));
    assert!(list(&answer(3, 3, 0, &[])).contains("type 3"));
    assert!(list(&answer(3, 2, 4, &[0, 0, 0, 1])).contains("longer than its message"));
    let endless = answer(3, 2, 5, &[0, 0, 0, 1, b'x']).repeat(10_001);
    assert!(list(&endless).contains("more than 10000"));
    let long = [&[0, 0, 0x10, 0][..], &[b'x'; 8000]].concat();
    let huge = answer(3, 2, long.len() as u32, &long).repeat(600);
    assert!(list(&huge).contains("more than 4194304 bytes"));
    assert!(list(&answer(3, 0x8000_0005, 3, b"a\nb")).ends_with("0x80000005, ab"));
    assert!(list(&option(3, b"abcd")).contains("begins with"));
}
