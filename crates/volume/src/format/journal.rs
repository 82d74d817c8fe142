//! The journal: what changes the volume and programs no page, in batches of whole sectors.
//!
//! A segment holds batches from its start. A batch is a header of 64 bytes, records of 32 bytes, and encoded
//! values that wait in RAM, padded with zeros to the alignment of the medium. A value is a head and its bytes, as in
//! a packed unit.
//!
//! | offset | bytes | field of the header |
//! |---:|---:|---|
//! | 0 | 4 | magic `FLJB` |
//! | 4 | 4 | records in the batch |
//! | 8 | 8 | segment: number of the checkpoint the segment follows |
//! | 16 | 8 | durable: everything up to this sequence number was durable when the batch was written |
//! | 24 | 8 | chain: checksum of the batch before, 0 in the first |
//! | 32 | 4 | epoch |
//! | 36 | 4 | bytes of the values |
//! | 40 | 8 | the last event before the epoch that counts; 0 if it was not noted |
//! | 48 | 8 | zero |
//! | 56 | 8 | keyed checksum of the batch's offset in its segment, bytes 0 to 55 and the records |
//!
//! | offset | bytes | field of a record |
//! |---:|---:|---|
//! | 0 | 1 | kind |
//! | 1 | 1 | open: stream (0 host, 1 collection, 2 wear levelling, 4 packed, 5 packed by collection) |
//! | 2 | 2 | zero |
//! | 4 | 4 | a |
//! | 8 | 8 | b; of an event its sequence number |
//! | 16 | 8 | c |
//! | 24 | 8 | of an event, and of a dead page, its stamp |
//!
//! | kind | what | a | b | c |
//! |---:|---|---|---|---|
//! | 1 | event, share | LPN | sequence | name of the object ([`super::name`]) |
//! | 2 | event, trim | LPN | sequence | 0 |
//! | 3 | open | block | generation | erases |
//! | 4 | dead | LPN | write sequence number | handle that its object had; 0 in version 5 |
//! | 5 | event, rewind to an instant | 0 | sequence | instant |
//! | 6 | event, snapshot | bytes of its name | sequence | instant |
//! | 7 | event, end of a snapshot | 0 | sequence | instant |
//! | 8 | event, purge | first LPN | sequence | LPN behind the last |
//! | 9 | window | 0 | its start | 0 |
//! | 10 | part of the payload of the event with this number: which part in place of the stream, 16 bytes in place of c and stamp | 0 | sequence | |
//! | 11 | event, note | kind + 256 × bytes of its payload | sequence | instant |
//! | 12 | event, purge of everything | 0 | sequence | start of the window |
//!
//! The parts of an event stand before it in the same batch.

use flashlore_content::VolumeKey;
use flashlore_flash::{BlockId, Lpn, ObjectId, Stream};

use super::cursor::{Reader, Writer};
use super::name::{Naming, ObjectName};
use super::notes::{MOST_PAYLOAD, NoteKind, PART_BYTES};
use super::packed::Head;

/// Bytes of a batch's header.
pub const HEADER_BYTES: usize = 64;
/// Bytes of a record.
pub const ENTRY_BYTES: usize = 32;
const MAGIC: [u8; 4] = *b"FLJB";

/// A change of the volume that programs no page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// An address refers to an object that is stored already.
    Share {
        /// The address.
        lpn: Lpn,
        /// The object.
        object: ObjectName,
    },
    /// An address forgets its content.
    Trim {
        /// The address.
        lpn: Lpn,
    },
    /// All addresses hold again what they held at an instant.
    Rewind { instant: u64 },
    /// An instant is kept.
    Snapshot {
        instant: u64,
        /// Bytes of its name, which is the payload; 0 without one.
        name: u8,
    },
    /// It is not kept any more.
    DeleteSnapshot { instant: u64 },
    /// Old versions of addresses are forgotten.
    Purge {
        /// The first address.
        first: Lpn,
        /// The address behind the last.
        end: Lpn,
    },
    /// Every instant before this one is forgotten, and the snapshots among them that lack anything then.
    Forget {
        /// The instant.
        before: u64,
    },
    /// Something is noted.
    Note {
        kind: NoteKind,
        /// Bytes of its payload.
        bytes: u8,
        /// What instant it is about.
        instant: u64,
    },
}

/// One record of the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JournalEntry {
    /// Something changed.
    Event {
        /// Sequence number of the event.
        sequence: u64,
        /// When it was acknowledged.
        stamp: u64,
        change: Change,
    },
    /// A free block begins to take pages.
    Open {
        block: BlockId,
        /// Whose pages.
        stream: Stream,
        /// The block generation that begins, never used twice.
        generation: u64,
        /// Times the block was erased.
        erases: u32,
    },
    /// A page whose content nobody refers to any more may have been erased: so that its write is not
    /// missed.
    Dead {
        /// The address it was written to.
        lpn: Lpn,
        /// Its write sequence number.
        write_seq: u64,
        /// When it was written.
        stamp: u64,
        /// The object that it made.
        object: ObjectId,
    },
    /// Old versions that ended at this instant or before may have been erased.
    Window {
        /// The oldest instant that can be rewound to.
        oldest: u64,
    },
    /// A part of the payload of an event.
    Part {
        /// Sequence number of the event.
        sequence: u64,
        /// Which part, from 0.
        number: u8,
        bytes: [u8; PART_BYTES],
    },
}

impl Change {
    fn fields(self, naming: Naming) -> (u8, u32, u64) {
        match self {
            Change::Share { lpn, object } => (1, lpn.0, ObjectName::word(Some(object), naming)),
            Change::Trim { lpn } => (2, lpn.0, 0),
            Change::Rewind { instant } => (5, 0, instant),
            Change::Snapshot { instant, name } => (6, u32::from(name), instant),
            Change::DeleteSnapshot { instant } => (7, 0, instant),
            Change::Purge { first, end } => (8, first.0, u64::from(end)),
            Change::Note {
                kind,
                bytes,
                instant,
            } => (
                11,
                u32::from(kind.number()) | u32::from(bytes) << 8,
                instant,
            ),
            Change::Forget { before } => (12, 0, before),
        }
    }

    fn of(kind: u8, a: u32, c: u64, naming: Naming) -> Option<Change> {
        Some(match kind {
            1 => Change::Share {
                lpn: Lpn(a),
                object: ObjectName::of_word(c, naming)?,
            },
            2 => Change::Trim { lpn: Lpn(a) },
            5 => Change::Rewind { instant: c },
            6 => Change::Snapshot {
                instant: c,
                name: payload_bytes(a)?,
            },
            7 => Change::DeleteSnapshot { instant: c },
            8 => Change::Purge {
                first: Lpn(a),
                end: Lpn(u32::try_from(c).ok()?),
            },
            11 => Change::Note {
                kind: NoteKind::of(a as u8)?,
                bytes: payload_bytes(a >> 8)?,
                instant: c,
            },
            12 => Change::Forget { before: c },
            _ => return None,
        })
    }
}

fn payload_bytes(length: u32) -> Option<u8> {
    let length = u8::try_from(length).ok()?;
    (usize::from(length) <= MOST_PAYLOAD).then_some(length)
}

impl Change {
    /// Bytes of its payload.
    pub fn payload(self) -> usize {
        match self {
            Change::Snapshot { name, .. } => usize::from(name),
            Change::Note { bytes, .. } => usize::from(bytes),
            _ => 0,
        }
    }
}

impl JournalEntry {
    fn encode(self, out: &mut Writer<'_>, naming: Naming) {
        let (kind, stream, a, b, c, stamp) = match self {
            JournalEntry::Event {
                sequence,
                stamp,
                change,
            } => {
                let (kind, a, c) = change.fields(naming);
                (kind, 0, a, sequence, c, stamp)
            }
            JournalEntry::Open {
                block,
                stream,
                generation,
                erases,
            } => (3, stream as u8, block.0, generation, u64::from(erases), 0),
            JournalEntry::Dead {
                lpn,
                write_seq,
                stamp,
                object,
            } => (4, 0, lpn.0, write_seq, u64::from(object.0), stamp),
            JournalEntry::Window { oldest } => (9, 0, 0, oldest, 0, 0),
            JournalEntry::Part {
                sequence,
                number,
                bytes,
            } => {
                let (c, stamp) = bytes.split_at(8);
                let word = |half: &[u8]| Reader::new(half).u64();
                (10, number, 0, sequence, word(c), word(stamp))
            }
        };
        out.u8(kind).u8(stream).u16(0).u32(a);
        out.u64(b).u64(c).u64(stamp);
    }

    fn decode(bytes: &[u8], naming: Naming) -> Option<JournalEntry> {
        let mut fields = Reader::new(bytes);
        let (kind, stream) = (fields.u8(), fields.u8());
        fields.u16();
        let (a, b, c) = (fields.u32(), fields.u64(), fields.u64());
        let stamp = fields.u64();
        Some(match kind {
            3 => JournalEntry::Open {
                block: BlockId(a),
                stream: stream_of(stream)?,
                generation: b,
                erases: u32::try_from(c).ok()?,
            },
            4 => JournalEntry::Dead {
                lpn: Lpn(a),
                write_seq: b,
                stamp,
                object: match naming {
                    Naming::ByWrite => ObjectId::NONE,
                    Naming::ByHandle => ObjectId(u32::try_from(c).ok()?),
                },
            },
            9 => JournalEntry::Window { oldest: b },
            10 => {
                let mut bytes = [0; PART_BYTES];
                Writer::new(&mut bytes).u64(c).u64(stamp);
                JournalEntry::Part {
                    sequence: b,
                    number: stream,
                    bytes,
                }
            }
            kind => JournalEntry::Event {
                sequence: b,
                stamp,
                change: Change::of(kind, a, c, naming)?,
            },
        })
    }
}

pub fn stream_of(number: u8) -> Option<Stream> {
    Stream::ALL.into_iter().find(|&s| s as u8 == number)
}

/// A batch of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// The checkpoint its segment follows.
    pub segment: u64,
    /// Everything up to this sequence number was durable when the batch was written.
    pub durable: u64,
    /// Checksum of the batch before it.
    pub chain: u64,
    /// Epoch it was written in.
    pub epoch: u32,
    /// The last event before that epoch that counts, as the superblock has it too; 0 if it was not noted.
    pub after: u64,
    /// Its records.
    pub entries: Vec<JournalEntry>,
    /// Encoded values that waited in RAM.
    pub values: Vec<JournalValue>,
    /// How it names objects.
    pub naming: Naming,
}

/// An encoded value in the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalValue {
    /// What is known of it.
    pub head: Head,
    /// As many bytes as the head says.
    pub bytes: Box<[u8]>,
}

impl JournalValue {
    fn decode_all(mut bytes: &[u8], naming: Naming) -> Option<Vec<JournalValue>> {
        let mut values = Vec::new();
        while !bytes.is_empty() {
            let (head, rest) = bytes.split_at_checked(naming.head_bytes())?;
            let head = Head::decode(&mut Reader::new(head), naming)?;
            let (value, rest) = rest.split_at_checked(usize::from(head.length))?;
            values.push(JournalValue {
                head,
                bytes: value.into(),
            });
            bytes = rest;
        }
        Some(values)
    }
}

impl Batch {
    /// Bytes a batch of so many records and bytes of values takes on a medium with this alignment.
    pub fn bytes(entries: usize, values: usize, alignment: usize) -> usize {
        (HEADER_BYTES + entries * ENTRY_BYTES + values).next_multiple_of(alignment)
    }

    /// Bytes of its values, with their heads.
    pub fn value_bytes(&self) -> usize {
        let values = self.values.iter();
        values
            .map(|v| self.naming.head_bytes() + v.bytes.len())
            .sum()
    }

    /// The batch at `offset` in its segment, padded; `out` has its length. Answers its checksum.
    pub fn encode(&self, key: &VolumeKey, offset: u64, out: &mut [u8]) -> u64 {
        out.fill(0);
        let (header, records) = out.split_at_mut(HEADER_BYTES);
        Writer::new(header)
            .put(&MAGIC)
            .u32(self.entries.len() as u32)
            .u64(self.segment)
            .u64(self.durable)
            .u64(self.chain)
            .u32(self.epoch)
            .u32(self.value_bytes() as u32)
            .u64(self.after);
        let mut writer = Writer::new(records);
        for &entry in &self.entries {
            entry.encode(&mut writer, self.naming);
        }
        for JournalValue { head, bytes } in &self.values {
            head.encode(&mut writer, self.naming);
            writer.put(bytes);
        }
        let length = writer.written();
        let check = key.checksum(offset, &[&header[..56], &records[..length]]);
        header[56..].copy_from_slice(&check.to_le_bytes());
        check
    }

    /// The batch that begins at `offset` of its segment with these bytes, and its checksum; `None` if
    /// there is none that holds.
    pub fn decode(
        bytes: &[u8],
        key: &VolumeKey,
        offset: u64,
        naming: Naming,
    ) -> Option<(Batch, u64)> {
        let header = bytes.get(..HEADER_BYTES)?;
        let mut fields = Reader::new(header);
        if fields.take::<4>() != MAGIC {
            return None;
        }
        let count = fields.u32() as usize;
        let (segment, durable, chain, epoch) =
            (fields.u64(), fields.u64(), fields.u64(), fields.u32());
        let (values, after) = (fields.u32() as usize, fields.u64());
        fields.take::<8>();
        let length = count.checked_mul(ENTRY_BYTES)?;
        let end = HEADER_BYTES.checked_add(length)?.checked_add(values)?;
        let records = bytes.get(HEADER_BYTES..end)?;
        let check = fields.u64();
        if check != key.checksum(offset, &[&header[..56], records]) {
            return None;
        }
        let (records, values) = records.split_at(length);
        let entries: Option<Vec<JournalEntry>> = records
            .chunks_exact(ENTRY_BYTES)
            .map(|record| JournalEntry::decode(record, naming))
            .collect();
        let batch = Batch {
            segment,
            durable,
            chain,
            epoch,
            after,
            entries: entries?,
            values: JournalValue::decode_all(values, naming)?,
            naming,
        };
        Some((batch, check))
    }
}
