//! The track buffer: segments, each with one run of sectors that were read.
//!
//! Invariants: a segment holds at most its size, the sectors read last; of the segments that hold or
//! border on a sector the one that reaches furthest is found, among equals the first.

/// A run of sectors; empty if it ends where it starts.
#[derive(Debug, Clone, Copy)]
struct Segment {
    start: u64,
    end: u64,
    /// The number of its last use; 0 if it was never used.
    used: u64,
}

#[derive(Debug, Clone)]
pub(super) struct SegmentBuffer {
    segments: Vec<Segment>,
    segment_sectors: u64,
    uses: u64,
}

impl SegmentBuffer {
    pub fn new(segments: u32, segment_sectors: u32) -> Self {
        let empty = Segment {
            start: 0,
            end: 0,
            used: 0,
        };
        SegmentBuffer {
            segments: vec![empty; segments as usize],
            segment_sectors: u64::from(segment_sectors),
            uses: 0,
        }
    }

    /// The segment that holds this sector or ends before it.
    pub fn find(&self, lba: u64) -> Option<usize> {
        let mut found: Option<usize> = None;
        for (index, segment) in self.segments.iter().enumerate() {
            let here = segment.start < segment.end && (segment.start..=segment.end).contains(&lba);
            if here && found.is_none_or(|best| segment.end > self.segments[best].end) {
                found = Some(index);
            }
        }
        found
    }

    pub fn end(&self, segment: usize) -> u64 {
        self.segments[segment].end
    }

    pub fn touch(&mut self, segment: usize) {
        self.uses += 1;
        self.segments[segment].used = self.uses;
    }

    /// Empties the segment that was used longest ago for a run that begins here. `None` without segments.
    pub fn replace(&mut self, start: u64) -> Option<usize> {
        let oldest = (0..self.segments.len()).min_by_key(|&index| self.segments[index].used)?;
        self.segments[oldest].start = start;
        self.segments[oldest].end = start;
        Some(oldest)
    }

    /// The run of a segment has grown up to `end`.
    pub fn grow(&mut self, segment: usize, end: u64) {
        let segment = &mut self.segments[segment];
        segment.end = end;
        segment.start = segment.start.max(end.saturating_sub(self.segment_sectors));
    }
}
