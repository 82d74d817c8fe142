//! An array around a disk image that is there: the image becomes what the first machine holds, as it is and where it is.
//!
//! The image stays at the begin of its file or device. Everything else of the slow medium lies behind it: a file becomes
//! longer, a device has to have the room. `array.json` says so before anything is written behind the image, and says that
//! the array is whole when it is; in between [`super::leave`] gives the image back.
//!
//! Invariant: the image is not written before the array is used.

use std::path::Path;
use std::sync::Arc;

use flashlore_array::icash::{self, Superblock, adopted_pieces};
use flashlore_delta::PAGE_BYTES;
use flashlore_medium::{Access, FileMedium, Medium, Mode, end_of};

use super::create::{CreateArray, LOOKED_AT, Made, Making, demand_no_part};
use super::description::{AdoptedState, Description};
use super::parts::pieced;
use crate::error::ServeError;
use crate::home::Home;

const PAGE: u64 = PAGE_BYTES as u64;
/// Why an image is refused around which an array lies.
const ADOPTED: &str = "was adopted by an array, which lies behind the image: leave that first (flashlore array leave)";

/// Bytes of a disk image: of a file all it has. Of a block device somebody has to say how many are the image, since the
/// array needs room behind them.
///
/// # Errors
/// It is no file, or cannot be looked at.
pub fn image_bytes(path: &Path) -> Result<u64, ServeError> {
    let medium = FileMedium::open_for(path, Mode::Buffered, Access::Look)?;
    let bytes = medium.len();
    match medium.is_file()? {
        true if bytes.is_multiple_of(PAGE) => Ok(bytes),
        true => Err(ServeError::Usage(format!(
            "{} has {bytes} bytes, an image has a multiple of {PAGE}: make it a little longer",
            path.display()
        ))),
        false => Err(ServeError::Usage(format!(
            "{} is a block device: say with --size how many of its {} bytes are the image, the array needs room behind \
             them",
            path.display(),
            bytes
        ))),
    }
}

impl Home {
    /// Makes an array whose first machine holds what is on the slow medium, a disk image of the size that is asked for.
    /// `seen` hears how many blocks were read, and of how many.
    ///
    /// # Errors
    /// As for a new array, or the image is of another size, cannot be read, or has no room behind it. It is as it was then.
    pub fn adopt_image(
        &self,
        asked: &CreateArray,
        seen: &mut dyn FnMut(u64, u64),
    ) -> Result<Made, ServeError> {
        let made = asked.plan()?;
        self.in_new_directory(|| self.adopt(asked, &made, seen))?;
        Ok(made)
    }

    fn adopt(
        &self,
        asked: &CreateArray,
        made: &Made,
        seen: &mut dyn FnMut(u64, u64),
    ) -> Result<(), ServeError> {
        let (fast_path, slow_path) = asked.media_paths()?;
        let image = Arc::new(FileMedium::open(&slow_path, Mode::Buffered)?);
        let pieces = adopted_pieces(&made.shape)?;
        let end = end_of(&pieces);
        demand_image(&image, &slow_path, asked, end)?;
        let mut fast = Making::begin(&fast_path, made.bytes.0, asked.overwrite)?;
        fast.written = true;
        fast.medium.take_room(0, made.bytes.0)?;
        let description = Description::new(asked.identity, fast_path, slow_path, &made.options);
        let description = description.with_pieces(&pieces);
        let adopting = description.around(asked.size, AdoptedState::Adopting);
        adopting.store(&self.description())?;
        let extended = image.extend(end).map_err(ServeError::from);
        let adopted = extended.and_then(|()| {
            let homes = made.shape.blocks() * PAGE;
            image.take_room(asked.size, made.bytes.1 - homes)?;
            let slow = pieced(image.clone(), &pieces, &adopting.slow)?;
            let fast = fast.medium.clone();
            Ok(icash::adopt(
                fast,
                Arc::new(slow),
                asked.identity,
                &made.shape,
                seen,
            )?)
        });
        if let Err(error) = adopted {
            // Best effort: what stays is given back by `array leave`.
            if image.shorten(asked.size).is_ok() {
                let _ = std::fs::remove_file(self.description());
            }
            return Err(error);
        }
        fast.kept = true;
        let used = description.around(asked.size, AdoptedState::Used);
        used.replace(self)
    }
}

/// Refuses what is no image of the size that was asked for, or has no room behind it.
fn demand_image(
    image: &FileMedium,
    path: &Path,
    asked: &CreateArray,
    end: u64,
) -> Result<(), ServeError> {
    demand_no_part(image, path)?;
    let (found, size) = (image.len(), asked.size);
    let path = path.display();
    let refused = |why: String| Err(ServeError::Usage(format!("{path} {why}")));
    if image.is_file()? {
        return match found == size {
            true => Ok(()),
            false => refused(format!(
                "has {found} bytes, and all of a file is the image: make it {size} bytes long or leave --size out"
            )),
        };
    }
    if found < end {
        return refused(format!(
            "has {found} bytes, {size} of the image and {} of the array behind it are needed",
            end - size
        ));
    }
    let is_adopted = |page: &[u8]| Superblock::parse(page, 0).is_ok();
    let mut behind = vec![0; LOOKED_AT.min((found - size) / PAGE * PAGE) as usize];
    image.read(size, &mut behind)?;
    if behind.get(..PAGE_BYTES).is_some_and(is_adopted) {
        return refused(ADOPTED.to_owned());
    }
    match asked.overwrite || behind.iter().all(|&byte| byte == 0) {
        true => Ok(()),
        false => refused(format!(
            "holds something behind the {size} bytes of the image: say --overwrite if that is to be lost"
        )),
    }
}
