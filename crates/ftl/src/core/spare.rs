//! What a device must have beyond what it exports, so that writes and collection always find room.

use flashlore_flash::Geometry;

use crate::error::OptionsError;
use crate::layout::Layout;
use crate::map_cache::MapCache;
use crate::options::{FtlOptions, Streams};

/// Every pool must be able to hold its share of the exported pages with its open blocks, its low
/// watermark and at least one invalid unit to collect. Answers how much that is.
pub(crate) fn check_spare<P, K: MapCache<P>>(
    geometry: &Geometry,
    layout: &Layout,
    options: &FtlOptions,
    map_cache: &K,
    data_units: u32,
) -> Result<u64, OptionsError> {
    let marks = options.collect.watermarks;
    if marks.low == 0 || marks.high < marks.low {
        return Err(OptionsError::Watermarks {
            low: marks.low,
            high: marks.high,
        });
    }
    let streams = match options.streams {
        Streams::Separate => 2,
        Streams::Shared => 1,
    } + u32::from(options.wear.static_gap > 0)
        + u32::from(K::CACHED)
        + 2 * u32::from(options.log);
    let most = |units: u32| -> u64 {
        let pools = layout.pools().iter().map(|members| {
            let planes = members.len() as u32;
            let blocks = planes * geometry.blocks_per_plane();
            let kept = marks.high + 1 + planes * streams;
            (u64::from(blocks.saturating_sub(kept)) * u64::from(units)).saturating_sub(1)
        });
        let sum: u64 = pools.sum();
        sum.saturating_sub(u64::from(map_cache.pages()))
    };
    // A victim gains whole pages, because its copies are padded. Whoever fills a device up to here must always
    // find one, so every sealed block could lack all units of a page but one.
    let always = most(data_units + 1 - geometry.units_per_page());
    let most = most(data_units);
    if u64::from(options.exported) > most && !options.thin {
        return Err(OptionsError::NoSpare {
            exported: options.exported,
            most,
            units: u64::from(geometry.blocks()) * u64::from(data_units),
        });
    }
    // What is exported may be live, unless it is exported thinly.
    let exported = if options.thin { 0 } else { options.exported };
    Ok(always.max(u64::from(exported)))
}
