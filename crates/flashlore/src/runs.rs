//! Runs on all cores, their results in the order in which they were asked for.

use std::io::BufWriter;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use flashlore_sim::config::RunConfig;
use flashlore_sim::engine::{MeasureOptions, RunError, RunOptions, Ticker, check, simulate};
use flashlore_sim::results::RunOutput;
use flashlore_trace::{Existing, OutputFile, Stop};
use parking_lot::Mutex;

use crate::error::CliError;
use crate::input::Input;
use crate::progress::Progress;

#[derive(Clone)]
pub struct Job<'a> {
    pub input: &'a Input,
    pub config: RunConfig,
    /// By how much the seeds of the workload are raised.
    pub draw: u64,
}

/// What runs record besides their results.
pub struct Recording {
    /// Width of the buckets of a time line, in nanoseconds.
    pub timeline_ns: Option<u64>,
    /// The file for a line for every request; of a single run.
    pub request_log: Option<PathBuf>,
    /// What becomes of a file of its name.
    pub existing: Existing,
    /// Instants of the window of old versions that are compared with what was written.
    pub recovery_check: Option<u32>,
    /// Ends the reading of traces; a ticker ends the runs.
    pub stop: Stop,
}

impl Default for Recording {
    fn default() -> Self {
        Recording {
            timeline_ns: None,
            request_log: None,
            existing: Existing::Refuse,
            recovery_check: None,
            stop: Stop::default(),
        }
    }
}

/// Does all runs. Whatever can be refused is refused before the first begins.
///
/// # Errors
/// The first run, in the order given, that cannot begin or go on; a log that cannot be written.
pub fn run_all(
    jobs: &[Job],
    threads: NonZeroUsize,
    recording: &Recording,
) -> Result<Vec<RunOutput>, CliError> {
    run_told(jobs, threads, recording, Progress::requests)
}

/// As [`run_all`], and a ticker of the caller's is told how far the runs are and may stop them. It is made of the
/// number of requests and of runs; each run has a clone of it.
///
/// # Errors
/// As [`run_all`], and [`RunError::Interrupted`] of a run that was stopped.
pub fn run_told<T: Ticker + Clone + Sync>(
    jobs: &[Job],
    threads: NonZeroUsize,
    recording: &Recording,
    ticker: impl FnOnce(u64, usize) -> T,
) -> Result<Vec<RunOutput>, CliError> {
    for job in jobs {
        job.check()?;
    }
    if recording.request_log.is_some() && jobs.len() != 1 {
        return Err(CliError::Usage(format!(
            "--request-log records one run, found {}: name one trace, one system and one seed",
            jobs.len()
        )));
    }
    if let Some(path) = &recording.request_log {
        recording.existing.check_file(path)?;
    }
    let requests = jobs.iter().map(Job::requests).sum();
    let ticker = ticker(requests, jobs.len());
    in_parallel(jobs, threads, |job| job.run(recording, ticker.clone()))
}

impl Job<'_> {
    fn check(&self) -> Result<(), CliError> {
        if self.config.system.needs_bytes()
            && let Some(why) = self.input.why_no_pages()
        {
            return Err(CliError::Usage(format!(
                "{} on system {}, which needs the bytes of pages: {why}",
                self.input.name(),
                self.config.system.name
            )));
        }
        check(&self.config, self.input.summary(), self.input.pages())
            .map_err(|source| self.failed(source))
    }

    fn run(&self, recording: &Recording, mut ticker: impl Ticker) -> Result<RunOutput, CliError> {
        let mut measure = MeasureOptions {
            timeline_ns: recording.timeline_ns,
            request_log: None,
        };
        let redrawn = self.input.redrawn(self.draw, &recording.stop)?;
        let input = redrawn.as_ref().unwrap_or(self.input);
        let log = recording.request_log.as_ref();
        let log = log.map(|path| OutputFile::create(path, recording.existing));
        let log = log.transpose()?;
        if let Some(log) = &log {
            measure.request_log = Some(Box::new(BufWriter::new(log.handle()?)));
        }
        let options = RunOptions {
            measure,
            progress: Some(&mut ticker),
            recovery_check: recording.recovery_check,
            pages: input.pages(),
        };
        let mut source = input.source(&recording.stop)?;
        let output = simulate(&self.config, source.as_mut(), options);
        let output = output.map_err(|source| match (source, &log) {
            (RunError::Log { source }, Some(log)) => log.failed(source).into(),
            (source, _) => self.failed(source),
        })?;
        log.map(OutputFile::complete).transpose()?;
        let mut output = output;
        if redrawn.is_some() {
            output.result.is_drawn_from(self.input.summary());
        }
        Ok(output)
    }

    fn requests(&self) -> u64 {
        let limit = self.config.host.limit.unwrap_or(u64::MAX);
        self.input.summary().requests.min(limit)
    }

    fn failed(&self, source: RunError) -> CliError {
        CliError::Run {
            trace: self.input.name(),
            system: self.config.system.name.clone(),
            source: Box::new(source),
        }
    }
}

/// Applies `work` to every item, `threads` at a time and in order; no item is begun after a failure.
///
/// # Errors
/// The failure of the first item that fails. It does not depend on the threads: items before it have
/// all been begun, and are waited for.
pub fn in_parallel<I: Sync, T: Send, E: Send>(
    items: &[I],
    threads: NonZeroUsize,
    work: impl Fn(&I) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let done: Mutex<Vec<(usize, Result<T, E>)>> = Mutex::new(Vec::with_capacity(items.len()));
    thread::scope(|scope| {
        for _ in 0..threads.get().min(items.len()) {
            scope.spawn(|| {
                while !failed.load(Ordering::Relaxed) {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(at) else { break };
                    let result = work(item);
                    failed.fetch_or(result.is_err(), Ordering::Relaxed);
                    done.lock().push((at, result));
                }
            });
        }
    });
    let mut done = done.into_inner();
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// The cores there are, or as many as asked for.
pub fn threads(asked: Option<NonZeroUsize>) -> NonZeroUsize {
    asked
        .or_else(|| thread::available_parallelism().ok())
        .unwrap_or(NonZeroUsize::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_their_order_and_the_first_failure_wins() {
        let items: Vec<u64> = (0..200).collect();
        for threads in [1, 2, 7] {
            let threads = NonZeroUsize::new(threads).unwrap();
            let slow = |&item: &u64| {
                // The earlier, the slower.
                thread::sleep(std::time::Duration::from_micros(200 - item));
                Ok::<u64, u64>(item * item)
            };
            let squares: Vec<u64> = items.iter().map(|item| item * item).collect();
            assert_eq!(in_parallel(&items, threads, slow), Ok(squares));
            let failing = |&item: &u64| {
                thread::sleep(std::time::Duration::from_micros(200 - item));
                if item % 50 == 49 { Err(item) } else { Ok(item) }
            };
            assert_eq!(in_parallel(&items, threads, failing), Err(49));
        }
        let none: [u64; 0] = [];
        assert_eq!(
            in_parallel(&none, NonZeroUsize::MIN, |_| Ok::<u64, u64>(0)),
            Ok(vec![])
        );
    }
}
