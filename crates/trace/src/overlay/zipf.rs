//! Zipf draws by rejection-inversion (W. Hörmann and G. Derflinger, 1996): exact, in constant memory,
//! with little more than one draw each.
//!
//! P(rank k) is proportional to h(k) = k^-a for k from 1 to n. H is the integral of h with H(1) = 0.
//! A point below the curve of h over (1/2, n + 1/2] is drawn by inverting H and kept if it lies below
//! the histogram that has the height h(k) around k. Logarithm and exponential are those of `libm`,
//! which are the same on every machine, and so are the draws.

use super::draw::Sequence;

#[derive(Debug, Clone, Copy)]
pub(super) struct Zipf {
    exponent: f64,
    ranks: f64,
    /// H at the left end of what is drawn from: H(3/2) - h(1).
    left: f64,
    /// H(n + 1/2).
    right: f64,
    /// A rank this close above its point is kept without looking.
    safe: f64,
}

impl Zipf {
    /// Ranks from 1 to `ranks` (at least 1) with an exponent above 0.
    pub(super) fn new(exponent: f64, ranks: u32) -> Self {
        let mut zipf = Zipf {
            exponent,
            ranks: f64::from(ranks),
            left: 0.0,
            right: 0.0,
            safe: 0.0,
        };
        zipf.left = zipf.integral(1.5) - 1.0;
        zipf.right = zipf.integral(zipf.ranks + 0.5);
        zipf.safe = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.height(2.0));
        zipf
    }

    /// A rank from 1 on.
    pub(super) fn draw(&self, random: &mut Sequence) -> u32 {
        loop {
            let area = self.right + random.fraction() * (self.left - self.right);
            let point = self.inverse(area);
            let rank = (point + 0.5).floor().clamp(1.0, self.ranks);
            if rank - point <= self.safe || area >= self.integral(rank + 0.5) - self.height(rank) {
                return rank as u32;
            }
        }
    }

    /// h(x).
    fn height(&self, x: f64) -> f64 {
        libm::exp(-self.exponent * libm::log(x))
    }

    /// H(x) = (x^(1-a) - 1) / (1 - a), or ln x where a is 1.
    fn integral(&self, x: f64) -> f64 {
        let log = libm::log(x);
        log * expm1_over((1.0 - self.exponent) * log)
    }

    /// The inverse of H.
    fn inverse(&self, area: f64) -> f64 {
        // Rounding may lead below -1, where there is no logarithm.
        let t = (area * (1.0 - self.exponent)).max(-1.0);
        libm::exp(area * log1p_over(t))
    }
}

/// (e^x - 1) / x.
fn expm1_over(x: f64) -> f64 {
    if x.abs() > 1e-8 {
        libm::expm1(x) / x
    } else {
        1.0 + x / 2.0
    }
}

/// ln(1 + x) / x.
fn log1p_over(x: f64) -> f64 {
    if x.abs() > 1e-8 {
        libm::log1p(x) / x
    } else {
        1.0 - x / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::super::draw::Draws;
    use super::*;

    fn weights(exponent: f64, ranks: u32) -> Vec<f64> {
        let weights: Vec<f64> = (1..=ranks).map(|k| f64::from(k).powf(-exponent)).collect();
        let sum: f64 = weights.iter().rev().sum();
        weights.iter().map(|weight| weight / sum).collect()
    }

    #[test]
    fn draws_follow_the_exact_probabilities() {
        let draws = 1_000_000;
        for (seed, exponent) in [0.05, 0.4, 0.8, 0.999_999_999, 1.0, 1.3, 2.5]
            .into_iter()
            .enumerate()
        {
            for ranks in [1, 2, 3, 50] {
                let zipf = Zipf::new(exponent, ranks);
                let all = Draws::new(seed as u64, 9);
                let mut counts = vec![0u32; ranks as usize];
                for number in 0..draws {
                    counts[zipf.draw(&mut all.of(number)) as usize - 1] += 1;
                }
                let chi: f64 = weights(exponent, ranks)
                    .iter()
                    .zip(counts)
                    .map(|(weight, count)| {
                        let mean = weight * draws as f64;
                        (f64::from(count) - mean).powi(2) / mean
                    })
                    .sum();
                // 0 to 49 degrees of freedom: passed less than once in 10,000 cases each.
                let bound = f64::from(ranks - 1) + 4.0 * f64::from(2 * (ranks - 1)).sqrt() + 8.0;
                assert!(chi < bound, "a = {exponent}, n = {ranks}: chi-square {chi}");
            }
        }
    }

    /// Many ranks by groups of growing width: every draw stays in range, and both ends occur.
    #[test]
    fn four_billion_ranks_are_drawn_from() {
        let draws = 400_000;
        for exponent in [0.3, 1.0, 1.2] {
            let ranks = u32::MAX - 1;
            let zipf = Zipf::new(exponent, ranks);
            let all = Draws::new(3, 0);
            let mut counts = [0u32; 32];
            for number in 0..draws {
                let rank = zipf.draw(&mut all.of(number));
                assert!((1..=ranks).contains(&rank));
                counts[rank.ilog2() as usize] += 1;
            }
            let total = integral(exponent, 0.5, f64::from(ranks) + 0.5);
            for (power, &count) in counts.iter().enumerate().skip(8) {
                let from = f64::from(1u32 << power) - 0.5;
                let to = (2.0 * (from + 0.5)).min(f64::from(ranks) + 1.0) - 0.5;
                // The sum over the ranks of a group is the integral but for 1 in 10^6; of all
                // ranks the first few need the sum itself.
                let near: f64 = (1..256).map(|k| f64::from(k).powf(-exponent)).sum();
                let all = near + total - integral(exponent, 0.5, 255.5);
                let mean = draws as f64 * integral(exponent, from, to) / all;
                let slack = 5.0 * mean.sqrt() + 5.0;
                assert!(
                    (f64::from(count) - mean).abs() < slack,
                    "{exponent} {power}: {count}, {mean}"
                );
            }
        }
    }

    fn integral(exponent: f64, from: f64, to: f64) -> f64 {
        if exponent == 1.0 {
            return (to / from).ln();
        }
        (to.powf(1.0 - exponent) - from.powf(1.0 - exponent)) / (1.0 - exponent)
    }
}
