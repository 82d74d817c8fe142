//! Time lines of whole runs: a run with one is the same run, and every column is what a slow recount from the
//! record and the request log gives.

use crate::common;

use common::{Log, Uniform, config};
use flashlore_sim::config::RunConfig;
use flashlore_sim::engine::{MeasureOptions, RunOptions, simulate};
use flashlore_sim::results::{RunOutput, RunResult, TimelineRow, differences};
use proptest::prelude::*;

/// Pages of 8 KiB on two channels, nearly full.
const DEVICE: [&str; 6] = [
    "device.geometry.channels=2",
    "device.geometry.blocks_per_plane=48",
    "device.geometry.page_size=8KiB",
    "device.space.over_provisioning=15%",
    "dedup.index_entries=unlimited",
    "dedup.oracle=false",
];

const REQUESTS: u64 = 6_000;

/// A request as the log says.
struct Logged {
    op: char,
    arrival: u64,
    start: u64,
    end: u64,
}

impl Log {
    fn requests(&self) -> Vec<Logged> {
        let text = String::from_utf8(self.0.lock().clone()).unwrap();
        let request = |line: &str| {
            let fields: Vec<&str> = line.split(',').collect();
            let time = |at: usize| fields[at].parse().unwrap();
            Logged {
                op: fields[1].parse().unwrap(),
                arrival: time(2),
                start: time(3),
                end: time(4),
            }
        };
        text.lines().skip(1).map(request).collect()
    }
}

/// A run of so many requests, one in `reads` a read, with a time line.
fn watched(config: &RunConfig, reads: u64, width_ns: u64) -> (RunOutput, Vec<Logged>) {
    let log = Log::default();
    let options = RunOptions {
        measure: MeasureOptions {
            timeline_ns: Some(width_ns),
            request_log: Some(Box::new(log.clone())),
        },
        ..RunOptions::default()
    };
    let mut source = Uniform::new(REQUESTS, 10_000, reads, 8_000);
    let output = simulate(config, &mut source, options).unwrap();
    (output, log.requests())
}

fn unwatched(config: &RunConfig, reads: u64) -> RunResult {
    let mut source = Uniform::new(REQUESTS, 10_000, reads, 8_000);
    let options = RunOptions::default();
    simulate(config, &mut source, options).unwrap().result
}

/// What may stand in the way of a stretch's end.
fn settings() -> impl Strategy<Value = (&'static str, Vec<&'static str>)> {
    let system = prop_oneof![
        Just(("plain", "device.map.cache_bytes=unlimited")),
        Just(("ca-ssd", "device.map.cache_bytes=64KiB")),
        Just(("ca-ssd", "dedup.verify=true")),
        Just(("ca-ssd", "dedup.index_entries=100")),
        Just(("caftl", "dedup.index_entries=unlimited")),
        Just(("delta-ftl-letter", "delta.scan_period=50ms")),
        Just(("combined", "delta.scan_period=1s")),
        Just(("bvssd", "queue.enabled=false")),
        Just(("trap", "queue.enabled=false")),
        Just(("bvssd", "queue.enabled=true")),
    ];
    let choice = |choices: &'static [&'static str]| prop::sample::select(choices);
    let more = [
        choice(&[
            "device.timing.channel=shared",
            "device.timing.channel=private",
        ]),
        choice(&["device.gc.mode=foreground", "device.gc.mode=background"]),
        choice(&[
            "device.timing.erase_suspend=true",
            "device.timing.erase_suspend=false",
        ]),
        choice(&["", "device.buffer.policy=fifo device.buffer.size=256KiB"]),
        choice(&[
            "host.mode=closed",
            "host.time_scale=0.3",
            "host.time_scale=30",
        ]),
        choice(&["host.warmup=0", "host.warmup=0.3"]),
    ];
    (system, more).prop_map(|((system, own), more)| {
        let fixed = DEVICE
            .into_iter()
            .chain(["device.timing.transfer=40us", own]);
        // A queue stands where a write buffer would, and samples are of whole requests.
        let buffered = own != "queue.enabled=true" && system != "caftl";
        let fits = |choice: &&str| buffered || !choice.contains("buffer");
        let more = more
            .into_iter()
            .filter(fits)
            .flat_map(str::split_whitespace);
        (system, fixed.chain(more).collect())
    })
}

/// The figures of rows against those of the record.
fn check_totals(rows: &[TimelineRow], result: &RunResult) -> Result<(), TestCaseError> {
    let sum = |of: fn(&TimelineRow) -> u64| rows.iter().map(of).sum::<u64>();
    let programs = &result.programs;
    prop_assert_eq!(sum(|r| r.requests), result.host.requests);
    prop_assert_eq!(sum(|r| r.host_programs), programs.host);
    prop_assert_eq!(sum(|r| r.gc_programs), programs.gc);
    let others = programs.total() - programs.host - programs.gc;
    prop_assert_eq!(sum(|r| r.other_programs), others);
    prop_assert_eq!(sum(|r| r.erases), result.flash.block_erases);

    let last = rows.last().unwrap();
    prop_assert_eq!(last.erases_mean, Some(result.erases.mean));
    prop_assert_eq!(last.erases_max, Some(result.erases.max));
    prop_assert_eq!(last.erases_std, Some(result.erases.std));
    let history = result.configuration.system.history.enabled;
    prop_assert_eq!(last.window_s, history.then_some(result.history.window_s));
    prop_assert_eq!(
        last.history_entries,
        history.then_some(result.history.entries)
    );
    prop_assert_eq!(last.units_in_use.is_some(), result.system != "plain");
    Ok(())
}

/// Every row against those before it, and against the requests that arrived in it.
fn check_rows(
    rows: &[TimelineRow],
    log: &[Logged],
    result: &RunResult,
) -> Result<(), TestCaseError> {
    let blocks: u64 = result.erases.per_block.iter().map(|(_, n)| n).sum();
    let (mut erased, mut busy_s) = (0, [0.0, 0.0]);
    let end_s = log.iter().map(|r| r.end).max().unwrap() as f64 / 1e9;
    for row in rows {
        erased += row.erases;
        if let Some(mean) = row.erases_mean {
            prop_assert_eq!((mean * blocks as f64).round() as u64, erased);
        }
        let ns = |seconds: f64| (seconds * 1e9).round() as u64;
        let stretch = ns(row.start_s)..ns(row.start_s + row.width_s);
        let mine: Vec<&Logged> = log
            .iter()
            .filter(|r| stretch.contains(&r.arrival))
            .collect();
        let ops = |op| mine.iter().filter(|r| r.op == op).count() as u64;
        prop_assert_eq!(
            (row.requests, row.read_pages),
            (mine.len() as u64, ops('R'))
        );
        let response: u64 = mine.iter().map(|r| r.end - r.arrival).sum();
        if let Some(mean) = row.response_mean_us {
            let expected = response as f64 / mine.len() as f64 / 1e3;
            prop_assert!(
                (mean - expected).abs() <= 1e-9 * expected,
                "{mean} us of {expected} us, {row:?}"
            );
        }
        let watched_s = row.width_s.min(end_s - row.start_s);
        for (share, sum) in [row.die_busy, row.channel_busy]
            .into_iter()
            .zip(&mut busy_s)
        {
            let share = share.unwrap_or(0.0);
            prop_assert!((0.0..=1.0 + 1e-9).contains(&share), "{row:?}");
            *sum += share * watched_s.max(0.0);
        }
    }
    // What runs beyond the end of the run counts for the record alone, and the part of a background erase that
    // has run by then for the rows alone.
    let erase_s = result.configuration.device.timing.erase.0 as f64 / 1e9;
    let used = &result.utilization;
    if result.configuration.host.warmup.get() == 0.0 {
        for (mean, sum) in [used.die_mean, used.channel_mean].into_iter().zip(busy_s) {
            let all = mean.unwrap() * result.run.simulated_s;
            prop_assert!(sum <= all + erase_s + 1e-6, "{sum} s of {all} s");
            prop_assert!(sum >= 0.9 * all - 0.02, "{sum} s of {all} s");
        }
    }
    Ok(())
}

/// A run with a time line against one without, its rows against the record and the log.
fn check_watched(system: &str, settings: &[&str], width_ms: u64) -> Result<(), TestCaseError> {
    let config = config("ca-ssd-4g", system, settings);
    let (output, log) = watched(&config, 3, width_ms * 1_000_000);
    let differences = differences(&output.result, &unwatched(&config, 3), 3);
    prop_assert_eq!(differences, []);
    let rows = output.timeline.unwrap().rows();
    check_totals(&rows, &output.result)?;
    check_rows(&rows, &log, &output.result)
}

/// Stretches that hold nothing but writes which the queue answers at once: their mean response is 0.
#[test]
fn rows_of_requests_answered_at_once_add_up() {
    let settings = [
        &DEVICE[..],
        &[
            "device.timing.transfer=40us",
            "device.timing.channel=shared",
            "device.timing.erase_suspend=true",
            "device.gc.mode=foreground",
            "queue.enabled=true",
            "host.time_scale=30",
            "host.warmup=0",
        ],
    ];
    check_watched("bvssd", &settings.concat(), 1).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_watched_run_is_the_same_run_and_its_rows_add_up(
        (system, settings) in settings(),
        width_ms in 1_u64..400,
    ) {
        check_watched(system, &settings, width_ms)?;
    }

    /// Each read is one operation of one die, from its start to its end.
    #[test]
    fn dies_are_busy_while_they_read(width_us in 1_u64..3_000_000, scale in 1..30_u32) {
        let scale = format!("host.time_scale={}", f64::from(scale) / 10.0);
        let more = [
            scale.as_str(),
            "device.timing.host_request=0ns",
            "device.timing.host_sector=0ns",
            "device.timing.channel=private",
            "host.warmup=0",
        ];
        let config = config("ca-ssd-4g", "plain", &[&DEVICE[..], &more].concat());
        let (output, log) = watched(&config, 1, width_us * 1000);
        let dies = output.result.utilization.die.len() as f64;
        let end = log.iter().map(|r| r.end).max().unwrap();
        let timeline = output.timeline.unwrap();
        let width = timeline.width_ns();
        for (at, row) in timeline.rows().iter().enumerate() {
            let (from, to) = (at as u64 * width, ((at as u64 + 1) * width).min(end));
            let within = |r: &Logged| r.end.min(to).saturating_sub(r.start.max(from));
            let worked = log.iter().map(within).sum::<u64>() as f64;
            match row.die_busy {
                Some(share) => {
                    let counted = share * (to - from) as f64 * dies;
                    prop_assert!((counted - worked).abs() < 1.0, "{counted} ns, {worked} ns");
                }
                None => prop_assert_eq!(from, to),
            }
        }
    }
}
