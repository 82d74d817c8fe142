//! What holds nothing any more is given back to whatever is below the media: homes of blocks that were given up, and slots
//! and frozen places whose data blocks ended.
//!
//! A medium may give back anything for what was discarded. So a home is discarded only when a durable group says that
//! its block holds nothing, and a slot or a frozen place when no durable place needs what is in it, which is when it
//! becomes free. Whatever is written again is not discarded any more. With ordered write-back homes stay: they are one
//! state with all others, and what was given up is zeros there.

use roaring::RoaringBitmap;

use crate::element::Device;
use crate::error::ArrayError;
use crate::icash::format::Areas;
use crate::icash::parameters::{BLOCK_BYTES, LONGEST_RUN};
use crate::icash::place::BlockEntry;
use crate::icash::state::ICash;
use crate::index::{ArrayBlock, FrozenPlace, Slot};

/// Ranges that one step gives back.
const RANGES_OF_A_STEP: usize = 16;

impl ICash {
    /// Notes what the durable content of a block leaves at home.
    pub(super) fn note_unused_home(&mut self, block: ArrayBlock, entry: &BlockEntry) {
        let is_unused = self.shape.journal_blocks == 0 && entry.has_home && entry.holds_nothing();
        match is_unused {
            true => self.unused_homes.insert(block.0),
            false => self.unused_homes.remove(block.0),
        };
    }

    /// Gives some ranges back that hold nothing; false if there are none.
    ///
    /// # Errors
    /// A medium refused. What it was asked for is not tried again; nothing that is needed is lost.
    pub fn give_back(&mut self) -> Result<bool, ArrayError> {
        if self.is_stopped() {
            return Ok(false);
        }
        let mut ranges = Vec::new();
        let areas = self.areas;
        take_runs(&mut self.unused_homes, &mut ranges, |first| {
            (Device::Slow, areas.home_of(ArrayBlock(first)))
        });
        let (slots, places) = self.pool.unused();
        take_runs(slots, &mut ranges, |first| {
            (Device::Fast, Areas::slot(Slot(first)))
        });
        take_runs(places, &mut ranges, |first| {
            (Device::Slow, areas.frozen_place(FrozenPlace(first)))
        });
        for &(device, offset, blocks) in &ranges {
            let bytes = u64::from(blocks) * BLOCK_BYTES as u64;
            let discarded = self.media.discard(device, offset, bytes);
            self.counters.background_failures += u64::from(discarded.is_err());
            discarded?;
            self.counters.given_back += u64::from(blocks);
        }
        Ok(!ranges.is_empty())
    }

    /// Recounts which homes hold nothing that is needed.
    pub(super) fn check_unused_homes(&self) -> Result<(), String> {
        let is_unused = |block: ArrayBlock| {
            let entry = self.table.get(block);
            entry.has_home && entry.holds_nothing() && self.shape.journal_blocks == 0
        };
        let mut homes = self.unused_homes.iter().map(ArrayBlock);
        match homes.find(|&block| !is_unused(block)) {
            Some(block) => Err(format!(
                "the home of block {block} would be given back, which its place needs: {:?}",
                self.table.get(block)
            )),
            None => Ok(()),
        }
    }
}

/// Moves runs of numbers to ranges of a medium, as many as a step takes.
fn take_runs(
    numbers: &mut RoaringBitmap,
    ranges: &mut Vec<(Device, u64, u32)>,
    place_of: impl Fn(u32) -> (Device, u64),
) {
    while ranges.len() < RANGES_OF_A_STEP
        && let Some((first, count)) = first_run(numbers)
    {
        numbers.remove_smallest(count.into());
        let (device, offset) = place_of(first);
        ranges.push((device, offset, count));
    }
}

/// The first of the numbers that follow each other, and how many these are.
fn first_run(numbers: &RoaringBitmap) -> Option<(u32, u32)> {
    let first = numbers.min()?;
    let follow = (first..=u32::MAX).zip(numbers);
    let count = follow
        .take_while(|(expected, number)| expected == number)
        .take(LONGEST_RUN)
        .count();
    Some((first, count as u32))
}
