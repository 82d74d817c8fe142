//! From a configuration to a device of the core. Pure translation: the configuration is checked
//! already, and the core knows no presets.

use flashlore_content::DedupOptions;
use flashlore_content::dedup::BypassOptions;
use flashlore_content::delta::{Drawn, Ratio};
use flashlore_content::history::{HistoryOptions, PAPER_ENTRY_BYTES};
use flashlore_flash::geometry::Counts;
use flashlore_flash::sim::{self, NandSim};
use flashlore_flash::{Flash, Geometry, Time};
use flashlore_ftl as ftl;
use flashlore_ftl::buffer::Replacement;
use flashlore_ftl::content::viability;
use flashlore_ftl::map_cache::{CacheOptions, EntryKind};
use flashlore_ftl::mapping::packs;
use flashlore_ftl::policies::history::VersionsOptions;
use flashlore_ftl::policies::options::{
    EncodingOptions, HeatOptions, SimilarOptions, ViabilityOptions,
};
use flashlore_trace::PageSource;

use super::buffering::BufferingOptions;
use super::driver::CodecTimes;
use super::error::RunError;
use super::lengths::{Lengths, MeasuredLengths, Rated};
use crate::config::{
    Acknowledge, BufferPolicy, Bytes, CacheKey, ChannelMode, DeviceConfig, Entries, Form, GcCheck,
    GcMode, GcPolicy, RatioFrom, RunConfig, SystemConfig, UNIT_BYTES,
};

/// The simulated flash of a device.
///
/// # Errors
/// A device without a fixed size, or one that cannot be addressed.
pub fn flash(device: &DeviceConfig) -> Result<NandSim, RunError> {
    device.shape()?;
    let g = &device.geometry;
    let geometry = Geometry::new(Counts {
        channels: g.channels,
        packages_per_channel: g.packages_per_channel,
        dies_per_package: g.dies_per_package,
        planes_per_die: g.planes_per_die,
        blocks_per_plane: g.blocks_per_plane.unwrap_or(0),
        pages_per_block: g.pages_per_block,
        page_bytes: u32::try_from(g.page_size.0).unwrap_or(u32::MAX),
    })
    .map_err(|source| RunError::Geometry {
        device: device.name.clone(),
        source,
    })?;
    let t = &device.timing;
    let timing = sim::Timing {
        read: t.read.0,
        program: t.program.iter().map(|d| d.0).collect(),
        erase: t.erase.0,
        transfer: t.transfer.0,
        shared_channel: t.channel == ChannelMode::Shared,
        concurrency: t.concurrency,
        erase_suspend: t.erase_suspend,
    };
    Ok(NandSim::new(geometry, timing))
}

/// The settings of the translation layer.
///
/// # Errors
/// A device without a fixed size.
pub fn ftl_options(device: &DeviceConfig, seed: u64) -> Result<ftl::FtlOptions, RunError> {
    let shape = device.shape()?;
    let layout = &device.layout;
    let gc = &device.gc;
    Ok(ftl::FtlOptions {
        exported: shape.exported_units as u32,
        thin: false,
        barriers: false,
        log: false,
        layout: ftl::LayoutOptions {
            stripe: layout.stripe,
            placement: layout.placement,
            pool: layout.pool,
            rotate: layout.rotate,
        },
        streams: layout.streams,
        summary_page: layout.summary_page,
        collect: ftl::Collect {
            victims: match gc.policy {
                GcPolicy::Greedy => ftl::VictimChoice::Greedy,
                GcPolicy::Fifo => ftl::VictimChoice::Fifo,
                GcPolicy::WindowedGreedy => {
                    let window = gc.window.blocks(shape.blocks_per_pool);
                    ftl::VictimChoice::WindowedGreedy(window as u32)
                }
                GcPolicy::CostBenefit => ftl::VictimChoice::CostBenefit,
                GcPolicy::DChoices => ftl::VictimChoice::DChoices(gc.choices),
            },
            mode: match gc.mode {
                GcMode::Foreground => ftl::Mode::Foreground,
                GcMode::Background => ftl::Mode::Background,
            },
            trigger: match gc.check {
                GcCheck::Allocation => ftl::Trigger::Allocation,
                GcCheck::Dispatch => ftl::Trigger::Dispatch { reads: gc.on_reads },
            },
            watermarks: ftl::Watermarks {
                low: shape.low_watermark as u32,
                high: shape.high_watermark as u32,
            },
            copyback: device.timing.copyback,
            sealed_before_window: false,
        },
        wear: ftl::Wear {
            dynamic: device.wear.dynamic,
            static_gap: u32::try_from(device.wear.static_gap).unwrap_or(u32::MAX),
            // Preparing the device costs no life: that sets it afterwards.
            endurance: 0,
        },
        seed,
    })
}

/// What stands before the translation layer.
pub fn buffering_options(config: &RunConfig) -> Option<BufferingOptions> {
    let count = |count: u64| u32::try_from(count).unwrap_or(u32::MAX).max(1);
    let queue = &config.system.queue;
    if queue.enabled {
        return Some(BufferingOptions::Queue {
            places: count(queue.requests.0),
            bucket_pages: count(queue.bucket.0),
            early_ack: queue.ack == Acknowledge::Enqueue,
            period: queue.period.0,
        });
    }
    let buffer = &config.device.buffer;
    let places = count(buffer.pages());
    let policy = match buffer.policy {
        BufferPolicy::None => return None,
        BufferPolicy::Fifo => Replacement::Fifo,
        BufferPolicy::Slru => Replacement::Slru {
            protected: (f64::from(places) * buffer.protected.get()) as u32,
        },
    };
    Some(BufferingOptions::Buffer { places, policy })
}

/// What pages that were read are kept under, and how many.
pub fn read_cache_options(config: &RunConfig) -> Option<(CacheKey, u32)> {
    let cache = &config.device.read_cache;
    let places = u32::try_from(cache.pages()).unwrap_or(u32::MAX);
    (cache.key != CacheKey::None).then_some((cache.key, places))
}

/// The settings of deduplication on a device.
pub fn dedup_options(system: &SystemConfig, device: &DeviceConfig) -> DedupOptions {
    let dedup = &system.dedup;
    let switch = &dedup.switch_off;
    let bypass = switch.enabled.then(|| {
        let window = u32::try_from(switch.window.0).unwrap_or(u32::MAX);
        BypassOptions {
            window,
            windows: switch.windows,
            sample: u32::try_from(switch.sample.0).unwrap_or(u32::MAX),
            break_even_hits: break_even_hits(window, dedup.hash_time.0, device),
        }
    });
    DedupOptions {
        index_entries: match dedup.index_entries {
            _ if !dedup.enabled => Some(0),
            Entries::Unlimited => None,
            Entries::Limited(count) => Some(u32::try_from(count).unwrap_or(u32::MAX - 1)),
        },
        fingerprint_bits: dedup.fingerprint_bits,
        verify: dedup.verify,
        bypass,
        out_of_line: dedup.out_of_line,
    }
}

/// The settings of encoding on a device, and who says how long values become.
///
/// # Errors
/// A device without a fixed size; bytes of pages that are needed and not known.
pub fn encoding_options<'a>(
    system: &SystemConfig,
    device: &DeviceConfig,
    seed: u64,
    pages: Option<&'a dyn PageSource>,
) -> Result<(Option<EncodingOptions>, Lengths<'a>), RunError> {
    let (delta, compress, codec) = (&system.delta, &system.compress, &system.codec);
    let exported = device.shape()?.exported_units as f64;
    let count = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    let most_bytes = if codec.viability {
        let bound = (viability_bound(system, device) * UNIT_BYTES as f64).floor();
        bound.clamp(0.0, f64::from(packs::MOST_BYTES)) as u16
    } else {
        packs::MOST_BYTES as u16
    };
    let entries = match delta.counted_pages {
        Entries::Unlimited => None,
        Entries::Limited(entries) => Some(count(entries)),
    };
    let options = EncodingOptions {
        deltas: delta.enabled,
        compress: compress.enabled,
        hot_writes: delta.hot_writes,
        hot_reads: delta.hot_reads,
        most_bytes,
        viability: ViabilityOptions {
            most_bytes,
            window: count(codec.window.0),
            probe: count(codec.probe.0),
        },
        heat: HeatOptions {
            entries,
            protected: entries.map_or(0, |n| (f64::from(n) * delta.protected.get()) as u32),
        },
        lambda: (delta.lambda * 1000.0).round() as u32,
        most_pinned: (exported * delta.pinned.get()) as u32,
        similar: system.looks_for_similar().then(|| SimilarOptions {
            entries: match delta.base_entries {
                Entries::Unlimited => u32::MAX,
                Entries::Limited(entries) => count(entries),
            },
            sharers: count(delta.base_sharers.0),
        }),
    };
    let lengths = lengths(system, seed, pages)?;
    Ok((system.encodes().then_some(options), lengths))
}

/// Who says how long encoded values are.
///
/// # Errors
/// Bytes of pages that are needed and not known.
pub fn lengths<'a>(
    system: &SystemConfig,
    seed: u64,
    pages: Option<&'a dyn PageSource>,
) -> Result<Lengths<'a>, RunError> {
    let (delta, compress, codec) = (&system.delta, &system.compress, &system.codec);
    let ratio = |mean, deviation| Ratio { mean, deviation };
    let delta = match system.keeps_parities() {
        true => ratio(system.history.mean, system.history.deviation),
        false => ratio(delta.mean, delta.deviation),
    };
    let alone = ratio(compress.mean, compress.deviation);
    let drawn = Drawn::new(delta, alone, seed);
    if system.needs_bytes() {
        let pages = pages.ok_or_else(|| RunError::NoBytes {
            system: system.name.clone(),
        })?;
        return Ok(Lengths::Measured(Box::new(MeasuredLengths::new(
            pages,
            codec.algorithm,
        ))));
    }
    Ok(match codec.ratio {
        RatioFrom::Trace => Lengths::Rated(Rated::new(drawn)),
        RatioFrom::Drawn | RatioFrom::Codec => Lengths::Drawn(drawn),
    })
}

/// What RAM has of the map, and its journals; nothing where all of it is in RAM and no journal is kept.
pub fn cache_options(system: &SystemConfig, device: &DeviceConfig) -> Option<CacheOptions> {
    let map = &device.map;
    let kind = match system {
        _ if system.delta.enabled => EntryKind::Fused,
        _ if system.dedup.enabled || system.encodes() || system.history.enabled => {
            EntryKind::Shared
        }
        _ => EntryKind::Direct,
    };
    let entries = match map.cache_bytes {
        Bytes::Unlimited if map.journal_pages.0 == 0 => return None,
        Bytes::Unlimited => u32::MAX,
        Bytes::Limited(size) => {
            let entries = size.0 / u64::from(kind.entry_bytes());
            u32::try_from(entries).unwrap_or(u32::MAX)
        }
    };
    Some(CacheOptions {
        entries,
        protected: (f64::from(entries) * map.protected.get()) as u32,
        kind,
        journal_pages: map.journal_pages.0 as u32,
    })
}

/// Whether victims are blocks sealed before the window of old versions, if there are any.
pub fn prefers_old_blocks(system: &SystemConfig) -> bool {
    let history = &system.history;
    history.enabled && history.form == Form::Pages && history.sealed_before_window
}

/// How old versions are kept on a device.
///
/// # Errors
/// A device without a fixed size.
pub fn versions_options(
    system: &SystemConfig,
    device: &DeviceConfig,
) -> Result<Option<VersionsOptions>, RunError> {
    let history = &system.history;
    if !history.enabled {
        return Ok(None);
    }
    let raw = flash(device)?.geometry().units();
    Ok(Some(VersionsOptions {
        history: HistoryOptions {
            max_entries: match history.entries {
                Entries::Unlimited => None,
                Entries::Limited(count) => Some(u32::try_from(count).unwrap_or(u32::MAX)),
            },
            schedule: history.schedule.schedule().cloned(),
        },
        least_window: history.min_window.0,
        on_pressure: history.on_pressure,
        reserve: (f64::from(raw) * history.reserve.get()) as u64,
        entries_in_ram: match history.tier_bytes {
            Bytes::Unlimited => None,
            Bytes::Limited(size) => {
                let entries = size.0 / PAPER_ENTRY_BYTES;
                Some(u32::try_from(entries).unwrap_or(u32::MAX))
            }
        },
    }))
}

/// What hashing a unit takes: nothing where nothing is deduplicated.
pub fn hash_time(system: &SystemConfig) -> Time {
    if system.dedup.enabled {
        system.dedup.hash_time.0
    } else {
        0
    }
}

/// What recording an old version takes: each of its fields is an access to RAM.
pub fn record_time(system: &SystemConfig) -> Time {
    const FIELDS: Time = 5;
    if system.history.enabled {
        FIELDS * system.history.field_time.0
    } else {
        0
    }
}

/// The largest mean of R_c at which encoding does not make writes slower (DeltaFTL section 3.3.1).
pub fn viability_bound(system: &SystemConfig, device: &DeviceConfig) -> f64 {
    let t = &device.timing;
    let programs: u64 = t.program.iter().map(|d| d.0).sum();
    let program = programs as f64 / t.program.len().max(1) as f64;
    let encode = system.codec.encode_time().0 as f64;
    viability::bound(t.read.0 as f64, t.transfer.0 as f64, encode, program)
}

/// What encoding costs in time.
pub fn codec_times(system: &SystemConfig) -> CodecTimes {
    if !system.encodes() && !system.keeps_parities() {
        return CodecTimes::default();
    }
    CodecTimes {
        encode: system.codec.encode_time().0,
        decode: system.codec.decode_time().0,
        sketch: if system.looks_for_similar() {
            system.codec.sketch_time().0
        } else {
            0
        },
        scan_period: if system.delta.enabled {
            system.delta.scan_period.0
        } else {
            0
        },
    }
}

/// Hits of a window from which on hashing saves more program time than it costs: hit rate above
/// hash time over the time a program takes, transfer included (`spec/timing.md` section 6).
fn break_even_hits(window: u32, hash_ns: u64, device: &DeviceConfig) -> u32 {
    let t = &device.timing;
    let programs: u64 = t.program.iter().map(|d| d.0).sum();
    let program_ns = programs / t.program.len().max(1) as u64 + t.transfer.0;
    let hits = u128::from(window) * u128::from(hash_ns) / u128::from(program_ns.max(1));
    u32::try_from(hits).unwrap_or(u32::MAX).saturating_add(1)
}
