//! Feeds any bytes to everything that reads a trace: detection, decompression, every parser strictly
//! and leniently, the workload in memory and streamed. Nothing may panic, and what is accepted must
//! keep the promises of the layers above. Shared by the fuzz target and the test that replays its
//! corpus.

use flashlore_trace::{
    Batch, ContentModel, DeltaModel, Format, Info, MAX_UNITS, NativeSource, Op, Pages, ReadOptions,
    RequestBlock, RequestSource, TraceReader, UNIT_BYTES, Workload, WorkloadOptions,
};

/// The most that a file of pages may grow to.
const PAGES_LIMIT_BYTES: u64 = 1 << 20;

/// Reads `bytes` in every way; the number of ways that found a trace in them.
pub fn exercise(bytes: &[u8]) -> usize {
    let mut found = 0;
    for format in [None].into_iter().chain(Format::ALL.map(Some)) {
        let strict = read(
            bytes,
            ReadOptions {
                format,
                ..ReadOptions::default()
            },
        );
        let lenient = read(
            bytes,
            ReadOptions {
                format,
                lenient: true,
                ..ReadOptions::default()
            },
        );
        if let Some(records) = strict {
            assert_eq!(
                lenient,
                Some(records),
                "lenient reading accepts what strict reading does"
            );
            found += 1;
        }
    }
    for (compact, content) in [
        (false, ContentModel::FromTrace),
        (true, ContentModel::FromTrace),
        (true, ContentModel::Distinct),
        (
            false,
            ContentModel::Zipf {
                exponent: 0.8,
                values: 1000,
                seed: 1,
            },
        ),
    ] {
        let read = ReadOptions {
            format: None,
            lenient: true,
            coalesce_ns: compact.then_some(1000),
        };
        let options = WorkloadOptions {
            read,
            compact,
            delta: compact.then_some(DeltaModel::FromTrace),
            ..WorkloadOptions::new(content)
        };
        if let Ok(reader) = TraceReader::from_bytes("bytes", bytes.to_vec(), &read)
            && let Ok(workload) = Workload::from_readers(vec![reader], &options)
        {
            replay(workload);
        }
        if let Ok(reader) = TraceReader::from_bytes("bytes", bytes.to_vec(), &read)
            && let Ok(source) = NativeSource::from_reader(reader, &options)
        {
            replay(source);
        }
    }
    if let Ok(reader) = TraceReader::from_bytes("bytes", bytes.to_vec(), &ReadOptions::default())
        && let Ok(info) = Info::from_reader(reader)
    {
        assert!(!info.to_string().is_empty());
    }
    if let Ok(pages) = Pages::from_bytes("bytes", bytes.to_vec(), PAGES_LIMIT_BYTES) {
        assert!(pages.len() as u64 * UNIT_BYTES <= PAGES_LIMIT_BYTES);
    }
    found
}

/// Reads all records; their number, or `None` when an error ended the reading.
fn read(bytes: &[u8], options: ReadOptions) -> Option<u64> {
    let mut reader = match TraceReader::from_bytes("bytes", bytes.to_vec(), &options) {
        Ok(reader) => reader,
        Err(error) => return nothing(&error.to_string()),
    };
    let mut batch = Batch::default();
    let mut latest_ns = 0;
    loop {
        match reader.next_batch(&mut batch) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => return nothing(&error.to_string()),
        }
        for record in batch.iter() {
            assert!(record.time_ns >= latest_ns);
            latest_ns = record.time_ns;
            assert_eq!(record.length == 0, record.op == Op::Flush);
            assert!(record.offset.checked_add(record.length).is_some());
            if let Some(ratios) = record.delta_ratios {
                assert_eq!(record.op, Op::Write);
                assert_eq!(ratios.len() as u64, record.length.div_ceil(UNIT_BYTES));
                assert!(!ratios.contains(&0));
            }
            if let Some(content) = record.content {
                assert_eq!(content.len() as u64, record.length.div_ceil(UNIT_BYTES));
                assert!(content.iter().all(|&value| value < reader.value_count()));
            }
        }
    }
    Some(reader.stats().records)
}

/// An error must say something, and not with the raw bytes of the input.
fn nothing(message: &str) -> Option<u64> {
    assert!(message.len() > 10 && message.len() < 1000, "{message}");
    assert!(message.bytes().all(|byte| byte >= b' '), "{message:?}");
    None
}

fn replay(mut source: impl RequestSource) {
    let (requests, lpns, values) = {
        let summary = source.summary();
        assert!(summary.lpn_count <= MAX_UNITS);
        assert!(
            summary
                .prefill
                .iter()
                .all(|run| u64::from(run.lpn + run.units) <= summary.lpn_count)
        );
        (summary.requests, summary.lpn_count, summary.value_ids)
    };
    let mut block = RequestBlock::default();
    let mut count = 0;
    while source
        .next_block(&mut block)
        .expect("what was scanned can be read")
    {
        for request in &block.requests {
            assert!(u64::from(request.lpn) + u64::from(request.units) <= lpns);
            let content = block.content(request).unwrap_or_default();
            if let Some(ratios) = block.delta_ratios(request) {
                assert_eq!(ratios.len(), content.len());
            }
            assert!(content.iter().all(|&value| value < values));
        }
        count += block.requests.len() as u64;
    }
    assert_eq!(count, requests);
}
