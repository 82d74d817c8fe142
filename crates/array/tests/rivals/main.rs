//! The rivals of I-CASH.
//!
//! | file | what it holds |
//! |---|---|
//! | `model.rs` | all elements, I-CASH too, against a plain list of values |
//! | `counts.rs` | every operation on a medium against a slow oracle |
//! | `oracle.rs` | the oracle |
//! | `heard.rs` | what an element asked of its media in a request |
//! | `cases.rs` | cases by hand |
//! | `faults.rs` | media that fail |
//! | `common.rs` | rivals of all kinds |

#[path = "../support/mod.rs"]
mod support;

mod cases;
mod common;
mod counts;
mod faults;
mod heard;
mod model;
mod oracle;
