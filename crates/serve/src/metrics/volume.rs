//! What a volume tells.

use flashlore_volume::disk::DiskError;
use flashlore_volume::{
    Counters, DedupCounters, EncodingCounters, HistoryStatus, IndexState, Status, Survey,
    TableState,
};

use super::identity;
use super::text::{MetricKind, Page};
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
    index: Option<IndexState>,
    tables: TableState,
    encoding: Option<EncodingCounters>,
    history: Option<HistoryStatus>,
    /// The least window, and whether writes are refused for it.
    least: Option<(u64, bool)>,
    blocks: (u32, u32),
    /// Of each block, since the volume was made.
    erases: Vec<u32>,
    failure: Option<String>,
}

/// Tells the figures of a volume.
pub(crate) fn measure(service: &Service, page: &mut Page) {
    if let Ok((mut looked, survey)) = look(service) {
        let now = service.disk().now();
        identity(page, "volume", &service.home().name(), &looked.system);
        stored(page, &looked.status, &survey);
        history(page, &looked, now);
        flash(page, &looked.counters, looked.blocks);
        wear(page, &mut looked.erases);
        content(page, &looked);
        tables(page, &looked.tables);
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
        system: system_of(volume.identity()),
        status: volume.status(),
        counters: volume.counters().clone(),
        dedup: volume.dedup_counters(),
        index: volume.index_state(),
        tables: volume.table_state(),
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
        "flashlore_used_bytes",
        "Bytes of the capacity in use: distinct pages that clients can read now, each counted whole.",
        status.stored * PAGE,
    );
    page.gauge(
        "flashlore_old_version_bytes",
        "Bytes of values that old versions alone need, as whole pages.",
        survey.kept * PAGE,
    );
    let help = "Bytes saved against storing each page whole.";
    page.family("flashlore_saved_bytes", MetricKind::Gauge, help)
        .of("by", "dedup", saved.dedup)
        .of("by", "delta", saved.delta)
        .of("by", "compression", saved.compression);
    let (deltas, compressed) = (survey.deltas, survey.compressed);
    let whole = (survey.values + survey.kept).saturating_sub(deltas.0 + compressed.0);
    let forms = [
        ("whole", (whole, whole * PAGE)),
        ("delta", deltas),
        ("compressed", compressed),
    ];
    let help = "Values stored, those of old versions too, by how.";
    page.family("flashlore_values", MetricKind::Gauge, help);
    for (form, (count, _)) in forms {
        page.of("as", form, count);
    }
    let help = "What they take: the parts of flashlore_stored_bytes.";
    page.family("flashlore_value_bytes", MetricKind::Gauge, help);
    for (form, (_, bytes)) in forms {
        page.of("as", form, bytes);
    }
}

fn history(page: &mut Page, looked: &Looked, now: u64) {
    let Some(history) = &looked.history else {
        return;
    };
    let window = now.saturating_sub(history.oldest) as f64 / 1e9;
    page.gauge(
        "flashlore_window_seconds",
        "How far back the volume goes.",
        window,
    );
    page.gauge(
        "flashlore_window_start_timestamp_seconds",
        "The oldest instant that the volume goes back to, in seconds since 1970.",
        history.oldest as f64 / 1e9,
    );
    if let Some((least, protected)) = looked.least {
        page.gauge(
            "flashlore_window_least_seconds",
            "The window that is kept at least; 0 for whatever fits.",
            least as f64 / 1e9,
        );
        page.gauge(
            "flashlore_window_protected",
            "1 if writes fail before the window gets shorter than that.",
            u8::from(protected),
        );
    }
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
    page.family("flashlore_host_pages_total", MetricKind::Counter, help)
        .of("kind", "read", counters.host_reads)
        .of("kind", "write", counters.host_writes)
        .of("kind", "trim", counters.host_trims);
    let help = "Pages of 4 KiB programmed, by what for.";
    page.family(
        "flashlore_programmed_pages_total",
        MetricKind::Counter,
        help,
    )
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
    page.family("flashlore_flash_reads_total", MetricKind::Counter, help)
        .of("for", "host", counters.page_reads_host)
        .of("for", "collection", counters.page_reads_gc)
        .of("for", "verify", counters.page_reads_verify)
        .of("for", "deltas", counters.page_reads_delta)
        .of("for", "merges", counters.page_reads_merge);
    page.counter("flashlore_erases_total", "Blocks erased.", counters.erases);
    let help = "Blocks collected, by what for.";
    page.family(
        "flashlore_collected_blocks_total",
        MetricKind::Counter,
        help,
    )
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
    page.family("flashlore_block_erases", MetricKind::Gauge, help);
    for (tenths, label) in QUANTILES {
        let place = (last * tenths as usize).div_ceil(10);
        page.of("quantile", label, erases[place]);
    }
}

/// What was made of content, since the volume was opened.
fn content(page: &mut Page, looked: &Looked) {
    if let Some(dedup) = &looked.dedup {
        let help = "Pages written whose content was looked for, by what was found.";
        page.family("flashlore_dedup_writes_total", MetricKind::Counter, help)
            .of("found", "same", dedup.silent)
            .of(
                "found",
                "elsewhere",
                dedup.hits.saturating_sub(dedup.silent),
            )
            .of("found", "nothing", dedup.misses);
    }
    if let Some(index) = &looked.index {
        page.gauge(
            "flashlore_index_entries",
            "Values that the fingerprint index names.",
            index.entries,
        );
        page.gauge(
            "flashlore_index_most_entries",
            "Values that it has room for.",
            index.capacity,
        );
        page.counter(
            "flashlore_index_doubtful_misses_total",
            "Pages written that were not found and that a larger index might have found.",
            index.doubtful_misses,
        );
    }
    if let Some(encoding) = &looked.encoding {
        let help = "Pages written that were stored encoded.";
        page.family("flashlore_encoded_writes_total", MetricKind::Counter, help)
            .of("as", "delta", encoding.deltas)
            .of("as", "compressed", encoding.compressed);
    }
}

fn tables(page: &mut Page, tables: &TableState) {
    page.gauge(
        "flashlore_table_memory_bytes",
        "Memory that pages of the tables take.",
        tables.memory,
    );
    page.gauge(
        "flashlore_table_memory_limit_bytes",
        "The most that they may take.",
        tables.most_memory,
    );
    let help = "Rows of tables that were asked for, by whether their page was in memory.";
    page.family("flashlore_table_rows_total", MetricKind::Counter, help)
        .of("page", "in_memory", tables.hits)
        .of("page", "read", tables.misses);
    page.counter(
        "flashlore_table_pages_written_for_room_total",
        "Changed pages of the tables that were written to make room for others.",
        tables.written_for_room,
    );
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
