//! The thread that writes the files of a recording.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use flashlore_trace::{NativeFile, Op, PagesWriter, Record};

use super::Options;
use super::order::Head;
use crate::error::ServeError;

/// Messages that wait for the writer at most. Who sends one more waits.
pub(super) const QUEUE: usize = 64;

pub(super) enum Message {
    /// Distinct pages, in the order of their values.
    Pages(Vec<u8>),
    /// A record, whose new pages have been sent.
    Record {
        /// Nanoseconds since 1970.
        time: u64,
        entry: Head,
        /// One a page, if it has content.
        values: Vec<u32>,
    },
}

/// The thread that writes; it answers the number of records.
pub(super) type Writer = JoinHandle<Result<u64, ServeError>>;

/// The files of a recording. They have names once they are complete.
pub(super) struct Files {
    trace: NativeFile,
    /// With the name it will have.
    pages: Option<(PathBuf, PagesWriter)>,
    records: u64,
    /// The time of the first record.
    origin: u64,
}

impl Files {
    pub fn create(options: &Options) -> Result<Self, ServeError> {
        let pages = options.pages.as_ref().map(|path| {
            let writer = PagesWriter::create_quick(path)?;
            Ok::<_, ServeError>((path.clone(), writer))
        });
        Ok(Files {
            trace: NativeFile::create(&options.trace)?,
            pages: pages.transpose()?,
            records: 0,
            origin: 0,
        })
    }

    /// Starts the thread. It ends when the sender is dropped, or at the first failure.
    pub fn start(self) -> io::Result<(SyncSender<Message>, Writer)> {
        let (sender, receiver) = sync_channel(QUEUE);
        let thread = std::thread::Builder::new().name("recording".into());
        let writer = thread.spawn(move || self.run(&receiver))?;
        Ok((sender, writer))
    }

    fn run(mut self, receiver: &Receiver<Message>) -> Result<u64, ServeError> {
        for message in receiver {
            self.write(message)?;
        }
        if self.records == 0 {
            return Ok(0);
        }
        let named = match self.pages {
            Some((path, writer)) => {
                writer.finish()?;
                Some(path)
            }
            None => None,
        };
        let finished = self.trace.finish(self.origin);
        if finished.is_err()
            && let Some(pages) = named
        {
            // Best effort: pages without their trace are of no use.
            let _ = std::fs::remove_file(pages);
        }
        finished?;
        Ok(self.records)
    }

    fn write(&mut self, message: Message) -> Result<(), ServeError> {
        match message {
            Message::Pages(bytes) => {
                if let Some((_, writer)) = &mut self.pages {
                    let (pages, _) = bytes.as_chunks();
                    pages.iter().try_for_each(|page| writer.push(page))?;
                }
            }
            Message::Record {
                time,
                entry,
                values,
            } => {
                if self.records == 0 {
                    self.origin = time;
                }
                self.records += 1;
                let has_content = matches!(entry.op, Op::Read | Op::Write);
                self.trace.push(&Record {
                    time_ns: time - self.origin,
                    device: 0,
                    op: entry.op,
                    offset: entry.offset,
                    length: entry.length,
                    content: has_content.then_some(&values),
                    delta_ratios: None,
                })?;
            }
        }
        Ok(())
    }
}
