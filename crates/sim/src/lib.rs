//! Simulation runs: what is configured before one, and what is reported after it.
//!
//! * [`engine`]: the simulation itself;
//! * [`config`]: devices, systems and hosts as layered TOML;
//! * [`results`]: latencies, timelines, result records and the files written from them.

// Used within this workspace alone: a comment stands where a name does not say it all.
#![allow(missing_docs)]

pub mod config;
pub mod engine;
pub mod results;
