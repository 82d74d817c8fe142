//! Where the units of each device lie in the LPN space.
//!
//! Devices follow one another in order of their numbers. Without compaction each takes the space up
//! to its last unit touched or trimmed; with it, the units read or written are numbered without
//! holes in order, so that a request stays contiguous, and trims are clipped to them.

use super::request::MAX_UNITS;
use super::units::{Ranks, UnitSet};
use crate::error::{Error, Result};

/// What the layout must know of one device.
#[derive(Debug)]
pub(crate) struct DeviceExtent {
    pub(crate) device: u32,
    /// Units read or written.
    pub(crate) touched: UnitSet,
    /// One more than the last unit touched or trimmed.
    pub(crate) end: u64,
}

/// The place of every unit.
#[derive(Debug)]
pub(crate) struct Layout {
    slots: Vec<Placed>,
    compact: bool,
    total: u64,
    footprint: u64,
}

#[derive(Debug)]
struct Placed {
    base: u64,
    units: u64,
    ranks: Ranks,
}

impl Layout {
    /// Lays out the devices, given by slot.
    ///
    /// # Errors
    /// When they need more than [`MAX_UNITS`].
    pub(crate) fn new(devices: Vec<DeviceExtent>, compact: bool) -> Result<Layout> {
        let mut order: Vec<(u32, usize)> = devices
            .iter()
            .enumerate()
            .map(|(slot, extent)| (extent.device, slot))
            .collect();
        order.sort_unstable();
        let mut slots: Vec<Placed> = devices
            .into_iter()
            .map(|extent| {
                let ranks = extent.touched.into_ranks();
                let units = if compact { ranks.total() } else { extent.end };
                Placed {
                    base: 0,
                    units,
                    ranks,
                }
            })
            .collect();
        let mut total = 0u64;
        for (_, slot) in order {
            slots[slot].base = total;
            total = total.saturating_add(slots[slot].units);
        }
        if total > MAX_UNITS {
            return Err(Error::Layout(format!(
                "the addresses span {total} mapping units of 4 KiB, expected at most {MAX_UNITS}; \
                 {}",
                if compact {
                    "select fewer devices"
                } else {
                    "a compact layout leaves out the holes"
                }
            )));
        }
        let footprint = slots.iter().map(|placed| placed.ranks.total()).sum();
        Ok(Layout {
            slots,
            compact,
            total,
            footprint,
        })
    }

    /// First LPN and number of units of `units` units from `unit` on. The number differs from
    /// `units` only for a trim under a compact layout.
    #[inline]
    pub(crate) fn place(&self, slot: u32, unit: u64, units: u32) -> (u32, u32) {
        let placed = &self.slots[slot as usize];
        if !self.compact {
            return ((placed.base + unit) as u32, units);
        }
        let from = placed.ranks.rank(unit);
        let to = placed.ranks.rank(unit + u64::from(units));
        ((placed.base + from) as u32, (to - from) as u32)
    }

    /// Units of the whole LPN space.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Units read or written.
    pub(crate) fn footprint(&self) -> u64 {
        self.footprint
    }

    /// First LPN, number of LPNs and units read or written of a slot.
    pub(crate) fn extent(&self, slot: usize) -> (u64, u64, u64) {
        let placed = &self.slots[slot];
        (placed.base, placed.units, placed.ranks.total())
    }
}
