//! Policies as most tests want them; they name what is otherwise.

use flashlore_content::history::HistoryOptions;
use flashlore_ftl::policies::history::{OnPressure, VersionsOptions};
use flashlore_ftl::policies::options::{EncodingOptions, HeatOptions, ViabilityOptions};

/// Deltas as in DeltaFTL's paper, hot from two writes and from two reads on; nothing is limited.
pub const DELTAS: EncodingOptions = EncodingOptions {
    deltas: true,
    compress: false,
    hot_writes: 2,
    hot_reads: 2,
    most_bytes: 4084,
    viability: ViabilityOptions {
        most_bytes: 4096,
        window: 100,
        probe: 1,
    },
    heat: HeatOptions {
        entries: None,
        protected: 0,
    },
    lambda: 0,
    most_pinned: u32::MAX,
    similar: None,
};

/// Old versions that are kept while there is room.
pub const VERSIONS: VersionsOptions = VersionsOptions {
    history: HistoryOptions {
        max_entries: None,
        schedule: None,
    },
    least_window: 0,
    on_pressure: OnPressure::Shrink,
    reserve: 0,
    entries_in_ram: None,
};
