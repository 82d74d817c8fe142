//! The data of a packed unit: encoded values one after another, what is known of each in front.
//!
//! | offset | bytes | field |
//! |---:|---:|---|
//! | 0 | 2 | values |
//! | 2 | 2 | 1: heads name objects by handle; 0: as version 5 did |
//! | 4 | 52 each, 48 in version 5 | heads |
//! | | | the values' bytes in the order of their heads |
//!
//! | offset | bytes | field of a head |
//! |---:|---:|---|
//! | 0 | 4 | LPN: the address the content was first written to |
//! | 4 | 2 | bytes of the value |
//! | 6 | 2 | 1: the value was lost before it was copied here |
//! | 8 | 8 | write sequence number |
//! | 16 | 8 | name of the base ([`super::name`]) |
//! | 24 | 8 | stamp |
//! | 32 | 16 | digest of the page that it decodes to |
//! | 48 | 4 | handle of the object that it is the value of; not in version 5 |
//!
//! The unit's record has kind 3 and the digest of the data as any other; in place of a write sequence number it has the
//! checksum of the heads, so that they can be trusted when the values cannot. The same head and bytes stand in the
//! journal for a value that waits in RAM while everything is made durable.

use flashlore_content::{Digest, PAGE_BYTES, VolumeKey};
use flashlore_flash::{Lpn, ObjectId};
use flashlore_ftl::mapping::packs::SLOT_BYTES;

use super::PackSlot;
use super::cursor::{Reader, Writer};
use super::name::{Naming, ObjectName};

/// Bytes in front of the heads.
pub const FRONT_BYTES: usize = 4;
/// Bytes of a head as it is written.
pub const HEAD_BYTES: usize = Naming::ByHandle.head_bytes();
/// What a value takes besides its bytes and the slot that the translation layer counts.
pub const EXTRA_BYTES: u16 = HEAD_BYTES as u16 - SLOT_BYTES as u16;

impl Naming {
    /// Bytes of a head.
    pub const fn head_bytes(self) -> usize {
        match self {
            Naming::ByWrite => 48,
            Naming::ByHandle => 52,
        }
    }

    fn of_mark(mark: u16) -> Option<Naming> {
        match mark {
            0 => Some(Naming::ByWrite),
            1 => Some(Naming::ByHandle),
            _ => None,
        }
    }
}

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
    /// What it is a delta from.
    pub base: Option<ObjectName>,
    /// When the write was acknowledged.
    pub stamp: u64,
    /// Digest of the page that it decodes to.
    pub digest: Digest,
    /// The object that it is the value of; none in what version 5 wrote.
    pub object: ObjectId,
}

impl Head {
    /// Writes a head.
    pub fn encode(&self, out: &mut Writer<'_>, naming: Naming) {
        out.u32(self.lpn.0)
            .u16(self.length)
            .u16(u16::from(self.lost))
            .u64(self.write_seq)
            .u64(ObjectName::word(self.base, naming))
            .u64(self.stamp)
            .u128(self.digest.0);
        if naming == Naming::ByHandle {
            out.u32(self.object.0);
        }
    }

    /// Reads a head; `None` if there is none.
    pub fn decode(fields: &mut Reader<'_>, naming: Naming) -> Option<Head> {
        let (lpn, length) = (fields.u32(), fields.u16());
        if usize::from(length) + naming.head_bytes() + FRONT_BYTES > PAGE_BYTES {
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
            base: ObjectName::of_word(fields.u64(), naming),
            stamp: fields.u64(),
            digest: Digest(fields.u128()),
            object: match naming {
                Naming::ByWrite => ObjectId::NONE,
                Naming::ByHandle => ObjectId(fields.u32()),
            },
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
    naming: Naming,
    page: &mut [u8],
) -> u64 {
    let count = values.clone().count();
    let (front, rest) = page.split_at_mut(FRONT_BYTES + count * naming.head_bytes());
    let mut out = Writer::new(front);
    out.u16(count as u16).u16(naming as u16);
    let mut at = 0;
    for (head, bytes) in values {
        head.encode(&mut out, naming);
        rest[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
    }
    checksum(key, front)
}

fn checksum(key: &VolumeKey, front: &[u8]) -> u64 {
    key.checksum(front.len() as u64, &[front])
}

/// The heads of a packed unit; `None` if they are not those with this checksum.
pub fn heads(key: &VolumeKey, page: &[u8], check: u64) -> Option<Vec<Head>> {
    let (count, naming) = front(&mut Reader::new(page))?;
    let front = page.get(..FRONT_BYTES + count * naming.head_bytes())?;
    if checksum(key, front) != check {
        return None;
    }
    read(page)
}

/// How many values a packed unit has, and how its heads name objects; `None` if it is none.
fn front(fields: &mut Reader<'_>) -> Option<(usize, Naming)> {
    let count = usize::from(fields.u16());
    Some((count, Naming::of_mark(fields.u16())?))
}

/// Bytes in front of the values of a packed unit, the heads among them; `None` if it is none.
pub fn front_bytes(page: &[u8]) -> Option<usize> {
    let (count, naming) = front(&mut Reader::new(page))?;
    Some(FRONT_BYTES + count * naming.head_bytes())
}

/// The heads of a packed unit that holds; `None` if it is none.
pub fn read(page: &[u8]) -> Option<Vec<Head>> {
    let mut fields = Reader::new(page);
    let (count, naming) = front(&mut fields)?;
    let mut at = FRONT_BYTES + count * naming.head_bytes();
    let mut heads = Vec::with_capacity(count.min(PAGE_BYTES / naming.head_bytes()));
    for _ in 0..count {
        let head = Head::decode(&mut fields, naming)?;
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
    let start = front_bytes(page)? + before;
    Some((head, page.get(start..start + usize::from(head.length))?))
}

/// The slots of a packed unit that holds whose values were lost before they were copied there.
pub fn lost_slots(page: &[u8]) -> Vec<PackSlot> {
    let heads = read(page).unwrap_or_default();
    let lost = (0..).map(PackSlot).zip(heads).filter(|(_, head)| head.lost);
    lost.map(|(slot, _)| slot).collect()
}
