//! A naive event-driven simulator of dies on shared channels.
//!
//! An operation is a list of phases. It *holds its die* from its first phase to its last: the page
//! register is in use. A phase needs nothing but the die, or also the die's channel. Dies take
//! operations one at a time in order of readiness, a channel serves phases one at a time in the
//! order in which they ask for it; ties go to the operation submitted first.
//!
//! All that happens at one instant is settled before time moves on: phases end, operations become
//! ready, idle dies take their next operation, and only when nothing of that is left does one idle
//! channel take its next phase, and so on until nothing more can happen.
//!
//! It differs from [`crate::des`], whose stages give their server back one by one.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use crate::des::Span;

/// When an operation may be handed to its die.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ready {
    /// At this instant.
    At(u64),
    /// When an operation submitted earlier has ended, but not before the instant.
    After { op: usize, not_before_ns: u64 },
}

/// A phase of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Phase {
    /// Whether it needs the die's channel besides the die.
    pub channel: bool,
    /// How long it takes.
    pub duration_ns: u64,
}

/// An operation of a die. Operations are numbered in the order of submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    pub die: usize,
    /// When the die may take it.
    pub ready: Ready,
    pub phases: Vec<Phase>,
}

/// Simulates the operations and returns when each one's first phase began and its last one ended.
/// `channels` names the channel of each die.
pub fn simulate(channels: &[usize], operations: &[Operation]) -> Vec<Span> {
    let count = channels.iter().max().map_or(0, |&last| last + 1);
    let mut simulator = BusSimulator {
        operations,
        channels,
        events: BinaryHeap::new(),
        waiting: vec![BTreeSet::new(); channels.len()],
        holder: vec![None; channels.len()],
        asking: vec![BTreeSet::new(); count],
        channel_busy: vec![false; count],
        phase: vec![0; operations.len()],
        spans: vec![Span::default(); operations.len()],
    };
    for (number, operation) in operations.iter().enumerate() {
        if let Ready::At(at) = operation.ready {
            simulator.schedule(at, BusEvent::Ready(number));
        }
    }
    while let Some(&Reverse((now, _))) = simulator.events.peek() {
        simulator.settle(now);
    }
    simulator.spans
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum BusEvent {
    /// A phase of this operation ends.
    PhaseEnds(usize),
    /// This operation becomes ready.
    Ready(usize),
}

struct BusSimulator<'a> {
    operations: &'a [Operation],
    channels: &'a [usize],
    events: BinaryHeap<Reverse<(u64, BusEvent)>>,
    /// The operations each die has not taken yet: (ready at, number).
    waiting: Vec<BTreeSet<(u64, usize)>>,
    /// The operation that holds each die.
    holder: Vec<Option<usize>>,
    /// The operations that ask for each channel: (since when, number).
    asking: Vec<BTreeSet<(u64, usize)>>,
    channel_busy: Vec<bool>,
    /// The phase each operation is in.
    phase: Vec<usize>,
    spans: Vec<Span>,
}

impl BusSimulator<'_> {
    fn schedule(&mut self, at: u64, event: BusEvent) {
        self.events.push(Reverse((at, event)));
    }

    /// Settles all that happens at this instant.
    fn settle(&mut self, now: u64) {
        loop {
            match self.events.peek() {
                Some(&Reverse((at, event))) if at == now => {
                    self.events.pop();
                    self.note(now, event);
                    continue;
                }
                _ => {}
            }
            if !self.take_operation(now) && !self.grant_channel(now) {
                return;
            }
        }
    }

    fn note(&mut self, now: u64, event: BusEvent) {
        match event {
            BusEvent::Ready(number) => {
                let die = self.operations[number].die;
                self.waiting[die].insert((now, number));
            }
            BusEvent::PhaseEnds(number) => {
                let operation = &self.operations[number];
                if operation.phases[self.phase[number]].channel {
                    self.channel_busy[self.channels[operation.die]] = false;
                }
                self.phase[number] += 1;
                self.begin_phase(now, number);
            }
        }
    }

    /// An idle die takes its next operation; whether there was one.
    fn take_operation(&mut self, now: u64) -> bool {
        let idle = (0..self.holder.len()).filter(|&die| self.holder[die].is_none());
        let heads = idle.filter_map(|die| self.waiting[die].first().copied());
        let Some(first) = heads.min() else {
            return false;
        };
        let die = self.operations[first.1].die;
        self.waiting[die].remove(&first);
        self.holder[die] = Some(first.1);
        self.begin_phase(now, first.1);
        true
    }

    /// The die of the operation goes on to the phase it is in now, or is done with it.
    fn begin_phase(&mut self, now: u64, number: usize) {
        let operation = &self.operations[number];
        match operation.phases.get(self.phase[number]) {
            Some(phase) if phase.channel => {
                let channel = self.channels[operation.die];
                self.asking[channel].insert((now, number));
            }
            Some(_) => self.run_phase(now, number),
            None => self.finish(now, number),
        }
    }

    /// An idle channel takes its next phase; whether there was one.
    fn grant_channel(&mut self, now: u64) -> bool {
        let idle = (0..self.asking.len()).filter(|&channel| !self.channel_busy[channel]);
        let heads = idle.filter_map(|c| self.asking[c].first().map(|&head| (head, c)));
        let Some((first, channel)) = heads.min() else {
            return false;
        };
        self.asking[channel].remove(&first);
        self.channel_busy[channel] = true;
        self.run_phase(now, first.1);
        true
    }

    fn run_phase(&mut self, now: u64, number: usize) {
        if self.phase[number] == 0 {
            self.spans[number].start_ns = now;
        }
        let duration = self.operations[number].phases[self.phase[number]].duration_ns;
        self.schedule(now + duration, BusEvent::PhaseEnds(number));
    }

    /// The operation is over: its die is idle, and what waited for it becomes ready.
    fn finish(&mut self, now: u64, number: usize) {
        self.spans[number].completion_ns = now;
        self.holder[self.operations[number].die] = None;
        for later in number + 1..self.operations.len() {
            if let Ready::After { op, not_before_ns } = self.operations[later].ready
                && op == number
            {
                self.schedule(now.max(not_before_ns), BusEvent::Ready(later));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn die(duration_ns: u64) -> Phase {
        Phase {
            channel: false,
            duration_ns,
        }
    }

    fn bus(duration_ns: u64) -> Phase {
        Phase {
            channel: true,
            duration_ns,
        }
    }

    fn at(at: u64, die: usize, phases: &[Phase]) -> Operation {
        Operation {
            die,
            ready: Ready::At(at),
            phases: phases.to_vec(),
        }
    }

    fn spans(channels: &[usize], operations: &[Operation]) -> Vec<(u64, u64)> {
        simulate(channels, operations)
            .iter()
            .map(|span| (span.start_ns, span.completion_ns))
            .collect()
    }

    #[test]
    fn a_die_is_held_until_its_transfer_is_over() {
        // Two reads on die 0 and one on die 1, one channel: the second read of die 0 senses only
        // after the first one's transfer, unlike with independent stages.
        let read = [die(25), bus(100)];
        let operations = [at(0, 0, &read), at(1, 1, &read), at(2, 0, &read)];
        assert_eq!(
            spans(&[0, 0], &operations),
            [(0, 125), (1, 225), (125, 325)]
        );
        // With a channel each nobody waits for a channel.
        assert_eq!(
            spans(&[0, 1], &operations),
            [(0, 125), (1, 126), (125, 250)]
        );
    }

    #[test]
    fn a_channel_serves_in_the_order_of_asking() {
        // The program asks at 0 and is served at once; the read asks at 25, the other program at
        // 10: it goes first. Arrays run beside transfers.
        let operations = [
            at(0, 0, &[bus(100), die(200)]),
            at(0, 1, &[die(25), bus(100)]),
            at(10, 2, &[bus(100), die(200)]),
        ];
        assert_eq!(
            spans(&[0, 0, 0], &operations),
            [(0, 300), (0, 300), (100, 400)]
        );
    }

    #[test]
    fn ties_go_to_the_operation_submitted_first() {
        // At 25 the read has sensed, and die 1, free again, has a program: both ask for the channel.
        let operations = [
            at(5, 1, &[bus(7), die(1)]),
            at(0, 0, &[die(25), bus(10)]),
            at(0, 1, &[die(25)]),
        ];
        assert_eq!(spans(&[0, 0], &operations), [(25, 33), (0, 42), (0, 25)]);
    }

    #[test]
    fn a_chain_is_ready_when_its_source_has_ended_but_not_before_its_instant() {
        let after = |op, not_before_ns, die, phases: &[Phase]| Operation {
            die,
            ready: Ready::After { op, not_before_ns },
            phases: phases.to_vec(),
        };
        let operations = [
            at(0, 0, &[die(25), bus(10)]),
            after(0, 0, 1, &[bus(10), die(5)]),
            after(1, 90, 1, &[die(5)]),
            at(60, 1, &[die(10)]),
        ];
        assert_eq!(
            spans(&[0, 0], &operations),
            [(0, 35), (35, 50), (90, 95), (60, 70)]
        );
    }

    #[test]
    fn operations_of_no_duration_take_their_turn() {
        let operations = [at(3, 0, &[]), at(0, 0, &[die(4)]), at(3, 0, &[bus(0)])];
        assert_eq!(spans(&[0], &operations), [(0, 4), (0, 4), (4, 4)]);
    }
}
