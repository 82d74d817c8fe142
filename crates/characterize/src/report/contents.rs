//! What of the accesses is alike: values, stack distances, index misses, compressed sizes.

use std::fmt;

use super::plot::{COLUMNS, Curve, plot, powers};
use super::table::{Table, number, percent, title};
use crate::collector::Statistics;
use crate::measures::ratios::RatioSpread;
use crate::measures::share;
use crate::statistics::locality::LocalityCurve;
use crate::statistics::popularity::ClassPopularity;

pub fn write(f: &mut fmt::Formatter<'_>, found: &Statistics) -> fmt::Result {
    let popularity = &found.popularity;
    if popularity.writes.accesses + popularity.reads.accesses > 0 {
        values(f, found)?;
    }
    if popularity.writes.accesses > 0 {
        kinds(f, found)?;
    }
    distances(f, found)?;
    if popularity.writes.accesses > 0 {
        index(f, found)?;
    }
    compressibility(f, found)
}

fn values(f: &mut fmt::Formatter<'_>, found: &Statistics) -> fmt::Result {
    title(f, "Values")?;
    let (reads, writes) = (&found.popularity.reads, &found.popularity.writes);
    let mut table = Table::new(&["", "pages", "distinct", "unique", "make half", "x50"]);
    let mut row = |name: &str, class: &ClassPopularity| {
        if class.accesses > 0 {
            table.row([
                name.to_string(),
                class.accesses.to_string(),
                class.distinct.to_string(),
                percent(class.unique_share),
                class.half_values.to_string(),
                percent(class.x50),
            ]);
        }
    };
    row("reads", reads);
    row("writes", writes);
    write!(f, "{table}")?;
    let last = (COLUMNS - 1) as f64;
    let curve = |mark, name, class: &ClassPopularity| Curve {
        mark,
        name,
        shares: (0..COLUMNS)
            .map(|column| class.access_share(column as f64 / last))
            .collect(),
    };
    title(f, "Share of accesses made by the most frequent values")?;
    let labels: Vec<(usize, String)> = (0..5)
        .map(|quarter| (quarter * (COLUMNS - 1) / 4, format!("{} %", 25 * quarter)))
        .collect();
    let curves = [curve('w', "writes", writes), curve('r', "reads", reads)];
    let used = curves.into_iter().filter(|curve| curve.shares[0].is_some());
    plot(f, "share of values", &labels, &used.collect::<Vec<_>>())
}

fn kinds(f: &mut fmt::Formatter<'_>, found: &Statistics) -> fmt::Result {
    title(f, "Kinds of writes")?;
    let kinds = &found.kinds;
    let mut table = Table::new(&["", "pages", "share"]);
    let rows = [
        ("new", kinds.new),
        ("  seen in a read", kinds.new_seen_in_read),
        ("silent", kinds.silent),
        ("elsewhere", kinds.elsewhere),
        ("reborn", kinds.reborn),
        ("duplicate, same address", kinds.duplicate_same_address),
        ("duplicate, other address", kinds.duplicate_other_address),
    ];
    for (name, pages) in rows {
        let share = percent(share(pages, kinds.writes));
        table.row([name.to_string(), pages.to_string(), share]);
    }
    write!(f, "{table}")
}

fn distances(f: &mut fmt::Formatter<'_>, found: &Statistics) -> fmt::Result {
    title(
        f,
        "LRU stack distances of re-references, and over all accesses",
    )?;
    let (values, pages) = (&found.value_locality, &found.page_locality);
    let mut table = Table::new(&["", "accesses", "first", "d50", "d90", "d99"]);
    let mut row = |name: &str, curve: &LocalityCurve| {
        if curve.accesses > 0 {
            let counts = [curve.accesses, curve.first].map(|n| n.to_string());
            let over_references = [curve.p50, curve.p90, curve.p99].map(number);
            let cells = [name.to_string()].into_iter().chain(counts);
            table.row(cells.chain(over_references));
            let over_all = [curve.all_p50, curve.all_p90, curve.all_p99].map(number);
            let cells = ["  over all", "", ""].map(String::from);
            table.row(cells.into_iter().chain(over_all));
        }
    };
    row("writes: values", &values.writes);
    row("writes: pages", &pages.writes);
    row("reads: values", &values.reads);
    row("reads: pages", &pages.reads);
    write!(f, "{table}")?;
    for (name, values, pages) in [
        ("Writes within a distance", &values.writes, &pages.writes),
        ("Reads within a distance", &values.reads, &pages.reads),
    ] {
        if values.rereferences() + pages.rereferences() > 0 {
            title(f, name)?;
            distance_plot(f, values, pages)?;
        }
    }
    Ok(())
}

fn distance_plot(
    f: &mut fmt::Formatter<'_>,
    values: &LocalityCurve,
    pages: &LocalityCurve,
) -> fmt::Result {
    let last = |curve: &LocalityCurve| curve.points.last().map_or(1, |point| point.distance);
    let (at, labels) = powers(last(values).max(last(pages)));
    let curve = |mark, name, curve: &LocalityCurve| Curve {
        mark,
        name,
        shares: at.iter().map(|d| curve.share_within(*d)).collect(),
    };
    let curves = [curve('v', "values", values), curve('p', "pages", pages)];
    let used = curves.into_iter().filter(|curve| curve.shares[0].is_some());
    let used: Vec<Curve> = used.collect();
    plot(f, "distance, share of re-references", &labels, &used)
}

fn index(f: &mut fmt::Formatter<'_>, found: &Statistics) -> fmt::Result {
    title(f, "Writes that miss an LRU fingerprint index")?;
    let curve = &found.index.curve;
    let (at, labels) = powers(curve.last().map_or(1, |point| point.entries));
    let at_size = |entries: u64| curve.iter().rfind(|point| point.entries <= entries);
    let line = |mark, name, ratio: fn(&crate::statistics::index::MissPoint) -> f64| Curve {
        mark,
        name,
        shares: at.iter().map(|c| at_size(*c).map(ratio)).collect(),
    };
    let curves = [
        line('m', "plain", |point| point.plain_ratio),
        line('l', "values leave when they die", |point| point.live_ratio),
    ];
    plot(f, "entries", &labels, &curves)?;
    let popular = found.index.popular.iter();
    let mut table = Table::new(&["popular values: entries", "writes", "miss", "without first"]);
    for point in popular {
        table.row([
            point.entries.to_string(),
            point.writes.to_string(),
            percent(point.miss_share),
            percent(point.miss_share_without_first),
        ]);
    }
    write!(f, "{table}")
}

fn compressibility(f: &mut fmt::Formatter<'_>, found: &Statistics) -> fmt::Result {
    let Some(found) = &found.compressibility else {
        return Ok(());
    };
    title(f, "Compressed size over page size")?;
    let mut table = Table::new(&["", "pages", "mean", "std", "p10", "p50", "p90"]);
    let mut row = |name: &str, spread: &Option<RatioSpread>| {
        if let Some(spread) = spread {
            let ratios = [spread.mean, spread.std, spread.p10, spread.p50, spread.p90];
            let cells = [name.to_string(), spread.count.to_string()].into_iter();
            table.row(cells.chain(ratios.map(|ratio| format!("{ratio:.3}"))));
        }
    };
    let spreads = [
        ("new xor old (LZ4)", &found.delta),
        ("new alone (LZ4)", &found.alone),
        ("as given", &found.given),
    ];
    for (name, spread) in spreads {
        row(name, spread);
    }
    write!(f, "{table}")?;
    if found.pages > 0 {
        writeln!(
            f,
            "  {} of {} pages ({}) are zero",
            found.zero_pages,
            found.pages,
            percent(found.zero_share)
        )?;
    }
    for (name, spread) in spreads {
        if let Some(spread) = spread {
            bars(f, name, spread)?;
        }
    }
    Ok(())
}

/// The histogram lying down: a bar for each 0.05.
fn bars(f: &mut fmt::Formatter<'_>, name: &str, spread: &RatioSpread) -> fmt::Result {
    title(f, &format!("  {name}: share of the pages by ratio"))?;
    let used = |count: &u64| *count > 0;
    let first = spread.histogram.iter().position(used).unwrap_or(0);
    let last = spread.histogram.iter().rposition(used).unwrap_or(0);
    let bars = spread.histogram.iter().enumerate();
    for (bar, count) in bars.take(last + 1).skip(first) {
        let part = *count as f64 / spread.count as f64;
        let length = (part * 50.0).round() as usize;
        let line = format!(
            "  {:>4.2}-{:.2} {:>8} {}",
            0.05 * bar as f64,
            0.05 * (bar + 1) as f64,
            percent(Some(part)),
            "#".repeat(length)
        );
        writeln!(f, "{}", line.trim_end())?;
    }
    Ok(())
}
