//! The figures of a run, from what its parts have counted.

use std::ops::DerefMut;

use flashlore_content::dedup::paper_bytes;
use flashlore_content::history::{PAPER_ENTRY_BYTES, protection_window};
use flashlore_flash::Time;
use flashlore_flash::sim::Busy;
use flashlore_ftl::Counters;
use flashlore_trace::Summary;

use super::buffering::Traffic;
use super::driver::Driver;
use super::measure::Measured;
use super::system::{EncodingTotals, HistoryTotals, System};
use crate::config::{RunConfig, UNIT_BYTES, config_hash};
use crate::results::{
    Array, BufferTraffic, CacheTraffic, Compress, Dedup, Delta, EraseSpread, Flash, Gc, History,
    Host, MapTraffic, Merges, Programs, QueueTraffic, ResponseByKind, RunResult, RunSpeed, Similar,
    TraceFile, Utilization, trace_name,
};

/// Where the device stood when measuring began.
#[derive(Default)]
pub struct DeviceBaseline {
    /// When.
    pub time: Time,
    /// Units the host had written before.
    pub written: u64,
    erases: Vec<u32>,
    busy: Option<Busy>,
}

/// What the host asked of the device, wherever it was served.
pub struct Buffered {
    writes: u64,
    reads: u64,
    traffic: Option<Traffic>,
    cached: CacheTraffic,
}

impl Buffered {
    /// What a driver has counted.
    pub fn of<S: System, D: DerefMut<Target = S>>(driver: &Driver<D>) -> Self {
        Buffered {
            writes: driver.host_writes(),
            reads: driver.host_reads(),
            traffic: driver.traffic(),
            cached: driver.cache_traffic(),
        }
    }

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

/// Measuring begins.
pub fn begin<S: System, D: DerefMut<Target = S>>(driver: &mut Driver<D>) -> DeviceBaseline {
    let written = driver.host_writes();
    driver.begin_measuring();
    let time = driver.now();
    let system = driver.system();
    system.restart_counters();
    let core = system.core();
    DeviceBaseline {
        time,
        written,
        erases: core.blocks().records().iter().map(|b| b.erases).collect(),
        busy: Some(core.flash().busy()),
    }
}

/// What a run has measured and counted over a span of simulated time that began at `base`. `summary` says which
/// trace that was.
pub fn report<S: System>(
    config: &RunConfig,
    summary: &Summary,
    system: &S,
    (measured, buffering): (&Measured, &Buffered),
    base: &DeviceBaseline,
    span: Time,
    run: RunSpeed,
) -> RunResult {
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
    RunResult {
        system: config.system.name.clone(),
        device: config.device.name.clone(),
        trace: trace_name(summary),
        seed: config.host.seed,
        config_hash: config_hash(config),
        version: env!("CARGO_PKG_VERSION").to_string(),
        trace_files: summary.inputs.iter().map(TraceFile::of).collect(),
        workload: summary.options.clone(),
        host: Host {
            requests: measured.requests,
            read_pages: buffering.reads,
            write_pages: buffering.writes,
            trim_pages: c.host_trims,
            bytes: measured.bytes,
        },
        flash: Flash {
            page_reads: c.page_reads(),
            page_programs: c.page_programs,
            block_erases: c.erases,
            retired_blocks: c.retired,
        },
        waf_total: programs.waf_total(buffering.writes),
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
        buffer: buffering.buffer(),
        read_cache: buffering.cached,
        queue: buffering.queue(),
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
        array: Array::default(),
        response_us: ResponseByKind::of(&measured.response),
        service_us: ResponseByKind::of(&measured.service),
        erases: EraseSpread::of(erases.map(|(now, &before)| u64::from(now.erases - before))),
        utilization: utilization(core.flash().busy(), base.busy.as_ref(), span),
        energy_uj,
        run,
        configuration: config.clone(),
        arrivals: Some(measured.arrivals(base.time + span)),
        drawn_from: None,
    }
}

/// What encoding did, as results say it.
fn delta_of(totals: &EncodingTotals, core: &Counters) -> Delta {
    let d = &totals.counters;
    Delta {
        candidates: d.candidates,
        bypassed: d.bypassed,
        encoded: d.deltas,
        mean_rc: mean_share(d.delta_bytes, d.deltas),
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
    let (c, longest) = (&totals.counters, totals.longest_rewind);
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
        longest_rewind: longest.into(),
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
