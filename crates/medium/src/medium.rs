//! `trait Medium`: what a volume asks of the store beneath it.
//!
//! What a medium promises, and what it does not:
//!
//! 1. A read returns what the newest finished write or discard left there.
//! 2. After a successful [`Medium::sync`] every call that had returned before it began is durable.
//! 3. After a power cut, a sector written since then holds its durable content or that of *any* of
//!    the writes and discards to it since. No order holds between calls, nor between the sectors of
//!    one call. A sector itself is never torn.
//! 4. After a *failed* sync, the calls it should have covered stay readable but may never become
//!    durable, even if later syncs succeed. Only writing them again can help.
//! 5. Calls may come from several threads. Overlapping calls at the same time have no defined order.

use std::sync::Arc;

use crate::error::{Cause, MediumError, Operation};

/// Bytes that a power cut leaves whole. Every alignment is a multiple of it.
pub const SECTOR: usize = 512;

/// A byte-addressed store with a volatile write cache.
///
/// Offsets and lengths of all calls must be multiples of [`Medium::alignment`], else the call fails
/// and changes nothing. A call of length zero does nothing.
#[expect(
    clippy::len_without_is_empty,
    reason = "an address space, not a collection"
)]
pub trait Medium: Send + Sync {
    /// Size in bytes.
    fn len(&self) -> u64;

    /// What offsets and lengths must be multiples of, in bytes: [`SECTOR`], or what direct I/O asks.
    /// A buffer whose address is a multiple too (see [`crate::AlignedBuf`]) is never copied.
    fn alignment(&self) -> u32;

    /// Fills `buf` with the bytes at `offset`.
    ///
    /// # Errors
    /// Out of range, misaligned, or not readable.
    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), MediumError>;

    /// Writes `buf` at `offset`; it may stay in a cache until [`Medium::sync`].
    ///
    /// # Errors
    /// Out of range, misaligned, no space, or not writable. What the range holds then is any mixture
    /// of old and new sectors.
    fn write(&self, offset: u64, buf: &[u8]) -> Result<(), MediumError>;

    /// Gives `len` bytes at `offset` back. Their content is undefined until they are written again.
    ///
    /// # Errors
    /// Out of range, misaligned, or refused by the device.
    fn discard(&self, offset: u64, len: u64) -> Result<(), MediumError>;

    /// A barrier: everything written and discarded before is durable when it returns.
    ///
    /// # Errors
    /// The device failed. See point 4 of what a medium promises.
    fn sync(&self) -> Result<(), MediumError>;
}

macro_rules! delegate {
    ($($pointer:ty),*) => {$(
        impl<M: Medium + ?Sized> Medium for $pointer {
            fn len(&self) -> u64 {
                (**self).len()
            }

            fn alignment(&self) -> u32 {
                (**self).alignment()
            }

            fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), MediumError> {
                (**self).read(offset, buf)
            }

            fn write(&self, offset: u64, buf: &[u8]) -> Result<(), MediumError> {
                (**self).write(offset, buf)
            }

            fn discard(&self, offset: u64, len: u64) -> Result<(), MediumError> {
                (**self).discard(offset, len)
            }

            fn sync(&self) -> Result<(), MediumError> {
                (**self).sync()
            }
        }
    )*};
}

delegate!(&M, Arc<M>, Box<M>);

/// Refuses a call that does not lie within `medium` or is not aligned as it asks.
pub(crate) fn check(
    medium: &(impl Medium + ?Sized),
    operation: Operation,
    offset: u64,
    length: u64,
) -> Result<(), MediumError> {
    let alignment = medium.alignment();
    let cause = if !(offset | length).is_multiple_of(u64::from(alignment)) {
        Cause::Misaligned { alignment }
    } else if offset
        .checked_add(length)
        .is_none_or(|end| end > medium.len())
    {
        Cause::OutOfRange {
            medium_len: medium.len(),
        }
    } else {
        return Ok(());
    };
    Err(MediumError::at(operation, offset, length, cause))
}
