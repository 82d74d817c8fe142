//! What a served disk can do.

use crate::error::Errno;
use crate::transmission::Extents;

/// A disk that is served. Ranges are always inside it, and never written if it is read-only. Calls
/// come from several threads at once; `durable` means that what the call did has to outlive a power
/// cut before it returns. Errors are those of the reply.
pub trait Export: Send + Sync {
    /// Fills `buffer` from `offset` on.
    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Errno>;

    /// Writes `data` at `offset`.
    fn write(&self, offset: u64, data: &[u8], durable: bool) -> Result<(), Errno>;

    /// Makes durable whatever was answered before, on any connection.
    fn flush(&self) -> Result<(), Errno>;

    /// Forgets a range, if that is possible; what is read of it afterwards is not defined.
    fn trim(&self, offset: u64, length: u64, durable: bool) -> Result<(), Errno>;

    /// Makes a range read as zero. `allocate` forbids holes; `fast` wants [`Errno::NotSupported`]
    /// if it would take as long as writing.
    fn write_zeroes(
        &self,
        offset: u64,
        length: u64,
        allocate: bool,
        fast: bool,
        durable: bool,
    ) -> Result<(), Errno>;

    /// Fetches a range ahead of reading.
    fn cache(&self, offset: u64, length: u64) -> Result<(), Errno>;

    /// Tells the extents of a context from `offset` on, until [`Extents::push`] says that no more are
    /// needed or `length` bytes are told.
    fn block_status(
        &self,
        context: &str,
        offset: u64,
        length: u64,
        extents: &mut Extents,
    ) -> Result<(), Errno>;

    /// Whether it answers a context that it does not list, such as one with a time in its name.
    fn knows_context(&self, context: &str) -> bool {
        let _ = context;
        false
    }
}
