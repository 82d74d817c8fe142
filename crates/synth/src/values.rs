//! What is written: silent writes, new values, values that other pages hold, and values that were
//! written before and that no page holds any more.
//!
//! Heavy values may be taken without limit; a light one is written a few times and then never again.
//! Two classes are what the published pair of figures asks for, the share of distinct values and the
//! share of them that makes half of the writes (CA-SSD, section 3). How far back a value is taken
//! from is the temporal locality. Shares are kept by correcting the chance of each write by what is
//! owed so far, so that they hold at every length.

use flashlore_trace::workload::NO_VALUE;

use crate::draw::Draw;
use crate::profile::{Reach, Values};
use crate::recency::{NOWHERE, Recency};

/// A debt is paid over so many writes.
const PAID_OVER: f64 = 200.0;

/// The mean weight is that of so many writes.
const WEIGHED_OVER: f64 = 10_000.0;

/// The number of writes of a value that is written once and never again.
const ONCE: u32 = u32::MAX;

/// The values of a workload, numbered in order of their first appearance.
#[derive(Debug, Clone)]
pub(crate) struct ValueStream {
    model: Values,
    draw: Draw,
    total: f64,
    written: u64,
    silent: u64,
    made: u64,
    reborn: u64,
    /// Mean weight of the last writes: how much likelier than others those of hot pages are new.
    weight: f64,
    /// All values, those that the workload finds on the device among them.
    values: Vec<WrittenValue>,
    heavy: ValueClass,
    light: ValueClass,
    /// Values written before that no page holds.
    dead: Vec<u32>,
}

#[derive(Debug, Clone, Copy)]
struct WrittenValue {
    /// Where it stands in its class's order of use.
    place: u32,
    /// Where it stands among its class's members.
    member: u32,
    /// Writes so far, silent ones aside; 0 for what was found on the device, [`ONCE`] for what is
    /// never written again.
    writes: u32,
    copies: u32,
    heavy: bool,
}

/// Values that some page holds and that may be taken again.
#[derive(Debug, Clone, Default)]
struct ValueClass {
    recency: Recency,
    members: Vec<u32>,
}

impl ValueStream {
    /// The values of a workload of `total` page writes.
    pub(crate) fn new(model: &Values, total: f64, draw: Draw) -> Self {
        ValueStream {
            model: model.clone(),
            draw,
            total,
            written: 0,
            silent: 0,
            made: 0,
            reborn: 0,
            weight: 1.0,
            values: Vec::new(),
            heavy: ValueClass::default(),
            light: ValueClass::default(),
            dead: Vec::new(),
        }
    }

    /// A value that a page holds before anything is written to it. It is never written.
    pub(crate) fn found(&mut self) -> u32 {
        self.values.push(WrittenValue {
            place: NOWHERE,
            member: NOWHERE,
            writes: 0,
            copies: 1,
            heavy: false,
        });
        self.values.len() as u32 - 1
    }

    /// The value of the next page write, onto a page that holds `held`; `hot` says that the page is one
    /// of those written often.
    #[inline]
    pub(crate) fn write(&mut self, held: u32, hot: bool) -> u32 {
        let weight = if hot { self.model.hot_new } else { 1.0 };
        self.weight += (weight - self.weight) / WEIGHED_OVER;
        let value = self.decide(held, hot, weight / self.weight);
        self.written += 1;
        if value == held {
            self.silent += 1;
            return value;
        }
        self.values[value as usize].copies += 1;
        if held != NO_VALUE {
            self.overwritten(held);
        }
        value
    }

    /// What the chance of an event must be that happens in a share of all writes and did so `count`
    /// times so far.
    fn owed(&self, share: f64, count: u64) -> f64 {
        share + (share * (self.written as f64 + 1.0) - count as f64) / PAID_OVER
    }

    fn decide(&mut self, held: u32, hot: bool, weight: f64) -> u32 {
        if held != NO_VALUE && self.draw.chance(self.owed(self.model.silent, self.silent)) {
            self.use_again(held);
            return held;
        }
        let distinct = self.model.unique * self.total;
        let progress = ((self.written as f64 + 1.0) / self.total).min(1.0);
        let due = distinct * progress.powf(self.model.growth);
        let rate = self.model.growth * due / (progress * self.total);
        // Silent writes were decided already.
        let chance = |chance: f64| chance / (1.0 - self.model.silent);
        let owed = (due - self.made as f64) / PAID_OVER;
        if self.draw.chance((chance(rate) + owed) * weight) {
            return self.new_value(hot);
        }
        let reborn = chance(self.owed(self.model.reborn, self.reborn));
        if !self.dead.is_empty() && self.draw.chance(reborn / (1.0 - chance(rate)).max(0.01)) {
            return self.reborn_value();
        }
        match self.take() {
            Some(value) => value,
            None => self.new_value(hot),
        }
    }

    fn new_value(&mut self, hot: bool) -> u32 {
        let heavy = self.draw.chance(self.model.heavy);
        let once = hot && !self.draw.chance(self.model.hot_reuse);
        self.made += 1;
        self.values.push(WrittenValue {
            place: NOWHERE,
            member: NOWHERE,
            writes: if once { ONCE } else { 1 },
            copies: 0,
            heavy: heavy && !once,
        });
        let value = self.values.len() as u32 - 1;
        self.enter(value);
        value
    }

    fn reborn_value(&mut self) -> u32 {
        self.reborn += 1;
        let at = self.draw.below(self.dead.len() as u32);
        let value = self.dead.swap_remove(at as usize);
        self.values[value as usize].writes += 1;
        self.enter(value);
        value
    }

    /// A value that some page holds.
    fn take(&mut self) -> Option<u32> {
        let heavy = match self.draw.chance(self.model.heavy_reuse) {
            true => !self.heavy.members.is_empty(),
            false => self.light.members.is_empty(),
        };
        let reach = match heavy {
            true => self.model.heavy_reach,
            false => self.model.light_reach,
        };
        let class = if heavy { &self.heavy } else { &self.light };
        let value = class.choose(reach, &mut self.draw)?;
        self.values[value as usize].writes += 1;
        if self.may_be_taken(value) {
            self.use_again(value);
        } else {
            self.leave(value);
        }
        Some(value)
    }

    fn may_be_taken(&self, value: u32) -> bool {
        let value = &self.values[value as usize];
        value.heavy || value.writes < self.model.light_writes
    }

    /// A value may be taken from now on, if it may be written again at all.
    fn enter(&mut self, value: u32) {
        if !self.may_be_taken(value) {
            return;
        }
        let class = self.class(self.values[value as usize].heavy);
        class.members.push(value);
        let member = class.members.len() as u32 - 1;
        let place = class.recency.use_again(value, NOWHERE);
        let entry = &mut self.values[value as usize];
        (entry.place, entry.member) = (place, member);
    }

    /// A value was written: it moves to the front of its class.
    fn use_again(&mut self, value: u32) {
        let WrittenValue { place, heavy, .. } = self.values[value as usize];
        if place != NOWHERE {
            let place = self.class(heavy).recency.use_again(value, place);
            self.values[value as usize].place = place;
        }
    }

    /// A value is not taken any more.
    fn leave(&mut self, value: u32) {
        let WrittenValue {
            place,
            member,
            heavy,
            ..
        } = self.values[value as usize];
        if place == NOWHERE {
            return;
        }
        let class = self.class(heavy);
        class.recency.leave(place);
        class.members.swap_remove(member as usize);
        if let Some(&moved) = class.members.get(member as usize) {
            self.values[moved as usize].member = member;
        }
        self.values[value as usize].place = NOWHERE;
    }

    /// A page that held a value holds another one now.
    fn overwritten(&mut self, value: u32) {
        let entry = &mut self.values[value as usize];
        entry.copies -= 1;
        if entry.copies == 0 && entry.writes > 0 && entry.writes != ONCE {
            self.leave(value);
            self.dead.push(value);
        }
    }

    fn class(&mut self, heavy: bool) -> &mut ValueClass {
        if heavy {
            &mut self.heavy
        } else {
            &mut self.light
        }
    }
}

impl ValueClass {
    fn choose(&self, reach: Reach, draw: &mut Draw) -> Option<u32> {
        if self.members.is_empty() {
            return None;
        }
        if !draw.chance(reach.near) {
            return Some(self.members[draw.below(self.members.len() as u32) as usize]);
        }
        let gap = draw.exponential(reach.gap) as u32;
        let uses = self.recency.uses();
        self.recency.nearest(uses.saturating_sub(1 + gap))
    }
}
