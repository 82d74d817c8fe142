//! A report as tables of text.

use std::fmt;

use comfy_table::{Cell, CellAlignment, ContentArrangement, LineStyle, Table, presets};

use crate::report::{CheckReport, ItemReport, Report, Sensitivity, Verdict, short};

/// What the verdicts on smaller runs mean.
const SCALED: &str = "Ranges are meant for the whole workloads. Where these are scaled down, a figure in range \
                      reproduces nothing and one out of range refutes nothing.";

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n{}", self.title, self.source)?;
        writeln!(
            f,
            "Flashlore {}, scale {}, seed {}",
            self.version, self.scale, self.seed
        )?;
        let profiles: Vec<String> = self
            .profiles
            .iter()
            .map(|(name, hash)| format!("{name} {hash}"))
            .collect();
        writeln!(f, "Profiles: {}", profiles.join(", "))?;
        if let Some(c) = &self.calibration {
            let state = match c.within_tolerance {
                true => "",
                false => "  !!! not within its tolerance !!!",
            };
            writeln!(
                f,
                "Calibrated: {} = {:.4} gives {} = {} (published {}); the same for all runs{state}",
                c.setting,
                c.value,
                c.figure,
                short(c.reached),
                short(c.target)
            )?;
        }
        for check in &self.checks {
            writeln!(f, "\n{check}")?;
        }
        if let Some(sensitivity) = &self.sensitivity {
            writeln!(f, "\nWith other settings:{sensitivity}")?;
        }
        if !self.left_out.is_empty() {
            let mut checks: Vec<&str> = self.left_out.iter().map(|n| n.check.as_str()).collect();
            checks.dedup();
            writeln!(
                f,
                "\nLeft out without --captures: {} numbers, of {}",
                self.left_out.len(),
                checks.join(", ")
            )?;
        }
        let seen = Verdict::ALL.map(|v| (self.count(v), v));
        let shown = seen
            .into_iter()
            .filter(|(n, verdict)| *n > 0 || !verdict.is_scaled());
        let counts: Vec<String> = shown.map(|(n, v)| format!("{n} {}", v.name())).collect();
        writeln!(f, "\nOf all numbers: {}.", counts.join(", "))?;
        match Verdict::ALL
            .iter()
            .any(|v| v.is_scaled() && self.count(*v) > 0)
        {
            true => writeln!(f, "{SCALED}"),
            false => Ok(()),
        }
    }
}

impl fmt::Display for CheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}  {} ({})", self.id, self.claim, self.source)?;
        let mut table = plain();
        table.set_header(["", "published", "measured", "accepted", "verdict"]);
        for item in &self.items {
            table.add_row(item.cells());
        }
        write!(f, "{table}")?;
        let mut told: Vec<&str> = Vec::new();
        for item in &self.items {
            if let Some(reason) = &item.reason
                && !told.contains(&reason.as_str())
            {
                told.push(reason);
                write!(f, "\n  {} because: {reason}", item.verdict_of_kind())?;
            }
        }
        Ok(())
    }
}

impl ItemReport {
    fn cells(&self) -> Vec<Cell> {
        let unit = |text: String| match self.unit.is_empty() {
            true => text,
            false => format!("{text} {}", self.unit),
        };
        let number = |value: &Option<f64>| value.map_or("–".to_owned(), short);
        let measured: Vec<String> = self.measured.iter().map(number).collect();
        let published = self.published.map_or(String::new(), |p| unit(short(p)));
        vec![
            Cell::new(&self.name),
            right(published),
            right(unit(measured.join(" "))),
            right(self.accepted.clone()),
            Cell::new(self.verdict.name()),
        ]
    }

    /// The word for its kind, whether or not the figure is accepted.
    fn verdict_of_kind(&self) -> &'static str {
        Verdict::of(self.kind, true, false).name()
    }
}

impl fmt::Display for Sensitivity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut tables: Vec<&str> = self.columns.iter().map(|(t, _)| t.as_str()).collect();
        tables.dedup();
        for table in tables {
            write!(f, "\n{}\n", self.table(table))?;
        }
        Ok(())
    }
}

impl Sensitivity {
    fn table(&self, name: &str) -> Table {
        let mut table = plain();
        let chosen = || (0..self.columns.len()).filter(|at| self.columns[*at].0 == name);
        let mut head = vec![Cell::new(name)];
        head.extend(chosen().map(|at| right(self.columns[at].1.clone())));
        table.set_header(head);
        for (variant, values) in &self.rows {
            let mut cells = vec![Cell::new(variant)];
            cells.extend(chosen().map(|at| right(values[at].map_or("–".to_owned(), short))));
            table.add_row(cells);
        }
        table
    }
}

/// The verdicts of several reports beside one another.
pub fn summary(reports: &[&Report]) -> String {
    let used = |v: &Verdict| reports.iter().any(|r| r.count(*v) > 0);
    let verdicts: Vec<Verdict> = Verdict::ALL.into_iter().filter(used).collect();
    let mut table = plain();
    let heads = verdicts.iter().map(|v| right(v.name().to_owned()));
    table.set_header([Cell::new("numbers of")].into_iter().chain(heads));
    for report in reports {
        let counts = verdicts.iter().map(|v| right(report.count(*v).to_string()));
        table.add_row([Cell::new(&report.paper)].into_iter().chain(counts));
    }
    table.to_string()
}

fn right(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

fn plain() -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING.header_separator(LineStyle::none().fill('─').junction('─')))
        .set_content_arrangement(ContentArrangement::Disabled)
        .force_no_tty();
    table
}
