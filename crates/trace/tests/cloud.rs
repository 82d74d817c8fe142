//! Traces of clouds and virtual machines: what their records say, what is passed over, and every way
//! a record can be wrong.

use crate::common;

use common::*;
use flashlore_trace::{Format, Op};

fn open(name: &str, format: Format) -> (u64, Vec<OwnedRecord>) {
    let (reader, all) = opened(&fixture(name));
    assert_eq!(reader.format(), format);
    assert_eq!(reader.stats().skipped, 0);
    (reader.stats().passed_over, all)
}

#[test]
fn alibaba() {
    let (passed_over, all) = open("cloud.alibaba", Format::Alibaba);
    assert_eq!(passed_over, 0);
    assert_eq!(
        all,
        [
            record(0, 419, Op::Write, 8_792_731_648, 16384),
            record(46_000, 725, Op::Read, 59_110_326_272, 360_448),
            record(85_000, 12, Op::Read, 350_868_463_616, 8192),
            // A step back of 3 us.
            record(85_000, 725, Op::Write, 59_110_326_784, 4608),
        ]
    );
    for (line, wanted) in [
        ("419,r,0,4096,5", "operation is 'r', expected R or W"),
        ("419,W,0,0,5", "size is 0"),
        ("419,W,0,4096", "timestamp is missing"),
        (
            "419,W,0,4096,18446744073709552",
            "expected whole microseconds whose nanoseconds stay below 2^64",
        ),
        ("419,W,0,4096,5,6", "end of the line is '6', expected five"),
        ("4294967296,W,0,4096,5", "device is '4294967296'"),
        (
            "419,W,18446744073709551615,4096,5",
            "expected offset + size below 2^64",
        ),
    ] {
        expect_complaint("419,W,0,4096,5\n", line, wanted);
    }
}

#[test]
fn tencent() {
    let (passed_over, all) = open("cbs.tencent", Format::Tencent);
    assert_eq!(passed_over, 0);
    assert_eq!(
        all,
        [
            record(0, 1063, Op::Read, 12_910_952 * 512, 65536),
            record(0, 1627, Op::Write, 6_338_688 * 512, 4096),
            record(1_000_000_000, 1360, Op::Read, 1_904_106_400 * 512, 196_608),
            record(1_000_000_000, 1627, Op::Write, 11 * 512, 512),
        ]
    );
    for (line, wanted) in [
        (
            "1538323200,8,8,2,1",
            "operation is '2', expected 0 (read) or 1 (write)",
        ),
        ("1538323200,8,0,1,1", "size is 0"),
        ("1538323200,8,8,1", "volume is missing"),
        ("18446744074,8,8,1,1", "expected whole seconds"),
        ("1538323200,8,8,1,1,1", "expected five fields"),
    ] {
        expect_complaint("1538323200,8,8,1,1\n", line, wanted);
    }
}

#[test]
fn systor_has_headers_anywhere_and_records_without_operation() {
    let (passed_over, all) = open("vdi.systor", Format::Systor);
    assert_eq!(passed_over, 1);
    assert_eq!(
        all,
        [
            record(0, 6, Op::Read, 1_034_891_264, 4096),
            record(308_000, 6, Op::Write, 2_102_525_952, 512),
            record(308_000, 4, Op::Read, 1024, 8192),
        ]
    );
    for (line, wanted) in [
        (
            "1.5,0.1,X,6,0,4096",
            "operation is 'X', expected R, W or nothing",
        ),
        ("1.5,0.1,R,6,0,0", "size is 0"),
        ("1.5,,R,6,0,512", "response time is missing"),
        ("1.5,0.1,,x,0,512", "LUN is 'x'"),
        ("1.5,0.1,R,6,0,512,9", "expected six fields"),
        ("Timestamp,Response", "timestamp is 'Timestamp'"),
    ] {
        expect_complaint("1.5,0.1,R,6,0,4096\n", line, wanted);
    }
}

#[test]
fn cloudphysics() {
    let (passed_over, all) = open("vm.cloudphysics", Format::Cloudphysics);
    assert_eq!(passed_over, 2, "an inquiry and a read of no byte");
    assert_eq!(
        all,
        [
            record(0, 0, Op::Write, 42_932_745 * 512, 512),
            record(0, 0, Op::Read, 40_409_911 * 512, 69632),
            record(1_000_000_000, 0, Op::Flush, 0, 0),
            record(2_000_000_000, 0, Op::Trim, 1 << 20, 1 << 20),
            record(2_000_000_000, 0, Op::Write, 4096, 4096),
        ]
    );
    for (line, wanted) in [
        ("3,5,2a,512,1", "version is '3', expected 1 or 2"),
        ("1,5,2g,512,1", "op is '2g', expected a SCSI operation code"),
        ("1,5,,512,1", "op is missing"),
        ("1,5,2a,513,1", "size is 513, expected a multiple of 512"),
        (
            "1,5,2a,512,36028797018963968",
            "block is 36028797018963968, expected a number of 512-byte sectors",
        ),
        ("1,5,2a,512", "lbn is missing"),
        ("1,5,2a,512,1,1", "expected five fields"),
        ("1,18446744074,2a,512,1", "expected whole seconds"),
    ] {
        expect_complaint("1,5,2a,512,1\n", line, wanted);
    }
}

#[test]
fn vscsi_of_both_versions() {
    for name in ["vm1.vscsi", "vm2.vscsi"] {
        let (passed_over, all) = open(name, Format::Vscsi);
        assert_eq!(passed_over, 1);
        assert_eq!(
            all,
            [
                record(0, 0, Op::Write, 42_932_745 * 512, 512),
                record(98_000, 0, Op::Read, 40_409_911 * 512, 6656),
                record(298_000, 0, Op::Flush, 0, 0),
                record(298_000, 0, Op::Write, 4096, 4096),
            ]
        );
    }
}

#[test]
fn every_operation_code_is_one_of_five_things() {
    let code_at = 12;
    let seed = std::fs::read(fixture("vm1.vscsi")).unwrap();
    let (good, mut odd) = (&seed[..32], seed[..32].to_vec());
    let mut counts = [0; 5];
    for code in 0..=u8::MAX {
        odd[code_at] = code;
        let all = read_bytes(&[good, &odd, good].concat(), &strict()).unwrap();
        let kind = match all.as_slice() {
            [_, record, _] => record.op as usize,
            _ => 4,
        };
        counts[kind] += 1;
    }
    assert_eq!(counts, [4, 4, 1, 2, 245]);
}

#[test]
fn damaged_vscsi_records_are_named() {
    let seed = std::fs::read(fixture("vm1.vscsi")).unwrap();
    let complaint_of = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = seed.clone();
        change(&mut bytes);
        let message = complaint(&bytes);
        let lenient = read_bytes(&bytes, &lenient()).unwrap();
        assert!(lenient.len() >= 3, "{message}");
        message
    };
    let found = complaint_of(&|bytes| bytes.truncate(150));
    assert!(
        found.contains("record 5: the last record is 22 bytes long, expected 32 bytes"),
        "{found}"
    );
    let found = complaint_of(&|bytes| bytes[47] = 2);
    assert!(
        found.contains("record 2: version is 2, expected 1, as in the first records"),
        "{found}"
    );
    let found = complaint_of(&|bytes| bytes[36..40].copy_from_slice(&513u32.to_le_bytes()));
    assert!(found.contains("record 2: size is 513"), "{found}");
    let found = complaint_of(&|bytes| bytes[63] = 0xff);
    assert!(
        found.contains("record 2: time is ") && found.contains("expected microseconds"),
        "{found}"
    );
    // A file may be larger than any buffer, in pieces of any size.
    let many = seed.repeat(20_000);
    assert_eq!(read_bytes(&many, &strict()).unwrap().len(), 80_000);
}
