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

    /// Whether a page has changed.
    pub fn is_dirty(&self, page: u32) -> bool {
        self.bits[page as usize / 64] >> (page % 64) & 1 == 1
    }

    /// Everything is written.
    pub fn clear(&mut self) {
        self.bits.fill(0);
    }
}
