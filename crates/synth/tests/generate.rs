//! What every generated workload keeps, whatever its profile: counts, bounds, contents, repetition.

use std::collections::{HashMap, HashSet};

use flashlore_synth::profile::{Address, Arrivals, Profile, Reach, Requests, Values};
use flashlore_synth::{Generator, SynthOptions};
use flashlore_trace::{Batch, Op, UNIT_BYTES};
use flashlore_units::{Nanos, Size};
use proptest::prelude::*;

/// One request: time, operation, first page, pages, values.
type Request = (u64, Op, u64, u64, Option<Vec<u32>>);

fn generate(profile: &Profile, options: &SynthOptions) -> Vec<Request> {
    let mut generator = Generator::new(profile, options);
    let mut batch = Batch::default();
    let mut all = Vec::new();
    while generator.next_batch(&mut batch) {
        all.extend(batch.iter().map(|record| {
            assert_eq!(record.device, 0);
            assert!(record.offset.is_multiple_of(UNIT_BYTES));
            assert!(record.length.is_multiple_of(UNIT_BYTES) && record.length > 0);
            (
                record.time_ns,
                record.op,
                record.offset / UNIT_BYTES,
                record.length / UNIT_BYTES,
                record.content.map(<[u32]>::to_vec),
            )
        }));
    }
    all
}

fn reach() -> impl Strategy<Value = Reach> {
    (0.0..=1.0, 0.0..500.0).prop_map(|(near, gap)| Reach { near, gap })
}

fn values() -> impl Strategy<Value = Values> {
    let shares = (0.05..0.6, 0.0..0.2, 0.0..0.1, 0.0..1.0, 0.0..1.0);
    let model = (0.3..=1.0, 1.0..8.0, 0.0..=1.0, 1u32..6, reach(), reach());
    (shares, model).prop_map(|(shares, model)| {
        let (unique, silent, reborn, heavy, heavy_reuse) = shares;
        let (growth, hot_new, hot_reuse, light_writes, heavy_reach, light_reach) = model;
        Values {
            unique,
            silent,
            reborn,
            growth,
            hot_new,
            hot_reuse,
            heavy,
            heavy_reuse,
            light_writes,
            heavy_reach,
            light_reach,
        }
    })
}

prop_compose! {
    fn profiles()(
        count in 200u64..6_000,
        writes in prop::sample::select(vec![0.3f64, 0.77, 1.0]),
        size in prop::sample::select(vec![4096u64, 4485, 12_288]),
        density in 0.02f64..0.3,
        sequential in 0.0..0.95,
        (read_only, cold_reads) in prop::sample::select(vec![(0.0, 0.0), (0.1, 0.9), (0.3, 1.0)]),
        (hot, hot_writes) in prop::sample::select(vec![(0.0, 0.0), (0.1, 0.6), (0.5, 0.5)]),
        growth in 0.2..=1.0,
        reaches in prop::collection::vec(reach(), 3),
        burst in 1.0..50.0,
        values in prop::option::of(values()),
    ) -> Profile {
        // What is only read must be read, and a profile that reads nothing has none of it.
        let read_only = if writes == 1.0 { 0.0 } else { read_only };
        Profile {
            name: "any".to_owned(),
            description: String::new(),
            source: String::new(),
            requests: Requests {
                count,
                writes,
                read_size: Size(size),
                write_size: Size(size),
            },
            arrivals: Arrivals {
                duration: Nanos(60_000_000_000),
                burst,
                within: Nanos(10_000),
            },
            address: Address {
                footprint: (count as f64 * writes * density).max(1.0) as u64,
                sequential,
                read_only,
                growth,
                hot,
                hot_writes,
                rewrite: reaches[0],
                reread: reaches[1],
                cold_reads,
                read_written: reaches[2],
            },
            values,
            similarity: None,
            published: Default::default(),
        }
    }
}

proptest! {
    #[test]
    fn counts_and_bounds_are_exact(profile in profiles(), seed: u64) {
        let options = SynthOptions { seed, ..SynthOptions::default() };
        let all = generate(&profile, &options);
        prop_assert_eq!(all.len() as u64, profile.requests.count);
        let writes = all.iter().filter(|r| r.1 == Op::Write).count() as f64;
        let wanted = (profile.requests.count as f64 * profile.requests.writes).round();
        prop_assert_eq!(writes, wanted);
        prop_assert!(all.windows(2).all(|two| two[0].0 <= two[1].0));
        prop_assert_eq!(all[0].0, 0);
        let end = all.iter().map(|r| r.2 + r.3).max().unwrap();
        prop_assert!(end <= profile.address.footprint, "{} pages", end);
        prop_assert_eq!(&all, &generate(&profile, &options));
    }

    #[test]
    fn reads_return_what_was_written_and_values_are_dense(profile in profiles(), seed: u64) {
        let all = generate(&profile, &SynthOptions { seed, ..SynthOptions::default() });
        let mut held: HashMap<u64, u32> = HashMap::new();
        let mut next = 0;
        for (_, op, first, pages, values) in all {
            prop_assert_eq!(values.is_some(), profile.values.is_some());
            let Some(values) = values else { continue };
            prop_assert_eq!(values.len() as u64, pages);
            for (page, value) in (first..).zip(values) {
                prop_assert!(value <= next, "value {} before value {}", value, next);
                next = next.max(value + 1);
                match (op, held.get(&page)) {
                    (Op::Read, Some(&held)) => prop_assert_eq!(held, value),
                    // What is found on the device is like nothing seen before.
                    (Op::Read, None) => prop_assert_eq!(value + 1, next),
                    _ => {}
                }
                held.insert(page, value);
            }
        }
    }
}

/// A profile whose every figure can be met, of 200,000 requests.
fn middling() -> Profile {
    let near = |near, gap| Reach { near, gap };
    Profile {
        name: "middling".to_owned(),
        description: String::new(),
        source: String::new(),
        requests: Requests {
            count: 200_000,
            writes: 0.8,
            read_size: Size(4096),
            write_size: Size(4096),
        },
        arrivals: Arrivals {
            duration: Nanos(3_600_000_000_000),
            burst: 20.0,
            within: Nanos(100_000),
        },
        address: Address {
            footprint: 30_000,
            sequential: 0.8,
            read_only: 0.2,
            growth: 0.5,
            hot: 0.2,
            hot_writes: 0.5,
            rewrite: near(0.2, 300.0),
            reread: near(0.2, 100.0),
            cold_reads: 0.5,
            read_written: near(0.5, 100.0),
        },
        values: Some(Values {
            unique: 0.4,
            silent: 0.06,
            reborn: 0.03,
            growth: 0.8,
            hot_new: 2.0,
            hot_reuse: 0.5,
            heavy: 0.2,
            heavy_reuse: 0.5,
            light_writes: 4,
            heavy_reach: near(0.9, 1000.0),
            light_reach: near(0.9, 1000.0),
        }),
        similarity: None,
        published: Default::default(),
    }
}

#[test]
fn shares_are_those_of_the_profile() {
    let profile = middling();
    for scale in [1.0, 0.2] {
        let all = generate(
            &profile,
            &SynthOptions {
                scale,
                ..SynthOptions::default()
            },
        );
        let pages: HashSet<u64> = all.iter().flat_map(|r| r.2..r.2 + r.3).collect();
        assert_close(
            "footprint",
            pages.len() as f64 / (30_000.0 * scale),
            1.0,
            0.001,
        );
        let sequential = all
            .windows(2)
            .filter(|two| two[0].2 + two[0].3 == two[1].2)
            .count();
        assert_close(
            "sequential",
            sequential as f64 / all.len() as f64,
            0.8,
            0.01,
        );
        let span = all.last().unwrap().0 as f64 / 3.6e12;
        assert_close("duration", span / scale, 1.0, 0.05);
        let kinds = kinds(&all);
        assert_close("unique", kinds.new, 0.4, 0.005);
        assert_close("silent", kinds.silent, 0.06, 0.005);
        assert_close("reborn", kinds.reborn, 0.03, 0.005);
    }
}

fn assert_close(what: &str, found: f64, wanted: f64, tolerance: f64) {
    assert!(
        (found - wanted).abs() <= tolerance,
        "{what}: {found}, expected {wanted} +- {tolerance}"
    );
}

/// Shares of the page writes.
struct Kinds {
    new: f64,
    silent: f64,
    reborn: f64,
}

fn kinds(all: &[Request]) -> Kinds {
    let mut held: HashMap<u64, u32> = HashMap::new();
    let mut copies: HashMap<u32, u32> = HashMap::new();
    let (mut new, mut silent, mut reborn, mut writes) = (0, 0, 0, 0);
    for (_, op, first, _, values) in all {
        for (page, &value) in (*first..).zip(values.iter().flatten()) {
            if *op != Op::Write {
                held.entry(page).or_insert(value);
                continue;
            }
            writes += 1;
            let before = held.insert(page, value);
            if before == Some(value) {
                silent += 1;
                continue;
            }
            match copies.get(&value) {
                None => new += 1,
                Some(0) => reborn += 1,
                Some(_) => {}
            }
            *copies.entry(value).or_default() += 1;
            if let Some(copies) = before.and_then(|before| copies.get_mut(&before)) {
                *copies -= 1;
            }
        }
    }
    let share = |count: i32| f64::from(count) / f64::from(writes);
    Kinds {
        new: share(new),
        silent: share(silent),
        reborn: share(reborn),
    }
}

#[test]
fn hot_pages_take_their_share_of_the_writes() {
    let mut profile = middling();
    profile.values = None;
    profile.address.rewrite = Reach {
        near: 0.0,
        gap: 0.0,
    };
    let all = generate(&profile, &SynthOptions::default());
    let mut writes: HashMap<u64, u32> = HashMap::new();
    for (_, _, page, _, _) in all.iter().filter(|r| r.1 == Op::Write) {
        *writes.entry(*page).or_default() += 1;
    }
    let mut counts: Vec<u32> = writes.into_values().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let total: u32 = counts.iter().sum();
    let hot: u32 = counts[..counts.len() / 5].iter().sum();
    // A fifth of the pages takes half of the writes; spread by chance, the top fifth takes more.
    let share = f64::from(hot) / f64::from(total);
    assert!((0.5..0.6).contains(&share), "{share}");
}

#[test]
fn near_choices_are_near() {
    // The median distance between two writes of a page follows the gap.
    let median = |gap: f64| {
        let mut profile = middling();
        profile.address.hot = 0.0;
        profile.address.hot_writes = 0.0;
        profile.address.rewrite = Reach { near: 1.0, gap };
        let all = generate(&profile, &SynthOptions::default());
        let mut last: HashMap<u64, usize> = HashMap::new();
        let writes = all.iter().filter(|r| r.1 == Op::Write).enumerate();
        let mut distances: Vec<usize> = writes
            .filter_map(|(at, r)| last.insert(r.2, at).map(|before| at - before))
            .collect();
        distances.sort_unstable();
        distances[distances.len() / 2] as f64
    };
    let (short, long) = (median(20.0), median(200.0));
    // Half of the exponential gaps are below 0.69 of the mean; a run has about 5 requests.
    assert!((short / (20.0 * 0.69 * 5.0) - 1.0).abs() < 0.5, "{short}");
    assert!((long / (200.0 * 0.69 * 5.0) - 1.0).abs() < 0.5, "{long}");
}

#[test]
fn impossible_targets_are_refused_with_the_inequality() {
    let homes = flashlore_synth::PRESETS
        .iter()
        .find(|preset| preset.name == "homes-7d")
        .unwrap();
    let text = format!(
        "{}\nx50 = {{ value = 0.1444, tolerance = 0.01 }}\n",
        homes.text.trim_end()
    );
    let message = Profile::parse("homes", &text).unwrap_err().to_string();
    assert!(
        message.contains("(1 - x50) * unique = (1 - 0.1444) * 0.6637 = 0.5679"),
        "{message}"
    );
    assert!(message.contains("at least 0.2466"), "{message}");
}

#[test]
fn bad_parameters_are_named() {
    let good = flashlore_synth::PRESETS[0].text;
    let cases = [
        (
            "writes = 0.7732",
            "writes = 1.7732",
            "requests.writes: found 1.7732",
        ),
        ("burst = 60.0", "burst = 0.5", "arrivals.burst: found 0.5"),
        (
            "footprint = 1_106_247",
            "footprint = 9_106_247",
            "address.footprint",
        ),
        ("growth = 0.3 ", "growth = 0.0 ", "address.growth: found 0"),
        ("unique = 0.0783", "unique = 0.95", "values.unique"),
        (
            "light_writes = 25",
            "light_writes = 0",
            "values.light_writes",
        ),
        ("within = \"1us\"", "within = \"50ms\"", "arrivals.within"),
        ("name = ", "nick = ", "unknown field `nick`"),
    ];
    for (from, to, wanted) in cases {
        assert!(good.contains(from), "{from}");
        let message = Profile::parse("mail", &good.replacen(from, to, 1))
            .unwrap_err()
            .to_string();
        assert!(
            message.contains(wanted) && message.starts_with("mail: "),
            "{message}"
        );
    }
}
