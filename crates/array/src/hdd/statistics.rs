//! What a disk has done. Durations are in nanoseconds.
//!
//! Invariant: the parts of service add up to `service`.

use super::Time;
use crate::counts::counts;

counts! {
    /// Counts and durations since the disk was made, or their sums over disks.
    pub struct DiskStatistics {
        pub reads: u64,
        pub writes: u64,
        pub flushes: u64,
        /// Sectors that were asked for.
        pub read_sectors: u64,
        /// Sectors that were handed over.
        pub written_sectors: u64,
        /// Reads and writes that begin where the one served before them ended.
        pub sequential: u64,
        /// Reads that the buffer or the write cache held.
        pub buffer_hits: u64,
        /// Reads whose rest the running read-ahead brought.
        pub stream_hits: u64,
        /// Writes that ended in the write cache.
        pub cached_writes: u64,
        /// Pieces that were brought from the write cache to the media, and what they took.
        pub destages: u64,
        /// Sectors of those pieces.
        pub destaged_sectors: u64,
        /// Time of those pieces, whether or not requests were served meanwhile.
        pub destaging: Time,
        /// From arrival to the beginning of service.
        pub queued: Time,
        /// From the beginning of service to the end, over all requests.
        pub service: Time,
        /// Of service: the controller.
        pub overhead: Time,
        /// Of service: the mechanism was finishing a change of track or a piece, or the write cache was full.
        pub held_up: Time,
        /// Of service: read-ahead was on its way to what was asked for.
        pub stream: Time,
        /// Of service: to the first track.
        pub seek: Time,
        /// Of service: waiting for the first sector there.
        pub rotation: Time,
        /// Of service: sectors under a head.
        pub transfer: Time,
        /// Of service: from track to track inside a request.
        pub switch: Time,
        /// Of service: the bus, as far as nothing else hides it.
        pub bus: Time,
        /// While it served a request, read ahead or destaged: each instant once.
        pub busy: Time,
    }
}

impl DiskStatistics {
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
