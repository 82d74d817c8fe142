//! Requests that wait, and which of them is next.
//!
//! The disk asks when it becomes free, and only requests that have arrived are in the queue.
//!
//! Invariants: under every scheduler requests for one sector number are taken in order of arrival; an
//! elevator passes strictly increasing (or decreasing) sector numbers until it turns, so that every request
//! is taken before the elevator passes its place a second time. A flush waits for none of the others.

use std::collections::VecDeque;

use super::{Op, Request, Time};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scheduler {
    /// First come, first served.
    #[default]
    Fcfs,
    /// An elevator that serves upwards, then downwards.
    Look,
    /// An elevator that serves upwards and then begins anew at the lowest request.
    CLook,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    pub id: u64,
    pub arrived: Time,
    pub request: Request,
    /// Its place in the order of arrival.
    pub number: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Queue {
    scheduler: Scheduler,
    waiting: VecDeque<Waiting>,
    flushes: usize,
    reads: usize,
    arrivals: u64,
    /// One more than where the last request began; 0 before the first.
    passed: u64,
    downwards: bool,
}

impl Queue {
    pub fn new(scheduler: Scheduler) -> Self {
        Queue {
            scheduler,
            waiting: VecDeque::new(),
            flushes: 0,
            reads: 0,
            arrivals: 0,
            passed: 0,
            downwards: false,
        }
    }

    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    pub fn push(&mut self, id: u64, arrived: Time, request: Request) {
        self.flushes += usize::from(request.op == Op::Flush);
        self.reads += usize::from(request.op == Op::Read);
        self.waiting.push_back(Waiting {
            id,
            arrived,
            request,
            number: self.arrivals,
        });
        self.arrivals += 1;
    }

    pub fn has_reads(&self) -> bool {
        self.reads > 0
    }

    /// Takes the request to be served next. An empty queue does not turn the elevator.
    pub fn take(&mut self) -> Option<Waiting> {
        if self.waiting.is_empty() {
            return None;
        }
        let index = match self.scheduler {
            Scheduler::Fcfs => Some(0),
            _ if self.flushes > 0 => self.oldest(|waiting| waiting.request.op == Op::Flush),
            _ => self.elevator(),
        }?;
        let taken = match index {
            0 => self.waiting.pop_front(),
            _ => self.waiting.swap_remove_back(index),
        }?;
        self.flushes -= usize::from(taken.request.op == Op::Flush);
        self.reads -= usize::from(taken.request.op == Op::Read);
        if taken.request.op != Op::Flush {
            self.passed = taken.request.lba + 1;
        }
        Some(taken)
    }

    fn elevator(&mut self) -> Option<usize> {
        match (self.scheduler, self.downwards) {
            (Scheduler::Look, true) => self.below().or_else(|| {
                self.downwards = false;
                self.above()
            }),
            (Scheduler::Look, false) => self.above().or_else(|| {
                self.downwards = true;
                self.below()
            }),
            _ => self.above().or_else(|| self.lowest(0)),
        }
        // Nothing but requests for the place that was served last.
        .or_else(|| self.oldest(|_| true))
    }

    fn above(&self) -> Option<usize> {
        self.lowest(self.passed)
    }

    /// The lowest request not below `from`, the oldest of its place.
    fn lowest(&self, from: u64) -> Option<usize> {
        let here = self.waiting.iter().enumerate();
        here.filter(|(_, waiting)| waiting.request.lba >= from)
            .min_by_key(|(_, waiting)| (waiting.request.lba, waiting.number))
            .map(|(index, _)| index)
    }

    /// The highest request below the place that was served last, the oldest of its place.
    fn below(&self) -> Option<usize> {
        let here = self.waiting.iter().enumerate();
        here.filter(|(_, waiting)| waiting.request.lba + 1 < self.passed)
            .max_by_key(|(_, waiting)| (waiting.request.lba, u64::MAX - waiting.number))
            .map(|(index, _)| index)
    }

    fn oldest(&self, wanted: impl Fn(&Waiting) -> bool) -> Option<usize> {
        let here = self.waiting.iter().enumerate();
        here.filter(|(_, waiting)| wanted(waiting))
            .min_by_key(|(_, waiting)| waiting.number)
            .map(|(index, _)| index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(scheduler: Scheduler, lbas: &[u64]) -> Vec<u64> {
        let mut queue = Queue::new(scheduler);
        // The disk has just served sector 50.
        queue.push(0, 0, Request::read(50, 1));
        queue.take();
        for (id, &lba) in (1..).zip(lbas) {
            queue.push(id, 0, Request::read(lba, 1));
        }
        std::iter::from_fn(|| queue.take().map(|taken| taken.request.lba)).collect()
    }

    #[test]
    fn each_scheduler_has_its_order() {
        let lbas = [60, 10, 50, 90, 40];
        assert_eq!(order(Scheduler::Fcfs, &lbas), lbas);
        assert_eq!(order(Scheduler::Look, &lbas), [60, 90, 50, 40, 10]);
        assert_eq!(order(Scheduler::CLook, &lbas), [60, 90, 10, 40, 50]);
        assert_eq!(order(Scheduler::Look, &[50, 50]), [50, 50]);
    }

    /// Found against the stepped disk: each look into an empty queue turned the elevator.
    #[test]
    fn an_empty_queue_does_not_turn_the_elevator() {
        let mut queue = Queue::new(Scheduler::Look);
        queue.push(0, 0, Request::read(50, 1));
        queue.take();
        assert!(queue.take().is_none());
        for lba in [40, 60] {
            queue.push(lba, 0, Request::read(lba, 1));
        }
        assert_eq!(queue.take().map(|taken| taken.id), Some(60));
    }

    #[test]
    fn a_flush_overtakes_except_under_fcfs() {
        for (scheduler, expected) in [
            (Scheduler::Fcfs, [1, 2]),
            (Scheduler::Look, [2, 1]),
            (Scheduler::CLook, [2, 1]),
        ] {
            let mut queue = Queue::new(scheduler);
            queue.push(1, 0, Request::write(7, 1));
            queue.push(2, 0, Request::FLUSH);
            let ids = std::iter::from_fn(|| queue.take().map(|taken| taken.id));
            assert_eq!(ids.collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn no_request_waits_while_the_elevator_passes_twice() {
        // A crowd that asks again and again around one place, and two that wait far off.
        for scheduler in [Scheduler::Look, Scheduler::CLook] {
            let mut queue = Queue::new(scheduler);
            queue.push(1_000, 0, Request::read(0, 1));
            queue.push(1_001, 0, Request::read(1_000_000, 1));
            let crowd = [500, 500, 501, 502, 503];
            for (id, lba) in (0..).zip(crowd) {
                queue.push(id, 0, Request::read(lba, 1));
            }
            let mut others = 0;
            for _ in 0..4 * crowd.len() {
                let taken = queue.take().expect("a request");
                match taken.id {
                    1_000.. => others += 1,
                    id => queue.push(id, 0, taken.request),
                }
            }
            assert_eq!(others, 2, "{scheduler:?} let one starve");
        }
    }
}
