//! Random numbers by seed, stream and number: the same whenever and in whatever order they are asked
//! for. The generator is SplitMix64 at a start that hashes all three.

/// The odd constant of SplitMix64: 2^64 over the golden ratio.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// Random numbers of one use of one seed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Draws {
    key: u64,
}

impl Draws {
    /// Those of a seed for the use that `stream` names: other streams are independent of them.
    pub(super) fn new(seed: u64, stream: u64) -> Self {
        Draws {
            key: mix(splitmix64(seed) ^ stream),
        }
    }

    /// The sequence that belongs to a number.
    #[inline]
    pub(super) fn of(&self, number: u64) -> Sequence {
        Sequence {
            state: mix(self.key ^ number.wrapping_mul(GAMMA)),
        }
    }
}

#[derive(Debug)]
pub(super) struct Sequence {
    state: u64,
}

impl Sequence {
    #[inline]
    pub(super) fn next(&mut self) -> u64 {
        let number = splitmix64(self.state);
        self.state = self.state.wrapping_add(GAMMA);
        number
    }

    /// A multiple of 2^-53 from 0 up to but not 1.
    #[inline]
    pub(super) fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// A number below `limit`, each as likely as another but for a 2^-32nd of it.
    #[inline]
    pub(super) fn below(&mut self, limit: u32) -> u32 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u32
    }
}

/// What SplitMix64 gives in a state (Steele, Lea, Flood, OOPSLA 2014): a bijection whose every output bit depends on
/// every input bit.
#[inline]
pub fn splitmix64(state: u64) -> u64 {
    mix(state.wrapping_add(GAMMA))
}

/// The finalizer of SplitMix64.
#[inline]
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Published output of SplitMix64 from the state 1234567.
    #[test]
    fn the_sequence_is_splitmix64() {
        let mut sequence = Sequence { state: 1_234_567 };
        let found: Vec<u64> = std::iter::repeat_with(|| sequence.next()).take(3).collect();
        assert_eq!(
            found,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

    #[test]
    fn seeds_streams_and_numbers_all_count() {
        let first = |seed, stream, number| Draws::new(seed, stream).of(number).next();
        let base = first(1, 1, 1);
        assert_eq!(base, first(1, 1, 1));
        assert!(
            [first(2, 1, 1), first(1, 2, 1), first(1, 1, 2)]
                .iter()
                .all(|&other| other != base)
        );
    }

    /// Neighbouring numbers of neighbouring seeds: 256 classes of the first draw, and pairs.
    #[test]
    fn draws_are_uniform_over_numbers_and_seeds() {
        let mut counts = vec![0u32; 256];
        let mut pairs = vec![0u32; 256];
        let draws = 1 << 18;
        for seed in 0..4 {
            let all = Draws::new(seed, 0);
            let mut before = 0;
            for number in 0..draws / 4 {
                let class = all.of(number).below(256);
                counts[class as usize] += 1;
                pairs[(before / 16 * 16 + class / 16) as usize] += 1;
                before = class;
            }
        }
        for counts in [counts, pairs] {
            let mean = draws as f64 / 256.0;
            let chi: f64 = counts
                .iter()
                .map(|&n| (f64::from(n) - mean).powi(2) / mean)
                .sum();
            // 255 degrees of freedom: 342 is passed once in 5,000 cases.
            assert!(chi < 342.0, "{chi}");
        }
    }
}
