//! What is asked of the devices, and when.

use std::fmt;

use super::table::{Table, bytes, decimal, duration, number, percent, title};
use crate::collector::Statistics;
use crate::statistics::sizes::SizeSpread;

pub fn write(f: &mut fmt::Formatter<'_>, found: &Statistics) -> fmt::Result {
    mix(f, found)?;
    sizes(f, found)?;
    places(f, found)?;
    arrivals(f, found)?;
    rate(f, found)
}

fn mix(f: &mut fmt::Formatter<'_>, found: &Statistics) -> fmt::Result {
    title(f, "Requests")?;
    let mix = &found.mix;
    let mut table = Table::new(&["", "requests", "pages", "bytes"]);
    let rows = [
        ("reads", mix.reads),
        ("writes", mix.writes),
        ("trims", mix.trims),
        ("flushes", mix.flushes),
    ];
    for (name, amount) in rows {
        let numbers = [amount.requests, amount.pages, amount.bytes];
        table.row(
            [name.to_string()]
                .into_iter()
                .chain(numbers.map(|n| n.to_string())),
        );
    }
    table.row([
        "share of writes".to_string(),
        percent(mix.write_share_requests),
        percent(mix.write_share_pages),
        percent(mix.write_share_bytes),
    ]);
    write!(f, "{table}")
}

fn sizes(f: &mut fmt::Formatter<'_>, found: &Statistics) -> fmt::Result {
    title(f, "Sizes in bytes")?;
    let mut table = Table::new(&["", "mean", "p50", "p90", "p99", "max"]);
    let mut row = |name: &str, spread: &Option<SizeSpread>| {
        if let Some(spread) = spread {
            let numbers = [spread.p50, spread.p90, spread.p99, spread.max];
            let mean = format!("{:.0}", spread.mean);
            let cells = [name.to_string(), mean].into_iter();
            table.row(cells.chain(numbers.map(|n| n.to_string())));
        }
    };
    row("reads", &found.sizes.reads);
    row("writes", &found.sizes.writes);
    write!(f, "{table}")
}

fn places(f: &mut fmt::Formatter<'_>, found: &Statistics) -> fmt::Result {
    title(f, "Places")?;
    let sequential = &found.sequential;
    writeln!(
        f,
        "  sequential       {} (reads {}, writes {})",
        percent(sequential.share),
        percent(sequential.share_of_reads),
        percent(sequential.share_of_writes)
    )?;
    writeln!(
        f,
        "  runs             {}, mean {} requests, {}",
        sequential.runs,
        decimal(sequential.mean_run_requests),
        bytes(sequential.mean_run_bytes.unwrap_or(0.0))
    )?;
    let footprint = &found.footprint;
    writeln!(
        f,
        "  footprint        {} pages ({})",
        footprint.pages,
        bytes(footprint.pages as f64 * 4096.0)
    )?;
    writeln!(
        f,
        "                   only read {}, only written {}, both {}; read first {}",
        footprint.only_read, footprint.only_written, footprint.both, footprint.read_first
    )?;
    let overwrites = &found.overwrites;
    writeln!(
        f,
        "  overwrites       {} of the page writes",
        percent(overwrites.share)
    )?;
    let (distance, time) = (&overwrites.distance, &overwrites.time_ns);
    if let Some((distance, time)) = distance.as_ref().zip(time.as_ref()) {
        writeln!(
            f,
            "    after          p50 {}, p90 {}, p99 {} page writes",
            distance.p50, distance.p90, distance.p99
        )?;
        let [p50, p90, p99] = [time.p50, time.p90, time.p99].map(|ns| duration(Some(ns as f64)));
        writeln!(f, "    after          p50 {p50}, p90 {p90}, p99 {p99}")?;
    }
    Ok(())
}

fn arrivals(f: &mut fmt::Formatter<'_>, found: &Statistics) -> fmt::Result {
    title(f, "Arrivals")?;
    let arrivals = &found.arrivals;
    writeln!(
        f,
        "  span             {}",
        duration(Some(arrivals.span_ns as f64))
    )?;
    if let Some(gaps) = &arrivals.gaps {
        writeln!(
            f,
            "  gap              mean {}, std {} (variation {})",
            duration(Some(gaps.mean_ns)),
            duration(Some(gaps.std_ns)),
            decimal(gaps.variation)
        )?;
        let percentiles = [gaps.p50_ns, gaps.p90_ns, gaps.p99_ns, gaps.max_ns];
        let [p50, p90, p99, max] = percentiles.map(|ns| duration(Some(ns as f64)));
        writeln!(
            f,
            "                   p50 {p50}, p90 {p90}, p99 {p99}, max {max}"
        )?;
    }
    writeln!(f, "  busiest second   {} requests", arrivals.peak_second)?;
    let bursts = &arrivals.bursts;
    writeln!(
        f,
        "  bursts           {}, mean {} requests, then {}",
        bursts.count,
        decimal(bursts.mean_requests),
        duration(bursts.mean_gap_ns)
    )?;
    if !arrivals.dispersion.is_empty() {
        let mut table = Table::new(&["windows of", "complete", "mean requests", "dispersion"]);
        for window in &arrivals.dispersion {
            table.row([
                duration(Some(window.window_ns as f64)),
                window.windows.to_string(),
                decimal(Some(window.mean)),
                decimal(Some(window.index)),
            ]);
        }
        write!(f, "{table}")?;
    }
    Ok(())
}

fn rate(f: &mut fmt::Formatter<'_>, found: &Statistics) -> fmt::Result {
    title(f, "Writing rate")?;
    let rate = &found.rate;
    writeln!(
        f,
        "  written          {}, {} an hour",
        bytes(rate.bytes as f64),
        number(rate.bytes_per_hour.map(bytes))
    )?;
    for window in &rate.windows {
        let shortest = match window.shortest_ns {
            Some(ns) => format!("{} at least", duration(Some(ns as f64))),
            None => "more than the trace writes".to_string(),
        };
        writeln!(
            f,
            "  {:<17}lasts {} at the mean rate, {shortest}",
            bytes(window.capacity_bytes as f64),
            duration(window.mean_ns),
        )?;
    }
    Ok(())
}
