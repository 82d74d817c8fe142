//! What is taken out of a history in steps: whoever does something for each object that is given up does it between them,
//! and keeps in mind no more of them than one step gives.
//!
//! Invariant: each object reference that is given up is told once. Between two steps instants that go may answer with what is
//! left of them, and pins are there that nobody wants: nobody asks.

use std::ops::Range;

use flashlore_flash::{EntryNumber, Lpn, ObjectId, Tables};

use super::store::History;

/// What is to go, and how far that has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    /// Pinned instants that nobody wants any more, the next one last.
    instants: Vec<u64>,
    unpinning: Option<Unpinning>,
    /// Where the window begins then.
    window: Option<u64>,
    /// Pages of which the present version alone is left.
    pages: Range<Lpn>,
}

/// A pin has gone: which of the entries behind it are still to be looked at, and the pin before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unpinning {
    pub before: Option<u64>,
    pub next: EntryNumber,
    pub left: u32,
}

impl Removal {
    fn nothing() -> Self {
        Removal {
            instants: Vec::new(),
            unpinning: None,
            window: None,
            pages: Lpn(0)..Lpn(0),
        }
    }

    /// The window begins at `to`, if it does not begin later already.
    pub fn advance(to: u64) -> Self {
        Removal {
            window: Some(to),
            ..Self::nothing()
        }
    }

    /// Old versions of these pages.
    pub fn purge(pages: Range<Lpn>) -> Self {
        Removal {
            pages,
            ..Self::nothing()
        }
    }

    /// These instants, which nobody wants any more, oldest first; then the window begins at `to`.
    pub(super) fn instants(mut instants: Vec<u64>, to: Option<u64>) -> Self {
        instants.reverse();
        Removal {
            instants,
            window: to,
            ..Self::nothing()
        }
    }
}

impl<S: Tables> History<S> {
    /// Takes out what is to go: about as much of it as `most` entries or pages. Each object reference given up is told
    /// to `drop`. Whether anything is left to do.
    pub fn remove(
        &mut self,
        removal: &mut Removal,
        most: u32,
        drop: &mut impl FnMut(ObjectId),
    ) -> bool {
        if removal.unpinning.is_none()
            && let Some(instant) = removal.instants.pop()
        {
            removal.unpinning = self.begin_to_unpin(instant);
        }
        if let Some(unpinning) = &mut removal.unpinning {
            if !self.unpin(unpinning, most, drop) {
                removal.unpinning = None;
            }
        } else if let Some(to) = removal.window {
            // Which instants a schedule keeps depends on where the window begins in the end.
            let step = match self.len() > most as usize && !self.has_schedule() {
                true => self.stamp_after(self.oldest(), most),
                false => None,
            };
            let step = step.filter(|&step| step < to);
            // Where entries cannot be read, what stands first may not be what was to go.
            let goes_on = step.is_some_and(|step| self.advance(step, drop));
            if !goes_on {
                self.advance(to, drop);
            }
            removal.window = goes_on.then_some(to);
        } else if removal.pages.start < removal.pages.end {
            let Range { start, end } = removal.pages;
            let until = Lpn(start.0.saturating_add(most)).min(end);
            self.purge_at_once(start..until, drop);
            removal.pages.start = until;
        }
        removal.unpinning.is_some()
            || !removal.instants.is_empty()
            || removal.window.is_some()
            || removal.pages.start < removal.pages.end
    }

    /// The same to the end, at once.
    pub fn remove_all(&mut self, mut removal: Removal, drop: &mut impl FnMut(ObjectId)) {
        while self.remove(&mut removal, u32::MAX, drop) {}
    }
}
