//! Which of the calls that were not durable survive a power cut.
//!
//! Every style yields, for each sector, its durable version or that of any pending call that covers
//! it; only how often it yields which differs. `Style::Sectors` alone reaches every such choice.

use std::collections::BTreeSet;
use std::ops::Range;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::medium::SECTOR;

/// How survivors are chosen: the corners that a search should look into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Style {
    /// No pending call survives.
    Nothing,
    /// All survive, as if a sync had been in time.
    All,
    /// Each call survives as a whole, or not at all.
    Calls { percent: u8 },
    /// Each sector of each call survives or not.
    Sectors { percent: u8 },
    /// All survive but one.
    OneLost,
    /// All survive, one of them only in part. A call of one sector cannot be torn.
    OneTorn,
    /// Only the calls after some moment survive.
    Later,
    /// Each call survives as a whole or not at all, and the survivors took effect in any order.
    Shuffled { percent: u8 },
}

impl Style {
    /// One of each and several chances: what a search goes through.
    pub const SEARCH: [Style; 13] = [
        Style::Nothing,
        Style::All,
        Style::Calls { percent: 10 },
        Style::Calls { percent: 50 },
        Style::Calls { percent: 90 },
        Style::Sectors { percent: 10 },
        Style::Sectors { percent: 50 },
        Style::Sectors { percent: 90 },
        Style::OneLost,
        Style::OneTorn,
        Style::Later,
        Style::Shuffled { percent: 50 },
        Style::Shuffled { percent: 100 },
    ];
}

/// What a call leaves in its sectors.
#[derive(Debug)]
pub(crate) enum Content {
    Bytes(Vec<u8>),
    Fill(u8),
}

/// A write or discard that is not durable.
#[derive(Debug)]
pub(crate) struct Call {
    sectors: Range<usize>,
    content: Content,
    /// A failed sync should have covered it: no later one will.
    pub(crate) lost: bool,
    /// Sectors that a durable call covered since; they cannot come back.
    superseded: BTreeSet<usize>,
}

impl Call {
    pub(crate) fn new(first: usize, count: usize, content: Content) -> Self {
        Call {
            sectors: first..first + count,
            content,
            lost: false,
            superseded: BTreeSet::new(),
        }
    }

    /// Whether it may still decide what this sector holds.
    pub(crate) fn covers(&self, sector: usize) -> bool {
        self.sectors.contains(&sector) && !self.superseded.contains(&sector)
    }

    /// Notes that `newer`, now durable, covers part of it.
    pub(crate) fn supersede(&mut self, newer: &Call) {
        let start = self.sectors.start.max(newer.sectors.start);
        let end = self.sectors.end.min(newer.sectors.end);
        self.superseded.extend(start..end);
    }

    /// Whether nothing of it can survive any more.
    pub(crate) fn is_superseded(&self) -> bool {
        self.superseded.len() == self.sectors.len()
    }

    /// Puts its sectors into `bytes`, those for which `keep` says so. `keep` gets the position of
    /// the sector within the call.
    pub(crate) fn apply(&self, bytes: &mut [u8], mut keep: impl FnMut(usize) -> bool) {
        for (position, sector) in self.sectors.clone().enumerate() {
            if !keep(position) || !self.covers(sector) {
                continue;
            }
            let place = &mut bytes[sector * SECTOR..][..SECTOR];
            match &self.content {
                Content::Bytes(content) => {
                    place.copy_from_slice(&content[position * SECTOR..][..SECTOR]);
                }
                Content::Fill(byte) => place.fill(*byte),
            }
        }
    }
}

pub(crate) fn survivors(durable: &[u8], pending: &[Call], seed: u64, style: Style) -> Vec<u8> {
    let mut bytes = durable.to_vec();
    let mut draw = Draw(Xoshiro256PlusPlus::seed_from_u64(seed));
    match style {
        Style::Nothing => {}
        Style::All => keep_whole(&mut bytes, pending),
        Style::Calls { percent } => {
            let kept = pending.iter().filter(|_| draw.chance(percent));
            keep_whole(&mut bytes, kept);
        }
        Style::Sectors { percent } => {
            for call in pending {
                call.apply(&mut bytes, |_| draw.chance(percent));
            }
        }
        Style::OneLost => {
            let lost = draw.below(pending.len());
            let kept = pending
                .iter()
                .enumerate()
                .filter(|(index, _)| *index != lost);
            keep_whole(&mut bytes, kept.map(|(_, call)| call));
        }
        Style::OneTorn => keep_but_tear_one(&mut bytes, pending, &mut draw),
        Style::Later => {
            let from = draw.below(pending.len() + 1);
            keep_whole(&mut bytes, &pending[from..]);
        }
        Style::Shuffled { percent } => {
            let mut kept: Vec<&Call> = pending.iter().filter(|_| draw.chance(percent)).collect();
            draw.shuffle(&mut kept);
            keep_whole(&mut bytes, kept);
        }
    }
    bytes
}

fn keep_whole<'a>(bytes: &mut [u8], calls: impl IntoIterator<Item = &'a Call>) {
    for call in calls {
        call.apply(bytes, |_| true);
    }
}

fn keep_but_tear_one(bytes: &mut [u8], pending: &[Call], draw: &mut Draw) {
    let divisible: Vec<usize> = (0..pending.len())
        .filter(|&index| pending[index].sectors.len() > 1)
        .collect();
    let torn = divisible.get(draw.below(divisible.len()));
    for (index, call) in pending.iter().enumerate() {
        if torn == Some(&index) {
            let kept = draw.tear(call.sectors.len());
            call.apply(bytes, |position| kept[position]);
        } else {
            call.apply(bytes, |_| true);
        }
    }
}

struct Draw(Xoshiro256PlusPlus);

impl Draw {
    /// A number below `limit`, or 0.
    fn below(&mut self, limit: usize) -> usize {
        (self.0.next_u64() % limit.max(1) as u64) as usize
    }

    fn chance(&mut self, percent: u8) -> bool {
        self.0.next_u64() % 100 < u64::from(percent)
    }

    fn shuffle(&mut self, calls: &mut [&Call]) {
        for unsettled in (2..=calls.len()).rev() {
            calls.swap(unsettled - 1, self.below(unsettled));
        }
    }

    /// Which of `sectors` (two or more) a torn call kept: at least one and not all. A beginning, an
    /// end, all but one, or any.
    fn tear(&mut self, sectors: usize) -> Vec<bool> {
        let shape = self.below(4);
        let kept = self.below(sectors);
        let step = 1 + self.below(sectors - 1);
        let missing = (kept + step) % sectors;
        let keeps = |position| match shape {
            0 => position < step,
            1 => position >= step,
            2 => position != missing,
            _ => position == kept || position != missing && self.chance(50),
        };
        (0..sectors).map(keeps).collect()
    }
}
