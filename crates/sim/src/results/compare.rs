//! The table that sets systems side by side: a row for each figure, a column for each system, and
//! behind each value its change against the baseline.

use std::ffi::OsString;

use comfy_table::{Cell, CellAlignment, Color, ContentArrangement, LineStyle, Table, presets};

use super::array::Array;
use super::findings::{Finding, Findings, findings, findings_text};
use super::interval::{Estimate, estimate, group_by_configuration, workload_key};
use super::notes::workload_notes;
use super::record::RunResult;
use crate::config::ArrayKind;

/// How a table may look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableStyle {
    /// Whether changes are coloured.
    pub color: bool,
}

impl TableStyle {
    /// Coloured on a terminal, unless `NO_COLOR` is set to anything but the empty text.
    pub fn detect(is_terminal: bool) -> Self {
        Self::choose(is_terminal, std::env::var_os("NO_COLOR"))
    }

    /// An empty table in this style.
    pub(super) fn table(self) -> Table {
        let mut table = Table::new();
        table
            .load_style(
                presets::NOTHING.header_separator(LineStyle::none().fill('─').junction('─')),
            )
            .set_content_arrangement(ContentArrangement::Disabled);
        if self.color {
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        table
    }

    fn choose(is_terminal: bool, no_color: Option<OsString>) -> Self {
        let refused = no_color.is_some_and(|value| !value.is_empty());
        Self {
            color: is_terminal && !refused,
        }
    }
}

/// How a figure is printed.
#[derive(Clone, Copy)]
pub(super) enum Unit {
    Count,
    Ratio,
    Micros,
    Percent,
    Joules,
}

/// A row: what it says, where the figure is, and whether a fall of it is a gain.
struct Row {
    label: &'static str,
    /// The path of a figure that systems are judged by; empty for others.
    metric: &'static str,
    value: fn(&RunResult) -> Option<f64>,
    unit: Unit,
    less_is_better: bool,
}

const fn cost(
    label: &'static str,
    metric: &'static str,
    unit: Unit,
    value: fn(&RunResult) -> Option<f64>,
) -> Row {
    Row {
        label,
        metric,
        value,
        unit,
        less_is_better: true,
    }
}

const fn fact(label: &'static str, unit: Unit, value: fn(&RunResult) -> Option<f64>) -> Row {
    Row {
        label,
        metric: "",
        value,
        unit,
        less_is_better: false,
    }
}

const ROWS: &[Row] = &[
    fact("host writes (4 KiB)", Unit::Count, |run| {
        Some(run.host.write_pages as f64)
    }),
    cost("units programmed", "units", Unit::Count, |run| {
        Some(run.programs.total() as f64)
    }),
    cost("  for the host", "units", Unit::Count, |run| {
        Some(run.programs.foreground() as f64)
    }),
    cost("  by collection", "units", Unit::Count, |run| {
        Some(run.programs.gc as f64)
    }),
    cost("block erases", "flash.block_erases", Unit::Count, |run| {
        Some(run.flash.block_erases as f64)
    }),
    cost("write amplification", "waf_total", Unit::Ratio, |run| {
        run.waf_total
    }),
    cost("  of collection alone", "waf_gc", Unit::Ratio, |run| {
        run.waf_gc
    }),
    cost(
        "valid units per victim",
        "gc.mean_valid_per_victim",
        Unit::Ratio,
        |run| run.gc.mean_valid_per_victim,
    ),
    cost(
        "response mean",
        "response_us.all.mean",
        Unit::Micros,
        |run| run.response_us.all.mean,
    ),
    cost("response p99", "response_us.all.p99", Unit::Micros, |run| {
        run.response_us.all.p99
    }),
    cost(
        "  read mean",
        "response_us.read.mean",
        Unit::Micros,
        |run| run.response_us.read.mean,
    ),
    cost(
        "  write mean",
        "response_us.write.mean",
        Unit::Micros,
        |run| run.response_us.write.mean,
    ),
    fact("replaced in the buffer", Unit::Percent, |run| {
        let (hits, evictions) = (run.buffer.write_hits, run.buffer.evictions);
        let writes = run.host.write_pages;
        (hits + evictions > 0).then(|| 100.0 * hits as f64 / writes as f64)
    }),
    fact("requests per flush", Unit::Count, |run| {
        run.queue.requests_per_flush
    }),
    fact("duplicates found", Unit::Percent, |run| {
        run.dedup.hit_rate().map(|rate| 100.0 * rate)
    }),
    fact("  silent writes", Unit::Percent, |run| {
        let writes = run.dedup.hits + run.dedup.misses;
        (writes > 0).then(|| 100.0 * run.dedup.silent as f64 / writes as f64)
    }),
    fact("  writes not hashed", Unit::Percent, |run| {
        let unhashed = run.dedup.bypassed + run.dedup.unsampled;
        let writes = run.dedup.hits + run.dedup.misses + unhashed;
        (unhashed > 0).then(|| 100.0 * unhashed as f64 / writes as f64)
    }),
    fact("hashed in idle time", Unit::Count, |run| {
        (run.dedup.scanned > 0).then_some(run.dedup.scanned as f64)
    }),
    fact("  duplicates among them", Unit::Count, |run| {
        (run.dedup.scanned > 0).then_some(run.dedup.scan_duplicates as f64)
    }),
    fact("stored as deltas", Unit::Percent, |run| {
        let (encoded, writes) = (run.delta.encoded, run.host.write_pages);
        (run.configuration.system.delta.enabled && writes > 0)
            .then(|| 100.0 * encoded as f64 / writes as f64)
    }),
    fact("  mean R_c", Unit::Ratio, |run| run.delta.mean_rc),
    fact("stored compressed", Unit::Percent, |run| {
        let (encoded, writes) = (run.compress.encoded, run.host.write_pages);
        (run.configuration.system.compress.enabled && writes > 0)
            .then(|| 100.0 * encoded as f64 / writes as f64)
    }),
    fact("  mean ratio", Unit::Ratio, |run| run.compress.mean_ratio),
    fact("materialized", Unit::Count, |run| {
        let merges = &run.delta.merges;
        let all = merges.read_hot + merges.write_cold + merges.gc + merges.room;
        (run.configuration.system.encodes()).then_some(all as f64)
    }),
    fact("window of old versions (s)", Unit::Ratio, |run| {
        (run.configuration.system.history.enabled).then_some(run.history.window_s)
    }),
    fact("  versions kept", Unit::Count, |run| {
        (run.configuration.system.history.enabled).then_some(run.history.entries as f64)
    }),
    fact("  share of host writes", Unit::Percent, |run| {
        let (versions, writes) = (run.history.entries as f64, run.host.write_pages);
        (run.configuration.system.history.enabled && writes > 0)
            .then(|| 100.0 * versions / writes as f64)
    }),
    fact("  programs to rewind to its start", Unit::Count, |run| {
        let programs = run.history.longest_rewind.programs;
        (run.configuration.system.keeps_parities()).then_some(programs as f64)
    }),
    fact("  values only they need", Unit::Count, |run| {
        (run.configuration.system.history.enabled).then_some(run.history.historical_units as f64)
    }),
    cost("energy", "energy_uj", Unit::Joules, |run| {
        (run.energy_uj > 0.0).then_some(run.energy_uj / 1e6)
    }),
    fact("pages a second (4 KiB)", Unit::Count, |run| {
        let pages = run.host.read_pages + run.host.write_pages;
        array(run).map(|_| pages as f64 / run.run.simulated_s)
    }),
    cost(
        "  written to the SSD",
        "array.ssd_writes",
        Unit::Count,
        |run| array(run).map(|array| array.ssd_writes as f64),
    ),
    cost(
        "  operations of the disks",
        "array.hdd_ops",
        Unit::Count,
        |run| array(run).map(|array| array.hdd_ops as f64),
    ),
    fact("  host pages for each", Unit::Ratio, |run| {
        array(run)?.ios_per_hdd_op
    }),
    fact("references", Unit::Count, |run| {
        coded(run).map(|array| array.references as f64)
    }),
    fact("  associates", Unit::Count, |run| {
        coded(run).map(|array| array.associates as f64)
    }),
    fact("  independents", Unit::Count, |run| {
        coded(run).map(|array| array.independents as f64)
    }),
    fact("bytes of a delta", Unit::Count, |run| {
        coded(run)?.mean_delta_bytes
    }),
    fact("  too long", Unit::Count, |run| {
        coded(run).map(|array| array.too_big as f64)
    }),
    fact("  RAM for them, at most (KiB)", Unit::Count, |run| {
        coded(run).map(|array| array.delta_ram_peak as f64 / 1024.0)
    }),
    cost(
        "energy of SSD and disks",
        "array.hdd_energy_j",
        Unit::Joules,
        |run| array(run).map(Array::energy_j),
    ),
];

/// The array of a run, if it has one.
fn array(run: &RunResult) -> Option<&Array> {
    run.configuration
        .system
        .array
        .is_some()
        .then_some(&run.array)
}

/// The array of a run, if it encodes.
fn coded(run: &RunResult) -> Option<&Array> {
    array(run).filter(|_| run.configuration.system.array.kind == ArrayKind::ICash)
}

/// The runs as tables, one for each trace: a column for each configuration, in order, with the mean
/// over its seeds and the 95 % interval if there are several. The baseline is the system `plain`,
/// or else the first. A figure that no run has is left out.
pub fn compare_table(runs: &[RunResult], style: TableStyle) -> String {
    let groups = group_by_configuration(runs);
    let mut workloads: Vec<&RunResult> = Vec::new();
    for run in runs {
        if !workloads
            .iter()
            .any(|seen| workload_key(seen) == workload_key(run))
        {
            workloads.push(run);
        }
    }
    let table = |first: &&RunResult| {
        let columns: Vec<&Vec<&RunResult>> = groups
            .iter()
            .filter(|group| workload_key(group[0]) == workload_key(first))
            .collect();
        trace_table(&columns, style)
    };
    workloads.iter().map(table).collect::<Vec<_>>().join("\n")
}

/// The column of the system `plain`, or else the first.
pub(super) fn baseline(columns: &[&Vec<&RunResult>]) -> usize {
    let plain = columns
        .iter()
        .position(|column| column[0].system == "plain");
    plain.unwrap_or(0)
}

/// The findings of all runs of columns.
fn of_columns(columns: &[&Vec<&RunResult>]) -> Vec<Finding> {
    let runs = columns.iter().flat_map(|column| column.iter());
    findings(&runs.map(|&run| run.clone()).collect::<Vec<_>>())
}

fn trace_table(columns: &[&Vec<&RunResult>], style: TableStyle) -> String {
    let baseline = baseline(columns);
    let mut table = style.table();
    let mut header = vec![Cell::new("")];
    for (at, column) in columns.iter().enumerate() {
        header.push(Cell::new(&column[0].system).set_alignment(CellAlignment::Right));
        if at != baseline {
            header.push(Cell::new(""));
        }
    }
    table.set_header(header);
    let found = of_columns(columns);
    for row in ROWS {
        if let Some(cells) = row.cells(columns, baseline, Findings(&found)) {
            table.add_row(cells);
        }
    }
    let mind = match found.is_empty() {
        true => String::new(),
        false => format!(
            "\nBefore you quote a number (? marks those not to judge by):\n{}",
            findings_text(&found)
        ),
    };
    format!("{}{table}\n{mind}", head(columns, baseline))
}

/// Names trace and device, what was done to the trace, and says loudly when there are several
/// devices.
fn head(columns: &[&Vec<&RunResult>], baseline: usize) -> String {
    let first = columns[baseline][0];
    let seeds = columns.iter().map(|column| column.len()).max().unwrap_or(1);
    let seeds = if seeds > 1 {
        format!(", mean of {seeds} seeds with 95 % interval")
    } else {
        String::new()
    };
    let against = if columns.len() > 1 {
        format!(", change against {}", first.system)
    } else {
        String::new()
    };
    let mut head = format!(
        "Trace {}, {} requests{seeds}{against}\n",
        first.trace,
        group_digits(first.host.requests as f64)
    );
    for note in workload_notes(first) {
        head.push_str(&format!("{note}\n"));
    }
    let same = columns
        .iter()
        .all(|column| column[0].configuration.device == first.configuration.device);
    if same {
        return head + &format!("Device {}\n", describe_device(first));
    }
    head.push_str(
        "!!! DIFFERENT DEVICES: what differs below is not due to the systems alone !!!\n",
    );
    for column in columns {
        head.push_str(&format!(
            "  {} on device {}\n",
            column[0].system,
            describe_device(column[0])
        ));
    }
    head
}

fn describe_device(run: &RunResult) -> String {
    let shape = run.configuration.device.shape();
    let size = shape.map_or_else(
        |_| String::new(),
        |shape| {
            let mib = |units: u64| group_digits((units / 256) as f64);
            format!(
                ": {} MiB exported of {} MiB raw",
                mib(shape.exported_units),
                mib(shape.raw_units)
            )
        },
    );
    format!("{}{size}", run.device)
}

impl Row {
    /// The label and a cell for each column; nothing if no column has the figure.
    fn cells(
        &self,
        columns: &[&Vec<&RunResult>],
        baseline: usize,
        found: Findings<'_>,
    ) -> Option<Vec<Cell>> {
        let figure = |column: &&Vec<&RunResult>| {
            let values: Vec<f64> = column.iter().filter_map(|run| (self.value)(run)).collect();
            // A figure that only some seeds have is not that of the configuration.
            if values.len() == column.len() {
                estimate(&values)
            } else {
                None
            }
        };
        let figures: Vec<Option<Estimate>> = columns.iter().map(figure).collect();
        figures.iter().flatten().next()?;
        let base = figures[baseline].map(|estimate| estimate.mean);
        let largest = figures.iter().flatten().map(|figure| figure.mean);
        let largest = largest.fold(0.0, f64::max);
        let doubted = |at: usize| found.doubts(columns[at][0], self.metric);
        let mut cells = vec![Cell::new(self.label)];
        for (at, figure) in figures.iter().enumerate() {
            cells.push(Cell::new(self.text(*figure, largest)).set_alignment(CellAlignment::Right));
            if at != baseline {
                let doubted = doubted(at) || doubted(baseline);
                cells.push(self.change(*figure, base, doubted));
            }
        }
        Some(cells)
    }

    /// The figure in the unit that the largest of its row has.
    fn text(&self, figure: Option<Estimate>, largest: f64) -> String {
        let number = |value| self.unit.format_beside(value, largest);
        match figure {
            None => "-".to_string(),
            Some(Estimate { mean, ci95: None }) => number(mean),
            Some(Estimate {
                mean,
                ci95: Some(half),
            }) => format!("{} ± {}", number(mean), number(half)),
        }
    }

    /// The change against `base`, where a fall is a gain; empty for other figures.
    fn change(&self, figure: Option<Estimate>, base: Option<f64>, doubted: bool) -> Cell {
        let base = base.filter(|base| self.less_is_better && *base > 0.0);
        let Some((figure, base)) = figure.zip(base) else {
            return Cell::new("");
        };
        change_cell(figure.mean, base, doubted)
    }
}

/// How much more `value` is than `base`, above 0; a fall is a gain. What is doubted has a question mark and no colour.
pub(super) fn change_cell(value: f64, base: f64, doubted: bool) -> Cell {
    let change = 100.0 * (value / base - 1.0);
    if doubted {
        return Cell::new(format!("{change:+.1} %?")).set_alignment(CellAlignment::Right);
    }
    let cell = Cell::new(format!("{change:+.1} %")).set_alignment(CellAlignment::Right);
    // Changes that print as none get no colour.
    match change {
        change if change <= -0.05 => cell.fg(Color::Green),
        change if change >= 0.05 => cell.fg(Color::Red),
        _ => cell,
    }
}

impl Unit {
    pub(super) fn format(self, value: f64) -> String {
        self.format_beside(value, value)
    }

    /// In the unit that `largest` has, so that a row or column has one.
    pub(super) fn format_beside(self, value: f64, largest: f64) -> String {
        match self {
            Self::Count => group_digits(value),
            Self::Ratio => format!("{value:.3}"),
            Self::Micros if largest >= 10_000_000.0 => format!("{:.2} s", value / 1e6),
            Self::Micros if largest >= 10_000.0 => format!("{:.2} ms", value / 1000.0),
            Self::Micros => format!("{value:.1} us"),
            Self::Percent => format!("{value:.1} %"),
            Self::Joules if largest < 1.0 => format!("{:.2} mJ", value * 1000.0),
            Self::Joules => format!("{value:.2} J"),
        }
    }
}

/// A count with its digits in groups of three.
pub(super) fn group_digits(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 && !grouped.ends_with('-') {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_needs_a_terminal_and_no_refusal() {
        let color = |terminal, value: Option<&str>| {
            TableStyle::choose(terminal, value.map(OsString::from)).color
        };
        assert!(color(true, None) && color(true, Some("")));
        assert!(!color(true, Some("1")) && !color(true, Some("0")) && !color(false, None));
    }

    #[test]
    fn figures_are_printed_in_their_units() {
        assert_eq!(group_digits(1_234_567.0), "1,234,567");
        assert_eq!(group_digits(-123_456.0), "-123,456");
        assert_eq!(group_digits(999.4), "999");
        assert_eq!(Unit::Micros.format(9_999.94), "9999.9 us");
        assert_eq!(Unit::Micros.format(12_345.6), "12.35 ms");
        assert_eq!(Unit::Micros.format(12_345_600.0), "12.35 s");
        assert_eq!(Unit::Joules.format(0.0176), "17.60 mJ");
    }
}
