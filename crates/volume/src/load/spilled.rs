//! Counts of references that have no room in the rows of their objects.

use std::ops::Range;

use flashlore_flash::{ObjectId, Row};
use flashlore_ftl::mapping::objects::SpilledPart;
use rustc_hash::FxHashMap;

use super::stored::Rows;
use crate::error::VolumeError;
use crate::format::Table;

/// What is spilled of the counts of each object.
pub(crate) type SpilledCounts = FxHashMap<ObjectId, [u32; 3]>;

/// The spilled counts of these objects, in so many rows.
///
/// # Errors
/// An object has two parts of a count, or one that cannot be; or a page cannot be read.
pub(crate) fn spilled(
    rows: &Rows<'_>,
    used: u32,
    objects: Range<ObjectId>,
) -> Result<SpilledCounts, VolumeError> {
    let mut found = SpilledCounts::default();
    let mut wrong = None;
    rows.each(Table::Spilled, |row, bytes| {
        let spilled = SpilledPart::decode(bytes);
        let SpilledPart { object, kind, part } = spilled;
        if row.0 >= used || part == 0 || !objects.contains(&object) {
            return;
        }
        match found.entry(object).or_default().get_mut(kind as usize) {
            Some(before) if *before == 0 && spilled.is_possible() => *before = part,
            _ => _ = wrong.get_or_insert((object, kind)),
        }
    })?;
    wrong.map_or(Ok(found), |(object, kind)| {
        Err(VolumeError::Damaged(format!(
            "object {object} has two spilled counts of kind {kind}, or one that cannot be, or there is no such kind"
        )))
    })
}
