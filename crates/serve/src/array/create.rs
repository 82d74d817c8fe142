//! A new array: its sizes, and its media.
//!
//! Invariant: if it cannot be made, files made for it are removed, a medium that was there is as it was unless writing
//! to it had begun, and then it does not pass for a part of an array.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flashlore_array::icash::format::Areas;
use flashlore_array::icash::{self, Machine, Options, Shape, TooBig, find};
use flashlore_delta::PAGE_BYTES;
use flashlore_medium::{FileMedium, Medium, Mode};
use flashlore_units::Size;
use flashlore_volume::load;
use flashlore_volume::options::SizeError;

use super::description::Description;
use crate::error::ServeError;
use crate::home::Home;

const PAGE: u64 = PAGE_BYTES as u64;
/// Bytes a machine has at least.
const LEAST_SIZE: u64 = 1 << 20;
/// The data set is so many times as large as the fast medium, unless said (paper: typically a tenth).
const DATA_PER_FAST: u64 = 10;
/// The fast medium is so many times as large as the RAM for deltas, unless said (the paper's budgets: 1 to 8).
const FAST_PER_RAM: u64 = 4;
/// Bytes of RAM for deltas, at least: a small array needs some to work with.
const LEAST_RAM: u64 = 1 << 20;
/// The data set is so many times as large as the log, where that is more than the least log: as much as all blocks
/// take as deltas of 512 bytes.
const DATA_PER_LOG: u64 = 8;
/// Segments of a delta, on average, for which there are virtual blocks (paper: 160 bytes, 2.5 segments).
const SEGMENTS_PER_DELTA: u32 = 3;
/// Blocks of a segment of the log: 1 MiB.
const SEGMENT_BLOCKS: u32 = 256;
/// With ordered write-back one of so many blocks may be away from home, and at most [`MOST_AWAY`].
const BLOCKS_PER_AWAY: u64 = 16;
const LEAST_AWAY: u64 = 64;
const MOST_AWAY: u64 = 16 << 10;
/// What a medium that was there is looked at: partition tables and file systems begin here.
pub(super) const LOOKED_AT: u64 = 1 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateArray {
    /// The fast medium: a block device, or a file, which is made if it is not there.
    pub fast: PathBuf,
    /// The slow medium, likewise.
    pub slow: PathBuf,
    /// Bytes each machine shows.
    pub size: u64,
    /// Virtual machines, 1 to 256; their numbers begin at 0.
    pub machines: u16,
    /// Bytes of the fast medium that are used; a tenth of the data set without.
    pub fast_size: Option<u64>,
    /// Bytes of RAM for deltas; a quarter of the fast medium without.
    pub delta_ram: Option<u64>,
    /// Blocks go home in order, so that the slow medium alone holds a state.
    pub ordered: bool,
    /// What a durable state may depend on. In write-through the host's writes never reach the fast medium either.
    pub mode: icash::Mode,
    /// The host's writes never reach the fast medium.
    pub strict: bool,
    pub overwrite: bool,
    /// The identity: random bytes.
    pub identity: [u8; 16],
}

#[derive(Debug, Clone, PartialEq)]
pub struct Made {
    pub shape: Shape,
    pub options: Options,
    /// Bytes of the fast and the slow medium that it takes.
    pub bytes: (u64, u64),
}

impl Made {
    /// Bytes of memory that it takes while it is open, about, when it is in full use.
    pub fn memory(&self) -> u64 {
        memory_needed(&self.shape, &self.options)
    }
}

/// Bytes of memory that an array takes while it is open, about.
pub fn memory_needed(shape: &Shape, options: &Options) -> u64 {
    // Counted of `ICash::memory` and of what an allocator adds: pages of the table in memory, and of each page where it is
    // and which copy counts; a bit for each home that may be given back; virtual blocks in list and map; segments with
    // their links; users of a data block and the sets of those that depend on it; blocks in RAM.
    let table = Areas::of(shape).table_pages;
    4_100 * table.min(options.table_pages.into())
        + 16 * table
        + shape.blocks() / 8
        + 300 * u64::from(options.virtual_blocks)
        + 68 * u64::from(options.segments)
        + 200 * shape.data_blocks()
        + 4200 * u64::from(options.ram_blocks)
        + (16 << 20)
}

/// Refuses a budget with which no array works.
fn demand_budget(option: &str, given: Option<u64>, least: u64) -> Result<(), ServeError> {
    match given {
        Some(found) if found < least => Err(ServeError::Usage(format!(
            "{option} is {}, expected at least {}",
            Size(found),
            Size(least)
        ))),
        _ => Ok(()),
    }
}

impl CreateArray {
    pub fn plan(&self) -> Result<Made, ServeError> {
        let what = "the size";
        let found = self.size;
        if !found.is_multiple_of(PAGE) || found < LEAST_SIZE {
            return Err(SizeError::NotPages { what, found }.into());
        }
        let blocks = found / PAGE;
        let all = blocks.checked_mul(self.machines.into());
        let all = all.filter(|&all| all < u64::from(u32::MAX));
        let all = all.ok_or_else(|| {
            let (machines, size) = (self.machines, Size(found));
            ServeError::Usage(format!(
                "{machines} machines of {size}: all machines of an array together show less than 16TiB"
            ))
        })?;
        if !(1..=256).contains(&self.machines) {
            let machines = self.machines;
            return Err(ServeError::Usage(format!(
                "an array cannot have {machines} virtual machines, expected 1 to 256"
            )));
        }
        let fast = self.fast_size.unwrap_or(all * PAGE / DATA_PER_FAST);
        let least_slots = u64::from(icash::parameters::LEAST_SLOTS);
        // Two blocks are those of the superblock.
        let slots = (fast / PAGE).saturating_sub(2);
        let slots = match self.fast_size {
            None => slots.max(least_slots),
            Some(_) => slots,
        };
        let ram = self
            .delta_ram
            .unwrap_or((fast / FAST_PER_RAM).max(LEAST_RAM));
        let segments = ram / icash::parameters::SEGMENT_BYTES as u64;
        let least_segments = 2 * u64::from(icash::parameters::SPARE_SEGMENTS);
        demand_budget("--fast-size", self.fast_size, (least_slots + 2) * PAGE)?;
        let least_ram = least_segments * icash::parameters::SEGMENT_BYTES as u64;
        demand_budget("--delta-ram", self.delta_ram, least_ram)?;
        let (slots, segments) = (saturated(slots), saturated(segments));
        let frozen_blocks = icash::parameters::frozen_blocks(slots);
        let data_blocks = u64::from(slots) + u64::from(frozen_blocks);
        let mut options = Options::new(virtual_blocks(data_blocks, segments, all), segments);
        options.write_back_batch = icash::parameters::write_back_batch(slots);
        options.sequential_cutoff = icash::parameters::SEQUENTIAL_CUTOFF;
        options.table_pages = icash::parameters::TABLE_PAGES;
        options.mode = self.mode;
        if self.strict || self.mode == icash::Mode::WriteThrough {
            options.too_big = TooBig::Log;
        }
        let journal_blocks = match self.ordered {
            true => saturated((all / BLOCKS_PER_AWAY).clamp(LEAST_AWAY, MOST_AWAY)),
            false => 0,
        };
        let least_log = options.least_log_segments(SEGMENT_BLOCKS, journal_blocks);
        let log = saturated(all / DATA_PER_LOG / u64::from(SEGMENT_BLOCKS));
        let machine = |number: u16| Machine {
            number: number as u8,
            blocks: blocks as u32,
        };
        let shape = Shape {
            machines: (0..self.machines).map(machine).collect(),
            slots,
            log_segments: least_log.max(log),
            segment_blocks: SEGMENT_BLOCKS,
            journal_blocks,
            frozen_blocks,
        };
        let bytes = icash::bytes_needed(&shape)
            .and_then(|bytes| options.validate(data_blocks).map(|()| bytes))
            .map_err(|error| ServeError::Usage(error.to_string()))?;
        Ok(Made {
            shape,
            options,
            bytes,
        })
    }
}

fn saturated(number: u64) -> u32 {
    number.min(u64::from(u32::MAX - 1)) as u32
}

/// One for each data block, and for each delta that is likely to fit in RAM; no more than could be used.
fn virtual_blocks(data_blocks: u64, segments: u32, all: u64) -> u32 {
    let least = data_blocks + u64::from(Options::LEAST_MORE_VIRTUAL);
    let wanted = least + u64::from(segments / SEGMENTS_PER_DELTA);
    saturated(wanted.min(least + all))
}

/// A medium on its way to be a part of an array. Unless it is kept it goes again: the file that was made for this, or
/// the superblock on what was there.
pub(super) struct Making {
    pub medium: Arc<FileMedium>,
    is_new: bool,
    /// Whether anything may have been written to it.
    pub written: bool,
    pub kept: bool,
}

impl Making {
    /// Makes the file, or opens what is there, if it can be used.
    pub fn begin(path: &Path, bytes: u64, overwrite: bool) -> Result<Self, ServeError> {
        Making::begin_unless(path, bytes, overwrite, |_| false)
    }

    /// The same, where a medium that holds a part of an array is taken all the same if `is_ours`.
    pub fn begin_unless(
        path: &Path,
        bytes: u64,
        overwrite: bool,
        is_ours: impl Fn(&icash::Superblock) -> bool,
    ) -> Result<Self, ServeError> {
        let is_new = !path.exists();
        let medium = match is_new {
            true => FileMedium::create(path, bytes, Mode::Buffered)?,
            false => FileMedium::open(path, Mode::Buffered)?,
        };
        if !is_new && !find(&medium).is_some_and(|found| is_ours(&found)) {
            demand_usable(&medium, path, bytes, overwrite)?;
        }
        Ok(Making {
            medium: Arc::new(medium),
            is_new,
            written: false,
            kept: false,
        })
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        // Best effort: the reason why it failed says more.
        if self.is_new {
            let _ = fs::remove_file(self.medium.path());
        } else if self.written {
            let _ = self.medium.write(0, &[0; 2 * PAGE_BYTES]);
            let _ = self.medium.sync();
        }
    }
}

/// The path of a medium as it is noted: it is found from any directory.
pub(super) fn absolute(path: &Path) -> Result<PathBuf, ServeError> {
    std::path::absolute(path).map_err(ServeError::file("find", path))
}

/// Refuses a medium that holds a part of an array or a volume.
pub(super) fn demand_no_part(medium: &FileMedium, path: &Path) -> Result<(), ServeError> {
    let what = match (find(medium).is_some(), load::superblock(medium).is_ok()) {
        (true, _) => "an array",
        (_, true) => "a volume",
        _ => return Ok(()),
    };
    Err(ServeError::Usage(format!(
        "{} holds {what}: name another one, or clear its first 8 KiB if that is not needed any more",
        path.display()
    )))
}

/// Refuses a medium that was there before and is too small, or holds something.
fn demand_usable(
    medium: &FileMedium,
    path: &Path,
    bytes: u64,
    overwrite: bool,
) -> Result<(), ServeError> {
    demand_no_part(medium, path)?;
    let path = path.display();
    if medium.len() < bytes {
        return Err(ServeError::Usage(format!(
            "{path} has {} bytes, the array needs {bytes}",
            medium.len()
        )));
    }
    let mut begin = vec![0; LOOKED_AT.min(medium.len() / PAGE * PAGE) as usize];
    medium.read(0, &mut begin)?;
    match overwrite || begin.iter().all(|&byte| byte == 0) {
        true => Ok(()),
        false => Err(ServeError::Usage(format!(
            "{path} holds something: say --overwrite if that is to be lost"
        ))),
    }
}

impl Home {
    /// Makes an array; the directory and its media too, where they do not exist.
    ///
    /// # Errors
    /// Sizes that make no array, media that cannot be used, a volume or an array that is there already, or a failure
    /// of the file system. Nothing half-written stays behind.
    pub fn create_array(&self, asked: &CreateArray) -> Result<Made, ServeError> {
        let made = asked.plan()?;
        self.in_new_directory(|| {
            let mut media = asked.make_media(&made)?;
            let paths = media.paths();
            let description = Description::new(asked.identity, paths.0, paths.1, &made.options);
            description.store(&self.description())?;
            media.keep();
            Ok(())
        })?;
        Ok(made)
    }

    /// Makes what is to be in the directory, and the directory if it is not there; it goes again if that fails.
    pub(super) fn in_new_directory(
        &self,
        make: impl FnOnce() -> Result<(), ServeError>,
    ) -> Result<(), ServeError> {
        for there in [self.volume(), self.names(), self.description()] {
            if there.exists() {
                return Err(ServeError::Refused(format!(
                    "{} is there already: choose another directory",
                    there.display()
                )));
            }
        }
        let is_new = !self.directory().exists();
        fs::create_dir_all(self.directory())
            .map_err(ServeError::file("create", self.directory()))?;
        let made = make();
        if made.is_err() && is_new {
            // Best effort, and only if it is empty.
            let _ = fs::remove_dir(self.directory());
        }
        made
    }
}

/// Both media of a new array, which go again unless they are kept.
pub(super) struct MakingBoth {
    pub fast: Making,
    pub slow: Making,
}

impl MakingBoth {
    pub fn paths(&self) -> (PathBuf, PathBuf) {
        let path = |making: &Making| making.medium.path().to_owned();
        (path(&self.fast), path(&self.slow))
    }

    pub fn keep(&mut self) {
        (self.fast.kept, self.slow.kept) = (true, true);
    }
}

impl CreateArray {
    /// Where both media are, found from any directory.
    pub(super) fn media_paths(&self) -> Result<(PathBuf, PathBuf), ServeError> {
        let (fast, slow) = (absolute(&self.fast)?, absolute(&self.slow)?);
        match fast == slow {
            true => Err(ServeError::Usage(format!(
                "{} cannot be the fast medium and the slow one",
                fast.display()
            ))),
            false => Ok((fast, slow)),
        }
    }

    /// Makes a new array on its media; nothing names it yet.
    pub(super) fn make_media(&self, made: &Made) -> Result<MakingBoth, ServeError> {
        let (fast_path, slow_path) = self.media_paths()?;
        let mut fast = Making::begin(&fast_path, made.bytes.0, self.overwrite)?;
        let mut slow = Making::begin(&slow_path, made.bytes.1, self.overwrite)?;
        (fast.written, slow.written) = (true, true);
        // All but the homes: an array that cannot write its log or its table cannot go on.
        let homes = made.shape.blocks() * PAGE;
        fast.medium.take_room(0, made.bytes.0)?;
        slow.medium.take_room(0, made.bytes.1 - homes)?;
        let media = (Arc::clone(&fast.medium), Arc::clone(&slow.medium));
        icash::create(media.0, media.1, self.identity, &made.shape)?;
        Ok(MakingBoth { fast, slow })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(size: u64, machines: u16) -> CreateArray {
        CreateArray {
            fast: "fast".into(),
            slow: "slow".into(),
            size,
            machines,
            fast_size: None,
            delta_ram: None,
            ordered: false,
            mode: icash::Mode::WriteBack,
            strict: false,
            overwrite: false,
            identity: [1; 16],
        }
    }

    #[test]
    fn sizes_are_shares_of_the_data_set() {
        let made = asked(5 << 30, 2).plan().unwrap();
        assert_eq!(made.bytes.0, 1 << 30);
        assert_eq!(made.options.segments, (256 << 20) / 64);
        assert_eq!(made.shape.machines.len(), 2);
        assert_eq!(made.shape.log_segments, 1280);
        assert_eq!(
            (made.shape.journal_blocks, made.options.too_big),
            (0, TooBig::Fast)
        );
        assert_eq!(made.options.write_back_batch, 1024);
        let small = asked(1 << 20, 1).plan().unwrap();
        assert_eq!(small.options.write_back_batch, 64);
        let given = CreateArray {
            fast_size: Some(64 << 20),
            delta_ram: Some(3 << 20),
            ordered: true,
            strict: true,
            ..asked(1 << 30, 1)
        };
        let made = given.plan().unwrap();
        assert_eq!((made.bytes.0, made.options.segments), (64 << 20, 3 << 14));
        assert_eq!(
            (made.shape.journal_blocks, made.options.too_big),
            (16 << 10, TooBig::Log)
        );
    }

    #[test]
    fn whatever_is_made_can_be_opened() {
        for bits in 20..43 {
            for (machines, ordered) in [(1, false), (1, true), (3, false), (256, true)] {
                let asked = CreateArray {
                    ordered,
                    ..asked(1 << bits, machines)
                };
                let all = u64::from(machines) << (bits - 12);
                let made = match asked.plan() {
                    Ok(made) => made,
                    Err(_) if all >= u64::from(u32::MAX) => continue,
                    Err(error) => panic!("{asked:?}: {error}"),
                };
                let shape = &made.shape;
                let least = made
                    .options
                    .least_log_segments(shape.segment_blocks, shape.journal_blocks);
                assert!(shape.log_segments >= least);
                made.options.validate(shape.data_blocks()).unwrap();
            }
        }
    }
}
