//! Pages and values by the time of their last use, while a workload is generated.
//!
//! Positions count uses, as in `features`. Invariants: a page that was used stands at the position of
//! its last use; a value that a page holds stands there among the live, one that none holds among the
//! dead; `copies` of a value is the number of pages that hold it.

use super::features::{NONE, Page, Value};
use crate::recency::{NOWHERE, Recency};

/// What the pages hold, and since when.
#[derive(Debug, Clone, Default)]
pub(super) struct FitState {
    pages: Vec<Page>,
    values: Vec<Value>,
    by_page: Recency,
    live: Recency,
    dead: Recency,
}

impl FitState {
    /// Uses so far: the position of the next.
    pub(super) fn position(&self) -> u32 {
        self.by_page.uses()
    }

    /// Pages used so far: the number of the next page that was not.
    pub(super) fn footprint(&self) -> u32 {
        self.pages.len() as u32
    }

    /// A value that was never written.
    pub(super) fn new_value(&mut self) -> u32 {
        self.values.push(Value::UNUSED);
        self.values.len() as u32 - 1
    }

    pub(super) fn held(&self, page: u32) -> Option<u32> {
        let held = self.pages.get(page as usize)?.held;
        (held != NONE).then_some(held)
    }

    /// Whether another page holds what this one does.
    pub(super) fn shared(&self, page: u32) -> bool {
        let held = self.held(page);
        held.is_some_and(|value| self.values[value as usize].copies > 1)
    }

    /// The position of the first page that stands at `position` or behind it, or else of the last.
    pub(super) fn standing(&self, position: u32) -> Option<u32> {
        standing(&self.by_page, position)
    }

    /// The same for the live values, and the value.
    pub(super) fn live(&self, position: u32) -> Option<(u32, u32)> {
        let at = standing(&self.live, position)?;
        Some((at, self.live.thing(at)))
    }

    /// The page that stands at a position of [`FitState::standing`].
    pub(super) fn page_at(&self, position: u32) -> u32 {
        self.by_page.thing(position)
    }

    /// The position nearest to `position` whose page is shared, or is not, among the `most` pages that
    /// stand next to it on either side.
    pub(super) fn nearest(&self, position: u32, shared: bool, most: u32) -> Option<u32> {
        let fits = |at: usize| self.shared(self.page_at(at as u32)) == shared;
        let (mut after, mut before) = (Some(position as usize), Some(position as usize));
        if fits(position as usize) {
            return Some(position);
        }
        for _ in 0..most {
            after = after.and_then(|at| self.by_page.after(at));
            before = before.and_then(|at| self.by_page.at_or_before(at.checked_sub(1)?));
            let found = [after, before].into_iter().flatten().find(|&at| fits(at));
            if let Some(at) = found {
                return Some(at as u32);
            }
        }
        None
    }

    /// The dead value whose last use is nearest to `ago` uses ago.
    pub(super) fn dead(&self, ago: u32) -> Option<u32> {
        self.dead.nearest(self.position().saturating_sub(ago))
    }

    /// A page takes a value, or [`NONE`] where content is not known. `page` is at most the footprint.
    pub(super) fn take(&mut self, page: u32, value: u32) {
        if page == self.footprint() {
            self.pages.push(Page::UNUSED);
        }
        let Page { last, held } = self.pages[page as usize];
        self.release(held, value);
        let position = self.by_page.use_again(page, last);
        self.pages[page as usize] = Page {
            last: position,
            held: value,
        };
        if value == NONE {
            self.live.record(NONE);
        } else {
            self.acquire(value, held != value);
        }
        self.dead.record(value);
    }

    /// A page holds nothing from now on.
    pub(super) fn trim(&mut self, page: u32) {
        let held = self.pages[page as usize].held;
        self.release(held, NONE);
        self.pages[page as usize].held = NONE;
    }

    /// A page that held `held` will hold `value`.
    fn release(&mut self, held: u32, value: u32) {
        if held == NONE || held == value {
            return;
        }
        let gone = &mut self.values[held as usize];
        gone.copies -= 1;
        if gone.copies == 0 {
            self.live.leave(gone.last);
            self.dead.stand(gone.last);
        }
    }

    fn acquire(&mut self, value: u32, more: bool) {
        let taken = &mut self.values[value as usize];
        let mut last = taken.last;
        if taken.copies == 0 && last != NOWHERE {
            self.dead.leave(last);
            last = NOWHERE;
        }
        taken.copies += u32::from(more);
        taken.last = self.live.use_again(value, last);
    }

    /// Whether all of it is consistent.
    #[cfg(test)]
    pub(super) fn check(&self) {
        let mut copies = vec![0; self.values.len()];
        for (number, page) in self.pages.iter().enumerate() {
            assert_eq!(self.by_page.thing(page.last), number as u32);
            if page.held != NONE {
                copies[page.held as usize] += 1;
            }
        }
        let live = self.values.iter().filter(|value| value.copies > 0).count();
        for (value, copies) in self.values.iter().zip(copies) {
            assert_eq!(value.copies, copies);
        }
        let used = self.values.iter().filter(|v| v.last != NOWHERE).count();
        assert_eq!(self.live.len() as usize, live);
        assert_eq!(self.dead.len() as usize, used - live);
        assert_eq!(self.by_page.len() as usize, self.pages.len());
    }
}

/// The first position from `position` on where a thing stands, or else the last.
fn standing(recency: &Recency, position: u32) -> Option<u32> {
    let newest = recency.uses().checked_sub(1)?;
    let position = position.min(newest) as usize;
    let before = recency.at_or_before(position);
    match before {
        Some(at) if at == position => Some(at as u32),
        _ => recency.after(position).or(before).map(|at| at as u32),
    }
}
