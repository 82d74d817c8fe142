//! Formats that look alike are told apart by what parses.

use crate::common;

use common::*;
use flashlore_trace::formats::detect;
use flashlore_trace::{Format, TraceReader};

#[test]
fn every_fixture_is_recognised() {
    for (name, format) in [
        ("pages.fiu", "fiu"),
        ("sectors.fiu", "fiu"),
        ("hm.msr", "msr"),
        ("financial.spc", "spc"),
        ("cloud.alibaba", "alibaba"),
        ("cbs.tencent", "tencent"),
        ("vdi.systor", "systor"),
        ("vm.cloudphysics", "cloudphysics"),
        ("iozone.disksim", "disksim"),
        ("web.ssdsim", "ssdsim"),
        ("sda.blkparse", "blkparse:Q"),
        ("pauses.fio", "fio"),
        ("times.fio", "fio"),
        ("vm1.vscsi", "vscsi"),
        ("vm2.vscsi", "vscsi"),
    ] {
        let reader = TraceReader::open(fixture(name), &strict()).unwrap();
        assert_eq!(reader.format().name(), format, "{name}");
    }
}

/// Five numbers between commas, one of them possibly a letter: SPC, Alibaba, Tencent, CloudPhysics.
#[test]
fn five_fields_between_commas() {
    for (line, format) in [
        ("0,8,4096,r,0.5", Some(Format::Spc)),
        ("0,8,4096,R,5", Some(Format::Spc)),
        ("0,R,4096,512,5", Some(Format::Alibaba)),
        ("0,W,4096,512,5", Some(Format::Alibaba)),
        // The operation in either place: SPC would need a number where Alibaba has it.
        ("0,R,4096,R,5", None),
        ("1538323200,8,8,0,5", Some(Format::Tencent)),
        ("1538323200,8,8,1,5", Some(Format::Tencent)),
        // Within two seconds after 1970, and a size that SCSI does not have.
        ("1,8,8,1,5", Some(Format::Tencent)),
        ("2,8,28,1,5", Some(Format::Tencent)),
        // CloudPhysics would take it for a command that moves no byte: a record counts for more.
        ("1,8,28,0,5", Some(Format::Tencent)),
        ("1,8,28,512,5", Some(Format::Cloudphysics)),
        ("1,8,12,36,5", Some(Format::Cloudphysics)),
        ("1,8,2a,512,5", Some(Format::Cloudphysics)),
        ("1538323200,8,8,512,5", None),
    ] {
        assert_eq!(detect(line.as_bytes(), true), format, "{line}");
    }
}

#[test]
fn a_damaged_record_and_many_that_are_passed_over_hide_nothing() {
    let systor = "Timestamp,Response,IOType,LUN,Offset,Size\n".to_owned()
        + &"1.5,0.1,,6,0,0\n".repeat(70)
        + "1.5,0.1,R,6,0,512\n";
    assert_eq!(detect(systor.as_bytes(), true), Some(Format::Systor));
    let messages = "8,0 0 0 0.5 0 m N cfq\n".repeat(70) + "8,0 0 1 0.6 7 D R 8 + 8 [x]\n";
    let reader = TraceReader::from_bytes("x", messages.into_bytes(), &strict()).unwrap();
    assert_eq!(reader.format().name(), "blkparse:D");
    let cut = "glued,W,0,4096,5\n0,W,0,4096,5\n0,W,0,4096,6\n";
    assert_eq!(detect(cut.as_bytes(), true), Some(Format::Alibaba));
    let mut vscsi = std::fs::read(fixture("vm2.vscsi")).unwrap();
    vscsi[43] = 0;
    assert_eq!(detect(&vscsi, true), Some(Format::Vscsi));
    // Half of a record only.
    assert_eq!(detect(&vscsi[..20], true), None);
    assert_eq!(detect(&[0; 4096], true), None);
    assert_eq!(detect(b"fio version 2 iolog\n", true), Some(Format::Fio));
}

#[test]
fn what_is_wrong_with_the_first_record_of_a_new_format_is_said() {
    for (line, wanted) in [
        ("419,W,0,0,5", "size is 0"),
        ("1538323200,8,0,1,1", "size is 0"),
        ("1.5,0.1,R,6,0,0", "size is 0"),
        ("1,5,2a,513,1", "a multiple of 512"),
        ("8,0 0 1 0.5 7 Q R 8 + 99999999 [x]", "at most 2^30 bytes"),
        ("fio version 9 iolog", "expected 'fio version 2 iolog'"),
    ] {
        let found = complaint(line.as_bytes());
        assert!(found.starts_with("bytes, line 1: "), "{found}");
        assert!(found.contains(wanted), "{found}\n  lacks {wanted}");
    }
}
