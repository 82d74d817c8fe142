//! Records: what a trace says happened, one by one or in batches.
//!
//! A [`Batch`] is a structure of arrays whose vectors are reused from call to call.
//!
//! Content is a list of value ids, one for each *chunk* of 4 KiB counted from the record's own first
//! byte (the last chunk may be short). For a record aligned to 4 KiB a chunk is a mapping unit.

use serde::Serialize;

/// Bytes of one mapping unit, and of one chunk of content.
pub const UNIT_BYTES: u64 = 4096;

/// Bytes of one sector.
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
    /// Read a byte range.
    Read = 0,
    /// Write a byte range.
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

/// One record of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// Nanoseconds since the first record of the trace; never decreases.
    pub time_ns: u64,
    /// The device, as a number whose meaning [`crate::DeviceNames`] knows.
    pub device: u32,
    /// What is asked.
    pub op: Op,
    /// First byte.
    pub offset: u64,
    /// Number of bytes; 0 for a flush and for nothing else.
    pub length: u64,
    /// Value ids, one a chunk of 4 KiB from `offset` on, when the trace tells the content.
    pub content: Option<&'a [u32]>,
}

/// Number of chunks, and so of value ids, of a record of `length` bytes.
pub fn chunks(length: u64) -> u64 {
    length.div_ceil(UNIT_BYTES)
}

/// Some thousand consecutive records as a structure of arrays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// Nanoseconds since the first record of the trace.
    pub time_ns: Vec<u64>,
    /// Device numbers.
    pub device: Vec<u32>,
    /// Operations.
    pub op: Vec<Op>,
    /// First bytes.
    pub offset: Vec<u64>,
    /// Lengths in bytes.
    pub length: Vec<u64>,
    /// Where each record's value ids begin in `values`, or [`NO_CONTENT`].
    pub first_value: Vec<u32>,
    /// Value ids of all records that carry content, in order.
    pub values: Vec<u32>,
}

impl Batch {
    /// Number of records.
    pub fn len(&self) -> usize {
        self.time_ns.len()
    }

    /// Whether there is no record.
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
        Record {
            time_ns: self.time_ns[index],
            device: self.device[index],
            op: self.op[index],
            offset: self.offset[index],
            length,
            content,
        }
    }

    /// The records in order.
    pub fn iter(&self) -> impl Iterator<Item = Record<'_>> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// Appends a flush.
    pub(crate) fn push_flush(&mut self, time_ns: u64, device: u32) {
        self.push(&Record {
            time_ns,
            device,
            op: Op::Flush,
            offset: 0,
            length: 0,
            content: None,
        });
    }

    /// Appends a record.
    ///
    /// # Panics
    /// When the number of value ids does not fit the record's length.
    pub fn push(&mut self, record: &Record<'_>) {
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
}
