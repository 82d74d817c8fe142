//! Bytes that begin at a page boundary, as direct I/O asks.
//!
//! Invariants: `start` is the offset of a page boundary in `space` or 0 while `space` is empty, and
//! `start + len` never exceeds `space.len()`. `space` is never grown in place: it would move.

use std::ops::{Deref, DerefMut};

/// Bytes every [`AlignedBuf`] is aligned to. No device asks for more.
pub const PAGE: usize = 4096;

/// A growable byte buffer that begins at a multiple of [`PAGE`].
#[derive(Debug, Default)]
pub struct AlignedBuf {
    space: Vec<u8>,
    start: usize,
    len: usize,
}

impl AlignedBuf {
    /// A buffer without bytes; it takes no memory.
    pub fn new() -> Self {
        Self::default()
    }

    pub fn zeroed(len: usize) -> Self {
        let space = vec![0; len + PAGE];
        let start = space.as_ptr().align_offset(PAGE);
        AlignedBuf { space, start, len }
    }

    /// Bytes it can hold without moving.
    pub fn capacity(&self) -> usize {
        self.space.len().saturating_sub(PAGE)
    }

    /// Makes it `len` bytes long; new bytes are zero.
    pub fn resize(&mut self, len: usize) {
        if len > self.capacity() {
            self.grow(len);
        }
        let old = self.len;
        self.len = len;
        if len > old {
            self[old..].fill(0);
        }
    }

    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        let old = self.len;
        if old + bytes.len() > self.capacity() {
            self.grow(old + bytes.len());
        }
        self.len += bytes.len();
        self[old..].copy_from_slice(bytes);
    }

    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Moves to a memory of `needed` bytes or of twice the present one, whichever is more.
    fn grow(&mut self, needed: usize) {
        let mut larger = Self::zeroed(needed.max(2 * self.capacity()));
        larger[..self.len].copy_from_slice(self);
        larger.len = self.len;
        *self = larger;
    }
}

impl Clone for AlignedBuf {
    fn clone(&self) -> Self {
        let mut copy = Self::zeroed(self.len);
        copy.copy_from_slice(self);
        copy
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.space[self.start..self.start + self.len]
    }
}

impl DerefMut for AlignedBuf {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.space[self.start..self.start + self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone)]
    enum BufferStep {
        Resize(usize),
        Extend(Vec<u8>),
        Clear,
        Clone,
    }

    fn step() -> impl Strategy<Value = BufferStep> {
        prop_oneof![
            4 => (0usize..20_000).prop_map(BufferStep::Resize),
            4 => prop::collection::vec(any::<u8>(), 0..9_000).prop_map(BufferStep::Extend),
            1 => Just(BufferStep::Clear),
            1 => Just(BufferStep::Clone),
        ]
    }

    proptest! {
        #[test]
        fn behaves_as_a_vector_and_stays_aligned(steps in prop::collection::vec(step(), 0..20)) {
            let mut buffer = AlignedBuf::new();
            let mut model = Vec::new();
            for step in steps {
                match step {
                    BufferStep::Resize(len) => {
                        buffer.resize(len);
                        model.resize(len, 0);
                    }
                    BufferStep::Extend(bytes) => {
                        buffer.extend_from_slice(&bytes);
                        model.extend_from_slice(&bytes);
                    }
                    BufferStep::Clear => {
                        buffer.clear();
                        model.clear();
                    }
                    BufferStep::Clone => buffer = buffer.clone(),
                }
                prop_assert_eq!(&buffer[..], &model[..]);
                prop_assert!(buffer.is_empty() || (buffer.as_ptr() as usize).is_multiple_of(PAGE));
            }
        }
    }

    #[test]
    fn within_its_capacity_it_does_not_move() {
        let mut buffer = AlignedBuf::zeroed(10_000);
        let address = buffer.as_ptr();
        buffer.clear();
        buffer.extend_from_slice(&[1; 6_000]);
        buffer.resize(10_000);
        assert_eq!(buffer.as_ptr(), address);
        assert_eq!(buffer[6_000..], [0; 4_000]);
    }
}
