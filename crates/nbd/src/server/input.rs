//! The reading side of a connection in transmission. One worker at a time holds it.

use std::io;
use std::time::{Duration, Instant};

use super::config::Config;
use super::registry::{Permit, Registry, Share};
use super::transport::Transport;
use crate::transmission::{Command, Refused, Request, RequestEvent, RequestReader};

/// What is read at once.
const BUFFER_BYTES: usize = 64 << 10;

/// What a worker has to do next.
#[derive(Debug)]
pub(super) enum Job<'a> {
    /// Carry out a request, with the payload of a write.
    Request {
        request: Request,
        payload: Vec<u8>,
        /// Its part of the budget, held until the reply is sent.
        _permit: Permit<'a>,
    },
    /// Carry out a request in pieces; the payload of a write is still to come.
    Long(Request),
    Refused(Refused),
}

#[derive(Debug)]
pub(super) struct Input {
    reader: RequestReader,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    /// No more is read: the client left, broke the protocol or was too slow, or the server drains.
    ended: bool,
}

/// How long a message of so many bytes may take.
pub(super) fn message_time(config: &Config, bytes: usize) -> Duration {
    config.message + Duration::from_secs((bytes >> 20) as u64)
}

impl Input {
    /// Begins with `early`, the bytes that came with the end of the negotiation.
    pub(super) fn new(reader: RequestReader, early: &[u8]) -> Self {
        let mut buffer = vec![0; BUFFER_BYTES.max(early.len())].into_boxed_slice();
        buffer[..early.len()].copy_from_slice(early);
        Self {
            reader,
            buffer,
            start: 0,
            end: early.len(),
            ended: false,
        }
    }

    /// Whether everything that has come was taken.
    pub(super) fn is_drained(&self) -> bool {
        self.start == self.end
    }

    pub(super) fn end(&mut self) {
        self.ended = true;
    }

    /// The next job; nothing at the end.
    pub(super) fn next<'a>(
        &mut self,
        transport: &Transport,
        config: &Config,
        registry: &Registry,
        share: &'a Share<'a>,
    ) -> Option<Job<'a>> {
        if self.ended {
            return None;
        }
        let job = self.try_next(transport, config, registry, share);
        match job {
            Ok(Some(job)) => Some(job),
            // A connection that fails is closed: there is nobody to tell.
            Ok(None) | Err(_) => {
                self.ended = true;
                None
            }
        }
    }

    fn try_next<'a>(
        &mut self,
        transport: &Transport,
        config: &Config,
        registry: &Registry,
        share: &'a Share<'a>,
    ) -> io::Result<Option<Job<'a>>> {
        let mut begun: Option<Instant> = None;
        loop {
            let received = self
                .reader
                .receive(&self.buffer[self.start..self.end])
                .map_err(io::Error::other)?;
            self.start += received.consumed;
            match received.event {
                Some(RequestEvent::Request(request)) => {
                    let held = match request.command {
                        Command::Read | Command::Write => request.length as usize,
                        _ => 0,
                    };
                    let Some(permit) = share.take(held) else {
                        return Ok(Some(Job::Long(request)));
                    };
                    let payload = self.payload(transport, config)?;
                    return Ok(Some(Job::Request {
                        request,
                        payload,
                        _permit: permit,
                    }));
                }
                Some(RequestEvent::Refused(refused)) => return Ok(Some(Job::Refused(refused))),
                Some(RequestEvent::Disconnect) => return Ok(None),
                // Payloads are taken with their request.
                Some(RequestEvent::Payload(_)) => {}
                None if received.consumed > 0 => {}
                None => {
                    if registry.is_draining() {
                        return Ok(None);
                    }
                    if !self.reader.is_idle() {
                        begun.get_or_insert_with(Instant::now);
                    }
                    if !self.fill(transport, config, begun)? {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Reads more into the buffer, all of which was taken; `false` at the end of the stream.
    fn fill(
        &mut self,
        transport: &Transport,
        config: &Config,
        begun: Option<Instant>,
    ) -> io::Result<bool> {
        let limit = config.limits.skipped_bytes as usize;
        let deadline = match begun {
            Some(begun) => Some(begun + message_time(config, limit)),
            None => config.idle.map(|idle| Instant::now() + idle),
        };
        let count = match deadline {
            Some(deadline) => transport.read_before(&mut self.buffer, deadline)?,
            None => loop {
                match transport.read(&mut self.buffer) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    result => break result?,
                }
            },
        };
        self.start = 0;
        self.end = count;
        Ok(count > 0)
    }

    /// The payload of the request that was just read.
    fn payload(&mut self, transport: &Transport, config: &Config) -> io::Result<Vec<u8>> {
        let length = self.reader.payload_left() as usize;
        let deadline = Instant::now() + message_time(config, length);
        let payload = self.take(transport, length, deadline)?;
        self.payload_taken();
        Ok(payload)
    }

    /// All of the payload was taken.
    pub(super) fn payload_taken(&mut self) {
        self.reader.payload_taken(u32::MAX);
    }

    /// The next bytes of a payload. Memory is taken as they come.
    pub(super) fn take(
        &mut self,
        transport: &Transport,
        length: usize,
        deadline: Instant,
    ) -> io::Result<Vec<u8>> {
        let here = length.min(self.end - self.start);
        let mut payload = Vec::with_capacity(length.min(BUFFER_BYTES));
        payload.extend_from_slice(&self.buffer[self.start..self.start + here]);
        self.start += here;
        while payload.len() < length {
            let filled = payload.len();
            let next = length.min(filled + filled.clamp(BUFFER_BYTES, 1 << 20));
            payload.resize(next, 0);
            let count = transport.read_before(&mut payload[filled..], deadline)?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            payload.truncate(filled + count);
            if payload.len() < length && Instant::now() >= deadline {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        Ok(payload)
    }
}
