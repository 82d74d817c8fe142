//! A client and a server talk over queues of bytes that are cut anywhere, replies come in any order,
//! and what the client reads is what a plain array holds.

use crate::exercise;

use std::collections::{HashMap, VecDeque};

use crate::client::{Call, ClientEvent, ClientHandshake, Goal, Reply, ReplyReader};
use exercise::shop::Shop;
use flashlore_nbd::handshake::{HandshakeEvent, ServerHandshake, Session, Tls};
use flashlore_nbd::transmission::{
    Command, Extents, Piece, Replies, Request, RequestEvent, RequestReader, Rules,
};
use flashlore_nbd::{Errno, Limits};
use proptest::prelude::*;

const SIZE: usize = 1 << 20;

/// A queue of bytes that gives them out in pieces of odd lengths.
#[derive(Default)]
struct Pipe {
    bytes: VecDeque<u8>,
    turn: usize,
}

impl Pipe {
    fn put(&mut self, bytes: &mut Vec<u8>) {
        self.bytes.extend(bytes.drain(..));
    }

    /// Some of the bytes, never none while there are any.
    fn some(&mut self) -> Vec<u8> {
        self.turn = self.turn.wrapping_mul(31).wrapping_add(7);
        let most = [1, 3, 17, 64, 1000, 5000][self.turn % 6];
        self.bytes.drain(..self.bytes.len().min(most)).collect()
    }
}

/// Brings both sides through the negotiation; what was left over on the way to the server.
fn negotiate(structured: bool) -> (ReplyReader, Session<&'static str>) {
    let goal = Goal::Export {
        name: "disk".to_owned(),
        structured,
        contexts: vec!["base:allocation".to_owned()],
    };
    let (mut up, mut down) = (Pipe::default(), Pipe::default());
    let mut out = Vec::new();
    let mut server = ServerHandshake::new(Tls::Absent, Limits::default(), &mut out);
    down.put(&mut out);
    let mut client = ClientHandshake::new(goal, false);
    let (mut session, mut ready) = (None, None);
    while session.is_none() || ready.is_none() {
        let bytes = down.some();
        let mut said = Vec::new();
        if ready.is_none() {
            let received = client.receive(&bytes, &mut said).unwrap();
            assert_eq!(received.consumed, bytes.len());
            if let Some(ClientEvent::Ready(session)) = received.event {
                ready = Some(session);
            }
        }
        up.put(&mut said);
        let mut bytes = &up.some()[..];
        while !bytes.is_empty() {
            let received = server.receive(bytes, &Shop, &mut out).unwrap();
            bytes = &bytes[received.consumed..];
            if let Some(HandshakeEvent::Transmission(found)) = received.event {
                session = Some(*found);
            }
        }
        down.put(&mut out);
    }
    (ReplyReader::new(&ready.unwrap()), session.unwrap())
}

/// What the server does with a request, on an array.
fn serve(disk: &mut [u8], replies: &Replies, request: &Request, payload: &[u8], out: &mut Vec<u8>) {
    let start = request.offset as usize;
    let range = start..start + request.length as usize;
    match request.command {
        Command::Read => {
            let (first, second) = disk[range].split_at(request.length as usize / 2);
            let zeroes = Piece::Zeroes(second.len() as u32);
            let tail = if second.iter().all(|byte| *byte == 0) {
                zeroes
            } else {
                Piece::Data(second)
            };
            replies.read(request, &[Piece::Data(first), tail], out);
        }
        Command::BlockStatus => {
            let mut extents = Extents::new(request, 100);
            for byte in &disk[range] {
                if !extents.push(1, u32::from(*byte == 0)) {
                    break;
                }
            }
            replies.block_status(request, 1, extents, true, out);
        }
        Command::Write => {
            disk[range].copy_from_slice(payload);
            replies.success(request.cookie, out);
        }
        Command::WriteZeroes if request.fast_zero() => {
            replies.error(request.cookie, Errno::NotSupported, "slow", out);
        }
        Command::WriteZeroes | Command::Trim => {
            disk[range].fill(0);
            replies.success(request.cookie, out);
        }
        Command::Flush | Command::Cache => replies.success(request.cookie, out),
    }
}

#[derive(Debug, Clone)]
struct Plan {
    command: Command,
    flags: u16,
    offset: u64,
    length: u32,
    fill: u8,
}

fn plan() -> impl Strategy<Value = Plan> {
    let command = prop::sample::select(
        &[
            Command::Read,
            Command::Write,
            Command::Flush,
            Command::Trim,
            Command::Cache,
            Command::WriteZeroes,
            Command::BlockStatus,
        ][..],
    );
    let offset = prop_oneof![0u64..3000, (SIZE as u64 - 3000)..SIZE as u64];
    (command, 0u16..32, offset, 0u32..4000, 1u8..255).prop_map(
        |(command, flags, offset, length, fill)| Plan {
            command,
            flags,
            offset,
            length,
            fill,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_is_read_is_what_was_written(
        structured: bool,
        plans in prop::collection::vec(plan(), 1..40),
        order in any::<u64>(),
    ) {
        let (mut client, session) = negotiate(structured);
        let limits = Limits::default();
        let mut reader = RequestReader::new(Rules::new(&session, &limits), &limits);
        let replies = Replies::new(session.structured);
        let rules = Rules::new(&session, &limits);
        let mut disk = vec![0; SIZE];
        let mut truth = disk.clone();

        let (mut up, mut down) = (Pipe::default(), Pipe::default());
        // What each cookie must come to, and the data of reads.
        let mut due: HashMap<u64, (Option<Errno>, Vec<u8>)> = HashMap::new();
        let mut got: HashMap<u64, Vec<u8>> = HashMap::new();
        for (cookie, plan) in (1..).zip(&plans) {
            let call = Call {
                cookie,
                command: plan.command,
                flags: plan.flags,
                offset: plan.offset,
                length: plan.length,
            };
            prop_assert!(client.expect(&call));
            let mut bytes = call.encode().to_vec();
            if plan.command == Command::Write {
                bytes.resize(bytes.len() + plan.length as usize, plan.fill);
            }
            up.put(&mut bytes);
            let checked =
                rules.check(cookie, plan.command.code(), plan.flags, plan.offset, plan.length);
            let mut outcome = (checked.err().map(|refused| refused.errno), Vec::new());
            if let Ok(request) = checked {
                let start = plan.offset as usize;
                let range = start..start + plan.length as usize;
                match plan.command {
                    Command::Read => outcome.1 = truth[range].to_vec(),
                    Command::Write => truth[range].fill(plan.fill),
                    Command::WriteZeroes if request.fast_zero() => {
                        outcome.0 = Some(Errno::NotSupported);
                    }
                    Command::WriteZeroes | Command::Trim => truth[range].fill(0),
                    _ => {}
                }
            }
            due.insert(cookie, outcome);
        }
        let mut farewell = Call::disconnect().to_vec();
        up.put(&mut farewell);

        // The server carries out in order and keeps whole replies back, to send them in another.
        let mut kept: Vec<Vec<u8>> = Vec::new();
        let mut writing: Option<(Request, Vec<u8>)> = None;
        let mut gone = false;
        while !gone {
            let bytes = up.some();
            let mut bytes = &bytes[..];
            while !bytes.is_empty() && !gone {
                let received = reader.receive(bytes).unwrap();
                let mut out = Vec::new();
                match received.event {
                    Some(RequestEvent::Request(request))
                        if request.command == Command::Write && request.length > 0 =>
                    {
                        writing = Some((request, Vec::new()));
                    }
                    Some(RequestEvent::Request(request)) => {
                        serve(&mut disk, &replies, &request, &[], &mut out);
                    }
                    Some(RequestEvent::Payload(part)) => {
                        let (request, mut payload) = writing.take().unwrap();
                        payload.extend_from_slice(part);
                        if reader.payload_left() == 0 {
                            serve(&mut disk, &replies, &request, &payload, &mut out);
                        } else {
                            writing = Some((request, payload));
                        }
                    }
                    Some(RequestEvent::Refused(refused)) => replies.refused(&refused, &mut out),
                    Some(RequestEvent::Disconnect) => gone = true,
                    None => {}
                }
                if !out.is_empty() {
                    kept.push(out);
                }
                bytes = &bytes[received.consumed..];
            }
        }
        let mut seed = order;
        while !kept.is_empty() {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let mut reply = kept.swap_remove((seed >> 33) as usize % kept.len());
            down.put(&mut reply);
        }

        loop {
            let bytes = down.some();
            if bytes.is_empty() {
                break;
            }
            let mut bytes = &bytes[..];
            loop {
                let taken = client.receive(bytes).unwrap();
                bytes = &bytes[taken.consumed..];
                match taken.event {
                    None => break,
                    Some(Reply::Data { cookie, offset, bytes }) => {
                        let plan = &plans[cookie as usize - 1];
                        let data = got.entry(cookie).or_default();
                        data.resize(plan.length as usize, 0);
                        let at = (offset - plan.offset) as usize;
                        data[at..at + bytes.len()].copy_from_slice(bytes);
                    }
                    Some(Reply::Zeroes { cookie, .. }) => {
                        let plan = &plans[cookie as usize - 1];
                        got.entry(cookie).or_default().resize(plan.length as usize, 0);
                    }
                    Some(Reply::Status { extents, .. }) => prop_assert!(!extents.is_empty()),
                    Some(Reply::Failed { message, .. }) => prop_assert!(!message.is_empty()),
                    Some(Reply::Done { cookie, error }) => {
                        let (expected, data) = due.remove(&cookie).unwrap();
                        prop_assert_eq!(error, expected);
                        if error.is_none() {
                            prop_assert_eq!(got.remove(&cookie).unwrap_or_default(), data);
                        }
                    }
                }
            }
        }
        prop_assert!(due.is_empty());
        prop_assert_eq!(client.in_flight(), 0);
        prop_assert!(disk == truth);
    }
}
