//! A change of a page: the old version is encoded, the new one programmed, the change recorded.
//!
//! Room: the mapped pages and the log pages on flash are never more than the device can hold. When a unit would
//! be too many, log pages are given up, oldest first, as far as the window may shrink. A change for which there
//! is no room otherwise is refused, and nothing has changed then.

use flashlore_content::delta::Value;
use flashlore_content::history::Holders;
use flashlore_content::{Content, Encoder};
use flashlore_flash::{Completion, Flash, Lpn, Owner, Ppn, Stream, Tag, Time, Unit, When};

use super::TrapFtl;
use super::log::{BeforeImage, New};
use crate::error::FtlError;
use crate::mapping::Mapping;
use crate::mapping::packs::MOST_BYTES;
use crate::policies::history::OnPressure;

/// What is to be recorded of a change.
type Record<C, F, E> = New<C, <E as Encoder<C, <F as Flash>::Page>>::Encoded, <F as Flash>::Page>;

/// The same, or nothing where old versions are not kept.
type Recorded<C, F, E> = Option<Record<C, F, E>>;

impl<C, F, E> TrapFtl<C, F, E>
where
    C: Content,
    F: Flash,
    F::Page: Clone,
    E: Encoder<C, F::Page>,
{
    /// Writes a logical page. What it held before has been read, see [`TrapFtl::fetch_old`].
    ///
    /// # Errors
    /// An address out of range, no room, or a failure of the device.
    pub fn write(
        &mut self,
        when: When,
        lpn: Lpn,
        content: C,
        tag: Tag,
    ) -> Result<Completion, FtlError<F::Error>>
    where
        C: Into<F::Page>,
    {
        let page = content.into();
        self.write_page(when, lpn, content, page, tag)
    }

    pub(super) fn write_page(
        &mut self,
        when: When,
        lpn: Lpn,
        content: C,
        page: F::Page,
        tag: Tag,
    ) -> Result<Completion, FtlError<F::Error>> {
        self.core.check_range(lpn)?;
        let new = Value {
            content,
            page: &page,
        };
        let record = self.encode(lpn, Some(new))?;
        self.make_fit(when, lpn, record.as_ref())?;
        let done = loop {
            self.make_room()?;
            let trap = &mut self.trap;
            let page = page.clone();
            match self
                .core
                .append_host(trap, when, lpn, Owner::page(lpn), page, tag)
            {
                Err(FtlError::Full { .. }) if self.give_way()? => {}
                other => break other?,
            }
        };
        let (ppn, done) = done;
        self.core.counters.host_writes += 1;
        self.replace(lpn, ppn, Some(content));
        self.record(record);
        Ok(done)
    }

    /// Forgets a logical page, at the present and at once. What it held has been read.
    ///
    /// # Errors
    /// An address out of range, no room for what it held, or a failure of the device.
    pub fn trim(&mut self, lpn: Lpn) -> Result<(), FtlError<F::Error>> {
        self.core.check_range(lpn)?;
        if self.content(lpn).is_none() {
            return Ok(());
        }
        let record = self.encode(lpn, None)?;
        self.make_fit(When::now(self.core.present), lpn, record.as_ref())?;
        self.core.counters.host_trims += 1;
        self.replace(lpn, Ppn::NONE, None);
        self.record(record);
        Ok(())
    }

    fn replace(&mut self, lpn: Lpn, ppn: Ppn, content: Option<C>) {
        let trap = &mut self.trap;
        let old = std::mem::replace(&mut trap.units[lpn.index()], ppn);
        trap.contents[lpn.index()] = content;
        trap.mapped = trap.mapped + u32::from(ppn.is_some()) - u32::from(old.is_some());
        if old.is_some() {
            self.core.invalidate(old);
        }
    }

    /// What is to be recorded of a page that comes to hold `new`, or nothing.
    fn encode(
        &mut self,
        lpn: Lpn,
        new: Option<Value<'_, C, F::Page>>,
    ) -> Result<Recorded<C, F, E>, FtlError<F::Error>> {
        if !self.trap.recording {
            return Ok(None);
        }
        let before = self.content(lpn);
        let Some(content) = before else {
            let value = BeforeImage::Nothing;
            return Ok(Some(New { lpn, before, value }));
        };
        let page = self.core.content(self.trap.unit_of(lpn))?;
        let old = Value {
            content,
            page: &page,
        };
        let (encoder, most) = (&mut self.trap.encoder, MOST_BYTES as u16);
        let encoded = match new {
            Some(new) => {
                let parity = encoder.delta(new, old, most);
                parity.map(|(length, value)| BeforeImage::Parity(length, value))
            }
            None => {
                let alone = encoder.alone(old, most);
                alone.map(|(length, value)| BeforeImage::Alone(length, value))
            }
        };
        let value = encoded.unwrap_or(BeforeImage::Raw(page));
        Ok(Some(New { lpn, before, value }))
    }

    /// Programs the log page being filled, if what is to be recorded does not fit.
    fn make_fit(
        &mut self,
        when: When,
        lpn: Lpn,
        record: Option<&Record<C, F, E>>,
    ) -> Result<(), FtlError<F::Error>> {
        if record.is_none_or(|record| self.trap.log.fits(record)) {
            return Ok(());
        }
        let plane = loop {
            self.make_room()?;
            let trap = &mut self.trap;
            match self.core.next_frontier(trap, Stream::Log, when.at, lpn) {
                Err(FtlError::Full { .. }) if self.give_way()? => {}
                other => break other?,
            }
        };
        let trap = &mut self.trap;
        let Some((number, filling)) = trap.log.filling() else {
            return Ok(());
        };
        let page = match &filling.raw {
            Some(page) => page.clone(),
            None => {
                let values: Vec<E::Encoded> = filling.values.iter().cloned().collect();
                trap.encoder.pack(&values)
            }
        };
        let unit = Unit::New {
            owner: Owner::pack(number),
            page,
        };
        let core = &mut self.core;
        let (ppn, _) = core.append_to_frontier(plane, Stream::Log, when, unit, Tag::NONE)?;
        core.counters.programs_log += 1;
        trap.log.placed(ppn);
        Ok(())
    }

    fn record(&mut self, record: Recorded<C, F, E>) {
        let Some(record) = record else {
            return;
        };
        let trap = &mut self.trap;
        trap.counters.recorded += 1;
        match &record.value {
            BeforeImage::Nothing => {}
            BeforeImage::Raw(_) => trap.counters.raw += 1,
            BeforeImage::Parity(length, _) | BeforeImage::Alone(length, _) => {
                trap.counters.encoded += 1;
                trap.counters.encoded_bytes += u64::from(*length);
            }
        }
        trap.log.push(record, trap.now);
        if let Some(most) = self.trap.options.history.max_entries {
            while self.trap.log.len() > most as usize {
                self.drop_first();
            }
        }
    }

    /// Units that hold anything.
    pub fn units(&self) -> u64 {
        u64::from(self.trap.mapped) + u64::from(self.trap.log.pages())
    }

    /// Units that the log may take beside the pages that are mapped now.
    pub fn room_of_history(&self) -> u64 {
        let most = self
            .core
            .most_live()
            .saturating_sub(self.trap.options.reserve);
        most.saturating_sub(u64::from(self.trap.mapped))
    }

    /// Makes room for one more unit, and keeps the reserve free as far as the least window allows.
    fn make_room(&mut self) -> Result<(), FtlError<F::Error>> {
        let most = self.core.most_live();
        let most_kept = most.saturating_sub(self.trap.options.reserve);
        while self.units() >= most_kept {
            let went = match self.units() >= most {
                true => self.shrink(),
                false => self.shrink_to(self.least_window()),
            };
            if !went {
                break;
            }
        }
        match self.protected() {
            Some(error) if self.units() >= most => Err(error),
            _ => Ok(()),
        }
    }

    /// The write frontier of a change has no room, though the device may have: a log page gives way. Whether one did.
    fn give_way(&mut self) -> Result<bool, FtlError<F::Error>> {
        match self.shrink() {
            true => Ok(true),
            false => self.protected().map_or(Ok(false), Err),
        }
    }

    /// The error of a change that finds no room while log pages are left that may not go.
    fn protected(&self) -> Option<FtlError<F::Error>> {
        (self.trap.log.pages() > 0).then(|| FtlError::Protected {
            units: self.units(),
            most: self.core.most_live(),
            holders: Holders {
                window: true,
                snapshots: false,
            },
        })
    }

    /// Where the least window begins now.
    fn least_window(&self) -> u64 {
        self.trap.now.saturating_sub(self.trap.options.least_window)
    }

    /// Gives up the oldest log page, as far as the window may shrink where there is no other room; whether it did.
    fn shrink(&mut self) -> bool {
        self.shrink_to(match self.trap.options.on_pressure {
            OnPressure::Shrink => u64::MAX,
            OnPressure::Refuse => self.least_window(),
        })
    }

    /// Gives up the oldest log page, if the window may begin so late; whether it did.
    fn shrink_to(&mut self, latest: u64) -> bool {
        if self
            .trap
            .log
            .next_to_go()
            .is_none_or(|stamp| stamp > latest)
        {
            return false;
        }
        let pages = self.trap.log.pages();
        while self.trap.log.pages() == pages {
            self.drop_first();
        }
        true
    }

    fn drop_first(&mut self) {
        let Some((named, unit)) = self.trap.log.drop_first() else {
            return;
        };
        self.trap.counters.dropped += u64::from(named);
        if let Some(unit) = unit {
            self.core.invalidate(unit);
        }
    }

    /// Moves the start of the window on.
    pub fn advance_window(&mut self, to: Time) {
        while self.trap.log.first_stamp().is_some_and(|stamp| stamp <= to) {
            self.drop_first();
        }
        self.trap.log.begin_at(to);
    }
}
