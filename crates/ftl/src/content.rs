//! A device that looks at content: CA-SSD, a page per distinct value (FAST 2011, sections 4.1-4.3), and the
//! policies that can stand beside that.
//!
//! * [`device`] — core, map and policies in one place
//! * [`parts`] — what it is made of, as types
//! * [`encoding`] — what all that encode share: how long a value may be, whether it pays, counts
//! * [`viability`] — whether encoding pays at all
//! * [`decision`] — how a write is served: planned, fetched, committed
//! * [`read`] — reading, from one unit or two
//! * `past` — instants, snapshots, the way back
//! * `merge`, `scan`, `restore_entries`, `hints` — what is done besides writes and reads
//! * [`bytes`] — what a device over bytes needs besides
//! * `store` — map, objects and policies, and what is done when references change
//!
//! The policies are in [`crate::policies`]: they answer, and here is done what they answer.
//!
//! A write whose fingerprint is indexed shares the object it finds; only a new value is programmed.
//! The index names objects, the map names objects, and an object has one location: relocation patches
//! that and nothing else.
//!
//! Life of a write: the fingerprint is looked up; found and (if asked) verified, the entry moves to
//! the head and the address refers to the object; not found, the content is appended, its object
//! indexed at the head, the entry at the tail discarded to make room. The address' old object loses a
//! reference either way and dies, with its entry, when that was the last.

pub mod bytes;
pub mod candidate;
pub mod decision;
pub mod device;
pub mod encoding;
mod hints;
mod merge;
pub mod parts;
mod past;
pub mod read;
mod restore_entries;
mod scan;
mod store;
pub mod viability;

pub use self::candidate::{Candidate, CandidateRead};
pub use self::decision::Outcome;
pub use self::device::{ContentDevice, ContentFtl, Policies};
pub use self::read::PartsRead;
