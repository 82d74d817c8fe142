//! A machine leaves the array: its native places become all that it holds, so that the slow medium has its content as a
//! plain disk image.
//!
//! Blocks go home as they do otherwise, and what holds nothing becomes zeros at home, whatever was there. At every point
//! the array holds what it held: it can go on if this is cut.

use std::collections::BTreeSet;

use crate::element::Device;
use crate::error::{ArrayError, ContentError};
use crate::icash::content::ZEROS;
use crate::icash::place::BlockPlace;
use crate::icash::state::ICash;

/// Blocks that go home at once.
const STEP: u32 = 256;

impl ICash {
    /// Lets the native places of a machine hold what the machine holds; durable when it returns. `seen` hears of the
    /// blocks that are done.
    ///
    /// # Errors
    /// There is no such machine, a block cannot be read or written, or a medium failed. The array goes on as it was.
    pub fn bring_home(&mut self, machine: u8, seen: &mut dyn FnMut(u64)) -> Result<(), ArrayError> {
        let blocks = self.addresses.blocks_of(machine)?;
        self.make_ready()?;
        self.commit()?;
        let mut first = blocks.start;
        while first < blocks.end {
            let end = blocks.end.min(first + STEP);
            self.bring_some_home(first..end)?;
            seen((end - first).into());
            first = end;
        }
        self.sync(Device::Slow)
    }

    fn bring_some_home(&mut self, blocks: std::ops::Range<u32>) -> Result<(), ArrayError> {
        let away = |block: &u32| {
            let place = self.table.get(*block).place;
            !matches!(place, BlockPlace::Home | BlockPlace::Zero)
        };
        let away: BTreeSet<u32> = blocks.clone().filter(away).collect();
        if !away.is_empty() {
            self.write_back(&away)?;
            self.keep_room()?;
        }
        for block in blocks {
            match self.table.get(block).place {
                BlockPlace::Home => {}
                BlockPlace::Zero => self.clear_home(block)?,
                _ => {
                    let why = self.present(block).err().unwrap_or(ContentError::Lost);
                    return Err(self.addresses.unreadable(block, why));
                }
            }
        }
        Ok(())
    }

    /// Lets the native place of a block that holds nothing be zeros. What is zeros there stays a hole.
    fn clear_home(&mut self, block: u32) -> Result<(), ArrayError> {
        self.unused_homes.remove(&block);
        let home = self.areas.home_of(block);
        let mut page = ZEROS;
        let holds = self.media.read(Device::Slow, home, &mut page);
        if holds.is_err() || page != ZEROS {
            self.media.write(Device::Slow, home, &ZEROS)?;
        }
        Ok(())
    }
}
