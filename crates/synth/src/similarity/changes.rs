//! What changes in a page: the variants of a reference, and the versions of a page written in place.
//!
//! A version is not made from the one before: how many updates it has seen, and which of them was the
//! last of each record, follows from its number. Records are updated in rounds, each of which updates
//! every record of the page once, in an order of its own.

use super::hash::{self, Purpose};
use super::materialise::BODY_BYTES;
use super::model::{Changes, Log, Records};
use super::recipe::Recipe;

/// Changes what a reference holds to what a variant of it, the page of `family`, holds.
pub(crate) fn vary(changes: &Changes, seed: u64, family: u32, body: &mut [u8]) {
    let mut draw = hash::draw(seed, Purpose::Changes, family, 0);
    match *changes {
        Changes::Runs { count, bytes } => {
            let places = body.len() as u32 - bytes + 1;
            for _ in 0..spread(count, draw.unit(), 1.0) {
                let at = draw.below(places) as usize;
                hash::fill(&mut draw, &mut body[at..at + bytes as usize]);
            }
        }
        Changes::Scattered { bits, over } => {
            let bytes = (over * body.len() as f64).round() as usize;
            let at = draw.below((body.len() - bytes) as u32 + 1) as usize;
            let part = &mut body[at..at + bytes];
            // A bit flipped twice is as before: so many flips leave the share that is asked for.
            let flips = -0.5 * (1.0 - 2.0 * bits).ln() * (part.len() * 8) as f64;
            for _ in 0..flips.round() as u64 {
                let bit = draw.below(part.len() as u32 * 8);
                part[bit as usize / 8] ^= 1 << (bit % 8);
            }
        }
    }
}

/// Makes the updates that a version has seen.
pub(crate) fn update(model: &Records, seed: u64, recipe: &Recipe, body: &mut [u8]) {
    let updates = updates(model, seed, recipe);
    if updates == 0 {
        return;
    }
    let length = body.len() / model.page as usize;
    let mut write = |round: u32, record: u32| {
        let at = record as usize * length;
        let number = round * model.page + record;
        let mut draw = hash::draw(seed, Purpose::Record, recipe.family, number);
        hash::fill(&mut draw, &mut body[at..at + model.bytes as usize]);
    };
    let round = (updates - 1) / model.page;
    if round > 0 {
        (0..model.page).for_each(|record| write(round - 1, record));
    }
    for record in
        order(model.page, seed, recipe.family, round).take((updates - round * model.page) as usize)
    {
        write(round, record);
    }
}

/// The order in which a round updates the records of a page (Fisher, Yates).
fn order(records: u32, seed: u64, family: u32, round: u32) -> impl Iterator<Item = u32> {
    let mut draw = hash::draw(seed, Purpose::Places, family, round);
    let mut order: Vec<u32> = (0..records).collect();
    for left in (1..order.len()).rev() {
        order.swap(left, draw.below(left as u32 + 1) as usize);
    }
    order.into_iter()
}

/// Updates from the first version to this one.
fn updates(model: &Records, seed: u64, recipe: &Recipe) -> u32 {
    match recipe.version {
        0 => 0,
        version => {
            let unit = hash::unit(seed, Purpose::Touched, recipe.family, version.into());
            spread(model.updated, unit, version.into())
        }
    }
}

/// Bytes of a log, at most those of a body.
pub(crate) fn log_bytes(model: &Log, seed: u64, recipe: &Recipe) -> usize {
    let version = recipe.version;
    let unit = hash::unit(seed, Purpose::Touched, recipe.family, version.into());
    let bytes = spread(model.append, unit, f64::from(version) + 1.0);
    (bytes as usize).min(BODY_BYTES)
}

/// A number near `times` times `mean` that grows by at least 1 with every one of `times`, by `mean` on
/// average, if `unit` is drawn anew from [0, 1) for each.
fn spread(mean: f64, unit: f64, times: f64) -> u32 {
    (mean * times + (unit - 0.5) * (mean - 1.0)) as u32
}
