//! Which pages of a checkpoint table have changed since they were last written.

/// One bit a page.
#[derive(Debug, Clone)]
pub(crate) struct DirtyPages {
    bits: Vec<u64>,
    rows_per_page: u32,
}

impl DirtyPages {
    /// Nothing is dirty.
    pub fn new(pages: u32, rows_per_page: u32) -> Self {
        DirtyPages {
            bits: vec![0; (pages as usize).div_ceil(64)],
            rows_per_page,
        }
    }

    /// A row has changed.
    pub fn mark(&mut self, row: u32) {
        let page = row / self.rows_per_page;
        self.bits[page as usize / 64] |= 1 << (page % 64);
    }

    /// The first page from one on that has changed.
    pub fn next(&self, from: u32) -> Option<u32> {
        let word = from as usize / 64;
        let first = *self.bits.get(word)? >> (from % 64) << (from % 64);
        let rest = self.bits[word + 1..].iter().copied();
        let words = (word as u32..).zip(std::iter::once(first).chain(rest));
        let (word, bits) = words.into_iter().find(|&(_, bits)| bits != 0)?;
        Some(word * 64 + bits.trailing_zeros())
    }

    /// A page is written.
    pub fn clear(&mut self, page: u32) {
        self.bits[page as usize / 64] &= !(1 << (page % 64));
    }

    /// Everything is written.
    pub fn clear_all(&mut self) {
        self.bits.fill(0);
    }

    /// Whether a page has changed.
    pub fn is_dirty(&self, page: u32) -> bool {
        self.bits[page as usize / 64] >> (page % 64) & 1 == 1
    }

    /// Pages that have changed.
    pub fn count(&self) -> u32 {
        self.bits.iter().map(|word| word.count_ones()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_have_changed_are_found_in_order() {
        let mut dirty = DirtyPages::new(300, 10);
        for row in [0, 9, 640, 1279, 2990] {
            dirty.mark(row);
        }
        let all = |dirty: &DirtyPages| {
            let mut found = Vec::new();
            while let Some(page) = dirty.next(found.last().map_or(0, |last| last + 1)) {
                found.push(page);
            }
            found
        };
        assert_eq!(all(&dirty), [0, 64, 127, 299]);
        assert_eq!(dirty.count(), 4);
        dirty.clear(64);
        assert_eq!(all(&dirty), [0, 127, 299]);
        assert_eq!(dirty.next(300), None);
        assert_eq!(dirty.next(10_000), None);
    }
}
