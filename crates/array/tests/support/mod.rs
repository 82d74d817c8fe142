//! What the tests of I-CASH share.
//!
//! | file | what it holds |
//! |---|---|
//! | `draw.rs` | seeded draws, those of the crash search of volumes |
//! | `pages.rs` | values, and the pages that stand for them |
//! | `setup.rs` | small arrays of all kinds |
//! | `attended.rs` | an element whose work is done between requests |
//! | `history.rs` | operations, and how they are drawn |
//! | `power.rs` | two media whose power is cut
//! | `without_fast.rs` | what must be there when the fast medium is lost

#![allow(dead_code, unused_imports, reason = "each test uses a part")]

pub mod attended;
#[path = "../../../volume/tests/crash/draw.rs"]
pub mod draw;
pub mod history;
pub mod pages;
pub mod power;
pub mod setup;
pub mod without_fast;

pub use attended::{Attendance, Attended, Steps};
pub use draw::Draw;
pub use history::{Op, operations};
pub use pages::{Value, page};
pub use power::{Power, Trouble};
pub use setup::Setup;
pub use without_fast::WithoutFast;

/// What a check names if a change could not read a page of the place table.
pub const PAGE_MISSED: &str = "of the place table, at byte ";
