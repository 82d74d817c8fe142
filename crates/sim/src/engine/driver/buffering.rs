//! Requests that meet a buffer before the translation layer, and the changes that leave it.
//!
//! The buffer decides ([`crate::engine::buffering`]) and its steps are taken here. A change that leaves is a
//! request of the buffer's own to the translation layer: it takes a slot, passes the hash unit, keeps its
//! turn, and is done like one of the host. Then, at that instant, its place is free.
//!
//! A flush of the host is answered at once and changes nothing: a buffer keeps its content without power,
//! and a change keeps its place until it is programmed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::DerefMut;

use flashlore_content::PageTag;
use flashlore_flash::{Lpn, Time};
use flashlore_ftl::buffer::BufferPlace;
use flashlore_trace::{Op, Request};

use super::changes::{Change, What};
use super::{DriveError, Driver, Payload, Result};
use crate::config::ReadOrder;
use crate::engine::buffering::{Buffering, BufferingOptions, BufferingStep, Traffic, UnitChange};
use crate::engine::requests::{InFlight, SentBy};
use crate::engine::system::System;

/// A read of a unit that waits for changes in the line; the order of such reads is that of the fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct WaitingRead {
    /// The last change in the line that it waits for.
    behind: u64,
    /// When it arrived.
    arrival: Time,
    lpn: Lpn,
    slot: u32,
}

/// A buffer, and the changes that leave it.
pub(super) struct Leaving {
    buffering: Box<dyn Buffering>,
    /// Changes of which the end is known: end, place, and when they began to be served.
    ends: BinaryHeap<Reverse<(Time, BufferPlace, Time)>>,
    /// The latest of all these ends.
    last_end: Time,
    /// Reads that wait for changes in the line, from that which goes on first.
    reads: BinaryHeap<Reverse<WaitingRead>>,
    steps: Vec<BufferingStep>,
}

impl Leaving {
    pub fn new(buffering: BufferingOptions, units_per_page: u32) -> Self {
        Leaving {
            buffering: buffering.build(units_per_page),
            ends: BinaryHeap::new(),
            last_end: 0,
            reads: BinaryHeap::new(),
            steps: Vec::new(),
        }
    }

    pub fn restart(&mut self) {
        self.buffering.restart();
    }

    /// When the next change is done, or the buffer has something to do.
    pub fn next_instant(&self) -> Option<Time> {
        let end = self.ends.peek().map(|&Reverse((end, _, _))| end);
        end.into_iter().chain(self.buffering.due()).min()
    }

    /// Whether a change of which the end is known is not done.
    pub fn is_leaving(&self) -> bool {
        !self.ends.is_empty()
    }

    /// A read waits for the changes in the line that it must not overtake; whether there are any.
    fn holds_read(&mut self, order: ReadOrder, arrival: Time, lpn: Lpn, slot: u32) -> bool {
        let line = self.buffering.line();
        let behind = match order {
            ReadOrder::Bypass => None,
            ReadOrder::SamePage => line.last(Some(lpn)),
            ReadOrder::Fifo => line.last(None),
        };
        let Some(behind) = behind else {
            return false;
        };
        self.reads.push(Reverse(WaitingRead {
            behind,
            arrival,
            lpn,
            slot,
        }));
        true
    }

    /// The next read that waits for nothing in the line any more.
    fn released_read(&mut self) -> Option<WaitingRead> {
        let &Reverse(read) = self.reads.peek()?;
        if !self.buffering.line().has_passed(read.behind) {
            return None;
        }
        self.reads.pop();
        Some(read)
    }

    /// The latest end of a change that is known so far.
    pub fn last_end(&self) -> Time {
        self.last_end
    }
}

impl<S: System, D: DerefMut<Target = S>> Driver<D> {
    /// What the buffer has counted, if there is one.
    pub fn traffic(&self) -> Option<Traffic> {
        self.buffering
            .as_ref()
            .map(|buffering| buffering.buffering.traffic())
    }

    /// Units the host has written since counting began, whether they have reached the translation layer
    /// or not.
    pub fn host_writes(&self) -> u64 {
        let reached = self.system.core().counters().host_writes;
        self.buffering
            .as_ref()
            .map_or(reached, |buffering| buffering.buffering.writes())
    }

    /// Units the host has read since counting began.
    pub fn host_reads(&self) -> u64 {
        let reached = self.system.core().counters().host_reads;
        let buffering = self.buffering.as_ref();
        let buffering = buffering.map_or(0, |buffering| buffering.buffering.read_hits());
        reached + buffering + self.cache_traffic().hits
    }

    /// A request of the host meets the buffer.
    #[inline(never)]
    pub(super) fn arrive_at_buffering(
        &mut self,
        flight: InFlight,
        request: &Request,
        payload: Payload<'_>,
    ) -> Result<()> {
        match request.op {
            Op::Read => self.read_in_buffering(flight)?,
            Op::Write | Op::Trim if request.units > 0 => {
                self.change_in_buffering(flight, request, payload)?;
            }
            Op::Write | Op::Trim | Op::Flush => self.finish_at_once(flight),
        }
        self.buffering_decides(flight.arrival, |buffering, steps| buffering.request(steps))
    }

    fn read_in_buffering(&mut self, mut flight: InFlight) -> Result<()> {
        let at = flight.arrival;
        let slot = self.requests.insert(flight);
        let order = self.host.read_order;
        for unit in Lpn::each(flight.lpn..flight.lpn + flight.units) {
            let leaving = self.buffering.as_mut();
            if !leaving.is_some_and(|leaving| leaving.holds_read(order, at, unit, slot)) {
                self.read_past_line(at, &mut flight, unit, slot)?;
            }
        }
        self.settle(slot, flight);
        Ok(())
    }

    /// Reads a unit that waits for nothing in the line: from the buffer, or from behind it.
    fn read_past_line(
        &mut self,
        at: Time,
        flight: &mut InFlight,
        unit: Lpn,
        slot: u32,
    ) -> Result<()> {
        let leaving = self.buffering.as_mut();
        let here = leaving.and_then(|leaving| leaving.buffering.reads(unit));
        #[cfg(test)]
        self.seen.in_ram(unit, here);
        match here {
            Some((_, true)) => {
                #[cfg(test)]
                self.seen.read(flight, unit);
                flight.served(at, at);
                Ok(())
            }
            _ => self.read_in_turn(at, flight, unit, slot),
        }
    }

    /// Reads that no change in the line keeps any more go on.
    fn release_reads(&mut self, at: Time) -> Result<()> {
        while let Some(leaving) = &mut self.buffering
            && let Some(WaitingRead { lpn, slot, .. }) = leaving.released_read()
        {
            let mut flight = *self.requests.get_mut(slot);
            self.read_past_line(at, &mut flight, lpn, slot)?;
            self.settle(slot, flight);
        }
        Ok(())
    }

    fn change_in_buffering(
        &mut self,
        flight: InFlight,
        request: &Request,
        payload: Payload<'_>,
    ) -> Result<()> {
        let slot = self.requests.insert(flight);
        let last = request.units - 1;
        for i in 0..request.units {
            let partial = (i == 0 && request.head_partial) || (i == last && request.tail_partial);
            let what = match request.op {
                Op::Trim => What::Trim,
                _ if partial => What::Modify,
                _ => What::Write,
            };
            let value = match payload.values {
                Some(values) if what != What::Trim => PageTag(values[i as usize]),
                None if what != What::Trim && self.host.needs_content => {
                    return Err(DriveError::NoContent);
                }
                None if what != What::Trim => self.unnamed_value(),
                _ => PageTag(u32::MAX),
            };
            let unit = UnitChange {
                lpn: Lpn(request.lpn + i),
                value,
                ratio: payload.ratio(i as usize),
                what,
                slot,
                arrival: flight.arrival,
            };
            self.buffering_decides(flight.arrival, |buffering, steps| {
                buffering.change(unit, steps)
            })?;
        }
        Ok(())
    }

    /// The buffer decides, and its steps are taken.
    fn buffering_decides(
        &mut self,
        at: Time,
        decide: impl FnOnce(&mut dyn Buffering, &mut Vec<BufferingStep>),
    ) -> Result<()> {
        let Some(leaving) = &mut self.buffering else {
            return Ok(());
        };
        let mut steps = std::mem::take(&mut leaving.steps);
        decide(leaving.buffering.as_mut(), &mut steps);
        for step in steps.drain(..) {
            match step {
                BufferingStep::Answer(slot, start) => self.unit_done(slot, start, at),
                BufferingStep::Leave(place, unit) => self.leave(at, place, unit)?,
                BufferingStep::Pass(unit) => self.hand_on(at, unit)?,
            }
        }
        if let Some(leaving) = &mut self.buffering {
            leaving.steps = steps;
        }
        self.release_reads(at)
    }

    /// A change leaves its place in the buffer.
    fn leave(&mut self, at: Time, place: BufferPlace, unit: UnitChange) -> Result<()> {
        let op = match unit.what {
            What::Trim => Op::Trim,
            What::Write | What::Modify | What::Scan => Op::Write,
        };
        let slot = self.requests.insert(InFlight {
            arrival: unit.arrival,
            start: Time::MAX,
            end: at,
            left: 1,
            lpn: unit.lpn,
            units: 1,
            number: u64::from(place),
            op,
            measured: false,
            by: SentBy::Buffer,
        });
        self.hand_on(at, UnitChange { slot, ..unit })
    }

    /// A change goes on to the translation layer.
    fn hand_on(&mut self, at: Time, unit: UnitChange) -> Result<()> {
        let change = Change {
            ratio: unit.ratio,
            ..self.change(unit.lpn, unit.value, unit.slot, unit.what)
        };
        if unit.what == What::Trim && !S::HASHES {
            return self.apply(at, change);
        }
        self.begin_change(at, change)
    }

    /// The end of a change that left the buffer is known.
    pub(super) fn leave_buffering(&mut self, flight: &InFlight) {
        if let Some(buffering) = &mut self.buffering {
            let start = flight.start.min(flight.end);
            buffering.last_end = buffering.last_end.max(flight.end);
            let place = BufferPlace(flight.number as u32);
            buffering.ends.push(Reverse((flight.end, place, start)));
        }
    }

    /// What happens at the buffer at an instant: a change is done, or the buffer does something by
    /// itself; whether anything did.
    pub(super) fn buffering_happens(&mut self, at: Time) -> Result<bool> {
        let Some(leaving) = &mut self.buffering else {
            return Ok(false);
        };
        if let Some(&Reverse((end, place, start))) = leaving.ends.peek()
            && end <= at
        {
            leaving.ends.pop();
            self.buffering_decides(at, |buffering, steps| {
                buffering.left(place, start, at, steps)
            })?;
            return Ok(true);
        }
        if leaving.buffering.due().is_some_and(|due| due <= at) {
            self.buffering_decides(at, |buffering, steps| buffering.happen(steps))?;
            return Ok(true);
        }
        Ok(false)
    }
}
