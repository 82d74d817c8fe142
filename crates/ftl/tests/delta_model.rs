//! DeltaFTL's decisions against a separately written slow model on devices too large to be collected:
//! the same programs in the same order, the same counts, the same reads. And with nothing encoded, the
//! operations of a device that encodes against those of a plain one, under collection (spec/delta-ftl.md,
//! invariant 6).

use crate::common;

use common::devices::drawn;
use common::policies::DELTAS;
use common::values::{Lengths, Page, V};
use common::{Medium, Random, medium};
use flashlore_content::{DedupOptions, NoCensus};
use flashlore_flash::geometry::Counts;
use flashlore_flash::record::Op;
use flashlore_flash::{Cause, Flash, Geometry, Lpn, Owner, Tag, When};
use flashlore_ftl::content::decision::Write;
use flashlore_ftl::content::parts::Past;
use flashlore_ftl::map_cache::Resident;
use flashlore_ftl::policies::options::{EncodingOptions, HeatOptions, NEVER, ViabilityOptions};
use flashlore_ftl::{ContentFtl, FtlOptions, PlainFtl, Policies};
use flashlore_oracle::delta_ftl::{Baseline, DeltaEvent, DeltaFtl, DeltaFtlRules, Why};
use proptest::prelude::*;

type Device = ContentFtl<V, Medium<Page>, NoCensus, Resident, Lengths, Past>;

/// Logical pages of the devices that are not collected.
const PAGES: u32 = 40;

#[derive(Debug, Clone, Copy)]
enum Step {
    Write(u32),
    Read(u32),
    Trim(u32),
    Scan,
    MergeCold,
    Flush,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        30 => any::<u32>().prop_map(Step::Write),
        8 => any::<u32>().prop_map(Step::Read),
        2 => any::<u32>().prop_map(Step::Trim),
        1 => Just(Step::Scan),
        4 => Just(Step::MergeCold),
        1 => Just(Step::Flush),
    ];
    prop::collection::vec(step, 1..1500)
}

/// A page, some more often than others.
fn page(raw: u32, pages: u32) -> u32 {
    if raw.is_multiple_of(3) {
        raw / 3 % pages
    } else {
        raw / 3 % (pages / 4)
    }
}

fn device(
    geometry: &Geometry,
    options: FtlOptions,
    delta: EncodingOptions,
    encoder: Lengths,
) -> Device {
    let dedup = DedupOptions {
        index_entries: Some(0),
        fingerprint_bits: 64,
        verify: false,
        bypass: None,
        out_of_line: false,
    };
    let policies = Policies {
        dedup,
        encoding: Some(delta),
        versions: None,
        encoder,
    };
    ContentFtl::with_policies(medium(geometry), options, policies, NoCensus, Resident).unwrap()
}

fn delta_options() -> impl Strategy<Value = EncodingOptions> {
    let viable = prop_oneof![
        Just((4096u16, 10u32, 1u32)),
        (200u16..4096, 1u32..40, 1u32..8)
    ];
    (
        0u8..4,
        1u8..17,
        prop_oneof![300u16..4085, Just(4084)],
        viable,
        prop_oneof![Just(u32::MAX), 0u32..40],
    )
        .prop_map(
            |(hot_writes, hot_reads, most_bytes, (viable, window, probe), most_pinned)| {
                EncodingOptions {
                    deltas: true,
                    compress: false,
                    hot_writes,
                    hot_reads,
                    most_bytes,
                    viability: ViabilityOptions {
                        most_bytes: viable,
                        window,
                        probe,
                    },
                    heat: HeatOptions {
                        entries: None,
                        protected: 0,
                    },
                    lambda: 0,
                    most_pinned,
                    similar: None,
                }
            },
        )
}

fn lengths() -> impl Strategy<Value = Lengths> {
    (0u16..2500, 0u16..3000).prop_map(|(least, more)| Lengths {
        least,
        most: least + more,
        alone: 0,
    })
}

/// The same settings in the words of the model.
fn rules_of(options: &EncodingOptions) -> DeltaFtlRules {
    let count = |hot: u8| (hot != NEVER).then_some(u64::from(hot));
    DeltaFtlRules {
        hot_writes: count(options.hot_writes),
        hot_reads: count(options.hot_reads),
        most_bytes: usize::from(options.most_bytes),
        most_bases: options.most_pinned as usize,
        baseline: Some(Baseline {
            most_bytes: usize::from(options.viability.most_bytes),
            window: u64::from(options.viability.window),
            probe: u64::from(options.viability.probe),
        }),
    }
}

/// What a unit was programmed with: a page whole, or pages packed together.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Programmed {
    Whole(u64),
    Packed(Vec<u64>),
}

/// A device and what it wrote for whom: every write has a value of its own.
struct Core {
    ftl: Device,
    writers: Vec<u64>,
}

impl Core {
    fn write(&mut self, lpn: Lpn) -> V {
        let value = V(self.writers.len() as u32);
        self.writers.push(u64::from(lpn));
        let encode = self.ftl.begin_write(lpn);
        if encode {
            self.ftl.fetch_base(0, lpn, value, None, Tag::NONE).unwrap();
        }
        let when = When::now(0);
        self.ftl
            .commit(
                when,
                Write {
                    encode,
                    ..Write::new(lpn, value)
                },
                ContentFtl::is_same,
                Tag::NONE,
            )
            .unwrap();
        value
    }

    /// What was programmed and the flash pages read for the host since the last call. The page `writing`
    /// is being written: a slot of its older delta, which the model drops before, counts for nothing.
    fn take(&mut self, writing: Option<u32>) -> (Vec<Programmed>, u64) {
        let flash = self.ftl.core_mut().flash_mut();
        let mut programs = Vec::new();
        let mut reads = 0;
        for op in flash.take() {
            match op {
                Op::Read { cause, .. } => reads += u64::from(cause == Cause::Host),
                Op::Program {
                    ppn, from: None, ..
                } => {
                    let writer = |v: V| self.writers[v.0 as usize];
                    programs.push(match flash.content(ppn).unwrap() {
                        Page::Whole(value) => Programmed::Whole(writer(value)),
                        Page::Packed(values) => {
                            let pages = values.iter().map(|encoded| writer(encoded.value));
                            let others = pages.filter(|&p| Some(p) != writing.map(u64::from));
                            Programmed::Packed(others.collect())
                        }
                    });
                }
                other => panic!("{other:?} on a device that is not collected"),
            }
        }
        (programs, reads)
    }
}

fn of_model(events: Vec<DeltaEvent>) -> Vec<Programmed> {
    let programmed = events.into_iter().map(|event| match event {
        DeltaEvent::Whole(lpn) | DeltaEvent::Merged(lpn, _) => Programmed::Whole(lpn),
        DeltaEvent::Packed(lpns) => Programmed::Packed(lpns),
    });
    programmed.collect()
}

/// What the model's events come to.
#[derive(Debug, Default, PartialEq, Eq)]
struct Sums {
    whole: u64,
    packed: u64,
    read_hot: u64,
    write_cold: u64,
    merge_reads: u64,
    delta_reads: u64,
    double_reads: u64,
}

/// Runs a history on both and compares every step; answers how often what happened.
fn like_the_model(
    delta: EncodingOptions,
    encoder: Lengths,
    steps: &[Step],
) -> Result<Sums, TestCaseError> {
    let geometry = Geometry::new(Counts {
        channels: 2,
        packages_per_channel: 1,
        dies_per_package: 1,
        planes_per_die: 2,
        blocks_per_plane: 40,
        pages_per_block: 32,
        page_bytes: 4096,
    })
    .unwrap();
    let ftl = device(&geometry, FtlOptions::new(PAGES), delta, encoder);
    let mut core = Core {
        ftl,
        writers: vec![],
    };
    let length = move |base: u32, new: u32| usize::from(encoder.of(Some(V(base)), V(new)));
    let mut model = DeltaFtl::new(rules_of(&delta), length);
    let mut sums = Sums::default();
    for (i, step) in steps.iter().enumerate() {
        let (mut host_reads, mut writing) = (0, None);
        match *step {
            Step::Write(raw) => {
                let lpn = page(raw, PAGES);
                model.write(u64::from(lpn), core.write(Lpn(lpn)).0);
                writing = Some(lpn);
            }
            Step::Read(raw) => {
                let lpn = page(raw, PAGES);
                let (found, _) = core.ftl.read(0, Lpn(lpn), Cause::Host, Tag::NONE).unwrap();
                let expected = model.read(u64::from(lpn));
                prop_assert_eq!(found.map(|p| p.value().0), expected.map(|r| r.value));
                host_reads = expected.map_or(0, |r| r.flash_reads);
                sums.delta_reads += u64::from(expected.is_some_and(|r| r.delta));
                sums.double_reads += u64::from(host_reads == 2);
                let merged = core.ftl.merge_if_read_hot(When::now(0), Lpn(lpn)).unwrap();
                prop_assert_eq!(
                    merged,
                    model.merge_if_read_hot(u64::from(lpn)),
                    "step {}",
                    i
                );
            }
            Step::Trim(raw) => {
                let lpn = page(raw, PAGES);
                core.ftl.trim(Lpn(lpn)).unwrap();
                model.trim(u64::from(lpn));
            }
            Step::Scan => {
                core.ftl.begin_cold_scan();
                model.scan();
            }
            Step::MergeCold => {
                let (before, _) = core.take(None);
                prop_assert_eq!(before, vec![]);
                let merged = core.ftl.merge_cold(0).unwrap();
                let cold = model.cold();
                prop_assert_eq!(merged, !cold.is_empty(), "step {}: {:?}", i, cold);
                if merged {
                    // Which of them is the core's to choose.
                    let (programs, _) = core.take(None);
                    let [Programmed::Whole(lpn)] = programs[..] else {
                        return Err(TestCaseError::fail(format!("step {i}: {programs:?}")));
                    };
                    let reads = model.merge_cold(lpn);
                    prop_assert!(reads.is_some(), "step {}: {} is not of {:?}", i, lpn, cold);
                    sums.merge_reads += reads.unwrap_or(0);
                    let events = model.take_events();
                    prop_assert_eq!(events, vec![DeltaEvent::Merged(lpn, Why::WriteCold)]);
                    sums.write_cold += 1;
                }
            }
            Step::Flush => {
                core.ftl.flush_packs(0).unwrap();
                model.flush();
            }
        }
        let events = model.take_events();
        for event in &events {
            match event {
                DeltaEvent::Whole(_) => sums.whole += 1,
                DeltaEvent::Packed(_) => sums.packed += 1,
                DeltaEvent::Merged(_, Why::ReadHot) => sums.read_hot += 1,
                DeltaEvent::Merged(_, Why::WriteCold) => sums.write_cold += 1,
            }
        }
        let expected = (of_model(events), host_reads);
        prop_assert_eq!(core.take(writing), expected, "step {}: {:?}", i, step);
    }
    core.ftl.check().map_err(TestCaseError::fail)?;
    model.check();
    let (counters, totals) = (core.ftl.core().counters(), model.totals());
    let encoded = core.ftl.encoding_counters().unwrap();
    prop_assert_eq!(encoded.candidates, totals.candidates);
    prop_assert_eq!(encoded.bypassed, totals.bypassed);
    prop_assert_eq!(encoded.deltas, totals.deltas);
    prop_assert_eq!(encoded.delta_bytes, totals.delta_bytes);
    prop_assert_eq!(counters.page_reads_delta, totals.base_reads);
    let counted = Sums {
        whole: counters.programs_host,
        packed: counters.programs_log,
        read_hot: encoded.merges_read_hot,
        write_cold: encoded.merges_write_cold,
        merge_reads: counters.page_reads_merge,
        delta_reads: encoded.reads,
        double_reads: encoded.double_reads,
    };
    prop_assert_eq!(&counted, &sums);
    prop_assert_eq!(counters.programs_merge, sums.read_hot + sums.write_cold);
    prop_assert_eq!(
        encoded.merges_gc + encoded.merges_room + encoded.repacked,
        0
    );
    Ok(sums)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn the_core_decides_what_a_naive_deltaftl_decides(
        delta in delta_options(),
        lengths in lengths(),
        steps in steps(),
    ) {
        like_the_model(delta, lengths, &steps)?;
    }
}

/// A history in which everything happens often.
fn long_history() -> Vec<Step> {
    let mut random = Random::new(8);
    let mut step = || {
        let raw = random.below(u32::MAX);
        match random.below(200) {
            0..3 => Step::Scan,
            3 => Step::Flush,
            4..24 => Step::MergeCold,
            24..28 => Step::Trim(raw),
            28..60 => Step::Read(raw),
            _ => Step::Write(raw),
        }
    };
    (0..6000).map(|_| step()).collect()
}

#[test]
fn the_comparison_goes_through_every_kind_of_program() {
    let delta = EncodingOptions {
        hot_writes: 2,
        hot_reads: 2,
        ..never()
    };
    let lengths = Lengths {
        least: 100,
        most: 4000,
        alone: 0,
    };
    let sums = like_the_model(delta, lengths, &long_history()).unwrap();
    let least = [sums.whole, sums.packed, sums.read_hot, sums.write_cold];
    assert!(least.iter().min() > Some(&50), "{sums:?}");
    assert!(
        sums.double_reads > 50 && sums.delta_reads > sums.double_reads,
        "{sums:?}"
    );
}

/// Nothing is ever encoded.
fn never() -> EncodingOptions {
    EncodingOptions {
        hot_writes: NEVER,
        hot_reads: NEVER,
        ..DELTAS
    }
}

/// Operations without the names of owners: one device knows objects, the other logical pages.
fn unnamed(ops: Vec<Op>) -> Vec<Op> {
    let unnamed = ops.into_iter().map(|op| match op {
        Op::Program { ppn, owner, from } => Op::Program {
            ppn,
            owner: owner.map(|_| Owner::page(Lpn(0))),
            from,
        },
        op => op,
    });
    unnamed.collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_device_that_encodes_nothing_does_what_a_plain_one_does(
        drawn in drawn(14..22, 4..9),
        never_hot in any::<bool>(),
        history in steps(),
        rounds in 2u32..8,
    ) {
        let geometry = drawn.geometry();
        let mut options = drawn.options();
        // The open block for packed pages must fit, and nothing but the end of life may depend on it.
        options.wear.endurance = 0;
        // Packed pages have two blocks open in every plane, where there is one left over.
        options.exported -= drawn.geometry().planes() * (drawn.data_units() + 1);
        let pages = options.exported;
        // Pages are never hot, or the deltas are all too long.
        let delta = match never_hot {
            true => never(),
            false => EncodingOptions { hot_writes: 1, most_bytes: 900, ..never() },
        };
        let too_long = Lengths { least: 901, most: 4084, alone: 0 };
        let mut ftl = device(&geometry, options.clone(), delta, too_long);
        let mut plain = PlainFtl::new(medium(&geometry), options).unwrap();
        let mut now = 0;
        let filled = (0..pages).map(|lpn| Step::Write(3 * lpn));
        let again = (0..rounds).flat_map(|_| history.iter().copied());
        for (i, step) in filled.chain(again).enumerate() {
            now += 1;
            ftl.advance(now).unwrap();
            plain.advance(now).unwrap();
            match step {
                Step::Write(raw) => {
                    let (lpn, value, when) = (page(raw, pages), V(i as u32), When::now(now));
                    let ours = ftl.write(when, Lpn(lpn), value, Tag::NONE).map(drop);
                    let theirs = plain.write(when, Lpn(lpn), value.into(), Tag::NONE).map(drop);
                    let [ours, theirs] = [ours, theirs].map(|r| r.map_err(|e| e.to_string()));
                    prop_assert_eq!(&ours, &theirs, "step {}", i);
                    if ours.is_err() {
                        break; // A narrow window may hold no block to collect.
                    }
                }
                Step::Read(raw) => {
                    let lpn = page(raw, pages);
                    let (ours, _) = ftl.read(now, Lpn(lpn), Cause::Host, Tag::NONE).unwrap();
                    let (theirs, _) = plain.read(now, Lpn(lpn), Cause::Host, Tag::NONE).unwrap();
                    prop_assert_eq!(ours, theirs);
                    prop_assert!(!ftl.merge_if_read_hot(When::now(now), Lpn(lpn)).unwrap());
                }
                Step::Trim(raw) => {
                    ftl.trim(Lpn(page(raw, pages))).unwrap();
                    plain.trim(Lpn(page(raw, pages))).unwrap();
                }
                Step::Scan => {
                    ftl.begin_cold_scan();
                }
                Step::MergeCold => prop_assert!(!ftl.merge_cold(now).unwrap()),
                Step::Flush => {
                    ftl.flush_packs(now).unwrap();
                    ftl.core_mut().flush(now).unwrap();
                    plain.core_mut().flush(now).unwrap();
                }
            }
            let ours = unnamed(ftl.core_mut().flash_mut().take());
            let theirs = unnamed(plain.core_mut().flash_mut().take());
            prop_assert_eq!(ours, theirs, "step {}", i);
        }
        ftl.check().map_err(TestCaseError::fail)?;
        prop_assert_eq!(ftl.core().counters(), plain.core().counters());
    }
}
