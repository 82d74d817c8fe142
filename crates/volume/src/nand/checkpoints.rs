//! The root of a checkpoint: written once its tables are durable, and followed by the journal once it is itself.
//!
//! Invariants: while a checkpoint is open nothing is written to the journal; what is young after it its tables do not
//! hold.

use flashlore_metadata::PendingRoot;

use super::Nand;
use crate::error::NandError;
use crate::format::Root;

/// A checkpoint whose tables are written and whose root is not durable yet.
pub(super) struct PendingCheckpoint {
    /// Its number.
    checkpoint: u64,
    /// Its root, until it is written: before that the tables must be durable.
    root: Option<PendingRoot>,
    /// The last event it holds, and how many were young then.
    sequence: u64,
    young_count: u64,
    programs: u64,
    /// The start of the window in its root.
    window: u64,
}

impl Nand {
    /// The number of the last checkpoint.
    pub(crate) fn checkpoint(&self) -> u64 {
        self.journal.segment()
    }

    /// The checkpoint that has begun and not ended.
    pub(crate) fn open_checkpoint(&self) -> Option<u64> {
        self.open_checkpoint.as_ref().map(|open| open.checkpoint)
    }

    /// All tables of a checkpoint are written: they hold everything up to the last event. The medium is to be
    /// synced, then the root is written ([`Nand::write_root`]), the medium synced again, and the checkpoint ended
    /// ([`Nand::end_checkpoint`]). In between the volume may be used. Until the end nothing is written to the journal:
    /// whoever has to finishes the checkpoint first.
    pub(crate) fn begin_checkpoint(&mut self, root: &Root, pending: PendingRoot) {
        // The tables hold what has gathered.
        self.journal.forget();
        self.open_checkpoint = Some(PendingCheckpoint {
            checkpoint: root.checkpoint,
            root: Some(pending),
            sequence: root.sequence,
            young_count: self.young.count(),
            programs: self.programs,
            window: self.window,
        });
    }

    /// The tables of a checkpoint are durable: its root is written, unless the checkpoint has been finished
    /// since, or its root has.
    pub(crate) fn write_root(&mut self, checkpoint: u64) -> Result<(), NandError> {
        let open = { self.open_checkpoint.as_mut() }.filter(|open| open.checkpoint == checkpoint);
        match open.and_then(|open| open.root.take()) {
            Some(root) => self.put(root.at, &root.bytes),
            None => Ok(()),
        }
    }

    /// The root of a checkpoint is durable, unless it has been finished since: nothing up to its last event is young
    /// any more, and the journal starts anew.
    pub(crate) fn end_checkpoint(&mut self, checkpoint: u64) -> Result<(), NandError> {
        let ended =
            |open: &mut PendingCheckpoint| open.checkpoint == checkpoint && open.root.is_none();
        let Some(open) = self.open_checkpoint.take_if(ended) else {
            return Ok(());
        };
        // What only the root before this one reached may be written.
        self.tables.with(|store| store.end_commit());
        self.since = open.sequence;
        self.durable = self.durable.max(open.sequence);
        self.young.forget(open.sequence, open.young_count);
        self.programs_before = open.programs;
        self.window_noted = open.window;
        self.journal.restart(checkpoint);
        self.write_journal()
    }

    /// Ends the open checkpoint, if there is one, at once.
    pub(crate) fn finish_checkpoint(&mut self) -> Result<(), NandError> {
        let Some(open) = &self.open_checkpoint else {
            return Ok(());
        };
        let checkpoint = open.checkpoint;
        if open.root.is_some() {
            self.sync()?;
            self.write_root(checkpoint)?;
        }
        self.sync()?;
        self.end_checkpoint(checkpoint)
    }
}
