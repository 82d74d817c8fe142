//! What may stand between the host and the translation layer: a write buffer of the device, or a
//! sorting write queue of the system.
//!
//! | module | what it is |
//! |---|---|
//! | `buffer` | writes are taken in RAM; what has to make room goes on |
//! | `queue` | writes and trims wait, and go on sorted by address |
//! | `line` | those that wait for a place in either |
//!
//! A buffer decides and does not act: it writes down `BufferingStep`s, and the driver takes them in their
//! order. What goes on to the translation layer is a change like any other. Its place is free when it
//! is done, of which the driver tells (`Buffering::left`).

mod buffer;
mod line;
mod queue;

use flashlore_content::PageTag;
use flashlore_flash::{Lpn, Time};
use flashlore_ftl::buffer::{BufferPlace, Replacement};

pub(super) use self::line::Line;
use super::driver::What;
use crate::results::{BufferTraffic, QueueTraffic};

/// Which buffer a device has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BufferingOptions {
    /// A write buffer.
    Buffer {
        /// Mapping units it holds, at least 1.
        places: u32,
        /// Which page makes room.
        policy: Replacement,
    },
    /// A sorting write queue.
    Queue {
        /// Changes it holds, at least 1.
        places: u32,
        /// Mapping units of a bucket, at least 1.
        bucket_pages: u32,
        /// Whether a change is acknowledged when it is queued, or else when it is done.
        early_ack: bool,
        /// So long after the first change since the last time all of it is flushed.
        period: Time,
    },
}

/// The write or trim of one unit, as it arrives.
#[derive(Debug, Clone, Copy)]
pub(super) struct UnitChange {
    pub lpn: Lpn,
    pub value: PageTag,
    /// R_c as the trace has it, in 1/65535; 0 where it has none.
    pub ratio: u16,
    pub what: What,
    /// The request that asks for it.
    pub slot: u32,
    /// When it arrived.
    pub arrival: Time,
}

/// What the driver is to do.
#[derive(Debug, Clone, Copy)]
pub(super) enum BufferingStep {
    /// A unit of this request was served from an instant on, and is done.
    Answer(u32, Time),
    /// A change goes on from this place.
    Leave(BufferPlace, UnitChange),
    /// A change goes on by itself and answers its request.
    Pass(UnitChange),
}

/// What was counted, of one kind of buffer.
#[derive(Debug, Clone, Copy)]
pub enum Traffic {
    /// Of a write buffer.
    Buffer(BufferTraffic),
    Queue(QueueTraffic),
}

/// The newest version of a page that is here: when it arrived, and whether the page can be read from it alone.
pub(super) type Here = (Time, bool);

/// What stands between the host and the translation layer.
pub(super) trait Buffering {
    /// A request of any kind has arrived with all its units.
    fn request(&mut self, steps: &mut Vec<BufferingStep>);
    /// A write or trim arrives.
    fn change(&mut self, unit: UnitChange, steps: &mut Vec<BufferingStep>);
    /// What a read finds of a page here; counted if that is all it needs.
    fn reads(&mut self, lpn: Lpn) -> Option<Here>;
    /// Those that wait for a place.
    fn line(&self) -> &Line;
    /// The change of a place, served from `start` on, is done: the place is free.
    fn left(&mut self, place: BufferPlace, start: Time, at: Time, steps: &mut Vec<BufferingStep>);
    /// When something has to happen by itself.
    fn due(&self) -> Option<Time>;
    fn happen(&mut self, steps: &mut Vec<BufferingStep>);
    /// Units that the host has written.
    fn writes(&self) -> u64;
    /// Units that were read here.
    fn read_hits(&self) -> u64;
    /// What was counted.
    fn traffic(&self) -> Traffic;
    /// Sets what is counted to 0.
    fn restart(&mut self);
}

/// Of so many places, how many may be made free at once for those that wait.
fn most_leaving(places: u32) -> u32 {
    (places / 2).max(1)
}

impl BufferingOptions {
    /// An empty buffer, on flash pages of so many units.
    pub(super) fn build(self, units_per_page: u32) -> Box<dyn Buffering> {
        match self {
            BufferingOptions::Buffer { places, policy } => {
                Box::new(buffer::BufferedWrites::new(places, policy, units_per_page))
            }
            BufferingOptions::Queue {
                places,
                bucket_pages,
                early_ack,
                period,
            } => Box::new(queue::QueuedWrites::new(
                places,
                bucket_pages,
                early_ack,
                period,
            )),
        }
    }
}
