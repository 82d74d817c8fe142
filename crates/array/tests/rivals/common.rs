//! Rivals of all kinds.

use std::sync::Arc;

use flashlore_array::Rival;
use flashlore_array::addresses::Machine;
use flashlore_array::rivals::CacheOptions;
use flashlore_medium::{Medium, MemoryMedium};

use crate::support::{Draw, Value};

/// What a rival is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    PureSsd,
    Raid0,
    Lru,
    Dedup,
}

pub const SORTS: [Sort; 4] = [Sort::PureSsd, Sort::Raid0, Sort::Lru, Sort::Dedup];

/// A medium of so many blocks, which holds no zeros.
pub fn medium(blocks: u64) -> Arc<MemoryMedium> {
    let bytes = vec![0xE5; blocks as usize * 4096];
    Arc::new(MemoryMedium::from_bytes(bytes))
}

/// A rival on media that are just large enough.
pub fn rival(sort: Sort, machines: &[Machine], options: &CacheOptions) -> Rival {
    let home = medium(machines.iter().map(|m| u64::from(m.blocks)).sum());
    let cache = medium(options.slots.into());
    rival_on(sort, cache, home, machines, options)
}

/// A rival on a medium for the cache, if it has one, and one for all blocks.
pub fn rival_on(
    sort: Sort,
    cache: Arc<dyn Medium>,
    home: Arc<dyn Medium>,
    machines: &[Machine],
    options: &CacheOptions,
) -> Rival {
    match sort {
        Sort::PureSsd => Rival::pure_ssd(home, machines),
        Sort::Raid0 => Rival::raid0(home, machines),
        Sort::Lru => Rival::lru_cache(cache, home, machines, options),
        Sort::Dedup => Rival::dedup_cache(cache, home, machines, options),
    }
    .unwrap()
}

/// One machine, number 0: its addresses are its blocks.
pub fn one_machine(blocks: u32) -> [Machine; 1] {
    [Machine { number: 0, blocks }]
}

/// A cache that cleans nothing ahead.
pub fn with_map_cache(slots: u32, batch: usize) -> CacheOptions {
    CacheOptions {
        slots,
        write_back_batch: batch,
        clean_ahead: false,
    }
}

/// A small cache.
pub fn draw_options(draw: &mut Draw) -> CacheOptions {
    let most = draw.pick(&[1, 3, 12, 40]);
    CacheOptions {
        slots: draw.between(1, most) as u32,
        write_back_batch: draw.pick(&[1, 2, 5, 64]),
        clean_ahead: draw.chance(50),
    }
}

/// One of many contents; the first is zeros, the others are noise.
pub fn content(number: u64) -> Value {
    match number {
        0 => 0,
        number => (1000 + number as Value) << 16,
    }
}
