//! The device that ignores content.

use flashlore_content::PageTag;
use flashlore_flash::sim::NandSim;
use flashlore_flash::{Cause, Completion, Lpn, Tag, Time, When};
use flashlore_ftl::core::Core;
use flashlore_ftl::error::OptionsError;
use flashlore_ftl::map_cache::{CacheOptions, CachedMap, MapCache, Resident};
use flashlore_ftl::{FtlOptions, PlainFtl, Unhashed};

use super::{Distance, Result, System};

/// The plain device.
pub struct Plain<K = Resident>(PlainFtl<NandSim, K>);

impl Plain {
    /// An empty device.
    ///
    /// # Errors
    /// Settings that cannot work together.
    pub fn new(flash: NandSim, options: FtlOptions) -> std::result::Result<Self, OptionsError> {
        Ok(Plain(PlainFtl::new(flash, options)?))
    }
}

impl Plain<CachedMap<()>> {
    /// An empty device with a part of its map in RAM.
    ///
    /// # Errors
    /// Settings that cannot work together.
    pub fn with_map_cache(
        flash: NandSim,
        options: FtlOptions,
        cache: CacheOptions,
    ) -> std::result::Result<Self, OptionsError> {
        let map_cache = CachedMap::new(options.exported, cache, ());
        Ok(Plain(PlainFtl::with_map_cache(flash, options, map_cache)?))
    }
}

impl<K: MapCache<()>> System for Plain<K> {
    const HASHES: bool = false;
    type Cache = K;

    fn core(&self) -> &Core<NandSim, K> {
        self.0.core()
    }
    fn core_mut(&mut self) -> &mut Core<NandSim, K> {
        self.0.core_mut()
    }
    #[inline(always)]
    fn advance(&mut self, until: Time) -> Result<()> {
        self.0.advance(until)
    }
    fn settle(&mut self, at: Time) -> Result<()> {
        self.0.settle(at)
    }
    #[inline(always)]
    fn write(
        &mut self,
        when: When,
        lpn: Lpn,
        _value: PageTag,
        _unhashed: Option<Unhashed>,
        _encode: bool,
        tag: Tag,
    ) -> Result<Completion> {
        self.0.write(when, lpn, (), tag)
    }
    fn fill(&mut self, lpn: Lpn) -> Result<()> {
        self.0.write(When::now(0), lpn, (), Tag::NONE).map(drop)
    }
    #[inline(always)]
    fn read(&mut self, at: Time, lpn: Lpn, cause: Cause, tag: Tag) -> Result<Option<Completion>> {
        let (page, done) = self.0.read(at, lpn, cause, tag)?;
        Ok(page.map(|()| done))
    }
    fn trim(&mut self, lpn: Lpn) -> Result<()> {
        self.0.trim(lpn)
    }
    fn restart_counters(&mut self) {
        self.0.core_mut().restart_counters();
    }
    #[inline(always)]
    fn prefetch_write(&self, distance: Distance, lpn: Lpn, _value: PageTag) {
        match distance {
            Distance::First => self.0.prefetch_map(lpn),
            Distance::Second => {}
            Distance::Third => self.0.prefetch_unit(lpn),
            Distance::Fourth => self.0.prefetch_neighbours(lpn),
        }
    }
    #[inline(always)]
    fn prefetch_read(&self, distance: Distance, lpn: Lpn) {
        match distance {
            Distance::First => self.0.prefetch_map(lpn),
            Distance::Second => self.0.prefetch_unit(lpn),
            Distance::Third | Distance::Fourth => {}
        }
    }
    fn heap_bytes(&self) -> usize {
        self.0.core().heap_bytes() + self.0.map().heap_bytes()
    }
}
