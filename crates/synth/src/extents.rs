//! Extents: the pages of a workload in pieces that are written or read as a whole.
//!
//! New extents are laid in zones of the address space, never twice in a row in the same one, so that
//! two runs are not sequential by accident. Up to each zone's frontier every page belongs to an
//! extent. The footprint grows by Heaps' law to exactly what was asked.

use crate::draw::Draw;
use crate::profile::Reach;
use crate::recency::{NOWHERE, Recency};

/// The most zones, and the fewest pages of one.
const MOST_ZONES: u32 = 64;
const ZONE_PAGES: u32 = 1024;

#[derive(Debug, Clone)]
pub(crate) struct Zones {
    /// First page, frontier and end of each zone.
    zones: Vec<Zone>,
    /// Zones with room.
    open: Vec<u32>,
    last: u32,
}

#[derive(Debug, Clone, Copy)]
struct Zone {
    frontier: u32,
    end: u32,
}

impl Zones {
    pub(crate) fn new(pages: u32) -> Self {
        let count = (pages / ZONE_PAGES).clamp(1, MOST_ZONES);
        let edge = |i: u32| (u64::from(pages) * u64::from(i) / u64::from(count)) as u32;
        let zone = |i| Zone {
            frontier: edge(i),
            end: edge(i + 1),
        };
        Zones {
            zones: (0..count).map(zone).collect(),
            open: (0..count).collect(),
            last: u32::MAX,
        }
    }

    /// Lays an extent of up to `pages` pages: first page and number of pages.
    fn lay(&mut self, pages: u32, draw: &mut Draw) -> Option<(u32, u32)> {
        let mut at = match self.open.len() {
            0 => return None,
            open => draw.below(open as u32) as usize,
        };
        if self.open[at] == self.last {
            at = (at + 1) % self.open.len();
        }
        self.last = self.open[at];
        let zone = &mut self.zones[self.last as usize];
        let pages = pages.min(zone.end - zone.frontier);
        let first = zone.frontier;
        zone.frontier += pages;
        if zone.frontier == zone.end {
            self.open.swap_remove(at);
        }
        Some((first, pages))
    }

    /// How many pages from `first` on belong to extents.
    pub(crate) fn laid_from(&self, first: u32) -> u32 {
        let at = self.zones.partition_point(|zone| zone.end <= first);
        self.zones[at].frontier - first
    }
}

/// Consecutive pages that are accessed together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    pub(crate) first: u32,
    pub(crate) pages: u32,
    /// Pages of each of its requests; the last may have fewer.
    pub(crate) request_pages: u32,
    /// Where it stands in the order of use.
    place: u32,
}

/// Extents of one kind, in the order of their use.
#[derive(Debug, Clone)]
pub(crate) struct Pool {
    extents: Vec<Extent>,
    recency: Recency,
    /// Pages that the extents have, and shall have in the end.
    made: u32,
    target: u32,
    growth: f64,
    /// Mean requests of an extent, and mean pages of a request.
    requests: f64,
    request_pages: f64,
}

impl Pool {
    /// An empty pool that shall have `target` pages.
    pub(crate) fn new(target: u32, growth: f64, requests: f64, request_pages: f64) -> Self {
        Pool {
            extents: Vec::new(),
            recency: Recency::default(),
            made: 0,
            target,
            growth,
            requests,
            request_pages,
        }
    }

    /// The extent of the next run: a new one, or one chosen by `reach`. `progress` is the share of
    /// the accesses that are done, `left` the number of pages that will still be accessed.
    pub(crate) fn next_run(
        &mut self,
        zones: &mut Zones,
        reach: Reach,
        progress: f64,
        left: f64,
        draw: &mut Draw,
    ) -> Option<Extent> {
        let missing = self.target - self.made;
        let due = f64::from(self.target) * progress.powf(self.growth);
        let new = f64::from(self.made) < due || f64::from(missing) >= left || self.made == 0;
        let index = match missing > 0 && new {
            true => self.lay(zones, missing, draw),
            false => None,
        };
        let index = index.or_else(|| self.choose(reach, draw))?;
        let extent = &mut self.extents[index as usize];
        extent.place = self.recency.use_again(index, extent.place);
        Some(*extent)
    }

    fn lay(&mut self, zones: &mut Zones, missing: u32, draw: &mut Draw) -> Option<u32> {
        let request_pages = draw.geometric(self.request_pages);
        let pages = draw.geometric(self.requests).saturating_mul(request_pages);
        let (first, pages) = zones.lay(pages.min(missing), draw)?;
        self.made += pages;
        self.extents.push(Extent {
            first,
            pages,
            request_pages,
            place: NOWHERE,
        });
        Some(self.extents.len() as u32 - 1)
    }

    fn choose(&self, reach: Reach, draw: &mut Draw) -> Option<u32> {
        let count = self.extents.len() as u32;
        if count == 0 {
            return None;
        }
        if !draw.chance(reach.near) {
            return Some(draw.below(count));
        }
        let gap = draw.exponential(reach.gap) as u32;
        let wanted = self.recency.uses().saturating_sub(1 + gap);
        self.recency.nearest(wanted)
    }

    /// An extent to be read that stays where it stands.
    pub(crate) fn peek(&self, reach: Reach, draw: &mut Draw) -> Option<Extent> {
        Some(self.extents[self.choose(reach, draw)? as usize])
    }
}
