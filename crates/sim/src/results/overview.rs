//! The table that sets many runs below each other: a row for each, the few figures that matter most,
//! and their change against the baseline of the same trace.

use comfy_table::{Cell, CellAlignment};

use super::compare::{TableStyle, Unit, change_cell};
use super::interval::workload_key;
use super::record::RunResult;

/// The figures, each of which is better when it is less.
const FIGURES: [(&str, Unit, fn(&RunResult) -> Option<f64>); 5] = [
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

/// A row for each run, in order, with the change of each figure behind it. The baseline is the first
/// run of the same trace.
pub fn overview_table(runs: &[RunResult], style: TableStyle) -> String {
    let mut table = style.table();
    let mut header = vec![Cell::new("trace"), Cell::new("system"), right("writes")];
    for (label, _, _) in FIGURES {
        header.extend([right(label), Cell::new("")]);
    }
    table.set_header(header);
    let mut baseline: Option<&RunResult> = None;
    for run in runs {
        let base = baseline.filter(|base| workload_key(base) == workload_key(run));
        let trace = if base.is_some() { "" } else { &run.trace };
        let writes = Unit::Count.format(run.host.write_pages as f64);
        let mut cells = vec![Cell::new(trace), Cell::new(&run.system), right(&writes)];
        for (_, unit, figure) in FIGURES {
            let value = figure(run);
            cells.push(right(
                &value.map_or_else(|| "-".to_string(), |value| unit.format(value)),
            ));
            let change = base
                .and_then(figure)
                .filter(|base| *base > 0.0)
                .zip(value)
                .map(|(base, value)| change_cell(value, base));
            cells.push(change.unwrap_or_else(|| Cell::new("")));
        }
        table.add_row(cells);
        baseline = base.or(Some(run));
    }
    format!("{table}\n")
}

fn right(text: &str) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}
