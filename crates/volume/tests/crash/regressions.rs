//! Short histories that once broke the promise, searched at every cut.

use std::collections::BTreeSet;
use std::sync::Arc;

use flashlore_flash::Lpn;
use flashlore_medium::Style;
use flashlore_volume::format::Areas;
use flashlore_volume::{Encoding, HistoryIdentity, Policy, RecoveryBounds};

use crate::crash::history::{Op, Setup};
use crate::crash::oracle::{Oracle, Told};
use crate::crash::pages::{FAMILIES, PURGED};
use crate::crash::scenario::{Generation, Scenario};
use crate::crash::search::every_cut;
use crate::crash::session::{Session, Stop, Trouble};
use crate::support::strike::Strike;

const POLICIES: [Policy; 3] = [Policy::Plain, Policy::Dedup, Policy::DedupTrusted];

fn setup(policy: Policy, pages_per_block: u32, units_per_page: u32) -> Setup {
    Setup {
        policy,
        history: None,
        encoding: Encoding::default(),
        similar: None,
        exported: 7,
        blocks: 7,
        pages_per_block,
        units_per_page,
        alignment: 512,
        index_entries: 4,
        garbage: true,
        crowded: false,
        bounds: RecoveryBounds::default(),
    }
}

fn write(lpn: Lpn, value: u32) -> Op {
    Op::Write { lpn, value, now: 9 }
}

fn fua(lpn: Lpn, value: u32) -> Op {
    Op::Fua { lpn, value, now: 9 }
}

fn write_at(lpn: Lpn, value: u32, now: u64) -> Op {
    Op::Write { lpn, value, now }
}

fn fua_at(lpn: Lpn, value: u32, now: u64) -> Op {
    Op::Fua { lpn, value, now }
}

/// A history of so many entries.
fn history(entries: u32, least_window: u64, protected: bool) -> Option<HistoryIdentity> {
    Some(HistoryIdentity {
        entries,
        least_window,
        protected,
    })
}

const BOTH: Encoding = Encoding {
    deltas: true,
    compression: true,
};

/// An opening counted events that lay in the medium's cache alone, made the new epoch durable, and a
/// cut took the events.
#[test]
fn an_opening_after_a_killed_process_is_cut() {
    for policy in POLICIES {
        let ops = [
            fua(Lpn(5), 11),
            write(Lpn(2), 3),
            write(Lpn(3), 9),
            write(Lpn(4), 8),
            Op::Kill,
        ];
        every_cut(&setup(policy, 4, 1), &ops);
        every_cut(&setup(policy, 4, 2), &ops);
    }
}

/// The journal named pages that were overwritten before they were durable as events that happened. A
/// cut took the pages and what overwrote them, but not that batch.
#[test]
fn a_block_dies_before_its_pages_are_durable() {
    for policy in POLICIES {
        let ops = [
            write(Lpn(0), 11),
            write(Lpn(0), 1),
            write(Lpn(0), 12),
            fua(Lpn(0), 13),
        ];
        every_cut(&setup(policy, 3, 1), &ops);
    }
}

/// The same, and the cut tore the pages: the volume came back with an address that cannot be read.
#[test]
fn a_block_dies_and_its_pages_are_torn() {
    for policy in POLICIES {
        let ops = [
            fua(Lpn(0), 11),
            write(Lpn(0), 12),
            write(Lpn(0), 13),
            fua(Lpn(0), 14),
        ];
        every_cut(&setup(policy, 2, 2), &ops);
    }
}

/// Each life makes one page durable and ends without a checkpoint: more lives than a superblock has
/// room for epochs.
#[test]
fn hundreds_of_lives_without_a_checkpoint() {
    for policy in POLICIES {
        let life = |number: u32| Generation {
            style: Style::Nothing,
            ..Generation::calm(Arc::new([fua(Lpn(number % 7), 1_000 + number)]))
        };
        let scenario = Scenario {
            setup: setup(policy, 4, 2),
            generations: (0..600).map(life).collect(),
        };
        scenario.play().unwrap();
    }
}

/// A sync fails and the process ends; another opens, flushes, and then the power is cut. The second
/// one sees what the device holds, because opening a file drops what only the kernel's cache holds
/// (`FileMedium::open`): else it would rely on writes that no later sync makes durable.
#[test]
fn a_process_goes_on_after_a_failed_sync() {
    let ops = [
        write(Lpn(0), 1),
        fua(Lpn(1), 2),
        fua(Lpn(2), 3),
        Op::Checkpoint,
        fua(Lpn(3), 4),
    ];
    for policy in POLICIES {
        let setup = setup(policy, 4, 2);
        let image = setup.image().unwrap();
        for number in 3..12 {
            let oracle = Oracle::new(vec![0; setup.exported as usize]);
            let medium = setup.medium(image.clone());
            let mut first = Session::new(medium, oracle, 0, Trouble::FailedSync(number));
            match first.run(&ops) {
                Err(Stop::StoreFailed) => {}
                Err(stop) => panic!("{stop:?}"),
                Ok(()) => continue,
            }
            for held in Style::SEARCH {
                let medium = setup.medium(first.medium().survivors(1, held));
                let oracle = first.oracle.clone();
                let mut second = Session::new(medium, oracle, first.epoch, Trouble::Never);
                second.restart(&[fua(Lpn(4), 5)]).unwrap();
                for left in Style::SEARCH {
                    let medium = setup.medium(second.medium().survivors(2, left));
                    let oracle = second.oracle.clone();
                    Session::new(medium, oracle, second.epoch, Trouble::Never)
                        .open()
                        .unwrap();
                }
            }
        }
    }
}

/// Old versions of values that were written twice.
#[test]
fn values_alternate_and_are_cut() {
    let history = history(30, 5, false);
    for policy in POLICIES {
        let ops = [
            write(Lpn(0), 10),
            write(Lpn(0), 9),
            write(Lpn(3), 7),
            write(Lpn(0), 8),
            Op::Flush,
            write(Lpn(0), 1),
            write(Lpn(0), 8),
            fua(Lpn(0), 1),
        ];
        let setup = Setup {
            history,
            ..setup(policy, 4, 2)
        };
        every_cut(&setup, &ops);
    }
}

/// A snapshot protected all that was stored, and a checkpoint found no room to materialize values before it programmed
/// what waited to be packed.
#[test]
fn a_checkpoint_of_a_volume_full_of_protected_versions() {
    let setup = Setup {
        similar: None,
        policy: Policy::DedupTrusted,
        history: history(3, 5, true),
        encoding: BOTH,
        exported: 17,
        blocks: 8,
        pages_per_block: 8,
        units_per_page: 2,
        alignment: 512,
        index_entries: 2,
        garbage: false,
        crowded: false,
        bounds: RecoveryBounds::default(),
    };
    let mut ops = vec![
        write(Lpn(6), 0),
        write(Lpn(7), 6),
        write(Lpn(8), 1003),
        write(Lpn(9), 1004),
        write(Lpn(13), 1005),
        write(Lpn(14), 5),
        write(Lpn(16), 6),
        write(Lpn(3), 1028),
        write(Lpn(4), 8),
        write(Lpn(0), 4),
        write(Lpn(2), 3),
        write(Lpn(1), 1030),
        fua(Lpn(0), 1031),
        write(Lpn(4), 2),
        write(Lpn(3), 1034),
        Op::Snapshot,
        write(Lpn(3), 8),
    ];
    ops.extend([fua(Lpn(0), 11), write(Lpn(2), 4), Op::Checkpoint]);
    every_cut(&setup, &ops);
}

/// A base had been materialized, and a cut took that copy and left the delta that was encoded against it.
#[test]
fn a_base_was_a_delta_when_the_power_went() {
    let setup = Setup {
        similar: None,
        policy: Policy::DedupTrusted,
        history: history(300, 50, false),
        encoding: BOTH,
        exported: 6,
        blocks: 8,
        pages_per_block: 3,
        units_per_page: 2,
        alignment: 512,
        index_entries: 4,
        garbage: true,
        crowded: false,
        bounds: RecoveryBounds::default(),
    };
    let ops = [
        write(Lpn(4), 1004),
        write(Lpn(2), 1019),
        write(Lpn(4), 1021),
        fua(Lpn(3), 1022),
        write(Lpn(3), 1023),
        write(Lpn(4), 1024),
        fua(Lpn(1), 1026),
    ];
    every_cut(&setup, &ops);
}

/// Deltas had been materialized after the last flush, and a cut took those copies: with the packed values of that
/// flush and of the next one a volume as full as it can be held more than it may.
#[test]
fn values_of_a_full_volume_are_packed_again_when_the_power_goes() {
    let setup = Setup {
        similar: None,
        policy: Policy::Plain,
        history: None,
        encoding: Encoding {
            deltas: true,
            compression: false,
        },
        exported: 25,
        blocks: 9,
        pages_per_block: 4,
        units_per_page: 4,
        alignment: 4096,
        index_entries: 4,
        garbage: true,
        crowded: false,
        bounds: RecoveryBounds::default(),
    };
    let first = [
        1001, 1002, 22, 1, 38, 25, 24, 32, 39, 1003, 1004, 33, 1005, 1006, 32, 19, 1007, 1008, 17,
        1009, 1010, 1011, 1012, 7, 1013,
    ];
    let mut ops: Vec<Op> = (0..)
        .zip(first)
        .map(|(lpn, value)| write(Lpn(lpn), value))
        .collect();
    ops.extend([
        write(Lpn(9), 1014),
        write(Lpn(13), 1018),
        write(Lpn(21), 6),
        write(Lpn(3), 19),
        write(Lpn(4), 38),
        write(Lpn(1), 1021),
        Op::Flush,
        write(Lpn(9), 28),
        write(Lpn(10), 31),
        write(Lpn(12), 1024),
        write(Lpn(14), 34),
        Op::Flush,
    ]);
    every_cut(&setup, &ops);
}

/// On a full volume pages shared old versions, which so became present ones, without need of room: more was stored
/// than fits.
#[test]
fn a_full_volume_shares_an_old_version() {
    let setup = Setup {
        policy: Policy::Dedup,
        history: history(30, 5, false),
        exported: 40,
        ..setup(Policy::Dedup, 4, 2)
    };
    let image = setup.image().unwrap();
    let oracle = Oracle::new(vec![0; setup.exported as usize]);
    let mut session = Session::new(setup.medium(image), oracle, 0, Trouble::Never);
    session.open().unwrap();
    let most = session.status().most as u32;
    assert!(most + 2 < setup.exported);
    // All but the first two pages hold values of their own.
    let mut ops: Vec<Op> = (2..=most).map(|lpn| write(Lpn(lpn), 100 + lpn)).collect();
    ops.extend([write(Lpn(0), 7), write(Lpn(1), 7)]);
    session.operate(&ops).unwrap();
    assert_eq!(session.status().stored, u64::from(most));
    for round in 0..10 {
        let refusals = session.work.refusals;
        let old = if round == 0 { 102 } else { 200 + round - 1 };
        session
            .operate(&[write(Lpn(2), 200 + round), write(Lpn(1), old)])
            .unwrap();
        assert_eq!(session.work.refusals, refusals + 1);
        assert_eq!(session.status().stored, u64::from(most));
    }
}

/// A purge was lost, and of what it was to forget nothing was compared: the oracle took it for done, and a rewind to
/// what it had not forgotten for a broken promise.
#[test]
fn the_oracle_knows_a_lost_purge_by_its_stamp() {
    let mut oracle = Oracle::new(vec![0]);
    oracle.set(10, Lpn(0), 5);
    oracle.set(20, Lpn(0), 6);
    oracle.acknowledge();
    oracle.purge(30, 0..1);
    let told = |newest| Told {
        oldest: 0,
        newest,
        snapshots: BTreeSet::new(),
        marks: Vec::new(),
        instants: vec![(20, vec![6])],
    };
    let mut lost = oracle.clone();
    lost.accept(&[6], Some(&told(20)), 2).unwrap();
    assert_eq!(lost.moment().at(10), &[5]);
    oracle.accept(&[6], Some(&told(30)), 3).unwrap();
    assert_eq!(oracle.moment().at(10), &[PURGED]);
}

/// A purged entry of the history still named an object, by a number of before the process died. The entries that
/// leave soon are looked at in advance.
#[test]
fn a_purged_entry_is_met_after_a_process_died() {
    let setup = Setup {
        policy: Policy::Dedup,
        history: history(30, 50, false),
        exported: 26,
        blocks: 8,
        index_entries: 8,
        garbage: false,
        crowded: false,
        bounds: RecoveryBounds::default(),
        ..setup(Policy::Dedup, 8, 1)
    };
    let old = [
        1001, 1002, 1003, 3, 1004, 7, 11, 1005, 0, 1006, 1007, 1008, 11, 1009, 0, 1, 0, 1010, 7, 0,
        4, 1011, 1012, 1013, 0, 3,
    ];
    let mut ops: Vec<Op> = (0..)
        .zip(old)
        .map(|(lpn, value)| write(Lpn(lpn), value))
        .collect();
    ops.extend([Op::Trim { lpn: Lpn(12) }, Op::Forget { pick: 260 }]);
    ops.extend([Op::Trim { lpn: Lpn(15) }, Op::Rewind { pick: 845 }]);
    ops.extend([Op::Purge { first: 14, end: 16 }, Op::Flush]);
    ops.extend([
        write(Lpn(17), 1014),
        Op::Kill,
        fua(Lpn(19), 1015),
        write(Lpn(16), 0),
    ]);
    let generations = vec![Generation::calm(ops.into())];
    Scenario { setup, generations }.play().unwrap();
}

/// The checkpoint that a rewind began with gave up the instant to rewind to.
#[test]
fn a_rewind_to_the_oldest_instant_needs_a_checkpoint() {
    let setup = Setup {
        policy: Policy::Plain,
        history: history(30, 50, false),
        encoding: BOTH,
        exported: 6,
        blocks: 8,
        alignment: 4096,
        index_entries: 8,
        ..setup(Policy::Plain, 4, 2)
    };
    let before = [
        write_at(Lpn(4), 1034, 997_645),
        write_at(Lpn(0), 1038, 997_653),
        write_at(Lpn(5), 1039, 997_653),
        fua_at(Lpn(4), 1040, 997_654),
    ];
    let after = [
        Op::Purge { first: 2, end: 4 },
        write_at(Lpn(3), 1011, 1_000_000),
        Op::Flush,
        write_at(Lpn(3), 1011, 1_000_002),
        write_at(Lpn(1), 2_000_001, 1_000_002),
        fua_at(Lpn(0), 2_000_002, 1_000_002),
        write_at(Lpn(5), 2_000_003, 1_000_003),
        Op::Flush,
        Op::Rewind { pick: 903 },
    ];
    let cut = Generation {
        trouble: Trouble::Cut(93),
        ..Generation::calm(before.into())
    };
    let generations = vec![cut, Generation::calm(after.into())];
    Scenario { setup, generations }.play().unwrap();
}

/// A rewind recorded more than the history may have entries, and the next opening refused the volume.
#[test]
fn returns_fill_a_history_with_snapshots() {
    let setup = Setup {
        policy: Policy::DedupTrusted,
        history: history(8, 50, true),
        encoding: BOTH,
        exported: 9,
        blocks: 8,
        alignment: 4096,
        index_entries: 1,
        ..setup(Policy::DedupTrusted, 4, 2)
    };
    let ops = [
        write_at(Lpn(1), 0, 1_000_015),
        write_at(Lpn(0), 1007, 1_000_016),
        write_at(Lpn(2), 1011, 999_962),
        write_at(Lpn(0), 1013, 999_465),
        Op::Trim { lpn: Lpn(1) },
        Op::Trim { lpn: Lpn(1) },
        Op::Snapshot,
        Op::Rewind { pick: 121 },
        Op::Rewind { pick: 193 },
        Op::Snapshot,
        Op::Rewind { pick: 658 },
        Op::Reopen,
    ];
    let generations = vec![Generation::calm(ops.into())];
    Scenario { setup, generations }.play().unwrap();
}

/// A value that was lost was stored again without the stamp of its write, and the next opening refused the volume.
#[test]
fn a_lost_value_is_still_known_by_its_write() {
    let setup = Setup {
        history: history(300, 50, false),
        encoding: BOTH,
        exported: 6,
        blocks: 8,
        ..setup(Policy::DedupTrusted, 3, 2)
    };
    let before = [
        write(Lpn(4), 1004),
        write(Lpn(2), 1019),
        write(Lpn(4), 1021),
        fua(Lpn(3), 1022),
        write(Lpn(3), 1023),
        write(Lpn(4), 1024),
        fua(Lpn(1), 1026),
    ];
    let damaged = Generation {
        trouble: Trouble::FailedSync(5),
        style: Style::OneLost,
        seed: 2_091_339_108,
        damage: Some(Strike::Flip { at: 12_538, bit: 5 }),
        ..Generation::calm(before.into())
    };
    let after = [
        write_at(Lpn(1), 0, 1_000_000),
        write_at(Lpn(0), 1, 1_000_001),
        Op::Trim { lpn: Lpn(0) },
        Op::Flush,
        Op::Kill,
    ];
    let generations = vec![damaged, Generation::calm(after.into())];
    Scenario { setup, generations }.play().unwrap();
}

/// A value that waited to be packed was given up after the row of the one behind it had been written: that row kept a
/// slot which the packed page did not get, and the next opening refused the checkpoint.
#[test]
fn a_value_that_waits_moves_up_after_its_row_was_written() {
    let setup = Setup {
        encoding: Encoding {
            deltas: true,
            compression: false,
        },
        exported: 12,
        blocks: 8,
        alignment: 4096,
        index_entries: 2,
        ..setup(Policy::DedupTrusted, 4, 4)
    };
    let ops = [
        write(Lpn(0), 0),
        write(Lpn(9), 1117),
        write(Lpn(9), 1121),
        write(Lpn(0), 1126),
        Op::SlowFlush { during: 2 },
        Op::Clean { pages: 3 },
        Op::Trim { lpn: Lpn(9) },
        Op::Checkpoint,
        Op::Kill,
    ];
    let generations = vec![Generation::calm(ops.into())];
    Scenario { setup, generations }.play().unwrap();
}

/// The root of a checkpoint was damaged that no flush had followed: the volume goes by the root before it, which does
/// not know that old versions were given up in between. What was flushed it knows.
#[test]
fn a_checkpoint_without_a_flush_is_told_by_its_root_alone() {
    use {Op::*, Policy::*, Strike::*, Style::*, Trouble::*};
    let scenario = Scenario {
        setup: Setup {
            policy: Dedup,
            history: Some(HistoryIdentity {
                entries: 3,
                least_window: 5,
                protected: false,
            }),
            encoding: Encoding {
                deltas: false,
                compression: true,
            },
            similar: Some(100),
            exported: 2,
            blocks: 8,
            pages_per_block: 2,
            units_per_page: 2,
            alignment: 512,
            index_entries: 8,
            garbage: true,
            crowded: false,
            bounds: RecoveryBounds::default(),
        },
        generations: vec![
            Generation {
                ops: Arc::new([
                    Trim { lpn: Lpn(0) },
                    Trim { lpn: Lpn(1) },
                    Flush,
                    Flush,
                    Trim { lpn: Lpn(1) },
                    Flush,
                    Write {
                        lpn: Lpn(1),
                        value: 3,
                        now: 1000044,
                    },
                    Rewind { pick: 67 },
                    Read { lpn: Lpn(1) },
                    Read { lpn: Lpn(0) },
                    Rewind { pick: 752 },
                    Checkpoint,
                    Collect { steps: 3 },
                    Snapshot,
                    Flush,
                    Trim { lpn: Lpn(1) },
                    Write {
                        lpn: Lpn(0),
                        value: 4,
                        now: 1000044,
                    },
                    Write {
                        lpn: Lpn(0),
                        value: 4,
                        now: 1000044,
                    },
                    Flush,
                    Flush,
                    Fua {
                        lpn: Lpn(0),
                        value: 1,
                        now: 1000046,
                    },
                    Snapshot,
                    Flush,
                    Flush,
                    Write {
                        lpn: Lpn(0),
                        value: 0,
                        now: 1000046,
                    },
                    Write {
                        lpn: Lpn(0),
                        value: 3,
                        now: 1000047,
                    },
                    Write {
                        lpn: Lpn(1),
                        value: 1073742831,
                        now: 1000047,
                    },
                    Rewind { pick: 87 },
                    Rewind { pick: 251 },
                    Write {
                        lpn: Lpn(1),
                        value: 3,
                        now: 1000047,
                    },
                    Write {
                        lpn: Lpn(0),
                        value: 2,
                        now: 1000047,
                    },
                    Checkpoint,
                    Mark,
                    Collect { steps: 4 },
                    Trim { lpn: Lpn(1) },
                    Flush,
                    Snapshot,
                    SlowCheckpoint { during: 6 },
                    Write {
                        lpn: Lpn(0),
                        value: 3,
                        now: 1000048,
                    },
                    SlowCheckpoint { during: 4 },
                    Flush,
                    Mark,
                    Write {
                        lpn: Lpn(0),
                        value: 3,
                        now: 1000048,
                    },
                    Mark,
                    Flush,
                    Flush,
                    Forget { pick: 715 },
                    Write {
                        lpn: Lpn(1),
                        value: 0,
                        now: 1000048,
                    },
                    Write {
                        lpn: Lpn(0),
                        value: 3,
                        now: 1000048,
                    },
                    Write {
                        lpn: Lpn(0),
                        value: 3,
                        now: 1000050,
                    },
                    Trim { lpn: Lpn(0) },
                    Checkpoint,
                    Collect { steps: 3 },
                    Checkpoint,
                    Write {
                        lpn: Lpn(1),
                        value: 1,
                        now: 1000052,
                    },
                    Fua {
                        lpn: Lpn(0),
                        value: 2,
                        now: 1000054,
                    },
                    Fua {
                        lpn: Lpn(0),
                        value: 1073742832,
                        now: 1000055,
                    },
                    Fua {
                        lpn: Lpn(1),
                        value: 0,
                        now: 1000055,
                    },
                    Flush,
                    Read { lpn: Lpn(1) },
                    Trim { lpn: Lpn(1) },
                    Write {
                        lpn: Lpn(1),
                        value: 0,
                        now: 1000055,
                    },
                    Collect { steps: 4 },
                    Flush,
                    Write {
                        lpn: Lpn(1),
                        value: 1073742833,
                        now: 1000057,
                    },
                    Purge { first: 0, end: 1 },
                    Reopen,
                    Flush,
                ]),
                trouble: Cut(76),
                style: Nothing,
                seed: 0,
                damage: Some(Zero {
                    at: 147456,
                    len: 512,
                }),
            },
            Generation {
                ops: Arc::new([]),
                trouble: Never,
                style: All,
                seed: 0,
                damage: None,
            },
        ],
    };
    scenario.play().unwrap();
}

/// Old versions were given up and that was flushed, with no event: of the batch that said so nothing told when it was
/// damaged, and the old versions were remembered again.
#[test]
fn a_window_that_was_given_up_stays_so_wherever_the_journal_is_damaged() {
    let setup = Setup {
        policy: Policy::Dedup,
        history: Some(HistoryIdentity {
            entries: 30,
            least_window: 0,
            protected: false,
        }),
        encoding: Encoding::default(),
        similar: None,
        exported: 2,
        blocks: 8,
        pages_per_block: 4,
        units_per_page: 1,
        alignment: 512,
        index_entries: 8,
        garbage: false,
        crowded: false,
        bounds: RecoveryBounds::default(),
    };
    let write = |value| Op::Write {
        lpn: Lpn(0),
        value,
        now: 10 * u64::from(value),
    };
    let mut ops: Vec<Op> = (1..6).map(write).collect();
    ops.extend([Op::Flush, Op::Forget { pick: 3 }, Op::Flush]);
    let ops: Arc<[Op]> = ops.into();
    let areas = Areas::new(&setup.identity()).unwrap();
    let journal = areas.journal(0).min(areas.journal(1));
    for sector in 0..2 * setup.identity().journal_bytes / 512 {
        let at = journal + 512 * sector;
        let scenario = Scenario {
            setup: setup.clone(),
            generations: vec![
                Generation {
                    damage: Some(Strike::Zero {
                        at: at as usize,
                        len: 512,
                    }),
                    style: Style::Nothing,
                    ..Generation::calm(Arc::clone(&ops))
                },
                Generation::calm(Arc::new([])),
            ],
        };
        scenario.play().unwrap();
    }
}

/// A page that had rotted was written anew under its old write sequence number, and others shared it. The power went:
/// what they shared was known, the page was not there yet, and they had lost what they held before.
#[test]
fn nobody_shares_a_page_that_was_just_written_anew() {
    use {Op::*, Policy::*, Strike::*, Style::*, Trouble::*};
    let scenario = Scenario {
        setup: Setup {
            policy: DedupTrusted,
            history: None,
            encoding: Encoding {
                deltas: false,
                compression: false,
            },
            similar: Some(100),
            exported: 30,
            blocks: 6,
            pages_per_block: 8,
            units_per_page: 4,
            alignment: 512,
            index_entries: 4,
            garbage: false,
            crowded: false,
            bounds: RecoveryBounds::default(),
        },
        generations: vec![
            Generation {
                ops: Arc::new([
                    Write {
                        lpn: Lpn(3),
                        value: 1,
                        now: 995553,
                    },
                    Purge { first: 6, end: 10 },
                    Trim { lpn: Lpn(5) },
                    Reopen,
                ]),
                trouble: Cut(48),
                style: OneTorn,
                seed: 4174703309,
                damage: Some(Zero { at: 8192, len: 512 }),
            },
            Generation {
                ops: Arc::new([
                    Write {
                        lpn: Lpn(6),
                        value: 1,
                        now: 1000000,
                    },
                    Write {
                        lpn: Lpn(3),
                        value: 1,
                        now: 1000002,
                    },
                    Write {
                        lpn: Lpn(17),
                        value: 1,
                        now: 1000004,
                    },
                    Write {
                        lpn: Lpn(7),
                        value: 0,
                        now: 1000004,
                    },
                    SlowFlush { during: 10 },
                    Checkpoint,
                ]),
                trouble: Cut(10),
                style: Shuffled { percent: 50 },
                seed: 3953630938,
                damage: None,
            },
            Generation {
                ops: Arc::new([]),
                trouble: Never,
                style: All,
                seed: 0,
                damage: None,
            },
        ],
    };
    scenario.play().unwrap();
}

/// The power went while an opening wrote the superblocks, and of the older copy what it held before was back: the epoch
/// before, which had written nothing, was opened again.
#[test]
fn an_epoch_that_wrote_nothing_may_be_opened_again_after_damage() {
    let setup = Setup {
        encoding: Encoding {
            deltas: false,
            compression: true,
        },
        ..setup(Policy::Plain, 3, 4)
    };
    let scenario = Scenario {
        setup,
        generations: vec![
            Generation {
                ops: Arc::new([Op::Kill]),
                trouble: Trouble::Cut(10),
                style: Style::OneTorn,
                seed: 4105261266,
                damage: Some(Strike::Put {
                    at: 4096,
                    len: 4096,
                }),
            },
            Generation {
                ops: Arc::new([]),
                trouble: Trouble::Never,
                style: Style::All,
                seed: 0,
                damage: None,
            },
        ],
    };
    scenario.play().unwrap();
}

/// Three packed pages waited in RAM, one of old versions lay on flash, and the last write had stored its value before the
/// version that it superseded could go: the check took the fourth unit for one too many.
#[test]
fn a_superseded_version_may_stay_beside_three_packed_pages_in_ram() {
    let scenario = Scenario {
        setup: Setup {
            policy: Policy::DedupTrusted,
            history: Some(HistoryIdentity {
                entries: 30,
                least_window: 0,
                protected: false,
            }),
            encoding: Encoding {
                deltas: true,
                compression: true,
            },
            similar: Some(100),
            exported: 9,
            blocks: 8,
            pages_per_block: 4,
            units_per_page: 2,
            alignment: 512,
            index_entries: 1,
            garbage: false,
            crowded: false,
            bounds: RecoveryBounds::default(),
        },
        generations: vec![
            Generation {
                ops: Arc::new([
                    Op::Write {
                        lpn: Lpn(6),
                        value: 0,
                        now: 997559,
                    },
                    Op::Write {
                        lpn: Lpn(0),
                        value: 1073742846,
                        now: 997562,
                    },
                    Op::Checkpoint,
                    Op::Trim { lpn: Lpn(6) },
                    Op::Write {
                        lpn: Lpn(7),
                        value: 0,
                        now: 997236,
                    },
                    Op::Write {
                        lpn: Lpn(4),
                        value: 1073742851,
                        now: 997238,
                    },
                    Op::Write {
                        lpn: Lpn(5),
                        value: 1073742852,
                        now: 997240,
                    },
                    Op::Write {
                        lpn: Lpn(2),
                        value: 0,
                        now: 997240,
                    },
                    Op::Write {
                        lpn: Lpn(4),
                        value: 1073742853,
                        now: 997240,
                    },
                    Op::SlowFlush { during: 1 },
                    Op::Write {
                        lpn: Lpn(4),
                        value: 1073742854,
                        now: 997242,
                    },
                    Op::Flush,
                ]),
                trouble: Trouble::Cut(24),
                style: Style::Calls { percent: 10 },
                seed: 4149665063,
                damage: None,
            },
            Generation {
                ops: Arc::new([
                    Op::Write {
                        lpn: Lpn(2),
                        value: 1075741825,
                        now: 1000000,
                    },
                    Op::Write {
                        lpn: Lpn(2),
                        value: 1075741826,
                        now: 1000001,
                    },
                    Op::Fua {
                        lpn: Lpn(1),
                        value: 1,
                        now: 1000002,
                    },
                    Op::Write {
                        lpn: Lpn(1),
                        value: 1075741828,
                        now: 1000003,
                    },
                    Op::Write {
                        lpn: Lpn(2),
                        value: 1075741832,
                        now: 1000007,
                    },
                ]),
                trouble: Trouble::Cut(33),
                style: Style::Sectors { percent: 10 },
                seed: 287190148,
                damage: None,
            },
        ],
    };
    scenario.play().unwrap();
}

/// A base was a delta in the checkpoint and is whole since: what was encoded against it then, and flushed, has happened.
#[test]
fn a_base_is_whole_since_the_checkpoint() {
    let setup = Setup {
        similar: Some(1),
        policy: Policy::Dedup,
        history: history(300, 5, false),
        encoding: Encoding {
            deltas: true,
            compression: false,
        },
        exported: 4,
        blocks: 8,
        pages_per_block: 4,
        units_per_page: 1,
        alignment: 4096,
        index_entries: 1,
        garbage: false,
        crowded: false,
        bounds: RecoveryBounds::default(),
    };
    let ops: Arc<[Op]> = Arc::new([
        write_at(Lpn(0), FAMILIES + 1001, 1_000_002),
        write_at(Lpn(2), FAMILIES + 1026, 997_512),
        write_at(Lpn(2), FAMILIES + 1027, 997_513),
        Op::SlowCheckpoint { during: 2 },
        write_at(Lpn(0), FAMILIES + 1029, 997_016),
        fua_at(Lpn(2), FAMILIES + 1030, 997_016),
    ]);
    for sync in 1..12 {
        let failed = Generation {
            trouble: Trouble::FailedSync(sync),
            style: Style::Sectors { percent: 10 },
            seed: 1_673_507_502,
            ..Generation::calm(ops.clone())
        };
        let generations = vec![failed, Generation::calm(Arc::new([]))];
        let setup = setup.clone();
        Scenario { setup, generations }.play().unwrap();
    }
}

/// A process died after a write whose object had the handle of one that a trim had freed. Neither reached the journal, so
/// the object was there again, and was shared; the page of the write was found on the medium all the same, and taken
/// for what has that handle.
#[test]
fn a_write_beyond_the_cut_has_no_handle() {
    use {Op::*, Policy::*, Style::*, Trouble::*};
    let write = |lpn, value, now| Write {
        lpn: Lpn(lpn),
        value,
        now,
    };
    let scenario = Scenario {
        setup: Setup {
            policy: DedupTrusted,
            history: None,
            encoding: Encoding {
                deltas: true,
                compression: true,
            },
            similar: None,
            exported: 3,
            blocks: 9,
            pages_per_block: 2,
            units_per_page: 1,
            alignment: 4096,
            index_entries: 4,
            garbage: true,
            crowded: false,
            bounds: RecoveryBounds::default(),
        },
        generations: vec![
            Generation {
                ops: Arc::new([
                    write(0, 3, 1000007),
                    write(2, 2, 1000017),
                    write(0, 0, 1000027),
                    SlowFlush { during: 0 },
                    Trim { lpn: Lpn(2) },
                    write(0, 3, 1000029),
                    Kill,
                    write(0, 2, 1000031),
                    Fua {
                        lpn: Lpn(0),
                        value: 3,
                        now: 1000045,
                    },
                ]),
                trouble: Cut(35),
                style: Shuffled { percent: 100 },
                seed: 2262525058,
                damage: None,
            },
            Generation::calm(Arc::new([])),
        ],
    };
    scenario.play().unwrap();
}

/// The page of the newest entries of pages was damaged, and the present could not be read as an instant: it was asked which
/// changes came after the last one.
#[test]
fn the_last_instant_needs_no_old_versions() {
    let setup = Setup {
        history: history(30, 0, false),
        alignment: 4096,
        blocks: 10,
        crowded: true,
        bounds: RecoveryBounds::default(),
        garbage: false,
        index_entries: 1,
        similar: Some(1),
        ..setup(Policy::DedupTrusted, 2, 2)
    };
    let before = [
        write_at(Lpn(0), 2, 999_576),
        write_at(Lpn(1), FAMILIES + 1005, 999_577),
        Op::Trim { lpn: Lpn(1) },
        Op::Purge { first: 0, end: 3 },
        write_at(Lpn(0), FAMILIES + 1006, 999_577),
        Op::Trim { lpn: Lpn(0) },
    ];
    let damaged = Generation {
        trouble: Trouble::Cut(50),
        style: Style::Shuffled { percent: 50 },
        seed: 3_077_322_214,
        damage: Some(Strike::Zero {
            at: 405_504,
            len: 512,
        }),
        ..Generation::calm(before.into())
    };
    let generations = vec![damaged, Generation::calm(Arc::new([]))];
    Scenario { setup, generations }.play().unwrap();
}

/// The power was cut while the past was asked for: a page of tables was written to make room for another.
#[test]
fn the_power_may_go_while_the_past_is_asked_for() {
    let setup = Setup {
        history: history(3, 50, false),
        encoding: Encoding {
            deltas: true,
            compression: true,
        },
        similar: Some(1),
        blocks: 8,
        index_entries: 16,
        crowded: true,
        bounds: RecoveryBounds::default(),
        ..setup(Policy::Dedup, 2, 4)
    };
    let ops = [
        fua_at(Lpn(1), FAMILIES + 2_000_012, 1_000_013),
        write_at(Lpn(0), FAMILIES + 2_000_013, 1_000_013),
        write_at(Lpn(5), 3, 1_000_013),
        write_at(Lpn(0), 2, 1_000_015),
        Op::Trim { lpn: Lpn(0) },
        fua_at(Lpn(1), FAMILIES + 2_000_014, 1_000_016),
        write_at(Lpn(0), FAMILIES + 2_000_017, 1_000_020),
        write_at(Lpn(0), FAMILIES + 2_000_019, 1_000_022),
        write_at(Lpn(0), FAMILIES + 2_000_020, 1_000_024),
    ];
    let cut = Generation {
        trouble: Trouble::Cut(21),
        style: Style::Nothing,
        ..Generation::calm(ops.into())
    };
    let generations = vec![cut];
    Scenario { setup, generations }.play().unwrap();
}

/// The power went where the oldest packed page was to be emptied for room: its objects could not be read, and the write asked
/// for them for ever.
#[test]
fn the_power_may_go_while_deltas_are_materialized_for_room() {
    let setup = Setup {
        encoding: Encoding {
            deltas: true,
            compression: false,
        },
        exported: 59,
        blocks: 9,
        crowded: true,
        ..setup(Policy::Plain, 8, 4)
    };
    let fill = (0..59).map(|lpn| write(Lpn(lpn), 1001 + lpn));
    let again = (0..40).map(|n| match n % 12 {
        0 => fua(Lpn(n * 7 % 59), 2000 + n),
        _ => write(Lpn(n * 7 % 59), 2000 + n),
    });
    let ops: Arc<[Op]> = fill.chain(again).collect();
    for cut in 1..130 {
        let generation = Generation {
            trouble: Trouble::Cut(cut),
            style: Style::Nothing,
            ..Generation::calm(Arc::clone(&ops))
        };
        let generations = vec![generation];
        let scenario = Scenario {
            setup: setup.clone(),
            generations,
        };
        scenario.play().unwrap_or_else(|how| panic!("{cut}: {how}"));
    }
}
