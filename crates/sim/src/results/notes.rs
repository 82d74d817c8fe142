//! What stands in the head of a table because it changed the trace or how it was replayed: nothing
//! that does may be silent.

use flashlore_trace::{ContentModel, DeltaModel, Join, WorkloadOptions};

use super::record::RunResult;
use crate::config::{HostConfig, Load, Nanos};

/// Sentences about the workload and the host of `run`, without the things that are as the trace has
/// them.
pub(super) fn workload_notes(run: &RunResult) -> Vec<String> {
    let mut notes = layout_notes(&run.workload, run.trace_files.len());
    notes.extend(host_notes(&run.configuration.host));
    notes
}

fn layout_notes(workload: &WorkloadOptions, files: usize) -> Vec<String> {
    let mut notes = Vec::new();
    if files > 1 {
        notes.push(match workload.join {
            Join::Sequence => "The traces are replayed one after another.".to_string(),
            Join::Timeline => "The traces are merged by their times.".to_string(),
        });
    }
    if let Some(within) = workload.read.coalesce_ns {
        let when = match within {
            0 => "at the same time".to_string(),
            _ => format!("within {}", Nanos(within)),
        };
        notes.push(format!(
            "Records at adjacent addresses {when} are joined into one request."
        ));
    }
    if !workload.devices.is_empty() {
        let names = workload.devices.join(" ");
        notes.push(format!("Only requests to device {names} are replayed."));
    }
    if workload.compact {
        notes.push("Addresses are compact: pages never touched are left out.".to_string());
    }
    notes.extend(content_note(&workload.content));
    if let Some(delta) = workload.delta.filter(|&d| d != DeltaModel::FromTrace) {
        notes.push(format!(
            "Delta ratios are assumed: drawn for each page write ({delta})."
        ));
    }
    notes
}

fn content_note(content: &ContentModel) -> Option<String> {
    let what = match content {
        ContentModel::FromTrace => return None,
        ContentModel::Distinct => "every page written is unlike all others".to_string(),
        ContentModel::Zipf { .. } | ContentModel::Uniform { .. } => {
            format!("drawn for each page write ({content})")
        }
        ContentModel::Named(_) => format!("made for each page write ({content})"),
    };
    Some(format!("Content is assumed: {what}."))
}

fn host_notes(host: &HostConfig) -> Vec<String> {
    let mut notes = Vec::new();
    match host.load() {
        Load::Open { time_scale: 1.0 } => {}
        Load::Open { time_scale } => {
            notes.push(format!(
                "Times between arrivals are multiplied by {time_scale}."
            ));
        }
        Load::Closed {
            queue_depth,
            think_time_ns,
        } => {
            let think_us = think_time_ns as f64 / 1e3;
            notes.push(format!(
                "Closed loop: {queue_depth} requests in flight, think time {think_us} us; the \
                 trace's times are not used."
            ));
        }
    }
    if let Some(limit) = host.limit {
        notes.push(format!("At most {limit} requests are replayed."));
    }
    if host.warmup.get() > 0.0 {
        notes.push(format!(
            "The first {} of the requests is warm-up and not counted.",
            host.warmup
        ));
    }
    notes
}
