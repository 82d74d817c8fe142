//! A wrapper that refuses what NAND flash cannot do.
//!
//! Rules: a page is programmed once between two erases of its block; the pages of a block are
//! programmed in ascending order without a gap; only programmed pages are read or copied; only a
//! programmed block is erased; every page carries one entry a slot; time never runs backwards.

use std::fmt;

use crate::address::{BlockId, PageId, PageInBlock, Ppn, Tag, Time};
use crate::nand::{Cause, Completion, Flash, Ready, Route, Stream, Unit};

/// A rule of the medium was broken, or the device behind the checker failed.
#[derive(Debug, thiserror::Error)]
pub enum RuleError<E: std::error::Error + 'static> {
    /// Pages of a block must be programmed one after the other.
    #[error("page {found} of block {block} was programmed, expected page {expected} next")]
    OutOfOrder {
        /// The block.
        block: BlockId,
        /// The page of it that was programmed.
        found: PageInBlock,
        /// The page that was due.
        expected: PageInBlock,
    },
    /// A unit was used whose page is not programmed.
    #[error("unit {ppn} was {action}, but its page is not programmed")]
    NotProgrammed {
        /// The physical unit.
        ppn: Ppn,
        /// "read" or "copied".
        action: &'static str,
    },
    /// A block that is erased already was erased.
    #[error("block {block} was erased though nothing is programmed in it")]
    AlreadyErased {
        /// The block.
        block: BlockId,
    },
    /// The number of slots does not fit the page.
    #[error("page {page} was programmed with {found} units, expected {expected}")]
    WrongSlots {
        /// The flash page.
        page: PageId,
        /// Entries given.
        found: usize,
        /// Entries expected.
        expected: u32,
    },
    /// Time ran backwards.
    #[error("an operation at {found} ns came after one at {last} ns")]
    TimeBackwards {
        /// The earlier time that came later.
        found: Time,
        /// The latest time seen before.
        last: Time,
    },
    /// An address beyond the device.
    #[error("{found} does not exist, the device has {count}")]
    OutOfRange {
        /// The address.
        found: Address,
        /// How many there are.
        count: u32,
    },
    /// The device behind the checker failed.
    #[error(transparent)]
    Device(#[from] E),
}

/// An address that was given to a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Address {
    /// Of a unit.
    Unit(Ppn),
    /// Of a flash page.
    Page(PageId),
    /// Of a block.
    Block(BlockId),
}

impl Address {
    fn number(self) -> u32 {
        match self {
            Address::Unit(Ppn(number))
            | Address::Page(PageId(number))
            | Address::Block(BlockId(number)) => number,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unit(ppn) => write!(f, "unit {ppn}"),
            Address::Page(page) => write!(f, "page {page}"),
            Address::Block(block) => write!(f, "block {block}"),
        }
    }
}

/// Checks every operation before it reaches the device behind.
#[derive(Debug, Clone)]
pub struct Checked<F> {
    inner: F,
    /// Pages programmed in each block since its last erase.
    programmed: Vec<u32>,
    last: Time,
}

impl<F: Flash> Checked<F> {
    /// Wraps an erased device.
    pub fn new(inner: F) -> Self {
        let programmed = vec![0; inner.geometry().blocks() as usize];
        Checked {
            inner,
            programmed,
            last: 0,
        }
    }

    /// The device behind.
    pub fn inner(&self) -> &F {
        &self.inner
    }

    fn time(&mut self, at: Time) -> Result<(), RuleError<F::Error>> {
        if at < self.last {
            return Err(RuleError::TimeBackwards {
                found: at,
                last: self.last,
            });
        }
        self.last = at;
        Ok(())
    }

    fn range(found: Address, count: u32) -> Result<(), RuleError<F::Error>> {
        if found.number() < count {
            Ok(())
        } else {
            Err(RuleError::OutOfRange { found, count })
        }
    }

    fn programmed_unit(&self, ppn: Ppn, action: &'static str) -> Result<(), RuleError<F::Error>> {
        let g = self.inner.geometry();
        Self::range(Address::Unit(ppn), g.units())?;
        let page = g.page_in_block(g.page_of(ppn));
        if page.0 < self.programmed[g.block_of(ppn).index()] {
            Ok(())
        } else {
            Err(RuleError::NotProgrammed { ppn, action })
        }
    }
}

impl<F: Flash> Flash for Checked<F> {
    type Page = F::Page;
    type Tables = F::Tables;
    type Error = RuleError<F::Error>;
    const PROVES: bool = F::PROVES;

    fn is_block_failure(error: &Self::Error) -> bool {
        matches!(error, RuleError::Device(error) if F::is_block_failure(error))
    }

    fn is_loss(error: &Self::Error) -> bool {
        matches!(error, RuleError::Device(error) if F::is_loss(error))
    }

    crate::pass_on!(inner: geometry, tables, prove, prove_copy, barrier, window_begins,
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
        if let Ready::At(at) = ready {
            self.time(at)?;
        }
        self.programmed_unit(ppn, "read")?;
        Ok(self.inner.read(ready, ppn, units, cause, route, tag)?)
    }

    fn content(&mut self, ppn: Ppn) -> Result<F::Page, Self::Error> {
        self.programmed_unit(ppn, "looked at")?;
        Ok(self.inner.content(ppn)?)
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
        let g = self.inner.geometry();
        Self::range(Address::Page(page), g.blocks() * g.pages_per_block())?;
        if units.len() != g.units_per_page() as usize {
            return Err(RuleError::WrongSlots {
                page,
                found: units.len(),
                expected: g.units_per_page(),
            });
        }
        let block = g.block_of_page(page);
        let found = g.page_in_block(page);
        let expected = PageInBlock(self.programmed[block.index()]);
        if found != expected {
            return Err(RuleError::OutOfOrder {
                block,
                found,
                expected,
            });
        }
        for unit in units {
            if let Unit::Copy { from, .. } = unit {
                self.programmed_unit(*from, "copied")?;
            }
        }
        self.programmed[block.index()] += 1;
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
        self.time(at)?;
        Self::range(Address::Block(block), self.inner.geometry().blocks())?;
        if self.programmed[block.index()] == 0 {
            return Err(RuleError::AlreadyErased { block });
        }
        self.programmed[block.index()] = 0;
        Ok(self.inner.erase(at, block, background, tag)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Geometry;
    use crate::memory::MemoryFlash;
    use crate::{Lpn, Owner};

    fn device() -> Checked<MemoryFlash<u8>> {
        Checked::new(MemoryFlash::new(
            Geometry::single_plane(2, 4, 4096).unwrap(),
        ))
    }

    fn program(f: &mut Checked<MemoryFlash<u8>>, page: u32) -> Result<Completion, String> {
        let unit = [Unit::New {
            owner: Owner::page(Lpn(7)),
            page: 9,
        }];
        f.program(
            Ready::At(0),
            PageId(page),
            &unit,
            Stream::Host,
            Route::Channel,
            &[],
        )
        .map_err(|e| e.to_string())
    }

    fn read(f: &mut Checked<MemoryFlash<u8>>, ppn: u32) -> Result<u8, String> {
        let (host, channel) = (Cause::Host, Route::Channel);
        f.read(Ready::At(5), Ppn(ppn), 1, host, channel, Tag::NONE)
            .and_then(|_| f.content(Ppn(ppn)))
            .map_err(|e| e.to_string())
    }

    #[test]
    fn pages_are_programmed_once_and_in_order() {
        let mut f = device();
        program(&mut f, 0).unwrap();
        assert!(
            program(&mut f, 0)
                .unwrap_err()
                .contains("expected page 1 next")
        );
        assert!(
            program(&mut f, 2)
                .unwrap_err()
                .contains("expected page 1 next")
        );
        program(&mut f, 1).unwrap();
        assert!(program(&mut f, 8).unwrap_err().contains("does not exist"));
    }

    #[test]
    fn only_programmed_units_are_read_and_copied() {
        let mut f = device();
        assert!(read(&mut f, 0).unwrap_err().contains("not programmed"));
        program(&mut f, 0).unwrap();
        assert_eq!(read(&mut f, 0), Ok(9));
        let copy = [Unit::Copy {
            owner: Owner::page(Lpn(7)),
            from: Ppn(3),
        }];
        let refused = f.program(
            Ready::At(5),
            PageId(4),
            &copy,
            Stream::Gc,
            Route::OnChip,
            &[],
        );
        assert!(refused.unwrap_err().to_string().contains("copied"));
    }

    #[test]
    fn erasing_clears_and_cannot_be_repeated() {
        let mut f = device();
        program(&mut f, 0).unwrap();
        f.erase(6, BlockId(0), false, Tag::NONE).unwrap();
        let again = f.erase(6, BlockId(0), false, Tag::NONE).unwrap_err();
        assert!(again.to_string().contains("nothing is programmed"));
        assert!(read(&mut f, 0).is_err());
        program(&mut f, 0).unwrap();
    }

    #[test]
    fn time_never_runs_backwards() {
        let mut f = device();
        program(&mut f, 0).unwrap();
        f.erase(9, BlockId(0), false, Tag::NONE).unwrap();
        program(&mut f, 0).unwrap();
        assert!(
            read(&mut f, 0)
                .unwrap_err()
                .contains("came after one at 9 ns")
        );
    }
}
