//! The element against a plain list of values, with every invariant recounted and every hole compared after every
//! operation.

use crate::support;

use std::sync::Arc;

use flashlore_array::Element;
use flashlore_array::icash::{Counters, Machine, Options, TooBig};
use flashlore_medium::MemoryMedium;
use proptest::prelude::*;
use support::pages::draw_value;
use support::{Attendance, Attended, Draw, Op, Setup, Value, operations, page};

/// An element and what it must hold.
struct Pair {
    setup: Setup,
    fast: Arc<MemoryMedium>,
    slow: Arc<MemoryMedium>,
    element: Option<Attended>,
    model: Vec<Value>,
    counters: Vec<Counters>,
}

impl Pair {
    fn new(setup: Setup) -> Pair {
        let (fast, slow) = setup.images();
        let mut pair = Pair {
            fast: Arc::new(MemoryMedium::from_bytes(fast)),
            slow: Arc::new(MemoryMedium::from_bytes(slow)),
            element: None,
            model: vec![0; setup.blocks()],
            counters: Vec::new(),
            setup,
        };
        pair.open();
        pair
    }

    fn open(&mut self) {
        let opened = self.setup.open(self.fast.clone(), self.slow.clone());
        self.element = Some(opened.unwrap());
        self.all_is_as_it_should_be();
    }

    fn element(&mut self) -> &mut Attended {
        self.element.as_mut().expect("it is open")
    }

    fn reopen(&mut self) {
        self.element().flush().unwrap();
        let element = self.element.take().unwrap();
        self.counters.push(*element.counters());
        drop(element);
        self.open();
    }

    fn run(&mut self, op: Op) {
        match op {
            Op::Write(block, value) => {
                let lba = self.setup.lba(block);
                self.element().write(lba, &page(value)).unwrap();
                self.model[block] = value;
            }
            Op::Trim(block) => {
                let lba = self.setup.lba(block);
                self.element().trim(lba).unwrap();
                self.model[block] = 0;
            }
            Op::Read(block) => self.reads(block),
            Op::Flush => self.element().flush().unwrap(),
        }
        if let Err(error) = self.element().check() {
            panic!("after {op:?}: {error}");
        }
        self.holes_are_holes(&format!("{op:?}"));
    }

    /// A machine becomes a copy of another, or of itself.
    fn clone_machine(&mut self, native: usize, machine: usize) {
        let machines = self.setup.shape.machines.clone();
        let range = |position: usize| {
            let before = machines[..position].iter();
            let first: u32 = before.map(|machine| machine.blocks).sum();
            first as usize..(first + machines[position].blocks) as usize
        };
        let mut copied = self.model[range(native)].to_vec();
        copied.resize(range(machine).len(), 0);
        self.model[range(machine)].copy_from_slice(&copied);
        let (native, machine) = (machines[native].number, machines[machine].number);
        self.element().clone_machine(native, machine).unwrap();
        self.all_is_as_it_should_be();
    }

    fn holes_are_holes(&self, when: &str) {
        let element = self.element.as_ref().expect("it is open");
        let is_hole = |block: usize| self.model[block] == 0;
        let is_right = self.setup.has_right_holes(element, is_hole);
        assert!(
            is_right,
            "after {when} a hole is none, or the other way round"
        );
    }

    fn reads(&mut self, block: usize) {
        let lba = self.setup.lba(block);
        let mut found = [1; 4096];
        self.element().read(lba, &mut found).unwrap();
        assert!(
            found == page(self.model[block]),
            "block {block} holds something else"
        );
    }

    fn all_is_as_it_should_be(&mut self) {
        self.element().check().unwrap();
        self.element().verify().unwrap();
        for block in 0..self.model.len() {
            self.reads(block);
        }
        self.holes_are_holes("all was read");
    }

    fn end(mut self) -> Vec<Counters> {
        self.all_is_as_it_should_be();
        self.reopen();
        self.all_is_as_it_should_be();
        assert_eq!(self.element().counters().background_failures, 0);
        let last = *self.element().counters();
        self.counters.push(last);
        self.counters
    }
}

fn run(seed: u64, count: usize) -> Vec<Counters> {
    let mut draw = Draw::new(seed);
    let setup = Setup::draw(&mut draw);
    let ops = operations(&mut draw, count, setup.blocks());
    let mut pair = Pair::new(setup);
    for op in ops {
        pair.run(op);
        match draw.below(200) {
            0 => {
                if let Some(setup) = pair.setup.with_other_options(&mut draw) {
                    pair.setup = setup;
                }
                pair.reopen();
            }
            1 => pair.all_is_as_it_should_be(),
            2 => {
                let machines = pair.setup.shape.machines.len() as u64;
                let (native, machine) = (draw.below(machines), draw.below(machines));
                pair.clone_machine(native as usize, machine as usize);
            }
            _ => {}
        }
    }
    pair.end()
}

proptest! {
    // A history is its seed and its length: a shorter one with the same seed is the same at first.
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn it_holds_what_was_written(seed: u64, count in 1usize..400) {
        run(seed, count);
    }
}

/// A reference was written, lost its last associate and then its data block. The signature it kept was that of what
/// had been frozen there, and it got a data block with other content.
#[test]
fn the_signature_of_a_former_reference_goes_with_its_data_block() {
    let mut setup = Setup::draw(&mut Draw::new(5));
    setup.attendance = Attendance::PLAIN;
    let machine = |number| Machine { number, blocks: 20 };
    setup.shape.machines = vec![machine(0), machine(1)];
    (setup.shape.slots, setup.shape.journal_blocks) = (4, 0);
    setup.shape.frozen_blocks = 0;
    setup.options = Options::new(40, 256);
    setup.options.scan_every = u64::MAX;
    let least = setup
        .options
        .least_log_segments(setup.shape.segment_blocks, 0);
    setup.shape.log_segments = least;
    let mut pair = Pair::new(setup);
    pair.run(Op::Write(0, 1 << 16));
    pair.run(Op::Write(20, 1 << 16 | 1));
    // Changes what the signature is computed from.
    pair.run(Op::Write(0, 1 << 16 | 6));
    pair.run(Op::Trim(20));
    pair.run(Op::Flush);
    for block in 1..9 {
        pair.run(Op::Write(block, (100 + block as Value) << 16));
    }
    pair.run(Op::Read(0));
    pair.element().verify().unwrap();
    let counters = *pair.element().counters();
    let reached = (
        counters.same_address,
        counters.own_deltas,
        counters.demotions,
        counters.fills,
    );
    assert_eq!(reached, (1, 1, 1, 1));
}

/// Groups of many whole blocks in a log of segments of three blocks, as short as it may be.
#[test]
fn the_room_that_is_reserved_is_enough_for_the_longest_groups() {
    for (segment_blocks, flush_blocks) in [(3, 30), (4, 17), (5, 24), (8, 9)] {
        let mut setup = Setup::draw(&mut Draw::new(5));
        setup.shape.machines = vec![Machine {
            number: 0,
            blocks: 120,
        }];
        (setup.shape.slots, setup.shape.journal_blocks) = (20, 0);
        setup.shape.frozen_blocks = 20;
        setup.shape.segment_blocks = segment_blocks;
        setup.options = Options::new(160, 6000);
        setup.options.too_big = TooBig::Log;
        setup.options.flush_blocks = flush_blocks;
        setup.options.scan_every = 100;
        setup.shape.log_segments = setup.options.least_log_segments(segment_blocks, 0);
        let mut pair = Pair::new(setup);
        let mut draw = Draw::new(segment_blocks.into());
        for _ in 0..1500 {
            let block = draw.below(120) as usize;
            pair.run(match draw.below(10) {
                0 => Op::Read(block),
                _ => Op::Write(block, draw_value(&mut draw)),
            });
        }
        let counters = pair.end();
        let total = |count: fn(&Counters) -> u64| counters.iter().map(count).sum::<u64>();
        assert!(total(|c| c.own_flushes) >= 20, "{counters:?}");
    }
}

#[test]
fn long_histories_reach_everything_many_times() {
    let mut all = Vec::new();
    for seed in 0..40 {
        all.extend(run(seed, 1500));
    }
    let reached = |what: &str, count: fn(&Counters) -> u64| {
        let total: u64 = all.iter().map(count).sum();
        println!("{what}: {total}");
        assert!(total >= 100, "{what} was reached {total} times");
    };
    reached("hit of an independent", |c| c.hits_independent);
    reached("hit of an associate", |c| c.hits_associate);
    reached("hit of a reference", |c| c.hits_reference);
    reached("miss", |c| c.misses);
    reached("delta", |c| c.deltas);
    reached("delta of a reference from itself", |c| c.own_deltas);
    reached("compressed", |c| c.alone);
    reached("too big", |c| c.too_big);
    reached("reference detached", |c| c.detached);
    reached("whole in the log", |c| c.whole);
    reached("fill", |c| c.fills);
    reached("read past the cache", |c| c.bypassed_reads);
    reached("written past the cache", |c| c.bypassed_writes);
    reached("went home having passed", |c| c.bypassed_home);
    reached("went home ahead", |c| c.written_ahead);
    reached("given back", |c| c.given_back);
    reached("unpacked", |c| c.unpacked);
    reached("same address", |c| c.same_address);
    reached("scan", |c| c.scans);
    reached("reference chosen", |c| c.scan_references);
    reached("associate by a scan", |c| c.scan_associates);
    reached("demotion", |c| c.demotions);
    reached("replacement 1", |c| c.virtual_replaced);
    reached("replacement 2", |c| c.data_replaced);
    reached("reference released", |c| c.references_released);
    reached("reference frozen", |c| c.references_frozen);
    reached("frozen data block replaced", |c| c.frozen_replaced);
    reached("frozen data block read", |c| c.frozen_reads);
    reached("data block brought back", |c| c.brought_back);
    reached("replacement 3", |c| c.deltas_replaced);
    reached("written home", |c| c.written_home);
    reached("flush by itself", |c| c.own_flushes);
    reached("checkpoint", |c| c.checkpoints);
    reached("cleaned", |c| c.cleaned);
    reached("moved", |c| c.moved);
    reached("cleaned home", |c| c.cleaned_home);
    reached("batch", |c| c.batches);
}

/// Six pairs of a reference and an associate, and RAM for the deltas of three.
#[test]
fn deltas_of_references_leave_ram_when_there_are_no_others() {
    let mut draw = Draw::new(5);
    let mut setup = Setup::draw(&mut draw);
    setup.attendance = Attendance::PLAIN;
    setup.shape.machines.truncate(1);
    setup.shape.machines[0].blocks = 12;
    (setup.shape.slots, setup.shape.frozen_blocks) = (14, 0);
    setup.options = Options::new(40, 128);
    setup.options.scan_every = 12;
    setup.options.flush_blocks = 1;
    setup.shape.journal_blocks = 0;
    setup.shape.log_segments = setup
        .options
        .least_log_segments(setup.shape.segment_blocks, 0);
    let mut pair = Pair::new(setup);
    let value = |family: usize, version: usize| (family << 16 | version) as Value;
    for family in 1..=6 {
        pair.run(Op::Write(2 * family - 2, value(family, 0)));
        pair.run(Op::Write(2 * family - 1, value(family, 1)));
    }
    for round in 0..30 {
        for family in 1..=6 {
            // Of two equally popular blocks the one accessed later became the reference.
            pair.run(Op::Write(
                2 * family - 1,
                value(family, 6 + 8 * (round % 8)),
            ));
            pair.run(Op::Read(2 * (family % 6)));
        }
    }
    let counters = pair.end();
    let dropped: u64 = counters.iter().map(|c| c.own_deltas_dropped).sum();
    assert!(dropped >= 100, "{dropped} were dropped");
}
