//! One pass over accesses, from nothing known to all statistics.
//!
//! A request goes to the statistics of requests; then each of its units, as a page access, to those
//! of pages and values. What is followed gets a dense number here, so that the statistics keep plain
//! vectors.

use flashlore_trace::{Access, Op, PageSource};
use serde::{Deserialize, Serialize};

use crate::contents::Contents;
use crate::error::CharacterizeError;
use crate::ids::{Ids, PageKeys, Sampler};
use crate::options::Options;
use crate::statistics::arrivals::{ArrivalCounter, Arrivals};
use crate::statistics::compressibility::{Compressibility, CompressibilityCounter};
use crate::statistics::footprint::{Footprint, FootprintCounter};
use crate::statistics::index::{Index, IndexCounter};
use crate::statistics::kinds::{KindCounter, Kinds};
use crate::statistics::locality::{Locality, LocalityCounter};
use crate::statistics::mix::{Mix, MixCounter};
use crate::statistics::overwrites::{OverwriteCounter, Overwrites};
use crate::statistics::popularity::{Popularity, PopularityCounter};
use crate::statistics::rate::{Rate, RateCounter};
use crate::statistics::sequential::{Sequential, SequentialCounter};
use crate::statistics::sizes::{SizeCounter, Sizes};

/// An id that says that a unit's content is not known.
const NO_VALUE: u32 = u32::MAX;

/// Everything that is known about a trace or a slice of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statistics {
    /// Requests, pages and bytes by operation.
    pub mix: Mix,
    /// Sizes of requests.
    pub sizes: Sizes,
    /// Sequential requests.
    pub sequential: Sequential,
    /// Distinct pages.
    pub footprint: Footprint,
    /// Gaps and bursts.
    pub arrivals: Arrivals,
    /// Popularity of values.
    pub popularity: Popularity,
    /// Stack distances of values.
    pub value_locality: Locality,
    /// Stack distances of pages.
    pub page_locality: Locality,
    /// Misses of a fingerprint index.
    pub index: Index,
    /// Kinds of writes.
    pub kinds: Kinds,
    /// Overwrites.
    pub overwrites: Overwrites,
    /// Compressed sizes, where bytes or ratios are known.
    pub compressibility: Option<Compressibility>,
    /// Writing rate.
    pub rate: Rate,
}

/// What is kept for each class of accesses to values and pages.
struct Class {
    popularity: PopularityCounter,
    values: LocalityCounter,
    pages: LocalityCounter,
}

impl Class {
    fn new(sampler: Sampler) -> Self {
        Self {
            popularity: PopularityCounter::default(),
            values: LocalityCounter::new(sampler),
            pages: LocalityCounter::new(sampler),
        }
    }

    fn heap_bytes(&self) -> usize {
        self.popularity.heap_bytes() + self.values.heap_bytes() + self.pages.heap_bytes()
    }
}

/// Numbers of what an access touches, as far as it is followed.
struct PageAccess {
    time_ns: u64,
    /// The page, wherever it lies.
    key: u64,
    /// The page, if its content is followed.
    page: Option<u32>,
    /// The page, if it is of the sample.
    followed: Option<u32>,
    /// The value's own id, if known.
    name: Option<u32>,
    /// The value, if it is followed.
    value: Option<u32>,
}

/// All statistics in the making.
pub(crate) struct Collector<'a> {
    sampler: Sampler,
    keys: PageKeys,
    pages: Ids<u64>,
    values: Ids<u32>,
    /// The id of each numbered value.
    names: Vec<u32>,
    contents: Contents,
    mix: MixCounter,
    sizes: SizeCounter,
    sequential: SequentialCounter,
    footprint: FootprintCounter,
    arrivals: ArrivalCounter,
    reads: Class,
    writes: Class,
    index: IndexCounter,
    kinds: KindCounter,
    overwrites: OverwriteCounter,
    compressibility: CompressibilityCounter<'a>,
    rate: RateCounter,
}

impl<'a> Collector<'a> {
    pub(crate) fn new(options: &Options, source: Option<&'a dyn PageSource>) -> Self {
        let sampler = Sampler::new(options.sample_rate);
        Self {
            sampler,
            keys: PageKeys::default(),
            pages: Ids::new("pages"),
            values: Ids::new("values"),
            names: Vec::new(),
            contents: Contents::default(),
            mix: MixCounter::default(),
            sizes: SizeCounter::default(),
            sequential: SequentialCounter::default(),
            footprint: FootprintCounter::default(),
            arrivals: ArrivalCounter::new(sampler),
            reads: Class::new(sampler),
            writes: Class::new(sampler),
            index: IndexCounter::new(sampler, &options.index_sizes),
            kinds: KindCounter::default(),
            overwrites: OverwriteCounter::new(sampler),
            compressibility: CompressibilityCounter::new(source),
            rate: RateCounter::new(&options.capacities),
        }
    }

    /// Looks at the next request.
    pub(crate) fn observe(&mut self, access: &Access<'_>) -> Result<(), CharacterizeError> {
        self.mix.observe(access);
        self.sizes.observe(access);
        self.sequential.observe(access);
        self.arrivals.observe(access);
        self.rate.observe(access);
        match access.op {
            Op::Read | Op::Write => self.pages(access),
            Op::Trim => {
                self.trim(access);
                Ok(())
            }
            Op::Flush => Ok(()),
        }
    }

    fn pages(&mut self, access: &Access<'_>) -> Result<(), CharacterizeError> {
        for ratio in access.delta_ratios.unwrap_or_default() {
            self.compressibility.given(*ratio);
        }
        for at in 0..access.units {
            let values = access.values.and_then(|values| values.get(at as usize));
            let name = values.copied().filter(|name| *name != NO_VALUE);
            let key = self.keys.key(access.device, access.unit + u64::from(at));
            let page = self.identify(access.time_ns, key, name)?;
            match access.op {
                Op::Write => self.write(&page),
                _ => self.read(&page),
            }
        }
        Ok(())
    }

    /// Numbers the page and the value where they are followed.
    fn identify(
        &mut self,
        time_ns: u64,
        key: u64,
        name: Option<u32>,
    ) -> Result<PageAccess, CharacterizeError> {
        // Pages and values shall not be followed for the same numbers.
        let value = name.filter(|name| self.sampler.follows(u64::from(*name) | 1 << 63));
        let value = value.map(|name| self.values.intern(name)).transpose()?;
        if let Some((value, name)) = value.zip(name) {
            if value as usize == self.names.len() {
                self.names.push(name);
            }
            self.contents.add_value(value);
        }
        let sampled = self.sampler.follows(key);
        let page = if sampled || value.is_some() {
            let page = self.pages.intern(key)?;
            self.contents.add_page(page, key);
            Some(page)
        } else {
            self.pages.get(key)
        };
        Ok(PageAccess {
            time_ns,
            key,
            page,
            followed: page.filter(|_| sampled),
            name,
            value,
        })
    }

    fn read(&mut self, access: &PageAccess) {
        if let Some(page) = access.followed {
            self.footprint.observe(page, false);
        }
        self.reads.pages.observe(access.key, access.followed);
        if let Some(name) = access.name {
            self.contents.read(access.page, access.value);
            self.reads.popularity.observe(access.value);
            self.reads.values.observe(u64::from(name), access.value);
        }
    }

    fn write(&mut self, access: &PageAccess) {
        if let Some(page) = access.followed {
            self.footprint.observe(page, true);
        }
        self.writes.pages.observe(access.key, access.followed);
        self.overwrites.observe(access.followed, access.time_ns);
        if let Some(name) = access.name {
            self.writes.popularity.observe(access.value);
            let distance = self.writes.values.observe(u64::from(name), access.value);
            if let Some(value) = access.value {
                self.index.observe(value, distance);
            }
        }
        if let Some(page) = access.page {
            self.replace(page, access);
        }
    }

    /// The page's content changes, after the index has seen the new one.
    fn replace(&mut self, page: u32, access: &PageAccess) {
        let overwrite = self.contents.write(page, access.value);
        if let Some(found) = overwrite.found {
            self.kinds.observe(found);
        }
        if let Some(died) = overwrite.died {
            self.index.die(died);
        }
        if let Some(name) = access.name.filter(|_| access.value.is_some()) {
            let old = overwrite.old.map(|old| self.names[old as usize]);
            self.compressibility.observe(name, old);
        }
    }

    fn trim(&mut self, access: &Access<'_>) {
        for keys in self.keys.ranges(access) {
            self.contents.trim_keys(keys.clone());
            let many = keys.end - keys.start > self.pages.len() as u64;
            let pages: Vec<u32> = if many {
                let all = self.pages.iter();
                all.filter_map(|(key, page)| keys.contains(&key).then_some(page))
                    .collect()
            } else {
                keys.filter_map(|key| self.pages.get(key)).collect()
            };
            for page in pages {
                self.overwrites.trim(page);
                if let Some(died) = self.contents.trim(page) {
                    self.index.die(died);
                }
            }
        }
    }

    /// The statistics.
    pub(crate) fn finish(self) -> Statistics {
        let (sampler, reads, writes) = (self.sampler, self.reads, self.writes);
        let arrivals = self.arrivals.finish();
        let popular = writes.popularity.popular(&self.names);
        let value_locality = Locality {
            reads: reads.values.finish(),
            writes: writes.values.finish(),
        };
        let popularity = Popularity {
            reads: reads.popularity.finish(sampler),
            writes: writes.popularity.finish(sampler),
        };
        Statistics {
            mix: self.mix.finish(),
            sizes: self.sizes.finish(),
            sequential: self.sequential.finish(),
            footprint: self.footprint.finish(sampler),
            rate: self.rate.finish(arrivals.span_ns),
            arrivals,
            index: self.index.finish(&value_locality.writes, &popular),
            kinds: self.kinds.finish(popularity.writes.accesses),
            popularity,
            value_locality,
            page_locality: Locality {
                reads: reads.pages.finish(),
                writes: writes.pages.finish(),
            },
            overwrites: self.overwrites.finish(),
            compressibility: self.compressibility.finish(),
        }
    }

    /// Bytes held by tables that grow with the trace.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.pages.heap_bytes()
            + self.values.heap_bytes()
            + self.names.capacity() * size_of::<u32>()
            + self.contents.heap_bytes()
            + self.sizes.heap_bytes()
            + self.footprint.heap_bytes()
            + self.arrivals.heap_bytes()
            + self.reads.heap_bytes()
            + self.writes.heap_bytes()
            + self.index.heap_bytes()
            + self.overwrites.heap_bytes()
            + self.rate.heap_bytes()
    }
}
