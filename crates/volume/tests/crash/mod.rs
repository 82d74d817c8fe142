//! A search for crashes a volume does not survive, which knows nothing of how a volume works inside.
//!
//! | file | what it holds |
//! |---|---|
//! | `draw.rs` | seeded draws |
//! | `pages.rs` | values, and the pages that stand for them |
//! | `damage.rs` | where damage strikes what a power cut left |
//! | `history.rs` | setups and operations, and how they are drawn |
//! | `oracle.rs` | the states a volume may come back with |
//! | `session.rs` | one power-on: open, verify, operate until the power is cut |
//! | `scenario.rs` | a chain of power-ons that can be replayed |
//! | `search.rs` | all cuts of one history, and what follows them |
//! | `campaign.rs` | many histories on several threads, and what was reached |
//! | `regressions.rs` | short histories that once failed |
//! | `shrink.rs` | a failing scenario made small |

mod campaign;
mod damage;
mod draw;
mod history;
mod oracle;
mod pages;
mod regressions;
mod scenario;
mod search;
mod session;
mod shrink;

pub use campaign::{Campaign, Report};
pub use search::Effort;
