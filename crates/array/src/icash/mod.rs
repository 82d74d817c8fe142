//! I-CASH (Ren and Yang, HPCA 2011): reference blocks on the fast medium, a log of deltas on the slow one.
//!
//! docs/array.md says what it promises and gives the bytes on both media.
//!
//! | file | what it holds |
//! |---|---|
//! | `parameters.rs` | the paper's parameters and what was chosen where it is silent; the options |
//! | `signature.rs` | eight bytes that say what a block is like |
//! | `heatmap.rs` | which of them are popular |
//! | `segments.rs` | RAM for deltas |
//! | `blocks.rs` | virtual blocks in the order of their last access |
//! | `ram.rs` | data blocks in RAM |
//! | `pool.rs` | data blocks, where they lie and who uses them |
//! | `place.rs`, `table.rs` | where the durable content of each block is |
//! | `state.rs` | the element and the changes of its state that all others are made of |
//! | `content.rs` | contents read from wherever they are |
//! | `read.rs`, `write.rs` | requests |
//! | `streams.rs`, `bypass.rs` | sequential streams, and how they pass by |
//! | `alike.rs` | signatures searched for those that share the most |
//! | `scan.rs` | which blocks become references and associates |
//! | `work.rs` | what follows requests, step by step |
//! | `replacement.rs` | the three replacements |
//! | `frozen.rs` | references leave the fast medium and come back |
//! | `write_back.rs` | blocks go home |
//! | `ahead.rs` | the same before anything needs it |
//! | `give_back.rs` | what holds nothing is given back to what is below the media |
//! | `write_through.rs` | nothing durable depends on the fast medium |
//! | `image.rs` | the image of a new virtual machine, as deltas from another's |
//! | `stored.rs` | how the durable content of a machine is stored |
//! | `ordered.rs` | blocks go home in batches that are one state |
//! | `slow_alone.rs` | what the slow medium alone holds after that |
//! | `commit.rs` | groups of the log: what makes a state durable |
//! | `clean.rs` | room in the log |
//! | `checkpoint.rs` | the table made durable |
//! | `create.rs` | making an array, of nothing or around a disk image |
//! | `open.rs` | opening one: what is durable is recovered |
//! | `fresh.rs` | a fast medium that was lost is replaced by a new one |
//! | `grow.rs` | more or larger machines |
//! | `leave.rs` | a machine's native places become all that it holds |
//! | `session.rs` | which states of the two media belong together |
//! | `kept.rs` | in which form the content of a block is kept |
//! | `check.rs` | every invariant recounted |
//! | `counters.rs` | what it did, in numbers |
//! | `rules` | tests of the paper's rules, one by one |
//! | [`mod@format`] | the bytes |
//! | `log` | the segments of the log, packing and replaying |

pub mod counters;
pub mod format;
pub mod heatmap;
pub mod image;
pub mod kept;
pub mod parameters;
pub mod place;
pub mod segments;
pub mod signature;
pub mod slow_alone;
pub mod state;
pub mod stored;

pub mod ahead;

mod alike;
mod blocks;
mod bypass;
mod check;
mod checkpoint;
mod clean;
mod commit;
mod content;
mod create;
mod fresh;
mod frozen;
mod give_back;
mod grow;
mod leave;
mod log;
mod open;
mod ordered;
mod pool;
mod ram;
mod read;
mod replacement;
#[cfg(test)]
mod rules;
mod scan;
mod session;
mod streams;
mod table;
mod work;
mod write;
mod write_back;
mod write_through;

pub use crate::addresses::{Machine, lba};
pub use counters::{Counters, Memory, States, Status};
pub use create::{adopt, adopted_pieces, bytes_needed, create, find};
pub use format::{Shape, Superblock};
pub use fresh::{Loss, loss_without_fast, make_fresh};
pub use grow::{check_growth, grow, grown_pieces};
pub use image::Image;
pub use kept::Kept;
pub use parameters::{Compression, Fill, Mode, Options, Similarity, TooBig};
pub use slow_alone::SlowAlone;
pub use state::ICash;
pub use stored::Stored;
