//! Sampled statistics against exact ones of the same accesses.

use crate::common;

use flashlore_characterize::statistics::index::MissPoint;
use flashlore_characterize::statistics::locality::{CurvePoint, LocalityCurve};
use flashlore_characterize::{Characterizer, Options, Statistics};
use flashlore_oracle::locality::{Access, AccessOp};

/// The largest error allowed, in shares.
const ALLOWED: f64 = 0.02;

fn statistics(accesses: &[Access], sample_rate: f64) -> Statistics {
    let options = Options {
        sample_rate,
        ..Options::default()
    };
    let mut characterizer = Characterizer::new(options).unwrap();
    for access in accesses {
        characterizer.observe(&common::from_oracle(access)).unwrap();
    }
    characterizer.finish().whole
}

/// Compares curves at powers of two and what is said of all values, and prints the errors.
fn compare(name: &str, accesses: &[Access], rate: f64) {
    let (exact, sampled) = (statistics(accesses, 1.0), statistics(accesses, rate));
    invariants(&exact);
    invariants(&sampled);
    assert_eq!(exact.mix, sampled.mix);
    assert_eq!(exact.sequential, sampled.sequential);
    let curves = |s: &Statistics| {
        let (values, pages) = (s.value_locality.clone(), s.page_locality.clone());
        [values.writes, values.reads, pages.writes, pages.reads]
    };
    let mut errors = Vec::new();
    for (exact, sampled) in curves(&exact).iter().zip(&curves(&sampled)) {
        assert_eq!(exact.accesses, sampled.accesses);
        if exact.accesses > 5_000 {
            errors.push(cdf_error(exact, sampled));
        }
    }
    let misses = exact.index.curve.iter().zip(&sampled.index.curve);
    let live = misses.map(|(e, s)| (e.live_ratio - s.live_ratio).abs());
    errors.push(live.fold(0.0, f64::max));
    let unique = |s: &Statistics| s.popularity.writes.unique_share.unwrap();
    errors.push((unique(&exact) - unique(&sampled)).abs());
    let overwritten = |s: &Statistics| s.overwrites.share.unwrap();
    errors.push((overwritten(&exact) - overwritten(&sampled)).abs());
    let silent = |s: &Statistics| s.kinds.silent as f64 / s.kinds.writes as f64;
    errors.push((silent(&exact) - silent(&sampled)).abs());
    println!("{name}, rate {rate}: largest errors {errors:.4?}");
    assert!(
        errors.iter().all(|error| *error <= ALLOWED),
        "{name}: {errors:?}"
    );
}

/// What holds of any statistics, exact or not.
fn invariants(found: &Statistics) {
    let (values, pages) = (&found.value_locality, &found.page_locality);
    for curve in [&values.reads, &values.writes, &pages.reads, &pages.writes] {
        let rises = |pair: &[CurvePoint]| {
            pair[0].distance < pair[1].distance && pair[0].within <= pair[1].within
        };
        assert!(curve.points.windows(2).all(rises));
        let last = curve.points.last().map_or(0, |point| point.within);
        assert_eq!(
            last,
            curve.rereferences(),
            "every re-reference has a distance"
        );
    }
    let falls = |pair: &[MissPoint]| {
        pair[0].plain_misses >= pair[1].plain_misses && pair[0].live_misses >= pair[1].live_misses
    };
    assert!(found.index.curve.windows(2).all(falls));
    let kinds = found.kinds;
    assert_eq!(kinds.writes, found.popularity.writes.accesses);
    let parts = kinds.silent + kinds.new + kinds.elsewhere + kinds.reborn;
    assert_eq!(parts, kinds.writes, "a partition");
    let footprint = found.footprint;
    let parts = footprint.only_read + footprint.only_written + footprint.both;
    assert_eq!(parts, footprint.pages);
    let overwrites = &found.overwrites;
    assert!(overwrites.overwrites <= overwrites.page_writes);
}

/// The largest difference at powers of two, over all accesses.
fn cdf_error(exact: &LocalityCurve, sampled: &LocalityCurve) -> f64 {
    let error = |bit: u32| {
        let share = |curve: &LocalityCurve| curve.within(1 << bit) as f64 / curve.accesses as f64;
        (share(exact) - share(sampled)).abs()
    };
    (0..40).map(error).fold(0.0, f64::max)
}

/// One-page accesses, three quarters writes, with values and pages drawn zipf-like over so many
/// powers of two.
fn random(count: usize, value_bits: u64, page_bits: u64) -> Vec<Access> {
    let mut state = 1_u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let mut zipf = |bits: u64| {
        let power = next() % bits;
        (1 << power) + next() % (1 << power)
    };
    let access = |number: usize| {
        let unit = zipf(page_bits);
        Access {
            time_ns: number as u64 * 1000,
            op: if number.is_multiple_of(4) {
                AccessOp::Read
            } else {
                AccessOp::Write
            },
            device: 0,
            offset: unit * 4096,
            length: 4096,
            unit,
            units: 1,
            values: Some(vec![zipf(value_bits) as u32]),
        }
    };
    (0..count).map(access).collect()
}

#[test]
fn a_tenth_of_the_keys_tells_nearly_as_much() {
    compare("random", &random(200_000, 17, 16), 0.1);
    for name in common::CAPTURES {
        let Some(path) = common::capture(name) else {
            continue;
        };
        compare(name, &common::accesses(&path, 0, usize::MAX), 0.1);
    }
}

#[test]
#[ignore = "takes long without optimisation"]
fn a_hundredth_of_many_keys_does_too() {
    compare("random", &random(4_000_000, 23, 22), 0.01);
}
