//! The fast core against separately written slow models (`crates/oracle`), operation by operation:
//! the same programs, reads and erases in the same order, under collection.

use crate::common;

use common::devices::{Drawn, drawn};
use common::{Medium, Random, medium};
use flashlore_content::{Content, DedupOptions, Ledger, PageTag, ValueLedger};
use flashlore_flash::record::Op as Done;
use flashlore_flash::{Cause, Geometry, Lpn, ObjectId, Tag, When};
use flashlore_ftl::{
    ContentFtl, FtlError, FtlOptions, Layout, Mode, Placement, PlainFtl, PoolScope, Rotate,
    Streams, Trigger, VictimChoice,
};
use flashlore_oracle::OracleError;
use flashlore_oracle::ca_ftl::{CaFtl, CaOptions};
use flashlore_oracle::ops::{Cause as Why, Op, ReadCause};
use flashlore_oracle::page_ftl::PageFtl;
use flashlore_oracle::rules::{self, Rules};
use proptest::prelude::*;

#[derive(Debug, Clone)]
struct Device {
    geometry: Geometry,
    options: FtlOptions,
    rules: Rules,
}

impl Device {
    fn medium(&self) -> Medium<PageTag> {
        medium(&self.geometry)
    }
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Write(u32, u32),
    Read(u32),
    Trim(u32),
    Flush,
}

/// The models collect in the foreground, draw no victims, know no ages, and level no wear.
fn device(drawn: Drawn) -> Device {
    let mut drawn = Drawn {
        victims: match drawn.victims {
            VictimChoice::CostBenefit | VictimChoice::DChoices(_) => VictimChoice::Greedy,
            victims => victims,
        },
        mode: Mode::Foreground,
        dynamic: false,
        static_gap: 0,
        pool: match drawn.pool {
            PoolScope::Package => PoolScope::Device,
            pool => pool,
        },
        ..drawn
    };
    let geometry = drawn.geometry();
    drawn.low += match drawn.pool() {
        PoolScope::Plane => 0,
        PoolScope::Die => drawn.planes - 1,
        PoolScope::Package | PoolScope::Device => geometry.planes() - 1,
    };
    let options = FtlOptions {
        exported: geometry.planes() * drawn.blocks * drawn.data_units() * 2 / 5,
        ..drawn.options()
    };
    let rules = rules_of(&drawn, &geometry, &options);
    Device {
        geometry,
        options,
        rules,
    }
}

/// The same settings in the words of the models.
fn rules_of(drawn: &Drawn, geometry: &Geometry, options: &FtlOptions) -> Rules {
    let mut rules = Rules::new(rules::Geometry {
        dies: geometry.dies() as usize,
        planes_per_die: drawn.planes as usize,
        blocks_per_plane: drawn.blocks as usize,
        pages_per_block: drawn.pages as usize,
        units_per_page: drawn.units as usize,
        summary_page: drawn.summary_page,
    });
    let frontiers = Layout::new(geometry, &options.layout).unwrap();
    rules.stripe = frontiers.frontiers().iter().map(|p| p.index()).collect();
    rules.pools = match drawn.pool() {
        PoolScope::Plane => rules::PoolScope::Plane,
        PoolScope::Die => rules::PoolScope::Die,
        PoolScope::Package | PoolScope::Device => rules::PoolScope::Device,
    };
    rules.streams = match drawn.streams {
        Streams::Separate => rules::Streams::Separate,
        Streams::Shared => rules::Streams::Shared,
    };
    rules.placement = match drawn.placement {
        Placement::Static => rules::Placement::Static,
        Placement::Dynamic => rules::Placement::Dynamic,
    };
    rules.rotate = match drawn.rotate {
        Rotate::Block => rules::Rotate::Block,
        Rotate::Page => rules::Rotate::Page,
    };
    rules.check = match drawn.trigger {
        Trigger::Allocation => rules::Check::Allocation,
        Trigger::Dispatch { reads } => rules::Check::Dispatch { reads },
    };
    rules.victims = match drawn.victims {
        VictimChoice::Fifo => rules::Victims::Window(1),
        VictimChoice::WindowedGreedy(window) => rules::Victims::Window(window as usize),
        _ => rules::Victims::Greedy,
    };
    rules.endurance = u64::from(drawn.endurance);
    let marks = options.collect.watermarks;
    (rules.low, rules.high) = (marks.low as usize, marks.high as usize);
    rules
}

fn steps(values: u32) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        30 => (any::<u32>(), 0..values).prop_map(|(l, v)| Step::Write(l, v)),
        3 => any::<u32>().prop_map(Step::Read),
        1 => any::<u32>().prop_map(Step::Trim),
        1 => Just(Step::Flush),
    ];
    prop::collection::vec(step, 500..4000)
}

/// Skews addresses, so that blocks die unevenly.
fn address(raw: u32, exported: u32) -> u32 {
    if raw.is_multiple_of(3) {
        raw / 3 % exported
    } else {
        raw / 3 % (exported / 3).max(1)
    }
}

/// What both sides did, in one notation: a page with its slots, a read page, an erased block.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Common {
    Read(u32, Cause),
    Program(u32, Vec<Option<(u32, bool)>>),
    Summary(u32),
    Erase(u32),
}

fn of_core(ops: &[Done], geometry: &Geometry, name: impl Fn(u32) -> u32) -> Vec<Common> {
    let mut out: Vec<Common> = Vec::new();
    for op in ops {
        match *op {
            Done::Read { page, cause } => out.push(Common::Read(page.0, cause)),
            Done::Summary { page } => out.push(Common::Summary(page.0)),
            Done::Erase { block } => out.push(Common::Erase(block.0)),
            Done::Program { ppn, owner, from } => {
                let page = geometry.page_of(ppn).0;
                let slot = owner.map(|o| (name(o.as_page().0), from.is_some()));
                if ppn.0 % geometry.units_per_page() == 0 {
                    out.push(Common::Program(page, vec![slot]));
                } else if let Some(Common::Program(_, slots)) = out.last_mut() {
                    slots.push(slot);
                }
            }
        }
    }
    out
}

fn of_model<T: Copy>(ops: &[Op<T>], rules: &Rules, name: impl Fn(T) -> u32) -> Vec<Common> {
    let page_id =
        |block: usize, page: usize| (block * rules.geometry.pages_per_block + page) as u32;
    ops.iter()
        .map(|op| match op {
            Op::Read { block, page, cause } => {
                let cause = match cause {
                    ReadCause::Host => Cause::Host,
                    ReadCause::Gc => Cause::Gc,
                    ReadCause::Verify => Cause::Verify,
                };
                Common::Read(page_id(*block, *page), cause)
            }
            Op::Program { block, page, slots } => {
                let slots = slots
                    .iter()
                    .map(|s| s.map(|(t, why)| (name(t), why == Why::Gc)));
                Common::Program(page_id(*block, *page), slots.collect())
            }
            Op::Summary { block, page } => Common::Summary(page_id(*block, *page)),
            Op::Erase { block } => Common::Erase(*block as u32),
        })
        .collect()
}

/// Compares one step's operations and names the first that differ.
fn compare(step: usize, core: &[Common], model: &[Common]) -> Result<(), TestCaseError> {
    if core == model {
        return Ok(());
    }
    let at = core.iter().zip(model).take_while(|(a, b)| a == b).count();
    Err(TestCaseError::fail(format!(
        "step {step}, operation {at}: core {:?}, model {:?}",
        core.get(at),
        model.get(at)
    )))
}

/// Whether both refuse a write for the same reason.
fn is_worn_out<E: std::error::Error>(
    core: Result<(), FtlError<E>>,
    model: Result<(), OracleError>,
) -> Result<bool, TestCaseError> {
    match (core, model) {
        (Ok(()), Ok(())) => Ok(false),
        (Err(FtlError::WornOut { .. }), Err(OracleError::DeviceFull { .. })) => Ok(true),
        (core, model) => Err(TestCaseError::fail(format!(
            "core {core:?}, model {model:?}"
        ))),
    }
}

/// Runs a history on the plain device and its model; answers the victims collected.
fn like_the_plain_model(device: &Device, steps: &[Step]) -> Result<u64, TestCaseError> {
    let exported = device.options.exported;
    let mut ftl = PlainFtl::new(device.medium(), device.options.clone()).unwrap();
    let mut model = PageFtl::new(device.rules.clone()).unwrap();
    let mut refused = false;
    for (i, step) in steps.iter().enumerate() {
        match *step {
            Step::Write(raw, _) => {
                let lpn = address(raw, exported);
                let done = ftl.write(When::now(0), Lpn(lpn), PageTag(0), Tag::NONE);
                refused = is_worn_out(done.map(drop), model.write(u64::from(lpn)))?;
            }
            Step::Read(raw) => {
                let lpn = address(raw, exported);
                ftl.read(0, Lpn(lpn), Cause::Host, Tag::NONE).unwrap();
                model.read(u64::from(lpn));
            }
            Step::Trim(raw) => {
                let lpn = address(raw, exported);
                ftl.trim(Lpn(lpn)).unwrap();
                model.trim(u64::from(lpn));
            }
            Step::Flush => {
                ftl.core_mut().flush(0).unwrap();
                model.flush();
            }
        }
        let core = of_core(&ftl.core_mut().flash_mut().take(), &device.geometry, |o| o);
        let expected = of_model(&model.take_ops(), &device.rules, |lpn| lpn as u32);
        compare(i, &core, &expected)?;
        if refused {
            break;
        }
    }
    ftl.check().map_err(TestCaseError::fail)?;
    model.check();
    let (counters, totals) = (ftl.core().counters(), model.totals());
    prop_assert_eq!(counters.victims, totals.victims);
    prop_assert_eq!(counters.programs_gc, totals.moved_units);
    prop_assert_eq!(counters.erases, totals.total_erases());
    prop_assert_eq!(counters.programs_padding, totals.padding_slots);
    Ok(counters.victims)
}

/// How the deduplicating device is set up.
#[derive(Debug, Clone, Copy)]
struct Index {
    entries: Option<u32>,
    /// Fingerprints of 8 bits, so that values collide.
    cut: bool,
    verify: bool,
}

/// Runs a history on the deduplicating device and its model; answers the victims collected.
fn like_the_dedup_model(
    device: &Device,
    steps: &[Step],
    index: Index,
) -> Result<u64, TestCaseError> {
    let Index {
        entries,
        cut,
        verify,
    } = index;
    let exported = device.options.exported;
    let bits = if cut { 8 } else { 128 };
    let dedup = DedupOptions {
        index_entries: entries,
        fingerprint_bits: bits,
        verify,
        bypass: None,
        out_of_line: false,
    };
    let ledger = ValueLedger::default();
    let mut ftl = ContentFtl::new(device.medium(), device.options.clone(), dedup, ledger).unwrap();
    let mut model = CaFtl::new(
        device.rules.clone(),
        CaOptions {
            index_entries: entries.map(|e| e as usize),
            fingerprint: Box::new(move |v| PageTag(v).fingerprint(bits)),
            verify,
        },
    )
    .unwrap();
    let mut refused = false;
    for (i, step) in steps.iter().enumerate() {
        match *step {
            Step::Write(raw, value) => {
                let lpn = address(raw, exported);
                ftl.fetch_candidate(0, PageTag(value), None, Tag::NONE)
                    .unwrap();
                let done = ftl.write(When::now(0), Lpn(lpn), PageTag(value), Tag::NONE);
                refused =
                    is_worn_out(done.map(drop), model.write(u64::from(lpn), value).map(drop))?;
            }
            Step::Read(raw) => {
                let lpn = address(raw, exported);
                ftl.read(0, Lpn(lpn), Cause::Host, Tag::NONE).unwrap();
                model.read(u64::from(lpn));
            }
            Step::Trim(raw) => {
                let lpn = address(raw, exported);
                ftl.trim(Lpn(lpn)).unwrap();
                model.trim(u64::from(lpn));
            }
            Step::Flush => {
                ftl.core_mut().flush(0).unwrap();
                model.flush();
            }
        }
        let ops = ftl.core_mut().flash_mut().take();
        // An owner is an object; the model names values, so positions are compared, not names.
        let core = of_core(&ops, &device.geometry, |_| 0);
        let expected = of_model(&model.take_ops(), &device.rules, |_| 0);
        compare(i, &core, &expected)?;
        if refused {
            break;
        }
    }
    ftl.check().map_err(TestCaseError::fail)?;
    model.check();
    let (counters, totals) = (ftl.dedup_counters(), model.totals());
    prop_assert_eq!(counters.hits, totals.hits);
    prop_assert_eq!(counters.misses, totals.misses);
    prop_assert_eq!(counters.silent, totals.silent);
    prop_assert_eq!(counters.evictions, totals.evictions);
    prop_assert_eq!(counters.corrupted, totals.corrupted);
    let census = ftl.ledger().census().unwrap();
    if !cut || verify {
        prop_assert_eq!(census.unique, totals.unique);
        prop_assert_eq!(census.duplicate, totals.duplicate);
        prop_assert_eq!(census.reborn, totals.reborn);
    }
    // The LRU order, by content, from head to tail.
    let listed: Vec<u32> = ftl
        .dedup()
        .index
        .objects(ftl.objects())
        .map(|o| ftl.objects().at(o).0)
        .collect();
    let expected: Vec<u32> = model
        .index()
        .head_to_tail()
        .iter()
        .map(|&(_, ppn)| ppn as u32)
        .collect();
    prop_assert_eq!(listed, expected);
    for lpn in 0..exported {
        let object = ftl.objects().get(Lpn(lpn));
        let found = (object != ObjectId(u32::MAX)).then(|| u64::from(ftl.objects().at(object).0));
        prop_assert_eq!(found, model.location(u64::from(lpn)));
    }
    Ok(ftl.core().counters().victims)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn the_plain_device_does_what_a_naive_page_ftl_does(device in drawn(18..26, 6..12).prop_map(device), steps in steps(1)) {
        like_the_plain_model(&device, &steps)?;
    }

    #[test]
    fn the_deduplicating_device_does_what_a_naive_ca_ssd_does(
        device in drawn(18..26, 6..12).prop_map(device),
        steps in steps(400),
        entries in prop_oneof![Just(None), (0u32..200).prop_map(Some)],
        cut in any::<bool>(),
        verify in any::<bool>(),
    ) {
        like_the_dedup_model(&device, &steps, Index { entries, cut, verify })?;
    }
}

/// A fixed history that fills the device and overwrites it many times, with a trim now and then.
fn long_history(device: &Device, values: u32) -> Vec<Step> {
    let mut random = Random::new(4);
    let exported = device.options.exported;
    (0..30 * exported)
        .map(|number| {
            let raw = if number < exported {
                // Addresses are `raw / 3` where `raw` is a multiple of 3.
                3 * number
            } else {
                random.below(u32::MAX)
            };
            match random.below(40) {
                0 => Step::Trim(raw),
                1 => Step::Read(raw),
                _ => Step::Write(raw, random.below(values)),
            }
        })
        .collect()
}

/// The devices of the fixed cases: plain and simple, with each policy, and with everything at once.
fn fixed_devices() -> [Device; 4] {
    let simple = Drawn {
        channels: 1,
        dies: 1,
        planes: 1,
        blocks: 25,
        pages: 8,
        units: 1,
        placement: Placement::Dynamic,
        pool: PoolScope::Plane,
        reversed: false,
        rotate: Rotate::Page,
        victims: VictimChoice::Greedy,
        mode: Mode::Foreground,
        trigger: Trigger::Allocation,
        low: 1,
        above: 0,
        streams: Streams::Separate,
        summary_page: false,
        dynamic: false,
        static_gap: 0,
        endurance: 0,
        sealed_before_window: false,
    };
    let full = Drawn {
        channels: 2,
        planes: 2,
        blocks: 20,
        pages: 6,
        units: 2,
        pool: PoolScope::Die,
        reversed: true,
        rotate: Rotate::Block,
        trigger: Trigger::Dispatch { reads: true },
        low: 2,
        above: 1,
        summary_page: true,
        ..simple
    };
    let fifo = Drawn {
        victims: VictimChoice::Fifo,
        ..simple
    };
    let windowed = Drawn {
        victims: VictimChoice::WindowedGreedy(5),
        ..full
    };
    [simple, full, fifo, windowed].map(device)
}

/// The same with blocks that are filled a few times.
fn mortal_devices() -> Vec<Device> {
    let mortal = |mut device: Device| {
        device.options.wear.endurance = 12;
        device.rules.endurance = 12;
        device
    };
    fixed_devices().map(mortal).into()
}

#[test]
fn the_comparison_of_plain_devices_goes_through_hundreds_of_collections() {
    for device in fixed_devices() {
        let victims = like_the_plain_model(&device, &long_history(&device, 1)).unwrap();
        assert!(victims > 100, "{victims} victims");
    }
}

#[test]
fn the_comparison_goes_on_until_devices_are_worn_out() {
    for device in mortal_devices() {
        let victims = like_the_plain_model(&device, &long_history(&device, 1)).unwrap();
        let fills = victims / u64::from(device.geometry.blocks());
        assert!((8..12).contains(&fills), "{victims} victims");
        let index = Index {
            entries: Some(60),
            cut: true,
            verify: true,
        };
        like_the_dedup_model(&device, &long_history(&device, 1000), index).unwrap();
    }
}

#[test]
fn the_comparison_of_deduplicating_devices_goes_through_hundreds_of_collections() {
    for device in fixed_devices() {
        let indexes = [
            (None, false, false),
            (Some(60), true, true),
            (Some(0), false, false),
        ];
        for (entries, cut, verify) in indexes {
            let index = Index {
                entries,
                cut,
                verify,
            };
            let steps = long_history(&device, 1000);
            let victims = like_the_dedup_model(&device, &steps, index).unwrap();
            assert!(victims > 100, "{victims} victims");
        }
    }
}
