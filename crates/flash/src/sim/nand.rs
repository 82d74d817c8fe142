//! The simulated device.
//!
//! A *server* is what executes one array operation at a time: a die, or a plane where planes are
//! independent. It is held from the first stage of an operation to its last, a transfer included:
//! the page register is in use.
//!
//! * read = sense, then transfer; program = transfer, then array; erase and both halves of a
//!   copy-back = array only.
//! * **Private channel**: a transfer never waits, so an operation is one span of its server. Ready
//!   now: start and end are known at once, nothing is queued.
//! * **Shared channel**: operations queue at their server in order of readiness; those that reach
//!   the transfer queue at the channel likewise. One event a server at most is pending.
//! * An operation that is ready only later (a copy to another die) waits in the same heap.
//! * A background erase runs while its server has nothing else to do. Where the part can, a host
//!   operation suspends it from the instant its server takes it; an operation on the very block being
//!   erased waits for its end.
//!
//! Invariants: a server's `free_at` never decreases; the sum of `busy` is the time it worked;
//! completions are decided in order of (ready time, submission).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::convert::Infallible;

use super::timing::{Concurrency, Timing};
use crate::address::{BlockId, PageId, PlaneId, Ppn, Tag, Time};
use crate::geometry::Geometry;
use crate::nand::{Cause, Completion, Finished, Flash, OpId, Ready, Route, Stream, Unit};
use crate::tables::InMemory;

/// The stages of an operation.
#[derive(Debug, Clone, Copy)]
enum Stages {
    /// Sense, then bring out.
    Read { array: Time, transfer: Time },
    /// Bring in, then program.
    Program { transfer: Time, array: Time },
    /// Array only.
    Local { array: Time },
}

impl Stages {
    fn total(self) -> Time {
        match self {
            Stages::Read { array, transfer } | Stages::Program { transfer, array } => {
                array + transfer
            }
            Stages::Local { array } => array,
        }
    }
}

/// An operation that is queued, in flight or not ready yet.
#[derive(Debug, Clone)]
struct Queued {
    sequence: u64,
    server: u32,
    block: BlockId,
    stages: Stages,
    /// When its first stage began; before, of one that waits for another, its earliest instant.
    start: Time,
    /// `Time::MAX` until it is decided.
    end: Time,
    /// Who is told: the first, and the others of a page of several units.
    tag: Tag,
    others: Vec<Tag>,
    /// The first operation that becomes ready when this one is done, and the next one that waits
    /// for the same; or [`NO_OP`].
    then: u32,
    sibling: u32,
}

/// No operation.
const NO_OP: u32 = u32::MAX;

/// What happens at an instant of the heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum NandEvent {
    /// An operation becomes ready for its server.
    Ready(u32),
    /// An operation has sensed and asks for the channel.
    Sensed(u32),
    /// A server is free and takes its next operation.
    Free(u32),
}

#[derive(Debug, Clone, Copy)]
struct Erasing {
    block: BlockId,
    tag: Tag,
    start: Time,
    /// Runs on from here ...
    resumed: Time,
    /// ... for so long, if nothing suspends it.
    remaining: Time,
}

/// A server or a channel: when it is free, and how long it has worked.
#[derive(Debug, Clone, Copy, Default)]
struct Resource {
    free_at: Time,
    busy: Time,
}

/// What a server has besides its work so far; apart, so that the common path stays small.
#[derive(Debug, Clone, Default)]
struct Backlog {
    /// Shared channel only: operations waiting, in order of readiness.
    waiting: VecDeque<u32>,
    /// Shared channel only: an event of this server is pending, `free_at` is not its end yet.
    open: bool,
    /// Shared channel only: up to here its last program waited for the channel, not working.
    waited_until: Time,
    erasing: Option<Erasing>,
}

/// How long each part of the device has worked, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Busy {
    /// Per server: die, or plane where planes are independent.
    pub servers: Vec<Time>,
    /// Per channel. A private channel belongs to its die, so its time is in the dies' alone.
    pub channels: Vec<Time>,
}

/// How long servers and channels have worked, each in sum, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Worked {
    /// All servers.
    pub servers: Time,
    /// All channels; 0 where they are private.
    pub channels: Time,
}

/// A device in simulated time.
#[derive(Debug, Clone)]
pub struct NandSim {
    geometry: Geometry,
    timing: Timing,
    servers_per_channel: u32,
    pages_per_block: u32,
    servers: Vec<Resource>,
    backlogs: Vec<Backlog>,
    channels: Vec<Resource>,
    heap: BinaryHeap<Reverse<(Time, u64, NandEvent)>>,
    ops: Vec<Queued>,
    /// Slots of decided operations; one is used again when the end of its operation has passed.
    free_ops: VecDeque<u32>,
    /// When the last operation that is decided ends.
    latest_end: Time,
    erasing: Vec<u32>,
    /// Background erases whose end is decided and has not passed.
    ending: Vec<Finished>,
    finished: Vec<Finished>,
    /// The operation being submitted, and its span if that is decided at once.
    submitted: Option<u32>,
    decided: Option<(Time, Time)>,
    now: Time,
    sequence: u64,
}

impl NandSim {
    /// An idle device at time 0.
    pub fn new(geometry: Geometry, timing: Timing) -> Self {
        let (servers, servers_per_channel) = match timing.concurrency {
            Concurrency::Die => (geometry.dies(), geometry.dies_per_channel()),
            Concurrency::Plane => (
                geometry.planes(),
                geometry.dies_per_channel() * geometry.planes_per_die(),
            ),
        };
        NandSim {
            servers_per_channel,
            pages_per_block: geometry.pages_per_block(),
            servers: vec![Resource::default(); servers as usize],
            backlogs: vec![Backlog::default(); servers as usize],
            channels: vec![Resource::default(); geometry.channels() as usize],
            geometry,
            timing,
            heap: BinaryHeap::new(),
            ops: Vec::new(),
            free_ops: VecDeque::new(),
            latest_end: 0,
            erasing: Vec::new(),
            ending: Vec::new(),
            finished: Vec::new(),
            submitted: None,
            decided: None,
            now: 0,
            sequence: 0,
        }
    }

    /// The durations in use.
    pub fn timing(&self) -> &Timing {
        &self.timing
    }

    /// Lets everything end, then sets the clock and all counters to 0: the end of preconditioning, or of a
    /// part of it.
    pub fn restart(&mut self) {
        self.advance(Time::MAX, &mut Vec::new());
        self.servers.fill(Resource::default());
        self.channels.fill(Resource::default());
        for queue in &mut self.backlogs {
            queue.waited_until = 0;
        }
        self.ops.clear();
        self.free_ops.clear();
        self.latest_end = 0;
        self.now = 0;
    }

    /// What serves operations: dies, or planes where planes are independent.
    pub fn servers(&self) -> u32 {
        self.servers.len() as u32
    }

    /// How long each part has worked so far.
    pub fn busy(&self) -> Busy {
        Busy {
            servers: self.servers.iter().map(|s| s.busy).collect(),
            channels: self.channels.iter().map(|c| c.busy).collect(),
        }
    }

    /// How long servers and channels have worked up to the present: unlike [`Self::busy`] without what is
    /// decided to run later, and with what runs and has no end yet.
    pub fn worked(&self) -> Worked {
        let now = self.now;
        let ahead = |free_at: Time, from: Time| free_at.saturating_sub(from.max(now));
        let servers = self.servers.iter().zip(&self.backlogs);
        let booked = servers.map(|(s, queue)| s.busy - ahead(s.free_at, queue.waited_until));
        let channels = self.channels.iter().map(|c| c.busy - ahead(c.free_at, 0));
        // What is booked only when it ends or is suspended.
        let erases = self.erasing.iter().filter_map(|&server| {
            let queue = &self.backlogs[server as usize];
            let erasing = queue.erasing.filter(|_| !queue.open)?;
            Some(now.saturating_sub(erasing.resumed).min(erasing.remaining))
        });
        let senses = self.heap.iter().map(|Reverse((_, _, event))| match event {
            NandEvent::Sensed(op) => now - self.ops[*op as usize].start,
            NandEvent::Ready(_) | NandEvent::Free(_) => 0,
        });
        Worked {
            servers: booked.chain(erases).chain(senses).sum(),
            channels: channels.sum(),
        }
    }

    #[inline(always)]
    fn server_of(&self, ppn: Ppn) -> u32 {
        match self.timing.concurrency {
            Concurrency::Die => self.geometry.die_of_unit(ppn).0,
            Concurrency::Plane => self.geometry.plane_of_unit(ppn).0,
        }
    }

    /// The one way in: now or later, alone or after another operation.
    #[inline(always)]
    fn submit(
        &mut self,
        ready: Ready,
        server: u32,
        block: BlockId,
        stages: Stages,
        tags: &[Tag],
    ) -> Completion {
        if let Ready::At(at) = ready
            && at <= self.now
            && !self.timing.shared_channel
        {
            return self.span(at, server, block, stages.total());
        }
        self.submit_queued(ready, server, block, stages, tags)
    }

    fn submit_queued(
        &mut self,
        ready: Ready,
        server: u32,
        block: BlockId,
        stages: Stages,
        tags: &[Tag],
    ) -> Completion {
        let mut tags = tags.iter().copied().filter(|&t| t != Tag::NONE);
        let op = self.store(Queued {
            sequence: self.sequence,
            server,
            block,
            stages,
            start: 0,
            end: Time::MAX,
            tag: tags.next().unwrap_or(Tag::NONE),
            others: tags.collect(),
            then: NO_OP,
            sibling: NO_OP,
        });
        let id = OpId(self.sequence << 32 | u64::from(op));
        self.sequence += 1;
        match self.known(ready) {
            Ready::After(before, at) => {
                let sibling = std::mem::replace(&mut self.ops[slot_of(before)].then, op);
                let waiting = &mut self.ops[op as usize];
                waiting.sibling = sibling;
                waiting.start = at;
            }
            Ready::At(at) if at > self.now => self.push(at, NandEvent::Ready(op)),
            Ready::At(at) => {
                self.submitted = Some(op);
                self.arrive(at, op);
                self.submitted = None;
                if let Some((start, end)) = self.decided.take() {
                    return Completion::At { start, end };
                }
            }
        }
        Completion::Later(id)
    }

    /// Waiting for an operation that is decided is waiting for its end.
    fn known(&self, ready: Ready) -> Ready {
        let Ready::After(before, at) = ready else {
            return ready;
        };
        let same = |op: &&Queued| op.sequence as u32 == (before.0 >> 32) as u32;
        match self.ops.get(slot_of(before)).filter(same) {
            Some(op) if op.end == Time::MAX => ready,
            Some(op) => Ready::At(at.max(op.end)),
            // Its slot is free again or serves another operation: it is over.
            None => Ready::At(at.max(self.now)),
        }
    }

    fn store(&mut self, op: Queued) -> u32 {
        if self.free_ops.len() == self.ops.len() && self.latest_end <= self.now {
            // Nothing is under way: the next ones lie side by side.
            self.ops.clear();
            self.free_ops.clear();
        }
        if let Some(&slot) = self.free_ops.front()
            && self.ops[slot as usize].end <= self.now
        {
            self.free_ops.pop_front();
            self.ops[slot as usize] = op;
            return slot;
        }
        self.ops.push(op);
        (self.ops.len() - 1) as u32
    }

    fn push(&mut self, at: Time, event: NandEvent) {
        let op = match event {
            NandEvent::Ready(op) | NandEvent::Sensed(op) => op,
            NandEvent::Free(server) => self.backlogs[server as usize].waiting[0],
        };
        let sequence = self.ops[op as usize].sequence;
        self.heap.push(Reverse((at, sequence, event)));
    }

    /// Private channel: the operation is one span of its server, known at once.
    #[inline(always)]
    fn span(&mut self, ready: Time, server: u32, block: BlockId, duration: Time) -> Completion {
        if !self.erasing.is_empty() {
            self.yield_erase(ready, server, block);
        }
        let s = &mut self.servers[server as usize];
        let start = ready.max(s.free_at);
        let end = start + duration;
        s.free_at = end;
        s.busy += duration;
        if !self.erasing.is_empty()
            && let Some(erasing) = &mut self.backlogs[server as usize].erasing
        {
            erasing.resumed = end;
        }
        Completion::At { start, end }
    }

    /// Brings a background erase up to the instant a host operation wants its server: it has ended,
    /// it is suspended, or the operation has to wait for it.
    #[cold]
    fn yield_erase(&mut self, ready: Time, server: u32, block: BlockId) {
        let s = &mut self.servers[server as usize];
        let queue = &mut self.backlogs[server as usize];
        let Some(erasing) = &mut queue.erasing else {
            return;
        };
        if queue.open {
            // Suspended already; `release` says when it runs on.
            return;
        }
        let end = erasing.resumed + erasing.remaining;
        let wanted = ready.max(s.free_at);
        let suspend = self.timing.erase_suspend && erasing.block != block && wanted < end;
        if suspend {
            let ran = wanted.saturating_sub(erasing.resumed);
            s.busy += ran;
            erasing.remaining -= ran;
            return;
        }
        self.end_erase(server);
    }

    fn end_erase(&mut self, server: u32) {
        let s = &mut self.servers[server as usize];
        let Some(erasing) = self.backlogs[server as usize].erasing.take() else {
            return;
        };
        let end = erasing.resumed + erasing.remaining;
        s.busy += erasing.remaining;
        s.free_at = s.free_at.max(end);
        self.erasing.retain(|&other| other != server);
        self.ending.push(Finished {
            tag: erasing.tag,
            start: erasing.start,
            end,
        });
    }

    /// Handles every event up to `until`, in order.
    fn run(&mut self, until: Time) {
        while let Some(&Reverse((at, _, event))) = self.heap.peek() {
            if at > until {
                break;
            }
            self.heap.pop();
            match event {
                NandEvent::Ready(op) => self.arrive(at, op),
                NandEvent::Sensed(op) => self.bring_out(at, op),
                NandEvent::Free(server) => self.next(at, server),
            }
        }
    }

    /// Reports the background erases whose end has passed.
    fn report_erases(&mut self, until: Time) {
        let finished = &mut self.finished;
        self.ending.retain(|&erase| {
            let over = erase.end <= until;
            if over {
                finished.push(erase);
            }
            !over
        });
    }

    /// Background erases that run undisturbed until `until` are over.
    fn end_erases(&mut self, until: Time) {
        let mut i = 0;
        while i < self.erasing.len() {
            let server = self.erasing[i];
            let queue = &self.backlogs[server as usize];
            let ended = queue
                .erasing
                .is_some_and(|e| e.resumed + e.remaining <= until);
            if ended && !queue.open {
                // Takes the server out of the list, which keeps its order.
                self.end_erase(server);
            } else {
                i += 1;
            }
        }
    }

    /// An operation is ready for its server.
    fn arrive(&mut self, at: Time, op: u32) {
        let Queued {
            server,
            block,
            stages,
            ..
        } = self.ops[op as usize];
        if !self.timing.shared_channel {
            let Completion::At { start, end } = self.span(at, server, block, stages.total()) else {
                unreachable!("a span is known at once")
            };
            self.ops[op as usize].start = start;
            self.complete(op, end);
            return;
        }
        if !self.erasing.is_empty() {
            self.yield_erase(at, server, block);
        }
        let queue = &mut self.backlogs[server as usize];
        queue.waiting.push_back(op);
        if !queue.open {
            queue.open = true;
            let free_at = self.servers[server as usize].free_at;
            if free_at <= at {
                self.next(at, server);
            } else {
                self.push(free_at, NandEvent::Free(server));
            }
        }
    }

    /// A server is free and takes the operation at the head of its queue.
    fn next(&mut self, at: Time, server: u32) {
        let Some(op) = self.backlogs[server as usize].waiting.pop_front() else {
            return;
        };
        let operation = &mut self.ops[op as usize];
        operation.start = at;
        match operation.stages {
            Stages::Read { array, .. } => self.push(at + array, NandEvent::Sensed(op)),
            Stages::Program { transfer, array } => {
                let moved = self.transfer(at, server, transfer);
                // Waiting for the channel is not part of its first stage.
                self.ops[op as usize].start = moved - transfer;
                self.backlogs[server as usize].waited_until = moved - transfer;
                self.release(op, moved + array);
            }
            Stages::Local { array } => self.release(op, at + array),
        }
    }

    /// A read has sensed and asks for the channel.
    fn bring_out(&mut self, at: Time, op: u32) {
        let Queued { server, stages, .. } = self.ops[op as usize];
        let Stages::Read { transfer, .. } = stages else {
            unreachable!("only reads are sensed")
        };
        let end = self.transfer(at, server, transfer);
        self.release(op, end);
    }

    /// Takes the channel in order of readiness; answers when the transfer is over.
    fn transfer(&mut self, at: Time, server: u32, duration: Time) -> Time {
        let channel = &mut self.channels[(server / self.servers_per_channel) as usize];
        let start = at.max(channel.free_at);
        channel.free_at = start + duration;
        channel.busy += duration;
        channel.free_at
    }

    /// Shared channel: the end of an operation is known; its server goes on from there.
    fn release(&mut self, op: u32, end: Time) {
        let Queued { server, start, .. } = self.ops[op as usize];
        let s = &mut self.servers[server as usize];
        s.free_at = end;
        s.busy += end - start;
        let queue = &mut self.backlogs[server as usize];
        if let Some(erasing) = &mut queue.erasing {
            erasing.resumed = end;
        }
        queue.open = !queue.waiting.is_empty();
        if let Some(&next) = queue.waiting.front() {
            // It may need the very block being erased.
            let block = self.ops[next as usize].block;
            if queue.erasing.is_some_and(|erasing| erasing.block == block) {
                self.end_erase(server);
            }
            self.push(
                self.servers[server as usize].free_at,
                NandEvent::Free(server),
            );
        }
        self.complete(op, end);
    }

    /// Tells who waits, and lets the dependent operation become ready.
    fn complete(&mut self, op: u32, end: Time) {
        let done = &self.ops[op as usize];
        let (start, mut then) = (done.start, done.then);
        if self.submitted == Some(op) {
            self.decided = Some((start, end));
        } else if done.tag != Tag::NONE {
            let tags = std::iter::once(&done.tag).chain(&done.others);
            self.finished
                .extend(tags.map(|&tag| Finished { tag, start, end }));
        }
        while then != NO_OP {
            let waiting = &self.ops[then as usize];
            let (ready, next) = (waiting.start.max(end), waiting.sibling);
            self.push(ready, NandEvent::Ready(then));
            then = next;
        }
        self.ops[op as usize].end = end;
        self.latest_end = self.latest_end.max(end);
        self.free_ops.push_back(op);
    }
}

/// Where an operation is kept.
fn slot_of(op: OpId) -> usize {
    op.0 as u32 as usize
}

impl Flash for NandSim {
    type Page = ();
    type Tables = InMemory;
    type Error = Infallible;

    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn tables(&self) -> InMemory {
        InMemory
    }

    #[inline(always)]
    fn read(
        &mut self,
        ready: Ready,
        ppn: Ppn,
        units: u32,
        _cause: Cause,
        route: Route,
        tag: Tag,
    ) -> Result<Completion, Infallible> {
        let array = self.timing.read;
        let stages = match route {
            Route::Channel => Stages::Read {
                array,
                transfer: self.timing.transfer * Time::from(units),
            },
            Route::OnChip => Stages::Local { array },
        };
        let server = self.server_of(ppn);
        let block = self.geometry.block_of(ppn);
        Ok(self.submit(ready, server, block, stages, &[tag]))
    }

    #[inline(always)]
    fn content(&mut self, _ppn: Ppn) -> Result<(), Infallible> {
        Ok(())
    }

    #[inline(always)]
    fn program(
        &mut self,
        ready: Ready,
        page: PageId,
        units: &[Unit<()>],
        _stream: Stream,
        route: Route,
        tags: &[Tag],
    ) -> Result<Completion, Infallible> {
        let first = self.geometry.first_unit_of_page(page);
        let block = self.geometry.block_of(first);
        let times = &self.timing.program;
        let array = if times.len() == 1 {
            times[0]
        } else {
            times[(page.0 - block.0 * self.pages_per_block) as usize % times.len()]
        };
        let stages = match route {
            Route::Channel => Stages::Program {
                transfer: self.timing.transfer * units.len() as Time,
                array,
            },
            Route::OnChip => Stages::Local { array },
        };
        let server = self.server_of(first);
        Ok(self.submit(ready, server, block, stages, tags))
    }

    fn erase(
        &mut self,
        at: Time,
        block: BlockId,
        background: bool,
        tag: Tag,
    ) -> Result<Completion, Infallible> {
        let server = self.server_of(self.geometry.first_unit(block));
        let remaining = self.timing.erase;
        if !background {
            let stages = Stages::Local { array: remaining };
            return Ok(self.submit(Ready::At(at), server, block, stages, &[tag]));
        }
        let start = at.max(self.servers[server as usize].free_at);
        let queue = &mut self.backlogs[server as usize];
        debug_assert!(queue.erasing.is_none(), "one background erase a server");
        queue.erasing = Some(Erasing {
            block,
            tag,
            start,
            resumed: start,
            remaining,
        });
        self.erasing.push(server);
        Ok(Completion::Later(OpId::NONE))
    }

    #[inline(always)]
    fn advance(&mut self, until: Time, done: &mut Vec<Finished>) {
        if !self.heap.is_empty() {
            self.run(until);
        }
        self.now = self.now.max(until);
        if !self.erasing.is_empty() {
            self.end_erases(until);
        }
        if !self.ending.is_empty() {
            self.report_erases(until);
        }
        if !self.finished.is_empty() {
            done.append(&mut self.finished);
        }
    }

    fn idle_since(&self, plane: PlaneId) -> Option<Time> {
        let server = match self.timing.concurrency {
            Concurrency::Die => plane.0 / self.geometry.planes_per_die(),
            Concurrency::Plane => plane.0,
        };
        let queue = &self.backlogs[server as usize];
        let idle = !queue.open && queue.erasing.is_none();
        idle.then_some(self.servers[server as usize].free_at)
    }

    fn next_event(&self) -> Option<Time> {
        let first = self.heap.peek().map(|&Reverse((at, _, _))| at);
        let running = self.erasing.iter().filter_map(|&server| {
            let queue = &self.backlogs[server as usize];
            let erasing = queue.erasing.filter(|_| !queue.open)?;
            Some(erasing.resumed + erasing.remaining)
        });
        let ending = self.ending.iter().map(|erase| erase.end);
        running.chain(ending).chain(first).min()
    }
}
