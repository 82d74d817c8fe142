//! The four ways to do without I-CASH, and requests.
//!
//! Invariants: a block that holds nothing is zeros and lies in no slot. `check` recounts them and those of a cache.

use std::sync::Arc;

use flashlore_delta::Page;
use flashlore_medium::{Medium, MediumError, MemoryMedium};

use crate::addresses::{Addresses, Machine, validate_machines};
use crate::element::{Device, Element, Observer, Statistics};
use crate::error::ArrayError;
use crate::icash::parameters::BLOCK_BYTES;
use crate::index::ArrayBlock;
use crate::media::Media;
use crate::rivals::cache::{Cache, bytes_of, home_of};
use crate::rivals::counters::RivalCounters;
use crate::rivals::options::CacheOptions;

enum Way {
    /// All on one medium.
    Alone(Device),
    /// At home on the slow medium, some also or only in slots of the fast one.
    Cached(Box<Cache>),
}

/// An element I-CASH is measured against. At first every block is zeros, whatever its media hold.
pub struct Rival {
    media: Media,
    addresses: Addresses,
    /// Which blocks were written and not trimmed since.
    holds: Vec<bool>,
    way: Way,
    statistics: Statistics,
}

impl Rival {
    /// All blocks on the fast medium.
    ///
    /// # Errors
    /// No array can have these machines, or the medium is too small for them.
    pub fn pure_ssd(fast: Arc<dyn Medium>, machines: &[Machine]) -> Result<Rival, ArrayError> {
        Rival::alone(Device::Fast, fast, machines)
    }

    /// All blocks on the slow medium. How that spreads them over disks is its own affair.
    ///
    /// # Errors
    /// No array can have these machines, or the medium is too small for them.
    pub fn raid0(slow: Arc<dyn Medium>, machines: &[Machine]) -> Result<Rival, ArrayError> {
        Rival::alone(Device::Slow, slow, machines)
    }

    /// The fast medium is a cache of blocks.
    ///
    /// # Errors
    /// No array can have these machines, the options cannot work, or a medium is too small.
    pub fn lru_cache(
        fast: Arc<dyn Medium>,
        slow: Arc<dyn Medium>,
        machines: &[Machine],
        options: &CacheOptions,
    ) -> Result<Rival, ArrayError> {
        Rival::cached(Media::new(fast, slow), machines, options, false)
    }

    /// The fast medium is a cache with one copy of each content.
    ///
    /// # Errors
    /// No array can have these machines, the options cannot work, or a medium is too small.
    pub fn dedup_cache(
        fast: Arc<dyn Medium>,
        slow: Arc<dyn Medium>,
        machines: &[Machine],
        options: &CacheOptions,
    ) -> Result<Rival, ArrayError> {
        Rival::cached(Media::new(fast, slow), machines, options, true)
    }

    fn alone(
        device: Device,
        medium: Arc<dyn Medium>,
        machines: &[Machine],
    ) -> Result<Rival, ArrayError> {
        let nothing = Arc::new(MemoryMedium::new(0));
        let media = match device {
            Device::Fast => Media::new(medium, nothing),
            Device::Slow => Media::new(nothing, medium),
        };
        Rival::new(media, machines, device, Way::Alone(device))
    }

    fn cached(
        media: Media,
        machines: &[Machine],
        options: &CacheOptions,
        shares_contents: bool,
    ) -> Result<Rival, ArrayError> {
        options.validate()?;
        must_have(&media, Device::Fast, options.slots)?;
        let cache = Cache::new(options.clone(), shares_contents);
        Rival::new(media, machines, Device::Slow, Way::Cached(Box::new(cache)))
    }

    fn new(
        media: Media,
        machines: &[Machine],
        home: Device,
        way: Way,
    ) -> Result<Rival, ArrayError> {
        validate_machines(machines)?;
        let blocks = machines.iter().map(|machine| machine.blocks).sum();
        must_have(&media, home, blocks)?;
        Ok(Rival {
            media,
            addresses: Addresses::new(machines),
            holds: vec![false; blocks as usize],
            way,
            statistics: Statistics::default(),
        })
    }

    pub fn observe(&mut self, observer: Box<dyn Observer>) {
        self.media.observe(observer);
    }

    /// What its cache did; nothing if it has none.
    pub fn counters(&self) -> RivalCounters {
        match &self.way {
            Way::Alone(_) => RivalCounters::default(),
            Way::Cached(cache) => cache.counters,
        }
    }

    pub fn check(&self) -> Result<(), String> {
        let Way::Cached(cache) = &self.way else {
            return Ok(());
        };
        cache.check()?;
        for (block, holds) in (0..).map(ArrayBlock).zip(&self.holds) {
            if !holds && cache.slots.slot_of(block).is_some() {
                return Err(format!("block {block} holds nothing and is cached"));
            }
        }
        Ok(())
    }

    /// Reads a block that holds something. False if it should be cached now.
    fn read_block(&mut self, block: ArrayBlock, page: &mut Page) -> Result<bool, MediumError> {
        match &mut self.way {
            Way::Alone(device) => {
                self.media.read(*device, home_of(block), page)?;
                Ok(true)
            }
            Way::Cached(cache) => cache.read(&mut self.media, block, page),
        }
    }

    fn write_block(&mut self, block: ArrayBlock, page: &Page) -> Result<(), MediumError> {
        match &mut self.way {
            Way::Alone(device) => self.media.write(*device, home_of(block), page),
            Way::Cached(cache) => cache.write(&mut self.media, block, page),
        }
    }

    /// What follows a request, in the background. `fill` is a block that was not cached, and what was read.
    fn end_of_request(&mut self, fill: Option<(ArrayBlock, &Page)>) {
        self.media.begin_background();
        let Way::Cached(cache) = &mut self.way else {
            return;
        };
        let filled = fill.map_or(Ok(()), |(block, page)| {
            cache.fill(&mut self.media, block, page)
        });
        let ended = match cache.options.clean_ahead {
            true => filled.and_then(|()| cache.clean_ahead(&mut self.media)),
            false => filled,
        };
        cache.counters.background_failures += u64::from(ended.is_err());
    }
}

/// Refuses a medium that has not so many blocks.
fn must_have(media: &Media, device: Device, blocks: u32) -> Result<(), ArrayError> {
    let (found, needed) = (media.len(device), bytes_of(blocks));
    if found >= needed {
        return Ok(());
    }
    Err(ArrayError::Shape(format!(
        "the {} medium has {found} bytes, {blocks} blocks need {needed}",
        device.name()
    )))
}

impl Element for Rival {
    fn read(&mut self, lba: u64, page: &mut Page) -> Result<(), ArrayError> {
        let block = self.addresses.block(lba)?;
        let mut is_done = true;
        if self.holds[block.index()] {
            let read = self.read_block(block, page);
            is_done = read.map_err(|error| self.addresses.unreadable(block, error.into()))?;
        } else {
            *page = [0; BLOCK_BYTES];
        }
        self.statistics.reads += 1;
        self.end_of_request((!is_done).then_some((block, page)));
        Ok(())
    }

    fn write(&mut self, lba: u64, page: &Page) -> Result<(), ArrayError> {
        let block = self.addresses.block(lba)?;
        self.write_block(block, page)?;
        self.holds[block.index()] = true;
        self.statistics.writes += 1;
        self.end_of_request(None);
        Ok(())
    }

    fn trim(&mut self, lba: u64) -> Result<(), ArrayError> {
        let block = self.addresses.block(lba)?;
        if let Way::Cached(cache) = &mut self.way {
            cache.trim(block);
        }
        self.holds[block.index()] = false;
        self.statistics.trims += 1;
        self.end_of_request(None);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ArrayError> {
        self.media.sync(Device::Fast)?;
        self.media.sync(Device::Slow)?;
        self.statistics.flushes += 1;
        Ok(())
    }

    fn lay_in(&mut self, pages: &mut dyn Iterator<Item = (u64, Page)>) -> Result<(), ArrayError> {
        let home = match self.way {
            Way::Alone(device) => device,
            Way::Cached(_) => Device::Slow,
        };
        for (lba, page) in pages {
            let block = self.addresses.block(lba)?;
            if std::mem::replace(&mut self.holds[block.index()], true) {
                return Err(ArrayError::Occupied { block });
            }
            self.media.write(home, home_of(block), &page)?;
        }
        Ok(())
    }

    fn statistics(&self) -> Statistics {
        self.media.complete(self.statistics)
    }
}
