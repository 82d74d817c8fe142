//! The out-of-band record of a unit: 64 bytes, in the record area behind the data of its flash page.
//!
//! | offset | bytes | field |
//! |---:|---:|---|
//! | 0 | 1 | kind: 0 padding (all other fields zero), 1 data, 2 lost, 3 packed |
//! | 1 | 3 | zero |
//! | 4 | 4 | LPN of the write: the address the content was first written to |
//! | 8 | 8 | write sequence number: sequence number of the write; a copy keeps it. Packed: checksum of the heads |
//! | 16 | 8 | generation: which generation of the block the page belongs to |
//! | 24 | 8 | acknowledgement time, nanoseconds since 1970 |
//! | 32 | 4 | epoch the page was programmed in |
//! | 36 | 4 | whose the unit is ([`Owner`]); zero in what a version up to 5 programmed |
//! | 40 | 16 | keyed digest of the data |
//! | 56 | 8 | keyed checksum of the unit's number and bytes 0 to 55 |

use flashlore_content::{Digest, VolumeKey};
use flashlore_flash::{Lpn, Owner, Ppn};

use super::cursor::{Reader, Writer};

pub const RECORD_BYTES: usize = 64;

/// Whether the data of a unit are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnitKind {
    /// They are.
    Data,
    /// They could not be read when the unit was copied: reads fail.
    Lost,
    /// They are encoded values, see [`super::packed`].
    Packed,
}

/// What is known of the content of a unit, wherever it lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Whether the data are there.
    pub kind: UnitKind,
    /// The address the content was first written to.
    pub lpn: Lpn,
    /// Sequence number of that write.
    pub write_seq: u64,
    /// When it was acknowledged, in nanoseconds since 1970.
    pub stamp: u64,
    /// Digest of the data.
    pub digest: Digest,
}

/// A record and the page it lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlacedRecord {
    /// What it says of the content.
    pub record: Record,
    /// Which generation of the block it was programmed in.
    pub generation: u64,
    /// The epoch it was programmed in.
    pub epoch: u32,
    /// Whose the unit is.
    pub owner: Owner,
}

/// What the record area says of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// A record that holds.
    Record(PlacedRecord),
    /// Padding, or never programmed.
    Empty,
    /// Neither: torn, rotten, or of another place.
    Broken,
}

impl PlacedRecord {
    /// The bytes of the record of the unit `ppn`.
    pub fn encode(&self, key: &VolumeKey, ppn: Ppn) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        let kind = match self.record.kind {
            UnitKind::Data => 1,
            UnitKind::Lost => 2,
            UnitKind::Packed => 3,
        };
        Writer::new(&mut bytes)
            .u8(kind)
            .put(&[0; 3])
            .u32(self.record.lpn.0)
            .u64(self.record.write_seq)
            .u64(self.generation)
            .u64(self.record.stamp)
            .u32(self.epoch)
            .u32(self.owner.number())
            .u128(self.record.digest.0);
        let check = key.checksum(u64::from(ppn.0), &[&bytes[..56]]);
        bytes[56..].copy_from_slice(&check.to_le_bytes());
        bytes
    }
}

impl Slot {
    /// Reads the record of the unit `ppn`.
    pub fn decode(bytes: &[u8], key: &VolumeKey, ppn: Ppn) -> Slot {
        if bytes.iter().all(|&b| b == 0) {
            return Slot::Empty;
        }
        let mut fields = Reader::new(bytes);
        let kind = match fields.u8() {
            1 => UnitKind::Data,
            2 => UnitKind::Lost,
            3 => UnitKind::Packed,
            _ => return Slot::Broken,
        };
        fields.take::<3>();
        let (lpn, write_seq, generation) = (fields.u32(), fields.u64(), fields.u64());
        let (stamp, epoch, owner) = (fields.u64(), fields.u32(), fields.u32());
        let digest = Digest(fields.u128());
        if fields.u64() != key.checksum(u64::from(ppn.0), &[&bytes[..56]]) {
            return Slot::Broken;
        }
        Slot::Record(PlacedRecord {
            record: Record {
                kind,
                lpn: Lpn(lpn),
                write_seq,
                stamp,
                digest,
            },
            generation,
            epoch,
            owner: Owner::numbered(owner),
        })
    }
}
