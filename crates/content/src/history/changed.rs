//! The pages that changed after an instant: a bit for each page of the device.

use flashlore_flash::Lpn;

/// Pages that have changed, in ascending order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedPages {
    words: Vec<u64>,
    /// Bits that are set.
    count: u64,
}

impl ChangedPages {
    /// None of so many pages.
    pub(super) fn none_of(pages: u32) -> Self {
        ChangedPages {
            words: vec![0; pages.div_ceil(64) as usize],
            count: 0,
        }
    }

    /// What cannot be read may name a page that there is not.
    pub(super) fn insert(&mut self, lpn: Lpn) {
        if let Some(word) = self.words.get_mut(lpn.index() / 64) {
            let bit = 1 << (lpn.0 % 64);
            self.count += u64::from(*word & bit == 0);
            *word |= bit;
        }
    }

    pub(super) fn retain(&mut self, is_wanted: impl Fn(Lpn) -> bool) {
        for (index, word) in (0..).zip(&mut self.words) {
            for bit in bits_of(*word).filter(|bit| !is_wanted(Lpn(index * 64 + bit))) {
                *word &= !(1 << bit);
                self.count -= 1;
            }
        }
    }

    /// How many they are.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether a page is one of them.
    pub fn contains(&self, lpn: Lpn) -> bool {
        let word = self.words.get(lpn.index() / 64);
        word.is_some_and(|word| word >> (lpn.0 % 64) & 1 == 1)
    }

    /// All of them, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = Lpn> {
        let words = (0..).zip(&self.words);
        words.flat_map(|(index, &word): (u32, _)| {
            bits_of(word).map(move |bit| Lpn(index * 64 + bit))
        })
    }
}

/// The bits of a word that are set, the lowest first.
fn bits_of(word: u64) -> impl Iterator<Item = u32> {
    let rest = std::iter::successors(Some(word), |word| Some(word & word.wrapping_sub(1)));
    rest.take_while(|&rest| rest != 0).map(u64::trailing_zeros)
}
