//! One run from start to result: prepare the device, replay, warm up, measure, report.

use std::num::NonZeroU32;
use std::ops::{ControlFlow, DerefMut};
use std::time::Instant;

use flashlore_ftl::FtlError;
use flashlore_trace::{PageSource, RequestBlock, RequestSource, Summary};

use super::array;
use super::build;
use super::devices::{UseDevice, with_device};
use super::driver::{DriveError, Driver, HostOptions};
use super::error::RunError;
use super::measure::{MeasureOptions, Measured};
use super::precondition::{Written, prepare};
use super::recovery::Truth;
use super::report::{Buffered, DeviceBaseline, begin, report};
use super::system::System;
use crate::config::{Bytes, Entries, RunConfig, Sampling, UNIT_BYTES};
use crate::results::{RunOutput, RunSpeed, peak_rss_bytes};

/// Requests between two reports of progress: a run that is to stop does so within a fraction of a second.
pub(super) const REPORTED_REQUESTS: u64 = 1 << 10;

/// What a run does besides simulating.
#[derive(Default)]
pub struct RunOptions<'a> {
    /// What to record besides latencies.
    pub measure: MeasureOptions,
    /// Told now and then how far the run is.
    pub progress: Option<&'a mut dyn Ticker>,
    /// Compare so many instants of the window with what the host had written by then.
    pub recovery_check: Option<u32>,
    /// The bytes of the trace's values, for systems that encode them.
    pub pages: Option<&'a dyn PageSource>,
}

/// Told how far a run is, and asked whether it goes on: a run that is to stop fails with
/// [`RunError::Interrupted`].
pub trait Ticker {
    /// So many more pages were written while the device is prepared.
    fn prepare(&mut self, pages: u64) -> ControlFlow<()>;

    /// So many more requests are done.
    fn tick(&mut self, requests: u64) -> ControlFlow<()>;
}

/// Reports requests that are done.
///
/// # Errors
/// The run is to stop.
pub(super) fn tick(ticker: Option<&mut (dyn Ticker + '_)>, requests: u64) -> Result<(), RunError> {
    match ticker.map(|ticker| ticker.tick(requests)) {
        Some(ControlFlow::Break(())) => Err(RunError::Interrupted),
        Some(ControlFlow::Continue(())) | None => Ok(()),
    }
}

/// Reports pages written while a device is prepared.
///
/// # Errors
/// The run is to stop.
pub(super) fn prepared(ticker: Option<&mut (dyn Ticker + '_)>, pages: u64) -> Result<(), RunError> {
    match ticker.map(|ticker| ticker.prepare(pages)) {
        Some(ControlFlow::Break(())) => Err(RunError::Interrupted),
        Some(ControlFlow::Continue(())) | None => Ok(()),
    }
}

/// Simulates a configuration on a trace. The source is asked for whole blocks of requests, so what is
/// behind it costs nothing; its type is open so that a replay is compiled once.
///
/// # Errors
/// A configuration that contradicts itself or does not fit the trace, a trace that cannot be read, a
/// device that runs full, a ticker that stops the run.
pub fn simulate(
    config: &RunConfig,
    source: &mut dyn RequestSource,
    options: RunOptions<'_>,
) -> Result<RunOutput, RunError> {
    if config.system.array.is_some() {
        return array::simulate(config, source, options);
    }
    check(config, source.summary(), options.pages)?;
    let pages = options.pages;
    let replay = Replay {
        config,
        source,
        options,
    };
    with_device(config, pages, replay)
}

/// Refuses a run that cannot begin, without beginning it.
///
/// # Errors
/// A configuration that contradicts itself or does not fit the trace.
pub fn check(
    config: &RunConfig,
    summary: &Summary,
    pages: Option<&dyn PageSource>,
) -> Result<(), RunError> {
    if config.system.array.is_some() {
        return array::check(config, summary, pages.is_some());
    }
    config.check()?;
    let device = &config.device;
    let exported = device.shape()?.exported_units;
    if summary.lpn_count > exported {
        return Err(RunError::TooSmall {
            device: device.name.clone(),
            exported,
            last: summary.lpn_count - 1,
        });
    }
    check_warmup(config, summary)?;
    let writes = summary.counts.writes.pages > 0;
    check_model_of_map(config)?;
    check_lengths(config, summary, pages)?;
    if !config.system.dedup.enabled {
        return Ok(());
    }
    if writes && !summary.has_content {
        return Err(RunError::NoContent {
            system: config.system.name.clone(),
        });
    }
    check_out_of_band(config)
}

/// Refuses a warm-up that takes every request.
pub(super) fn check_warmup(config: &RunConfig, summary: &Summary) -> Result<(), RunError> {
    match lengths(config, summary) {
        (total, warmup) if warmup == total => Err(RunError::AllWarmup {
            share: config.host.warmup,
            requests: total,
        }),
        _ => Ok(()),
    }
}

/// Refuses a device and a system that no requests could be sent to.
///
/// # Errors
/// A configuration that contradicts itself, or bytes of pages that are needed and not known.
pub(super) fn check_device(
    config: &RunConfig,
    pages: Option<&dyn PageSource>,
) -> Result<(), RunError> {
    config.check()?;
    check_model_of_map(config)?;
    if config.system.needs_bytes() && pages.is_none() {
        let system = config.system.name.clone();
        return Err(RunError::NoBytes { system });
    }
    match config.system.dedup.enabled {
        true => check_out_of_band(config),
        false => Ok(()),
    }
}

/// Refuses a system whose tables a map partly in RAM does not model.
fn check_model_of_map(config: &RunConfig) -> Result<(), RunError> {
    let (device, system) = (config.device.name.clone(), config.system.name.clone());
    let limited = !matches!(config.device.map.cache_bytes, Bytes::Unlimited);
    let journals = config.device.map.journal_pages.0 > 0;
    if (limited || journals) && config.system.keeps_parities() {
        return Err(RunError::MapOfParities { device, system });
    }
    if limited
        && config.system.delta.enabled
        && config.system.delta.counted_pages != Entries::Unlimited
    {
        return Err(RunError::CountsApart { device, system });
    }
    Ok(())
}

/// Refuses a run whose encoded values would have no length.
fn check_lengths(
    config: &RunConfig,
    summary: &Summary,
    pages: Option<&dyn PageSource>,
) -> Result<(), RunError> {
    let writes = summary.counts.writes.pages;
    let system = || config.system.name.clone();
    if config.system.needs_ratios() && summary.rated_pages < writes {
        return Err(RunError::NoRatios {
            system: system(),
            missing: writes - summary.rated_pages,
            writes,
        });
    }
    if !config.system.needs_bytes() {
        return Ok(());
    }
    let pages = pages.ok_or_else(|| RunError::NoBytes { system: system() })?;
    let missing = writes.saturating_sub(summary.content.pages_written);
    if missing > 0 {
        return Err(RunError::WritesWithoutContent {
            system: system(),
            missing,
            writes,
        });
    }
    // Values of units that are written in part come last.
    let mut last = [0; UNIT_BYTES as usize];
    match summary.value_ids.checked_sub(1) {
        Some(value) if !pages.fill(value, &mut last) => Err(RunError::UnknownBytes {
            system: system(),
            value,
        }),
        _ => Ok(()),
    }
}

/// How many requests are replayed, and how many of them warm up.
pub(super) fn lengths(config: &RunConfig, summary: &Summary) -> (u64, u64) {
    let total = summary.requests.min(config.host.limit.unwrap_or(u64::MAX));
    let warmup = (total as f64 * config.host.warmup.get()).round() as u64;
    (total, warmup)
}

/// The paper keeps the digest of every page in its out-of-band area; 0 bytes there means unstated.
fn check_out_of_band(config: &RunConfig) -> Result<(), RunError> {
    let geometry = &config.device.geometry;
    let found = geometry.oob_size.0 * UNIT_BYTES / geometry.page_size.0;
    let needed = config.system.dedup.digest.bytes();
    if geometry.oob_size.0 > 0 && found < needed {
        return Err(RunError::OutOfBand {
            device: config.device.name.clone(),
            system: config.system.name.clone(),
            found,
            needed,
        });
    }
    Ok(())
}

/// How the host and the buffer of a device behave.
pub(super) fn host_of(config: &RunConfig) -> HostOptions {
    let timing = &config.device.timing;
    let dedup = &config.system.dedup;
    HostOptions {
        load: config.host.load(),
        link_request: timing.host_request.0,
        link_sector: timing.host_sector.0,
        hash: build::hash_time(&config.system),
        sampling: match dedup.sampling {
            Sampling::Off => None,
            Sampling::Request => NonZeroU32::new(dedup.sampling_unit.0 as u32),
        },
        out_of_line: dedup.out_of_line,
        flush_after: timing.flush_after.0,
        buffering: build::buffering_options(config),
        read_cache: build::read_cache_options(config),
        read_order: config.device.reads.order,
        needs_content: dedup.enabled || config.system.needs_bytes(),
        codec: build::codec_times(&config.system),
        record: build::record_time(&config.system),
    }
}

/// A replay of a trace, once there is a device for it.
struct Replay<'r, 'o> {
    config: &'r RunConfig,
    source: &'r mut dyn RequestSource,
    options: RunOptions<'o>,
}

impl<'a> UseDevice<'a> for Replay<'_, '_> {
    type Output = RunOutput;

    fn with<S: System + 'a>(self, system: S) -> Result<RunOutput, RunError> {
        replay(self.config, self.source, Box::new(system), self.options)
    }
}

/// Prepares the device and replays the trace on it.
fn replay<S: System>(
    config: &RunConfig,
    source: &mut dyn RequestSource,
    mut system: Box<S>,
    options: RunOptions<'_>,
) -> Result<RunOutput, RunError> {
    let begun = Instant::now();
    let mut progress = options.progress;
    let summary = source.summary();
    prepare(
        &mut *system,
        config,
        &|| Box::new(summary.prefill_units()),
        Written::new(progress.as_deref_mut()),
    )?;
    let (total, warmup) = lengths(config, source.summary());
    let replaying = Instant::now();
    let measured = Measured::new(options.measure);
    let mut driver = Driver::of_trace(system, host_of(config), measured);
    let pages = config.device.shape()?.exported_units as u32;
    let truth = options
        .recovery_check
        .map(|_| Truth::of(driver.system(), pages));
    driver.begin_history(truth);
    let mut base = DeviceBaseline::default();
    let mut block = RequestBlock::default();
    source.rewind()?;
    let mut done = 0;
    if warmup == 0 {
        base = begin(&mut driver);
    }
    while done < total && source.next_block(&mut block)? {
        let here = (block.requests.len() as u64).min(total - done);
        let mut first = 0;
        while first < here {
            // The block is cut where warm-up ends, and where progress is reported.
            let left = warmup.checked_sub(done).filter(|&left| left > 0);
            let end = here.min(first + left.unwrap_or(u64::MAX).min(REPORTED_REQUESTS));
            driver
                .replay(&block, first as usize, end as usize)
                .map_err(|source| refused(config, &mut driver, &base, source))?;
            done += end - first;
            if done == warmup {
                base = begin(&mut driver);
            }
            tick(progress.as_deref_mut(), end - first)?;
            first = end;
        }
    }
    driver
        .drain()
        .map_err(|source| refused(config, &mut driver, &base, source))?;
    let span = driver
        .last_end()
        .max(driver.now())
        .saturating_sub(base.time);
    let (truth, now) = (driver.take_truth(), driver.now());
    let replay_s = replaying.elapsed().as_secs_f64();
    let buffering = Buffered::of(&driver);
    let (mut system, mut measured) = driver.into_parts();
    measured.finish().map_err(|e| RunError::Log { source: e })?;
    let speed = RunSpeed {
        wall_s: begun.elapsed().as_secs_f64(),
        requests_per_s: done as f64 / replay_s,
        simulated_s: span as f64 / 1e9,
        peak_rss_bytes: peak_rss_bytes(),
    };
    let counted = (&measured, &buffering);
    let summary = source.summary();
    let mut output = RunOutput {
        result: report(config, summary, &*system, counted, &base, span, speed),
        response: measured.response,
        timeline: measured.timeline,
        recovered: None,
    };
    // The rewinds are not part of the run.
    if let (Some(truth), Some(instants)) = (truth, options.recovery_check) {
        let checked = truth.verify(&mut *system, now, instants, config.host.seed);
        output.recovered = Some(checked.map_err(|source| RunError::Recovery { source })?);
    }
    Ok(output)
}

/// A request that the device cannot serve, or the end of its life.
fn refused<S: System, D: DerefMut<Target = S>>(
    config: &RunConfig,
    driver: &mut Driver<D>,
    base: &DeviceBaseline,
    source: DriveError,
) -> RunError {
    let request = driver.number();
    let DriveError::Device(FtlError::WornOut {
        retired, blocks, ..
    }) = source
    else {
        return RunError::Request { request, source };
    };
    let seconds = driver.now() as f64 / 1e9;
    let written = base.written + driver.host_writes();
    RunError::WornOut {
        device: config.device.name.clone(),
        request,
        bytes: written * UNIT_BYTES,
        seconds,
        retired,
        blocks,
    }
}
