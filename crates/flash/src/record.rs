//! A wrapper that writes down every operation, so that two systems can be compared step by step.

use crate::address::{BlockId, Owner, PageId, Ppn, Tag, Time};
use crate::nand::{Cause, Completion, Flash, Ready, Route, Stream, Unit};

/// One operation as the device saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// A flash page was read.
    Read {
        /// The page.
        page: PageId,
        /// Why.
        cause: Cause,
    },
    /// A slot of a flash page was programmed; a page's slots follow one another.
    Program {
        /// The unit.
        ppn: Ppn,
        /// Its owner, `None` for padding.
        owner: Option<Owner>,
        /// Where it was copied from, `None` for new content and padding.
        from: Option<Ppn>,
    },
    /// A page without units was programmed: the summary of its block.
    Summary {
        /// The page.
        page: PageId,
    },
    /// A block was erased.
    Erase {
        /// The block.
        block: BlockId,
    },
}

/// Records what passes through it.
#[derive(Debug, Clone)]
pub struct Recorded<F> {
    inner: F,
    ops: Vec<Op>,
}

impl<F: Flash> Recorded<F> {
    /// Wraps a device.
    pub fn new(inner: F) -> Self {
        Recorded {
            inner,
            ops: Vec::new(),
        }
    }

    /// Everything since the last call.
    pub fn take(&mut self) -> Vec<Op> {
        std::mem::take(&mut self.ops)
    }

    /// The device behind.
    pub fn inner(&self) -> &F {
        &self.inner
    }
}

impl<F: Flash> Flash for Recorded<F> {
    type Page = F::Page;
    type Tables = F::Tables;
    type Error = F::Error;
    const PROVES: bool = F::PROVES;

    fn is_block_failure(error: &F::Error) -> bool {
        F::is_block_failure(error)
    }

    fn is_loss(error: &F::Error) -> bool {
        F::is_loss(error)
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
    ) -> Result<Completion, F::Error> {
        let page = self.geometry().page_of(ppn);
        self.ops.push(Op::Read { page, cause });
        self.inner.read(ready, ppn, units, cause, route, tag)
    }

    fn program(
        &mut self,
        ready: Ready,
        page: PageId,
        units: &[Unit<F::Page>],
        stream: Stream,
        route: Route,
        tags: &[Tag],
    ) -> Result<Completion, F::Error> {
        if units.iter().all(|unit| matches!(unit, Unit::Pad)) {
            self.ops.push(Op::Summary { page });
        } else {
            let first = self.geometry().first_unit_of_page(page).0;
            for (slot, unit) in units.iter().enumerate() {
                let (owner, from) = match unit {
                    Unit::New { owner, .. } => (Some(*owner), None),
                    Unit::Copy { owner, from } => (Some(*owner), Some(*from)),
                    Unit::Pad => (None, None),
                };
                let ppn = Ppn(first + slot as u32);
                self.ops.push(Op::Program { ppn, owner, from });
            }
        }
        self.inner.program(ready, page, units, stream, route, tags)
    }

    fn erase(
        &mut self,
        at: Time,
        block: BlockId,
        background: bool,
        tag: Tag,
    ) -> Result<Completion, F::Error> {
        self.ops.push(Op::Erase { block });
        self.inner.erase(at, block, background, tag)
    }
}
