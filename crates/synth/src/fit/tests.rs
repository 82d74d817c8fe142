//! What a fit keeps of its trace, on random traces.

use std::collections::HashMap;

use flashlore_trace::{Access, Batch, Op, UNIT_BYTES};
use proptest::prelude::*;

use super::{Detail, Estimator, Fit, FitGenerator};
use crate::generate::SynthOptions;

/// One access to a page.
type Touch = (Op, u64, Option<u32>);

/// Random accesses with much reuse. Reads find what was written or read before.
fn traces() -> impl Strategy<Value = Vec<Touch>> {
    let op = prop::sample::select(vec![Op::Write, Op::Write, Op::Write, Op::Read, Op::Trim]);
    let touch = (op, 0u64..60, 0u32..40, 1u64..9);
    (prop::collection::vec(touch, 1..120), any::<bool>()).prop_map(|(runs, content)| {
        let mut held: HashMap<u64, u32> = HashMap::new();
        let mut touches = Vec::new();
        for (op, first, value, pages) in runs {
            for page in first..first + pages {
                let known = touches.iter().any(|&(_, other, _)| other == page);
                let value = value + (page - first) as u32;
                match op {
                    Op::Trim if !known => continue,
                    Op::Trim => {
                        held.remove(&page);
                    }
                    // Nothing is known of the content of a page that was trimmed.
                    Op::Read if known && !held.contains_key(&page) => continue,
                    Op::Read => {
                        held.entry(page).or_insert(value);
                    }
                    _ => {
                        held.insert(page, value);
                    }
                }
                let value = (content && op != Op::Trim).then(|| held[&page]);
                touches.push((op, page, value));
            }
        }
        // A trace of nothing has no fit.
        if touches.is_empty() {
            touches.push((Op::Write, 0, content.then_some(0)));
        }
        touches
    })
}

fn fit(trace: &[Touch], detail: Detail) -> Fit {
    let mut estimator = Estimator::default();
    for (at, &(op, unit, value)) in trace.iter().enumerate() {
        estimator.observe(&Access {
            time_ns: at as u64 * 1000,
            op,
            device: 0,
            offset: unit * UNIT_BYTES,
            length: UNIT_BYTES,
            unit,
            units: 1,
            values: value.as_ref().map(std::slice::from_ref),
            delta_ratios: None,
        });
    }
    let fit = estimator.fit("random", "a random trace", detail);
    assert_eq!(Fit::parse("random", &fit.to_text()).unwrap(), fit);
    fit
}

/// The accesses that a generator makes.
fn made(fit: &Fit, options: &SynthOptions) -> Vec<Touch> {
    let mut generator = FitGenerator::new(fit, options);
    let mut batch = Batch::default();
    let mut touches = Vec::new();
    let mut last_ns = 0;
    while generator.next_batch(&mut batch) {
        for record in batch.iter() {
            assert!(record.time_ns >= last_ns);
            last_ns = record.time_ns;
            for at in 0..record.length / UNIT_BYTES {
                let value = record.content.map(|values| values[at as usize]);
                touches.push((record.op, record.offset / UNIT_BYTES + at, value));
            }
        }
        generator.check();
    }
    touches
}

/// The same accesses with pages and values numbered in the order of their first appearance.
fn renamed(trace: &[Touch]) -> Vec<Touch> {
    let (mut pages, mut values) = (HashMap::new(), HashMap::new());
    let rename = |&(op, page, value): &Touch| {
        let next = pages.len() as u64;
        let page = *pages.entry(page).or_insert(next);
        let value = value.map(|value| {
            let next = values.len() as u32;
            *values.entry(value).or_insert(next)
        });
        (op, page, value)
    };
    trace.iter().map(rename).collect()
}

fn count(trace: &[Touch], of: impl Fn(&Touch) -> bool) -> usize {
    trace.iter().filter(|touch| of(touch)).count()
}

fn footprint(trace: &[Touch]) -> usize {
    let pages: std::collections::HashSet<u64> = trace.iter().map(|touch| touch.1).collect();
    pages.len()
}

proptest! {
    /// The estimator and the generator are each other's inverse: with an epoch for every access and
    /// every gap told apart, the trace comes back but for the names of pages and values.
    #[test]
    fn the_finest_fit_makes_the_trace_itself(trace in traces(), sharing in any::<bool>()) {
        let finest = Detail {
            epochs: trace.len() as u32,
            steps: 1 << 20,
            context: 1,
            sharing,
        };
        let made = made(&fit(&trace, finest), &SynthOptions::default());
        prop_assert_eq!(renamed(&made), renamed(&trace));
    }

    #[test]
    fn every_fit_keeps_counts_and_footprint(
        trace in traces(),
        epochs in 1u32..20,
        steps in 1u32..70,
        context in 1usize..9,
        sharing in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let detail = Detail { epochs, steps, context, sharing };
        let fit = fit(&trace, detail);
        prop_assert_eq!(fit.pages(), trace.len() as u64);
        let made = made(&fit, &SynthOptions { seed, ..SynthOptions::default() });
        // What goes back before anything was used is left out or uses a page of its own.
        let early = trace.len() - made.len();
        prop_assert!(early <= count(&trace, |touch| touch.0 == Op::Trim));
        for op in [Op::Write, Op::Read] {
            prop_assert_eq!(count(&made, |t| t.0 == op), count(&trace, |t| t.0 == op));
        }
        prop_assert!(footprint(&made) >= footprint(&trace));
        prop_assert!(made.iter().all(|t| t.2.is_some() == (fit.content && t.0 != Op::Trim)));
    }

    #[test]
    fn scale_and_requests_change_how_much_is_made(trace in traces(), seed in any::<u64>()) {
        let detail = Detail { epochs: 4, steps: 8, context: 1, sharing: true };
        let fit = fit(&trace, detail);
        let options = |scale, requests| SynthOptions { scale, requests, seed };
        let whole = made(&fit, &options(1.0, None));
        let thrice = made(&fit, &options(3.0, None));
        let trims = count(&trace, |touch| touch.0 == Op::Trim);
        prop_assert!(thrice.len().abs_diff(3 * whole.len()) <= 3 * trims);
        let few = made(&fit, &options(1.0, Some(5)));
        prop_assert!(few.len() <= whole.len());
    }
}

/// A fit without content of two epochs, of 1 s and 3 s.
fn two_epochs() -> Fit {
    let text = r#"
        name = "two"
        description = "two"
        source = "two"
        [fit]
        content = false
        burst = 1.0
        within = "0ns"
        [sizes]
        reads = [[1, 1.0]]
        writes = [[4, 1.0]]
        [following]
        classes = ""
        table = ""
        [[epoch]]
        duration = "1s"
        runs = "1 w 800 fresh -"
        [[epoch]]
        duration = "3s"
        runs = "1 r 300 back:600+0 -"
    "#;
    Fit::parse("two", text).unwrap()
}

#[test]
fn sizes_times_and_gaps_are_those_of_the_fit_and_scaled() {
    for scale in [1u64, 2] {
        let options = SynthOptions {
            scale: scale as f64,
            ..SynthOptions::default()
        };
        let mut generator = FitGenerator::new(&two_epochs(), &options);
        let mut batch = Batch::default();
        let (mut writes, mut reads) = (Vec::new(), Vec::new());
        while generator.next_batch(&mut batch) {
            for record in batch.iter() {
                let of_op = match record.op {
                    Op::Write => &mut writes,
                    _ => &mut reads,
                };
                of_op.push((record.time_ns, record.offset / UNIT_BYTES, record.length));
            }
        }
        assert_eq!(writes.len() as u64, scale * 200, "800 pages by fours");
        assert!(writes.iter().all(|write| write.2 == 4 * UNIT_BYTES));
        assert_eq!(reads.len() as u64, scale * 300, "300 pages by ones");
        let second = scale * 1_000_000_000;
        assert!(writes.last().unwrap().0 > second / 2, "a second of writes");
        assert!(reads[0].0 >= second, "the next epoch");
        let mean = (reads.last().unwrap().0 - second) as f64 / second as f64;
        assert!((2.0..4.0).contains(&mean), "three seconds of reads: {mean}");
        // 600 of 800 pages back, or 1,200 of 1,600.
        assert_eq!(reads[0].1, scale * 200);
    }
}
