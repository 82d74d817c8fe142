//! Values and the pages that stand for them.
//!
//! Value 0 is the page of zeros, which an unmapped address reads as too. Every sector of every other
//! page differs from that of any other value, so that a torn or mixed page stands for no value. One page in three
//! cannot be compressed; of the others a part of every sector is the same. From [`FAMILIES`] on that part is not
//! zeros, but what all pages of a family have in common.

use flashlore_content::{PAGE_BYTES, PageBytes};

/// What a page stands for.
pub type Value = u32;

/// What a page that stands for no value is taken for. No history writes it.
pub const NO_VALUE: Value = Value::MAX;

/// What a page held was purged: reading it there is an error.
pub const PURGED: Value = Value::MAX - 1;

/// What a page held cannot be read: an error. No history writes it.
pub const UNREADABLE: Value = Value::MAX - 2;

/// What a page held was purged, and even that cannot be read perhaps.
const DOUBTFUL_PURGE: Value = Value::MAX - 3;

/// With this bit a value may have been purged.
const PERHAPS: Value = 1 << 31;

/// With this bit a value may be unreadable.
const DOUBTFUL: Value = 1 << 29;

/// A value that was purged unless the volume knew that nothing changed.
pub fn perhaps(value: Value) -> Value {
    match value {
        PURGED | DOUBTFUL_PURGE => value,
        value => value | PERHAPS,
    }
}

/// Whether it is not certain what a volume says of a value.
pub fn is_unsure(expected: Value) -> bool {
    expected & PERHAPS != 0 && !is_purged(expected)
}

/// Whether what a page held was purged.
pub fn is_purged(value: Value) -> bool {
    value == PURGED || value == DOUBTFUL_PURGE
}

/// A value that the medium may have lost: it reads as it should, or not at all.
pub fn doubtful(value: Value) -> Value {
    match value {
        PURGED | DOUBTFUL_PURGE => DOUBTFUL_PURGE,
        value => value | DOUBTFUL,
    }
}

/// A value, whether it can be read or not.
pub fn without_doubt(value: Value) -> Value {
    match value {
        PURGED | DOUBTFUL_PURGE => PURGED,
        value => value & !DOUBTFUL,
    }
}

/// Whether a volume may say this of what a page held.
pub fn agrees(expected: Value, found: Value) -> bool {
    if is_purged(expected) {
        return found == PURGED || expected == DOUBTFUL_PURGE && found == UNREADABLE;
    }
    let value = expected & !(PERHAPS | DOUBTFUL);
    let is_lost = expected & DOUBTFUL != 0 && found == UNREADABLE;
    let is_purged = expected & PERHAPS != 0 && found == PURGED;
    found == value || is_lost || is_purged
}

/// Values from here on belong to one of three families.
pub const FAMILIES: Value = 1 << 30;

/// The page of a value.
pub fn page(value: Value) -> PageBytes {
    let mut page = [0; PAGE_BYTES];
    if value != 0 {
        let words = match value % 3 {
            0 => 64,
            _ => 2 + value % 5 * 8,
        };
        for (i, word) in page.as_chunks_mut().0.iter_mut().enumerate() {
            let seed = match i as u32 % 64 >= words {
                true if value < FAMILIES => continue,
                true => FAMILIES + value / 8 % 3,
                false => value,
            };
            let mixed = (u64::from(seed) << 32 | i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            *word = (mixed ^ mixed >> 29).to_le_bytes();
        }
        page[..4].copy_from_slice(&value.to_le_bytes());
    }
    page
}

/// The value a page stands for, or [`NO_VALUE`].
pub fn value_of(bytes: &PageBytes) -> Value {
    let value = Value::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    if *bytes == page(value) {
        value
    } else {
        NO_VALUE
    }
}
