//! The tests of simulation runs, one module a subject.

mod common;

mod agrawal;
mod arrays;
mod buffered_runs;
mod buffering;
mod caftl;
mod captures;
mod config;
mod encoding;
mod frozen;
mod history;
mod host_timing;
mod interrupt;
mod lengths;
mod lifetime;
mod loaded_arrays;
mod map;
mod order;
mod prefetch;
mod responses;
mod results;
mod ssd;
mod timeline;
