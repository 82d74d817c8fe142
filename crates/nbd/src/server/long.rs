//! Long requests that found no room in the budget: carried out piece by piece.
//!
//! Nobody waits for the memory that others hold, and a client that does not take its replies holds one piece for each
//! of its workers. The price is overlap: a piece is read, then sent; or taken, then written.
//!
//! A read whose reply cannot turn into an error once it has begun (no structured replies, or one that must not be
//! fragmented) is read twice: first to see that it can be. If a piece fails all the same, the connection ends, as the
//! protocol demands.

use std::io;
use std::time::Instant;

use parking_lot::MutexGuard;

use super::connection::Shared;
use super::input::{Input, message_time};
use super::jobs::is_zero;
use super::registry::SMALL_BYTES;
use crate::error::Errno;
use crate::transmission::{Command, Piece, Request};

/// The pieces of a request: where each begins, counted from the request's offset, and its length.
fn pieces(request: &Request) -> impl Iterator<Item = (u32, usize)> {
    let length = request.length;
    let starts = (0..length).step_by(SMALL_BYTES);
    starts.map(move |at| (at, SMALL_BYTES.min((length - at) as usize)))
}

impl Shared<'_> {
    /// Carries out a read or a write. The payload of a write is still to come.
    pub(super) fn carry_out_long(
        &self,
        request: &Request,
        input: MutexGuard<'_, Input>,
    ) -> io::Result<()> {
        if request.command == Command::Write {
            return self.write_long(request, input);
        }
        drop(input);
        let deadline = Instant::now() + message_time(self.config, request.length as usize);
        match self.desk.replies.are_structured() && !request.unfragmented() {
            true => self.read_in_chunks(request, deadline),
            false => self.read_as_one(request, deadline),
        }
    }

    fn write_long(&self, request: &Request, mut input: MutexGuard<'_, Input>) -> io::Result<()> {
        let deadline = Instant::now() + message_time(self.config, request.length as usize);
        let mut written = Ok(());
        for (at, length) in pieces(request) {
            let piece = input.take(self.transport, length, deadline)?;
            // What comes behind a piece that failed is passed over.
            written = written.and_then(|()| {
                let offset = request.offset + u64::from(at);
                self.desk
                    .guarded(|| self.desk.export.write(offset, &piece, false))
            });
        }
        input.payload_taken();
        drop(input);
        if request.fua() {
            written = written.and_then(|()| self.desk.guarded(|| self.desk.export.flush()));
        }
        self.send(&self.desk.outcome(request, written))
    }

    fn read_piece(&self, request: &Request, at: u32, piece: &mut [u8]) -> Result<(), Errno> {
        let offset = request.offset + u64::from(at);
        self.desk
            .guarded(|| self.desk.export.read(offset, &mut *piece))
    }

    /// One chunk a piece; others' replies may come between them.
    fn read_in_chunks(&self, request: &Request, deadline: Instant) -> io::Result<()> {
        let (mut piece, mut out) = (vec![0; SMALL_BYTES], Vec::new());
        for (at, length) in pieces(request) {
            let piece = &mut piece[..length];
            if let Err(errno) = self.read_piece(request, at, piece) {
                return self.send(&self.desk.outcome(request, Err(errno)));
            }
            out.clear();
            let found = match is_zero(piece) {
                true => Piece::Zeroes(length as u32),
                false => Piece::Data(piece),
            };
            self.desk.replies.chunk(request, at, found, &mut out);
            self.send_before(&out, deadline)?;
        }
        Ok(())
    }

    /// A header and all bytes behind it; other replies wait.
    fn read_as_one(&self, request: &Request, deadline: Instant) -> io::Result<()> {
        let mut piece = vec![0; SMALL_BYTES];
        for (at, length) in pieces(request) {
            if let Err(errno) = self.read_piece(request, at, &mut piece[..length]) {
                return self.send(&self.desk.outcome(request, Err(errno)));
            }
        }
        let _sending = self.lock_sending();
        let header = self.desk.replies.read_header(request);
        self.transport.write_all(&header, deadline)?;
        for (at, length) in pieces(request) {
            let piece = &mut piece[..length];
            self.read_piece(request, at, piece)
                .map_err(|errno| io::Error::other(errno.to_string()))?;
            self.transport.write_all(piece, deadline)?;
        }
        Ok(())
    }
}
