//! Entries of the history are written to flash, and read for a rewind.

use flashlore_content::Encoder;
use flashlore_flash::{Cause, Lpn, Ppn, Ready, Stream, Tag, Time, Unit, When};

use super::Store;
use crate::content::parts::{CoreOf, Failure, Parts};
use crate::error::FtlError;
use crate::policies::history::tier::TABLE_ENTRIES;

impl<T: Parts> Store<T> {
    /// Writes entries to flash until RAM has room for the others.
    pub fn limit_entries_in_ram(
        &mut self,
        core: &mut CoreOf<T>,
        at: Time,
        lpn: Lpn,
    ) -> Result<(), Failure<T>> {
        while let Some(versions) = &mut self.policies.versions
            && let Some(tier) = &versions.tier
            && let Some(latest) = tier.next(&mut versions.history)
        {
            // Changes of one request have the same stamp and go together: they may be more than a table.
            let upto = tier.upto(&versions.history);
            let left = versions.history.entries_after(latest);
            let entries = versions.history.entries_after(upto) - left;
            for _ in 0..entries.div_ceil(TABLE_ENTRIES) {
                self.program_table(core, at, lpn, latest)?;
            }
            if let Some(tier) = self
                .policies
                .versions
                .as_mut()
                .and_then(|v| v.tier.as_mut())
            {
                tier.reaches(latest);
            }
        }
        Ok(())
    }

    fn program_table(
        &mut self,
        core: &mut CoreOf<T>,
        at: Time,
        lpn: Lpn,
        latest: u64,
    ) -> Result<(), Failure<T>> {
        self.make_room(core, at)?;
        let when = When::now(at);
        let plane = loop {
            match core.next_frontier(self, Stream::Log, at, lpn) {
                Err(FtlError::Full { .. }) if self.give_way(core, at)? => {}
                other => break other?,
            }
        };
        let page = self.encoder.pack(&[]);
        let Some(tier) = self
            .policies
            .versions
            .as_mut()
            .and_then(|v| v.tier.as_mut())
        else {
            return Ok(());
        };
        let owner = tier.next_owner();
        let unit = Unit::New { owner, page };
        let (location, _) = core.append_to_frontier(plane, Stream::Log, when, unit, Tag::NONE)?;
        core.counters.programs_map += 1;
        tier.push(location, latest);
        Ok(())
    }

    /// Reads the tables that a rewind to an instant needs; answers how many.
    pub fn read_tables(&mut self, core: &mut CoreOf<T>, instant: u64) -> Result<u64, Failure<T>> {
        let tier = self
            .policies
            .versions
            .as_ref()
            .and_then(|v| v.tier.as_ref());
        let tables: Vec<Ppn> = tier.into_iter().flat_map(|t| t.since(instant)).collect();
        for &table in &tables {
            if core.buffered(table).is_none() {
                core.read(Ready::At(core.present), table, Cause::Map, Tag::NONE)?;
            }
        }
        Ok(tables.len() as u64)
    }
}
