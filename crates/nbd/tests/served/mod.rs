//! A disk in memory, its directory, and a client that blocks: what the tests of the listener share.
#![allow(dead_code)]

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::client::{Call, ClientEvent, ClientHandshake, ClientSession, Goal, Reply, ReplyReader};
use flashlore_nbd::server::{Address, Config, Export, Server};
use flashlore_nbd::transmission::{Command, Extents};
use flashlore_nbd::{Directory, Errno, ExportInfo, Refusal};
use parking_lot::{Condvar, Mutex, RwLock};

/// How long something is waited for that comes about, however busy the machine is.
pub const PATIENCE: Duration = Duration::from_secs(60);

const BLOCK: usize = 4096;

/// A disk that knows which of its blocks are stored. Writes to the last block wait while the gate is
/// shut; a disk of 77 blocks panics when it is read.
pub struct MemoryDisk {
    bytes: RwLock<Vec<u8>>,
    stored: RwLock<Vec<bool>>,
    pub flushes: AtomicU64,
    pub gate: Mutex<bool>,
    /// Writes that came to the gate.
    pub at_gate: AtomicU64,
    pub gate_opened: Condvar,
}

impl MemoryDisk {
    pub fn new(size: usize) -> Arc<Self> {
        Arc::new(Self {
            bytes: RwLock::new(vec![0; size]),
            stored: RwLock::new(vec![false; size.div_ceil(BLOCK)]),
            flushes: AtomicU64::new(0),
            gate: Mutex::new(true),
            at_gate: AtomicU64::new(0),
            gate_opened: Condvar::new(),
        })
    }

    pub fn size(&self) -> usize {
        self.bytes.read().len()
    }

    pub fn set_gate(&self, open: bool) {
        *self.gate.lock() = open;
        self.gate_opened.notify_all();
    }

    fn mark(&self, offset: u64, length: usize, stored: bool) {
        let mut map = self.stored.write();
        let (start, end) = (offset as usize, offset as usize + length);
        // A block that is freed in part stays stored.
        let range = if stored {
            start / BLOCK..end.div_ceil(BLOCK)
        } else {
            start.div_ceil(BLOCK)..(end / BLOCK).max(start.div_ceil(BLOCK))
        };
        map[range].fill(stored);
    }
}

impl Export for MemoryDisk {
    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Errno> {
        let bytes = self.bytes.read();
        let start = offset as usize;
        if bytes.len() == 77 * BLOCK {
            drop(bytes);
            panic!("the disk of 77 blocks panics");
        }
        buffer.copy_from_slice(&bytes[start..start + buffer.len()]);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8], _durable: bool) -> Result<(), Errno> {
        if offset as usize >= self.size() - BLOCK {
            self.at_gate.fetch_add(1, Ordering::SeqCst);
            self.gate_opened
                .wait_while(&mut self.gate.lock(), |open| !*open);
        }
        let start = offset as usize;
        self.bytes.write()[start..start + data.len()].copy_from_slice(data);
        self.mark(offset, data.len(), true);
        Ok(())
    }

    fn flush(&self) -> Result<(), Errno> {
        self.flushes.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn trim(&self, offset: u64, length: u64, durable: bool) -> Result<(), Errno> {
        self.write_zeroes(offset, length, false, false, durable)
    }

    fn write_zeroes(
        &self,
        offset: u64,
        length: u64,
        allocate: bool,
        _fast: bool,
        _durable: bool,
    ) -> Result<(), Errno> {
        let start = offset as usize;
        self.bytes.write()[start..start + length as usize].fill(0);
        self.mark(offset, length as usize, allocate);
        Ok(())
    }

    fn cache(&self, _offset: u64, _length: u64) -> Result<(), Errno> {
        Ok(())
    }

    fn block_status(
        &self,
        context: &str,
        offset: u64,
        length: u64,
        extents: &mut Extents,
    ) -> Result<(), Errno> {
        let stored = self.stored.read();
        let (mut at, end) = (offset as usize, (offset + length) as usize);
        while at < end {
            let next = ((at / BLOCK + 1) * BLOCK).min(end);
            // `base:allocation` tells holes of zeroes, ours tells what is stored.
            let flags = match (context == "base:allocation", stored[at / BLOCK]) {
                (true, false) => 3,
                (false, true) => 1,
                _ => 0,
            };
            if !extents.push((next - at) as u64, flags) {
                break;
            }
            at = next;
        }
        Ok(())
    }
}

/// `disk` and the default are the disk, `past` is the same read-only.
pub struct Shelf(pub Arc<MemoryDisk>);

impl Directory for Shelf {
    type Export = Arc<dyn Export>;

    fn open(&self, name: &str) -> Result<(ExportInfo, Self::Export), Refusal> {
        let size = self.0.size() as u64;
        let mut info = match name {
            "" | "disk" => ExportInfo::writable(size),
            "past" => ExportInfo::read_only(size),
            _ => return Err(Refusal::Unknown(format!("there is no export {name:?}"))),
        };
        info.contexts.push("flashlore:stored".to_owned());
        info.description = "a disk in memory".to_owned();
        Ok((info, self.0.clone()))
    }

    fn list(&self) -> Vec<(String, String)> {
        ["disk", "past"]
            .map(|name| (name.to_owned(), String::new()))
            .to_vec()
    }
}

/// A server on a Unix socket of its own.
pub struct Served {
    pub disk: Arc<MemoryDisk>,
    pub server: Server,
    pub socket: PathBuf,
    _directory: tempfile::TempDir,
}

pub fn serve(size: usize, config: Config) -> Served {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("nbd.sock");
    let disk = MemoryDisk::new(size);
    let shelf = Arc::new(Shelf(disk.clone()));
    let server = Server::start(&[Address::Unix(socket.clone())], config, shelf).unwrap();
    Served {
        disk,
        server,
        socket,
        _directory: directory,
    }
}

/// A connection that has negotiated.
pub struct Client<S> {
    pub stream: S,
    pub session: ClientSession,
    replies: ReplyReader,
    buffer: Vec<u8>,
    next: u64,
}

pub fn goal(name: &str) -> Goal {
    Goal::Export {
        name: name.to_owned(),
        structured: true,
        contexts: vec!["base:allocation".to_owned(), "flashlore:stored".to_owned()],
    }
}

pub fn connect(socket: &Path, name: &str) -> io::Result<Client<UnixStream>> {
    let stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    negotiate(stream, name)
}

pub fn negotiate<S: Read + Write>(stream: S, name: &str) -> io::Result<Client<S>> {
    negotiate_for(stream, goal(name))
}

pub fn negotiate_for<S: Read + Write>(mut stream: S, goal: Goal) -> io::Result<Client<S>> {
    let mut machine = ClientHandshake::new(goal, false);
    let mut out = Vec::new();
    loop {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        let received = machine.receive(&byte, &mut out).map_err(io::Error::other)?;
        stream.write_all(&out)?;
        out.clear();
        if let Some(ClientEvent::Ready(session)) = received.event {
            return Ok(Client::new(stream, session));
        }
    }
}

/// What a request came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    pub error: Option<Errno>,
    pub data: Vec<u8>,
    pub extents: Vec<(u32, Vec<(u32, u32)>)>,
    pub holes: usize,
}

impl<S: Read + Write> Client<S> {
    pub fn new(stream: S, session: ClientSession) -> Self {
        Self {
            stream,
            replies: ReplyReader::new(&session),
            session,
            buffer: Vec::new(),
            next: 1,
        }
    }

    /// Sends a request; its cookie.
    pub fn send(
        &mut self,
        command: Command,
        flags: u16,
        offset: u64,
        length: u32,
        payload: &[u8],
    ) -> io::Result<u64> {
        let cookie = self.next;
        self.next += 1;
        let call = Call {
            cookie,
            command,
            flags,
            offset,
            length,
        };
        assert!(self.replies.expect(&call));
        let mut bytes = call.encode().to_vec();
        bytes.extend_from_slice(payload);
        self.stream.write_all(&bytes)?;
        Ok(cookie)
    }

    /// The next reply that is complete, whichever it is. Parts of others may not come between.
    pub fn reply(&mut self) -> io::Result<(u64, Outcome)> {
        let mut outcome = Outcome::default();
        loop {
            let taken = self
                .replies
                .receive(&self.buffer)
                .map_err(io::Error::other)?;
            let consumed = taken.consumed;
            match taken.event {
                None => {
                    self.buffer.drain(..consumed);
                    let mut more = vec![0; 65536];
                    let count = self.stream.read(&mut more)?;
                    if count == 0 {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    self.buffer.extend_from_slice(&more[..count]);
                    continue;
                }
                Some(Reply::Data { bytes, .. }) => outcome.data.extend_from_slice(bytes),
                Some(Reply::Zeroes { length, .. }) => {
                    outcome.holes += 1;
                    outcome.data.resize(outcome.data.len() + length as usize, 0);
                }
                Some(Reply::Status {
                    context, extents, ..
                }) => outcome.extents.push((context, extents)),
                Some(Reply::Failed { .. }) => {}
                Some(Reply::Done { cookie, error }) => {
                    outcome.error = error;
                    self.buffer.drain(..consumed);
                    return Ok((cookie, outcome));
                }
            }
            self.buffer.drain(..consumed);
        }
    }

    pub fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<Option<Errno>> {
        let length = u32::try_from(data.len()).unwrap();
        let cookie = self.send(Command::Write, 0, offset, length, data)?;
        let (of, outcome) = self.reply()?;
        assert_eq!(of, cookie);
        Ok(outcome.error)
    }

    pub fn ask(
        &mut self,
        command: Command,
        flags: u16,
        offset: u64,
        length: u32,
    ) -> io::Result<Outcome> {
        let cookie = self.send(command, flags, offset, length, &[])?;
        let (of, outcome) = self.reply()?;
        assert_eq!(of, cookie);
        Ok(outcome)
    }

    pub fn read(&mut self, offset: u64, length: u32) -> io::Result<Vec<u8>> {
        self.ask(Command::Read, 0, offset, length)
            .map(|outcome| outcome.data)
    }
}

/// Waits until `condition` holds, a minute at most.
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if condition() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("it never came about that {what}");
}
