//! Delta ratios that a trace carries, in whole runs with collection and merges: they do what the same
//! ratios do when they are drawn.

use crate::common;

use std::io::Cursor;

use common::config;
use flashlore_sim::engine::{RunError, RunOptions, simulate};
use flashlore_sim::results::RunResult;
use flashlore_trace::devices::NameStyle;
use flashlore_trace::formats::native::NativeWriter;
use flashlore_trace::{
    ContentModel, DeltaModel, DeviceNames, FULL_RATIO, Op, Record, TraceReader, Workload,
    WorkloadOptions,
};
use proptest::prelude::*;

/// A device that exports 4,096 pages of 6,144, so that the runs here collect.
const SMALL: [&str; 4] = [
    "device.geometry.channels=1",
    "device.geometry.blocks_per_plane=96",
    "device.capacity=16MiB",
    "queue.enabled=false",
];

/// One request: first page, pages, first value, whether it reads.
type Request = (u64, u64, u32, bool);

fn requests() -> impl Strategy<Value = Vec<Request>> {
    // Half of the requests go to 150 pages, which become hot.
    let page = prop_oneof![0u64..150, 0u64..3500];
    let one = (page, 1u64..5, 0u32..4000, prop::bool::weighted(0.1));
    prop::collection::vec(one, 3000..4000)
}

/// A native trace, with ratios that `rate` gives each write by the number of its first page write.
fn trace(requests: &[Request], rate: impl Fn(u64, u64) -> Option<Vec<u16>>) -> Vec<u8> {
    let mut writer = NativeWriter::new(Cursor::new(Vec::new())).unwrap();
    let mut written = 0;
    for (number, &(page, pages, value, reads)) in (0..).zip(requests) {
        let content: Vec<u32> = (value..).take(pages as usize).collect();
        let ratios = match reads {
            true => None,
            false => rate(written, pages),
        };
        written += if reads { 0 } else { pages };
        let record = Record {
            time_ns: number * 3_000_000,
            device: 0,
            op: if reads { Op::Read } else { Op::Write },
            offset: page * 4096,
            length: pages * 4096,
            content: Some(&content),
            delta_ratios: ratios.as_deref(),
        };
        writer.push(&record).unwrap();
    }
    let names = DeviceNames::new(NameStyle::Number);
    writer.finish(&names, 0).unwrap().into_inner()
}

fn run(
    system: &str,
    settings: &[&str],
    trace: &[u8],
    delta: Option<DeltaModel>,
) -> Result<RunResult, RunError> {
    let options = WorkloadOptions {
        compact: true,
        delta,
        ..WorkloadOptions::new(ContentModel::FromTrace)
    };
    let reader = TraceReader::from_bytes("trace", trace.to_vec(), &options.read).unwrap();
    let mut workload = Workload::from_readers(vec![reader], &options).unwrap();
    let config = config("ca-ssd-4g", system, &[&SMALL[..], settings].concat());
    simulate(&config, &mut workload, RunOptions::default()).map(|output| output.result)
}

/// Everything that a run counts and measures, without where it came from.
fn counted(result: &RunResult) -> impl PartialEq + std::fmt::Debug {
    let text = |part: Result<String, serde_json::Error>| part.unwrap();
    [
        text(serde_json::to_string(&result.host)),
        text(serde_json::to_string(&result.flash)),
        text(serde_json::to_string(&result.programs)),
        text(serde_json::to_string(&result.gc)),
        text(serde_json::to_string(&result.dedup)),
        text(serde_json::to_string(&result.history)),
        text(serde_json::to_string(&result.delta)),
        text(serde_json::to_string(&result.compress)),
        text(serde_json::to_string(&result.response_us)),
        text(serde_json::to_string(&result.erases)),
    ]
}

/// Systems that store deltas, and what sets the mean of those that are drawn by pairs of values.
const SYSTEMS: [(&str, &str); 3] = [
    ("delta-ftl-letter", "delta"),
    ("combined", "delta"),
    ("trap", "history"),
];

fn gaussian(mean: f64, std: f64) -> DeltaModel {
    let seed = 4;
    DeltaModel::Gaussian { mean, std, seed }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]

    /// One ratio for all writes, in the trace, drawn for it, and drawn by pairs of values.
    #[test]
    fn a_constant_ratio_does_what_a_gaussian_without_deviation_does(
        requests in requests(),
        mean in prop::sample::select(vec![0.05, 0.2, 0.35, 0.5]),
    ) {
        let ratio = (mean * f64::from(FULL_RATIO)).round() as u16;
        let with = trace(&requests, |_, pages| Some(vec![ratio; pages as usize]));
        let without = trace(&requests, |_, _| None);
        for (system, section) in SYSTEMS {
            let from_trace = ["codec.ratio=trace"];
            let frozen = run(system, &from_trace, &with, Some(DeltaModel::FromTrace)).unwrap();
            let encoded = frozen.delta.encoded + frozen.history.encoded;
            prop_assert!(encoded > 100, "{system} encodes {encoded}");
            let collects = frozen.gc.victims > 0 || system != "delta-ftl-letter";
            prop_assert!(collects, "{system} collects nothing");
            let drawn = run(system, &from_trace, &without, Some(gaussian(mean, 0.0))).unwrap();
            prop_assert_eq!(counted(&frozen), counted(&drawn), "{}", system);
            let (mean, deviation) = (
                format!("{section}.mean={mean}"),
                format!("{section}.deviation=0"),
            );
            let by_pairs = ["codec.ratio=drawn", mean.as_str(), deviation.as_str()];
            let drawn = run(system, &by_pairs, &without, None).unwrap();
            prop_assert_eq!(counted(&frozen), counted(&drawn), "{} by pairs", system);
        }
    }

    /// Ratios drawn before and carried by the trace are the same run as ratios drawn while it is read.
    #[test]
    fn frozen_ratios_give_the_run_of_drawn_ones(requests in requests(), std in 0.0..0.3) {
        let model = gaussian(0.35, std);
        let without = trace(&requests, |_, _| None);
        let all: Vec<u16> = {
            let mut rater = model.rater().unwrap().unwrap();
            let mut all = Vec::new();
            let mut reader = TraceReader::from_bytes("t", without.clone(), &Default::default()).unwrap();
            let mut batch = flashlore_trace::Batch::default();
            while reader.next_batch(&mut batch).unwrap() {
                batch.iter().for_each(|record| rater.rate(&record, &mut all).unwrap());
            }
            all
        };
        let with = trace(&requests, |first, pages| {
            Some(all[first as usize..(first + pages) as usize].to_vec())
        });
        for (system, _) in SYSTEMS {
            let settings = ["codec.ratio=trace"];
            let frozen = run(system, &settings, &with, Some(DeltaModel::FromTrace)).unwrap();
            let drawn = run(system, &settings, &without, Some(model)).unwrap();
            prop_assert_eq!(counted(&frozen), counted(&drawn), "{}", system);
        }
    }
}

#[test]
fn a_trace_with_ratios_for_some_writes_is_refused() {
    let requests = [(0, 2, 5, false), (4, 1, 9, false), (0, 1, 7, true)];
    let some = trace(&requests, |first, pages| {
        (first > 0).then(|| vec![9; pages as usize])
    });
    let settings = ["codec.ratio=trace"];
    let refused = run(
        "delta-ftl-letter",
        &settings,
        &some,
        Some(DeltaModel::FromTrace),
    );
    let text = refused.unwrap_err().to_string();
    assert!(
        text.contains("2 of 3 page writes have no R_c")
            && text.contains("`flashlore trace convert --delta`"),
        "{text}"
    );
}
