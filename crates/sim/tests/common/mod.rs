//! Requests drawn at random, as a trace, and where a request log goes.
#![allow(dead_code)]

use std::io::{self, Write};
use std::sync::Arc;

use flashlore_sim::config::{RunConfig, Settings, load_device, load_host, load_system};
use flashlore_trace::{Op, Request, RequestBlock, RequestSource, Summary};
use parking_lot::Mutex;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Requests of one page, uniform over the first `pages`, 100 us apart.
pub struct Uniform {
    pub requests: u64,
    pub pages: u32,
    /// One in so many is a read; 0 for none.
    pub reads: u64,
    /// Contents are drawn of so many; 0 for writes without content.
    pub values: u32,
    summary: Summary,
    random: Xoshiro256PlusPlus,
    sent: u64,
}

impl Uniform {
    pub fn new(requests: u64, pages: u32, reads: u64, values: u32) -> Self {
        Uniform {
            requests,
            pages,
            reads,
            values,
            summary: Summary::generated(requests, u64::from(pages), values > 0),
            random: Xoshiro256PlusPlus::seed_from_u64(1),
            sent: 0,
        }
    }

    fn below(&mut self, bound: u32) -> u32 {
        ((u128::from(self.random.next_u64()) * u128::from(bound)) >> 64) as u32
    }
}

impl RequestSource for Uniform {
    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn rewind(&mut self) -> flashlore_trace::Result<()> {
        self.random = Xoshiro256PlusPlus::seed_from_u64(1);
        self.sent = 0;
        Ok(())
    }

    fn next_block(&mut self, out: &mut RequestBlock) -> flashlore_trace::Result<bool> {
        out.clear();
        while out.requests.len() < 4096 && self.sent < self.requests {
            let reads = self.reads > 0 && self.sent.is_multiple_of(self.reads);
            let mut first_value = u32::MAX;
            if !reads && self.values > 0 {
                first_value = out.values.len() as u32;
                let value = self.below(self.values);
                out.values.push(value);
            }
            out.requests.push(Request {
                time_ns: self.sent * 100_000,
                lpn: self.below(self.pages),
                units: 1,
                first_value,
                op: if reads { Op::Read } else { Op::Write },
                head_partial: false,
                tail_partial: false,
            });
            self.sent += 1;
        }
        Ok(!out.requests.is_empty())
    }
}

/// A configuration of presets with settings.
pub fn config(device: &str, system: &str, settings: &[&str]) -> RunConfig {
    let settings = Settings::parse(settings).unwrap();
    RunConfig {
        device: load_device(device, &settings).unwrap().config,
        system: load_system(system, &settings).unwrap().config,
        host: load_host(&settings).unwrap().config,
    }
}

/// Where a request log goes; clones are of the same one.
#[derive(Clone, Default)]
pub struct Log(pub Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
