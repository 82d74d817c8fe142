//! Pages of 4096 bytes that follow from 8: what a test stores where it matters whose page it is, and not what it says.
//!
//! The first word of a page is its seed, and the seed is all there is to know of the page: whoever has the page reads the
//! seed off it and compares the rest with what follows from that. No page stands for another one, whatever was done to it.
//!
//! | bits of the seed | whole | changed |
//! |---|---|---|
//! | 62 and 63 | 1 | 2 |
//! | 56 to 61 | version | most words that are changed |
//! | 32 to 55 | version | version |
//! | 0 to 31 | address | address |
//!
//! Invariants:
//!
//! - A seed says 1 or 2 in its highest bits. So a page of zeros is no pattern, nor is one of ones.
//! - Words 1 to 7 are never changed, so that a page that is no pattern is seldom looked at any further.
//! - The bytes of a seed never change: side tables that were written hold seeds.

/// Bytes of a page that is a pattern.
pub const PATTERN_BYTES: usize = 4096;
const WORD: usize = 8;
/// Words at the beginning of a page that are not changed.
const HEAD: usize = 8;

const WHOLE: u64 = 1;
const CHANGED: u64 = 2;
const KIND_AT: u32 = 62;
const CHANGES_AT: u32 = 56;
const VERSION_AT: u32 = 32;

/// The most versions of an address whose pages have nothing in common.
pub const WHOLE_VERSIONS: u32 = 1 << (KIND_AT - VERSION_AT);
/// The most versions of an address whose pages differ in a few words.
pub const CHANGED_VERSIONS: u32 = 1 << (CHANGES_AT - VERSION_AT);
/// The most words in which a version differs from the page that all versions of its address come from.
pub const MOST_CHANGES: u32 = (1 << (KIND_AT - CHANGES_AT)) - 1;

/// Steps of the sequence that words are made of: 2^64 divided by the golden ratio.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// A page that follows from its seed. Nothing compresses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pattern {
    seed: u64,
}

impl Pattern {
    /// A page that has nothing in common with that of any other address or version.
    ///
    /// # Panics
    /// If `version` is not below [`WHOLE_VERSIONS`].
    pub fn whole(address: u32, version: u32) -> Self {
        assert!(
            version < WHOLE_VERSIONS,
            "version {version} of a pattern, expected less than {WHOLE_VERSIONS}"
        );
        let seed = WHOLE << KIND_AT | u64::from(version) << VERSION_AT | u64::from(address);
        Pattern { seed }
    }

    /// A page that any two versions of an address have in common but for the first word and at most `changes` words of 8
    /// bytes in each. In version 0 nothing is changed.
    ///
    /// # Panics
    /// If `version` is not below [`CHANGED_VERSIONS`], or there are more changes than [`MOST_CHANGES`].
    pub fn changed(address: u32, version: u32, changes: u32) -> Self {
        assert!(
            version < CHANGED_VERSIONS,
            "version {version} of a pattern, expected less than {CHANGED_VERSIONS}"
        );
        assert!(
            changes <= MOST_CHANGES,
            "{changes} changed words of a pattern, expected at most {MOST_CHANGES}"
        );
        let seed = CHANGED << KIND_AT
            | u64::from(changes) << CHANGES_AT
            | u64::from(version) << VERSION_AT
            | u64::from(address);
        Pattern { seed }
    }

    /// The pattern of a seed, if it is one of a pattern.
    pub fn from_seed(seed: u64) -> Option<Self> {
        matches!(seed >> KIND_AT, WHOLE | CHANGED).then_some(Pattern { seed })
    }

    /// What the page follows from: its first word, little-endian.
    pub fn seed(self) -> u64 {
        self.seed
    }

    /// The address it was made of.
    pub fn address(self) -> u32 {
        self.seed as u32
    }

    /// The version it was made of.
    pub fn version(self) -> u32 {
        let bits = (self.seed >> VERSION_AT) as u32;
        match self.is_changed() {
            true => bits % CHANGED_VERSIONS,
            false => bits % WHOLE_VERSIONS,
        }
    }

    /// Whether versions of its address have most of the page in common.
    pub fn is_changed(self) -> bool {
        self.seed >> KIND_AT == CHANGED
    }

    /// The pattern that a page is, if it is one: every byte of it is compared.
    pub fn of(page: &[u8; PATTERN_BYTES]) -> Option<Self> {
        let words = page.as_chunks::<WORD>().0;
        let pattern = Self::from_seed(u64::from_le_bytes(words[0]))?;
        let mut stream = pattern.stream();
        let mut head = words[1..HEAD].iter();
        if !head.all(|word| *word == stream.next_word().to_le_bytes()) {
            return None;
        }
        (*page == pattern.page()).then_some(pattern)
    }

    /// The page.
    pub fn page(self) -> [u8; PATTERN_BYTES] {
        let mut page = [0; PATTERN_BYTES];
        self.fill(&mut page);
        page
    }

    /// Makes this the page.
    pub fn fill(self, page: &mut [u8; PATTERN_BYTES]) {
        let words = page.as_chunks_mut::<WORD>().0;
        words[0] = self.seed.to_le_bytes();
        let mut stream = self.stream();
        for word in &mut words[1..] {
            *word = stream.next_word().to_le_bytes();
        }
        for (at, change) in self.changes() {
            let changed = u64::from_le_bytes(words[at]) ^ change;
            words[at] = changed.to_le_bytes();
        }
    }

    /// The words behind the first one, before any is changed.
    fn stream(self) -> WordStream {
        WordStream::new(match self.is_changed() {
            true => CHANGED << KIND_AT | u64::from(self.address()),
            false => self.seed,
        })
    }

    /// Which words are changed, and what is added to them without carry.
    fn changes(self) -> impl Iterator<Item = (usize, u64)> {
        let count = match self.is_changed() && self.version() > 0 {
            true => (self.seed >> CHANGES_AT) as usize & MOST_CHANGES as usize,
            false => 0,
        };
        let mut stream = WordStream::new(self.seed);
        let places = PATTERN_BYTES / WORD - HEAD;
        (0..count).map(move |_| {
            let at = HEAD + (stream.next_word() % places as u64) as usize;
            // Never zero: it changes something.
            (at, stream.next_word() | 1)
        })
    }
}

/// Words drawn by a seed. Two streams have no word at the same distance from another but by chance.
struct WordStream {
    state: u64,
}

impl WordStream {
    /// The state is the seed through the finaliser of SplitMix64 (Steele, Lea and Flood 2014), so that streams of
    /// neighbouring seeds do not overlap.
    fn new(seed: u64) -> Self {
        let mut x = seed;
        x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        WordStream { state: x ^ x >> 31 }
    }

    fn next_word(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        let x = (self.state ^ self.state >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        x ^ x >> 32
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn any_pattern() -> impl Strategy<Value = Pattern> {
        prop_oneof![
            (any::<u32>(), 0..WHOLE_VERSIONS)
                .prop_map(|(address, version)| Pattern::whole(address, version)),
            (any::<u32>(), 0..CHANGED_VERSIONS, 0..=MOST_CHANGES).prop_map(
                |(address, version, changes)| Pattern::changed(address, version, changes)
            ),
        ]
    }

    proptest! {
        #[test]
        fn a_page_says_which_pattern_it_is(pattern in any_pattern()) {
            let page = pattern.page();
            prop_assert_eq!(Pattern::of(&page), Some(pattern));
            prop_assert_eq!(Pattern::from_seed(pattern.seed()), Some(pattern));
            prop_assert_eq!(&page[..WORD], &pattern.seed().to_le_bytes()[..]);
        }

        /// Whichever bit is another one.
        #[test]
        fn a_page_that_is_off_by_a_bit_is_no_pattern(
            pattern in any_pattern(),
            bit in 0..8 * PATTERN_BYTES,
        ) {
            let mut page = pattern.page();
            page[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(Pattern::of(&page), None);
        }

        #[test]
        fn versions_that_are_changed_differ_in_so_many_words(
            address in any::<u32>(),
            versions in prop::array::uniform2(0..CHANGED_VERSIONS),
            changes in 0..=MOST_CHANGES,
        ) {
            let [one, other] = versions.map(|version| Pattern::changed(address, version, changes).page());
            let pairs = one.as_chunks::<WORD>().0.iter().zip(other.as_chunks::<WORD>().0);
            let differ = pairs.filter(|(a, b)| a != b).count() as u32;
            if versions[0] == versions[1] {
                prop_assert_eq!(differ, 0);
            } else {
                prop_assert!((1..=1 + 2 * changes).contains(&differ), "{differ} words");
                prop_assert!(differ > 1 || changes == 0);
            }
        }
    }

    #[test]
    fn what_a_seed_was_made_of_is_read_off_it() {
        let most = u32::MAX;
        for (pattern, address, version) in [
            (Pattern::whole(0, 0), 0, 0),
            (
                Pattern::whole(most, WHOLE_VERSIONS - 1),
                most,
                WHOLE_VERSIONS - 1,
            ),
            (Pattern::changed(7, 9, MOST_CHANGES), 7, 9),
            (
                Pattern::changed(most, CHANGED_VERSIONS - 1, 3),
                most,
                CHANGED_VERSIONS - 1,
            ),
        ] {
            assert_eq!((pattern.address(), pattern.version()), (address, version));
        }
        for seed in [0, 1, u64::MAX, u64::MAX >> 2, WHOLE_VERSIONS.into()] {
            assert_eq!(Pattern::from_seed(seed), None, "{seed:#x}");
        }
        assert_eq!(Pattern::of(&[0; PATTERN_BYTES]), None);
        assert_eq!(Pattern::of(&[0xFF; PATTERN_BYTES]), None);
        assert_eq!(Pattern::of(&[0x55; PATTERN_BYTES]), None);
    }

    /// No 8 bytes behind the seed, wherever they begin, stand in two pages of neighbouring seeds or twice in one: nothing to refer to,
    /// for a delta or a compressor. And all bytes behind the seed are equally frequent: nothing to be coded shorter.
    #[test]
    fn pages_have_nothing_in_common_and_nothing_to_compress() {
        let mut seen = HashSet::new();
        let mut frequencies = [0u32; 256];
        let mut pages = Vec::new();
        for address in 0..64 {
            pages.extend([0, 1].map(|version| Pattern::whole(address, version).page()));
            pages.push(Pattern::changed(address, 0, 4).page());
        }
        for page in &pages {
            for &byte in &page[WORD..] {
                frequencies[usize::from(byte)] += 1;
            }
            for window in page[WORD..].windows(WORD) {
                assert!(seen.insert(<[u8; WORD]>::try_from(window).unwrap()));
            }
        }
        let expected = (pages.len() * (PATTERN_BYTES - WORD)) as f64 / 256.0;
        let deviation: f64 = { frequencies.iter() }
            .map(|&found| (f64::from(found) - expected).powi(2) / expected)
            .sum();
        // Chi squared with 255 degrees of freedom: six standard deviations.
        assert!(deviation < 255.0 + 6.0 * 22.6, "{deviation}");
    }

    /// Side tables hold seeds: what follows from them must stay.
    #[test]
    fn the_bytes_of_a_seed_stay() {
        let mut pages = blake3::Hasher::new();
        for pattern in [
            Pattern::whole(0, 0),
            Pattern::whole(u32::MAX, 5),
            Pattern::changed(3, 0, 9),
            Pattern::changed(3, 1, 9),
            Pattern::changed(3, 1, MOST_CHANGES),
        ] {
            pages.update(&pattern.page());
        }
        assert_eq!(pages.finalize().to_hex()[..16], *"a643e7bb642d617e");
    }
}
