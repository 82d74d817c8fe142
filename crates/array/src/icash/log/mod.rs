//! The log on the slow medium.
//!
//! | file | what it holds |
//! |---|---|
//! | `space.rs` | its segments: which are free, which are needed, what lives in them |
//! | `pack.rs` | the records of a group to blocks |
//! | `replay.rs` | the groups behind a root, up to the first gap |

pub mod pack;
pub mod replay;
pub mod space;

pub use pack::{Packed, Recorded, Unpacked, pack};
pub use space::Space;
