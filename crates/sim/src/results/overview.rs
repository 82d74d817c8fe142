//! The table that sets many runs below each other: a row for each, with the few figures that matter
//! most, and a row for their change against the baseline of the same trace.

use comfy_table::{Cell, CellAlignment};

use super::compare::{TableStyle, Unit, change_cell};
use super::interval::workload_key;
use super::record::RunResult;

/// A column: its head, how its figures are printed, and where they are.
type Figure = (&'static str, Unit, fn(&RunResult) -> Option<f64>);

/// The figures, each of which is better when it is less.
const FIGURES: [Figure; 5] = [
    ("programs", Unit::Count, |run| {
        Some(run.programs.total() as f64)
    }),
    ("WAF", Unit::Ratio, |run| run.waf_total),
    ("erases", Unit::Count, |run| {
        Some(run.flash.block_erases as f64)
    }),
    ("mean response", Unit::Micros, |run| {
        run.response_us.all.mean
    }),
    ("p99", Unit::Micros, |run| run.response_us.all.p99),
];

/// A row for each run, in order, and below it the change of each figure. The baseline, which has no
/// change, is the first run of the same trace.
pub fn overview_table(runs: &[RunResult], style: TableStyle) -> String {
    let mut table = style.table();
    let mut header = vec![Cell::new("trace"), Cell::new("system"), right("writes")];
    header.extend(FIGURES.iter().map(|(label, _, _)| right(label)));
    table.set_header(header);
    let mut baseline: Option<&RunResult> = None;
    for run in runs {
        let base = baseline.filter(|base| workload_key(base) == workload_key(run));
        let trace = if base.is_some() { "" } else { &run.trace };
        let writes = Unit::Count.format(run.host.write_pages as f64);
        let mut cells = vec![Cell::new(trace), Cell::new(&run.system), right(&writes)];
        cells.extend(FIGURES.iter().map(|(_, unit, figure)| {
            right(&figure(run).map_or_else(|| "-".to_string(), |value| unit.format(value)))
        }));
        table.add_row(cells);
        if let Some(base) = base {
            table.add_row(change_row(base, run));
        }
        baseline = base.or(Some(run));
    }
    format!("{table}\n")
}

fn change_row(base: &RunResult, run: &RunResult) -> Vec<Cell> {
    let mut cells = vec![Cell::new(""), Cell::new("  change"), Cell::new("")];
    cells.extend(FIGURES.iter().map(|(_, _, figure)| {
        let figures = figure(base).filter(|base| *base > 0.0).zip(figure(run));
        figures.map_or_else(|| Cell::new(""), |(base, value)| change_cell(value, base))
    }));
    cells
}

fn right(text: &str) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}
