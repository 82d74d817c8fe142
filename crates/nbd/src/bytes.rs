//! Big-endian fields out of a slice. Every take is checked; nothing here allocates.

/// What is left of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    /// The next `count` bytes, or nothing if there are fewer.
    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// A string with its length in 32 bits before it; the bytes as they came.
    pub(crate) fn string(&mut self) -> Option<&'a [u8]> {
        let length = self.u32()?;
        self.bytes(usize::try_from(length).ok()?)
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0.is_empty()
    }
}

/// Collects a message of a known length out of bytes that come in pieces. It holds what has come and
/// no more: room is taken for bytes that are there.
#[derive(Debug, Default)]
pub(crate) struct Gather(Vec<u8>);

impl Gather {
    /// Takes bytes from `input` until `length` are held; how many were taken.
    pub(crate) fn take(&mut self, input: &[u8], length: usize) -> usize {
        let taken = length.saturating_sub(self.0.len()).min(input.len());
        self.0.extend_from_slice(&input[..taken]);
        taken
    }

    pub(crate) fn is_full(&self, length: usize) -> bool {
        self.0.len() >= length
    }

    /// The message, leaving nothing and no room behind.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }

    /// Bytes of room held.
    pub(crate) fn held(&self) -> usize {
        self.0.capacity()
    }
}
