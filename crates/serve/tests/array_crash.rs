//! A search for crashes that the machines of an array do not survive, as devices of bytes.
//!
//! Random histories of requests of any offset and length are cut at calls of one medium or of both; each medium loses
//! any of its own writes that were not synced. What is opened then must be the state at one instant, between two
//! pages of a request or two requests, and not earlier than the last flush that was acknowledged. With ordered
//! write-back the slow medium alone must be one such state, too. In write-through that instant is not earlier than the
//! last request that was acknowledged, and the same state is there when the fast medium is lost and replaced.
//!
//! FLASHLORE_CRASH_HISTORIES sets how many histories are searched, FLASHLORE_CRASH_SEED where they begin.

#[path = "../../array/tests/support/mod.rs"]
mod support;

use std::ops::Range;
use std::sync::Arc;

use flashlore_array::icash::ahead::Reach;
use flashlore_array::icash::{Mode, SlowAlone};
use flashlore_medium::{Medium, MemoryMedium};
use flashlore_serve::array::Machines;
use flashlore_volume::disk::device::HOLE;
use flashlore_volume::disk::{About, BlockDevice, DiskError};
use support::pages::draw_value;
use support::without_fast::fresh;
use support::{Draw, Power, Setup, Steps, Trouble, page};

const PAGE: usize = 4096;

/// Bytes of the fast and the slow medium.
type Images = (Vec<u8>, Vec<u8>);

type Content = Arc<[u8; PAGE]>;

/// What a block holds, and whether it is a hole.
#[derive(Clone, PartialEq)]
struct Block {
    content: Content,
    is_hole: bool,
}

/// The blocks of each machine.
type State = Vec<Vec<Block>>;

/// What a client asks of a machine.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// A write of what page this value stands for, repeated.
    Write(u32),
    Zero(bool),
    Trim,
    Read,
    Flush,
}

#[derive(Debug, Clone, Copy)]
struct Op {
    kind: Kind,
    machine: usize,
    offset: usize,
    length: usize,
}

fn data(op: &Op, value: u32) -> Vec<u8> {
    let page = page(value);
    // What whole pages hold depends on their place alone: they resemble others.
    (op.offset..op.offset + op.length)
        .map(|at| page[at % PAGE])
        .collect()
}

fn operations(draw: &mut Draw, count: usize, setup: &Setup) -> Vec<Op> {
    let draw_one = |draw: &mut Draw| {
        let machine = draw.below(setup.shape.machines.len() as u64) as usize;
        let bytes = setup.shape.machines[machine].blocks as usize * PAGE;
        let offset = draw.below(bytes as u64) as usize;
        let most = draw.pick(&[300, PAGE, 5 * PAGE]).min(bytes - offset);
        let length = draw.between(1, most as u64) as usize;
        // Half of them are whole pages.
        let (offset, length) = match draw.chance(50) {
            true => (offset / PAGE * PAGE, length.div_ceil(PAGE) * PAGE),
            false => (offset, length),
        };
        let length = length.min(bytes - offset);
        let kind = match draw.below(100) {
            0..6 => Kind::Flush,
            6..14 => Kind::Trim,
            14..22 => Kind::Zero(draw.chance(50)),
            22..40 => Kind::Read,
            _ => Kind::Write(draw_value(draw)),
        };
        Op {
            kind,
            machine,
            offset,
            length,
        }
    };
    (0..count).map(|_| draw_one(draw)).collect()
}

/// The pages of a range, and the bytes of each.
fn pages(op: &Op) -> impl Iterator<Item = (usize, Range<usize>)> {
    let (first, end) = (op.offset, op.offset + op.length);
    (first / PAGE..end.div_ceil(PAGE)).map(move |page| {
        let from = first.max(page * PAGE) - page * PAGE;
        (page, from..end.min((page + 1) * PAGE) - page * PAGE)
    })
}

/// The changes of a request, page by page, in the order in which they are made.
fn changes(op: &Op, state: &State) -> Vec<(usize, Block)> {
    let (all, given): (Vec<_>, _) = (pages(op).collect(), op);
    let part = |(page, range): &(usize, Range<usize>), bytes: &[u8]| {
        let mut content = *state[given.machine][*page].content;
        let at = page * PAGE + range.start - given.offset;
        content[range.clone()].copy_from_slice(&bytes[at..at + range.len()]);
        let content = Arc::new(content);
        (
            *page,
            Block {
                content,
                is_hole: false,
            },
        )
    };
    let is_whole = |(_, range): &&(usize, Range<usize>)| range.len() == PAGE;
    let hole = |(page, _): &(usize, Range<usize>)| (*page, hole());
    match op.kind {
        Kind::Write(value) => {
            let bytes = data(op, value);
            all.iter().map(|one| part(one, &bytes)).collect()
        }
        Kind::Zero(allocate) => {
            let zeros = vec![0; op.length];
            let (whole, parts): (Vec<_>, Vec<_>) = all.iter().partition(is_whole);
            let parts = parts.into_iter().map(|one| part(one, &zeros));
            let whole = whole.into_iter().map(|one| match allocate {
                true => part(one, &zeros),
                false => hole(one),
            });
            parts.chain(whole).collect()
        }
        Kind::Trim => all.iter().filter(is_whole).map(hole).collect(),
        Kind::Read | Kind::Flush => Vec::new(),
    }
}

fn hole() -> Block {
    Block {
        content: Arc::new([0; PAGE]),
        is_hole: true,
    }
}

/// The states after each page that was changed. From the last sure one on they may be found.
#[derive(Clone)]
struct Oracle {
    states: Vec<State>,
    sure: usize,
}

impl Oracle {
    fn new(setup: &Setup) -> Oracle {
        let machines = setup.shape.machines.iter();
        let state = machines.map(|m| vec![hole(); m.blocks as usize]).collect();
        Oracle {
            states: vec![state],
            sure: 0,
        }
    }

    fn last(&self) -> &State {
        &self.states[self.states.len() - 1]
    }

    fn then(&mut self, op: &Op) {
        for (page, block) in changes(op, self.last()) {
            let mut next = self.last().clone();
            next[op.machine][page] = block;
            self.states.push(next);
        }
    }

    /// The newest of the states from `first` on that the machines hold. What they call a hole is one; and the other
    /// way round too, if `holes`.
    fn matching(&self, first: usize, machines: &Arc<Machines>, holes: bool) -> Option<usize> {
        let found: State = (0..machines.all().len())
            .map(|machine| read_all(&machines.disk(machine)))
            .collect();
        let is_it = |state: &State| {
            let mut pairs = state.iter().flatten().zip(found.iter().flatten());
            let same = |(a, b): (&Block, &Block)| {
                a.content == b.content
                    && (a.is_hole || !b.is_hole)
                    && (!holes || b.is_hole || !a.is_hole)
            };
            pairs.all(same)
        };
        (first..self.states.len())
            .rev()
            .find(|&n| is_it(&self.states[n]))
    }
}

/// What a machine holds.
fn read_all(disk: &impl BlockDevice) -> Vec<Block> {
    let mut bytes = vec![1; disk.size() as usize];
    disk.read(0, &mut bytes).expect("everything can be read");
    let (pages, _) = bytes.as_chunks::<PAGE>();
    let mut holes = Vec::new();
    let mut piece = |length: u64, flags: u32| {
        holes.extend(vec![flags == HOLE; length as usize / PAGE]);
        true
    };
    disk.ask(About::Allocation, 0, disk.size(), &mut piece)
        .expect("it is known what is a hole");
    let blocks = pages.iter().zip(holes).map(|(page, is_hole)| Block {
        content: Arc::new(*page),
        is_hole,
    });
    blocks.collect()
}

fn ask(disk: &impl BlockDevice, op: &Op, state: &State) -> Result<(), DiskError> {
    let (offset, length) = (op.offset as u64, op.length as u64);
    match op.kind {
        Kind::Write(value) => disk.write(offset, &data(op, value)),
        Kind::Zero(allocate) => disk.write_zeroes(offset, length, allocate),
        Kind::Trim => disk.trim(offset, length),
        Kind::Flush => disk.flush(),
        Kind::Read => {
            let mut found = vec![1; op.length];
            disk.read(offset, &mut found)?;
            for (page, range) in pages(op) {
                let at = page * PAGE + range.start - op.offset;
                let expected = &state[op.machine][page].content[range.clone()];
                assert!(found[at..at + range.len()] == *expected, "{op:?} is wrong");
            }
            Ok(())
        }
    }
}

#[derive(Debug, Default)]
struct Tally {
    cuts: u64,
    lost: u64,
    alone: u64,
    without_fast: u64,
    openings_cut: u64,
}

struct Search {
    draw: Draw,
    setup: Setup,
    tally: Tally,
}

impl Search {
    fn open(&self, power: &Power) -> Result<Arc<Machines>, String> {
        let (fast, slow) = power.media();
        let element = self
            .setup
            .open(fast, slow)
            .map_err(|error| error.to_string())?;
        Machines::whole(element.into_element()).map_err(|error| error.to_string())
    }

    fn writes_through(&self) -> bool {
        self.setup.options.mode == Mode::WriteThrough
    }

    /// In write-through the same state is there without the fast medium.
    fn without_fast(&mut self, slow: &[u8], found: &Oracle, how: &str) {
        if !self.writes_through() {
            return;
        }
        self.tally.without_fast += 1;
        let images = (fresh(&self.setup, slow), slow.to_vec());
        let machines = self.open(&Power::new(images, Trouble::Never));
        let machines = machines.unwrap_or_else(|e| panic!("after {how}, without: {e}"));
        let same = found.matching(0, &machines, self.keeps_holes());
        assert!(same.is_some(), "after {how} the fast medium was needed");
    }

    /// Whether a block that was given up is a hole for good: with ordered write-back it goes home as zeros.
    fn keeps_holes(&self) -> bool {
        self.setup.shape.journal_blocks == 0
    }

    /// Opens, runs until the end or until something fails.
    fn life(
        &self,
        images: &Images,
        oracle: &Oracle,
        ops: &[Op],
        trouble: Trouble,
    ) -> (Power, Oracle) {
        let power = Power::new(images.clone(), trouble);
        let mut oracle = oracle.clone();
        let Ok(machines) = self.open(&power) else {
            return (power, oracle);
        };
        for op in ops {
            let before = oracle.clone();
            oracle.then(op);
            let asked = ask(&machines.disk(op.machine), op, before.last());
            self.attend(&machines);
            match (asked, op.kind) {
                (Ok(()), Kind::Flush) => oracle.sure = oracle.states.len() - 1,
                (Ok(()), Kind::Read) => {}
                (Ok(()), _) if self.writes_through() => oracle.sure = oracle.states.len() - 1,
                (Ok(()), _) => {}
                // Some of its pages may have been changed.
                (Err(_), _) => return (power, oracle),
            }
        }
        (power, oracle)
    }

    /// What the thread of a served array does between requests. What fails is due again.
    fn attend(&self, machines: &Machines) {
        let steps = match self.setup.attendance.steps {
            Steps::All => u32::MAX,
            Steps::AtMost(steps) => steps,
        };
        let mut left = steps;
        while left > 0 && matches!(machines.work(), Ok(true)) {
            left -= 1;
        }
        if self.setup.attendance.is_ahead {
            while matches!(machines.give_back(), Ok(true)) {}
            let _ = machines.write_back_ahead(50, Reach::All, 2);
        }
    }

    fn trouble(&mut self, calm: &Power) -> Trouble {
        let (both, fast, slow) = (calm.calls(), calm.fast.calls(), calm.slow.calls());
        match self.draw.below(10) {
            0..2 => Trouble::CutFast(self.draw.between(1, fast.max(1))),
            2..4 => Trouble::CutSlow(self.draw.between(1, slow.max(1))),
            4 => Trouble::FailFast(self.draw.between(1, (fast / 4).max(1))),
            5 => Trouble::FailSlow(self.draw.between(1, (slow / 4).max(1))),
            6 => Trouble::FailWrite(self.draw.between(1, both.max(1)), 5),
            _ => Trouble::CutBoth(self.draw.between(1, both.max(1))),
        }
    }

    /// Opens what is left: it is one state, whatever happens to the opening.
    fn recover(&mut self, images: &Images, oracle: &Oracle, how: &str) -> Oracle {
        let power = Power::new(images.clone(), Trouble::Never);
        let machines = self.open(&power);
        let machines = machines.unwrap_or_else(|error| panic!("after {how}: {error}"));
        let calls = power.calls();
        let state = oracle.matching(oracle.sure, &machines, self.keeps_holes());
        let state = state.unwrap_or_else(|| panic!("after {how} no allowed state is found"));
        self.tally.lost += u64::from(state + 1 < oracle.states.len());
        self.alone(&images.1, oracle, 0, how);
        let found = Oracle {
            states: vec![oracle.states[state].clone()],
            sure: 0,
        };
        self.without_fast(&images.1, &found, how);
        if self.draw.chance(30) {
            self.tally.openings_cut += 1;
            let cut = Trouble::CutBoth(self.draw.between(1, calls.max(1)));
            let (power, _) = self.life(images, &found, &[], cut);
            let survivors = power.survivors(&mut self.draw);
            let again = self.open(&Power::new(survivors, Trouble::Never));
            let again = again.unwrap_or_else(|error| panic!("after {how}, {cut:?}: {error}"));
            let same = found.matching(0, &again, self.keeps_holes());
            assert!(same.is_some(), "after {how}, {cut:?} it is another state");
        }
        found
    }

    /// With ordered write-back the slow medium alone is one state.
    fn alone(&mut self, slow: &[u8], oracle: &Oracle, first: usize, how: &str) {
        if self.setup.shape.journal_blocks == 0 {
            return;
        }
        self.tally.alone += 1;
        let medium: Arc<dyn Medium> = Arc::new(MemoryMedium::from_bytes(slow.to_vec()));
        let alone = SlowAlone::open(medium);
        let alone = alone.unwrap_or_else(|error| panic!("after {how}, alone: {error}"));
        let machines = Machines::slow_alone(alone).unwrap();
        let state = oracle.matching(first, &machines, false);
        assert!(state.is_some(), "after {how} the slow medium is no state");
        let disk = machines.disk(0);
        for refused in [
            disk.write(0, &[1]),
            disk.trim(0, 4096),
            disk.write_zeroes(0, 9, false),
        ] {
            assert!(matches!(refused, Err(DiskError::ReadOnly)), "{refused:?}");
        }
        disk.flush().unwrap();
    }

    /// A normal end loses nothing, and brings everything home if that is in order.
    fn closes(&mut self, images: &Images, oracle: &Oracle) {
        let power = Power::new(images.clone(), Trouble::Never);
        self.open(&power).unwrap().close().unwrap();
        let survivors = power.survivors(&mut self.draw);
        self.alone(&survivors.1, oracle, oracle.states.len() - 1, "an end");
        let again = self.open(&Power::new(survivors, Trouble::Never)).unwrap();
        let last = oracle.states.len() - 1;
        assert_eq!(
            oracle.matching(last, &again, self.keeps_holes()),
            Some(last)
        );
    }

    fn run(&mut self) {
        // All states of a life of the medium alone: it may be behind by more than one life.
        let mut images = self.setup.images();
        let mut oracle = Oracle::new(&self.setup);
        for life in 0..4 {
            let count = self.draw.between(10, 80) as usize;
            let ops = operations(&mut self.draw, count, &self.setup);
            let (calm, _) = self.life(&images, &oracle, &ops, Trouble::Never);
            let mut next = None;
            for _ in 0..5 {
                let trouble = self.trouble(&calm);
                let (power, after) = self.life(&images, &oracle, &ops, trouble);
                self.tally.cuts += 1;
                let survivors = power.survivors(&mut self.draw);
                let how = format!("{trouble:?} in life {life}");
                let found = self.recover(&survivors, &after, &how);
                if self.setup.shape.journal_blocks == 0 {
                    next = Some((survivors, found));
                } else {
                    // Of the slow medium alone earlier states are right, too.
                    self.closes(&survivors, &found);
                }
            }
            match next {
                Some(next) => (images, oracle) = next,
                None => return,
            }
        }
    }
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

#[test]
fn no_crash_loses_what_was_flushed_or_mixes_states_of_a_machine() {
    let first = number("FLASHLORE_CRASH_SEED", 1);
    let mut tally = Tally::default();
    for seed in first..first + number("FLASHLORE_CRASH_HISTORIES", 40) {
        let mut draw = Draw::new(seed);
        let setup = Setup::draw(&mut draw);
        let mut search = Search { draw, setup, tally };
        let run = std::panic::AssertUnwindSafe(|| search.run());
        std::panic::catch_unwind(run)
            .unwrap_or_else(|_| panic!("the history of seed {seed} fails"));
        tally = search.tally;
    }
    println!("{tally:?}");
    for (what, count) in [
        ("cuts", tally.cuts),
        ("recoveries that lost something", tally.lost),
        ("slow media opened alone", tally.alone),
        ("openings cut", tally.openings_cut),
        ("arrays without fast media", tally.without_fast),
    ] {
        assert!(count >= 20, "only {count} {what}");
    }
}
