//! How far things are, on standard error and only when that is a terminal.

use std::fmt;
use std::io::{self, IsTerminal};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use flashlore_sim::engine::Ticker;
use indicatif::{
    HumanCount, HumanDuration, ProgressBar, ProgressFinish, ProgressState, ProgressStyle,
};

/// Requests replayed of all runs together, with their rate and the time left.
const RUNNING: &str = "{elapsed_precise} {wide_bar} {human_pos}/{human_len} requests, \
                       {rate}/s{left}{prefix}{msg}";

/// What a phase is called, and how far it is.
const BLOCKS: &str = "{elapsed_precise} {msg} {wide_bar} {percent} %, {eta} left";

/// A ticker of one phase; clones tick the same one. It disappears with the last of them.
#[derive(Clone)]
pub struct Progress {
    bar: ProgressBar,
    /// Pages written so far to prepare devices.
    prepared: Arc<AtomicU64>,
    /// Whether requests make the bar longer as they are done.
    unforeseen: bool,
}

impl Progress {
    /// For a phase of unknown length.
    pub fn phase(what: &'static str) -> Self {
        Self::show(|| ProgressBar::new_spinner().with_message(what))
    }

    /// For a phase of blocks, told by [`Self::at`].
    pub fn blocks(what: &'static str) -> Self {
        Self::show(|| {
            let style = ProgressStyle::with_template(BLOCKS)
                .unwrap_or_else(|_| ProgressStyle::default_bar());
            ProgressBar::no_length()
                .with_style(style)
                .with_message(what)
        })
    }

    /// So many blocks are done, of so many.
    pub fn at(&self, done: u64, of: u64) {
        self.bar.set_length(of);
        self.bar.set_position(done);
    }

    /// For `requests` requests of `runs` runs.
    pub fn requests(requests: u64, runs: usize) -> Self {
        Self::show(|| {
            // A fixed text, which a test reads.
            let style = ProgressStyle::with_template(RUNNING)
                .unwrap_or_else(|_| ProgressStyle::default_bar())
                .with_key("rate", rate)
                .with_key("left", left);
            let runs = match runs {
                1 => String::new(),
                _ => format!(" ({runs} runs)"),
            };
            ProgressBar::new(requests)
                .with_style(style)
                .with_prefix(runs)
        })
    }

    fn show(make: impl Fn() -> ProgressBar) -> Self {
        if !io::stderr().is_terminal() {
            return Self::of(ProgressBar::hidden());
        }
        let bar = make().with_finish(ProgressFinish::AndClear);
        bar.enable_steady_tick(Duration::from_millis(200));
        Self::of(bar)
    }

    fn of(bar: ProgressBar) -> Self {
        Self {
            bar,
            prepared: Arc::default(),
            unforeseen: false,
        }
    }

    /// The same ticker for requests that are not among those it was made for.
    pub fn unforeseen(&self) -> Self {
        Self {
            unforeseen: true,
            ..self.clone()
        }
    }

    /// So many requests more are to come.
    pub fn lengthen(&self, requests: u64) {
        self.bar.inc_length(requests);
    }
}

/// Whole requests a second.
fn rate(state: &ProgressState, out: &mut dyn fmt::Write) {
    // A line that cannot be formatted is one not shown.
    let _ = write!(out, "{}", HumanCount(state.per_sec() as u64));
}

/// The time left, once there are requests to tell it from: while devices are prepared nobody knows.
fn left(state: &ProgressState, out: &mut dyn fmt::Write) {
    let _ = write!(out, "{}", time_left(state.pos(), state.eta()));
}

fn time_left(done: u64, eta: Duration) -> String {
    match done {
        0 => String::new(),
        _ => format!(", {:#} left", HumanDuration(eta)),
    }
}

impl Ticker for Progress {
    fn prepare(&mut self, pages: u64) -> ControlFlow<()> {
        let pages = self.prepared.fetch_add(pages, Ordering::Relaxed) + pages;
        self.bar
            .set_message(format!("; {} pages to prepare", HumanCount(pages)));
        ControlFlow::Continue(())
    }

    fn tick(&mut self, requests: u64) -> ControlFlow<()> {
        if self.unforeseen {
            self.bar.inc_length(requests);
        }
        self.bar.inc(requests);
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use indicatif::ProgressDrawTarget;

    use super::*;

    #[test]
    fn preparing_shows_in_all_clones() {
        let mut progress = Progress::of(ProgressBar::hidden());
        let mut other = progress.clone();
        let both = [&mut progress, &mut other].map(|ticker| ticker.prepare(65_536));
        assert_eq!(both, [ControlFlow::Continue(()); 2]);
        assert_eq!(progress.bar.message(), "; 131,072 pages to prepare");
    }

    #[test]
    fn what_is_not_foreseen_makes_the_bar_longer() {
        let progress = Progress::of(ProgressBar::with_draw_target(
            Some(100),
            ProgressDrawTarget::hidden(),
        ));
        let _ = progress.clone().tick(30);
        let _ = progress.unforeseen().tick(50);
        progress.lengthen(20);
        assert_eq!(
            (progress.bar.position(), progress.bar.length()),
            (80, Some(170))
        );
    }

    #[test]
    fn no_time_is_left_while_nothing_is_replayed() {
        assert_eq!(time_left(0, Duration::ZERO), "");
        assert_eq!(time_left(9, Duration::from_secs(5)), ", 5s left");
    }

    #[test]
    fn the_templates_are_ones() {
        for template in [RUNNING, BLOCKS] {
            assert!(ProgressStyle::with_template(template).is_ok());
        }
    }
}
