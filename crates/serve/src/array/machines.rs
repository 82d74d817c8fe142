//! The virtual machines of an array as block devices for many threads.
//!
//! The element does one thing at a time: whoever changes it waits in a queue, whoever reads waits for the one change
//! under way. A request of several pages takes the lock for each of them, a flush for as long as it takes. Whoever
//! leaves work behind calls for it (`background`).
//!
//! In write-through a change is acknowledged when it is durable: a request pays for that once, at its end, however many
//! pages it has, and so do writes of zeros and trims. The element's own promise is that whatever is durable needs no fast
//! medium then.
//!
//! Each page holds what one request left: a part of a page is read, changed and written under one hold of the lock.

use std::ops::Range;
use std::sync::Arc;

use flashlore_array::ArrayError;
use flashlore_array::icash::ahead::Reach;
use flashlore_array::icash::{self, ICash, Kept, SlowAlone};
use flashlore_array::index::Address;
use flashlore_delta::{PAGE_BYTES, Page};
use flashlore_volume::Lpn;
use flashlore_volume::disk::device::{COMPRESSED, DELTA, HOLE, UNIQUE};
use flashlore_volume::disk::lock::{HeldStore, Locked};
use flashlore_volume::disk::range::{
    Pages, Part, check_range, read_by_pages, tell, write_by_pages,
};
use flashlore_volume::disk::{About, BlockDevice, DiskError};
use parking_lot::Mutex;

use super::background::Calls;
use super::description::Running;
use super::store::{ClientRequest, Open, Store};

pub struct Machines {
    store: Locked<Store>,
    /// Who is called when work is due.
    calls: Arc<Calls>,
    running: Mutex<Running>,
    /// Whether a change is acknowledged only when it is durable.
    writes_through: bool,
    /// Number and blocks of each.
    all: Vec<(u8, u32)>,
}

pub struct MachineDisk {
    machines: Arc<Machines>,
    /// Its place among them.
    position: usize,
    blocks: u32,
}

impl Machines {
    /// Those of an open array.
    ///
    /// # Errors
    /// None that could happen.
    pub fn whole(element: ICash) -> Result<Arc<Self>, DiskError> {
        Machines::new(Open::Whole(Box::new(element)))
    }

    /// Those on a slow medium, as they were earlier. They can only be read.
    ///
    /// # Errors
    /// None that could happen.
    pub fn slow_alone(alone: SlowAlone) -> Result<Arc<Self>, DiskError> {
        Machines::new(Open::SlowAlone(Box::new(alone)))
    }

    fn new(open: Open) -> Result<Arc<Self>, DiskError> {
        let store = Store::new(open)?;
        let all = store.machines().iter().map(|m| (m.number, m.blocks));
        let mode = store.element().map(|element| element.options().mode);
        Ok(Arc::new(Machines {
            all: all.collect(),
            writes_through: mode == Some(icash::Mode::WriteThrough),
            store: Locked::new(store),
            calls: Arc::default(),
            running: Mutex::default(),
        }))
    }

    /// The number of each machine, and its blocks of 4 KiB.
    pub fn all(&self) -> &[(u8, u32)] {
        &self.all
    }

    /// The disk of a machine, by its position in [`Machines::all`].
    ///
    /// # Panics
    /// If there is no such position.
    pub fn disk(self: &Arc<Self>, position: usize) -> MachineDisk {
        MachineDisk {
            machines: Arc::clone(self),
            position,
            blocks: self.all[position].1,
        }
    }

    /// Reads bytes of a machine, by its position, only to look at them: no copy comes to the fast medium, and nothing is
    /// any newer in RAM than it was.
    ///
    /// # Errors
    /// Out of range, or a block that cannot be read.
    pub fn look_at(
        &self,
        position: usize,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<(), DiskError> {
        let size = u64::from(self.all[position].1) * PAGE_BYTES as u64;
        check_range(size, offset, buffer.len() as u64)?;
        read_by_pages(offset, buffer, |pages, bytes| {
            let (bytes, _) = bytes.as_chunks_mut::<PAGE_BYTES>();
            Lpn::each(pages).zip(bytes).try_for_each(|(lpn, page)| {
                self.look(|store| store.look(position, Address(lpn.0), page))
            })
        })
    }

    /// Does something with the array while nobody else does.
    pub(super) fn with<R>(
        &self,
        act: impl FnOnce(&mut Store) -> Result<R, DiskError>,
    ) -> Result<R, DiskError> {
        self.on(&mut self.store.hold()?, act)
    }

    /// The same for what only looks or reads: it waits for no change but the one under way.
    pub(super) fn look<R>(
        &self,
        act: impl FnOnce(&mut Store) -> Result<R, DiskError>,
    ) -> Result<R, DiskError> {
        self.on(&mut self.store.look()?, act)
    }

    /// Does something with the array, and calls for what is due then.
    fn on<R>(
        &self,
        held: &mut HeldStore<'_, Store>,
        act: impl FnOnce(&mut Store) -> Result<R, DiskError>,
    ) -> Result<R, DiskError> {
        let store = held.get()?;
        let done = act(store);
        self.calls.served(store.is_work_due());
        done
    }

    /// One step of the work that follows requests; false if none is due. Whoever waits for the array gets it before the
    /// next step.
    ///
    /// # Errors
    /// The step failed, or the array is closed.
    pub fn work(&self) -> Result<bool, DiskError> {
        self.store.hold()?.get()?.work()
    }

    /// Gives some of what holds nothing back to what is below the media; false if there is nothing to give.
    ///
    /// # Errors
    /// A medium refused, or the array is closed.
    pub fn give_back(&self) -> Result<bool, DiskError> {
        self.store.hold()?.get()?.give_back()
    }

    /// Brings some blocks home if more than so many percent of the fast medium are not there; answers how many.
    ///
    /// # Errors
    /// A medium failed, there is no room, or the array is closed.
    pub fn write_back_ahead(
        &self,
        dirty_target: u32,
        reach: Reach,
        most: usize,
    ) -> Result<u64, DiskError> {
        let mut held = self.store.hold()?;
        held.get()?.write_back_ahead(dirty_target, reach, most)
    }

    pub fn running(&self) -> Running {
        *self.running.lock()
    }

    pub fn run(&self, running: Running) {
        *self.running.lock() = running;
    }

    pub(super) fn calls(&self) -> &Arc<Calls> {
        &self.calls
    }

    /// Ends the use: everything is durable and, with ordered write-back, at home. Later calls fail.
    ///
    /// # Errors
    /// It was closed before, or a medium failed.
    pub fn close(&self) -> Result<(), DiskError> {
        self.store.close()?.close()
    }

    /// Reads every block in RAM and durably, and tells of each machine and block that does not hold. Nothing changes.
    ///
    /// # Errors
    /// The array is closed, or its invariants do not hold: then a sentence says which.
    pub fn verify(
        &self,
        found: &mut dyn FnMut(u8, Address, ArrayError),
    ) -> Result<Result<(), String>, DiskError> {
        for (position, &(number, blocks)) in self.all.iter().enumerate() {
            for block in Address::first(blocks) {
                let verified = self.look(|store| Ok(store.verify(position, block)))?;
                if let Err(error) = verified {
                    found(number, block, error);
                }
            }
        }
        self.recount()
    }

    /// Recounts the invariants of what is in RAM.
    ///
    /// # Errors
    /// The array is closed. Inside: a sentence that says which does not hold.
    pub fn recount(&self) -> Result<Result<(), String>, DiskError> {
        self.look(|store| Ok(store.element().map_or(Ok(()), ICash::check)))
    }
}

impl MachineDisk {
    fn write_part(
        &self,
        request: &ClientRequest,
        part: &Part,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), DiskError> {
        self.machines.with(|store| {
            let (address, mut page) = (Address(part.lpn.0), [0; PAGE_BYTES]);
            store.read(request, self.position, address, &mut page)?;
            fill(&mut page[part.within.clone()]);
            store.change(request, self.position, address, Some(&page))
        })
    }

    fn change(
        &self,
        request: &ClientRequest,
        lpn: Lpn,
        page: Option<&Page>,
    ) -> Result<(), DiskError> {
        self.machines
            .with(|store| store.change(request, self.position, Address(lpn.0), page))
    }

    /// Whoever changed something is told that it was done: in write-through only when it is durable.
    fn acknowledged(&self) -> Result<(), DiskError> {
        match self.machines.writes_through {
            true => self.flush(),
            false => Ok(()),
        }
    }

    fn flags(&self, about: About, pages: Range<Lpn>) -> Result<Vec<u32>, DiskError> {
        let of = |kept| match (about, kept) {
            (About::Stored, Kept::Nothing | Kept::Lost) => 0,
            (About::Stored, Kept::Whole) => UNIQUE,
            (About::Stored, Kept::Delta) => UNIQUE | DELTA,
            (About::Stored, Kept::Compressed) => UNIQUE | COMPRESSED,
            (_, Kept::Nothing) => HOLE,
            _ => 0,
        };
        let position = self.position;
        self.machines.look(|store| {
            let kept = |lpn: Lpn| Ok(of(store.kept(position, Address(lpn.0))?));
            Lpn::each(pages).map(kept).collect()
        })
    }
}

impl BlockDevice for MachineDisk {
    fn size(&self) -> u64 {
        u64::from(self.blocks) * PAGE_BYTES as u64
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DiskError> {
        check_range(self.size(), offset, buffer.len() as u64)?;
        let request = ClientRequest::default();
        read_by_pages(offset, buffer, |pages, bytes| {
            let (bytes, _) = bytes.as_chunks_mut::<PAGE_BYTES>();
            Lpn::each(pages).zip(bytes).try_for_each(|(lpn, page)| {
                self.machines
                    .look(|store| store.read(&request, self.position, Address(lpn.0), page))
            })
        })
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), DiskError> {
        check_range(self.size(), offset, data.len() as u64)?;
        let request = ClientRequest::default();
        let part = |part: &Part, bytes: &[u8]| {
            self.write_part(&request, part, |space| space.copy_from_slice(bytes))
        };
        write_by_pages(offset, data, part, |pages, bytes| {
            let (bytes, _) = bytes.as_chunks::<PAGE_BYTES>();
            Lpn::each(pages)
                .zip(bytes)
                .try_for_each(|(lpn, page)| self.change(&request, lpn, Some(page)))
        })?;
        self.acknowledged()
    }

    fn write_zeroes(&self, offset: u64, length: u64, allocate: bool) -> Result<(), DiskError> {
        check_range(self.size(), offset, length)?;
        let request = ClientRequest::default();
        let pages = Pages::of(offset, length);
        for part in pages.front.iter().chain(&pages.back) {
            self.write_part(&request, part, |space| space.fill(0))?;
        }
        let zeros = allocate.then_some(&[0; PAGE_BYTES]);
        for lpn in Lpn::each(pages.whole) {
            self.change(&request, lpn, zeros)?;
        }
        self.acknowledged()
    }

    fn trim(&self, offset: u64, length: u64) -> Result<(), DiskError> {
        check_range(self.size(), offset, length)?;
        let request = ClientRequest::default();
        for lpn in Lpn::each(Pages::of(offset, length).whole) {
            self.change(&request, lpn, None)?;
        }
        self.acknowledged()
    }

    /// Makes all machines durable.
    fn flush(&self) -> Result<(), DiskError> {
        self.machines.with(Store::flush)
    }

    fn ask(
        &self,
        about: About,
        offset: u64,
        length: u64,
        piece: &mut dyn FnMut(u64, u32) -> bool,
    ) -> Result<(), DiskError> {
        check_range(self.size(), offset, length)?;
        match about {
            About::ChangedSince(_) => Err(DiskError::NotKnown),
            _ => tell(offset, length, |pages| self.flags(about, pages), piece),
        }
    }
}
