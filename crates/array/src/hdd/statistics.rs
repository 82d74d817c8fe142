//! What a disk has done. Durations are in nanoseconds.
//!
//! Invariant: the parts of service add up to `service`.

use std::ops::AddAssign;

use super::Time;

macro_rules! statistics {
    ($($(#[$doc:meta])* $field:ident: $type:ty,)*) => {
        /// Counts and durations since the disk was made, or their sums over disks.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct Statistics {
            $($(#[$doc])* pub $field: $type,)*
        }

        impl Statistics {
            /// What was done since statistics that were taken earlier.
            #[must_use]
            pub fn since(&self, earlier: &Statistics) -> Statistics {
                Statistics {
                    $($field: self.$field - earlier.$field,)*
                }
            }
        }

        impl AddAssign for Statistics {
            fn add_assign(&mut self, other: Self) {
                $(self.$field += other.$field;)*
            }
        }
    };
}

statistics! {
    reads: u64,
    writes: u64,
    flushes: u64,
    /// Sectors that were asked for.
    read_sectors: u64,
    /// Sectors that were handed over.
    written_sectors: u64,
    /// Reads and writes that begin where the one served before them ended.
    sequential: u64,
    /// Reads that the buffer or the write cache held.
    buffer_hits: u64,
    /// Reads whose rest the running read-ahead brought.
    stream_hits: u64,
    /// Writes that ended in the write cache.
    cached_writes: u64,
    /// Pieces that were brought from the write cache to the media, and what they took.
    destages: u64,
    /// Sectors of those pieces.
    destaged_sectors: u64,
    /// Time of those pieces, whether or not requests were served meanwhile.
    destaging: Time,
    /// From arrival to the beginning of service.
    queued: Time,
    /// From the beginning of service to the end, over all requests.
    service: Time,
    /// Of service: the controller.
    overhead: Time,
    /// Of service: the mechanism was finishing a change of track or a piece, or the write cache was full.
    held_up: Time,
    /// Of service: read-ahead was on its way to what was asked for.
    stream: Time,
    /// Of service: to the first track.
    seek: Time,
    /// Of service: waiting for the first sector there.
    rotation: Time,
    /// Of service: sectors under a head.
    transfer: Time,
    /// Of service: from track to track inside a request.
    switch: Time,
    /// Of service: the bus, as far as nothing else hides it.
    bus: Time,
    /// While it served a request, read ahead or destaged: each instant once.
    busy: Time,
}

impl Statistics {
    /// The sum of the parts of service.
    pub fn parts(&self) -> Time {
        self.overhead
            + self.held_up
            + self.stream
            + self.seek
            + self.rotation
            + self.transfer
            + self.switch
            + self.bus
    }
}
