//! Simulated time against theory and against naive event simulators (`crates/oracle`): exact sums
//! for one operation, exact equality for any sequence of operations, M/D/1 within 2 %.

use flashlore_flash::geometry::Counts;
use flashlore_flash::sim::{Concurrency, NandSim, Timing, Worked};
use flashlore_flash::{
    BlockId, Cause, Completion, Finished, Flash, Geometry, OpId, PageId, PlaneId, Ppn, Ready,
    Route, Stream, Tag, Time, Unit,
};
use flashlore_oracle::bus::{self, Operation, Phase};
use flashlore_oracle::des::{self, Job, Span};
use proptest::prelude::*;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const PAGES_PER_BLOCK: u32 = 8;
const BLOCKS_PER_PLANE: u32 = 4;

/// A small device of which everything may be drawn.
#[derive(Debug, Clone)]
struct Shape {
    channels: u32,
    dies: u32,
    planes: u32,
    units: u32,
    timing: Timing,
}

impl Shape {
    fn device(&self) -> NandSim {
        let geometry = Geometry::new(Counts {
            channels: self.channels,
            packages_per_channel: 1,
            dies_per_package: self.dies,
            planes_per_die: self.planes,
            blocks_per_plane: BLOCKS_PER_PLANE,
            pages_per_block: PAGES_PER_BLOCK,
            page_bytes: self.units * 4096,
        })
        .unwrap();
        NandSim::new(geometry, self.timing.clone())
    }

    fn pages(&self) -> u32 {
        self.channels * self.dies * self.planes * BLOCKS_PER_PLANE * PAGES_PER_BLOCK
    }

    fn blocks(&self) -> u32 {
        self.pages() / PAGES_PER_BLOCK
    }

    /// What serves a page: its die, or its plane where planes are independent.
    fn server(&self, page: u32) -> usize {
        let plane = page / PAGES_PER_BLOCK / BLOCKS_PER_PLANE;
        let server = match self.timing.concurrency {
            Concurrency::Die => plane / self.planes,
            Concurrency::Plane => plane,
        };
        server as usize
    }

    /// The channel of every server; a private channel belongs to one server alone.
    fn channels(&self) -> Vec<usize> {
        let servers = self.server(self.pages() - 1) + 1;
        let on_one = servers / self.channels as usize;
        (0..servers)
            .map(|s| {
                if self.timing.shared_channel {
                    s / on_one
                } else {
                    s
                }
            })
            .collect()
    }

    /// Bringing units in or out; nothing where that takes no time.
    fn transfer(&self, units: u32) -> Option<Phase> {
        let duration_ns = self.timing.transfer * Time::from(units);
        (duration_ns > 0).then_some(Phase {
            channel: true,
            duration_ns,
        })
    }

    fn program_time(&self, page: u32) -> Time {
        let times = &self.timing.program;
        times[(page % PAGES_PER_BLOCK) as usize % times.len()]
    }
}

/// SLC with the bus of `spec/timing.md` section 8: 25 ns a byte.
fn slc(shared_channel: bool) -> Shape {
    Shape {
        channels: 1,
        dies: 1,
        planes: 1,
        units: 1,
        timing: Timing {
            read: 25_000,
            program: vec![200_000],
            erase: 1_500_000,
            transfer: 102_400,
            shared_channel,
            concurrency: Concurrency::Die,
            erase_suspend: false,
        },
    }
}

fn array(duration_ns: Time) -> Phase {
    Phase {
        channel: false,
        duration_ns,
    }
}

fn padding(units: u32) -> Vec<Unit<()>> {
    vec![Unit::Pad; units as usize]
}

fn submit_program(device: &mut NandSim, ready: Ready, page: u32, tag: u32) -> Completion {
    let units = padding(device.geometry().units_per_page());
    let (host, channel) = (Stream::Host, Route::Channel);
    device
        .program(ready, PageId(page), &units, host, channel, &[Tag(tag)])
        .unwrap()
}

fn submit_read(device: &mut NandSim, at: Time, page: u32, tag: u32) -> Completion {
    let ppn = device.geometry().first_unit_of_page(PageId(page));
    let (host, channel) = (Cause::Host, Route::Channel);
    device
        .read(Ready::At(at), ppn, 1, host, channel, Tag(tag))
        .unwrap()
}

// ---------------------------------------------------------------------------------------------
// One die at depth 1
// ---------------------------------------------------------------------------------------------

/// Lets one operation run alone on an idle device and answers how long it took.
fn alone(shape: &Shape, at: Time, submit: impl FnOnce(&mut NandSim) -> Completion) -> Time {
    let mut device = shape.device();
    device.advance(at, &mut Vec::new());
    let done = submit(&mut device);
    let mut finished = Vec::new();
    device.advance(Time::MAX / 2, &mut finished);
    match done {
        Completion::At { start, end } => {
            assert_eq!((start, finished), (at, vec![]));
            end - start
        }
        Completion::Later(_) => {
            assert_eq!((finished.len(), finished[0].start), (1, at));
            finished[0].end - at
        }
    }
}

#[test]
fn one_die_at_depth_one_takes_the_sum_of_its_stages() {
    for shared in [false, true] {
        let shape = slc(shared);
        let host = Cause::Host;
        for at in [0, 77] {
            let read = |route| {
                alone(&shape, at, |d| {
                    d.read(Ready::At(at), Ppn(3), 1, host, route, Tag(1))
                        .unwrap()
                })
            };
            let program = |route| {
                alone(&shape, at, |d| {
                    let unit = padding(1);
                    let ready = Ready::At(at);
                    d.program(ready, PageId(5), &unit, Stream::Host, route, &[Tag(1)])
                        .unwrap()
                })
            };
            let erase = alone(&shape, at, |d| {
                d.erase(at, BlockId(2), false, Tag(1)).unwrap()
            });
            assert_eq!(read(Route::Channel), 127_400);
            assert_eq!(read(Route::OnChip), 25_000);
            assert_eq!(program(Route::Channel), 302_400);
            assert_eq!(program(Route::OnChip), 200_000);
            assert_eq!(erase, 1_500_000);
        }
    }
}

#[test]
fn a_wide_page_moves_the_units_that_are_asked_for_and_programs_them_all() {
    for shared in [false, true] {
        let mut shape = slc(shared);
        shape.units = 4;
        // Lower, middle and upper pages take turns.
        shape.timing.program = vec![400_000, 700_000, 1_200_000];
        for units in 1..=4 {
            let (host, channel) = (Cause::Host, Route::Channel);
            let read = alone(&shape, 0, |d| {
                d.read(Ready::At(0), Ppn(8), units, host, channel, Tag(1))
                    .unwrap()
            });
            assert_eq!(read, 25_000 + 102_400 * Time::from(units));
        }
        for page in 0..2 * PAGES_PER_BLOCK {
            let took = alone(&shape, 0, |d| submit_program(d, Ready::At(0), page, 1));
            let of_type = [400_000, 700_000, 1_200_000][(page % PAGES_PER_BLOCK) as usize % 3];
            assert_eq!(took, 4 * 102_400 + of_type);
        }
    }
}

#[test]
fn a_queue_of_one_die_is_the_sum_of_its_operations() {
    for shared in [false, true] {
        let mut device = slc(shared).device();
        let mut ends = Vec::new();
        let mut record = |done: Completion| {
            if let Completion::At { end, .. } = done {
                ends.push(end);
            }
        };
        record(submit_read(&mut device, 0, 0, 0));
        record(submit_program(&mut device, Ready::At(0), 1, 1));
        record(device.erase(0, BlockId(1), false, Tag(2)).unwrap());
        let mut finished = Vec::new();
        device.advance(Time::MAX / 2, &mut finished);
        finished.sort_by_key(|f| f.tag);
        ends.extend(finished.iter().map(|f| f.end));
        assert_eq!(
            ends,
            [127_400, 127_400 + 302_400, 127_400 + 302_400 + 1_500_000]
        );
        assert_eq!(device.busy().servers, [1_929_800]);
        let on_channel = if shared { 2 * 102_400 } else { 0 };
        assert_eq!(device.busy().channels, [on_channel]);
        assert_eq!(device.idle_since(PlaneId(0)), Some(1_929_800));
    }
}

// ---------------------------------------------------------------------------------------------
// Any sequence on any device
// ---------------------------------------------------------------------------------------------

/// What is asked of the device. Pages and blocks are numbers to be taken modulo what there is.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Read {
        page: u32,
        units: u32,
        route: bool,
    },
    Program {
        page: u32,
        route: bool,
        ahead: Time,
    },
    Erase {
        block: u32,
    },
    /// A read, and a program elsewhere that waits for it but not less than so long.
    Copy {
        from: u32,
        to: u32,
        delay: Time,
    },
    /// Three programs, each of which waits for the one before.
    Chain {
        pages: [u32; 3],
    },
}

fn kinds() -> impl Strategy<Value = Kind> {
    let page = any::<u32>;
    prop_oneof![
        4 => (page(), 1u32..4, any::<bool>())
            .prop_map(|(page, units, route)| Kind::Read { page, units, route }),
        4 => (page(), any::<bool>(), prop_oneof![Just(0), 0u64..200])
            .prop_map(|(page, route, ahead)| Kind::Program { page, route, ahead }),
        1 => page().prop_map(|block| Kind::Erase { block }),
        2 => (page(), page(), prop_oneof![Just(0), 0u64..150])
            .prop_map(|(from, to, delay)| Kind::Copy { from, to, delay }),
        1 => [page(), page(), page()].prop_map(|pages| Kind::Chain { pages }),
    ]
}

fn shapes() -> impl Strategy<Value = Shape> {
    let counts = (1u32..3, 1u32..5, 1u32..3, 1u32..4);
    let times = (
        1u64..40,
        prop::collection::vec(1u64..120, 1..4),
        1u64..200,
        0u64..40,
    );
    (counts, times, any::<bool>(), any::<bool>()).prop_map(|(counts, times, shared, planes)| {
        let (channels, dies, planes_per_die, units) = counts;
        let (read, program, erase, transfer) = times;
        Shape {
            channels,
            dies,
            planes: planes_per_die,
            units,
            timing: Timing {
                read,
                program,
                erase,
                transfer,
                shared_channel: shared,
                concurrency: if planes {
                    Concurrency::Plane
                } else {
                    Concurrency::Die
                },
                erase_suspend: false,
            },
        }
    })
}

/// Hands the same operations to the device and to the model; the tag of an operation is its number.
struct Both {
    shape: Shape,
    device: NandSim,
    now: Time,
    finished: Vec<Finished>,
    /// What the device said at once.
    known: Vec<Option<Span>>,
    operations: Vec<Operation>,
    /// What the device said at an instant that it has worked.
    looks: Vec<(Time, Worked)>,
}

impl Both {
    fn new(shape: &Shape) -> Self {
        Both {
            shape: shape.clone(),
            device: shape.device(),
            now: 0,
            finished: Vec::new(),
            known: Vec::new(),
            operations: Vec::new(),
            looks: Vec::new(),
        }
    }

    fn pass(&mut self, gap: Time) {
        // In two steps: how often time is told must not matter.
        for at in [self.now + gap / 2, self.now + gap] {
            self.device.advance(at, &mut self.finished);
            self.looks.push((at, self.device.worked()));
        }
        self.now += gap;
    }

    fn note(&mut self, done: Completion, ready: bus::Ready, page: u32, phases: Vec<Phase>) {
        self.known.push(match done {
            Completion::At { start, end } => Some(Span {
                start_ns: start,
                completion_ns: end,
            }),
            Completion::Later(_) => None,
        });
        let die = self.shape.server(page);
        self.operations.push(Operation { die, ready, phases });
    }

    fn read(&mut self, page: u32, units: u32, over_channel: bool) -> (usize, Completion) {
        let (at, tag) = (self.now, Tag(self.operations.len() as u32));
        let ppn = self.device.geometry().first_unit_of_page(PageId(page));
        let units = units.min(self.shape.units);
        let (route, mut phases) = route(over_channel, array(self.shape.timing.read));
        if over_channel {
            phases.extend(self.shape.transfer(units));
        }
        let done = self
            .device
            .read(Ready::At(at), ppn, units, Cause::Host, route, tag)
            .unwrap();
        self.note(done, bus::Ready::At(at), page, phases);
        (self.operations.len() - 1, done)
    }

    fn program(
        &mut self,
        ready: Ready,
        known: bus::Ready,
        page: u32,
        over_channel: bool,
    ) -> (usize, Completion) {
        let tag = Tag(self.operations.len() as u32);
        let units = padding(self.shape.units);
        let (route, mut phases) = route(over_channel, array(self.shape.program_time(page)));
        if over_channel {
            phases.splice(..0, self.shape.transfer(self.shape.units));
        }
        let done = self
            .device
            .program(ready, PageId(page), &units, Stream::Gc, route, &[tag])
            .unwrap();
        self.note(done, known, page, phases);
        (self.operations.len() - 1, done)
    }

    /// A program that waits for an operation, whether or not its end is known, and for an instant.
    fn program_after(
        &mut self,
        source: (usize, Completion),
        not_before: Time,
        page: u32,
    ) -> (usize, Completion) {
        let (op, done) = source;
        let ready = match done {
            Completion::At { end, .. } => Ready::At(end.max(not_before)),
            Completion::Later(id) => Ready::After(id, not_before),
        };
        let known = bus::Ready::After {
            op,
            not_before_ns: not_before,
        };
        self.program(ready, known, page, true)
    }

    fn erase(&mut self, block: u32, background: bool) -> usize {
        let (at, tag) = (self.now, Tag(self.operations.len() as u32));
        let done = self
            .device
            .erase(at, BlockId(block), background, tag)
            .unwrap();
        let phases = vec![array(self.shape.timing.erase)];
        self.note(done, bus::Ready::At(at), block * PAGES_PER_BLOCK, phases);
        self.operations.len() - 1
    }

    fn submit(&mut self, kind: Kind) {
        let pages = self.shape.pages();
        match kind {
            Kind::Read { page, units, route } => {
                self.read(page % pages, units, route);
            }
            Kind::Program { page, route, ahead } => {
                let at = self.now + ahead;
                self.program(Ready::At(at), bus::Ready::At(at), page % pages, route);
            }
            Kind::Erase { block } => {
                self.erase(block % self.shape.blocks(), false);
            }
            Kind::Copy { from, to, delay } => {
                let read = self.read(from % pages, 1, true);
                self.program_after(read, self.now + delay, to % pages);
            }
            Kind::Chain { pages: [a, b, c] } => {
                let now = self.now;
                let first = self.program(Ready::At(now), bus::Ready::At(now), a % pages, true);
                let second = self.program_after(first, now, b % pages);
                self.program_after(second, now, c % pages);
            }
        }
    }

    /// Lets everything end and answers the spans of all operations as the device saw them.
    fn spans(&mut self) -> Result<Vec<Span>, TestCaseError> {
        self.device.advance(Time::MAX / 2, &mut self.finished);
        let mut spans = self.known.clone();
        for f in &self.finished {
            let span = Span {
                start_ns: f.start,
                completion_ns: f.end,
            };
            let before = spans[f.tag.index()].replace(span);
            prop_assert_eq!(before, None, "operation {} is reported twice", f.tag.0);
        }
        let reported = |(number, span): (usize, Option<Span>)| {
            span.ok_or_else(|| TestCaseError::fail(format!("operation {number} never ended")))
        };
        spans.into_iter().enumerate().map(reported).collect()
    }
}

fn route(over_channel: bool, array: Phase) -> (Route, Vec<Phase>) {
    let route = if over_channel {
        Route::Channel
    } else {
        Route::OnChip
    };
    (route, vec![array])
}

/// Every server works from the start of its operations to their end, every shared channel while it
/// transfers.
fn check_busy(both: &Both, spans: &[Span]) -> Result<(), TestCaseError> {
    let channels = both.shape.channels();
    let mut servers = vec![0; channels.len()];
    let mut transfers = vec![0; both.shape.channels as usize];
    for (operation, span) in both.operations.iter().zip(spans) {
        servers[operation.die] += span.completion_ns - span.start_ns;
        if both.shape.timing.shared_channel {
            let moved = operation.phases.iter().filter(|p| p.channel);
            transfers[channels[operation.die]] += moved.map(|p| p.duration_ns).sum::<Time>();
        }
    }
    let busy = both.device.busy();
    prop_assert_eq!(busy.servers, servers);
    prop_assert_eq!(busy.channels, transfers);
    Ok(())
}

/// What the device said at any instant is what the spans, cut off there, add up to; `erased` is what erases
/// that are not among `spans` had done by then.
fn check_worked(
    both: &Both,
    operations: &[Operation],
    spans: &[Span],
    erased: impl Fn(Time) -> Time,
) -> Result<(), TestCaseError> {
    for &(at, worked) in &both.looks {
        let until = |start: Time, end: Time| end.min(at).saturating_sub(start);
        let mut servers = erased(at);
        let mut channels = 0;
        for (operation, span) in operations.iter().zip(spans) {
            let (start, end) = (span.start_ns, span.completion_ns);
            servers += until(start, end);
            let moved = operation.phases.iter().find(|p| p.channel);
            channels += match moved.map(|p| p.duration_ns) {
                Some(took) if operation.phases[0].channel => until(start, start + took),
                Some(took) => until(end - took, end),
                None => 0,
            };
        }
        if !both.shape.timing.shared_channel {
            channels = 0;
        }
        prop_assert_eq!(worked, Worked { servers, channels }, "at {} ns", at);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_takes_as_long_as_in_a_naive_event_simulation(
        shape in shapes(),
        steps in prop::collection::vec((prop_oneof![Just(0), 0u64..60], kinds()), 1..80),
    ) {
        let mut both = Both::new(&shape);
        for &(gap, kind) in &steps {
            both.pass(gap);
            both.submit(kind);
        }
        let expected = bus::simulate(&shape.channels(), &both.operations);
        let spans = both.spans()?;
        prop_assert_eq!(&spans, &expected);
        check_busy(&both, &spans)?;
        check_worked(&both, &both.operations, &spans, |_| 0)?;
    }

    /// A background erase that cannot be suspended is an operation like any other: what comes while
    /// it runs waits for the rest of it.
    #[test]
    fn without_suspension_the_host_waits_for_the_rest_of_the_erase(
        shape in shapes(),
        steps in prop::collection::vec((0u64..60, kinds()), 1..30),
    ) {
        let mut both = Both::new(&shape);
        both.erase(0, true);
        for &(gap, kind) in &steps {
            both.pass(gap);
            both.submit(kind);
        }
        let expected = bus::simulate(&shape.channels(), &both.operations);
        let spans = both.spans()?;
        prop_assert_eq!(&spans, &expected);
        check_busy(&both, &spans)?;
        check_worked(&both, &both.operations, &spans, |_| 0)?;
    }

    /// A suspended erase costs the host nothing: every operation runs as if there were none. The erase
    /// ends when its die has been free of operations for as long as it takes.
    #[test]
    fn with_suspension_the_erase_is_delayed_by_exactly_the_suspending_operations(
        shape in shapes(),
        erase in 1u64..2000,
        steps in prop::collection::vec((0u64..60, kinds()), 1..30),
    ) {
        let mut shape = shape;
        shape.timing.erase_suspend = true;
        shape.timing.erase = erase;
        let mut both = Both::new(&shape);
        let number = both.erase(0, true);
        for &(gap, kind) in &steps {
            if let Some(kind) = beside_block_0(&shape, kind) {
                both.pass(gap);
                both.submit(kind);
            }
        }
        let mut without = both.operations.clone();
        without[number].phases.clear();
        let expected = bus::simulate(&shape.channels(), &without);
        let spans = both.spans()?;
        prop_assert_eq!(&spans[1..], &expected[1..]);
        prop_assert_eq!(spans[0].start_ns, 0);
        prop_assert_eq!(spans[0].completion_ns, fills_gaps(&both.operations, &spans, erase));
        let erased = |at| erase.min(gaps_until(&both.operations, &spans, at));
        check_worked(&both, &both.operations[1..], &spans[1..], erased)?;
        // It has worked for as long as an erase takes, not for as long as it took.
        let mut worked = spans;
        worked[0].completion_ns = erase;
        check_busy(&both, &worked)?;
    }
}

/// The operation moved off the block that is being erased.
fn beside_block_0(shape: &Shape, kind: Kind) -> Option<Kind> {
    let page = |p: u32| PAGES_PER_BLOCK + p % (shape.pages() - PAGES_PER_BLOCK);
    Some(match kind {
        Kind::Read {
            page: p,
            units,
            route,
        } => Kind::Read {
            page: page(p),
            units,
            route,
        },
        Kind::Program {
            page: p,
            route,
            ahead,
        } => Kind::Program {
            page: page(p),
            route,
            ahead,
        },
        Kind::Erase { block } => Kind::Erase {
            block: 1 + block % (shape.blocks() - 1),
        },
        Kind::Copy { from, to, delay } => Kind::Copy {
            from: page(from),
            to: page(to),
            delay,
        },
        Kind::Chain { pages } => Kind::Chain {
            pages: pages.map(page),
        },
    })
}

/// The stretches in which the server of operation 0 has other operations, in order: from the instant it takes
/// one, also when that waits for the channel first, to its end.
fn taken(operations: &[Operation], spans: &[Span]) -> Vec<(Time, Time)> {
    let ready = |operation: &Operation| match operation.ready {
        bus::Ready::At(at) => at,
        bus::Ready::After { op, not_before_ns } => spans[op].completion_ns.max(not_before_ns),
    };
    let mut others: Vec<(Time, Time, Time)> = operations
        .iter()
        .zip(spans)
        .skip(1)
        .filter(|(operation, _)| operation.die == operations[0].die)
        .map(|(operation, span)| (span.start_ns, ready(operation), span.completion_ns))
        .collect();
    others.sort_unstable();
    others
        .into_iter()
        .map(|(_, ready, end)| (ready, end))
        .collect()
}

/// When work of this length, begun at 0 on the server of operation 0, ends if it runs only while the
/// server has nothing else.
fn fills_gaps(operations: &[Operation], spans: &[Span], mut left: Time) -> Time {
    let mut now = 0;
    for (ready, end) in taken(operations, spans) {
        let gap = ready.saturating_sub(now);
        if left <= gap {
            break;
        }
        left -= gap;
        now = end;
    }
    now + left
}

/// How long the server of operation 0 had nothing else before an instant.
fn gaps_until(operations: &[Operation], spans: &[Span], at: Time) -> Time {
    let (mut now, mut gaps) = (0, 0);
    for (ready, end) in taken(operations, spans) {
        gaps += ready.min(at).saturating_sub(now);
        now = end;
    }
    gaps + at.saturating_sub(now)
}

#[test]
fn what_needs_the_block_being_erased_waits_for_its_end() {
    for shared in [false, true] {
        let mut shape = slc(shared);
        shape.timing.erase_suspend = true;
        let mut device = shape.device();
        let mut finished = Vec::new();
        device.erase(0, BlockId(0), true, Tag(0)).unwrap();
        device.advance(100_000, &mut finished);
        // The read of another block suspends the erase; the program into the erased block comes
        // while it reads, and waits for the 1.4 ms that are left.
        let read = submit_read(&mut device, 100_000, PAGES_PER_BLOCK, 1);
        device.advance(110_000, &mut finished);
        let program = submit_program(&mut device, Ready::At(110_000), 0, 2);
        device.advance(Time::MAX / 2, &mut finished);
        let end_of = |done: Completion, tag: u32| match done {
            Completion::At { end, .. } => end,
            Completion::Later(_) => finished.iter().find(|f| f.tag == Tag(tag)).unwrap().end,
        };
        let erased = 227_400 + 1_400_000;
        assert_eq!(end_of(read, 1), 227_400);
        assert_eq!(end_of(Completion::Later(OpId(0)), 0), erased);
        assert_eq!(end_of(program, 2), erased + 302_400);
    }
}

// ---------------------------------------------------------------------------------------------
// Chains through servers in front of the dies
// ---------------------------------------------------------------------------------------------

/// Four dies with private channels.
fn four_dies() -> Shape {
    Shape {
        dies: 4,
        ..slc(false)
    }
}

/// Jobs: the gap before the arrival, the die, another die, and the time in front of it or between.
fn jobs() -> impl Strategy<Value = Vec<(Time, u32, u32, Time)>> {
    let gap = prop_oneof![Just(0), 0u64..300_000];
    prop::collection::vec((gap, 0u32..4, 0u32..4, 0u64..200_000), 1..120)
}

fn page_of_die(die: u32) -> u32 {
    die * BLOCKS_PER_PLANE * PAGES_PER_BLOCK
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    /// One FIFO hash unit in front of the dies: an operation is ready when it is hashed.
    #[test]
    fn hash_then_die_is_a_tandem_queue(hash in 1u64..400_000, jobs in jobs()) {
        let mut both = Both::new(&four_dies());
        let mut free_at = 0;
        let mut model = Vec::new();
        for &(gap, die, _, _) in &jobs {
            both.pass(gap);
            free_at = both.now.max(free_at) + hash;
            let page = page_of_die(die);
            both.program(Ready::At(free_at), bus::Ready::At(free_at), page, true);
            model.push(Job {
                arrival_ns: both.now,
                stages: vec![(4, hash), (die as usize, 102_400 + 200_000)],
            });
        }
        let expected: Vec<Span> = des::simulate(&model).iter().map(|spans| spans[1]).collect();
        prop_assert_eq!(both.spans()?, expected);
    }

    /// A page is read from one die, encoded, and programmed to another. Every job has an encoder.
    #[test]
    fn read_encode_program_is_a_chain_of_stages(jobs in jobs()) {
        let mut both = Both::new(&four_dies());
        let mut model = Vec::new();
        for (number, &(gap, from, to, encode)) in jobs.iter().enumerate() {
            both.pass(gap);
            let (_, done) = both.read(page_of_die(from), 1, true);
            let Completion::At { end, .. } = done else {
                return Err(TestCaseError::fail("a private channel decides at once"));
            };
            let ready = end + encode;
            both.program(Ready::At(ready), bus::Ready::At(ready), page_of_die(to), true);
            model.push(Job {
                arrival_ns: both.now,
                stages: vec![
                    (from as usize, 25_000 + 102_400),
                    (4 + number, encode),
                    (to as usize, 102_400 + 200_000),
                ],
            });
        }
        let expected: Vec<Span> = des::simulate(&model)
            .iter()
            .flat_map(|spans| [spans[0], spans[2]])
            .collect();
        prop_assert_eq!(both.spans()?, expected);
    }
}

// ---------------------------------------------------------------------------------------------
// M/D/1
// ---------------------------------------------------------------------------------------------

/// Mean wait of Poisson reads on one die, in nanoseconds.
fn mean_wait(shape: &Shape, load: f64, reads: u32) -> f64 {
    let service = (shape.timing.read + shape.timing.transfer) as f64;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(11);
    let mut device = shape.device();
    let mut finished = Vec::new();
    let (mut arrival, mut arrivals, mut ends) = (0.0, 0, 0);
    for _ in 0..reads {
        let uniform = ((random.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        arrival -= service / load * uniform.ln();
        let at = arrival as Time;
        arrivals += u128::from(at);
        device.advance(at, &mut finished);
        if let Completion::At { end, .. } = submit_read(&mut device, at, 0, 0) {
            ends += u128::from(end);
        }
        ends += finished.drain(..).map(|f| u128::from(f.end)).sum::<u128>();
    }
    device.advance(Time::MAX / 2, &mut finished);
    ends += finished.drain(..).map(|f| u128::from(f.end)).sum::<u128>();
    (ends - arrivals) as f64 / f64::from(reads) - service
}

#[test]
fn poisson_reads_of_one_die_wait_as_long_as_md1_says() {
    for (load, shared) in [(0.3, false), (0.5, false), (0.8, false), (0.5, true)] {
        let shape = slc(shared);
        let service = (shape.timing.read + shape.timing.transfer) as f64;
        let measured = mean_wait(&shape, load, 2_000_000);
        let theory = des::md1_mean_wait_ns(service / load, service).unwrap();
        assert!(
            (measured / theory - 1.0).abs() < 0.02,
            "load {load}: a mean wait of {measured:.0} ns, theory {theory:.0} ns"
        );
    }
}
