//! The rules of the paper, one by one, on small elements whose contents are made for the purpose.
//!
//! | file | what it holds |
//! |---|---|
//! | `answers.rs` | what a host waits for, and what a request is |
//! | `ram.rs` | data blocks in RAM, and when the fast medium is written |
//! | `accesses.rs` | what the heatmap counts, and the order of the LRU list |
//! | `scans.rs` | which blocks become references and which their associates |
//! | `counterparts.rs` | blocks with the same address in another machine |
//! | `replacements.rs` | what is replaced first |
//! | `looks.rs` | who only looks changes nothing |
//! | `evictions.rs` | references leave the fast medium, are read where they are frozen, and come back |
//! | `work.rs` | what follows requests, in steps |
//! | `runs.rs` | packing in sequence, unpacking, trims |

mod accesses;
mod answers;
mod counterparts;
mod evictions;
mod looks;
mod ram;
mod replacements;
mod runs;
mod scans;
mod work;

use std::collections::BTreeSet;
use std::sync::Arc;

use flashlore_delta::Page;
use flashlore_medium::MemoryMedium;

use crate::element::Element;
use crate::error::ArrayError;
use crate::icash::blocks::{Content, Id};
use crate::icash::parameters::{SUB_BLOCK_BYTES, SUB_BLOCKS};
use crate::icash::place::BlockEntry;
use crate::icash::state::ICash;
use crate::icash::{Machine, Options, Shape, bytes_needed, create, lba};
use crate::index::ArrayBlock;

/// Blocks of each of the three machines.
const BLOCKS: u32 = 100;

/// Options without scans but those that a test asks for.
fn options() -> Options {
    Options {
        scan_every: u64::MAX,
        ..Options::new(250, 4000)
    }
}

/// An element of three machines, 60 slots and no frozen places.
fn element(options: Options) -> ICash {
    let media = media(&options, 0);
    open(&media, options)
}

type Media = (Arc<MemoryMedium>, Arc<MemoryMedium>);

fn open((fast, slow): &Media, options: Options) -> ICash {
    ICash::open(fast.clone(), slow.clone(), options).unwrap()
}

/// The media of a new element with so many frozen places.
fn media(options: &Options, frozen_blocks: u32) -> Media {
    let machine = |number| Machine {
        number,
        blocks: BLOCKS,
    };
    let shape = Shape {
        machines: vec![machine(0), machine(1), machine(2)],
        slots: 60,
        log_segments: options.least_log_segments(32, 0) + 8,
        segment_blocks: 32,
        journal_blocks: 0,
        frozen_blocks,
    };
    let (fast, slow) = bytes_needed(&shape).unwrap();
    let fast = Arc::new(MemoryMedium::new(fast as usize));
    let slow = Arc::new(MemoryMedium::new(slow as usize));
    create(fast.clone(), slow.clone(), [7; 16], &shape).unwrap();
    (fast, slow)
}

/// Content of a family with a given signature. Two of one family differ in eight bytes at most; two of different
/// ones have no short delta, whatever their signatures.
fn page(family: u32, signature: [u8; SUB_BLOCKS]) -> Page {
    let mut page = [0; 4096];
    let mut state = family + 1;
    for byte in &mut page {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *byte = (state >> 24) as u8;
    }
    for (sub_block, value) in page.chunks_mut(SUB_BLOCK_BYTES).zip(signature) {
        (sub_block[0], sub_block[16], sub_block[32], sub_block[64]) = (value, 0, 0, 0);
    }
    page
}

#[derive(Debug, PartialEq, Eq)]
enum BlockState {
    /// It has no virtual block.
    Absent,
    Independent,
    Reference,
    /// Of the reference that this block is.
    AssociateOf(Option<u32>),
}

/// Blocks by their plain numbers, as tests write them.
impl ICash {
    fn lba_of(&self, block: u32) -> u64 {
        self.addresses.lba(ArrayBlock(block))
    }

    fn find(&self, block: u32) -> Option<Id> {
        self.blocks.find(ArrayBlock(block))
    }

    fn id(&self, block: u32) -> Id {
        self.find(block).expect("a virtual block")
    }

    fn entry_of(&self, block: u32) -> BlockEntry {
        self.table.get(ArrayBlock(block))
    }

    fn state_of(&self, block: u32) -> BlockState {
        let Some(id) = self.find(block) else {
            return BlockState::Absent;
        };
        match self.base_of(id) {
            Some(base) => {
                let holder = self.pool.users(base).holder.expect("a reference");
                BlockState::AssociateOf(self.blocks.get(holder).block.map(|block| block.0))
            }
            None if self.is_reference(id) => BlockState::Reference,
            None => BlockState::Independent,
        }
    }

    fn write_page(&mut self, block: u32, content: Page) {
        let address = self.lba_of(block);
        self.write(address, &content).unwrap();
        self.work_off();
        self.check().unwrap();
    }

    /// Reads a block, which must hold this.
    fn holds(&mut self, block: u32, content: Page) {
        let address = self.lba_of(block);
        let mut found = [0; 4096];
        self.read(address, &mut found).unwrap();
        self.work_off();
        assert!(found == content, "block {block} holds something else");
        self.check().unwrap();
    }

    fn scan(&mut self) -> Result<(), ArrayError> {
        self.scan_step()?;
        while self.scanning.is_some() {
            self.scan_step()?;
        }
        Ok(())
    }

    fn scan_now(&mut self) {
        self.scan().unwrap();
        self.check().unwrap();
        self.verify().unwrap();
    }

    /// Lets a block be at home and nowhere else.
    fn send_home(&mut self, block: u32) {
        self.write_back(&BTreeSet::from([ArrayBlock(block)]))
            .unwrap();
        self.drop_virtual(self.id(block));
        self.check().unwrap();
    }

    /// Lets a block be in the log and not in RAM.
    fn forget(&mut self, block: u32) {
        let id = self.id(block);
        assert!(self.is_droppable(id) && matches!(self.blocks.get(id).content, Content::Held(..)));
        self.drop_virtual(id);
        self.check().unwrap();
    }

    fn newest_blocks(&self, count: usize) -> Vec<Option<u32>> {
        let newest = self.blocks.newest_first().take(count);
        { newest }
            .map(|(_, found)| found.block.map(|block| block.0))
            .collect()
    }
}

#[test]
fn the_defaults_are_the_papers() {
    let options = Options::new(1000, 2000);
    let expected = Options {
        scan_every: 2000,
        scan_blocks: 4000,
        delta_limit: 2048,
        similar_positions: 4,
        ..options.clone()
    };
    assert_eq!(options, expected);
    assert!(options.unpack_all && !options.halve_heatmap);
    assert_eq!(crate::icash::parameters::SEGMENT_BYTES, 64);
    assert_eq!(lba(9, 5) >> 56, 9);
}

#[test]
fn a_scan_comes_with_every_so_many_requests() {
    let mut element = element(Options {
        scan_every: 10,
        ..options()
    });
    for number in 1..=100 {
        element.write_page(number % 5, page(1, [number as u8; 8]));
        assert_eq!(element.counters().scans, u64::from(number / 10));
    }
}
