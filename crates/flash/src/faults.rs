//! A wrapper that makes chosen operations fail, repeatably.
//!
//! An operation fails *before* it takes effect: the device behind never sees it. Which ones fail is
//! drawn from a seeded generator, so a failing run can be repeated exactly.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::address::{BlockId, PageId, Ppn, Tag, Time};
use crate::nand::{Cause, Completion, Flash, Ready, Route, Stream, Unit};

/// How often each operation fails: one in so many, 0 for never.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Odds {
    /// One read in so many fails.
    pub read: u32,
    /// One program in so many fails.
    pub program: u32,
    /// One erase in so many fails.
    pub erase: u32,
}

/// An injected failure, or one of the device behind.
#[derive(Debug, thiserror::Error)]
pub enum FaultError<E: std::error::Error + 'static> {
    /// The wrapper made it fail.
    #[error("injected fault: {operation} number {number} failed")]
    Injected {
        /// "read", "program" or "erase".
        operation: &'static str,
        /// Count of operations of all kinds before it.
        number: u64,
    },
    /// The device behind failed by itself.
    #[error(transparent)]
    Device(#[from] E),
}

/// Lets operations fail with given odds.
#[derive(Debug, Clone)]
pub struct Faulty<F> {
    inner: F,
    odds: Odds,
    random: Xoshiro256PlusPlus,
    operations: u64,
}

impl<F: Flash> Faulty<F> {
    /// Wraps a device; equal seeds and operations give equal failures.
    pub fn new(inner: F, odds: Odds, seed: u64) -> Self {
        Faulty {
            inner,
            odds,
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            operations: 0,
        }
    }

    fn roll(&mut self, operation: &'static str, one_in: u32) -> Result<(), FaultError<F::Error>> {
        let number = self.operations;
        self.operations += 1;
        if one_in != 0 && self.random.next_u64().is_multiple_of(u64::from(one_in)) {
            return Err(FaultError::Injected { operation, number });
        }
        Ok(())
    }
}

impl<F: Flash> Flash for Faulty<F> {
    type Page = F::Page;
    type Tables = F::Tables;
    type Error = FaultError<F::Error>;
    // What may fail is looked at first, also in a simulation of a device that does so.
    const PROVES: bool = true;

    fn is_block_failure(error: &Self::Error) -> bool {
        match error {
            FaultError::Injected { operation, .. } => *operation == "erase",
            FaultError::Device(error) => F::is_block_failure(error),
        }
    }

    fn is_loss(error: &Self::Error) -> bool {
        matches!(error, FaultError::Device(error) if F::is_loss(error))
    }

    crate::pass_on!(inner: geometry, tables, content, prove, prove_copy, barrier, window_begins,
        validity_changed, advance, idle_since, next_event);

    fn read(
        &mut self,
        ready: Ready,
        ppn: Ppn,
        units: u32,
        cause: Cause,
        route: Route,
        tag: Tag,
    ) -> Result<Completion, Self::Error> {
        self.roll("read", self.odds.read)?;
        Ok(self.inner.read(ready, ppn, units, cause, route, tag)?)
    }

    fn program(
        &mut self,
        ready: Ready,
        page: PageId,
        units: &[Unit<F::Page>],
        stream: Stream,
        route: Route,
        tags: &[Tag],
    ) -> Result<Completion, Self::Error> {
        self.roll("program", self.odds.program)?;
        Ok(self
            .inner
            .program(ready, page, units, stream, route, tags)?)
    }

    fn erase(
        &mut self,
        at: Time,
        block: BlockId,
        background: bool,
        tag: Tag,
    ) -> Result<Completion, Self::Error> {
        self.roll("erase", self.odds.erase)?;
        Ok(self.inner.erase(at, block, background, tag)?)
    }
}
