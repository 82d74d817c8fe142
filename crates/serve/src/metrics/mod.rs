//! Metrics and health of a served volume over HTTP.
//!
//! | module | what it is |
//! |---|---|
//! | [`http`] | the endpoint |
//! | `text` | the text format of Prometheus |
//!
//! `/metrics` says what is counted, `/health` whether the volume can be written to. Looking disturbs little: what is
//! stored is surveyed in steps between which others may use the volume, so that the sums of a volume that changes are
//! near, not exact.

pub mod http;
mod text;

use std::net::SocketAddr;
use std::sync::Arc;

use flashlore_volume::disk::DiskError;
use flashlore_volume::disk::filters::Count;
use flashlore_volume::disk::filters::count::Kind as Counted;
use flashlore_volume::{Counters, DedupCounters, DeltaCounters, HistoryStatus, Status, Survey};

use crate::error::ServeError;
use crate::service::{Service, saved, stored_bytes};
use http::{Answer, Endpoint};
use text::{Kind, Page};

const PAGE: u64 = 4096;
/// Upper ends of the buckets of times, in nanoseconds and as labels in seconds.
const BUCKETS: [(u64, &str); 13] = [
    (10_000, "0.00001"),
    (30_000, "0.00003"),
    (100_000, "0.0001"),
    (300_000, "0.0003"),
    (1_000_000, "0.001"),
    (3_000_000, "0.003"),
    (10_000_000, "0.01"),
    (30_000_000, "0.03"),
    (100_000_000, "0.1"),
    (300_000_000, "0.3"),
    (1_000_000_000, "1"),
    (3_000_000_000, "3"),
    (10_000_000_000, "10"),
];

/// A served volume that is looked at.
pub struct Metrics {
    service: Arc<Service>,
    /// What stands around the volume and counts requests.
    count: Count,
    read_only: bool,
}

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

impl Metrics {
    /// Metrics of a service; `count` counts the requests to its volume. Nobody may write if `read_only`.
    pub fn new(service: Arc<Service>, count: Count, read_only: bool) -> Self {
        Metrics {
            service,
            count,
            read_only,
        }
    }

    /// Listens for scrapers, until the answer is dropped.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub fn listen(self, address: SocketAddr) -> Result<Endpoint, ServeError> {
        let handler = move |path: &str| match path {
            "/metrics" => Some(self.metrics()),
            "/health" => Some(self.health()),
            _ => None,
        };
        Endpoint::start(address, Box::new(handler)).map_err(|source| {
            ServeError::Refused(format!("cannot listen for metrics on {address}: {source}"))
        })
    }

    /// 200 if the volume can be written to, and otherwise 503 and why not.
    pub fn health(&self) -> Answer {
        match self.why_not_writable() {
            None => Answer::sentence("200 OK", "the volume can be written to"),
            Some(why) => Answer::sentence("503 Service Unavailable", why),
        }
    }

    fn why_not_writable(&self) -> Option<String> {
        let disk = self.service.disk();
        match disk.with(|volume| volume.failure().map(str::to_owned)) {
            Err(error) => Some(error.to_string()),
            Ok(Some(failure)) => Some(format!("the volume is read-only: {failure}")),
            Ok(None) if self.read_only => Some("the volume is served read-only".to_owned()),
            Ok(None) => None,
        }
    }

    /// All metrics. Those of a volume that does not answer are left out.
    pub fn metrics(&self) -> Answer {
        let mut page = Page::default();
        let writable = u8::from(self.why_not_writable().is_none());
        page.gauge("flashlore_writable", "1 if /health answers 200.", writable);
        self.requests(&mut page);
        if let Ok((looked, survey)) = self.look() {
            let now = self.service.disk().now();
            stored(&mut page, &looked.status, &survey);
            history(&mut page, looked.history.as_ref(), now);
            flash(&mut page, &looked.counters, looked.blocks);
            content(&mut page, &looked);
            durable(&mut page, &looked);
        }
        if let Ok(unreadable) = self.service.unreadable() {
            page.gauge(
                "flashlore_unreadable_pages",
                "Stored pages known to be unreadable.",
                unreadable,
            );
        }
        Answer {
            status: "200 OK",
            content_type: "text/plain; version=0.0.4; charset=utf-8",
            body: page.into_text(),
        }
    }

    fn look(&self) -> Result<(Looked, Survey), DiskError> {
        let disk = self.service.disk();
        let survey = self.service.survey()?;
        let looked = disk.with(|volume| Looked {
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

    /// Requests to the volume, and who sends them.
    fn requests(&self, page: &mut Page) {
        let kinds = self.count.counts().kinds;
        let mut each = |name, help, value: fn(&Counted) -> u64| {
            page.family(name, Kind::Counter, help);
            for kind in &kinds {
                page.of("kind", kind.name, value(kind));
            }
        };
        each(
            "flashlore_requests_total",
            "Requests of clients that succeeded.",
            |kind| kind.requests,
        );
        each("flashlore_request_bytes_total", "Their bytes.", |kind| {
            kind.bytes
        });
        each(
            "flashlore_request_errors_total",
            "Requests of clients that failed.",
            |kind| kind.errors,
        );
        let help = "Times of requests that succeeded.";
        page.family("flashlore_request_seconds", Kind::Histogram, help);
        for kind in &kinds {
            times(page, kind);
        }
        let (writers, readers) = self.service.clients().count();
        page.family(
            "flashlore_clients",
            Kind::Gauge,
            "Clients that are connected.",
        )
        .of("may", "write", writers)
        .of("may", "read", readers);
    }
}

/// The histogram of one kind of requests.
fn times(page: &mut Page, kind: &Counted) {
    for (end, label) in BUCKETS {
        let labels = [("kind", kind.name), ("le", label)];
        page.sample("_bucket", &labels, kind.times.count_between(0, end));
    }
    let labels = [("kind", kind.name), ("le", "+Inf")];
    page.sample("_bucket", &labels, kind.times.len());
    let labels = [("kind", kind.name)];
    page.sample("_sum", &labels, kind.total as f64 / 1e9);
    page.sample("_count", &labels, kind.times.len());
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
