//! A medium whose pages lie below part by part: the first parts of all pages one after the other, then all second parts.
//!
//! The flash pages of a volume are data with a record area, and that is a sector or a block of 4096 bytes of which a few
//! records take the beginning. Apart from each other below, data begin at multiples of 4096, whatever the alignment of the
//! volume, and records are dense: a file whose data are elided ([`crate::Elided`]) takes as much room as the records
//! have bytes. Without this each record area is a block of the file by itself: four times the room with 16 units in a
//! flash page, and so many extents that a file system takes minutes to remove the file.
//!
//! Invariants: each byte lies at one place below, and no two at the same. What lies before the pages, or behind them, is at
//! the same offset below. All sizes are multiples of what the medium below is aligned to.

use std::ops::Range;

use crate::error::{MediumError, Operation};
use crate::medium::{Medium, check};

/// Where pages lie, and what they are made of.
///
/// Of a volume with U units in a flash page they are 4096 × U bytes of data, 64 × U bytes of records rounded up to whole
/// sectors, and what is left of its record area, which stays zero. Any other bytes may lie there as well: metadata that a
/// volume has before it grows into these pages are found where they were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageParts {
    /// Where the first page begins.
    pub at: u64,
    /// Pages that follow each other from there.
    pub pages: u64,
    /// Bytes of each part of a page, in their order in it: data, bytes with records, bytes that stay zero.
    pub parts: Vec<u64>,
}

/// A medium that has the parts of pages together.
#[derive(Debug)]
pub struct Parted<M> {
    inner: M,
    at: u64,
    pages: u64,
    /// Bytes of a page.
    stride: u64,
    parts: Vec<Part>,
}

/// A part of every page.
#[derive(Debug)]
struct Part {
    /// The bytes of a page that it is.
    within: Range<u64>,
    /// Where that of the first page lies below.
    below: u64,
}

impl Part {
    fn len(&self) -> u64 {
        self.within.end - self.within.start
    }
}

impl<M: Medium> Parted<M> {
    /// A medium on which these pages lie part by part below.
    ///
    /// # Errors
    /// The pages have no parts, a part is empty or not aligned, or they do not lie within the medium: which, as a
    /// sentence.
    pub fn new(inner: M, layout: &PageParts) -> Result<Self, String> {
        let PageParts { at, pages, .. } = *layout;
        let alignment = u64::from(inner.alignment());
        let odd = { layout.parts.iter() }.find(|&&part| part == 0 || part % alignment != 0);
        if let Some(part) = odd {
            return Err(format!(
                "a part of {part} bytes of a page, expected a multiple of {alignment}"
            ));
        }
        if layout.parts.is_empty() || !at.is_multiple_of(alignment) {
            return Err(format!(
                "pages of {} parts from byte {at} on, expected at least one part and a multiple of {alignment}",
                layout.parts.len()
            ));
        }
        let sum = { layout.parts.iter() }.try_fold(0u64, |sum, &part| sum.checked_add(part));
        let end = sum.and_then(|sum| sum.checked_mul(pages)?.checked_add(at));
        let (Some(stride), Some(_)) = (sum, end.filter(|&end| end <= inner.len())) else {
            return Err(format!(
                "{pages} pages of {:?} bytes from byte {at} on, the medium has {}",
                layout.parts,
                inner.len()
            ));
        };
        let mut within = 0;
        let parts = layout.parts.iter().map(|&bytes| {
            let part = Part {
                within: within..within + bytes,
                below: at + within * pages,
            };
            within += bytes;
            part
        });
        Ok(Parted {
            at,
            pages,
            stride,
            parts: parts.collect(),
            inner,
        })
    }

    /// The medium below.
    pub fn inner(&self) -> &M {
        &self.inner
    }

    /// Behind the last page.
    fn end(&self) -> u64 {
        self.at + self.pages * self.stride
    }

    /// Where the byte at `offset` lies below, and how many from there on lie together.
    fn below(&self, offset: u64) -> (u64, u64) {
        if offset < self.at {
            return (offset, self.at - offset);
        }
        if offset >= self.end() {
            return (offset, u64::MAX - offset);
        }
        let page = (offset - self.at) / self.stride;
        let within = (offset - self.at) % self.stride;
        let of = self.parts.partition_point(|part| part.within.end <= within);
        let part = &self.parts[of];
        let at = part.below + page * part.len() + (within - part.within.start);
        (at, part.within.end - within)
    }

    /// Calls `each` with where a range lies below and which bytes of it lie there, what lies together at once.
    fn pieces(
        &self,
        offset: u64,
        length: u64,
        mut each: impl FnMut(u64, Range<usize>) -> Result<(), MediumError>,
    ) -> Result<(), MediumError> {
        let mut at = 0;
        let mut bytes = 0..0;
        while (bytes.end as u64) < length {
            let (next, together) = self.below(offset + bytes.end as u64);
            let together = together.min(length - bytes.end as u64) as usize;
            if next != at + bytes.len() as u64 || bytes.is_empty() {
                if !bytes.is_empty() {
                    each(at, bytes.clone())?;
                }
                (at, bytes) = (next, bytes.end..bytes.end);
            }
            bytes.end += together;
        }
        match bytes.is_empty() {
            true => Ok(()),
            false => each(at, bytes),
        }
    }
}

impl<M: Medium> Medium for Parted<M> {
    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn alignment(&self) -> u32 {
        self.inner.alignment()
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), MediumError> {
        let length = buf.len() as u64;
        check(self, Operation::Read, offset, length)?;
        self.pieces(offset, length, |at, bytes| {
            self.inner.read(at, &mut buf[bytes])
        })
    }

    fn write(&self, offset: u64, buf: &[u8]) -> Result<(), MediumError> {
        let length = buf.len() as u64;
        check(self, Operation::Write, offset, length)?;
        self.pieces(offset, length, |at, bytes| {
            self.inner.write(at, &buf[bytes])
        })
    }

    /// Of whole pages each part is one call.
    fn discard(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        check(self, Operation::Discard, offset, len)?;
        let end = offset + len;
        let pages_before = |byte: u64| byte.clamp(self.at, self.end()) - self.at;
        let first = pages_before(offset).div_ceil(self.stride);
        let behind = pages_before(end) / self.stride;
        let discard = |at, bytes: Range<usize>| self.inner.discard(at, bytes.len() as u64);
        if first >= behind {
            return self.pieces(offset, len, discard);
        }
        for part in &self.parts {
            let at = part.below + first * part.len();
            self.inner.discard(at, (behind - first) * part.len())?;
        }
        let (whole, rest) = (
            self.at + first * self.stride,
            self.at + behind * self.stride,
        );
        self.pieces(offset, whole - offset, discard)?;
        self.pieces(rest, end - rest, discard)
    }

    fn sync(&self) -> Result<(), MediumError> {
        self.inner.sync()
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use proptest::prelude::*;

    use super::*;
    use crate::{MemoryMedium, SECTOR};

    const UNIT: u64 = SECTOR as u64;

    /// Counts calls and notes what was discarded.
    struct Counted {
        inner: MemoryMedium,
        reads: Mutex<u32>,
        discards: Mutex<Vec<(u64, u64)>>,
    }

    impl Counted {
        fn new(sectors: u64) -> Self {
            Counted {
                inner: MemoryMedium::new(sectors as usize * SECTOR),
                reads: Mutex::default(),
                discards: Mutex::default(),
            }
        }
    }

    impl Medium for Counted {
        fn len(&self) -> u64 {
            self.inner.len()
        }

        fn alignment(&self) -> u32 {
            self.inner.alignment()
        }

        fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), MediumError> {
            *self.reads.lock() += 1;
            self.inner.read(offset, buf)
        }

        fn write(&self, offset: u64, buf: &[u8]) -> Result<(), MediumError> {
            self.inner.write(offset, buf)
        }

        fn discard(&self, offset: u64, len: u64) -> Result<(), MediumError> {
            self.discards.lock().push((offset / UNIT, len / UNIT));
            self.inner.discard(offset, len)
        }

        fn sync(&self) -> Result<(), MediumError> {
            self.inner.sync()
        }
    }

    fn layout(at: u64, pages: u64, parts: &[u64]) -> PageParts {
        PageParts {
            at: at * UNIT,
            pages,
            parts: parts.iter().map(|part| part * UNIT).collect(),
        }
    }

    proptest! {
        /// Memory zeros what is discarded, and only what a call named.
        #[test]
        fn every_byte_has_its_place(
            at in 0u64..4,
            pages in 0u64..6,
            parts in prop::collection::vec(1u64..4, 1..4),
            behind in 1u64..4,
            calls in prop::collection::vec(
                (any::<prop::sample::Index>(), 0u64..30, 0u8..),
                1..30,
            ),
        ) {
            let total = at + pages * parts.iter().sum::<u64>() + behind;
            let parted = Parted::new(Counted::new(total), &layout(at, pages, &parts)).unwrap();
            let model = MemoryMedium::new(total as usize * SECTOR);
            for (first, sectors, value) in calls {
                let first = first.index(total as usize) as u64;
                let sectors = sectors.min(total - first);
                let bytes: Vec<u8> = (0..sectors as usize * SECTOR)
                    .map(|n| value.wrapping_add((n / SECTOR) as u8))
                    .collect();
                for medium in [&parted as &dyn Medium, &model] {
                    match value % 4 {
                        0 => medium.discard(first * UNIT, sectors * UNIT).unwrap(),
                        _ => medium.write(first * UNIT, &bytes).unwrap(),
                    }
                }
                for (first, sectors) in [(first, sectors), (0, total)] {
                    let mut found = vec![1; sectors as usize * SECTOR];
                    let mut expected = vec![2; sectors as usize * SECTOR];
                    parted.read(first * UNIT, &mut found).unwrap();
                    model.read(first * UNIT, &mut expected).unwrap();
                    prop_assert!(found == expected);
                }
            }
            parted.read(total * UNIT, &mut [0; SECTOR]).unwrap_err();
            parted.discard(total * UNIT, UNIT).unwrap_err();
        }
    }

    #[test]
    fn parts_lie_together_and_are_discarded_together() {
        let parted = Parted::new(Counted::new(40), &layout(2, 3, &[8, 1, 3])).unwrap();
        parted.write(2 * UNIT, &[1; 8 * SECTOR]).unwrap();
        parted.write(22 * UNIT, &[2; SECTOR]).unwrap();
        let mut below = vec![0; 40 * SECTOR];
        parted.inner().inner.read(0, &mut below).unwrap();
        assert!(below[2 * SECTOR..10 * SECTOR].iter().all(|&byte| byte == 1));
        // Three times 8 sectors of data, then the records of page 1.
        let records = (2 + 3 * 8 + 1) * SECTOR;
        assert_eq!(below[records..records + SECTOR], [2; SECTOR]);
        parted.discard(UNIT, 37 * UNIT).unwrap();
        let discards = std::mem::take(&mut *parted.inner().discards.lock());
        assert_eq!(discards, [(2, 24), (26, 3), (29, 9), (1, 1)]);
        // Before the pages, and the data of the first one.
        parted.read(0, &mut [0; 10 * SECTOR]).unwrap();
        assert_eq!(*parted.inner().reads.lock(), 1);
        parted.read(0, &mut [0; 11 * SECTOR]).unwrap();
        assert_eq!(*parted.inner().reads.lock(), 3);
    }

    #[test]
    fn pages_that_cannot_be_are_refused() {
        let refused = |layout: PageParts| {
            let parted = Parted::new(MemoryMedium::new(20 * SECTOR), &layout);
            parted.err().unwrap_or_default()
        };
        assert_eq!(refused(layout(2, 2, &[8, 1])), "");
        assert!(refused(layout(3, 2, &[8, 1])).contains("the medium has 10240"));
        assert!(refused(layout(2, 2, &[8, 0])).contains("a part of 0 bytes"));
        assert!(refused(layout(2, 2, &[])).contains("at least one part"));
        assert!(refused(layout(0, u64::MAX, &[8])).contains("the medium has 10240"));
        let mut odd = layout(2, 2, &[8]);
        odd.at += 1;
        assert!(refused(odd).contains("a multiple of 512"));
        odd = layout(2, 2, &[8]);
        odd.parts[0] = 100;
        assert!(refused(odd).contains("a part of 100 bytes of a page, expected a multiple of 512"));
    }
}
