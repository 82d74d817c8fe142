//! Lengths of deltas as the trace has them, in the R_c of each page write.
//!
//! R_c belongs to a write and not to its value, so it is told before each write. What is compressed by
//! itself has no R_c: its length is drawn.

use flashlore_content::delta::Drawn;
use flashlore_trace::FULL_RATIO;

use crate::config::UNIT_BYTES;

/// Takes lengths from the trace.
#[derive(Debug, Clone, Copy)]
pub struct Rated {
    drawn: Drawn,
    ratio: u16,
}

impl Rated {
    /// Nothing has been told yet; `drawn` is for values by themselves.
    pub fn new(drawn: Drawn) -> Self {
        Rated {
            drawn,
            ratio: FULL_RATIO,
        }
    }

    /// R_c of the write that comes next, in 1/65535.
    pub fn tell_ratio(&mut self, ratio: u16) {
        self.ratio = ratio;
    }

    /// Bytes of its delta, whatever from: the nearest number to R_c of a page, at least 1.
    pub fn delta(&self) -> u16 {
        bytes_of(self.ratio)
    }

    /// Who draws the others.
    pub fn drawn(&mut self) -> &mut Drawn {
        &mut self.drawn
    }
}

/// The bytes that a ratio in 1/65535 makes of a page.
pub fn bytes_of(ratio: u16) -> u16 {
    let full = u64::from(FULL_RATIO);
    let bytes = (u64::from(ratio) * UNIT_BYTES + full / 2) / full;
    bytes.max(1) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_becomes_the_nearest_number_of_bytes() {
        for (ratio, bytes) in [(1, 1), (16, 1), (23, 1), (24, 2), (FULL_RATIO, 4096)] {
            assert_eq!(bytes_of(ratio), bytes, "{ratio}");
        }
        // 0.35 of a page is 1433.6 bytes.
        assert_eq!(bytes_of((0.35 * 65535.0_f64).round() as u16), 1434);
    }
}
