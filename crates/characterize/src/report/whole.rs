//! The report: sources, the whole, and a row for each slice.

use std::fmt;

use flashlore_trace::ContentModel;

use super::table::{Table, bytes, duration, number, percent, title};
use super::{contents, requests};
use crate::characterizer::{Characteristics, Slice};
use crate::collector::Statistics;
use crate::measures::share;

impl fmt::Display for Characteristics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.head(f)?;
        self.whole.fmt(f)?;
        if !self.slices.is_empty() {
            self.slice_table(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        requests::write(f, self)?;
        contents::write(f, self)
    }
}

/// How many devices are named.
const SHOWN_DEVICES: usize = 8;

impl Characteristics {
    fn head(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for source in &self.sources {
            writeln!(
                f,
                "trace      {} ({}, {} records)",
                source.path, source.format, source.records
            )?;
            let notes = [
                ("raised to the time of the record before", source.clamped),
                ("malformed and skipped", source.skipped),
            ];
            for (note, count) in notes.iter().filter(|(_, count)| *count > 0) {
                writeln!(f, "           {count} records {note}")?;
            }
        }
        if !self.devices.is_empty() {
            let shown = &self.devices[..self.devices.len().min(SHOWN_DEVICES)];
            let dots = if shown.len() < self.devices.len() {
                " ..."
            } else {
                ""
            };
            writeln!(
                f,
                "devices    {}: {}{dots}",
                self.devices.len(),
                shown.join(" ")
            )?;
        }
        let notes = [
            ("records of other devices left out", self.records_left_out),
            ("trims cover no whole page", self.trims_ignored),
        ];
        for (note, count) in notes.iter().filter(|(_, count)| *count > 0) {
            writeln!(f, "           {count} {note}")?;
        }
        if let Some(workload) = &self.workload
            && workload.content != ContentModel::FromTrace
        {
            writeln!(f, "content    {}", workload.content)?;
        }
        let rate = self.options.sample_rate;
        let how = match rate < 1.0 {
            true => format!(
                "{} of the pages and values are followed",
                percent(Some(rate))
            ),
            false => "everything is exact".to_string(),
        };
        writeln!(
            f,
            "tables     {} of memory, {how}",
            bytes(self.table_bytes as f64)
        )
    }

    fn slice_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = self.options.slice_ns.map(|ns| ns as f64);
        title(
            f,
            &format!("Slices of {}, each from nothing known", duration(length)),
        )?;
        let head = [
            "slice",
            "requests",
            "writes",
            "unique",
            "silent",
            "x50",
            "value d90",
            "page d90",
        ];
        let mut table = Table::new(&head);
        for Slice {
            number: slice,
            statistics,
            ..
        } in &self.slices
        {
            table.row([
                slice.to_string(),
                statistics.arrivals.requests.to_string(),
                percent(statistics.mix.write_share_requests),
                percent(statistics.popularity.writes.unique_share),
                percent(share(statistics.kinds.silent, statistics.kinds.writes)),
                percent(statistics.popularity.writes.x50),
                number(statistics.value_locality.writes.p90),
                number(statistics.page_locality.writes.p90),
            ]);
        }
        write!(f, "{table}")
    }
}
