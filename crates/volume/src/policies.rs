//! The settings of the translation layer under a volume.

use flashlore_content::DedupOptions;
use flashlore_content::history::HistoryOptions;
use flashlore_ftl::options::{FtlOptions, Mode, Watermarks};
use flashlore_ftl::policies::history::{OnPressure, VersionsOptions};
use flashlore_ftl::policies::options::{EncodingOptions, HeatOptions, NEVER, ViabilityOptions};

use crate::format::{Encoding, Identity, Policy, Table};

/// The longest encoded value that is stored, with its head: what is longer is read faster whole.
const MOST_ENCODED: u16 = 3 << 10;

/// The settings of the translation layer under a volume.
pub fn ftl_options(id: &Identity) -> FtlOptions {
    let mut options = FtlOptions::new(id.exported);
    options.thin = true;
    options.barriers = true;
    // One block more than collection needs: a power loss in the middle of one may cost a block.
    options.collect.mode = Mode::Stepped {
        urgent: URGENT_BLOCKS,
    };
    options.collect.watermarks = watermarks(id.blocks);
    options
}

/// With so few free blocks a write waits for collection.
const URGENT_BLOCKS: u32 = 2;
/// One block in so many is kept free, so that collection is ahead of the host and the medium is synced for several
/// blocks at a time.
const KEPT_SHARE: u32 = 32;
/// More than that are kept free on no volume.
const MOST_KEPT: u32 = 32;

/// When collection starts and stops, on a volume of so many blocks.
pub(crate) fn watermarks(blocks: u32) -> Watermarks {
    let low = (blocks / KEPT_SHARE).clamp(URGENT_BLOCKS, MOST_KEPT);
    Watermarks {
        low,
        high: low + low / 4,
    }
}

/// Entries that the fingerprint index is made for: no more than there can be values.
pub(crate) fn index_entries(id: &Identity) -> u32 {
    match id.policy {
        Policy::Plain => 0,
        _ => id.index_entries.min(Table::Objects.rows(id)),
    }
}

/// How a deduplicating volume looks for duplicates, in an index of so many entries at most.
pub fn dedup_options(id: &Identity, most: u32) -> DedupOptions {
    let trusted = id.trusts_digests();
    DedupOptions {
        index_entries: Some(index_entries(id).min(most)),
        fingerprint_bits: if trusted { 64 } else { 32 },
        verify: !trusted,
        bypass: None,
        out_of_line: false,
    }
}

/// Where deltas are all that is encoded, one of so many pages may be a base that deltas alone keep, as in the preset
/// `delta-ftl`: without a quota such a device programs up to 2.5 times what a plain one does (docs/mechanisms.md). What is
/// compressed besides takes so much less that a price for bases is enough.
const QUOTA: u32 = 100;
/// So many on any volume: a small one is to have deltas too.
const LEAST_QUOTA: u32 = 64;

/// What is encoded, and when.
pub fn encoding_options(id: &Identity) -> Option<EncodingOptions> {
    let Encoding {
        deltas,
        compression,
    } = id.encoding;
    (deltas || compression).then_some(EncodingOptions {
        deltas,
        compress: compression,
        hot_writes: 2,
        hot_reads: NEVER,
        most_bytes: MOST_ENCODED,
        viability: ViabilityOptions {
            most_bytes: MOST_ENCODED,
            window: 1024,
            probe: 16,
        },
        heat: HeatOptions {
            entries: None,
            protected: 0,
        },
        // As the simulated system: docs/composition.md.
        lambda: 250,
        most_pinned: match compression {
            true => u32::MAX,
            false => (id.exported / QUOTA).max(LEAST_QUOTA),
        },
        similar: None,
    })
}

/// How many old versions there may be.
pub(crate) fn history_options(id: &Identity) -> Option<HistoryOptions> {
    let history = id.history?;
    Some(HistoryOptions {
        max_entries: Some(history.entries),
        schedule: None,
    })
}

/// The part of all units that old versions leave free, so that collection has less to move: one in so many, as the
/// simulated system (docs/composition.md).
const RESERVE: u64 = 20;

/// How old versions are kept.
pub fn versions_options(id: &Identity) -> Option<VersionsOptions> {
    let history = id.history?;
    let units = u64::from(id.blocks) * u64::from(id.pages_per_block) * u64::from(id.units_per_page);
    Some(VersionsOptions {
        history: history_options(id)?,
        least_window: history.least_window,
        on_pressure: match history.protected {
            true => OnPressure::Refuse,
            false => OnPressure::Shrink,
        },
        reserve: units / RESERVE,
        entries_in_ram: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::CreateOptions;

    #[test]
    fn only_where_nothing_is_compressed_bases_have_a_quota() {
        let quota = |size: u64, deltas, compression| {
            let asked = CreateOptions {
                policy: Policy::Plain,
                history: None,
                encoding: Encoding {
                    deltas,
                    compression,
                },
                size,
                capacity: size,
                now: 0,
                seed: [0; 48],
            };
            encoding_options(&asked.identity().unwrap()).map(|options| options.most_pinned)
        };
        assert_eq!(quota(400 << 20, true, false), Some(1024));
        assert_eq!(quota(4 << 20, true, false), Some(64));
        assert_eq!(quota(400 << 20, true, true), Some(u32::MAX));
        assert_eq!(quota(400 << 20, false, false), None);
    }
}
