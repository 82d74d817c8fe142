//! The tests of synthetic workloads, one module a subject.

mod fits;
mod generate;
mod published;
mod similarity;
