//! One run from start to result: prepare the device, replay, warm up, measure, report.

use std::num::NonZeroU32;
use std::time::Instant;

use flashlore_content::dedup::paper_bytes;
use flashlore_content::history::{PAPER_ENTRY_BYTES, protection_window};
use flashlore_content::{Ledger, NoCensus, NoEncoder, PageTag, ValueLedger};
use flashlore_flash::Time;
use flashlore_flash::sim::{Busy, NandSim};
use flashlore_ftl::error::OptionsError;
use flashlore_ftl::map_cache::CacheOptions;
use flashlore_ftl::{Counters, FtlError, FtlOptions, Policies};
use flashlore_trace::{PageSource, RequestBlock, RequestSource, Summary};

use super::build;
use super::driver::{DriveError, Driver, Host};
use super::error::RunError;
use super::front::Traffic;
use super::measure::{MeasureOptions, Measured};
use super::precondition::{Written, prepare};
use super::recovery::Truth;
use super::system::{Deduplicating, EncodingTotals, HistoryTotals, Plain, System};
use super::trap::Trap;
use crate::config::{Bytes, Entries, RunConfig, Sampling, UNIT_BYTES, config_hash};
use crate::results::{
    BufferTraffic, CacheTraffic, Compress, Dedup, Delta, EraseSpread, Flash, Gc, History,
    Host as HostTotals, MapTraffic, Merges, Programs, QueueTraffic, ResponseByKind, RunOutput,
    RunResult, RunSpeed, Similar, TraceFile, Utilization, peak_rss_bytes,
};

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

/// Told how far a run is.
pub trait Ticker {
    /// So many more pages were written while the device is prepared.
    fn prepare(&mut self, pages: u64);

    /// So many more requests are done.
    fn tick(&mut self, requests: u64);
}

/// Simulates a configuration on a trace. The source is asked for whole blocks of requests, so what is
/// behind it costs nothing; its type is open so that a replay is compiled once.
///
/// # Errors
/// A configuration that contradicts itself or does not fit the trace, a trace that cannot be read, a
/// device that runs full.
pub fn simulate(
    config: &RunConfig,
    source: &mut dyn RequestSource,
    options: RunOptions<'_>,
) -> Result<RunOutput, RunError> {
    check(config, source.summary(), options.pages)?;
    let device = &config.device;
    let dedup = &config.system.dedup;
    let seed = config.host.seed;
    let flash = build::flash(device)?;
    let mut ftl = build::ftl_options(device, seed)?;
    ftl.collect.sealed_before_window = build::prefers_old_blocks(&config.system);
    let refused = |source: OptionsError| RunError::Options {
        device: device.name.clone(),
        source,
    };
    let cache = build::cache_options(&config.system, device);
    if config.system.keeps_parities()
        && let Some(versions) = build::versions_options(&config.system, device)?
    {
        let encoder = build::lengths(&config.system, seed, options.pages)?;
        let mut system = Trap::new(flash, ftl, versions, encoder).map_err(refused)?;
        return replay(config, source, &mut system, options);
    }
    if config.system.encodes() || config.system.history.enabled {
        let (delta, encoder) = build::delta_options(&config.system, device, seed, options.pages)?;
        let policies = Policies {
            dedup: build::dedup_options(&config.system, device),
            delta,
            versions: build::versions_options(&config.system, device)?,
            encoder,
        };
        let ledger = dedup.oracle.then(ValueLedger::default);
        return match cache {
            None => {
                let system = Deduplicating::with_policies(flash, ftl, policies, ledger);
                let system = system.map_err(refused)?;
                replay(
                    config,
                    source,
                    &mut system.with_prefetch(dedup.prefetch),
                    options,
                )
            }
            Some(cache) => {
                let system = Deduplicating::on_demand(flash, ftl, policies, ledger, cache);
                let system = system.map_err(refused)?;
                replay(
                    config,
                    source,
                    &mut system.with_prefetch(dedup.prefetch),
                    options,
                )
            }
        };
    }
    if !dedup.enabled {
        return match cache {
            None => {
                let mut system = Plain::new(flash, ftl).map_err(refused)?;
                replay(config, source, &mut system, options)
            }
            Some(cache) => {
                let mut system = Plain::on_demand(flash, ftl, cache).map_err(refused)?;
                replay(config, source, &mut system, options)
            }
        };
    }
    if dedup.oracle {
        let ledger = ValueLedger::default();
        deduplicate(config, source, (flash, ftl), cache, ledger, options)
    } else {
        let ledger: NoCensus = NoCensus;
        deduplicate(config, source, (flash, ftl), cache, ledger, options)
    }
}

/// Simulates a deduplicating device, with or without somebody who names programs.
fn deduplicate<L: Ledger<PageTag>>(
    config: &RunConfig,
    source: &mut dyn RequestSource,
    (flash, ftl): (NandSim, FtlOptions),
    cache: Option<CacheOptions>,
    ledger: L,
    options: RunOptions<'_>,
) -> Result<RunOutput, RunError> {
    let policy = build::dedup_options(&config.system, &config.device);
    let degree = config.system.dedup.prefetch;
    let refused = |source: OptionsError| RunError::Options {
        device: config.device.name.clone(),
        source,
    };
    match cache {
        None => {
            let system = Deduplicating::new(flash, ftl, policy, ledger).map_err(refused)?;
            replay(config, source, &mut system.with_prefetch(degree), options)
        }
        Some(cache) => {
            let policies = Policies {
                dedup: policy,
                delta: None,
                versions: None,
                encoder: NoEncoder,
            };
            let system = Deduplicating::on_demand(flash, ftl, policies, ledger, cache);
            let system = system.map_err(refused)?;
            replay(config, source, &mut system.with_prefetch(degree), options)
        }
    }
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
    let (total, warmup) = lengths(config, summary);
    if warmup == total {
        return Err(RunError::AllWarmup {
            share: config.host.warmup,
            requests: total,
        });
    }
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
fn lengths(config: &RunConfig, summary: &Summary) -> (u64, u64) {
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

fn host_of(config: &RunConfig) -> Host {
    let timing = &config.device.timing;
    let dedup = &config.system.dedup;
    Host {
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
        front: build::front_options(config),
        read_cache: build::read_cache_options(config),
        needs_content: dedup.enabled || config.system.needs_bytes(),
        codec: build::codec_times(&config.system),
        record: build::record_time(&config.system),
    }
}

/// Prepares the device and replays the trace on it.
fn replay<S: System>(
    config: &RunConfig,
    source: &mut dyn RequestSource,
    system: &mut S,
    options: RunOptions<'_>,
) -> Result<RunOutput, RunError> {
    let begun = Instant::now();
    let mut progress = options.progress;
    prepare(
        system,
        config,
        source.summary(),
        Written::new(progress.as_deref_mut()),
    )?;
    let (total, warmup) = lengths(config, source.summary());
    let endurance = config.device.geometry.endurance;
    system.core_mut().set_endurance(endurance);
    let replaying = Instant::now();
    let mut driver = Driver::new(system, host_of(config), Measured::new(options.measure));
    let pages = config.device.shape()?.exported_units as u32;
    let truth = options
        .recovery_check
        .map(|_| Truth::of(driver.system(), pages));
    driver.begin_history(truth);
    let mut base = Base::default();
    let mut block = RequestBlock::default();
    source.rewind()?;
    let mut done = 0;
    if warmup == 0 {
        base = begin(&mut driver);
    }
    while done < total && source.next_block(&mut block)? {
        let here = (block.requests.len() as u64).min(total - done);
        // The block is cut where warm-up ends.
        let cut = warmup.saturating_sub(done).min(here);
        for (first, end) in [(0, cut), (cut, here)] {
            if first == end {
                continue;
            }
            driver
                .replay(&block, first as usize, end as usize)
                .map_err(|source| refused(config, &mut driver, &base, source))?;
            if done + end == warmup {
                base = begin(&mut driver);
            }
        }
        done += here;
        if let Some(ticker) = progress.as_deref_mut() {
            ticker.tick(here);
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
    let front = AtTheFront {
        writes: driver.host_writes(),
        reads: driver.host_reads(),
        traffic: driver.traffic(),
        cached: driver.cache_traffic(),
    };
    let mut measured = driver.measured;
    measured.finish().map_err(|e| RunError::Log { source: e })?;
    let speed = RunSpeed {
        wall_s: begun.elapsed().as_secs_f64(),
        requests_per_s: done as f64 / replay_s,
        simulated_s: span as f64 / 1e9,
        peak_rss_bytes: peak_rss_bytes(),
    };
    let counted = (measured, front);
    let mut output = report(config, source, system, counted, &base, span, speed);
    // The returns are not part of the run.
    if let (Some(truth), Some(instants)) = (truth, options.recovery_check) {
        let checked = truth.verify(system, now, instants, config.host.seed);
        output.recovered = Some(checked.map_err(|source| RunError::Recovery { source })?);
    }
    Ok(output)
}

/// Where the device stood when measuring began.
#[derive(Default)]
struct Base {
    time: Time,
    /// Units the host had written.
    written: u64,
    erases: Vec<u32>,
    busy: Option<Busy>,
}

/// What the host asked of the device, wherever it was served.
struct AtTheFront {
    writes: u64,
    reads: u64,
    traffic: Option<Traffic>,
    cached: CacheTraffic,
}

impl AtTheFront {
    fn buffer(&self) -> BufferTraffic {
        match self.traffic {
            Some(Traffic::Buffer(counted)) => counted,
            Some(Traffic::Queue(_)) | None => BufferTraffic::default(),
        }
    }

    fn queue(&self) -> QueueTraffic {
        match self.traffic {
            Some(Traffic::Queue(counted)) => counted,
            Some(Traffic::Buffer(_)) | None => QueueTraffic::default(),
        }
    }
}

fn begin<S: System>(driver: &mut Driver<'_, S>) -> Base {
    let written = driver.host_writes();
    driver.begin_measuring();
    let time = driver.now();
    let system = driver.system();
    system.restart_counters();
    let core = system.core();
    Base {
        time,
        written,
        erases: core.blocks().records().iter().map(|b| b.erases).collect(),
        busy: Some(core.flash().busy()),
    }
}

/// A request that the device cannot serve, or the end of its life.
fn refused<S: System>(
    config: &RunConfig,
    driver: &mut Driver<'_, S>,
    base: &Base,
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

fn report<S: System>(
    config: &RunConfig,
    source: &dyn RequestSource,
    system: &S,
    (measured, front): (Measured, AtTheFront),
    base: &Base,
    span: Time,
    run: RunSpeed,
) -> RunOutput {
    let core = system.core();
    let c = core.counters();
    let census = system.census();
    let programs = Programs {
        host: c.programs_host,
        packed: c.programs_log,
        merge: c.programs_merge,
        unique: census.map(|n| n.unique),
        duplicate: census.map(|n| n.duplicate),
        reborn: census.map(|n| n.reborn),
        gc: c.programs_gc,
        wear: c.programs_wear,
        map: c.programs_summary + c.programs_map,
        padding: c.programs_padding,
    };
    let digest = config.system.dedup.digest.bytes();
    let dedup = system
        .dedup()
        .filter(|_| config.system.dedup.enabled)
        .map_or(Dedup::default(), |(d, entries)| Dedup {
            hits: d.hits,
            misses: d.misses,
            silent: d.silent,
            evictions: d.evictions,
            entries,
            paper_bytes: paper_bytes(entries, digest),
            collisions: d.collisions + d.corrupted,
            bypassed: d.unhashed,
            unsampled: d.unsampled,
            scanned: d.scanned,
            scan_duplicates: d.scan_duplicates,
            looked_up: system.prefetch().looked_up,
            restored: system.prefetch().restored,
        });
    let energy = &config.device.energy;
    let units_read = c.page_reads() - c.page_reads_gc + c.programs_gc + c.programs_wear;
    let energy_uj = energy.read_uj * units_read as f64
        + energy.program_uj * c.programs() as f64
        + energy.erase_uj * c.erases as f64;
    let erases = core.blocks().records().iter().zip(&base.erases);
    let summary = source.summary();
    let result = RunResult {
        system: config.system.name.clone(),
        device: config.device.name.clone(),
        trace: trace_name(summary),
        seed: config.host.seed,
        config_hash: config_hash(config),
        version: env!("CARGO_PKG_VERSION").to_string(),
        trace_files: summary.inputs.iter().map(TraceFile::of).collect(),
        workload: summary.options.clone(),
        host: HostTotals {
            requests: measured.requests,
            read_pages: front.reads,
            write_pages: front.writes,
            trim_pages: c.host_trims,
            bytes: measured.bytes,
        },
        flash: Flash {
            page_reads: c.page_reads(),
            page_programs: c.page_programs,
            block_erases: c.erases,
            retired_blocks: c.retired,
        },
        waf_total: programs.waf_total(front.writes),
        waf_gc: programs.waf_gc(),
        programs,
        gc: Gc {
            log_victims: c.log_victims,
            ..Gc::of(&c.valid_per_victim)
        },
        map: MapTraffic {
            hits: c.map_hits,
            misses: c.map_misses,
            reads: c.page_reads_map,
            programs: c.programs_map,
            journal_programs: c.programs_journal,
            folds: c.map_folds,
        },
        buffer: front.buffer(),
        read_cache: front.cached,
        queue: front.queue(),
        dedup,
        history: system.history().map_or(History::default(), |totals| {
            history_of(&totals, base.time + span, &programs, span)
        }),
        delta: system
            .delta()
            .map_or(Delta::default(), |totals| delta_of(&totals, c)),
        compress: system
            .delta()
            .map_or(Compress::default(), |totals| compress_of(&totals)),
        response_us: ResponseByKind::of(&measured.response),
        service_us: ResponseByKind::of(&measured.service),
        erases: EraseSpread::of(erases.map(|(now, &before)| u64::from(now.erases - before))),
        utilization: utilization(core.flash().busy(), base.busy.as_ref(), span),
        energy_uj,
        run,
        configuration: config.clone(),
    };
    RunOutput {
        result,
        response: measured.response,
        timeline: measured.timeline,
        recovered: None,
    }
}

/// What encoding did, as results say it.
fn delta_of(totals: &EncodingTotals, core: &Counters) -> Delta {
    let d = &totals.counters;
    Delta {
        candidates: d.candidates,
        bypassed: d.bypassed,
        encoded: d.differences,
        mean_rc: mean_share(d.difference_bytes, d.differences),
        similar: Similar {
            asked: d.similar.asked,
            found: d.similar.found,
            taken: d.similar.taken,
            mean_rc: mean_share(d.similar.taken_bytes, d.similar.taken),
        },
        reads: d.reads,
        double_reads: d.double_reads,
        merges: Merges {
            read_hot: d.merges_read_hot,
            write_cold: d.merges_write_cold,
            gc: d.merges_gc,
            room: d.merges_room,
            shared: d.merges_shared,
        },
        log_pages: core.programs_log + d.repack_programs,
        repacked: d.repacked,
        values_end: u64::from(totals.packed),
        packs_end: u64::from(totals.packs),
        pinned_bytes: u64::from(totals.pinned) * UNIT_BYTES,
    }
}

/// What the history did, as results say it.
fn history_of(totals: &HistoryTotals, now: Time, programs: &Programs, span: Time) -> History {
    let (c, longest) = (&totals.counters, totals.longest_return);
    // What a change leaves behind: the old page, or what the log takes of it.
    let filled = match totals.log {
        Some(_) => programs.packed,
        None => programs.host + programs.packed,
    };
    let capacity = totals.room * UNIT_BYTES;
    let estimated = protection_window(capacity, 0, filled * UNIT_BYTES, span);
    History {
        entries: totals.entries,
        window_s: now.saturating_sub(totals.oldest) as f64 / 1e9,
        historical_units: totals.historical,
        copied_live: c.copied_live,
        copied_historical: c.copied_historical,
        recorded: c.recorded,
        dropped: c.dropped,
        paper_bytes: totals.entries * PAPER_ENTRY_BYTES,
        encoded: totals.log.map_or(0, |log| log.encoded),
        raw: totals.log.map_or(0, |log| log.raw),
        mean_rc: totals
            .log
            .and_then(|log| mean_share(log.encoded_bytes, log.encoded)),
        longest_return: longest.into(),
        capacity_bytes: capacity,
        estimated_window_s: estimated.map(|window| window as f64 / 1e9),
        kept_instants_s: totals.kept.iter().map(|&t| t as f64 / 1e9).collect(),
        table_programs: totals.tables.0,
        tables_end: u64::from(totals.tables.1),
    }
}

fn compress_of(totals: &EncodingTotals) -> Compress {
    let d = &totals.counters;
    Compress {
        encoded: d.compressed,
        mean_ratio: mean_share(d.compressed_bytes, d.compressed),
    }
}

/// Mean bytes as a share of a page.
fn mean_share(bytes: u64, values: u64) -> Option<f64> {
    let page = UNIT_BYTES as f64;
    (values > 0).then(|| bytes as f64 / values as f64 / page)
}

/// Shares of the measured time in which servers and channels worked.
fn utilization(now: Busy, before: Option<&Busy>, span: Time) -> Utilization {
    let share = |now: &[Time], before: Option<&[Time]>| -> Vec<f64> {
        let zero = vec![0; now.len()];
        let before = before.unwrap_or(&zero);
        let worked = now.iter().zip(before).map(|(n, b)| n - b);
        worked
            .map(|w| {
                if span == 0 {
                    0.0
                } else {
                    w as f64 / span as f64
                }
            })
            .collect()
    };
    let channels = share(&now.channels, before.map(|b| b.channels.as_slice()));
    let servers = share(&now.servers, before.map(|b| b.servers.as_slice()));
    Utilization::of(channels, servers)
}

/// The file names of the traces, without folders.
fn trace_name(summary: &Summary) -> String {
    let names = summary.inputs.iter().map(|input| {
        let path = std::path::Path::new(&input.path);
        path.file_name()
            .map_or(input.path.as_str().into(), |n| n.to_string_lossy())
    });
    names.collect::<Vec<_>>().join(" + ")
}
