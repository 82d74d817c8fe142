//! Sizes and policy of a new volume, from what a user asks for.

use flashlore_content::{PAGE_BYTES, VolumeKey};

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
    /// What is encoded.
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

impl CreateOptions {
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
        let data = (u64::from(stored) * SPARE_TENTHS / 10).div_ceil(block_units);
        let log = if self.encoding.is_on() { LOG_BLOCKS } else { 0 };
        let mut uuid = [0; 16];
        let mut key = [0; 32];
        uuid.copy_from_slice(&self.seed[..16]);
        key.copy_from_slice(&self.seed[16..]);
        Ok(Identity {
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
            blocks: with_kept(data + OPEN_BLOCKS + log) as u32,
            pages_per_block: pages_per_block as u32,
            units_per_page: UNITS_PER_PAGE,
            alignment: 4096,
            index_entries: stored,
            // A quarter of the segment holds the dead births of a checkpoint interval.
            journal_bytes: (u64::from(stored) * 128)
                .clamp(1 << 20, 32 << 20)
                .next_multiple_of(4096),
        })
    }
}

/// So many blocks and those that collection keeps free of all together.
fn with_kept(blocks: u64) -> u64 {
    let kept = |all: u64| u64::from(watermarks(all as u32).high);
    blocks + kept(blocks + kept(blocks))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Areas;

    fn identity(size: u64, capacity: u64) -> Result<Identity, SizeError> {
        CreateOptions {
            policy: Policy::Dedup,
            history: None,
            encoding: Encoding::default(),
            size,
            capacity,
            now: 0,
            seed: [0; 48],
        }
        .identity()
    }

    #[test]
    fn what_is_asked_for_fits() {
        for mib in [1, 3, 64, 1000, 100 << 10] {
            let id = identity(mib << 20, mib << 20).unwrap();
            let units = u64::from(id.blocks - 6) * u64::from(id.pages_per_block * 16);
            assert!(
                units >= u64::from(id.exported) * 11 / 10,
                "{mib} MiB: {id:?}"
            );
            Areas::new(&id).unwrap();
        }
    }

    #[test]
    fn odd_and_huge_sizes_are_refused() {
        assert!(matches!(
            identity(5000, 1 << 20),
            Err(SizeError::NotPages { .. })
        ));
        assert!(matches!(
            identity(1 << 20, 4096),
            Err(SizeError::NotPages { .. })
        ));
        assert!(matches!(
            identity(1 << 60, 1 << 20),
            Err(SizeError::TooLarge { .. })
        ));
    }
}
