//! Which profiles are refused: parameters out of range, and targets that no workload can meet.
//!
//! The inequality that matters most: the values outside the x50 set make the other half of the
//! writes and each of them is written at least once, so (1 - x50) * unique <= 0.5
//! (workload statistics of CA-SSD: homes' 14.44 % and 66.37 % cannot belong to one stream).

use flashlore_trace::UNIT_BYTES;

use crate::profile::{Address, Profile, Reach, Statistic, Values};

pub(crate) type Fault = (&'static str, String);

impl Profile {
    pub(crate) fn check(&self) -> Result<(), Fault> {
        let requests = &self.requests;
        at_least("requests.count", requests.count as f64, 1.0)?;
        share("requests.writes", requests.writes)?;
        for (key, size) in [
            ("requests.read_size", requests.read_size),
            ("requests.write_size", requests.write_size),
        ] {
            at_least(key, size.0 as f64, UNIT_BYTES as f64)?;
        }
        at_least("arrivals.burst", self.arrivals.burst, 1.0)?;
        let inside = self.requests.count as f64 * (1.0 - 1.0 / self.arrivals.burst);
        if inside * self.arrivals.within.0 as f64 > self.arrivals.duration.0 as f64 {
            return Err((
                "arrivals.within",
                format!(
                    "{} requests {} apart within bursts take longer than the duration {}",
                    self.requests.count, self.arrivals.within, self.arrivals.duration
                ),
            ));
        }
        self.check_address(&self.address)?;
        if let Some(values) = &self.values {
            values.check()?;
        }
        if let Some(similarity) = &self.similarity {
            similarity.check()?;
            if self.values.is_none() {
                return Err((
                    "similarity",
                    "found without [values], expected both: bytes are those of values".to_owned(),
                ));
            }
        }
        self.check_published()
    }

    fn check_address(&self, address: &Address) -> Result<(), Fault> {
        at_least("address.footprint", address.footprint as f64, 1.0)?;
        share("address.sequential", address.sequential)?;
        share("address.read_only", address.read_only)?;
        share("address.cold_reads", address.cold_reads)?;
        share("address.hot", address.hot)?;
        share("address.hot_writes", address.hot_writes)?;
        positive("address.growth", address.growth)?;
        address.rewrite.check("address.rewrite")?;
        address.reread.check("address.reread")?;
        address.read_written.check("address.read_written")?;
        let pages = address.footprint as f64;
        let requests = &self.requests;
        let writes = requests.count as f64 * requests.writes * requests.write_size.0 as f64
            / UNIT_BYTES as f64;
        let reads = requests.count as f64 * (1.0 - requests.writes) * requests.read_size.0 as f64
            / UNIT_BYTES as f64;
        let written = pages * (1.0 - address.read_only);
        if requests.writes > 0.0 && address.read_only == 1.0 {
            return Err((
                "address.read_only",
                "found 1, expected less in a profile that writes".to_owned(),
            ));
        }
        let demands = [
            (
                "hot and written",
                written * address.hot,
                writes * address.hot_writes,
            ),
            (
                "written",
                written * (1.0 - address.hot),
                writes * (1.0 - address.hot_writes),
            ),
            (
                "only read",
                pages * address.read_only,
                reads * address.cold_reads,
            ),
        ];
        for (what, pages, accesses) in demands {
            if pages > accesses * 1.000_001 + 1.0 {
                return Err((
                    "address.footprint",
                    format!(
                        "{pages:.0} pages are to be {what} and only {accesses:.0} page accesses \
                         do that; expected no more pages than accesses"
                    ),
                ));
            }
        }
        Ok(())
    }

    fn check_published(&self) -> Result<(), Fault> {
        let figure = |statistic| {
            self.published
                .get(&statistic)
                .map(|p| (p.value, p.tolerance))
        };
        let (Some((unique, _)), Some((x50, _))) =
            (figure(Statistic::UniqueWrites), figure(Statistic::X50))
        else {
            return Ok(());
        };
        possible(unique, x50).map_err(|message| ("published.x50", message))
    }
}

/// Whether distinct values that are `unique` of all writes can have half of the writes in a share
/// `x50` of them.
///
/// # Errors
/// The inequality that forbids it.
pub fn possible(unique: f64, x50: f64) -> Result<(), String> {
    let others = (1.0 - x50) * unique;
    if others > 0.5 {
        return Err(format!(
            "impossible: (1 - x50) * unique = (1 - {x50}) * {unique} = {others:.4} is above 0.5: \
             the values outside the x50 set are written at least once each and would make more than \
             half of the writes; with this unique share x50 is at least {:.4}",
            1.0 - 0.5 / unique
        ));
    }
    if x50 > 0.5 {
        return Err(format!(
            "impossible: x50 = {x50} is above 0.5, and the most frequent half of the values makes at \
             least half of the writes"
        ));
    }
    Ok(())
}

impl Values {
    fn check(&self) -> Result<(), Fault> {
        share("values.unique", self.unique)?;
        share("values.silent", self.silent)?;
        share("values.reborn", self.reborn)?;
        share("values.hot_reuse", self.hot_reuse)?;
        share("values.heavy", self.heavy)?;
        share("values.heavy_reuse", self.heavy_reuse)?;
        positive("values.growth", self.growth)?;
        at_least("values.hot_new", self.hot_new, 0.0)?;
        at_least("values.light_writes", f64::from(self.light_writes), 1.0)?;
        self.heavy_reach.check("values.heavy_reach")?;
        self.light_reach.check("values.light_reach")?;
        let kinds = self.unique + self.silent + self.reborn;
        if kinds > 1.0 {
            return Err((
                "values.unique",
                format!(
                    "unique + silent + reborn = {kinds:.4} is above 1, and no write is two of them"
                ),
            ));
        }
        Ok(())
    }
}

impl Reach {
    fn check(&self, key: &'static str) -> Result<(), Fault> {
        share(key, self.near)?;
        at_least(key, self.gap, 0.0)
    }
}

pub(crate) fn share(key: &'static str, value: f64) -> Result<(), Fault> {
    if (0.0..=1.0).contains(&value) {
        return Ok(());
    }
    Err((key, format!("found {value}, expected a share from 0 to 1")))
}

pub(crate) fn at_least(key: &'static str, value: f64, least: f64) -> Result<(), Fault> {
    if value >= least && value.is_finite() {
        return Ok(());
    }
    Err((key, format!("found {value}, expected at least {least}")))
}

fn positive(key: &'static str, value: f64) -> Result<(), Fault> {
    if value > 0.0 && value <= 1.0 {
        return Ok(());
    }
    Err((
        key,
        format!("found {value}, expected more than 0 and at most 1"),
    ))
}
