//! Values of units that a record covers in part.
//!
//! Such a unit's new content is unknown but determined: the old value with a piece of a known value
//! laid over it. Equal (old, piece, places) give the same new id, anything else another. The ids
//! follow those of the trace, in order of first appearance; while the number of the trace's own
//! values is not known yet, they count down from the top and are resolved at the end.

use std::collections::HashMap;

use crate::digests::MAX_VALUES;
use crate::error::{Error, Result};

/// The first provisional id.
const TOP: u32 = u32::MAX - 1;

/// A piece of a value laid over a unit; places and length in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Piece {
    /// The unit's value before, or `NO_VALUE`.
    pub(crate) old: u32,
    /// The value the piece is cut from.
    pub(crate) value: u32,
    /// Where in the unit it begins.
    pub(crate) at: u16,
    /// Where in the value it begins.
    pub(crate) from: u16,
    /// How long it is.
    pub(crate) length: u16,
}

#[derive(Debug, Default)]
pub(crate) struct MergedValues {
    ids: HashMap<Piece, u32>,
    base: Option<u32>,
}

impl MergedValues {
    /// Merged values after `base` values of the trace; `None` gives provisional ids.
    pub(crate) fn after(base: Option<u32>) -> Self {
        MergedValues {
            ids: HashMap::new(),
            base,
        }
    }

    pub(crate) fn intern(&mut self, piece: Piece) -> u32 {
        let count = self.ids.len() as u32;
        let base = self.base;
        *self.ids.entry(piece).or_insert_with(|| match base {
            Some(base) => base.wrapping_add(count),
            None => TOP.wrapping_sub(count),
        })
    }

    pub(crate) fn len(&self) -> u32 {
        self.ids.len() as u32
    }

    /// How provisional ids become final after a trace of `base` values.
    pub(crate) fn resolver(&self, base: u32) -> Result<impl Fn(u32) -> u32 + use<>> {
        let count = self.len();
        if u64::from(base) + u64::from(count) > u64::from(MAX_VALUES) {
            return Err(Error::Layout(format!(
                "{base} values of the trace and {count} merged ones are more than {MAX_VALUES}"
            )));
        }
        Ok(move |id: u32| {
            if id <= TOP && TOP - id < count {
                base + (TOP - id)
            } else {
                id
            }
        })
    }
}
