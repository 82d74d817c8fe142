//! After any crash a volume holds its state at one instant, not before the last flush.
//!
//! The short search runs with every test run. The long one is for a release build:
//! `FLASHLORE_CRASH_STATES=100000 cargo test --release -p flashlore-volume --test crash_search --
//! --ignored --nocapture`. It goes through `FLASHLORE_CRASH_HISTORIES` histories at least, 100 if not given.
//! `FLASHLORE_CRASH_SEED` is the first seed, 1 if not given, and `FLASHLORE_CRASH_SHRINK` for how many seconds a failure
//! is made smaller, 60 if not given.

mod crash;
mod support;

use std::time::Duration;

use crash::{Campaign, Effort, Report};

fn number(variable: &str, default: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{variable} is {text:?}, expected a number")),
        Err(_) => default,
    }
}

fn shrinking() -> Duration {
    Duration::from_secs(number("FLASHLORE_CRASH_SHRINK", 60))
}

/// The search went where recovery is difficult.
fn assert_covers(report: &Report) {
    println!("{report}");
    let histories = report.histories;
    assert!(
        report.collecting * 2 > histories,
        "few collections: {report}"
    );
    assert!(
        report.checkpointing * 2 > histories,
        "few checkpoints: {report}"
    );
    assert!(
        report.evicting * 10 > report.deduplicating,
        "few evictions: {report}"
    );
    assert!(report.crowded * 2 > histories, "few pages leave: {report}");
    assert!(report.total.work.shares > histories, "few shares: {report}");
    assert!(report.total.work.refusals > 0, "never full: {report}");
    let work = &report.total.work;
    assert!(
        report.returning * 5 > report.versioned,
        "few returns: {report}"
    );
    assert!(work.snapshots > 0 && work.purges > 0, "{report}");
    assert!(work.deltas > histories, "few deltas: {report}");
    assert!(work.similar * 10 > histories, "few bases found: {report}");
    assert!(work.compressed > histories, "little compressed: {report}");
    assert!(work.merged > 0 && work.repacked > 0, "{report}");
    assert!(work.steps > 0, "collection never stepped: {report}");
    let damaged = &report.total.damaged;
    let least = histories / 2;
    assert!(damaged.refused > least, "few refusals of damage: {report}");
    assert!(damaged.with_errors > least, "little damage hit: {report}");
    assert!(damaged.unharmed > least, "all damage hit: {report}");
    assert!(damaged.went_on > least, "few were used on: {report}");
    assert!(report.total.failed_reads > least, "few failed: {report}");
}

#[test]
fn a_short_search_finds_no_broken_promise() {
    let campaign = Campaign {
        first_seed: number("FLASHLORE_CRASH_SEED", 1),
        histories: 50,
        states: 2_500,
        effort: Effort {
            cuts: 15,
            images: 2,
            failed_syncs: 2,
            recovery_cuts: 3,
            recut: 30,
            go_on: 30,
            damage: 12,
            failed_reads: 3,
        },
        shrinking: shrinking(),
        most_failures: 1,
    };
    assert_covers(&campaign.run());
}

#[test]
#[ignore = "takes minutes: for release builds"]
fn a_long_search_finds_no_broken_promise() {
    let campaign = Campaign {
        first_seed: number("FLASHLORE_CRASH_SEED", 1),
        histories: number("FLASHLORE_CRASH_HISTORIES", 100),
        states: number("FLASHLORE_CRASH_STATES", 100_000) as usize,
        effort: Effort {
            cuts: usize::MAX,
            images: 1,
            failed_syncs: 5,
            recovery_cuts: usize::MAX,
            recut: 10,
            go_on: 30,
            damage: 40,
            failed_reads: 5,
        },
        shrinking: shrinking(),
        most_failures: 10,
    };
    assert_covers(&campaign.run());
}
