//! The content and address locality of any trace: who writes what where, how often, and how soon
//! again.
//!
//! [`Characterizer`] looks at [`flashlore_trace::Access`]es one by one and becomes
//! [`Characteristics`], which print as tables, serialise, and are written as Parquet files by
//! [`write_dir`]. What each figure means stands in `docs/workloads.md`; the numbers of definitions in
//! this crate are those of its section on statistics.
//!
//! | module | what it is |
//! |---|---|
//! | [`characterizer`] | the whole and slices of trace time |
//! | [`collector`] | one pass: requests to page accesses to [`statistics`] |
//! | `ids`, `contents` | dense numbers and sampling; what every page holds |
//! | [`statistics`] | one file a statistic |
//! | `structures`, [`measures`] | stack distances; histograms and percentiles |
//! | `report`, `files` | tables and plots; Parquet and JSON |
//! | `rating` | R_c of every write by its bytes, for a trace to carry |
//! | [`options`], [`error`] | what is asked, and why it may fail |

pub mod characterizer;
pub mod collector;
mod contents;
pub mod error;
mod files;
mod ids;
pub mod measures;
pub mod options;
mod rating;
mod report;
pub mod statistics;
mod structures;

pub use characterizer::{Characteristics, Characterizer, Slice, TraceSource};
pub use collector::Statistics;
pub use error::CharacterizeError;
pub use files::{CHARACTERISTICS_FILES, tables, write_dir};
pub use flashlore_delta::Codec;
pub use flashlore_trace::pages::{PAGE_BYTES, PageSource};
pub use options::Options;
pub use rating::ByteRater;
