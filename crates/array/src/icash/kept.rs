//! In which form the present content of a block is kept.

use crate::error::ArrayError;
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
        if let Some(kept) = self.kept_since(block) {
            return Ok(kept);
        }
        Ok(self.look_up(block)?.place.kept())
    }

    /// As [`ICash::kept`], by the block itself, for whoever changes it.
    pub(super) fn kept_of(&self, block: ArrayBlock) -> Kept {
        let since = self.kept_since(block);
        since.unwrap_or_else(|| self.table.get(block).place.kept())
    }

    /// How content is kept of which something else is known than what is durable.
    fn kept_since(&self, block: ArrayBlock) -> Option<Kept> {
        if self.trimmed.contains(&block) {
            return Some(Kept::Nothing);
        }
        if self.passing.contains_key(&block) {
            return Some(Kept::Whole);
        }
        match self.blocks.get(self.blocks.find(block)?).content {
            Content::Held(Form::Delta(_), _) => Some(Kept::Delta),
            Content::Held(Form::Alone, _) => Some(Kept::Compressed),
            Content::Held(Form::Whole, _) | Content::Slot => Some(Kept::Whole),
            Content::Stored => None,
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
