//! The NAND device: addresses, geometry, the [`Flash`] trait, and what stands behind it.
//!
//! | module | what it is |
//! |---|---|
//! | [`address`] | newtypes for every index, and simulated time |
//! | [`index!`] | newtypes for indexes of other crates |
//! | [`geometry`] | how a device is built, and address arithmetic |
//! | [`nand`] | the [`Flash`] trait: read, program, erase, and when they are done |
//! | [`memory`] | a back end that keeps pages in memory and takes no time |
//! | [`rules`] | a wrapper that refuses what NAND cannot do |
//! | [`faults`] | a wrapper that makes chosen operations fail, seeded |
//! | [`record`] | a wrapper that writes down every operation |
//! | [`pass_on!`] | what a wrapper leaves to the device behind it |
//! | [`sim`] | simulated time: dies, channels, queues |
//! | [`tables`] | tables of rows, wherever they lie |
//! | [`queue`] | queues of rows, likewise |
//! | [`number_rows!`] | rows that are one number |
//! | [`hints`] | hints to the processor and the system about memory that is used at random |

pub mod address;
pub mod faults;
pub mod geometry;
pub mod hints;
pub mod memory;
pub mod nand;
mod pass_on;
pub mod queue;
pub mod record;
pub mod rules;
pub mod sim;
pub mod tables;

pub use address::{
    BlockId, DieId, GroupId, Lpn, MapPageId, ObjectId, Owned, Owner, PackId, PackSlot, PageId,
    PageInBlock, PlaneId, PoolId, Ppn, TableId, Tag, Time,
};
pub use geometry::{Geometry, GeometryError, UNIT_BYTES};
pub use nand::{Cause, Completion, Finished, Flash, OpId, Ready, Route, Stream, Unit, When};
pub use queue::{Chunks, EntryNumber, Queue, QueueAt, Ring};
pub use tables::{FreeRows, InMemory, Links, MOST_ROW_BYTES, Note, Row, Table, TableName, Tables};
