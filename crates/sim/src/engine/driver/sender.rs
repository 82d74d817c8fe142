//! Who sends requests, and what is told of responses.
//!
//! * **Open loop**: a request of a trace arrives at its time stamp (scaled); nobody waits for responses.
//! * **Closed loop**: so many requests of a trace are in flight; one arrives when another is done and the host
//!   has thought.
//! * **A caller** says when each request arrives, and hears of each response when time has come to it. When a
//!   response is given is often known before.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use flashlore_flash::Time;

use crate::config::Load;

/// A response has been given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response {
    /// The request, as its sender names it.
    pub id: u64,
    /// When.
    pub at: Time,
}

/// Who sends requests.
pub(in crate::engine) enum Sender {
    /// A trace, at its stamps.
    Stamps { time_scale: f64 },
    /// A trace, so many at a time: when the next ones may arrive.
    Turns {
        think_time: Time,
        turns: BinaryHeap<Reverse<Time>>,
    },
    /// A caller: responses that it has not heard of, by instant and name.
    Caller(BinaryHeap<Reverse<(Time, u64)>>),
}

impl Sender {
    pub fn of_trace(load: Load) -> Self {
        match load {
            Load::Open { time_scale } => Sender::Stamps { time_scale },
            Load::Closed {
                queue_depth,
                think_time_ns,
            } => Sender::Turns {
                think_time: think_time_ns,
                turns: (0..queue_depth).map(|_| Reverse(0)).collect(),
            },
        }
    }

    pub fn caller() -> Self {
        Sender::Caller(BinaryHeap::new())
    }

    /// When a request of this stamp arrives; nothing if it waits for its turn.
    #[inline(always)]
    pub fn arrival(&self, stamp: Time) -> Option<Time> {
        match self {
            Sender::Stamps { time_scale } => Some(scaled(stamp, *time_scale)),
            Sender::Turns { .. } => None,
            Sender::Caller(_) => Some(stamp),
        }
    }

    /// Up to when nothing arrives before a request of this stamp; 0 if that is not known.
    #[inline(always)]
    pub fn horizon_before(&self, next: Time) -> Time {
        match self {
            Sender::Stamps { time_scale } => scaled(next, *time_scale),
            Sender::Turns { .. } | Sender::Caller(_) => 0,
        }
    }

    /// Whether requests wait for responses to others.
    #[inline(always)]
    pub fn waits_for_turns(&self) -> bool {
        matches!(self, Sender::Turns { .. })
    }

    /// When the next request may arrive, in a closed loop.
    pub fn turn(&self) -> Option<Time> {
        match self {
            Sender::Turns { turns, .. } => turns.peek().map(|&Reverse(at)| at),
            Sender::Stamps { .. } | Sender::Caller(_) => None,
        }
    }

    /// A request takes its turn.
    pub fn take_turn(&mut self) {
        if let Sender::Turns { turns, .. } = self {
            turns.pop();
        }
    }

    /// The response to a request is given at an instant, which may lie ahead.
    #[inline(always)]
    pub fn respond(&mut self, number: u64, at: Time) {
        match self {
            Sender::Stamps { .. } => {}
            Sender::Turns { think_time, turns } => turns.push(Reverse(at + *think_time)),
            Sender::Caller(responses) => responses.push(Reverse((at, number))),
        }
    }

    /// The next response that the caller has not heard of.
    pub fn next_response(&self) -> Option<Time> {
        match self {
            Sender::Caller(responses) => responses.peek().map(|&Reverse((at, _))| at),
            Sender::Stamps { .. } | Sender::Turns { .. } => None,
        }
    }

    /// The caller hears of the responses up to an instant, in order of time and name.
    pub fn hear(&mut self, until: Time, heard: &mut Vec<Response>) {
        let Sender::Caller(responses) = self else {
            return;
        };
        while let Some(&Reverse((at, id))) = responses.peek()
            && at <= until
        {
            responses.pop();
            heard.push(Response { id, at });
        }
    }
}

/// When a request of this stamp arrives.
#[inline(always)]
fn scaled(stamp: Time, time_scale: f64) -> Time {
    match time_scale {
        1.0 => stamp,
        _ => (stamp as f64 * time_scale).round() as Time,
    }
}
