//! The element of a run, with what it holds before the first request, and the devices it is on.

use std::sync::Arc;

use flashlore_array::addresses::Machine;
use flashlore_array::hdd::{self, Hdd, Raid0, SECTOR_BYTES, drives};
use flashlore_array::icash::{ICash, Shape, bytes_needed, create, lba};
use flashlore_array::rivals::CacheOptions;
use flashlore_array::timed::{Engine, Limits, Listener};
use flashlore_array::{ArrayError, Element, Rival};
use flashlore_delta::Page;
use flashlore_flash::Lpn;
use flashlore_medium::{Medium, MemoryMedium};
use flashlore_trace::Summary;
use flashlore_units::Entries;

use super::contents::{Contents, HeldContent, Numbers};
use super::devices::{FastDevice, SlowDevice};
use crate::config::{ArrayConfig, ArrayKind, Load, RunConfig, UNIT_BYTES};
use crate::engine::error::RunError;
use crate::engine::run::{Ticker, prepared};
use crate::engine::ssd::Ssd;

/// The most machines: their number is a byte.
const MOST_MACHINES: u64 = 256;

/// Blocks of a segment of the log: an eighth of the log, within these.
const SEGMENT_BLOCKS: (u64, u64) = (16, 256);

/// Pages laid in between two reports of progress.
const REPORTED_PAGES: u64 = 1 << 12;

/// The elements there are.
pub enum Made {
    /// I-CASH.
    ICash(Box<ICash>),
    /// One of the others.
    Rival(Box<Rival>),
}

impl Made {
    /// What all of them do.
    pub fn element(&mut self) -> &mut dyn Element {
        match self {
            Made::ICash(element) => &mut **element,
            Made::Rival(element) => &mut **element,
        }
    }

    fn observe(&mut self, listener: Listener) {
        match self {
            Made::ICash(element) => element.observe(Box::new(listener)),
            Made::Rival(element) => element.observe(Box::new(listener)),
        }
    }
}

/// Where pages of the trace are in the machines of an array.
#[derive(Debug, Clone, Copy)]
pub struct Machines {
    pages: u32,
}

impl Machines {
    /// How a data set of so many addresses is cut.
    fn of(array: &ArrayConfig, addresses: u64) -> Result<(Machines, Vec<Machine>), RunError> {
        let whole = addresses.max(1);
        let pages = match array.machine_pages {
            Entries::Limited(pages) if pages > 0 => pages.min(whole),
            Entries::Limited(_) | Entries::Unlimited => whole,
        };
        let count = whole.div_ceil(pages);
        if count > MOST_MACHINES {
            let message = format!(
                "array.machine_pages = {pages} cuts {addresses} pages into {count} machines, expected at most \
                 {MOST_MACHINES}"
            );
            return Err(RunError::Array(ArrayError::Shape(message)));
        }
        let pages = pages as u32;
        let machine = |number: u64| Machine {
            number: number as u8,
            blocks: pages,
        };
        Ok((Machines { pages }, (0..count).map(machine).collect()))
    }

    /// The address of a page of the trace.
    pub fn lba(self, lpn: Lpn) -> u64 {
        lba((lpn.0 / self.pages) as u8, (lpn.0 % self.pages).into())
    }
}

/// Everything a run of an array works with.
pub struct Setup<'a> {
    /// The element.
    pub made: Made,
    /// What it asks for.
    pub listener: Listener,
    /// Where pages of the trace are.
    pub machines: Machines,
    pub engine: Engine<FastDevice<'a>, SlowDevice>,
    /// Numbers of what the SSD is written, if its system asks for them.
    pub numbers: Option<Numbers>,
    /// What each page of the trace holds.
    pub held: Vec<HeldContent>,
}

/// The media of an element, in memory.
struct Media {
    fast: Arc<MemoryMedium>,
    slow: Arc<MemoryMedium>,
}

impl Media {
    fn new(fast: u64, slow: u64) -> Result<Media, RunError> {
        let bytes = fast.saturating_add(slow);
        // Only asked for, and given back: what is not touched takes no memory.
        let asked = Vec::<u8>::new().try_reserve_exact(bytes as usize);
        asked.map_err(|_| RunError::Memory { bytes })?;
        let medium = |bytes: u64| Arc::new(MemoryMedium::new(bytes as usize));
        Ok(Media {
            fast: medium(fast),
            slow: medium(slow),
        })
    }
}

/// Makes the element, lays in what the trace finds, and makes its devices.
///
/// # Errors
/// Sizes that make no array, contents that are not known, a device that cannot be made, or a ticker that stops it.
pub fn set_up<'a>(
    config: &'a RunConfig,
    summary: &Summary,
    contents: &Contents<'_>,
    mut ticker: Option<&mut (dyn Ticker + '_)>,
) -> Result<Setup<'a>, RunError> {
    let array = &config.system.array;
    let (machines, list) = Machines::of(array, summary.lpn_count)?;
    let (mut made, media) = element(array, summary, &list)?;
    let needed = media.fast.len();
    let has = config.device.shape()?.exported_units * UNIT_BYTES;
    if has < needed {
        return Err(RunError::SmallSsd {
            device: config.device.name.clone(),
            needed,
            has,
        });
    }
    let mut held = vec![HeldContent::Nothing; list.len() * list[0].blocks as usize];
    if config.device.precondition.prefill_from_trace {
        for (lpn, value) in summary.prefill_units() {
            held[lpn as usize] = value.map_or(HeldContent::Unknown, HeldContent::Value);
        }
    }
    lay_in(
        &mut made,
        array,
        &list,
        &held,
        contents,
        ticker.as_deref_mut(),
    )?;
    let inner = ssd_config(config);
    let numbers = inner
        .system
        .dedup
        .enabled
        .then(|| Numbers::new(media.fast.clone()));
    let found = on_the_ssd(array, &media.fast, &held, numbers.as_ref())?;
    let ssd = Ssd::prepared(&inner, found.into_iter(), None, ticker)?;
    let disks = disks(array, media.slow.len())?;
    let listener = Listener::default();
    made.observe(listener.clone());
    let depth = match config.host.load() {
        Load::Open { .. } => usize::MAX,
        Load::Closed { queue_depth, .. } => queue_depth as usize,
    };
    let limits = Limits {
        depth,
        background: array.background as usize,
    };
    let (fast, slow) = (
        FastDevice::new(ssd, numbers.clone()),
        SlowDevice::new(disks),
    );
    Ok(Setup {
        made,
        listener,
        machines,
        engine: Engine::new(fast, slow, array.costs(), limits),
        numbers,
        held,
    })
}

/// The configuration of the SSD by itself.
pub fn ssd_config(config: &RunConfig) -> RunConfig {
    let mut inner = config.clone();
    inner.system.array.kind = ArrayKind::None;
    inner
}

fn element(
    array: &ArrayConfig,
    summary: &Summary,
    machines: &[Machine],
) -> Result<(Made, Media), RunError> {
    let blocks: u64 = machines.iter().map(|m| u64::from(m.blocks)).sum();
    let slots = array.slots(summary.footprint_units);
    let all = blocks * UNIT_BYTES;
    let pool = u64::from(slots) * UNIT_BYTES;
    let cache = CacheOptions {
        write_back_batch: array.write_back_batch(slots),
        clean_ahead: array.clean_ahead,
        ..CacheOptions::new(slots)
    };
    let media = match array.kind {
        ArrayKind::None | ArrayKind::ICash => Media::new(0, 0)?,
        ArrayKind::PureSsd => Media::new(all, 0)?,
        ArrayKind::Raid0 => Media::new(0, all)?,
        ArrayKind::LruCache | ArrayKind::DedupCache => Media::new(pool, all)?,
    };
    let (fast, slow) = (media.fast.clone(), media.slow.clone());
    let rival = match array.kind {
        ArrayKind::None | ArrayKind::ICash => return icash(array, summary, machines),
        ArrayKind::PureSsd => Rival::pure_ssd(fast, machines)?,
        ArrayKind::Raid0 => Rival::raid0(slow, machines)?,
        ArrayKind::LruCache => Rival::lru_cache(fast, slow, machines, &cache)?,
        ArrayKind::DedupCache => Rival::dedup_cache(fast, slow, machines, &cache)?,
    };
    Ok((Made::Rival(Box::new(rival)), media))
}

fn icash(
    array: &ArrayConfig,
    summary: &Summary,
    machines: &[Machine],
) -> Result<(Made, Media), RunError> {
    let data_set = summary.footprint_units;
    let blocks: u64 = machines.iter().map(|m| u64::from(m.blocks)).sum();
    let options = array.options(data_set, blocks);
    let log_blocks = (array.log.get() * data_set as f64).round() as u64;
    let segment_blocks = (log_blocks / 8).clamp(SEGMENT_BLOCKS.0, SEGMENT_BLOCKS.1);
    let slots = array.slots(data_set);
    let journal_blocks = if array.ordered { slots } else { 0 };
    let least = options.least_log_segments(segment_blocks as u32, journal_blocks);
    let shape = Shape {
        machines: machines.to_vec(),
        slots,
        log_segments: log_blocks.div_ceil(segment_blocks).max(least.into()) as u32,
        segment_blocks: segment_blocks as u32,
        journal_blocks,
        frozen_blocks: array.frozen_blocks(slots),
    };
    let (fast, slow) = bytes_needed(&shape)?;
    let media = Media::new(fast, slow)?;
    create(
        media.fast.clone(),
        media.slow.clone(),
        *b"flashlore's run.",
        &shape,
    )?;
    let element = ICash::open(media.fast.clone(), media.slow.clone(), options)?;
    Ok((Made::ICash(Box::new(element)), media))
}

/// Gives the element what the trace is going to find.
fn lay_in(
    made: &mut Made,
    array: &ArrayConfig,
    machines: &[Machine],
    held: &[HeldContent],
    contents: &Contents<'_>,
    mut ticker: Option<&mut (dyn Ticker + '_)>,
) -> Result<(), RunError> {
    let mut unreported = 0;
    let mut fill = |lpn, held, page: &mut Page| {
        unreported += 1;
        if unreported == REPORTED_PAGES {
            prepared(ticker.as_deref_mut(), std::mem::take(&mut unreported))?;
        }
        contents.fill(lpn, held, page)
    };
    let pages = machines[0].blocks;
    for machine in machines {
        let first = u32::from(machine.number) * pages;
        let here = &held[first as usize..][..pages as usize];
        let mut failed = None;
        if let Made::ICash(element) = &mut *made
            && machine.number > 0
            && array.clones
        {
            let mut read = |address: u64, page: &mut Page| {
                let filled = fill(Lpn(first + address as u32), here[address as usize], page);
                filled.map_err(|error| {
                    let message = ArrayError::Shape(error.to_string());
                    failed = Some(error);
                    message
                })
            };
            let made = element.create_image(0, machine.number, &mut read);
            failed.map_or(Ok(()), Err)?;
            made?;
            continue;
        }
        let mut pages = (first..).zip(here).filter_map(|(lpn, &held)| {
            let mut page = [0; UNIT_BYTES as usize];
            if held == HeldContent::Nothing || failed.is_some() {
                return None;
            }
            failed = fill(Lpn(lpn), held, &mut page).err();
            let address = lba(machine.number, (lpn - first).into());
            failed.is_none().then_some((address, page))
        });
        let laid_in = match array.loaded {
            true => write_all(made.element(), &mut pages),
            false => made.element().lay_in(&mut pages),
        };
        failed.map_or(Ok(()), Err)?;
        laid_in?;
    }
    made.element().flush()?;
    Ok(())
}

fn write_all(
    element: &mut dyn Element,
    pages: &mut dyn Iterator<Item = (u64, Page)>,
) -> Result<(), ArrayError> {
    for (address, page) in pages {
        element.write(address, &page)?;
        element.work_off();
    }
    Ok(())
}

/// What the SSD holds before the run: of a pure one what the trace finds. Any other one holds what the element put
/// there, all of it when data was written through the element.
fn on_the_ssd(
    array: &ArrayConfig,
    fast: &MemoryMedium,
    held: &[HeldContent],
    numbers: Option<&Numbers>,
) -> Result<Vec<(u32, Option<u32>)>, RunError> {
    let mut found = Vec::new();
    let mut page = [0; UNIT_BYTES as usize];
    for unit in 0..fast.len() / UNIT_BYTES {
        let read = fast.read(unit * UNIT_BYTES, &mut page);
        read.map_err(|error| RunError::Array(error.into()))?;
        let is_there = match array.kind {
            ArrayKind::PureSsd => held[unit as usize] != HeldContent::Nothing,
            _ => array.loaded || page.iter().any(|&byte| byte != 0),
        };
        if is_there {
            let number = numbers.map(|numbers| numbers.number(&page));
            found.push((unit as u32, number));
        }
    }
    Ok(found)
}

fn disks(array: &ArrayConfig, needed: u64) -> Result<Raid0, RunError> {
    let refused = |error: &dyn std::fmt::Display| RunError::Disks(error.to_string());
    let drive = drives::named(&array.drive).ok_or_else(|| refused(&"there is no such drive"))?;
    let options = hdd::DiskOptions {
        scheduler: array.scheduler,
        write_back: array.write_cache,
    };
    let disks: Result<Vec<Hdd>, _> = (0..array.disks)
        .map(|_| Hdd::new(&drive, options))
        .collect();
    let unit = (array.stripe.0 / SECTOR_BYTES) as u32;
    let raid = Raid0::new(disks.map_err(|error| refused(&error))?, unit);
    let raid = raid.map_err(|error| refused(&error))?;
    let has = raid.capacity() * SECTOR_BYTES;
    if has < needed {
        return Err(refused(&format!(
            "{} of {:?} have {has} bytes, the array needs {needed}",
            array.disks, array.drive
        )));
    }
    Ok(raid)
}
