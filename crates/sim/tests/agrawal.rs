//! The published check values of the simulator that the papers extended (`agrawal-2008`;
//! `spec/timing.md` section 8), with a workload drawn as described there.
//!
//! The IOzone trace is a published fragment: its check is skipped where the file is absent.

use flashlore_sim::config::{RunConfig, Settings, load_device, load_host, load_system};
use flashlore_sim::engine::{RunOptions, simulate};
use flashlore_sim::results::RunResult;
use flashlore_testkit::data;
use flashlore_trace::{
    ContentModel, Op, Request, RequestBlock, RequestSource, Summary, Workload, WorkloadOptions,
};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Addresses of the synthetic checks: the first 877,363 pages.
const ADDRESSES: u64 = 877_363;

/// Inter-arrival times uniform in [0, 1] ms, sizes exponential with mean 8 sectors rounded up to
/// whole pages, addresses sequential or uniform.
struct Synthetic {
    summary: Summary,
    requests: u64,
    op: Op,
    sequential: bool,
    random: Xoshiro256PlusPlus,
    sent: u64,
    now: f64,
    next: u64,
}

impl Synthetic {
    fn new(requests: u64, op: Op, sequential: bool) -> Self {
        let summary = Summary::generated(requests, ADDRESSES + 64, false);
        let random = Xoshiro256PlusPlus::seed_from_u64(1);
        Synthetic {
            summary,
            requests,
            op,
            sequential,
            random,
            sent: 0,
            now: 0.0,
            next: 0,
        }
    }

    fn uniform(&mut self) -> f64 {
        (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}

impl RequestSource for Synthetic {
    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn rewind(&mut self) -> flashlore_trace::Result<()> {
        self.random = Xoshiro256PlusPlus::seed_from_u64(1);
        (self.sent, self.now, self.next) = (0, 0.0, 0);
        Ok(())
    }

    fn next_block(&mut self, out: &mut RequestBlock) -> flashlore_trace::Result<bool> {
        out.clear();
        while out.requests.len() < 4096 && self.sent < self.requests {
            self.now += self.uniform() * 1e6;
            let sectors = -8.0 * (1.0 - self.uniform()).ln();
            let units = ((sectors / 8.0).ceil() as u64).max(1);
            let at = if self.sequential {
                self.next % ADDRESSES
            } else {
                (self.uniform() * ADDRESSES as f64) as u64
            };
            self.next = at + units;
            out.requests.push(Request {
                time_ns: self.now as u64,
                lpn: at as u32,
                units: units as u32,
                first_value: u32::MAX,
                op: self.op,
                head_partial: false,
                tail_partial: false,
            });
            self.sent += 1;
        }
        Ok(!out.requests.is_empty())
    }
}

fn config() -> RunConfig {
    let settings = Settings::default();
    RunConfig {
        device: load_device("agrawal-2008", &settings).unwrap().config,
        system: load_system("plain", &settings).unwrap().config,
        host: load_host(&settings).unwrap().config,
    }
}

fn run(requests: u64, op: Op, sequential: bool) -> RunResult {
    let mut source = Synthetic::new(requests, op, sequential);
    simulate(&config(), &mut source, RunOptions::default())
        .unwrap()
        .result
}

fn check(name: &str, result: &RunResult, mean_ms: f64, std_ms: f64, tolerance: f64) {
    let (mean, std) = (
        result.response_us.all.mean.unwrap() / 1e3,
        result.response_us.all.std.unwrap() / 1e3,
    );
    println!(
        "{name}: mean {mean:.4} ms (published {mean_ms}), std {std:.4} ms (published {std_ms})"
    );
    println!(
        "  cleans a chip {:.0}, units moved a chip {:.0}, a clean {:.2}, writes a chip {:.0}",
        result.gc.victims as f64 / 8.0,
        result.gc.valid_units_moved as f64 / 8.0,
        result.gc.mean_valid_per_victim.unwrap_or(0.0),
        result.host.write_pages as f64 / 8.0,
    );
    let off = (mean / mean_ms - 1.0).abs();
    assert!(
        off < tolerance,
        "{name}: mean {mean} ms, published {mean_ms} ms"
    );
}

#[test]
fn reads_and_writes_without_collection() {
    let n = 250_000;
    check(
        "sequential read",
        &run(n, Op::Read, true),
        0.1325,
        0.0001,
        0.02,
    );
    check(
        "random read",
        &run(n, Op::Read, false),
        0.1361,
        0.0152,
        0.02,
    );
    check(
        "sequential write",
        &run(n, Op::Write, true),
        0.3109,
        0.0266,
        0.02,
    );
    check(
        "random write",
        &run(n, Op::Write, false),
        0.3295,
        0.0689,
        0.02,
    );
}

#[test]
fn three_million_random_writes() {
    let result = run(3_000_000, Op::Write, false);
    check("random write, 3 M", &result, 0.5767, 0.9458, 0.05);
    let moved = result.gc.mean_valid_per_victim.unwrap();
    assert!(
        (moved / 13.6 - 1.0).abs() < 0.03,
        "{moved} units moved a victim, published 13.6"
    );
}

#[test]
fn the_iozone_trace() {
    let Some(path) = data("public/iozone-100k.disksim.trace.xz") else {
        return;
    };
    let options = WorkloadOptions::new(ContentModel::FromTrace);
    let mut source = Workload::open(&[path], &options).unwrap();
    let result = simulate(&config(), &mut source, RunOptions::default())
        .unwrap()
        .result;
    check("IOzone", &result, 6.3943, 23.4, 0.05);
    let cleans = result.gc.victims as f64 / 8.0;
    assert!(
        (cleans / 16_220.0 - 1.0).abs() < 0.05,
        "{cleans} cleans a chip, published 16,220"
    );
}
