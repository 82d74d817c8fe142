//! An array on new media: a larger or another slow medium, another size, more machines or fewer.
//!
//! A new array is made, every machine is copied, and only then `array.json` names the new media, in one step. Until then
//! the old array is as it was: it is only looked at. What the old media hold stays on them.

use std::path::PathBuf;
use std::sync::Arc;

use flashlore_array::icash::{ICash, Image, Options, TooBig, lba};
use flashlore_delta::{PAGE_BYTES, Page};
use flashlore_medium::{Access, Mode};

use super::create::{CreateArray, Made};
use super::description::Description;
use super::parts::{element, holding, media};
use crate::error::ServeError;
use crate::home::Home;

const PAGE: u64 = PAGE_BYTES as u64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rebuild {
    /// The new media, as for a new array.
    pub fast: PathBuf,
    pub slow: PathBuf,
    /// Bytes each machine shows; as many as before without.
    pub size: Option<u64>,
    /// How many machines; as many as before without.
    pub machines: Option<u16>,
    /// Bytes of the fast medium that are used, and RAM for deltas; what a new array gets without.
    pub fast_size: Option<u64>,
    pub delta_ram: Option<u64>,
    /// Whether what does not fit may be lost.
    pub accept_loss: bool,
    pub overwrite: bool,
    /// The identity of the new array: random bytes.
    pub identity: [u8; 16],
}

#[derive(Debug, Clone, PartialEq)]
pub struct Rebuilt {
    pub made: Made,
    /// How the blocks of each machine are stored now.
    pub machines: Vec<Image>,
}

/// The array as it was, to be looked at.
struct Old {
    element: ICash,
    /// Number and blocks of each machine.
    machines: Vec<(u8, u32)>,
}

impl Home {
    /// Copies the array to new media and lets it be there from now on. Nobody may have it open.
    ///
    /// # Errors
    /// It is no array or open, sizes that make none, new media that cannot be used, blocks that cannot be read, or ones
    /// that have no place any more and were not given up. The array is as it was then.
    pub fn rebuild_array(&self, asked: &Rebuild, mode: Mode) -> Result<Rebuilt, ServeError> {
        let home = self.array()?;
        // Locked against whoever would change it, though nothing is written.
        let (description, fast, slow) = media(&home, mode, Access::Change)?;
        if description.image.is_some() {
            return Err(ServeError::Usage(
                "its first machine is a disk image that was adopted: give the image back (flashlore array leave) and \
                 adopt it on other media"
                    .to_owned(),
            ));
        }
        let mut old = Old::of(element(&home, &description, fast, slow, Access::Look)?);
        let create = asked.create(&old, &description);
        let mut made = create.plan()?;
        made.options = kept_options(&made.options, description.options());
        old.demand_room(&create, asked.accept_loss)?;
        let mut media = create.make_media(&made)?;
        let machines = copy(&mut old, &media.fast.medium, &media.slow.medium, &made)?;
        let paths = media.paths();
        let new = Description::new(asked.identity, paths.0, paths.1, &made.options);
        let new = new.with(made.options.clone(), description.running);
        // From here on array.json may name them, whatever is answered.
        media.keep();
        new.replace(&home)?;
        Ok(Rebuilt { made, machines })
    }
}

/// How the array was used, with the budgets of its new sizes.
fn kept_options(new: &Options, old: &Options) -> Options {
    Options {
        virtual_blocks: new.virtual_blocks,
        segments: new.segments,
        write_back_batch: new.write_back_batch,
        ..old.clone()
    }
}

impl Rebuild {
    fn create(&self, old: &Old, description: &Description) -> CreateArray {
        let options = description.options();
        let blocks = old.machines.iter().map(|&(_, blocks)| blocks).max();
        CreateArray {
            fast: self.fast.clone(),
            slow: self.slow.clone(),
            size: self.size.unwrap_or(u64::from(blocks.unwrap_or(0)) * PAGE),
            machines: self.machines.unwrap_or(old.machines.len() as u16),
            fast_size: self.fast_size,
            delta_ram: self.delta_ram,
            ordered: old.element.shape().journal_blocks > 0,
            mode: options.mode,
            strict: options.too_big == TooBig::Log,
            overwrite: self.overwrite,
            identity: self.identity,
        }
    }
}

impl Old {
    fn of(element: ICash) -> Self {
        let machines = { element.shape().machines.iter() }
            .map(|machine| (machine.number, machine.blocks))
            .collect();
        Old { element, machines }
    }

    /// Refuses sizes in which something would have no place.
    fn demand_room(&self, create: &CreateArray, accept_loss: bool) -> Result<(), ServeError> {
        let room = |machine: u8| match u16::from(machine) < create.machines {
            true => create.size / PAGE,
            false => 0,
        };
        for &(number, blocks) in &self.machines {
            let lost = holding(&self.element, number, room(number)..blocks.into())?;
            if lost > 0 && !accept_loss {
                return Err(ServeError::Usage(format!(
                    "{lost} blocks of machine {number} have no place in the new array: say --accept-loss if they may be \
                     lost"
                )));
            }
        }
        Ok(())
    }

    /// Fills a page with the content of a block, with zeros where there is none.
    fn read(
        &mut self,
        machine: u8,
        address: u64,
        page: &mut Page,
    ) -> Result<(), flashlore_array::ArrayError> {
        let all = self.machines.iter();
        let blocks = { all }.find_map(|&(number, blocks)| (number == machine).then_some(blocks));
        page.fill(0);
        match address < blocks.unwrap_or(0).into() {
            true => self.element.look(lba(machine, address), page),
            false => Ok(()),
        }
    }
}

/// Copies every machine: the first as it is, the others as deltas from it where these are short.
fn copy(
    old: &mut Old,
    fast: &Arc<flashlore_medium::FileMedium>,
    slow: &Arc<flashlore_medium::FileMedium>,
    made: &Made,
) -> Result<Vec<Image>, ServeError> {
    let mut new = ICash::open(fast.clone(), slow.clone(), made.options.clone())?;
    let numbers: Vec<u8> = { made.shape.machines.iter() }
        .map(|machine| machine.number)
        .collect();
    let mut images = Vec::new();
    for &number in &numbers {
        let mut read = |address: u64, page: &mut Page| old.read(number, address, page);
        images.push(new.create_image(numbers[0], number, &mut read)?);
    }
    new.close()?;
    Ok(images)
}
