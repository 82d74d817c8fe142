//! Telling what is done with a device, in whole pages and in an order that is true.
//!
//! Requests that touch a page in common, one of them changing it, are carried out one after the other, in the order in
//! which they came; others run at the same time. So the order in which requests begin is one in which they could have
//! come one by one, and what is told of a page is what it held then. A request that covers a page in part is told as
//! the whole page: the bytes around what was asked for are read beside it.
//!
//! Invariant: each request that began ends once, by a panic too, and what succeeded is told before it is answered.

use std::ops::Range;

use flashlore_content::PAGE_BYTES;
use flashlore_flash::Lpn;
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::disk::device::{About, BlockDevice, DiskError};
use crate::disk::range::Pages;
use crate::disk::range::check_range;

const PAGE: u64 = PAGE_BYTES as u64;

/// What was done. Offsets and lengths are bytes, multiples of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done<'a> {
    /// These bytes were read from an offset on.
    Read(u64, &'a [u8]),
    /// From an offset on the device holds these bytes.
    Write(u64, &'a [u8]),
    /// From an offset on the device holds so many zeroes, stored.
    Zero(u64, u64),
    /// From an offset on so many bytes were forgotten.
    Trim(u64, u64),
    /// What had returned before is durable.
    Flush,
}

/// Who is told.
pub trait Log: Send + Sync {
    /// A request begins; a number to end it with. It may be waited here.
    fn begin(&self) -> u64;

    /// A request ended: what it did, in order, or nothing if it failed. One that changes nothing, a trim of less than
    /// a page say, did an empty list.
    fn end(&self, request: u64, done: Option<&[Done<'_>]>);
}

impl<L: Log + ?Sized> Log for std::sync::Arc<L> {
    fn begin(&self) -> u64 {
        (**self).begin()
    }

    fn end(&self, request: u64, done: Option<&[Done<'_>]>) {
        (**self).end(request, done);
    }
}

/// A request that runs, or waits for one before it.
#[derive(Debug)]
struct Running {
    number: u64,
    pages: Range<u64>,
    changes: bool,
}

impl Running {
    /// Whether the two may not run at the same time.
    fn excludes(&self, other: &Running) -> bool {
        let meet = self.pages.start < other.pages.end && other.pages.start < self.pages.end;
        meet && (self.changes || other.changes)
    }
}

#[derive(Debug, Default)]
struct Queue {
    /// In the order in which they came.
    running: Vec<Running>,
    came: u64,
}

/// A device that tells a log what is done with it.
#[derive(Debug)]
pub struct Recorded<D, L> {
    inner: D,
    log: L,
    queue: Mutex<Queue>,
    left: Condvar,
}

/// A request that has begun, until it ends.
struct Begun<'a, D, L: Log> {
    device: &'a Recorded<D, L>,
    place: u64,
    number: u64,
    ended: bool,
}

impl<D, L: Log> Begun<'_, D, L> {
    /// It succeeded and did one thing, which is nothing if it is empty.
    fn end_with(self, done: Done<'_>) {
        match done {
            Done::Read(_, []) | Done::Write(_, []) | Done::Zero(_, 0) | Done::Trim(_, 0) => {
                self.end(&[]);
            }
            done => self.end(&[done]),
        }
    }

    fn end(mut self, done: &[Done<'_>]) {
        self.ended = true;
        self.device.log.end(self.number, Some(done));
    }
}

impl<D, L: Log> Drop for Begun<'_, D, L> {
    fn drop(&mut self) {
        if !self.ended {
            self.device.log.end(self.number, None);
        }
        let place = self.place;
        self.device.queue().running.retain(|r| r.number != place);
        self.device.left.notify_all();
    }
}

/// The bytes of the pages that a range touches.
fn touched(offset: u64, length: u64) -> Range<u64> {
    match length {
        0 => offset..offset,
        _ => offset / PAGE * PAGE..(offset + length).next_multiple_of(PAGE),
    }
}

fn is_whole(offset: u64, length: u64) -> bool {
    offset.is_multiple_of(PAGE) && length.is_multiple_of(PAGE)
}

impl<D, L: Log> Recorded<D, L> {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock()
    }

    /// Tells `log` what is done with a device, whose size is a multiple of a page.
    pub fn new(inner: D, log: L) -> Self {
        Recorded {
            inner,
            log,
            queue: Mutex::default(),
            left: Condvar::new(),
        }
    }

    /// Begins a request to the pages of a range, after those that exclude it.
    fn begin(&self, bytes: Range<u64>, changes: bool) -> Begun<'_, D, L> {
        let mut queue = self.queue();
        let place = queue.came;
        queue.came += 1;
        queue.running.push(Running {
            number: place,
            pages: bytes,
            changes,
        });
        let must_wait = |queue: &mut Queue| {
            let at = queue.running.iter().position(|r| r.number == place);
            let (before, rest) = queue.running.split_at(at.unwrap_or(0));
            rest.first()
                .is_some_and(|own| before.iter().any(|other| own.excludes(other)))
        };
        self.left.wait_while(&mut queue, must_wait);
        drop(queue);
        Begun {
            device: self,
            place,
            number: self.log.begin(),
            ended: false,
        }
    }
}

impl<D: BlockDevice, L: Log> Recorded<D, L> {
    /// The whole pages at the edges of a range, as they are: each with its first byte.
    fn edges(&self, pages: &Pages) -> Result<Vec<(u64, [u8; PAGE_BYTES])>, DiskError> {
        let parts = pages.front.iter().chain(&pages.back);
        let edges = parts.map(|part| {
            let (at, mut page) = (u64::from(part.lpn) * PAGE, [0; PAGE_BYTES]);
            self.inner.read(at, &mut page)?;
            Ok((at, page))
        });
        edges.collect()
    }
}

impl<D: BlockDevice, L: Log> BlockDevice for Recorded<D, L> {
    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DiskError> {
        let length = buffer.len() as u64;
        check_range(self.size(), offset, length)?;
        let whole = touched(offset, length);
        let begun = self.begin(whole.clone(), false);
        if is_whole(offset, length) {
            self.inner.read(offset, buffer)?;
            begun.end_with(Done::Read(offset, buffer));
            return Ok(());
        }
        let mut bytes = vec![0; (whole.end - whole.start) as usize];
        self.inner.read(whole.start, &mut bytes)?;
        let lead = (offset - whole.start) as usize;
        buffer.copy_from_slice(&bytes[lead..lead + buffer.len()]);
        begun.end_with(Done::Read(whole.start, &bytes));
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), DiskError> {
        let length = data.len() as u64;
        check_range(self.size(), offset, length)?;
        let whole = touched(offset, length);
        let begun = self.begin(whole.clone(), true);
        self.inner.write(offset, data)?;
        if is_whole(offset, length) {
            begun.end_with(Done::Write(offset, data));
            return Ok(());
        }
        let mut bytes = vec![0; (whole.end - whole.start) as usize];
        let lead = (offset - whole.start) as usize;
        bytes[lead..lead + data.len()].copy_from_slice(data);
        for (at, page) in self.edges(&Pages::of(offset, length))? {
            let at = (at - whole.start) as usize;
            bytes[at..at + PAGE_BYTES].copy_from_slice(&page);
        }
        begun.end_with(Done::Write(whole.start, &bytes));
        Ok(())
    }

    fn write_zeroes(&self, offset: u64, length: u64, allocate: bool) -> Result<(), DiskError> {
        check_range(self.size(), offset, length)?;
        let begun = self.begin(touched(offset, length), true);
        self.inner.write_zeroes(offset, length, allocate)?;
        let pages = Pages::of(offset, length);
        let edges = self.edges(&pages)?;
        let mut done: Vec<Done<'_>> = edges
            .iter()
            .map(|(at, page)| Done::Write(*at, page))
            .collect();
        let (at, bytes) = whole_pages(&pages);
        if bytes > 0 {
            done.push(match allocate {
                true => Done::Zero(at, bytes),
                false => Done::Trim(at, bytes),
            });
        }
        begun.end(&done);
        Ok(())
    }

    fn trim(&self, offset: u64, length: u64) -> Result<(), DiskError> {
        check_range(self.size(), offset, length)?;
        let (at, bytes) = whole_pages(&Pages::of(offset, length));
        let begun = self.begin(at..at + bytes, true);
        self.inner.trim(offset, length)?;
        begun.end_with(Done::Trim(at, bytes));
        Ok(())
    }

    fn flush(&self) -> Result<(), DiskError> {
        let begun = self.begin(0..0, false);
        self.inner.flush()?;
        begun.end_with(Done::Flush);
        Ok(())
    }

    fn ask(
        &self,
        about: About,
        offset: u64,
        length: u64,
        piece: &mut dyn FnMut(u64, u32) -> bool,
    ) -> Result<(), DiskError> {
        self.inner.ask(about, offset, length, piece)
    }
}

/// The whole pages of a range: first byte and number of bytes.
fn whole_pages(pages: &Pages) -> (u64, u64) {
    let whole = &pages.whole;
    (
        u64::from(whole.start) * PAGE,
        Lpn::each(whole.clone()).len() as u64 * PAGE,
    )
}
