//! Combination H: hashing is switched off while value locality is absent, and sampled meanwhile.
//!
//! Hashing pays (unloaded) when `hit rate x program time > hash time` (`spec/timing.md` section 6).
//! After `windows` windows of `window` hashed writes below break-even, only one write in `sample`
//! is hashed; one window above break-even brings hashing back.

/// When to stop and how to notice that it pays again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BypassOptions {
    /// Hashed writes in a window.
    pub window: u32,
    /// Windows in a row below break-even before hashing stops.
    pub windows: u32,
    /// While stopped, one write in so many is hashed all the same.
    pub sample: u32,
    /// Hits a window must have for hashing to pay.
    pub break_even_hits: u32,
}

/// The controller.
#[derive(Debug, Clone)]
pub struct Bypass {
    options: BypassOptions,
    seen: u32,
    hits: u32,
    poor_windows: u32,
    off: bool,
    until_sample: u32,
    switches: u64,
}

impl Bypass {
    /// Starts with hashing on.
    pub fn new(options: BypassOptions) -> Self {
        Bypass {
            options,
            seen: 0,
            hits: 0,
            poor_windows: 0,
            off: false,
            until_sample: options.sample,
            switches: 0,
        }
    }

    /// Whether the next write is hashed.
    pub fn wants_hash(&mut self) -> bool {
        if !self.off {
            return true;
        }
        self.until_sample -= 1;
        if self.until_sample == 0 {
            self.until_sample = self.options.sample;
            return true;
        }
        false
    }

    /// Notes the outcome of a hashed write.
    pub fn hashed(&mut self, hit: bool) {
        self.seen += 1;
        self.hits += u32::from(hit);
        if self.seen < self.options.window {
            return;
        }
        let pays = self.hits >= self.options.break_even_hits;
        self.seen = 0;
        self.hits = 0;
        self.poor_windows = if pays { 0 } else { self.poor_windows + 1 };
        let off = !pays && (self.off || self.poor_windows >= self.options.windows);
        if off != self.off {
            self.switches += 1;
            self.off = off;
        }
    }

    /// Whether hashing is off now.
    pub fn is_off(&self) -> bool {
        self.off
    }

    /// How often hashing was switched on or off.
    pub fn switches(&self) -> u64 {
        self.switches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn controller() -> Bypass {
        Bypass::new(BypassOptions {
            window: 10,
            windows: 3,
            sample: 4,
            break_even_hits: 2,
        })
    }

    fn feed(bypass: &mut Bypass, writes: u32, hit: bool) -> u32 {
        let mut hashed = 0;
        for _ in 0..writes {
            if bypass.wants_hash() {
                hashed += 1;
                bypass.hashed(hit);
            }
        }
        hashed
    }

    #[test]
    fn hashing_stops_after_the_poor_windows_and_is_sampled() {
        let mut bypass = controller();
        assert_eq!(feed(&mut bypass, 30, false), 30);
        assert!(bypass.is_off());
        assert_eq!(feed(&mut bypass, 40, false), 10);
        assert!(bypass.is_off());
        assert_eq!(bypass.switches(), 1);
    }

    #[test]
    fn one_good_window_of_samples_brings_it_back() {
        let mut bypass = controller();
        feed(&mut bypass, 30, false);
        feed(&mut bypass, 40, true);
        assert!(!bypass.is_off());
        assert_eq!(bypass.switches(), 2);
    }

    #[test]
    fn a_good_window_between_poor_ones_keeps_hashing_on() {
        let mut bypass = controller();
        for _ in 0..10 {
            feed(&mut bypass, 20, false);
            feed(&mut bypass, 10, true);
        }
        assert!(!bypass.is_off());
        assert_eq!(bypass.switches(), 0);
    }
}
