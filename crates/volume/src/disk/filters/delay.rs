//! Making requests take longer.

use std::time::Duration;

use super::{Filter, Request};
use crate::disk::device::DiskError;

/// Waits before requests.
#[derive(Debug, Clone, Copy, Default)]
pub struct Delay {
    /// Before a read.
    pub reads: Duration,
    /// Before a write, a write of zeroes or a trim.
    pub writes: Duration,
    /// Before a flush.
    pub flushes: Duration,
}

impl Filter for Delay {
    fn around(
        &self,
        request: Request<'_>,
        inner: &mut dyn FnMut() -> Result<(), DiskError>,
    ) -> Result<(), DiskError> {
        std::thread::sleep(match request {
            Request::Read(..) => self.reads,
            Request::Write(..) | Request::Zero(..) | Request::Trim(..) => self.writes,
            Request::Flush => self.flushes,
        });
        inner()
    }
}
