//! The segments of the log.
//!
//! Invariants: a segment is *needed* if a recovery from the newest root reads it: the one that root names, all that
//! followed, the head's and the one reserved behind it. It is free if it is not needed and no durable place names
//! anything in it. Only free segments become needed.

use std::collections::BTreeSet;

use crate::icash::format::root::Head;
use crate::index::{LogBlock, LogSegment};

#[derive(Debug)]
pub struct Space {
    /// Blocks of a segment.
    pub segment_blocks: u32,
    pub head: Head,
    live_bytes: Vec<u64>,
    needed: BTreeSet<LogSegment>,
    free: BTreeSet<LogSegment>,
    /// Segments that could not be emptied because something in them cannot be read.
    stuck: BTreeSet<LogSegment>,
}

impl Space {
    /// So many segments without anything living in them. None is free before [`Space::checkpointed`].
    pub fn new(segments: u32, segment_blocks: u32, head: Head) -> Self {
        Space {
            segment_blocks,
            head,
            live_bytes: vec![0; segments as usize],
            needed: BTreeSet::from([head.segment, head.next]),
            free: BTreeSet::new(),
            stuck: BTreeSet::new(),
        }
    }

    pub fn segments(&self) -> u32 {
        self.live_bytes.len() as u32
    }

    /// Free segments, the lowest first.
    pub fn free(&self) -> &BTreeSet<LogSegment> {
        &self.free
    }

    /// Segments a recovery needs.
    pub fn needed(&self) -> &BTreeSet<LogSegment> {
        &self.needed
    }

    /// Bytes that durable places name in a segment.
    pub fn live_bytes(&self, segment: LogSegment) -> u64 {
        self.live_bytes[segment.index()]
    }

    /// A place in the log is named from now on.
    pub fn add_live(&mut self, block: LogBlock, bytes: u32) {
        let segment = block.segment(self.segment_blocks);
        self.live_bytes[segment.index()] += u64::from(bytes);
    }

    /// A place in the log is not named any more.
    pub fn remove_live(&mut self, block: LogBlock, bytes: u32) {
        let segment = block.segment(self.segment_blocks);
        self.live_bytes[segment.index()] -= u64::from(bytes);
        self.free_if_dead(segment);
    }

    /// A group was written up to `head`, which took these segments.
    pub fn advance(&mut self, head: Head, taken: &[LogSegment]) {
        self.head = head;
        for &segment in taken {
            self.free.remove(&segment);
            self.needed.insert(segment);
        }
    }

    /// A checkpoint was taken: a recovery begins at the head.
    pub fn checkpointed(&mut self) {
        self.needed = BTreeSet::from([self.head.segment, self.head.next]);
        LogSegment::first(self.segments()).for_each(|segment| self.free_if_dead(segment));
    }

    /// The segment that is cleaned with the least effort: few bytes live in it.
    pub fn victim(&self) -> Option<LogSegment> {
        let is_candidate = |segment: &LogSegment| {
            !self.needed.contains(segment)
                && !self.free.contains(segment)
                && !self.stuck.contains(segment)
        };
        let candidates = LogSegment::first(self.segments()).filter(is_candidate);
        candidates.min_by_key(|&segment| self.live_bytes(segment))
    }

    /// Something in a segment cannot be read, so it cannot be emptied.
    pub fn give_up(&mut self, segment: LogSegment) {
        self.stuck.insert(segment);
    }

    fn free_if_dead(&mut self, segment: LogSegment) {
        if self.live_bytes(segment) == 0 && !self.needed.contains(&segment) {
            self.free.insert(segment);
            self.stuck.remove(&segment);
        }
    }

    /// Recounts the segments, given the live bytes in each.
    pub fn check(&self, live: &[u64]) -> Result<(), String> {
        for segment in LogSegment::first(self.segments()) {
            let (counted, found) = (self.live_bytes(segment), live[segment.index()]);
            if counted != found {
                return Err(format!(
                    "segment {segment} of the log has {found} live bytes, {counted} are counted"
                ));
            }
            let is_free = counted == 0 && !self.needed.contains(&segment);
            if self.free.contains(&segment) != is_free {
                return Err(format!(
                    "segment {segment} of the log is free or not, and should be the other"
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_victim_is_the_segment_in_which_the_fewest_bytes_live() {
        let head = Head {
            segment: LogSegment(0),
            position: 0,
            next: LogSegment(1),
        };
        let mut space = Space::new(6, 4, head);
        for (segment, bytes) in [(0, 5), (2, 300), (3, 100), (4, 200)] {
            space.add_live(LogSegment(segment).block(0, 4), bytes);
        }
        space.checkpointed();
        // The head's has fewer, but is needed; the last one is free.
        assert_eq!(space.victim(), Some(LogSegment(3)));
        space.give_up(LogSegment(3));
        assert_eq!(space.victim(), Some(LogSegment(4)));
        space.remove_live(LogBlock(16), 200);
        assert_eq!(space.victim(), Some(LogSegment(2)));
        let free = space.free();
        assert!(free.contains(&LogSegment(4)) && free.contains(&LogSegment(5)));
    }
}
