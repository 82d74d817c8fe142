//! A report as tables of text.

use std::fmt;

use comfy_table::{Cell, CellAlignment, ContentArrangement, LineStyle, Table, presets};

use crate::definition::{Aspect, ClaimKind, Difference};
use crate::report::{ClaimReport, ItemReport, Report, short};
use crate::sensitivity::SensitivityTable;
use crate::verdict::{Measured, Verdict};

/// What the verdicts on smaller runs mean.
const SCALED: &str = "Ranges are meant for the whole workloads. Where these are scaled down, a figure in range \
                      reproduces nothing and one out of range refutes nothing.";

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n{}", self.title, self.source)?;
        let seeds: Vec<String> = self.seeds.iter().map(u64::to_string).collect();
        let (s, intervals) = match self.seeds.len() {
            1 => ("", "; one seed gives no interval"),
            _ => ("s", "; means with 95 % intervals"),
        };
        writeln!(
            f,
            "Flashlore {}, scale {}, seed{s} {}{intervals}",
            self.version,
            self.scale,
            seeds.join(", ")
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
        for claim in &self.claims {
            writeln!(f, "\n{claim}")?;
            for difference in self.differences.iter().filter(|d| is_about(d, claim)) {
                writeln!(f, "  Known: {}", difference.title)?;
            }
        }
        if let Some(sensitivity) = &self.sensitivity {
            writeln!(f, "\nWith other settings:{sensitivity}")?;
        }
        if !self.left_out.is_empty() {
            let mut claims: Vec<&str> = self.left_out.iter().map(|n| n.claim.as_str()).collect();
            claims.dedup();
            writeln!(
                f,
                "\nLeft out without --captures: {} numbers, of {}",
                self.left_out.len(),
                claims.join(", ")
            )?;
        }
        let whole = self.figures.is_empty();
        for (place, why) in self.without_claim.iter().filter(|_| whole) {
            writeln!(f, "\nNothing measurable in {place}: {why}")?;
        }
        writeln!(f, "\n{}", summary(&[self]))?;
        let scaled = |aspect| self.count(aspect, Verdict::Scaled) > 0;
        match Aspect::JUDGED.into_iter().any(scaled) {
            true => writeln!(f, "{SCALED}"),
            false => Ok(()),
        }
    }
}

fn is_about(difference: &Difference, claim: &ClaimReport) -> bool {
    difference.claims.contains(&claim.id) && claim.verdicts.values().any(|v| v.is_outside())
}

impl fmt::Display for ClaimReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind.name();
        writeln!(
            f,
            "{}  {} ({}; {kind})",
            self.id, self.statement, self.source
        )?;
        if let Some(quote) = &self.quote {
            writeln!(f, "  \u{201c}{quote}\u{201d}")?;
        }
        if !self.reading.is_empty() {
            writeln!(f, "  Published values: {}", self.reading)?;
        }
        let mut table = plain();
        table.set_header(["", "published", "measured", "accepted", ""]);
        for item in &self.items {
            table.add_row(item.cells());
        }
        write!(f, "{table}")?;
        for (aspect, verdict) in &self.verdicts {
            write!(f, "\n  {}: {}", aspect.name(), verdict.name())?;
        }
        let mut told: Vec<&str> = Vec::new();
        for item in &self.items {
            if let Some(reason) = item.standing.reason()
                && !told.contains(&reason)
            {
                told.push(reason);
                write!(f, "\n  {}: {reason}", item.standing.name())?;
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
        let number = |value: &Option<Measured>| value.map_or("–".to_owned(), with_interval);
        let measured: Vec<String> = self.measured.iter().map(number).collect();
        let published = self.published.map_or(String::new(), |p| unit(short(p)));
        vec![
            Cell::new(&self.name),
            right(published),
            right(unit(measured.join(" "))),
            right(self.accepted.clone()),
            Cell::new(self.word()),
        ]
    }
}

/// A mean, with half its interval if there is one.
fn with_interval(measured: Measured) -> String {
    let half = (measured.high - measured.low) / 2.0;
    match half > 0.0 {
        true => format!("{} ± {}", short(measured.mean), short(half)),
        false => short(measured.mean),
    }
}

impl fmt::Display for SensitivityTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(scale) = self.scale {
            write!(
                f,
                "\nChanged on workloads of at most {scale} of their size."
            )?;
        }
        let mut tables: Vec<&str> = self.columns.iter().map(|(t, _)| t.as_str()).collect();
        tables.dedup();
        for table in tables {
            write!(f, "\n{}\n", self.table(table))?;
        }
        if self.claims.is_empty() {
            return Ok(());
        }
        write!(f, "\n{}\n", self.matrix())?;
        let (most, best) = self.best();
        let all = self.claims.len();
        let under = best.join("; ");
        match most == all {
            true => write!(f, "All {all} are inside under: {under}."),
            false => write!(
                f,
                "No setting has all {all} inside; the most, {most}, under: {under}."
            ),
        }
    }
}

impl SensitivityTable {
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

impl SensitivityTable {
    /// Settings by claims: what stays inside.
    fn matrix(&self) -> Table {
        let mut table = plain();
        let heads = self
            .claims
            .iter()
            .map(|(id, aspect)| format!("{id} {}", aspect.name()));
        table.set_header([String::from("inside")].into_iter().chain(heads));
        for (variant, inside) in &self.inside {
            let cells = inside
                .iter()
                .map(|inside| if *inside { "yes" } else { "no" });
            table.add_row([variant.as_str()].into_iter().chain(cells));
        }
        table
    }
}

/// The verdicts of reports beside one another: claims, counted once for each aspect that they have numbers of.
pub fn summary(reports: &[&Report]) -> String {
    let of = |v: Verdict, r: &Report| Aspect::JUDGED.map(|aspect| r.count(aspect, v));
    let used = |v: &Verdict| reports.iter().any(|r| of(*v, r).iter().sum::<usize>() > 0);
    let verdicts: Vec<Verdict> = Verdict::ALL.into_iter().filter(used).collect();
    let told: Vec<String> = reports.iter().map(|report| in_words(report)).collect();
    let told = told.join("\n");
    if verdicts.is_empty() {
        return told;
    }
    let mut table = plain();
    let heads = verdicts.iter().map(|v| right(v.name().to_owned()));
    table.set_header(
        [Cell::new("claims of"), Cell::new("")]
            .into_iter()
            .chain(heads),
    );
    for report in reports {
        for aspect in Aspect::JUDGED {
            let counts = verdicts.iter().map(|v| report.count(aspect, *v));
            if counts.clone().sum::<usize>() > 0 {
                let counts = counts.map(|count| right(count.to_string()));
                let head = [Cell::new(&report.paper), Cell::new(aspect.name())];
                table.add_row(head.into_iter().chain(counts));
            }
        }
    }
    format!("{table}\n\n{told}")
}

/// How many claims and identities there are.
fn in_words(report: &Report) -> String {
    let kinds = ClaimKind::ALL.map(|kind| (report.claims_of(kind), kind.name()));
    let all: usize = kinds.iter().map(|(count, _)| count).sum();
    let there = kinds.iter().filter(|(count, _)| *count > 0);
    let kinds: Vec<String> = there
        .map(|(count, name)| format!("{count} {name}"))
        .collect();
    let (hold, broken) = report.identities();
    let claims = match all {
        0 => String::new(),
        1 => format!(" 1 claim ({})", kinds.join(", ")),
        _ => format!(" {all} claims ({})", kinds.join(", ")),
    };
    let identities = match (all, hold + broken) {
        (0, 0) => " nothing was judged".to_owned(),
        (_, 0) => String::new(),
        (0, many) => format!(" of {many} identities {hold} hold"),
        (_, many) => format!("; of {many} identities {hold} hold"),
    };
    format!("{}:{claims}{identities}.", report.paper)
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
