//! The record of a run. Its field names are the names in `--json`, `results.json` and
//! `results.parquet`; they are documented and stay.
//!
//! Units: *pages* of the host and *units* are 4 KiB mapping units; *flash pages* are those of the
//! device. A figure without meaning for a run, such as a mean of nothing, is absent (`null`).

use std::collections::BTreeMap;

use flashlore_ftl::content::history::ReturnCost;
use flashlore_trace::workload::InputSummary;
use flashlore_trace::{Format, Summary, WorkloadOptions};
use serde::{Deserialize, Serialize};

use super::array::Array;
use super::latency::{LatencyByKind, LatencyStats};
use crate::config::RunConfig;

/// The record of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunResult {
    /// Name of the system.
    pub system: String,
    /// Name of the device.
    pub device: String,
    /// Name of the trace, or of several joined.
    pub trace: String,
    /// Seed of all random choices.
    pub seed: u64,
    /// Hash of the configuration without the seed.
    pub config_hash: String,
    /// Version of Flashlore that ran it.
    pub version: String,
    /// The files replayed.
    pub trace_files: Vec<TraceFile>,
    /// How they were read and laid out.
    pub workload: WorkloadOptions,
    /// What the host asked for, after the warm-up.
    pub host: Host,
    /// What the flash device did, after the warm-up.
    pub flash: Flash,
    /// Programmed units by cause.
    pub programs: Programs,
    /// All programmed units over units written by the host; below 1 when writes are shared.
    pub waf_total: Option<f64>,
    /// Amplification by garbage collection alone: programmed units for the host and for collection
    /// over those for the host.
    pub waf_gc: Option<f64>,
    /// Garbage collection.
    pub gc: Gc,
    /// Traffic of a map that is partly in RAM; zeros where all of it is.
    pub map: MapTraffic,
    /// The write buffer; zeros on a device without one.
    pub buffer: BufferTraffic,
    /// The read cache; zeros on a device without one.
    pub read_cache: CacheTraffic,
    /// The write queue; zeros on a system without one.
    pub queue: QueueTraffic,
    /// Deduplication; zeros on a system without it.
    pub dedup: Dedup,
    /// Old versions; zeros on a system without them.
    pub history: History,
    /// Updates as differences; zeros on a system without them.
    pub delta: Delta,
    /// Values compressed by themselves; zeros on a system without them.
    pub compress: Compress,
    /// The array that the device is a part of; zeros on a system that is none. Host and responses are then those of
    /// the array, all other figures those of its SSD.
    pub array: Array,
    /// From arrival to completion, queueing included.
    pub response_us: ResponseByKind,
    /// From the start of service to completion.
    pub service_us: ResponseByKind,
    /// Erases per block while the run was measured.
    pub erases: EraseSpread,
    /// Busy shares of simulated time.
    pub utilization: Utilization,
    /// Energy of the flash operations, in microjoules; 0 when the device publishes none.
    pub energy_uj: f64,
    /// The run itself.
    pub run: RunSpeed,
    /// With [`Self::workload`], everything needed to repeat the run, besides the trace.
    pub configuration: RunConfig,
    /// When requests arrived; absent in results of versions that did not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// What the workload of the first seed is known by, where that of this seed was drawn anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drawn_from: Option<String>,
}

impl RunResult {
    /// Says that the workload was drawn anew, as that of another seed of `first`, whose name it bears.
    pub fn is_drawn_from(&mut self, first: &Summary) {
        let digests = first.inputs.iter().map(|input| input.sha256.as_str());
        self.drawn_from = Some(workload_id(digests, &first.options));
        self.trace = trace_name(first);
    }

    /// What the workload is known by, whichever seed it was drawn with: 32 hexadecimal digits of the files' checksums
    /// and of how they were read.
    pub fn workload_id(&self) -> String {
        let digests = self.trace_files.iter().map(|file| file.sha256.as_str());
        let own = || workload_id(digests, &self.workload);
        self.drawn_from.clone().unwrap_or_else(own)
    }
}

fn workload_id<'a>(digests: impl Iterator<Item = &'a str>, options: &WorkloadOptions) -> String {
    let mut hasher = blake3::Hasher::new();
    for digest in digests {
        hasher.update(digest.as_bytes());
        hasher.update(b"\n");
    }
    hasher.update(&serde_json::to_vec(options).expect("options are plain data"));
    hasher.finalize().to_hex()[..32].to_string()
}

/// The file names of the traces, without folders.
pub fn trace_name(summary: &Summary) -> String {
    let names = summary.inputs.iter().map(|input| {
        let path = std::path::Path::new(&input.path);
        path.file_name()
            .map_or(input.path.as_str().into(), |n| n.to_string_lossy())
    });
    names.collect::<Vec<_>>().join(" + ")
}

/// When requests arrived while the run was measured.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arrivals {
    /// Simulated seconds from the first to the last.
    pub span_s: f64,
    /// Simulated seconds from the last to the end of the run: what was outstanding then.
    pub backlog_s: f64,
}

/// A file that was replayed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceFile {
    /// Its path, as given.
    pub path: String,
    /// Its SHA-256 in hexadecimal, of the bytes in the file (compressed if it is).
    pub sha256: String,
    /// Its format, given or recognised.
    pub format: Format,
    /// Records read from it.
    pub records: u64,
    /// Records whose time was below that of an earlier one and was raised.
    pub clamped: u64,
    /// Malformed records that lenient reading skipped.
    pub skipped: u64,
}

impl TraceFile {
    /// The file behind one input of a workload.
    pub fn of(input: &InputSummary) -> Self {
        Self {
            path: input.path.clone(),
            sha256: input.sha256.clone(),
            format: input.format,
            records: input.read.records,
            clamped: input.read.clamped,
            skipped: input.read.skipped,
        }
    }
}

/// What the host asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Requests of all kinds.
    pub requests: u64,
    /// Units read.
    pub read_pages: u64,
    /// Units written.
    pub write_pages: u64,
    /// Units trimmed.
    pub trim_pages: u64,
    /// Bytes of reads and writes, in whole 4 KiB units.
    pub bytes: u64,
}

/// What the flash device did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flash {
    /// Flash pages read.
    pub page_reads: u64,
    /// Flash pages programmed.
    pub page_programs: u64,
    /// Blocks erased.
    pub block_erases: u64,
    /// Blocks retired because they have reached their endurance.
    pub retired_blocks: u64,
}

/// Programmed units by cause.
///
/// `unique`, `duplicate` and `reborn` split `host`, which only the oracle can do
/// (`dedup.oracle`): without it they are absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Programs {
    /// Written whole for the host.
    pub host: u64,
    /// Of `host`: content never programmed before.
    pub unique: Option<u64>,
    /// Of `host`: content that a valid unit holds at that moment.
    pub duplicate: Option<u64>,
    /// Of `host`: content programmed before that no valid unit holds any more.
    pub reborn: Option<u64>,
    /// Units packed with values that the host wrote, encoded.
    pub packed: u64,
    /// Encoded values made whole again.
    pub merge: u64,
    /// Moved by garbage collection.
    pub gc: u64,
    /// Moved by wear levelling.
    pub wear: u64,
    /// Of the map itself.
    pub map: u64,
    /// Left empty in flash pages of several units.
    pub padding: u64,
}

impl Programs {
    /// Units programmed because the host wrote, in any form.
    pub fn foreground(&self) -> u64 {
        self.host + self.packed
    }

    /// All programmed units.
    pub fn total(&self) -> u64 {
        self.foreground() + self.merge + self.gc + self.wear + self.map + self.padding
    }

    /// [`RunResult::waf_total`] for a host that wrote `write_pages` units.
    pub fn waf_total(&self, write_pages: u64) -> Option<f64> {
        ratio(self.total(), write_pages)
    }

    /// [`RunResult::waf_gc`].
    pub fn waf_gc(&self) -> Option<f64> {
        ratio(self.foreground() + self.gc, self.foreground())
    }
}

fn ratio(numerator: u64, denominator: u64) -> Option<f64> {
    (denominator > 0).then(|| numerator as f64 / denominator as f64)
}

/// Garbage collection.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gc {
    /// Blocks collected.
    pub victims: u64,
    /// Of them, those that held packed units.
    pub log_victims: u64,
    /// Valid units moved out of them.
    pub valid_units_moved: u64,
    /// Their ratio.
    pub mean_valid_per_victim: Option<f64>,
    /// Pairs of valid units and victims that held as many, ascending.
    pub valid_per_victim: Vec<(u64, u64)>,
}

impl Gc {
    /// The figures of victims counted by the number of valid units they held.
    pub fn of(by_valid: &[u64]) -> Self {
        let valid_per_victim: Vec<(u64, u64)> = (0..)
            .zip(by_valid.iter().copied())
            .filter(|&(_, victims)| victims > 0)
            .collect();
        let victims = valid_per_victim.iter().map(|(_, victims)| victims).sum();
        let valid_units_moved = valid_per_victim
            .iter()
            .map(|(valid, victims)| valid * victims)
            .sum();
        let mean_valid_per_victim = ratio(valid_units_moved, victims);
        Self {
            victims,
            log_victims: 0,
            valid_units_moved,
            mean_valid_per_victim,
            valid_per_victim,
        }
    }
}

/// Traffic of the forward map, where a part of it is in RAM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MapTraffic {
    /// Accesses to entries in RAM.
    pub hits: u64,
    /// Accesses to other entries.
    pub misses: u64,
    /// Flash pages read for translation pages.
    pub reads: u64,
    /// Translation and journal pages programmed, part of [`Programs::map`]; copies by collection are in
    /// [`Programs::gc`].
    pub programs: u64,
    /// Those of them that are pages of journals.
    pub journal_programs: u64,
    /// Journals folded into their tables.
    pub folds: u64,
}

/// What the write buffer did. Units written by the host + `pages_begin` = `write_hits` + `evictions`
/// + `trimmed` + `pages_end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BufferTraffic {
    /// Units read in it.
    pub read_hits: u64,
    /// Units written over a page that had not left it: the older version was never programmed.
    pub write_hits: u64,
    /// Units handed to the translation layer to make room.
    pub evictions: u64,
    /// Units dropped because the host trimmed them.
    pub trimmed: u64,
    /// Units in it, or waiting for a place, when counting began.
    pub pages_begin: u64,
    /// The same at the end: they are not written.
    pub pages_end: u64,
}

/// What the read cache did. Units that the host read in a write buffer or write queue are not asked for
/// here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheTraffic {
    /// Units that were here.
    pub hits: u64,
    /// Units that were read from flash, or never written.
    pub misses: u64,
}

/// What the write queue did. Units written and trimmed by the host + `changes_begin` = `flushed` +
/// `changes_end`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueTraffic {
    /// Units read in it.
    pub read_hits: u64,
    /// Buckets flushed.
    pub flushes: u64,
    /// Changes of one unit in them.
    pub flushed: u64,
    /// Their ratio.
    pub requests_per_flush: Option<f64>,
    /// Changes in it, or waiting for a place, when counting began.
    pub changes_begin: u64,
    /// The same at the end: they are not made.
    pub changes_end: u64,
}

impl QueueTraffic {
    /// With the ratio of what was counted.
    pub fn with_mean(self) -> Self {
        Self {
            requests_per_flush: ratio(self.flushed, self.flushes),
            ..self
        }
    }
}

/// Old versions of pages.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct History {
    /// Entries at the end.
    pub entries: u64,
    /// Length of the window at the end, in simulated seconds.
    pub window_s: f64,
    /// Values that only old versions needed at the end.
    pub historical_units: u64,
    /// Units copied by collection that were live.
    pub copied_live: u64,
    /// Units copied by collection that only old versions needed.
    pub copied_historical: u64,
    /// Versions recorded.
    pub recorded: u64,
    /// Versions given up that named a value.
    pub dropped: u64,
    /// What the paper charges for the entries: 24 bytes each.
    pub paper_bytes: u64,
    /// Versions kept as parities, or compressed by themselves where nothing followed.
    pub encoded: u64,
    /// Versions that were to be kept so, and were not shorter than a page.
    pub raw: u64,
    /// Mean size of those encoded, as a share of a page.
    pub mean_rc: Option<f64>,
    /// What a return to the start of the window would take at the end.
    pub longest_return: Return,
    /// Bytes that old versions may take at the end, beside what the present needs.
    pub capacity_bytes: u64,
    /// The window that this would hold at the rate at which the run filled it, in simulated seconds.
    pub estimated_window_s: Option<f64>,
    /// Instants behind the window that can be returned to as well, in simulated seconds.
    pub kept_instants_s: Vec<f64>,
    /// Units programmed with entries that RAM has no room for.
    pub table_programs: u64,
    /// Units that held such entries at the end.
    pub tables_end: u64,
}

/// What a return to an instant takes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Return {
    /// Logical pages that changed since.
    pub pages: u64,
    /// Flash pages to be read.
    pub reads: u64,
    /// Values to be decoded.
    pub decodes: u64,
    /// Units to be programmed, without those that collection moves and those of the log.
    pub programs: u64,
}

impl From<ReturnCost> for Return {
    fn from(cost: ReturnCost) -> Self {
        Return {
            pages: cost.pages,
            reads: cost.reads,
            decodes: cost.decodes,
            programs: cost.programs,
        }
    }
}

/// Updates stored as differences, and what they share with values compressed by themselves: packed pages.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delta {
    /// Writes that were candidates for an encoded form.
    pub candidates: u64,
    /// Of them, those stored whole because encoding did not pay at the time.
    pub bypassed: u64,
    /// Writes stored as differences.
    pub encoded: u64,
    /// Mean size of these as a share of a page (R_c).
    pub mean_rc: Option<f64>,
    /// Bases found by similarity; zeros where they are not looked for.
    pub similar: Similar,
    /// Host reads of encoded values.
    pub reads: u64,
    /// Of them, those that read two flash pages.
    pub double_reads: u64,
    /// Encoded values made whole, by cause.
    pub merges: Merges,
    /// Packed units programmed, those of collection included.
    pub log_pages: u64,
    /// Encoded values packed anew by collection.
    pub repacked: u64,
    /// Encoded values at the end.
    pub values_end: u64,
    /// Packed units in use at the end.
    pub packs_end: u64,
    /// Bytes of bases that differences alone kept alive at the end.
    pub pinned_bytes: u64,
}

/// Differences from pages that were found by similarity.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Similar {
    /// Writes to be encoded whose page had nothing to differ from, and whose bytes were known.
    pub asked: u64,
    /// Of them, those for which a page was found.
    pub found: u64,
    /// Of them, those stored as the difference from it.
    pub taken: u64,
    /// Mean size of these as a share of a page (R_c).
    pub mean_rc: Option<f64>,
}

/// Encoded values made whole, by cause.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Merges {
    /// Their page was read often.
    pub read_hot: u64,
    /// It was not written often any more.
    pub write_cold: u64,
    /// Their block, or their base's, was collected.
    pub gc: u64,
    /// To make room.
    pub room: u64,
    /// Of all, those that shared a value stored already, with deduplication.
    pub shared: u64,
}

/// Values compressed by themselves.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compress {
    /// Writes stored so.
    pub encoded: u64,
    /// Mean size of these as a share of a page.
    pub mean_ratio: Option<f64>,
}

/// Deduplication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dedup {
    /// Writes whose content was in the index.
    pub hits: u64,
    /// Writes whose content was not.
    pub misses: u64,
    /// Hits on the content that the address held already.
    pub silent: u64,
    /// Entries discarded for lack of room.
    pub evictions: u64,
    /// Entries at the end.
    pub entries: u64,
    /// Bytes that the paper accounts for as many entries.
    pub paper_bytes: u64,
    /// Equal fingerprints of different content: refused with verification, wrongly shared without.
    pub collisions: u64,
    /// Writes that were not hashed because deduplication had switched itself off.
    pub bypassed: u64,
    /// Writes that were not hashed because the sample chosen for them was not found.
    pub unsampled: u64,
    /// Stored pages that were read and hashed in idle time.
    pub scanned: u64,
    /// Of them, those that were duplicates and were given up.
    pub scan_duplicates: u64,
    /// Stored pages read for their digests, to restore index entries that were discarded.
    pub looked_up: u64,
    /// Of them, those whose entry was restored.
    pub restored: u64,
}

impl Dedup {
    /// Hits over hits and misses.
    pub fn hit_rate(&self) -> Option<f64> {
        ratio(self.hits, self.hits + self.misses)
    }
}

/// Latencies by kind of request, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResponseByKind {
    /// Of reads.
    pub read: LatencyStats,
    /// Of writes.
    pub write: LatencyStats,
    /// Of all requests, trims included.
    pub all: LatencyStats,
}

impl ResponseByKind {
    /// The figures of the latencies recorded.
    pub fn of(latencies: &LatencyByKind) -> Self {
        Self {
            read: latencies.read.stats(),
            write: latencies.write.stats(),
            all: latencies.all().stats(),
        }
    }
}

/// Erases per block.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EraseSpread {
    /// Of the least worn block.
    pub min: u64,
    /// Mean over the blocks.
    pub mean: f64,
    /// Of the most worn block.
    pub max: u64,
    /// Standard deviation over the blocks.
    pub std: f64,
    /// Pairs of erases and the blocks that were erased so often, ascending.
    pub per_block: Vec<(u64, u64)>,
}

impl EraseSpread {
    /// The figures of the erase counts of all blocks; zeros if there is no block.
    pub fn of(counts: impl IntoIterator<Item = u64>) -> Self {
        let mut per_block = BTreeMap::new();
        for count in counts {
            *per_block.entry(count).or_insert(0_u64) += 1;
        }
        let (Some((&min, _)), Some((&max, _))) =
            (per_block.first_key_value(), per_block.last_key_value())
        else {
            return Self::default();
        };
        let (mut blocks, mut sum, mut squares) = (0, 0, 0);
        for (&count, &here) in &per_block {
            let (count, here) = (u128::from(count), u128::from(here));
            blocks += here;
            sum += count * here;
            squares += count * count * here;
        }
        let (mean, std) = mean_and_std(blocks, sum, squares);
        Self {
            min,
            mean,
            max,
            std,
            per_block: per_block.into_iter().collect(),
        }
    }
}

/// Mean and standard deviation of so many values (at least 1) from their sum and that of their squares.
pub(crate) fn mean_and_std(values: u128, sum: u128, squares: u128) -> (f64, f64) {
    let n = values as f64;
    let variance = (values * squares).saturating_sub(sum * sum) as f64 / (n * n);
    (sum as f64 / n, variance.sqrt())
}

/// Busy shares of simulated time, 0 to 1.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Utilization {
    /// Of each channel; 0 where each die has its own, whose transfers count with the die.
    pub channel: Vec<f64>,
    /// Of each die.
    pub die: Vec<f64>,
    /// Mean over the channels.
    pub channel_mean: Option<f64>,
    /// Of the busiest channel.
    pub channel_max: Option<f64>,
    /// Mean over the dies.
    pub die_mean: Option<f64>,
    /// Of the busiest die.
    pub die_max: Option<f64>,
}

impl Utilization {
    /// The figures of the shares given.
    pub fn of(channel: Vec<f64>, die: Vec<f64>) -> Self {
        let mean = |shares: &[f64]| {
            (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
        };
        let max = |shares: &[f64]| shares.iter().copied().reduce(f64::max);
        Self {
            channel_mean: mean(&channel),
            channel_max: max(&channel),
            die_mean: mean(&die),
            die_max: max(&die),
            channel,
            die,
        }
    }
}

/// The run itself. Only `simulated_s` repeats exactly.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSpeed {
    /// Seconds of real time.
    pub wall_s: f64,
    /// Requests replayed per second of real time.
    pub requests_per_s: f64,
    /// Seconds of simulated time.
    pub simulated_s: f64,
    /// Largest memory of the process so far, in bytes; several runs at once share it.
    pub peak_rss_bytes: Option<u64>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn spreads_agree_with_a_walk_over_the_blocks(counts in prop::collection::vec(0..9_u64, 1..80)) {
            let spread = EraseSpread::of(counts.iter().copied());
            let n = counts.len() as f64;
            let mean = counts.iter().sum::<u64>() as f64 / n;
            let variance = counts.iter().map(|&c| (c as f64 - mean).powi(2)).sum::<f64>() / n;
            prop_assert_eq!(Some(spread.min), counts.iter().copied().min());
            prop_assert_eq!(Some(spread.max), counts.iter().copied().max());
            prop_assert!((spread.mean - mean).abs() < 1e-12);
            prop_assert!((spread.std - variance.sqrt()).abs() < 1e-9);
            let walked = (0..9).map(|e| (e, counts.iter().filter(|&&c| c == e).count() as u64));
            let walked: Vec<_> = walked.filter(|&(_, blocks)| blocks > 0).collect();
            prop_assert_eq!(spread.per_block, walked);
        }
    }

    #[test]
    fn amplification() {
        let programs = Programs {
            host: 100,
            packed: 20,
            gc: 60,
            padding: 20,
            ..Programs::default()
        };
        assert_eq!(programs.total(), 200);
        assert_eq!(programs.waf_total(400), Some(0.5));
        assert_eq!(programs.waf_gc(), Some(1.5));
        assert_eq!(Programs::default().waf_total(0), None);
        assert_eq!(Programs::default().waf_gc(), None);
    }

    #[test]
    fn spreads() {
        let spread = EraseSpread::of([2, 4, 4, 4, 5, 5, 7, 9]);
        assert_eq!(
            spread,
            EraseSpread {
                min: 2,
                mean: 5.0,
                max: 9,
                std: 2.0,
                per_block: vec![(2, 1), (4, 3), (5, 2), (7, 1), (9, 1)],
            }
        );
        assert_eq!(EraseSpread::of([]), EraseSpread::default());
        let busy = Utilization::of(vec![], vec![0.25, 0.75]);
        assert_eq!(
            (busy.channel_mean, busy.die_mean, busy.die_max),
            (None, Some(0.5), Some(0.75))
        );
        let gc = Gc::of(&[0, 1, 0, 2, 0, 1]);
        assert_eq!(gc.valid_per_victim, [(1, 1), (3, 2), (5, 1)]);
        assert_eq!(
            (gc.victims, gc.valid_units_moved, gc.mean_valid_per_victim),
            (4, 12, Some(3.0))
        );
        assert_eq!(Gc::of(&[]).mean_valid_per_victim, None);
    }
}
