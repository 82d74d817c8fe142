//! Overlays: content and delta ratios of page writes that a trace does not tell.
//!
//! Page writes are numbered from 0 in the order of the trace, over the devices that are kept. A
//! [`ContentModel`] gives each a value id, and a [`DeltaModel`] the ratio R_c, the size of its
//! compressed delta to the page's old content over the size of a page,
//! unless that is the trace's own. What is drawn at random depends on the seed and the number of the
//! page write alone, never on the order of a replay.
//!
//! | file | what |
//! |---|---|
//! | `model` | the models and what they become for one pass: [`Overlay`] |
//! | `named` | models made elsewhere, with state of their own |
//! | `zipf` | exact zipf draws in constant memory |
//! | `delta` | ratios |
//! | `draw` | random numbers by seed and number |
//! | `text` | the models as users write them |

mod delta;
mod draw;
mod model;
mod named;
mod text;
mod zipf;

pub(crate) use delta::Ratios;
pub use delta::{DeltaModel, FULL_RATIO};
pub use draw::splitmix64;
pub use model::{ContentModel, Overlay};
pub use named::{MakeOverlay, NamedOverlay};
