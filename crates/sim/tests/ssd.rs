//! The SSD that requests are submitted to, against runs of the same requests: bit for bit the same responses and
//! figures, however time passes.

use crate::common;
use flashlore_flash::Lpn;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use common::{Log, config};
use flashlore_sim::config::RunConfig;
use flashlore_sim::engine::{
    MeasureOptions, Response, RunOptions, Ssd, SsdError, SsdRequest, simulate,
};
use flashlore_sim::results::{RunResult, RunSpeed};
use flashlore_trace::{NO_CONTENT, Op, Request, RequestBlock, RequestSource, Summary};
use proptest::prelude::*;
use proptest::strategy::ValueTree;

/// A device that exports 4,096 pages of 6,144, so that the runs here collect.
const SMALL: [&str; 5] = [
    "device.geometry.channels=2",
    "device.geometry.packages_per_channel=1",
    "device.geometry.dies_per_package=2",
    "device.capacity=16MiB",
    "host.warmup=0",
];
const PAGES: u32 = 4096;

const PRIVATE: [&str; 2] = [
    "device.geometry.planes_per_die=1",
    "device.geometry.blocks_per_plane=24",
];
const SHARED: [&str; 6] = [
    "device.geometry.planes_per_die=1",
    "device.geometry.blocks_per_plane=24",
    "device.timing.channel=shared",
    "device.timing.transfer=40us",
    "device.timing.host_request=3us",
    "device.timing.host_sector=0.5us",
];
/// Flash pages of several units wait until they are full.
const LARGE_PAGES: [&str; 6] = [
    "device.geometry.planes_per_die=1",
    "device.geometry.blocks_per_plane=24",
    "device.geometry.page_size=16KiB",
    "device.geometry.pages_per_block=16",
    "device.timing.channel=shared",
    "device.timing.transfer=40us",
];
/// Several planes of a die collect in idle time, each for itself, and their erases are suspended.
const BACKGROUND: [&str; 8] = [
    "device.geometry.planes_per_die=2",
    "device.geometry.blocks_per_plane=24",
    "device.geometry.pages_per_block=32",
    "device.layout.pool=plane",
    "device.gc.mode=background",
    "device.gc.low_watermark=8%",
    "device.gc.high_watermark=12%",
    "device.timing.erase_suspend=true",
];

/// Systems and devices.
const CASES: [(&str, &[&str], &[&str]); 16] = [
    ("plain", &PRIVATE, &[]),
    ("plain", &SHARED, &[]),
    ("plain", &LARGE_PAGES, &[]),
    ("plain", &BACKGROUND, &[]),
    (
        "plain",
        &PRIVATE,
        &["device.buffer.policy=slru", "device.buffer.size=1MiB"],
    ),
    ("plain", &SHARED, &["device.map.cache_bytes=4KiB"]),
    ("ca-ssd", &PRIVATE, &[]),
    ("ca-ssd", &SHARED, &["dedup.verify=true"]),
    (
        "ca-ssd",
        &BACKGROUND,
        &[
            "device.timing.channel=shared",
            "device.timing.transfer=40us",
        ],
    ),
    ("caftl", &SHARED, &[]),
    ("caftl", &BACKGROUND, &["dedup.out_of_line=true"]),
    ("delta-ftl-letter", &PRIVATE, &["delta.scan_period=200ms"]),
    ("combined", &PRIVATE, &[]),
    ("combined", &SHARED, &[]),
    ("combined", &LARGE_PAGES, &["queue.enabled=true"]),
    ("trap", &PRIVATE, &[]),
];

fn configured(system: &str, device: &[&str], more: &[&str]) -> RunConfig {
    config("ca-ssd-4g", system, &[&SMALL[..], device, more].concat())
}

/// A trace in memory.
#[derive(Debug)]
struct Trace {
    block: RequestBlock,
    summary: Summary,
    sent: bool,
}

impl RequestSource for Trace {
    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn rewind(&mut self) -> flashlore_trace::Result<()> {
        self.sent = false;
        Ok(())
    }

    fn next_block(&mut self, out: &mut RequestBlock) -> flashlore_trace::Result<bool> {
        out.clone_from(&self.block);
        Ok(!std::mem::replace(&mut self.sent, true))
    }
}

impl Trace {
    /// A request of a trace as it is submitted.
    fn request(&self, i: usize) -> SsdRequest<'_> {
        let request = &self.block.requests[i];
        SsdRequest {
            op: request.op,
            lpn: Lpn(request.lpn),
            units: request.units,
            head_partial: request.head_partial,
            tail_partial: request.tail_partial,
            values: self.block.content(request),
            ratios: None,
        }
    }

    fn len(&self) -> usize {
        self.block.requests.len()
    }

    fn stamp(&self, i: usize) -> u64 {
        self.block.requests[i].time_ns
    }
}

/// Requests of all kinds in bursts with idle time between, most of them writes, half of them to a few pages, at
/// multiples of `grid`.
fn traces(grid: u64) -> impl Strategy<Value = Trace> {
    let gap = prop_oneof![
        4 => Just(0u64),
        8 => 1u64..50_000,
        8 => 100_000u64..2_000_000,
        // Instants at which others end too.
        4 => (1u64..20).prop_map(|n| n * 100_000),
        1 => 20_000_000u64..400_000_000,
    ];
    let lpn = prop_oneof![0u32..100, 0..PAGES - 8];
    let value = prop_oneof![1 => 0u32..400, 3 => 0u32..1_000_000];
    let one = (gap, lpn, 1u32..6, value, 0u8..24, any::<(bool, bool)>());
    prop::collection::vec(one, 2500..3000).prop_map(move |drawn| {
        let mut block = RequestBlock::default();
        let mut now = 0;
        for (gap, lpn, units, value, kind, (head, tail)) in drawn {
            now += gap / grid * grid;
            let op = match kind {
                0 => Op::Flush,
                1 | 2 => Op::Trim,
                3..8 => Op::Read,
                _ => Op::Write,
            };
            let mut first_value = NO_CONTENT;
            if op == Op::Write {
                first_value = block.values.len() as u32;
                block.values.extend(value..value + units);
            }
            let partial = op == Op::Write && kind == 8;
            block.requests.push(Request {
                time_ns: now,
                lpn: if op == Op::Flush { 0 } else { lpn },
                units: if op == Op::Flush { 0 } else { units },
                first_value,
                op,
                head_partial: partial && head,
                tail_partial: partial && tail,
            });
        }
        let summary = Summary::generated(block.requests.len() as u64, PAGES.into(), true);
        Trace {
            block,
            summary,
            sent: false,
        }
    })
}

/// The responses of a run, in order of time and number, and its figures.
fn run(config: &RunConfig, trace: &mut Trace) -> (Vec<Response>, RunResult) {
    let log = Log::default();
    let options = RunOptions {
        measure: MeasureOptions {
            timeline_ns: None,
            request_log: Some(Box::new(log.clone())),
        },
        ..RunOptions::default()
    };
    let result = simulate(config, trace, options).unwrap().result;
    let text = String::from_utf8(log.0.lock().clone()).unwrap();
    let response = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        Response {
            id: fields[0].parse().unwrap(),
            at: fields[4].parse().unwrap(),
        }
    };
    let mut responses: Vec<Response> = text.lines().skip(1).map(response).collect();
    responses.sort_by_key(|r| (r.at, r.id));
    (responses, timeless(result))
}

/// The figures, without how long it took to find them.
fn timeless(result: RunResult) -> RunResult {
    let run = RunSpeed {
        wall_s: 0.0,
        requests_per_s: 0.0,
        peak_rss_bytes: None,
        ..result.run
    };
    RunResult { run, ..result }
}

fn ssd(config: &RunConfig, trace: &Trace) -> Ssd<'static> {
    Ssd::new(config, trace.summary.prefill_units(), None).unwrap()
}

/// Steps of one length between two requests, at most.
const MOST_STEPS: u64 = 400;

/// How time passes between requests.
#[derive(Debug, Clone, Copy)]
enum Steps {
    /// At requests alone.
    None,
    /// To each event, and to the instant before it.
    Events,
    /// By so much.
    Of(u64),
}

/// Lets time pass to an instant in such steps; whether events are where they are said to be is checked on the way.
fn pass(ssd: &mut Ssd<'_>, until: u64, steps: Steps, heard: &mut Vec<Response>) {
    match steps {
        Steps::None => {}
        Steps::Events => {
            while let Some(event) = ssd.next_event().filter(|&event| event <= until) {
                let before = heard.len();
                if event > ssd.now() {
                    ssd.advance(event - 1, heard).unwrap();
                    assert_eq!(
                        heard.len(),
                        before,
                        "a response before the next event, {event}"
                    );
                }
                ssd.advance(event, heard).unwrap();
                assert!(heard[before..].iter().all(|r| r.at == event));
                let next = ssd.next_event();
                assert_eq!(next.is_some(), ssd.outstanding() > 0, "at {event}");
                assert!(
                    next.is_none_or(|next| next > event),
                    "no progress at {event}"
                );
            }
        }
        Steps::Of(step) => {
            let steps = until.saturating_sub(ssd.now() + 1) / step;
            for _ in 0..steps.min(MOST_STEPS) {
                ssd.advance(ssd.now() + step, heard).unwrap();
            }
        }
    }
}

/// The trace at its stamps.
fn open(config: &RunConfig, trace: &Trace, steps: Steps) -> (Vec<Response>, RunResult) {
    let mut ssd = ssd(config, trace);
    let mut heard = Vec::new();
    for i in 0..trace.len() {
        pass(&mut ssd, trace.stamp(i), steps, &mut heard);
        ssd.submit(trace.stamp(i), i as u64, trace.request(i))
            .unwrap();
    }
    finish(ssd, trace, heard)
}

/// The trace with so many requests in flight, and a pause after each response.
fn closed(config: &RunConfig, trace: &Trace, depth: u32, pause: u64) -> (Vec<Response>, RunResult) {
    let mut ssd = ssd(config, trace);
    let mut heard = Vec::new();
    let mut turns: BinaryHeap<Reverse<u64>> = (0..depth).map(|_| Reverse(0)).collect();
    let mut next = 0;
    while next < trace.len() {
        let turn = turns.peek().map(|&Reverse(at)| at);
        match ssd.next_event() {
            Some(event) if turn.is_none_or(|turn| event < turn) => {
                let before = heard.len();
                ssd.advance(event, &mut heard).unwrap();
                turns.extend(heard[before..].iter().map(|r| Reverse(r.at + pause)));
            }
            _ => {
                let turn = turn.unwrap();
                turns.pop();
                ssd.submit(turn, next as u64, trace.request(next)).unwrap();
                next += 1;
            }
        }
    }
    finish(ssd, trace, heard)
}

fn finish(mut ssd: Ssd<'_>, trace: &Trace, mut heard: Vec<Response>) -> (Vec<Response>, RunResult) {
    ssd.drain(&mut heard).unwrap();
    assert_eq!(ssd.outstanding(), 0);
    assert!(heard.is_sorted_by_key(|r| r.at));
    // A request may bring about the response to an earlier one at its own instant, which others share.
    heard.sort_by_key(|r| (r.at, r.id));
    (heard, timeless(ssd.result(&trace.summary)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3))]

    #[test]
    fn an_open_loop_gives_the_responses_and_figures_of_a_run(
        mut trace in traces(1),
        step in 1_000u64..500_000,
    ) {
        for (system, device, more) in CASES {
            let config = configured(system, device, more);
            let (responses, figures) = run(&config, &mut trace);
            let collects = figures.gc.victims > 0;
            prop_assert!(collects, "{} {:?} collects nothing", system, device);
            for steps in [Steps::None, Steps::Events, Steps::Of(step)] {
                let (heard, result) = open(&config, &trace, steps);
                prop_assert_eq!(&heard, &responses, "{} {:?} {:?} {:?}", system, device, more, steps);
                prop_assert_eq!(&result, &figures, "{} {:?} {:?} {:?}", system, device, more, steps);
            }
        }
    }

    /// Operations of this part take multiples of 25 us, so that much ends at the instants to which time passes,
    /// idle or not.
    #[test]
    fn time_may_pass_to_the_very_instants_at_which_operations_end(trace in traces(25_000)) {
        let shared = ["device.timing.channel=shared", "device.timing.transfer=25us"];
        let cases: [(&str, &[&str]); 4] = [
            ("plain", &[]),
            ("plain", &shared),
            ("plain", &["device.timing.erase_suspend=false"]),
            ("ca-ssd", &["dedup.hash_time=25us"]),
        ];
        for (system, more) in cases {
            let config = configured(system, &BACKGROUND, more);
            let whole = open(&config, &trace, Steps::None);
            prop_assert!(whole.1.gc.victims > 20, "{} {:?}: {} victims", system, more, whole.1.gc.victims);
            for steps in [Steps::Events, Steps::Of(25_000), Steps::Of(100_000)] {
                prop_assert!(open(&config, &trace, steps) == whole, "{} {:?} {:?}", system, more, steps);
            }
        }
    }

    #[test]
    fn a_closed_loop_gives_the_responses_and_figures_of_a_run(
        mut trace in traces(1),
        depth in prop::sample::select(vec![1u32, 4, 32]),
        pause in prop::sample::select(vec![0u64, 70_000]),
    ) {
        for (system, device, more) in CASES {
            let (depth_set, pause_set) = (
                format!("host.queue_depth={depth}"),
                format!("host.think_time={pause}ns"),
            );
            let host = ["host.mode=closed", &depth_set, &pause_set];
            let config = configured(system, device, &[more, &host[..]].concat());
            let (responses, figures) = run(&config, &mut trace);
            let (heard, result) = closed(&config, &trace, depth, pause);
            prop_assert_eq!(&heard, &responses, "{} {:?} {:?}", system, device, more);
            prop_assert_eq!(&result, &figures, "{} {:?} {:?}", system, device, more);
        }
    }
}

#[test]
fn measuring_that_begins_anew_is_a_warm_up() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut trace = traces(1).new_tree(&mut runner).unwrap().current();
    for (system, device, more) in CASES {
        let config = configured(system, device, &[more, &["host.warmup=0.5"]].concat());
        let figures = run(&config, &mut trace).1;
        let mut ssd = ssd(&config, &trace);
        let half = (trace.len() as f64 * 0.5).round() as usize;
        for i in 0..trace.len() {
            if i == half {
                ssd.begin_measuring();
            }
            ssd.submit(trace.stamp(i), i as u64, trace.request(i))
                .unwrap();
        }
        let result = finish(ssd, &trace, Vec::new()).1;
        assert_eq!(result, figures, "{system} {device:?} {more:?}");
    }
}

#[test]
fn a_request_served_by_itself_ends_when_its_response_is_given() {
    let config = configured("ca-ssd", &PRIVATE, &["device.precondition.fill=0"]);
    let timing = &config.device.timing;
    let (hash, program) = (config.system.dedup.hash_time.0, timing.program[0].0);
    let mut ssd = Ssd::new(&config, std::iter::empty(), None).unwrap();
    let write = |values| SsdRequest::write(Lpn(0), 2).with_values(values);
    // Hashed one after the other, and programmed on two dies.
    let end = ssd.serve(1000, write(&[1, 2])).unwrap();
    assert_eq!(end, 1000 + 2 * hash + program);
    // The same content again: hashed and found.
    assert_eq!(ssd.serve(end, write(&[1, 2])).unwrap(), end + 2 * hash);
    let now = ssd.now();
    assert_eq!(
        ssd.serve(now, SsdRequest::read(Lpn(0), 2)).unwrap(),
        now + timing.read.0
    );
    assert_eq!((ssd.next_event(), ssd.outstanding()), (None, 0));
}

#[test]
fn what_cannot_be_taken_is_refused_and_changes_nothing() {
    let config = configured("ca-ssd", &PRIVATE, &[]);
    let mut ssd = Ssd::new(&config, std::iter::empty(), None).unwrap();
    assert_eq!(ssd.units(), PAGES);
    let mut heard = Vec::new();
    ssd.advance(500, &mut heard).unwrap();
    let values = [1, 2];
    for (request, message) in [
        (SsdRequest::read(Lpn(PAGES - 1), 2), "below 4096"),
        (SsdRequest::read(Lpn(u32::MAX), 2), "below 4096"),
        (SsdRequest::read(Lpn(3), 0), "below 4096"),
        (SsdRequest::trim(Lpn(PAGES), 1), "below 4096"),
        (
            SsdRequest::write(Lpn(3), 2),
            "without the numbers of its values",
        ),
        (
            SsdRequest::write(Lpn(3), 1).with_values(&values),
            "2 values: expected one for each unit",
        ),
        (
            SsdRequest::read(Lpn(3), 2).with_values(&values),
            "2 values: expected one for each unit",
        ),
        (
            SsdRequest::write(Lpn(3), 1).with_values(&[u32::MAX]),
            "below 2^32 - 1",
        ),
        (
            SsdRequest {
                ratios: Some(&[7, 0]),
                ..SsdRequest::write(Lpn(3), 2).with_values(&values)
            },
            "unit 4 is written with ratio 0",
        ),
    ] {
        let error = ssd.submit(600, 1, request).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
    let late = ssd.submit(499, 1, SsdRequest::read(Lpn(0), 1)).unwrap_err();
    assert!(
        matches!(
            late,
            SsdError::Past {
                time: 499,
                now: 500
            }
        ),
        "{late}"
    );
    assert_eq!(
        (ssd.now(), ssd.outstanding(), ssd.next_event()),
        (500, 0, None)
    );
    ssd.submit(500, 1, SsdRequest::read(Lpn(0), 1)).unwrap();
    let busy = ssd.serve(600, SsdRequest::FLUSH).unwrap_err();
    assert!(matches!(busy, SsdError::Busy { outstanding: 1 }), "{busy}");
}

#[test]
fn nothing_is_asked_of_a_device_that_has_failed() {
    let config = configured("plain", &PRIVATE, &["device.geometry.endurance=2"]);
    let mut ssd = Ssd::new(&config, std::iter::empty(), None).unwrap();
    let failure = (0..1_000_000u32).find_map(|i| {
        let lpn = i.wrapping_mul(2_654_435_761) % PAGES;
        ssd.serve(ssd.now(), SsdRequest::write(Lpn(lpn), 1)).err()
    });
    assert!(matches!(failure, Some(SsdError::Device(_))), "{failure:?}");
    let again = ssd
        .submit(ssd.now(), 1, SsdRequest::read(Lpn(0), 1))
        .unwrap_err();
    assert!(matches!(again, SsdError::Failed), "{again}");
}

#[test]
fn bytes_touch_the_units_in_which_they_lie_and_trims_those_that_they_cover() {
    let of = |op, offset, bytes| SsdRequest::of_bytes(op, offset, bytes).unwrap();
    assert_eq!(of(Op::Read, 4095, 2), SsdRequest::read(Lpn(0), 2));
    assert_eq!(of(Op::Write, 8192, 8192), SsdRequest::write(Lpn(2), 2));
    let inside = of(Op::Write, 4608, 512);
    assert_eq!((inside.lpn, inside.units), (Lpn(1), 1));
    assert!(inside.head_partial && inside.tail_partial);
    let tail = of(Op::Write, 4096, 4608);
    assert_eq!(
        (tail.units, tail.head_partial, tail.tail_partial),
        (2, false, true)
    );
    assert_eq!(of(Op::Trim, 1, 12287), SsdRequest::trim(Lpn(1), 2));
    assert_eq!(of(Op::Trim, 1, 4096).units, 0);
    assert_eq!(of(Op::Flush, 0, 0), SsdRequest::FLUSH);
    for (offset, bytes) in [(0, 0), (u64::MAX, 2), (1 << 50, 1)] {
        let refused = SsdRequest::of_bytes(Op::Read, offset, bytes);
        assert!(
            matches!(refused, Err(SsdError::Bytes { .. })),
            "{refused:?}"
        );
    }
}
