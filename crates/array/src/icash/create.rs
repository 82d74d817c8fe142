//! Making an array: of nothing, or around a disk image that is there.
//!
//! An image that is adopted is what the native places of the first machine hold: it is read once, for the checksums of
//! the table, and not written. Everything else of the slow medium lies elsewhere ([`flashlore_medium::Pieced`] lets an image
//! and what describes it be one medium).
//!
//! Invariant: no array is found on the media before all of it is durable.

use std::sync::Arc;

use flashlore_delta::Page;
use flashlore_medium::{Medium, Piece, joined};

use crate::element::Device;
use crate::error::ArrayError;
use crate::icash::content::{ZEROS, crc_of};
use crate::icash::format::root::Head;
use crate::icash::format::superblock::Session;
use crate::icash::format::table::{self, ENTRIES};
use crate::icash::format::{Areas, Root, Shape, Superblock, bytes};
use crate::icash::parameters::BLOCK_BYTES;
use crate::icash::place::{BlockEntry, BlockPlace, RawEntry};
use crate::index::{ArrayBlock, LogSegment, TablePage};
use crate::media::Media;

/// The checkpoint that a new array has.
const FIRST: u64 = 1;

/// Bytes the fast and the slow medium of an array must have at least.
pub fn bytes_needed(shape: &Shape) -> Result<(u64, u64), ArrayError> {
    shape.validate()?;
    let areas = Areas::of(shape);
    let block = BLOCK_BYTES as u64;
    Ok((areas.fast_blocks * block, areas.slow_blocks * block))
}

/// Makes an array on two media: every block is zeros. What they hold is lost.
///
/// # Errors
/// The sizes make no array or do not fit, or a medium fails.
pub fn create(
    fast: Arc<dyn Medium>,
    slow: Arc<dyn Medium>,
    id: [u8; 16],
    shape: &Shape,
) -> Result<(), ArrayError> {
    let new = NewArray::begin(fast, slow, id, shape)?;
    let copies = vec![0; new.areas.table_pages as usize];
    new.end(copies)
}

/// Where the parts of a slow medium lie if the native places of the first machine are the begin of a file or device, and
/// everything else follows them.
///
/// # Errors
/// The sizes make no array.
pub fn adopted_pieces(shape: &Shape) -> Result<Vec<Piece>, ArrayError> {
    let all = bytes_needed(shape)?.1;
    let before = Areas::of(shape).home * BLOCK_BYTES as u64;
    let image = u64::from(shape.machines[0].blocks) * BLOCK_BYTES as u64;
    let piece = |at: u64, bytes: u64| Piece { at, bytes };
    Ok(joined([
        piece(image, before),
        piece(0, image),
        piece(image + before, all - before - image),
    ]))
}

/// Makes an array on two media around what the native places of its first machine hold: that is what the machine holds
/// then. All other machines are zeros. Nothing is written to these native places. `seen` hears how many blocks
/// were read, and of how many.
///
/// # Errors
/// The sizes make no array or do not fit, or a medium fails.
pub fn adopt(
    fast: Arc<dyn Medium>,
    slow: Arc<dyn Medium>,
    id: [u8; 16],
    shape: &Shape,
    seen: &mut dyn FnMut(u64, u64),
) -> Result<(), ArrayError> {
    let mut new = NewArray::begin(fast, slow, id, shape)?;
    let copies = new.adopt_homes(seen)?;
    new.end(copies)
}

/// What array a medium is a part of, if it is one: the superblock, from whichever copy holds.
pub fn find(medium: &dyn Medium) -> Option<Superblock> {
    (0..2).find_map(|copy| {
        let mut page = ZEROS;
        medium.read(copy * BLOCK_BYTES as u64, &mut page).ok()?;
        Superblock::parse(&page, copy).ok()
    })
}

/// An array on its way.
struct NewArray<'a> {
    media: Media,
    areas: Areas,
    id: [u8; 16],
    tag: u64,
    shape: &'a Shape,
}

impl<'a> NewArray<'a> {
    /// Lets no old array be found on one of the media, and no old root or journal in the new one.
    fn begin(
        fast: Arc<dyn Medium>,
        slow: Arc<dyn Medium>,
        id: [u8; 16],
        shape: &'a Shape,
    ) -> Result<Self, ArrayError> {
        let needed = bytes_needed(shape)?;
        if fast.len() < needed.0 || slow.len() < needed.1 {
            return Err(ArrayError::Shape(format!(
                "the media have {} and {} bytes, the array needs {} and {}",
                fast.len(),
                slow.len(),
                needed.0,
                needed.1
            )));
        }
        let areas = Areas::of(shape);
        let mut media = Media::new(fast, slow);
        for device in [Device::Fast, Device::Slow] {
            for copy in 0..2 {
                media.write(device, copy * BLOCK_BYTES as u64, &ZEROS)?;
            }
        }
        for copy in 0..2 {
            media.write(Device::Slow, areas.root(FIRST - 1, copy), &ZEROS)?;
        }
        Ok(NewArray {
            media,
            areas,
            tag: bytes::get_u64(&id, 0),
            id,
            shape,
        })
    }

    /// Writes the pages of the table that tell what is at home; answers their copies.
    fn adopt_homes(&mut self, seen: &mut dyn FnMut(u64, u64)) -> Result<Vec<u8>, ArrayError> {
        let mut copies = vec![0; self.areas.table_pages as usize];
        let blocks = self.shape.machines[0].blocks;
        let mut content = vec![0; ENTRIES * BLOCK_BYTES];
        for (page, copy) in (0..).map(TablePage).zip(&mut copies) {
            let first = ArrayBlock(page.0 * ENTRIES as u32);
            let count = blocks.saturating_sub(first.0).min(ENTRIES as u32);
            if count == 0 {
                break;
            }
            let content = &mut content[..count as usize * BLOCK_BYTES];
            let home = self.areas.home_of(first);
            self.media.read(Device::Slow, home, content)?;
            let (pages, _) = content.as_chunks::<BLOCK_BYTES>();
            demand_no_array(first, pages)?;
            let entries: Vec<RawEntry> = pages.iter().map(|page| at_home(page).into()).collect();
            if entries.iter().any(|entry| *entry != RawEntry::default()) {
                let offset = self.areas.table_page(page, 0);
                let bytes = table::encode(&entries, self.tag, page, FIRST, offset);
                self.media.write(Device::Slow, offset, &bytes)?;
                *copy = 1;
            }
            seen((first + count).into(), blocks.into());
        }
        Ok(copies)
    }

    /// Lets the array be found, with these pages of its table.
    fn end(mut self, copies: Vec<u8>) -> Result<(), ArrayError> {
        let root = Root {
            checkpoint: FIRST,
            epoch: 0,
            session: 0,
            in_use: false,
            group: 0,
            head: Head {
                segment: LogSegment(0),
                position: 0,
                next: LogSegment(1),
            },
            copies,
        };
        let (media, areas) = (&mut self.media, &self.areas);
        let offset = areas.root(FIRST, 0);
        media.write(Device::Slow, offset, &root.encode_twice(self.tag, areas))?;
        media.write(Device::Slow, areas.journal * BLOCK_BYTES as u64, &ZEROS)?;
        media.sync(Device::Slow)?;
        media.sync(Device::Fast)?;
        self.write_superblocks()
    }

    fn write_superblocks(&mut self) -> Result<(), ArrayError> {
        for (device, is_fast) in [(Device::Fast, true), (Device::Slow, false)] {
            let superblock = Superblock {
                id: self.id,
                is_fast,
                is_fresh: false,
                session: Session::default(),
                shape: self.shape.clone(),
            };
            write_superblock(&mut self.media, device, &superblock)?;
            self.media.sync(device)?;
        }
        Ok(())
    }
}

/// Writes both copies of a superblock.
pub(super) fn write_superblock(
    media: &mut Media,
    device: Device,
    superblock: &Superblock,
) -> Result<(), ArrayError> {
    for copy in 0..2 {
        let offset = copy * BLOCK_BYTES as u64;
        media.write(device, offset, &superblock.encode(copy))?;
    }
    Ok(())
}

/// Refuses pages of an image among which something describes an array around what is before it: the image ends there.
fn demand_no_array(first: ArrayBlock, pages: &[Page]) -> Result<(), ArrayError> {
    for (position, page) in (0..).zip(pages) {
        let block = first + position;
        let around =
            |found: &Superblock| !found.is_fast && found.shape.machines[0].blocks == block.0;
        if Superblock::parse(page, 0).is_ok_and(|found| around(&found)) {
            return Err(ArrayError::Shape(format!(
                "behind block {block} lies what describes an array around the image: leave that array first"
            )));
        }
    }
    Ok(())
}

/// The entry of a block that holds what lies at its native place: one of zeros holds nothing.
fn at_home(page: &Page) -> BlockEntry {
    match *page == ZEROS {
        true => BlockEntry::ZERO,
        false => BlockEntry {
            place: BlockPlace::Home,
            crc: crc_of(page),
            has_home: true,
        },
    }
}
