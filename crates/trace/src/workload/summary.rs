//! What is known about a workload before it is replayed.

use serde::Serialize;

use super::options::WorkloadOptions;
use crate::formats::Format;
use crate::input::Compression;
use crate::overlay::ContentModel;
use crate::reader::ReadStats;
use crate::record::Op;

/// The whole workload in numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// The traces it comes from, in the order given.
    pub inputs: Vec<InputSummary>,
    pub requests: u64,
    /// Requests, pages and bytes by operation. Trims count as in the trace, before a compact layout
    /// clips them.
    pub counts: OpCounts,
    /// Time of the last request, in nanoseconds.
    pub span_ns: u64,
    /// Distinct mapping units read or written.
    pub footprint_units: u64,
    /// One more than the largest LPN that any request touches: what a device must offer.
    pub lpn_count: u64,
    /// The kept devices in order of their numbers, which is their order in the LPN space.
    pub devices: Vec<DeviceSummary>,
    /// Records of devices that were not selected.
    pub records_left_out: u64,
    /// Trims that covered no whole unit and were dropped.
    pub trims_ignored: u64,
    /// Units that trims covered in part and left alone.
    pub trim_units_ignored: u64,
    pub options: WorkloadOptions,
    /// Whether any request carries value ids.
    pub has_content: bool,
    /// All value ids are below this number. The trace's own ids come first, merged ones follow;
    /// under an overlay all ids are the overlay's.
    pub value_ids: u32,
    /// Pages written with a delta ratio R_c.
    pub rated_pages: u64,
    /// Counts of the trace's content; all 0 unless it comes [`ContentModel::FromTrace`].
    pub content: ContentCounts,
    /// Units whose first access is a read, by LPN: what the device must hold before the replay.
    #[serde(skip)]
    pub prefill: Vec<PrefillRun>,
    /// Value ids of the prefill.
    #[serde(skip)]
    pub prefill_values: Vec<u32>,
}

impl Summary {
    /// The summary of a workload that is made and not read: so many requests on the pages below
    /// `lpn_count`, with or without content.
    pub fn generated(requests: u64, lpn_count: u64, has_content: bool) -> Self {
        Summary {
            inputs: Vec::new(),
            requests,
            counts: OpCounts::default(),
            span_ns: 0,
            footprint_units: lpn_count,
            lpn_count,
            devices: Vec::new(),
            records_left_out: 0,
            trims_ignored: 0,
            trim_units_ignored: 0,
            options: WorkloadOptions::new(ContentModel::Distinct),
            has_content,
            value_ids: 0,
            rated_pages: 0,
            content: ContentCounts::default(),
            prefill: Vec::new(),
            prefill_values: Vec::new(),
        }
    }

    /// Records whose time was raised, over all inputs.
    pub fn clamped(&self) -> u64 {
        self.inputs.iter().map(|input| input.read.clamped).sum()
    }

    /// Records that lenient reading skipped, over all inputs.
    pub fn skipped(&self) -> u64 {
        self.inputs.iter().map(|input| input.read.skipped).sum()
    }

    /// Every unit of the prefill with its value id, if the trace tells it.
    pub fn prefill_units(&self) -> impl Iterator<Item = (u32, Option<u32>)> + Clone + '_ {
        self.prefill.iter().flat_map(|run| {
            (0..run.units).map(|i| {
                let value = (run.first_value != crate::record::NO_CONTENT)
                    .then(|| self.prefill_values[(run.first_value + i) as usize]);
                (run.lpn + i, value)
            })
        })
    }
}

/// One trace of a workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InputSummary {
    pub path: String,
    pub format: Format,
    pub compression: Compression,
    /// Its size as stored.
    pub stored_bytes: u64,
    /// SHA-256 of it as stored, in hexadecimal digits.
    pub sha256: String,
    /// Records, clamped times, skipped records.
    pub read: ReadStats,
}

/// One device of a workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeviceSummary {
    /// Its name in the trace.
    pub name: String,
    /// Its number in records.
    pub number: u32,
    pub first_lpn: u64,
    pub lpn_count: u64,
    /// Distinct units of it read or written.
    pub footprint_units: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct OpCounts {
    pub reads: OpCount,
    pub writes: OpCount,
    /// Trims that cover at least one whole unit.
    pub trims: OpCount,
    pub flushes: OpCount,
}

impl OpCounts {
    pub(crate) fn of(&mut self, op: Op) -> &mut OpCount {
        match op {
            Op::Read => &mut self.reads,
            Op::Write => &mut self.writes,
            Op::Trim => &mut self.trims,
            Op::Flush => &mut self.flushes,
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct OpCount {
    pub requests: u64,
    /// Mapping units touched, each as often as it is.
    pub pages: u64,
    /// Bytes as the trace gives them.
    pub bytes: u64,
}

impl OpCount {
    pub(crate) fn add(&mut self, pages: u64, bytes: u64) {
        self.requests += 1;
        self.pages += pages;
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// Counts of a trace's content, in pages (mapping units) that carry a value id.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ContentCounts {
    /// Distinct values read or written.
    pub distinct_values: u64,
    /// Pages written with content.
    pub pages_written: u64,
    /// Distinct values written. The other page writes are duplicates.
    pub distinct_written: u64,
    /// Page writes of the value the page holds already.
    pub silent: u64,
    /// Pages read with content.
    pub pages_read: u64,
    /// Page reads that return something else than the trace wrote there.
    pub reads_differing: u64,
}

/// Consecutive units whose first access is a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrefillRun {
    pub lpn: u32,
    pub units: u32,
    /// Index of the first unit's value id in `prefill_values`, the others following, or
    /// [`crate::NO_CONTENT`].
    pub first_value: u32,
}
