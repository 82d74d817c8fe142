//! The disk image around which an array was made is given back: everything goes home, what was behind the image goes, and
//! the array is no more.
//!
//! The switch is one step, the `array.json` that says that the image is being left: before it the array is as it was,
//! after it the image holds all, and whatever interrupts the rest, it is done again.

use std::fs;
use std::path::PathBuf;

use flashlore_array::icash::{Kept, find, lba};
use flashlore_delta::PAGE_BYTES;
use flashlore_medium::{Access, FileMedium, Medium, Mode};

use super::description::{Adopted, AdoptedState, Description};
use super::parts::{element, media};
use crate::error::ServeError;
use crate::home::{DESCRIPTION, Home};

/// What was given back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// The image, and its bytes.
    pub image: PathBuf,
    pub bytes: u64,
    /// The fast medium, which nobody needs any more.
    pub fast: PathBuf,
}

impl Home {
    /// Gives the disk image of an array back. Nobody may have the array open. `seen` hears of the blocks that are home.
    ///
    /// # Errors
    /// It is no array or one of no image, other machines hold something and that was not given up, a block of the image
    /// cannot be read, or a medium failed. The array is as it was then, or the next call goes on.
    pub fn leave_array(
        &self,
        accept_loss: bool,
        mode: Mode,
        seen: &mut dyn FnMut(u64),
    ) -> Result<Left, ServeError> {
        let home = self.array()?;
        let description = Description::load(&home)?;
        let Some(Adopted { bytes, state }) = description.image else {
            return Err(ServeError::Usage(
                "it was not made around a disk image: flashlore export copies what a machine holds"
                    .to_owned(),
            ));
        };
        if state == AdoptedState::Used {
            home.bring_home(accept_loss, mode, seen)?;
            let leaving = Description::load(&home)?.around(bytes, AdoptedState::Leaving);
            leaving.replace(&home)?;
        }
        home.end_around(&description, bytes)?;
        Ok(Left {
            image: description.slow,
            bytes,
            fast: description.fast,
        })
    }

    /// Lets the image hold what the first machine holds.
    fn bring_home(
        &self,
        accept_loss: bool,
        mode: Mode,
        seen: &mut dyn FnMut(u64),
    ) -> Result<(), ServeError> {
        let (description, fast, slow) = media(self, mode, Access::Change)?;
        let mut element = element(self, &description, fast, slow, Access::Change)?;
        let machines = element.shape().machines.clone();
        for machine in &machines[1..] {
            let mut lost = 0_u64;
            for block in 0..u64::from(machine.blocks) {
                lost += u64::from(element.kept(lba(machine.number, block))? != Kept::Nothing);
            }
            if lost > 0 && !accept_loss {
                element.close()?;
                return Err(ServeError::Usage(format!(
                    "{lost} blocks of machine {} are not in the image: say --accept-loss if they may be lost",
                    machine.number
                )));
            }
        }
        element.bring_home(machines[0].number, seen)?;
        Ok(element.close()?)
    }

    /// Removes what is behind the image, and the array.
    fn end_around(&self, description: &Description, bytes: u64) -> Result<(), ServeError> {
        let mut image = FileMedium::open(&description.slow, Mode::Buffered)?;
        match image.is_file()? {
            true => image.shorten(bytes)?,
            false => void(&image, bytes)?,
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
        // Best effort, and only if it is empty.
        let _ = fs::remove_dir(self.directory());
        Ok(())
    }
}

/// Lets no array be found at an offset of a medium.
fn void(medium: &FileMedium, offset: u64) -> Result<(), ServeError> {
    medium.write(offset, &[0; 2 * PAGE_BYTES])?;
    Ok(medium.sync()?)
}
