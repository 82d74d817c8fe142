//! Flash pages that hold several mapping units: who is told of a program, and how long a collection
//! of such pages keeps a die busy.

use flashlore_content::{DedupOptions, NoCensus, PageTag};
use flashlore_flash::sim::{Concurrency, NandSim, Timing};
use flashlore_flash::{Cause, Completion, Finished, Geometry, Lpn, Ready, Tag, Time, When};
use flashlore_ftl::{ContentFtl, FtlOptions, PlainFtl};

const READ: u64 = 25;
const PROGRAM: u64 = 200;
const ERASE: u64 = 1500;
const TRANSFER: u64 = 40;
const UNITS: u64 = 4;

fn flash(blocks: u32, units: u32, shared_channel: bool) -> NandSim {
    let geometry = Geometry::single_plane(blocks, 8, units * 4096).unwrap();
    let timing = Timing {
        read: READ,
        program: vec![PROGRAM],
        erase: ERASE,
        transfer: TRANSFER,
        shared_channel,
        concurrency: Concurrency::Die,
        erase_suspend: false,
    };
    NandSim::new(geometry, timing)
}

fn device(blocks: u32, copyback: bool, exported: u32) -> PlainFtl<NandSim> {
    let mut options = FtlOptions::new(exported);
    options.collect.copyback = copyback;
    PlainFtl::new(flash(blocks, 4, false), options).unwrap()
}

/// Lets everything end; answers who was told of an end, when, by tag.
fn told(ftl: &mut PlainFtl<NandSim>) -> Vec<(u32, u64, u64)> {
    ftl.advance(Time::MAX / 2).unwrap();
    let told = ftl.core_mut().finished().drain(..);
    let mut told: Vec<_> = told.map(|f| (f.tag.0, f.start, f.end)).collect();
    told.sort_unstable();
    told
}

#[test]
fn everybody_who_waits_for_a_page_is_told_when_it_is_programmed() {
    let mut ftl = device(8, false, 64);
    ftl.advance(10).unwrap();
    for lpn in 0..3 {
        let done = ftl.write(When::now(10), Lpn(lpn), (), Tag(lpn)).unwrap();
        assert!(matches!(done, Completion::Later(_)), "the page is not full");
    }
    let done = ftl.write(When::now(10), Lpn(3), (), Tag(3)).unwrap();
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
    ftl.write(When::now(0), Lpn(0), (), Tag(7)).unwrap();
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
        ftl.write(When::now(0), Lpn(lpn), (), Tag::NONE).unwrap();
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

#[test]
fn a_request_that_fills_a_page_alone_is_told_of_every_unit() {
    for shared in [false, true] {
        let mut ftl = PlainFtl::new(flash(8, 4, shared), FtlOptions::new(64)).unwrap();
        let mut ends = 0;
        for lpn in 0..4 {
            let done = ftl.write(When::now(0), Lpn(lpn), (), Tag(9)).unwrap();
            ends += u32::from(matches!(done, Completion::At { .. }));
        }
        let told = told(&mut ftl);
        assert_eq!(ends as usize + told.len(), 4, "{told:?}");
        assert!(told.iter().all(|&(tag, ..)| tag == 9));
    }
}

#[test]
fn a_page_is_programmed_when_the_last_of_its_units_is_at_hand() {
    // The unit that comes late is the first, one between, or the last.
    for late in 0..4 {
        let mut ftl = device(8, false, 64);
        ftl.advance(10).unwrap();
        for lpn in 0..4 {
            let ready = Ready::At(if lpn == late { 500 } else { 10 });
            let when = When { ready, at: 10 };
            let done = ftl.write(when, Lpn(lpn), (), Tag(lpn)).unwrap();
            assert!(matches!(done, Completion::Later(_)));
        }
        let end = 500 + UNITS * TRANSFER + PROGRAM;
        let all: Vec<_> = (0..4).map(|tag| (tag, 500, end)).collect();
        assert_eq!(told(&mut ftl), all, "unit {late} is late");
    }
}

/// On a shared channel the end of a read is known late. A page that waits for it may fill before it
/// is known, while the transfer runs, or long after, when its place is taken by another operation.
#[test]
fn a_page_may_wait_for_an_operation_that_has_ended() {
    let read_end = READ + TRANSFER;
    for (fills, others) in [(0, 0), (READ + 5, 0), (1000, 0), (1000, 1)] {
        let mut ftl = PlainFtl::new(flash(8, 4, true), FtlOptions::new(64)).unwrap();
        for lpn in 0..4 {
            ftl.write(When::now(0), Lpn(lpn), (), Tag::NONE).unwrap();
        }
        told(&mut ftl);
        ftl.core_mut().flash_mut().restart();
        let (_, old) = ftl.read(0, Lpn(0), Cause::Modify, Tag::NONE).unwrap();
        assert!(matches!(old, Completion::Later(_)));
        let ready = Ready::from(old);
        ftl.write(When { ready, at: 0 }, Lpn(4), (), Tag(0))
            .unwrap();
        ftl.advance(fills).unwrap();
        for _ in 0..others {
            ftl.read(fills, Lpn(1), Cause::Host, Tag::NONE).unwrap();
        }
        let mut known = Vec::new();
        for lpn in 5..8 {
            let done = ftl.write(When::now(fills), Lpn(lpn), (), Tag(0)).unwrap();
            if let Completion::At { start, end } = done {
                known.push((0, start, end));
            }
        }
        let busy_until = fills + others * read_end;
        let start = busy_until.max(read_end);
        let mut told = told(&mut ftl);
        told.extend(known);
        assert_eq!(told.len(), 4, "filled at {fills}: {told:?}");
        let end = start + UNITS * TRANSFER + PROGRAM;
        assert!(
            told.iter().all(|&t| t == (0, start, end)),
            "{fills}: {told:?}"
        );
    }
}

#[test]
fn the_write_that_fills_a_block_is_done_with_the_summary() {
    for (units, shared) in [(1, false), (1, true), (4, false), (4, true)] {
        let mut options = FtlOptions::new(16);
        options.summary_page = true;
        let mut ftl = PlainFtl::new(flash(16, units, shared), options).unwrap();
        let last = 7 * units - 1;
        let mut ends = vec![0; 7 * units as usize];
        for number in 0..=last {
            if number == last {
                // Everything before is over.
                ftl.advance(1_000_000).unwrap();
            }
            let at = if number == last { 1_000_000 } else { 0 };
            let done = ftl
                .write(When::now(at), Lpn(number % 16), (), Tag(number))
                .unwrap();
            if let Completion::At { end, .. } = done {
                ends[number as usize] = end;
            }
        }
        for (tag, _, end) in told(&mut ftl) {
            assert_eq!(ends[tag as usize], 0, "{tag} is told twice");
            ends[tag as usize] = end;
        }
        let data = 1_000_000 + u64::from(units) * TRANSFER + PROGRAM;
        assert_eq!(ends[last as usize], data + PROGRAM);
        // Who waits for the same page is done with the page.
        let others = &ends[(last + 1 - units) as usize..last as usize];
        assert!(others.iter().all(|&end| end == data), "{others:?}");
    }
}

#[test]
fn a_candidate_that_waits_in_a_page_buffer_is_compared_there() {
    let dedup = DedupOptions {
        index_entries: None,
        fingerprint_bits: 128,
        verify: true,
        bypass: None,
        out_of_line: false,
    };
    let flash = flash(8, 4, false);
    let mut ftl = ContentFtl::new(flash, FtlOptions::new(64), dedup, NoCensus).unwrap();
    let (now, value) = (When::now(0), PageTag(5));
    ftl.write(now, Lpn(0), value, Tag::NONE).unwrap();
    assert_eq!(
        ftl.fetch_candidate(0, value, None, Tag::NONE).unwrap(),
        None
    );
    assert_eq!(ftl.core().counters().page_reads(), 0);
    ftl.core_mut().flush(0).unwrap();
    assert!(
        ftl.fetch_candidate(0, value, None, Tag::NONE)
            .unwrap()
            .is_some()
    );
    assert_eq!(ftl.core().counters().page_reads_verify, 1);
}
