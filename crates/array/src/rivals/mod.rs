//! What I-CASH is measured against: the fast medium alone, the slow one alone, and two caches on the fast medium
//! over the slow one.
//!
//! All are one [`Rival`], made in four ways. They hold real bytes and answer every read exactly, on the same media,
//! with the same observer and the same block addresses as I-CASH. They are for comparison in simulation and promise
//! nothing about a power loss: which block lies where is known in RAM alone, so a rival cannot be opened again. A
//! write that fails may leave any mixture in its block. docs/array.md says what each does and what was chosen
//! where the paper is silent.
//!
//! | file | what it holds |
//! |---|---|
//! | `rival.rs` | the four ways, and requests |
//! | `cache.rs` | what a cache does with a request |
//! | `home.rs` | dirty blocks go home, in batches |
//! | `slots.rs` | which block lies in which slot, and which slot was used last |
//! | `contents.rs` | which content lies in which slot |
//! | `counters.rs` | what a cache did, in numbers |
//! | `options.rs` | sizes and options of a cache |

mod cache;
mod contents;
mod counters;
mod home;
mod options;
mod rival;
mod slots;

pub use counters::RivalCounters;
pub use options::CacheOptions;
pub use rival::Rival;
