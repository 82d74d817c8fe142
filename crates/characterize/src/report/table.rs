//! Rows and columns, and numbers as people read them.

use std::fmt;

/// A table whose columns are as wide as their widest cell: the first to the left, others to the
/// right.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with this head.
    pub fn new(head: &[&str]) -> Self {
        Self {
            rows: vec![head.iter().map(|cell| (*cell).to_string()).collect()],
        }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let cells = |column: usize| self.rows.iter().filter_map(move |row| row.get(column));
        let widths: Vec<usize> = (0..columns)
            .map(|column| cells(column).map(|c| c.chars().count()).max().unwrap_or(0))
            .collect();
        for row in &self.rows {
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                line += &match column {
                    0 => format!("  {cell:<width$}"),
                    _ => format!("  {cell:>width$}"),
                };
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// The head of a part.
pub fn title(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    writeln!(f, "\n{text}")
}

/// A share as per cent.
pub fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".into(), |share| format!("{:.2} %", 100.0 * share))
}

/// A number that may be absent.
pub fn number(number: Option<impl fmt::Display>) -> String {
    number.map_or_else(|| "-".into(), |number| number.to_string())
}

/// A mean or ratio.
pub fn decimal(number: Option<f64>) -> String {
    number.map_or_else(|| "-".into(), |number| format!("{number:.2}"))
}

/// Bytes in the largest binary unit that keeps it at 1 or above.
pub fn bytes(bytes: f64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    let power = (bytes.max(1.0).log2() / 10.0) as usize;
    match power {
        0 => format!("{bytes:.0} B"),
        _ => {
            let power = power.min(units.len());
            let scaled = bytes / 1024_f64.powi(power as i32);
            format!("{scaled:.2} {}", units[power - 1])
        }
    }
}

/// Nanoseconds in the largest unit that keeps it at 1 or above.
pub fn duration(ns: Option<f64>) -> String {
    let Some(ns) = ns else { return "-".into() };
    let units = [
        (86_400e9, "d"),
        (3600e9, "h"),
        (60e9, "min"),
        (1e9, "s"),
        (1e6, "ms"),
        (1e3, "us"),
    ];
    match units.iter().find(|(length, _)| ns >= *length) {
        Some((length, unit)) => format!("{:.2} {unit}", ns / length),
        None => format!("{ns:.0} ns"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(&["", "requests"]);
        table.row(["reads".to_string(), "7".to_string()]);
        assert_eq!(table.to_string(), "         requests\n  reads         7\n");
    }

    #[test]
    fn numbers_have_units() {
        let sizes = [0.0, 1023.0, 1024.0, 1.5 * 1024.0 * 1024.0].map(bytes);
        assert_eq!(sizes, ["0 B", "1023 B", "1.00 KiB", "1.50 MiB"]);
        let times = [999.0, 1000.0, 2.5e9, 7200e9].map(|ns| duration(Some(ns)));
        assert_eq!(times, ["999 ns", "1.00 us", "2.50 s", "2.00 h"]);
        assert_eq!(percent(Some(0.12345)), "12.35 %");
        assert_eq!(percent(None), "-");
    }
}
