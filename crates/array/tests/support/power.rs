//! Two media whose power is cut: one of them at a call, or both at a call counted over both.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flashlore_medium::{Cause, CrashMedium, Medium, MediumError, Operation, Style};

use crate::support::draw::Draw;

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    Never,
    /// The power of one medium is cut at this call, counted from 1. The other one goes on.
    CutFast(u64),
    CutSlow(u64),
    /// The power of both is cut at this call, counted over both.
    CutBoth(u64),
    /// A sync of one medium fails.
    FailFast(u64),
    FailSlow(u64),
    /// A write of the slow medium fails at this call, counted over both, though all of it arrives; and so many calls
    /// later the power is cut.
    FailWrite(u64, u64),
}

/// Both media.
pub struct Power {
    pub fast: Arc<CrashMedium>,
    pub slow: Arc<CrashMedium>,
    calls: Arc<AtomicU64>,
    cut_both: u64,
    fail_write: u64,
}

/// One of the two, which counts calls over both.
struct Wired {
    own: Arc<CrashMedium>,
    other: Arc<CrashMedium>,
    calls: Arc<AtomicU64>,
    cut_both: u64,
    /// The first write from this call on fails.
    fail_write: AtomicU64,
}

impl Power {
    pub fn new((fast, slow): (Vec<u8>, Vec<u8>), trouble: Trouble) -> Power {
        // What was given back may hold anything.
        let medium = |bytes| Arc::new(CrashMedium::from_bytes(bytes).with_garbage_after_discard());
        let (fast, slow) = (medium(fast), medium(slow));
        let mut cut_both = u64::MAX;
        let mut fail_write = u64::MAX;
        match trouble {
            Trouble::Never => {}
            Trouble::CutFast(n) => fast.cut_at(n),
            Trouble::CutSlow(n) => slow.cut_at(n),
            Trouble::CutBoth(n) => cut_both = n,
            Trouble::FailFast(n) => fast.fail_sync(n),
            Trouble::FailSlow(n) => slow.fail_sync(n),
            Trouble::FailWrite(n, later) => (fail_write, cut_both) = (n, n + later),
        }
        Power {
            fast,
            slow,
            calls: Arc::new(AtomicU64::new(0)),
            cut_both,
            fail_write,
        }
    }

    /// The media as the element gets them.
    pub fn media(&self) -> (Arc<dyn Medium>, Arc<dyn Medium>) {
        let wired = |own: &Arc<CrashMedium>, other: &Arc<CrashMedium>, fail_write: u64| Wired {
            own: own.clone(),
            other: other.clone(),
            calls: self.calls.clone(),
            cut_both: self.cut_both,
            fail_write: AtomicU64::new(fail_write),
        };
        (
            Arc::new(wired(&self.fast, &self.slow, u64::MAX)),
            Arc::new(wired(&self.slow, &self.fast, self.fail_write)),
        )
    }

    /// Calls of both.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// What a power loss now may leave on each, independently.
    pub fn survivors(&self, draw: &mut Draw) -> (Vec<u8>, Vec<u8>) {
        let mut of =
            |medium: &CrashMedium| medium.survivors(draw.number(), draw.pick(&Style::SEARCH));
        (of(&self.fast), of(&self.slow))
    }
}

impl Wired {
    fn count(&self) -> u64 {
        let call = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        if call == self.cut_both {
            self.own.cut_at(self.own.calls() + 1);
            self.other.cut_at(self.other.calls());
        }
        call
    }
}

impl Medium for Wired {
    fn len(&self) -> u64 {
        self.own.len()
    }

    fn alignment(&self) -> u32 {
        self.own.alignment()
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), MediumError> {
        self.own.read(offset, buf)
    }

    fn write(&self, offset: u64, buf: &[u8]) -> Result<(), MediumError> {
        let call = self.count();
        self.own.write(offset, buf)?;
        if call >= self.fail_write.load(Ordering::Relaxed) {
            self.fail_write.store(u64::MAX, Ordering::Relaxed);
            return Err(MediumError {
                operation: Operation::Write,
                offset,
                length: buf.len() as u64,
                path: None,
                cause: Cause::Eio,
            });
        }
        Ok(())
    }

    fn discard(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        self.count();
        self.own.discard(offset, len)
    }

    fn sync(&self) -> Result<(), MediumError> {
        self.count();
        self.own.sync()
    }
}
