//! Replies out of the stream, checked against what was asked.
//!
//! Data are handed through; held is a head, the extents of one chunk or one sentence. A reply to
//! nothing, data outside the request, an answer of the wrong kind or a success without all its data
//! end the connection. That the pieces of one read do not overlap is not checked, only their sum.

use std::collections::HashMap;

use super::bytes::{Fields, Gather};
use super::error::ClientError;
use super::handshake::ClientSession;
use super::requests::Call;
use flashlore_nbd::Errno;
use flashlore_nbd::transmission::Command;
use flashlore_nbd::wire::{
    CHUNK_HEADER_BYTES, MAX_STRING, REPLY_FLAG_DONE, SIMPLE_REPLY_BYTES, SIMPLE_REPLY_MAGIC,
    STRUCTURED_REPLY_MAGIC, chunk, command_flags,
};

/// The most requests without an answer.
pub const MAX_IN_FLIGHT: usize = 4096;
/// The longest chunk of extents, in bytes.
const MAX_STATUS: usize = 1 << 20;
/// The longest chunk of an error, in bytes.
const MAX_ERROR: usize = 6 + MAX_STRING + 64;

/// A part of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply<'a> {
    /// Bytes that were read. A chunk may come in several of these.
    Data {
        /// The request.
        cookie: u64,
        /// Where they belong, in bytes of the export.
        offset: u64,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// Bytes that read as zero.
    Zeroes {
        /// The request.
        cookie: u64,
        /// Where they begin, in bytes of the export.
        offset: u64,
        /// How many.
        length: u32,
    },
    /// Extents of one context, from the offset of the request on.
    Status {
        /// The request.
        cookie: u64,
        /// The number of the context.
        context: u32,
        /// Length in bytes and flags of each.
        extents: Vec<(u32, u32)>,
    },
    /// An error; [`Reply::Done`] follows.
    Failed {
        /// The request.
        cookie: u64,
        /// The error.
        errno: Errno,
        /// Where it happened, if the server says so.
        offset: Option<u64>,
        /// What the server says, control characters removed.
        message: String,
    },
    /// The request is answered, and its cookie free.
    Done {
        /// The request.
        cookie: u64,
        /// The first error, or none: everything was done and all data have come.
        error: Option<Errno>,
    },
}

/// What became of input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken<'a> {
    /// Bytes taken from the front of the input. If there is no event, all of it was.
    pub consumed: usize,
    /// What happened, if anything.
    pub event: Option<Reply<'a>>,
}

/// A request without an answer.
#[derive(Clone, Copy, Debug)]
struct Pending {
    command: Command,
    flags: u16,
    offset: u64,
    length: u32,
    /// Bytes of the answer so far.
    covered: u32,
    /// Content chunks so far.
    pieces: u32,
    /// Contexts answered, one bit for each.
    answered: u64,
    error: Option<Errno>,
}

/// The head of a chunk.
#[derive(Clone, Copy, Debug)]
struct Head {
    cookie: u64,
    kind: u16,
    done: bool,
    length: usize,
}

/// Data that are due.
#[derive(Clone, Copy, Debug)]
struct Data {
    cookie: u64,
    offset: u64,
    /// Bytes, more than 0.
    left: u32,
    /// They end the reply.
    done: bool,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Magic,
    Simple,
    Chunk,
    /// The offset before data.
    DataOffset(Head),
    Data(Data),
    /// A chunk that is held whole.
    Small(Head),
    Finish {
        cookie: u64,
    },
    Ended,
}

/// The stream of replies of one connection.
#[derive(Debug)]
pub struct ReplyReader {
    structured: bool,
    contexts: Vec<u32>,
    pending: HashMap<u64, Pending>,
    state: State,
    gather: Gather,
}

fn unusable(reason: impl Into<String>) -> ClientError {
    ClientError::Server {
        message: "reply",
        reason: reason.into(),
    }
}

impl ReplyReader {
    /// The replies of a session.
    #[must_use]
    pub fn new(session: &ClientSession) -> Self {
        Self {
            structured: session.structured,
            contexts: session.contexts.iter().map(|context| context.id).collect(),
            pending: HashMap::new(),
            state: State::Magic,
            gather: Gather::default(),
        }
    }

    /// Tells that a request is being sent. `false`, and nothing changed, if its cookie is in use, if
    /// [`MAX_IN_FLIGHT`] requests wait, or if its offset and length do not fit 64 bits together.
    #[must_use]
    pub fn expect(&mut self, call: &Call) -> bool {
        let free = !self.pending.contains_key(&call.cookie);
        let fits = call.offset.checked_add(u64::from(call.length)).is_some();
        if !free || !fits || self.pending.len() >= MAX_IN_FLIGHT {
            return false;
        }
        let pending = Pending {
            command: call.command,
            flags: call.flags,
            offset: call.offset,
            length: call.length,
            covered: 0,
            pieces: 0,
            answered: 0,
            error: None,
        };
        self.pending.insert(call.cookie, pending);
        true
    }

    /// Requests without an answer.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.pending.len()
    }

    /// Takes bytes from the front of `input`, at most to the next event.
    ///
    /// # Errors
    /// Why the connection ends.
    pub fn receive<'a>(&mut self, input: &'a [u8]) -> Result<Taken<'a>, ClientError> {
        let result = self.advance(input);
        if result.is_err() {
            self.state = State::Ended;
        }
        result
    }

    fn advance<'a>(&mut self, input: &'a [u8]) -> Result<Taken<'a>, ClientError> {
        let mut consumed = 0;
        loop {
            let rest = &input[consumed..];
            let needed = match self.state {
                State::Magic => 4,
                State::Simple => SIMPLE_REPLY_BYTES - 4,
                State::Chunk => CHUNK_HEADER_BYTES - 4,
                State::DataOffset(_) => 8,
                State::Small(head) => head.length,
                State::Data(_) if rest.is_empty() => {
                    let event = None;
                    return Ok(Taken { consumed, event });
                }
                State::Data(due) => {
                    let (taken, event) = self.data(rest, due);
                    consumed += taken;
                    let event = Some(event);
                    return Ok(Taken { consumed, event });
                }
                State::Finish { cookie } => {
                    let event = Some(self.finish(cookie)?);
                    return Ok(Taken { consumed, event });
                }
                State::Ended => return Err(ClientError::Ended),
            };
            consumed += self.gather.take(rest, needed);
            if !self.gather.is_full(needed) {
                let event = None;
                return Ok(Taken { consumed, event });
            }
            let message = self.gather.finish();
            if let Some(event) = self.message(&message)? {
                let event = Some(event);
                return Ok(Taken { consumed, event });
            }
        }
    }

    fn message(&mut self, message: &[u8]) -> Result<Option<Reply<'static>>, ClientError> {
        let mut fields = Fields(message);
        match self.state {
            State::Magic => self.magic(fields.u32().unwrap_or(0))?,
            State::Simple => {
                let (error, cookie) = (fields.u32().unwrap_or(0), fields.u64().unwrap_or(0));
                self.simple(error, cookie)?;
            }
            State::Chunk => {
                let flags = fields.u16().unwrap_or(0);
                let head = Head {
                    kind: fields.u16().unwrap_or(0),
                    cookie: fields.u64().unwrap_or(0),
                    length: usize::try_from(fields.u32().unwrap_or(0)).unwrap_or(usize::MAX),
                    done: flags & REPLY_FLAG_DONE != 0,
                };
                self.chunk(head)?;
            }
            State::DataOffset(head) => self.begin_data(head, fields.u64().unwrap_or(0))?,
            State::Small(head) => {
                self.after(head.cookie, head.done);
                return self.small(head, message).map(Some);
            }
            State::Data(_) | State::Finish { .. } | State::Ended => {}
        }
        Ok(None)
    }

    fn magic(&mut self, magic: u32) -> Result<(), ClientError> {
        self.state = match magic {
            SIMPLE_REPLY_MAGIC => State::Simple,
            STRUCTURED_REPLY_MAGIC if self.structured => State::Chunk,
            _ => {
                return Err(ClientError::Magic {
                    message: "reply",
                    found: u64::from(magic),
                    expected: u64::from(SIMPLE_REPLY_MAGIC),
                });
            }
        };
        Ok(())
    }

    fn of(&mut self, cookie: u64) -> Result<&mut Pending, ClientError> {
        self.pending
            .get_mut(&cookie)
            .ok_or_else(|| unusable(format!("no request has the cookie {cookie:#x}")))
    }

    fn simple(&mut self, error: u32, cookie: u64) -> Result<(), ClientError> {
        let structured = self.structured;
        let pending = self.of(cookie)?;
        if pending.pieces > 0 || pending.error.is_some() {
            return Err(unusable("a simple reply in the middle of a structured one"));
        }
        let (offset, left, command) = (pending.offset, pending.length, pending.command);
        let data = command == Command::Read;
        if error != 0 {
            pending.error = Some(Errno::from_code(error));
        } else if structured && (data || command == Command::BlockStatus) {
            return Err(unusable("a simple reply where a structured one is due"));
        } else if data && left > 0 {
            pending.pieces = 1;
            pending.covered = left;
            let done = true;
            self.state = State::Data(Data {
                cookie,
                offset,
                left,
                done,
            });
            return Ok(());
        }
        self.state = State::Finish { cookie };
        Ok(())
    }

    fn chunk(&mut self, head: Head) -> Result<(), ClientError> {
        let most = match head.kind {
            chunk::NONE => 0,
            chunk::OFFSET_DATA => 8 + self.of(head.cookie)?.length as usize,
            chunk::OFFSET_HOLE => 12,
            chunk::BLOCK_STATUS => MAX_STATUS,
            kind if kind & chunk::ERROR_BIT != 0 => MAX_ERROR,
            kind => return Err(unusable(format!("a chunk of the unknown type {kind}"))),
        };
        if head.length > most {
            let Head { kind, length, .. } = head;
            let reason = format!("a chunk of type {kind} has {length} bytes, expected {most}");
            return Err(unusable(reason));
        }
        self.of(head.cookie)?;
        self.state = match head.kind {
            chunk::NONE if !head.done => {
                return Err(unusable("an empty chunk that does not end its reply"));
            }
            chunk::NONE => State::Finish {
                cookie: head.cookie,
            },
            chunk::OFFSET_DATA => State::DataOffset(head),
            _ => State::Small(head),
        };
        Ok(())
    }

    /// Notes that `length` bytes at `offset` are part of the answer to a read.
    fn content(&mut self, cookie: u64, offset: u64, length: u32) -> Result<(), ClientError> {
        let pending = self.of(cookie)?;
        let length64 = u64::from(length);
        let inside = offset
            .checked_sub(pending.offset)
            .and_then(|start| start.checked_add(length64))
            .is_some_and(|end| end <= u64::from(pending.length));
        let fits = pending.length - pending.covered >= length;
        if pending.command != Command::Read || length == 0 || !inside || !fits {
            let reason = format!("{length} bytes at {offset} are no part of the request");
            return Err(unusable(reason));
        }
        if pending.flags & command_flags::DF != 0 && pending.pieces > 0 {
            return Err(unusable("a second piece where one was demanded"));
        }
        pending.covered += length;
        pending.pieces = pending.pieces.saturating_add(1);
        Ok(())
    }

    fn begin_data(&mut self, head: Head, offset: u64) -> Result<(), ClientError> {
        let Head { cookie, done, .. } = head;
        let left = head
            .length
            .checked_sub(8)
            .and_then(|n| u32::try_from(n).ok());
        let left = left.ok_or_else(|| unusable("a chunk of data without data"))?;
        self.content(cookie, offset, left)?;
        self.state = State::Data(Data {
            cookie,
            offset,
            left,
            done,
        });
        Ok(())
    }

    /// Hands data through.
    fn data<'a>(&mut self, input: &'a [u8], due: Data) -> (usize, Reply<'a>) {
        let taken = due.left.min(u32::try_from(input.len()).unwrap_or(u32::MAX));
        let bytes = &input[..taken as usize];
        if taken == due.left {
            self.after(due.cookie, due.done);
        } else {
            self.state = State::Data(Data {
                offset: due.offset + u64::from(taken),
                left: due.left - taken,
                ..due
            });
        }
        let event = Reply::Data {
            cookie: due.cookie,
            offset: due.offset,
            bytes,
        };
        (bytes.len(), event)
    }

    fn after(&mut self, cookie: u64, done: bool) {
        self.state = if done {
            State::Finish { cookie }
        } else {
            State::Magic
        };
    }

    fn small(&mut self, head: Head, data: &[u8]) -> Result<Reply<'static>, ClientError> {
        match head.kind {
            chunk::OFFSET_HOLE => {
                let mut fields = Fields(data);
                let (Some(offset), Some(length)) = (fields.u64(), fields.u32()) else {
                    return Err(unusable("a hole without a length"));
                };
                self.content(head.cookie, offset, length)?;
                Ok(Reply::Zeroes {
                    cookie: head.cookie,
                    offset,
                    length,
                })
            }
            chunk::BLOCK_STATUS => self.status(head.cookie, data),
            kind => self.failed(head.cookie, kind, data),
        }
    }

    fn status(&mut self, cookie: u64, data: &[u8]) -> Result<Reply<'static>, ClientError> {
        let mut fields = Fields(data);
        let context = fields.u32();
        let place = self.contexts.iter().position(|id| Some(*id) == context);
        let (Some(context), Some(place)) = (context, place) else {
            return Err(unusable(format!("context {context:?} was not negotiated")));
        };
        let bit = 1u64
            .checked_shl(u32::try_from(place).unwrap_or(64))
            .unwrap_or(0);
        let pending = self.of(cookie)?;
        if pending.command != Command::BlockStatus || pending.answered & bit != 0 {
            return Err(unusable(
                "extents that were not asked for, or a second time",
            ));
        }
        pending.answered |= bit;
        let one = pending.flags & command_flags::REQ_ONE != 0;
        let mut left = pending.length;
        let mut extents = Vec::with_capacity(data.len() / 8);
        while !fields.is_empty() {
            let (Some(length), Some(flags)) = (fields.u32(), fields.u32()) else {
                return Err(unusable("extents that end within a field"));
            };
            if length == 0 || left == 0 || (one && !extents.is_empty()) {
                return Err(unusable("an extent that is empty or beyond the request"));
            }
            // The last one may reach beyond the request.
            let length = length.min(left);
            left -= length;
            extents.push((length, flags));
        }
        if extents.is_empty() {
            return Err(unusable("a context without extents"));
        }
        Ok(Reply::Status {
            cookie,
            context,
            extents,
        })
    }

    fn failed(
        &mut self,
        cookie: u64,
        kind: u16,
        data: &[u8],
    ) -> Result<Reply<'static>, ClientError> {
        let mut fields = Fields(data);
        let code = fields.u32().filter(|code| *code != 0);
        let message = fields.u16().and_then(|n| fields.bytes(usize::from(n)));
        let (Some(code), Some(message)) = (code, message) else {
            return Err(unusable("an error that ends within a field, or is none"));
        };
        let offset = if kind == chunk::ERROR_OFFSET {
            let offset = fields.u64();
            Some(offset.ok_or_else(|| unusable("an error without its offset"))?)
        } else {
            None
        };
        let errno = Errno::from_code(code);
        self.of(cookie)?.error.get_or_insert(errno);
        Ok(Reply::Failed {
            cookie,
            errno,
            offset,
            message: String::from_utf8_lossy(message).replace(char::is_control, ""),
        })
    }

    fn finish(&mut self, cookie: u64) -> Result<Reply<'static>, ClientError> {
        self.of(cookie)?;
        self.state = State::Magic;
        let Some(pending) = self.pending.remove(&cookie) else {
            return Err(ClientError::Ended);
        };
        let missing = match pending.command {
            Command::Read => pending.covered < pending.length,
            Command::BlockStatus => pending.answered == 0,
            _ => false,
        };
        if pending.error.is_none() && missing {
            return Err(unusable("a success without all that was asked for"));
        }
        Ok(Reply::Done {
            cookie,
            error: pending.error,
        })
    }
}
