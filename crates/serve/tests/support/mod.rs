//! A small volume with every policy.

use flashlore_volume::{CreateOptions, Encoding, HistoryIdentity, Policy};

/// 1 MiB shown and 2 MiB of room, made at an instant in nanoseconds since 1970.
pub fn options(now: u64) -> CreateOptions {
    CreateOptions {
        policy: Policy::Dedup,
        history: Some(HistoryIdentity {
            entries: 0,
            least_window: 0,
            protected: false,
        }),
        encoding: Encoding {
            deltas: true,
            compression: true,
        },
        size: 1 << 20,
        capacity: 2 << 20,
        now,
        seed: [5; 48],
    }
}
