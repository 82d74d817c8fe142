//! Requests and payloads out of a stream of bytes.
//!
//! A reader holds the 28 bytes of one request and nothing else: payloads are handed through. The
//! payload of a refused write is passed over, and its error is told behind it, so that a client which
//! sends everything before it reads gets its answer.

use super::request::{Refused, Request, Rules};
use crate::bytes::Fields;
use crate::error::ProtocolError;
use crate::limits::Limits;
use crate::wire::{REQUEST_BYTES, REQUEST_MAGIC, command};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestEvent<'a> {
    /// A request. The payload of a write follows, if its length is not 0.
    Request(Request),
    /// The next bytes of the payload; the last ones when [`RequestReader::payload_left`] is 0.
    Payload(&'a [u8]),
    /// A request that gets an error and nothing else.
    Refused(Refused),
    /// The client takes its leave: what it asked for is to be answered, then the connection closed.
    Disconnect,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedRequest<'a> {
    /// Bytes taken from the front of the input. If it is 0 and there is no event, more is needed.
    pub consumed: usize,
    pub event: Option<RequestEvent<'a>>,
}

#[derive(Clone, Copy, Debug)]
enum ReaderState {
    Header,
    Payload { left: u32 },
    Skip { left: u32, refused: Refused },
    Ended,
}

/// The stream of one connection.
#[derive(Clone, Debug)]
pub struct RequestReader {
    rules: Rules,
    skipped_bytes: u32,
    state: ReaderState,
    header: [u8; REQUEST_BYTES],
    have: usize,
}

impl RequestReader {
    /// A stream that begins.
    pub fn new(rules: Rules, limits: &Limits) -> Self {
        Self {
            rules,
            skipped_bytes: limits.skipped_bytes.max(limits.payload_bytes),
            state: ReaderState::Header,
            header: [0; REQUEST_BYTES],
            have: 0,
        }
    }

    /// Takes bytes from the front of `input`, at most to the next event.
    #[inline]
    pub fn receive<'a>(&mut self, input: &'a [u8]) -> Result<ReceivedRequest<'a>, ProtocolError> {
        match self.state {
            ReaderState::Header => self.receive_header(input),
            ReaderState::Payload { left } => Ok(self.receive_payload(input, left)),
            ReaderState::Skip { left, refused } => Ok(self.skip(input, left, refused)),
            ReaderState::Ended => Err(ProtocolError::Ended),
        }
    }

    /// Bytes of the present payload that have not come yet. They may be read from the connection
    /// straight to where they belong, and told with [`Self::payload_taken`].
    pub fn payload_left(&self) -> u32 {
        match self.state {
            ReaderState::Payload { left } => left,
            _ => 0,
        }
    }

    /// Tells that the next `count` bytes of the payload were taken past this reader. More than are
    /// left count as all.
    pub fn payload_taken(&mut self, count: u32) {
        if let ReaderState::Payload { left } = self.state {
            self.payload_goes_on(left.saturating_sub(count));
        }
    }

    /// Whether the stream is between two requests, where a client may rest as long as it likes.
    pub fn is_idle(&self) -> bool {
        matches!(self.state, ReaderState::Header) && self.have == 0
    }

    fn payload_goes_on(&mut self, left: u32) {
        self.state = if left == 0 {
            ReaderState::Header
        } else {
            ReaderState::Payload { left }
        };
    }

    fn receive_header<'a>(
        &mut self,
        input: &'a [u8],
    ) -> Result<ReceivedRequest<'a>, ProtocolError> {
        let (consumed, event) = match input.split_first_chunk::<REQUEST_BYTES>() {
            Some((header, _)) if self.have == 0 => (REQUEST_BYTES, self.request(header)?),
            _ => {
                let taken = input.len().min(REQUEST_BYTES - self.have);
                self.header[self.have..self.have + taken].copy_from_slice(&input[..taken]);
                self.have += taken;
                if self.have < REQUEST_BYTES {
                    (taken, None)
                } else {
                    self.have = 0;
                    let header = self.header;
                    (taken, self.request(&header)?)
                }
            }
        };
        Ok(ReceivedRequest { consumed, event })
    }

    fn receive_payload<'a>(&mut self, input: &'a [u8], left: u32) -> ReceivedRequest<'a> {
        let taken = left.min(u32::try_from(input.len()).unwrap_or(u32::MAX));
        let payload = &input[..taken as usize];
        self.payload_goes_on(left - taken);
        ReceivedRequest {
            consumed: payload.len(),
            event: (taken > 0).then_some(RequestEvent::Payload(payload)),
        }
    }

    fn skip<'a>(&mut self, input: &[u8], left: u32, refused: Refused) -> ReceivedRequest<'a> {
        let taken = left.min(u32::try_from(input.len()).unwrap_or(u32::MAX));
        let left = left - taken;
        let done = left == 0;
        self.state = if done {
            ReaderState::Header
        } else {
            ReaderState::Skip { left, refused }
        };
        ReceivedRequest {
            consumed: taken as usize,
            event: done.then_some(RequestEvent::Refused(refused)),
        }
    }

    /// Reads a request whose bytes are all there. There is no event yet if a payload has to be passed
    /// over first.
    fn request(
        &mut self,
        header: &[u8; REQUEST_BYTES],
    ) -> Result<Option<RequestEvent<'static>>, ProtocolError> {
        let result = self.parse(header);
        if matches!(result, Err(_) | Ok(Some(RequestEvent::Disconnect))) {
            self.state = ReaderState::Ended;
        }
        result
    }

    fn parse(
        &mut self,
        header: &[u8; REQUEST_BYTES],
    ) -> Result<Option<RequestEvent<'static>>, ProtocolError> {
        let mut fields = Fields(header);
        let (Some(magic), Some(flags), Some(code)) = (fields.u32(), fields.u16(), fields.u16())
        else {
            return Err(ProtocolError::Ended);
        };
        let (Some(cookie), Some(offset), Some(length)) = (fields.u64(), fields.u64(), fields.u32())
        else {
            return Err(ProtocolError::Ended);
        };
        if magic != REQUEST_MAGIC {
            return Err(ProtocolError::Magic {
                message: "request",
                found: u64::from(magic),
                expected: u64::from(REQUEST_MAGIC),
            });
        }
        if code == command::DISC {
            return Ok(Some(RequestEvent::Disconnect));
        }
        let payload = if code == command::WRITE { length } else { 0 };
        match self.rules.check(cookie, code, flags, offset, length) {
            Ok(request) => {
                self.payload_goes_on(payload);
                Ok(Some(RequestEvent::Request(request)))
            }
            Err(refused) if payload == 0 => Ok(Some(RequestEvent::Refused(refused))),
            Err(_) if payload > self.skipped_bytes => Err(ProtocolError::PayloadTooLong {
                length: payload,
                limit: self.skipped_bytes,
            }),
            Err(refused) => {
                let left = payload;
                self.state = ReaderState::Skip { left, refused };
                Ok(None)
            }
        }
    }
}
