//! The formats of simulators and servers, and what is common to all: what their records say, and
//! every way a record can be wrong.

use crate::common;

use std::io::Write;

use common::*;
use flashlore_trace::{Compression, DeviceNames, Format, Op, ReadOptions, TraceReader};

fn open(name: &str, format: Format) -> (TraceReader, Vec<OwnedRecord>) {
    let (reader, all) = opened(&fixture(name));
    assert_eq!(reader.format(), format);
    (reader, all)
}

#[test]
fn fiu_pages() {
    let (reader, all) = open("pages.fiu", Format::Fiu);
    let wanted = [
        (0, 7 << 20, Op::Write, 0, 4096, vec![0]),
        (500, 7 << 20, Op::Write, 4096, 4096, vec![1]),
        (500, 7 << 20, Op::Read, 8192, 4096, vec![2]),
        (1000, 7 << 20, Op::Write, 0, 4096, vec![0]),
        (1500, 8 << 20 | 1, Op::Write, 12288, 8192, vec![1, 3]),
    ];
    let wanted: Vec<OwnedRecord> = wanted
        .into_iter()
        .map(
            |(time_ns, device, op, offset, length, content)| OwnedRecord {
                time_ns,
                device,
                op,
                offset,
                length,
                content: Some(content),
                delta_ratios: None,
            },
        )
        .collect();
    assert_eq!(all, wanted);
    assert_eq!(reader.stats().clamped, 1);
    assert_eq!(reader.stats().largest_step_back_ns, 300);
    assert_eq!(reader.origin_ns(), 1000);
    assert_eq!(reader.value_count(), 4);
    assert_eq!(reader.digest(2)[15], 3);
    assert_eq!(reader.device_names().name(8 << 20 | 1), "8,1");
}

#[test]
fn fiu_sectors_are_one_value_a_page() {
    let (_, all) = open("sectors.fiu", Format::Fiu);
    let content: Vec<_> = all.iter().map(|r| r.content.clone().unwrap()).collect();
    assert_eq!(content, [[0], [1], [0]]);
}

#[test]
fn msr() {
    let (reader, all) = open("hm.msr", Format::Msr);
    assert_eq!(
        all,
        [
            record(0, 1, Op::Read, 10_538_442_752, 4096),
            record(1_332_052_600, 1, Op::Write, 2_822_144, 4608),
            record(1_332_052_600, 1 << 16, Op::Write, 512, 1024),
            record(2_332_061_600, 0, Op::Read, 3_221_266_432, 4096),
        ]
    );
    let names: &DeviceNames = reader.device_names();
    assert_eq!(
        (names.name(1), names.name(1 << 16)),
        ("hm.1".to_owned(), "prn.0".to_owned())
    );
    assert_eq!(reader.stats().largest_step_back_ns, 5500);
    assert_eq!(reader.origin_ns(), 12_816_637_200_306_162_900);
}

#[test]
fn spc() {
    let (_, all) = open("financial.spc", Format::Spc);
    assert_eq!(
        all,
        [
            record(0, 0, Op::Write, 303_567 * 512, 3584),
            record(0, 1, Op::Write, 55_590 * 512, 3072),
            record(26_214_000, 0, Op::Read, 303_574 * 512, 3584),
        ]
    );
}

#[test]
fn disksim() {
    let (_, all) = open("iozone.disksim", Format::Disksim);
    assert_eq!(
        all,
        [
            record(0, 0, Op::Write, 6_400_008 * 512, 4096),
            record(390_000, 0, Op::Read, 6_300_008 * 512, 4096),
            record(32_137_123, 1, Op::Read, 33_000_008 * 512, 32768),
            record(32_137_123, 1, Op::Write, 4096, 512),
        ]
    );
}

#[test]
fn ssdsim_with_dos_line_ends_and_a_blank_line() {
    let (_, all) = open("web.ssdsim", Format::Ssdsim);
    assert_eq!(
        all,
        [
            record(0, 0, Op::Read, 650_008 * 512, 8192),
            record(152_000, 1, Op::Read, 31_000_008 * 512, 32768),
            record(308_000, 1, Op::Write, 21_000_008 * 512, 8192),
        ]
    );
}

#[test]
fn a_given_format_overrides_detection() {
    let text = b"0 0 8 8 0\n1 0 16 8 1\n";
    let times = |format| {
        let options = ReadOptions { format, ..strict() };
        read_bytes(text, &options).unwrap()[1].time_ns
    };
    assert_eq!(times(None), 1);
    assert_eq!(times(Some(Format::Ssdsim)), 1);
    assert_eq!(times(Some(Format::Disksim)), 1_000_000);
    let error = read_bytes(
        text,
        &ReadOptions {
            format: Some(Format::Msr),
            ..strict()
        },
    );
    assert!(
        error
            .unwrap_err()
            .to_string()
            .contains("line 1: timestamp is '0 0 8 8 0'")
    );
    let error = read_bytes(
        text,
        &ReadOptions {
            format: Some(Format::Native),
            ..strict()
        },
    );
    assert!(
        error
            .unwrap_err()
            .to_string()
            .contains("does not begin with 'PAR1'")
    );
}

#[test]
fn every_bad_record_is_named() {
    let d = "0123456789abcdef0123456789abcdef";
    let fiu = format!("1 1 p 0 8 W 8 0 {d}\n");
    let fiu_cases = [
        (
            format!("1 1 p 0 0 W 8 0 {d}"),
            "size is 0, expected at least one",
        ),
        (
            format!("1 1 p 0 8 X 8 0 {d}"),
            "operation is 'X', expected R or W",
        ),
        (
            format!("1 1 p 0 8 W 4096 0 {d}"),
            "major is '4096', expected a number below 4096",
        ),
        (
            format!("1 1 p 0 8 W 8 1048576 {d}"),
            "minor is '1048576', expected",
        ),
        (
            format!("1 1 p 0 16 W 8 0 {d}"),
            "digest is 32 characters long for 16 sectors",
        ),
        (
            format!("1 1 p 0 8 W 8 0 {}", &d[1..]),
            "digest is 31 characters long for 8 sectors",
        ),
        (
            format!("1 1 p 0 8 W 8 0 {}x", &d[1..]),
            "expected hexadecimal digits only",
        ),
        (
            format!("1 1 0 8 W 8 0 {d}"),
            "process is missing, expected a name",
        ),
        (
            format!("-1 1 p 0 8 W 8 0 {d}"),
            "timestamp is '-1', expected a whole number",
        ),
        (
            format!("1 1 p 36028797018963968 8 W 8 0 {d}"),
            "lba is '36028797018963968'",
        ),
        (
            format!("1 1 p 36028797018963967 8 W 8 0 {d}"),
            "expected offset + size below 2^64",
        ),
        (
            format!("1 1 p 0 99999999 W 8 0 {d}"),
            "expected a read or write of at most 2^30 bytes",
        ),
        (
            format!("1 1 p 0 8 W 8 0 {d}\0"),
            "digest is 33 characters long",
        ),
        ("1".to_owned(), "operation is missing, expected R or W"),
    ];
    for (line, wanted) in fiu_cases {
        expect_complaint(&fiu, &line, wanted);
    }
    let msr = "128166372003061629,hm,1,Read,0,4096,13\n";
    for (line, wanted) in [
        (
            "128166372003061629,hm,1,Trim,0,4096,13",
            "operation is 'Trim', expected Read or Write",
        ),
        ("128166372003061629,hm,1,Read,0,0,13", "size is 0"),
        (
            "128166372003061629,hm,65536,Read,0,1,13",
            "disk is '65536', expected a number below",
        ),
        (
            "184467440737095517,hm,1,Read,0,1,13",
            "expected a FILETIME whose nanoseconds",
        ),
        (
            "128166372003061629,hm,1,Read,0,4096",
            "response time is missing",
        ),
        (
            "128166372003061629,hm,1,Read,0,4096,1,2",
            "end of the line is '2', expected seven",
        ),
        (
            "128166372003061629,h\u{e9},1,Read,0,4096,1",
            "host is 'h\\xc3\\xa9', expected",
        ),
        (
            "128166372003061629,,1,Read,0,4096,1",
            "host is missing, expected",
        ),
        (
            "128166372003061629,hm,1,Read,18446744073709551615,1,1",
            "below 2^64 bytes",
        ),
        (
            "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime",
            "timestamp is 'Timestamp'",
        ),
    ] {
        expect_complaint(msr, line, wanted);
    }
    let spc = "0,8,4096,r,0.5\n";
    for (line, wanted) in [
        ("0,8,4096,x,0.5", "operation is 'x', expected r or w"),
        ("0,8,0,r,0.5", "size is 0"),
        ("0,8,4096,r", "time is missing"),
        ("0,8,4096,r,1e3", "time is '1e3', expected a decimal number"),
        (
            "0,8,4096,r,99999999999.0",
            "expected a decimal number whose nanoseconds stay",
        ),
        (
            "4294967296,8,4096,r,0.5",
            "asu is '4294967296', expected a whole number below 2^32",
        ),
    ] {
        expect_complaint(spc, line, wanted);
    }
    let disksim = "0.5 0 8 8 0\n";
    for (line, wanted) in [
        ("0.5 0 8 0 0", "size is 0"),
        ("0.5 0 8 8", "flags is missing"),
        (
            "0.5 0 8 8 0 0",
            "end of the line is '0', expected five fields",
        ),
        ("0.5 0 8 8 r", "flags is 'r'"),
    ] {
        expect_complaint(disksim, line, wanted);
    }
    let ssdsim = "5 0 8 8 0\n";
    for (line, wanted) in [
        ("5 0 8 0 0", "size is 0"),
        (
            "5 0 8 8 2",
            "operation is '2', expected 0 (write) or 1 (read)",
        ),
        ("0.5 0 8 8 0", "time is '0.5', expected a whole number"),
    ] {
        expect_complaint(ssdsim, line, wanted);
    }
}

#[test]
fn useless_inputs() {
    assert!(complaint(b"").contains("the input is empty"));
    assert!(complaint(b"\n \n\n").contains("no known trace format fits"));
    assert!(complaint(b"hello world\n").contains("no known trace format fits the beginning"));
    assert!(complaint(&[0xff; 1000]).contains("'\\xff"));
    assert!(complaint(&[0; 5000]).contains("no known trace format"));
    assert!(complaint(&vec![b'7'; 100_000]).contains("no known trace format"));
    let long = [b"0 0 8 8 0\n".to_vec(), vec![b'7'; 70_000 + 65536]].concat();
    assert!(complaint(&long).contains("expected a line of at most 65536 bytes"));
    let options = ReadOptions {
        format: Some(Format::Spc),
        ..lenient()
    };
    let error = read_bytes(b"nothing\nhere\n", &options)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("the trace holds no record (2 malformed ones were skipped, 0 events"),
        "{error}"
    );
    let error = TraceReader::open("/no/such/file", &strict())
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.starts_with("/no/such/file: cannot open the file"),
        "{error}"
    );
}

/// A ustar header block for a file of this name, type and size.
fn archive_header(name: &str, kind: u8, size: usize) -> Vec<u8> {
    let mut block = vec![0; 512];
    block[..name.len()].copy_from_slice(name.as_bytes());
    block[124..136].copy_from_slice(format!("{size:011o}\0").as_bytes());
    block[156] = kind;
    block[257..262].copy_from_slice(b"ustar");
    block
}

#[test]
fn a_record_glued_to_an_archive_header_survives() {
    let record = b"5 1 p 8 8 W 8 0 0123456789abcdef0123456789abcdef\n";
    let mut pax = b"30 atime=1410563628.272753818\n28 ctime=1410563671.6712\n".to_vec();
    let pax_header = archive_header("PaxHeaders/x", b'x', pax.len());
    pax.resize(512, 0);
    let front = [pax_header, pax, archive_header("x", b'0', 2 * record.len())].concat();
    let archive = [&front[..], record, record, &[0; 9000]].concat();
    assert_eq!(read_bytes(&archive, &strict()).unwrap().len(), 2);
    // Only the end of the header is left.
    assert_eq!(read_bytes(&archive[1200..], &strict()).unwrap().len(), 2);
    // Zero bytes elsewhere are damage, and so is a second file.
    let holes = [&record[..], &[0; 600], b"\n", record].concat();
    assert!(complaint(&holes).contains("line 2: timestamp is '\\x00"));
    let inside = [&front[..], record, b"\0\0x\n", record].concat();
    assert!(complaint(&inside).contains("timestamp is '\\x00"));
    let second = [&front[..], record, &archive_header("y", b'0', 9), record].concat();
    assert!(complaint(&second).contains("timestamp is 'y\\x00"));
    // A header whose size is nonsense.
    let mut nonsense = archive;
    nonsense[124..136].fill(b'9');
    assert!(read_bytes(&nonsense, &strict()).is_err());
}

#[test]
fn compression_is_recognised_and_damage_is_named() {
    let text: String = (0..5000)
        .map(|i| format!("{} 0 {} 8 {}\n", i * 1000, i * 7919 % 65536, i % 2))
        .collect();
    let plain = read_bytes(text.as_bytes(), &strict()).unwrap();
    assert_eq!(plain.len(), 5000);
    for (compression, packed) in packed(text.as_bytes()) {
        let mut reader = TraceReader::from_bytes("x", packed.clone(), &strict()).unwrap();
        assert_eq!(reader.compression(), compression);
        assert_eq!(records(&mut reader).unwrap(), plain, "{compression}");
        assert_eq!(reader.stored_bytes(), packed.len() as u64);
        // Two compressed files put together are one.
        let twice = [&packed[..], &packed].concat();
        assert_eq!(
            read_bytes(&twice, &strict()).unwrap().len(),
            10_000,
            "{compression}"
        );
        for cut in [7, packed.len() / 2, packed.len() - 1] {
            let found = complaint(&packed[..cut]);
            let wanted = format!("the {compression} data breaks off or is damaged near byte {cut}");
            assert!(found.contains(&wanted), "{found}");
        }
        let mut damaged = packed;
        let middle = damaged.len() / 2;
        damaged[middle] ^= 0x55;
        damaged[middle + 1] ^= 0x55;
        assert!(read_bytes(&damaged, &strict()).is_err(), "{compression}");
    }
}

fn packed(text: &[u8]) -> [(Compression, Vec<u8>); 3] {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(text).unwrap();
    let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 6);
    xz.write_all(text).unwrap();
    let mut zstd = zstd::Encoder::new(Vec::new(), 3).unwrap();
    zstd.include_checksum(true).unwrap();
    zstd.window_log(27).unwrap();
    zstd.write_all(text).unwrap();
    [
        (Compression::Gzip, gzip.finish().unwrap()),
        (Compression::Xz, xz.finish().unwrap()),
        (Compression::Zstd, zstd.finish().unwrap()),
    ]
}

#[test]
fn a_byte_order_mark_is_skipped() {
    for text in [
        "128166372003061629,hm,1,Read,0,4096,13\n",
        "5 0 8 8 0\r\n9 0 8 8 1\r\n",
        "0,8,4096,r,0.5\n",
    ] {
        let marked = [b"\xef\xbb\xbf", text.as_bytes()].concat();
        assert_eq!(
            read_bytes(&marked, &strict()).unwrap(),
            read_bytes(text.as_bytes(), &strict()).unwrap()
        );
    }
    assert!(complaint(b"\xef\xbb\xbf").contains("the input is empty"));
    // In the second line it is damage.
    let found = complaint(b"0,8,4096,r,0.5\n\xef\xbb\xbf0,8,4096,r,0.5\n");
    assert!(found.contains("line 2: asu is '\\xef"), "{found}");
}

#[test]
fn what_is_wrong_with_a_first_record_is_said() {
    let d = "0123456789abcdef0123456789abcdef";
    let cases = [
        (format!("1 1 p 0 0 W 8 0 {d}"), "size is 0"),
        (
            format!("1 1 p 36028797018963968 8 W 8 0 {d}"),
            "lba is '36028797018963968', expected a whole number of 512-byte sectors",
        ),
        (
            format!("1 1 p 36028797018963967 8 W 8 0 {d}"),
            "offset is 18446744073709551104, expected offset + size",
        ),
        (
            format!("1 1 p 0 8 W 8 0 {d}0"),
            "digest is 33 characters long for 8 sectors",
        ),
        ("9,hm,1,Read,0,0,13".to_owned(), "size is 0"),
        (
            "9,hm,1,Read,18446744073709551616,512,13".to_owned(),
            "offset is '18446744073709551616', expected a whole number of bytes",
        ),
        ("0,8,0,r,0.5".to_owned(), "size is 0"),
        ("0,99999999999999999999,8,r,0.5".to_owned(), "lba is '999"),
        ("0.5 0 8 0 0".to_owned(), "size is 0"),
        ("5 0 8 0 0".to_owned(), "size is 0"),
        ("5 0 99999999999999999999 8 0".to_owned(), "lba is '999"),
    ];
    for (line, wanted) in cases {
        let found = complaint(line.as_bytes());
        assert!(found.starts_with("bytes, line 1: "), "{found}");
        assert!(found.contains(wanted), "{found}\n  lacks {wanted}");
    }
}
