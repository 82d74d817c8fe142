//! A trace in memory: what arrays of records become.
//!
//! The records obey the rules of every format, their times count from the first and never decrease, and their
//! content is numbered from 0 in order of first appearance. Nothing changes a [`Records`], so readers share it.

use std::collections::HashMap;

use sha2::{Digest as _, Sha256};

use crate::digests::{MAX_VALUES, too_many_values};
use crate::error::{Error, Fault, RecordPlace, Result};
use crate::formats::check;
use crate::reader::{Clock, ReadStats};
use crate::record::{Batch, Op, Record, chunks};

/// A batch is closed at this many records,
const BATCH_RECORDS: usize = 1 << 14;

/// or at this many values.
const BATCH_VALUES: usize = 1 << 16;

/// Bytes that are hashed at a time.
const HASHED_BYTES: usize = 1 << 16;

/// The records of a trace.
#[derive(Debug)]
pub struct Records {
    pub(crate) name: String,
    pub(crate) batches: Vec<Batch>,
    pub(crate) values: u32,
    pub(crate) identity: [u8; 32],
    pub(crate) stats: ReadStats,
    len: u64,
}

impl Records {
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn batches(&self) -> &[Batch] {
        &self.batches
    }
}

/// Takes records one by one.
pub struct Recorder {
    name: String,
    batches: Vec<Batch>,
    open: Batch,
    /// Numbers of the values that the caller names by numbers of its own.
    ids: HashMap<u64, u32, rustc_hash::FxBuildHasher>,
    scratch: Vec<u32>,
    clock: Clock,
    stats: ReadStats,
    len: u64,
    hash: Sha256,
    unhashed: Vec<u8>,
}

impl Recorder {
    pub fn new(name: impl Into<String>) -> Self {
        Recorder {
            name: name.into(),
            batches: Vec::new(),
            open: Batch::default(),
            ids: HashMap::default(),
            scratch: Vec::new(),
            clock: Clock::default(),
            stats: ReadStats::default(),
            len: 0,
            hash: Sha256::new(),
            unhashed: Vec::with_capacity(HASHED_BYTES),
        }
    }

    /// Appends a record. `op` is the number of an [`Op`]; offset and length are bytes, the time is in nanoseconds on
    /// a clock of the caller's. The content of a read or write is a number for each chunk of 4 KiB, equal for equal
    /// content.
    ///
    /// # Errors
    /// A record that breaks a rule; it is named by its number from 1.
    pub fn push(
        &mut self,
        time_ns: i64,
        op: u8,
        offset: u64,
        length: u64,
        content: Option<&[u64]>,
    ) -> Result<()> {
        self.check(op, offset, length, content)
            .and_then(|op| Ok((op, self.number(content)?)))
            .map(|(op, has_content)| self.append(time_ns, op, offset, length, has_content))
            .map_err(|fault| Error::Malformed {
                path: self.name.clone(),
                place: RecordPlace::Record(self.len + 1),
                fault,
            })
    }

    fn check(
        &self,
        op: u8,
        offset: u64,
        length: u64,
        content: Option<&[u64]>,
    ) -> std::result::Result<Op, Fault> {
        const OPS: &str = "0 (read), 1 (write), 2 (trim) or 3 (flush)";
        let op = Op::from_number(op.into()).ok_or_else(|| Fault::value("op", op, OPS))?;
        check(op, offset, length)?;
        match (op, content) {
            (Op::Read | Op::Write, Some(values)) if values.len() as u64 != chunks(length) => {
                Err(Fault::value(
                    "content",
                    format_args!("{} numbers for {length} bytes", values.len()),
                    "one for each 4096 bytes",
                ))
            }
            (Op::Trim | Op::Flush, Some(_)) => Err(Fault::value(
                "content",
                "given",
                "none, which only reads and writes have",
            )),
            _ => Ok(op),
        }
    }

    /// Fills `scratch`; whether there is content.
    fn number(&mut self, content: Option<&[u64]>) -> std::result::Result<bool, Fault> {
        self.scratch.clear();
        for &value in content.unwrap_or_default() {
            let next = self.ids.len() as u32;
            let id = *self.ids.entry(value).or_insert(next);
            if id >= MAX_VALUES {
                return Err(too_many_values("content"));
            }
            self.scratch.push(id);
        }
        Ok(content.is_some())
    }

    fn append(&mut self, time_ns: i64, op: Op, offset: u64, length: u64, has_content: bool) {
        // From the least time there is, which keeps order and distances.
        let absolute_ns = time_ns.abs_diff(i64::MIN);
        let record = Record {
            time_ns: self.clock.relative(absolute_ns, &mut self.stats),
            device: 0,
            op,
            offset,
            length,
            content: has_content.then_some(&self.scratch[..]),
            delta_ratios: None,
        };
        identify(&record, &mut self.unhashed);
        if self.unhashed.len() >= HASHED_BYTES {
            self.hash.update(&self.unhashed);
            self.unhashed.clear();
        }
        self.open.push(&record);
        self.len += 1;
        if self.open.len() >= BATCH_RECORDS || self.open.values.len() >= BATCH_VALUES {
            self.close();
        }
    }

    fn close(&mut self) {
        let mut batch = std::mem::take(&mut self.open);
        batch.shrink_to_fit();
        self.batches.push(batch);
    }

    /// The trace.
    ///
    /// # Errors
    /// There is no record.
    pub fn finish(mut self) -> Result<Records> {
        if self.len == 0 {
            return Err(Error::NoRecords {
                path: self.name,
                skipped: 0,
                passed_over: 0,
            });
        }
        if !self.open.is_empty() {
            self.close();
        }
        self.hash.update(&self.unhashed);
        Ok(Records {
            name: self.name,
            batches: self.batches,
            values: self.ids.len() as u32,
            identity: self.hash.finalize().into(),
            stats: self.stats,
            len: self.len,
        })
    }
}

/// Appends what identifies a record.
fn identify(record: &Record<'_>, bytes: &mut Vec<u8>) {
    bytes.push(record.op as u8 | u8::from(record.content.is_some()) << 7);
    for number in [record.time_ns, record.offset, record.length] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    for value in record.content.unwrap_or_default() {
        bytes.extend_from_slice(&value.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::ContentModel;
    use crate::reader::{ReadOptions, TraceReader};
    use crate::workload::{NativeSource, RequestBlock, RequestSource, Workload, WorkloadOptions};

    /// A trace in text and the same records pushed.
    fn both() -> (Vec<u8>, Arc<Records>) {
        let mut text = String::new();
        let mut recorder = Recorder::new("records");
        for i in 0..40_000_u64 {
            let (time, sector) = (10_000 + i * 10 - (i % 7) * 30, i * 37 % 5_000);
            let op = if i % 3 == 0 { "R" } else { "W" };
            let value = u128::from(i * 11 % 900);
            text.push_str(&format!("{time} 1 app {sector} 8 {op} 8 0 {value:032x}\n"));
            let number = u8::from(i % 3 != 0);
            let content = [i * 11 % 900 + (1 << 40)];
            recorder
                .push(time as i64, number, sector * 512, 4096, Some(&content))
                .unwrap();
        }
        (text.into_bytes(), Arc::new(recorder.finish().unwrap()))
    }

    #[test]
    fn they_replay_as_a_file_of_them_does_and_again() {
        let (text, records) = both();
        for content in ["trace", "distinct", "zipf:a=0.9,n=100"] {
            let options = WorkloadOptions {
                compact: true,
                ..WorkloadOptions::new(content.parse::<ContentModel>().unwrap())
            };
            let reader = TraceReader::from_bytes("text", text.clone(), &ReadOptions::default());
            let mut file = Workload::from_readers(vec![reader.unwrap()], &options).unwrap();
            let reader = TraceReader::recorded(records.clone());
            let first = NativeSource::from_reader(reader, &options)
                .unwrap()
                .first_pass();
            let mut recorded =
                NativeSource::after(TraceReader::recorded(records.clone()), first.clone()).unwrap();
            let found = recorded.summary().clone();
            assert_eq!(found.inputs[0].read, file.summary().inputs[0].read);
            assert!(found.inputs[0].read.clamped > 0);
            // Where the records are from, and how their device is called there.
            let expected = crate::Summary {
                inputs: found.inputs.clone(),
                devices: found.devices.clone(),
                ..file.summary().clone()
            };
            assert!(found == expected, "{content}");
            for _ in 0..2 {
                assert!(requests(&mut recorded) == requests(&mut file), "{content}");
            }
        }
    }

    fn requests(source: &mut dyn RequestSource) -> Vec<(crate::Request, Option<Vec<u32>>)> {
        source.rewind().unwrap();
        let (mut all, mut block) = (Vec::new(), RequestBlock::default());
        while source.next_block(&mut block).unwrap() {
            for request in &block.requests {
                let values = block.content(request).map(<[u32]>::to_vec);
                // Where its values stand depends on the blocks.
                let request = crate::Request {
                    first_value: 0,
                    ..*request
                };
                all.push((request, values));
            }
        }
        all
    }

    #[test]
    fn broken_rules_name_the_record() {
        let said = |op, offset, length, content: Option<&[u64]>| {
            let mut recorder = Recorder::new("records");
            recorder.push(0, 1, 0, 4096, None).unwrap();
            let error = recorder.push(0, op, offset, length, content);
            error.unwrap_err().to_string()
        };
        assert_eq!(
            said(7, 0, 512, None),
            "records, record 2: op is 7, expected 0 (read), 1 (write), 2 (trim) or 3 (flush)"
        );
        assert_eq!(
            said(1, 0, 0, None),
            "records, record 2: size is 0, expected at least one byte or sector"
        );
        assert_eq!(
            said(1, 0, 8192, Some(&[1])),
            "records, record 2: content is 1 numbers for 8192 bytes, expected one for each 4096 bytes"
        );
        assert!(said(2, 0, 4096, Some(&[1])).contains("only reads and writes"));
        assert!(said(1, u64::MAX, 1, None).contains("below 2^64"));
        let none = Recorder::new("records").finish().unwrap_err();
        assert!(none.to_string().contains("holds no record"));
    }
}
