//! Tables of fixed rows as pages on a medium: read when they are needed, cached within a budget, written back in log
//! order and never in place.
//!
//! Each table is a tree of pages: rows in the leaves, pointers above them. A page that changes is written to another
//! slot (copy on write), so its parent changes too, up to the root. [`Store::begin_commit`] writes all of that and hands
//! over a new root: once the root is durable, all changes before it are, and until then none is.
//!
//! **Nothing of the medium is read here** while somebody holds the store. What is missing is an answer
//! ([`Access::Absent`]): a [`Fetch`] that any thread can carry out, and that is then installed ([`Store::install`]). In
//! between the store goes on; what was moved meanwhile is noticed, and the caller asks again.
//!
//! **Several tables can share pages**: a fork ([`Store::fork`]) is a second root of a tree. Each slot has a count of the
//! pointers that lead to it, and a shared page is copied when one of those who share it changes it.
//!
//! | file | what it holds |
//! |---|---|
//! | `address.rs` | tables, rows, pages of a tree, slots, and the shape of a table |
//! | `page.rs` | the bytes of a page, and what proves that it is the one that a pointer means |
//! | `area.rs` | where roots, counts and slots lie on the medium |
//! | `root.rs` | the bytes of a root |
//! | `space.rs` | how many pointers lead to each slot; which slots may be written |
//! | `cache.rs` | pages in memory: who leaves, who may not |
//! | `fetch.rs` | a page that is to be read |
//! | `store.rs` | rows read and changed |
//! | `commit.rs` | what changed becomes durable under a new root; opening |
//! | `table.rs` | tables as the translation layer has them |
//! | `free.rs` | rows of a table that nobody uses |
//! | `stored.rs` | what a root has, read through without a cache; every pointer counted anew |
//! | `plan.rs` | pages that will be needed, read without the store |
//! | `error.rs` | what can fail |

mod address;
mod area;
mod cache;
mod commit;
mod error;
mod fetch;
mod free;
mod page;
mod plan;
mod root;
mod space;
mod store;
mod stored;
mod table;

pub use address::{Empty, Node, Row, Shape, Slot, TableId};
pub use area::Area;
pub use cache::CacheCounters;
pub use commit::PendingRoot;
pub use error::{Access, MetadataError};
pub use fetch::{Fetch, Fetched};
pub use free::{FreeByPage, LinkedRows};
pub use page::PAGE_BYTES;
pub use plan::TablePlan;
pub use store::{Judge, Store};
pub use stored::{Stored, StoredPage, UnreadPage};
pub use table::{StoredTable, StoredTables};
