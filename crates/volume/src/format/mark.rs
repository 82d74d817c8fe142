//! How much of the present journal is durable: one sector, apart from the journal itself, so that damage to the end of
//! the journal does not hide that there was more.
//!
//! It lies in the last [`MARK_BYTES`] of the segment that is not in use. It is written after a barrier and without one
//! of its own: an older one, or none, says less and nothing wrong.
//!
//! | offset | bytes | field |
//! |---:|---:|---|
//! | 0 | 4 | magic `FLDM` |
//! | 4 | 4 | epoch |
//! | 8 | 8 | number of the checkpoint that the segment in use follows |
//! | 16 | 8 | durable: everything up to this event is |
//! | 24 | 8 | keyed checksum of the offset in the segment and bytes 0 to 23 |

use flashlore_content::VolumeKey;

use super::cursor::{Reader, Writer};

/// Bytes at the end of each journal segment that take no batches.
pub const MARK_BYTES: u64 = 4096;
const MAGIC: [u8; 4] = *b"FLDM";
const FIELDS: usize = 24;

/// How much is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DurableMark {
    /// Epoch it was written in.
    pub epoch: u32,
    /// The checkpoint that the segment in use follows.
    pub checkpoint: u64,
    /// Everything up to this event.
    pub durable: u64,
}

impl DurableMark {
    /// Its bytes at `offset` of the segment; `out` is a sector at least.
    pub fn encode(&self, key: &VolumeKey, offset: u64, out: &mut [u8]) {
        out.fill(0);
        let mut writer = Writer::new(out);
        writer.put(&MAGIC).u32(self.epoch);
        writer.u64(self.checkpoint).u64(self.durable);
        let check = key.checksum(offset, &[&out[..FIELDS]]);
        out[FIELDS..FIELDS + 8].copy_from_slice(&check.to_le_bytes());
    }

    /// Reads the mark at `offset` of a segment; `None` if there is none that holds.
    pub fn decode(bytes: &[u8], key: &VolumeKey, offset: u64) -> Option<DurableMark> {
        let mut fields = Reader::new(bytes);
        if fields.take::<4>() != MAGIC {
            return None;
        }
        let mark = DurableMark {
            epoch: fields.u32(),
            checkpoint: fields.u64(),
            durable: fields.u64(),
        };
        (fields.u64() == key.checksum(offset, &[bytes.get(..FIELDS)?])).then_some(mark)
    }
}
