//! Ranges of bytes as pages: a part of a page in front, whole pages, a part behind.

use std::ops::Range;

use flashlore_content::PAGE_BYTES;
use flashlore_flash::Lpn;

use super::device::DiskError;

const PAGE: u64 = PAGE_BYTES as u64;
/// Pages that are trimmed or asked about under one hold of the lock.
const LIGHT_BATCH: u32 = 1024;

/// A range in terms of pages. What is in front and behind lies within one page each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pages {
    /// Before the first whole page.
    pub front: Option<Part>,
    /// The whole pages.
    pub whole: Range<Lpn>,
    /// After the last whole page.
    pub back: Option<Part>,
}

/// A part of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The number of the page.
    pub lpn: Lpn,
    /// The bytes of the page.
    pub within: Range<usize>,
}

impl Pages {
    /// The pages of a range that lies within a volume.
    pub fn of(offset: u64, length: u64) -> Pages {
        let end = offset + length;
        let (first, last) = (offset / PAGE, end / PAGE);
        let (lead, tail) = ((offset % PAGE) as usize, (end % PAGE) as usize);
        if length == 0 {
            return Pages {
                front: None,
                whole: Lpn(first as u32)..Lpn(first as u32),
                back: None,
            };
        }
        if first == last {
            // Within one page, and not to its end.
            let part = Part {
                lpn: Lpn(first as u32),
                within: lead..tail,
            };
            return Pages {
                front: Some(part),
                whole: Lpn(last as u32)..Lpn(last as u32),
                back: None,
            };
        }
        Pages {
            front: (lead > 0).then_some(Part {
                lpn: Lpn(first as u32),
                within: lead..PAGE_BYTES,
            }),
            whole: Lpn(first as u32 + u32::from(lead > 0))..Lpn(last as u32),
            back: (tail > 0).then_some(Part {
                lpn: Lpn(last as u32),
                within: 0..tail,
            }),
        }
    }

    /// Bytes before the whole pages.
    fn front_bytes(&self) -> usize {
        self.front.as_ref().map_or(0, |part| part.within.len())
    }

    /// Bytes of the whole pages.
    fn whole_bytes(&self) -> usize {
        Lpn::each(self.whole.clone()).len() * PAGE_BYTES
    }
}

/// Reads bytes from `offset` on, by means of `read`, which reads whole pages.
///
/// # Errors
/// Those of `read`.
pub fn read_by_pages<E>(
    offset: u64,
    buffer: &mut [u8],
    read: impl Fn(Range<Lpn>, &mut [u8]) -> Result<(), E>,
) -> Result<(), E> {
    let pages = Pages::of(offset, buffer.len() as u64);
    let (front, rest) = buffer.split_at_mut(pages.front_bytes());
    let (whole, back) = rest.split_at_mut(pages.whole_bytes());
    let read_part = |part: Option<Part>, bytes: &mut [u8]| {
        let Some(Part { lpn, within }) = part else {
            return Ok(());
        };
        let mut page = [0; PAGE_BYTES];
        read(lpn..lpn + 1, &mut page)?;
        bytes.copy_from_slice(&page[within]);
        Ok(())
    };
    read_part(pages.front, front)?;
    read(pages.whole, whole)?;
    read_part(pages.back, back)
}

/// Writes bytes from `offset` on, by means of `write_part`, which leaves a page as it is around them, and of `write`,
/// which writes whole pages.
///
/// # Errors
/// Those of the two.
pub fn write_by_pages<E>(
    offset: u64,
    data: &[u8],
    write_part: impl Fn(&Part, &[u8]) -> Result<(), E>,
    write: impl FnOnce(Range<Lpn>, &[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let pages = Pages::of(offset, data.len() as u64);
    let (front, rest) = data.split_at(pages.front_bytes());
    let (whole, back) = rest.split_at(pages.whole_bytes());
    if let Some(part) = &pages.front {
        write_part(part, front)?;
    }
    write(pages.whole, whole)?;
    pages.back.map_or(Ok(()), |part| write_part(&part, back))
}

/// Refuses a range that does not lie within a device of so many bytes.
///
/// # Errors
/// It does not.
pub fn check_range(size: u64, offset: u64, length: u64) -> Result<(), DiskError> {
    match offset.checked_add(length) {
        Some(end) if end <= size => Ok(()),
        end => Err(DiskError::OutOfRange {
            offset,
            end: end.unwrap_or(u64::MAX),
            size,
        }),
    }
}

/// Pages in batches of at most so many.
pub(crate) fn in_batches(pages: Range<Lpn>, most: u32) -> impl Iterator<Item = Range<Lpn>> {
    let end = pages.end;
    let firsts = Lpn::each(pages).step_by(most as usize);
    firsts.map(move |first| first..Lpn(first.0.saturating_add(most)).min(end))
}

/// Pages in batches that are quickly done.
pub(crate) fn batches(pages: Range<Lpn>) -> impl Iterator<Item = Range<Lpn>> {
    in_batches(pages, LIGHT_BATCH)
}

/// Tells a range of bytes in pieces, from the flags of its pages, as [`super::BlockDevice::ask`] does.
///
/// # Errors
/// Those of `flags`.
pub fn tell(
    offset: u64,
    length: u64,
    flags: impl Fn(Range<Lpn>) -> Result<Vec<u32>, DiskError>,
    piece: &mut dyn FnMut(u64, u32) -> bool,
) -> Result<(), DiskError> {
    let page = PAGE_BYTES as u64;
    let end = offset + length;
    let mut at = offset;
    for batch in batches(Lpn((offset / page) as u32)..Lpn(end.div_ceil(page) as u32)) {
        for (lpn, flags) in Lpn::each(batch.clone()).zip(flags(batch)?) {
            let next = ((u64::from(lpn) + 1) * page).min(end);
            if !piece(next - at, flags) {
                return Ok(());
            }
            at = next;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_in_one_batch_and_none_is_too_long() {
        for (first, end) in [
            (0, 0),
            (3, 4),
            (3, 7),
            (3, 8),
            (0, 17),
            (u32::MAX - 6, u32::MAX),
        ] {
            let all = Lpn(first)..Lpn(end);
            let batches: Vec<Range<Lpn>> = in_batches(all.clone(), 4).collect();
            let lengths = batches.iter().map(|batch| Lpn::each(batch.clone()).len());
            assert!(
                lengths.clone().all(|length| (1..=4).contains(&length)),
                "{batches:?}"
            );
            assert_eq!(
                batches.len(),
                Lpn::each(all.clone()).len().div_ceil(4),
                "{batches:?}"
            );
            assert!(batches.into_iter().flat_map(Lpn::each).eq(Lpn::each(all)));
        }
    }

    #[test]
    fn every_byte_of_a_range_is_in_one_part() {
        for offset in [0, 1, 511, 4095, 4096, 4097, 8191, 8192] {
            for length in [0, 1, 511, 4094, 4095, 4096, 4097, 8191, 8192, 8193, 12288] {
                let pages = Pages::of(offset, length);
                let mut bytes = Vec::new();
                let mut add = |lpn: Lpn, within: Range<usize>| {
                    bytes.extend(within.map(|b| u64::from(lpn) * PAGE + b as u64));
                };
                if let Some(part) = &pages.front {
                    assert!(part.within.len() < PAGE_BYTES);
                    add(part.lpn, part.within.clone());
                }
                Lpn::each(pages.whole.clone()).for_each(|lpn| add(lpn, 0..PAGE_BYTES));
                if let Some(part) = &pages.back {
                    assert!(part.within.len() < PAGE_BYTES);
                    add(part.lpn, part.within.clone());
                }
                let expected: Vec<u64> = (offset..offset + length).collect();
                assert_eq!(bytes, expected, "{length} bytes at {offset}");
            }
        }
    }
}
