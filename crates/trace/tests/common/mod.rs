//! What the tests of this crate share.
#![allow(dead_code)]

use std::path::{Path, PathBuf};

use flashlore_trace::devices::NameStyle;
use flashlore_trace::formats::native::NativeWriter;
use flashlore_trace::{
    Batch, ContentModel, DeviceNames, NativeSource, Op, ReadOptions, Record, Request, RequestBlock,
    RequestSource, Result, TraceReader, Workload, WorkloadOptions,
};

/// A record that owns its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedRecord {
    pub time_ns: u64,
    pub device: u32,
    pub op: Op,
    pub offset: u64,
    pub length: u64,
    pub content: Option<Vec<u32>>,
    pub delta_ratios: Option<Vec<u16>>,
}

pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
}

pub fn strict() -> ReadOptions {
    ReadOptions::default()
}

pub fn lenient() -> ReadOptions {
    ReadOptions {
        lenient: true,
        ..ReadOptions::default()
    }
}

pub fn from_trace() -> WorkloadOptions {
    WorkloadOptions::new(ContentModel::FromTrace)
}

pub fn records(reader: &mut TraceReader) -> Result<Vec<OwnedRecord>> {
    let mut batch = Batch::default();
    let mut all = Vec::new();
    while reader.next_batch(&mut batch)? {
        all.extend(batch.iter().map(|record| OwnedRecord {
            time_ns: record.time_ns,
            device: record.device,
            op: record.op,
            offset: record.offset,
            length: record.length,
            content: record.content.map(<[u32]>::to_vec),
            delta_ratios: record.delta_ratios.map(<[u16]>::to_vec),
        }));
    }
    Ok(all)
}

pub fn read_bytes(bytes: &[u8], options: &ReadOptions) -> Result<Vec<OwnedRecord>> {
    records(&mut TraceReader::from_bytes(
        "bytes",
        bytes.to_vec(),
        options,
    )?)
}

/// What is wrong with an input, as text; panics when nothing is.
pub fn complaint(bytes: &[u8]) -> String {
    match read_bytes(bytes, &strict()) {
        Ok(records) => panic!("no error, but {records:?}"),
        Err(error) => error.to_string(),
    }
}

pub fn workload(bytes: &[u8], options: &WorkloadOptions) -> Result<Workload> {
    let reader = TraceReader::from_bytes("bytes", bytes.to_vec(), &options.read)?;
    Workload::from_readers(vec![reader], options)
}

/// Every request with its content.
pub fn replay(source: &mut impl RequestSource) -> Vec<(Request, Option<Vec<u32>>)> {
    source.rewind().unwrap();
    let mut block = RequestBlock::default();
    let mut all = Vec::new();
    while source.next_block(&mut block).unwrap() {
        assert!(!block.requests.is_empty());
        for request in &block.requests {
            let content = block.content(request).map(<[u32]>::to_vec);
            all.push((
                Request {
                    first_value: 0,
                    ..*request
                },
                content,
            ));
        }
    }
    all
}

/// A native trace of these records, whose devices are numbers.
pub fn native(records: &[OwnedRecord]) -> Vec<u8> {
    let mut writer = NativeWriter::new(std::io::Cursor::new(Vec::new())).unwrap();
    for record in records {
        writer.push(&record.borrow()).unwrap();
    }
    writer
        .finish(&DeviceNames::new(NameStyle::Number), 0)
        .unwrap()
        .into_inner()
}

impl OwnedRecord {
    pub fn borrow(&self) -> Record<'_> {
        Record {
            time_ns: self.time_ns,
            device: self.device,
            op: self.op,
            offset: self.offset,
            length: self.length,
            content: self.content.as_deref(),
            delta_ratios: self.delta_ratios.as_deref(),
        }
    }
}

/// A workload streamed from a native trace in memory.
pub fn streamed(bytes: &[u8], options: &WorkloadOptions) -> Result<NativeSource> {
    let reader = TraceReader::from_bytes("bytes", bytes.to_vec(), &options.read)?;
    NativeSource::from_reader(reader, options)
}

/// A record without content.
pub fn record(time_ns: u64, device: u32, op: Op, offset: u64, length: u64) -> OwnedRecord {
    OwnedRecord {
        time_ns,
        device,
        op,
        offset,
        length,
        content: None,
        delta_ratios: None,
    }
}

/// The reader of a file after its last record, and its records.
pub fn opened(path: &Path) -> (TraceReader, Vec<OwnedRecord>) {
    let mut reader = TraceReader::open(path, &strict()).unwrap();
    let all = records(&mut reader).unwrap();
    (reader, all)
}

/// A bad second line ends strict reading with line and reason, and is skipped by lenient reading.
pub fn expect_complaint(good: &str, bad: &str, wanted: &str) {
    let text = format!("{good}{bad}\n{good}");
    let found = complaint(text.as_bytes());
    assert!(found.starts_with("bytes, line 2: "), "{found}");
    assert!(found.contains(wanted), "{found}\n  lacks {wanted}");
    let mut reader = TraceReader::from_bytes("bytes", text.into_bytes(), &lenient()).unwrap();
    assert_eq!(records(&mut reader).unwrap().len(), 2, "{bad}");
    assert_eq!(reader.stats().skipped, 1);
    assert!(reader.stats().skipped_messages[0].contains(wanted));
}
