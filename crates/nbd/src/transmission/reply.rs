//! Replies: simple and structured.
//!
//! Where structured replies were negotiated, reads, block status and every error are structured, the
//! error with its sentence. What succeeds without data is a simple reply in both cases: it is shorter
//! and allowed.

use super::request::{Refused, Request};
use super::status::Extents;
use crate::error::Errno;
use crate::wire::{
    CHUNK_HEADER_BYTES, MAX_STRING, REPLY_FLAG_DONE, SIMPLE_REPLY_BYTES, SIMPLE_REPLY_MAGIC,
    STRUCTURED_REPLY_MAGIC, chunk,
};

/// How one session is replied to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replies {
    structured: bool,
}

/// A part of what was read, from the offset of the request on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    Data(&'a [u8]),
    /// So many zeroes.
    Zeroes(u32),
}

impl Piece<'_> {
    fn length(&self) -> usize {
        match self {
            Self::Data(bytes) => bytes.len(),
            Self::Zeroes(count) => *count as usize,
        }
    }
}

/// What goes before the bytes of a read that is answered in one piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadHeader {
    bytes: [u8; Self::MOST],
    length: usize,
}

impl ReadHeader {
    /// The longest header in bytes.
    pub const MOST: usize = CHUNK_HEADER_BYTES + 8;
}

impl std::ops::Deref for ReadHeader {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

fn simple(cookie: u64, error: u32) -> [u8; SIMPLE_REPLY_BYTES] {
    let mut bytes = [0; SIMPLE_REPLY_BYTES];
    bytes[..4].copy_from_slice(&SIMPLE_REPLY_MAGIC.to_be_bytes());
    bytes[4..8].copy_from_slice(&error.to_be_bytes());
    bytes[8..].copy_from_slice(&cookie.to_be_bytes());
    bytes
}

fn head(cookie: u64, kind: u16, done: bool, length: u32) -> [u8; CHUNK_HEADER_BYTES] {
    let flags = if done { REPLY_FLAG_DONE } else { 0 };
    let mut bytes = [0; CHUNK_HEADER_BYTES];
    bytes[..4].copy_from_slice(&STRUCTURED_REPLY_MAGIC.to_be_bytes());
    bytes[4..6].copy_from_slice(&flags.to_be_bytes());
    bytes[6..8].copy_from_slice(&kind.to_be_bytes());
    bytes[8..16].copy_from_slice(&cookie.to_be_bytes());
    bytes[16..].copy_from_slice(&length.to_be_bytes());
    bytes
}

/// As much of a text as a string of the protocol may have.
fn cut(text: &str) -> &str {
    let mut end = text.len().min(MAX_STRING);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

impl Replies {
    /// Replies of a session with or without structured replies.
    pub const fn new(structured: bool) -> Self {
        Self { structured }
    }

    /// Whether replies are structured, so that zeroes need not be sent.
    pub const fn are_structured(&self) -> bool {
        self.structured
    }

    /// Success of a request that has no data: everything but READ and BLOCK_STATUS.
    pub fn success(&self, cookie: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(&simple(cookie, 0));
    }

    /// Failure of any request. The sentence is shown to the client's user where replies are
    /// structured; what is beyond 4096 bytes is cut.
    pub fn error(&self, cookie: u64, errno: Errno, why: &str, out: &mut Vec<u8>) {
        self.failure(cookie, errno, why, None, out);
    }

    /// Failure of a request at a byte of the export, which must be one of the request's.
    pub fn error_at(&self, cookie: u64, errno: Errno, why: &str, offset: u64, out: &mut Vec<u8>) {
        self.failure(cookie, errno, why, Some(offset), out);
    }

    /// The reply to a request that the reader refused.
    pub fn refused(&self, refused: &Refused, out: &mut Vec<u8>) {
        self.error(refused.cookie, refused.errno, refused.why, out);
    }

    fn failure(
        &self,
        cookie: u64,
        errno: Errno,
        why: &str,
        offset: Option<u64>,
        out: &mut Vec<u8>,
    ) {
        if !self.structured {
            out.extend_from_slice(&simple(cookie, errno.code()));
            return;
        }
        let why = cut(why);
        let (kind, extra) = match offset {
            Some(_) => (chunk::ERROR_OFFSET, 8),
            None => (chunk::ERROR, 0),
        };
        // A sentence has at most 4096 bytes.
        let length = why.len() as u16;
        out.extend_from_slice(&head(cookie, kind, true, 6 + u32::from(length) + extra));
        out.extend_from_slice(&errno.code().to_be_bytes());
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(why.as_bytes());
        if let Some(offset) = offset {
            out.extend_from_slice(&offset.to_be_bytes());
        }
    }

    /// What goes before the bytes of a read answered in one piece: all `request.length` bytes must
    /// follow. For those who read straight behind it; the others use [`Self::read`].
    pub fn read_header(&self, request: &Request) -> ReadHeader {
        let mut header = ReadHeader {
            bytes: [0; ReadHeader::MOST],
            length: 0,
        };
        let mut put = |bytes: &[u8]| {
            header.bytes[header.length..header.length + bytes.len()].copy_from_slice(bytes);
            header.length += bytes.len();
        };
        if !self.structured {
            put(&simple(request.cookie, 0));
        } else if request.length == 0 {
            put(&head(request.cookie, chunk::NONE, true, 0));
        } else {
            let length = request.length.saturating_add(8);
            put(&head(request.cookie, chunk::OFFSET_DATA, true, length));
            put(&request.offset.to_be_bytes());
        }
        header
    }

    /// The whole reply to a read. The pieces have to add up to the request's length; what is missing
    /// is sent as zeroes and what is too much is left out, because a reply of another length would
    /// put the stream out of step.
    pub fn read(&self, request: &Request, pieces: &[Piece<'_>], out: &mut Vec<u8>) {
        let whole = !self.structured || request.unfragmented() || request.length == 0;
        if whole {
            out.extend_from_slice(&self.read_header(request));
            let end = out.len() + request.length as usize;
            for piece in pieces {
                let room = end - out.len();
                match piece {
                    Piece::Data(bytes) => out.extend_from_slice(&bytes[..bytes.len().min(room)]),
                    Piece::Zeroes(count) => out.resize(out.len() + room.min(*count as usize), 0),
                }
            }
            out.resize(end, 0);
        } else {
            let mut done = 0;
            let missing = [Piece::Zeroes(request.length)];
            for piece in pieces.iter().chain(&missing) {
                done += self.chunk(request, done, *piece, out);
            }
        }
    }

    /// A part of a structured reply to a read whose first `done` bytes were told before; how many more this tells. What
    /// is beyond the request's length is left out. The one that reaches it ends the reply.
    pub fn chunk(&self, request: &Request, done: u32, piece: Piece<'_>, out: &mut Vec<u8>) -> u32 {
        let left = request.length.saturating_sub(done);
        let length = u32::try_from(piece.length()).unwrap_or(u32::MAX).min(left);
        if length == 0 {
            return 0;
        }
        let last = length == left;
        let offset = (request.offset + u64::from(done)).to_be_bytes();
        match piece {
            Piece::Data(bytes) => {
                let kind = chunk::OFFSET_DATA;
                let chunk_length = length.saturating_add(8);
                out.extend_from_slice(&head(request.cookie, kind, last, chunk_length));
                out.extend_from_slice(&offset);
                out.extend_from_slice(&bytes[..length as usize]);
            }
            Piece::Zeroes(_) => {
                let kind = chunk::OFFSET_HOLE;
                out.extend_from_slice(&head(request.cookie, kind, last, 12));
                out.extend_from_slice(&offset);
                out.extend_from_slice(&length.to_be_bytes());
            }
        }
        length
    }

    /// The extents of one context in answer to a BLOCK_STATUS request; `last` ends the reply.
    pub fn block_status(
        &self,
        request: &Request,
        context: u32,
        extents: Extents,
        last: bool,
        out: &mut Vec<u8>,
    ) {
        let list = extents.finish();
        let length = 4 + 8 * u32::try_from(list.len()).unwrap_or(0);
        let kind = chunk::BLOCK_STATUS;
        out.extend_from_slice(&head(request.cookie, kind, last, length));
        out.extend_from_slice(&context.to_be_bytes());
        for (length, flags) in list {
            out.extend_from_slice(&length.to_be_bytes());
            out.extend_from_slice(&flags.to_be_bytes());
        }
    }
}
