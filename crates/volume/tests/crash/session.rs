//! One power-on: open, verify, operate, until the power is cut.
//!
//! Invariant: while the volume is open and the power on, it holds the oracle's newest state.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use flashlore_content::PAGE_BYTES;
use flashlore_medium::{Cause, CrashMedium, Operation};
use flashlore_volume::nand::NandError;
use flashlore_volume::{Volume, VolumeError};

use crate::crash::history::Op;
use crate::crash::oracle::Oracle;
use crate::crash::pages::{Value, page, value_of};

/// What a volume did while it was open.
#[derive(Debug, Clone, Copy, Default)]
pub struct Work {
    pub collections: u64,
    pub checkpoints: u64,
    pub evictions: u64,
    pub shares: u64,
    pub refusals: u64,
}

/// What goes wrong with the medium of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    Never,
    /// The power is cut at this call of the medium, counted from 1 since the power came on.
    Cut(u64),
    /// This sync, counted from 1 since the power came on, fails.
    FailedSync(u64),
}

/// Why a session ended before its operations did.
#[derive(Debug)]
pub enum Stop {
    /// The power was cut.
    PowerCut,
    /// A sync failed and the volume said so.
    StoreFailed,
    /// The volume broke its promise: how.
    Broken(String),
}

/// A volume on a medium.
pub struct Session {
    medium: Arc<CrashMedium>,
    trouble: Trouble,
    volume: Option<Volume<Arc<CrashMedium>>>,
    checkpoint_at_open: u64,
    pub oracle: Oracle,
    /// The epoch of the last opening that was acknowledged.
    pub epoch: u32,
    pub work: Work,
}

impl Session {
    /// Nothing is opened yet.
    pub fn new(medium: Arc<CrashMedium>, oracle: Oracle, epoch: u32, trouble: Trouble) -> Self {
        let mut session = Session {
            medium,
            trouble,
            volume: None,
            checkpoint_at_open: 0,
            oracle,
            epoch,
            work: Work::default(),
        };
        match trouble {
            Trouble::Never => {}
            Trouble::Cut(call) => session.cut_at(call),
            Trouble::FailedSync(number) => session.medium.fail_sync(number),
        }
        session
    }

    /// Cuts the power at a call.
    pub fn cut_at(&mut self, call: u64) {
        self.trouble = Trouble::Cut(call);
        self.medium.cut_at(call);
    }

    pub fn medium(&self) -> &CrashMedium {
        &self.medium
    }

    /// Opens and does all the operations; at the end everything is verified again.
    pub fn run(&mut self, ops: &[Op]) -> Result<(), Stop> {
        self.open()?;
        self.operate(ops)
    }

    /// Does operations on the open volume; at the end everything is verified.
    pub fn operate(&mut self, ops: &[Op]) -> Result<(), Stop> {
        for (index, op) in ops.iter().enumerate() {
            let before = self.oracle.newest().to_vec();
            let done = self.apply(op).or_else(|stop| match stop {
                Stop::StoreFailed => Err(self.refuses(&before)?),
                other => Err(other),
            });
            done.map_err(|stop| match stop {
                Stop::Broken(how) => Stop::Broken(format!("operation {index}, {op:?}: {how}")),
                other => other,
            })?;
        }
        self.verify()
    }

    /// Another process opens what the first one left, the medium keeps its cache, and does
    /// operations.
    pub fn restart(&mut self, ops: &[Op]) -> Result<(), Stop> {
        self.volume = None;
        self.run(ops)
    }

    /// After a failed sync an open volume acknowledges nothing any more, but can be read: it holds
    /// its state before or after the operation that failed.
    fn refuses(&mut self, before: &[Value]) -> Result<Stop, Stop> {
        let Some(volume) = self.volume.as_mut() else {
            return Ok(Stop::StoreFailed);
        };
        if guarded(|| volume.flush())?.is_ok() {
            return broken("a flush succeeds after one that failed".to_owned());
        }
        if guarded(|| volume.write(0, 0, &page(1)))?.is_ok() {
            return broken("a write succeeds after a flush that failed".to_owned());
        }
        let found = read_all(volume)?;
        if found != before && found != self.oracle.newest() {
            return broken(format!(
                "after a failed flush it holds {found:?}, expected {before:?}"
            ));
        }
        Ok(Stop::StoreFailed)
    }

    /// Opens and verifies: what is found must be allowed.
    pub fn open(&mut self) -> Result<(), Stop> {
        let medium = Arc::clone(&self.medium);
        let opened = guarded(|| Volume::open(medium))?;
        let (mut volume, recovery) = self.done(opened)?;
        self.alive()?;
        if recovery.epoch <= self.epoch {
            let (found, before) = (recovery.epoch, self.epoch);
            return broken(format!("epoch {found} was opened after epoch {before}"));
        }
        self.epoch = recovery.epoch;
        self.checkpoint_at_open = volume.status().checkpoint;
        guarded(|| volume.check())?.map_err(|how| Stop::Broken(format!("check() says: {how}")))?;
        let state = read_all(&mut volume)?;
        self.oracle.accept(state).map_err(Stop::Broken)?;
        self.volume = Some(volume);
        Ok(())
    }

    fn apply(&mut self, op: &Op) -> Result<(), Stop> {
        match *op {
            Op::Write { lpn, value, now } => self.write(lpn, value, now)?,
            Op::Fua { lpn, value, now } => {
                self.write(lpn, value, now)?;
                self.alive()?;
                self.flush()?;
            }
            Op::Trim { lpn } => {
                self.oracle.set(lpn, 0);
                let done = guarded(|| self.volume().trim(lpn))?;
                self.done(done)?;
            }
            Op::Read { lpn } => self.read(lpn)?,
            Op::Flush => self.flush()?,
            Op::Checkpoint => {
                let done = guarded(|| self.volume().checkpoint())?;
                self.acknowledged(done)?;
            }
            Op::Reopen => {
                self.count();
                let volume = self.volume.take().expect("the volume is open");
                let done = guarded(|| volume.close())?;
                self.done(done)?;
                self.oracle.acknowledge();
                self.alive()?;
                self.open()?;
            }
            Op::Kill => {
                self.count();
                self.volume = None;
                self.open()?;
            }
        }
        self.alive()
    }

    fn write(&mut self, lpn: u32, value: Value, now: u64) -> Result<(), Stop> {
        self.oracle.set(lpn, value);
        let done = guarded(|| self.volume().write(now, lpn, &page(value)))?;
        if let Err(VolumeError::NoSpace { stored, most }) = done {
            if stored < most {
                return broken(format!("refused although {stored} of {most} are stored"));
            }
            self.oracle.withdraw();
            self.work.refusals += 1;
            return Ok(());
        }
        self.done(done)
    }

    fn read(&mut self, lpn: u32) -> Result<(), Stop> {
        let mut bytes = [1; PAGE_BYTES];
        let done = guarded(|| self.volume().read(lpn, &mut bytes))?;
        self.done(done)?;
        let (found, expected) = (value_of(&bytes), self.oracle.newest()[lpn as usize]);
        if found != expected {
            return broken(format!("read value {found}, expected {expected}"));
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Stop> {
        let done = guarded(|| self.volume().flush())?;
        self.acknowledged(done)
    }

    /// A flush or checkpoint came back.
    fn acknowledged(&mut self, done: Result<(), VolumeError>) -> Result<(), Stop> {
        self.done(done)?;
        self.oracle.acknowledge();
        let status = self.volume().status();
        if status.durable != status.sequence {
            let (durable, all) = (status.durable, status.sequence);
            return broken(format!("durable up to event {durable} of {all}"));
        }
        Ok(())
    }

    /// The open volume holds the newest state, and its tables are consistent.
    fn verify(&mut self) -> Result<(), Stop> {
        let volume = self.volume();
        guarded(|| volume.check())?.map_err(|how| Stop::Broken(format!("check() says: {how}")))?;
        let found = read_all(volume)?;
        if found != self.oracle.newest() {
            let expected = self.oracle.newest();
            return broken(format!("the volume holds {found:?}, expected {expected:?}"));
        }
        Ok(())
    }

    /// Adds up what the open volume did; once for each opening.
    pub fn count(&mut self) {
        let before = self.checkpoint_at_open;
        let volume = self.volume();
        let status = volume.status();
        let collections = volume.counters().victims;
        let dedup = volume.dedup_counters();
        self.checkpoint_at_open = status.checkpoint;
        self.work.collections += collections;
        self.work.checkpoints += status.checkpoint - before;
        if let Some(dedup) = dedup {
            self.work.evictions += dedup.evictions;
            self.work.shares += dedup.hits;
        }
    }

    fn volume(&mut self) -> &mut Volume<Arc<CrashMedium>> {
        self.volume.as_mut().expect("the volume is open")
    }

    fn is_off(&self) -> bool {
        matches!(self.trouble, Trouble::Cut(call) if call <= self.medium.calls())
    }

    fn alive(&self) -> Result<(), Stop> {
        if self.is_off() {
            return Err(Stop::PowerCut);
        }
        Ok(())
    }

    /// An error is right only once the power is off or a sync has failed.
    fn done<T>(&self, done: Result<T, VolumeError>) -> Result<T, Stop> {
        done.map_err(|error| {
            if self.is_off() {
                Stop::PowerCut
            } else if is_failed_sync(&error) {
                Stop::StoreFailed
            } else {
                Stop::Broken(format!("it failed with the power on: {error}"))
            }
        })
    }
}

fn is_failed_sync(error: &VolumeError) -> bool {
    let (VolumeError::Medium(error) | VolumeError::Store(NandError::Medium(error))) = error else {
        return false;
    };
    error.operation == Operation::Sync && matches!(error.cause, Cause::Eio)
}

fn read_all(volume: &mut Volume<Arc<CrashMedium>>) -> Result<Vec<Value>, Stop> {
    let mut state = Vec::new();
    let mut bytes = [1; PAGE_BYTES];
    for lpn in 0..volume.exported() {
        match guarded(|| volume.read(lpn, &mut bytes))? {
            Ok(()) => state.push(value_of(&bytes)),
            Err(error) => return broken(format!("page {lpn} cannot be read: {error}")),
        }
    }
    Ok(state)
}

fn broken<T>(how: String) -> Result<T, Stop> {
    Err(Stop::Broken(how))
}

/// A panic is a broken promise too.
fn guarded<T>(action: impl FnOnce() -> T) -> Result<T, Stop> {
    catch_unwind(AssertUnwindSafe(action)).map_err(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied());
        Stop::Broken(format!("it panicked: {}", text.unwrap_or("no message")))
    })
}
