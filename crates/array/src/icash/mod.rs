//! I-CASH (Ren and Yang, HPCA 2011).
//!
//! | file | what it holds |
//! |---|---|
//! | `parameters.rs` | the paper's parameters and what was chosen where it is silent |
//! | `signature.rs` | eight bytes that say what a block is like |
//! | `heatmap.rs` | which of them are popular |
//! | `segments.rs` | RAM for differences |

pub mod heatmap;
pub mod parameters;
pub mod segments;
pub mod signature;

pub use heatmap::Heatmap;
pub use parameters::{Compression, Options, Similarity, TooBig};
pub use segments::{Chain, Segments};
pub use signature::Signature;
