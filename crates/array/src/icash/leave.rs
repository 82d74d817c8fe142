//! A machine leaves the array: its native places become all that it holds, so that the slow medium has its content as a
//! plain disk image.
//!
//! Blocks go home as they do otherwise, in order if the array does that, and what holds nothing becomes zeros at home,
//! whatever was there. Every home is read. At every point the array holds what it held: it can go on if this is cut.

use std::collections::BTreeSet;
use std::ops::Range;

use flashlore_delta::Page;

use crate::element::Device;
use crate::error::{ArrayError, ContentError};
use crate::icash::content::ZEROS;
use crate::icash::place::BlockPlace;
use crate::icash::state::ICash;
use crate::index::{Address, ArrayBlock};

/// Blocks that go home at once.
const STEP: u32 = 256;

impl ICash {
    /// Lets the native places of a machine hold what the machine holds; durable when it returns. Answers the blocks that
    /// cannot be read, each with the reason: their native places hold what they held. `seen` hears how many blocks
    /// are done, and of how many.
    ///
    /// # Errors
    /// There is no such machine, or a medium failed. The array goes on as it was.
    pub fn bring_home(
        &mut self,
        machine: u8,
        seen: &mut dyn FnMut(u64, u64),
    ) -> Result<Vec<(Address, ContentError)>, ArrayError> {
        let blocks = self.addresses.blocks_of(machine)?;
        self.make_ready()?;
        self.commit()?;
        if self.shape.journal_blocks > 0 {
            // All at once: in between the slow medium alone would be no state.
            self.write_back_all()?;
            self.keep_room()?;
        }
        let mut unreadable = Vec::new();
        let mut first = blocks.start;
        while first < blocks.end {
            let end = blocks.end.min(first + STEP);
            self.bring_some_home(first..end)?;
            for block in ArrayBlock::each(first..end) {
                if let Err(why) = self.verify_home(block)? {
                    unreadable.push((Address(block - blocks.start), why));
                }
            }
            first = end;
            seen(
                (first - blocks.start).into(),
                (blocks.end - blocks.start).into(),
            );
        }
        self.sync(Device::Slow)?;
        Ok(unreadable)
    }

    fn bring_some_home(&mut self, blocks: Range<ArrayBlock>) -> Result<(), ArrayError> {
        let away = |block: &ArrayBlock| {
            let place = self.table.get(*block).place;
            !matches!(place, BlockPlace::Home | BlockPlace::Zero)
        };
        let away: BTreeSet<ArrayBlock> = ArrayBlock::each(blocks).filter(away).collect();
        if !away.is_empty() {
            self.write_back(&away)?;
            self.keep_room()?;
        }
        Ok(())
    }

    /// Looks whether the native place of a block holds what the block holds, and mends it where a copy is left. That of one
    /// that holds nothing becomes zeros; what is zeros there stays a hole.
    fn verify_home(&mut self, block: ArrayBlock) -> Result<Result<(), ContentError>, ArrayError> {
        let entry = self.table.get(block);
        match entry.place {
            BlockPlace::Zero => self.clear_home(block)?,
            BlockPlace::Home => {
                let Err(why) = self.stored(block, &entry) else {
                    return Ok(Ok(()));
                };
                match self.present(block) {
                    Ok(page) => self.write_at_home(block, &page)?,
                    Err(_) => return Ok(Err(why)),
                }
            }
            _ => match self.present(block) {
                Err(why) => return Ok(Err(why)),
                // It can be read, and could not be written home.
                Ok(page) => self.write_at_home(block, &page)?,
            },
        }
        Ok(Ok(()))
    }

    fn clear_home(&mut self, block: ArrayBlock) -> Result<(), ArrayError> {
        self.unused_homes.remove(block.0);
        let home = self.areas.home_of(block);
        let mut page = ZEROS;
        let holds = self.media.read(Device::Slow, home, &mut page);
        match holds.is_err() || page != ZEROS {
            true => self.write_at_home(block, &ZEROS),
            false => Ok(()),
        }
    }

    fn write_at_home(&mut self, block: ArrayBlock, page: &Page) -> Result<(), ArrayError> {
        let home = self.areas.home_of(block);
        Ok(self.media.write(Device::Slow, home, page)?)
    }
}
