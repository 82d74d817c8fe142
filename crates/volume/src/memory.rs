//! The memory that an open volume needs, known before it is made.

use crate::format::{Identity, Policy};

/// Bytes a page that is shown: its row of the map.
const MAP: u64 = 4;
/// Bytes a unit of flash: its owner, whether it is valid.
const UNIT: u64 = 5;
/// Bytes a stored value: its object, its birth, its place in the order of use.
const OBJECT: u64 = 16 + 8 + 8;
/// Bytes of a tag, and of a digest, of each stored value.
const TAG: u64 = 4;
const DIGEST: u64 = 16;
/// Bytes an entry of the fingerprint index, with the free slots between.
const INDEX: u64 = 16;
/// Bytes an encoded value: its slot in the directory of its page.
const SLOT: u64 = 24;
/// Bytes an entry of the history, and of its chains.
const ENTRY: u64 = 24;
/// What is remembered of the events since a checkpoint, and buffers.
const FIXED: u64 = 48 << 20;

/// Bytes of memory that a volume needs at most while it is open: tables, indexes, and what it remembers since a
/// checkpoint.
pub fn memory_needed(id: &Identity) -> u64 {
    let units = u64::from(id.blocks) * u64::from(id.pages_per_block) * u64::from(id.units_per_page);
    let mut bytes = FIXED + u64::from(id.exported) * MAP + units * UNIT;
    let has_objects = id.policy != Policy::Plain || id.encoding.is_on() || id.history.is_some();
    if has_objects {
        let tag = match id.trusts_digests() {
            true => DIGEST,
            false => TAG,
        };
        bytes += units * (OBJECT + tag);
    }
    if id.policy != Policy::Plain {
        bytes += u64::from(id.index_entries) * INDEX;
    }
    if id.encoding.is_on() {
        bytes += units * SLOT;
    }
    bytes
        + id.history
            .map_or(0, |history| u64::from(history.entries) * ENTRY)
}
