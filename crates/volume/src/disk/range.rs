//! Ranges of bytes as pages: a part of a page in front, whole pages, a part behind.

use std::ops::Range;

use flashlore_content::PAGE_BYTES;

const PAGE: u64 = PAGE_BYTES as u64;

/// A range in terms of pages. What is in front and behind lies within one page each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pages {
    /// Before the first whole page.
    pub front: Option<Part>,
    /// The whole pages.
    pub whole: Range<u32>,
    /// After the last whole page.
    pub back: Option<Part>,
}

/// A part of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    pub lpn: u32,
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
                whole: first as u32..first as u32,
                back: None,
            };
        }
        if first == last {
            // Within one page, and not to its end.
            let part = Part {
                lpn: first as u32,
                within: lead..tail,
            };
            return Pages {
                front: Some(part),
                whole: last as u32..last as u32,
                back: None,
            };
        }
        Pages {
            front: (lead > 0).then_some(Part {
                lpn: first as u32,
                within: lead..PAGE_BYTES,
            }),
            whole: first as u32 + u32::from(lead > 0)..last as u32,
            back: (tail > 0).then_some(Part {
                lpn: last as u32,
                within: 0..tail,
            }),
        }
    }

    /// Bytes before the whole pages.
    pub fn front_bytes(&self) -> usize {
        self.front.as_ref().map_or(0, |part| part.within.len())
    }

    /// Bytes of the whole pages.
    pub fn whole_bytes(&self) -> usize {
        self.whole.len() * PAGE_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_a_range_is_in_one_part() {
        for offset in [0, 1, 511, 4095, 4096, 4097, 8191, 8192] {
            for length in [0, 1, 511, 4094, 4095, 4096, 4097, 8191, 8192, 8193, 12288] {
                let pages = Pages::of(offset, length);
                let mut bytes = Vec::new();
                let mut add = |lpn: u32, within: Range<usize>| {
                    bytes.extend(within.map(|b| u64::from(lpn) * PAGE + b as u64));
                };
                if let Some(part) = &pages.front {
                    assert!(part.within.len() < PAGE_BYTES);
                    add(part.lpn, part.within.clone());
                }
                pages.whole.clone().for_each(|lpn| add(lpn, 0..PAGE_BYTES));
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
