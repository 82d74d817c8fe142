//! What one run says about its own numbers.

use flashlore_trace::{ContentModel, DeltaModel};

use super::{FindingId, Found};
use crate::config::{HostMode, RatioFrom};
use crate::results::compare::group_digits;
use crate::results::record::{RunResult, TraceFile};

/// A part that is busy for so much of the time is what requests wait for.
const SATURATED: f64 = 0.95;

/// Requests outstanding when the last one arrives that take so much of the run are a backlog.
const BACKLOG: f64 = 0.05;

/// A backlog is longer than so many requests take by themselves.
const SERVICES: f64 = 10.0;

/// Fewer requests than this beyond a percentile say little about it.
const FEW: f64 = 20.0;

/// A share of the units written that is worth telling.
const LEFT: f64 = 0.05;

/// What collection decides: amplification, wear, and with them how much is programmed.
const OF_COLLECTION: [&str; 6] = [
    "units",
    "waf_total",
    "waf_gc",
    "flash.block_erases",
    "gc",
    "erases",
];

/// Everything that follows from what is stored.
const OF_CONTENT: [&str; 9] = [
    "units",
    "waf_total",
    "waf_gc",
    "flash.block_erases",
    "gc",
    "erases",
    "dedup",
    "response_us",
    "energy_uj",
];

/// What is found in a run.
pub(super) fn of_run(run: &RunResult) -> Vec<Found> {
    let mut found = Vec::new();
    found.extend(of_arrivals(run));
    found.extend(of_collection(run));
    found.extend(of_ratios(run));
    found.extend(of_content(run));
    found.extend(of_percentiles(run));
    found.extend(of_files(run));
    found.extend(of_buffer(run));
    found.extend(of_wear(run));
    found
}

fn of_files(run: &RunResult) -> impl Iterator<Item = Found> {
    let all = |count: fn(&TraceFile) -> u64| run.trace_files.iter().map(count).sum::<u64>();
    let told = |id, count: u64, what: &str| {
        let sentence = format!("{} {what}", group_digits(count as f64));
        let found = Found::new(id, sentence, &[], false);
        (count > 0).then(|| found.with("records", count as f64))
    };
    let skipped = told(
        FindingId::RecordsSkipped,
        all(|file| file.skipped),
        "malformed records of the trace were left out.",
    );
    let raised = told(
        FindingId::TimesRaised,
        all(|file| file.clamped),
        "records of the trace came out of order and have the time of the one before.",
    );
    skipped.into_iter().chain(raised)
}

fn of_buffer(run: &RunResult) -> Option<Found> {
    let (kept, written) = (run.buffer.pages_end, run.host.write_pages);
    if kept as f64 <= LEFT * written as f64 || written == 0 {
        return None;
    }
    let sentence = format!(
        "{} units were still in the write buffer at the end and are programmed in no number here.",
        group_digits(kept as f64)
    );
    let found = Found::new(FindingId::LeftInBuffer, sentence, &OF_COLLECTION, true);
    Some(found.with("buffer.pages_end", kept as f64))
}

fn of_wear(run: &RunResult) -> Option<Found> {
    let retired = run.flash.retired_blocks;
    let sentence = format!(
        "{} blocks wore out; the device became smaller while it was measured.",
        group_digits(retired as f64)
    );
    let found = Found::new(FindingId::WornOut, sentence, &[], false);
    (retired > 0).then(|| found.with("flash.retired_blocks", retired as f64))
}

fn of_arrivals(run: &RunResult) -> Option<Found> {
    if run.configuration.host.mode == HostMode::Closed {
        let depth = run.configuration.host.queue_depth;
        let sentence = format!(
            "The trace's times are not used: {depth} requests are kept in flight. Response times are those at this \
             depth, not at the trace's pace."
        );
        let found = Found::new(FindingId::ClosedLoop, sentence, &["response_us"], false);
        return Some(found.with("queue_depth", depth.into()));
    }
    let span = run.arrivals.map(|arrivals| arrivals.span_s);
    if span == Some(0.0) && run.host.requests > 1 {
        let sentence = format!(
            "All {} requests arrive at one instant, so response times are places in a queue and no property of the \
             system. Give the trace its times, or use --set host.mode=closed.",
            group_digits(run.host.requests as f64)
        );
        let found = Found::new(FindingId::ArrivesAtOnce, sentence, &["response_us"], true);
        return Some(found.with("requests", run.host.requests as f64));
    }
    let busiest = busiest(run);
    let backlog = run.arrivals.map_or(0.0, |arrivals| arrivals.backlog_s);
    let service = run.service_us.all.mean.unwrap_or(0.0) / 1e6;
    let grows = backlog > BACKLOG * run.run.simulated_s && backlog > SERVICES * service;
    if busiest < SATURATED && !grows {
        return None;
    }
    let sentence = format!(
        "Requests arrive faster than they are served: the busiest part worked {:.1} % of the time, and what waited \
         when the last request arrived took {backlog:.3} s of {:.3} s. Response times are waiting and grow with the \
         length of the trace; they are no property of the system. Use --set host.mode=closed, or a larger \
         host.time_scale.",
        100.0 * busiest,
        run.run.simulated_s
    );
    let found = Found::new(FindingId::Saturated, sentence, &["response_us"], true);
    let found = found.with("busy_max", busiest).with("backlog_s", backlog);
    Some(found.with("simulated_s", run.run.simulated_s))
}

/// The share of time in which the busiest part worked.
fn busiest(run: &RunResult) -> f64 {
    let parts = [
        run.utilization.die_max,
        run.utilization.channel_max,
        Some(run.array.hdd_busy),
        Some(run.array.processor_busy),
    ];
    parts.into_iter().flatten().fold(0.0, f64::max)
}

fn of_collection(run: &RunResult) -> Option<Found> {
    if run.flash.block_erases > 0 || run.flash.page_programs == 0 {
        return None;
    }
    let sentence = "No block was erased: the device was not full, and the cost of collection is not in these numbers. \
                    A longer trace, a smaller device or device.precondition would show it."
        .to_string();
    let found = Found::new(FindingId::NoErase, sentence, &OF_COLLECTION, true);
    Some(found.with("block_erases", 0.0))
}

fn of_ratios(run: &RunResult) -> Option<Found> {
    let system = &run.configuration.system;
    let encodes = system.encodes() || system.keeps_parities();
    let by_model = matches!(run.workload.delta, Some(DeltaModel::Gaussian { .. }));
    let drawn = match system.codec.ratio {
        RatioFrom::Drawn => true,
        RatioFrom::Trace => by_model || system.compress.enabled,
        RatioFrom::Codec => false,
    };
    if !encodes || !drawn {
        return None;
    }
    let sentence = "The sizes of encoded values were drawn, not measured on this trace, and all that follows from them \
                    is assumed. With the bytes of the pages, --set codec.ratio=codec measures them."
        .to_string();
    let mut metrics = OF_CONTENT.to_vec();
    metrics.extend(["delta", "compress", "history"]);
    let found = Found::new(FindingId::RatioDrawn, sentence, &metrics, true);
    Some(match run.delta.mean_rc {
        Some(mean) => found.with("mean_rc", mean),
        None => found,
    })
}

fn of_content(run: &RunResult) -> Option<Found> {
    if !run.configuration.system.dedup.enabled {
        return None;
    }
    let what = match &run.workload.content {
        ContentModel::FromTrace => return None,
        ContentModel::Distinct => {
            "every page written is unlike all others, so there is nothing to find".to_string()
        }
        model => format!("drawn for each page write ({model})"),
    };
    let sentence = format!(
        "The content of writes is assumed, not the trace's: {what}. What deduplication saves follows from that."
    );
    Some(Found::new(
        FindingId::ContentAssumed,
        sentence,
        &OF_CONTENT,
        true,
    ))
}

fn of_percentiles(run: &RunResult) -> Option<Found> {
    const TAILS: [(&str, &str, f64); 3] = [
        ("p99", "99", 1e-2),
        ("p999", "99.9", 1e-3),
        ("p9999", "99.99", 1e-4),
    ];
    let response = &run.response_us;
    let kinds = [
        ("all", response.all.count),
        ("read", response.read.count),
        ("write", response.write.count),
    ];
    let few = |count: u64, beyond: f64| count > 0 && (count as f64) * beyond < FEW;
    let metrics: Vec<String> = kinds
        .iter()
        .flat_map(|&(kind, count)| {
            let scarce = TAILS
                .iter()
                .filter(move |(_, _, beyond)| few(count, *beyond));
            scarce.map(move |(name, ..)| format!("response_us.{kind}.{name}"))
        })
        .collect();
    let all = response.all.count;
    let percentiles: Vec<&str> = TAILS
        .iter()
        .filter(|(_, _, beyond)| few(all, *beyond))
        .map(|(_, percentile, _)| *percentile)
        .collect();
    if percentiles.is_empty() {
        return None;
    }
    let sentence = format!(
        "The percentiles {} % rest on fewer than {FEW} of {} requests each.",
        percentiles.join(", "),
        group_digits(all as f64)
    );
    let metrics: Vec<&str> = metrics.iter().map(String::as_str).collect();
    let found = Found::new(FindingId::FewRequests, sentence, &metrics, true);
    Some(found.with("requests", all as f64))
}
