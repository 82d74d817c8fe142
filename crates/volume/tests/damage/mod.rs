//! Damage to a volume that was killed: bits flip, sectors and pages are zeroed, or replaced by older or by foreign
//! ones, reads fail while it is opened or while it is in use. Whatever is read then is the last durable version or an
//! error.
//!
//! | file | what it is |
//! |---|---|
//! | `killed.rs` | volumes of every system, killed after a flush, with collection since their last checkpoint |
//! | `strike.rs` | where damage strikes such a volume |
//! | `verdict.rs` | the volume opened, read, used on and opened again |
//! | `medium.rs` | damage of the medium before the opening |
//! | `superblocks.rs` | superblocks that are older than the rest |
//! | `tables.rs` | pages of the checkpoint's tables that are older than the rest |
//! | `last_flush.rs` | what tells of a flush |
//! | `reads.rs` | reads that fail for a while |

mod killed;
mod last_flush;
mod medium;
mod reads;
mod strike;
mod superblocks;
mod tables;
mod verdict;
