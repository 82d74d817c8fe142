//! A volume that grows keeps its content, instants and snapshots, takes writes where it refused them, and has its old
//! size or its new one after a power cut at any call.

use crate::support;
use flashlore_flash::Lpn;

use std::sync::Arc;

use flashlore_content::PAGE_BYTES;
use flashlore_medium::{CrashMedium, Medium, MediumError, MemoryMedium, Style};
use flashlore_volume::format::Areas;
use flashlore_volume::{
    Encoding, Growth, HistoryIdentity, Identity, Policy, Volume, VolumeError, check, create, load,
};
use support::{Contents, Draw, Shape, contents, page, value_of};

/// Bytes of a medium on which every volume of these tests has room to grow.
const MEDIUM: usize = 6 << 20;

const SHAPE: Shape = Shape {
    exported: 40,
    blocks: 18,
    pages_per_block: 4,
    units_per_page: 2,
    alignment: 512,
    index_entries: 24,
    journal_bytes: 64 << 10,
};

const HISTORY: HistoryIdentity = HistoryIdentity {
    entries: 70,
    least_window: 0,
    protected: false,
};

/// Volumes that use content in different ways.
fn kinds() -> Vec<Identity> {
    let mut kinds: Vec<Identity> = support::POLICIES.map(|p| SHAPE.identity(p)).into();
    kinds.push(Identity {
        history: Some(HISTORY),
        ..SHAPE.identity(Policy::Plain)
    });
    kinds.push(Identity {
        history: Some(HISTORY),
        encoding: Encoding {
            deltas: true,
            compression: true,
        },
        ..SHAPE.identity(Policy::Dedup)
    });
    kinds
}

/// A volume, and what it should hold.
struct World {
    medium: Arc<CrashMedium>,
    volume: Volume,
    now: Contents,
    /// What every address held from an instant on.
    states: Vec<(u64, Contents)>,
    snapshots: Vec<u64>,
    /// Changes for which there was no room.
    refused: u32,
}

impl World {
    fn new(id: &Identity) -> Self {
        let medium = CrashMedium::from_bytes(vec![0xDE; MEDIUM]).with_garbage_after_discard();
        let medium = Arc::new(medium);
        create(&medium, id).unwrap();
        let (volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
        let now = vec![0; id.exported as usize];
        World {
            medium,
            volume,
            states: vec![(id.created, now.clone())],
            now,
            snapshots: Vec::new(),
            refused: 0,
        }
    }

    fn id(&self) -> Identity {
        self.volume.identity().clone()
    }

    /// The same volume after a power cut that kept this.
    fn after_cut(&self, image: Vec<u8>) -> Self {
        let medium = CrashMedium::from_bytes(image).with_garbage_after_discard();
        let medium = Arc::new(medium);
        let (volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
        let mut now = self.now.clone();
        now.resize(volume.exported() as usize, 0);
        World {
            medium,
            volume,
            now,
            states: self.states.clone(),
            snapshots: self.snapshots.clone(),
            refused: 0,
        }
    }

    /// Notes the state after a change, unless there was no room for it.
    fn changed(&mut self, done: Result<(), VolumeError>, next: Contents) -> bool {
        match done {
            Ok(()) => {}
            Err(
                VolumeError::NoSpace { .. }
                | VolumeError::Held { .. }
                | VolumeError::HistoryFull { .. },
            ) => {
                self.refused += 1;
                return false;
            }
            Err(error) => panic!("{error}"),
        }
        if let Ok(status) = self.volume.history_status() {
            self.states.push((status.newest, next.clone()));
        }
        self.now = next;
        true
    }

    fn write(&mut self, lpn: Lpn, value: u32) -> bool {
        let done = self.volume.write(0, lpn, &page(value));
        let mut next = self.now.clone();
        next[lpn.index()] = value;
        self.changed(done, next)
    }

    fn at(&self, instant: u64) -> &Contents {
        let after = self.states.partition_point(|(stamp, _)| *stamp <= instant);
        &self.states[after - 1].1
    }

    fn step(&mut self, draw: &mut Draw) {
        let lpn = draw.below(self.now.len() as u32);
        let has_history = self.id().history.is_some();
        match draw.below(100) {
            0..10 => {
                let done = self.volume.trim(0, Lpn(lpn));
                let mut next = self.now.clone();
                next[lpn as usize] = 0;
                self.changed(done, next);
            }
            10..16 => self.volume.flush().unwrap(),
            16..19 => self.volume.checkpoint().unwrap(),
            19..22 => self.reopen(),
            22..26 if has_history => {
                match self.volume.snapshot(0) {
                    Ok(instant) if self.snapshots.last() == Some(&instant) => {}
                    Ok(instant) => self.snapshots.push(instant),
                    Err(VolumeError::HistoryFull { .. }) => self.refused += 1,
                    Err(error) => panic!("{error}"),
                }
                if self.snapshots.len() == 4 {
                    let gone = self.snapshots.remove(1);
                    assert!(self.volume.delete_snapshot(0, gone).unwrap());
                }
            }
            26..28 if has_history => {
                let status = self.volume.history_status().unwrap();
                let back = u64::from(draw.below(30)).min(status.newest - status.oldest);
                let instant = status.newest - back;
                let done = self.volume.rewind_to(0, instant).map(|_| ());
                let mut next = self.at(instant).clone();
                next.resize(self.now.len(), 0);
                self.changed(done, next);
            }
            _ => {
                let value = 1 + draw.below(60);
                self.write(Lpn(lpn), value);
            }
        }
    }

    fn reopen(&mut self) {
        self.volume.flush().unwrap();
        (self.volume, _) = Volume::open(Arc::clone(&self.medium)).unwrap();
    }

    fn grow(&mut self, to: Identity) {
        self.volume.flush().unwrap();
        grow(&self.medium, to).unwrap();
        (self.volume, _) = Volume::open(Arc::clone(&self.medium)).unwrap();
        self.now.resize(self.volume.exported() as usize, 0);
    }

    /// Everything is as it should be, now and at instants.
    fn compare(&mut self) {
        self.volume.check().unwrap();
        assert_eq!(contents(&mut self.volume), self.now);
        let Ok(status) = self.volume.history_status() else {
            return;
        };
        assert_eq!(status.snapshots, self.snapshots);
        let stamps = self.states.iter().map(|(stamp, _)| *stamp);
        let window = stamps.filter(|&stamp| stamp >= status.oldest).step_by(11);
        let mut instants = self.snapshots.clone();
        instants.extend(window.chain([status.oldest, status.newest]));
        for instant in instants {
            let mut expected = self.at(instant).clone();
            expected.resize(self.now.len(), 0);
            for (lpn, value) in (0..).zip(expected) {
                let mut got = [1; PAGE_BYTES];
                self.volume.read_at(instant, Lpn(lpn), &mut got).unwrap();
                assert_eq!(value_of(&got), Some(value), "page {lpn} at {instant}");
            }
        }
    }
}

fn grow(medium: &Arc<CrashMedium>, to: Identity) -> Result<(), VolumeError> {
    let growth = Growth::plan(&load::superblock(medium)?, to)?;
    assert!(growth.bytes() <= medium.len());
    growth.carry_out(Arc::clone(medium)).map(drop)
}

/// A volume that is larger in some way.
fn larger(id: &Identity, draw: &mut Draw) -> Identity {
    let mut to = id.clone();
    let mut more = |often: u32, most: u32| match draw.below(100) < often {
        true => 1 + draw.below(most),
        false => 0,
    };
    to.exported += more(60, 30);
    to.blocks += more(50, 5);
    to.index_entries += more(40, 20);
    to.journal_bytes += u64::from(more(20, 3)) * 4096;
    if let Some(history) = &mut to.history {
        history.entries += more(50, 40);
    }
    if to == *id {
        to.exported += 1;
    }
    to
}

#[test]
fn random_growth_between_random_histories_keeps_everything() {
    let mut refused = 0;
    for (kind, id) in kinds().into_iter().enumerate() {
        for seed in 0..6 {
            let mut draw = Draw::new(1 + seed + 100 * kind as u64);
            let mut world = World::new(&id);
            for _ in 0..6 {
                for _ in 0..10 + draw.below(150) {
                    world.step(&mut draw);
                }
                let to = larger(&world.id(), &mut draw);
                world.grow(to.clone());
                assert_eq!(world.id(), to);
                world.compare();
            }
            refused += world.refused;
            world.volume.close().unwrap();
            let report = check(Arc::clone(&world.medium), true).unwrap();
            assert!(report.is_clean(), "{report:?}");
        }
    }
    assert!(refused > 0, "no volume was ever full");
}

/// Cuts at every call of a growth; then goes on, closes, and grows (again).
#[test]
fn a_power_cut_at_any_call_leaves_the_old_size_or_the_new() {
    for (kind, id) in kinds().into_iter().enumerate() {
        let mut draw = Draw::new(77 + kind as u64);
        let mut world = World::new(&id);
        for _ in 0..150 {
            world.step(&mut draw);
        }
        // Metadata behind those of an earlier growth, before them, or where those were that were given up.
        for round in 0..3 {
            let to = larger(&world.id(), &mut draw);
            let cuts = every_cut(&mut world, &to, &mut draw);
            assert!(cuts > 20, "only {cuts} calls");
            world.grow(to);
            world.compare();
            for _ in 0..40 * round {
                world.step(&mut draw);
            }
        }
    }
}

fn every_cut(world: &mut World, to: &Identity, draw: &mut Draw) -> u64 {
    world.volume.flush().unwrap();
    let before = world.id();
    let image = world.medium.survivors(0, Style::All);
    let medium = |cut: u64| {
        let medium = CrashMedium::from_bytes(image.clone()).with_garbage_after_discard();
        medium.cut_at(cut);
        Arc::new(medium)
    };
    let whole = medium(u64::MAX);
    grow(&whole, to.clone()).unwrap();
    let calls = whole.calls();
    let (mut old, mut new) = (0, 0);
    for cut in 1..=calls {
        let medium = medium(cut);
        let done = grow(&medium, to.clone());
        assert!(done.is_err() || cut == calls, "it ended before call {cut}");
        let style = Style::SEARCH[draw.below(Style::SEARCH.len() as u32) as usize];
        let left = medium.survivors(u64::from(draw.below(1000)), style);
        let mut world = world.after_cut(left);
        match world.id() {
            found if found == *to => new += 1,
            found if found == before => old += 1,
            found => panic!("a cut at call {cut} left {found:?}"),
        }
        world.compare();
        for _ in 0..draw.below(30) {
            world.step(draw);
        }
        let next = larger(to, draw);
        world.grow(next);
        world.compare();
    }
    assert!(old > 5 && new > 0, "{old} old and {new} new sizes");
    calls
}

#[test]
fn what_was_full_takes_writes_again() {
    // Logical: every address holds something, there are no more.
    let mut world = World::new(&SHAPE.identity(Policy::Plain));
    for lpn in 0..40 {
        assert!(world.write(Lpn(lpn), lpn + 1));
    }
    let beyond = world.volume.write(0, Lpn(40), &page(9));
    assert!(matches!(beyond, Err(VolumeError::OutOfRange { .. })));
    let mut to = world.id();
    to.exported += 5;
    world.grow(to);
    assert!(world.write(Lpn(44), 9));
    world.compare();

    // Physical: no room for another value.
    let mut id = SHAPE.identity(Policy::Dedup);
    (id.blocks, id.exported) = (8, 80);
    let mut world = World::new(&id);
    let fitted = (0..80)
        .filter(|&lpn| world.write(Lpn(lpn), lpn + 1))
        .count();
    assert!((10..70).contains(&fitted), "{fitted} pages fitted");
    let mut to = world.id();
    to.blocks += 14;
    world.grow(to);
    let fitted = (0..80)
        .filter(|&lpn| world.write(Lpn(lpn), lpn + 1))
        .count();
    assert_eq!(fitted, 80);
    world.compare();

    // History: snapshots hold all entries.
    let mut id = SHAPE.identity(Policy::Plain);
    id.history = Some(HistoryIdentity {
        entries: 30,
        ..HISTORY
    });
    let mut world = World::new(&id);
    (0..40).for_each(|lpn| assert!(world.write(Lpn(lpn), 1)));
    world.snapshots.push(world.volume.snapshot(0).unwrap());
    let remembered = (0..40).filter(|&lpn| world.write(Lpn(lpn), 2)).count();
    assert_eq!(remembered, 30);
    let full = world.volume.write(0, Lpn(39), &page(3));
    assert!(matches!(full, Err(VolumeError::HistoryFull { .. })));
    let mut to = world.id();
    to.history = Some(HistoryIdentity {
        entries: 50,
        ..HISTORY
    });
    world.grow(to);
    assert!((30..40).all(|lpn| world.write(Lpn(lpn), 2)));
    world.compare();
}

/// A store on which what was discarded stays.
#[derive(Clone)]
struct Keeping(Arc<MemoryMedium>);

impl Medium for Keeping {
    fn len(&self) -> u64 {
        self.0.len()
    }

    fn alignment(&self) -> u32 {
        self.0.alignment()
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), MediumError> {
        self.0.read(offset, buf)
    }

    fn write(&self, offset: u64, buf: &[u8]) -> Result<(), MediumError> {
        self.0.write(offset, buf)
    }

    fn discard(&self, _offset: u64, _len: u64) -> Result<(), MediumError> {
        Ok(())
    }

    fn sync(&self) -> Result<(), MediumError> {
        self.0.sync()
    }
}

/// The root of a former life in the same place must not stand in for one that has rotted.
#[test]
fn metadata_that_lay_in_the_same_place_do_not_come_back() {
    let medium = Keeping(Arc::new(MemoryMedium::new(MEDIUM)));
    let mut id = SHAPE.identity(Policy::Plain);
    create(&medium, &id).unwrap();
    let first = load::superblock(&medium).unwrap().metadata;
    let (mut volume, _) = Volume::open(medium.clone()).unwrap();
    (0..40).for_each(|lpn| volume.write(0, Lpn(lpn), &page(lpn + 1)).unwrap());
    volume.close().unwrap();
    for _ in 0..2 {
        id.exported += 1;
        let superblock = load::superblock(&medium).unwrap();
        let growth = Growth::plan(&superblock, id.clone()).unwrap();
        growth.carry_out(medium.clone()).unwrap();
    }
    let superblock = load::superblock(&medium).unwrap();
    assert_eq!(superblock.metadata, first, "they are not where they were");
    let areas = Areas::at(&id, superblock.metadata).unwrap();
    let root = load::root(&medium, &id, &areas).unwrap();
    medium
        .0
        .flip(areas.store.root(root.checkpoint) + 20, 3)
        .unwrap();
    let damaged = Volume::open(medium).map(|_| ()).unwrap_err();
    assert!(matches!(damaged, VolumeError::Damaged(_)), "{damaged}");
}

#[test]
fn less_is_refused_and_so_is_another_volume() {
    let id = kinds().pop().unwrap();
    let world = World::new(&id);
    drop(world.volume);
    let mut less = [const { None }; 5];
    less.fill(Some(id.clone()));
    let [exported, blocks, index, entries, journal] =
        less.each_mut().map(|id| id.as_mut().unwrap());
    exported.exported -= 1;
    blocks.blocks -= 1;
    index.index_entries -= 1;
    entries.history.as_mut().unwrap().entries -= 1;
    journal.journal_bytes -= 4096;
    for id in less.into_iter().flatten() {
        let refused = grow(&world.medium, id).unwrap_err();
        assert!(matches!(refused, VolumeError::Shrinks { .. }), "{refused}");
    }
    let others = [
        Identity {
            policy: Policy::Plain,
            ..id.clone()
        },
        Identity {
            history: None,
            ..id.clone()
        },
        Identity {
            pages_per_block: 5,
            ..id.clone()
        },
    ];
    for other in others {
        let none = other.history.is_none();
        let refused = grow(&world.medium, other).unwrap_err();
        match none {
            true => assert!(matches!(refused, VolumeError::Shrinks { .. }), "{refused}"),
            false => assert!(matches!(refused, VolumeError::AnotherVolume), "{refused}"),
        }
    }
    let mut huge = id;
    huge.blocks = 1000;
    let growth = Growth::plan(&load::superblock(&world.medium).unwrap(), huge).unwrap();
    let refused = growth.carry_out(Arc::clone(&world.medium)).unwrap_err();
    assert!(matches!(refused, VolumeError::TooSmall { .. }), "{refused}");
}
