//! Speed of the protocol in memory, and of the listener with a disk in memory over a Unix socket.
//!
//! `cargo bench -p flashlore-nbd`; under `cargo test` it runs small. What is printed last of a line is a
//! hash of the bytes that came out in memory: it depends on nothing but the requests.

#[path = "../tests/client/mod.rs"]
mod client;
#[path = "../tests/served/mod.rs"]
mod served;

use std::time::Instant;

use flashlore_nbd::server::Config;
use flashlore_nbd::transmission::{Command, Replies, RequestEvent, RequestReader, Rules};
use flashlore_nbd::wire::{REQUEST_BYTES, REQUEST_MAGIC};
use flashlore_nbd::{ExportInfo, Limits};

const BLOCK: u32 = 4096;

fn stream(code: u16, count: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for cookie in 0..count {
        bytes.extend(REQUEST_MAGIC.to_be_bytes());
        bytes.extend([0, 0]);
        bytes.extend(code.to_be_bytes());
        bytes.extend(cookie.to_be_bytes());
        bytes.extend((cookie % 1000 * u64::from(BLOCK)).to_be_bytes());
        bytes.extend(BLOCK.to_be_bytes());
        if code == 1 {
            bytes.resize(bytes.len() + BLOCK as usize, cookie as u8);
        }
    }
    bytes
}

/// Reads the requests of a stream and writes a reply to each: requests a second, and a hash.
fn in_memory(code: u16, count: u64, rounds: u64) -> (f64, u64) {
    let limits = Limits::default();
    let info = ExportInfo::writable(1 << 30);
    let replies = Replies::new(true);
    let stream = stream(code, count);
    let block = vec![7; BLOCK as usize];
    let mut out = Vec::with_capacity(count as usize * (REQUEST_BYTES + block.len()));
    let mut hash = 0u64;
    let start = Instant::now();
    for _ in 0..rounds {
        let mut reader = RequestReader::new(Rules::of(&info, true, true, &limits), &limits);
        let mut input = &stream[..];
        out.clear();
        while !input.is_empty() {
            let received = reader.receive(input).expect("the stream is well-formed");
            input = &input[received.consumed..];
            match received.event {
                Some(RequestEvent::Request(request)) if request.command == Command::Read => {
                    out.extend_from_slice(&replies.read_header(&request));
                    out.extend_from_slice(&block);
                }
                Some(RequestEvent::Request(request)) => replies.success(request.cookie, &mut out),
                Some(RequestEvent::Payload(bytes)) => {
                    hash = hash.rotate_left(1) ^ u64::from(bytes[0])
                }
                _ => {}
            }
        }
        for byte in out.iter().step_by(97) {
            hash = hash.wrapping_mul(31).wrapping_add(u64::from(*byte));
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    ((count * rounds) as f64 / seconds, hash)
}

/// Requests of 4 KiB a second over a Unix socket, `depth` without an answer.
fn over_socket(command: Command, depth: u64, count: u64) -> f64 {
    let served = served::serve(64 << 20, Config::default());
    let mut client = served::connect(&served.socket, "disk").expect("the server is there");
    let block = vec![7; BLOCK as usize];
    for n in 0..16 {
        client
            .write(n << 20, &vec![7; 1 << 20])
            .expect("the disk is there");
    }
    let start = Instant::now();
    for n in 0..count + depth {
        if n >= depth {
            client.reply().expect("every request is answered");
        }
        if n < count {
            let offset = n.wrapping_mul(0x9e37_79b9) % 4096 * u64::from(BLOCK);
            let payload: &[u8] = if command == Command::Write {
                &block
            } else {
                &[]
            };
            client
                .send(command, 0, offset, BLOCK, payload)
                .expect("the server listens");
        }
    }
    count as f64 / start.elapsed().as_secs_f64()
}

fn main() {
    // `cargo test` gives no `--bench`.
    let full = std::env::args().any(|argument| argument == "--bench");
    let (rounds, requests) = if full { (2000, 100_000) } else { (2, 500) };
    for (name, code) in [("read", 0), ("write", 1), ("trim", 4)] {
        let (rate, hash) = in_memory(code, 256, rounds);
        println!(
            "{name} 4 KiB, parse and reply in memory: {:.2} M/s, {hash:016x}",
            rate / 1e6
        );
    }
    for (name, command) in [("read", Command::Read), ("write", Command::Write)] {
        for depth in [1, 32] {
            let rate = over_socket(command, depth, requests);
            println!(
                "{name} 4 KiB, Unix socket, depth {depth}: {:.1} k/s",
                rate / 1e3
            );
        }
    }
}
