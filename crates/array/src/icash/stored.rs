//! How the durable content of a virtual machine is stored.

use crate::error::ArrayError;
use crate::icash::place::BlockPlace;
use crate::icash::state::ICash;
use crate::index::ArrayBlock;

/// Blocks of a virtual machine by the place of their durable content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stored {
    /// Zeros, stored as nothing.
    pub zeros: u64,
    /// At their native place on the slow medium.
    pub home: u64,
    /// Whole in a data block of the fast medium.
    pub slot: u64,
    /// Deltas, from another block's data block or their own.
    pub deltas: u64,
    /// Bytes of them in the log, without the heads of their records.
    pub delta_bytes: u64,
    pub compressed: u64,
    /// Bytes of them in the log, without the heads of their records.
    pub compressed_bytes: u64,
    /// Whole in the log.
    pub whole: u64,
    /// Nowhere: lost with a fast medium that was replaced.
    pub lost: u64,
}

impl ICash {
    /// How the durable content of a machine is stored, as the last flush left it or whatever made it durable later.
    /// Looks at each of its blocks.
    pub fn how_stored(&self, machine: u8) -> Result<Stored, ArrayError> {
        let mut stored = Stored::default();
        for block in ArrayBlock::each(self.addresses.blocks_of(machine)?) {
            match self.look_up(block)?.place {
                BlockPlace::Zero => stored.zeros += 1,
                BlockPlace::Home => stored.home += 1,
                BlockPlace::Slot(_) => stored.slot += 1,
                BlockPlace::Own { at, .. } | BlockPlace::Delta { at, .. } => {
                    stored.deltas += 1;
                    stored.delta_bytes += u64::from(at.bytes);
                }
                BlockPlace::Alone(at) => {
                    stored.compressed += 1;
                    stored.compressed_bytes += u64::from(at.bytes);
                }
                BlockPlace::Whole(_) => stored.whole += 1,
                BlockPlace::Lost => stored.lost += 1,
            }
        }
        Ok(stored)
    }
}
