//! Background collection in idle gaps: what the host waits for, and when a block may be used again.
//!
//! The host sends one operation at a time, each after a gap, so that whatever it waits for is
//! background work: at most one step (a page copied, or an erase), and no erase at all where it can
//! be suspended. A block is programmed only after its erase has ended.

use crate::common;

use std::convert::Infallible;

use common::{Random, exported, slc};
use flashlore_flash::geometry::Counts;
use flashlore_flash::sim::{NandSim, Timing};
use flashlore_flash::{
    BlockId, Cause, Completion, Finished, Flash, Geometry, Lpn, PageId, PlaneId, Ppn, Ready, Route,
    Stream, Tag, Time, Unit, When,
};
use flashlore_ftl::core::FIRST_RESERVED_TAG;
use flashlore_ftl::{FtlOptions, Mode, PlainFtl, PoolScope, Streams, Watermarks};

const STEP: Time = 25_000 + 102_400 + 102_400 + 200_000;
const ERASE: Time = 1_500_000;

/// When a block was erased last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Erased {
    /// So far not.
    Never,
    /// It is being erased.
    Running,
    /// The erase ended at this instant.
    At(Time),
}

/// Watches erases and the programs that follow them.
struct Watched {
    device: NandSim,
    erased: Vec<Erased>,
    background_erases: u64,
    /// Programs of a block whose erase had not been reported.
    during_erase: u64,
    /// Programs that began before the erase of their block ended.
    before_end: u64,
    /// Steps that were begun on a die that had something to do still.
    on_busy_die: u64,
}

impl Watched {
    fn new(device: NandSim) -> Self {
        Watched {
            erased: vec![Erased::Never; device.geometry().blocks() as usize],
            device,
            background_erases: 0,
            during_erase: 0,
            before_end: 0,
            on_busy_die: 0,
        }
    }

    /// A step begins on a plane.
    fn step(&mut self, at: Time, plane: PlaneId) {
        let idle = self.device.idle_since(plane);
        self.on_busy_die += u64::from(idle.is_none_or(|since| since > at));
    }

    fn is_erasing(&self) -> bool {
        self.erased.contains(&Erased::Running)
    }
}

impl Flash for Watched {
    type Page = ();
    type Tables = flashlore_flash::InMemory;
    type Error = Infallible;

    flashlore_flash::pass_on!(device: geometry, tables, content, idle_since, next_event);

    fn read(
        &mut self,
        ready: Ready,
        ppn: Ppn,
        units: u32,
        cause: Cause,
        route: Route,
        tag: Tag,
    ) -> Result<Completion, Infallible> {
        if matches!(cause, Cause::Gc | Cause::Wear) {
            let (Ready::At(at) | Ready::After(_, at)) = ready;
            self.step(at, self.geometry().plane_of_unit(ppn));
        }
        self.device.read(ready, ppn, units, cause, route, tag)
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
        let block = self.device.geometry().block_of_page(page);
        let done = self
            .device
            .program(ready, page, units, stream, route, tags)?;
        match (self.erased[block.index()], done) {
            (Erased::Running, _) => self.during_erase += 1,
            (Erased::At(end), Completion::At { start, .. }) if start < end => self.before_end += 1,
            _ => {}
        }
        Ok(done)
    }

    fn erase(
        &mut self,
        at: Time,
        block: BlockId,
        background: bool,
        tag: Tag,
    ) -> Result<Completion, Infallible> {
        self.step(at, self.geometry().plane_of(block));
        let done = self.device.erase(at, block, background, tag)?;
        self.background_erases += u64::from(background);
        self.erased[block.index()] = match done {
            Completion::At { end, .. } => Erased::At(end),
            Completion::Later(_) => Erased::Running,
        };
        Ok(done)
    }

    fn advance(&mut self, until: Time, done: &mut Vec<Finished>) {
        let before = done.len();
        self.device.advance(until, done);
        for finished in &done[before..] {
            if finished.tag.0 >= FIRST_RESERVED_TAG && finished.tag != Tag::NONE {
                let block = finished.tag.0 - FIRST_RESERVED_TAG;
                self.erased[block as usize] = Erased::At(finished.end);
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Case {
    dies: u32,
    planes: u32,
    shared_channel: bool,
    mode: Mode,
    suspend: bool,
    mean_gap: Time,
    /// Of ten operations, how many write.
    writes: u32,
    pool: PoolScope,
    /// Blocks of a pool that are free when collection begins.
    low: u32,
    /// Static wear levelling; the host then writes to a quarter of the pages.
    static_gap: u32,
}

impl Case {
    fn draw(self, random: &mut Random, pages: u32) -> u32 {
        random.below(if self.static_gap > 0 {
            pages / 4
        } else {
            pages
        })
    }
}

/// What the host saw.
#[derive(Debug, Default)]
struct Seen {
    longest_wait: Time,
    /// Operations that waited at all.
    waited: u64,
    /// The same while a background erase ran somewhere.
    waited_for_an_erase: u64,
    /// Operations that arrived while an erase ran.
    during_an_erase: u64,
}

const OPERATIONS: u32 = 60_000;

/// The host's operations, one at a time.
const HOST: Tag = Tag(0);

fn device(case: Case) -> (PlainFtl<Watched>, Random) {
    let geometry = Geometry::new(Counts {
        channels: 1,
        packages_per_channel: 1,
        dies_per_package: case.dies,
        planes_per_die: case.planes,
        blocks_per_plane: 64,
        pages_per_block: 32,
        page_bytes: 4096,
    })
    .unwrap();
    let timing = Timing {
        shared_channel: case.shared_channel,
        erase_suspend: case.suspend,
        ..slc()
    };
    let mut options = FtlOptions::new(exported(&geometry, 0.28));
    options.collect.mode = case.mode;
    options.layout.pool = case.pool;
    options.wear.static_gap = case.static_gap;
    options.collect.watermarks = Watermarks {
        low: case.low,
        high: case.low + 1,
    };
    let flash = Watched::new(NandSim::new(geometry, timing));
    let mut ftl = PlainFtl::new(flash, options).unwrap();
    let mut random = Random::new(7);
    let pages = ftl.core().options().exported;
    for number in 0..3 * pages {
        let lpn = if number < pages {
            number
        } else {
            case.draw(&mut random, pages)
        };
        ftl.write(When::now(0), Lpn(lpn), (), Tag::NONE).unwrap();
    }
    ftl.settle(0).unwrap();
    let watched = ftl.core_mut().flash_mut();
    watched.device.restart();
    watched.erased.fill(Erased::Never);
    watched.background_erases = 0;
    (watched.during_erase, watched.before_end) = (0, 0);
    watched.on_busy_die = 0;
    ftl.core_mut().restart_counters();
    (ftl, random)
}

/// Start and end of the host's operation; lets time pass until they are known.
fn ended(ftl: &mut PlainFtl<Watched>, done: Completion) -> (Time, Time) {
    if let Completion::At { start, end } = done {
        return (start, end);
    }
    loop {
        let next = ftl.core().flash().next_event();
        let next = next.expect("the host's operation is open");
        ftl.advance(next).unwrap();
        let finished = std::mem::take(ftl.core_mut().finished());
        if let Some(host) = finished.iter().find(|f| f.tag == HOST) {
            return (host.start, host.end);
        }
    }
}

fn run(case: Case) -> (Seen, PlainFtl<Watched>) {
    let (mut ftl, mut random) = device(case);
    let pages = ftl.core().options().exported;
    let mut seen = Seen::default();
    let mut last_end = 0;
    for _ in 0..OPERATIONS {
        let at = last_end + random.exponential(case.mean_gap as f64);
        ftl.advance(at).unwrap();
        let erasing = ftl.core().flash().is_erasing();
        let lpn = case.draw(&mut random, pages);
        let done = if random.below(10) < case.writes {
            ftl.write(When::now(at), Lpn(lpn), (), HOST).unwrap()
        } else {
            ftl.read(at, Lpn(lpn), Cause::Host, HOST).unwrap().1
        };
        let (start, end) = ended(&mut ftl, done);
        let wait = start - at;
        seen.longest_wait = seen.longest_wait.max(wait);
        seen.waited += u64::from(wait > 0);
        seen.during_an_erase += u64::from(erasing);
        seen.waited_for_an_erase += u64::from(erasing && wait > 0);
        last_end = end;
    }
    ftl.check().unwrap();
    (seen, ftl)
}

fn relaxed(dies: u32, planes: u32, suspend: bool) -> Case {
    Case {
        dies,
        planes,
        shared_channel: false,
        mode: Mode::Background,
        suspend,
        mean_gap: 2_500_000,
        writes: 5,
        pool: PoolScope::Plane,
        low: 4,
        static_gap: 0,
    }
}

const SHAPES: [(u32, u32); 3] = [(1, 1), (1, 2), (2, 2)];

fn assert_collected_in_the_background(ftl: &PlainFtl<Watched>) {
    let (counters, flash) = (ftl.core().counters(), ftl.core().flash());
    assert!(counters.victims > 100, "{} victims", counters.victims);
    assert_eq!(
        flash.background_erases, counters.erases,
        "nothing is urgent"
    );
}

#[test]
fn without_suspension_the_host_waits_for_one_step_or_the_rest_of_an_erase() {
    for (dies, planes) in SHAPES {
        let (seen, ftl) = run(relaxed(dies, planes, false));
        assert_collected_in_the_background(&ftl);
        assert!(seen.longest_wait <= ERASE, "{seen:?}");
        // Both kinds of wait occur.
        assert!(
            seen.longest_wait > STEP && seen.waited > seen.waited_for_an_erase,
            "{seen:?}"
        );
    }
}

#[test]
fn with_suspension_the_host_waits_for_one_step_and_never_for_an_erase() {
    for (dies, planes) in SHAPES {
        let (seen, ftl) = run(relaxed(dies, planes, true));
        assert_collected_in_the_background(&ftl);
        assert!(seen.longest_wait <= STEP && seen.waited > 100, "{seen:?}");
        assert!(seen.during_an_erase > 100, "{seen:?}");
        if dies == 1 {
            // Nothing else runs on a die that erases. (The other die may copy meanwhile.)
            assert_eq!(seen.waited_for_an_erase, 0, "{seen:?}");
        }
    }
}

/// On a shared channel what the host waits for at its die is the same; one die, so that nobody else
/// uses the channel.
#[test]
fn on_a_shared_channel_the_host_waits_as_long() {
    for (suspend, planes) in [(false, 1), (true, 1), (true, 2)] {
        let case = Case {
            shared_channel: true,
            ..relaxed(1, planes, suspend)
        };
        let (seen, ftl) = run(case);
        assert_collected_in_the_background(&ftl);
        let most = if suspend { STEP } else { ERASE };
        assert!(seen.longest_wait <= most && seen.waited > 100, "{seen:?}");
        assert!(seen.during_an_erase > 100, "{seen:?}");
        assert_eq!(seen.waited_for_an_erase == 0, suspend, "{seen:?}");
        assert_eq!(ftl.core().flash().during_erase, 0);
    }
}

/// A gap is used to its end, however seldom the device is told that time has passed.
#[test]
fn one_long_gap_is_worth_as_much_as_the_same_gap_in_pieces() {
    for shared_channel in [false, true] {
        for (dies, planes) in SHAPES {
            let after = |pieces: u64| {
                let case = Case {
                    shared_channel,
                    ..relaxed(dies, planes, true)
                };
                let (mut ftl, mut random) = device(case);
                let pages = ftl.core().options().exported;
                let mut before = 0;
                for _ in 0..300 * dies * planes {
                    ftl.write(When::now(0), Lpn(random.below(pages)), (), Tag::NONE)
                        .unwrap();
                    before = ftl.core().free_blocks();
                }
                for piece in 1..=pieces {
                    ftl.advance(piece * (2_000_000_000 / pieces)).unwrap();
                }
                let counters = ftl.core().counters().clone();
                (before, ftl.core().free_blocks(), counters)
            };
            let (before, free, _) = after(1);
            assert!(free > before, "{free} blocks are free, {before} before");
            // Above the high watermark in every pool.
            assert!(free > 5 * dies * planes, "{free} blocks are free");
            assert_eq!(after(1), after(4000));
        }
    }
}

#[test]
fn in_the_foreground_the_same_host_waits_for_whole_collections() {
    let case = Case {
        mode: Mode::Foreground,
        ..relaxed(1, 1, false)
    };
    let (seen, ftl) = run(case);
    assert_eq!(ftl.core().flash().background_erases, 0);
    assert!(seen.longest_wait > ERASE + 5 * STEP, "{seen:?}");
}

#[test]
fn no_block_is_allocated_before_its_erase_has_ended() {
    for suspend in [false, true] {
        for (dies, planes) in SHAPES {
            let (_, ftl) = run(relaxed(dies, planes, suspend));
            let flash = ftl.core().flash();
            assert_eq!((flash.during_erase, flash.before_end), (0, 0));
        }
    }
}

/// Where the host leaves no gaps, blocks whose erase runs are taken at once: their first program
/// waits for the end of the erase.
#[test]
fn under_pressure_no_program_begins_before_the_erase_of_its_block_has_ended() {
    for suspend in [false, true] {
        for (dies, planes) in SHAPES {
            let case = Case {
                // A gap now and then.
                mean_gap: 1,
                writes: 9,
                ..relaxed(dies, planes, suspend)
            };
            let (_, ftl) = run(case);
            let (counters, flash) = (ftl.core().counters(), ftl.core().flash());
            let in_gaps = flash.background_erases;
            assert!(0 < in_gaps && in_gaps < counters.erases, "{in_gaps} erases");
            assert!(flash.during_erase > 0, "blocks are taken before their end");
            assert_eq!(flash.before_end, 0);
        }
    }
}

/// Copies to another die occupy it as soon as they are read: no step begins on it then.
#[test]
fn no_step_begins_on_a_die_that_is_busy() {
    for shared_channel in [false, true] {
        let case = Case {
            shared_channel,
            pool: PoolScope::Device,
            ..relaxed(2, 1, true)
        };
        let (_, ftl) = run(case);
        assert_collected_in_the_background(&ftl);
        assert_eq!(ftl.core().flash().on_busy_die, 0);
    }
}

#[test]
fn cold_data_are_moved_a_page_at_a_time() {
    for (dies, planes) in SHAPES {
        for pool in [PoolScope::Plane, PoolScope::Die] {
            let case = Case {
                static_gap: 2,
                pool,
                mean_gap: 6_000_000,
                ..relaxed(dies, planes, true)
            };
            let (seen, ftl) = run(case);
            assert_collected_in_the_background(&ftl);
            let moved = ftl.core().counters().wear_victims;
            assert!(moved > 20, "{moved} cold blocks");
            assert!(seen.longest_wait <= STEP, "{seen:?}");
            assert_eq!(ftl.core().flash().on_busy_die, 0);
        }
    }
}

/// Where the part cannot suspend an erase, the host waits for the end of one, which is known ahead. Its
/// block is not free before.
#[test]
fn a_block_is_free_when_its_erase_has_ended_and_not_before() {
    let (mut ftl, mut random) = device(relaxed(1, 1, false));
    let pages = ftl.core().options().exported;
    let (mut at, mut waited) = (0, 0);
    for _ in 0..20_000 {
        at += random.exponential(2_500_000.0);
        ftl.advance(at).unwrap();
        let (erasing, free) = (ftl.core().flash().is_erasing(), ftl.core().free_blocks());
        let lpn = random.below(pages);
        let (_, done) = ftl.read(at, Lpn(lpn), Cause::Host, HOST).unwrap();
        let (start, end) = ended(&mut ftl, done);
        if erasing {
            waited += 1;
            ftl.advance(start - 1).unwrap();
            assert_eq!(ftl.core().free_blocks(), free, "it ends at {start}");
            ftl.advance(start).unwrap();
            assert_eq!(ftl.core().free_blocks(), free + 1);
        }
        ftl.advance(end).unwrap();
        let done = ftl.write(When::now(end), Lpn(lpn), (), HOST).unwrap();
        at = ended(&mut ftl, done).1;
    }
    assert!(waited > 100, "{waited} reads waited for an erase");
}

/// Several collections run in one pool that has hardly a free block, a step of this and a step of
/// that: there is always room to finish one.
#[test]
fn collections_that_share_a_pool_never_take_each_others_last_block() {
    for streams in [Streams::Separate, Streams::Shared] {
        for static_gap in [0, 2] {
            let mut total = 0;
            for seed in 0..32 {
                let (ftl, urgent) = crowded(streams, static_gap, seed);
                ftl.check().unwrap();
                total += urgent;
            }
            assert!(total > 1000, "{total} collections in the host's way");
        }
    }
}

/// Four dies share one pool without reserve, or one die is a pool; the host leaves gaps of all lengths. Answers the erases
/// the host had to wait for.
fn crowded(streams: Streams, static_gap: u32, seed: u64) -> (PlainFtl<Watched>, u64) {
    let dies = if seed % 4 < 2 { 4 } else { 1 };
    let geometry = Geometry::new(Counts {
        channels: 1,
        packages_per_channel: 1,
        dies_per_package: dies,
        planes_per_die: 1,
        blocks_per_plane: 32,
        pages_per_block: 8,
        page_bytes: 4096 << (seed % 3),
    })
    .unwrap();
    // With a high watermark far above the low one every die collects at the same time.
    let high = 1 + (seed % 2) as u32 * 4;
    let open = u32::from(streams == Streams::Separate) + 1 + u32::from(static_gap > 0);
    let kept = high + 1 + dies * open;
    let pages = (geometry.blocks() - kept) * geometry.units_per_block();
    // Some block always has a page's worth of invalid units.
    let invalid = geometry.blocks() * (geometry.units_per_page() - 1) + 1;
    let mut options = FtlOptions::new(pages - invalid);
    options.streams = streams;
    options.wear.static_gap = static_gap;
    options.layout.pool = PoolScope::Device;
    options.collect.mode = Mode::Background;
    options.collect.watermarks = Watermarks { low: 1, high };
    let flash = Watched::new(NandSim::new(geometry, slc()));
    let pages = options.exported;
    let mut ftl = PlainFtl::new(flash, options).unwrap();
    let mut random = Random::new(seed);
    let every = [1, 3, 10, 40][(seed / 4 % 4) as usize];
    let mut now = 0;
    for number in 0..5 * pages {
        let lpn = if number < pages {
            number
        } else {
            random.below(if static_gap > 0 { pages / 2 } else { pages })
        };
        if random.below(every) == 0 {
            let mean = STEP << random.below(5);
            now += random.exponential(mean as f64);
        }
        ftl.advance(now).unwrap();
        ftl.write(When::now(now), Lpn(lpn), (), Tag::NONE).unwrap();
    }
    let urgent = ftl.core().counters().erases - ftl.core().flash().background_erases;
    (ftl, urgent)
}
