//! The tests of the translation layer, one module a subject. The long model, `--test model`, is a program of its own.

mod common;

mod background;
mod buffer;
mod ca_ssd_invariants;
mod conflicts;
mod copies;
mod curves;
mod delta;
mod delta_model;
mod delta_vectors;
mod endurance;
mod faults;
mod figure_5b;
mod histories;
mod identities;
mod map_cache;
mod map_of_deltas;
mod memory;
mod no_free_block;
mod out_of_line;
mod pages_of_several_units;
mod prefetch;
mod reference_models;
mod rewind_on_a_large_device;
mod sealed_before_window;
mod similar;
mod stored_tables;
mod throughput;
mod trap;
mod victims;
mod wear;
