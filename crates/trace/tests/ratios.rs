//! Delta ratios that a trace carries: the column, what is refused of it, and what becomes of them.

use crate::common;

use std::io::Cursor;
use std::sync::Arc;

use common::*;
use flashlore_trace::convert::{convert_rated, convert_reader};
use flashlore_trace::{
    ContentModel, ConvertOptions, DeltaModel, Existing, FULL_RATIO, Format, Info, Join, Op,
    RateWrites, Record, RequestBlock, RequestSource, TraceReader, Workload, WorkloadOptions,
    for_each_access,
};
use parquet::data_type::{Int32Type, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;

fn to(format: Format) -> ConvertOptions {
    ConvertOptions {
        read: strict(),
        to: format,
        drop_content: false,
        existing: Existing::Replace,
    }
}

/// Ratios from the trace, under a content model.
fn rated(content: &str) -> WorkloadOptions {
    WorkloadOptions {
        delta: Some(DeltaModel::FromTrace),
        ..WorkloadOptions::new(content.parse().unwrap())
    }
}

fn write(sector: u64, length: u64, ratios: &[u16]) -> OwnedRecord {
    OwnedRecord {
        delta_ratios: Some(ratios.to_vec()),
        ..record(0, 0, Op::Write, sector * 512, length)
    }
}

/// Records of all operations; writes may have content and ratios, whatever their alignment.
fn any_records(grain: u64) -> impl Strategy<Value = Vec<OwnedRecord>> {
    let one = (
        0u8..6,
        0u64..4000,
        1u64..40,
        any::<(bool, bool, u16, u16)>(),
    );
    prop::collection::vec(one, 1..60).prop_map(move |raw| {
        let numbered = raw.into_iter().enumerate();
        numbered
            .map(|(number, (op, at, count, (content, ratios, low, high)))| {
                let op = [
                    Op::Write,
                    Op::Write,
                    Op::Write,
                    Op::Read,
                    Op::Trim,
                    Op::Flush,
                ][op as usize];
                if op == Op::Flush {
                    return record(number as u64, 0, op, 0, 0);
                }
                let chunks = (count * grain).div_ceil(4096);
                let ends = [low.max(1), high.max(1), 1, FULL_RATIO];
                OwnedRecord {
                    content: (content && op != Op::Trim).then(|| (0..chunks as u32).collect()),
                    delta_ratios: (ratios && op == Op::Write)
                        .then(|| (0..chunks as usize).map(|i| ends[i % 4]).collect()),
                    ..record(number as u64, 0, op, at * grain, count * grain)
                }
            })
            .collect()
    })
}

/// Ratios of every write, as each source gives them; 0 where there are none.
fn of_workload(source: &mut impl RequestSource) -> Vec<Option<Vec<u16>>> {
    source.rewind().unwrap();
    let mut block = RequestBlock::default();
    let mut all = Vec::new();
    while source.next_block(&mut block).unwrap() {
        let writes = block.requests.iter().filter(|r| r.op == Op::Write);
        all.extend(writes.map(|r| block.delta_ratios(r).map(<[u16]>::to_vec)));
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// What is written is what is read, and a conversion to the native format keeps it.
    #[test]
    fn the_column_keeps_every_ratio(records in any_records(512)) {
        let bytes = native(&records);
        prop_assert_eq!(&read_bytes(&bytes, &strict()).unwrap(), &records);
        let directory = tempfile::TempDir::new().unwrap();
        let out = directory.path().join("out");
        let reader = TraceReader::from_bytes("bytes", bytes.clone(), &strict()).unwrap();
        let report = convert_reader(reader, &out, &to(Format::Native)).unwrap();
        let ratios = records.iter().flat_map(|r| &r.delta_ratios);
        prop_assert_eq!(report.rated_writes, ratios.map(|r| r.len() as u64).sum::<u64>());
        prop_assert_eq!(std::fs::read(out).unwrap(), bytes);
    }

    /// In memory, streamed and as accesses the units have the same ratios: over whole pages those of the
    /// chunks.
    #[test]
    fn every_source_has_the_ratios_of_the_trace(records in any_records(4096), shift in 0u64..8) {
        let mut records = records;
        for record in &mut records {
            record.offset += if record.op == Op::Flush { 0 } else { shift * 512 };
        }
        let bytes = native(&records);
        let options = rated("distinct");
        let mut memory = workload(&bytes, &options).unwrap();
        let found = of_workload(&mut memory);
        prop_assert_eq!(&found, &of_workload(&mut streamed(&bytes, &options).unwrap()));
        let mut accessed = Vec::new();
        let reader = TraceReader::from_bytes("bytes", bytes, &strict()).unwrap();
        for_each_access(vec![reader], &options, |access| {
            if access.op == Op::Write {
                accessed.push(access.delta_ratios.map(<[u16]>::to_vec));
            }
            Ok(())
        })
        .unwrap();
        let mut rated = 0;
        let writes = records.iter().filter(|record| record.op == Op::Write);
        for ((wanted, access), found) in writes.zip(&accessed).zip(&found) {
            rated += access.as_ref().map_or(0, Vec::len) as u64;
            let found = found.clone().unwrap();
            match &wanted.delta_ratios {
                None => prop_assert!(access.is_none() && found.iter().all(|&ratio| ratio == 0)),
                Some(ratios) if shift == 0 => prop_assert_eq!(&found, ratios),
                Some(_) => prop_assert_eq!(Some(found), access.clone()),
            }
        }
        prop_assert_eq!(memory.summary().rated_pages, rated);
        prop_assert_eq!(found.len(), accessed.len());
    }

    /// Ratios drawn into a trace of whole pages are those that a workload of the model has.
    #[test]
    fn frozen_ratios_are_those_drawn_at_replay(records in any_records(4096), std in 0.0..0.4) {
        let model = DeltaModel::Gaussian { mean: 0.35, std, seed: 9 };
        let bytes = native(&records);
        let directory = tempfile::TempDir::new().unwrap();
        let out = directory.path().join("out");
        let reader = TraceReader::from_bytes("bytes", bytes.clone(), &strict()).unwrap();
        let mut rater = model.rater().unwrap().unwrap();
        convert_rated(reader, &out, &to(Format::Native), Some(&mut *rater)).unwrap();
        let mut frozen = Workload::open(&[out], &rated("distinct")).unwrap();
        let options = WorkloadOptions { delta: Some(model), ..rated("distinct") };
        let mut drawn = workload(&bytes, &options).unwrap();
        prop_assert_eq!(of_workload(&mut frozen), of_workload(&mut drawn));
        prop_assert_eq!(frozen.summary().rated_pages, drawn.summary().rated_pages);
    }
}

#[test]
fn several_row_groups_keep_their_ratios() {
    let records: Vec<OwnedRecord> = (0..280_000u64)
        .map(|i| {
            let length = 4096 * (1 + i % 9);
            let ratios = (0..1 + i % 9).map(|c| (1 + (i * 7 + c) % 65_535) as u16);
            OwnedRecord {
                delta_ratios: (i % 3 > 0 && i > 9000).then(|| ratios.collect()),
                ..record(i, 0, Op::Write, i * 4096, length)
            }
        })
        .collect();
    assert!(read_bytes(&native(&records), &strict()).unwrap() == records);
}

#[test]
fn joined_traces_keep_their_ratios() {
    let first = native(&[write(0, 8192, &[5, 6])]);
    let second = native(&[write(0, 4096, &[7])]);
    for join in [Join::Sequence, Join::Timeline] {
        let readers = [&first, &second]
            .map(|bytes| TraceReader::from_bytes("bytes", bytes.clone(), &strict()).unwrap());
        let options = WorkloadOptions {
            join,
            ..rated("distinct")
        };
        let mut joined = Workload::from_readers(readers.into(), &options).unwrap();
        let wanted = [Some(vec![5, 6]), Some(vec![7])];
        assert_eq!(of_workload(&mut joined), wanted);
    }
}

#[test]
fn ratios_need_content_and_are_not_looked_at_without_the_model() {
    let bytes = native(&[write(0, 8192, &[5, 6]), write(0, 4096, &[7])]);
    let error = workload(&bytes, &rated("trace")).unwrap_err().to_string();
    assert!(
        error.contains("3 of 3 have none; say what they have"),
        "{error}"
    );
    let mut plain = workload(&bytes, &WorkloadOptions::new(ContentModel::Distinct)).unwrap();
    assert_eq!(of_workload(&mut plain), [None, None]);
    assert_eq!(plain.summary().rated_pages, 0);
}

#[test]
fn text_formats_drop_ratios_only_when_asked() {
    let directory = tempfile::TempDir::new().unwrap();
    let out = directory.path().join("out");
    let records = [write(0, 8192, &[5, 6]), record(0, 0, Op::Read, 0, 512)];
    let reader = || TraceReader::from_bytes("bytes", native(&records), &strict()).unwrap();
    let error = convert_reader(reader(), &out, &to(Format::Ssdsim)).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("record 1 cannot be written as ssdsim: it carries delta ratios, which"),
        "{error}"
    );
    let options = ConvertOptions {
        drop_content: true,
        ..to(Format::Ssdsim)
    };
    let report = convert_reader(reader(), &out, &options).unwrap();
    let counts = (report.ratios_dropped, report.contents_dropped);
    assert_eq!((counts, report.rated_writes), ((1, 0), 0));
}

/// Knows no ratio of a write to sector 8.
struct Unknowing;

impl RateWrites for Unknowing {
    fn rate(&mut self, record: &Record<'_>, out: &mut Vec<u16>) -> Result<(), String> {
        out.extend((record.op == Op::Write).then_some(9));
        match record.offset {
            4096 => Err("nobody knows".to_owned()),
            _ => Ok(()),
        }
    }
}

#[test]
fn a_write_that_cannot_be_rated_ends_a_conversion() {
    let directory = tempfile::TempDir::new().unwrap();
    let out = directory.path().join("out");
    let convert = |records: &[OwnedRecord]| {
        let reader = TraceReader::from_bytes("bytes", native(records), &strict()).unwrap();
        convert_rated(reader, &out, &to(Format::Native), Some(&mut Unknowing))
    };
    let read = record(0, 0, Op::Read, 0, 4096);
    // What the trace has is replaced.
    let report = convert(&[read.clone(), write(0, 4096, &[5])]).unwrap();
    assert_eq!(report.rated_writes, 1);
    let (_, found) = opened(&out);
    assert_eq!(found, [read.clone(), write(0, 4096, &[9])]);
    let error = convert(&[read, write(8, 4096, &[5])]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "record 2 cannot be given an R_c: nobody knows"
    );
}

#[test]
fn info_tells_how_ratios_are_spread() {
    let info = |records: &[OwnedRecord]| {
        let reader = TraceReader::from_bytes("bytes", native(records), &strict()).unwrap();
        Info::from_reader(reader).unwrap()
    };
    let half = FULL_RATIO / 2 + 1;
    let some = info(&[
        write(0, 8192, &[half, FULL_RATIO]),
        record(0, 0, Op::Write, 0, 4096),
    ]);
    let text = some.to_string();
    assert!(
        text.contains("2 written pages; mean 0.750, p10 0.500, p50 0.500, p90 1.000")
            && text.contains("without      1 written pages"),
        "{text}"
    );
    let none = info(&[record(0, 0, Op::Write, 0, 4096)]);
    assert_eq!(none.delta_ratios, None);
    assert!(none.to_string().contains("R_c            none"), "{none}");
}

/// A native file made by hand.
struct Forged {
    version: &'static str,
    ratio_column: &'static str,
    /// Number of ratios by the metadata.
    ratios: &'static str,
    ops: [i32; 2],
    /// Elements and levels of the column.
    elements: Vec<i32>,
    definition: Vec<i16>,
    repetition: Vec<i16>,
}

impl Forged {
    /// Writes of two pages and of one, all with ratios.
    fn sound() -> Forged {
        Forged {
            version: "2",
            ratio_column: "optional group delta_ratio (LIST) { repeated group list { required int32 \
                           element (INTEGER(16,false)); } }",
            ratios: "3",
            ops: [1, 1],
            elements: vec![1, 65_535, 9],
            definition: vec![2, 2, 2],
            repetition: vec![0, 1, 0],
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let schema = format!(
            "message flashlore_trace {{
               required int64 time_ns (INTEGER(64,false));
               required int32 device (INTEGER(32,false));
               required int32 op (INTEGER(32,false));
               required int64 offset (INTEGER(64,false));
               required int64 length (INTEGER(64,false));
               optional group content (LIST) {{
                 repeated group list {{ required int32 element (INTEGER(32,false)); }}
               }}
               {} }}",
            self.ratio_column
        );
        let schema = Arc::new(parse_message_type(&schema).unwrap());
        let properties = Arc::new(WriterProperties::default());
        let mut file =
            SerializedFileWriter::new(Cursor::new(Vec::new()), schema, properties).unwrap();
        let seal = [&b"FLSEAL01"[..], &[0; 32]].concat();
        file.write_all(&seal).unwrap();
        let mut group = file.next_row_group().unwrap();
        // Times, devices, operations, offsets and lengths.
        let wide = [Some([0, 0]), None, None, Some([0, 0]), Some([8192, 4096])];
        let narrow = [None, Some([0, 0]), Some(self.ops), None, None];
        for (wide, narrow) in wide.into_iter().zip(narrow) {
            let mut column = group.next_column().unwrap().unwrap();
            if let Some(values) = wide {
                let writer = column.typed::<Int64Type>();
                writer.write_batch(&values, None, None).unwrap();
            }
            if let Some(values) = narrow {
                let writer = column.typed::<Int32Type>();
                writer.write_batch(&values, None, None).unwrap();
            }
            column.close().unwrap();
        }
        let none = [0; 2];
        let content = (&[][..], &none[..], &none[..]);
        let ratios = (
            &self.elements[..],
            &self.definition[..],
            &self.repetition[..],
        );
        for (elements, definition, repetition) in [content, ratios] {
            let Some(mut column) = group.next_column().unwrap() else {
                break;
            };
            column
                .typed::<Int32Type>()
                .write_batch(elements, Some(definition), Some(repetition))
                .unwrap();
            column.close().unwrap();
        }
        group.close().unwrap();
        for (key, value) in [
            ("version", self.version),
            ("records", "2"),
            ("values", "0"),
            ("ratios", self.ratios),
            ("origin_ns", "0"),
            ("device_style", "number"),
            ("hosts", ""),
        ] {
            let key = format!("flashlore.trace.{key}");
            file.append_key_value_metadata(KeyValue::new(key, value.to_owned()));
        }
        let mut bytes = file.into_inner().unwrap().into_inner();
        let sum = blake3::hash(&bytes[44..]);
        bytes[12..44].copy_from_slice(sum.as_bytes());
        bytes
    }
}

#[test]
fn a_file_made_by_hand_is_read() {
    let forged = Forged::sound();
    let wanted = [write(0, 8192, &[1, 65_535]), write(0, 4096, &[9])];
    assert_eq!(read_bytes(&forged.bytes(), &strict()).unwrap(), wanted);
    // Without ratios by the metadata the column is not read.
    let unread = Forged {
        ratios: "0",
        elements: vec![0, 0, 0],
        ..Forged::sound()
    };
    let found = read_bytes(&unread.bytes(), &strict()).unwrap();
    assert!(found.iter().all(|record| record.delta_ratios.is_none()));
}

#[test]
fn files_that_break_the_rules_of_ratios_are_refused() {
    let sound = Forged::sound;
    let lists = |elements: &[i32], definition: &[i16], repetition: &[i16]| Forged {
        elements: elements.to_vec(),
        definition: definition.to_vec(),
        repetition: repetition.to_vec(),
        ..sound()
    };
    let cases = [
        (
            lists(&[1, 0, 9], &[2, 2, 2], &[0, 1, 0]),
            "record 1, column delta_ratio: R_c is 0, expected a number from 1 to 65535",
        ),
        (
            lists(&[1, 2, 65_536], &[2, 2, 2], &[0, 1, 0]),
            "record 2, column delta_ratio: R_c is 65536, expected",
        ),
        (
            lists(&[1, 2, -1], &[2, 2, 2], &[0, 1, 0]),
            "record 2, column delta_ratio: R_c is -1, expected",
        ),
        (
            lists(&[1, 2], &[2, 2], &[0, 0]),
            "record 1, column delta_ratio: it has 1 elements for 8192 bytes, expected 2",
        ),
        (
            lists(&[1, 2, 3, 4], &[2, 2, 2, 2], &[0, 1, 0, 1]),
            "record 2, column delta_ratio: it has 2 elements for 4096 bytes, expected 1",
        ),
        (
            // An empty list is not a missing one.
            lists(&[1, 2], &[2, 2, 1], &[0, 1, 0]),
            "record 2, column delta_ratio: it has 0 elements for 4096 bytes, expected 1",
        ),
        (
            lists(&[1, 2], &[2, 2, 0], &[0, 1, 0]),
            "it holds 2 ratios, expected 3 by its metadata",
        ),
        (
            Forged {
                ops: [1, 0],
                ..sound()
            },
            "record 2, column delta_ratio: a read has R_c, expected it of writes only",
        ),
        (
            Forged {
                ratios: "-3",
                ..sound()
            },
            "its metadata has flashlore.trace.ratios = '-3', expected a whole number",
        ),
        (
            Forged {
                version: "1",
                ..sound()
            },
            "it has version '1', expected '2'; convert the original trace again",
        ),
        (
            Forged {
                ratio_column: "",
                ..sound()
            },
            "its columns are not those of version 2",
        ),
    ];
    for (forged, wanted) in cases {
        let found = complaint(&forged.bytes());
        assert!(
            found.starts_with("bytes: not a usable native trace: ") && found.contains(wanted),
            "{found}\n  lacks {wanted}"
        );
    }
}
