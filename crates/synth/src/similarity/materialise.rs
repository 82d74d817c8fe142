//! A recipe becomes a page.
//!
//! Every page but the zero page begins with a stamp that names its recipe, as pages of databases begin
//! with their number and that of their last change: two recipes never give the same bytes, and the
//! stamps of two versions differ in two bytes at most. The body behind it is what the page's origin
//! holds, with the changes that make it a variant and those of its version, as far as the page is used;
//! zeros follow.

use flashlore_trace::pages::PAGE_BYTES;

use super::model::Similarity;
use super::recipe::{PageKind, Recipe, Relation};
use super::{body, changes, hash};

/// Bytes of the stamp.
pub(crate) const STAMP_BYTES: usize = 12;

/// Bytes behind the stamp.
pub(crate) const BODY_BYTES: usize = PAGE_BYTES - STAMP_BYTES;

/// Writes the page of a recipe of a workload with this model and seed into `page`. Equal recipes give
/// equal pages, distinct ones distinct pages.
pub fn materialise(model: &Similarity, seed: u64, recipe: &Recipe, page: &mut [u8; PAGE_BYTES]) {
    if *recipe == Recipe::ZERO {
        page.fill(0);
        return;
    }
    let (stamp, bytes) = page.split_at_mut(STAMP_BYTES);
    let used = used_bytes(model, seed, recipe);
    body::fill(model, seed, recipe, &mut bytes[..used]);
    if recipe.relation() == Relation::Associate {
        changes::vary(&model.changes, seed, recipe.family, bytes);
    }
    if recipe.kind == PageKind::Record {
        changes::update(&model.records, seed, recipe, bytes);
    }
    bytes[used..].fill(0);
    write_stamp(seed, recipe, stamp);
}

/// Bytes of the body that are not zeros behind.
fn used_bytes(model: &Similarity, seed: u64, recipe: &Recipe) -> usize {
    match recipe.kind {
        PageKind::Log => changes::log_bytes(&model.log, seed, recipe),
        PageKind::Padded => {
            let unit = hash::unit(seed, hash::Purpose::Length, recipe.origin(), 0);
            1 + (unit * (2.0 * model.padded.head - 1.0)).round() as usize
        }
        PageKind::Zero => 0,
        PageKind::Record | PageKind::Text | PageKind::Random => BODY_BYTES,
    }
}

/// All fields of the recipe, hidden by bytes that all pages share.
fn write_stamp(seed: u64, recipe: &Recipe, stamp: &mut [u8]) {
    stamp[..4].copy_from_slice(&recipe.family.to_be_bytes());
    stamp[4..8].copy_from_slice(&recipe.cluster.to_be_bytes());
    stamp[8..10].copy_from_slice(&recipe.version.to_be_bytes());
    stamp[10] = recipe.kind as u8;
    // Never the stamp of the zero page, which has none.
    stamp[11] = 1;
    let mut draw = hash::draw(seed, hash::Purpose::Stamp, 0, 0);
    let mut hidden = [0; STAMP_BYTES - 1];
    hash::fill(&mut draw, &mut hidden);
    for (byte, hidden) in stamp.iter_mut().zip(hidden) {
        *byte ^= hidden;
    }
}
