//! A medium whose power can be cut at any call: the adversary of every recovery.
//!
//! It keeps the durable bytes and, in order, each write and discard that no successful sync covered.
//! Invariants:
//!
//! - `newest` is `durable` with all `pending` calls applied in order.
//! - A successful sync makes pending calls durable in order, except those that were pending when an
//!   earlier sync failed: these stay pending, sector by sector, until a durable call covers them.
//! - Once the power is off, nothing changes any more and nothing can be read. Whoever goes on trying has no end: after
//!   a million reads it panics.
//!
//! A test runs a workload with [`CrashMedium::cut_at`] at each call in turn, takes
//! [`CrashMedium::survivors`] in several styles and seeds, and recovers from a new medium that holds
//! them.

use std::collections::BTreeSet;

use parking_lot::{Mutex, MutexGuard};

use crate::error::{Cause, MediumError, Operation};
use crate::medium::{Medium, SECTOR, check};
use crate::memory::{assert_whole_sectors, flip};
use crate::survivors::{Call, Content, Style, survivors};

/// What discarded sectors hold under [`CrashMedium::with_garbage_after_discard`].
const GARBAGE: u8 = 0xDE;

/// Reads that may fail because the power is off: an operation that tries so often would try for ever. Several operations
/// in turn may fail without harm.
const MOST_TRIES: u64 = 1_000_000;

/// Bytes in memory with a volatile cache before them, a power switch, and syncs that fail when told.
#[derive(Debug)]
pub struct CrashMedium {
    state: Mutex<CrashState>,
    len: u64,
    discarded: u8,
}

#[derive(Debug, Default)]
struct CrashState {
    durable: Vec<u8>,
    newest: Vec<u8>,
    pending: Vec<Call>,
    calls: u64,
    syncs: u64,
    cut_at: Option<u64>,
    failing_syncs: BTreeSet<u64>,
    off: bool,
    /// Reads since it is.
    tries: u64,
}

impl CrashMedium {
    /// A medium of `len` durable zeros.
    ///
    /// # Panics
    /// If `len` is not a multiple of [`SECTOR`].
    pub fn new(len: usize) -> Self {
        Self::from_bytes(vec![0; len])
    }

    /// A medium on which these bytes are durable.
    ///
    /// # Panics
    /// If their number is not a multiple of [`SECTOR`].
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        assert_whole_sectors(&bytes);
        CrashMedium {
            len: bytes.len() as u64,
            discarded: 0,
            state: Mutex::new(CrashState {
                newest: bytes.clone(),
                durable: bytes,
                ..CrashState::default()
            }),
        }
    }

    /// Lets discarded sectors read as 0xDE instead of zeros: their content is undefined, and who
    /// relies on zeros is found out.
    pub fn with_garbage_after_discard(mut self) -> Self {
        self.discarded = GARBAGE;
        self
    }

    /// Calls so far that change something: writes, discards and syncs of any outcome, but not those
    /// refused for their range or length zero, nor those after the power was cut.
    pub fn calls(&self) -> u64 {
        self.state().calls
    }

    /// Cuts the power at call number `n`, counted from 1 as [`CrashMedium::calls`] counts: it and
    /// everything after it fail. If it is a write or discard it may survive, also in part. A number
    /// already reached cuts the power now.
    pub fn cut_at(&self, n: u64) {
        let mut state = self.state();
        state.cut_at = Some(n);
        state.off |= n <= state.calls;
    }

    /// Lets sync number `n`, counted from 1, fail with an input/output error. The calls pending then
    /// stay readable, no later sync makes them durable, and each may or may not survive a power cut.
    pub fn fail_sync(&self, n: u64) {
        self.state().failing_syncs.insert(n);
    }

    /// Writes and discards that are not durable, those of failed syncs included.
    pub fn pending(&self) -> usize {
        self.state().pending.len()
    }

    /// The bytes after a power loss at this moment: each pending call survives or not, as a whole or
    /// in part. Equal seeds and histories give equal bytes.
    pub fn survivors(&self, seed: u64, style: Style) -> Vec<u8> {
        let state = self.state();
        survivors(&state.durable, &state.pending, seed, style)
    }

    /// Flips one bit (0 to 7) of the byte at `offset`, as ageing does. It flips where it is durable:
    /// a pending call over it hides it.
    pub fn flip(&self, offset: u64, bit: u8) -> Result<(), MediumError> {
        let mut guard = self.state();
        let state = &mut *guard;
        flip(&mut state.durable, offset, bit)?;
        let sector = offset as usize / SECTOR;
        if !state.pending.iter().any(|call| call.covers(sector)) {
            flip(&mut state.newest, offset, bit)?;
        }
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, CrashState> {
        self.state.lock()
    }

    fn change(
        &self,
        operation: Operation,
        offset: u64,
        length: u64,
        content: impl FnOnce() -> Content,
    ) -> Result<(), MediumError> {
        check(self, operation, offset, length)?;
        if length == 0 {
            return Ok(());
        }
        let fail = |cause| Err(MediumError::at(operation, offset, length, cause));
        let mut guard = self.state();
        let state = &mut *guard;
        if state.off {
            return fail(Cause::PowerCut);
        }
        state.count();
        let sector = |bytes: u64| bytes as usize / SECTOR;
        let call = Call::new(sector(offset), sector(length), content());
        call.apply(&mut state.newest, |_| true);
        state.pending.push(call);
        if state.off {
            return fail(Cause::PowerCut);
        }
        Ok(())
    }
}

impl CrashState {
    /// Counts a call that changes something and cuts the power if it is the one.
    fn count(&mut self) {
        self.calls += 1;
        self.off = self.cut_at.is_some_and(|n| n <= self.calls);
    }

    /// Makes pending calls durable, except those of failed syncs.
    fn settle(&mut self) {
        let mut lost: Vec<Call> = Vec::new();
        for call in self.pending.drain(..) {
            if call.lost {
                lost.push(call);
            } else {
                call.apply(&mut self.durable, |_| true);
                for older in &mut lost {
                    older.supersede(&call);
                }
            }
        }
        lost.retain(|call| !call.is_superseded());
        self.pending = lost;
    }
}

impl Medium for CrashMedium {
    fn len(&self) -> u64 {
        self.len
    }

    fn alignment(&self) -> u32 {
        SECTOR as u32
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), MediumError> {
        let length = buf.len() as u64;
        check(self, Operation::Read, offset, length)?;
        let mut state = self.state();
        if state.off {
            state.tries += 1;
            assert!(
                state.tries <= MOST_TRIES,
                "the power is off, and somebody reads for ever"
            );
            let cause = Cause::PowerCut;
            return Err(MediumError::at(Operation::Read, offset, length, cause));
        }
        buf.copy_from_slice(&state.newest[offset as usize..][..buf.len()]);
        Ok(())
    }

    fn write(&self, offset: u64, buf: &[u8]) -> Result<(), MediumError> {
        self.change(Operation::Write, offset, buf.len() as u64, || {
            Content::Bytes(buf.to_vec())
        })
    }

    fn discard(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        self.change(Operation::Discard, offset, len, || {
            Content::Fill(self.discarded)
        })
    }

    fn sync(&self) -> Result<(), MediumError> {
        let fail = |cause| Err(MediumError::at(Operation::Sync, 0, 0, cause));
        let mut state = self.state();
        if state.off {
            return fail(Cause::PowerCut);
        }
        state.count();
        if state.off {
            return fail(Cause::PowerCut);
        }
        state.syncs += 1;
        let number = state.syncs;
        if state.failing_syncs.remove(&number) {
            for call in &mut state.pending {
                call.lost = true;
            }
            return fail(Cause::Eio);
        }
        state.settle();
        Ok(())
    }
}
