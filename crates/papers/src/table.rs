//! A report as tables of text.

use std::fmt;

use comfy_table::{Cell, CellAlignment, ContentArrangement, LineStyle, Table, presets};

use crate::report::{CheckReport, ItemReport, Report, Sensitivity, Verdict, short};

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
        let verdicts = [
            Verdict::Holds,
            Verdict::Fitted,
            Verdict::Differs,
            Verdict::Contradictory,
            Verdict::NotReproducible,
        ];
        let counts = verdicts.map(|v| format!("{} {}", self.count(v), v.name()));
        writeln!(f, "\nOf all numbers: {}.", counts.join(", "))
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
        Verdict::of(self.kind, true).name()
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
