//! One run of an array from start to result.

use std::time::Instant;

use flashlore_array::timed::TimedStep;
use flashlore_delta::Page;
use flashlore_flash::{Lpn, Time};
use flashlore_trace::{Op, Request, RequestBlock, RequestSource, Summary};
use rustc_hash::FxHashMap;

use super::chains::Chains;
use super::contents::{Contents, HeldContent};
use super::report::{ArrayBaseline, report};
use super::setup::{Setup, set_up};
use crate::config::{RunConfig, UNIT_BYTES};
use crate::engine::driver::sender::Sender;
use crate::engine::error::RunError;
use crate::engine::measure::Measured;
use crate::engine::requests::{InFlight, SentBy};
use crate::engine::run::{
    REPORTED_REQUESTS, RunOptions, check_device, check_warmup, lengths, tick,
};
use crate::results::{RunOutput, RunSpeed, peak_rss_bytes};

/// One page read in so many is compared with what it should hold.
const VERIFIED_ONE_IN: u64 = 64;

/// Refuses a run of an array that cannot begin.
///
/// # Errors
/// A configuration that contradicts itself or does not fit the trace.
pub fn check(config: &RunConfig, summary: &Summary, has_pages: bool) -> Result<(), RunError> {
    check_device(&super::setup::ssd_config(config), None)?;
    config.check()?;
    check_warmup(config, summary)?;
    let system = || config.system.name.clone();
    let writes = summary.counts.writes.pages;
    if config.system.needs_bytes() && !has_pages {
        return Err(RunError::NoBytes { system: system() });
    }
    if config.system.array.kind.needs_content() && summary.content.pages_written < writes {
        return Err(match summary.has_content {
            true => RunError::WritesWithoutContent {
                system: system(),
                missing: writes - summary.content.pages_written,
                writes,
            },
            false => RunError::NoContent { system: system() },
        });
    }
    Ok(())
}

/// Simulates an array on a trace.
///
/// # Errors
/// As [`crate::engine::simulate`].
pub fn simulate(
    config: &RunConfig,
    source: &mut dyn RequestSource,
    options: RunOptions<'_>,
) -> Result<RunOutput, RunError> {
    check(config, source.summary(), options.pages.is_some())?;
    let begun = Instant::now();
    let mut progress = options.progress;
    let needs_bytes = config.system.needs_bytes();
    let contents = Contents::new(&config.system.name, options.pages, needs_bytes);
    let setup = set_up(config, source.summary(), &contents, progress.as_deref_mut())?;
    let (total, warmup) = lengths(config, source.summary());
    let replaying = Instant::now();
    let mut run = Run {
        contents,
        setup,
        measured: Measured::new(options.measure),
        sender: Sender::of_trace(config.host.load()),
        measured_from: 0,
        in_flight: FxHashMap::default(),
        chains: Chains::default(),
        heard: Vec::new(),
        is_measuring: false,
        pages: Pages::default(),
        latest: 0,
    };
    run.hear_nothing();
    let mut base = ArrayBaseline::of(&mut run.setup);
    let mut block = RequestBlock::default();
    source.rewind()?;
    let (mut done, mut unreported) = (0, 0);
    while done < total && source.next_block(&mut block)? {
        let here = (block.requests.len() as u64).min(total - done);
        for request in &block.requests[..here as usize] {
            if done == warmup {
                base = run.begin_measuring()?;
            }
            let sent = run.send(done, request, &block);
            sent.map_err(|source| RunError::OfArray {
                request: done + 1,
                source: Box::new(source),
            })?;
            done += 1;
            unreported += 1;
            if unreported == REPORTED_REQUESTS {
                tick(progress.as_deref_mut(), std::mem::take(&mut unreported))?;
            }
        }
    }
    tick(progress, unreported)?;
    run.finish()?;
    let span = run.latest.saturating_sub(base.time);
    let speed = RunSpeed {
        wall_s: begun.elapsed().as_secs_f64(),
        requests_per_s: done as f64 / replaying.elapsed().as_secs_f64(),
        simulated_s: span as f64 / 1e9,
        peak_rss_bytes: peak_rss_bytes(),
    };
    let mut measured = run.measured;
    measured
        .finish()
        .map_err(|source| RunError::Log { source })?;
    let counted = (&measured, &run.pages);
    let result = report(
        config,
        source.summary(),
        &mut run.setup,
        counted,
        &base,
        span,
        speed,
    );
    Ok(RunOutput {
        result,
        response: measured.response,
        timeline: measured.timeline,
        recovered: None,
    })
}

/// Pages that the host asked for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pages {
    pub read: u64,
    pub written: u64,
    pub trimmed: u64,
    /// Reads compared with what the page should hold.
    pub verified: u64,
}

/// A run under way.
struct Run<'a> {
    contents: Contents<'a>,
    setup: Setup<'a>,
    measured: Measured,
    sender: Sender,
    /// Nothing that is measured arrived before.
    measured_from: Time,
    /// Requests that wait for their answers, by number.
    in_flight: FxHashMap<u64, InFlight>,
    chains: Chains,
    heard: Vec<TimedStep>,
    is_measuring: bool,
    pages: Pages,
    /// When everything was done, or the latest answer so far.
    latest: Time,
}

impl Run<'_> {
    /// Forgets what the element did so far.
    fn hear_nothing(&mut self) {
        self.setup.listener.take(&mut self.heard);
    }

    /// Counting begins with the next request, when there is room for it.
    fn begin_measuring(&mut self) -> Result<ArrayBaseline, RunError> {
        self.setup.engine.wait_for_room()?;
        self.take_answers();
        self.is_measuring = true;
        self.pages = Pages::default();
        self.latest = self.setup.engine.now();
        self.measured_from = self.latest;
        self.setup.engine.devices_mut().0.ssd.begin_measuring();
        Ok(ArrayBaseline::of(&mut self.setup))
    }

    /// Carries a request out, and lets its steps begin when there is room for them.
    fn send(
        &mut self,
        number: u64,
        request: &Request,
        block: &RequestBlock,
    ) -> Result<(), RunError> {
        self.chains.clear();
        match request.op {
            Op::Flush => {
                self.chains.next_page();
                self.setup.made.element().flush()?;
                self.hear()?;
            }
            Op::Read | Op::Write | Op::Trim => {
                let values = block.content(request);
                for unit in 0..request.units {
                    self.chains.next_page();
                    if unit > 0 {
                        self.setup.made.element().continue_request();
                    }
                    let is_first = unit == 0 && request.head_partial;
                    let is_last = unit + 1 == request.units && request.tail_partial;
                    let value = values.map(|values| values[unit as usize]);
                    self.touch(
                        request.op,
                        Lpn(request.lpn + unit),
                        value,
                        is_first || is_last,
                    )?;
                }
            }
        }
        let arrival = match self.sender.arrival(request.time_ns) {
            Some(arrival) => arrival,
            None => self.turn()?.max(self.measured_from),
        };
        let in_flight = InFlight {
            arrival,
            start: arrival,
            end: arrival,
            left: 0,
            lpn: Lpn(request.lpn),
            units: request.units,
            number,
            op: request.op,
            measured: self.is_measuring,
            by: SentBy::Host,
        };
        if self.is_measuring {
            self.measured.arrive(arrival, request.op, request.units);
        }
        self.in_flight.insert(number, in_flight);
        let engine = &mut self.setup.engine;
        engine.begin(arrival, number, self.chains.all())?;
        self.take_answers();
        Ok(())
    }

    /// When the next request of a closed loop arrives. What is answered later gives later turns.
    fn turn(&mut self) -> Result<Time, RunError> {
        loop {
            if let Some(at) = self.sender.turn() {
                self.sender.take_turn();
                return Ok(at);
            }
            self.setup.engine.wait_for_room()?;
            self.take_answers();
        }
    }

    /// Asks the element for one page of a request.
    fn touch(
        &mut self,
        op: Op,
        lpn: Lpn,
        value: Option<u32>,
        is_partial: bool,
    ) -> Result<(), RunError> {
        let address = self.setup.machines.lba(lpn);
        let mut page: Page = [0; UNIT_BYTES as usize];
        match op {
            Op::Read => {
                self.setup.made.element().read(address, &mut page)?;
                self.pages.read += 1;
                if self.pages.read % VERIFIED_ONE_IN == 1 {
                    self.verify(lpn, &page)?;
                }
            }
            Op::Write => {
                if is_partial {
                    self.setup.made.element().read(address, &mut page)?;
                    self.setup.made.element().work_off();
                    self.setup.made.element().continue_request();
                    self.hear()?;
                }
                let held = value.map_or(HeldContent::Unknown, HeldContent::Value);
                self.contents.fill(lpn, held, &mut page)?;
                self.setup.made.element().write(address, &page)?;
                self.setup.held[lpn.index()] = held;
                self.pages.written += 1;
            }
            Op::Trim => {
                self.setup.made.element().trim(address)?;
                self.setup.held[lpn.index()] = HeldContent::Nothing;
                self.pages.trimmed += 1;
            }
            Op::Flush => return Ok(()),
        }
        // Behind the answer: it fails nobody's request, and the element counts what fails.
        self.setup.made.element().work_off();
        self.hear()
    }

    /// What the element did belongs to the page that is being asked for.
    fn hear(&mut self) -> Result<(), RunError> {
        self.setup.listener.take(&mut self.heard);
        if let Some(numbers) = &self.setup.numbers {
            numbers.hear(&self.heard)?;
        }
        self.chains.hear(&self.heard);
        Ok(())
    }

    /// Compares a page that was read with what it should hold.
    fn verify(&mut self, lpn: Lpn, found: &Page) -> Result<(), RunError> {
        let mut expected = [0; UNIT_BYTES as usize];
        let held = self.setup.held[lpn.index()];
        self.contents.fill(lpn, held, &mut expected)?;
        self.pages.verified += 1;
        if *found == expected {
            Ok(())
        } else {
            Err(RunError::WrongContent { lpn })
        }
    }

    fn take_answers(&mut self) {
        for ended in self.setup.engine.answers() {
            let Some(mut request) = self.in_flight.remove(&ended.tag) else {
                continue;
            };
            self.latest = self.latest.max(ended.at);
            self.sender.respond(ended.tag, ended.at);
            (request.start, request.end) = (ended.began, ended.at);
            if request.measured {
                self.measured.record(&request, 0);
            }
        }
    }

    /// Waits for all answers and for what goes on behind them: an array that put its work off is not done.
    fn finish(&mut self) -> Result<(), RunError> {
        self.latest = self.setup.engine.finish()?;
        self.take_answers();
        Ok(())
    }
}
