//! Devices around a device: a filter is asked about each request that reads or changes something.
//!
//! | module | what it does |
//! |---|---|
//! | [`count`] | counts requests, bytes and errors, and keeps their times |
//! | [`delay`] | makes requests take longer |
//! | [`fault`] | makes requests fail, by chance from a seed |
//! | [`record`] | tells a log what was done, in whole pages: a device of its own, because it asks the inner one itself |

pub mod count;
pub mod delay;
pub mod fault;
pub mod record;

pub use count::{Count, Counts};
pub use delay::Delay;
pub use fault::Fault;
pub use record::Recorded;

use super::device::{About, BlockDevice, DiskError};

/// What a request is, to a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Request<'a> {
    /// A read of so many bytes from an offset on.
    Read(u64, u64),
    /// A write at an offset.
    Write(u64, &'a [u8]),
    /// A write of so many zeroes at an offset; no hole, if so.
    Zero(u64, u64, bool),
    /// A trim of so many bytes from an offset on.
    Trim(u64, u64),
    Flush,
}

/// What stands around a device.
pub trait Filter: Send + Sync {
    /// Has a request carried out by `inner`, or not; answers for it.
    ///
    /// # Errors
    /// Those of `inner`, or the filter's own.
    fn around(
        &self,
        request: Request<'_>,
        inner: &mut dyn FnMut() -> Result<(), DiskError>,
    ) -> Result<(), DiskError>;
}

/// A device with a filter around it.
#[derive(Debug)]
pub struct Filtered<D, F> {
    inner: D,
    filter: F,
}

impl<D: BlockDevice, F: Filter> Filtered<D, F> {
    /// Puts a filter around a device.
    pub fn new(inner: D, filter: F) -> Self {
        Filtered { inner, filter }
    }

    pub fn filter(&self) -> &F {
        &self.filter
    }
}

impl<D: BlockDevice, F: Filter> BlockDevice for Filtered<D, F> {
    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DiskError> {
        let request = Request::Read(offset, buffer.len() as u64);
        self.filter
            .around(request, &mut || self.inner.read(offset, buffer))
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), DiskError> {
        self.filter.around(Request::Write(offset, data), &mut || {
            self.inner.write(offset, data)
        })
    }

    fn write_zeroes(&self, offset: u64, length: u64, allocate: bool) -> Result<(), DiskError> {
        self.filter
            .around(Request::Zero(offset, length, allocate), &mut || {
                self.inner.write_zeroes(offset, length, allocate)
            })
    }

    fn trim(&self, offset: u64, length: u64) -> Result<(), DiskError> {
        self.filter.around(Request::Trim(offset, length), &mut || {
            self.inner.trim(offset, length)
        })
    }

    fn flush(&self) -> Result<(), DiskError> {
        self.filter
            .around(Request::Flush, &mut || self.inner.flush())
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
