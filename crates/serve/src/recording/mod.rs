//! What clients do with a volume, written down as a native trace, with the bytes if they are wanted.
//!
//! | module | what it is |
//! |---|---|
//! | `order` | requests that have begun, brought back into the order in which they did |
//! | `files` | the thread that writes the files |
//!
//! The device tells a [`Recording`] what happened ([`flashlore_volume::disk::filters::record`]). Pages are hashed by
//! whoever asked; a digest becomes a value number when its request is written down, so that values are numbered in the
//! order of the trace. A thread of its own writes.
//!
//! Invariants: records stand in the order in which requests began, with the times of that; each request that was
//! answered before the end is in the trace, or the end says how many are not. The files appear when they are complete.
//!
//! Memory: `MOST_HELD` bytes of requests that wait for one before them, `files::QUEUE` messages of at most
//! `PIECE` pages, one row group, and 16 bytes and a place in a table for each distinct page, of which there are at
//! most [`Options::most_values`]: then the recording ends, and the volume goes on without it.

mod files;
mod order;

use std::path::{Path, PathBuf};
use std::sync::mpsc::SyncSender;
use std::thread::JoinHandle;

use flashlore_trace::Pages;
use flashlore_trace::digests::Values;
use flashlore_trace::pages::PAGE_BYTES;
use flashlore_volume::disk::filters::record::{Done, Log};
use flashlore_volume::disk::live::Clock;
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::error::ServeError;
use crate::served::Tell;
use files::{Files, Message, Writer};
use order::{Content, Order, PendingRecord};

/// Bytes of requests that ended before an earlier one, at most: then new ones wait.
const MOST_HELD: usize = 64 << 20;
/// Pages that are handed to the writer at once.
const PIECE: usize = 64;

#[derive(Debug, Clone)]
pub struct Options {
    /// The trace. It must not exist.
    pub trace: PathBuf,
    /// The distinct pages, if they are wanted. It must not exist.
    pub pages: Option<PathBuf>,
    /// The most distinct pages.
    pub most_values: u32,
}

/// Why a recording takes nothing more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    Finished,
    TooManyValues,
    /// The thread that writes says why.
    Unwritable,
}

struct RecordingState {
    order: Order,
    values: Values,
    /// Values that were handed to the writer.
    sent_values: u32,
    sender: Option<SyncSender<Message>>,
    over: Option<Over>,
    failed: u64,
    /// Requests that were answered, and came when the recording was over.
    missed: u64,
}

pub struct Recording {
    options: Options,
    clock: Clock,
    tell: Tell,
    state: Mutex<RecordingState>,
    /// Something that was held was written down.
    written: Condvar,
    writer: Mutex<Option<Writer>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Records of the trace.
    pub records: u64,
    /// Distinct pages.
    pub values: u32,
    /// Requests that failed, which are not in the trace. They may have changed something.
    pub failed: u64,
    /// Requests that had not ended, which are not in the trace.
    pub unfinished: u64,
    /// Requests that came after the most distinct pages had been seen.
    pub missed: u64,
}

impl Recording {
    /// Begins a recording. `clock` tells nanoseconds since 1970; `tell` says what happens before the end.
    ///
    /// # Errors
    /// A file exists already or cannot be made.
    pub fn start(options: Options, clock: Clock, tell: Tell) -> Result<Self, ServeError> {
        for path in [Some(&options.trace), options.pages.as_ref()]
            .into_iter()
            .flatten()
        {
            if path.symlink_metadata().is_ok() {
                return Err(ServeError::Usage(format!(
                    "{} exists already: name another file, or remove it",
                    path.display()
                )));
            }
        }
        let files = Files::create(&options)?;
        let started = files.start();
        let (sender, writer) =
            started.map_err(ServeError::file("start a thread for", &options.trace))?;
        Ok(Recording {
            options,
            clock,
            tell,
            state: Mutex::new(RecordingState {
                order: Order::default(),
                values: Values::default(),
                sent_values: 0,
                sender: Some(sender),
                over: None,
                failed: 0,
                missed: 0,
            }),
            written: Condvar::new(),
            writer: Mutex::new(Some(writer)),
        })
    }

    pub fn trace(&self) -> &Path {
        &self.options.trace
    }

    /// Where `compare` looks for the pages of the trace, if they are written elsewhere.
    pub fn pages_expected_at(&self) -> Option<PathBuf> {
        let expected = Pages::beside(&self.options.trace);
        let pages = self.options.pages.as_ref()?;
        let file = |path: &PathBuf| std::path::absolute(path).ok();
        (file(pages) != file(&expected)).then_some(expected)
    }

    fn state(&self) -> MutexGuard<'_, RecordingState> {
        self.state.lock()
    }

    /// Ends the recording and completes its files. What has not ended by now is not in them.
    ///
    /// # Errors
    /// The files cannot be written, there is nothing to write, or it was finished before.
    pub fn finish(&self) -> Result<Report, ServeError> {
        let mut state = self.state();
        let unfinished = match state.over {
            None => {
                let (entries, unfinished) = state.order.end();
                for (time, entries) in entries {
                    self.write_down(&mut state, time, entries);
                }
                unfinished
            }
            Some(_) => 0,
        };
        state.over.get_or_insert(Over::Finished);
        state.sender = None;
        let mut report = Report {
            records: 0,
            values: state.sent_values,
            failed: state.failed,
            unfinished,
            missed: state.missed,
        };
        drop(state);
        let mut writer = self.writer.lock();
        let ended = writer.take().map(JoinHandle::join);
        report.records = match ended {
            Some(Ok(ended)) => ended?,
            _ => return Err(self.refused("its writer stopped before")),
        };
        match report.records {
            0 => Err(self.refused("no request was recorded, so there is no trace")),
            _ => Ok(report),
        }
    }

    fn refused(&self, why: &str) -> ServeError {
        ServeError::Refused(format!("{}: {why}", self.options.trace.display()))
    }

    /// Nothing more is recorded, from the request at hand on.
    fn end(&self, state: &mut RecordingState, over: Over, why: &str) {
        state.over = Some(over);
        state.sender = None;
        state.missed += 1 + state.order.end().0.len() as u64;
        (self.tell)(&format!(
            "{}: {why}; nothing more is recorded, the volume goes on",
            self.options.trace.display()
        ));
        self.written.notify_all();
    }

    /// Numbers the values of what a request did and hands it to the writer, which may have to be waited for.
    fn write_down(&self, state: &mut RecordingState, time: u64, entries: Vec<PendingRecord>) {
        if state.over.is_some() {
            state.missed += u64::from(!entries.is_empty());
            return;
        }
        for entry in entries {
            let known = state.values.len();
            let mut values = Vec::with_capacity(entry.digests.len());
            let numbered = state.values.intern_all(&entry.digests, &mut values);
            if numbered.is_err() || state.values.len() > self.options.most_values {
                let most = self.options.most_values;
                let why = format!("{most} distinct pages, the most there may be, have been seen");
                return self.end(state, Over::TooManyValues, &why);
            }
            let mut sent = state.send_new_pages(&entry, &values, known);
            sent &= state.send(Message::Record {
                time,
                entry: entry.head,
                values,
            });
            if !sent {
                return self.end(state, Over::Unwritable, "it cannot be written");
            }
            state.sent_values = state.values.len();
        }
    }
}

impl RecordingState {
    /// Whether the writer still takes messages.
    fn send(&self, message: Message) -> bool {
        let sender = self.sender.as_ref();
        sender.is_some_and(|sender| sender.send(message).is_ok())
    }

    /// Sends the pages whose values are not below `known`, in their order.
    fn send_new_pages(&self, entry: &PendingRecord, values: &[u32], known: u32) -> bool {
        if entry.content == Content::Unwanted {
            return true;
        }
        let mut next = known;
        let mut piece = Vec::new();
        for (index, &value) in values.iter().enumerate() {
            if value != next {
                continue;
            }
            next += 1;
            piece.extend_from_slice(entry.page(index));
            if piece.len() == PIECE * PAGE_BYTES
                && !self.send(Message::Pages(std::mem::take(&mut piece)))
            {
                return false;
            }
        }
        piece.is_empty() || self.send(Message::Pages(piece))
    }
}

impl Log for Recording {
    fn begin(&self) -> u64 {
        let full =
            |state: &mut RecordingState| state.over.is_none() && state.order.held() > MOST_HELD;
        let mut state = self.state();
        self.written.wait_while(&mut state, full);
        match state.over {
            None => state.order.begin((self.clock)()),
            // Nothing is made of it.
            Some(_) => 0,
        }
    }

    fn end(&self, request: u64, done: Option<&[Done<'_>]>) {
        let over = self.state().over.is_some();
        let entries = match done {
            Some(done) if !over => order::entries(done, self.options.pages.is_some()),
            _ => Vec::new(),
        };
        let mut state = self.state();
        if state.over.is_some() {
            state.missed += u64::from(done.is_some_and(|done| !done.is_empty()));
            return;
        }
        state.failed += u64::from(done.is_none());
        for (time, entries) in state.order.end_of(request, entries) {
            self.write_down(&mut state, time, entries);
        }
        self.written.notify_all();
    }
}
