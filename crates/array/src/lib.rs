//! Arrays of a fast and a slow medium that look at what they store.
//!
//! | module | what it is |
//! |---|---|
//! | [`addresses`] | addresses of the host, which name a virtual machine |
//! | [`element`] | what every such array does, and who listens to what it asks of its media |
//! | [`error`] | what can go wrong |
//! | [`index`] | a type for every index |
//! | [`icash`] | I-CASH: reference blocks on the fast medium, a log of deltas on the slow one |
//! | [`hdd`] | hard disks in simulated time, and RAID-0 over them |
//! | [`timed`] | requests to an array in simulated time |
//! | [`rivals`] | what it is measured against: the fast medium alone, the slow one alone, two caches |

// Used within this workspace alone: a comment stands where a name does not say it all.
#![allow(missing_docs)]

pub mod addresses;
pub mod element;
pub mod error;
pub mod hdd;
pub mod icash;
pub mod index;
pub mod rivals;
pub mod timed;

mod by_age;
mod counts;
mod lru;
mod media;

pub use element::{Element, Observer};
pub use error::ArrayError;
pub use rivals::Rival;

/// Puts an entry where one is free; its index.
pub(crate) fn put<T, I: index::Index>(entries: &mut Vec<T>, free: &mut Vec<I>, entry: T) -> I {
    match free.pop() {
        Some(index) => {
            entries[index.number() as usize] = entry;
            index
        }
        None => {
            entries.push(entry);
            I::numbered(entries.len() as u32 - 1)
        }
    }
}
