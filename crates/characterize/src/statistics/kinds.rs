//! Kinds of writes (definition 11): a partition of the page writes with a value.
//!
//! With sampling, the kinds of followed values are scaled to all writes.

use serde::{Deserialize, Serialize};

use crate::contents::Found;

/// Page writes with a value, by what they found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kinds {
    /// All: `silent` + `new` + `elsewhere` + `reborn`.
    pub writes: u64,
    /// The page's content is this value.
    pub silent: u64,
    /// The value was never written before, and the write is not silent.
    pub new: u64,
    /// Of `new`: the value was seen in a read before.
    pub new_seen_in_read: u64,
    /// Another page holds this value now.
    pub elsewhere: u64,
    /// Written before, and no page holds it now.
    pub reborn: u64,
    /// Writes of values written before whose last write went to this page.
    pub duplicate_same_address: u64,
    /// Writes of values written before whose last write went to another page.
    pub duplicate_other_address: u64,
}

/// Counts kinds.
#[derive(Debug, Default)]
pub(crate) struct KindCounter {
    kinds: Kinds,
}

impl KindCounter {
    /// A write of a followed value.
    pub fn observe(&mut self, found: Found) {
        let kinds = &mut self.kinds;
        kinds.writes += 1;
        if found.silent {
            kinds.silent += 1;
        } else if !found.written {
            kinds.new += 1;
            kinds.new_seen_in_read += u64::from(found.read);
        } else if found.held {
            kinds.elsewhere += 1;
        } else {
            kinds.reborn += 1;
        }
        if found.written {
            match found.same_page {
                true => kinds.duplicate_same_address += 1,
                false => kinds.duplicate_other_address += 1,
            }
        }
    }

    /// The kinds of all `writes` page writes with a value.
    pub fn finish(self, writes: u64) -> Kinds {
        let followed = self.kinds;
        if followed.writes == writes || followed.writes == 0 {
            return followed;
        }
        let scale = |count: u64| {
            (u128::from(count) * u128::from(writes) / u128::from(followed.writes)) as u64
        };
        let (silent, new, elsewhere) = (
            scale(followed.silent),
            scale(followed.new),
            scale(followed.elsewhere),
        );
        Kinds {
            writes,
            silent,
            new,
            new_seen_in_read: scale(followed.new_seen_in_read),
            elsewhere,
            reborn: writes - silent - new - elsewhere,
            duplicate_same_address: scale(followed.duplicate_same_address),
            duplicate_other_address: scale(followed.duplicate_other_address),
        }
    }
}
