//! When requests arrive: bursts with pauses between, both exponential, so that the whole takes the
//! duration of the profile on average.

use crate::draw::Draw;
use crate::profile::Arrivals;

#[derive(Debug, Clone)]
pub(crate) struct Clock {
    draw: Draw,
    now_ns: f64,
    /// Chance that a request begins a burst.
    begins: f64,
    pause_ns: f64,
    within_ns: f64,
    first: bool,
}

impl Clock {
    pub(crate) fn new(arrivals: &Arrivals, count: u64, duration_ns: f64, draw: Draw) -> Self {
        let begins = 1.0 / arrivals.burst;
        let within_ns = arrivals.within.0 as f64;
        let gaps = count.saturating_sub(1).max(1) as f64;
        let pauses_ns = (duration_ns - gaps * (1.0 - begins) * within_ns).max(0.0);
        Clock {
            draw,
            now_ns: 0.0,
            begins,
            pause_ns: pauses_ns / (gaps * begins),
            within_ns,
            first: true,
        }
    }

    /// The time of the next request, in nanoseconds; the first is at 0.
    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        if self.first {
            self.first = false;
            return 0;
        }
        let mean = match self.draw.chance(self.begins) {
            true => self.pause_ns,
            false => self.within_ns,
        };
        self.now_ns += self.draw.exponential(mean);
        self.now_ns as u64
    }
}
