//! A device that a recovery leaves without a free block, as damage can: what is collected goes to the host's open block,
//! and the device goes on.

use flashlore_flash::faults::{Faulty, Odds};
use flashlore_flash::memory::MemoryFlash;
use flashlore_flash::rules::Checked;
use flashlore_flash::{
    Cause, Flash, Geometry, InMemory, Lpn, Owner, PageId, Ppn, Ready, Route, Stream, Tag, Unit,
    When,
};
use flashlore_ftl::core::restore::{RestoredBlock, RestoredBlocks, RestoredState, RestoredUnits};
use flashlore_ftl::mapping::direct::Direct;
use flashlore_ftl::{FtlOptions, Mode, PlainFtl, Watermarks};

const BLOCKS: u32 = 8;
const PAGES: u32 = 4;
/// Two valid pages in each block but the last, which is open and empty.
const EXPORTED: u32 = 2 * (BLOCKS - 1);

#[test]
fn a_device_without_a_free_block_goes_on_in_the_open_one() {
    let geometry = Geometry::single_plane(BLOCKS, PAGES, 4096).unwrap();
    let mut flash = Faulty::new(
        Checked::new(MemoryFlash::<u32>::new(geometry)),
        Odds::default(),
        0,
    );
    let mut map = Vec::new();
    for page in 0..(BLOCKS - 1) * PAGES {
        let lpn = page / PAGES * 2 + page % 2;
        let owner = Owner::page(Lpn(lpn));
        let units = [Unit::New { owner, page: lpn }];
        let (ready, route) = (Ready::At(0), Route::Channel);
        let tags = [Tag::NONE];
        let done = flash.program(ready, PageId(page), &units, Stream::Host, route, &tags);
        done.unwrap();
        // The second half of a block is what is valid of it.
        if page % PAGES >= 2 {
            map.push(Ppn(page));
        }
    }
    let state = |block| match block == BLOCKS - 1 {
        true => RestoredState::Open {
            stream: Stream::Host,
            taken: 0,
        },
        false => RestoredState::Sealed,
    };
    let blocks = (0..BLOCKS).map(|block| RestoredBlock {
        erases: 0,
        state: state(block),
    });
    let found = RestoredBlocks {
        blocks: blocks.collect(),
        sealing: (0..BLOCKS).map(flashlore_flash::BlockId).collect(),
    };
    let mut options = FtlOptions::new(EXPORTED);
    options.collect.mode = Mode::Stepped { urgent: 2 };
    options.thin = true;
    options.collect.watermarks = Watermarks { low: 2, high: 2 };
    let owners = (0..).map(Lpn).zip(&map);
    let owners = owners.map(|(lpn, &unit)| (unit, Owner::page(lpn)));
    let units = RestoredUnits::of(BLOCKS * PAGES, owners);
    let map = Direct::restore(&InMemory, map.into_iter());
    let mut ftl = PlainFtl::restore(flash, options, map, &found, units).unwrap();
    ftl.check().unwrap();
    let mut held: Vec<u32> = (0..EXPORTED).collect();
    for n in 0..200 {
        // Few pages, so that no block empties by itself.
        let lpn = n / 50;
        ftl.keep_pace().unwrap();
        let written = ftl.write(When::now(0), Lpn(lpn), 1000 + n, Tag::NONE);
        written.unwrap_or_else(|error| panic!("write {n}: {error}"));
        held[lpn as usize] = 1000 + n;
        ftl.check().unwrap();
    }
    for (lpn, value) in (0..).zip(held) {
        let read = ftl.read(0, Lpn(lpn), Cause::Host, Tag::NONE).unwrap();
        assert_eq!(read.0, Some(value));
    }
}
