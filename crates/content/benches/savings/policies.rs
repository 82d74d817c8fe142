//! The indexes that are compared.

use std::collections::{HashMap, VecDeque};

use flashlore_content::dedup::BoundedIndex;
use flashlore_flash::ObjectId;

use crate::disk::{Costs, Disk, Index};
use crate::streams::{Draw, mixed};

/// All live values.
#[derive(Default)]
pub struct Unbounded(HashMap<u64, ObjectId>);

impl Index for Unbounded {
    fn find(&mut self, value: u64, _: &Disk) -> Option<ObjectId> {
        self.0.get(&value).copied()
    }
    fn insert(&mut self, value: u64, object: ObjectId) {
        self.0.insert(value, object);
    }
    fn remove(&mut self, value: u64, object: ObjectId) {
        if self.0.get(&value) == Some(&object) {
            self.0.remove(&value);
        }
    }
}

/// Which entry of a full set leaves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Leaves {
    /// The least recently used one.
    Oldest,
    /// Any.
    Any,
    /// The least recently used one; a new one counts as that, but for one of 32 (BIP, ISCA 2007).
    Newest,
    /// As the better of the first and the third does in some of the sets (DIP, ISCA 2007).
    Better,
    /// But for the so many used last, the one of the highest rank. A rank follows from the handle.
    Rank(usize),
}

/// How entries lie in memory.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    pub ways: usize,
    pub set_bytes: usize,
    pub tag_bits: u32,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    tag: u64,
    object: ObjectId,
    used: u64,
}

/// Sets of entries.
pub struct Sets {
    sets: Vec<Vec<Entry>>,
    layout: Layout,
    leaves: Leaves,
    time: u64,
    draw: Draw,
    /// Above 0 the sets that try [`Leaves::Newest`] are the better ones.
    duel: i64,
    wrong: u64,
}

impl Sets {
    pub fn new(bytes: usize, layout: Layout, leaves: Leaves) -> Sets {
        Sets {
            sets: vec![Vec::new(); (bytes / layout.set_bytes).max(1)],
            layout,
            leaves,
            time: 0,
            draw: Draw::new(2),
            duel: 0,
            wrong: 0,
        }
    }

    fn place(&self, value: u64) -> (usize, u64) {
        let spread = mixed(value);
        let set = ((spread >> 32) * self.sets.len() as u64) >> 32;
        (set as usize, spread & ((1 << self.layout.tag_bits) - 1))
    }

    fn rule(&self, set: usize) -> Leaves {
        match (self.leaves, set % 32) {
            (Leaves::Better, 0) => Leaves::Oldest,
            (Leaves::Better, 1) => Leaves::Newest,
            (Leaves::Better, _) if self.duel > 0 => Leaves::Newest,
            (Leaves::Better, _) => Leaves::Oldest,
            (leaves, _) => leaves,
        }
    }

    fn victim(&mut self, number: usize) -> usize {
        let leaves = self.rule(number);
        if leaves == Leaves::Any {
            return self.draw.below(self.layout.ways as u64) as usize;
        }
        let set = &self.sets[number];
        let mut by_use: Vec<usize> = (0..set.len()).collect();
        by_use.sort_unstable_by_key(|&at| set[at].used);
        match leaves {
            Leaves::Rank(recent) => {
                let old = by_use[..set.len() - recent].iter().copied();
                let rank = |at: &usize| set[*at].object.0.wrapping_mul(0x9E37_79B9);
                old.max_by_key(rank).unwrap_or(0)
            }
            _ => by_use[0],
        }
    }
}

impl Index for Sets {
    fn find(&mut self, value: u64, disk: &Disk) -> Option<ObjectId> {
        let (number, tag) = self.place(value);
        self.time += 1;
        let wrong = &mut self.wrong;
        let entry = self.sets[number].iter_mut().find(|entry| {
            let is_it = entry.tag == tag && disk.is(entry.object, value);
            *wrong += u64::from(entry.tag == tag && !is_it);
            is_it
        })?;
        entry.used = self.time;
        match number % 32 {
            0 => self.duel -= 1,
            1 => self.duel += 1,
            _ => {}
        }
        Some(entry.object)
    }

    fn insert(&mut self, value: u64, object: ObjectId) {
        let (number, tag) = self.place(value);
        self.time += 1;
        let mut used = self.time;
        if self.sets[number].len() == self.layout.ways {
            if self.rule(number) == Leaves::Newest && self.draw.below(32) != 0 {
                used = 0;
            }
            let victim = self.victim(number);
            self.sets[number].swap_remove(victim);
        }
        self.sets[number].push(Entry { tag, object, used });
    }

    fn remove(&mut self, value: u64, object: ObjectId) {
        let (number, _) = self.place(value);
        self.sets[number].retain(|entry| entry.object != object);
    }

    fn costs(&self) -> Costs {
        Costs {
            wrong: self.wrong,
            ..Costs::default()
        }
    }
}

const RUNS: usize = 8;
const WINDOW: usize = 32;

/// What was stored after an object that was found.
#[derive(Default)]
struct Run {
    next: Vec<(u64, ObjectId)>,
    used: u64,
}

/// Sets, and what lies behind their hits: a duplicate is looked for there first.
pub struct WithRuns {
    sets: Sets,
    runs: Vec<Run>,
    time: u64,
    windows: u64,
}

impl WithRuns {
    pub fn new(sets: Sets) -> Self {
        WithRuns {
            sets,
            runs: (0..RUNS).map(|_| Run::default()).collect(),
            time: 0,
            windows: 0,
        }
    }

    /// The run with this number is now what lies behind an object.
    fn follow(&mut self, number: usize, object: ObjectId, disk: &Disk) {
        self.windows += 1;
        let window = (1..=WINDOW).filter_map(|distance| disk.after(object, distance));
        self.runs[number] = Run {
            next: window.collect(),
            used: self.time,
        };
    }
}

impl Index for WithRuns {
    fn find(&mut self, value: u64, disk: &Disk) -> Option<ObjectId> {
        self.time += 1;
        for number in 0..RUNS {
            let run = &mut self.runs[number];
            let is_it = |&(next, object): &(u64, ObjectId)| next == value && disk.is(object, value);
            if let Some(at) = run.next.iter().position(is_it) {
                let object = run.next[at].1;
                run.used = self.time;
                if at >= WINDOW / 2 {
                    self.follow(number, object, disk);
                }
                return Some(object);
            }
        }
        let object = self.sets.find(value, disk)?;
        let runs = self.runs.iter().enumerate();
        let oldest = runs.min_by_key(|(_, run)| run.used);
        self.follow(oldest.map_or(0, |(number, _)| number), object, disk);
        Some(object)
    }

    fn insert(&mut self, value: u64, object: ObjectId) {
        self.sets.insert(value, object);
    }

    fn remove(&mut self, value: u64, object: ObjectId) {
        self.sets.remove(value, object);
    }

    fn costs(&self) -> Costs {
        Costs {
            windows: self.windows,
            ..self.sets.costs()
        }
    }
}

/// How the disk answers for neighbours.
pub type Neighbour = fn(&Disk, ObjectId, usize) -> Option<(u64, ObjectId)>;

/// The index of this crate.
pub struct Bounded {
    index: BoundedIndex,
    neighbour: Neighbour,
    /// After how many further writes neighbours are known.
    delay: u64,
    writes: u64,
    /// Whose neighbours are looked up, with the writes by then.
    wanted: VecDeque<(u64, u64, ObjectId)>,
    wrong: u64,
}

impl Bounded {
    pub fn new(bytes: usize, neighbour: Neighbour) -> Self {
        Bounded {
            index: BoundedIndex::new(bytes as u64),
            neighbour,
            delay: 0,
            writes: 0,
            wanted: VecDeque::new(),
            wrong: 0,
        }
    }

    /// The same, with neighbours that are known so many writes later.
    pub fn delayed(self, delay: u64) -> Self {
        Bounded { delay, ..self }
    }

    /// Takes the neighbours that are known by now.
    fn follow(&mut self, disk: &Disk) {
        while let Some(&(known, value, object)) = self.wanted.front()
            && known <= self.writes
        {
            self.wanted.pop_front();
            let window = 1..=BoundedIndex::window();
            let neighbours = window.filter_map(|distance| (self.neighbour)(disk, object, distance));
            self.index.follow(value, object, neighbours);
        }
    }
}

impl Index for Bounded {
    fn find(&mut self, value: u64, disk: &Disk) -> Option<ObjectId> {
        self.writes += 1;
        self.follow(disk);
        let wrong = &mut self.wrong;
        let found = self.index.find(value, |object| {
            let is_it = disk.is(object, value);
            *wrong += u64::from(!is_it);
            is_it
        });
        let Some(object) = found else {
            self.index.missed(value);
            return None;
        };
        if self.index.touch(value, object) {
            self.wanted
                .push_back((self.writes + self.delay, value, object));
            if self.delay == 0 {
                self.follow(disk);
            }
        }
        Some(object)
    }

    fn insert(&mut self, value: u64, object: ObjectId) {
        self.index.insert(value, object);
    }

    fn remove(&mut self, value: u64, object: ObjectId) {
        self.index.remove(value, object);
    }

    fn costs(&self) -> Costs {
        let counters = self.index.counters();
        Costs {
            wrong: self.wrong,
            windows: counters.windows,
            doubtful: counters.doubtful_misses,
        }
    }
}

/// The same, empty after a crash in the middle; beside each step after it objects are refilled.
pub struct Crashed {
    bounded: Bounded,
    next: u32,
}

/// Handles that are looked at beside a step.
const REFILLED: u32 = 4;

impl Crashed {
    pub fn new(bounded: Bounded) -> Self {
        Crashed { bounded, next: 0 }
    }
}

impl Index for Crashed {
    fn find(&mut self, value: u64, disk: &Disk) -> Option<ObjectId> {
        self.bounded.find(value, disk)
    }

    fn insert(&mut self, value: u64, object: ObjectId) {
        self.bounded.insert(value, object);
    }

    fn remove(&mut self, value: u64, object: ObjectId) {
        self.bounded.remove(value, object);
    }

    fn step(&mut self, done: usize, all: usize, disk: &Disk) {
        if done == all / 2 {
            self.bounded.index = BoundedIndex::new(self.bounded.index.budget());
        }
        if done >= all / 2 {
            for object in (self.next..self.next + REFILLED).map(ObjectId) {
                if let Some(value) = disk.value(object) {
                    self.bounded.index.refill(value, object);
                }
            }
            self.next += REFILLED;
        }
    }

    fn costs(&self) -> Costs {
        self.bounded.costs()
    }
}
