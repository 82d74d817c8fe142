//! The tests of traces, one module a subject.

mod common;
mod exercise;

mod block_layer;
mod cloud;
mod convert;
mod detection;
mod formats;
mod overlay;
mod pages;
mod public_data;
mod ratios;
mod robustness;
mod workload;
