//! RAM for deltas: chains of segments of 64 bytes, within a budget.
//!
//! Invariants: every segment is free or belongs to one chain; a chain of n bytes has n / 64 segments, rounded up.

use crate::icash::parameters::SEGMENT_BYTES;
use crate::index::index;

index!(
    /// A segment of RAM for deltas.
    RamSegment
);

/// Behind the last segment of a list.
const END: RamSegment = RamSegment(u32::MAX);

/// Bytes in a list of segments. Whoever holds it gives it back with [`Segments::free`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chain {
    first: RamSegment,
    bytes: u16,
}

impl Chain {
    pub fn bytes(&self) -> usize {
        self.bytes.into()
    }

    pub fn segments(&self) -> u32 {
        segments_of(self.bytes())
    }
}

/// Segments that so many bytes take.
pub fn segments_of(bytes: usize) -> u32 {
    bytes.div_ceil(SEGMENT_BYTES) as u32
}

#[derive(Debug)]
pub struct Segments {
    bytes: Vec<[u8; SEGMENT_BYTES]>,
    /// The segment that follows in its chain, or in the list of free ones.
    next: Vec<RamSegment>,
    first_free: RamSegment,
    used: u32,
    most_used: u32,
    budget: u32,
}

impl Segments {
    /// At most so many segments. Their memory is taken when they are used first.
    pub fn new(budget: u32) -> Self {
        Segments {
            bytes: Vec::new(),
            next: Vec::new(),
            first_free: END,
            used: 0,
            most_used: 0,
            budget,
        }
    }

    pub fn used(&self) -> u32 {
        self.used
    }

    /// The most that were ever in use.
    pub fn most_used(&self) -> u32 {
        self.most_used
    }

    /// Segments that may still be used.
    pub fn left(&self) -> u32 {
        self.budget - self.used
    }

    /// Stores bytes, at most 65,535; nothing if the budget is spent.
    pub fn store(&mut self, bytes: &[u8]) -> Option<Chain> {
        let wanted = segments_of(bytes.len());
        let length = u16::try_from(bytes.len()).ok()?;
        if wanted > self.left() {
            return None;
        }
        let mut first = END;
        for part in bytes.chunks(SEGMENT_BYTES).rev() {
            let segment = self.take();
            self.bytes[segment.index()][..part.len()].copy_from_slice(part);
            self.next[segment.index()] = first;
            first = segment;
        }
        self.used += wanted;
        self.most_used = self.most_used.max(self.used);
        Some(Chain {
            first,
            bytes: length,
        })
    }

    /// Puts the bytes of a chain in `out`, in place of what it holds.
    pub fn read(&self, chain: Chain, out: &mut Vec<u8>) {
        out.clear();
        let mut segment = chain.first;
        while segment != END {
            out.extend_from_slice(&self.bytes[segment.index()]);
            segment = self.next[segment.index()];
        }
        out.truncate(chain.bytes());
    }

    /// Gives the segments of a chain back.
    pub fn free(&mut self, chain: Chain) {
        self.used -= chain.segments();
        let mut segment = chain.first;
        while segment != END {
            let next = self.next[segment.index()];
            self.next[segment.index()] = self.first_free;
            self.first_free = segment;
            segment = next;
        }
    }

    fn take(&mut self) -> RamSegment {
        if self.first_free == END {
            self.bytes.push([0; SEGMENT_BYTES]);
            self.next.push(END);
            return RamSegment(self.next.len() as u32 - 1);
        }
        let segment = self.first_free;
        self.first_free = self.next[segment.index()];
        segment
    }

    pub fn heap_bytes(&self) -> usize {
        self.bytes.capacity() * SEGMENT_BYTES + self.next.capacity() * size_of::<RamSegment>()
    }

    /// Recounts the segments, given all chains there are.
    pub fn check(&self, chains: impl Iterator<Item = Chain>) -> Result<(), String> {
        let mut taken = vec![false; self.next.len()];
        let mut walk = |mut segment: RamSegment, whose: &str| {
            let mut count = 0;
            while segment != END {
                if std::mem::replace(&mut taken[segment.index()], true) {
                    return Err(format!("segment {segment} is in two lists, one {whose}"));
                }
                count += 1;
                segment = self.next[segment.index()];
            }
            Ok(count)
        };
        let mut used = 0;
        for chain in chains {
            let found = walk(chain.first, "a chain")?;
            if found != chain.segments() {
                return Err(format!(
                    "a chain of {} bytes has {found} segments, expected {}",
                    chain.bytes,
                    chain.segments()
                ));
            }
            used += found;
        }
        let free = walk(self.first_free, "free")?;
        if used != self.used || used + free != self.next.len() as u32 || used > self.budget {
            return Err(format!(
                "{used} segments are in chains and {free} free of {}, {} are counted, {} may be",
                self.next.len(),
                self.used,
                self.budget
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn chains_keep_their_bytes(steps in prop::collection::vec((any::<bool>(), 0usize..300, any::<u8>()), 0..60)) {
            let mut segments = Segments::new(20);
            let mut model: Vec<(Chain, Vec<u8>)> = Vec::new();
            for (stores, number, byte) in steps {
                if stores {
                    let bytes: Vec<u8> = (0..number).map(|n| byte.wrapping_add(n as u8)).collect();
                    let room = number.div_ceil(64) as u32 <= segments.left();
                    let chain = segments.store(&bytes);
                    prop_assert_eq!(chain.is_some(), room);
                    model.extend(chain.map(|chain| (chain, bytes)));
                } else if !model.is_empty() {
                    let (chain, _) = model.swap_remove(number % model.len());
                    segments.free(chain);
                }
                segments.check(model.iter().map(|m| m.0)).map_err(TestCaseError::fail)?;
                let mut found = Vec::new();
                for (chain, bytes) in &model {
                    segments.read(*chain, &mut found);
                    prop_assert_eq!(&found, bytes);
                }
            }
            let most = segments.most_used();
            prop_assert!(most <= 20 && most >= segments.used());
        }
    }
}
