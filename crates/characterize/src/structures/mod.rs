//! Data structures that answer "how many different ones since?" in logarithmic time.
//!
//! | module | what it is |
//! |---|---|
//! | [`slots`] | time slots, some taken, counted from any of them on |
//! | [`stack`] | LRU stack distances |
//! | [`holes`] | one LRU stack whose members can die and leave a hole: caches of all sizes at once |
//! | [`near`] | LRU stack distances up to a limit, in memory that does not grow |
//! | [`ranges`] | a set of whole ranges |

pub mod holes;
pub mod near;
pub mod ranges;
pub mod slots;
pub mod stack;
