//! The profiles of I-CASH's benchmarks have the requests, sizes and data that the paper's Table 4 says.

use std::collections::HashSet;

use flashlore_synth::profile::Statistic;
use flashlore_synth::{Generator, SynthOptions, load};
use flashlore_trace::{Batch, Op};

/// Checks what is published of a profile's requests, on a workload of `scale` times its size.
fn check(name: &str, scale: f64) {
    let (profile, _) = load(name).unwrap_or_else(|error| panic!("{error}"));
    let options = SynthOptions {
        scale,
        ..SynthOptions::default()
    };
    let mut generator = Generator::new(&profile, &options);
    let mut batch = Batch::default();
    let (mut pages, mut count, mut bytes) = (HashSet::new(), [0u64; 2], [0u64; 2]);
    while generator.next_batch(&mut batch) {
        for record in batch.iter() {
            let kind = usize::from(record.op == Op::Write);
            count[kind] += 1;
            bytes[kind] += record.length;
            pages.extend(record.offset / 4096..(record.offset + record.length) / 4096);
        }
    }
    let requests = (count[0] + count[1]) as f64;
    let published = |statistic| {
        let published = profile.published[&statistic];
        (published.value, published.tolerance)
    };
    for (statistic, found, scale) in [
        (Statistic::Requests, requests, scale),
        (Statistic::Writes, count[1] as f64 / requests, 1.0),
        (
            Statistic::MeanReadSize,
            bytes[0] as f64 / count[0] as f64,
            1.0,
        ),
        (
            Statistic::MeanWriteSize,
            bytes[1] as f64 / count[1] as f64,
            1.0,
        ),
        (
            Statistic::FootprintBytes,
            pages.len() as f64 * 4096.0,
            scale,
        ),
    ] {
        let (value, tolerance) = published(statistic);
        println!(
            "{name} {statistic:?}: {found:.4}, published {:.4}",
            value * scale
        );
        assert!(
            (found - value * scale).abs() <= tolerance * scale + 0.5,
            "{name} {statistic:?}: {found:.4}, published {:.4} within {tolerance}",
            value * scale
        );
    }
}

macro_rules! profiles {
    ($($test:ident $name:literal $scale:literal),* $(,)?) => {
        $(#[test]
        fn $test() {
            check($name, $scale);
        })*
    };
}

profiles![
    sysbench "sysbench" 0.2,
    hadoop "hadoop" 1.0,
    tpc_c "tpc-c" 0.5,
    loadsim "loadsim" 0.04,
    specsfs "specsfs" 0.2,
    rubis "rubis" 1.0,
    tpc_c_5vm "tpc-c-5vm" 0.5,
    rubis_5vm "rubis-5vm" 0.2,
];
