//! RAM in front of the map: what the host wrote and the translation layer has not been given yet, or
//! has not finished.
//!
//! | module | what it is |
//! |---|---|
//! | [`write_buffer`] | pages, each in its newest version; the victim makes room |
//! | [`write_queue`] | changes in all their versions, sorted by address into buckets |
//!
//! Both know neither time nor flash. Each page or change has a *place*. It is *held* until it is
//! handed to the translation layer, *leaves* until that is done, and only then its place is free.

pub mod write_buffer;
pub mod write_queue;

use flashlore_content::list::ListPlace;

pub use write_buffer::{Put, Replacement, WriteBuffer};
pub use write_queue::WriteQueue;

flashlore_flash::index!(
    /// The place of a page in the write buffer, or of a change in the write queue.
    BufferPlace
);

impl ListPlace for BufferPlace {
    #[inline(always)]
    fn number(self) -> u32 {
        self.0
    }

    #[inline(always)]
    fn numbered(number: u32) -> Self {
        BufferPlace(number)
    }
}
