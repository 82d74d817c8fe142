//! Tables of what was measured.

use std::time::Duration;

use flashlore_delta::PAGE_BYTES;

/// What one codec did with all pairs.
pub struct Row {
    name: &'static str,
    encode: Duration,
    decode: Duration,
    /// Bytes of bodies, ascending, at most a page.
    sizes: Vec<usize>,
}

impl Row {
    pub fn new(name: &'static str) -> Row {
        Row {
            name,
            encode: Duration::MAX,
            decode: Duration::MAX,
            sizes: Vec::new(),
        }
    }

    /// A round of encoding took so long.
    pub fn encoded(&mut self, time: Duration) {
        self.encode = self.encode.min(time);
    }

    /// A round of decoding took so long.
    pub fn decoded(&mut self, time: Duration) {
        self.decode = self.decode.min(time);
    }

    /// The bodies have these sizes.
    pub fn sizes(&mut self, sizes: impl Iterator<Item = usize>) {
        self.sizes = sizes.map(|size| size.min(PAGE_BYTES)).collect();
        self.sizes.sort_unstable();
    }

    fn percentile(&self, percent: usize) -> f64 {
        let rank = (self.sizes.len() * percent).div_ceil(100).max(1);
        self.sizes[rank - 1] as f64 / PAGE_BYTES as f64
    }
}

/// Prints the rows of a workload.
pub fn print(workload: &str, what: &str, pairs: usize, rows: &[Row]) {
    println!("{workload}, {what}, {pairs} pages:");
    println!(
        "  {:<16}{:>7}{:>8}{:>7}{:>7}{:>12}{:>9}{:>12}{:>9}",
        "codec", "mean", "< 0.5", "p50", "p90", "encode us", "MB/s", "decode us", "MB/s"
    );
    for row in rows {
        let count = row.sizes.len() as f64;
        let mean = row.sizes.iter().sum::<usize>() as f64 / count / PAGE_BYTES as f64;
        let below = row.sizes.partition_point(|size| 2 * size < PAGE_BYTES) as f64 / count;
        let us = |time: Duration| time.as_secs_f64() * 1e6 / count;
        let (encode, decode) = (us(row.encode), us(row.decode));
        println!(
            "  {:<16}{mean:>7.4}{:>7.1}%{:>7.3}{:>7.3}{encode:>12.2}{:>9.0}{decode:>12.2}{:>9.0}",
            row.name,
            below * 100.0,
            row.percentile(50),
            row.percentile(90),
            PAGE_BYTES as f64 / encode,
            PAGE_BYTES as f64 / decode,
        );
    }
}
