//! Sampling: of so many whole pages of a request one is hashed first.
//!
//! The others are held until it has been looked up: they are hashed too if it was found, else written
//! at once without passing the hash unit.
//!
//! Invariant: the changes held are those of the samples in the hash queue, in its order.

use std::ops::DerefMut;

use flashlore_content::PageTag;
use flashlore_content::dedup::sampling::sample_of;
use flashlore_flash::{Lpn, Time};
use flashlore_ftl::Unhashed;
use flashlore_trace::Request;

use super::changes::{Change, Hashing, What};
use super::{Driver, Result};
use crate::engine::system::System;

impl<S: System, D: DerefMut<Target = S>> Driver<D> {
    /// Writes a request of which samples are hashed first. A page that is written in part is hashed by
    /// itself: its content is known only when its old content has been read.
    #[inline(never)]
    pub(super) fn write_sampled(
        &mut self,
        at: Time,
        slot: u32,
        request: &Request,
        (values, ratios): (&[u32], Option<&[u16]>),
        unit: usize,
    ) -> Result<()> {
        let ratio = |page: usize| ratios.map_or(0, |ratios| ratios[page]);
        let first = usize::from(request.head_partial);
        let tail = request.tail_partial && request.units as usize > first;
        let end = request.units as usize - usize::from(tail);
        if first > 0 {
            let change = Change {
                ratio: ratio(0),
                ..self.change(Lpn(request.lpn), PageTag(values[0]), slot, What::Modify)
            };
            self.begin_change(at, change)?;
        }
        for from in (first..end).step_by(unit) {
            let pages = from..end.min(from + unit);
            let of_pages = (&values[pages.clone()], ratios.map(|r| &r[pages]));
            self.begin_sampled(at, slot, Lpn(request.lpn + from as u32), of_pages)?;
        }
        if tail {
            let lpn = request.lpn + end as u32;
            let change = Change {
                ratio: ratio(end),
                ..self.change(Lpn(lpn), PageTag(values[end]), slot, What::Modify)
            };
            self.begin_change(at, change)?;
        }
        Ok(())
    }

    /// The pages of one sampling unit: the sample enters the hash unit, the others are held for it.
    fn begin_sampled(
        &mut self,
        at: Time,
        slot: u32,
        lpn: Lpn,
        (pages, ratios): (&[u32], Option<&[u16]>),
    ) -> Result<()> {
        let Some(chosen) = sample_of(pages) else {
            return Ok(());
        };
        let hashes = self.system.wants_hash();
        let mut sample = None;
        for (i, &value) in pages.iter().enumerate() {
            let change = Change {
                ratio: ratios.map_or(0, |ratios| ratios[i]),
                ..self.change(lpn + i as u32, PageTag(value), slot, What::Write)
            };
            self.takes_place(&change);
            if !hashes {
                self.line_up(at, change)?;
            } else if i == chosen {
                sample = Some(change);
            } else {
                self.held.push_back(change);
            }
        }
        let Some(mut sample) = sample else {
            return Ok(());
        };
        self.samples.push_back(pages.len() - 1);
        sample.hashing = Hashing::Sample;
        self.line_up(at, sample)
    }

    /// A sample has been hashed: it is looked up for those that are held for it, and is then a write
    /// like any other.
    #[inline(never)]
    pub(super) fn after_sample(&mut self, at: Time, sample: Change) -> Result<()> {
        let found = self.system.knows(sample.value);
        self.await_turn(at, sample)?;
        self.release_held(at, found)
    }

    /// The sample that is first in line has been looked up: those held for it go on.
    fn release_held(&mut self, at: Time, found: bool) -> Result<()> {
        for _ in 0..self.samples.pop_front().unwrap_or(0) {
            let Some(mut change) = self.held.pop_front() else {
                break;
            };
            if found {
                self.enter_hash(at, change)?;
            } else {
                change.hashing = Hashing::Not(Unhashed::Unsampled);
                self.await_turn(at, change)?;
            }
        }
        Ok(())
    }
}
