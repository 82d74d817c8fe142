//! The experiments of papers, repeated: definitions are data, verdicts are computed.
//!
//! | module | what it does |
//! |---|---|
//! | [`definition`] | a paper's workloads, systems, calibration and claims, as TOML |
//! | [`verdict`] | what becomes of a claim |
//! | [`evidence`] | whether what is named as a cause moves the figures |
//! | [`presets`] | the papers that come with the program |
//! | [`expression`] | figures of runs put into one number |
//! | [`analytic`] | what the papers compute by hand |
//! | [`search`] | the value of a setting at which a measure reaches a target |
//! | [`figures`] | the figures that a run or a count of values gives |
//! | [`values`] | value statistics of a workload, counted directly |
//! | [`experiment`] | what has to run; calibration |
//! | [`recipe`] | what the configuration of a run is made of |
//! | [`capture`] | captures in files, with the bytes of their pages |
//! | [`original`] | the traces of papers, where the user has them |
//! | [`group`] | the runs of one workload |
//! | [`report`] | claims with their verdicts; [`sensitivity`], what they depend on; [`table`] prints them |
//! | [`frozen`] | ranges and profiles, by hash, with what was changed after a result |
//! | [`error`] | what can go wrong |
//!
//! A verdict follows from what a claim accepts and from the measured figures alone.

// Used within this workspace alone: a comment stands where a name does not say it all.
#![allow(missing_docs)]

pub mod analytic;
pub mod capture;
pub mod definition;
pub mod error;
pub mod evidence;
pub mod experiment;
pub mod expression;
pub mod figures;
pub mod frozen;
pub mod group;
pub mod original;
pub mod presets;
pub mod recipe;
pub mod report;
pub mod search;
pub mod sensitivity;
pub mod table;
pub mod values;
pub mod verdict;

pub use definition::Paper;
pub use error::PaperError;
pub use experiment::{Calibrated, Captures, Experiment, ReproduceOptions};
pub use figures::Figures;
pub use group::Group;
pub use presets::{PAPERS, load};
pub use report::Report;
pub use verdict::Verdict;
