//! What an array tells.

use super::identity;
use super::text::{Kind, Page};
use crate::array::ArrayService;
use crate::request::{Answer, ArrayInfo, ElementInfo, Request};
use crate::served::Served;

pub(crate) fn measure(service: &ArrayService, page: &mut Page) {
    let Ok(Answer::Array(info)) = service.carry_out(&Request::Info) else {
        return;
    };
    identity(page, "array", &service.home().name(), &info.system);
    bytes(page, &info);
    if let Some(element) = &info.element {
        state(page, element);
        media(page, element);
        let help = "What the array did since it was opened.";
        page.family("flashlore_array_events_total", Kind::Counter, help);
        for (name, count) in &element.counters {
            page.of("event", name, count);
        }
    }
    let help = "1 if a medium failed: the array is read-only.";
    page.gauge("flashlore_failed", help, u8::from(info.failure.is_some()));
}

fn bytes(page: &mut Page, info: &ArrayInfo) {
    let size: u64 = info.machines.iter().map(|machine| machine.size).sum();
    let help = "Bytes that all machines show.";
    page.gauge("flashlore_size_bytes", help, size);
    let help = "Bytes of blocks that hold something, by machine.";
    page.family("flashlore_logical_bytes", Kind::Gauge, help);
    for machine in &info.machines {
        page.of("machine", &machine.number.to_string(), machine.logical);
    }
}

fn state(page: &mut Page, element: &ElementInfo) {
    let help = "Virtual blocks, by what they are.";
    page.family("flashlore_array_virtual_blocks", Kind::Gauge, help)
        .of("are", "references", element.references)
        .of("are", "associates", element.associates)
        .of("are", "independents", element.independents);
    let help = "Virtual blocks there can be.";
    page.gauge(
        "flashlore_array_virtual_blocks_limit",
        help,
        element.virtual_blocks,
    );
    let help = "RAM for differences in use.";
    page.gauge("flashlore_array_delta_ram_bytes", help, element.delta_ram);
    let help = "RAM for differences.";
    page.gauge(
        "flashlore_array_delta_ram_bytes_limit",
        help,
        element.delta_ram_limit,
    );
    let help = "Bytes of data blocks on the fast medium in use.";
    page.gauge("flashlore_array_fast_bytes", help, element.fast_used);
    let help = "Bytes of data blocks on the fast medium.";
    page.gauge("flashlore_array_fast_bytes_limit", help, element.fast_limit);
    let help = "Bytes of the log that can be written.";
    page.gauge("flashlore_array_log_free_bytes", help, element.log_free);
    let help = "Bytes of the log.";
    page.gauge("flashlore_array_log_bytes_limit", help, element.log_limit);
    let help = "Blocks that are not at home, with ordered write-back.";
    page.gauge("flashlore_array_away_blocks", help, element.away);
    let help = "The most of them; 0 without ordered write-back.";
    page.gauge("flashlore_array_away_blocks_limit", help, element.most_away);
    let help = "Blocks whose content no flush has made durable yet.";
    page.gauge("flashlore_changes_not_durable", help, element.waiting);
    let help = "Checkpoints since the array was made.";
    page.counter("flashlore_checkpoints_total", help, element.checkpoint);
    let help = "How often the array was opened.";
    page.counter("flashlore_opened_total", help, element.epoch);
}

/// Operations on the media, since the array was opened.
fn media(page: &mut Page, element: &ElementInfo) {
    let help = "Operations on a medium.";
    page.family(
        "flashlore_array_medium_operations_total",
        Kind::Counter,
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
    page.family("flashlore_array_medium_bytes_total", Kind::Counter, help);
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
