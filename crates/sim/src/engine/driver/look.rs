//! The looks at the device where stretches of a time line end.
//!
//! Time passes to the end of a stretch before anything that happens there or later, so that what has been done
//! by then is known, work in the background too. How time passes, in many steps or in few, changes nothing:
//! a run with a time line is the same run.

use std::ops::DerefMut;

use flashlore_flash::{Flash, Time};

use super::{Driver, Result};
use crate::engine::measure::Sight;
use crate::engine::system::System;
use crate::results::{Space, Wear};

impl<S: System, D: DerefMut<Target = S>> Driver<D> {
    /// The time line begins at the present, if there is one.
    pub(super) fn begin_looking(&mut self) {
        if self.measured.watches() {
            let now = self.now;
            self.system.core_mut().tally_erases();
            self.measured
                .begin_looking(now, self.system.core().flash().worked());
        }
    }

    /// To be called before time passes to an instant: looks at the device wherever a stretch ends by then.
    #[inline(always)]
    pub(super) fn end_stretches(&mut self, until: Time) -> Result<()> {
        match self.measured.next_look() {
            Some(end) if end <= until => self.look_until(until),
            _ => Ok(()),
        }
    }

    #[cold]
    #[inline(never)]
    fn look_until(&mut self, until: Time) -> Result<()> {
        self.measured.reach(until);
        while let Some(end) = self.measured.next_look()
            && end <= until
        {
            self.now = end;
            self.system.advance(end)?;
            self.collect_finished()?;
            self.look(end);
        }
        Ok(())
    }

    /// Looks at the device, for the stretch that ends at the present or lasts on.
    pub(super) fn look(&mut self, now: Time) {
        if !self.measuring || !self.measured.watches() {
            return;
        }
        let core = self.system.core();
        let flash = core.flash();
        let oldest = Some(self.system.oldest_instant()).filter(|&oldest| oldest != Time::MAX);
        let sight = Sight {
            worked: flash.worked(),
            servers: flash.servers(),
            channels: flash.geometry().channels(),
            wear: core.blocks().erase_tally().map(Wear::of),
            space: Space {
                window_s: oldest.map(|oldest| now.saturating_sub(oldest) as f64 / 1e9),
                history_entries: self.system.history_entries(),
                units_in_use: self.system.units_in_use(),
            },
        };
        let (counters, free_blocks) = (core.counters(), core.free_blocks());
        self.measured.look(now, (counters, free_blocks), sight);
    }
}
