//! How far things are, on standard error and only when that is a terminal.

use std::io::{self, IsTerminal};
use std::time::Duration;

use flashlore_sim::engine::Ticker;
use indicatif::{ProgressBar, ProgressStyle};

/// Requests replayed of all runs together, with their rate and the time left.
const RUNNING: &str = "{elapsed_precise} {wide_bar} {human_pos}/{human_len} requests, \
                       {per_sec}, {eta} left{msg}";

/// A ticker of one phase; clones tick the same one. It disappears when it is finished.
#[derive(Clone)]
pub struct Progress(ProgressBar);

impl Progress {
    /// For a phase of unknown length.
    pub fn phase(what: &'static str) -> Self {
        let bar = Self::visible().map_or_else(ProgressBar::hidden, |()| ProgressBar::new_spinner());
        bar.set_message(what);
        bar.enable_steady_tick(Duration::from_millis(200));
        Self(bar)
    }

    /// For `requests` requests of `runs` runs.
    pub fn requests(requests: u64, runs: usize) -> Self {
        let bar = Self::visible().map_or_else(ProgressBar::hidden, |()| ProgressBar::new(requests));
        // A fixed text that the tests print.
        if let Ok(style) = ProgressStyle::with_template(RUNNING) {
            bar.set_style(style);
        }
        if runs > 1 {
            bar.set_message(format!(" ({runs} runs)"));
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Self(bar)
    }

    fn visible() -> Option<()> {
        io::stderr().is_terminal().then_some(())
    }

    /// Takes it off the screen.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}

impl Ticker for Progress {
    fn tick(&mut self, requests: u64) {
        self.0.inc(requests);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_is_one() {
        assert!(ProgressStyle::with_template(RUNNING).is_ok());
    }
}
