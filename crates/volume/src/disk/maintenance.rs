//! What a volume does by itself, in small steps beside its users: it goes on with collections while nobody writes,
//! syncs before the next block needs it, writes tables and takes checkpoints before one is due, gives the space of
//! free blocks back, looks at what an opening left for later.
//!
//! A step holds the lock for as long as a few pages take; the medium is synced without it. All of it could be left to
//! the next write or flush, which would only have to wait for it.
//!
//! Invariant: one thread a volume; it ends with its [`Maintainer`], or once the volume is closed or broken.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::device::{BlockDevice, DiskError};
use super::live::Disk;

/// Pages of tables that are written under one hold of the lock.
const CLEANED_AT_ONCE: u32 = 16;
/// With so few pages left to write a checkpoint may begin.
const FEW_DIRTY: u32 = 32;
/// Blocks whose space is given back under one hold of the lock.
const DISCARDED_AT_ONCE: usize = 4;
/// Objects that are entered into the fingerprint index, and packed pages that are looked at, under one hold of the lock.
const SEEN_AT_ONCE: u32 = 1 << 9;
/// How long it goes on looking before something else may be done.
const TURN: Duration = Duration::from_millis(10);
/// Where there are requests it rests so many times as long as it looked.
const RESTS: u32 = 3;

/// Does what a volume has to do, until it is dropped.
pub struct Maintainer {
    stop: Box<dyn Fn() + Send + Sync>,
    thread: Option<JoinHandle<()>>,
}

impl Maintainer {
    /// Begins.
    ///
    /// # Errors
    /// There can be no more threads.
    pub fn start(disk: &Arc<Disk>) -> std::io::Result<Maintainer> {
        let (worked, stopped) = (Arc::clone(disk), Arc::clone(disk));
        disk.wake.set_heard(true);
        if let Ok(chores) = disk.with(|volume| volume.chores()) {
            disk.wake.after_change(chores);
        }
        let thread = std::thread::Builder::new()
            .name("maintenance".to_owned())
            // Whoever uses a volume that failed is told so.
            .spawn(move || {
                while let Ok(true) = worked.maintain() {}
                worked.wake.set_heard(false);
            })?;
        Ok(Maintainer {
            stop: Box::new(move || stopped.wake.stop()),
            thread: Some(thread),
        })
    }
}

impl Drop for Maintainer {
    fn drop(&mut self) {
        (self.stop)();
        if let Some(thread) = self.thread.take() {
            // If it panicked, the lock of the volume tells everybody.
            let _ = thread.join();
        }
    }
}

impl Disk {
    /// Waits for something to do, and does it; false once stopped.
    fn maintain(&self) -> Result<bool, DiskError> {
        let before = self.wake.changes();
        let Some(due) = self.wake.wait() else {
            return Ok(false);
        };
        if due.flush {
            self.flush()?;
        }
        if due.checkpoint {
            self.checkpoint()?;
        }
        if due.discard {
            while self.with(|volume| volume.discard_step(DISCARDED_AT_ONCE))?? {}
        }
        if due.rest {
            self.look_at_some()?;
        }
        if due.collection {
            self.collect_while_idle(before)?;
        }
        let left = self.with(|volume| volume.chores())?;
        Ok(self.wake.goes_on(left))
    }

    /// A turn of the look at what an opening left for later, after which there may be something else to do. Requests that
    /// come meanwhile have most of the time.
    fn look_at_some(&self) -> Result<(), DiskError> {
        let began = Instant::now();
        while began.elapsed() < TURN && !self.wake.is_stopped() {
            let step = Instant::now();
            if !self.look_at_rest(SEEN_AT_ONCE)? {
                break;
            }
            if self.wake.was_used() {
                std::thread::sleep(step.elapsed() * RESTS);
            }
        }
        Ok(())
    }

    /// Goes on with collections as long as nobody changes the volume. There were so many changes before.
    fn collect_while_idle(&self, before: u64) -> Result<(), DiskError> {
        while self.wake.changes() == before && self.collect_step()? {}
        Ok(())
    }

    /// Takes a checkpoint while the volume is used: most of the tables are written before it begins.
    ///
    /// # Errors
    /// The store failed: the volume is read-only from now on.
    pub fn checkpoint(&self) -> Result<(), DiskError> {
        // Who keeps changing pages faster than they are written does not keep it from beginning.
        let mut most = 2 * self.with(|volume| volume.dirty_table_pages())?;
        while most > 0 {
            let wrote = self.with(|volume| match volume.dirty_table_pages() {
                few if few <= FEW_DIRTY => Ok(0),
                _ => volume.clean_tables(CLEANED_AT_ONCE),
            })??;
            most = if wrote == 0 {
                0
            } else {
                most.saturating_sub(wrote)
            };
        }
        self.commit.run_alone(|| {
            let open = self.with(|volume| volume.begin_checkpoint())??;
            let synced = self.medium.sync();
            self.with(|volume| volume.write_root(&open, synced))??;
            let synced = self.medium.sync();
            Ok(self.with(|volume| volume.end_checkpoint(open, synced))??)
        })
    }
}
