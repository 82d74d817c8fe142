//! A wrapper whose calls fail as told.
//!
//! A failing call never reaches the medium behind. So a failed sync here leaves everything to the
//! next one; for a sync that loses what it should have covered, see [`crate::CrashMedium::fail_sync`].

use std::ops::Range;

use parking_lot::{Mutex, MutexGuard};

use crate::error::{Cause, MediumError, Operation};
use crate::medium::Medium;

/// Which calls of a kind fail. They are counted from 1, failed ones too, since the wrapper was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Only this one.
    Only(u64),
    /// This one and all after it.
    From(u64),
}

impl When {
    fn includes(self, number: u64) -> bool {
        match self {
            When::Only(n) => number == n,
            When::From(n) => number >= n,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    Eio,
    NoSpace,
}

impl Failure {
    fn cause(self) -> Cause {
        match self {
            Failure::Eio => Cause::Eio,
            Failure::NoSpace => Cause::NoSpace,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteFault {
    pub when: When,
    pub failure: Failure,
}

/// Reads that fail with an input/output error, and could be read a moment later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadFault {
    Calls(When),
    /// So many of a thousand calls, drawn by their number and a seed.
    Share {
        seed: u64,
        per_mille: u64,
    },
}

impl ReadFault {
    fn includes(self, number: u64) -> bool {
        match self {
            ReadFault::Calls(when) => when.includes(number),
            ReadFault::Share { seed, per_mille } => {
                // The finaliser of SplitMix64 (Steele, Lea and Flood 2014).
                let mut x = seed ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
                x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
                x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
                (x ^ x >> 31) % 1000 < per_mille
            }
        }
    }
}

/// What fails; nothing by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults {
    /// Reads that touch one of these ranges of bytes fail with an input/output error.
    pub unreadable: Vec<Range<u64>>,
    /// Reads that fail wherever they go.
    pub reads: Option<ReadFault>,
    pub writes: Option<WriteFault>,
    /// Syncs that fail with an input/output error.
    pub syncs: Option<When>,
}

#[derive(Debug)]
pub struct FaultyMedium<M> {
    inner: M,
    state: Mutex<FaultState>,
}

#[derive(Debug, Default)]
struct FaultState {
    faults: Faults,
    reads: u64,
    writes: u64,
    syncs: u64,
}

impl<M: Medium> FaultyMedium<M> {
    pub fn new(inner: M, faults: Faults) -> Self {
        let state = Mutex::new(FaultState {
            faults,
            ..FaultState::default()
        });
        FaultyMedium { inner, state }
    }

    pub fn inner(&self) -> &M {
        &self.inner
    }

    /// Replaces what fails from here on; the counts of calls go on.
    pub fn set_faults(&self, faults: Faults) {
        self.state().faults = faults;
    }

    /// Reads so far, failed ones too.
    pub fn reads(&self) -> u64 {
        self.state().reads
    }

    /// Writes so far, failed ones too.
    pub fn writes(&self) -> u64 {
        self.state().writes
    }

    /// Syncs so far, failed ones too.
    pub fn syncs(&self) -> u64 {
        self.state().syncs
    }

    fn state(&self) -> MutexGuard<'_, FaultState> {
        self.state.lock()
    }

    fn next_read_fails(&self, wanted: Range<u64>) -> bool {
        let mut state = self.state();
        state.reads += 1;
        let touches = |bad: &Range<u64>| bad.start < wanted.end && wanted.start < bad.end;
        let number = state.reads;
        let faults = &state.faults;
        faults.unreadable.iter().any(touches)
            || faults.reads.is_some_and(|fault| fault.includes(number))
    }

    fn next_write_fault(&self) -> Option<Failure> {
        let mut state = self.state();
        state.writes += 1;
        let fault = state.faults.writes?;
        fault.when.includes(state.writes).then_some(fault.failure)
    }

    fn next_sync_fails(&self) -> bool {
        let mut state = self.state();
        state.syncs += 1;
        let number = state.syncs;
        state.faults.syncs.is_some_and(|when| when.includes(number))
    }
}

impl<M: Medium> Medium for FaultyMedium<M> {
    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn alignment(&self) -> u32 {
        self.inner.alignment()
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), MediumError> {
        let length = buf.len() as u64;
        if self.next_read_fails(offset..offset.saturating_add(length)) {
            let operation = Operation::Read;
            return Err(MediumError::at(operation, offset, length, Cause::Eio));
        }
        self.inner.read(offset, buf)
    }

    fn write(&self, offset: u64, buf: &[u8]) -> Result<(), MediumError> {
        if let Some(failure) = self.next_write_fault() {
            let length = buf.len() as u64;
            let cause = failure.cause();
            return Err(MediumError::at(Operation::Write, offset, length, cause));
        }
        self.inner.write(offset, buf)
    }

    fn discard(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        self.inner.discard(offset, len)
    }

    fn sync(&self) -> Result<(), MediumError> {
        if self.next_sync_fails() {
            return Err(MediumError::at(Operation::Sync, 0, 0, Cause::Eio));
        }
        self.inner.sync()
    }
}
