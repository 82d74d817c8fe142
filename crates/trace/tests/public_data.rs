//! Captures and fragments of published traces, where they are at hand.

mod common;

use common::*;
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
            return;
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

#[test]
fn formats_outside_the_list_are_refused() {
    for name in [
        "public/cloudphysics.csv.xz",
        "public/cloudphysics.vscsi.xz",
        "public/ycsb-f2fs.blkparse.txt.xz",
    ] {
        let Some(path) = data(name) else { return };
        let error = Info::open(path, &strict()).unwrap_err().to_string();
        assert!(error.contains("no known trace format"), "{error}");
    }
}
