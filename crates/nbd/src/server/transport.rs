//! Bytes over a socket, plain or through TLS.
//!
//! One thread reads and one writes at a time, both may do so at once. Through TLS the session is
//! locked only while it computes, never while the socket blocks; only the writer sends, so records
//! leave in their order.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use rustls::{ServerConfig, ServerConnection};

use super::socket::Socket;

/// How long a call on a socket blocks before deadlines are looked at.
pub(super) const TICK: Duration = Duration::from_millis(500);

/// The most that is encrypted before it is sent.
const TLS_CHUNK: usize = 32 << 10;

#[derive(Debug)]
pub(super) struct Transport {
    socket: Socket,
    tls: Option<TlsSession>,
}

#[derive(Debug)]
struct TlsSession {
    session: Mutex<ServerConnection>,
    /// What the socket gave and the session has not taken: it takes no more while it holds plain text.
    raw: Mutex<Vec<u8>>,
}

impl TlsSession {
    fn lock(&self) -> MutexGuard<'_, ServerConnection> {
        self.session.lock()
    }
}

/// Gives a session some of what the socket gave.
fn feed(session: &mut ServerConnection, raw: &mut Vec<u8>) -> io::Result<()> {
    let taken = session.read_tls(&mut &raw[..])?;
    raw.drain(..taken);
    session.process_new_packets().map_err(io::Error::other)?;
    Ok(())
}

/// Whether a call should be made again after looking at the clock.
fn is_tick(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

fn late() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the other side is too slow")
}

impl Transport {
    pub(super) fn plain(socket: Socket) -> io::Result<Self> {
        socket.set_tick(TICK)?;
        Ok(Self { socket, tls: None })
    }

    /// Goes over to TLS. `early` holds bytes that came with the wish for it.
    pub(super) fn start_tls(
        self,
        config: Arc<ServerConfig>,
        early: &[u8],
        deadline: Instant,
    ) -> io::Result<Self> {
        let mut session = ServerConnection::new(config).map_err(io::Error::other)?;
        let mut buffer = [0; 4096];
        let mut raw = early.to_vec();
        let mut out = Vec::new();
        while session.is_handshaking() {
            if raw.is_empty() {
                let count = self.read_before(&mut buffer, deadline)?;
                raw.extend_from_slice(&buffer[..count]);
                if count == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            let result = feed(&mut session, &mut raw);
            // An alert goes out even if it is all over.
            while session.wants_write() {
                session.write_tls(&mut out)?;
            }
            self.send(&out, deadline)?;
            out.clear();
            result?;
        }
        Ok(Self {
            socket: self.socket,
            tls: Some(TlsSession {
                session: Mutex::new(session),
                raw: Mutex::new(raw),
            }),
        })
    }

    /// Some bytes, 0 at the end, or an error of the kind `WouldBlock` after [`TICK`].
    pub(super) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let result = match &self.tls {
            None => self.socket.read(buffer),
            Some(tls) => self.read_tls(tls, buffer),
        };
        result.map_err(|error| {
            if is_tick(&error) {
                io::ErrorKind::WouldBlock.into()
            } else {
                error
            }
        })
    }

    fn read_tls(&self, tls: &TlsSession, buffer: &mut [u8]) -> io::Result<usize> {
        let mut raw = tls.raw.lock();
        loop {
            let mut session = tls.lock();
            match session.reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return result,
            }
            if !raw.is_empty() {
                feed(&mut session, &mut raw)?;
                continue;
            }
            drop(session);
            let mut bytes = [0; 16 << 10];
            let count = self.socket.read(&mut bytes)?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            raw.extend_from_slice(&bytes[..count]);
        }
    }

    /// As [`Self::read`], until the deadline.
    pub(super) fn read_before(&self, buffer: &mut [u8], deadline: Instant) -> io::Result<usize> {
        loop {
            match self.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if Instant::now() >= deadline {
                        return Err(late());
                    }
                }
                result => return result,
            }
        }
    }

    /// Sends all of `bytes` before the deadline.
    pub(super) fn write_all(&self, bytes: &[u8], deadline: Instant) -> io::Result<()> {
        let Some(tls) = &self.tls else {
            return self.send(bytes, deadline);
        };
        let mut out = Vec::new();
        for chunk in bytes.chunks(TLS_CHUNK) {
            out.clear();
            let mut session = tls.lock();
            let mut rest = chunk;
            while !rest.is_empty() {
                let written = session.writer().write(rest)?;
                rest = &rest[written..];
                while session.wants_write() {
                    session.write_tls(&mut out)?;
                }
            }
            drop(session);
            self.send(&out, deadline)?;
        }
        Ok(())
    }

    fn send(&self, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.socket.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => bytes = &bytes[count..],
                Err(error) if is_tick(&error) => {}
                Err(error) => return Err(error),
            }
            if !bytes.is_empty() && Instant::now() >= deadline {
                return Err(late());
            }
        }
        Ok(())
    }

    /// Says farewell and closes. A client that does not listen is not waited for.
    pub(super) fn close(&self) {
        if let Some(tls) = &self.tls {
            let mut session = tls.lock();
            session.send_close_notify();
            let mut out = Vec::new();
            while session.wants_write() && session.write_tls(&mut out).is_ok() {}
            // The connection ends whether it arrives or not.
            let _ = self.send(&out, Instant::now());
        }
        self.socket.shutdown(Shutdown::Both);
    }

    /// Ends the connection at once; whoever is blocked in it returns.
    pub(super) fn abandon(&self) {
        self.socket.shutdown(Shutdown::Both);
    }
}
