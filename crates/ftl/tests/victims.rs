//! Somebody else's victim policy: the core collects what it names.

use crate::common;

use common::{Random, medium};
use flashlore_content::PageTag;
use flashlore_flash::record::Op;
use flashlore_flash::{BlockId, Geometry, Lpn, PoolId, Tag, When};
use flashlore_ftl::blocks::{BlockPhase, Blocks};
use flashlore_ftl::gc::{VictimPolicy, Victims};
use flashlore_ftl::{FtlOptions, PlainFtl, VictimChoice};

const PAGES: u32 = 8;
const BLOCKS: u32 = 32;
const EXPORTED: u32 = 160;

/// First in, first out: the block that was sealed first.
struct Fifo;

impl VictimPolicy for Fifo {
    fn choose(
        &mut self,
        blocks: &mut Blocks,
        pool: PoolId,
        allowed: &dyn Fn(&Blocks, BlockId) -> bool,
    ) -> Option<BlockId> {
        let candidates = blocks
            .candidates(pool)
            .filter(|&block| allowed(blocks, block));
        candidates.min_by_key(|&block| blocks.record(block).sealed)
    }
}

#[test]
fn a_policy_of_somebody_else_is_obeyed() {
    let geometry = Geometry::single_plane(BLOCKS, PAGES, 4096).unwrap();
    let medium = medium(&geometry);
    let mut ftl = PlainFtl::new(medium, FtlOptions::new(EXPORTED)).unwrap();
    ftl.core_mut().set_victims(Victims::Custom(Box::new(Fifo)));
    let mut random = Random::new(6);
    let (mut victims, mut emptier) = (0, 0);
    for number in 0..6000 {
        let (oldest, fewest) = oldest(ftl.core().blocks());
        let lpn = if number < EXPORTED {
            number
        } else {
            random.below(EXPORTED)
        };
        ftl.write(When::now(0), Lpn(lpn), PageTag(number), Tag::NONE)
            .unwrap();
        let ops = ftl.core_mut().flash_mut().take();
        let erased = ops.iter().find_map(|op| match op {
            Op::Erase { block } => Some(*block),
            _ => None,
        });
        if erased.is_some() {
            assert_eq!(erased, oldest);
            victims += 1;
            emptier += u32::from(!fewest);
        }
    }
    ftl.check().unwrap();
    assert!(
        victims > 500 && emptier > 100,
        "{victims} victims, {emptier}"
    );
}

/// The sealed block with something to gain that was sealed first, and whether none has fewer valid
/// units.
fn oldest(blocks: &Blocks) -> (Option<BlockId>, bool) {
    let records = || (0..BLOCKS).map(|b| (BlockId(b), blocks.record(BlockId(b))));
    let gains =
        || records().filter(|(_, r)| r.state == BlockPhase::Sealed && u32::from(r.valid) < PAGES);
    let oldest = gains().min_by_key(|(_, r)| r.sealed);
    let fewest = gains().map(|(_, r)| r.valid).min();
    (
        oldest.map(|(b, _)| b),
        oldest.map(|(_, r)| r.valid) == fewest,
    )
}

/// Where most of the device never changes, the circle passes over it: nothing is copied for ever, and
/// the oldest block that gains a page is taken.
#[test]
fn full_blocks_have_their_turn_without_being_copied() {
    for victims in [VictimChoice::Fifo, VictimChoice::WindowedGreedy(4)] {
        let geometry = Geometry::single_plane(BLOCKS, PAGES, 4096).unwrap();
        let medium = medium(&geometry);
        let mut options = FtlOptions::new(EXPORTED);
        options.collect.victims = victims;
        let mut ftl = PlainFtl::new(medium, options).unwrap();
        for lpn in 0..EXPORTED {
            ftl.write(When::now(0), Lpn(lpn), PageTag(lpn), Tag::NONE)
                .unwrap();
        }
        // One block's worth of addresses, one after the other: its copies die together.
        for number in 0..100 * PAGES {
            ftl.write(
                When::now(0),
                Lpn(number % PAGES),
                PageTag(number),
                Tag::NONE,
            )
            .unwrap();
        }
        ftl.check().unwrap();
        let counters = ftl.core().counters();
        assert!(counters.victims > 80, "{} victims", counters.victims);
        assert_eq!(counters.programs_gc, 0, "{victims:?}");
    }
}
