//! A search for crashes the array does not survive.
//!
//! Random histories are cut at calls of one medium or of both; each medium loses any of its own writes that were
//! not synced. What is opened then must hold the state at one instant, holes included, not earlier than the last flush
//! that was acknowledged. It goes on and is cut again, also while it is opened. The fast medium may be lost altogether,
//! and a new one takes its place: in write-through nothing of that instant is lost then, with ordered write-back it is
//! that of the last batch, and otherwise blocks are lost that are named.
//!
//! FLASHLORE_CRASH_HISTORIES sets how many histories are searched, FLASHLORE_CRASH_SEED where they begin.

use crate::support;

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use flashlore_array::icash::{Counters, Mode, SlowAlone, TooBig};
use flashlore_array::{ArrayError, Element};
use flashlore_medium::MemoryMedium;
use support::{
    Attendance, Attended, Draw, Op, PAGE_MISSED, Power, Setup, Steps, Trouble, Value, WithoutFast,
    operations, page,
};

/// Bytes of the fast and the slow medium.
type Images = (Vec<u8>, Vec<u8>);

/// The states after each operation. From the last sure one on they may be found; from the last one that is sure to
/// be at home on, the slow medium alone may hold them.
#[derive(Clone)]
struct Oracle {
    states: Vec<Vec<Value>>,
    sure: usize,
    home: usize,
}

impl Oracle {
    fn new(state: Vec<Value>) -> Oracle {
        Oracle {
            states: vec![state],
            sure: 0,
            home: 0,
        }
    }

    fn last(&self) -> &Vec<Value> {
        &self.states[self.states.len() - 1]
    }

    fn then(&mut self, block: usize, value: Value) {
        let mut next = self.last().clone();
        next[block] = value;
        self.states.push(next);
    }

    fn flushed(&mut self) {
        self.sure = self.states.len() - 1;
    }

    /// The newest of the states from `first` on that is what is read.
    fn matching(
        &self,
        first: usize,
        setup: &Setup,
        mut read: impl FnMut(u64, &mut [u8; 4096]) -> Result<(), ArrayError>,
    ) -> Result<usize, String> {
        let mut candidates: Vec<usize> = (first..self.states.len()).collect();
        for block in 0..setup.blocks() {
            let mut found = [0; 4096];
            let result = read(setup.lba(block), &mut found);
            result.map_err(|error| format!("block {block}: {error}"))?;
            candidates.retain(|&state| page(self.states[state][block]) == found);
            if candidates.is_empty() {
                return Err(format!(
                    "no allowed state fits block {block} and those before"
                ));
            }
        }
        Ok(candidates[candidates.len() - 1])
    }

    /// What may be found once a state was: it alone. The slow medium may be behind it.
    fn recovered(&self, state: usize) -> Oracle {
        Oracle {
            states: self.states[..=state].to_vec(),
            sure: state,
            home: self.home.min(state),
        }
    }
}

/// What a search went through.
#[derive(Debug, Default)]
struct Tally {
    histories: u64,
    troubles: u64,
    recoveries: u64,
    openings_cut: u64,
    went_on: u64,
    distinct: HashSet<u64>,
    groups: u64,
    checkpoints: u64,
    cleaned: u64,
    written_home: u64,
    references: u64,
    released: u64,
    frozen: u64,
    brought_back: u64,
    batches: u64,
    bypassed: u64,
    bypassed_home: u64,
    ahead: u64,
    given_back: u64,
    alone: u64,
    without_fast: WithoutFast,
}

struct Search {
    draw: Draw,
    setup: Setup,
    tally: Tally,
}

impl Search {
    /// Runs operations until the end or until something fails. What was acknowledged is noted.
    fn run(&self, element: &mut Attended, ops: &[Op], oracle: &mut Oracle, trouble: Trouble) {
        let mut batches = 0;
        for &op in ops {
            let before = oracle.states.len() - 1;
            let done = match op {
                Op::Write(block, value) => {
                    let written = element.write(self.setup.lba(block), &page(value));
                    written.map(|()| oracle.then(block, value))
                }
                Op::Trim(block) => {
                    let trimmed = element.trim(self.setup.lba(block));
                    trimmed.map(|()| oracle.then(block, 0))
                }
                Op::Read(block) => {
                    let mut found = [0; 4096];
                    let read = element.read(self.setup.lba(block), &mut found);
                    read.map(|()| assert!(found == page(oracle.last()[block]), "{op:?} is wrong"))
                }
                Op::Flush => element.flush().map(|()| oracle.flushed()),
            };
            // A batch took all that was before this operation.
            if element.counters().batches > batches {
                batches = element.counters().batches;
                oracle.home = before;
            }
            // A write that fails is tried again; after anything else the power is cut, sooner or later.
            if done.is_err() && !matches!(trouble, Trouble::FailWrite(..)) {
                return;
            }
        }
    }

    /// Opens, runs and meets trouble. Answers the media, the oracle and the counters.
    fn life(
        &self,
        images: &Images,
        oracle: &Oracle,
        ops: &[Op],
        trouble: Trouble,
    ) -> (Power, Oracle, Counters) {
        let power = Power::new(images.clone(), trouble);
        let (fast, slow) = power.media();
        let mut oracle = oracle.clone();
        let mut counters = Counters::default();
        if let Ok(mut element) = self.setup.open(fast, slow) {
            self.run(&mut element, ops, &mut oracle, trouble);
            counters = *element.counters();
            // Without power a page of the table may be missing.
            if let Err(error) = element.check()
                && (trouble == Trouble::Never || !error.contains(PAGE_MISSED))
            {
                panic!("after {trouble:?}: {error}");
            }
        }
        (power, oracle, counters)
    }

    fn trouble(&mut self, both: u64, fast: u64, slow: u64) -> Trouble {
        match self.draw.below(12) {
            0..2 => Trouble::CutFast(self.draw.between(1, fast.max(1))),
            2..4 => Trouble::CutSlow(self.draw.between(1, slow.max(1))),
            4 => Trouble::FailFast(self.draw.between(1, (fast / 4).max(1))),
            6..8 => {
                let first = self.draw.between(1, both.max(1));
                Trouble::FailWrite(first, self.draw.between(2, 30))
            }
            5 => Trouble::FailSlow(self.draw.between(1, (slow / 4).max(1))),
            _ => Trouble::CutBoth(self.draw.between(1, both.max(1))),
        }
    }

    /// Searches from a state that is durable on these media, in so many lives.
    fn search(&mut self, images: &Images, oracle: &Oracle, length: usize, cuts: u64, depth: u32) {
        let ops = operations(&mut self.draw, length, self.setup.blocks());
        let (calm, after, counters) = self.life(images, oracle, &ops, Trouble::Never);
        assert_eq!(
            after.states.len() - oracle.states.len(),
            changes(&ops),
            "something failed"
        );
        self.note(&counters);
        for _ in 0..cuts {
            let trouble = self.trouble(calm.calls(), calm.fast.calls(), calm.slow.calls());
            self.tally.troubles += 1;
            let (power, after, _) = self.life(images, oracle, &ops, trouble);
            for _ in 0..2 {
                let survivors = power.survivors(&mut self.draw);
                let mut hasher = DefaultHasher::new();
                survivors.hash(&mut hasher);
                if self.tally.distinct.insert(hasher.finish()) {
                    self.recover(survivors, &after, &format!("{trouble:?}"), depth);
                }
            }
        }
    }

    /// Opens what is left; the opening is cut too, and life goes on.
    fn recover(&mut self, images: Images, oracle: &Oracle, how: &str, depth: u32) -> Oracle {
        self.tally.recoveries += 1;
        let power = Power::new(images.clone(), Trouble::Never);
        let (fast, slow) = power.media();
        let opened = self.setup.open(fast, slow);
        let mut element = opened.unwrap_or_else(|error| panic!("after {how}: {error}"));
        let opening_calls = power.calls();
        element
            .check()
            .unwrap_or_else(|error| panic!("after {how}: {error}"));
        element
            .verify()
            .unwrap_or_else(|error| panic!("after {how}: {error}"));
        let found = oracle.matching(oracle.sure, &self.setup, |lba, page| {
            element.read(lba, page)
        });
        let state = found.unwrap_or_else(|error| panic!("after {how}: {error}"));
        let is_hole = |block: usize| oracle.states[state][block] == 0;
        let is_right = self.setup.has_right_holes(&element, is_hole);
        assert!(
            is_right,
            "after {how} a hole is none, or the other way round"
        );
        drop(element);
        self.slow_alone(&images.1, oracle, how);
        // Few are in order.
        let often = if self.setup.shape.journal_blocks > 0 {
            90
        } else {
            25
        };
        if self.draw.chance(often) {
            let (lost, state) = (&mut self.tally.without_fast, &oracle.states[state]);
            lost.try_it(&self.setup, &images.1, state, &mut self.draw, how);
        }
        // What one opening found every later one finds: what was given up does not come back.
        let recovered = oracle.recovered(state);
        let oracle = &recovered;
        if depth == 0 {
            return recovered;
        }
        if self.draw.chance(25) {
            self.tally.openings_cut += 1;
            let cut = Trouble::CutBoth(self.draw.between(1, opening_calls.max(1)));
            let (power, ..) = self.life(&images, oracle, &[], cut);
            let survivors = power.survivors(&mut self.draw);
            self.recover(
                survivors,
                oracle,
                &format!("{how}, then an opening with {cut:?}"),
                depth - 1,
            );
        }
        if self.draw.chance(25) {
            self.tally.went_on += 1;
            let (power, ..) = self.life(&images, oracle, &[], Trouble::Never);
            let survivors = power.survivors(&mut self.draw);
            self.recover(
                survivors.clone(),
                oracle,
                &format!("{how}, then an opening"),
                0,
            );
            self.search(&survivors, oracle, 30, 2, depth - 1);
        }
        recovered
    }

    /// With ordered write-back the slow medium alone holds one state, too.
    fn slow_alone(&mut self, slow: &[u8], oracle: &Oracle, how: &str) {
        let slow = Arc::new(MemoryMedium::from_bytes(slow.to_vec()));
        let opened = SlowAlone::open(slow);
        if self.setup.shape.journal_blocks == 0 {
            assert!(opened.is_err(), "it is not ordered");
            return;
        }
        self.tally.alone += 1;
        let mut alone = opened.unwrap_or_else(|error| panic!("after {how}, alone: {error}"));
        let found = oracle.matching(oracle.home, &self.setup, |lba, page| alone.read(lba, page));
        found.unwrap_or_else(|error| panic!("after {how}, alone: {error}"));
    }

    fn note(&mut self, counters: &Counters) {
        let tally = &mut self.tally;
        tally.groups += counters.groups;
        tally.checkpoints += counters.checkpoints;
        tally.cleaned += counters.cleaned;
        tally.written_home += counters.written_home;
        tally.references += counters.scan_references;
        tally.released += counters.references_released;
        tally.frozen += counters.references_frozen;
        tally.brought_back += counters.brought_back;
        tally.batches += counters.batches;
        tally.bypassed += counters.bypassed_writes;
        tally.bypassed_home += counters.bypassed_home;
        tally.ahead += counters.written_ahead;
        tally.given_back += counters.given_back;
    }
}

fn changes(ops: &[Op]) -> usize {
    let changes = |op: &&Op| matches!(op, Op::Write(..) | Op::Trim(_));
    ops.iter().filter(changes).count()
}

fn one_history(seed: u64, tally: Tally) -> Tally {
    let mut draw = Draw::new(seed);
    let setup = Setup::draw(&mut draw);
    let oracle = Oracle::new(vec![0; setup.blocks()]);
    let images = setup.images();
    let length = draw.between(20, 200) as usize;
    let mut search = Search { draw, setup, tally };
    search.tally.histories += 1;
    search.search(&images, &oracle, length, 10, 2);
    search.tally
}

/// Batches all the time, the first life cut at every call or soon after a write that failed, and the second one at
/// many calls: what the first left half at home is a state all the same, whatever the second did.
#[test]
fn a_batch_that_was_cut_is_finished_before_the_next_one() {
    let mut draw = Draw::new(1);
    let mut setup = Setup::draw(&mut draw);
    setup.shape.machines.truncate(1);
    setup.shape.machines[0].blocks = 14;
    setup.shape.journal_blocks = 8;
    let least = setup
        .options
        .least_log_segments(setup.shape.segment_blocks, 8);
    setup.shape.log_segments = least;
    let ops = operations(&mut draw, 120, setup.blocks());
    let images = setup.images();
    let oracle = Oracle::new(vec![0; setup.blocks()]);
    let tally = Tally::default();
    let mut search = Search { draw, setup, tally };
    let (calm, _, counters) = search.life(&images, &oracle, &ops, Trouble::Never);
    assert!(counters.batches >= 3);
    for call in 1..=3 * calm.calls() {
        let cut = call.div_ceil(3);
        let first = match call % 3 {
            0 => Trouble::CutBoth(cut),
            _ => Trouble::FailWrite(cut, search.draw.between(2, 12)),
        };
        let (power, after, _) = search.life(&images, &oracle, &ops, first);
        let survivors = power.survivors(&mut search.draw);
        let oracle = search.recover(survivors.clone(), &after, &format!("{first:?}"), 0);
        for _ in 0..4 {
            let ops = operations(&mut search.draw, 12, search.setup.blocks());
            let (calm, ..) = search.life(&survivors, &oracle, &ops, Trouble::Never);
            let second = Trouble::CutBoth(search.draw.between(1, calm.calls()));
            let (power, after, _) = search.life(&survivors, &oracle, &ops, second);
            let survivors = power.survivors(&mut search.draw);
            search.slow_alone(&survivors.1, &after, &format!("{first:?}, {second:?}"));
        }
    }
    assert!(
        search.tally.alone >= 1000,
        "only {} were opened alone",
        search.tally.alone
    );
}

/// The fast medium is gone at every one of its calls, and the array goes on as far as it can. What goes home then must
/// not lack the blocks that cannot be read any more (found with seed 50638).
#[test]
fn a_fast_medium_that_is_gone_leaves_no_batch_without_its_blocks() {
    let mut alone = 0;
    for seed in 0..12 {
        let mut draw = Draw::new(seed);
        let mut setup = Setup::draw(&mut draw);
        setup.shape.journal_blocks = 30;
        let options = &mut setup.options;
        (options.mode, options.too_big) = (Mode::WriteBack, TooBig::Fast);
        setup.shape.log_segments = options.least_log_segments(setup.shape.segment_blocks, 30);
        setup.attendance = Attendance {
            steps: Steps::All,
            is_ahead: true,
        };
        let mut ops = operations(&mut draw, 80, setup.blocks());
        // All is durable again and again, so that a batch has nothing to record first.
        ops = ops.into_iter().flat_map(|op| [op, Op::Flush]).collect();
        let images = setup.images();
        let oracle = Oracle::new(vec![0; setup.blocks()]);
        let tally = Tally::default();
        let mut search = Search { draw, setup, tally };
        let (calm, ..) = search.life(&images, &oracle, &ops, Trouble::Never);
        for cut in 1..=calm.fast.calls() {
            let cut = Trouble::CutFast(cut);
            let (power, after, _) = search.life(&images, &oracle, &ops, cut);
            let survivors = power.survivors(&mut search.draw);
            search.slow_alone(&survivors.1, &after, &format!("seed {seed}, {cut:?}"));
        }
        alone += search.tally.alone;
    }
    assert!(alone > 500, "only {alone} were opened alone");
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

#[test]
fn no_crash_loses_what_was_flushed_or_mixes_states() {
    let first = number("FLASHLORE_CRASH_SEED", 1);
    let mut tally = Tally::default();
    for seed in first..first + number("FLASHLORE_CRASH_HISTORIES", 60) {
        let searched = catch_unwind(AssertUnwindSafe(|| one_history(seed, tally)));
        tally = searched.unwrap_or_else(|_| panic!("the history of seed {seed} fails"));
    }
    let distinct = tally.distinct.len();
    tally.distinct.clear();
    println!("{tally:?}, distinct images: {distinct}");
    for (what, count) in [
        ("groups", tally.groups),
        ("checkpoints", tally.checkpoints),
        ("cleaned segments", tally.cleaned),
        ("blocks written home", tally.written_home),
        ("references", tally.references),
        ("references released", tally.released),
        ("references frozen", tally.frozen),
        ("data blocks brought back", tally.brought_back),
        ("batches", tally.batches),
        ("blocks written past the cache", tally.bypassed),
        ("of these gone home", tally.bypassed_home),
        ("blocks gone home ahead", tally.ahead),
        ("places given back", tally.given_back),
        ("slow media opened alone", tally.alone),
        ("openings cut", tally.openings_cut),
        ("lives that went on", tally.went_on),
        (
            "arrays in write-through without fast media",
            tally.without_fast.write_through,
        ),
        (
            "arrays that went back without fast media",
            tally.without_fast.back,
        ),
        (
            "blocks lost with fast media",
            tally.without_fast.lost_blocks,
        ),
    ] {
        assert!(count >= 20, "only {count} {what}");
    }
}
