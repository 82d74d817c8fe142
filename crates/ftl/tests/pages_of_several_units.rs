//! Flash pages that hold several mapping units: who is told of a program, and how long a collection
//! of such pages keeps a die busy.

use flashlore_flash::sim::{Concurrency, NandSim, Timing};
use flashlore_flash::{Completion, Finished, Geometry, Tag, When};
use flashlore_ftl::{FtlOptions, PlainFtl};

const READ: u64 = 25;
const PROGRAM: u64 = 200;
const ERASE: u64 = 1500;
const TRANSFER: u64 = 40;
const UNITS: u64 = 4;

fn device(blocks: u32, copyback: bool, exported: u32) -> PlainFtl<NandSim> {
    let geometry = Geometry::single_plane(blocks, 8, 4 * 4096).unwrap();
    let timing = Timing {
        read: READ,
        program: vec![PROGRAM],
        erase: ERASE,
        transfer: TRANSFER,
        shared_channel: false,
        concurrency: Concurrency::Die,
        erase_suspend: false,
    };
    let mut options = FtlOptions::new(exported);
    options.collect.copyback = copyback;
    PlainFtl::new(NandSim::new(geometry, timing), options).unwrap()
}

#[test]
fn everybody_who_waits_for_a_page_is_told_when_it_is_programmed() {
    let mut ftl = device(8, false, 64);
    ftl.advance(10).unwrap();
    for lpn in 0..3 {
        let done = ftl.write(When::now(10), lpn, (), Tag(lpn)).unwrap();
        assert!(matches!(done, Completion::Later(_)), "the page is not full");
    }
    let done = ftl.write(When::now(10), 3, (), Tag(3)).unwrap();
    let end = 10 + UNITS * TRANSFER + PROGRAM;
    assert_eq!(done, Completion::At { start: 10, end });
    let mut told: Vec<(u32, u64)> = ftl
        .core_mut()
        .finished()
        .drain(..)
        .map(|f| (f.tag.0, f.end))
        .collect();
    told.sort_unstable();
    assert_eq!(told, [(0, end), (1, end), (2, end)]);
}

#[test]
fn a_flushed_page_is_padded_and_its_waiters_are_told() {
    let mut ftl = device(8, false, 64);
    ftl.write(When::now(0), 0, (), Tag(7)).unwrap();
    assert!(ftl.core().has_partial());
    ftl.advance(5).unwrap();
    ftl.core_mut().flush(5).unwrap();
    assert!(!ftl.core().has_partial());
    assert_eq!(ftl.core().counters().programs_padding, UNITS - 1);
    // The page is programmed when it is padded, not when its unit came.
    let told = Finished {
        tag: Tag(7),
        start: 5,
        end: 5 + UNITS * TRANSFER + PROGRAM,
    };
    assert_eq!(*ftl.core_mut().finished(), [told]);
}

/// Writes with a skew until many victims are collected; answers the device.
fn overwritten(copyback: bool) -> PlainFtl<NandSim> {
    let mut ftl = device(24, copyback, 400);
    let mut x = 1u32;
    for _ in 0..20_000 {
        x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let lpn = (x >> 8) % if x.is_multiple_of(3) { 400 } else { 100 };
        ftl.write(When::now(0), lpn, (), Tag::NONE).unwrap();
    }
    ftl.check().unwrap();
    ftl
}

#[test]
fn a_collected_page_brings_out_its_valid_units_and_no_others() {
    let ftl = overwritten(false);
    let c = ftl.core().counters();
    assert!(c.victims > 100, "{} victims", c.victims);
    let expected = c.page_reads_gc * READ
        + c.programs_gc * TRANSFER
        + c.page_programs * (PROGRAM + UNITS * TRANSFER)
        + c.erases * ERASE;
    assert_eq!(ftl.core().flash().busy().servers, [expected]);
}

#[test]
fn with_copyback_nothing_that_is_collected_crosses_the_channel() {
    let ftl = overwritten(true);
    let c = ftl.core().counters();
    // Only collections pad here, and the host's last page may wait for more units.
    let collected = (c.programs_gc + c.programs_padding) / UNITS;
    let expected = (c.page_reads_gc) * READ
        + c.page_programs * PROGRAM
        + (c.page_programs - collected) * UNITS * TRANSFER
        + c.erases * ERASE;
    assert_eq!(ftl.core().flash().busy().servers, [expected]);
}
