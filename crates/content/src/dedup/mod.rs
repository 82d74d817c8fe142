//! Deduplication as CA-SSD does it (FAST 2011), and what CAFTL (FAST 2011) does otherwise.
//!
//! * [`index`] — the fingerprint index: an LRU over writes with a fixed number of entries
//! * [`bounded`] — the fingerprint index of bounded memory, for volumes
//! * [`lookup`] — what deduplication asks of either
//! * [`bypass`] — when value locality is absent, stop hashing (combination H)
//! * [`sampling`] — which page of several is hashed for all of them (CAFTL)
//!
//! The policy here decides nothing about flash: it names an object that may hold the same content,
//! and the core acts.

pub mod bounded;
pub mod bypass;
pub mod index;
pub mod lookup;
pub mod sampling;

pub use bounded::{BoundedCounters, BoundedIndex, Coverage};
pub use bypass::{Bypass, BypassOptions};
pub use index::LruIndex;
pub use lookup::FingerprintIndex;

/// How duplicates are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DedupOptions {
    /// Entries of the fingerprint index; `None` for as many as there are stored values.
    pub index_entries: Option<u32>,
    /// Width of a fingerprint in bits; 64 and more never collide in simulation.
    pub fingerprint_bits: u32,
    /// Whether a candidate's content is compared before it is shared.
    pub verify: bool,
    /// Stop hashing while there is nothing to gain.
    pub bypass: Option<BypassOptions>,
    /// Whether pages that were not hashed when they were written are hashed in idle time. Their
    /// duplicates are shared without comparing, so it excludes `verify`.
    pub out_of_line: bool,
}

/// What happened to host page writes: `hits + misses + unhashed + unsampled` is their number. And to
/// stored pages in idle time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DedupCounters {
    /// Writes whose content was found and shared.
    pub hits: u64,
    /// Writes whose content was not found.
    pub misses: u64,
    /// Hits on the very object the address held already.
    pub silent: u64,
    /// Entries discarded to make room.
    pub evictions: u64,
    /// Candidates whose content differed from the write's: seen only when verifying.
    pub collisions: u64,
    /// Writes that shared an object with different content: only without verifying.
    pub corrupted: u64,
    /// Writes that were not hashed because hashing was switched off.
    pub unhashed: u64,
    /// Writes that were not hashed because the sample chosen for them was not found.
    pub unsampled: u64,
    /// Stored pages that were read and hashed in idle time.
    pub scanned: u64,
    /// Of them, those that were found to be duplicates and given up.
    pub scan_duplicates: u64,
}

/// The policy's state.
#[derive(Debug, Clone)]
pub struct Dedup<I = LruIndex> {
    /// The fingerprint index; it names objects by handle.
    pub index: I,
    /// Counts since the start or the end of warm-up.
    pub counters: DedupCounters,
    /// The controller that switches hashing off, if any.
    pub bypass: Option<Bypass>,
    /// Whether content is compared before it is shared.
    pub verify: bool,
}

/// Bytes the paper charges for one indexed fingerprint: 16 of MD5 or 20 of SHA-1 and 4 of page
/// address (HPT), 4 + 4 of the way back (iHPT). CA-SSD section 4.2: 28 bytes with MD5.
pub fn paper_bytes(entries: u64, digest_bytes: u64) -> u64 {
    entries * (digest_bytes + 4 + 8)
}

impl<I: FingerprintIndex> Dedup<I> {
    /// An empty index, where there are so many objects at most.
    pub fn new(options: DedupOptions, most_objects: u32) -> Self {
        Dedup {
            index: I::with_entries(options.index_entries, most_objects),
            counters: DedupCounters::default(),
            bypass: options.bypass.map(Bypass::new),
            verify: options.verify,
        }
    }

    /// Whether anything can be entered into the index.
    pub fn is_on(&self) -> bool {
        self.index.capacity() != Some(0)
    }

    /// Whether the next write is to be hashed; ask once a write.
    #[inline(always)]
    pub fn wants_hash(&mut self) -> bool {
        match &mut self.bypass {
            None => true,
            Some(bypass) => bypass.wants_hash(),
        }
    }

    /// Notes whether a hashed write was a hit.
    #[inline(always)]
    pub fn hashed(&mut self, hit: bool) {
        if let Some(bypass) = &mut self.bypass {
            bypass.hashed(hit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::paper_bytes;

    #[test]
    fn the_papers_index_sizes() {
        // spec/ca-ssd.md section 2 and timing.md section 7: 28 bytes an entry.
        let sizes = [
            (16, 458_752),
            (64, 1_835_008),
            (128, 3_670_016),
            (256, 7_340_032),
        ];
        for (kibi, bytes) in sizes {
            assert_eq!(paper_bytes(kibi << 10, 16), bytes);
        }
        assert_eq!(paper_bytes(1 << 20, 16), 29_360_128);
        assert_eq!(paper_bytes(11_046, 16), 309_288);
        assert_eq!(paper_bytes(1 << 20, 20), 32 << 20);
    }
}
