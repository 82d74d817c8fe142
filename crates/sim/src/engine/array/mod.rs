//! Runs of an array of an SSD and disks: I-CASH and what it is measured against (HPCA 2011).
//!
//! | file | what it holds |
//! |---|---|
//! | `run.rs` | one run from start to result |
//! | `setup.rs` | the element with what it holds before the run, and its devices |
//! | `chains.rs` | a request becomes chains of steps |
//! | `contents.rs` | what pages hold |
//! | `devices.rs` | a simulated SSD and disks as the devices |
//! | `report.rs` | the figures of a run |
//!
//! The element does at once what a request asks for, with real bytes on media in memory; what it asked of its
//! media then takes its time on the simulated SSD and disks (`flashlore_array::timed`). Each page of a request is a
//! chain by itself; neighbours that ask the same thing of one device are one operation, as in a block layer. So
//! what happens is decided in the order of requests, and when it is over by the devices.

mod chains;
mod contents;
mod devices;
mod report;
mod run;
mod setup;

pub(super) use run::{check, simulate};
