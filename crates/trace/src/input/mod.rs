//! Where bytes come from: a file or standard input, compressed or not.
//!
//! The compression is known by its magic bytes, never by the file's name. Every byte taken from the
//! file is counted and hashed, so that errors name a position and results name their input.

mod lines;
mod open;
mod records;

pub(crate) use lines::Lines;
pub use open::{Compression, hex};
pub(crate) use open::{Input, STDIN};
pub(crate) use records::Pieces;
