//! One power-on: open, verify, operate, until the power is cut.
//!
//! Invariant: while the volume is open and the power on, it holds the oracle's newest state.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use flashlore_content::PAGE_BYTES;
use flashlore_flash::Lpn;
use flashlore_ftl::policies::options::SimilarOptions;
use flashlore_medium::{
    Cause, CrashMedium, Faults, FaultyMedium, Medium, Operation, ReadFault, When,
};
use flashlore_volume::NandError;
use flashlore_volume::format::Areas;
use flashlore_volume::{
    MemoryShares, OpenCheckpoint, OpenFlush, Purged, Recovery, RecoveryBounds, Status, Volume,
    VolumeError, check, load,
};

use crate::crash::history::{Op, Setup};
use crate::crash::oracle::{Mark, Oracle, Told};
use crate::crash::pages::{
    PURGED, UNREADABLE, Value, agrees, is_purged, is_unsure, page, value_of,
};
use crate::support::loaded::newest_epoch;
use crate::support::verdict::{judge_findings, judge_refusal};

/// Instants of a history that are compared each time, besides the ends and the snapshots.
const MOST_INSTANTS: usize = 3;

/// What a volume did while it was open.
#[derive(Debug, Clone, Copy, Default)]
pub struct Work {
    pub collections: u64,
    pub checkpoints: u64,
    pub evictions: u64,
    /// Pages of the tables that were written since others needed their room.
    pub written_for_room: u64,
    pub shares: u64,
    pub refusals: u64,
    /// Rewinds that changed something, and instants that were compared.
    pub returns: u64,
    pub instants: u64,
    pub snapshots: u64,
    pub purges: u64,
    /// Values stored as deltas, and compressed by themselves.
    pub deltas: u64,
    /// Deltas from pages that were found by similarity.
    pub similar: u64,
    pub compressed: u64,
    /// Values materialized, and packed anew by collection.
    pub merged: u64,
    pub repacked: u64,
    /// Steps of collection between operations.
    pub steps: u64,
}

/// What goes wrong with the medium of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    Never,
    /// The power is cut at this call of the medium, counted from 1 since the power came on.
    Cut(u64),
    /// This sync, counted from 1 since the power came on, fails.
    FailedSync(u64),
    /// This read, counted from 1 since the power came on, fails with an input/output error.
    FailedRead(u64),
}

/// Why a session ended before its operations did.
#[derive(Debug)]
pub enum Stop {
    /// The power was cut.
    PowerCut,
    /// A sync failed and the volume said so.
    StoreFailed,
    /// A read of the opening failed, and the volume was not opened.
    ReadFailed,
    /// The medium is damaged, and the volume was not opened.
    Refused,
    /// The volume broke its promise: how.
    Broken(String),
}

/// A flush whose sync takes long.
struct SlowFlush {
    open: OpenFlush,
    /// Operations that are still done during it.
    left: u32,
    /// What it makes sure.
    mark: Mark,
}

/// A checkpoint whose syncs take long.
struct SlowCheckpoint {
    open: OpenCheckpoint,
    /// Operations done during each sync.
    during: u32,
    /// Operations that are still done during this one.
    left: u32,
    /// Whether it is the second one.
    has_root: bool,
    /// What it makes sure.
    mark: Mark,
}

/// A volume on a medium.
pub struct Session {
    medium: Arc<CrashMedium>,
    trouble: Trouble,
    volume: Option<Volume>,
    checkpoint_at_open: u64,
    /// The host's clock.
    now: u64,
    /// How bases are chosen, if by similarity.
    similar: Option<SimilarOptions>,
    /// Memory for pages of the tables.
    memory: MemoryShares,
    bounds: RecoveryBounds,
    slow: Option<SlowFlush>,
    slow_checkpoint: Option<SlowCheckpoint>,
    pub oracle: Oracle,
    /// The epoch of the last opening that was acknowledged.
    pub epoch: u32,
    pub work: Work,
    /// Reads of the last opening.
    pub reads: u64,
    /// Present pages that the last opening of a damaged medium found unreadable, and whether old ones were.
    pub unreadable: (usize, bool),
}

/// The tables of a volume are consistent.
fn is_sound(volume: &Volume) -> Result<(), Stop> {
    guarded(|| volume.check())?.map_err(|how| Stop::Broken(format!("check() says: {how}")))
}

impl Session {
    /// Nothing is opened yet.
    pub fn new(medium: Arc<CrashMedium>, oracle: Oracle, epoch: u32, trouble: Trouble) -> Self {
        let mut session = Session {
            medium,
            trouble,
            volume: None,
            checkpoint_at_open: 0,
            now: 0,
            similar: None,
            memory: MemoryShares::default(),
            bounds: RecoveryBounds::default(),
            slow: None,
            slow_checkpoint: None,
            oracle,
            epoch,
            work: Work::default(),
            reads: 0,
            unreadable: (0, false),
        };
        match trouble {
            Trouble::Never => {}
            Trouble::Cut(call) => session.cut_at(call),
            Trouble::FailedSync(number) => session.medium.fail_sync(number),
            Trouble::FailedRead(_) => {}
        }
        session
    }

    /// The volume is one of these.
    pub fn of(mut self, setup: &Setup) -> Self {
        self.similar = setup.similar();
        self.memory = setup.memory();
        self.bounds = setup.bounds;
        self
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
            let sequence = self.status().sequence;
            self.oracle.tell(sequence);
        }
        self.verify()
    }

    /// Another process opens what the first one left, the medium keeps its cache, and does
    /// operations.
    pub fn restart(&mut self, ops: &[Op]) -> Result<(), Stop> {
        self.forget_slow();
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
        if guarded(|| volume.write(0, Lpn(0), &page(1)))?.is_ok() {
            return broken("a write succeeds after a flush that failed".to_owned());
        }
        let found = read_all(volume)?;
        if !agree(before, &found) && !agree(self.oracle.newest(), &found) {
            return broken(format!(
                "after a failed flush it holds {found:?}, expected {before:?}"
            ));
        }
        Ok(Stop::StoreFailed)
    }

    /// Opens and verifies: what is found must be allowed.
    pub fn open(&mut self) -> Result<(), Stop> {
        // Reads change nothing: no power cut is met in between.
        let checked = match self.oracle.was_damaged() {
            true => Some(guarded(|| check(Arc::clone(&self.medium), true))?),
            false => None,
        };
        let calls = self.medium.calls();
        let opened = self.open_volume()?;
        let is_refused = matches!(&opened, Err(error) if !self.is_off() && !is_failed_sync(error));
        if let (true, Err(error), Some(checked)) =
            (self.oracle.is_damaged() && is_refused, &opened, &checked)
        {
            judge_refusal(error, checked).map_err(Stop::Broken)?;
            return match self.may_have_written(calls) {
                true => Err(Stop::Refused),
                false => broken(format!("refused after the medium was changed: {error}")),
            };
        }
        let (mut volume, recovery) = self.done(opened)?;
        self.alive()?;
        if recovery.epoch <= self.epoch {
            self.may_be_opened_again(recovery.epoch)?;
        }
        self.epoch = recovery.epoch;
        self.checkpoint_at_open = volume.status().checkpoint;
        if let Some(options) = self.similar {
            volume.find_similar_bases(options);
        }
        volume.set_bounds(self.bounds);
        let sound = self.unless_off(guarded(|| volume.check()))?;
        let has_lost_tables = volume.table_failures() > 0 && self.oracle.was_damaged();
        if let (Err(how), false) = (sound, has_lost_tables) {
            return broken(format!("check() says: {how}"));
        }
        let state = self.unless_off(read_all(&mut volume))?;
        let told = self.unless_off(told(&mut volume, &self.oracle))?;
        self.work.instants += told.as_ref().map_or(0, |t| t.instants.len() as u64);
        let sequence = volume.status().sequence;
        self.oracle
            .accept(&state, told.as_ref(), sequence)
            .map_err(Stop::Broken)?;
        if let Some(checked) = checked {
            let bad = unreadable(&state);
            let instants = told.iter().flat_map(|told| &told.instants);
            let old_is_bad = instants
                .clone()
                .any(|(_, state)| !unreadable(state).is_empty());
            self.unreadable = (bad.len(), old_is_bad);
            guarded(|| judge_findings(&mut volume, checked, &bad, old_is_bad))?
                .map_err(Stop::Broken)?;
        }
        // What was to be written to what the pages hold that cannot be read would be refused.
        if has_lost_tables {
            return Err(Stop::Refused);
        }
        self.volume = Some(volume);
        Ok(())
    }

    /// An epoch is opened twice only if the superblocks that knew it are damaged, and nothing on the medium was written
    /// in it: no number is given twice.
    fn may_be_opened_again(&self, epoch: u32) -> Result<(), Stop> {
        let before = self.epoch;
        let newest = newest_epoch(&*self.medium).map_err(|error| {
            Stop::Broken(format!("epoch {epoch} was opened after {before}: {error}"))
        })?;
        match self.oracle.is_damaged() && newest < epoch {
            true => Ok(()),
            false => broken(format!(
                "epoch {epoch} was opened after epoch {before}, and epoch {newest} wrote to the medium"
            )),
        }
    }

    /// Opens the volume, once reads fail as they are to.
    fn open_volume(&mut self) -> Result<Result<(Volume, Recovery), VolumeError>, Stop> {
        let reads = match self.trouble {
            Trouble::FailedRead(number) => Some(ReadFault::Calls(When::Only(number))),
            _ => None,
        };
        let is_to_fail = reads.is_some();
        let faults = Faults {
            reads,
            ..Faults::default()
        };
        let medium = Arc::new(FaultyMedium::new(Arc::clone(&self.medium), faults));
        let calls = self.medium.calls();
        let before = self.last_checkpoint();
        let opened = guarded(|| Volume::open_within(Arc::clone(&medium), self.memory))?;
        self.reads = medium.reads();
        medium.set_faults(Faults::default());
        let Err(error) = &opened else {
            // A checkpoint may move pages, and what cannot be read then stays where it is.
            let wrote_tables = opened
                .as_ref()
                .is_ok_and(|(volume, _)| Some(volume.status().checkpoint) != before);
            return match self.trouble {
                Trouble::FailedRead(read) if read <= self.reads && !wrote_tables => {
                    broken(format!("read {read} of an opening failed, and it opened"))
                }
                _ => Ok(opened),
            };
        };
        if !is_to_fail || !is_failed(error, Operation::Read) {
            return Ok(opened);
        }
        match self.may_have_written(calls) || self.has_opened_an_epoch() {
            true => Err(Stop::ReadFailed),
            false => broken(format!(
                "a read failed after the medium was changed: {error}"
            )),
        }
    }

    /// Whether an opening that ended early did no more since so many calls than it may: sync what others wrote; and where there
    /// is no room in memory, let pages of its tables go to where nothing lies.
    fn may_have_written(&self, calls: u64) -> bool {
        self.medium.calls() <= calls + 1 || self.memory.tables == 0
    }

    /// The last checkpoint on the medium.
    fn last_checkpoint(&self) -> Option<u64> {
        let superblock = load::superblock(&*self.medium).ok()?;
        let areas = Areas::at(&superblock.identity, superblock.metadata).ok()?;
        let root = load::root(&*self.medium, &superblock.identity, &areas).ok()?;
        Some(root.checkpoint)
    }

    /// Whether all that an opening needs was read: what it read since was for a checkpoint.
    fn has_opened_an_epoch(&self) -> bool {
        load::superblock(&*self.medium).is_ok_and(|found| found.epoch > self.epoch)
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
                let (now, stamp) = (self.now, self.next_stamp());
                self.oracle.set(stamp, lpn, 0);
                let done = guarded(|| self.volume().trim(now, lpn))?;
                self.unless_refused(done)?;
            }
            Op::Snapshot => {
                let (now, stamp) = (self.now, self.next_stamp());
                self.oracle.remember(stamp, |moment| {
                    moment.snapshots.insert(stamp);
                });
                let done = guarded(|| self.volume().snapshot_as(now, None, &name_of(stamp)))?;
                self.work.snapshots += 1;
                self.unless_refused(done)?;
            }
            Op::DeleteSnapshot { pick } => self.delete_snapshot(pick)?,
            Op::Rewind { pick } => self.rewind_to(pick)?,
            Op::Forget { pick } => self.forget(pick)?,
            Op::Purge { first: 0, end } if end >= self.volume().exported() => self.purge_all()?,
            Op::Purge { first, end } => {
                let (now, stamp) = (self.now, self.next_stamp());
                self.oracle.purge(stamp, first..end);
                let erases = first.is_multiple_of(3);
                let done = guarded(|| match erases {
                    true => self.volume().purge_and_erase(now, Lpn(first)..Lpn(end)),
                    false => self.volume().purge(now, Lpn(first)..Lpn(end)),
                })?;
                self.work.purges += 1;
                // Without room for the copies it is a purge all the same.
                let done = match done {
                    Err(VolumeError::NoSpace { .. } | VolumeError::Held { .. }) if erases => {
                        Ok(Purged::default())
                    }
                    done => done,
                };
                self.unless_refused(done)?;
            }
            Op::PurgeAll => self.purge_all()?,
            Op::Mark => self.mark()?,
            Op::Read { lpn } => self.read(lpn)?,
            Op::Flush => self.flush()?,
            Op::SlowFlush { during } => {
                self.end_slow_flush()?;
                let opened = guarded(|| self.volume().begin_flush())?;
                self.slow = Some(SlowFlush {
                    open: self.done(opened)?,
                    left: during + 1,
                    mark: self.oracle.mark(),
                });
            }
            Op::SlowCheckpoint { during } => {
                while self.slow_checkpoint.is_some() {
                    self.go_on_with_checkpoint()?;
                }
                let opened = guarded(|| self.volume().begin_checkpoint())?;
                self.slow_checkpoint = Some(SlowCheckpoint {
                    open: self.done(opened)?,
                    during,
                    left: during + 1,
                    has_root: false,
                    mark: self.oracle.mark(),
                });
            }
            Op::Clean { pages } => {
                let done = guarded(|| self.volume().clean_tables(pages))?;
                self.done(done)?;
            }
            Op::Collect { steps } => {
                for _ in 0..steps {
                    let done = guarded(|| self.volume().collect_step())?;
                    self.work.steps += u64::from(self.done(done)?);
                }
            }
            Op::Checkpoint => {
                let done = guarded(|| self.volume().checkpoint())?;
                self.acknowledged(done)?;
            }
            Op::Reopen => {
                self.forget_slow();
                self.count();
                let volume = self.volume.take().expect("the volume is open");
                let done = guarded(|| volume.close())?;
                self.done(done)?;
                self.oracle.acknowledge();
                self.oracle.flushed();
                self.alive()?;
                self.open()?;
            }
            Op::Kill => {
                self.forget_slow();
                self.count();
                self.volume = None;
                self.open()?;
            }
        }
        self.alive()?;
        match &mut self.slow {
            Some(slow) if slow.left > 1 => slow.left -= 1,
            Some(_) => self.end_slow_flush()?,
            None => {}
        }
        self.alive()?;
        match &mut self.slow_checkpoint {
            Some(slow) if slow.left > 1 => slow.left -= 1,
            Some(_) => self.go_on_with_checkpoint()?,
            None => {}
        }
        self.alive()
    }

    /// The volume is closed, or its process has ended.
    fn forget_slow(&mut self) {
        self.slow = None;
        self.slow_checkpoint = None;
    }

    /// A sync of a slow checkpoint, if one is open, and what comes after it.
    fn go_on_with_checkpoint(&mut self) -> Result<(), Stop> {
        let Some(mut slow) = self.slow_checkpoint.take() else {
            return Ok(());
        };
        let synced = self.medium.sync();
        if slow.has_root {
            let done = guarded(|| self.volume().end_checkpoint(slow.open, synced))?;
            self.done(done)?;
            self.oracle.acknowledge_to(slow.mark);
            return Ok(());
        }
        let done = guarded(|| self.volume().write_root(&slow.open, synced))?;
        self.done(done)?;
        slow.has_root = true;
        slow.left = slow.during + 1;
        self.slow_checkpoint = Some(slow);
        Ok(())
    }

    /// The sync of a slow flush, if one is open, and its end.
    fn end_slow_flush(&mut self) -> Result<(), Stop> {
        let Some(slow) = self.slow.take() else {
            return Ok(());
        };
        let synced = self.medium.sync();
        let done = guarded(|| self.volume().end_flush(slow.open, synced))?;
        self.done(done)?;
        self.oracle.acknowledge_to(slow.mark);
        self.oracle.flushed();
        Ok(())
    }

    /// The stamp of the next event.
    fn next_stamp(&mut self) -> u64 {
        let now = self.now;
        match self.volume().history_status() {
            Ok(status) => now.max(status.newest + 1),
            Err(_) => now,
        }
    }

    /// The instants of the window with such a number, over again, of which everything is known.
    fn instant(&mut self, pick: u32) -> Option<u64> {
        let oldest = self.volume().history_status().ok()?.oldest;
        let moment = self.oracle.moment();
        let known = |contents: &[Value]| !contents.iter().copied().any(is_unsure);
        let past = moment.past.iter();
        let stamps = past.filter(|(stamp, contents)| *stamp >= oldest && known(contents));
        let stamps: Vec<u64> = stamps.map(|&(stamp, _)| stamp).collect();
        stamps.get(pick as usize % stamps.len().max(1)).copied()
    }

    fn rewind_to(&mut self, pick: u32) -> Result<(), Stop> {
        let Some(instant) = self.instant(pick) else {
            return Ok(());
        };
        let (now, stamp) = (self.now, self.next_stamp());
        let held = self.oracle.moment().at(instant);
        let lacks = held.iter().copied().any(is_purged);
        if lacks {
            let refused = guarded(|| self.volume().rewind_to(now, instant))?;
            if !matches!(refused, Err(VolumeError::Missing { .. })) {
                return broken(format!(
                    "it goes back to {instant}, which lacks what was purged"
                ));
            }
        }
        self.oracle.rewind_to(stamp, instant);
        let done = guarded(|| match lacks {
            true => self.volume().rewind_to_what_is_left(now, instant),
            false => self.volume().rewind_to(now, instant),
        })?;
        self.work.returns += u64::from(matches!(done, Ok(count) if count > 0));
        self.unless_refused(done)
    }

    fn forget(&mut self, pick: u32) -> Result<(), Stop> {
        let Some(instant) = self.instant(pick) else {
            return Ok(());
        };
        let (now, stamp) = (self.now, self.next_stamp());
        self.oracle.remember(stamp, |_| {});
        let done = guarded(|| self.volume().forget_before(now, instant))?;
        if matches!(done, Err(VolumeError::Protected { .. })) {
            self.oracle.withdraw();
            return Ok(());
        }
        self.done(done)?;
        self.oracle.forget(instant);
        Ok(())
    }

    /// Everything old goes, and of the snapshots those after which anything changed.
    fn purge_all(&mut self) -> Result<(), Stop> {
        let (now, stamp) = (self.now, self.next_stamp());
        let volume = self.volume();
        let pages = volume.exported();
        let Ok(status) = volume.history_status() else {
            return Ok(());
        };
        let lacks = |&instant: &u64| !volume.changed_since(instant).is_ok_and(|c| c.is_empty());
        let ended: Vec<u64> = status.snapshots.iter().copied().filter(lacks).collect();
        let last = volume
            .change_stamps()
            .ok()
            .and_then(|s| s.into_iter().max());
        self.oracle.remember(stamp, |moment| {
            moment.snapshots.retain(|instant| !ended.contains(instant));
        });
        let done = guarded(|| self.volume().purge(now, Lpn(0)..Lpn(pages)))?;
        self.work.purges += 1;
        if let Ok(purged) = &done {
            if purged.ended != ended {
                let found = &purged.ended;
                return broken(format!("a purge ended {found:?}, expected {ended:?}"));
            }
            self.oracle.forget(last.unwrap_or(0));
        }
        self.unless_refused(done)
    }

    fn mark(&mut self) -> Result<(), Stop> {
        let (now, stamp) = (self.now, self.next_stamp());
        let Ok(status) = self.volume().history_status() else {
            return Ok(());
        };
        self.oracle.remember(stamp, |moment| {
            moment.marks.push((status.newest, name_of(stamp)));
        });
        let done = guarded(|| self.volume().mark(now, &name_of(stamp)))?;
        self.unless_refused(done)
    }

    fn delete_snapshot(&mut self, pick: u32) -> Result<(), Stop> {
        let all: Vec<u64> = self.oracle.moment().snapshots.iter().copied().collect();
        let Some(&instant) = all.get(pick as usize % all.len().max(1)) else {
            return Ok(());
        };
        let (now, stamp) = (self.now, self.next_stamp());
        self.oracle.remember(stamp, |moment| {
            moment.snapshots.remove(&instant);
        });
        let done = guarded(|| self.volume().delete_snapshot(now, instant))?;
        if matches!(done, Ok(false)) {
            return broken(format!("there was no snapshot of {instant}"));
        }
        self.unless_refused(done)
    }

    /// A change of a volume without a history, or with a full one, may be refused.
    fn unless_refused<T>(&mut self, done: Result<T, VolumeError>) -> Result<(), Stop> {
        match done {
            Err(
                VolumeError::NoHistory
                | VolumeError::Held { .. }
                | VolumeError::HistoryFull { .. }
                | VolumeError::Protected { .. }
                | VolumeError::TooManySnapshots { .. },
            ) => {
                self.oracle.withdraw();
                self.work.refusals += 1;
                Ok(())
            }
            other => self.done(other).map(|_| ()),
        }
    }

    fn write(&mut self, lpn: Lpn, value: Value, now: u64) -> Result<(), Stop> {
        self.now = now;
        let stamp = self.next_stamp();
        self.oracle.set(stamp, lpn, value);
        let done = guarded(|| self.volume().write(now, lpn, &page(value)))?;
        if let Err(VolumeError::NoSpace { stored, most }) = done {
            if stored < most {
                return broken(format!("refused although {stored} of {most} are stored"));
            }
            self.oracle.withdraw();
            self.work.refusals += 1;
            return Ok(());
        }
        self.unless_refused(done)
    }

    fn read(&mut self, lpn: Lpn) -> Result<(), Stop> {
        let mut bytes = [1; PAGE_BYTES];
        let found = match guarded(|| self.volume().read(lpn, &mut bytes))? {
            Err(VolumeError::Unreadable { .. }) if !self.is_off() => UNREADABLE,
            done => self.done(done).map(|()| value_of(&bytes))?,
        };
        let expected = self.oracle.newest()[lpn.index()];
        if !agrees(expected, found) {
            return broken(format!("read value {found}, expected {expected}"));
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Stop> {
        let done = guarded(|| self.volume().flush())?;
        self.acknowledged(done)?;
        self.oracle.flushed();
        Ok(())
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
        let found = is_sound(self.volume()).and_then(|()| read_all(self.volume()));
        let found = self.unless_off(found)?;
        if !agree(self.oracle.newest(), &found) {
            let expected = self.oracle.newest();
            return broken(format!("the volume holds {found:?}, expected {expected:?}"));
        }
        // A look at old versions may write pages of tables to make room for others.
        let volume = self.volume.as_mut().expect("the volume is open");
        let told = told(volume, &self.oracle);
        if let Some(told) = self.unless_off(told)? {
            self.work.instants += told.instants.len() as u64;
            self.oracle.agrees(&told).map_err(Stop::Broken)?;
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
        let tables = self.volume().table_state();
        self.work.written_for_room += tables.written_for_room;
        self.work.checkpoints += status.checkpoint - before;
        let encoding = self.volume().encoding_counters();
        if let Some(e) = encoding {
            self.work.deltas += e.deltas;
            self.work.compressed += e.compressed;
            let merged = e.merges_gc + e.merges_room + e.merges_read_hot + e.merges_write_cold;
            self.work.merged += merged;
            self.work.repacked += e.repacked;
            self.work.similar += e.similar.taken;
        }
        if let Some(dedup) = dedup {
            self.work.evictions += dedup.evictions;
            self.work.shares += dedup.hits;
        }
    }

    /// The state of the open volume in numbers.
    pub fn status(&mut self) -> Status {
        self.volume().status()
    }

    /// Whether the volume that was opened last has collected blocks.
    pub fn has_collected(&self) -> bool {
        let volume = self.volume.as_ref();
        volume.is_some_and(|volume| volume.counters().victims > 0)
    }

    fn volume(&mut self) -> &mut Volume {
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

    /// What a look at the volume found, unless the power went meanwhile: to make room for a page of its tables it may write
    /// another.
    fn unless_off<T>(&self, found: Result<T, Stop>) -> Result<T, Stop> {
        self.alive()?;
        found
    }

    /// Whether a page of the tables of a damaged medium could not be had.
    fn lacks_tables(&self) -> bool {
        let volume = self.volume.as_ref();
        self.oracle.was_damaged() && volume.is_some_and(|volume| volume.table_failures() > 0)
    }

    /// An error is right only once the power is off or a sync has failed, or where a page of the tables was damaged.
    fn done<T>(&self, done: Result<T, VolumeError>) -> Result<T, Stop> {
        done.map_err(|error| {
            if self.is_off() {
                Stop::PowerCut
            } else if is_failed_sync(&error) {
                Stop::StoreFailed
            } else if self.lacks_tables() {
                Stop::Refused
            } else {
                Stop::Broken(format!("it failed with the power on: {error}"))
            }
        })
    }
}

fn is_failed_sync(error: &VolumeError) -> bool {
    is_failed(error, Operation::Sync)
}

/// Whether such a call of the medium failed, with the power on.
fn is_failed(error: &VolumeError, operation: Operation) -> bool {
    let (VolumeError::Medium(error) | VolumeError::Store(NandError::Medium(error))) = error else {
        return false;
    };
    error.operation == operation && matches!(error.cause, Cause::Eio)
}

/// The addresses that cannot be read.
fn unreadable(state: &[Value]) -> Vec<u32> {
    let pages = (0..).zip(state);
    let bad = pages.filter(|(_, found)| **found == UNREADABLE);
    bad.map(|(lpn, _)| lpn).collect()
}

/// Whether a volume may hold this.
fn agree(expected: &[Value], found: &[Value]) -> bool {
    let mut pairs = expected.iter().zip(found);
    pairs.all(|(&expected, &found)| agrees(expected, found))
}

fn read_all(volume: &mut Volume) -> Result<Vec<Value>, Stop> {
    let mut state = Vec::new();
    let mut bytes = [1; PAGE_BYTES];
    for lpn in 0..volume.exported() {
        match guarded(|| volume.read(Lpn(lpn), &mut bytes))? {
            Ok(()) => state.push(value_of(&bytes)),
            Err(VolumeError::Unreadable { .. }) => state.push(UNREADABLE),
            Err(error) => return broken(format!("page {lpn} cannot be read: {error}")),
        }
    }
    Ok(state)
}

/// What a volume says of its history, if it keeps one: some of the instants of which the oracle knows.
fn told(volume: &mut Volume, oracle: &Oracle) -> Result<Option<Told>, Stop> {
    let Ok(status) = volume.history_status() else {
        return Ok(None);
    };
    let past = oracle.moment().past.iter().map(|&(stamp, _)| stamp);
    let known: Vec<u64> = past.filter(|&stamp| stamp >= status.oldest).collect();
    let few = known.len().div_ceil(MOST_INSTANTS).max(1);
    // Every one of the youngest, the oldest, and some between.
    let chosen = known.iter().rev().enumerate();
    let chosen = chosen.filter(|(age, _)| *age < 2 || age % few == 0);
    let mut instants: Vec<u64> = chosen.map(|(_, &stamp)| stamp).collect();
    instants.extend(oracle.unsure().filter(|&stamp| stamp >= status.oldest));
    instants.push(status.oldest);
    instants.extend(&status.snapshots);
    for &instant in &status.snapshots {
        let found = volume.notes().name_of(instant);
        if found != Some(&name_of(instant)) {
            return broken(format!("the snapshot of {instant} has the name {found:?}"));
        }
    }
    let marks = volume.notes().marks().iter();
    let mut told = Told {
        oldest: status.oldest,
        newest: status.newest,
        snapshots: status.snapshots.iter().copied().collect(),
        marks: marks
            .map(|mark| (mark.instant, mark.name.clone()))
            .collect(),
        instants: Vec::new(),
    };
    let mut bytes = [1; PAGE_BYTES];
    for instant in instants {
        let mut contents = Vec::new();
        for lpn in 0..volume.exported() {
            match guarded(|| volume.read_at(instant, Lpn(lpn), &mut bytes))? {
                Ok(()) => contents.push(value_of(&bytes)),
                Err(VolumeError::Purged { .. }) => contents.push(PURGED),
                Err(VolumeError::Unreadable { .. }) => contents.push(UNREADABLE),
                Err(error) => {
                    return broken(format!("page {lpn} cannot be read at {instant}: {error}"));
                }
            }
        }
        told.instants.push((instant, contents));
    }
    Ok(Some(told))
}

/// The name of a snapshot, or of a mark, made at a stamp.
fn name_of(stamp: u64) -> String {
    format!("s{stamp}")
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
