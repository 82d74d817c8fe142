//! An entry of the history, and how it stands in tables.

use flashlore_flash::{EntryNumber, Lpn, ObjectId, QueueAt, Row};

use super::pins::PinnedInstant;

/// One superseded reference, 20 bytes; without a page a gap, of which the stamp alone means something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C, packed(4))]
pub struct VersionEntry {
    /// When the page stopped to refer to the object.
    pub stamp: u64,
    /// The page.
    pub lpn: Lpn,
    /// What it referred to.
    pub object: ObjectId,
    /// The number of the entry of the page before this one, or of anything else.
    pub older: EntryNumber,
}

impl VersionEntry {
    /// Whether it is none: it was taken from between the others.
    #[inline(always)]
    pub fn is_gap(&self) -> bool {
        self.lpn == Lpn::NONE
    }
}

impl Row for VersionEntry {
    const BYTES: usize = 20;

    fn encode(self, out: &mut [u8]) {
        self.stamp.encode(&mut out[..8]);
        self.lpn.0.encode(&mut out[8..12]);
        self.object.encode(&mut out[12..16]);
        self.older.0.encode(&mut out[16..20]);
    }

    fn decode(bytes: &[u8]) -> Self {
        VersionEntry {
            stamp: u64::decode(&bytes[..8]),
            lpn: Lpn(u32::decode(&bytes[8..12])),
            object: ObjectId::decode(&bytes[12..16]),
            older: EntryNumber(u32::decode(&bytes[16..20])),
        }
    }
}

/// How entries stand in their tables.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChainsAt {
    /// Where their queue stands, gaps included.
    pub queue: QueueAt,
    /// Gaps in it.
    pub gaps: u32,
}

/// How a history stands in its tables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HistoryAt {
    /// The start of the window.
    pub oldest: u64,
    /// The entries of the window.
    pub window: ChainsAt,
    /// Those that pinned instants keep behind it.
    pub kept: ChainsAt,
    /// The pinned instants, oldest first.
    pub pins: Vec<PinnedInstant>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_takes_twenty_bytes_in_memory_and_in_a_table() {
        assert_eq!(size_of::<VersionEntry>(), VersionEntry::BYTES);
        let entry = VersionEntry {
            stamp: 0x0102_0304_0506_0708,
            lpn: Lpn(0x1112_1314),
            object: ObjectId(0x2122_2324),
            older: EntryNumber(0x3132_3334),
        };
        let mut bytes = [0; VersionEntry::BYTES];
        entry.encode(&mut bytes);
        assert_eq!(VersionEntry::decode(&bytes), entry);
        assert_eq!(
            (bytes[0], bytes[8], bytes[12], bytes[16]),
            (8, 0x14, 0x24, 0x34)
        );
    }
}
