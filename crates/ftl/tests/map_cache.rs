//! The map partly in RAM: against a naive model of cache and translation pages, and its identities.

mod common;

use common::{Random, slc};
use flashlore_content::{DedupOptions, Ledger, NoCensus, PageTag};
use flashlore_flash::geometry::Counts;
use flashlore_flash::memory::MemoryFlash;
use flashlore_flash::record::{Op, Recorded};
use flashlore_flash::rules::Checked;
use flashlore_flash::sim::NandSim;
use flashlore_flash::{Cause, Completion, Flash, Geometry, Ppn, Tag, When};
use flashlore_ftl::map_cache::{Access, Demand, ENTRIES_PER_PAGE, MapKeeper};
use flashlore_ftl::{
    Counters, DedupFtl, FtlError, FtlOptions, Mode, PlainFtl, PoolScope, Streams, Trigger,
    VictimChoice, Watermarks,
};
use flashlore_oracle::map_cache::MapModel;
use proptest::prelude::*;
use proptest::sample::select;

type Medium = Recorded<Checked<MemoryFlash<PageTag>>>;

/// The map of the product and the naive one, asked and told the same.
struct Both {
    fast: Demand<PageTag>,
    model: MapModel,
}

impl Both {
    fn new(exported: u32, entries: u32, shared: bool) -> Self {
        let bytes = u64::from(entries) * 8;
        Both {
            fast: Demand::new(exported, bytes, shared, PageTag(7)),
            model: MapModel::new(entries as usize, ENTRIES_PER_PAGE.into(), shared),
        }
    }
}

impl MapKeeper<PageTag> for Both {
    const DEMAND: bool = true;

    fn access(&mut self, lpn: u32) -> Access {
        let access = MapKeeper::<PageTag>::access(&mut self.fast, lpn);
        let expected = match self.model.access(lpn.into()) {
            (true, _) => Access::Hit,
            (false, page) => Access::Miss {
                write_back: page.map(|p| p as u32),
            },
        };
        assert_eq!(access, expected, "entry {lpn}");
        access
    }

    fn changed(&mut self, lpn: u32) {
        self.fast.changed(lpn);
        self.model.changed(lpn.into());
    }

    fn refers(&mut self, lpn: u32, object: Option<u32>) {
        self.fast.refers(lpn, object);
        self.model.refers(lpn.into(), object.map(u64::from));
    }

    fn moved(&mut self, owner: u32) {
        self.fast.moved(owner);
        self.model.moved(owner.into());
        assert_eq!(self.stale() as usize, self.model.stale().len());
    }

    fn page_of_owner(&self, owner: u32) -> Option<u32> {
        self.fast.page_of_owner(owner)
    }

    fn unit_of_page(&self, page: u32) -> Option<(u32, PageTag)> {
        self.fast.unit_of_page(page)
    }

    fn pages(&self) -> u32 {
        MapKeeper::<PageTag>::pages(&self.fast)
    }

    fn location(&self, page: u32) -> Ppn {
        self.fast.location(page)
    }

    fn place(&mut self, page: u32, to: Ppn) {
        self.fast.place(page, to);
    }

    fn written(&mut self, page: u32) {
        self.fast.written(page);
        self.model.written(page.into());
    }

    fn stale(&self) -> u32 {
        MapKeeper::<PageTag>::stale(&self.fast)
    }

    fn is_stale(&self, page: u32) -> bool {
        let stale = MapKeeper::<PageTag>::is_stale(&self.fast, page);
        assert_eq!(stale, self.model.stale().contains(&page.into()));
        stale
    }

    fn first_stale(&mut self) -> Option<u32> {
        let first = self.fast.first_stale();
        assert!(first.is_none_or(|page| self.model.stale().contains(&page.into())));
        first
    }

    fn check(&self) -> Result<(), String> {
        MapKeeper::<PageTag>::check(&self.fast)
    }
}

/// Devices of two to eight thousand pages, so that the map has several translation pages.
#[derive(Debug, Clone)]
struct Device {
    geometry: Geometry,
    options: FtlOptions,
    entries: u32,
}

fn devices() -> impl Strategy<Value = Device> {
    let shape = (1u32..3, 1u32..3, 20u32..40, select(vec![1u32, 4]));
    let policy = (
        select(vec![
            VictimChoice::Greedy,
            VictimChoice::Fifo,
            VictimChoice::CostBenefit,
        ]),
        select(vec![Mode::Foreground, Mode::Background]),
        select(vec![Trigger::Allocation, Trigger::Dispatch { reads: true }]),
        select(vec![Streams::Separate, Streams::Shared]),
        select(vec![PoolScope::Plane, PoolScope::Device]),
        select(vec![0u32, 3]),
        1u32..3,
    );
    let entries = select(vec![1u32, 7, 300, 2000, 100_000]);
    (shape, policy, entries).prop_map(|(shape, policy, entries)| {
        let (channels, planes, blocks, units) = shape;
        let (victims, mode, trigger, streams, pool, static_gap, low) = policy;
        let geometry = Geometry::new(Counts {
            channels,
            packages_per_channel: 1,
            dies_per_package: 1,
            planes_per_die: planes,
            blocks_per_plane: blocks,
            pages_per_block: 64 / units,
            page_bytes: units * 4096,
        })
        .unwrap();
        let kept = low + 7;
        let mut options = FtlOptions::new(geometry.planes() * (blocks - kept) * 64);
        options.collect.victims = victims;
        options.collect.mode = mode;
        options.collect.trigger = trigger;
        options.collect.watermarks = Watermarks { low, high: low };
        options.streams = streams;
        options.layout.pool = pool;
        options.wear.static_gap = static_gap;
        Device {
            geometry,
            options,
            entries,
        }
    })
}

fn medium(geometry: &Geometry) -> Medium {
    Recorded::new(Checked::new(MemoryFlash::new(geometry.clone())))
}

/// Counts what the medium saw of translation pages: reads, programs of new ones, programs of copies.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Seen {
    reads: u64,
    new: u64,
    copies: u64,
    others: u64,
}

impl Seen {
    fn see(&mut self, ops: &[Op], pages: u32) {
        for op in ops {
            match *op {
                Op::Read { cause, .. } => self.reads += u64::from(cause == Cause::Map),
                Op::Program {
                    owner: Some(owner),
                    from,
                    ..
                } => {
                    let count = match (u32::MAX - 1 - owner < pages, from) {
                        (false, _) => &mut self.others,
                        (true, Some(_)) => &mut self.copies,
                        (true, None) => &mut self.new,
                    };
                    *count += 1;
                }
                _ => {}
            }
        }
    }
}

/// What has been counted is what the model expects and the medium saw.
fn compare(c: &Counters, model: &MapModel, seen: Seen, units: u32) -> Result<(), TestCaseError> {
    prop_assert_eq!((c.map_hits, c.map_misses), (model.hits, model.misses));
    prop_assert_eq!(c.programs_map, model.writes);
    prop_assert_eq!(c.page_reads_map, seen.reads);
    if units == 1 {
        prop_assert_eq!(seen.new, c.programs_map);
        prop_assert_eq!(seen.reads, model.reads);
        prop_assert_eq!(seen.new + seen.copies + seen.others, c.programs());
    } else {
        // What still waits in a page buffer was not programmed, and is read from there.
        prop_assert!(seen.new <= c.programs_map && seen.reads <= model.reads);
    }
    Ok(())
}

/// Three quarters of the writes go to a quarter of the device.
fn address(random: &mut Random, exported: u32) -> u32 {
    match random.below(4) {
        0 => random.below(exported),
        _ => random.below(exported / 4),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn the_plain_device_reads_and_writes_the_translation_pages_of_a_naive_model(
        device in devices(),
        seed in any::<u64>(),
        rounds in 1u32..5,
    ) {
        let exported = device.options.exported;
        let both = Both::new(exported, device.entries, false);
        let mut ftl =
            PlainFtl::with_keeper(medium(&device.geometry), device.options.clone(), both).unwrap();
        let mut random = Random::new(seed);
        let mut stored = vec![None; exported as usize];
        let mut seen = Seen::default();
        let pages = exported.div_ceil(ENTRIES_PER_PAGE);
        for number in 0..exported * rounds {
            let now = u64::from(number);
            let lpn = address(&mut random, exported);
            ftl.advance(now).unwrap();
            match random.below(20) {
                0 => {
                    ftl.trim(lpn).unwrap();
                    stored[lpn as usize] = None;
                }
                1..4 => {
                    let (found, _) = ftl.read(now, lpn, Cause::Host, Tag::NONE).unwrap();
                    prop_assert_eq!(found, stored[lpn as usize]);
                }
                _ => {
                    ftl.write(When::now(now), lpn, PageTag(number), Tag::NONE).unwrap();
                    stored[lpn as usize] = Some(PageTag(number));
                }
            }
            seen.see(&ftl.core_mut().flash_mut().take(), pages);
            if number % 1999 == 0 {
                ftl.check().map_err(TestCaseError::fail)?;
            }
        }
        ftl.check().map_err(TestCaseError::fail)?;
        compare(ftl.core().counters(), &ftl.core().keeper().model, seen, device.geometry.units_per_page())?;
        for lpn in 0..exported {
            let (found, _) = ftl.read(u64::MAX / 2, lpn, Cause::Host, Tag::NONE).unwrap();
            prop_assert_eq!(found, stored[lpn as usize]);
        }
    }

    #[test]
    fn the_deduplicating_device_does_too_with_an_entry_for_each_page_that_shares(
        device in devices(),
        seed in any::<u64>(),
        values in select(vec![3u32, 500, 1_000_000]),
    ) {
        let exported = device.options.exported;
        let both = Both::new(exported, device.entries, true);
        let dedup = DedupOptions {
            index_entries: Some(200),
            fingerprint_bits: 128,
            verify: false,
            bypass: None,
        };
        let (geometry, options) = (&device.geometry, device.options.clone());
        let mut ftl = DedupFtl::with_keeper(medium(geometry), options, dedup, NoCensus, both).unwrap();
        let mut random = Random::new(seed);
        let mut stored = vec![None; exported as usize];
        let mut seen = Seen::default();
        let pages = exported.div_ceil(ENTRIES_PER_PAGE);
        for number in 0..exported * 2 {
            let now = u64::from(number);
            let lpn = address(&mut random, exported);
            ftl.advance(now).unwrap();
            match random.below(20) {
                0 => {
                    ftl.trim(lpn).unwrap();
                    stored[lpn as usize] = None;
                }
                1..3 => {
                    let (found, _) = ftl.read(now, lpn, Cause::Host, Tag::NONE).unwrap();
                    prop_assert_eq!(found, stored[lpn as usize]);
                }
                _ => {
                    let value = PageTag(random.below(values));
                    ftl.write(When::now(now), lpn, value, Tag::NONE).unwrap();
                    stored[lpn as usize] = Some(value);
                }
            }
            seen.see(&ftl.core_mut().flash_mut().take(), pages);
            if number % 1999 == 0 {
                ftl.check().map_err(TestCaseError::fail)?;
            }
        }
        ftl.check().map_err(TestCaseError::fail)?;
        compare(ftl.core().counters(), &ftl.core().keeper().model, seen, geometry.units_per_page())?;
    }
}
