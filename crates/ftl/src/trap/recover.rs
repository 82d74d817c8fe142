//! What a page held at an instant, decoded from the present; and the way back for all pages.
//!
//! A rewind goes through the log once, from the newest entry to the oldest that is needed, and holds the pages
//! it changes in RAM: so each of them is read once, and each log page. Every entry is one step of decoding. The
//! pages are then written like the host's, and recorded, so that a rewind can be undone.

use std::collections::HashSet;

use flashlore_content::history::TooOld;
use flashlore_content::{Content, Encoder};
use flashlore_flash::{Cause, Flash, Lpn, Ppn, Ready, Tag, When};

use super::TrapFtl;
use super::log::{EncodedPlace, KeptAs, LogEntry};
use crate::error::FtlError;
use crate::mapping::Mapping;
use crate::policies::history::RewindCost;

/// A value with the page that holds it, or nothing.
type HeldPage<C, P> = Option<(C, P)>;

/// The same, and the steps of decoding that it took.
type Decoded<C, P> = (HeldPage<C, P>, u64);

/// What a page held at an instant, if anything, and the steps of decoding that it took.
pub type PageAt<P> = (Option<P>, u64);

/// Why a device does not return.
#[derive(Debug, thiserror::Error)]
pub enum RewindError<E: std::error::Error + 'static> {
    /// The instant is not remembered; nothing has changed.
    #[error(transparent)]
    TooOld(#[from] TooOld),
    /// A page could not be written.
    #[error(transparent)]
    Device(#[from] FtlError<E>),
}

impl<C, F, E> TrapFtl<C, F, E>
where
    C: Content,
    F: Flash,
    F::Page: Clone,
    E: Encoder<C, F::Page>,
{
    fn demand_exact(&self, instant: u64) -> Result<(), TooOld> {
        let oldest = self.oldest();
        match instant < oldest {
            true => Err(TooOld { instant, oldest }),
            false => Ok(()),
        }
    }

    /// The content that a logical page had at an instant.
    ///
    /// # Errors
    /// An instant that is not remembered.
    pub fn content_at_instant(&self, lpn: Lpn, instant: u64) -> Result<Option<C>, TooOld> {
        self.demand_exact(instant)?;
        let first = self.trap.log.since(lpn, instant).last();
        Ok(first.map_or(self.content(lpn), |(_, entry)| entry.before))
    }

    /// What a logical page held at an instant, decoded step by step, and how many steps that took; no time and
    /// no read is counted.
    ///
    /// # Errors
    /// An instant that is not remembered, or a failure of the device.
    pub fn read_at_instant(
        &mut self,
        lpn: Lpn,
        instant: u64,
    ) -> Result<PageAt<F::Page>, RewindError<F::Error>> {
        self.demand_exact(instant)?;
        let (held, steps) = self.decode_back(lpn, instant)?;
        Ok((held.map(|(_, page)| page), steps))
    }

    /// Walks the chain of a page back to an instant.
    fn decode_back(
        &mut self,
        lpn: Lpn,
        instant: u64,
    ) -> Result<Decoded<C, F::Page>, FtlError<F::Error>> {
        let mut held = match self.content(lpn) {
            Some(content) => Some((content, self.core.content(self.trap.unit_of(lpn))?)),
            None => None,
        };
        let chain = self.trap.log.since(lpn, instant);
        let chain: Vec<(u64, LogEntry<C>)> =
            chain.map(|(number, entry)| (number, *entry)).collect();
        let mut steps = 0;
        for (number, entry) in chain {
            steps += u64::from(matches!(entry.form, KeptAs::Parity | KeptAs::Alone));
            held = self.step_back(number, &entry, held)?;
        }
        Ok((held, steps))
    }

    /// What a page held before a change, from what it held after it.
    fn step_back(
        &mut self,
        number: u64,
        entry: &LogEntry<C>,
        after: HeldPage<C, F::Page>,
    ) -> Result<HeldPage<C, F::Page>, FtlError<F::Error>> {
        let Some(content) = entry.before else {
            return Ok(None);
        };
        let base = match entry.form {
            KeptAs::Parity => after.as_ref().map(|(_, page)| page),
            KeptAs::Nothing | KeptAs::Alone | KeptAs::Raw => None,
        };
        let trap = &mut self.trap;
        let place = trap.log.place(number, entry);
        let page = match place {
            EncodedPlace::OnFlash(ppn, slot) => {
                let page = self.core.content(ppn)?;
                if entry.form == KeptAs::Raw {
                    page
                } else {
                    let value = trap.encoder.unpack(&page, slot);
                    trap.encoder.decode(base, &value)
                }
            }
            EncodedPlace::InRam(slot) => {
                let filling = trap.log.in_ram();
                match &filling.raw {
                    Some(page) => page.clone(),
                    None => trap.encoder.decode(base, &filling.values[slot.index()]),
                }
            }
        };
        Ok(Some((content, page)))
    }

    /// What a rewind to the start of the window would take, without the copies of collection and the log pages
    /// that it would fill.
    pub fn cost_of_longest_rewind(&self) -> RewindCost {
        let (pages, reads, decodes) = self.work_since(self.oldest());
        let written = pages.iter().filter(|&&lpn| {
            let first = self.trap.log.since(lpn, self.oldest()).last();
            first.is_some_and(|(_, entry)| entry.before.is_some())
        });
        RewindCost {
            pages: pages.len() as u64,
            reads: reads.len() as u64,
            decodes,
            programs: written.count() as u64,
        }
    }

    /// The pages that changed since an instant, the units to be read and the values to be decoded for a rewind.
    fn work_since(&self, instant: u64) -> (Vec<Lpn>, Vec<Ppn>, u64) {
        let (mut pages, mut units) = (Vec::new(), Vec::new());
        let (mut seen, mut logged) = (HashSet::new(), HashSet::new());
        let mut decodes = 0;
        for (number, entry) in self.trap.log.all_since(instant) {
            if seen.insert(entry.lpn) {
                pages.push(entry.lpn);
                units.push(self.trap.unit_of(entry.lpn));
            }
            decodes += u64::from(matches!(entry.form, KeptAs::Parity | KeptAs::Alone));
            if entry.form != KeptAs::Nothing
                && let EncodedPlace::OnFlash(ppn, _) = self.trap.log.place(number, entry)
                && logged.insert(ppn)
            {
                units.push(ppn);
            }
        }
        units.retain(|unit| unit.is_some() && self.core.buffered(*unit).is_none());
        (pages, units, decodes)
    }

    /// Every logical page holds again what it held at an instant. It can be undone by a rewind to an instant
    /// before it, if the log has room for what it records: that takes space like any write, and may push the
    /// start of the window on.
    ///
    /// # Errors
    /// An instant that is not remembered: then nothing has changed. A device that is full, or fails: then some
    /// pages have.
    pub fn rewind_to(&mut self, instant: u64) -> Result<RewindCost, RewindError<F::Error>> {
        self.demand_exact(instant)?;
        let at = self.core.present;
        let (pages, units, decodes) = self.work_since(instant);
        let before = self.core.counters.programs();
        let mut cost = RewindCost {
            reads: units.len() as u64,
            decodes,
            ..RewindCost::default()
        };
        for unit in units {
            let ready = Ready::At(at);
            self.core.read(ready, unit, Cause::Delta, Tag::NONE)?;
        }
        // Decoded before anything is written: what that records may shorten the window.
        let mut targets = Vec::new();
        for lpn in pages {
            let (held, _) = self.decode_back(lpn, instant)?;
            if held.as_ref().map(|(content, _)| *content) != self.content(lpn) {
                targets.push((lpn, held));
            }
        }
        for (lpn, held) in targets {
            cost.pages += 1;
            match held {
                Some((content, page)) => {
                    self.write_page(When::now(at), lpn, content, page, Tag::NONE)?;
                }
                None => self.trim(lpn)?,
            }
        }
        cost.programs = self.core.counters.programs() - before;
        Ok(cost)
    }
}
