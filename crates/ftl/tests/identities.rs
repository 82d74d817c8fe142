//! The steady-state identities of `spec/timing.md` section 6, for both systems: with c the mean
//! number of valid pages copied per erase and B the pages of a block,
//!
//! * erases x B = all programs + the change in free pages;
//! * collection programs = (host programs + that change) x c / (B - c).
//!
//! The figures CA-SSD published for its web trace satisfy them.

use crate::common;

use common::{Medium, Random, exported};
use flashlore_content::{DedupOptions, PageTag, ValueLedger};
use flashlore_flash::record::Op;
use flashlore_flash::{Flash, Geometry, Lpn, Tag, When};
use flashlore_ftl::{ContentFtl, Counters, FtlOptions, PlainFtl, VictimChoice};

const PAGES_PER_BLOCK: u32 = 32;

fn medium() -> Medium<PageTag> {
    let geometry = Geometry::single_plane(256, PAGES_PER_BLOCK, 4096).unwrap();
    common::medium(&geometry)
}

/// Pages that may be programmed before anything is erased, followed on the medium.
struct FreePages(i64);

impl FreePages {
    fn follow(&mut self, ops: &[Op]) {
        for op in ops {
            match op {
                Op::Program { .. } => self.0 -= 1,
                // Only full blocks are erased.
                Op::Erase { .. } => self.0 += i64::from(PAGES_PER_BLOCK),
                Op::Read { .. } | Op::Summary { .. } => {}
            }
        }
    }
}

/// Holds the counters of the measured part of a run against the change in free pages seen meanwhile.
fn assert_identities(what: &str, c: &Counters, change: i64) {
    let b = i64::from(PAGES_PER_BLOCK);
    assert!(c.victims > 1000, "{what}: {} victims", c.victims);
    assert_eq!(c.erases, c.victims, "{what}");
    assert_eq!(c.erases as i64 * b, c.programs() as i64 + change, "{what}");
    let moved: u64 = (0..)
        .zip(&c.valid_per_victim)
        .map(|(n, victims)| n * victims)
        .sum();
    assert_eq!(moved, c.programs_gc, "{what}");
    let copied = moved as f64 / c.victims as f64;
    let factor = copied / (f64::from(PAGES_PER_BLOCK) - copied);
    let exact = (c.programs_host as f64 + change as f64) * factor;
    assert!((exact / c.programs_gc as f64 - 1.0).abs() < 1e-9, "{what}");
    // In the steady state free space hardly changes.
    let steady = c.programs_host as f64 * factor;
    assert!((steady / c.programs_gc as f64 - 1.0).abs() < 0.01, "{what}");
    let amplification = c.programs() as f64 / c.programs_host as f64;
    let by_copies = f64::from(PAGES_PER_BLOCK) / (f64::from(PAGES_PER_BLOCK) - copied);
    assert!((amplification / by_copies - 1.0).abs() < 0.01, "{what}");
}

fn policies() -> [VictimChoice; 3] {
    [
        VictimChoice::Greedy,
        VictimChoice::CostBenefit,
        VictimChoice::DChoices(5),
    ]
}

#[test]
fn the_plain_device_satisfies_the_identities() {
    for victims in policies() {
        let flash = medium();
        let pages = exported(flash.geometry(), 0.2);
        let mut options = FtlOptions::new(pages);
        options.collect.victims = victims;
        let mut ftl = PlainFtl::new(flash, options).unwrap();
        let mut random = Random::new(8);
        let mut free = FreePages(0);
        for number in 0..12 * pages {
            if number == 4 * pages {
                ftl.core_mut().restart_counters();
                free = FreePages(0);
            }
            let lpn = if number < pages {
                number
            } else {
                random.below(pages)
            };
            ftl.write(When::now(0), Lpn(lpn), PageTag(0), Tag::NONE)
                .unwrap();
            free.follow(&ftl.core_mut().flash_mut().take());
        }
        assert_identities(
            &format!("plain, {victims:?}"),
            ftl.core().counters(),
            free.0,
        );
    }
}

#[test]
fn the_deduplicating_device_satisfies_the_identities() {
    for (victims, entries) in policies().into_iter().zip([None, Some(500), None]) {
        let flash = medium();
        let pages = exported(flash.geometry(), 0.2);
        let mut options = FtlOptions::new(pages);
        options.collect.victims = victims;
        let dedup = DedupOptions {
            index_entries: entries,
            fingerprint_bits: 128,
            verify: false,
            bypass: None,
            out_of_line: false,
        };
        let ledger = ValueLedger::default();
        let mut ftl = ContentFtl::new(flash, options, dedup, ledger).unwrap();
        let mut random = Random::new(9);
        let mut free = FreePages(0);
        for number in 0..20 * pages {
            if number == 8 * pages {
                ftl.restart_counters();
                free = FreePages(0);
            }
            let value = PageTag(random.below(4 * pages));
            ftl.write(When::now(0), Lpn(random.below(pages)), value, Tag::NONE)
                .unwrap();
            free.follow(&ftl.core_mut().flash_mut().take());
        }
        assert!(ftl.dedup_counters().hits > 1000);
        let what = format!("dedup, {victims:?}, {entries:?}");
        assert_identities(&what, ftl.core().counters(), free.0);
    }
}

/// What one system's host programs and mean copies per erase make of the rest.
struct Steady {
    total: f64,
    gc: f64,
    erases: f64,
}

fn steady(host: f64, copied: f64) -> Steady {
    let gc = host * copied / (64.0 - copied);
    Steady {
        total: host + gc,
        gc,
        erases: host / (64.0 - copied),
    }
}

#[test]
fn the_published_figures_of_web_satisfy_the_identities() {
    let near = |found: f64, expected: f64, digits: f64| {
        assert!(
            (found - expected).abs() <= digits,
            "{found} against {expected}"
        );
    };
    let baseline = steady(2.926e6, 33.20);
    let ca_ssd = steady(1.239e6, 8.21);
    near(baseline.total / 2.926e6, 2.078, 5e-4);
    near(ca_ssd.total / 1.239e6, 1.147, 5e-4);
    near(baseline.total, 6.081e6, 1e3);
    near(ca_ssd.total, 1.422e6, 1e3);
    near(baseline.gc, 3.154e6, 1e3);
    near(ca_ssd.gc, 0.182e6, 1e3);
    near(baseline.erases, 95.0e3, 50.0);
    near(ca_ssd.erases, 22.2e3, 50.0);
    // Published: 77, 94 and 77 % less.
    near(1.0 - ca_ssd.total / baseline.total, 0.766, 5e-4);
    near(1.0 - ca_ssd.gc / baseline.gc, 0.942, 5e-4);
    near(1.0 - ca_ssd.erases / baseline.erases, 0.766, 5e-4);
    near(1.0 - 8.21 / 33.20, 0.7527, 5e-5);
}
