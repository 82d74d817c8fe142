//! The data of a packed unit: encoded values one after another, what is known of each in front.
//!
//! | offset | bytes | field |
//! |---:|---:|---|
//! | 0 | 2 | values |
//! | 2 | 2 | zero |
//! | 4 | 48 each | heads |
//! | | | the values' bytes in the order of their heads |
//!
//! | offset | bytes | field of a head |
//! |---:|---:|---|
//! | 0 | 4 | LPN: the address the content was first written to |
//! | 4 | 2 | bytes of the value |
//! | 6 | 2 | 1: the value was lost before it was copied here |
//! | 8 | 8 | write sequence number |
//! | 16 | 8 | write sequence number of the base, 0 for none |
//! | 24 | 8 | stamp |
//! | 32 | 16 | digest of the page that it decodes to |
//!
//! The unit's record has kind 3 and the digest of the data as any other; in place of a write sequence number it has the
//! checksum of the heads, so that they can be trusted when the values cannot. The same head and bytes stand in the
//! journal for a value that waits in RAM while everything is made durable.

use flashlore_content::{Digest, PAGE_BYTES, VolumeKey};
use flashlore_flash::Lpn;
use flashlore_ftl::mapping::packs::SLOT_BYTES;

use super::PackSlot;
use super::cursor::{Reader, Writer};

/// Bytes in front of the heads.
pub const FRONT_BYTES: usize = 4;
pub const HEAD_BYTES: usize = 48;
/// What a value takes besides its bytes and the slot that the translation layer counts.
pub const EXTRA_BYTES: u16 = HEAD_BYTES as u16 - SLOT_BYTES as u16;

/// What is known of an encoded value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The address it was first written to.
    pub lpn: Lpn,
    /// Bytes of the value.
    pub length: u16,
    /// Whether the value is not there any more.
    pub lost: bool,
    /// Sequence number of the write.
    pub write_seq: u64,
    /// Write sequence number of what it is a delta from; 0 if it is none.
    pub base: u64,
    /// When the write was acknowledged.
    pub stamp: u64,
    /// Digest of the page that it decodes to.
    pub digest: Digest,
}

impl Head {
    /// Writes a head.
    pub fn encode(&self, out: &mut Writer<'_>) {
        out.u32(self.lpn.0)
            .u16(self.length)
            .u16(u16::from(self.lost))
            .u64(self.write_seq)
            .u64(self.base)
            .u64(self.stamp)
            .u128(self.digest.0);
    }

    /// Reads a head; `None` if there is none.
    pub fn decode(fields: &mut Reader<'_>) -> Option<Head> {
        let (lpn, length) = (fields.u32(), fields.u16());
        if usize::from(length) + HEAD_BYTES + FRONT_BYTES > PAGE_BYTES {
            return None;
        }
        let lost = match fields.u16() {
            0 => false,
            1 => true,
            _ => return None,
        };
        Some(Head {
            lpn: Lpn(lpn),
            length,
            lost,
            write_seq: fields.u64(),
            base: fields.u64(),
            stamp: fields.u64(),
            digest: Digest(fields.u128()),
        })
    }

    /// What it takes of a page with its value, as the translation layer counts it.
    pub fn slot_length(&self) -> u16 {
        self.length + EXTRA_BYTES
    }
}

/// Lays values out in a page, which is zero. They must fit. Answers the checksum of the heads.
pub fn encode<'a>(
    key: &VolumeKey,
    values: impl Iterator<Item = (Head, &'a [u8])> + Clone,
    page: &mut [u8],
) -> u64 {
    let count = values.clone().count();
    let mut at = FRONT_BYTES + count * HEAD_BYTES;
    let (front, rest) = page.split_at_mut(at);
    let mut out = Writer::new(front);
    out.u16(count as u16).u16(0);
    for (head, bytes) in values {
        head.encode(&mut out);
        rest[at - FRONT_BYTES - count * HEAD_BYTES..][..bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
    }
    checksum(key, front)
}

fn checksum(key: &VolumeKey, front: &[u8]) -> u64 {
    key.checksum(front.len() as u64, &[front])
}

/// The heads of a packed unit; `None` if they are not those with this checksum.
pub fn heads(key: &VolumeKey, page: &[u8], check: u64) -> Option<Vec<Head>> {
    let count = usize::from(Reader::new(page).u16());
    let front = page.get(..FRONT_BYTES + count.checked_mul(HEAD_BYTES)?)?;
    if checksum(key, front) != check {
        return None;
    }
    read(page)
}

/// The heads of a packed unit that holds; `None` if it is none.
pub fn read(page: &[u8]) -> Option<Vec<Head>> {
    let mut fields = Reader::new(page);
    let count = usize::from(fields.u16());
    fields.u16();
    let mut at = FRONT_BYTES + count * HEAD_BYTES;
    let mut heads = Vec::with_capacity(count.min(PAGE_BYTES / HEAD_BYTES));
    for _ in 0..count {
        let head = Head::decode(&mut fields)?;
        at += usize::from(head.length);
        if at > PAGE_BYTES {
            return None;
        }
        heads.push(head);
    }
    Some(heads)
}

/// Head and bytes of a value of a packed unit that holds.
pub fn value(page: &[u8], slot: PackSlot) -> Option<(Head, &[u8])> {
    let heads = read(page)?;
    let head = *heads.get(slot.index())?;
    let before: usize = heads[..slot.index()]
        .iter()
        .map(|h| usize::from(h.length))
        .sum();
    let start = FRONT_BYTES + heads.len() * HEAD_BYTES + before;
    Some((head, page.get(start..start + usize::from(head.length))?))
}

/// The slots of a packed unit that holds whose values were lost before they were copied there.
pub fn lost_slots(page: &[u8]) -> Vec<PackSlot> {
    let heads = read(page).unwrap_or_default();
    let lost = (0..).map(PackSlot).zip(heads).filter(|(_, head)| head.lost);
    lost.map(|(slot, _)| slot).collect()
}
