//! Sizes and policy of a new volume, from what a user asks for, and the sizes of one that grows.

use flashlore_content::{PAGE_BYTES, VolumeKey};

use crate::format::superblock::VERSION;
use crate::format::{Encoding, HistoryIdentity, Identity, Policy};
use crate::policies::watermarks;

/// What a user asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CreateOptions {
    /// What the content is used for.
    pub policy: Policy,
    /// Whether old versions are kept, and how. Without a number of entries (0) there are as many as pages that
    /// can be stored.
    pub history: Option<HistoryIdentity>,
    pub encoding: Encoding,
    /// Bytes the volume shows.
    pub size: u64,
    /// Bytes of distinct content it can hold; with deduplication it may be less than the size.
    pub capacity: u64,
    /// When it is created, in nanoseconds since 1970.
    pub now: u64,
    /// Random bytes: 16 for the identity, 32 for the key.
    pub seed: [u8; 48],
}

/// Why sizes cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// Not whole pages, or none.
    #[error("{what} is {found} bytes, expected a multiple of 4096 of at least 1 MiB")]
    NotPages {
        /// Size or capacity.
        what: &'static str,
        /// Bytes found.
        found: u64,
    },
    /// More than 32-bit page numbers reach.
    #[error("{what} is {found} bytes, at most 15 TiB are supported")]
    TooLarge {
        /// Size or capacity.
        what: &'static str,
        /// Bytes found.
        found: u64,
    },
    /// Less than there is.
    #[error("{what} is {found} bytes, less than the {present} that it has; a volume can only grow")]
    Shrinks {
        /// Size or capacity.
        what: &'static str,
        /// Bytes found.
        found: u64,
        /// Bytes there are.
        present: u64,
    },
    /// Size and capacity are as they are.
    #[error("the volume has a size of {size} and a capacity of {capacity} bytes already")]
    NothingGrows {
        /// Bytes it shows.
        size: u64,
        /// Bytes it can hold.
        capacity: u64,
    },
}

const LEAST: u64 = 1 << 20;
const MOST: u64 = 15 << 40;
/// Units of 4 KiB in a flash page of 64 KiB.
const UNITS_PER_PAGE: u32 = 16;
/// A block of a large volume has 4 MiB.
const MOST_PAGES_PER_BLOCK: u64 = 64;
/// A small volume has about so many blocks for its content.
const BLOCKS_OF_A_SMALL_VOLUME: u64 = 128;
/// Physical pages over those that can be stored, in tenths.
const SPARE_TENTHS: u64 = 11;
/// The open blocks of two streams, one block more than is kept free, and one over; and the open blocks of two more
/// streams, where values are encoded.
const OPEN_BLOCKS: u64 = 4;
const LOG_BLOCKS: u64 = 2;

/// The capacity of a volume that is asked for with a size alone: the size, and with a history half as much again for
/// old versions. All pages can be written, and overwritten for ever, in every system.
pub fn default_capacity(size: u64, history: bool) -> u64 {
    let page = PAGE_BYTES as u64;
    let old_versions = if history { size / 2 / page * page } else { 0 };
    size.saturating_add(old_versions)
}

impl CreateOptions {
    /// Of a small volume for tests, which deduplicates and encodes nothing.
    #[cfg(test)]
    pub(crate) fn small() -> Self {
        CreateOptions {
            policy: Policy::Dedup,
            history: None,
            encoding: Encoding::default(),
            size: 1 << 20,
            capacity: 1 << 20,
            now: 0,
            seed: [0; 48],
        }
    }

    /// The identity of the volume.
    ///
    /// # Errors
    /// Sizes that cannot be used.
    pub fn identity(&self) -> Result<Identity, SizeError> {
        let exported = pages("the size", self.size)?;
        let stored = pages("the capacity", self.capacity)?;
        let unit = u64::from(UNITS_PER_PAGE);
        let pages_per_block = (u64::from(stored) / unit / BLOCKS_OF_A_SMALL_VOLUME)
            .clamp(4, MOST_PAGES_PER_BLOCK)
            .next_power_of_two();
        let block_units = pages_per_block * unit;
        let mut uuid = [0; 16];
        let mut key = [0; 32];
        uuid.copy_from_slice(&self.seed[..16]);
        key.copy_from_slice(&self.seed[16..]);
        Ok(Identity {
            version: VERSION,
            policy: self.policy,
            encoding: self.encoding,
            history: self.history.map(|history| HistoryIdentity {
                entries: match history.entries {
                    0 => stored,
                    entries => entries,
                },
                ..history
            }),
            uuid,
            key: VolumeKey(key),
            created: self.now,
            exported,
            blocks: blocks(stored, block_units, self.encoding),
            pages_per_block: pages_per_block as u32,
            units_per_page: UNITS_PER_PAGE,
            alignment: 4096,
            index_entries: stored,
            journal_bytes: journal_bytes(stored),
        })
    }
}

/// Bytes of distinct content that a volume made by [`CreateOptions`] was made, or grown, to hold.
pub fn capacity(id: &Identity) -> u64 {
    u64::from(id.index_entries) * PAGE_BYTES as u64
}

/// What a volume grows to. Without a size it keeps its own; without a capacity that grows by as much as the size does,
/// and half as much again with a history. Index and history get as many more entries as pages can be stored more.
/// Blocks keep their size.
///
/// # Errors
/// Sizes that cannot be used, less than there is, or nothing that grows.
pub fn grown(
    id: &Identity,
    size: Option<u64>,
    new_capacity: Option<u64>,
) -> Result<Identity, SizeError> {
    let page = PAGE_BYTES as u64;
    let present = (u64::from(id.exported) * page, capacity(id));
    let size = size.unwrap_or(present.0);
    let more = size.saturating_sub(present.0);
    let old_versions = match id.history {
        Some(_) => more / 2 / page * page,
        None => 0,
    };
    let by_itself = present.1.saturating_add(more).saturating_add(old_versions);
    let capacity = new_capacity.unwrap_or(by_itself);
    let exported = pages("the size", size)?;
    let stored = pages("the capacity", capacity)?;
    let both = [
        ("the size", size, present.0),
        ("the capacity", capacity, present.1),
    ];
    for (what, found, present) in both {
        if found < present {
            return Err(SizeError::Shrinks {
                what,
                found,
                present,
            });
        }
    }
    if (size, capacity) == present {
        return Err(SizeError::NothingGrows { size, capacity });
    }
    let mut to = id.clone();
    let block_units = u64::from(id.pages_per_block) * u64::from(id.units_per_page);
    to.exported = exported;
    to.blocks = blocks(stored, block_units, id.encoding).max(id.blocks);
    to.index_entries = stored;
    to.journal_bytes = journal_bytes(stored).max(id.journal_bytes);
    if let Some(history) = &mut to.history {
        history.entries = history.entries.saturating_add(stored - id.index_entries);
    }
    Ok(to)
}

/// Blocks of so many units that hold so many pages, also when each lacks all units of a flash page but one: such
/// blocks collection leaves alone.
fn blocks(stored: u32, block_units: u64, encoding: Encoding) -> u32 {
    let spacious = (u64::from(stored) * SPARE_TENTHS / 10).div_ceil(block_units);
    let lacking = block_units + 1 - u64::from(UNITS_PER_PAGE);
    let data = spacious.max((u64::from(stored) + 1).div_ceil(lacking));
    let log = if encoding.is_on() { LOG_BLOCKS } else { 0 };
    with_kept(data + OPEN_BLOCKS + log) as u32
}

/// So many blocks and those that collection keeps free of all together.
fn with_kept(blocks: u64) -> u64 {
    let kept = |all: u64| u64::from(watermarks(all as u32).high);
    blocks + kept(blocks + kept(blocks))
}

/// A quarter of a segment holds the dead writes of a checkpoint interval.
fn journal_bytes(stored: u32) -> u64 {
    (u64::from(stored) * 128)
        .clamp(1 << 20, 32 << 20)
        .next_multiple_of(4096)
}

fn pages(what: &'static str, found: u64) -> Result<u32, SizeError> {
    if found < LEAST || !found.is_multiple_of(PAGE_BYTES as u64) {
        return Err(SizeError::NotPages { what, found });
    }
    if found > MOST {
        return Err(SizeError::TooLarge { what, found });
    }
    Ok((found / PAGE_BYTES as u64) as u32)
}
