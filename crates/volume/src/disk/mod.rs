//! A volume as a block device: bytes instead of pages, and many threads at once.
//!
//! | module | what it is |
//! |---|---|
//! | [`device`] | `trait BlockDevice`, its errors, what a range may be asked about |
//! | [`live`] | the present of a volume, writable |
//! | [`instant`] | one instant of it, read-only |
//! | [`maintenance`] | what a volume does by itself, beside its users |
//! | [`filters`] | devices around a device: counting, delaying, failing, recording |
//! | [`range`] | ranges of bytes as pages |
//! | [`lock`] | a store for one thread at a time |
//!
//! Inside: `commit` lets flushes that come together share one, `wake` tells of what there is to do.

pub mod device;
pub mod filters;
pub mod instant;
pub mod live;
pub mod lock;
pub mod maintenance;
pub mod range;

mod ahead;
mod commit;
mod wake;

pub use device::{About, BlockDevice, DiskError, ErrorKind};
pub use instant::InstantDevice;
pub use live::Disk;
pub use maintenance::Maintainer;
