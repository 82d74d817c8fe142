//! What is drawn at random: devices of at most 512 units, settings of the policies, steps.

use std::fmt;

use flashlore_content::DedupOptions;
use flashlore_content::history::{HistoryOptions, Schedule, Tier};
use flashlore_ftl::VictimChoice;
use flashlore_ftl::policies::history::{OnPressure, VersionsOptions};
use flashlore_ftl::policies::options::{
    EncodingOptions, HeatOptions, SimilarOptions, ViabilityOptions,
};
use proptest::prelude::*;
use proptest::strategy::Union;

use crate::buffering::BufferingKind;
use crate::common::devices::{Drawn, drawn};
use crate::common::values::Lengths;

/// The most units of a device.
const MOST_UNITS: u32 = 512;

const VICTIMS: [VictimChoice; 5] = [
    VictimChoice::Greedy,
    VictimChoice::Fifo,
    VictimChoice::WindowedGreedy(3),
    VictimChoice::CostBenefit,
    VictimChoice::DChoices(3),
];

/// What is not left to chance.
#[derive(Debug, Clone, Copy)]
pub struct Combination {
    pub dedup: bool,
    pub delta: bool,
    pub history: bool,
    pub buffering: BufferingKind,
    pub victims: VictimChoice,
}

impl Combination {
    pub fn all() -> impl Iterator<Item = Combination> {
        let policies = (0..8).map(|i| (i & 1 != 0, i & 2 != 0, i & 4 != 0));
        policies.flat_map(|(dedup, delta, history)| {
            BufferingKind::ALL.into_iter().flat_map(move |buffering| {
                VICTIMS.into_iter().map(move |victims| Combination {
                    dedup,
                    delta,
                    history,
                    buffering,
                    victims,
                })
            })
        })
    }

    /// Its place among all.
    pub fn number(&self) -> u32 {
        let bits = [self.dedup, self.delta, self.history].map(u32::from);
        let buffering = BufferingKind::ALL.iter().position(|&b| b == self.buffering);
        let victims = VICTIMS.iter().position(|&v| v == self.victims);
        let seat = buffering.unwrap_or(0) * VICTIMS.len() + victims.unwrap_or(0);
        (bits[0] + 2 * bits[1] + 4 * bits[2]) * 25 + seat as u32
    }

    fn policies(&self) -> String {
        let names = [
            (self.dedup, "dedup"),
            (self.delta, "delta"),
            (self.history, "history"),
        ];
        let on: Vec<&str> = names.iter().filter(|n| n.0).map(|n| n.1).collect();
        if on.is_empty() {
            "plain".to_string()
        } else {
            on.join("+")
        }
    }

    pub fn policies_and_buffering(&self) -> String {
        format!("{} {:?}", self.policies(), self.buffering)
    }

    pub fn policies_and_victims(&self) -> String {
        format!("{} {:?}", self.policies(), self.victims)
    }
}

impl fmt::Display for Combination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.policies_and_buffering(), self.victims)
    }
}

/// Numbers are taken modulo what there is, so that a step keeps a meaning when others are left out.
#[derive(Debug, Clone, Copy)]
pub enum Step {
    /// A page, and a value.
    Write(u32, u32),
    /// The same, not hashed.
    WriteUnhashed(u32, u32),
    /// A page, and an old version of any: the page is written what that holds.
    WriteOld(u32, u32),
    Read(u32),
    /// A page, and an instant.
    ReadAt(u32, u32),
    Trim(u32),
    Snapshot(u32),
    DeleteSnapshot(u32),
    RewindTo(u32),
    Advance(u32),
    /// Pages, and how many.
    Purge(u32, u32),
    /// The periodic scan begins, or goes on by one page.
    Scan,
    MergeCold,
    /// Page buffers are programmed.
    Flush,
    /// A victim or the bucket of a page leaves what stands before the device.
    HandOn(u32),
    /// All of it does.
    HandAllOn,
    /// What was handed on is done.
    Left,
    PowerFails,
}

/// A device, its settings, and what is done with it.
#[derive(Debug, Clone)]
pub struct Case {
    pub drawn: Drawn,
    /// Exported pages in hundredths of the most there can be.
    pub fill: u32,
    pub dedup: DedupOptions,
    pub delta: Option<EncodingOptions>,
    pub versions: Option<VersionsOptions>,
    pub lengths: Lengths,
    /// Places of the buffer, and pages of a bucket.
    pub places: u32,
    pub range: u32,
    /// Different values of most writes.
    pub values: u32,
    pub steps: Vec<Step>,
}

/// Cases of a combination with up to so many steps.
pub fn cases(combination: &Combination, longest: usize) -> impl Strategy<Value = Case> + use<> {
    let Combination {
        dedup,
        delta,
        history,
        ..
    } = *combination;
    let options = (
        dedup_options(dedup),
        delta
            .then(delta_options)
            .map_or(Just(None).boxed(), |s| s.prop_map(Some).boxed()),
        history
            .then(versions_options)
            .map_or(Just(None).boxed(), |s| s.prop_map(Some).boxed()),
        lengths(),
    );
    let rest = (
        40u32..101,
        1u32..40,
        2u32..17,
        prop_oneof![1 => Just(12u32), 1 => Just(60), 3 => Just(100_000)],
        prop::collection::vec(steps(combination), longest / 4..longest),
    );
    let device = devices(combination.victims);
    (device, options, rest).prop_map(|(drawn, options, rest)| {
        let (dedup, delta, versions, lengths) = options;
        let (fill, places, range, values, steps) = rest;
        Case {
            drawn,
            fill,
            dedup,
            delta,
            versions,
            lengths,
            places,
            range,
            values,
            steps,
        }
    })
}

/// Devices of at most [`MOST_UNITS`] units.
fn devices(victims: VictimChoice) -> impl Strategy<Value = Drawn> {
    drawn(14..22, 3..9).prop_map(move |drawn| {
        let mut fitted = Drawn {
            victims,
            endurance: 0,
            ..drawn
        };
        while fitted.geometry().units() > MOST_UNITS {
            let Drawn {
                channels,
                dies,
                planes,
                pages,
                units,
                ..
            } = &mut fitted;
            if *pages > 4 {
                *pages -= 1;
            } else if *units > 1 && *channels * *dies * *planes <= 2 {
                *units /= 2;
            } else if *channels > 1 {
                *channels = 1;
            } else if *dies > 1 {
                *dies = 1;
            } else if *units > 2 {
                *units = 2;
            } else {
                *planes = 1;
            }
        }
        fitted
    })
}

fn dedup_options(on: bool) -> impl Strategy<Value = DedupOptions> {
    let entries = prop_oneof![Just(None), (1u32..60).prop_map(Some)];
    (entries, prop::bool::weighted(0.3)).prop_map(move |(entries, verify)| DedupOptions {
        index_entries: if on { entries } else { Some(0) },
        // Narrow fingerprints collide.
        fingerprint_bits: if verify { 6 } else { 64 },
        verify,
        bypass: None,
        out_of_line: false,
    })
}

fn delta_options() -> impl Strategy<Value = EncodingOptions> {
    let forms = prop_oneof![
        6 => Just((true, false)),
        5 => Just((true, true)),
        1 => Just((false, true)),
    ];
    let limits = (
        prop_oneof![500u16..4085, Just(4084)],
        prop_oneof![Just(None), (1u32..40).prop_map(Some)],
        prop_oneof![Just(0u32), Just(100), Just(1500)],
        prop_oneof![Just(u32::MAX), 0u32..60],
        similar_options(),
    );
    (forms, 0u8..3, 2u8..17, limits).prop_map(|(forms, hot_writes, hot_reads, limits)| {
        let (most_bytes, entries, lambda, most_pinned, similar) = limits;
        EncodingOptions {
            deltas: forms.0,
            compress: forms.1,
            hot_writes,
            hot_reads,
            most_bytes,
            viability: ViabilityOptions {
                most_bytes: 4084,
                window: 16,
                probe: 4,
            },
            heat: HeatOptions {
                entries,
                protected: 10,
            },
            lambda,
            most_pinned,
            similar,
        }
    })
}

/// Bases by similarity or not; a small index forgets some, and few deltas may share a base.
fn similar_options() -> impl Strategy<Value = Option<SimilarOptions>> {
    let entries = prop_oneof![0u32..20, Just(1000)];
    let drawn = (entries, prop_oneof![1u32..4, Just(1000)]);
    let drawn = drawn.prop_map(|(entries, sharers)| SimilarOptions { entries, sharers });
    prop_oneof![1 => Just(None), 1 => drawn.prop_map(Some)]
}

fn versions_options() -> impl Strategy<Value = VersionsOptions> {
    (
        prop_oneof![
            2 => Just(None),
            1 => (1u32..8).prop_map(Some),
            1 => (8u32..100).prop_map(Some),
        ],
        prop_oneof![Just(0u64), 1u64..300],
        any::<bool>(),
        0u64..20,
        schedule(),
        prop_oneof![2 => Just(None), 1 => (1u32..100).prop_map(Some)],
    )
        .prop_map(
            |(max_entries, least_window, refuses, reserve, schedule, entries_in_ram)| {
                VersionsOptions {
                    history: HistoryOptions {
                        max_entries,
                        schedule,
                    },
                    least_window,
                    on_pressure: if refuses {
                        OnPressure::Refuse
                    } else {
                        OnPressure::Shrink
                    },
                    reserve,
                    entries_in_ram,
                }
            },
        )
}

/// None, or one of a few instants of each tier.
fn schedule() -> impl Strategy<Value = Option<Schedule>> {
    let ages = (0u64..200, 1u64..100, 1u64..300, 1u64..20, 1u64..5);
    let drawn = ages.prop_map(|(exact, first, second, spacing, factor)| {
        let near = Tier {
            up_to: exact + first,
            spacing,
        };
        let far = Tier {
            up_to: exact + first + second,
            spacing: spacing * factor,
        };
        Schedule::new(exact, vec![near, far]).expect("ages rise, spacings are multiples")
    });
    prop_oneof![2 => Just(None), 1 => drawn.prop_map(Some)]
}

fn lengths() -> impl Strategy<Value = Lengths> {
    (20u16..2500, 0u16..2500, 0u16..100).prop_map(|(least, more, alone)| Lengths {
        least,
        most: least + more,
        alone,
    })
}

/// The steps that mean something for a combination.
fn steps(combination: &Combination) -> impl Strategy<Value = Step> + use<> {
    let any2 = || (any::<u32>(), any::<u32>());
    let mut steps = vec![
        (60, any2().prop_map(|(l, v)| Step::Write(l, v)).boxed()),
        (8, any::<u32>().prop_map(Step::Read).boxed()),
        (4, any::<u32>().prop_map(Step::Trim).boxed()),
        (1, Just(Step::Flush).boxed()),
    ];
    if combination.dedup {
        steps.push((
            3,
            any2().prop_map(|(l, v)| Step::WriteUnhashed(l, v)).boxed(),
        ));
    }
    if combination.delta {
        steps.push((1, Just(Step::Scan).boxed()));
        steps.push((3, Just(Step::MergeCold).boxed()));
    }
    if combination.history {
        steps.extend([
            (8, any2().prop_map(|(l, t)| Step::ReadAt(l, t)).boxed()),
            (12, any2().prop_map(|(l, v)| Step::WriteOld(l, v)).boxed()),
            (1, any::<u32>().prop_map(Step::Snapshot).boxed()),
            (1, any::<u32>().prop_map(Step::DeleteSnapshot).boxed()),
            (2, any::<u32>().prop_map(Step::RewindTo).boxed()),
            (1, any::<u32>().prop_map(Step::Advance).boxed()),
            (1, any2().prop_map(|(l, n)| Step::Purge(l, n)).boxed()),
        ]);
    }
    if combination.buffering != BufferingKind::None {
        steps.extend([
            (3, any::<u32>().prop_map(Step::HandOn).boxed()),
            (1, Just(Step::HandAllOn).boxed()),
            (3, Just(Step::Left).boxed()),
        ]);
    }
    let is_queue = [BufferingKind::QueueByPage, BufferingKind::QueueByRange];
    if is_queue.contains(&combination.buffering) {
        steps.push((1, Just(Step::PowerFails).boxed()));
    }
    Union::new_weighted(steps)
}
