//! What a volume tells.

use flashlore_volume::disk::DiskError;
use flashlore_volume::{Counters, DedupCounters, DeltaCounters, HistoryStatus, Status, Survey};

use super::identity;
use super::text::{Kind, Page};
use crate::served::Served;
use crate::service::{Service, saved, stored_bytes, system_of};

const PAGE: u64 = 4096;

/// Shares of the blocks for which it is told how often at most they were erased.
const QUANTILES: [(u32, &str); 11] = [
    (0, "0"),
    (1, "0.1"),
    (2, "0.2"),
    (3, "0.3"),
    (4, "0.4"),
    (5, "0.5"),
    (6, "0.6"),
    (7, "0.7"),
    (8, "0.8"),
    (9, "0.9"),
    (10, "1"),
];

/// What a volume says of itself under one hold of its lock.
struct Looked {
    system: String,
    status: Status,
    counters: Counters,
    dedup: Option<DedupCounters>,
    encoding: Option<DeltaCounters>,
    history: Option<HistoryStatus>,
    /// The least window, and whether writes are refused for it.
    least: Option<(u64, bool)>,
    blocks: (u32, u32),
    /// Of each block, since the volume was made.
    erases: Vec<u32>,
    failure: Option<String>,
}

pub(crate) fn measure(service: &Service, page: &mut Page) {
    if let Ok((mut looked, survey)) = look(service) {
        let now = service.disk().now();
        identity(page, "volume", &service.home().name(), &looked.system);
        stored(page, &looked.status, &survey);
        history(page, &looked, now);
        flash(page, &looked.counters, looked.blocks);
        wear(page, &mut looked.erases);
        content(page, &looked);
        durable(page, &looked);
    }
    if let Ok(unreadable) = service.unreadable() {
        let help = "Stored pages known to be unreadable.";
        page.gauge("flashlore_unreadable_pages", help, unreadable);
    }
}

fn look(service: &Service) -> Result<(Looked, Survey), DiskError> {
    let survey = service.survey()?;
    let looked = service.disk().with(|volume| Looked {
        system: system_of(volume.identity()),
        status: volume.status(),
        counters: volume.counters().clone(),
        dedup: volume.dedup_counters(),
        encoding: volume.encoding_counters(),
        history: volume.history_status().ok(),
        least: (volume.identity().history).map(|kept| (kept.least_window, kept.protected)),
        blocks: volume.blocks(),
        erases: volume.block_erases().collect(),
        failure: volume.failure().map(str::to_owned),
    })?;
    Ok((looked, survey))
}

fn stored(page: &mut Page, status: &Status, survey: &Survey) {
    let saved = saved(survey);
    let help = "Bytes the volume shows.";
    page.gauge(
        "flashlore_size_bytes",
        help,
        u64::from(status.exported) * PAGE,
    );
    let help = "Bytes of pages that hold something.";
    page.gauge("flashlore_logical_bytes", help, survey.pages * PAGE);
    let help = "Bytes stored for them and for old versions, encoded values with what they take.";
    page.gauge("flashlore_stored_bytes", help, stored_bytes(survey));
    let help = "Bytes that can be stored.";
    page.gauge("flashlore_capacity_bytes", help, status.most * PAGE);
    let help = "Bytes of the capacity in use: distinct pages that clients can read now, each counted whole.";
    page.gauge("flashlore_used_bytes", help, status.stored * PAGE);
    let help = "Bytes of values that old versions alone need, as whole pages.";
    page.gauge("flashlore_old_version_bytes", help, survey.kept * PAGE);
    let help = "Bytes saved against storing each page whole.";
    page.family("flashlore_saved_bytes", Kind::Gauge, help)
        .of("by", "dedup", saved.dedup)
        .of("by", "delta", saved.delta)
        .of("by", "compression", saved.compression);
    let (deltas, compressed) = (survey.deltas, survey.compressed);
    let whole = (survey.values + survey.kept).saturating_sub(deltas.0 + compressed.0);
    let forms = [
        ("whole", (whole, whole * PAGE)),
        ("difference", deltas),
        ("compressed", compressed),
    ];
    let help = "Values stored, those of old versions too, by how.";
    page.family("flashlore_values", Kind::Gauge, help);
    for (form, (count, _)) in forms {
        page.of("as", form, count);
    }
    let help = "What they take: the parts of flashlore_stored_bytes.";
    page.family("flashlore_value_bytes", Kind::Gauge, help);
    for (form, (_, bytes)) in forms {
        page.of("as", form, bytes);
    }
}

fn history(page: &mut Page, looked: &Looked, now: u64) {
    let Some(history) = &looked.history else {
        return;
    };
    let window = now.saturating_sub(history.oldest) as f64 / 1e9;
    let help = "How far back the volume goes.";
    page.gauge("flashlore_window_seconds", help, window);
    let help = "The oldest instant that the volume goes back to, in seconds since 1970.";
    page.gauge(
        "flashlore_window_start_timestamp_seconds",
        help,
        history.oldest as f64 / 1e9,
    );
    if let Some((least, protected)) = looked.least {
        let help = "The window that is kept at least; 0 for whatever fits.";
        page.gauge("flashlore_window_least_seconds", help, least as f64 / 1e9);
        let help = "1 if writes fail before the window gets shorter than that.";
        page.gauge("flashlore_window_protected", help, u8::from(protected));
    }
    let help = "Changes of pages that are remembered.";
    page.gauge("flashlore_history_entries", help, history.entries);
    let help = "The most of them.";
    page.gauge(
        "flashlore_history_entries_limit",
        help,
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
        let help = "Pages programmed for each page written.";
        page.gauge("flashlore_write_amplification", help, ratio);
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

/// How evenly blocks wear; sorts the erases of all blocks.
fn wear(page: &mut Page, erases: &mut [u32]) {
    erases.sort_unstable();
    let Some(last) = erases.len().checked_sub(1) else {
        return;
    };
    let help =
        "How often a block was erased since the volume was made: at most, by share of blocks.";
    page.family("flashlore_block_erases", Kind::Gauge, help);
    for (tenths, label) in QUANTILES {
        let place = (last * tenths as usize).div_ceil(10);
        page.of("quantile", label, erases[place]);
    }
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
            .of("as", "difference", encoding.deltas)
            .of("as", "compressed", encoding.compressed);
    }
}

fn durable(page: &mut Page, looked: &Looked) {
    let status = &looked.status;
    let help = "Checkpoints since the volume was made.";
    page.counter("flashlore_checkpoints_total", help, status.checkpoint);
    let help = "How often the volume was opened.";
    page.counter("flashlore_opened_total", help, status.epoch);
    let help = "Changes that no flush has made durable yet.";
    page.gauge("flashlore_changes_not_durable", help, status.waiting);
    let help = "1 if the store beneath failed: the volume is read-only.";
    page.gauge("flashlore_failed", help, u8::from(looked.failure.is_some()));
}
