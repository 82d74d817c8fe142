//! Conversion: round trips, and what a format cannot express.

use crate::common;

use std::path::Path;

use common::*;
use flashlore_trace::{
    ConvertOptions, ConvertReport, Existing, Format, Op, Result, TraceReader, convert,
};
use proptest::prelude::*;
use tempfile::TempDir;

fn to(format: Format) -> ConvertOptions {
    ConvertOptions {
        read: strict(),
        to: format,
        drop_content: false,
        existing: Existing::Replace,
    }
}

fn read(path: &Path) -> Vec<OwnedRecord> {
    records(&mut TraceReader::open(path, &strict()).unwrap()).unwrap()
}

/// Converts records to a format and back to native; what is read from both.
fn round_trip(records: &[OwnedRecord], format: Format) -> (Vec<OwnedRecord>, Vec<OwnedRecord>) {
    let directory = TempDir::new().unwrap();
    let path = |name: &str| directory.path().join(name);
    std::fs::write(path("in"), native(records)).unwrap();
    convert(path("in"), path("text"), &to(format)).unwrap();
    let text = read(&path("text"));
    convert(path("text"), path("back"), &to(Format::Native)).unwrap();
    (text, read(&path("back")))
}

fn transfers(time_unit: u64, content: bool) -> impl Strategy<Value = Vec<OwnedRecord>> {
    let one = (
        0u64..1 << 40,
        0u32..1 << 16,
        prop::bool::ANY,
        0u64..1 << 45,
        1u64..40,
        0u32..9,
    );
    prop::collection::vec(one, 1..50).prop_map(move |raw| {
        let mut time_ns = 0;
        let mut next = 0;
        let mut records: Vec<OwnedRecord> = raw
            .into_iter()
            .map(|(step, device, read, sector, sectors, value)| {
                time_ns += step * time_unit;
                let length = sectors * 512;
                // Ids in order of first appearance, as every trace has them.
                let mut values = (0..length.div_ceil(4096)).map(|i| {
                    let value = (value + i as u32).min(next);
                    next = next.max(value + 1);
                    value
                });
                OwnedRecord {
                    time_ns,
                    device,
                    op: if read { Op::Read } else { Op::Write },
                    offset: sector * 512,
                    length,
                    content: content.then(|| values.by_ref().collect()),
                    delta_ratios: None,
                }
            })
            .collect();
        let origin = records[0].time_ns;
        records
            .iter_mut()
            .for_each(|record| record.time_ns -= origin);
        records
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn fiu_round_trip(records in transfers(1, true)) {
        let (text, back) = round_trip(&records, Format::Fiu);
        prop_assert_eq!(&text, &records);
        prop_assert_eq!(&back, &records);
    }

    #[test]
    fn spc_disksim_and_ssdsim_round_trips(records in transfers(1, false)) {
        for format in [Format::Spc, Format::Disksim, Format::Ssdsim] {
            let (text, back) = round_trip(&records, format);
            prop_assert_eq!(&text, &records);
            prop_assert_eq!(&back, &records);
        }
    }

    #[test]
    fn msr_round_trip(records in transfers(100, false)) {
        let (text, back) = round_trip(&records, Format::Msr);
        prop_assert_eq!(&text, &records);
        prop_assert_eq!(&back, &records);
    }
}

/// Records of all four operations.
fn all_operations() -> impl Strategy<Value = Vec<OwnedRecord>> {
    transfers(1000, false).prop_map(|mut records| {
        for (number, record) in records.iter_mut().enumerate() {
            match number % 5 {
                3 => record.op = Op::Trim,
                4 => (record.op, record.offset, record.length) = (Op::Flush, 0, 0),
                _ => {}
            }
        }
        records
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn blkparse_round_trip(records in all_operations()) {
        let (text, back) = round_trip(&records, Format::Blkparse(None));
        prop_assert_eq!(&text, &records);
        prop_assert_eq!(&back, &records);
    }

    /// fio numbers files in order of first appearance, so devices are compared by name.
    #[test]
    fn fio_round_trip(records in all_operations()) {
        let directory = TempDir::new().unwrap();
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("in"), native(&records)).unwrap();
        let report = convert(path("in"), path("log"), &to(Format::Fio)).unwrap();
        prop_assert_eq!(report.times_cut, 0);
        convert(path("log"), path("native"), &to(Format::Native)).unwrap();
        for converted in ["log", "native"] {
            let (reader, mut found) = opened(&path(converted));
            for record in &mut found {
                record.device = reader.device_names().name(record.device).parse().unwrap();
            }
            prop_assert_eq!(&found, &records);
        }
    }
}

#[test]
fn formats_that_are_only_read_are_not_written() {
    let directory = TempDir::new().unwrap();
    let (input, out) = (directory.path().join("in"), directory.path().join("out"));
    let page = OwnedRecord {
        content: Some(vec![0]),
        ..record(0, 0, Op::Write, 0, 4096)
    };
    std::fs::write(&input, native(&[page])).unwrap();
    let actions = ["blkparse:Q", "blkparse:D", "blkparse:I", "blkparse:C"];
    let actions = actions.map(|name| name.parse().unwrap());
    for format in Format::ALL.into_iter().chain(actions) {
        let options = ConvertOptions {
            drop_content: true,
            ..to(format)
        };
        match convert(&input, &out, &options) {
            Ok(report) => {
                assert!(format.is_writable(), "{format}");
                let (_, all) = opened(&out);
                assert_eq!(all.len() as u64, report.read.records);
                std::fs::remove_file(&out).unwrap();
            }
            Err(error) => {
                assert!(!format.is_writable(), "{error}");
                let wanted = format!(
                    "traces are not written as {format}; expected one of fiu, msr, spc, disksim, \
                     ssdsim, blkparse, fio or native"
                );
                assert_eq!(error.to_string(), wanted);
                assert!(!out.exists());
            }
        }
    }
}

#[test]
fn times_are_cut_to_the_microseconds_of_fio() {
    let directory = TempDir::new().unwrap();
    let path = |name: &str| directory.path().join(name);
    let records = [
        record(0, 0, Op::Read, 0, 512),
        record(1999, 0, Op::Write, 0, 512),
    ];
    std::fs::write(path("in"), native(&records)).unwrap();
    let report = convert(path("in"), path("out"), &to(Format::Fio)).unwrap();
    assert_eq!(report.times_cut, 1);
    let text = std::fs::read_to_string(path("out")).unwrap();
    assert_eq!(
        text,
        "fio version 3 iolog\n0 0 add\n0 0 open\n0 0 read 0 512\n1 0 write 0 512\n"
    );
}

#[test]
fn every_fixture_survives_the_native_format() {
    let directory = TempDir::new().unwrap();
    let native = directory.path().join("native");
    for name in [
        "pages.fiu",
        "sectors.fiu",
        "unaligned.fiu",
        "hm.msr",
        "financial.spc",
        "iozone.disksim",
        "web.ssdsim",
        "cloud.alibaba",
        "cbs.tencent",
        "vdi.systor",
        "vm.cloudphysics",
        "vm1.vscsi",
        "vm2.vscsi",
        "sda.blkparse",
        "pauses.fio",
        "times.fio",
    ] {
        convert(fixture(name), &native, &to(Format::Native)).unwrap();
        let mut original = TraceReader::open(fixture(name), &strict()).unwrap();
        let wanted = records(&mut original).unwrap();
        let mut converted = TraceReader::open(&native, &strict()).unwrap();
        assert_eq!(records(&mut converted).unwrap(), wanted, "{name}");
        assert_eq!(converted.origin_ns(), original.origin_ns());
        assert_eq!(converted.value_count(), original.value_count());
        for record in wanted {
            let name = original.device_names().name(record.device);
            assert_eq!(converted.device_names().name(record.device), name);
        }
    }
}

#[test]
fn known_digests_hosts_and_absolute_times_are_kept() {
    let directory = TempDir::new().unwrap();
    let out = directory.path().join("out");
    convert(fixture("pages.fiu"), &out, &to(Format::Fiu)).unwrap();
    let text = std::fs::read_to_string(&out).unwrap();
    assert!(
        text.starts_with("1000 0 - 0 8 W 7 0 00000000000000000000000000000001\n"),
        "{text}"
    );
    convert(fixture("hm.msr"), &out, &to(Format::Msr)).unwrap();
    let text = std::fs::read_to_string(&out).unwrap();
    assert!(
        text.starts_with("128166372003061629,hm,1,Read,10538442752,4096,0\n"),
        "{text}"
    );
    assert!(text.contains(",prn,0,Write,512,1024,0\n"), "{text}");
    // Through native as well.
    let native = directory.path().join("native");
    convert(fixture("hm.msr"), &native, &to(Format::Native)).unwrap();
    convert(&native, &out, &to(Format::Msr)).unwrap();
    assert_eq!(std::fs::read_to_string(&out).unwrap(), text);
    // Native keeps ids, so the digests printed are derived from them.
    convert(fixture("pages.fiu"), &native, &to(Format::Native)).unwrap();
    convert(&native, &out, &to(Format::Fiu)).unwrap();
    let text = std::fs::read_to_string(&out).unwrap();
    assert!(
        text.contains("8 8 W 7 0 666c6173686c6f72653a696400000001\n"),
        "{text}"
    );
}

fn refused(records: &[OwnedRecord], options: &ConvertOptions) -> String {
    let directory = TempDir::new().unwrap();
    let input = directory.path().join("in");
    std::fs::write(&input, native(records)).unwrap();
    let result: Result<ConvertReport> = convert(&input, directory.path().join("out"), options);
    let names: Vec<_> = std::fs::read_dir(&directory)
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(names, ["in"], "nothing may be left behind");
    result.unwrap_err().to_string()
}

#[test]
fn what_a_format_cannot_express_is_an_error() {
    let record = |op, offset, length, content: Option<&[u32]>| OwnedRecord {
        time_ns: 0,
        device: 70_000,
        op,
        offset,
        length,
        content: content.map(<[u32]>::to_vec),
        delta_ratios: None,
    };
    let good = record(Op::Write, 0, 4096, Some(&[0]));
    let trim = record(Op::Trim, 0, 4096, None);
    let odd = record(Op::Write, 0, 100, Some(&[0]));
    let bare = record(Op::Write, 0, 4096, None);
    let shifted = record(Op::Write, 1, 4096, None);
    let flush = record(Op::Flush, 0, 0, None);
    let cases = [
        (
            Format::Fiu,
            &trim,
            "record 2 cannot be written as fiu: the format knows reads and writes",
        ),
        (Format::Fiu, &odd, "size 100 is not a multiple of 512"),
        (Format::Fiu, &bare, "the record has no content"),
        (
            Format::Spc,
            &good,
            "record 1 cannot be written as spc: it carries content",
        ),
        (Format::Spc, &shifted, "offset 1 is not a multiple of 512"),
        (
            Format::Disksim,
            &flush,
            "the format knows reads and writes only",
        ),
        (
            Format::Ssdsim,
            &shifted,
            "offset 1 is not a multiple of 512",
        ),
        (Format::Msr, &bare, "device 70000 is above 65535"),
    ];
    for (format, record, wanted) in cases {
        let records = match format {
            Format::Fiu => vec![good.clone(), record.clone()],
            _ => vec![record.clone()],
        };
        let found = refused(&records, &to(format));
        assert!(found.contains(wanted), "{found}\n  lacks {wanted}");
    }
}

#[test]
fn content_is_dropped_and_times_are_cut_only_with_a_count() {
    let directory = TempDir::new().unwrap();
    let out = directory.path().join("out");
    let options = ConvertOptions {
        drop_content: true,
        ..to(Format::Msr)
    };
    let report = convert(fixture("unaligned.fiu"), &out, &options);
    assert!(
        report
            .unwrap_err()
            .to_string()
            .contains("device 8388608 is above 65535")
    );
    assert!(!out.exists());
    let options = ConvertOptions {
        drop_content: true,
        ..to(Format::Spc)
    };
    let report = convert(fixture("unaligned.fiu"), &out, &options).unwrap();
    assert_eq!((report.contents_dropped, report.times_cut), (5, 0));
    let report = convert(fixture("financial.spc"), &out, &to(Format::Msr)).unwrap();
    assert_eq!(report.times_cut, 0);
    let odd = native(&[
        OwnedRecord {
            time_ns: 0,
            device: 0,
            op: Op::Read,
            offset: 0,
            length: 1,
            content: None,
            delta_ratios: None,
        },
        OwnedRecord {
            time_ns: 150,
            device: 0,
            op: Op::Read,
            offset: 0,
            length: 1,
            content: None,
            delta_ratios: None,
        },
    ]);
    std::fs::write(directory.path().join("in"), odd).unwrap();
    let report = convert(directory.path().join("in"), &out, &to(Format::Msr)).unwrap();
    assert_eq!(report.times_cut, 1);
    assert_eq!(read(&out)[1].time_ns, 100);
}

#[test]
fn damaged_native_files_are_refused() {
    let bytes = native(&[OwnedRecord {
        time_ns: 0,
        device: 0,
        op: Op::Read,
        offset: 0,
        length: 1,
        content: None,
        delta_ratios: None,
    }]);
    assert_eq!(read_bytes(&bytes, &strict()).unwrap().len(), 1);
    for position in 4..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[position] ^= 1;
        let found = complaint(&damaged);
        assert!(
            found.contains("not a usable native trace"),
            "byte {position}: {found}"
        );
        let found = complaint(&bytes[..position]);
        assert!(
            found.contains("not a usable native trace"),
            "cut at {position}: {found}"
        );
    }
    let longer = [&bytes[..], b"x"].concat();
    assert!(complaint(&longer).contains("the checksum over its"));
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut gzip, &bytes).unwrap();
    assert!(complaint(&gzip.finish().unwrap()).contains("read from an uncompressed file"));
}

/// Several row groups, long lists, records with and without content.
#[test]
fn native_files_of_several_row_groups() {
    let records: Vec<OwnedRecord> = (0..600_000u64)
        .map(|i| {
            let length = if i % 1000 == 0 {
                4096 * 300
            } else {
                512 + i % 9 * 4096
            };
            let content = (i % 3 > 0).then(|| {
                (0..length.div_ceil(4096) as u32)
                    .map(|v| v + i as u32 % 7)
                    .collect()
            });
            OwnedRecord {
                time_ns: i * 31,
                device: i as u32 % 5,
                op: Op::Write,
                offset: i * 7919 % (1 << 44),
                length,
                content,
                delta_ratios: None,
            }
        })
        .collect();
    assert!(read_bytes(&native(&records), &strict()).unwrap() == records);
}
