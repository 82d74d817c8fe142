//! The bytes of a page of a table.
//!
//! | offset | bytes | field |
//! |---:|---:|---|
//! | 0 | 4 | `FLMP` |
//! | 4 | 1 | kind of the table: forks of a table have the same |
//! | 5 | 1 | level, 0 for rows |
//! | 6 | 2 | zero |
//! | 8 | 4 | index in the level |
//! | 12 | 4 | zero |
//! | 16 | 8 | the commit that it was written for |
//! | 24 | 8 | checksum, position = slot, of bytes 0 to 23 and 32 to 4095 |
//! | 32 | 4064 | rows, or 508 pointers: slot (4), low half of the checksum of the page there (4) |
//!
//! A pointer has the check of what it leads to, so a root proves all pages below it: one that was put back to an earlier
//! state is noticed as one that rotted is.

use flashlore_content::VolumeKey;

use crate::address::{Node, Pointer, Slot};

/// Bytes of a page.
pub const PAGE_BYTES: usize = 4096;
pub(crate) const HEADER: usize = 32;
/// Bytes of rows or pointers.
pub(crate) const PAYLOAD: usize = PAGE_BYTES - HEADER;
/// Pointers of a page.
pub(crate) const FANOUT: u32 = (PAYLOAD / 8) as u32;

const MAGIC: [u8; 4] = *b"FLMP";

/// Marks what is written at a position of the medium, or to a slot, and seals it: pages, counts and roots alike have the
/// mark in front and the checksum in the last eight bytes of the header. Answers the checksum.
pub(crate) fn put_seal(bytes: &mut [u8], mark: [u8; 4], position: u64, key: &VolumeKey) -> u64 {
    bytes[..4].copy_from_slice(&mark);
    let sum = key.checksum(position, &[&bytes[..24], &bytes[HEADER..]]);
    bytes[24..HEADER].copy_from_slice(&sum.to_le_bytes());
    sum
}

/// The checksum of what was read at a position, if mark and checksum hold.
pub(crate) fn sealed(bytes: &[u8], mark: [u8; 4], position: u64, key: &VolumeKey) -> Option<u64> {
    let sum = key.checksum(position, &[&bytes[..24], &bytes[HEADER..]]);
    (bytes[..4] == mark && bytes[24..HEADER] == sum.to_le_bytes()).then_some(sum)
}

/// What a page says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Label {
    /// Of the table.
    pub kind: u8,
    pub level: u8,
    pub index: u32,
}

impl Label {
    pub fn of(kind: u8, node: Node) -> Self {
        Label {
            kind,
            level: node.level,
            index: node.index,
        }
    }
}

/// Seals a page for a slot: writes its header, and answers what its pointer has to say.
pub(crate) fn seal(
    page: &mut [u8],
    label: Label,
    slot: Slot,
    commit: u64,
    key: &VolumeKey,
) -> Pointer {
    page[4] = label.kind;
    page[5] = label.level;
    page[6..8].fill(0);
    page[8..12].copy_from_slice(&label.index.to_le_bytes());
    page[12..16].fill(0);
    page[16..24].copy_from_slice(&commit.to_le_bytes());
    let sum = put_seal(page, MAGIC, slot.into(), key);
    Pointer {
        slot,
        check: sum as u32,
    }
}

/// Whether a page is the one that a pointer means; otherwise what does not hold.
pub(crate) fn verify(
    page: &[u8],
    label: Label,
    pointer: Pointer,
    key: &VolumeKey,
) -> Result<(), &'static str> {
    let sum = sealed(page, MAGIC, pointer.slot.into(), key).ok_or("its checksum does not hold")?;
    if sum as u32 != pointer.check {
        return Err("it is not the page that was written there last");
    }
    let index = [page[8], page[9], page[10], page[11]];
    let found = Label {
        kind: page[4],
        level: page[5],
        index: u32::from_le_bytes(index),
    };
    match found == label {
        true => Ok(()),
        false => Err("it is another page"),
    }
}

/// A pointer of a page.
#[inline(always)]
pub(crate) fn pointer(page: &[u8], at: usize) -> Pointer {
    let from = HEADER + at * 8;
    page[from..from + 8]
        .first_chunk()
        .map_or(Pointer::NONE, Pointer::read)
}

/// Sets a pointer of a page.
pub(crate) fn set_pointer(page: &mut [u8], at: usize, pointer: Pointer) {
    let from = HEADER + at * 8;
    page[from..from + 8].copy_from_slice(&pointer.bytes());
}

/// The pointers of a page that lead anywhere, with their places.
pub(crate) fn pointers(page: &[u8]) -> impl Iterator<Item = (usize, Pointer)> + '_ {
    let all = (0..FANOUT as usize).map(|at| (at, pointer(page, at)));
    all.filter(|(_, pointer)| pointer.is_some())
}
