//! Feeds any bytes to the four state machines, whole and cut, and compares what comes of it: cut
//! input gives the same events and answers, a slow reader of whole messages agrees with the fast
//! ones, and nothing held outgrows its limit. Shared by the fuzz target and the tests.
#![allow(dead_code)]

pub mod oracle;
pub mod shop;

use crate::client::{Call, ClientHandshake, ClientSession, Goal, Reply, ReplyReader};
use flashlore_nbd::handshake::{Context, HandshakeEvent, ServerHandshake, Tls};
use flashlore_nbd::transmission::{self, Command, RequestReader, Rules};
use flashlore_nbd::wire::command_flags;
use flashlore_nbd::{ExportInfo, Limits};

use shop::Shop;

/// Limits low enough that short inputs meet them.
pub const TIGHT: Limits = Limits {
    option_bytes: 128,
    options: 12,
    negotiation_bytes: 600,
    contexts: 2,
    payload_bytes: 8192,
    skipped_bytes: 16384,
};

/// Cuts `bytes` into pieces of the lengths that `cuts` gives, over and over; none: one piece.
pub fn pieces<'a>(mut bytes: &'a [u8], cuts: &[u8]) -> Vec<&'a [u8]> {
    let mut list = Vec::new();
    for cut in cuts.iter().cycle() {
        let (piece, rest) = bytes.split_at(bytes.len().min(usize::from(*cut % 61) + 1));
        list.push(piece);
        bytes = rest;
        if bytes.is_empty() {
            return list;
        }
    }
    vec![bytes]
}

/// What a negotiation said and came to.
#[derive(Debug, PartialEq, Eq)]
pub struct Talk {
    pub said: Vec<u8>,
    /// Events, and the error if there was one.
    pub events: Vec<String>,
    /// Bytes taken; 0 if there was an error, which ends before anything more counts.
    pub taken: usize,
    /// The most that was held.
    pub held: usize,
}

/// Gives a stream to the server's negotiation, cut in pieces. What does not fit into one call is
/// given again with what follows, as a listener does.
pub fn negotiate(tls: Tls, limits: Limits, bytes: &[u8], cuts: &[u8]) -> Talk {
    let mut talk = Talk {
        said: Vec::new(),
        events: Vec::new(),
        taken: 0,
        held: 0,
    };
    let mut machine = ServerHandshake::new(tls, limits, &mut talk.said);
    for mut piece in pieces(bytes, cuts) {
        loop {
            match machine.receive(piece, &Shop, &mut talk.said) {
                Ok(received) => {
                    talk.taken += received.consumed;
                    piece = &piece[received.consumed..];
                    if let Some(event) = &received.event {
                        talk.events.push(format!("{event:?}"));
                    }
                    if matches!(
                        received.event,
                        Some(HandshakeEvent::Transmission(_) | HandshakeEvent::Aborted)
                    ) {
                        let after = machine.receive(&[1], &Shop, &mut Vec::new());
                        assert!(after.is_err(), "an ended negotiation takes nothing");
                        return talk;
                    }
                    talk.held = talk.held.max(machine.held());
                    if received.consumed == 0 && received.event.is_none() {
                        assert!(piece.is_empty(), "what is not taken has to be an event");
                        break;
                    }
                }
                Err(error) => {
                    talk.taken = 0;
                    talk.events.push(error.to_string());
                    return talk;
                }
            }
        }
    }
    talk
}

/// Gives a stream to a reader of requests, cut in pieces: a line for each event. Payloads are joined.
pub fn read_requests(rules: Rules, limits: &Limits, bytes: &[u8], cuts: &[u8]) -> Vec<String> {
    let mut reader = RequestReader::new(rules, limits);
    let mut lines = Vec::new();
    let mut payload = Vec::new();
    for mut piece in pieces(bytes, cuts) {
        loop {
            let received = match reader.receive(piece) {
                Ok(received) => received,
                Err(error) => {
                    lines.push(error.to_string());
                    return lines;
                }
            };
            piece = &piece[received.consumed..];
            match received.event {
                None if received.consumed == 0 => break,
                None => {}
                Some(transmission::RequestEvent::Payload(bytes)) => {
                    payload.extend_from_slice(bytes);
                    if reader.payload_left() == 0 {
                        lines.push(format!("payload {payload:?}"));
                        payload.clear();
                    }
                }
                Some(event) => lines.push(format!("{event:?}")),
            }
            if received.event == Some(transmission::RequestEvent::Disconnect) {
                assert!(reader.receive(&[0]).is_err(), "nothing follows a farewell");
                return lines;
            }
        }
    }
    if !payload.is_empty() {
        lines.push(format!("part of a payload {payload:?}"));
    }
    lines
}

/// Gives a stream to a client's negotiation.
pub fn ask(goal: &Goal, tls: bool, bytes: &[u8], cuts: &[u8]) -> (Vec<u8>, Vec<String>) {
    let mut client = ClientHandshake::new(goal.clone(), tls);
    let (mut said, mut events) = (Vec::new(), Vec::new());
    for mut piece in pieces(bytes, cuts) {
        loop {
            match client.receive(piece, &mut said) {
                Ok(received) => {
                    piece = &piece[received.consumed..];
                    match received.event {
                        None => break,
                        Some(event) => events.push(format!("{event:?}")),
                    }
                }
                Err(error) => {
                    events.push(error.to_string());
                    return (said, events);
                }
            }
        }
        assert!(piece.is_empty());
    }
    (said, events)
}

/// What a client waits for in [`read_replies`].
pub fn calls() -> Vec<Call> {
    let call = |cookie, command, flags, offset, length| Call {
        cookie,
        command,
        flags,
        offset,
        length,
    };
    vec![
        call(1, Command::Read, 0, 4096, 40),
        call(2, Command::Read, command_flags::DF, 0, 16),
        call(3, Command::Write, 0, 0, 512),
        call(4, Command::BlockStatus, 0, 0, 8192),
        call(5, Command::BlockStatus, command_flags::REQ_ONE, 0, 8192),
        call(6, Command::Flush, 0, 0, 0),
        call(7, Command::Read, 0, u64::MAX - 100, 100),
    ]
}

/// Gives a stream of replies to a client that waits for [`calls`]. Data of neighbours are joined.
pub fn read_replies(structured: bool, bytes: &[u8], cuts: &[u8]) -> Vec<String> {
    let session = ClientSession {
        structured,
        contexts: (1..3)
            .map(|id| Context {
                id,
                name: id.to_string(),
            })
            .collect(),
        ..ClientSession::default()
    };
    let mut reader = ReplyReader::new(&session);
    for call in calls() {
        assert!(reader.expect(&call));
        assert!(!reader.expect(&call), "a cookie in use");
    }
    let mut lines = Vec::new();
    let mut data: Option<(u64, u64, Vec<u8>)> = None;
    for mut piece in pieces(bytes, cuts) {
        loop {
            let taken = match reader.receive(piece) {
                Ok(taken) => taken,
                Err(error) => {
                    lines.extend(data.map(|data| format!("{data:?}")));
                    lines.push(error.to_string());
                    return lines;
                }
            };
            piece = &piece[taken.consumed..];
            match (taken.event, &mut data) {
                (None, _) => break,
                (Some(Reply::Data { offset, bytes, .. }), Some((_, start, all)))
                    if *start + all.len() as u64 == offset =>
                {
                    all.extend_from_slice(bytes);
                }
                (Some(event), _) => {
                    lines.extend(data.take().map(|data| format!("{data:?}")));
                    if let Reply::Data {
                        cookie,
                        offset,
                        bytes,
                    } = event
                    {
                        data = Some((cookie, offset, bytes.to_vec()));
                    } else {
                        lines.push(format!("{event:?}"));
                    }
                }
            }
        }
        assert!(piece.is_empty());
    }
    lines.extend(data.map(|data| format!("{data:?}")));
    lines
}

/// The rules that an input chooses by its first byte.
pub fn rules(choice: u8) -> Rules {
    let mut info = if choice & 1 == 0 {
        ExportInfo::writable(1 << 20)
    } else {
        ExportInfo::read_only(1 << 20)
    };
    info.block_sizes.minimum = if choice & 2 == 0 { 1 } else { 512 };
    info.flush = choice & 16 == 0;
    info.cache = choice & 32 == 0;
    info.fast_zero &= choice & 64 == 0;
    info.trim &= choice & 128 == 0;
    Rules::of(&info, choice & 4 == 0, choice & 8 == 0, &TIGHT)
}

/// Feeds `input` to everything: a byte that chooses, seven that cut, and the stream.
pub fn exercise(input: &[u8]) {
    let Some((head, stream)) = input.split_first_chunk::<8>() else {
        return;
    };
    let (choice, cuts) = (head[0], &head[1..]);

    for tls in [Tls::Absent, Tls::Offered, Tls::Required] {
        let whole = negotiate(tls, TIGHT, stream, &[]);
        let cut = negotiate(tls, TIGHT, stream, cuts);
        assert_eq!((&whole.said, &whole.events), (&cut.said, &cut.events));
        assert_eq!(whole.taken, cut.taken);
        assert!(whole.held.max(cut.held) <= 2 * TIGHT.option_bytes as usize + 256);
        oracle::check_negotiation(tls, &TIGHT, stream, &whole);
    }

    let rules = rules(choice);
    let whole = read_requests(rules, &TIGHT, stream, &[]);
    assert_eq!(whole, read_requests(rules, &TIGHT, stream, cuts));
    oracle::check_requests(choice, &TIGHT, stream, &whole);

    let export = Goal::Export {
        name: "disk".to_owned(),
        structured: choice & 4 == 0,
        contexts: vec!["base:allocation".to_owned(), "flashlore:stored".to_owned()],
    };
    for (goal, tls) in [(&export, false), (&export, true), (&Goal::List, false)] {
        assert_eq!(ask(goal, tls, stream, &[]), ask(goal, tls, stream, cuts));
    }
    for structured in [false, true] {
        assert_eq!(
            read_replies(structured, stream, &[]),
            read_replies(structured, stream, cuts)
        );
    }
}
