//! Pages of the tables that a request needs are read by its own thread before it asks for the volume: many requests wait
//! for the medium side by side, and nobody waits for them.
//!
//! What is found missing is found a level at a time, so there are a few rounds: pages above others, the map, what that
//! refers to, what an object needs. Where everything is in memory nobody looks: as long as no page had to be read while the
//! volume was held, a number of plans that find nothing is the last for a while.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use flashlore_metadata::{Fetch, Fetched, StoredTables};

use super::device::DiskError;
use super::lock::Locked;
use crate::format::ObjectNote;
use crate::volume::Volume;

/// Rounds of a request: two pages above a leaf, and the leaf, of the map and of the objects, and two for packed values.
const MOST_ROUNDS: u32 = 8;
/// Plans that find nothing before no more are made.
const IN_VAIN: u32 = 256;

/// The tables of a volume, and whether planning is worth it.
pub(super) struct TablesAhead {
    tables: StoredTables<ObjectNote>,
    /// Pages that were read while the volume was held, when that was asked last.
    seen: AtomicU64,
    /// Plans that may find nothing before no more are made.
    left: AtomicU32,
}

impl TablesAhead {
    pub fn new(volume: &Volume) -> Self {
        TablesAhead {
            tables: volume.stored_tables(),
            seen: AtomicU64::new(u64::MAX),
            left: AtomicU32::new(0),
        }
    }

    /// Whether pages may be missing.
    #[inline]
    fn is_worth_it(&self) -> bool {
        let now = self.tables.fetched_at_once();
        if now != self.seen.load(Ordering::Relaxed) {
            self.seen.store(now, Ordering::Relaxed);
            self.left.store(IN_VAIN, Ordering::Relaxed);
        }
        self.left.load(Ordering::Relaxed) > 0
    }

    /// Reads pages that are missing for something that needs them once: those above them stay in memory, the last ones are
    /// answered.
    pub fn read(
        &self,
        volume: &Locked<Volume>,
        missing: impl Fn(&Volume) -> Vec<Fetch>,
    ) -> Result<Vec<Fetched>, DiskError> {
        let mut read = Vec::new();
        for _ in 0..MOST_ROUNDS {
            let fetches = missing(volume.look()?.get()?);
            let (above, leaves): (Vec<Fetch>, Vec<Fetch>) = fetches
                .into_iter()
                .partition(|fetch| fetch.node().level > 0);
            if above.is_empty() {
                read.extend(self.tables.read_pages(&leaves));
                break;
            }
            self.tables.fetch(&above);
        }
        Ok(read)
    }

    /// Reads the pages that are missing for something.
    pub fn fetch(
        &self,
        volume: &Locked<Volume>,
        missing: impl Fn(&Volume) -> Vec<Fetch>,
    ) -> Result<(), DiskError> {
        if !self.is_worth_it() {
            return Ok(());
        }
        for round in 0..MOST_ROUNDS {
            let fetches = missing(volume.look()?.get()?);
            if fetches.is_empty() {
                if round == 0 {
                    // What others counted meanwhile may be lost: it is a hint.
                    let left = self.left.load(Ordering::Relaxed);
                    self.left.store(left.saturating_sub(1), Ordering::Relaxed);
                }
                return Ok(());
            }
            self.left.store(IN_VAIN, Ordering::Relaxed);
            self.tables.fetch(&fetches);
        }
        Ok(())
    }
}
