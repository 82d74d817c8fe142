//! Pages of the place table: of each block one entry of 16 bytes, and in pages behind them one of each frozen place.

use crate::icash::format::bytes::{get_u32, get_u64, is_sealed, put, seal};
use crate::icash::parameters::BLOCK_BYTES;
use crate::icash::place::{ENTRY_BYTES, RawEntry};
use crate::index::TablePage;

const MAGIC: &[u8; 4] = b"FLAT";
const ENTRIES_AT: usize = 32;

pub const ENTRIES: usize = (BLOCK_BYTES - ENTRIES_AT) / ENTRY_BYTES;

/// All entries of a page.
pub type PageEntries = [RawEntry; ENTRIES];

/// Pages that so many entries take.
pub fn pages_of(entries: u64) -> u64 {
    entries.div_ceil(ENTRIES as u64)
}

/// The bytes of page number `page`, written by a checkpoint at `offset`. Missing entries are those of blocks
/// and frozen places that do not exist.
pub fn encode(
    entries: &[RawEntry],
    tag: u64,
    page: TablePage,
    checkpoint: u64,
    offset: u64,
) -> Vec<u8> {
    let mut bytes = vec![0; BLOCK_BYTES];
    put(&mut bytes, 8, &tag.to_le_bytes());
    put(&mut bytes, 16, &page.0.to_le_bytes());
    put(&mut bytes, 24, &checkpoint.to_le_bytes());
    for (index, entry) in entries.iter().enumerate() {
        put(&mut bytes, ENTRIES_AT + ENTRY_BYTES * index, &entry.0);
    }
    seal(&mut bytes, MAGIC, offset);
    bytes
}

/// The entries of page number `page`, if the bytes are that page, written by checkpoint `newest` or one before.
pub fn parse(
    bytes: &[u8],
    tag: u64,
    page: TablePage,
    newest: u64,
    offset: u64,
) -> Option<PageEntries> {
    let holds = bytes.len() == BLOCK_BYTES
        && is_sealed(bytes, MAGIC, offset)
        && get_u64(bytes, 8) == tag
        && TablePage(get_u32(bytes, 16)) == page
        && get_u64(bytes, 24) <= newest;
    holds.then(|| {
        let (entries, _) = bytes[ENTRIES_AT..].as_chunks();
        std::array::from_fn(|at| RawEntry(entries[at]))
    })
}
