//! Saturated write throughput against the measured write amplification: what a die spends on host
//! programs, copies and erases is all the time there is.

use crate::common;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use common::{Random, exported, single_plane, slc};
use flashlore_flash::geometry::Counts;
use flashlore_flash::sim::NandSim;
use flashlore_flash::{Completion, Flash, Geometry, Lpn, Tag, Time, When};
use flashlore_ftl::{FtlOptions, PlainFtl};
use flashlore_oracle::des::{WriteCosts, saturated_pages_per_second};

const PAGES_PER_BLOCK: u32 = 64;

/// A full device in the steady state, at rest at time 0.
fn aged(flash: NandSim, spare: f64, copyback: bool, random: &mut Random) -> PlainFtl<NandSim> {
    let pages = exported(flash.geometry(), spare);
    let mut options = FtlOptions::new(pages);
    options.collect.copyback = copyback;
    let mut ftl = PlainFtl::new(flash, options).unwrap();
    for lpn in 0..pages {
        ftl.write(When::now(0), Lpn(lpn), (), Tag::NONE).unwrap();
    }
    for _ in 0..4 * pages {
        ftl.write(When::now(0), Lpn(random.below(pages)), (), Tag::NONE)
            .unwrap();
    }
    ftl.core_mut().flash_mut().restart();
    ftl.core_mut().restart_counters();
    ftl
}

/// Host pages a second with so many writes in flight, and the write amplification meanwhile.
fn saturate(ftl: &mut PlainFtl<NandSim>, depth: usize, random: &mut Random) -> (f64, f64) {
    let pages = ftl.core().options().exported;
    let writes = u64::from(6 * pages);
    let mut in_flight: BinaryHeap<Reverse<Time>> = (0..depth).map(|_| Reverse(0)).collect();
    let mut last = 0;
    for _ in 0..writes {
        // The next write comes when the first of those in flight is done.
        let Some(Reverse(now)) = in_flight.pop() else {
            panic!("a depth of 0");
        };
        ftl.advance(now).unwrap();
        let done = ftl
            .write(When::now(now), Lpn(random.below(pages)), (), Tag::NONE)
            .unwrap();
        let Completion::At { end, .. } = done else {
            panic!("a private channel decides at once");
        };
        in_flight.push(Reverse(end));
        last = last.max(end);
    }
    let counters = ftl.core().counters();
    let amplification = counters.programs() as f64 / counters.programs_host as f64;
    (writes as f64 * 1e9 / last as f64, amplification)
}

fn costs(copy_ns: Time) -> WriteCosts {
    WriteCosts {
        program_ns: 302_400.0,
        copy_ns: copy_ns as f64,
        erase_ns: 1_500_000.0,
        pages_per_block: f64::from(PAGES_PER_BLOCK),
    }
}

fn assert_throughput(what: &str, measured: f64, expected: f64) {
    assert!(
        (measured / expected - 1.0).abs() < 0.02,
        "{what}: {measured:.1} pages a second, the amplification gives {expected:.1}"
    );
}

#[test]
fn a_saturated_die_writes_as_fast_as_its_amplification_allows() {
    for copyback in [false, true] {
        for spare in [0.07, 0.15, 0.28, 0.50] {
            let mut random = Random::new(5);
            let flash = single_plane(256, PAGES_PER_BLOCK, slc());
            let mut ftl = aged(flash, spare, copyback, &mut random);
            let (rate, amplification) = saturate(&mut ftl, 1, &mut random);
            let copy = if copyback { 225_000 } else { 127_400 + 302_400 };
            let expected = saturated_pages_per_second(&costs(copy), amplification);
            assert!(amplification > 1.5, "the device is collected at all");
            assert_throughput(
                &format!("copyback {copyback}, spare {spare}"),
                rate,
                expected,
            );
        }
    }
}

/// Many dies reach the sum of their rates when enough is in flight to keep all of them busy.
#[test]
fn four_saturated_dies_write_four_times_as_fast() {
    let mut random = Random::new(6);
    let geometry = Geometry::new(Counts {
        channels: 4,
        packages_per_channel: 1,
        dies_per_package: 1,
        planes_per_die: 1,
        blocks_per_plane: 128,
        pages_per_block: PAGES_PER_BLOCK,
        page_bytes: 4096,
    })
    .unwrap();
    let mut ftl = aged(NandSim::new(geometry, slc()), 0.28, false, &mut random);
    let (rate, amplification) = saturate(&mut ftl, 4096, &mut random);
    let die = saturated_pages_per_second(&costs(429_800), amplification);
    assert_throughput("four dies", rate, 4.0 * die);
}
