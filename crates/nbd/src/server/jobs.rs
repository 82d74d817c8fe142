//! Carrying out requests: from a job to the bytes of its reply.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::export::Export;
use super::input::Job;
use crate::error::Errno;
use crate::handshake::Context;
use crate::transmission::{Command, Extents, Piece, Replies, Request};

/// What carrying out needs of a session.
pub(super) struct Desk<'a> {
    pub(super) export: &'a dyn Export,
    pub(super) replies: Replies,
    pub(super) contexts: &'a [Context],
}

impl Desk<'_> {
    /// The whole reply to a job that is not carried out in pieces.
    pub(super) fn answer(&self, job: &Job<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        match job {
            Job::Refused(refused) => self.replies.refused(refused, &mut out),
            Job::Request {
                request, payload, ..
            } => {
                let done = self.guarded(|| self.carry_out(request, payload, &mut out));
                if let Err(errno) = done {
                    out = self.outcome(request, Err(errno));
                }
            }
            Job::Long(_) => {}
        }
        out
    }

    /// The reply to a request that has no data, or failed.
    pub(super) fn outcome(&self, request: &Request, outcome: Result<(), Errno>) -> Vec<u8> {
        let mut out = Vec::new();
        match outcome {
            Ok(()) => self.replies.success(request.cookie, &mut out),
            Err(errno) => {
                let why = errno.to_string();
                self.replies.error(request.cookie, errno, &why, &mut out);
            }
        }
        out
    }

    /// Asks the export; if it panics, that is an error of this request and of no other.
    pub(super) fn guarded(&self, ask: impl FnOnce() -> Result<(), Errno>) -> Result<(), Errno> {
        catch_unwind(AssertUnwindSafe(ask)).unwrap_or(Err(Errno::Io))
    }

    fn carry_out(&self, request: &Request, payload: &[u8], out: &mut Vec<u8>) -> Result<(), Errno> {
        let (offset, length) = (request.offset, u64::from(request.length));
        let durable = request.fua();
        match request.command {
            Command::Read => return self.read(request, out),
            Command::BlockStatus => return self.block_status(request, out),
            Command::Flush => self.export.flush()?,
            _ if length == 0 => {}
            Command::Write => self.export.write(offset, payload, durable)?,
            Command::Trim => self.export.trim(offset, length, durable)?,
            Command::Cache => self.export.cache(offset, length)?,
            Command::WriteZeroes => {
                let (allocate, fast) = (request.no_hole(), request.fast_zero());
                self.export
                    .write_zeroes(offset, length, allocate, fast, durable)?;
            }
        }
        self.replies.success(request.cookie, out);
        Ok(())
    }

    /// Reads straight behind the header. What reads as zero from end to end is told as a hole.
    fn read(&self, request: &Request, out: &mut Vec<u8>) -> Result<(), Errno> {
        let header = self.replies.read_header(request);
        out.reserve_exact(header.len() + request.length as usize);
        out.extend_from_slice(&header);
        out.resize(header.len() + request.length as usize, 0);
        let data = &mut out[header.len()..];
        if request.length > 0 {
            self.export.read(request.offset, data)?;
        }
        if self.replies.are_structured() && !request.unfragmented() && is_zero(data) {
            out.clear();
            self.replies
                .read(request, &[Piece::Zeroes(request.length)], out);
        }
        Ok(())
    }

    fn block_status(&self, request: &Request, out: &mut Vec<u8>) -> Result<(), Errno> {
        let (offset, length) = (request.offset, u64::from(request.length));
        for (index, context) in self.contexts.iter().enumerate() {
            let mut extents = Extents::new(request, Extents::MOST);
            self.export
                .block_status(&context.name, offset, length, &mut extents)?;
            let last = index + 1 == self.contexts.len();
            self.replies
                .block_status(request, context.id, extents, last, out);
        }
        Ok(())
    }
}

/// Whether bytes are zeros, which are told with fewer.
pub fn is_zero(bytes: &[u8]) -> bool {
    bytes
        .chunks(64)
        .all(|chunk| chunk.iter().fold(0, |all, byte| all | byte) == 0)
}
