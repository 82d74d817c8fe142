//! A bit for each handle.

use std::ops::Range;

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

    /// Whether any of these has it.
    pub fn has_any(&self, mut objects: Range<u32>) -> bool {
        let words = objects.start.div_ceil(64) as usize..(objects.end / 64) as usize;
        match self
            .0
            .get(words.clone())
            .filter(|_| words.start < words.end)
        {
            Some(whole) => {
                let (first, end) = (words.start as u32 * 64, words.end as u32 * 64);
                whole.iter().any(|word| *word != 0)
                    || (objects.start..first).any(|row| self.has(ObjectId(row)))
                    || (end..objects.end).any(|row| self.has(ObjectId(row)))
            }
            None => objects.any(|row| self.has(ObjectId(row))),
        }
    }

    /// How many have it.
    pub fn count(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_of_a_range_are_found_at_its_ends_and_in_its_words() {
        for set in [0, 5, 63, 64, 127, 128, 199] {
            let mut bits = HandleBits::none_of(200);
            bits.set(ObjectId(set));
            for start in 0..200 {
                for end in start..=200 {
                    assert_eq!(bits.has_any(start..end), (start..end).contains(&set));
                }
            }
        }
    }
}
