//! Hard disks: against a disk stepped nanosecond by nanosecond, properties, and published figures.

mod against_steps;
mod common;
mod figures;
mod properties;
