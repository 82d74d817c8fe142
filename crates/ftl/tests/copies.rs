//! How a copied page travels and what its program waits for: copies inside a plane queue behind their
//! read and may stay on the chip; a page with a copy from another plane crosses the channel, after
//! the read of that copy.

use crate::common;

use std::collections::HashMap;
use std::convert::Infallible;

use common::{Random, exported, slc};
use flashlore_flash::geometry::Counts;
use flashlore_flash::sim::{NandSim, Timing};
use flashlore_flash::{
    Cause, Completion, Flash, Geometry, Lpn, PageId, Ppn, Ready, Route, Stream, Tag, Unit, When,
};
use flashlore_ftl::{FtlOptions, Mode, PlainFtl, PoolScope, Watermarks};

/// Holds every program of copies against the reads before it.
struct Watched {
    device: NandSim,
    copyback: bool,
    /// When the page was read last.
    reads: HashMap<PageId, Completion>,
    /// Pages of copies from the own plane, from elsewhere, and from both.
    own: u64,
    foreign: u64,
    mixed: u64,
}

impl Watched {
    fn see(&mut self, ready: Ready, page: PageId, units: &[Unit<()>], route: Route) {
        let geometry = self.device.geometry();
        let plane = geometry.plane_of(geometry.block_of_page(page));
        let sources = units.iter().filter_map(|unit| match unit {
            Unit::Copy { from, .. } => Some(*from),
            _ => None,
        });
        let (own, foreign): (Vec<Ppn>, Vec<Ppn>) =
            sources.partition(|&from| geometry.plane_of_unit(from) == plane);
        let on_chip = foreign.is_empty() && self.copyback;
        assert_eq!(route == Route::OnChip, on_chip, "{own:?} {foreign:?}");
        for &from in &foreign {
            match (self.reads[&geometry.page_of(from)], ready) {
                (Completion::At { end, .. }, Ready::At(at)) => assert!(end <= at),
                (Completion::At { end, .. }, Ready::After(_, at)) => assert!(end <= at),
                (Completion::Later(_), Ready::After(..)) => {}
                (Completion::Later(_), Ready::At(_)) => panic!("page {page:?} waits for no read"),
            }
        }
        if let Some(&last) = foreign.last()
            && let Completion::Later(read) = self.reads[&geometry.page_of(last)]
        {
            assert!(matches!(ready, Ready::After(op, _) if op == read));
        }
        match (own.is_empty(), foreign.is_empty()) {
            (false, true) => self.own += 1,
            (true, false) => self.foreign += 1,
            _ => self.mixed += 1,
        }
    }
}

impl Flash for Watched {
    type Page = ();
    type Tables = flashlore_flash::InMemory;
    type Error = Infallible;

    flashlore_flash::pass_on!(device: geometry, tables, erase, content, advance, idle_since, next_event);

    fn read(
        &mut self,
        ready: Ready,
        ppn: Ppn,
        units: u32,
        cause: Cause,
        route: Route,
        tag: Tag,
    ) -> Result<Completion, Infallible> {
        let done = self.device.read(ready, ppn, units, cause, route, tag)?;
        self.reads.insert(self.geometry().page_of(ppn), done);
        Ok(done)
    }

    fn program(
        &mut self,
        ready: Ready,
        page: PageId,
        units: &[Unit<()>],
        stream: Stream,
        route: Route,
        tags: &[Tag],
    ) -> Result<Completion, Infallible> {
        if matches!(stream, Stream::Gc | Stream::LogGc) {
            self.see(ready, page, units, route);
        }
        self.device.program(ready, page, units, stream, route, tags)
    }
}

/// Two dies that share their free blocks and run out of them, so that copies cross.
fn run(units: u32, shared_channel: bool, copyback: bool, mode: Mode) -> Watched {
    let geometry = Geometry::new(Counts {
        channels: 1,
        packages_per_channel: 1,
        dies_per_package: 2,
        planes_per_die: 1,
        blocks_per_plane: 16,
        pages_per_block: 8,
        page_bytes: units * 4096,
    })
    .unwrap();
    let timing = Timing {
        shared_channel,
        ..slc()
    };
    let pages = exported(&geometry, 0.5);
    let mut options = FtlOptions::new(pages);
    options.layout.pool = PoolScope::Device;
    options.collect.mode = mode;
    options.collect.watermarks = Watermarks { low: 2, high: 2 };
    options.collect.copyback = copyback;
    let watched = Watched {
        device: NandSim::new(geometry, timing),
        copyback,
        reads: HashMap::new(),
        own: 0,
        foreign: 0,
        mixed: 0,
    };
    let mut ftl = PlainFtl::new(watched, options).unwrap();
    let mut random = Random::new(3);
    let mut now = 0;
    for _ in 0..40 * pages {
        now += random.exponential(600_000.0);
        ftl.advance(now).unwrap();
        let lpn = random.below(pages);
        ftl.write(When::now(now), Lpn(lpn), (), Tag::NONE).unwrap();
    }
    ftl.check().unwrap();
    let flash = ftl.core_mut().flash_mut();
    Watched {
        device: flash.device.clone(),
        reads: HashMap::new(),
        ..*flash
    }
}

#[test]
fn a_copy_to_another_plane_waits_for_its_read_and_crosses_the_channel() {
    for shared_channel in [false, true] {
        for copyback in [false, true] {
            for mode in [Mode::Foreground, Mode::Background] {
                for units in [1, 4] {
                    let Watched {
                        own,
                        foreign,
                        mixed,
                        ..
                    } = run(units, shared_channel, copyback, mode);
                    let seen = format!("{own} own, {foreign} foreign, {mixed} mixed pages");
                    assert!(own > 100 && foreign > 20, "{seen}");
                    // Only steps of several collections meet in a page.
                    let meet = units > 1 && mode == Mode::Background;
                    assert_eq!(mixed > 5, meet, "{seen}");
                }
            }
        }
    }
}
