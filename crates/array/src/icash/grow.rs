//! An array grows: machines become larger, machines are added, the log becomes longer.
//!
//! Blocks, the log and frozen places stay where they lie. What is written anew is what describes them: superblock, root,
//! table and journal, in another place of the slow medium. So until whoever opens the array looks there, it is as it was.
//! Blocks are counted through all machines and change their numbers; data blocks, the log and frozen places keep theirs.
//!
//! Invariant: the old array and the new one hold the same, and only one of them is ever opened again.

use std::sync::Arc;

use flashlore_medium::{Medium, Piece, cut, joined};

use crate::addresses::Addresses;
use crate::element::Device;
use crate::error::ArrayError;
use crate::icash::content::ZEROS;
use crate::icash::create::write_superblock;
use crate::icash::format::superblock::Session;
use crate::icash::format::table::{self, ENTRIES, PageEntries, pages_of};
use crate::icash::format::{Areas, Root, Shape, Superblock};
use crate::icash::open::{Recovered, recover_whole};
use crate::icash::parameters::BLOCK_BYTES;
use crate::icash::place::RawEntry;
use crate::index::{ArrayBlock, FrozenPlace, TablePage};
use crate::media::Media;

/// Refuses a shape that an array of another one cannot grow to.
///
/// # Errors
/// It is no shape, or something in it is smaller or different: what, as a sentence.
pub fn check_growth(from: &Shape, to: &Shape) -> Result<(), ArrayError> {
    to.validate()?;
    let different = [
        ("data blocks", from.slots == to.slots),
        ("frozen places", from.frozen_blocks == to.frozen_blocks),
        (
            "blocks of a segment of the log",
            from.segment_blocks == to.segment_blocks,
        ),
        (
            "fewer segments of the log",
            from.log_segments <= to.log_segments,
        ),
        (
            "another journal",
            (from.journal_blocks == 0) == (to.journal_blocks == 0)
                && from.journal_blocks <= to.journal_blocks,
        ),
        ("fewer machines", from.machines.len() <= to.machines.len()),
    ];
    if let Some((what, _)) = different.iter().find(|(_, holds)| !holds) {
        return Err(ArrayError::Shape(format!(
            "an array does not grow to one with {what}"
        )));
    }
    for (old, new) in from.machines.iter().zip(&to.machines) {
        if old.number != new.number || old.blocks > new.blocks {
            return Err(ArrayError::Shape(format!(
                "machine {} of {} blocks does not grow to machine {} of {}",
                old.number, old.blocks, new.number, new.blocks
            )));
        }
    }
    Ok(())
}

/// Where the parts of the slow medium lie when an array has grown from one shape to another: what is new begins at byte
/// `end` of the file or device, behind all that the array has there. `old` are its pieces before, none if it lies as it is.
///
/// # Errors
/// It does not grow to this shape.
pub fn grown_pieces(
    old: &[Piece],
    from: &Shape,
    to: &Shape,
    end: u64,
) -> Result<Vec<Piece>, ArrayError> {
    const BLOCK: u64 = BLOCK_BYTES as u64;
    check_growth(from, to)?;
    let (before, after) = (Areas::of(from), Areas::of(to));
    let as_it_is = [Piece {
        at: 0,
        bytes: before.slow_blocks * BLOCK,
    }];
    let old = if old.is_empty() { &as_it_is } else { old };
    let mut next = end;
    let mut pieces = Vec::new();
    let mut part = |kept: std::ops::Range<u64>, blocks: u64| {
        let bytes = (blocks - (kept.end - kept.start)) * BLOCK;
        pieces.extend(cut(old, kept.start * BLOCK..kept.end * BLOCK));
        pieces.push(Piece { at: next, bytes });
        next += bytes;
    };
    part(0..0, after.log);
    part(before.log..before.frozen, after.frozen - after.log);
    part(before.frozen..before.home, after.home - after.frozen);
    let mut home = before.home;
    for (index, machine) in to.machines.iter().enumerate() {
        let kept = from.machines.get(index).map_or(0, |old| old.blocks.into());
        part(home..home + kept, machine.blocks.into());
        home += kept;
    }
    Ok(joined(pieces))
}

/// Writes what describes an array of another shape, so that it holds what the array on `old` holds. Both are the slow
/// medium: on `new` the log, the frozen places and the native places of the blocks that there were lie where they do on
/// `old`, and the first areas do not. Nothing that `old` needs is written; the fast medium is not needed.
///
/// # Errors
/// The array was not closed, does not grow to this shape, is damaged, or the medium failed.
pub fn grow(old: Arc<dyn Medium>, new: Arc<dyn Medium>, shape: &Shape) -> Result<(), ArrayError> {
    let recovered = recover_whole(&mut Media::new(old.clone(), old))?;
    if !recovered.was_closed() {
        return Err(ArrayError::Shape(
            "an array that was not closed does not grow".into(),
        ));
    }
    check_growth(&recovered.superblock.shape, shape)?;
    let areas = Areas::of(shape);
    let needed = areas.slow_blocks * BLOCK_BYTES as u64;
    if new.len() < needed {
        return Err(ArrayError::Shape(format!(
            "the slow medium has {} bytes, the array needs {needed}",
            new.len()
        )));
    }
    let mut media = Media::new(new.clone(), new);
    let grown = Grown {
        recovered: &recovered,
        areas,
        shape,
        addresses: Addresses::new(&shape.machines),
        // The other root is void, whichever it is.
        checkpoint: recovered.root.checkpoint + 1,
    };
    grown.write(&mut media)
}

/// What is written.
struct Grown<'a> {
    recovered: &'a Recovered,
    areas: Areas,
    shape: &'a Shape,
    addresses: Addresses,
    checkpoint: u64,
}

impl Grown<'_> {
    /// The entries of a page, with those of the old table at the new numbers of their blocks.
    fn entries_of(&self, page: TablePage) -> PageEntries {
        let old = self.recovered;
        let block_pages = pages_of(self.shape.blocks()) as u32;
        let of_block = |number: u32| {
            let lba = (u64::from(number) < self.shape.blocks())
                .then(|| self.addresses.lba(ArrayBlock(number)))?;
            let block = old.addresses.block(lba).ok()?;
            Some(RawEntry::from(old.table.get(block)))
        };
        let of_place = |number: u32| {
            let place = (number < old.table.frozen_places()).then_some(FrozenPlace(number))?;
            old.table.frozen(place).map(RawEntry::from)
        };
        std::array::from_fn(|at| {
            let number = |page: u32| page * ENTRIES as u32 + at as u32;
            let entry = match page.0.checked_sub(block_pages) {
                Some(page) => of_place(number(page)),
                None => of_block(number(page.0)),
            };
            entry.unwrap_or_default()
        })
    }

    fn write(&self, media: &mut Media) -> Result<(), ArrayError> {
        let (areas, tag) = (&self.areas, self.recovered.tag);
        // First, so that whoever finds a growth that was interrupted knows whose it is.
        let superblock = Superblock {
            id: self.recovered.superblock.id,
            is_fast: false,
            is_fresh: false,
            session: Session::default(),
            shape: self.shape.clone(),
        };
        write_superblock(media, Device::Slow, &superblock)?;
        for copy in 0..2 {
            let other = areas.root(self.checkpoint - 1, copy);
            media.write(
                Device::Slow,
                other,
                &vec![0; areas.root_blocks as usize * BLOCK_BYTES],
            )?;
        }
        let mut copies = vec![0; areas.table_pages as usize];
        for (page, copy) in (0..).map(TablePage).zip(&mut copies) {
            let entries = self.entries_of(page);
            if entries == [RawEntry::default(); ENTRIES] {
                continue;
            }
            let offset = areas.table_page(page, 0);
            let bytes = table::encode(&entries, tag, page, self.checkpoint, offset);
            media.write(Device::Slow, offset, &bytes)?;
            *copy = 1;
        }
        self.recovered.table.demand_whole()?;
        let root = Root {
            checkpoint: self.checkpoint,
            copies,
            ..self.recovered.root.clone()
        };
        let offset = areas.root(self.checkpoint, 0);
        media.write(Device::Slow, offset, &root.encode_twice(tag, areas))?;
        // Without a journal the log lies there.
        if self.shape.journal_blocks > 0 {
            media.write(Device::Slow, areas.journal * BLOCK_BYTES as u64, &ZEROS)?;
        }
        media.sync(Device::Slow)?;
        Ok(())
    }
}
