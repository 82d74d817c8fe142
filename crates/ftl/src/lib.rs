//! The translation layer: what stands between logical pages and flash.
//!
//! | module | what it is |
//! |---|---|
//! | [`layout`] | which plane takes the next page; pools of planes |
//! | [`options`] | the closed set of settings of the core |
//! | [`blocks`] | block records, valid units, victims in buckets |
//! | [`alloc`] | free blocks, open blocks, page buffers |
//! | [`buffer`] | a write buffer and a sorting write queue in front of the map |
//! | [`gc`] | victim policies, one a file |
//! | [`erase_tally`] | how unevenly erases fell, for those who watch |
//! | [`map_cache`] | the forward map in RAM, or partly on flash |
//! | [`mapping`] | logical page to location: directly, or through objects |
//! | [`core`] | the parts above in one place, and what is done with them: append, read, collect, pass time |
//! | [`plain`] | a page-mapped device |
//! | [`policies`] | what a device that looks at content may do with a write, a room for each |
//! | [`content`] | a device that looks at content: a page per distinct value, deltas |
//! | [`trap`] | a device that keeps old versions as deltas from newer ones: BVSSD's rival |
//! | [`counters`] | what is counted |
//! | [`error`] | what can go wrong |

pub mod alloc;
pub mod blocks;
pub mod buffer;
pub mod content;
pub mod core;
pub mod counters;
pub mod erase_tally;
pub mod error;
pub mod gc;
pub mod layout;
pub mod map_cache;
pub mod mapping;
pub mod options;
pub mod plain;
pub mod policies;
mod segmented;
pub mod trap;

pub use content::{
    Candidate, CandidateRead, ContentDevice, ContentFtl, Outcome, PartsRead, Policies,
};
pub use counters::Counters;
pub use error::FtlError;
pub use layout::{Layout, LayoutOptions, Level, Placement, PoolScope, Rotate};
pub use options::{Collect, FtlOptions, Mode, Streams, Trigger, VictimChoice, Watermarks, Wear};
pub use plain::PlainFtl;
pub use policies::Unhashed;
pub use policies::out_of_line::Scanned;
pub use trap::TrapFtl;
