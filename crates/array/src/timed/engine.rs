//! Chains of steps on two devices and a processor.
//!
//! At one instant devices end first, the fast one before the slow one, then the processor; so a run is determined by
//! what is submitted. The processor takes one piece of work at a time, in the order in which they became ready.
//!
//! A request has one chain or several side by side, and is answered when each of them has come to its answer.
//!
//! Invariants: no more requests wait for their answers than `depth`; no request begins while as many chains as
//! `background` go on behind their answers; a step begins when the one before it in its chain has ended, one behind a
//! barrier when all chains that began before have ended as well.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use super::steps::{Costs, TimedStep};
use super::{TimedDevice, TimedError};
use crate::element::Device as Medium;
use crate::hdd::{Completion, Time};
use crate::index::index;
use crate::put;

index!(
    /// A chain, while it goes on.
    ChainId
);
index!(
    /// A request, while it waits for its answer.
    RequestId
);

/// How much goes on at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Requests that wait for their answers, at most; at least one.
    pub depth: usize,
    /// Chains that go on behind their answers, at which requests wait; at least one.
    pub background: usize,
}

/// A request that was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// The caller's name for it.
    pub tag: u64,
    pub began: Time,
    /// When it was answered.
    pub at: Time,
}

#[derive(Debug, Default)]
struct RequestChain {
    steps: Vec<TimedStep>,
    next: usize,
    /// Its place in the order in which chains began.
    place: u64,
    request: RequestId,
    is_answered: bool,
}

/// A request that waits for its answer.
#[derive(Debug, Clone, Copy)]
struct WaitingRequest {
    tag: u64,
    began: Time,
    /// Chains that have not come to their answers.
    left: u32,
}

/// Plays requests on a fast and a slow device.
#[derive(Debug)]
pub struct Engine<F, S> {
    fast: F,
    slow: S,
    costs: Costs,
    limits: Limits,
    now: Time,
    chains: Vec<RequestChain>,
    free: Vec<ChainId>,
    requests: Vec<WaitingRequest>,
    free_requests: Vec<RequestId>,
    outstanding: usize,
    background: usize,
    /// Ends of the processor's work, with the order in which it was taken on.
    works: BinaryHeap<Reverse<(Time, u64, ChainId)>>,
    taken_on: u64,
    processor_free: Time,
    processor_busy: Time,
    completions: Vec<Completion>,
    ended: Vec<Ended>,
    begun: u64,
    /// Places of the chains that have not ended.
    live: BTreeSet<u64>,
    /// Chains at a barrier, by their places.
    barred: BTreeMap<u64, ChainId>,
}

impl<F: TimedDevice, S: TimedDevice> Engine<F, S> {
    /// Idle devices at time 0.
    pub fn new(fast: F, slow: S, costs: Costs, limits: Limits) -> Self {
        Engine {
            fast,
            slow,
            costs,
            limits: Limits {
                depth: limits.depth.max(1),
                background: limits.background.max(1),
            },
            now: 0,
            chains: Vec::new(),
            free: Vec::new(),
            requests: Vec::new(),
            free_requests: Vec::new(),
            outstanding: 0,
            background: 0,
            works: BinaryHeap::new(),
            taken_on: 0,
            processor_free: 0,
            processor_busy: 0,
            completions: Vec::new(),
            ended: Vec::new(),
            begun: 0,
            live: BTreeSet::new(),
            barred: BTreeMap::new(),
        }
    }

    pub fn now(&self) -> Time {
        self.now
    }

    pub fn devices(&self) -> (&F, &S) {
        (&self.fast, &self.slow)
    }

    /// The devices. Nothing may be submitted to them.
    pub fn devices_mut(&mut self) -> (&mut F, &mut S) {
        (&mut self.fast, &mut self.slow)
    }

    /// How long the processor has worked or is going to with what it has taken on.
    pub fn processor_busy(&self) -> Time {
        self.processor_busy
    }

    /// Answers since the last call, in order of time.
    pub fn answers(&mut self) -> std::vec::Drain<'_, Ended> {
        self.ended.drain(..)
    }

    /// Lets time pass until another request may begin; the instant.
    pub fn wait_for_room(&mut self) -> Result<Time, TimedError> {
        while !self.has_room() {
            self.step(self.next_event().ok_or(TimedError::Lost)?)?;
            self.run_to(self.now)?;
        }
        Ok(self.now)
    }

    fn has_room(&self) -> bool {
        self.outstanding < self.limits.depth && self.background < self.limits.background
    }

    /// Begins a request when there is room for it, and not before `earliest`; what ends at that instant has ended.
    /// Its chains begin side by side; without any it is answered at once.
    pub fn begin<'s>(
        &mut self,
        earliest: Time,
        tag: u64,
        chains: impl IntoIterator<Item = &'s [TimedStep]>,
    ) -> Result<(), TimedError> {
        self.run_to(earliest.max(self.now))?;
        self.wait_for_room()?;
        let (now, left) = (self.now, 1);
        let waiting = WaitingRequest {
            tag,
            began: now,
            left,
        };
        let request = put(&mut self.requests, &mut self.free_requests, waiting);
        self.outstanding += 1;
        // The one that is left is this call, so that no chain answers for those that have not begun.
        for steps in chains {
            self.requests[request.index()].left += 1;
            self.begin_chain(request, steps)?;
        }
        self.come_to_answer(request);
        Ok(())
    }

    fn begin_chain(&mut self, request: RequestId, steps: &[TimedStep]) -> Result<(), TimedError> {
        let number = self.free.pop().unwrap_or_else(|| {
            self.chains.push(RequestChain::default());
            ChainId(self.chains.len() as u32 - 1)
        });
        let chain = &mut self.chains[number.index()];
        chain.steps.clear();
        chain.steps.extend_from_slice(steps);
        (chain.next, chain.request, chain.is_answered) = (0, request, false);
        chain.place = self.begun;
        self.live.insert(self.begun);
        self.begun += 1;
        self.play(number)
    }

    /// Lets time pass until everything has ended.
    pub fn finish(&mut self) -> Result<Time, TimedError> {
        while self.outstanding + self.background > 0 {
            self.step(self.next_event().ok_or(TimedError::Lost)?)?;
        }
        Ok(self.now)
    }

    fn run_to(&mut self, until: Time) -> Result<(), TimedError> {
        while let Some(event) = self.next_event().filter(|&event| event <= until) {
            self.step(event)?;
        }
        self.now = self.now.max(until);
        Ok(())
    }

    fn next_event(&self) -> Option<Time> {
        let work = self.works.peek().map(|Reverse((at, ..))| *at);
        let events = [self.fast.next_event(), self.slow.next_event(), work];
        events.into_iter().flatten().min()
    }

    /// Brings the devices to an instant at which something happens; if nothing ends there, the processor.
    fn step(&mut self, at: Time) -> Result<(), TimedError> {
        self.now = self.now.max(at);
        let mut completions = std::mem::take(&mut self.completions);
        self.fast.advance(self.now, &mut completions)?;
        self.slow.advance(self.now, &mut completions)?;
        let ended = completions.len();
        for completion in completions.drain(..) {
            self.play(ChainId(completion.id as u32))?;
        }
        self.completions = completions;
        match self.works.peek() {
            Some(&Reverse((at, _, number))) if ended == 0 && at <= self.now => {
                self.works.pop();
                self.play(number)
            }
            _ => Ok(()),
        }
    }

    /// A chain takes its next steps, up to one that takes time.
    fn play(&mut self, number: ChainId) -> Result<(), TimedError> {
        loop {
            let chain = &mut self.chains[number.index()];
            let step = chain.steps.get(chain.next).copied();
            chain.next += 1;
            match step {
                None => {
                    return self.end(number);
                }
                Some(TimedStep::Background) => self.answer(number),
                Some(TimedStep::Barrier) => {
                    let place = chain.place;
                    if self.live.first() != Some(&place) {
                        self.barred.insert(place, number);
                        return Ok(());
                    }
                }
                Some(TimedStep::Work(work)) => {
                    let cost = self.costs.of(work);
                    if cost > 0 {
                        self.take_on(number, cost);
                        return Ok(());
                    }
                }
                Some(TimedStep::Device(operation)) => {
                    let id = u64::from(number);
                    return match operation.device {
                        Medium::Fast => self.fast.submit(self.now, id, &operation),
                        Medium::Slow => self.slow.submit(self.now, id, &operation),
                    };
                }
            }
        }
    }

    fn take_on(&mut self, number: ChainId, cost: Time) {
        self.processor_free = self.processor_free.max(self.now) + cost;
        self.processor_busy += cost;
        self.taken_on += 1;
        let work = (self.processor_free, self.taken_on, number);
        self.works.push(Reverse(work));
    }

    /// The host has what it wants of this chain; what is left of it goes on behind the answer.
    fn answer(&mut self, number: ChainId) {
        let chain = &mut self.chains[number.index()];
        if std::mem::replace(&mut chain.is_answered, true) {
            return;
        }
        let request = chain.request;
        self.background += 1;
        self.come_to_answer(request);
    }

    /// One chain less to wait for.
    fn come_to_answer(&mut self, request: RequestId) {
        let waiting = &mut self.requests[request.index()];
        waiting.left -= 1;
        if waiting.left > 0 {
            return;
        }
        self.ended.push(Ended {
            tag: waiting.tag,
            began: waiting.began,
            at: self.now,
        });
        self.outstanding -= 1;
        self.free_requests.push(request);
    }

    /// A chain has ended; one that waited for it and all before goes on.
    fn end(&mut self, number: ChainId) -> Result<(), TimedError> {
        self.answer(number);
        self.background -= 1;
        self.live.remove(&self.chains[number.index()].place);
        self.free.push(number);
        let first = self.live.first();
        match first.and_then(|place| self.barred.remove(place)) {
            Some(barred) => self.play(barred),
            None => Ok(()),
        }
    }
}
