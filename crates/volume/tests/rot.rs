//! Bits of stored pages flip while a volume of any kind is in use: reads give what was written or an error, now and
//! for instants past, and everything else goes on.

use crate::support;

use std::sync::Arc;

use flashlore_content::PAGE_BYTES;
use flashlore_flash::{Lpn, Ppn};
use flashlore_medium::MemoryMedium;
use flashlore_volume::format::Areas;
use flashlore_volume::{
    Encoding, Finding, HistoryIdentity, Identity, Volume, VolumeError, bytes_needed, check, create,
};
use support::{Contents, Draw, POLICIES, Shape, page, value_of};

const SHAPE: Shape = Shape {
    exported: 40,
    blocks: 14,
    pages_per_block: 4,
    units_per_page: 2,
    alignment: 512,
    index_entries: 16,
    journal_bytes: 64 << 10,
};

struct World {
    volume: Option<Volume>,
    medium: Arc<MemoryMedium>,
    areas: Areas,
    present: Contents,
    /// What every address held from an instant on.
    past: Vec<(u64, Contents)>,
    /// Findings that still hold, and how many do not any more.
    known: Vec<Finding>,
    settled: usize,
    flips: u32,
    errors: u32,
    reads: u32,
}

impl World {
    fn new(id: &Identity) -> World {
        let medium = Arc::new(MemoryMedium::new(bytes_needed(id).unwrap() as usize));
        create(&*medium, id).unwrap();
        let (volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
        let present = vec![0; id.exported as usize];
        World {
            volume: Some(volume),
            medium,
            areas: Areas::new(id).unwrap(),
            past: vec![(0, present.clone())],
            present,
            known: Vec::new(),
            settled: 0,
            flips: 0,
            errors: 0,
            reads: 0,
        }
    }

    fn volume(&mut self) -> &mut Volume {
        self.volume.as_mut().unwrap()
    }

    /// What a change did to the contents, unless there was no room for it.
    fn settle(&mut self, done: Result<(), VolumeError>, after: Contents) {
        match done {
            Ok(()) => {
                let stamp = self.volume().history_status().map_or(0, |h| h.newest);
                self.present = after;
                self.past.push((stamp, self.present.clone()));
            }
            Err(
                VolumeError::NoSpace { .. }
                | VolumeError::Held { .. }
                | VolumeError::HistoryFull { .. },
            ) => {}
            Err(error) => panic!("it failed: {error}"),
        }
    }

    fn write(&mut self, lpn: Lpn, value: u32) {
        let done = self.volume().write(1, lpn, &page(value));
        let mut after = self.present.clone();
        after[lpn.index()] = value;
        self.settle(done, after);
    }

    fn trim(&mut self, lpn: Lpn) {
        let done = self.volume().trim(1, lpn);
        let mut after = self.present.clone();
        after[lpn.index()] = 0;
        self.settle(done, after);
    }

    fn rewind_to(&mut self, draw: &mut Draw) {
        let Ok(status) = self.volume().history_status() else {
            return;
        };
        let known = self
            .past
            .iter()
            .filter(|(stamp, _)| *stamp >= status.oldest);
        let known: Vec<&(u64, Contents)> = known.collect();
        if known.is_empty() {
            return;
        }
        let (instant, then) = known[draw.below(known.len() as u32) as usize].clone();
        let done = self.volume().rewind_to(1, instant).map(|_| ());
        self.settle(done, then);
    }

    /// Flips a bit of a page that something may need.
    fn flip(&mut self, draw: &mut Draw) {
        let lpn = draw.below(SHAPE.exported);
        let Some(unit) = self.volume().location(Lpn(lpn)) else {
            return;
        };
        let unit = match draw.below(3) {
            0 => Ppn(draw.below(SHAPE.blocks * SHAPE.pages_per_block * SHAPE.units_per_page)),
            _ => unit,
        };
        let at = self.areas.unit(unit) + u64::from(draw.below(PAGE_BYTES as u32));
        self.medium.flip(at, (draw.below(8)) as u8).unwrap();
        self.flips += 1;
    }

    fn compare(&mut self, read: Result<u32, VolumeError>, expected: u32, what: &str) {
        self.reads += 1;
        match read {
            Ok(found) => assert_eq!(found, expected, "{what}"),
            Err(VolumeError::Unreadable { .. }) => {
                assert!(
                    self.flips > 0,
                    "{what} cannot be read, and nothing has flipped"
                );
                self.errors += 1;
            }
            Err(error) => panic!("{what}: {error}"),
        }
    }

    fn verify(&mut self) {
        self.volume().check().unwrap();
        let mut bytes = [1; PAGE_BYTES];
        for lpn in 0..SHAPE.exported {
            let read = self.volume().read(Lpn(lpn), &mut bytes);
            let read = read.map(|()| value_of(&bytes).expect("somebody wrote it"));
            let expected = self.present[lpn as usize];
            self.compare(read, expected, &format!("page {lpn}"));
        }
        let Ok(status) = self.volume().history_status() else {
            return;
        };
        let last = self.past.iter().rev().step_by(7);
        let some: Vec<(u64, Contents)> = last.take(4).cloned().collect();
        for (instant, contents) in some {
            if instant < status.oldest {
                continue;
            }
            for lpn in 0..SHAPE.exported {
                let read = self.volume().read_at(instant, Lpn(lpn), &mut bytes);
                let read = read.map(|()| value_of(&bytes).expect("somebody wrote it"));
                let what = format!("page {lpn} at {instant}");
                self.compare(read, contents[lpn as usize], &what);
            }
        }
    }

    /// Findings name addresses that cannot be read, and no others; looked at again they do so still.
    fn findings(&mut self) {
        let new = self.volume().take_findings();
        self.known.extend(new);
        let known = std::mem::take(&mut self.known);
        let before = known.len();
        let volume = self.volume();
        let known: Vec<_> = known.iter().filter_map(|f| volume.still_found(f)).collect();
        let mut bytes = [0; PAGE_BYTES];
        for finding in &known {
            for &lpn in &finding.addresses {
                assert!(volume.read(lpn, &mut bytes).is_err(), "{lpn}: {finding}");
            }
        }
        assert!(known.is_empty() || self.flips > 0, "{known:?}");
        self.settled += before - known.len();
        self.known = known;
    }

    fn reopen(&mut self) {
        self.volume.take().unwrap().close().unwrap();
        let report = check(Arc::clone(&self.medium), true).unwrap();
        assert!(report.errors.is_empty(), "{report:?}");
        let (volume, _) = Volume::open(Arc::clone(&self.medium)).unwrap();
        self.volume = Some(volume);
    }
}

fn run(id: &Identity, seed: u64) -> World {
    let mut world = World::new(id);
    let mut draw = Draw::new(seed);
    for step in 0..500u32 {
        let lpn = draw.below(SHAPE.exported / 2) * (1 + draw.below(2));
        match draw.below(100) {
            0..6 => world.trim(Lpn(lpn)),
            6..9 => world.rewind_to(&mut draw),
            9..14 => world.volume().flush().unwrap(),
            14..16 => world.volume().checkpoint().unwrap(),
            16..19 if step > 150 => world.flip(&mut draw),
            19..21 => world.reopen(),
            21..24 => world.verify(),
            24..26 => world.findings(),
            26..30 => world.write(Lpn(lpn), 1 + draw.below(8)),
            _ => world.write(Lpn(lpn), 100 + step),
        }
    }
    world.findings();
    world.verify();
    world
}

#[test]
fn a_flipped_bit_never_becomes_other_content_on_a_volume_of_any_kind() {
    let (mut errors, mut reads, mut settled) = (0, 0, 0);
    let mut seed = 0;
    for policy in POLICIES {
        for kind in 0..8 {
            let id = Identity {
                history: (kind & 1 != 0).then_some(HistoryIdentity {
                    entries: 200,
                    least_window: 0,
                    protected: false,
                }),
                encoding: Encoding {
                    deltas: kind & 2 != 0,
                    compression: kind & 4 != 0,
                },
                ..SHAPE.identity(policy)
            };
            for _ in 0..2 {
                seed += 1;
                let world = run(&id, seed);
                errors += world.errors;
                reads += world.reads;
                settled += world.settled;
            }
        }
    }
    println!("{errors} errors in {reads} reads, {settled} findings settled");
    assert!(settled > 50, "findings do not end: {settled}");
    assert!(errors > 100, "hardly anything was hit: {errors} of {reads}");
    assert!(
        errors * 4 < reads,
        "nearly everything is lost: {errors} of {reads}"
    );
}
