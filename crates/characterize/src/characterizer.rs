//! Accesses in, characteristics out: of the whole and of slices of trace time.

use flashlore_trace::{Access, AccessSummary, PageSource, WorkloadOptions};
use serde::{Deserialize, Serialize};

use crate::collector::{Collector, Statistics};
use crate::error::CharacterizeError;
use crate::options::Options;

/// A trace that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceSource {
    /// Its path as given.
    pub path: String,
    /// SHA-256 of the file as stored.
    pub sha256: String,
    /// Its format.
    pub format: String,
    /// Records read.
    pub records: u64,
    /// Records whose time was raised to that of an earlier one.
    pub clamped: u64,
    /// Malformed records skipped.
    pub skipped: u64,
}

/// A slice of trace time with at least one request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slice {
    /// Its number: it is the time from `number` to `number + 1` slice lengths.
    pub number: u64,
    /// Its begin in nanoseconds of trace time; times within count from there.
    pub start_ns: u64,
    /// Everything anew, as if nothing had been before.
    pub statistics: Statistics,
}

/// What is known about the content and address locality of a trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Characteristics {
    /// Version of Flashlore that computed them.
    pub version: String,
    /// The traces, in the order given.
    pub sources: Vec<TraceSource>,
    /// Names of the devices, in order of first appearance.
    pub devices: Vec<String>,
    /// Records of devices that were not selected.
    pub records_left_out: u64,
    /// Trims that covered no whole page and were left out.
    pub trims_ignored: u64,
    /// How the traces became accesses, and where the content came from.
    pub workload: Option<WorkloadOptions>,
    /// How it was looked at.
    pub options: Options,
    /// Most bytes that tables growing with the trace held, as estimated from their sizes.
    pub table_bytes: u64,
    /// Of the whole.
    pub whole: Statistics,
    /// Of each slice with requests, if slices were asked for.
    pub slices: Vec<Slice>,
}

impl Characteristics {
    /// Adds where the accesses came from.
    pub fn with_summary(mut self, summary: &AccessSummary, workload: &WorkloadOptions) -> Self {
        self.workload = Some(workload.clone());
        let sources = summary.inputs.iter().map(|input| TraceSource {
            path: input.path.clone(),
            sha256: input.sha256.clone(),
            format: input.format.to_string(),
            records: input.read.records,
            clamped: input.read.clamped,
            skipped: input.read.skipped,
        });
        self.sources = sources.collect();
        self.devices = summary.devices.clone();
        self.records_left_out = summary.records_left_out;
        self.trims_ignored = summary.trims_ignored;
        self
    }
}

/// Looks at accesses one by one.
pub struct Characterizer<'a> {
    options: Options,
    source: Option<&'a dyn PageSource>,
    whole: Collector<'a>,
    slice: Option<(u64, Collector<'a>)>,
    slices: Vec<Slice>,
    table_bytes: usize,
}

impl<'a> Characterizer<'a> {
    /// Nothing seen yet.
    ///
    /// # Errors
    /// When an option means nothing.
    pub fn new(options: Options) -> Result<Self, CharacterizeError> {
        Self::with_pages(options, None)
    }

    /// As [`Characterizer::new`], with the bytes of values where a source is given.
    ///
    /// # Errors
    /// When an option means nothing.
    pub fn with_pages(
        options: Options,
        source: Option<&'a dyn PageSource>,
    ) -> Result<Self, CharacterizeError> {
        options.check()?;
        Ok(Self {
            whole: Collector::new(&options, source),
            options,
            source,
            slice: None,
            slices: Vec::new(),
            table_bytes: 0,
        })
    }

    /// Looks at the next access; times do not decrease.
    ///
    /// # Errors
    /// When there are more different pages or values than can be followed.
    pub fn observe(&mut self, access: &Access<'_>) -> Result<(), CharacterizeError> {
        self.whole.observe(access)?;
        let Some(slice_ns) = self.options.slice_ns else {
            return Ok(());
        };
        let number = access.time_ns / slice_ns;
        if self.slice.as_ref().is_none_or(|(open, _)| *open != number) {
            self.close_slice();
        }
        let (_, collector) = self
            .slice
            .get_or_insert_with(|| (number, Collector::new(&self.options, self.source)));
        collector.observe(&Access {
            time_ns: access.time_ns - number * slice_ns,
            ..*access
        })
    }

    fn close_slice(&mut self) {
        if let Some((number, collector)) = self.slice.take() {
            self.table_bytes = self.table_bytes.max(collector.heap_bytes());
            self.slices.push(Slice {
                number,
                start_ns: number * self.options.slice_ns.unwrap_or(0),
                statistics: collector.finish(),
            });
        }
    }

    /// What was found.
    pub fn finish(mut self) -> Characteristics {
        self.close_slice();
        let table_bytes = self.table_bytes + self.whole.heap_bytes();
        Characteristics {
            version: env!("CARGO_PKG_VERSION").to_string(),
            sources: Vec::new(),
            devices: Vec::new(),
            records_left_out: 0,
            trims_ignored: 0,
            workload: None,
            options: self.options,
            table_bytes: table_bytes as u64,
            whole: self.whole.finish(),
            slices: self.slices,
        }
    }
}
