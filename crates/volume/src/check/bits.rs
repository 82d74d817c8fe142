//! A bit for each handle.

use flashlore_flash::ObjectId;

/// Which objects have something. Memory is taken as far as bits are set: the rest is zeros that nobody touched.
pub(super) struct HandleBits(Vec<u64>);

impl HandleBits {
    /// None of so many.
    pub fn none_of(handles: u32) -> Self {
        HandleBits(vec![0; (handles as usize).div_ceil(64)])
    }

    /// Whether an object has it.
    #[inline]
    pub fn has(&self, object: ObjectId) -> bool {
        let word = self.0.get(object.index() / 64);
        word.is_some_and(|word| word >> (object.0 % 64) & 1 == 1)
    }

    /// It has; there must be such a handle.
    #[inline]
    pub fn set(&mut self, object: ObjectId) {
        self.0[object.index() / 64] |= 1 << (object.0 % 64);
    }

    /// It has not any more.
    pub fn clear(&mut self, object: ObjectId) {
        if let Some(word) = self.0.get_mut(object.index() / 64) {
            *word &= !(1 << (object.0 % 64));
        }
    }

    /// So do those of others, of which there are as many.
    pub fn add(&mut self, others: &HandleBits) {
        for (word, other) in self
            .0
            .iter_mut()
            .zip(&others.0)
            .filter(|(_, other)| **other != 0)
        {
            *word |= other;
        }
    }

    /// How many have it.
    pub fn count(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }
}
