//! What the machines lie on: the whole array, or its slow medium alone, which can only be read.
//!
//! Invariant: a block that is not in `present` is zeros. What the element keeps of others is zeros sometimes: with
//! ordered write-back a block that was given up goes home as zeros, and passes for data once the array is opened again.

use std::cell::Cell;
use std::ops::Range;

use flashlore_array::element::Statistics;
use flashlore_array::icash::ahead::Reach;
use flashlore_array::icash::{Counters, ICash, Image, Kept, Machine, Options, SlowAlone, lba};
use flashlore_array::index::Address;
use flashlore_array::{ArrayError, Element};
use flashlore_delta::Page;
use flashlore_volume::disk::{DiskError, ErrorKind};

pub enum Open {
    /// Both media.
    Whole(Box<ICash>),
    /// An older state, to be read.
    SlowAlone(Box<SlowAlone>),
}

/// What fills a page with that of an image.
pub type ReadImage<'a> = &'a mut dyn FnMut(u64, &mut Page) -> Result<(), ArrayError>;

pub struct Store {
    open: Open,
    machines: Vec<Machine>,
    /// The blocks of each machine that hold something.
    present: Vec<Blocks>,
}

/// The pages of one request of a client. The element counts it once, however many pages it has and whoever comes in
/// between.
#[derive(Default)]
pub struct ClientRequest {
    has_begun: Cell<bool>,
}

impl ClientRequest {
    /// Its next page is asked of the element.
    fn ask(&self, element: &mut ICash) {
        if self.has_begun.replace(true) {
            element.continue_request();
        }
    }
}

/// A set of blocks of a machine, and how many there are.
#[derive(Default)]
struct Blocks {
    bits: Vec<u64>,
    count: u64,
}

impl Blocks {
    fn contains(&self, block: Address) -> bool {
        let word = self.bits.get(block.index() / 64);
        word.is_some_and(|word| word >> (block.0 % 64) & 1 == 1)
    }

    fn set(&mut self, block: Address, is_in: bool) {
        if self.contains(block) == is_in {
            return;
        }
        let word = block.index() / 64;
        if self.bits.len() <= word {
            self.bits.resize(word + 1, 0);
        }
        self.bits[word] ^= 1 << (block.0 % 64);
        match is_in {
            true => self.count += 1,
            false => self.count -= 1,
        }
    }
}

/// How many blocks may be dirty: so many percent of the slots.
pub fn dirty_most(element: &ICash, target: u32) -> u64 {
    u64::from(element.shape().slots) * u64::from(target) / 100
}

pub fn failed(error: ArrayError) -> DiskError {
    let kind = match &error {
        ArrayError::NoRoom(_) => ErrorKind::NoSpace,
        ArrayError::Medium(error) if error.is_no_space() => ErrorKind::NoSpace,
        ArrayError::OutOfRange { .. } => ErrorKind::Invalid,
        _ => ErrorKind::Failed,
    };
    DiskError::Store {
        kind,
        source: Box::new(error),
    }
}

impl Store {
    /// Counts what is kept.
    ///
    /// # Errors
    /// None that could happen: its machines have their blocks.
    pub fn new(open: Open) -> Result<Self, DiskError> {
        let machines = match &open {
            Open::Whole(element) => element.shape().machines.clone(),
            Open::SlowAlone(alone) => alone.machines().to_vec(),
        };
        let mut store = Store {
            open,
            present: machines.iter().map(|_| Blocks::default()).collect(),
            machines,
        };
        for machine in 0..store.machines.len() {
            let end = Address(store.machines[machine].blocks);
            store.look_again(machine, Address(0)..end)?;
        }
        Ok(store)
    }

    /// Asks the element which blocks hold something.
    fn look_again(&mut self, machine: usize, blocks: Range<Address>) -> Result<(), DiskError> {
        for block in Address::each(blocks) {
            let is_there = self.form(machine, block)? != Kept::Nothing;
            self.present[machine].set(block, is_there);
        }
        Ok(())
    }

    pub fn machines(&self) -> &[Machine] {
        &self.machines
    }

    /// Blocks of a machine that hold something.
    pub fn stored(&self, machine: usize) -> u64 {
        self.present[machine].count
    }

    /// The element, if both media are open.
    pub fn element(&self) -> Option<&ICash> {
        match &self.open {
            Open::Whole(element) => Some(element),
            Open::SlowAlone(_) => None,
        }
    }

    /// The element, to change it.
    fn writable(&mut self) -> Result<&mut ICash, DiskError> {
        match &mut self.open {
            Open::Whole(element) => Ok(element),
            Open::SlowAlone(_) => Err(DiskError::ReadOnly),
        }
    }

    fn lba(&self, machine: usize, page: Address) -> u64 {
        lba(self.machines[machine].number, page.into())
    }

    /// In which form a page is kept, if it holds something.
    pub fn kept(&self, machine: usize, page: Address) -> Result<Kept, DiskError> {
        match self.present[machine].contains(page) {
            true => self.form(machine, page),
            false => Ok(Kept::Nothing),
        }
    }

    /// In which form the element keeps a page.
    fn form(&self, machine: usize, page: Address) -> Result<Kept, DiskError> {
        let lba = self.lba(machine, page);
        match &self.open {
            Open::Whole(element) => element.kept(lba),
            Open::SlowAlone(alone) => alone.kept(lba),
        }
        .map_err(failed)
    }

    /// Reads a page, as a part of a request.
    pub fn read(
        &mut self,
        request: &ClientRequest,
        machine: usize,
        page: Address,
        bytes: &mut Page,
    ) -> Result<(), DiskError> {
        let lba = self.lba(machine, page);
        match &mut self.open {
            Open::Whole(element) => {
                request.ask(element);
                element.read(lba, bytes)
            }
            Open::SlowAlone(alone) => alone.read(lba, bytes),
        }
        .map_err(failed)
    }

    /// Reads a page only to look at it: nothing changes.
    pub fn look(
        &mut self,
        machine: usize,
        page: Address,
        bytes: &mut Page,
    ) -> Result<(), DiskError> {
        let lba = self.lba(machine, page);
        match &mut self.open {
            Open::Whole(element) => element.look(lba, bytes),
            Open::SlowAlone(alone) => alone.read(lba, bytes),
        }
        .map_err(failed)
    }

    /// Writes a page, or gives it up where nothing is to be written, as a part of a request.
    pub fn change(
        &mut self,
        request: &ClientRequest,
        machine: usize,
        page: Address,
        bytes: Option<&Page>,
    ) -> Result<(), DiskError> {
        let lba = self.lba(machine, page);
        let is_there = self.present[machine].contains(page);
        let element = self.writable()?;
        if bytes.is_some() || is_there {
            request.ask(element);
        }
        match bytes {
            Some(bytes) => element.write(lba, bytes),
            None if is_there => element.trim(lba),
            None => Ok(()),
        }
        .map_err(failed)?;
        self.present[machine].set(page, bytes.is_some());
        Ok(())
    }

    /// One step of the work that follows requests; false if none is due.
    pub fn work(&mut self) -> Result<bool, DiskError> {
        match &mut self.open {
            Open::Whole(element) => element.work().map_err(failed),
            Open::SlowAlone(_) => Ok(false),
        }
    }

    pub fn give_back(&mut self) -> Result<bool, DiskError> {
        match &mut self.open {
            Open::Whole(element) => element.give_back().map_err(failed),
            Open::SlowAlone(_) => Ok(false),
        }
    }

    /// Brings some blocks home, if more are dirty than so many percent of the slots; answers how many.
    pub fn write_back_ahead(
        &mut self,
        dirty_target: u32,
        reach: Reach,
        most: usize,
    ) -> Result<u64, DiskError> {
        let Open::Whole(element) = &mut self.open else {
            return Ok(0);
        };
        let above = element
            .dirty()
            .saturating_sub(dirty_most(element, dirty_target));
        match above {
            0 => Ok(0),
            above => {
                let most = most.min(above as usize);
                element.write_back_ahead(reach, most).map_err(failed)
            }
        }
    }

    /// Lets the element work with other options from now on.
    pub fn tune(&mut self, options: &Options) -> Result<(), DiskError> {
        self.writable()?.tune(options).map_err(failed)
    }

    pub fn is_work_due(&self) -> bool {
        self.element().is_some_and(ICash::is_work_due)
    }

    pub fn flush(&mut self) -> Result<(), DiskError> {
        match &mut self.open {
            Open::Whole(element) => element.flush().map_err(failed),
            // Nothing was written.
            Open::SlowAlone(_) => Ok(()),
        }
    }

    /// Ends the use: everything is durable and, with ordered write-back, at home.
    pub fn close(self) -> Result<(), DiskError> {
        match self.open {
            Open::Whole(element) => element.close().map_err(failed),
            Open::SlowAlone(_) => Ok(()),
        }
    }

    /// Fills some pages of a machine as a clone of another, or with an image that is compared with the other.
    pub fn clone_part(
        &mut self,
        native: usize,
        machine: usize,
        pages: Range<Address>,
        image: Option<ReadImage<'_>>,
    ) -> Result<Image, DiskError> {
        let numbers = [native, machine].map(|position| self.machines[position].number);
        let element = self.writable()?;
        let cloned = match image {
            Some(read) => element.create_image_part(numbers[0], numbers[1], pages.clone(), read),
            None => element.clone_machine_part(numbers[0], numbers[1], pages.clone()),
        };
        // Also after a failure some may be filled.
        self.look_again(machine, pages)?;
        cloned.map_err(failed)
    }

    /// Reads what is kept of a page, in RAM and durably, and compares. Nothing changes.
    ///
    /// # Errors
    /// It cannot be read, or does not hold.
    pub fn verify(&mut self, machine: usize, page: Address) -> Result<(), ArrayError> {
        let lba = self.lba(machine, page);
        match &mut self.open {
            Open::Whole(element) => element.verify_block(lba),
            Open::SlowAlone(alone) => alone.read(lba, &mut [0; 4096]),
        }
    }

    /// What the element did and was asked for.
    pub fn figures(&self) -> Option<(Counters, Statistics)> {
        let element = self.element()?;
        Some((*element.counters(), element.statistics()))
    }

    /// Why nothing can be written any more.
    pub fn failure(&self) -> Option<String> {
        match &self.open {
            Open::Whole(element) => element.status().stopped,
            Open::SlowAlone(_) => None,
        }
    }
}
