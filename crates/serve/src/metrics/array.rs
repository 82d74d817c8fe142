//! What an array tells.

use flashlore_delta::PAGE_BYTES;

use super::identity;
use super::text::{MetricKind, Page};
use crate::array::ArrayService;
use crate::request::{Answer, ArrayInfo, ElementInfo, Request};
use crate::served::Served;

/// Tells the figures of an array.
pub(crate) fn measure(service: &ArrayService, page: &mut Page) {
    let Ok(Answer::Array(info)) = service.carry_out(&Request::Info) else {
        return;
    };
    identity(page, "array", &service.home().name(), &info.system);
    bytes(page, &info);
    if let Some(element) = &info.element {
        state(page, element);
        bypassed(page, element);
        media(page, element);
        page.family(
            "flashlore_array_events_total",
            MetricKind::Counter,
            "What the array did since it was opened.",
        );
        for (name, count) in &element.counters {
            page.of("event", name, count);
        }
    }
    tuned(service, page);
    page.gauge(
        "flashlore_failed",
        "1 if a medium failed: the array is read-only.",
        u8::from(info.failure.is_some()),
    );
}

/// How it works, as `flashlore tune` shows it.
fn tuned(service: &ArrayService, page: &mut Page) {
    let asked = Request::Tune { pairs: Vec::new() };
    let Ok(Answer::Tuned { values }) = service.carry_out(&asked) else {
        return;
    };
    let help = "How the array works, as flashlore tune shows it; always 1.";
    page.family("flashlore_array_tuned_info", MetricKind::Gauge, help);
    for tuned in &values {
        let labels = [("key", tuned.key.as_str()), ("value", tuned.value.as_str())];
        page.sample("", &labels, 1);
    }
}

fn bytes(page: &mut Page, info: &ArrayInfo) {
    let size: u64 = info.machines.iter().map(|machine| machine.size).sum();
    page.gauge(
        "flashlore_size_bytes",
        "Bytes that all machines show.",
        size,
    );
    let help = "Bytes of blocks that hold something, by machine.";
    page.family("flashlore_logical_bytes", MetricKind::Gauge, help);
    for machine in &info.machines {
        page.of("machine", &machine.number.to_string(), machine.logical);
    }
}

fn state(page: &mut Page, element: &ElementInfo) {
    let help = "Virtual blocks, by what they are.";
    page.family("flashlore_array_virtual_blocks", MetricKind::Gauge, help)
        .of("are", "references", element.references)
        .of("are", "associates", element.associates)
        .of("are", "independents", element.independents);
    for (name, help, value) in [
        (
            "flashlore_array_virtual_blocks_limit",
            "Virtual blocks there can be.",
            element.virtual_blocks,
        ),
        (
            "flashlore_array_delta_ram_bytes",
            "RAM for deltas in use.",
            element.delta_ram,
        ),
        (
            "flashlore_array_delta_ram_bytes_limit",
            "RAM for deltas.",
            element.delta_ram_limit,
        ),
        (
            "flashlore_array_fast_bytes",
            "Bytes of data blocks on the fast medium in use.",
            element.fast_used,
        ),
        (
            "flashlore_array_fast_bytes_limit",
            "Bytes of data blocks on the fast medium.",
            element.fast_limit,
        ),
        (
            "flashlore_array_frozen_bytes",
            "Bytes of frozen places in use.",
            element.frozen_used,
        ),
        (
            "flashlore_array_frozen_bytes_limit",
            "Bytes of frozen places.",
            element.frozen_limit,
        ),
        (
            "flashlore_array_dirty_bytes",
            "Bytes of blocks that are not at home.",
            element.dirty,
        ),
        (
            "flashlore_array_dirty_bytes_target",
            "Above so many dirty bytes blocks go home ahead.",
            element.dirty_target,
        ),
        (
            "flashlore_array_log_free_bytes",
            "Bytes of the log that can be written.",
            element.log_free,
        ),
        (
            "flashlore_array_log_bytes_limit",
            "Bytes of the log.",
            element.log_limit,
        ),
        (
            "flashlore_array_away_blocks",
            "Blocks that are not at home, with ordered write-back.",
            element.away,
        ),
        (
            "flashlore_array_away_blocks_limit",
            "The most of them; 0 without ordered write-back.",
            element.most_away,
        ),
        (
            "flashlore_changes_not_durable",
            "Blocks whose content no flush has made durable yet.",
            element.waiting,
        ),
    ] {
        page.gauge(name, help, value);
    }
    page.counter(
        "flashlore_checkpoints_total",
        "Checkpoints since the array was made.",
        element.checkpoint,
    );
    page.counter(
        "flashlore_opened_total",
        "How often the array was opened.",
        element.epoch,
    );
}

/// Bytes of long sequential streams, since the array was opened.
fn bypassed(page: &mut Page, element: &ElementInfo) {
    let help = "Bytes of long sequential streams that passed by the fast medium.";
    page.family(
        "flashlore_array_bypassed_bytes_total",
        MetricKind::Counter,
        help,
    );
    for (kind, name) in [("read", "bypassed_reads"), ("write", "bypassed_writes")] {
        let blocks = element.counters.get(name).copied().unwrap_or(0);
        page.of("kind", kind, blocks * PAGE_BYTES as u64);
    }
}

/// Operations on the media, since the array was opened.
fn media(page: &mut Page, element: &ElementInfo) {
    let help = "Operations on a medium.";
    page.family(
        "flashlore_array_medium_operations_total",
        MetricKind::Counter,
        help,
    );
    for traffic in &element.traffic {
        for (kind, count) in [
            ("read", traffic.reads),
            ("write", traffic.writes),
            ("sync", traffic.syncs),
        ] {
            let labels = [("medium", traffic.medium.as_str()), ("kind", kind)];
            page.sample("", &labels, count);
        }
    }
    let help = "Bytes read from a medium and written to it.";
    page.family(
        "flashlore_array_medium_bytes_total",
        MetricKind::Counter,
        help,
    );
    for traffic in &element.traffic {
        for (kind, count) in [
            ("read", traffic.read_bytes),
            ("write", traffic.written_bytes),
        ] {
            let labels = [("medium", traffic.medium.as_str()), ("kind", kind)];
            page.sample("", &labels, count);
        }
    }
}
