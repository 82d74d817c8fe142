//! The statistics: one file each, one struct that observes and one that it becomes.
//!
//! | module | definition |
//! |---|---|
//! | [`mix`] | 1 requests, pages, bytes by operation |
//! | [`sizes`] | 2 sizes of reads and writes |
//! | [`sequential`] | 3 requests that go on where the one before ended |
//! | [`footprint`] | 4 distinct pages |
//! | [`arrivals`] | 5 gaps between requests, bursts |
//! | [`popularity`] | 6, 7 how unevenly accesses fall on values |
//! | [`locality`] | 8, 9 LRU stack distances of values and of pages |
//! | [`index`] | 10 misses of a fingerprint index, all sizes at once |
//! | [`kinds`] | 11 new, silent, elsewhere, reborn |
//! | [`overwrites`] | 12 how soon a page is written again |
//! | [`compressibility`] | 13 what deltas and pages compress to |
//! | [`rate`] | 14 bytes an hour, protection window |
//!
//! Where pages or values are sampled, a statistic sees the followed ones and scales its counts.

pub mod arrivals;
pub mod compressibility;
pub mod footprint;
pub mod index;
pub mod kinds;
pub mod locality;
pub mod mix;
pub mod overwrites;
pub mod popularity;
pub mod rate;
pub mod sequential;
pub mod sizes;
