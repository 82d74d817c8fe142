//! Similarity: the bytes of every value of a workload, without keeping any of them.
//!
//! | module | what it is |
//! |---|---|
//! | [`model`] | `[similarity]` of a profile: kinds of pages, versions, clusters |
//! | [`recipe`] | what tells the bytes of a value, in 12 bytes |
//! | [`mod@recipes`] | the recipes of a workload's values |
//! | [`mod@materialise`] | a recipe becomes a page |
//! | `body`, `changes` | what a page holds at first; variants and versions of it |
//! | `hash` | everything that looks random and is not drawn in an order |

mod body;
mod changes;
mod hash;
pub mod materialise;
pub mod model;
pub mod recipe;
pub mod recipes;

pub use materialise::materialise;
pub use model::Similarity;
pub use recipe::{PageKind, Recipe, Relation};
pub use recipes::{Recipes, image_pages, recipes, write_pages};
