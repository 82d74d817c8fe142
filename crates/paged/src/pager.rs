//! Keeps the memory of the process below a limit, by pushing out what lies in the region and is not in use.
//!
//! What counts is what the process has mapped, and what the kernel holds of the scratch file: anonymous memory and
//! the program, and the file's pages in memory. Above seven eighths of the limit a hand goes over the region,
//! window by window. What it unmapped one turn ago and nobody has touched since is dropped; what is mapped is
//! unmapped, which costs its next user a minor fault: a clock with a second chance, in which the mapping is the bit.

use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::region::{BLOCK, Region, page_size};
use crate::usage::usage;

/// Bytes that the hand passes at a time.
const WINDOW: usize = 16 * BLOCK;
/// Bytes of which residence is asked at a time.
const ASKED: usize = 256 * WINDOW;
/// How long the thread rests where nothing is to do, and where something was.
const REST: Duration = Duration::from_millis(20);
const BREATH: Duration = Duration::from_millis(5);
/// Turns of the hand in one go, at most: in two all goes that is not used meanwhile.
const TURNS: usize = 3;

/// A thread that keeps the memory of the process below a limit, until this is dropped.
pub struct Pager {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Pager {
    pub(crate) fn new(region: &'static Region, limit: u64) -> Self {
        let (stop, stopped) = mpsc::channel();
        let mut balance = Balance::new(region, limit);
        let turn = move || {
            let mut rest = REST;
            while stopped.recv_timeout(rest) == Err(mpsc::RecvTimeoutError::Timeout) {
                rest = match balance.restore() {
                    Found::Below => REST,
                    Found::Restored | Found::Over => BREATH,
                };
            }
        };
        let thread = thread::Builder::new().name("pager".into()).spawn(turn).ok();
        Pager {
            stop: Some(stop),
            thread,
        }
    }
}

impl Drop for Pager {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

/// What a look at the memory found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    Below,
    /// It was above the limit, and is below.
    Restored,
    /// It is above the limit: too much is in use, or does not lie in the region.
    Over,
}

pub(crate) struct Balance {
    region: &'static Region,
    /// Above this the hand goes, until it is below that.
    high: u64,
    low: u64,
    /// Bytes of files that are mapped besides the region: the program.
    program: u64,
    hand: usize,
    pages: Vec<u8>,
}

impl Balance {
    pub fn new(region: &'static Region, limit: u64) -> Self {
        Balance {
            region,
            high: limit - limit / 8,
            low: limit - limit / 16 * 3,
            program: usage().map_or(0, |usage| usage.of_files),
            hand: 0,
            pages: vec![0; ASKED / page_size()],
        }
    }

    /// Bytes of memory of this process, the pages of the scratch file included, mapped or not.
    pub fn used(&mut self) -> u64 {
        // Without an answer nothing is pushed out.
        let Ok(usage) = usage() else { return 0 };
        let extent = self.region.extent();
        let asked = (0..extent).step_by(ASKED);
        let held = asked.map(|at| {
            let bytes = ASKED.min(extent - at);
            self.region.resident(at, bytes, &mut self.pages) as u64
        });
        let held: u64 = held.sum();
        usage.resident.saturating_sub(usage.of_files) + self.program + held
    }

    /// Looks, and pushes out what there is too much.
    pub fn restore(&mut self) -> Found {
        let mut used = self.used();
        if used <= self.high {
            return Found::Below;
        }
        let extent = self.region.extent();
        for _ in 0..TURNS * extent.div_ceil(WINDOW) {
            if used <= self.low {
                return Found::Restored;
            }
            if self.hand >= extent {
                self.hand = 0;
            }
            let bytes = WINDOW.min(extent - self.hand);
            let before = self.region.resident(self.hand, bytes, &mut self.pages);
            if before > 0 {
                self.region.push_out(self.hand, bytes);
                let after = self.region.resident(self.hand, bytes, &mut self.pages);
                used = used.saturating_sub(before.saturating_sub(after) as u64);
            }
            self.hand += bytes;
        }
        match self.used() <= self.high {
            true => Found::Restored,
            false => Found::Over,
        }
    }
}
