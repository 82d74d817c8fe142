//! Blocks, streams and host placement: the flash level that both FTL models share.
//!
//! Generic over `T`, which identifies a unit in the operations. This level knows which slots hold
//! valid units, not who refers to them; an [`Owner`] is told when collection moves a unit.
//!
//! Invariants: a block's slots are appended in order, so a page is programmed exactly when all its
//! slots exist, and a block is sealed exactly when all its data pages are. Every change of a
//! block's valid count, and its sealing, takes a step number, in this order within a host write:
//! the unit is appended (valid), the page is programmed, the block is sealed, and only then the
//! old unit is invalidated.

use std::collections::VecDeque;

use crate::OracleError;
use crate::ops::{Cause, Op, ReadCause, Totals};
use crate::rules::{Check, Rotate, Rules};

pub(crate) trait Owner<T> {
    /// A valid unit has a new address; everything that named the old one must follow.
    fn moved(&mut self, unit: T, from: u64, to: u64);
}

/// Which of a plane's two open blocks a unit is appended to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Host = 0,
    Gc = 1,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockState {
    Free,
    Open,
    Sealed,
    Retired,
}

#[derive(Debug, Clone)]
pub(crate) struct Slot<T> {
    /// What was appended and why; `None` is padding.
    pub(crate) unit: Option<(T, Cause)>,
    pub(crate) valid: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Block<T> {
    pub(crate) state: BlockState,
    pub(crate) slots: Vec<Slot<T>>,
    pub(crate) valid: usize,
    /// The step at which the valid count last changed or the block was sealed.
    pub(crate) since: u64,
    /// The step at which its turn was renewed.
    pub(crate) turn: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct Blocks<T> {
    pub(crate) rules: Rules,
    pub(crate) blocks: Vec<Block<T>>,
    /// Free list of each plane, front first.
    pub(crate) free: Vec<VecDeque<usize>>,
    /// Open block of each plane and stream.
    pub(crate) open: Vec<[Option<usize>; 2]>,
    groups: Vec<Vec<usize>>,
    /// Cursor of each placement group.
    cursors: Vec<usize>,
    step: u64,
    ops: Vec<Op<T>>,
    recording: bool,
    pub(crate) totals: Totals,
}

impl<T: Copy> Blocks<T> {
    pub(crate) fn new(rules: Rules) -> Result<Blocks<T>, OracleError> {
        rules.validate()?;
        let g = rules.geometry;
        let empty = Block {
            state: BlockState::Free,
            slots: Vec::new(),
            valid: 0,
            since: 0,
            turn: 0,
        };
        let blocks_of = |plane| plane * g.blocks_per_plane..(plane + 1) * g.blocks_per_plane;
        let groups = rules.groups();
        Ok(Blocks {
            blocks: vec![empty; g.blocks()],
            free: (0..g.planes()).map(|p| blocks_of(p).collect()).collect(),
            open: vec![[None; 2]; g.planes()],
            cursors: vec![0; groups.len()],
            groups,
            step: 0,
            ops: Vec::new(),
            recording: true,
            totals: Totals {
                erases: vec![0; g.blocks()],
                ..Totals::default()
            },
            rules,
        })
    }

    /// Places a host unit: picks the write frontier, collects where the rules say so, appends. The caller
    /// then looks up the old address, which collection may have changed, and invalidates it.
    pub(crate) fn place(
        &mut self,
        lpn: u64,
        unit: T,
        owner: &mut impl Owner<T>,
    ) -> Result<u64, OracleError> {
        let group = (lpn % self.groups.len() as u64) as usize;
        for _ in 0..self.groups[group].len() {
            let frontier = self.groups[group][self.cursors[group]];
            self.check_before_write(frontier, owner);
            if self.usable(frontier) {
                let ppn = self.append(frontier, Stream::Host, Some((unit, Cause::Host)));
                let page_ends = self.is_programmed(ppn);
                let block_ends = self.open[frontier][Stream::Host as usize].is_none();
                if self.moves_on(page_ends, block_ends) {
                    self.advance(group);
                }
                return Ok(ppn);
            }
            self.advance(group);
        }
        Err(OracleError::DeviceFull { lpn, group })
    }

    fn check_before_write(&mut self, frontier: usize, owner: &mut impl Owner<T>) {
        match self.rules.check {
            Check::Allocation => {
                if self.open[frontier][Stream::Host as usize].is_none() {
                    self.collection_step(self.rules.pool_of(frontier), owner);
                }
            }
            Check::Dispatch { .. } => self.check_die_of_plane(frontier, owner),
        }
    }

    /// Whether a host unit may be appended to the write frontier now.
    fn usable(&self, frontier: usize) -> bool {
        if self.open[frontier][Stream::Host as usize].is_some() {
            return true;
        }
        // One free block stays behind for collection.
        !self.free[frontier].is_empty() && self.free_blocks(self.rules.pool_of(frontier)) >= 2
    }

    fn moves_on(&self, page_ends: bool, block_ends: bool) -> bool {
        match self.rules.rotate {
            Rotate::Page => page_ends,
            Rotate::Block => block_ends,
        }
    }

    fn advance(&mut self, group: usize) {
        self.cursors[group] = (self.cursors[group] + 1) % self.groups[group].len();
    }

    /// Reads the unit's page for the host if it is programmed; returns nothing because the unit
    /// may have been moved by the check before the read. `address` looks the unit up.
    pub(crate) fn host_read<O: Owner<T>>(
        &mut self,
        owner: &mut O,
        address: impl Fn(&O) -> Option<u64>,
    ) {
        let Some(ppn) = address(owner) else { return };
        if !self.is_programmed(ppn) {
            return;
        }
        if self.rules.check == (Check::Dispatch { reads: true }) {
            let plane = self
                .rules
                .geometry
                .plane_of(self.rules.geometry.locate(ppn).0);
            self.check_die_of_plane(plane, owner);
        }
        if let Some(ppn) = address(owner) {
            self.emit_read(ppn, ReadCause::Host);
        }
    }

    /// Emits the read of the unit's flash page, unless the unit is still served from RAM.
    pub(crate) fn emit_read(&mut self, ppn: u64, cause: ReadCause) {
        if self.is_programmed(ppn) {
            let (block, index) = self.rules.geometry.locate(ppn);
            let page = index / self.rules.geometry.units_per_page;
            self.emit(Op::Read { block, page, cause });
        }
    }

    /// Pads and programs all partly filled host pages, in stripe order.
    pub(crate) fn flush(&mut self) {
        for frontier in self.rules.stripe.clone() {
            let page_ends = self.pad(frontier, Stream::Host);
            let block_ends = page_ends && self.open[frontier][Stream::Host as usize].is_none();
            if self.moves_on(page_ends, block_ends) {
                for group in 0..self.groups.len() {
                    if self.groups[group][self.cursors[group]] == frontier {
                        self.advance(group);
                    }
                }
            }
        }
    }

    /// Pads the stream's partly filled page, if it has one, and says whether it had.
    pub(crate) fn pad(&mut self, plane: usize, stream: Stream) -> bool {
        let mut padded = false;
        while let Some(block) = self.open[plane][stream as usize] {
            let units = self.rules.geometry.units_per_page;
            if self.blocks[block].slots.len().is_multiple_of(units) {
                break;
            }
            self.append(plane, stream, None);
            padded = true;
        }
        padded
    }

    /// Appends a unit or padding to the plane's open block of the stream, opening one if there is
    /// none; programs the page and seals the block that this completes. Returns the address.
    pub(crate) fn append(&mut self, plane: usize, stream: Stream, unit: Option<(T, Cause)>) -> u64 {
        let block = match self.open[plane][stream as usize] {
            Some(block) => block,
            None => self.open_block(plane, stream),
        };
        let index = self.blocks[block].slots.len();
        let valid = unit.is_some();
        self.blocks[block].slots.push(Slot { unit, valid });
        if valid {
            self.blocks[block].valid += 1;
            self.touch(block);
        }
        if (index + 1).is_multiple_of(self.rules.geometry.units_per_page) {
            self.program_last_page(block);
        }
        if index + 1 == self.rules.geometry.units_per_block() {
            self.seal(block);
            self.open[plane][stream as usize] = None;
        }
        self.rules.geometry.ppn(block, index)
    }

    fn open_block(&mut self, plane: usize, stream: Stream) -> usize {
        let block = self.free[plane].pop_front();
        let block = block.expect("the caller made sure that the plane has a free block");
        self.blocks[block].state = BlockState::Open;
        self.open[plane][stream as usize] = Some(block);
        block
    }

    fn program_last_page(&mut self, block: usize) {
        let units = self.rules.geometry.units_per_page;
        let slots = &self.blocks[block].slots;
        let page = slots.len() / units - 1;
        let slots = slots[page * units..].iter().map(|slot| slot.unit).collect();
        self.emit(Op::Program { block, page, slots });
    }

    fn seal(&mut self, block: usize) {
        if self.rules.geometry.summary_page {
            let page = self.rules.geometry.pages_per_block - 1;
            self.emit(Op::Summary { block, page });
        }
        self.blocks[block].state = BlockState::Sealed;
        self.touch(block);
        self.take_last_turn(block);
    }

    /// Marks a unit invalid.
    pub(crate) fn invalidate(&mut self, ppn: u64) {
        let (block, index) = self.rules.geometry.locate(ppn);
        let slot = &mut self.blocks[block].slots[index];
        assert!(slot.valid, "unit {ppn} is invalidated twice");
        slot.valid = false;
        self.blocks[block].valid -= 1;
        self.touch(block);
    }

    /// Whether a block is retired when it is empty: it has been filled as often as it endures.
    pub(crate) fn is_worn(&self, block: usize) -> bool {
        let endurance = self.rules.endurance;
        endurance > 0 && self.totals.erases[block] + 1 >= endurance
    }

    /// Blocks of a pool that are retired.
    pub(crate) fn retired(&self, pool: usize) -> usize {
        let plane = |block| self.rules.geometry.plane_of(block);
        (0..self.blocks.len())
            .filter(|&b| self.blocks[b].state == BlockState::Retired)
            .filter(|&b| self.rules.pool_of(plane(b)) == pool)
            .count()
    }

    /// Empties a block and appends it to its plane's free list.
    pub(crate) fn erase(&mut self, block: usize) {
        assert_eq!(
            self.blocks[block].valid, 0,
            "block {block} is erased with valid units"
        );
        self.blocks[block].slots.clear();
        self.blocks[block].state = BlockState::Free;
        self.free[self.rules.geometry.plane_of(block)].push_back(block);
        self.emit(Op::Erase { block });
    }

    pub(crate) fn take_last_turn(&mut self, block: usize) {
        self.step += 1;
        self.blocks[block].turn = self.step;
    }

    fn touch(&mut self, block: usize) {
        self.step += 1;
        self.blocks[block].since = self.step;
    }

    fn emit(&mut self, op: Op<T>) {
        self.totals.count(&op);
        if self.recording {
            self.ops.push(op);
        }
    }

    /// Runs preconditioning: its operations are neither recorded nor counted.
    pub(crate) fn begin_fill(&mut self) -> Totals {
        self.recording = false;
        self.totals.clone()
    }

    /// Ends preconditioning with the totals that [`Self::begin_fill`] returned.
    pub(crate) fn end_fill(&mut self, totals: Totals) {
        self.recording = true;
        self.totals = totals;
    }

    pub(crate) fn take_ops(&mut self) -> Vec<Op<T>> {
        std::mem::take(&mut self.ops)
    }

    /// What was appended at an address, valid or not; `None` for padding and unwritten slots.
    pub(crate) fn unit(&self, ppn: u64) -> Option<T> {
        let (block, index) = self.rules.geometry.locate(ppn);
        let slot = self.blocks[block].slots.get(index)?;
        slot.unit.map(|(unit, _)| unit)
    }

    /// Whether the unit's page has been programmed; before that it lives in RAM.
    pub(crate) fn is_programmed(&self, ppn: u64) -> bool {
        let (block, index) = self.rules.geometry.locate(ppn);
        let units = self.rules.geometry.units_per_page;
        index / units < self.blocks[block].slots.len() / units
    }

    /// Erased, unopened blocks of a pool.
    pub(crate) fn free_blocks(&self, pool: usize) -> usize {
        let in_pool = |plane: &usize| self.rules.pool_of(*plane) == pool;
        let planes = (0..self.free.len()).filter(in_pool);
        planes.map(|plane| self.free[plane].len()).sum()
    }

    /// All valid units with their addresses, ascending.
    pub(crate) fn valid_units(&self) -> Vec<(u64, T)> {
        let mut found = Vec::new();
        for (number, block) in self.blocks.iter().enumerate() {
            for (index, slot) in block.slots.iter().enumerate() {
                if let (true, Some((unit, _))) = (slot.valid, slot.unit) {
                    found.push((self.rules.geometry.ppn(number, index), unit));
                }
            }
        }
        found
    }

    /// Share of the sealed blocks' slots that hold valid units: the utilisation that the curves
    /// of [`crate::curves`] take. `None` while no block is sealed.
    pub(crate) fn sealed_utilisation(&self) -> Option<f64> {
        let sealed = self.blocks.iter().filter(|b| b.state == BlockState::Sealed);
        let (count, valid) = sealed.fold((0, 0), |(n, v), block| (n + 1, v + block.valid));
        (count > 0).then(|| valid as f64 / (count * self.rules.geometry.units_per_block()) as f64)
    }

    /// Recounts everything from the slots and panics on the first contradiction.
    pub(crate) fn check(&self) {
        let g = &self.rules.geometry;
        for (number, block) in self.blocks.iter().enumerate() {
            let plane = g.plane_of(number);
            let valid = block.slots.iter().filter(|slot| slot.valid).count();
            assert_eq!(block.valid, valid, "valid count of block {number}");
            let full = block.slots.len() == g.units_per_block();
            let is_open = self.open[plane].contains(&Some(number));
            let is_free = self.free[plane].contains(&number);
            let expected = match block.state {
                BlockState::Free => (true, false, block.slots.is_empty()),
                BlockState::Open => (false, true, !full),
                BlockState::Sealed => (false, false, full),
                BlockState::Retired => (false, false, valid == 0),
            };
            assert_eq!(
                (is_free, is_open, true),
                expected,
                "state of block {number}"
            );
        }
        for plane in 0..g.planes() {
            if let Some(block) = self.open[plane][Stream::Gc as usize] {
                let partly = self.blocks[block].slots.len() % g.units_per_page;
                assert_eq!(partly, 0, "GC page of block {block} left partly filled");
            }
        }
    }
}
