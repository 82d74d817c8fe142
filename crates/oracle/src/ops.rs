//! The flash operations the models emit, and the totals they keep.

/// Why a unit was programmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    Host,
    Gc,
}

/// Why a flash page was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReadCause {
    Host,
    Gc,
    /// The comparison of a suspected duplicate with the stored content.
    Verify,
}

/// One flash operation. `T` is what identifies a unit: its LPN in the page FTL, its value in the
/// content-aware FTL. Blocks are global block numbers, pages count within the block.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Op<T> {
    /// A flash page is read.
    Read {
        /// Global block number.
        block: usize,
        /// Page within the block.
        page: usize,
        cause: ReadCause,
    },
    /// A data page is programmed.
    Program {
        block: usize,
        page: usize,
        /// One entry a slot: the unit and why it is written, or `None` for padding.
        slots: Vec<Option<(T, Cause)>>,
    },
    /// The summary page, the last of its block, is programmed.
    Summary { block: usize, page: usize },
    /// A block is erased.
    Erase { block: usize },
}

/// Totals over the operations. Preconditioning (`fill`) is not counted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Totals {
    /// Units programmed for the host.
    pub host_units: u64,
    /// Units programmed by garbage collection.
    pub gc_units: u64,
    /// Slots programmed as padding.
    pub padding_slots: u64,
    /// Data pages programmed.
    pub page_programs: u64,
    /// Summary pages programmed.
    pub summary_programs: u64,
    /// Flash pages read for the host.
    pub host_reads: u64,
    /// Flash pages read by garbage collection.
    pub gc_reads: u64,
    /// Flash pages read to verify a duplicate.
    pub verify_reads: u64,
    /// Blocks collected.
    pub victims: u64,
    /// Valid units that collection appended elsewhere. Differs from `gc_units` only by units in
    /// pages that are not yet programmed, of which there are none between two operations.
    pub moved_units: u64,
    pub erases: Vec<u64>,
}

impl Totals {
    pub(crate) fn count<T>(&mut self, op: &Op<T>) {
        match op {
            Op::Read { cause, .. } => match cause {
                ReadCause::Host => self.host_reads += 1,
                ReadCause::Gc => self.gc_reads += 1,
                ReadCause::Verify => self.verify_reads += 1,
            },
            Op::Program { slots, .. } => {
                self.page_programs += 1;
                for slot in slots {
                    match slot {
                        Some((_, Cause::Host)) => self.host_units += 1,
                        Some((_, Cause::Gc)) => self.gc_units += 1,
                        None => self.padding_slots += 1,
                    }
                }
            }
            Op::Summary { .. } => self.summary_programs += 1,
            Op::Erase { block } => self.erases[*block] += 1,
        }
    }

    pub fn total_erases(&self) -> u64 {
        self.erases.iter().sum()
    }
}
