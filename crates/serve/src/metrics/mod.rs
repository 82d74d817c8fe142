//! Metrics and health of a served volume over HTTP.
//!
//! | module | what it is |
//! |---|---|
//! | [`http`] | the endpoint |
//! | [`text`] | the text format of Prometheus |
//! | `page` | the page that shows it to people |
//! | `volume` | what a volume tells |
//! | `array` | what an array tells |
//!
//! `/metrics` says what is counted, `/health` whether the volume can be written to, and `/` is a page that asks both
//! again and again. Looking disturbs little: what is
//! stored is surveyed in steps between which others may use the volume, so that the sums of a volume that changes are
//! near, not exact.

pub mod http;
pub mod text;

pub(crate) mod array;
mod page;
pub(crate) mod volume;

use std::net::SocketAddr;
use std::sync::Arc;

use flashlore_volume::disk::filters::Count;
use flashlore_volume::disk::filters::count::RequestCounts;

use crate::error::ServeError;
use crate::request::ClientCounts;
use crate::served::Served;
use http::{Endpoint, HttpAnswer};
use text::{MetricKind, Page};

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
    service: Arc<dyn Served>,
    /// What stands around the volume and counts requests.
    count: Count,
    read_only: bool,
}

impl Metrics {
    /// Metrics of a service; `count` counts the requests to its volume. Nobody may write if `read_only`.
    pub fn new(service: Arc<dyn Served>, count: Count, read_only: bool) -> Self {
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
            "/" => Some(page::answer()),
            "/metrics" => Some(self.metrics()),
            "/health" => Some(self.health()),
            _ => None,
        };
        Endpoint::start(address, Box::new(handler)).map_err(|source| {
            ServeError::Refused(format!("cannot listen for metrics on {address}: {source}"))
        })
    }

    /// 200 if the volume can be written to, and otherwise 503 and why not.
    pub fn health(&self) -> HttpAnswer {
        match self.why_not_writable() {
            None => HttpAnswer::sentence("200 OK", "it can be written to"),
            Some(why) => HttpAnswer::sentence("503 Service Unavailable", why),
        }
    }

    fn why_not_writable(&self) -> Option<String> {
        match self.service.failure() {
            Err(error) => Some(error.to_string()),
            Ok(Some(failure)) => Some(format!("the volume is read-only: {failure}")),
            Ok(None) if self.read_only => Some("the volume is served read-only".to_owned()),
            Ok(None) => None,
        }
    }

    /// All metrics. Those of a volume or array that does not answer are left out.
    pub fn metrics(&self) -> HttpAnswer {
        let mut page = Page::default();
        let writable = u8::from(self.why_not_writable().is_none());
        page.gauge("flashlore_writable", "1 if /health answers 200.", writable);
        self.requests(&mut page);
        self.service.measure(&mut page);
        HttpAnswer {
            status: "200 OK",
            content_type: "text/plain; version=0.0.4; charset=utf-8",
            policy: http::NOTHING,
            body: page.into_text(),
        }
    }

    /// Requests to the volume, and who sends them.
    fn requests(&self, page: &mut Page) {
        let kinds = self.count.counts().kinds;
        let mut each = |name, help, value: fn(&RequestCounts) -> u64| {
            page.family(name, MetricKind::Counter, help);
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
        page.family("flashlore_request_seconds", MetricKind::Histogram, help);
        for kind in &kinds {
            times(page, kind);
        }
        let ClientCounts { writers, readers } = self.service.clients().count();
        page.family(
            "flashlore_clients",
            MetricKind::Gauge,
            "Clients that are connected.",
        )
        .of("may", "write", writers)
        .of("may", "read", readers);
    }
}

/// What it is that is served: texts, on a sample of 1.
pub(crate) fn identity(page: &mut Page, kind: &str, name: &str, system: &str) {
    let help = "What is served.";
    page.family("flashlore_info", MetricKind::Gauge, help);
    let labels = [
        ("kind", kind),
        ("name", name),
        ("system", system),
        ("version", env!("CARGO_PKG_VERSION")),
    ];
    page.sample("", &labels, 1);
}

/// The histogram of one kind of requests.
fn times(page: &mut Page, kind: &RequestCounts) {
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
