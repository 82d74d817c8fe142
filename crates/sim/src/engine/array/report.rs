//! The figures of a run of an array.

use flashlore_array::element::Traffic;
use flashlore_array::hdd;
use flashlore_array::icash::{self, parameters::SEGMENT_BYTES};
use flashlore_array::rivals;
use flashlore_flash::Time;
use flashlore_trace::Summary;

use super::devices::SlowDevice;
use super::run::Pages;
use super::setup::{Made, Setup};
use crate::config::{RunConfig, UNIT_BYTES, config_hash};
use crate::engine::measure::Measured;
use crate::results::{Array, Host, ResponseByKind, RunResult, RunSpeed};

/// Where everything stood when counting began.
pub struct ArrayBaseline {
    /// When.
    pub time: Time,
    fast: Traffic,
    slow: Traffic,
    ssd_operations: u64,
    /// Reads and writes.
    disk_operations: (u64, u64),
    counted: Counted,
    disks: hdd::DiskStatistics,
    joules: Option<f64>,
    processor: Time,
}

/// What an element counts of itself.
enum Counted {
    ICash(Box<icash::Counters>),
    Rival(rivals::RivalCounters),
}

impl ArrayBaseline {
    /// The present.
    pub fn of(setup: &mut Setup<'_>) -> ArrayBaseline {
        let statistics = setup.made.element().statistics();
        let (
            ssd,
            SlowDevice {
                disks,
                reads,
                writes,
            },
        ) = setup.engine.devices();
        ArrayBaseline {
            time: setup.engine.now(),
            fast: statistics.fast,
            slow: statistics.slow,
            ssd_operations: ssd.operations,
            disk_operations: (*reads, *writes),
            counted: match &setup.made {
                Made::ICash(element) => Counted::ICash(Box::new(*element.counters())),
                Made::Rival(element) => Counted::Rival(element.counters()),
            },
            disks: disks.statistics(),
            joules: disks.energy(),
            processor: setup.engine.processor_busy(),
        }
    }
}

/// What a run has measured and counted over a span of simulated time that began at `base`.
pub fn report(
    config: &RunConfig,
    summary: &Summary,
    setup: &mut Setup<'_>,
    (measured, pages): (&Measured, &Pages),
    base: &ArrayBaseline,
    span: Time,
    run: RunSpeed,
) -> RunResult {
    let now = ArrayBaseline::of(setup);
    let result = setup.engine.devices().0.ssd.result(summary);
    let array = array_of(config, setup, pages, base, &now, span);
    RunResult {
        config_hash: config_hash(config),
        host: Host {
            requests: measured.requests,
            read_pages: pages.read,
            write_pages: pages.written,
            trim_pages: pages.trimmed,
            bytes: measured.bytes,
        },
        waf_total: result.programs.waf_total(pages.written),
        response_us: ResponseByKind::of(&measured.response),
        service_us: ResponseByKind::of(&measured.service),
        array,
        run,
        configuration: config.clone(),
        arrivals: Some(measured.arrivals(base.time + span)),
        ..result
    }
}

fn array_of(
    config: &RunConfig,
    setup: &Setup<'_>,
    pages: &Pages,
    base: &ArrayBaseline,
    now: &ArrayBaseline,
    span: Time,
) -> Array {
    let array = &config.system.array;
    let (fast, slow) = (now.fast.since(&base.fast), now.slow.since(&base.slow));
    let reads = now.disk_operations.0 - base.disk_operations.0;
    let writes = now.disk_operations.1 - base.disk_operations.1;
    let seconds = span as f64 / 1e9;
    let units = |bytes: u64| bytes / UNIT_BYTES;
    let of_span = |busy: Time| busy as f64 / (span.max(1)) as f64;
    let disks = if array.kind.has_disks() {
        array.disks
    } else {
        0
    };
    let moved = now.disks.since(&base.disks);
    let figures = Array {
        hdd_ops: reads + writes,
        hdd_reads: reads,
        hdd_writes: writes,
        hdd_read_bytes: slow.read_bytes,
        hdd_written_bytes: slow.written_bytes,
        ios_per_hdd_op: ratio(pages.read + pages.written, reads + writes),
        ssd_reads: units(fast.read_bytes),
        ssd_writes: units(fast.written_bytes),
        ssd_ops: now.ssd_operations - base.ssd_operations,
        processor_busy: of_span(now.processor - base.processor),
        hdd_busy: of_span(moved.busy) / f64::from(array.disks),
        ssd_energy_j: (array.read_uj * units(fast.read_bytes) as f64
            + array.write_uj * units(fast.written_bytes) as f64)
            / 1e6,
        hdd_energy_j: array.disk_watts * f64::from(disks) * seconds,
        hdd_model_j: match (disks, now.joules, base.joules) {
            (0, ..) => None,
            (_, Some(now), Some(before)) => Some(now - before),
            _ => None,
        },
        verified: pages.verified,
        ..Array::default()
    };
    match (&setup.made, &now.counted, &base.counted) {
        (Made::ICash(element), Counted::ICash(now), Counted::ICash(base)) => {
            of_icash(figures, element, &now.since(base))
        }
        (_, Counted::Rival(now), Counted::Rival(base)) => of_rival(figures, now, base),
        _ => figures,
    }
}

fn of_icash(figures: Array, element: &icash::ICash, counted: &icash::Counters) -> Array {
    let states = element.states();
    let (segments, most) = (element.options().segments, element.segments_used().1);
    Array {
        references: states.references,
        detached: states.detached,
        associates: states.associates,
        independents: states.independents,
        delta_ram_peak: u64::from(most) * SEGMENT_BYTES as u64,
        delta_ram: u64::from(segments) * SEGMENT_BYTES as u64,
        deltas: counted.deltas,
        own_deltas: counted.own_deltas,
        alone: counted.alone,
        mean_alone_bytes: ratio(counted.alone_bytes, counted.alone),
        mean_delta_bytes: ratio(counted.delta_bytes, counted.deltas),
        too_big: counted.too_big,
        fills: counted.fills,
        hits: counted.hits_independent + counted.hits_associate + counted.hits_reference,
        misses: counted.misses,
        scans: counted.scans,
        scan_associates: counted.scan_associates,
        same_address: counted.same_address,
        demotions: counted.demotions,
        groups: counted.groups,
        records_per_group: ratio(counted.records, counted.groups),
        log_blocks: counted.log_blocks,
        deltas_per_log_block: ratio(counted.encoded_records, counted.log_blocks),
        cleaned: counted.cleaned,
        written_home: counted.written_home,
        ..figures
    }
}

fn of_rival(figures: Array, now: &rivals::RivalCounters, base: &rivals::RivalCounters) -> Array {
    let hits = |c: &rivals::RivalCounters| c.read_hits + c.write_hits;
    let misses = |c: &rivals::RivalCounters| c.read_misses + c.write_misses;
    let shared = |c: &rivals::RivalCounters| c.shared_fills + c.shared_writes + c.silent_writes;
    Array {
        fills: now.fills - base.fills,
        hits: hits(now) - hits(base),
        misses: misses(now) - misses(base),
        written_home: now.written_home - base.written_home,
        shared: shared(now) - shared(base),
        ..figures
    }
}

fn ratio(numerator: u64, denominator: u64) -> Option<f64> {
    (denominator > 0).then(|| numerator as f64 / denominator as f64)
}
