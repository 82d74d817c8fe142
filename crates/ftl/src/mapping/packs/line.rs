//! The packed pages that may be merged, in the order in which they were filled.
//!
//! Where there may be more of them than memory has room for ([`Note::MOST_REMEMBERED`](flashlore_flash::Note)), those stand
//! in line that were filled first, up to the *horizon*. Which come next says a *round* over the rows of all pages, made a few
//! rows at a time once half of the line has gone. So what is foremost is what it would be if all stood in line.
//!
//! Invariants:
//! 1. What is foremost was filled before everything else in line.
//! 2. A page with live slots that was looked at and filled before the horizon has a turn in line.
//! 3. A page whose row is marked so has a turn in line. One that is not may have one too.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use flashlore_flash::{PackId, Table};

use super::row::Pack;

/// Turns of pages given up that may stand in the order besides as many as there are live pages.
const SPARE_TURNS: usize = 1024;

/// Rows that a round looks at in each step, at least.
const LEAST_STEP: u32 = 16;

/// One turn in so many leaves a line that has become too long.
const LEAVING: usize = 16;

/// A page and its number.
type Turn = (PackId, u32);

/// All pages, of which a row is looked at.
pub(super) struct Pages<'a, R> {
    pub rows: &'a mut R,
    /// Numbers that were ever used.
    pub numbers: u32,
    /// How many pages were ever filled.
    pub filled: u64,
    /// Pages on flash with live slots.
    pub live: u32,
}

/// Pages on flash in the order in which they were filled: to be merged when there are too many. Some are given
/// up by now. A page without live slots is not in line, or leaves it when its turn comes, and comes back to its place
/// when it has one again.
#[derive(Debug, Clone)]
pub(super) struct Line {
    /// The most turns in it.
    most: usize,
    first: VecDeque<Turn>,
    /// Those that came back: number and page.
    back: BinaryHeap<Reverse<(u64, PackId)>>,
    /// Pages that were filled from this one on have no turn.
    horizon: u64,
    round: Option<Round>,
}

/// A look at all rows for the pages that come next.
#[derive(Debug, Clone)]
struct Round {
    /// The row that is next.
    next: PackId,
    /// Those found, as many as have room, filled first: number and page.
    found: BinaryHeap<(u64, PackId)>,
    /// The first of the others.
    beyond: u64,
}

impl Round {
    /// A page that has no turn.
    fn offer(&mut self, number: u64, pack: PackId, most: usize) {
        self.found.push((number, pack));
        if self.found.len() > most
            && let Some((last, _)) = self.found.pop()
        {
            self.beyond = self.beyond.min(last);
        }
    }
}

impl Line {
    /// Nobody, and so many turns at most.
    pub fn new(most: usize) -> Self {
        Line {
            most,
            first: VecDeque::new(),
            back: BinaryHeap::new(),
            horizon: u64::MAX,
            round: None,
        }
    }

    fn len(&self) -> usize {
        self.first.len() + self.back.len()
    }

    /// A page was filled, the last of all; whether it has a turn.
    pub fn push(&mut self, pack: PackId, pages: &mut Pages<'_, impl Table<Pack>>) -> bool {
        let number = pages.filled - 1;
        if number >= self.horizon {
            self.offer(pack, number);
            return false;
        }
        self.first.push_back((pack, number as u32));
        if self.first.len() > 2 * pages.live as usize + SPARE_TURNS {
            self.first.retain(|&turn| stays_in_line(pages.rows, turn));
        }
        self.shorten(pages);
        number < self.horizon
    }

    /// A page comes to its place, or back to it; whether it has a turn.
    pub fn bring_back(
        &mut self,
        pack: PackId,
        number: u32,
        pages: &mut Pages<'_, impl Table<Pack>>,
    ) -> bool {
        let number = nth(number, pages.filled);
        if number >= self.horizon {
            self.offer(pack, number);
            return false;
        }
        self.back.push(Reverse((number, pack)));
        self.shorten(pages);
        number < self.horizon
    }

    /// A page behind the horizon: the round has passed it, or will meet it.
    fn offer(&mut self, pack: PackId, number: u64) {
        let most = self.most;
        if let Some(round) = self.round.as_mut().filter(|round| pack < round.next) {
            round.offer(number, pack, most);
        }
    }

    /// Where there are too many turns the last ones go, and the horizon is where they were.
    fn shorten(&mut self, pages: &mut Pages<'_, impl Table<Pack>>) {
        if self.len() <= self.most {
            return;
        }
        let first = std::mem::take(&mut self.first).into_iter();
        let first = first.map(|(pack, number)| Reverse((nth(number, pages.filled), pack)));
        let mut turns = std::mem::take(&mut self.back).into_vec();
        turns.extend(first);
        turns.sort_unstable();
        turns.dedup();
        turns.reverse();
        let stay = self.most - self.most / LEAVING;
        for Reverse((number, pack)) in turns.drain(stay.min(turns.len())..) {
            self.horizon = self.horizon.min(number);
            let is_it = pages.rows.get(pack.index()).number == number as u32;
            if is_it {
                pages.rows.change(pack.index(), |row| row.in_line = false);
            }
        }
        self.back = BinaryHeap::from(turns);
        // What it has found is behind the old horizon, and not all that is behind the new one.
        self.round = None;
    }

    /// The page with live slots that was filled first of all that were looked at (`is_looked_at`, by page and number). What
    /// stands before it leaves the line.
    pub fn foremost(
        &mut self,
        pages: &mut Pages<'_, impl Table<Pack>>,
        is_looked_at: &impl Fn(PackId, u32) -> bool,
    ) -> Option<PackId> {
        if self.horizon < u64::MAX && self.len() <= self.most / 2 {
            let steps = (self.most as u32 / 4).max(1);
            let step = (pages.numbers / steps).max(LEAST_STEP);
            self.go_round(step, pages, is_looked_at);
        }
        loop {
            while let Some(turn) = self.next_turn(pages.filled) {
                if stays_in_line(pages.rows, turn) {
                    return Some(turn.0);
                }
                self.pop(pages.filled);
            }
            if self.horizon == u64::MAX {
                return None;
            }
            self.go_round(u32::MAX, pages, is_looked_at);
        }
    }

    /// Looks at so many more rows for the pages behind the horizon. At the end those found stand in line.
    fn go_round(
        &mut self,
        step: u32,
        pages: &mut Pages<'_, impl Table<Pack>>,
        is_looked_at: &impl Fn(PackId, u32) -> bool,
    ) {
        let mut round = self.round.take().unwrap_or(Round {
            next: PackId(0),
            found: BinaryHeap::new(),
            beyond: u64::MAX,
        });
        let end = round.next.0.saturating_add(step).min(pages.numbers);
        for pack in (round.next.0..end).map(PackId) {
            let row = pages.rows.get(pack.index());
            let number = nth(row.number, pages.filled);
            let is_live = row.is_live() && row.named_bytes > 0;
            if is_live && number >= self.horizon && is_looked_at(pack, row.number) {
                round.offer(number, pack, self.most);
            }
        }
        round.next = PackId(end);
        if end < pages.numbers {
            self.round = Some(round);
            return;
        }
        // All of them were filled after those in line.
        let found = round.found.into_iter().map(Reverse);
        self.back.extend(found);
        self.horizon = round.beyond;
        self.shorten(pages);
    }

    /// The next that came back, if it was filled before the first of the others.
    fn first_back(&self, filled: u64) -> Option<Turn> {
        let &Reverse((back, pack)) = self.back.peek()?;
        let first = self.first.front().map(|&(_, number)| nth(number, filled));
        first
            .is_none_or(|first| back < first)
            .then_some((pack, back as u32))
    }

    fn next_turn(&self, filled: u64) -> Option<Turn> {
        let back = self.first_back(filled);
        back.or_else(|| self.first.front().copied())
    }

    fn pop(&mut self, filled: u64) {
        match self.first_back(filled) {
            Some(_) => _ = self.back.pop(),
            None => _ = self.first.pop_front(),
        }
    }

    pub fn heap_bytes(&self) -> usize {
        let found = self
            .round
            .as_ref()
            .map_or(0, |round| round.found.capacity());
        self.first.capacity() * size_of::<Turn>()
            + (self.back.capacity() + found) * size_of::<(u64, PackId)>()
    }

    /// Recounts: every page of these that must have a turn has one.
    ///
    /// # Errors
    /// A sentence that names one that has none.
    pub fn check(
        &self,
        live: impl Iterator<Item = (PackId, Pack)>,
        filled: u64,
    ) -> Result<(), String> {
        let back = self
            .back
            .iter()
            .map(|&Reverse((number, pack))| (pack, number as u32));
        let turns: rustc_hash::FxHashSet<Turn> = back.chain(self.first.iter().copied()).collect();
        if turns.len() > self.most {
            return Err(format!(
                "{} turns in line, at most {}",
                turns.len(),
                self.most
            ));
        }
        for (pack, row) in live {
            let must = nth(row.number, filled) < self.horizon || row.in_line;
            if must && !turns.contains(&(pack, row.number)) {
                return Err(format!("packed page {pack} is not in line: {row:?}"));
            }
        }
        Ok(())
    }
}

/// Which of so many pages that were ever filled has this number, the lower half of it.
pub(super) fn nth(number: u32, filled: u64) -> u64 {
    let ago = (filled as u32).wrapping_sub(number);
    filled.wrapping_sub(u64::from(ago))
}

/// Whether a page is still what it was when it got this turn, and has live slots. Without these it leaves the line.
fn stays_in_line(rows: &mut impl Table<Pack>, (pack, number): Turn) -> bool {
    let row = rows.get(pack.index());
    let is_current = row.number == number && row.named_bytes > 0 && row.location.is_some();
    if is_current && row.live_slots == 0 {
        rows.change(pack.index(), |row| row.in_line = false);
    }
    is_current && row.live_slots > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashlore_flash::Ppn;
    use proptest::prelude::*;

    const PAGES: u32 = 60;

    #[derive(Debug, Clone, Copy)]
    enum LineStep {
        /// A page is filled, one that was given up if it can be.
        Fill(u32),
        /// Nobody needs a delta of it any more, or somebody does again.
        Lose(u32),
        Gain(u32),
        /// So many more of those that a recovery brought back are looked at.
        LookAt(u32),
        /// The first in line is merged.
        Merge,
    }

    fn steps() -> impl Strategy<Value = Vec<LineStep>> {
        let step = prop_oneof![
            4 => (0..PAGES).prop_map(LineStep::Fill),
            2 => (0..PAGES).prop_map(LineStep::Lose),
            2 => (0..PAGES).prop_map(LineStep::Gain),
            1 => (1..20u32).prop_map(LineStep::LookAt),
            4 => Just(LineStep::Merge),
        ];
        prop::collection::vec(step, 1..300)
    }

    /// A line, and the rows of its pages; how many of the first were looked at, and how many were filled before a recovery.
    struct Packed {
        line: Line,
        rows: Vec<Pack>,
        filled: u64,
        looked_at: u32,
        before: u64,
    }

    impl Packed {
        /// So many pages as a recovery finds them, filled in this order.
        fn new(most: usize, found: &[u32]) -> Self {
            let start = u64::from(u32::MAX) - 20;
            let mut rows = vec![Pack::free(PackId::NONE); PAGES as usize];
            for (number, &pack) in (start..).zip(found) {
                rows[pack as usize] = page(number as u32);
            }
            let filled = start + found.len() as u64;
            Packed {
                line: Line::new(most),
                rows,
                filled,
                looked_at: 0,
                before: filled,
            }
        }

        fn is_looked_at(&self) -> impl Fn(PackId, u32) -> bool + use<> {
            let (looked_at, filled, before) = (self.looked_at, self.filled, self.before);
            move |pack, number| pack.0 < looked_at || nth(number, filled) >= before
        }

        fn with<A>(&mut self, act: impl FnOnce(&mut Line, &mut Pages<'_, Vec<Pack>>) -> A) -> A {
            let live = self.rows.iter().filter(|row| row.is_live()).count() as u32;
            let mut pages = Pages {
                rows: &mut self.rows,
                numbers: PAGES,
                filled: self.filled,
                live,
            };
            act(&mut self.line, &mut pages)
        }

        fn bring(&mut self, pack: u32) {
            let number = self.rows[pack as usize].number;
            let has_turn = self.with(|line, pages| line.bring_back(PackId(pack), number, pages));
            self.rows[pack as usize].in_line = has_turn;
        }

        fn step(&mut self, step: LineStep) {
            match step {
                LineStep::Fill(pack) => {
                    self.rows[pack as usize] = page(self.filled as u32);
                    self.filled += 1;
                    let has_turn = self.with(|line, pages| line.push(PackId(pack), pages));
                    self.rows[pack as usize].in_line = has_turn;
                }
                LineStep::Lose(pack) => {
                    let row = &mut self.rows[pack as usize];
                    row.live_slots = row.live_slots.saturating_sub(1);
                }
                LineStep::Gain(pack) => {
                    let row = &mut self.rows[pack as usize];
                    let before = *row;
                    if before.location.is_some() {
                        row.live_slots += 1;
                        let is_looked_at = self.is_looked_at()(PackId(pack), before.number);
                        if before.live_slots == 0 && !before.in_line && is_looked_at {
                            self.bring(pack);
                        }
                    }
                }
                LineStep::LookAt(more) => {
                    let end = (self.looked_at + more).min(PAGES);
                    for pack in self.looked_at..end {
                        let row = self.rows[pack as usize];
                        if self.is_looked_at()(PackId(pack), row.number) {
                            continue;
                        }
                        match row.is_live() {
                            true => self.bring(pack),
                            false => self.rows[pack as usize].in_line = false,
                        }
                    }
                    self.looked_at = end;
                }
                LineStep::Merge => {
                    if let Some(first) = self.foremost() {
                        self.rows[first.index()].live_slots = 0;
                    }
                }
            }
        }

        fn foremost(&mut self) -> Option<PackId> {
            let is_looked_at = self.is_looked_at();
            self.with(|line, pages| line.foremost(pages, &is_looked_at))
        }

        /// Those with live slots that were looked at.
        fn live(&self) -> Vec<(PackId, Pack)> {
            let rows = (0..).map(PackId).zip(self.rows.iter().copied());
            let is_looked_at = self.is_looked_at();
            let live = rows.filter(|(pack, row)| row.is_live() && is_looked_at(*pack, row.number));
            live.collect()
        }
    }

    fn page(number: u32) -> Pack {
        Pack {
            location: Ppn(7),
            number,
            written_bytes: 100,
            named_bytes: 100,
            live_slots: 1,
            in_line: false,
        }
    }

    proptest! {
        /// However few of them stand in line, the first is the one that was filled first. Numbers run over.
        #[test]
        fn the_foremost_was_filled_first(
            steps in steps(),
            most in prop_oneof![2..20usize, Just(usize::MAX)],
            found in Just((0..PAGES / 2).collect::<Vec<u32>>()).prop_shuffle(),
        ) {
            let mut packed = Packed::new(most, &found);
            for step in steps {
                packed.step(step);
                let live = packed.live();
                let check = packed.line.check(live.iter().copied(), packed.filled);
                check.map_err(TestCaseError::fail)?;
                let filled = packed.filled;
                let first = live.iter().min_by_key(|(_, row)| nth(row.number, filled));
                prop_assert_eq!(packed.foremost(), first.map(|(pack, _)| *pack));
            }
        }
    }
}
