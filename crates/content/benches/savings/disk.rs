//! A disk that stores equal values once, as far as the index it is given finds them.
//!
//! It is a log. It may be cleaned: when it is [`SPARE`] longer than what was alive at most, the block with the fewest
//! live objects is emptied, and these are stored anew at the end, among what is written.

use std::collections::HashMap;

use flashlore_flash::ObjectId;

use crate::streams::{Step, Stream};

/// Units of a block.
const BLOCK: usize = 256;

/// How much longer than the live objects the log may be.
const SPARE: f64 = 0.15;

/// What an index is asked, and what it is told.
pub trait Index {
    /// A live object with this value, which a write shares then.
    fn find(&mut self, value: u64, disk: &Disk) -> Option<ObjectId>;
    /// A write stored a new object.
    fn insert(&mut self, value: u64, object: ObjectId);
    /// An object died.
    fn remove(&mut self, value: u64, object: ObjectId);
    /// So many of all steps are done.
    fn step(&mut self, _done: usize, _all: usize, _disk: &Disk) {}
    /// What it cost besides memory.
    fn costs(&self) -> Costs {
        Costs::default()
    }
}

/// What an index made the disk look up.
#[derive(Debug, Clone, Copy, Default)]
pub struct Costs {
    /// Objects that were proposed and have another value.
    pub wrong: u64,
    /// Windows of neighbours.
    pub windows: u64,
    /// Misses that may be due to what left the index.
    pub doubtful: u64,
}

struct Stored {
    value: u64,
    references: u32,
    /// Its place in the order of storing.
    at: usize,
}

/// Objects, and the pages that refer to them.
#[derive(Default)]
pub struct Disk {
    pages: HashMap<u64, ObjectId>,
    objects: Vec<Stored>,
    /// Handles of the dead; the last one is given out next.
    free: Vec<ObjectId>,
    /// The objects in the order in which they were stored, those that died included.
    log: Vec<ObjectId>,
    live: usize,
    /// Live objects of each block of the log; `None` if it was emptied.
    blocks: Vec<Option<usize>>,
    emptied: usize,
}

/// What a stream came to.
#[derive(Debug, Clone, Copy, Default)]
pub struct Outcome {
    /// Page writes that count.
    pub writes: u64,
    /// Those that found a live object with their content.
    pub found: u64,
    /// Most objects alive at a time.
    pub most: usize,
    pub costs: Costs,
}

impl Disk {
    /// Whether an object is alive and has a value.
    pub fn is(&self, object: ObjectId, value: u64) -> bool {
        self.value(object) == Some(value)
    }

    /// The value of a live object.
    pub fn value(&self, object: ObjectId) -> Option<u64> {
        let stored = self.objects.get(object.index())?;
        (stored.references > 0).then_some(stored.value)
    }

    /// What was stored so many units after an object, if it is still alive.
    pub fn after(&self, object: ObjectId, distance: usize) -> Option<(u64, ObjectId)> {
        let at = self.objects[object.index()].at + distance;
        let &next = self.log.get(at)?;
        let is_there = self.objects[next.index()].at == at;
        self.value(next)
            .filter(|_| is_there)
            .map(|value| (value, next))
    }

    /// The object with the handle so much higher.
    pub fn beside(&self, object: ObjectId, distance: usize) -> Option<(u64, ObjectId)> {
        let next = ObjectId(object.0 + distance as u32);
        self.value(next).map(|value| (value, next))
    }

    /// Takes a stream; whether the log is cleaned.
    pub fn run(stream: &Stream, index: &mut dyn Index, is_cleaned: bool) -> Outcome {
        let (mut disk, mut outcome) = (Disk::default(), Outcome::default());
        for (done, &step) in stream.steps.iter().enumerate() {
            index.step(done, stream.steps.len(), &disk);
            match step {
                Step::Trim { page } => disk.refer(page, None, index),
                Step::Held { page, value } => {
                    disk.write(page, value, index);
                }
                Step::Write { page, value } => {
                    outcome.writes += 1;
                    outcome.found += u64::from(disk.write(page, value, index));
                }
            }
            outcome.most = outcome.most.max(disk.live);
            if is_cleaned {
                disk.clean(outcome.most);
            }
        }
        outcome.costs = index.costs();
        outcome
    }

    /// Whether the value was found.
    fn write(&mut self, page: u64, value: u64, index: &mut dyn Index) -> bool {
        let found = index.find(value, self);
        let object = found.unwrap_or_else(|| {
            let object = self.store(value);
            index.insert(value, object);
            object
        });
        assert!(self.objects[object.index()].value == value);
        self.refer(page, Some(object), index);
        found.is_some()
    }

    fn store(&mut self, value: u64) -> ObjectId {
        let stored = Stored {
            value,
            references: 0,
            at: self.log.len(),
        };
        let object = match self.free.pop() {
            Some(object) => {
                self.objects[object.index()] = stored;
                object
            }
            None => {
                self.objects.push(stored);
                ObjectId(self.objects.len() as u32 - 1)
            }
        };
        self.append(object);
        object
    }

    /// Puts an object at the end of the log.
    fn append(&mut self, object: ObjectId) {
        let at = self.log.len();
        self.log.push(object);
        self.objects[object.index()].at = at;
        self.blocks.resize(at / BLOCK + 1, Some(0));
        self.add_live(at, 1);
    }

    /// Counts live objects of the block of a place.
    fn add_live(&mut self, at: usize, change: isize) {
        if let Some(live) = &mut self.blocks[at / BLOCK] {
            *live = live.saturating_add_signed(change);
        }
    }

    /// Empties blocks as long as the log is too long for so many live objects.
    fn clean(&mut self, most: usize) {
        let limit = (most as f64 * (1.0 + SPARE)) as usize / BLOCK + 4;
        while self.blocks.len() - self.emptied > limit {
            let full = self.log.len() / BLOCK;
            let blocks = self.blocks[..full].iter().enumerate();
            let blocks = blocks.filter_map(|(block, live)| Some((live.as_ref()?, block)));
            let Some((_, victim)) = blocks.min() else {
                return;
            };
            self.blocks[victim] = None;
            self.emptied += 1;
            for at in victim * BLOCK..(victim + 1) * BLOCK {
                let stored = &self.objects[self.log[at].index()];
                if stored.at == at && stored.references > 0 {
                    self.append(self.log[at]);
                }
            }
        }
    }

    fn refer(&mut self, page: u64, object: Option<ObjectId>, index: &mut dyn Index) {
        let before = match object {
            Some(object) => {
                let references = &mut self.objects[object.index()].references;
                *references += 1;
                self.live += usize::from(*references == 1);
                self.pages.insert(page, object)
            }
            None => self.pages.remove(&page),
        };
        let Some(before) = before else {
            return;
        };
        let stored = &mut self.objects[before.index()];
        stored.references -= 1;
        if stored.references == 0 {
            index.remove(stored.value, before);
            let at = stored.at;
            self.live -= 1;
            self.free.push(before);
            self.add_live(at, -1);
        }
    }
}
