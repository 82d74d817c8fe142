//! Workloads made to order.
//!
//! | module | what it does |
//! |---|---|
//! | [`profile`] | a workload's models and parameters, as commented TOML |
//! | [`presets`] | the profiles that come with the program |
//! | `definition` | a profile of figures, or a fit |
//! | [`feasible`] | which profiles no workload can meet |
//! | [`generate`] | a profile becomes records |
//! | [`source`] | a profile stands where a trace may stand |
//! | [`overlay`] | a profile's values on the addresses of another trace |
//! | [`fit`] | profiles measured on traces instead of published figures |
//! | `extents`, `recency` | where requests go, and what was used so long ago |
//! | `values` | what is written |
//! | [`similarity`] | the bytes of what is written |
//! | `arrivals`, `draw` | when, and the random numbers of everything |

// Used within this workspace alone: a comment stands where a name does not say it all.
#![allow(missing_docs)]

mod arrivals;
mod definition;
mod draw;
pub mod error;
mod extents;
pub mod feasible;
pub mod fit;
pub mod generate;
pub mod overlay;
pub mod presets;
pub mod profile;
mod recency;
pub mod similarity;
pub mod source;
mod values;

pub use definition::Definition;
pub use error::ProfileError;
pub use fit::Fit;
pub use generate::{Generator, Scaled, SynthOptions};
pub use presets::{PRESETS, load, load_profile};
pub use profile::{Profile, profile_hash};
pub use similarity::{Recipes, recipes, write_pages};
pub use source::ProfileSource;
