//! Requests that take long, off the threads that serve: else a few of them would hold up all others.
//!
//! Flushes have one thread, and those that wait share the next one. Other long requests have a thread each, which the
//! kernel keeps few: it sends no two of a file at once.
//!
//! Invariant: once this is dropped, no thread of it uses the volume.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use flashlore_volume::disk::BlockDevice;
use fuser::ReplyEmpty;
use parking_lot::Mutex;

use crate::errno::of_disk;

/// Where requests that take long go.
pub(crate) struct Later {
    /// Nothing at the end.
    flushes: Option<Sender<ReplyEmpty>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Later {
    /// Flushes go to `device`.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub fn start(device: Arc<dyn BlockDevice>) -> io::Result<Self> {
        let (flushes, waiting) = channel();
        let run = move || flush_all(&*device, &waiting);
        let thread = thread::Builder::new()
            .name("fuse flush".into())
            .spawn(run)?;
        Ok(Later {
            flushes: Some(flushes),
            threads: Mutex::new(vec![thread]),
        })
    }

    /// Answers once everything that was written before is durable.
    pub fn flush(&self, reply: ReplyEmpty) {
        if let Some(flushes) = &self.flushes {
            // The thread lives as long as this. A reply that is dropped is an error.
            let _ = flushes.send(reply);
        }
    }

    /// Does something that takes long. It holds its reply, which is an error if there is no thread to be had.
    pub fn run(&self, act: impl FnOnce() + Send + 'static) {
        let Ok(thread) = thread::Builder::new().name("fuse long".into()).spawn(act) else {
            return;
        };
        let mut threads = self.threads.lock();
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread);
    }
}

impl Drop for Later {
    fn drop(&mut self) {
        self.flushes = None;
        for thread in self.threads.get_mut().drain(..) {
            // One that panicked has ended too.
            let _ = thread.join();
        }
    }
}

/// Flushes until nobody can ask any more. A flush begins after all whom it answers have asked.
fn flush_all(device: &dyn BlockDevice, waiting: &Receiver<ReplyEmpty>) {
    while let Ok(first) = waiting.recv() {
        let covered: Vec<ReplyEmpty> = std::iter::once(first).chain(waiting.try_iter()).collect();
        let flushed = device.flush().map_err(|e| of_disk(&e));
        for reply in covered {
            match flushed {
                Ok(()) => reply.ok(),
                Err(errno) => reply.error(errno),
            }
        }
    }
}
