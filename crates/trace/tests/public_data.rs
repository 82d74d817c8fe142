//! Captures and fragments of published traces, where they are at hand.

use crate::common;

use common::*;
use flashlore_testkit::data;
use flashlore_trace::{Format, Info, RequestSource, Workload};

fn info(name: &str) -> Option<Info> {
    let info = Info::open(data(name)?, &strict()).unwrap();
    println!("{info}");
    Some(info)
}

fn expect(name: &str, format: Format, reads: u64, writes: u64) {
    let Some(info) = info(name) else { return };
    assert_eq!(info.input.format, format);
    assert_eq!(info.counts.reads.requests, reads, "reads of {name}");
    assert_eq!(info.counts.writes.requests, writes, "writes of {name}");
    assert_eq!(info.input.read.records, reads + writes);
    assert_eq!(info.input.read.skipped, 0);
}

#[test]
fn captures() {
    expect("captures/sqlite-tpcb.fiu.xz", Format::Fiu, 0, 61_716);
    expect("captures/maildir.fiu.xz", Format::Fiu, 0, 68_297);
    expect("captures/django-upgrade.fiu.xz", Format::Fiu, 0, 123_478);
    expect("captures/sqlite-bytes.fiu.xz", Format::Fiu, 1_042, 27_835);
    expect("captures/upgrade-bytes.fiu.xz", Format::Fiu, 16_163, 76_934);
}

#[test]
fn value_ids_count_the_pages_of_the_content_files() {
    for (name, pages) in [("sqlite-bytes", 21_491), ("upgrade-bytes", 25_414)] {
        let Some(path) = data(&format!("captures/{name}.fiu.xz")) else {
            continue;
        };
        let workload = Workload::open(&[path], &from_trace()).unwrap();
        assert_eq!(workload.summary().value_ids, pages);
        assert_eq!(workload.summary().content.distinct_values, u64::from(pages));
    }
}

#[test]
fn financial1() {
    expect(
        "public/financial1-first10k.ssdsim.ascii",
        Format::Ssdsim,
        4_077,
        5_923,
    );
}

#[test]
fn websearch() {
    let Some(info) = info("public/websearch-small.mqsim.trace") else {
        return;
    };
    assert_eq!(
        (info.input.format, info.input.read.records),
        (Format::Ssdsim, 24_783)
    );
}

#[test]
fn iozone() {
    expect(
        "public/iozone-100k.disksim.trace.xz",
        Format::Disksim,
        0,
        100_000,
    );
}

#[test]
fn fiu_mail() {
    let Some(info) = info("public/fiu-mail-sample.blkparse") else {
        return;
    };
    assert_eq!(
        (info.input.format, info.input.read.records),
        (Format::Fiu, 9_998)
    );
}

/// Counted from the text by another program: 5,727 events of each action, 4,722 of them reads.
#[test]
fn ycsb() {
    let Some(info) = info("public/ycsb-f2fs.blkparse.txt.xz") else {
        return;
    };
    assert_eq!(info.input.format.name(), "blkparse:D");
    let counts = &info.counts;
    assert_eq!(
        (counts.reads.requests, counts.writes.requests),
        (4_722, 1_005)
    );
    assert_eq!(
        (counts.reads.bytes, counts.writes.bytes),
        (524_572 << 10, 429_540 << 10)
    );
    assert_eq!(
        (info.input.read.passed_over, info.input.read.skipped),
        (2 * 5_727, 0)
    );
    assert_eq!(info.devices, ["8,16"]);
}

/// Both forms of one trace; counted from the bytes by another program.
#[test]
fn cloudphysics() {
    let mut both = Vec::new();
    for (name, format) in [
        ("public/cloudphysics.csv.xz", Format::Cloudphysics),
        ("public/cloudphysics.vscsi.xz", Format::Vscsi),
    ] {
        let Some(info) = info(name) else { return };
        assert_eq!(info.input.format, format);
        assert_eq!(info.counts.reads.requests, 46_974);
        assert_eq!(info.counts.writes.requests, 66_898);
        assert_eq!(
            info.counts.reads.bytes + info.counts.writes.bytes,
            4_205_978_112
        );
        assert_eq!(
            (info.input.read.passed_over, info.input.read.clamped),
            (0, 0)
        );
        both.push((
            info.counts,
            info.footprint_units,
            info.prefill_units,
            info.span_ns,
        ));
    }
    assert_eq!(
        (both[0].0, both[0].1, both[0].2),
        (both[1].0, both[1].1, both[1].2)
    );
    assert_eq!(both[0].3, 7_200_000_000_000);
    assert_eq!(both[1].3, 7_200_089_885_000);
}
