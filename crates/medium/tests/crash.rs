//! The crash medium against a model that keeps every version of every sector.
//!
//! The model says which versions of a sector a power cut may leave; the medium must leave one of
//! them, and over many seeds each of them.

use std::collections::BTreeSet;

use flashlore_medium::{CrashMedium, Medium, MediumError, SECTOR, Style};
use proptest::prelude::*;

const SECTORS: usize = 12;
const GARBAGE: u8 = 0xDE;

/// A sector's content, as the number that fills it.
type Version = u64;

/// What the naive model knows of one sector.
#[derive(Debug, Clone)]
struct Versions {
    durable: Version,
    /// In order: the version, and whether a failed sync lost it.
    pending: Vec<(Version, bool)>,
}

impl Versions {
    fn newest(&self) -> Version {
        self.pending.last().map_or(self.durable, |last| last.0)
    }

    fn allowed(&self) -> BTreeSet<Version> {
        let pending = self.pending.iter().map(|entry| entry.0);
        pending.chain([self.durable]).collect()
    }

    fn sync(&mut self) {
        if self.pending.iter().any(|entry| !entry.1) {
            self.durable = self.newest();
            self.pending.clear();
        }
    }

    fn fail_sync(&mut self) {
        self.pending.iter_mut().for_each(|entry| entry.1 = true);
    }
}

#[derive(Debug, Clone)]
enum Step {
    Write { first: usize, sectors: usize },
    Discard { first: usize, sectors: usize },
    Sync,
    FailedSync,
}

use Step::{Discard, FailedSync, Sync, Write};

/// The medium and its model, fed the same steps.
struct Compared {
    medium: CrashMedium,
    model: Vec<Versions>,
    discarded: Version,
    steps: u64,
    syncs: u64,
}

fn fill(version: Version) -> [u8; SECTOR] {
    let mut bytes = [0; SECTOR];
    for chunk in bytes.chunks_mut(8) {
        chunk.copy_from_slice(&version.to_le_bytes());
    }
    bytes
}

/// The versions that bytes hold; a sector that is not whole fails the test.
fn versions(bytes: &[u8]) -> Vec<Version> {
    bytes
        .chunks(SECTOR)
        .map(|sector| {
            let version = u64::from_le_bytes(sector[..8].try_into().unwrap());
            assert_eq!(sector, fill(version), "a torn sector");
            version
        })
        .collect()
}

fn offset(sector: usize) -> u64 {
    (sector * SECTOR) as u64
}

impl Compared {
    /// Sector n holds version n + 1 at first.
    fn new(garbage: bool) -> Self {
        let bytes: Vec<u8> = (0..SECTORS as u64)
            .flat_map(|sector| fill(sector + 1))
            .collect();
        let versions = |durable| Versions {
            durable,
            pending: Vec::new(),
        };
        let medium = CrashMedium::from_bytes(bytes);
        Compared {
            medium: match garbage {
                true => medium.with_garbage_after_discard(),
                false => medium,
            },
            model: (1..=SECTORS as u64).map(versions).collect(),
            discarded: match garbage {
                true => u64::from_le_bytes([GARBAGE; 8]),
                false => 0,
            },
            steps: 0,
            syncs: 0,
        }
    }

    fn with(steps: &[Step]) -> Self {
        let mut compared = Compared::new(false);
        for step in steps {
            compared.take(step).unwrap();
        }
        compared
    }

    /// Takes a step; every write brings versions of its own.
    fn take(&mut self, step: &Step) -> Result<(), MediumError> {
        self.steps += 1;
        let write = |position: usize| 1000 * self.steps + position as u64;
        match *step {
            Write { first, sectors } => {
                let bytes: Vec<u8> = (0..sectors).flat_map(|at| fill(write(at))).collect();
                for at in 0..sectors {
                    self.model[first + at].pending.push((write(at), false));
                }
                self.medium.write(offset(first), &bytes)
            }
            Discard { first, sectors } => {
                for versions in &mut self.model[first..first + sectors] {
                    versions.pending.push((self.discarded, false));
                }
                self.medium.discard(offset(first), offset(sectors))
            }
            Sync => {
                self.syncs += 1;
                self.model.iter_mut().for_each(Versions::sync);
                self.medium.sync()
            }
            FailedSync => {
                self.syncs += 1;
                self.medium.fail_sync(self.syncs);
                self.model.iter_mut().for_each(Versions::fail_sync);
                self.medium.sync().expect_err("told to fail");
                Ok(())
            }
        }
    }

    fn newest(&self) -> Vec<Version> {
        self.model.iter().map(Versions::newest).collect()
    }

    fn survivors(&self, seed: u64, style: Style) -> Vec<Version> {
        versions(&self.medium.survivors(seed, style))
    }

    /// Everything that `style` leaves over many seeds, of the first `sectors` sectors.
    fn outcomes(&self, style: Style, sectors: usize) -> BTreeSet<Vec<Version>> {
        (0..4000)
            .map(|seed| self.survivors(seed, style)[..sectors].to_vec())
            .collect()
    }

    fn read(&self) -> Vec<Version> {
        let mut bytes = vec![0; SECTORS * SECTOR];
        self.medium.read(0, &mut bytes).unwrap();
        versions(&bytes)
    }

    fn check_survivors(&self, seed: u64) -> Result<(), TestCaseError> {
        let durable: Vec<_> = self.model.iter().map(|sector| sector.durable).collect();
        prop_assert_eq!(self.survivors(seed, Style::Nothing), durable);
        prop_assert_eq!(self.survivors(seed, Style::All), self.newest());
        for style in Style::SEARCH {
            let found = self.survivors(seed, style);
            for (sector, (version, model)) in found.iter().zip(&self.model).enumerate() {
                prop_assert!(
                    model.allowed().contains(version),
                    "{style:?}: sector {sector} holds {version}, allowed {model:?}"
                );
            }
            prop_assert_eq!(found, self.survivors(seed, style), "not repeatable");
        }
        Ok(())
    }
}

fn range() -> impl Strategy<Value = (usize, usize)> {
    (0..SECTORS).prop_flat_map(|first| (Just(first), 1..=SECTORS - first))
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => range().prop_map(|(first, sectors)| Write { first, sectors }),
        3 => range().prop_map(|(first, sectors)| Discard { first, sectors }),
        2 => Just(Sync),
        1 => Just(FailedSync),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn reads_see_the_newest_and_survivors_are_allowed(
        steps in prop::collection::vec(step(), 1..24),
        garbage: bool,
        seed: u64,
    ) {
        let mut compared = Compared::new(garbage);
        for step in &steps {
            compared.take(step).unwrap();
            prop_assert_eq!(compared.read(), compared.newest());
            compared.check_survivors(seed)?;
        }
        prop_assert_eq!(compared.medium.calls(), steps.len() as u64);
    }

    /// Whatever the power cut interrupts, what survives is allowed; and nothing works afterwards.
    #[test]
    fn a_cut_at_any_call_leaves_what_is_allowed(
        steps in prop::collection::vec(step(), 1..24),
        cut: prop::sample::Index,
        seed: u64,
    ) {
        let cut = cut.index(steps.len());
        let mut compared = Compared::new(false);
        compared.medium.cut_at(cut as u64 + 1);
        for step in &steps[..cut] {
            compared.take(step).unwrap();
        }
        if let Sync | FailedSync = steps[cut] {
            prop_assert!(compared.medium.sync().unwrap_err().is_power_cut());
        } else {
            prop_assert!(compared.take(&steps[cut]).unwrap_err().is_power_cut());
        }
        compared.check_survivors(seed)?;
        let left = compared.survivors(seed, Style::All);
        prop_assert!(compared.medium.read(0, &mut [0; SECTOR]).unwrap_err().is_power_cut());
        prop_assert!(compared.medium.write(0, &[0; SECTOR]).unwrap_err().is_power_cut());
        prop_assert!(compared.medium.discard(0, SECTOR as u64).unwrap_err().is_power_cut());
        prop_assert!(compared.medium.sync().unwrap_err().is_power_cut());
        prop_assert_eq!(compared.survivors(seed, Style::All), left);
        prop_assert_eq!(compared.medium.calls(), cut as u64 + 1);
    }
}

/// All choices of one allowed version for each of the first `sectors` sectors.
fn all_choices(compared: &Compared, sectors: usize) -> BTreeSet<Vec<Version>> {
    let mut choices = BTreeSet::from([Vec::new()]);
    for model in &compared.model[..sectors] {
        let extended = choices.iter().flat_map(|start| {
            let allowed = model.allowed().into_iter();
            allowed.map(|version| [&start[..], &[version]].concat())
        });
        choices = extended.collect();
    }
    choices
}

#[test]
fn every_allowed_choice_is_reached() {
    let compared = Compared::with(&[
        Write {
            first: 0,
            sectors: 2,
        },
        Discard {
            first: 1,
            sectors: 2,
        },
        Write {
            first: 0,
            sectors: 3,
        },
    ]);
    let choices = all_choices(&compared, 3);
    assert_eq!(choices.len(), 3 * 4 * 3);
    assert_eq!(
        compared.outcomes(Style::Sectors { percent: 50 }, 3),
        choices
    );
}

#[test]
fn what_a_failed_sync_lost_stays_in_doubt_until_it_is_written_again() {
    let compared = Compared::with(&[
        Write {
            first: 0,
            sectors: 3,
        },
        FailedSync,
        Sync,
        Write {
            first: 1,
            sectors: 1,
        },
        Sync,
        Write {
            first: 2,
            sectors: 1,
        },
    ]);
    assert_eq!(compared.medium.pending(), 2);
    // Sector 0: durable or lost. Sector 1: written again. Sector 2: durable, lost or pending.
    let choices = all_choices(&compared, 3);
    assert_eq!(choices.len(), 2 * 3);
    assert_eq!(
        compared.outcomes(Style::Sectors { percent: 50 }, 3),
        choices
    );
    assert_eq!(compared.read()[..3], [1000, 4000, 6000]);

    compared.medium.write(0, &[7; 3 * SECTOR]).unwrap();
    compared.medium.sync().unwrap();
    assert_eq!(compared.medium.pending(), 0);
}

/// Three calls of two sectors each that do not overlap.
fn three_calls() -> Compared {
    Compared::with(&[
        Write {
            first: 0,
            sectors: 2,
        },
        Discard {
            first: 2,
            sectors: 2,
        },
        Write {
            first: 4,
            sectors: 2,
        },
    ])
}

/// For each of the three calls, which of its sectors survived.
fn kept(outcome: &[Version]) -> Vec<[bool; 2]> {
    let survived = |sector: usize| outcome[sector] != sector as u64 + 1;
    (0..3)
        .map(|call| [survived(2 * call), survived(2 * call + 1)])
        .collect()
}

fn kept_in_all_outcomes(style: Style) -> BTreeSet<Vec<[bool; 2]>> {
    let outcomes = three_calls().outcomes(style, 6);
    outcomes.iter().map(|outcome| kept(outcome)).collect()
}

const YES: [bool; 2] = [true; 2];
const NO: [bool; 2] = [false; 2];

#[test]
fn whole_calls_survive_in_every_combination() {
    let expected: BTreeSet<_> = (0..8)
        .map(|bits| (0..3).map(|call| [bits >> call & 1 == 1; 2]).collect())
        .collect();
    for style in [
        Style::Calls { percent: 50 },
        Style::Shuffled { percent: 50 },
    ] {
        assert_eq!(kept_in_all_outcomes(style), expected, "{style:?}");
    }
}

#[test]
fn exactly_one_call_is_lost() {
    let expected = [[NO, YES, YES], [YES, NO, YES], [YES, YES, NO]];
    let expected = expected.map(|calls| calls.to_vec()).into();
    assert_eq!(kept_in_all_outcomes(Style::OneLost), expected);
}

#[test]
fn exactly_one_call_is_torn() {
    let mut expected = BTreeSet::new();
    for call in 0..3 {
        for half in [[true, false], [false, true]] {
            let mut calls = vec![YES; 3];
            calls[call] = half;
            expected.insert(calls);
        }
    }
    assert_eq!(kept_in_all_outcomes(Style::OneTorn), expected);
}

#[test]
fn a_torn_call_keeps_any_subset_of_its_sectors() {
    let compared = Compared::with(&[Write {
        first: 0,
        sectors: 4,
    }]);
    let mut expected = all_choices(&compared, 4);
    expected.remove(&compared.survivors(0, Style::All)[..4]);
    expected.remove(&compared.survivors(0, Style::Nothing)[..4]);
    assert_eq!(expected.len(), 14);
    assert_eq!(compared.outcomes(Style::OneTorn, 4), expected);
}

#[test]
fn a_single_sector_is_never_torn_but_can_be_lost() {
    let compared = Compared::with(&[Write {
        first: 0,
        sectors: 1,
    }]);
    assert_eq!(compared.outcomes(Style::OneTorn, 1), [vec![1000]].into());
    assert_eq!(compared.outcomes(Style::OneLost, 1), [vec![1]].into());
}

#[test]
fn only_later_calls_survive() {
    let expected = [[YES, YES, YES], [NO, YES, YES], [NO, NO, YES], [NO, NO, NO]];
    let expected = expected.map(|calls| calls.to_vec()).into();
    assert_eq!(kept_in_all_outcomes(Style::Later), expected);
}

/// Two whole calls that overlap: only another order leaves both with the older one on top.
#[test]
fn shuffled_calls_take_effect_in_any_order() {
    let compared = Compared::with(&[
        Write {
            first: 0,
            sectors: 2,
        },
        Discard {
            first: 1,
            sectors: 2,
        },
    ]);
    let outcomes = compared.outcomes(Style::Shuffled { percent: 100 }, 3);
    assert_eq!(outcomes, [vec![1000, 0, 0], vec![1000, 1001, 0]].into());
}

#[test]
fn without_pending_calls_every_style_leaves_the_newest() {
    let compared = Compared::with(&[
        Write {
            first: 3,
            sectors: 5,
        },
        Discard {
            first: 0,
            sectors: 4,
        },
        Sync,
    ]);
    for style in Style::SEARCH {
        assert_eq!(compared.survivors(9, style), compared.newest(), "{style:?}");
    }
}

#[test]
fn a_cut_at_a_number_already_reached_is_a_cut_now() {
    let compared = Compared::with(&[
        Write {
            first: 0,
            sectors: 1,
        },
        Sync,
    ]);
    compared.medium.cut_at(2);
    assert!(
        compared
            .medium
            .read(0, &mut [0; SECTOR])
            .unwrap_err()
            .is_power_cut()
    );
    assert_eq!(compared.medium.calls(), 2);
}

#[test]
fn refused_and_empty_calls_are_not_counted() {
    let medium = CrashMedium::new(4 * SECTOR);
    medium.write(SECTOR as u64, &[]).unwrap();
    medium.discard(0, 0).unwrap();
    medium.write(4 * SECTOR as u64, &[0; SECTOR]).unwrap_err();
    medium.write(1, &[0; SECTOR]).unwrap_err();
    medium.discard(0, 100).unwrap_err();
    assert_eq!((medium.calls(), medium.pending()), (0, 0));
}

#[test]
fn a_flipped_bit_shows_where_nothing_pending_hides_it() {
    let medium = CrashMedium::new(2 * SECTOR);
    medium.write(0, &[0x10; SECTOR]).unwrap();
    medium.flip(3, 0).unwrap();
    medium.flip(SECTOR as u64, 7).unwrap();
    let mut bytes = [0; 2 * SECTOR];
    medium.read(0, &mut bytes).unwrap();
    assert_eq!((bytes[3], bytes[SECTOR]), (0x10, 0x80));
    assert_eq!(medium.survivors(0, Style::Nothing)[3], 1);
    assert_eq!(medium.survivors(0, Style::All), bytes);
    let error = medium.flip(2 * SECTOR as u64, 0).unwrap_err();
    assert!(error.to_string().contains("offset 1024"), "{error}");
}
