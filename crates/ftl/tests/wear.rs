//! Static wear levelling in the foreground against its rule, told from the operations of the medium
//! alone: when cold data are moved, which, and to where.

use crate::common;

use std::collections::BTreeSet;

use common::{Medium, Random, medium};
use flashlore_content::PageTag;
use flashlore_flash::memory::MemoryFlash;
use flashlore_flash::record::Op;
use flashlore_flash::{Cause, Geometry, Lpn, Tag, When};
use flashlore_ftl::{FtlOptions, PlainFtl};

const PAGES: u32 = 8;

/// What the medium shows of the wear of a device with one plane.
struct Observer {
    gap: u32,
    erases: Vec<u32>,
    /// Blocks that hold nothing.
    free: BTreeSet<u32>,
    /// Blocks that are full and not being emptied.
    sealed: BTreeSet<u32>,
    until_look: u32,
    /// The block whose cold data are to be moved next, or are being moved.
    expected: Option<u32>,
    moved: u32,
    /// Units copied because they are cold, and because their block is collected.
    copies: (u64, u64),
    looked: u32,
}

impl Observer {
    fn new(blocks: u32, gap: u32) -> Self {
        Observer {
            gap,
            erases: vec![0; blocks as usize],
            free: (0..blocks).collect(),
            sealed: BTreeSet::new(),
            until_look: 1,
            expected: None,
            moved: 0,
            copies: (0, 0),
            looked: 0,
        }
    }

    fn worn(&self, block: u32) -> u32 {
        self.erases[block as usize]
    }

    fn see(&mut self, op: Op) {
        match op {
            Op::Read { page, cause } => {
                let block = page.0 / PAGES;
                let cold = (cause == Cause::Wear).then_some(block);
                assert_eq!(cold, self.expected, "what is moved for its wear");
                self.sealed.remove(&block);
            }
            Op::Program { ppn, from, .. } => {
                let block = ppn.0 / PAGES;
                let cold = from.is_some_and(|from| self.expected == Some(from.0 / PAGES));
                self.copies.0 += u64::from(cold);
                self.copies.1 += u64::from(from.is_some() && !cold);
                if self.free.contains(&block) && cold {
                    let most = self.free.iter().map(|&b| self.worn(b)).max().unwrap();
                    assert_eq!(
                        self.worn(block),
                        most,
                        "cold data go to the most worn block"
                    );
                }
                self.free.remove(&block);
                if ppn.0 % PAGES == PAGES - 1 {
                    self.sealed.insert(block);
                }
            }
            Op::Summary { .. } => unreachable!("the device has no summary pages"),
            Op::Erase { block } => self.erased(block.0),
        }
    }

    fn erased(&mut self, block: u32) {
        if let Some(cold) = self.expected.take() {
            assert_eq!(block, cold, "cold data are moved at once");
            self.moved += 1;
        }
        self.sealed.remove(&block);
        self.free.insert(block);
        self.erases[block as usize] += 1;
        self.until_look -= 1;
        if self.until_look > 0 {
            return;
        }
        self.looked += 1;
        self.until_look = (self.erases.len() as u32 / 16).max(2);
        let coldest = self.sealed.iter().map(|&b| (self.worn(b), b)).min();
        let most = self.erases.iter().copied().max().unwrap();
        self.expected = coldest
            .filter(|&(least, _)| most - least > self.gap && self.free.len() >= 2)
            .map(|(_, block)| block);
    }
}

/// Two thirds of the device stay as they are, the rest is overwritten.
fn run(blocks: u32, gap: u32) -> (PlainFtl<Medium<PageTag>>, Observer) {
    let geometry = Geometry::single_plane(blocks, PAGES, 4096).unwrap();
    let exported = (blocks - 8) * PAGES;
    let mut options = FtlOptions::new(exported);
    options.wear.static_gap = gap;
    options.collect.watermarks.low = 2;
    options.collect.watermarks.high = 2;
    let medium = medium(&geometry);
    let mut ftl = PlainFtl::new(medium, options).unwrap();
    let mut observer = Observer::new(blocks, gap);
    let mut random = Random::new(u64::from(blocks + gap));
    let writes = 60 * exported;
    for number in 0..writes {
        let lpn = if number < exported {
            number
        } else {
            random.below(exported / 3)
        };
        ftl.write(When::now(0), Lpn(lpn), PageTag(number), Tag::NONE)
            .unwrap();
        for op in ftl.core_mut().flash_mut().take() {
            observer.see(op);
        }
        assert_eq!(observer.expected, None, "nothing was moved");
        if number == writes / 2 {
            ftl.core_mut().restart_wear();
            observer.erases.fill(0);
        }
    }
    ftl.check().unwrap();
    (ftl, observer)
}

#[test]
fn the_coldest_block_is_moved_when_the_wear_differs_by_more_than_the_gap() {
    // A look every second erase, and every fifth; half way through the wear is forgotten.
    for blocks in [24, 80] {
        for gap in [1, 4] {
            let (ftl, observer) = run(blocks, gap);
            let moved = observer.moved;
            assert!(50 < moved && moved < observer.looked, "{moved} moves");
            let c = ftl.core().counters();
            assert_eq!(c.wear_victims, u64::from(moved));
            assert_eq!((c.programs_wear, c.programs_gc), observer.copies);
        }
    }
}

#[test]
fn moving_cold_data_does_not_end_collection() {
    // A wear victim is fully valid: it gains no page, and the device must go on collecting.
    let mut random = Random::new(2);
    let geometry = Geometry::single_plane(14, 4, 4096).unwrap();
    let mut options = FtlOptions::new(28);
    options.wear.static_gap = 3;
    let mut ftl = PlainFtl::new(MemoryFlash::new(geometry), options).unwrap();
    for number in 0..5000 {
        let lpn = if number < 28 { number } else { random.below(7) };
        let done = ftl.write(When::now(0), Lpn(lpn), PageTag(0), Tag::NONE);
        assert!(done.is_ok(), "write {number}: {done:?}");
    }
    assert!(ftl.core().counters().wear_victims > 100);
}
