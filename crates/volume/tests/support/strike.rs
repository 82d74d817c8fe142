//! One place of a medium, damaged in one way.
//!
//! Invariant: a strike names places alone, so that it can be printed, and done again on another image of the same size.

use std::ops::Range;

/// What becomes of a range of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strike {
    /// A bit of a byte flips.
    Flip { at: usize, bit: u8 },
    /// The range is zeros.
    Zero { at: usize, len: usize },
    /// The range is replaced by what lies elsewhere on the medium.
    Move { at: usize, from: usize, len: usize },
    /// The range is replaced by what lies there in another image: an earlier one, or one of another volume.
    Put { at: usize, len: usize },
}

impl Strike {
    /// The bytes it replaces.
    pub fn range(self) -> Range<usize> {
        match self {
            Strike::Flip { at, .. } => at..at + 1,
            Strike::Zero { at, len } | Strike::Move { at, len, .. } | Strike::Put { at, len } => {
                at..at + len
            }
        }
    }

    /// Damages a medium. Answers whether it is another one now.
    pub fn on(self, image: &mut [u8], other: &[u8]) -> bool {
        let range = self.range();
        let bytes = match self {
            Strike::Flip { at, bit } => vec![image[at] ^ 1 << bit],
            Strike::Zero { len, .. } => vec![0; len],
            Strike::Move { from, len, .. } => image[from..from + len].to_vec(),
            Strike::Put { .. } => other[range.clone()].to_vec(),
        };
        let struck = &mut image[range];
        let changes = *struck != bytes[..];
        struck.copy_from_slice(&bytes);
        changes
    }
}
