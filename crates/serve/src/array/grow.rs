//! An array grows where it is: machines become larger, or there are more of them, and the log and the journal grow with
//! them. Neither content nor log moves.
//!
//! What is new lies behind all that the slow medium holds: a file becomes longer, a device has to have the room. The
//! switch is one step, the new `array.json`, which says where the parts of the slow medium lie from then on. Before it the
//! array is as it was.

use std::sync::Arc;

use flashlore_array::icash::{self, ICash, Options, Shape, Superblock, TooBig, find, grown_pieces};
use flashlore_delta::PAGE_BYTES;
use flashlore_medium::{Access, FileMedium, Medium, Mode, Piece, end_of};

use super::create::{CreateArray, LOOKED_AT, memory_needed};
use super::description::Description;
use super::parts::{element, media, pieced};
use crate::error::ServeError;
use crate::home::Home;
use crate::memory::{available, refuse_more_than};

const PAGE: u64 = PAGE_BYTES as u64;
/// Blocks at the begin of the medium that say that it is a part of the array; they stay when what follows is moved.
const SUPERBLOCKS: u64 = 2;

/// What is to grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Grow {
    /// Bytes each machine shows; as many as before without.
    pub size: Option<u64>,
    /// How many machines; as many as before without.
    pub machines: Option<u16>,
    /// Whether what lies behind the array may be lost.
    pub overwrite: bool,
}

/// What an array grew to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grown {
    pub from: Shape,
    pub to: Shape,
    /// Bytes of the file or device that it reaches to.
    pub end: u64,
    /// Bytes of memory that it takes while it is open, about.
    pub memory: u64,
}

impl Home {
    /// Makes the machines of an array that nobody has open larger, or adds machines.
    ///
    /// # Errors
    /// It is no array or open; sizes that make none or are smaller than there are; a machine whose content is a disk image
    /// that was adopted would become larger; no room; something that lies behind the array; or a medium failed. The array
    /// is as it was then.
    pub fn grow_array(&self, asked: &Grow, mode: Mode) -> Result<Grown, ServeError> {
        let home = self.array()?;
        // Locked until array.json is written, so that nobody opens the array meanwhile.
        let (description, fast, slow) = media(&home, mode, Access::Change)?;
        let file = slow.inner().clone();
        // It was found to be a part of the array, but this is another read.
        let Some(from) = find(&slow).map(|found| found.shape) else {
            return Err(ServeError::Refused(format!(
                "the superblock of {} was read and now cannot be: the medium fails, and the array was not changed",
                description.slow.display()
            )));
        };
        demand_growth(&description, &from, asked.size)?;
        let to = larger(&from, asked, description.options())?;
        let memory = memory_needed(&to, description.options());
        refuse_more_than(
            available(),
            ("open it takes up to", memory),
            "that is for the blocks that it would show, and less if it grows less",
        )?;
        let old = description.pieces();
        let begin = match old.is_empty() {
            true => icash::bytes_needed(&from)?.1,
            false => end_of(&old),
        };
        let new = grown_pieces(&old, &from, &to, begin)?;
        let end = end_of(&new);
        let growth = Growth {
            home: &home,
            description: &description,
            old: &old,
            new: &new,
            from: &from,
            to: &to,
        };
        growth.demand_room(&file, begin, end, asked.overwrite)?;
        element(&home, &description, fast, slow, Access::Change).and_then(closed)?;
        growth.carry_out(&file, end)?;
        Ok(Grown {
            from,
            to,
            end,
            memory,
        })
    }
}

fn closed(element: ICash) -> Result<(), ServeError> {
    Ok(element.close()?)
}

/// Refuses to let an image grow that is to be given back some day.
fn demand_growth(
    description: &Description,
    from: &Shape,
    size: Option<u64>,
) -> Result<(), ServeError> {
    let blocks = from.machines[0].blocks;
    match description.image.is_some() && size.is_some_and(|size| size > u64::from(blocks) * PAGE) {
        true => Err(ServeError::Usage(
            "its first machine is a disk image, which does not grow inside an array: leave the array, make the image \
             longer and adopt it again; more machines can be added"
                .to_owned(),
        )),
        false => Ok(()),
    }
}

/// The shape with larger machines, or more of them; log and journal are at least as long as those of a new array.
fn larger(from: &Shape, grow: &Grow, options: &Options) -> Result<Shape, ServeError> {
    let most = { from.machines.iter() }
        .map(|machine| u64::from(machine.blocks) * PAGE)
        .max();
    let present = (most.unwrap_or(0), from.machines.len() as u16);
    let asked = (
        grow.size.unwrap_or(present.0),
        grow.machines.unwrap_or(present.1),
    );
    if asked.0 < present.0 || asked.1 < present.1 {
        return Err(ServeError::Usage(format!(
            "it has {} machines of {} bytes, {} of {} are fewer or smaller: flashlore array rebuild copies it to smaller \
             media",
            present.1, present.0, asked.1, asked.0
        )));
    }
    if asked == present {
        return Err(ServeError::Usage(format!(
            "it has {} machines of {} bytes already",
            present.1, present.0
        )));
    }
    let plan = CreateArray {
        fast: Default::default(),
        slow: Default::default(),
        size: asked.0,
        machines: asked.1,
        fast_size: Some((u64::from(from.slots) + SUPERBLOCKS) * PAGE),
        delta_ram: Some(u64::from(options.segments) * icash::parameters::SEGMENT_BYTES as u64),
        ordered: from.journal_blocks > 0,
        mode: options.mode,
        strict: options.too_big == TooBig::Log,
        overwrite: false,
        identity: [0; 16],
    };
    let planned = plan.plan()?.shape;
    let journal_blocks = planned.journal_blocks.max(from.journal_blocks);
    let least = options.least_log_segments(from.segment_blocks, journal_blocks);
    // Segments of an array that this program made have as many blocks.
    let log = planned.log_segments.max(least).max(from.log_segments);
    Ok(Shape {
        machines: planned.machines,
        log_segments: log,
        journal_blocks,
        ..from.clone()
    })
}

/// A growth that is planned.
struct Growth<'a> {
    home: &'a Home,
    description: &'a Description,
    old: &'a [Piece],
    new: &'a [Piece],
    from: &'a Shape,
    to: &'a Shape,
}

impl Growth<'_> {
    /// Refuses a device without the room, and to write over what somebody else has behind the array. What a growth that was
    /// interrupted left there begins with the superblock of this array.
    fn demand_room(
        &self,
        file: &FileMedium,
        begin: u64,
        end: u64,
        overwrite: bool,
    ) -> Result<(), ServeError> {
        let (path, found) = (self.description.slow.display(), file.len());
        if !file.is_file()? && found < end {
            return Err(ServeError::Usage(format!(
                "{path} has {found} bytes, the array needs {end}"
            )));
        }
        let length = LOOKED_AT.min(found.saturating_sub(begin) / PAGE * PAGE);
        let mut behind = vec![0; length as usize];
        file.read(begin, &mut behind)?;
        let is_empty = behind.iter().all(|&byte| byte == 0);
        let is_ours = || {
            let first = behind.get(..PAGE_BYTES);
            let found = first.and_then(|page| Superblock::parse(page, 0).ok());
            found.is_some_and(|found| self.description.is_of(found.id))
        };
        match overwrite || is_empty || is_ours() {
            true => Ok(()),
            false => Err(ServeError::Usage(format!(
                "{path} holds something behind the array, from byte {begin} on: say --overwrite if that is to be lost"
            ))),
        }
    }

    /// Writes what is new, switches, and gives back what described the array before. The file gets `end` bytes.
    fn carry_out(&self, file: &Arc<FileMedium>, end: u64) -> Result<(), ServeError> {
        let before = file.len();
        let extended = file.extend(end).map_err(ServeError::from);
        if let Err(error) = extended.and_then(|()| self.write(file)) {
            // Best effort: the reason why it failed says more.
            let _ = file.shorten(before);
            return Err(error);
        }
        // From here on array.json may name it, whatever is answered.
        let grown = self.description.with_pieces(self.new);
        grown.replace(self.home)?;
        // Best effort: it is not needed.
        let _ = self.give_back(file.clone());
        Ok(())
    }

    fn write(&self, file: &Arc<FileMedium>) -> Result<(), ServeError> {
        let path = &self.description.slow;
        let old = pieced(file.clone(), self.old, path)?;
        let new = pieced(file.clone(), self.new, path)?;
        // The table, the journal and the log must always find room.
        let homes = self.to.blocks() * PAGE;
        let mut left = new.len() - homes;
        for piece in self.new {
            let bytes = piece.bytes.min(left);
            file.take_room(piece.at, bytes)?;
            left -= bytes;
        }
        Ok(icash::grow(Arc::new(old), Arc::new(new), self.to)?)
    }

    /// Gives back where roots, table and journal were; no root is found there any more. That there is an array is still
    /// said at the begin of the file.
    fn give_back(&self, file: Arc<FileMedium>) -> Result<(), ServeError> {
        let old = pieced(file, self.old, &self.description.slow)?;
        let areas = icash::format::Areas::of(self.from);
        let (begin, end) = (areas.roots * PAGE, areas.log * PAGE);
        old.write(begin, &vec![0; (4 * areas.root_blocks * PAGE) as usize])?;
        old.discard(begin, end - begin)?;
        Ok(old.sync()?)
    }
}
