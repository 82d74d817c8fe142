//! Requests in flight: those of which not every unit's completion is known.
//!
//! A slot is reused as soon as its request is done, so memory grows with the requests in flight and
//! not with those of the trace.

use flashlore_flash::{Lpn, Time};
use flashlore_trace::Op;

/// Who sent a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SentBy {
    /// The host: it gets a response.
    Host,
    /// The buffer of the device, for a change that leaves it; the request's number is its place there.
    Buffer,
}

/// A request that waits for units.
#[derive(Debug, Clone, Copy)]
pub struct InFlight {
    /// When it arrived; a change that leaves the buffer, when the host sent it.
    pub arrival: Time,
    /// When the first of its units began to be served.
    pub start: Time,
    /// When the last one known was done.
    pub end: Time,
    /// Units not done yet.
    pub left: u32,
    /// The first unit it touches.
    pub lpn: Lpn,
    /// Units it touches.
    pub units: u32,
    /// Its number in the trace, from 0.
    pub number: u64,
    /// What is asked.
    pub op: Op,
    /// Whether it arrived after warm-up.
    pub measured: bool,
    /// Who sent it.
    pub by: SentBy,
}

impl InFlight {
    /// A unit was served between these instants.
    #[inline(always)]
    pub fn served(&mut self, start: Time, end: Time) {
        self.start = self.start.min(start);
        self.end = self.end.max(end);
        self.left -= 1;
    }
}

/// All requests in flight, by slot.
#[derive(Debug, Default)]
pub struct Requests {
    slots: Vec<InFlight>,
    free: Vec<u32>,
}

impl Requests {
    /// Takes a slot.
    #[inline(always)]
    pub fn insert(&mut self, request: InFlight) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = request;
            return slot;
        }
        self.slots.push(request);
        (self.slots.len() - 1) as u32
    }

    /// The request of a slot.
    #[inline(always)]
    pub fn get_mut(&mut self, slot: u32) -> &mut InFlight {
        &mut self.slots[slot as usize]
    }

    /// Gives a slot back.
    #[inline(always)]
    pub fn remove(&mut self, slot: u32) {
        // What is said to be done of it from here on is a fault, which overflow checks find.
        self.slots[slot as usize].left = 0;
        self.free.push(slot);
    }

    /// Those in flight do not count as measured any more.
    pub fn forget_measured(&mut self) {
        for request in &mut self.slots {
            request.measured = false;
        }
    }

    /// Whether no request is in flight.
    pub fn is_empty(&self) -> bool {
        self.slots.len() == self.free.len()
    }
}
