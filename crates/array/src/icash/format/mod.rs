//! The bytes on the media; docs/array.md has them as tables.
//!
//! | file | what it holds |
//! |---|---|
//! | `bytes.rs` | little-endian numbers, and the checksum that every structure has |
//! | `superblock.rs` | what an array is: sizes and identity |
//! | `areas.rs` | where everything lies |
//! | `root.rs` | where a recovery begins |
//! | `table.rs` | pages of places |
//! | `block.rs` | blocks of the log with their records |
//! | `journal.rs` | the heads of a batch of blocks on their way home |
//!
//! Parsing takes any bytes whatever: it gives a structure or nothing, and never panics.

pub mod areas;
pub mod block;
pub(crate) mod bytes;
pub mod journal;
pub mod root;
pub mod superblock;
pub mod table;

pub use areas::Areas;
pub use block::{Block, BlockHead, Record, RecordKind};
pub use root::Root;
pub use superblock::{Shape, Superblock};
