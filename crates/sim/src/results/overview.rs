//! The table that sets many runs below each other: a row for each, with the few figures that matter
//! most, and a row for their change against the baseline of the same trace.

use comfy_table::{Cell, CellAlignment};

use super::compare::{TableStyle, Unit, change_cell};
use super::findings::{Finding, FindingId, Findings, findings, findings_text};
use super::interval::workload_key;
use super::record::RunResult;

/// A column: its head, the metric it is, how its figures are printed, and where they are.
type Figure = (
    &'static str,
    &'static str,
    Unit,
    fn(&RunResult) -> Option<f64>,
);

/// The figures, each of which is better when it is less.
const FIGURES: [Figure; 5] = [
    ("programs", "units", Unit::Count, |run| {
        Some(run.programs.total() as f64)
    }),
    ("WAF", "waf_total", Unit::Ratio, |run| run.waf_total),
    ("erases", "flash.block_erases", Unit::Count, |run| {
        Some(run.flash.block_erases as f64)
    }),
    (
        "mean response",
        "response_us.all.mean",
        Unit::Micros,
        |run| run.response_us.all.mean,
    ),
    ("p99", "response_us.all.p99", Unit::Micros, |run| {
        run.response_us.all.p99
    }),
];

/// A row for each run, in order, and below it the change of each figure. The baseline, which has no
/// change, is the first run of the same trace.
pub fn overview_table(runs: &[RunResult], style: TableStyle) -> String {
    let mut table = style.table();
    let mut header = vec![Cell::new("trace"), Cell::new("system"), right("writes")];
    header.extend(FIGURES.iter().map(|(label, ..)| right(label)));
    table.set_header(header);
    let found = findings(runs);
    let mut baseline: Option<&RunResult> = None;
    for run in runs {
        let base = baseline.filter(|base| workload_key(base) == workload_key(run));
        let trace = if base.is_some() { "" } else { &run.trace };
        let writes = Unit::Count.format(run.host.write_pages as f64);
        let mut cells = vec![Cell::new(trace), Cell::new(&run.system), right(&writes)];
        cells.extend(FIGURES.iter().map(|(_, _, unit, figure)| {
            let text = figure(run).map(|value| unit.format_beside(value, largest(runs, *figure)));
            right(&text.unwrap_or_else(|| "-".to_string()))
        }));
        table.add_row(cells);
        if let Some(base) = base {
            table.add_row(change_row(base, run, Findings(&found)));
        }
        baseline = base.or(Some(run));
    }
    let shown = |finding: &Finding| {
        let one = std::slice::from_ref(finding);
        let of_system = |run: &RunResult| {
            let mut figures = FIGURES.iter();
            figures.any(|(_, metric, ..)| Findings(one).doubts(run, metric))
        };
        let of_trace = [FindingId::RecordsSkipped, FindingId::TimesRaised];
        of_trace.contains(&finding.id) || runs.iter().any(of_system)
    };
    let doubtful: Vec<Finding> = found.iter().filter(|f| shown(f)).cloned().collect();
    format!("{table}\n{}", findings_text(&doubtful))
}

fn change_row(base: &RunResult, run: &RunResult, found: Findings<'_>) -> Vec<Cell> {
    let mut cells = vec![Cell::new(""), Cell::new("  change"), Cell::new("")];
    cells.extend(FIGURES.iter().map(|(_, metric, _, figure)| {
        let doubted = [base, run].iter().any(|run| found.doubts(run, metric));
        let figures = figure(base).filter(|base| *base > 0.0).zip(figure(run));
        figures.map_or_else(
            || Cell::new(""),
            |(base, value)| change_cell(value, base, doubted),
        )
    }));
    cells
}

/// The largest of a column, which decides its unit.
fn largest(runs: &[RunResult], figure: fn(&RunResult) -> Option<f64>) -> f64 {
    runs.iter().filter_map(figure).fold(0.0, f64::max)
}

fn right(text: &str) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}
