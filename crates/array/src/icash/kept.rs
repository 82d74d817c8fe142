//! In which form the present content of a block is kept.

use crate::error::{ArrayError, ContentError};
use crate::icash::blocks::{Content, Form};
use crate::icash::place::BlockPlace;
use crate::icash::state::ICash;
use crate::index::ArrayBlock;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kept {
    /// Nothing is: it is zeros, because it was never written or was given up.
    Nothing,
    Whole,
    Delta,
    /// Compressed by itself.
    Compressed,
    /// Not at all: it was lost with a fast medium that was replaced.
    Lost,
}

impl ICash {
    /// In which form the present content of a block is kept.
    ///
    /// # Errors
    /// No such address, or where it is cannot be read.
    pub fn kept(&self, lba: u64) -> Result<Kept, ArrayError> {
        let block = self.addresses.block(lba)?;
        let kept = self.kept_of(block);
        match self.table.is_lost(block) {
            true => Err(self.addresses.unreadable(block, ContentError::PlaceLost)),
            false => Ok(kept),
        }
    }

    /// As [`ICash::kept`], by the block itself.
    pub(super) fn kept_of(&self, block: ArrayBlock) -> Kept {
        if self.trimmed.contains(&block) {
            return Kept::Nothing;
        }
        if self.passing.contains_key(&block) {
            return Kept::Whole;
        }
        let held = self
            .blocks
            .find(block)
            .map(|id| self.blocks.get(id).content);
        match held {
            Some(Content::Held(Form::Delta(_), _)) => Kept::Delta,
            Some(Content::Held(Form::Alone, _)) => Kept::Compressed,
            Some(Content::Held(Form::Whole, _) | Content::Slot) => Kept::Whole,
            Some(Content::Stored) | None => self.table.get(block).place.kept(),
        }
    }
}

impl BlockPlace {
    fn kept(&self) -> Kept {
        match self {
            BlockPlace::Zero => Kept::Nothing,
            BlockPlace::Home | BlockPlace::Slot(_) | BlockPlace::Whole(_) => Kept::Whole,
            BlockPlace::Own { .. } | BlockPlace::Delta { .. } => Kept::Delta,
            BlockPlace::Alone(_) => Kept::Compressed,
            BlockPlace::Lost => Kept::Lost,
        }
    }
}
