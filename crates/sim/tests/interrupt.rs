//! A ticker is told of every request, changes nothing, and stops a run wherever it is.

use crate::common;

use std::ops::ControlFlow;

use common::{Uniform, config};
use flashlore_sim::config::RunConfig;
use flashlore_sim::engine::{RunError, RunOptions, Ticker, simulate};
use flashlore_sim::results::RunOutput;

/// Counts, and stops after so much of both.
#[derive(Debug, Default)]
struct Counter {
    pages: u64,
    requests: u64,
    most_pages: Option<u64>,
    most_requests: Option<u64>,
}

impl Counter {
    fn goes_on(&self) -> ControlFlow<()> {
        let over = |count, most: Option<u64>| most.is_some_and(|most| count >= most);
        match over(self.pages, self.most_pages) || over(self.requests, self.most_requests) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

impl Ticker for Counter {
    fn prepare(&mut self, pages: u64) -> ControlFlow<()> {
        self.pages += pages;
        self.goes_on()
    }

    fn tick(&mut self, requests: u64) -> ControlFlow<()> {
        self.requests += requests;
        self.goes_on()
    }
}

const REQUESTS: u64 = 20_000;

fn run(config: &RunConfig, counter: Option<&mut Counter>) -> Result<RunOutput, RunError> {
    let mut trace = Uniform::new(REQUESTS, 10_000, 4, 3_000);
    let options = RunOptions {
        progress: counter.map(|counter| counter as &mut dyn Ticker),
        ..RunOptions::default()
    };
    simulate(config, &mut trace, options)
}

#[test]
fn a_ticker_hears_of_every_request_and_changes_nothing() {
    // Warm-up ends within a stretch between two reports.
    let warmup = ["host.warmup=0.3333", "device.precondition.fill=1.0"];
    for system in ["plain", "ca-ssd"] {
        let config = config("ca-ssd-4g", system, &warmup);
        let mut counter = Counter::default();
        let told = run(&config, Some(&mut counter)).unwrap().result;
        let untold = run(&config, None).unwrap().result;
        assert_eq!(counter.requests, REQUESTS);
        assert!(counter.pages > 0);
        assert_eq!(told.host.requests, REQUESTS - 6_666);
        assert_eq!(
            (told.host, told.flash, told.response_us),
            (untold.host, untold.flash, untold.response_us)
        );
    }
}

#[test]
fn a_run_stops_where_it_is_told_to() {
    for (system, settings) in [
        ("plain", &["device.precondition.fill=1.0"][..]),
        ("ca-ssd", &["device.precondition.fill=1.0"][..]),
        ("raid0", &[][..]),
    ] {
        let config = config("ca-ssd-4g", system, settings);
        let mut counter = Counter {
            most_requests: Some(REQUESTS / 2),
            ..Counter::default()
        };
        let stopped = run(&config, Some(&mut counter));
        assert!(matches!(stopped, Err(RunError::Interrupted)), "{system}");
        // Soon after.
        assert!(counter.requests < REQUESTS / 2 + 2_000, "{system}");
    }
}

#[test]
fn a_device_being_prepared_is_left() {
    for (system, settings) in [
        ("plain", &["device.precondition.fill=1.0"][..]),
        ("plain", &["device.precondition.overwrite=steady"][..]),
        // The SSD of an array is filled before the run of the array.
        ("pure-ssd", &["device.precondition.overwrite=steady"][..]),
    ] {
        let config = config("ca-ssd-4g", system, settings);
        let mut counter = Counter {
            most_pages: Some(200_000),
            ..Counter::default()
        };
        let stopped = run(&config, Some(&mut counter));
        assert!(matches!(stopped, Err(RunError::Interrupted)), "{system}");
        assert_eq!(counter.requests, 0);
        assert!(counter.pages < 300_000, "{system}");
    }
}
