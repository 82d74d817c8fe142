//! The fast medium of an array that nobody has open is lost or fails, and a new one takes its place.
//!
//! The switch is one step, the new `array.json`: before it the array is as it was, and the slow medium was not written;
//! what was prepared on the new medium is only used if this is done again. The opening that comes after it takes the loss
//! over, as often as it is cut (`icash::fresh` in `crates/array`).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use flashlore_array::icash::{self, Loss, find, loss_without_fast, make_fresh};
use flashlore_medium::{Access, FileMedium, Mode};

use super::create::{Making, absolute};
use super::description::Description;
use super::parts::{Slow, slow};
use crate::error::ServeError;
use crate::home::Home;

/// What a replacement did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    /// The new medium, as `array.json` names it.
    pub fast: PathBuf,
    /// The bytes of it that are used.
    pub bytes: u64,
    pub loss: Loss,
}

/// What is to be done.
#[derive(Debug, Clone, Copy)]
pub struct ReplaceFast<'a> {
    /// The new medium: a block device, or a file, which is made if it is not there.
    pub new: &'a Path,
    /// Whether what is lost may be.
    pub accept_loss: bool,
    /// Whether what the new medium holds may be lost. A part of an array or a volume never is.
    pub overwrite: bool,
}

impl Home {
    /// What is lost if the fast medium of the array is. Nothing is written.
    ///
    /// # Errors
    /// It holds no array, the slow medium cannot be used, or is damaged.
    pub fn loss_without_fast(&self, mode: Mode) -> Result<Loss, ServeError> {
        let home = self.array()?;
        let (_, slow) = slow(&home, mode, Access::Look)?;
        Ok(loss_without_fast(Arc::new(slow))?)
    }

    /// Gives the array a new fast medium in the place of one that was lost. Nobody may have the array open.
    ///
    /// # Errors
    /// As above; something would be lost and that was not accepted; the new medium is too small, holds something or
    /// fails. The array is as it was then.
    pub fn replace_fast(&self, asked: ReplaceFast<'_>, mode: Mode) -> Result<Replaced, ServeError> {
        let home = self.array()?;
        // Locked until array.json is written, so that nobody opens the array meanwhile.
        let (description, slow) = slow(&home, mode, Access::Change)?;
        let slow = Arc::new(slow);
        let loss = loss_without_fast(slow.clone())?;
        demand_accepted(&loss, &description, asked.accept_loss, mode)?;
        let new = absolute(asked.new)?;
        if new == description.slow {
            return Err(ServeError::Usage(format!(
                "{} is the slow medium of this array, it cannot be the fast one too",
                new.display()
            )));
        }
        let bytes = fast_bytes(&slow, &description)?;
        // Left by a replacement that was interrupted.
        let is_ours = |found: &icash::Superblock| found.is_fresh && description.is_of(found.id);
        let mut fast = Making::begin_unless(&new, bytes, asked.overwrite, is_ours)?;
        fast.written = true;
        fast.medium.take_room(0, bytes)?;
        make_fresh(fast.medium.clone(), slow.clone())?;
        // From here on array.json may name it, whatever is answered.
        fast.kept = true;
        description.with_fast(new.clone()).replace(&home)?;
        Ok(Replaced {
            fast: new,
            bytes,
            loss,
        })
    }

    /// The directory, held open, if it holds an array.
    pub(super) fn array(&self) -> Result<Home, ServeError> {
        match self.is_array() {
            true => self.held(),
            false => Err(ServeError::Usage(
                "it is no array: this is done with the media of one".to_owned(),
            )),
        }
    }
}

/// Bytes of the fast medium that the array takes.
fn fast_bytes(slow: &Slow, description: &Description) -> Result<u64, ServeError> {
    let found = find(slow).ok_or_else(|| {
        ServeError::Refused(format!(
            "{} holds no part of an array",
            description.slow.display()
        ))
    })?;
    Ok(icash::bytes_needed(&found.shape)?.0)
}

/// Refuses to lose anything that nobody said may be lost.
fn demand_accepted(
    loss: &Loss,
    description: &Description,
    accepted: bool,
    mode: Mode,
) -> Result<(), ServeError> {
    let what = match loss {
        Loss::Nothing => return Ok(()),
        _ if accepted => return Ok(()),
        Loss::SinceBatch { blocks, .. } => {
            let count = blocks.len();
            format!("{count} blocks go back to what they held in the last batch that is at home")
        }
        Loss::Blocks(blocks) => {
            let count = blocks.len();
            format!("{count} blocks need the fast medium and are lost")
        }
    };
    let old = FileMedium::open_for(&description.fast, mode, Access::Look);
    let old = old.ok().and_then(|medium| find(&medium));
    let hint = match old.is_some_and(|found| !found.is_fresh && description.is_of(found.id)) {
        true => format!(
            "; {} is there and is the fast medium of this array: unless it is an older copy, export copies what can be read of \
             it",
            description.fast.display()
        ),
        false => String::new(),
    };
    Err(ServeError::Usage(format!(
        "{what} (--affected lists them): say --accept-loss if that may be{hint}"
    )))
}
