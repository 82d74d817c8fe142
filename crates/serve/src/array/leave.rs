//! The disk image around which an array was made is given back: everything goes home, what was behind the image goes, and
//! the array is no more.
//!
//! The switch is one step, the `array.json` that says that the image is being left: before it the array is as it was,
//! after it the image holds all, and whatever interrupts the rest, it is done again. The slow medium is locked from the
//! begin to the end, so that nobody opens the array in between.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use flashlore_array::icash::{ICash, find};
use flashlore_array::index::Address;
use flashlore_delta::PAGE_BYTES;
use flashlore_medium::{Access, FileMedium, Medium, Mode, end_of};

use super::description::{Adopted, AdoptedState, Description};
use super::parts::{element, fast, holding, locked, pieced};
use crate::error::ServeError;
use crate::home::{DESCRIPTION, Home};

const PAGE: u64 = PAGE_BYTES as u64;

/// What was given back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// The image, and its bytes.
    pub image: PathBuf,
    pub bytes: u64,
    /// The fast medium, which nobody needs any more.
    pub fast: PathBuf,
    /// Blocks of the image that hold what lay at home, older or damaged: they could not be read.
    pub damaged: Vec<Address>,
    /// Whether the array was used: otherwise it was never made as a whole.
    pub was_used: bool,
}

impl Home {
    /// Gives the disk image of an array back. Nobody may have the array open. `seen` hears how many
    /// blocks are home, and of how many.
    ///
    /// # Errors
    /// It is no array or one of no image, other machines hold something or blocks of the image cannot be read and that was
    /// not accepted, or a medium failed. The array is as it was then, or the next call goes on.
    pub fn leave_array(
        &self,
        accept_loss: bool,
        mode: Mode,
        seen: &mut dyn FnMut(u64, u64),
    ) -> Result<Left, ServeError> {
        let home = self.array()?;
        let (description, file) = locked(&home, mode, Access::Change)?;
        let Some(Adopted { bytes, state }) = description.image else {
            return Err(ServeError::Usage(
                "it was not made around a disk image: flashlore export copies what a machine holds"
                    .to_owned(),
            ));
        };
        let mut damaged = Vec::new();
        if state == AdoptedState::Used {
            let leaving = Leaving {
                home: &home,
                description: &description,
                file: &file,
                bytes,
            };
            damaged = leaving.bring_home(accept_loss, mode, seen)?;
            let leaving = description.around(bytes, AdoptedState::Leaving);
            leaving.replace(&home)?;
        }
        home.end_around(&description, &file, bytes)?;
        Ok(Left {
            image: description.slow,
            bytes,
            fast: description.fast,
            damaged,
            was_used: state != AdoptedState::Adopting,
        })
    }

    /// Removes what is behind the image, and the array.
    fn end_around(
        &self,
        description: &Description,
        image: &FileMedium,
        bytes: u64,
    ) -> Result<(), ServeError> {
        let pieces = description.pieces();
        let (found, end) = (image.len(), end_of(&pieces));
        match image.is_file()? {
            true if found == bytes || found == end => image.shorten(bytes)?,
            true => {
                return Err(ServeError::Refused(format!(
                    "{} has {found} bytes, expected the {bytes} of the image or {end} with what is behind it: cut it to \
                     what it should be, and remove {}",
                    description.slow.display(),
                    self.description().display()
                )));
            }
            false => {
                for piece in pieces.iter().filter(|piece| piece.at >= bytes) {
                    void(image, piece.at)?;
                    // Best effort: nobody needs it.
                    let _ = image.discard(piece.at, piece.bytes);
                }
            }
        }
        // The fast medium may be lost, or never have become one.
        if let Ok(fast) = FileMedium::open(&description.fast, Mode::Buffered)
            && find(&fast).is_some_and(|found| description.is_of(found.id))
        {
            void(&fast, 0)?;
        }
        let path = self.description();
        self.remove(DESCRIPTION)
            .map_err(ServeError::file("remove", &path))?;
        // Best effort: what somebody who was killed left, and the directory only if it is empty.
        let _ = self.remove(&format!("{DESCRIPTION}.new"));
        let _ = fs::remove_dir(self.directory());
        Ok(())
    }
}

/// An array whose image is left, locked.
struct Leaving<'a> {
    home: &'a Home,
    description: &'a Description,
    file: &'a Arc<FileMedium>,
    /// Bytes of the image.
    bytes: u64,
}

impl Leaving<'_> {
    /// Lets the image hold what the first machine holds; answers the blocks that could not be read.
    fn bring_home(
        &self,
        accept_loss: bool,
        mode: Mode,
        seen: &mut dyn FnMut(u64, u64),
    ) -> Result<Vec<Address>, ServeError> {
        let description = self.description;
        let slow = pieced(self.file.clone(), &description.pieces(), &description.slow)?;
        let fast = fast(description, &slow, mode, Access::Change)?;
        let mut element = element(self.home, description, fast, slow, Access::Change)?;
        let brought = self.bring(&mut element, accept_loss, seen);
        // Closed in any case: it goes on otherwise.
        element.close()?;
        brought
    }

    fn bring(
        &self,
        element: &mut ICash,
        accept_loss: bool,
        seen: &mut dyn FnMut(u64, u64),
    ) -> Result<Vec<Address>, ServeError> {
        let machines = element.shape().machines.clone();
        let shown = u64::from(machines[0].blocks) * PAGE;
        if shown != self.bytes {
            return Err(ServeError::Refused(format!(
                "{DESCRIPTION} says that the image has {} bytes, its machine shows {shown}",
                self.bytes
            )));
        }
        for machine in &machines[1..] {
            let lost = holding(element, machine.number, 0..machine.blocks.into())?;
            if lost > 0 && !accept_loss {
                return Err(ServeError::Usage(format!(
                    "{lost} blocks of machine {} are not in the image: say --accept-loss if they may be lost",
                    machine.number
                )));
            }
        }
        let damaged = element.bring_home(machines[0].number, seen)?;
        match damaged.first() {
            Some((first, why)) if !accept_loss => Err(ServeError::Usage(format!(
                "{} blocks of the image cannot be read, block {first} is the first: {why}; write or trim them first, or \
                 say --accept-loss: the image holds what lies at home then, older or damaged",
                damaged.len()
            ))),
            _ => Ok(damaged.into_iter().map(|(block, _)| block).collect()),
        }
    }
}

/// Lets no array be found at an offset of a medium.
fn void(medium: &FileMedium, offset: u64) -> Result<(), ServeError> {
    medium.write(offset, &[0; 2 * PAGE_BYTES])?;
    Ok(medium.sync()?)
}
