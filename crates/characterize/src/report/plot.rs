//! Curves of shares in plain characters: 0 to 100 % upwards, 64 columns to the right.

use std::fmt;

/// Columns of a plot.
pub const COLUMNS: usize = 64;

/// Rows: one each 10 %.
const ROWS: usize = 11;

/// A curve: its mark, its name, and a share from 0 to 1 for each column.
pub struct Curve {
    /// The character it is drawn with.
    pub mark: char,
    /// What the legend calls it.
    pub name: &'static str,
    /// The curve.
    pub shares: Vec<Option<f64>>,
}

/// Draws curves over an axis with labels at columns; where curves meet, the first is seen.
pub fn plot(
    f: &mut fmt::Formatter<'_>,
    axis: &str,
    labels: &[(usize, String)],
    curves: &[Curve],
) -> fmt::Result {
    let mut rows = vec![vec![' '; COLUMNS]; ROWS];
    for curve in curves.iter().rev() {
        for (column, share) in curve.shares.iter().take(COLUMNS).enumerate() {
            if let Some(share) = share {
                let row = (share.clamp(0.0, 1.0) * (ROWS - 1) as f64).round() as usize;
                rows[row][column] = curve.mark;
            }
        }
    }
    for (row, cells) in rows.iter().enumerate().rev() {
        let line: String = cells.iter().collect();
        writeln!(f, "  {:>4} % |{}", row * 100 / (ROWS - 1), line.trim_end())?;
    }
    writeln!(f, "         +{}", "-".repeat(COLUMNS))?;
    let mut line = String::new();
    for (column, label) in labels {
        // A label that would touch the one before is left out.
        if line.is_empty() || line.len() < *column {
            line = format!("{line:<column$}{label}");
        }
    }
    writeln!(f, "          {line}")?;
    let legend = curves.iter().map(|c| format!("{} {}", c.mark, c.name));
    writeln!(
        f,
        "          {axis}; {}",
        legend.collect::<Vec<_>>().join(", ")
    )
}

/// An axis of powers of two from 1 up to `largest`: the exact number at each column, and labels.
pub fn powers(largest: u64) -> (Vec<u64>, Vec<(usize, String)>) {
    let bits = (u64::BITS - largest.saturating_sub(1).leading_zeros()).max(1);
    let last = (COLUMNS - 1) as f64;
    let at = |column: usize| 2_f64.powf(f64::from(bits) * column as f64 / last) as u64;
    let step = bits.div_ceil(8);
    let label = |bit: u32| {
        let column = (f64::from(bit) * last / f64::from(bits)).round() as usize;
        (column, short(1 << bit))
    };
    let labels = (0..bits).step_by(step as usize).map(label).collect();
    ((0..COLUMNS).map(at).collect(), labels)
}

/// A power of two with a binary prefix.
fn short(number: u64) -> String {
    let prefixes = ["", "Ki", "Mi", "Gi", "Ti"];
    let power = (number.ilog2() / 10).min(4);
    format!("{}{}", number >> (10 * power), prefixes[power as usize])
}
