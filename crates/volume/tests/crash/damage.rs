//! Where damage strikes what a power cut left: mostly what was written since the power came on, and of that rather the
//! records of flash pages, of which there are few, and which tell a recovery where everything lies; most of all those
//! of what collection moved.

use std::collections::{BTreeMap, HashSet};

use flashlore_flash::{BlockId, PageId, Ppn};
use flashlore_medium::{MemoryMedium, SECTOR};
use flashlore_volume::format::record::{RECORD_BYTES, Record, Slot};
use flashlore_volume::format::{Areas, JournalEntry, ObjectPlace};
use flashlore_volume::load;

use crate::crash::draw::Draw;
use crate::crash::history::Setup;
use crate::support::loaded::Loaded;
use crate::support::strike::Strike;

/// Bytes that a device replaces at once.
const PAGE: usize = 4096;

/// A strike on `image`, which was `before` when the power came on: on one of the sectors that are `moved`, if there are
/// any. None if there is nothing to strike.
pub fn draw(
    draw: &mut Draw,
    setup: &Setup,
    moved: &[usize],
    image: &[u8],
    before: &[u8],
) -> Option<Strike> {
    if draw.chance(10) {
        let loaded = Loaded::of(&MemoryMedium::from_bytes(image.to_vec()));
        let older = loaded.map_or_else(|_| Vec::new(), |it| it.older_tables(image, before));
        if !older.is_empty() {
            let (at, len) = range(image, draw.pick(&older));
            return Some(Strike::Put { at, len });
        }
    }
    let is_occupied = |at: usize| !is_uniform(sector(image, at));
    let has_changed = |at: usize| sector(image, at) != sector(before, at);
    let changed = sectors(image, has_changed);
    let preferred = match draw.below(10) {
        _ if !moved.is_empty() => moved.to_vec(),
        0..2 => sectors(image, is_occupied),
        2..6 => changed.clone(),
        _ => records(setup)
            .filter(|&at| is_occupied(at) && has_changed(at))
            .collect(),
    };
    let among = match preferred.is_empty() {
        true => &changed,
        false => &preferred,
    };
    if among.is_empty() {
        return None;
    }
    let hit = draw.pick(among);
    let (at, len) = match draw.chance(25) {
        true => range(image, hit / PAGE * PAGE),
        false => (hit, SECTOR),
    };
    Some(match draw.below(10) {
        0..4 => flip(draw, image, hit),
        4..6 => Strike::Zero { at, len },
        6..8 => {
            let from = draw.pick(among).min(image.len() - len);
            Strike::Move { at, from, len }
        }
        _ => Strike::Put { at, len },
    })
}

/// Strikes that are simpler than others, on each sector that changed.
pub fn simple(image: &[u8], before: &[u8]) -> Vec<Strike> {
    let changed = sectors(image, |at| sector(image, at) != sector(before, at));
    let len = SECTOR;
    let both = |at| [Strike::Zero { at, len }, Strike::Put { at, len }];
    changed.into_iter().flat_map(both).collect()
}

/// Where the records of flash pages lie.
fn records(setup: &Setup) -> impl Iterator<Item = usize> {
    let areas = Areas::new(&setup.identity()).expect("there is such a volume");
    let pages = setup.blocks * setup.pages_per_block;
    (0..pages).map(move |page| areas.records(PageId(page)) as usize)
}

/// Sectors with records of what was moved since the last checkpoint and lies nowhere else: the block that the
/// checkpoint knows it in was opened again.
pub fn moved(image: &[u8]) -> Vec<usize> {
    let Ok(loaded) = Loaded::of(&MemoryMedium::from_bytes(image.to_vec())) else {
        return Vec::new();
    };
    let id = &loaded.superblock.identity;
    let opened: BTreeMap<BlockId, u64> = load::entries(&loaded.tail)
        .filter_map(|entry| match entry {
            JournalEntry::Open {
                block, generation, ..
            } => Some((block, generation)),
            _ => None,
        })
        .collect();
    let in_block = id.pages_per_block * id.units_per_page;
    let gone: HashSet<u64> = known(&loaded)
        .filter(|(_, unit)| opened.contains_key(&BlockId(unit.0 / in_block)))
        .map(|(name, _)| name)
        .collect();
    let units = opened.iter().flat_map(|(&block, &generation)| {
        let first = block.0 * in_block;
        (first..first + in_block).map(move |unit| (Ppn(unit), generation))
    });
    let is_moved = |&(at, unit, generation): &(usize, Ppn, u64)| {
        let record = &image[at..at + RECORD_BYTES];
        let Slot::Record(placed) = Slot::decode(record, &id.key, unit) else {
            return false;
        };
        let Record { write_seq, lpn, .. } = placed.record;
        let name = match id.has_objects() {
            true => write_seq,
            false => u64::from(lpn),
        };
        placed.generation == generation && write_seq <= loaded.root.sequence && gone.contains(&name)
    };
    units
        .map(|(unit, generation)| {
            let page = loaded.areas.page(loaded.areas.page_of(unit)) as usize;
            let at = page + loaded.areas.record_in_page(unit).start;
            (at, unit, generation)
        })
        .filter(is_moved)
        .map(|(at, ..)| at / SECTOR * SECTOR)
        .collect()
}

/// What the checkpoint knows, by write sequence number or, of a plain volume, by address, and the unit it lies on.
fn known(loaded: &Loaded) -> Box<dyn Iterator<Item = (u64, Ppn)> + '_> {
    let Loaded { tables, .. } = loaded;
    if !loaded.superblock.identity.has_objects() {
        return Box::new((0..).zip(tables.map.iter().map(|row| row.as_unit())));
    }
    Box::new(tables.objects.iter().map(|row| {
        let unit = match row.place {
            ObjectPlace::Unit(unit) => unit,
            ObjectPlace::Packed(_) => {
                let pack = row.pack().and_then(|pack| tables.packs[pack.index()]);
                pack.map_or(Ppn::NONE, |pack| pack.location)
            }
        };
        (row.write_seq, unit)
    }))
}

/// A bit flips in a sector, rather where something stands.
fn flip(draw: &mut Draw, image: &[u8], at: usize) -> Strike {
    let filled: Vec<usize> = (at..at + SECTOR).filter(|&at| image[at] != 0).collect();
    let at = match filled.is_empty() {
        true => at,
        false => draw.pick(&filled),
    };
    let bit = draw.below(8) as u8;
    Strike::Flip { at, bit }
}

fn range(image: &[u8], at: usize) -> (usize, usize) {
    (at, PAGE.min(image.len() - at))
}

fn sectors(image: &[u8], takes: impl Fn(usize) -> bool) -> Vec<usize> {
    let all = (0..image.len()).step_by(SECTOR);
    all.filter(|&at| takes(at)).collect()
}

fn sector(image: &[u8], at: usize) -> &[u8] {
    &image[at..at + SECTOR]
}

fn is_uniform(bytes: &[u8]) -> bool {
    bytes.iter().all(|&byte| byte == bytes[0])
}
