//! Checkpoints: the table is made durable, and a root that says where the log goes on behind it.

use crate::element::Device;
use crate::error::ArrayError;
use crate::icash::format::Root;
use crate::icash::state::ICash;

impl ICash {
    /// Takes a checkpoint if the log went on since the last one.
    pub(super) fn take_checkpoint(&mut self) -> Result<(), ArrayError> {
        if self.space.needed().len() > 2 {
            self.write_checkpoint()?;
        }
        Ok(())
    }

    /// Writes the pages of the table that changed to where they do not count yet, makes that durable, and then the
    /// root that lets them count.
    pub(super) fn write_checkpoint(&mut self) -> Result<(), ArrayError> {
        self.refuse_if_stopped()?;
        let number = self.checkpoint + 1;
        let mut copies = self.table.copies().to_vec();
        for &page in self.table.dirty() {
            let copy = &mut copies[page.index()];
            // The other copy of the two, or the first one if there is none.
            *copy = if *copy == 1 { 2 } else { 1 };
            let offset = self.areas.table_page(page, *copy - 1);
            let bytes = self.table.encode(page, number, offset);
            self.media.write(Device::Slow, offset, &bytes)?;
        }
        self.sync(Device::Slow)?;
        let root = Root {
            checkpoint: number,
            epoch: self.epoch,
            session: self.session.announced,
            in_use: self.in_use,
            group: self.group,
            head: self.space.head,
            copies,
        };
        let offset = self.areas.root(number, 0);
        let bytes = root.encode_twice(self.tag, &self.areas);
        if let Err(error) = self.media.write(Device::Slow, offset, &bytes) {
            self.make_void(offset)?;
            self.make_void(self.areas.root(number, 1))?;
            return Err(error.into());
        }
        self.sync(Device::Slow)?;
        self.checkpoint = number;
        self.counters.checkpoints += 1;
        self.table.checkpointed(number, root.copies);
        self.space.checkpointed();
        Ok(())
    }
}
