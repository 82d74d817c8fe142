//! Maps partly in RAM: that of the product beside the naive one, and devices on which they matter.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use flashlore_flash::geometry::Counts;
use flashlore_flash::memory::MemoryFlash;
use flashlore_flash::{Geometry, Lpn, MapPageId, ObjectId, Ppn};
use flashlore_ftl::error::OptionsError;
use flashlore_ftl::map_cache::{
    Access, CacheOptions, CachedMap, ENTRIES_PER_PAGE, EntryKind, MapCache, MapEntry,
};
use flashlore_ftl::{
    FtlOptions, Mode, PlainFtl, PoolScope, Streams, Trigger, VictimChoice, Watermarks,
};
use flashlore_oracle::map_cache::{MapModel, Refers};
use proptest::prelude::*;
use proptest::sample::select;

/// What happened since somebody looked.
#[derive(Debug, Default)]
pub struct Notes {
    /// Parts of entries that changed: a logical page and a table.
    pub changed: BTreeSet<(u64, usize)>,
    /// Entries that made room.
    pub dropped: Vec<Lpn>,
}

/// The map of the product and the naive one, asked and told the same.
pub struct Both<P> {
    pub fast: CachedMap<P>,
    pub model: MapModel,
    /// There may be no room for a translation page.
    pub mortal: bool,
    /// Entries change only while they are in RAM.
    pub cached_alone: bool,
    pub notes: Rc<RefCell<Notes>>,
    table_pages: u32,
}

impl<P> Both<P> {
    pub fn new(device: &Device, kind: EntryKind, content: P) -> Self {
        let exported = device.options.exported;
        let cache = CacheOptions {
            kind,
            ..device.cache
        };
        let (entries, protected) = (cache.entries as usize, cache.protected as usize);
        let shared = kind != EntryKind::Direct;
        Both {
            mortal: device.options.wear.endurance > 0,
            cached_alone: kind != EntryKind::Fused,
            fast: CachedMap::new(exported, cache, content),
            model: MapModel::new(
                entries,
                protected,
                ENTRIES_PER_PAGE.into(),
                exported.into(),
                shared,
            )
            .with_journals(cache.journal_pages.into()),
            notes: Rc::default(),
            table_pages: exported.div_ceil(ENTRIES_PER_PAGE),
        }
    }
}

impl<P> Both<P> {
    fn note_changed(&mut self) {
        let changed = &mut self.notes.borrow_mut().changed;
        changed.append(&mut self.model.reported);
    }
}

impl<P: Clone> MapCache<P> for Both<P> {
    const CACHED: bool = true;

    fn access(&mut self, lpn: Lpn) -> Access {
        if self.mortal {
            self.model.forgive();
        }
        let access = MapCache::<P>::access(&mut self.fast, lpn);
        let (hit, dropped, pages) = self.model.access(lpn.into());
        let pages: Vec<u32> = pages.into_iter().map(|p| p as u32).collect();
        let of = |second| {
            pages
                .iter()
                .copied()
                .find(|&p| (p >= self.table_pages) == second)
        };
        let expected = Access::Miss {
            dropped: dropped.map(|lpn| Lpn(lpn as u32)),
            write_back: [of(false), of(true)].map(|page| page.map(MapPageId)),
        };
        assert_eq!(
            access,
            if hit { Access::Hit } else { expected },
            "entry {lpn}"
        );
        self.notes
            .borrow_mut()
            .dropped
            .extend(dropped.map(|lpn| Lpn(lpn as u32)));
        access
    }

    fn pages_of(&mut self, lpn: Lpn) -> [Option<MapPageId>; 2] {
        let found = MapCache::<P>::pages_of(&mut self.fast, lpn);
        let pages = self.model.read_entry(lpn.into());
        let numbers = found.into_iter().flatten().map(u64::from);
        assert_eq!(numbers.collect::<Vec<_>>(), pages, "entry {lpn}");
        found
    }

    fn holds(&self, lpn: Lpn) -> bool {
        let holds = MapCache::<P>::holds(&self.fast, lpn);
        assert_eq!(holds, self.model.is_cached(lpn.into()));
        holds
    }

    fn changed(&mut self, lpn: Lpn) {
        self.fast.changed(lpn);
        self.model.changed(lpn.into());
    }

    fn refers(&mut self, lpn: Lpn, entry: MapEntry) {
        assert!(
            !self.cached_alone || self.holds(lpn),
            "entry {lpn} changed and was not in RAM"
        );
        self.fast.refers(lpn, entry);
        let to = Refers {
            object: entry.object.map(u64::from),
            base: entry.base.map(u64::from),
            waits: entry.waits,
        };
        self.model.refers(lpn.into(), to);
        self.note_changed();
    }

    fn moved(&mut self, object: ObjectId) {
        self.fast.moved(object);
        self.model.moved(object.into());
        self.note_changed();
        assert_eq!(self.stale() as usize, self.model.stale().len());
    }

    fn waits(&mut self, object: ObjectId) {
        self.fast.waits(object);
        self.model.waits(object.into());
    }

    fn materialized(&mut self, object: ObjectId) {
        self.fast.materialized(object);
        self.model.materialized(object.into());
        self.note_changed();
        assert_eq!(self.stale() as usize, self.model.stale().len());
    }

    fn content_of(&self, page: MapPageId) -> Option<P> {
        self.fast.content_of(page)
    }

    fn pages(&self) -> u32 {
        MapCache::<P>::pages(&self.fast)
    }

    fn location(&self, page: MapPageId) -> Ppn {
        self.fast.location(page)
    }

    fn place(&mut self, page: MapPageId, to: Ppn) {
        self.fast.place(page, to);
    }

    fn written(&mut self, page: MapPageId) {
        self.fast.written(page);
        self.model.written(page.into());
    }

    fn due(&mut self) -> Option<MapPageId> {
        let due = MapCache::<P>::due(&mut self.fast);
        assert_eq!(due.is_some(), self.model.journal_is_due());
        due
    }

    fn journalled(&mut self) {
        MapCache::<P>::journalled(&mut self.fast);
        self.model.journalled();
    }

    fn begin_fold(&mut self) -> bool {
        let folds = MapCache::<P>::begin_fold(&mut self.fast);
        assert_eq!(folds, self.model.begin_fold());
        assert_eq!(self.stale() as usize, self.model.stale().len());
        folds
    }

    fn take_folded(&mut self) -> Option<MapPageId> {
        let folded = MapCache::<P>::take_folded(&mut self.fast);
        assert_eq!(folded.is_some(), self.model.take_folded());
        folded
    }

    fn stale(&self) -> u32 {
        MapCache::<P>::stale(&self.fast)
    }

    fn is_stale(&self, page: MapPageId) -> bool {
        let stale = MapCache::<P>::is_stale(&self.fast, page);
        assert_eq!(stale, self.model.stale().contains(&page.into()));
        stale
    }

    fn first_stale(&mut self) -> Option<MapPageId> {
        let first = self.fast.first_stale();
        assert!(first.is_none_or(|page| self.model.stale().contains(&page.into())));
        first
    }

    fn agrees(&self, lpn: Lpn, entry: MapEntry) -> bool {
        MapCache::<P>::agrees(&self.fast, lpn, entry)
    }

    fn check(&self) -> Result<(), String> {
        MapCache::<P>::check(&self.fast)
    }
}

/// Devices of two to eight thousand pages, so that the map has several translation pages.
#[derive(Debug, Clone)]
pub struct Device {
    pub geometry: Geometry,
    pub options: FtlOptions,
    pub cache: CacheOptions,
}

pub fn devices() -> impl Strategy<Value = Device> {
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
        any::<bool>(),
        select(vec![0u32, 0, 4]),
    );
    let entries = select(vec![1u32, 7, 300, 2000, 100_000]);
    let cache = (select(vec![0u32, 30, 80]), select(vec![0u32, 0, 1, 3]));
    (shape, policy, entries, cache).prop_map(
        |(shape, policy, entries, (protected, journal_pages))| {
            let (channels, planes, blocks, units) = shape;
            let (victims, mode, trigger, streams, pool, static_gap, low, tight, endurance) = policy;
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
            let kept = low + 8;
            let mut options = FtlOptions::new(geometry.planes() * (blocks - kept) * 64);
            options.collect.victims = victims;
            options.collect.mode = mode;
            options.collect.trigger = trigger;
            options.collect.watermarks = Watermarks { low, high: low };
            options.streams = streams;
            options.layout.pool = pool;
            options.wear.static_gap = static_gap;
            options.wear.endurance = endurance;
            if tight {
                options.exported = most(&geometry, &options, journal_pages);
            }
            Device {
                geometry,
                options,
                cache: CacheOptions {
                    entries,
                    protected: entries * protected / 100,
                    kind: EntryKind::Direct,
                    journal_pages,
                },
            }
        },
    )
}

/// The most that can be exported.
fn most(geometry: &Geometry, options: &FtlOptions, journal_pages: u32) -> u32 {
    let exported = geometry.units();
    let options = FtlOptions {
        exported,
        ..options.clone()
    };
    let cache = CacheOptions {
        entries: 1,
        protected: 0,
        kind: EntryKind::Direct,
        journal_pages,
    };
    let medium: MemoryFlash<u32> = MemoryFlash::new(geometry.clone());
    match PlainFtl::with_map_cache(medium, options, CachedMap::new(exported, cache, 0)) {
        Err(OptionsError::NoSpare { most, .. }) => most as u32,
        _ => panic!("all units of a device cannot be exported"),
    }
}
