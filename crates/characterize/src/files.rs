//! Characteristics as files in a directory.
//!
//! Every row of the Parquet files names its slice; in those of the whole it is absent. The columns
//! are listed in `docs/workloads.md`.

use std::io::Write;
use std::path::Path;

use flashlore_sim::results::Frame;
use flashlore_trace::{Existing, OutputError, OutputSet};
use serde_json::{Value, json};

use crate::characterizer::Characteristics;
use crate::collector::Statistics;
use crate::measures::share;
use crate::statistics::locality::LocalityCurve;

/// Columns that come first.
const LEADING: [&str; 4] = ["slice", "class", "space", "measure"];

/// Makes the rows of a table.
type Rows = fn(&Statistics) -> Vec<Value>;

/// The tables, and what is in them.
const TABLES: [(&str, Rows); 6] = [
    ("popularity", popularity),
    ("stack_distance", stack_distance),
    ("miss_ratio", miss_ratio),
    ("sizes", sizes),
    ("overwrite", overwrite),
    ("arrivals", arrivals),
];

/// The files of characteristics in a directory, the head first.
pub const CHARACTERISTICS_FILES: &[&str] = &[
    "summary.json",
    "popularity.parquet",
    "stack_distance.parquet",
    "miss_ratio.parquet",
    "sizes.parquet",
    "overwrite.parquet",
    "arrivals.parquet",
];

/// Writes `summary.json`, with everything, and tables as Parquet into `dir`, which is made if needed: all files or
/// none. A table without rows is not written.
///
/// # Errors
/// A directory that holds characteristics that are to stay, and what cannot be written.
pub fn write_dir(
    dir: &Path,
    found: &Characteristics,
    existing: Existing,
) -> Result<(), OutputError> {
    let mut set = OutputSet::create(dir, CHARACTERISTICS_FILES, existing)?;
    for (name, frame) in tables(found).filter(|(_, frame)| !frame.is_empty()) {
        set.write(&format!("{name}.parquet"), |out| {
            Ok(frame.write_parquet(out)?)
        })?;
    }
    let mut json = serde_json::to_vec_pretty(found).expect("plain data");
    json.push(b'\n');
    set.write("summary.json", |out| out.write_all(&json))?;
    set.complete()
}

/// The tables by name, those without rows too.
pub fn tables(found: &Characteristics) -> impl Iterator<Item = (&'static str, Frame)> + '_ {
    TABLES.into_iter().map(|(name, rows)| {
        let mut all = rows(&found.whole);
        for slice in &found.slices {
            let rows = rows(&slice.statistics).into_iter();
            all.extend(rows.map(|row| in_slice(row, slice.number)));
        }
        (name, Frame::from_rows(&LEADING, &all))
    })
}

fn in_slice(mut row: Value, number: u64) -> Value {
    row["slice"] = json!(number);
    row
}

fn popularity(found: &Statistics) -> Vec<Value> {
    let mut rows = Vec::new();
    let popularity = &found.popularity;
    for (class, of) in [("read", &popularity.reads), ("write", &popularity.writes)] {
        let all_values: u64 = of.frequencies.iter().map(|f| f.values).sum();
        let all = of.frequencies.iter().map(|f| f.values * f.accesses).sum();
        let (mut values, mut accesses) = (0, 0);
        for frequency in &of.frequencies {
            values += frequency.values;
            accesses += frequency.values * frequency.accesses;
            rows.push(json!({
                "class": class,
                "accesses_per_value": frequency.accesses,
                "values": frequency.values,
                "share_of_values": share(values, all_values),
                "share_of_accesses": share(accesses, all),
            }));
        }
    }
    rows
}

fn stack_distance(found: &Statistics) -> Vec<Value> {
    let (values, pages) = (&found.value_locality, &found.page_locality);
    let mut rows = Vec::new();
    for (class, space, curve) in [
        ("read", "value", &values.reads),
        ("write", "value", &values.writes),
        ("read", "page", &pages.reads),
        ("write", "page", &pages.writes),
    ] {
        rows.extend(curve_rows(class, space, curve));
    }
    rows
}

fn curve_rows(class: &str, space: &str, curve: &LocalityCurve) -> Vec<Value> {
    let mut before = 0;
    let points = curve.points.iter().map(|point| {
        let count = point.within - std::mem::replace(&mut before, point.within);
        json!({
            "class": class,
            "space": space,
            "distance": point.distance,
            "accesses": count,
            "accesses_within": point.within,
            "share_of_rereferences": share(point.within, curve.rereferences()),
            "share_of_accesses": share(point.within, curve.accesses),
        })
    });
    points.collect()
}

fn miss_ratio(found: &Statistics) -> Vec<Value> {
    let point = |point| serde_json::to_value(point).expect("plain data");
    found.index.curve.iter().map(point).collect()
}

fn sizes(found: &Statistics) -> Vec<Value> {
    let mut rows = Vec::new();
    for (class, spread) in [("read", &found.sizes.reads), ("write", &found.sizes.writes)] {
        for bucket in spread.iter().flat_map(|spread| &spread.histogram) {
            rows.push(json!({
                "class": class,
                "low_bytes": bucket.low,
                "high_bytes": bucket.high,
                "requests": bucket.count,
            }));
        }
    }
    rows
}

fn overwrite(found: &Statistics) -> Vec<Value> {
    let overwrites = &found.overwrites;
    let mut rows = Vec::new();
    for (measure, spread) in [
        ("page_writes", &overwrites.distance),
        ("time_ns", &overwrites.time_ns),
    ] {
        for bucket in spread.iter().flat_map(|spread| &spread.histogram) {
            rows.push(json!({
                "measure": measure,
                "low": bucket.low,
                "high": bucket.high,
                "overwrites": bucket.count,
            }));
        }
    }
    rows
}

fn arrivals(found: &Statistics) -> Vec<Value> {
    let window = |window: &crate::statistics::arrivals::Dispersion| {
        json!({
            "window_ns": window.window_ns,
            "windows": window.windows,
            "mean_requests": window.mean,
            "index_of_dispersion": window.index,
        })
    };
    found.arrivals.dispersion.iter().map(window).collect()
}
