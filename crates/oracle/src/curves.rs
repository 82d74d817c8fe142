//! Published write amplification under uniform random writes.
//!
//! Every function takes `rho`, the share of the sealed blocks' pages that hold valid data
//! (logical over physical pages, free and open blocks left out of the physical ones), with 0 <
//! `rho` < 1, and returns A, all programs over host programs.
//!
//! - Greedy, finite blocks: P. Desnoyers, *Analytic Modeling of SSD Write Performance*, SYSTOR 2012.
//! - Greedy, infinitely large blocks: the limit of the same, solved with Lambert's W.
//! - FIFO (a log cleaned in a circle): J. Menon, *A Performance Comparison of RAID-5 and
//!   Log-Structured Arrays*, HPDC 1995; J. T. Robinson, *Analysis of Steady-State Segment Storage
//!   Utilizations in a Log-Structured File System with Least-Utilized Segment Cleaning*, SIGOPS
//!   Operating Systems Review 1996.
//! - d choices (the best of d random blocks): B. Van Houdt, *A Mean Field Model for a Class of
//!   Garbage Collection Algorithms in Flash-based Solid State Drives*, SIGMETRICS 2013.
//! - Random victims: d = 1, in closed form.

/// The utilisation of a device whose spare space is given as (raw - exported) / exported.
pub fn utilisation_from_spare_of_exported(spare: f64) -> f64 {
    1.0 / (1.0 + spare)
}

/// `rho` of a device with this many valid pages, when so many of its blocks are kept free or open.
pub fn sealed_utilisation(
    valid_pages: f64,
    blocks: f64,
    unsealed: f64,
    pages_per_block: f64,
) -> f64 {
    valid_pages / ((blocks - unsealed) * pages_per_block)
}

/// Greedy collection of blocks of N pages: A = N / (N - X0), where X0 is the mean number of valid
/// pages in a victim.
///
/// In the steady state blocks lose their pages one by one: as many pass from i to i - 1 valid
/// pages as blocks are collected, and they do so at a rate proportional to i, so the number of
/// blocks with i valid pages goes as 1 / i for X0 < i <= N. Valid pages over all pages is then
/// rho = (N - X0) / (N (H(N) - H(X0))).
///
/// X0 is rarely whole. Let victims be collected when they have m valid pages, but a share p of the
/// blocks that reach m lose another page before their turn. Those are collected at m - 1 at once,
/// so X0 = m - p; the number with m valid pages goes as p / m, so H(X0) = H(m) - p / m. Since
/// H(m) - 1 / m = H(m - 1), linear interpolation of H between whole numbers is not an
/// approximation but the discrete model itself.
pub fn greedy(rho: f64, pages_per_block: u32) -> f64 {
    let n = f64::from(pages_per_block);
    let all = harmonic(n);
    let utilisation = |x0: f64| (n - x0) / (n * (all - harmonic(x0)));
    // Below the utilisation at X0 = 0 victims are always empty, and this bisects to X0 = 0.
    let x0 = bisect(0.0, n, |x0| utilisation(x0) < rho);
    n / (n - x0)
}

/// H(x) for whole x, linear between whole numbers.
fn harmonic(x: f64) -> f64 {
    let whole = x.floor();
    let sum: f64 = (1..=whole as u64).map(|i| 1.0 / i as f64).sum();
    sum + (x - whole) / (whole + 1.0)
}

/// Greedy collection of infinitely large blocks. With x the share of valid pages in a victim, the
/// sums become integrals: rho = (1 - x) / -ln x, hence x = -rho W(-exp(-1 / rho) / rho) and
/// A = 1 / (1 - x).
pub fn greedy_large_blocks(rho: f64) -> f64 {
    let x = -rho * lambert_w(-(-1.0 / rho).exp() / rho);
    1.0 / (1.0 - x)
}

/// First-in first-out collection, whatever the size of blocks. With p the share of valid pages in a
/// victim, U pages of sealed blocks and L = rho U valid ones: between the sealing of a block and its
/// turn U pages are programmed, of which the host writes (1 - p) U. A page survives each of them with
/// probability 1 - 1 / L, so p = exp(-(1 - p) / rho), and A = 1 / (1 - p). That is the same fixed point
/// rho = (p - 1) / ln p as that of greedy collection of infinitely large blocks, found here by
/// iterating the map from p = 0.
pub fn fifo(rho: f64) -> f64 {
    let mut p = 0.0;
    for _ in 0..10_000 {
        p = f64::exp(-(1.0 - p) / rho);
    }
    1.0 / (1.0 - p)
}

/// The principal branch of Lambert's W for -1/e <= z <= 0: the w >= -1 with w e^w = z.
fn lambert_w(z: f64) -> f64 {
    bisect(-1.0, 0.0, |w| w * w.exp() < z)
}

/// Random victims: a victim has as many valid pages as the average sealed block.
pub fn random(rho: f64) -> f64 {
    1.0 / (1.0 - rho)
}

/// The fixed point of the d-choices model.
#[derive(Debug, Clone, PartialEq)]
pub struct MeanField {
    /// Share of the blocks with i valid pages, i from 0 to N.
    pub blocks: Vec<f64>,
    /// Write amplification.
    pub write_amplification: f64,
}

/// The best of d random blocks is collected; blocks have N pages.
///
/// Let Q(i) be the share of blocks with at least i valid pages. A victim has at least i with
/// probability Q(i)^d and is then replaced by a block with N. Between two collections the host
/// writes W pages, each of which invalidates one of the rho N valid pages a block: W i m(i) /
/// (rho N) blocks pass from i to i - 1. Nothing accumulates above i: that flow is 1 - Q(i)^d. With
/// K = W / (rho N) this gives m(N), m(N - 1), ... m(1) one after the other; K is the one with
/// which the mean of m is rho N. Then A = N / W = 1 / (K rho).
pub fn d_choices(rho: f64, pages_per_block: u32, choices: u32) -> MeanField {
    let d = f64::from(choices);
    fixed_point(rho, pages_per_block, |at_least, _| at_least.powf(d))
}

/// As [`d_choices`], but full blocks are never drawn, since collecting one gains nothing: the draw
/// is among the other 1 - m(N), so a victim has at least i valid pages with probability
/// ((Q(i) - m(N)) / (1 - m(N)))^d. Our variant of the model, not a published one.
pub fn d_choices_with_gain(rho: f64, pages_per_block: u32, choices: u32) -> MeanField {
    let d = f64::from(choices);
    fixed_point(rho, pages_per_block, |at_least, full| {
        let others = f64::max(1.0 - full, f64::MIN_POSITIVE);
        (f64::max(at_least - full, 0.0) / others).powf(d)
    })
}

/// The fixed point where `victim(Q(i), m(N))` is the probability that a victim has at least i valid
/// pages.
fn fixed_point(rho: f64, pages_per_block: u32, victim: impl Fn(f64, f64) -> f64) -> MeanField {
    // One collection invalidates at most N of the rho N valid pages a block: K <= 1 / rho.
    let k = bisect(0.0, 1.0 / rho, |k| {
        mean_share(&stationary(k, pages_per_block, &victim)) > rho
    });
    MeanField {
        blocks: stationary(k, pages_per_block, &victim),
        write_amplification: 1.0 / (k * rho),
    }
}

/// The shares m(0..=N) for a given K, from the top down.
fn stationary(k: f64, pages_per_block: u32, victim: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    let n = pages_per_block as usize;
    let mut shares = vec![0.0; n + 1];
    let mut above = 0.0;
    for i in (1..=n).rev() {
        let full = |m| if i == n { m } else { shares[n] };
        let flow = |m: f64| 1.0 - victim(f64::min(above + m, 1.0), full(m));
        let share = bisect(0.0, 1.0 - above, |m| k * i as f64 * m < flow(m));
        shares[i] = share;
        above += share;
    }
    shares[0] = 1.0 - above;
    shares
}

fn mean_share(shares: &[f64]) -> f64 {
    let valid: f64 = shares.iter().enumerate().map(|(i, m)| i as f64 * m).sum();
    valid / (shares.len() - 1) as f64
}

/// Where `below` turns from true to false, to the resolution of the numbers.
fn bisect(mut low: f64, mut high: f64, below: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..200 {
        let middle = low + (high - low) / 2.0;
        if below(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPARES: [f64; 4] = [0.07, 0.15, 0.28, 0.50];

    fn close(a: f64, b: f64, tolerance: f64) {
        assert!((a / b - 1.0).abs() < tolerance, "{a} against {b}");
    }

    #[test]
    fn utilisations_by_hand() {
        // 4 blocks, 3 exported.
        close(utilisation_from_spare_of_exported(1.0 / 3.0), 0.75, 1e-15);
        close(sealed_utilisation(300.0, 5.0, 1.0, 100.0), 0.75, 1e-15);
    }

    #[test]
    fn w_inverts_its_definition() {
        for w in [-0.999, -0.5, -0.1, -1e-3] {
            let z: f64 = w * f64::exp(w);
            close(lambert_w(z), w, 1e-9);
        }
    }

    #[test]
    fn small_cases_by_hand() {
        // One page a block: a victim is always empty, or nothing could be invalid.
        close(greedy(0.7, 1), 1.0, 1e-12);
        // Two pages, X0 = 1: blocks with 2 and, just collected, 1; rho = 1 / (2 (3/2 - 1)) = 1.
        // X0 = 1/2: half a page a victim is copied, A = 2 / (2 - 1/2), and
        // rho = (3/2) / (2 (3/2 - 1/2)) = 3/4.
        close(greedy(0.75, 2), 4.0 / 3.0, 1e-12);
        // Few enough valid pages: rho = 1 / H(N) is the most that leaves every victim empty.
        close(greedy(0.9 / (1.0 + 0.5 + 1.0 / 3.0), 3), 1.0, 1e-12);
        assert!(greedy(1.1 / (1.0 + 0.5 + 1.0 / 3.0), 3) > 1.01);
    }

    #[test]
    fn large_blocks_solve_the_equation_and_are_the_limit_of_greedy() {
        for spare in SPARES {
            let rho = utilisation_from_spare_of_exported(spare);
            let limit = greedy_large_blocks(rho);
            let x = 1.0 - 1.0 / limit;
            close((1.0 - x) / -x.ln(), rho, 1e-9);
            close(greedy(rho, 20_000), limit, 2e-3);
            assert!(greedy(rho, 32) < greedy(rho, 256) && greedy(rho, 256) < limit);
        }
    }

    #[test]
    fn fifo_is_greedy_with_infinitely_large_blocks() {
        for spare in SPARES {
            let rho = utilisation_from_spare_of_exported(spare);
            close(fifo(rho), greedy_large_blocks(rho), 1e-9);
            assert!(greedy(rho, 64) < fifo(rho) && fifo(rho) < random(rho));
        }
        // By hand: p = 1/2 solves rho = (1/2) / ln 2.
        close(fifo(0.5 / f64::ln(2.0)), 2.0, 1e-9);
    }

    #[test]
    fn one_choice_is_random_and_many_choices_are_greedy() {
        for spare in SPARES {
            let rho = utilisation_from_spare_of_exported(spare);
            close(d_choices(rho, 32, 1).write_amplification, random(rho), 1e-9);
            close(
                d_choices(rho, 32, 1_000_000).write_amplification,
                greedy(rho, 32),
                1e-3,
            );
            let between = [1, 2, 3, 5, 10, 100].map(|d| d_choices(rho, 32, d).write_amplification);
            assert!(between.is_sorted_by(|a, b| a > b), "{between:?}");
        }
    }

    #[test]
    fn without_full_blocks_one_choice_is_better_than_random_and_many_are_greedy() {
        // Two pages a block, one choice: victims have 0 or 1 valid pages. All full blocks come from
        // victims and leave by the host: K 2 m(2) = 1; those with 1 valid page are collected in
        // proportion: K m(1) = 1 - m(1) / (m(0) + m(1)).
        let found = d_choices_with_gain(0.7, 2, 1);
        let m = &found.blocks;
        let k = 1.0 / (found.write_amplification * 0.7);
        close(k * 2.0 * m[2], 1.0, 1e-9);
        close(k * m[1], 1.0 - m[1] / (m[0] + m[1]), 1e-9);
        close(m[2] + m[1] / 2.0, 0.7, 1e-9);
        for spare in SPARES {
            let rho = utilisation_from_spare_of_exported(spare);
            let gain = |d| d_choices_with_gain(rho, 32, d).write_amplification;
            assert!(gain(1) < random(rho));
            let all = |d| d_choices(rho, 32, d).write_amplification;
            assert!(gain(2) < all(2) && gain(5) < all(5));
            close(gain(1_000_000), greedy(rho, 32), 1e-3);
        }
    }

    /// The right-hand side of the mean-field ODE: the change of the shares per collection, in
    /// units of one block in all.
    fn drift(shares: &[f64], rho: f64, choices: i32) -> Vec<f64> {
        let n = shares.len() - 1;
        let at_least = |i: usize| shares[i.min(n + 1)..].iter().sum::<f64>();
        let victim: Vec<f64> = (0..=n)
            .map(|i| at_least(i).powi(choices) - at_least(i + 1).powi(choices))
            .collect();
        let host_writes: f64 = victim
            .iter()
            .enumerate()
            .map(|(i, p)| (n - i) as f64 * p)
            .sum();
        let rate = host_writes / (rho * n as f64);
        let lost = |i: usize| shares.get(i).map_or(0.0, |m| rate * i as f64 * m);
        (0..=n)
            .map(|i| lost(i + 1) - lost(i) - victim[i] + f64::from(u8::from(i == n)))
            .collect()
    }

    #[test]
    fn the_fixed_point_is_where_the_ode_comes_to_rest() {
        let (n, rho) = (16, 0.8);
        for choices in [1, 2, 10] {
            let fixed = d_choices(rho, n, choices as u32);
            close(fixed.blocks.iter().sum(), 1.0, 1e-12);
            for change in drift(&fixed.blocks, rho, choices) {
                assert!(change.abs() < 1e-9, "{change}");
            }
            // From full and empty blocks only, Euler's steps end in the same place.
            let mut shares = vec![0.0; n as usize + 1];
            (shares[0], shares[n as usize]) = (1.0 - rho, rho);
            for _ in 0..20_000 {
                let change = drift(&shares, rho, choices);
                shares
                    .iter_mut()
                    .zip(change)
                    .for_each(|(m, c)| *m += 0.005 * c);
            }
            for (reached, expected) in shares.iter().zip(&fixed.blocks) {
                assert!(
                    (reached - expected).abs() < 1e-6,
                    "{reached} against {expected}"
                );
            }
        }
    }
}
