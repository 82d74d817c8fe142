//! What a volume tells.

use flashlore_volume::disk::DiskError;
use flashlore_volume::{Counters, DedupCounters, DeltaCounters, HistoryStatus, Status, Survey};

use super::text::{Kind, Page};
use crate::service::{Service, saved, stored_bytes};

const PAGE: u64 = 4096;

/// What a volume says of itself under one hold of its lock.
struct Looked {
    status: Status,
    counters: Counters,
    dedup: Option<DedupCounters>,
    encoding: Option<DeltaCounters>,
    history: Option<HistoryStatus>,
    blocks: (u32, u32),
    failure: Option<String>,
}

/// Tells the figures of a volume.
pub(crate) fn measure(service: &Service, page: &mut Page) {
    if let Ok((looked, survey)) = look(service) {
        let now = service.disk().now();
        stored(page, &looked.status, &survey);
        history(page, looked.history.as_ref(), now);
        flash(page, &looked.counters, looked.blocks);
        content(page, &looked);
        durable(page, &looked);
    }
    if let Ok(unreadable) = service.unreadable() {
        page.gauge(
            "flashlore_unreadable_pages",
            "Stored pages known to be unreadable.",
            unreadable,
        );
    }
}

fn look(service: &Service) -> Result<(Looked, Survey), DiskError> {
    let survey = service.survey()?;
    let looked = service.disk().with(|volume| Looked {
        status: volume.status(),
        counters: volume.counters().clone(),
        dedup: volume.dedup_counters(),
        encoding: volume.encoding_counters(),
        history: volume.history_status().ok(),
        blocks: volume.blocks(),
        failure: volume.failure().map(str::to_owned),
    })?;
    Ok((looked, survey))
}

fn stored(page: &mut Page, status: &Status, survey: &Survey) {
    let saved = saved(survey);
    page.gauge(
        "flashlore_size_bytes",
        "Bytes the volume shows.",
        u64::from(status.exported) * PAGE,
    );
    page.gauge(
        "flashlore_logical_bytes",
        "Bytes of pages that hold something.",
        survey.pages * PAGE,
    );
    page.gauge(
        "flashlore_stored_bytes",
        "Bytes stored for them and for old versions, encoded values with what they take.",
        stored_bytes(survey),
    );
    page.gauge(
        "flashlore_capacity_bytes",
        "Bytes that can be stored.",
        status.most * PAGE,
    );
    page.gauge(
        "flashlore_old_version_bytes",
        "Bytes of values that old versions alone need, as whole pages.",
        survey.kept * PAGE,
    );
    let help = "Bytes saved against storing each page whole.";
    page.family("flashlore_saved_bytes", Kind::Gauge, help)
        .of("by", "dedup", saved.dedup)
        .of("by", "delta", saved.delta)
        .of("by", "compression", saved.compression);
}

fn history(page: &mut Page, history: Option<&HistoryStatus>, now: u64) {
    let Some(history) = history else {
        return;
    };
    let window = now.saturating_sub(history.oldest) as f64 / 1e9;
    page.gauge(
        "flashlore_window_seconds",
        "How far back the volume goes.",
        window,
    );
    page.gauge(
        "flashlore_history_entries",
        "Changes of pages that are remembered.",
        history.entries,
    );
    page.gauge(
        "flashlore_history_entries_limit",
        "The most of them.",
        history.most_entries,
    );
    page.gauge("flashlore_snapshots", "Snapshots.", history.snapshots.len());
}

/// What the flash beneath was made to do, since the volume was opened.
fn flash(page: &mut Page, counters: &Counters, (blocks, free): (u32, u32)) {
    let help = "Pages of 4 KiB that clients asked for.";
    page.family("flashlore_host_pages_total", Kind::Counter, help)
        .of("kind", "read", counters.host_reads)
        .of("kind", "write", counters.host_writes)
        .of("kind", "trim", counters.host_trims);
    let help = "Pages of 4 KiB programmed, by what for.";
    page.family("flashlore_programmed_pages_total", Kind::Counter, help)
        .of("for", "host", counters.programs_host)
        .of("for", "packs", counters.programs_log)
        .of("for", "collection", counters.programs_gc)
        .of("for", "merges", counters.programs_merge)
        .of("for", "wear", counters.programs_wear)
        .of("for", "padding", counters.programs_padding);
    if counters.host_writes > 0 {
        let ratio = counters.programs() as f64 / counters.host_writes as f64;
        page.gauge(
            "flashlore_write_amplification",
            "Pages programmed for each page written.",
            ratio,
        );
    }
    let help = "Flash pages read, by what for.";
    page.family("flashlore_flash_reads_total", Kind::Counter, help)
        .of("for", "host", counters.page_reads_host)
        .of("for", "collection", counters.page_reads_gc)
        .of("for", "verify", counters.page_reads_verify)
        .of("for", "differences", counters.page_reads_delta)
        .of("for", "merges", counters.page_reads_merge);
    page.counter("flashlore_erases_total", "Blocks erased.", counters.erases);
    let help = "Blocks collected, by what for.";
    page.family("flashlore_collected_blocks_total", Kind::Counter, help)
        .of("for", "room", counters.victims)
        .of("for", "wear", counters.wear_victims);
    page.gauge("flashlore_blocks", "Blocks of the volume.", blocks);
    page.gauge("flashlore_free_blocks", "Blocks that are free.", free);
}

/// What was made of content, since the volume was opened.
fn content(page: &mut Page, looked: &Looked) {
    if let Some(dedup) = &looked.dedup {
        let help = "Pages written whose content was looked for, by what was found.";
        page.family("flashlore_dedup_writes_total", Kind::Counter, help)
            .of("found", "same", dedup.silent)
            .of(
                "found",
                "elsewhere",
                dedup.hits.saturating_sub(dedup.silent),
            )
            .of("found", "nothing", dedup.misses);
    }
    if let Some(encoding) = &looked.encoding {
        let help = "Pages written that were stored encoded.";
        page.family("flashlore_encoded_writes_total", Kind::Counter, help)
            .of("as", "difference", encoding.differences)
            .of("as", "compressed", encoding.compressed);
    }
}

fn durable(page: &mut Page, looked: &Looked) {
    let status = &looked.status;
    page.counter(
        "flashlore_checkpoints_total",
        "Checkpoints since the volume was made.",
        status.checkpoint,
    );
    page.counter(
        "flashlore_opened_total",
        "How often the volume was opened.",
        status.epoch,
    );
    page.gauge(
        "flashlore_changes_not_durable",
        "Changes that no flush has made durable yet.",
        status.waiting,
    );
    page.gauge(
        "flashlore_failed",
        "1 if the store beneath failed: the volume is read-only.",
        u8::from(looked.failure.is_some()),
    );
}
