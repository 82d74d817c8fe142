//! What can be asked of a page's content, and the policies that exploit it.
//!
//! | module | what it is |
//! |---|---|
//! | [`page`] | the [`Content`] trait and its simulated instance, [`PageTag`] |
//! | [`bytes`] | its instances over bytes: keyed digests of real pages |
//! | [`dedup`] | CA-SSD: the fingerprint index, and when to switch it off |
//! | [`delta`] | DeltaFTL: values in fewer bytes than a page |
//! | [`similar`] | I-CASH: which stored page resembles a page |
//! | [`history`] | BVSSD: what every page referred to at earlier instants |
//! | [`list`] | lists of numbered places, for orders of use |
//! | [`census`] | the oracle that splits programs into unique, duplicate and reborn |

// Used within this workspace alone: a comment stands where a name does not say it all.
#![allow(missing_docs)]

pub mod bytes;
pub mod census;
pub mod dedup;
pub mod delta;
pub mod history;
pub mod list;
pub mod page;
pub mod similar;

pub use bytes::{Digest, DigestTag, PAGE_BYTES, PageBytes, VolumeKey};
pub use census::{Census, Ledger, NoCensus, ValueLedger};
pub use dedup::{Dedup, DedupOptions};
pub use delta::{Encoder, NoEncoder};
pub use history::{History, HistoryOptions, PURGED, TooOld, Version};
pub use page::{Content, PageTag};
pub use similar::{SimilarIndex, Sketch};
