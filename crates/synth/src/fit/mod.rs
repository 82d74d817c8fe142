//! Fits: a workload's structure, measured on a trace, from which workloads like it are made.
//!
//! The model (docs/workloads.md, "Fits"): a workload is a sequence of *runs* of pages. The pages of a
//! run were last written one after another, long ago by the same gap, and what is written to them is
//! of one kind. A fit counts the runs of each stretch of the trace, an *epoch*, and which class of
//! runs follows which. Generation draws the runs of an epoch without replacement in an order that the
//! chain of classes gives.
//!
//! | module | what it does |
//! |---|---|
//! | `run` | a run, its class, and both as text |
//! | `model` | the fit as a file |
//! | `features` | what a trace's accesses are to the pages and values they touch |
//! | `estimate` | a trace becomes a fit |
//! | `cursors` | where recent runs ended |
//! | `state` | pages and values by the time of their last use |
//! | `order` | runs of an epoch, drawn class after class |
//! | `generate` | a fit becomes records |

mod cursors;
mod estimate;
mod features;
mod generate;
mod model;
mod order;
mod run;
mod state;
#[cfg(test)]
mod tests;

pub use estimate::{Detail, Estimator};
pub use generate::FitGenerator;
pub use model::{Epoch, Fit, Following, RequestSizes};
pub use run::{Class, Gap, Run, RunCount, RunPlace, Worth};
