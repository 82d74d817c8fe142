//! A fast medium that was lost is replaced by a new one.
//!
//! The new one is *fresh*: its superblock says that nothing is in its slots. Nothing else is written before the array is
//! opened with it. That opening looks at the table as it does without the old medium:
//!
//! - Where no durable place needs the fast medium, all places stay as they are.
//! - With ordered write-back all blocks are what they were in the last batch, at home or in the journal.
//! - Else the blocks that need the fast medium are lost: an error to whoever reads them, until they are written or
//!   trimmed. All others keep their places.
//!
//! The changed table becomes durable with the checkpoint of that opening, at once, before the superblock says that the
//! medium is fresh no more, and before anything is written to a slot.
//!
//! Invariant: an opening that was cut finds either the table as it was and a fresh medium, and changes it in the same
//! way; or the changed table, in which no place needs the fast medium.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use flashlore_medium::Medium;

use crate::addresses::Machine;
use crate::element::Device;
use crate::error::ArrayError;
use crate::icash::content::{ZEROS, crc_of};
use crate::icash::create::write_superblock;
use crate::icash::format::Superblock;
use crate::icash::format::superblock::Session;
use crate::icash::open::{Recovered, recover_whole};
use crate::icash::ordered::{Batch, committed};
use crate::icash::parameters::BLOCK_BYTES;
use crate::icash::place::{BlockEntry, BlockPlace, DataBlock};
use crate::index::{Address, ArrayBlock};
use crate::media::Media;

/// What an array loses with its fast medium.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Loss {
    /// Nothing: all that is durable is on the slow medium.
    Nothing,
    /// With ordered write-back: what changed since the last batch.
    SinceBatch {
        /// The blocks that go back to what they held then, as below.
        blocks: Vec<(u8, Address)>,
        /// When the batch was taken, in seconds since 1970, if that is known.
        taken: Option<u32>,
    },
    /// These blocks, each a machine and its address there, in order.
    Blocks(Vec<(u8, Address)>),
}

/// What becomes of the table.
enum Change {
    None,
    /// These blocks go back to what they were in the last batch.
    Back(BTreeMap<ArrayBlock, BlockEntry>, Option<u32>),
    /// These are lost.
    Lose(Vec<ArrayBlock>),
}

/// What is lost if the fast medium of the array on a slow one is. Nothing is written.
///
/// # Errors
/// It is the slow medium of no array, or damaged.
pub fn loss_without_fast(slow: Arc<dyn Medium>) -> Result<Loss, ArrayError> {
    // The fast one is never asked.
    let mut media = Media::new(slow.clone(), slow);
    let recovered = recover_whole(&mut media)?;
    let change = recovered.without_fast(&mut media);
    recovered.table.demand_whole()?;
    Ok(match change {
        Change::None => Loss::Nothing,
        Change::Lose(blocks) => Loss::Blocks(recovered.named(&blocks)),
        Change::Back(entries, taken) => {
            let holds = |entry: &BlockEntry| match entry.place {
                BlockPlace::Zero => crc_of(&ZEROS),
                _ => entry.crc,
            };
            let differs = |&(&block, then): &(&ArrayBlock, &BlockEntry)| {
                then.place == BlockPlace::Lost || holds(then) != holds(&recovered.table.get(block))
            };
            let changed = entries.iter().filter(differs).map(|(&block, _)| block);
            let blocks = recovered.named(&changed.collect::<Vec<_>>());
            match blocks.is_empty() {
                true => Loss::Nothing,
                false => Loss::SinceBatch { blocks, taken },
            }
        }
    })
}

/// Makes a medium the fast one of the array on a slow one, in the place of one that was lost. What it holds is lost; the
/// slow one is not written.
///
/// # Errors
/// It is too short, the slow one is that of no array or damaged, or a medium failed.
pub fn make_fresh(fast: Arc<dyn Medium>, slow: Arc<dyn Medium>) -> Result<(), ArrayError> {
    let mut media = Media::new(fast, slow);
    let recovered = recover_whole(&mut media)?;
    let (found, needed) = (
        media.len(Device::Fast),
        recovered.areas.fast_blocks * BLOCK_BYTES as u64,
    );
    if found < needed {
        return Err(ArrayError::Shape(format!(
            "the new fast medium has {found} bytes, the array needs {needed}"
        )));
    }
    let superblock = Superblock {
        id: recovered.superblock.id,
        is_fast: true,
        is_fresh: true,
        session: Session::at(recovered.root.session),
        shape: recovered.superblock.shape,
    };
    write_superblock(&mut media, Device::Fast, &superblock)?;
    media.sync(Device::Fast)?;
    Ok(())
}

impl Recovered {
    /// Changes the table to what is there without the fast medium.
    pub(super) fn do_without_fast(&mut self, media: &mut Media) {
        match self.without_fast(media) {
            Change::None => {}
            Change::Back(entries, _) => {
                for (block, entry) in entries {
                    self.table.set(block, entry);
                }
            }
            Change::Lose(blocks) => {
                for block in blocks {
                    let has_home = self.table.get(block).has_home;
                    self.table.set(block, lost(has_home));
                }
            }
        }
    }

    fn without_fast(&self, media: &mut Media) -> Change {
        // That each lies in one place was checked before.
        let frozen: HashSet<DataBlock> = self.frozen().unwrap_or_default();
        let needs_it = |&block: &ArrayBlock| {
            let data = self.table.get(block).place.data();
            data.is_some_and(|data| !frozen.contains(&data))
        };
        let lost: Vec<ArrayBlock> = self.table.blocks().filter(needs_it).collect();
        match (lost.is_empty(), self.superblock.shape.journal_blocks) {
            (true, _) => Change::None,
            (false, 0) => Change::Lose(lost),
            (false, _) => {
                let batch = committed(media, &self.areas, self.tag);
                Change::Back(self.in_batch(media, &batch), batch.taken)
            }
        }
    }

    /// The blocks that are not what they were in the last batch, or may not be, and what they were then. An image in the
    /// journal is brought home by every opening.
    fn in_batch(&self, media: &mut Media, batch: &Batch) -> BTreeMap<ArrayBlock, BlockEntry> {
        let images: BTreeMap<ArrayBlock, u32> = { batch.images.iter() }
            .map(|image| (image.block, image.crc))
            .collect();
        let mut entries = BTreeMap::new();
        for block in self.table.blocks() {
            let now = self.table.get(block);
            let at_home = |crc: u32| BlockEntry {
                place: BlockPlace::Home,
                crc,
                has_home: true,
            };
            let then = match images.get(&block) {
                Some(&crc) => at_home(crc),
                None if !now.is_away() => continue,
                None if !now.has_home => BlockEntry::ZERO,
                None => {
                    let mut page = ZEROS;
                    let home = self.areas.home_of(block);
                    let read = media.read(Device::Slow, home, &mut page);
                    read.map_or(lost(true), |()| at_home(crc_of(&page)))
                }
            };
            entries.insert(block, then);
        }
        entries
    }

    /// The machine and the address there of each block.
    fn named(&self, blocks: &[ArrayBlock]) -> Vec<(u8, Address)> {
        let mut machines = self.addresses.machines().iter();
        let (mut number, mut first, mut end) = (0, ArrayBlock(0), ArrayBlock(0));
        let name = |&block: &ArrayBlock| {
            while block >= end {
                let Some(&Machine {
                    number: next,
                    blocks,
                }) = machines.next()
                else {
                    break;
                };
                (number, first, end) = (next, end, end + blocks);
            }
            (number, Address(block - first))
        };
        blocks.iter().map(name).collect()
    }
}

fn lost(has_home: bool) -> BlockEntry {
    BlockEntry {
        place: BlockPlace::Lost,
        crc: 0,
        has_home,
    }
}
