//! Whether encoding pays at all (DeltaFTL, EuroSys 2012, section 3.3.1): the mean of R_c over a window of
//! encoded writes must not be above a bound. While it is, writes are stored whole (*baseline mode*), but
//! for one in so many, so that a return is noticed.
//!
//! The bound follows from the times of the device: with chip, bus and encoder as stages of a pipeline,
//! writes take no longer iff `1 - R_c > max(read, transfer, encode) / program`.

use flashlore_flash::geometry::UNIT_BYTES;

use crate::policies::options::ViabilityOptions;

/// The controller.
#[derive(Debug, Clone)]
pub struct Viability {
    options: ViabilityOptions,
    bytes: u64,
    seen: u32,
    baseline: bool,
    until_probe: u32,
    /// Candidates that were not encoded in baseline mode.
    pub bypassed: u64,
}

impl Viability {
    /// Encoding begins.
    pub fn new(options: ViabilityOptions) -> Self {
        Viability {
            options,
            bytes: 0,
            seen: 0,
            baseline: false,
            until_probe: options.probe,
            bypassed: 0,
        }
    }

    /// Whether writes are stored whole but for probes.
    pub fn is_baseline(&self) -> bool {
        self.baseline
    }

    /// Whether the next candidate is to be encoded; ask once a candidate.
    pub fn wants(&mut self) -> bool {
        if !self.baseline {
            return true;
        }
        self.until_probe -= 1;
        if self.until_probe > 0 {
            self.bypassed += 1;
            return false;
        }
        self.until_probe = self.options.probe;
        true
    }

    /// A candidate was encoded to so many bytes; `None` is a page or more.
    pub fn observe(&mut self, bytes: Option<u16>) {
        self.bytes += bytes.map_or(u64::from(UNIT_BYTES), u64::from);
        self.seen += 1;
        if self.seen == self.options.window {
            let most = u64::from(self.options.most_bytes) * u64::from(self.seen);
            self.baseline = self.bytes > most;
            (self.bytes, self.seen) = (0, 0);
            self.until_probe = self.options.probe;
        }
    }
}

/// The longest mean of R_c, as a share of a page, at which writes take no longer for being encoded;
/// times in any one unit.
pub fn bound(read: f64, transfer: f64, encode: f64, program: f64) -> f64 {
    1.0 - read.max(transfer).max(encode) / program
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_bounds() {
        // D10: 25 us, 40 us and LZF's cycles at three frequencies, over 200 us.
        for (mhz, most) in [(304.0, 0.5524), (619.0, 0.7802), (934.0, 0.8)] {
            let bound = bound(25.0, 40.0, 27_212.0 / mhz, 200.0);
            assert!((bound - most).abs() < 5e-5, "{mhz} MHz: {bound}");
        }
    }

    #[test]
    fn a_bad_window_leads_to_baseline_mode_and_good_probes_back() {
        let mut viability = Viability::new(ViabilityOptions {
            most_bytes: 2048,
            window: 4,
            probe: 3,
        });
        for bytes in [Some(2048), Some(2048), None, Some(0)] {
            assert!(viability.wants());
            viability.observe(bytes);
        }
        assert!(!viability.is_baseline());
        for _ in 0..4 {
            viability.observe(Some(2049));
        }
        assert!(viability.is_baseline());
        let mut probes = 0;
        for _ in 0..12 {
            if viability.wants() {
                probes += 1;
                viability.observe(Some(100));
            }
        }
        assert_eq!((probes, viability.bypassed), (4, 8));
        assert!(!viability.is_baseline());
    }
}
