//! A medium whose ranges lie in another order on the one below, such as a disk image that is used as it is with what
//! describes it behind its end.
//!
//! Invariants: pieces follow each other without gaps from offset 0, none is empty, all lie within the medium below, no
//! two of them overlap there, and each begins and ends at a multiple of what the medium below is aligned to. Without
//! pieces it is the medium below.

use crate::error::{MediumError, Operation};
use crate::medium::{Medium, check};

/// Bytes that lie together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Where they begin on the medium below.
    pub at: u64,
    pub bytes: u64,
}

/// A medium made of pieces of another one.
#[derive(Debug)]
pub struct Pieced<M> {
    inner: M,
    /// Each with the offset at which it begins here.
    pieces: Vec<(u64, Piece)>,
}

impl<M: Medium> Pieced<M> {
    /// The pieces in the order in which they follow each other; the whole medium if there are none.
    ///
    /// # Errors
    /// They break an invariant: which one, as a sentence.
    pub fn new(inner: M, pieces: &[Piece]) -> Result<Self, String> {
        demand_apart(pieces)?;
        let alignment = u64::from(inner.alignment());
        let mut next = 0;
        let mut placed = Vec::with_capacity(pieces.len());
        for &piece in pieces {
            let Piece { at, bytes } = piece;
            if bytes == 0 || !(at | bytes).is_multiple_of(alignment) {
                return Err(format!(
                    "a piece of {bytes} bytes at byte {at}, expected multiples of {alignment}"
                ));
            }
            if at.checked_add(bytes).is_none_or(|end| end > inner.len()) {
                return Err(format!(
                    "a piece of {bytes} bytes at byte {at}, the medium has {}",
                    inner.len()
                ));
            }
            placed.push((next, piece));
            next += bytes;
        }
        Ok(Pieced {
            inner,
            pieces: placed,
        })
    }

    /// The medium below.
    pub fn inner(&self) -> &M {
        &self.inner
    }

    /// Calls `each` with where parts of a range lie below and which bytes of it they are.
    fn parts(
        &self,
        operation: Operation,
        offset: u64,
        length: u64,
        mut each: impl FnMut(u64, std::ops::Range<usize>) -> Result<(), MediumError>,
    ) -> Result<(), MediumError> {
        if self.pieces.is_empty() {
            return each(offset, 0..length as usize);
        }
        check(self, operation, offset, length)?;
        let end = offset + length;
        let first = self.pieces.partition_point(|&(from, _)| from <= offset);
        for &(from, piece) in &self.pieces[first.saturating_sub(1)..] {
            let (begin, behind) = (from.max(offset), (from + piece.bytes).min(end));
            if begin >= behind {
                break;
            }
            let bytes = (begin - offset) as usize..(behind - offset) as usize;
            each(piece.at + (begin - from), bytes)?;
        }
        Ok(())
    }
}

/// Refuses pieces that lie on each other.
fn demand_apart(pieces: &[Piece]) -> Result<(), String> {
    let mut sorted = pieces.to_vec();
    sorted.sort_by_key(|piece| piece.at);
    match sorted
        .windows(2)
        .find(|pair| pair[0].at.saturating_add(pair[0].bytes) > pair[1].at)
    {
        Some(pair) => Err(format!(
            "a piece of {} bytes at byte {} reaches into the one at byte {}",
            pair[0].bytes, pair[0].at, pair[1].at
        )),
        None => Ok(()),
    }
}

/// The pieces of which a range of a medium of pieces is made.
///
/// # Panics
/// The range reaches beyond them.
pub fn cut(pieces: &[Piece], range: std::ops::Range<u64>) -> Vec<Piece> {
    let mut from = 0;
    let mut found = Vec::new();
    for piece in pieces {
        let (begin, end) = (range.start.max(from), range.end.min(from + piece.bytes));
        if begin < end {
            found.push(Piece {
                at: piece.at + (begin - from),
                bytes: end - begin,
            });
        }
        from += piece.bytes;
    }
    assert!(range.end <= from, "{range:?} of {from} bytes");
    found
}

/// The same pieces, with those that follow each other on the medium below as one.
pub fn joined(pieces: impl IntoIterator<Item = Piece>) -> Vec<Piece> {
    let mut all: Vec<Piece> = Vec::new();
    for piece in pieces {
        match all.last_mut() {
            _ if piece.bytes == 0 => {}
            Some(last) if last.at + last.bytes == piece.at => last.bytes += piece.bytes,
            _ => all.push(piece),
        }
    }
    all
}

/// Behind the last byte of all pieces on the medium below.
pub fn end_of(pieces: &[Piece]) -> u64 {
    let ends = pieces.iter().map(|piece| piece.at + piece.bytes);
    ends.max().unwrap_or(0)
}

impl<M: Medium> Medium for Pieced<M> {
    fn len(&self) -> u64 {
        let last = self.pieces.last();
        last.map_or(self.inner.len(), |(from, piece)| from + piece.bytes)
    }

    fn alignment(&self) -> u32 {
        self.inner.alignment()
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), MediumError> {
        self.parts(Operation::Read, offset, buf.len() as u64, |at, bytes| {
            self.inner.read(at, &mut buf[bytes])
        })
    }

    fn write(&self, offset: u64, buf: &[u8]) -> Result<(), MediumError> {
        self.parts(Operation::Write, offset, buf.len() as u64, |at, bytes| {
            self.inner.write(at, &buf[bytes])
        })
    }

    fn discard(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        self.parts(Operation::Discard, offset, len, |at, bytes| {
            self.inner.discard(at, bytes.len() as u64)
        })
    }

    fn sync(&self) -> Result<(), MediumError> {
        self.inner.sync()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{MemoryMedium, SECTOR};

    const UNIT: u64 = SECTOR as u64;

    fn piece(at: u64, bytes: u64) -> Piece {
        Piece {
            at: at * UNIT,
            bytes: bytes * UNIT,
        }
    }

    proptest! {
        /// Pieces of a medium in any order are one medium: what is written is read back wherever it is cut, and lies where
        /// the pieces say.
        #[test]
        fn every_range_is_where_its_pieces_say(
            lengths in prop::collection::vec(1u64..6, 1..6),
            order in any::<prop::sample::Index>(),
            calls in prop::collection::vec((any::<prop::sample::Index>(), 0u64..12, 1u8..), 1..20),
        ) {
            let total: u64 = lengths.iter().sum();
            // One sector before each piece stays untouched.
            let mut at = 0;
            let mut pieces: Vec<Piece> = lengths.iter().map(|&bytes| {
                at += bytes + 1;
                piece(at - bytes, bytes)
            }).collect();
            let by = order.index(pieces.len());
            pieces.rotate_left(by);
            let inner = MemoryMedium::new((at + 1) as usize * SECTOR);
            let pieced = Pieced::new(&inner, &pieces).unwrap();
            prop_assert_eq!(pieced.len(), total * UNIT);
            let mut model = vec![0; total as usize * SECTOR];
            for (first, sectors, value) in calls {
                let first = first.index(total as usize) as u64;
                let sectors = sectors.min(total - first);
                let range = (first * UNIT) as usize..((first + sectors) * UNIT) as usize;
                let bytes: Vec<u8> = (0..range.len()).map(|n| value.wrapping_add((n / SECTOR) as u8)).collect();
                pieced.write(first * UNIT, &bytes).unwrap();
                model[range.clone()].copy_from_slice(&bytes);
                let mut found = vec![0; range.len()];
                pieced.read(first * UNIT, &mut found).unwrap();
                prop_assert!(found == bytes);
                let below: u64 = cut(&pieces, range.start as u64..range.end as u64).iter().map(|p| p.bytes).sum();
                prop_assert_eq!(below, sectors * UNIT);
            }
            let mut from = 0;
            for &Piece { at, bytes } in &pieces {
                let mut found = vec![0; bytes as usize];
                inner.read(at, &mut found).unwrap();
                prop_assert!(found == model[from..from + bytes as usize]);
                from += bytes as usize;
                let mut before = vec![1; SECTOR];
                inner.read(at - UNIT, &mut before).unwrap();
                prop_assert!(before.iter().all(|&byte| byte == 0));
            }
            pieced.read(total * UNIT, &mut [0; SECTOR]).unwrap_err();
        }
    }

    #[test]
    fn pieces_that_cannot_be_are_refused() {
        let medium = MemoryMedium::new(10 * SECTOR);
        let refused = |pieces: &[Piece]| Pieced::new(&medium, pieces).err();
        assert_eq!(refused(&[piece(0, 4), piece(6, 4)]), None);
        assert_eq!(refused(&[piece(6, 4), piece(0, 6)]), None);
        let text = refused(&[piece(0, 4), piece(3, 2)]).unwrap();
        assert!(text.contains("reaches into the one at byte 1536"), "{text}");
        let text = refused(&[piece(8, 4)]).unwrap();
        assert!(text.contains("the medium has 5120"), "{text}");
        let odd = Piece { at: 1, bytes: UNIT };
        assert!(refused(&[odd]).unwrap().contains("multiples of 512"));
        assert!(refused(&[piece(1, 0)]).is_some());
        let far = Piece {
            at: u64::MAX - UNIT + 1,
            bytes: UNIT,
        };
        assert!(refused(&[far]).is_some());
    }

    #[test]
    fn what_follows_below_is_one_piece() {
        let found = joined([
            piece(4, 2),
            piece(6, 1),
            piece(9, 0),
            piece(0, 4),
            piece(7, 1),
        ]);
        assert_eq!(found, [piece(4, 3), piece(0, 4), piece(7, 1)]);
        assert_eq!(cut(&found, UNIT..4 * UNIT), [piece(5, 2), piece(0, 1)]);
    }
}
