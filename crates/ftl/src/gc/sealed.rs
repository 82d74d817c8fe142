//! Victims sealed before the window of old versions begins (BVSSD, SYSTOR 2012, section 3.4).
//!
//! What lies in such a block was written before the window, so that old versions of the window in it are
//! fewer. It is a cheap filter and proves nothing: what is needed is known unit by unit. It prefers: where
//! the victim policy finds no such block, any will do. A policy that looks at the first few of its
//! candidates looks at as many here.
//!
//! A block is sealed when its last page is programmed, whoever filled it; the clock is that of the versions.

use flashlore_flash::{BlockId, Time};

/// When every block was sealed, and where the window begins.
#[derive(Debug, Clone)]
pub(crate) struct SealTimes {
    sealed: Vec<Time>,
    window: Time,
}

impl SealTimes {
    /// So many blocks; the window has no beginning yet.
    pub fn new(blocks: u32) -> Self {
        SealTimes {
            sealed: vec![0; blocks as usize],
            window: 0,
        }
    }

    /// A block is sealed.
    pub fn seal(&mut self, block: BlockId, at: Time) {
        self.sealed[block.index()] = at;
    }

    /// The window begins at an instant.
    pub fn window_begins(&mut self, instant: Time) {
        self.window = instant;
    }

    /// Whether the window has begun later than the device: before that no block is preferred.
    pub fn is_useful(&self) -> bool {
        self.window > 0
    }

    /// Whether a sealed block was sealed before the window.
    pub fn is_before(&self, block: BlockId) -> bool {
        self.sealed[block.index()] < self.window
    }
}
