//! What can be said about one trace: `flashlore trace info`.

mod ratios;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

pub use ratios::RatioInfo;
use serde::Serialize;

use self::ratios::RatioCounter;
use crate::error::Result;
use crate::overlay::ContentModel;
use crate::reader::{ReadOptions, TraceReader};
use crate::record::{Op, Record, UNIT_BYTES};
use crate::workload::{
    ContentCounts, InputSummary, Inputs, Join, OpCount, OpCounts, Pass, WorkloadOptions,
};

/// A trace in numbers. `Display` prints it as a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Info {
    /// File, format, compression, checksum, and what happened while reading.
    pub input: InputSummary,
    /// Requests, pages of 4 KiB and bytes by operation.
    pub counts: OpCounts,
    pub read_sizes: Option<Sizes>,
    pub write_sizes: Option<Sizes>,
    /// Share of the reads and writes that begin and end on a multiple of 4 KiB.
    pub aligned_share: f64,
    /// Distinct 4 KiB units read or written.
    pub footprint_units: u64,
    /// Of these, units whose first access is a read.
    pub prefill_units: u64,
    /// From the first record to the last, in nanoseconds.
    pub span_ns: u64,
    /// Names of the devices in order of their numbers.
    pub devices: Vec<String>,
    /// Trims that cover no whole unit.
    pub trims_ignored: u64,
    /// What the trace tells about content, if it does.
    pub content: Option<ContentInfo>,
    /// The delta ratios R_c of its writes, if it has any.
    pub delta_ratios: Option<RatioInfo>,
}

/// Sizes of requests in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Sizes {
    /// Arithmetic mean.
    pub mean: f64,
    /// Half of the requests are no longer than this.
    pub p50: u64,
    /// 99 of 100 requests are no longer than this.
    pub p99: u64,
}

/// Content of a trace, in pages of 4 KiB.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ContentInfo {
    pub counts: ContentCounts,
    /// Distinct values written / pages written.
    pub unique_write_share: Option<f64>,
    /// Pages written with a value that was written before.
    pub duplicate_writes: u64,
    /// Pages written with the value that the page held already / pages written.
    pub silent_write_share: Option<f64>,
}

impl Info {
    /// Reads a whole trace once.
    pub fn open(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Info> {
        Self::from_reader(TraceReader::open(path, options)?)
    }

    pub fn from_reader(reader: TraceReader) -> Result<Info> {
        let options = WorkloadOptions {
            compact: true,
            ..WorkloadOptions::new(ContentModel::FromTrace)
        };
        let mut inputs = Inputs::new(vec![reader], Join::Sequence)?;
        let mut pass = Pass::new(&options)?;
        let mut lengths = Lengths::default();
        let mut ratios = RatioCounter::default();
        inputs.for_each(|record, names| {
            if let Some(slot) = pass.selection.slot(record.device, names) {
                pass.step(slot, record)?;
            }
            lengths.add(record);
            ratios.add(record);
            Ok(())
        })?;
        let value_count = inputs.value_count();
        let resolve = pass.translator.merged().resolver(value_count)?;
        let (summary, _) = pass.finish(&options, inputs.summaries(), value_count, resolve)?;
        let transfers = summary.counts.reads.requests + summary.counts.writes.requests;
        Ok(Info {
            read_sizes: sizes(&lengths.reads),
            write_sizes: sizes(&lengths.writes),
            aligned_share: share(lengths.aligned, transfers).unwrap_or(1.0),
            counts: summary.counts,
            footprint_units: summary.footprint_units,
            prefill_units: summary.prefill.iter().map(|run| u64::from(run.units)).sum(),
            span_ns: summary.span_ns,
            devices: summary
                .devices
                .into_iter()
                .map(|device| device.name)
                .collect(),
            trims_ignored: summary.trims_ignored,
            content: summary
                .has_content
                .then(|| ContentInfo::of(summary.content)),
            delta_ratios: ratios.finish(),
            input: summary
                .inputs
                .into_iter()
                .next()
                .expect("one trace was given"),
        })
    }
}

impl ContentInfo {
    fn of(counts: ContentCounts) -> ContentInfo {
        ContentInfo {
            counts,
            unique_write_share: share(counts.distinct_written, counts.pages_written),
            duplicate_writes: counts.pages_written - counts.distinct_written,
            silent_write_share: share(counts.silent, counts.pages_written),
        }
    }
}

/// How often each length occurs.
#[derive(Default)]
struct Lengths {
    reads: BTreeMap<u64, u64>,
    writes: BTreeMap<u64, u64>,
    aligned: u64,
}

impl Lengths {
    fn add(&mut self, record: &Record<'_>) {
        let lengths = match record.op {
            Op::Read => &mut self.reads,
            Op::Write => &mut self.writes,
            Op::Trim | Op::Flush => return,
        };
        *lengths.entry(record.length).or_default() += 1;
        self.aligned += u64::from(record.bytes().is_whole());
    }
}

fn sizes(lengths: &BTreeMap<u64, u64>) -> Option<Sizes> {
    let count: u64 = lengths.values().sum();
    let sum: u128 = lengths
        .iter()
        .map(|(&l, &n)| u128::from(l) * u128::from(n))
        .sum();
    Some(Sizes {
        mean: (count > 0).then(|| sum as f64 / count as f64)?,
        p50: percentile(lengths, count, 50)?,
        p99: percentile(lengths, count, 99)?,
    })
}

/// The smallest length that at least `percent` of the requests do not exceed.
fn percentile(lengths: &BTreeMap<u64, u64>, count: u64, percent: u64) -> Option<u64> {
    let wanted = (u128::from(count) * u128::from(percent)).div_ceil(100) as u64;
    let mut below = 0;
    lengths.iter().find_map(|(&length, &n)| {
        below += n;
        (below >= wanted).then_some(length)
    })
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// A line of the table: what it is about, and its value in a format.
macro_rules! row {
    ($f:expr, $name:expr, $($value:tt)+) => {
        writeln!($f, "{:<15}{}", $name, format_args!($($value)+))
    };
}

impl fmt::Display for Info {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let input = &self.input;
        let (format, compression) = (input.format, input.compression);
        row!(f, "file", "{}", input.path)?;
        row!(f, "format", "{format}, compression {compression}")?;
        row!(f, "stored", "{} bytes", input.stored_bytes)?;
        row!(f, "sha256", "{}", input.sha256)?;
        row!(f, "records", "{}", input.read.records)?;
        row!(f, "span", "{:.3} s", self.span_ns as f64 / 1e9)?;
        row!(f, "devices", "{}", self.device_list())?;
        operation(f, "reads", &self.counts.reads, self.read_sizes)?;
        operation(f, "writes", &self.counts.writes, self.write_sizes)?;
        operation(f, "trims", &self.counts.trims, None)?;
        row!(f, "flushes", "{}", self.counts.flushes.requests)?;
        row!(f, "4 KiB aligned", "{:.2} %", self.aligned_share * 100.0)?;
        let units = self.footprint_units;
        let mib = (units * UNIT_BYTES) as f64 / f64::from(1 << 20);
        row!(f, "footprint", "{units} pages ({mib:.1} MiB)")?;
        row!(f, "read first", "{} pages", self.prefill_units)?;
        self.content_rows(f)?;
        self.ratio_rows(f)?;
        self.warnings(f)
    }
}

/// How many devices the table names.
const SHOWN_DEVICES: usize = 8;

impl Info {
    fn device_list(&self) -> String {
        let shown = &self.devices[..self.devices.len().min(SHOWN_DEVICES)];
        let dots = if shown.len() < self.devices.len() {
            " ..."
        } else {
            ""
        };
        format!("{}: {}{dots}", self.devices.len(), shown.join(" "))
    }

    fn content_rows(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(content) = &self.content else {
            return row!(f, "content", "none");
        };
        let counts = &content.counts;
        row!(f, "content", "{} distinct values", counts.distinct_values)?;
        row!(f, "written pages", "{} with content", counts.pages_written)?;
        if let Some(unique) = content.unique_write_share {
            let distinct = counts.distinct_written;
            row!(f, "  unique", "{distinct} ({:.2} %)", unique * 100.0)?;
            let (duplicates, share) = (content.duplicate_writes, (1.0 - unique) * 100.0);
            row!(f, "  duplicate", "{duplicates} ({share:.2} %)")?;
        }
        if let Some(silent) = content.silent_write_share {
            row!(f, "  silent", "{} ({:.2} %)", counts.silent, silent * 100.0)?;
        }
        row!(f, "read pages", "{} with content", counts.pages_read)?;
        let differing = counts.reads_differing;
        row!(f, "  differing", "{differing} from what was written")
    }

    fn ratio_rows(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(ratios) = &self.delta_ratios else {
            return row!(f, "R_c", "none");
        };
        let RatioInfo {
            pages,
            pages_without,
            mean,
            p10,
            p50,
            p90,
        } = ratios;
        row!(
            f,
            "R_c",
            "{pages} written pages; mean {mean:.3}, p10 {p10:.3}, p50 {p50:.3}, p90 {p90:.3}"
        )?;
        if *pages_without > 0 {
            row!(f, "  without", "{pages_without} written pages")?;
        }
        Ok(())
    }

    fn warnings(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let read = &self.input.read;
        let (clamped, step) = (read.clamped, read.largest_step_back_ns);
        if clamped > 0 {
            row!(f, "out of order", "{clamped} records, by up to {step} ns")?;
        }
        let joined = read.coalesced;
        if joined > 0 {
            row!(
                f,
                "joined",
                "{joined} records became part of the one before"
            )?;
        }
        let others = read.passed_over;
        if others > 0 {
            row!(f, "passed over", "{others} events that are no requests")?;
        }
        let trims = self.trims_ignored;
        if trims > 0 {
            row!(f, "small trims", "{trims} cover no whole page")?;
        }
        if read.skipped > 0 {
            row!(f, "skipped", "{} malformed records", read.skipped)?;
        }
        for message in &read.skipped_messages {
            row!(f, "", "{message}")?;
        }
        Ok(())
    }
}

fn operation(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    count: &OpCount,
    sizes: Option<Sizes>,
) -> fmt::Result {
    let OpCount {
        requests,
        pages,
        bytes,
    } = count;
    let Some(Sizes { mean, p50, p99 }) = sizes else {
        return row!(f, name, "{requests} requests, {pages} pages, {bytes} bytes");
    };
    row!(
        f,
        name,
        "{requests} requests, {pages} pages, {bytes} bytes; size mean {mean:.0}, p50 {p50}, \
             p99 {p99}"
    )
}
