//! Records: what a trace says happened, one by one or in batches.
//!
//! A [`Batch`] is a structure of arrays whose vectors are reused from call to call.
//!
//! Content is a list of value ids, one for each *chunk* of 4 KiB counted from the record's own first
//! byte (the last chunk may be short). For a record aligned to 4 KiB a chunk is a mapping unit.
//!
//! A write may carry its delta ratios R_c too, one a chunk: the size of the encoded delta of
//! the chunk from what it replaces, over the size of a page, in 1/65535 and never 0. A batch in which
//! no record has them holds nothing for them.

use serde::Serialize;

use crate::byte_range::ByteRange;

/// Bytes of one mapping unit, and of one chunk of content.
pub const UNIT_BYTES: u64 = 4096;

pub const SECTOR_BYTES: u64 = 512;

/// The longest read or write that is taken for real, in bytes (1 GiB). Trims may be longer.
pub const MAX_TRANSFER_BYTES: u64 = 1 << 30;

/// Marks "no content" where an index of a first value is expected.
pub const NO_CONTENT: u32 = u32::MAX;

/// What a record asks of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Op {
    Read = 0,
    Write = 1,
    /// Discard a byte range.
    Trim = 2,
    /// Make everything acknowledged so far durable; offset and length are 0.
    Flush = 3,
}

impl Op {
    /// The operation with this number, if there is one.
    pub fn from_number(number: u32) -> Option<Op> {
        [Op::Read, Op::Write, Op::Trim, Op::Flush]
            .get(number as usize)
            .copied()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// Nanoseconds since the first record of the trace; never decreases.
    pub time_ns: u64,
    /// The device, as a number whose meaning [`crate::DeviceNames`] knows.
    pub device: u32,
    pub op: Op,
    /// First byte.
    pub offset: u64,
    /// Number of bytes; 0 for a flush and for nothing else.
    pub length: u64,
    /// Value ids, one a chunk of 4 KiB from `offset` on, when the trace tells the content.
    pub content: Option<&'a [u32]>,
    /// R_c of a write, one a chunk of 4 KiB from `offset` on, in 1/65535 and never 0, when the trace
    /// tells it.
    pub delta_ratios: Option<&'a [u16]>,
}

impl Record<'_> {
    pub fn bytes(&self) -> ByteRange {
        ByteRange::new(self.offset, self.length)
    }
}

/// Number of chunks, and so of value ids and of ratios, of a record of `length` bytes.
pub fn chunks(length: u64) -> u64 {
    length.div_ceil(UNIT_BYTES)
}

/// Some thousand consecutive records as a structure of arrays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// Nanoseconds since the first record of the trace.
    pub time_ns: Vec<u64>,
    pub device: Vec<u32>,
    pub op: Vec<Op>,
    /// First bytes.
    pub offset: Vec<u64>,
    /// Lengths in bytes.
    pub length: Vec<u64>,
    /// Where each record's value ids begin in `values`, or [`NO_CONTENT`].
    pub first_value: Vec<u32>,
    /// Value ids of all records that carry content, in order.
    pub values: Vec<u32>,
    /// Where each record's ratios begin in `delta_ratios`, or [`NO_CONTENT`]; empty when no record of
    /// the batch has any.
    pub first_ratio: Vec<u32>,
    /// R_c of all records that carry it, in order.
    pub delta_ratios: Vec<u16>,
}

impl Batch {
    pub fn len(&self) -> usize {
        self.time_ns.len()
    }

    pub fn is_empty(&self) -> bool {
        self.time_ns.is_empty()
    }

    /// Drops all records, keeps the memory.
    pub fn clear(&mut self) {
        self.time_ns.clear();
        self.device.clear();
        self.op.clear();
        self.offset.clear();
        self.length.clear();
        self.first_value.clear();
        self.values.clear();
        self.first_ratio.clear();
        self.delta_ratios.clear();
    }

    /// Record number `index`.
    ///
    /// # Panics
    /// When `index` is not below [`Batch::len`].
    pub fn get(&self, index: usize) -> Record<'_> {
        let first = self.first_value[index];
        let length = self.length[index];
        let content = (first != NO_CONTENT)
            .then(|| &self.values[first as usize..first as usize + chunks(length) as usize]);
        let first_ratio = self.first_ratio.get(index).copied();
        let delta_ratios = first_ratio
            .filter(|&first| first != NO_CONTENT)
            .map(|first| {
                &self.delta_ratios[first as usize..first as usize + chunks(length) as usize]
            });
        Record {
            time_ns: self.time_ns[index],
            device: self.device[index],
            op: self.op[index],
            offset: self.offset[index],
            length,
            content,
            delta_ratios,
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = Record<'_>> {
        (0..self.len()).map(|index| self.get(index))
    }

    pub(crate) fn last(&self) -> Option<Record<'_>> {
        self.len().checked_sub(1).map(|last| self.get(last))
    }

    /// Drops the last record, if there is one.
    pub(crate) fn pop(&mut self) {
        if let Some(first) = self.first_value.pop().filter(|&first| first != NO_CONTENT) {
            self.values.truncate(first as usize);
        }
        if let Some(first) = self.first_ratio.pop().filter(|&first| first != NO_CONTENT) {
            self.delta_ratios.truncate(first as usize);
        }
        self.time_ns.pop();
        self.device.pop();
        self.op.pop();
        self.offset.pop();
        self.length.pop();
    }

    /// Makes the last record longer by one that begins where it ends, and tells what it tells.
    pub(crate) fn extend_last(&mut self, record: &Record<'_>) {
        self.values
            .extend_from_slice(record.content.unwrap_or_default());
        self.delta_ratios
            .extend_from_slice(record.delta_ratios.unwrap_or_default());
        *self.length.last_mut().expect("there is a record") += record.length;
    }

    /// Becomes a copy of another batch; keeps the memory.
    pub(crate) fn copy_from(&mut self, other: &Batch) {
        self.clear();
        self.time_ns.extend_from_slice(&other.time_ns);
        self.device.extend_from_slice(&other.device);
        self.op.extend_from_slice(&other.op);
        self.offset.extend_from_slice(&other.offset);
        self.length.extend_from_slice(&other.length);
        self.first_value.extend_from_slice(&other.first_value);
        self.values.extend_from_slice(&other.values);
        self.first_ratio.extend_from_slice(&other.first_ratio);
        self.delta_ratios.extend_from_slice(&other.delta_ratios);
    }

    /// Gives back memory that no record needs.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.time_ns.shrink_to_fit();
        self.device.shrink_to_fit();
        self.op.shrink_to_fit();
        self.offset.shrink_to_fit();
        self.length.shrink_to_fit();
        self.first_value.shrink_to_fit();
        self.values.shrink_to_fit();
        self.first_ratio.shrink_to_fit();
        self.delta_ratios.shrink_to_fit();
    }

    pub(crate) fn push_flush(&mut self, time_ns: u64, device: u32) {
        self.push(&Record {
            time_ns,
            device,
            op: Op::Flush,
            offset: 0,
            length: 0,
            content: None,
            delta_ratios: None,
        });
    }

    /// Appends a record.
    ///
    /// # Panics
    /// When the number of value ids or of ratios does not fit the record's length, a ratio is 0, or a
    /// record with ratios is no write.
    pub fn push(&mut self, record: &Record<'_>) {
        self.push_ratios(record);
        self.first_value.push(match record.content {
            None => NO_CONTENT,
            Some(values) => {
                assert_eq!(
                    values.len() as u64,
                    chunks(record.length),
                    "one value id a chunk"
                );
                let first = self.values.len() as u32;
                self.values.extend_from_slice(values);
                first
            }
        });
        self.time_ns.push(record.time_ns);
        self.device.push(record.device);
        self.op.push(record.op);
        self.offset.push(record.offset);
        self.length.push(record.length);
    }

    /// Appends what a record has for R_c; the record itself is not there yet.
    fn push_ratios(&mut self, record: &Record<'_>) {
        let Some(ratios) = record.delta_ratios else {
            if !self.first_ratio.is_empty() {
                self.first_ratio.push(NO_CONTENT);
            }
            return;
        };
        let count = ratios.len() as u64;
        assert_eq!(count, chunks(record.length), "one ratio a chunk");
        assert_eq!(record.op, Op::Write, "ratios belong to writes");
        assert!(!ratios.contains(&0), "R_c is above 0");
        self.first_ratio.resize(self.len(), NO_CONTENT);
        self.first_ratio.push(self.delta_ratios.len() as u32);
        self.delta_ratios.extend_from_slice(ratios);
    }
}
