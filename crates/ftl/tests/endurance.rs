//! Devices that are written to until they are worn out: how much they take, and what is left then.

use crate::common;

use common::{Medium, Random, medium};
use flashlore_content::PageTag;
use flashlore_flash::{Cause, Geometry, Lpn, Tag, When};
use flashlore_ftl::blocks::BlockPhase;
use flashlore_ftl::{FtlError, FtlOptions, Mode, PlainFtl, Watermarks};

const BLOCKS: u32 = 64;
const PAGES: u32 = 16;
const ENDURANCE: u32 = 20;

type Ftl = PlainFtl<Medium<PageTag>>;

fn device(change: impl Fn(&mut FtlOptions)) -> Ftl {
    let geometry = Geometry::single_plane(BLOCKS, PAGES, 4096).unwrap();
    let mut options = FtlOptions::new(BLOCKS * PAGES * 3 / 4);
    options.wear.dynamic = true;
    options.wear.endurance = ENDURANCE;
    change(&mut options);
    PlainFtl::new(medium(&geometry), options).unwrap()
}

/// Overwrites uniformly drawn pages until a write is refused; answers how many were taken.
fn wear_out(ftl: &mut Ftl) -> u64 {
    let exported = ftl.core().options().exported;
    let mut random = Random::new(8);
    let mut stored = vec![None; exported as usize];
    for number in 0.. {
        let lpn = if number < exported {
            number
        } else {
            random.below(exported)
        };
        ftl.advance(u64::from(number)).unwrap();
        let when = When::now(u64::from(number));
        match ftl.write(when, Lpn(lpn), PageTag(number), Tag::NONE) {
            Ok(_) => stored[lpn as usize] = Some(PageTag(number)),
            Err(FtlError::WornOut { .. }) => break,
            Err(other) => panic!("not worn out: {other}"),
        }
    }
    ftl.check().unwrap();
    let now = ftl.core().counters().host_writes;
    for (lpn, stored) in (0..).zip(stored) {
        let (found, _) = ftl.read(now, Lpn(lpn), Cause::Host, Tag::NONE).unwrap();
        assert_eq!(found, stored, "page {lpn}");
    }
    now
}

/// No block is filled more often than it endures, and with even wear few fills are left unused when
/// the spare space is gone.
#[test]
fn a_device_takes_as_many_programs_as_its_blocks_endure() {
    for mode in [Mode::Foreground, Mode::Background] {
        let mut ftl = device(|o| o.collect.mode = mode);
        let writes = wear_out(&mut ftl);
        let core = ftl.core();
        let c = core.counters();
        let most = u64::from(BLOCKS * PAGES * ENDURANCE);
        let used = c.programs() as f64 / most as f64;
        println!(
            "{mode:?}: {writes} writes, {} programs of {most}, {} blocks retired",
            c.programs(),
            c.retired
        );
        assert_eq!(c.programs_host, writes);
        assert!(c.programs() <= most, "{used}");
        assert!(used > 0.9, "{used}");
        assert!(core.blocks().records().iter().all(|b| b.erases < ENDURANCE));
        let retired = core.blocks().records().iter();
        let retired = retired.filter(|b| b.state == BlockPhase::Retired).count();
        assert_eq!(retired as u64, c.retired);
        assert!(retired > 8, "{retired}");
    }
}

/// With twice the life a device takes twice as much: wear, not the clock or the trace, ends it.
#[test]
fn the_life_of_a_device_is_proportional_to_the_endurance_of_its_blocks() {
    let life = |endurance| wear_out(&mut device(|o| o.wear.endurance = endurance)) as f64;
    let ratio = life(80) / life(40);
    assert!((ratio - 2.0).abs() < 0.05, "{ratio}");
}

/// High watermarks do not make a device with little spare space left collect without end: each retired
/// block lowers them by one, so that it goes on when less is spare than they asked for.
#[test]
fn watermarks_give_way_to_retired_blocks() {
    let high = 8;
    let mut ftl = device(|o| o.collect.watermarks = Watermarks { low: high, high });
    wear_out(&mut ftl);
    let c = ftl.core().counters();
    let spare = BLOCKS / 4;
    println!("{} of {spare} spare blocks retired", c.retired);
    assert!(c.retired > u64::from(spare - high) + 3, "{}", c.retired);
    // Victims near the end are nearly full, but not as if the last invalid page were scraped together.
    let mean = c.programs_gc as f64 / c.victims as f64;
    assert!(mean < f64::from(PAGES) * 0.8, "{mean} valid pages a victim");
}

/// Trims make room again, also after writes have been refused.
#[test]
fn what_is_trimmed_on_a_worn_out_device_makes_room() {
    let mut ftl = device(|_| {});
    wear_out(&mut ftl);
    let exported = ftl.core().options().exported;
    let refused = ftl.write(When::now(u64::MAX / 2), Lpn(0), PageTag(1), Tag::NONE);
    assert!(matches!(refused, Err(FtlError::WornOut { .. })));
    for lpn in 0..exported / 2 {
        ftl.trim(Lpn(lpn)).unwrap();
    }
    ftl.write(When::now(u64::MAX / 2), Lpn(0), PageTag(1), Tag::NONE)
        .unwrap();
    ftl.check().unwrap();
}
