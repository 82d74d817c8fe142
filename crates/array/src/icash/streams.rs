//! Sequential streams among accesses: runs of blocks that are read, or written, one after the other.
//!
//! Invariant: at most [`STREAMS`] are known. A new one takes the place of the one that went on longest ago, so that many
//! single accesses may hide a stream that pauses; it is found again when it goes on.

use crate::index::ArrayBlock;

/// Streams that are known at once (chosen here, as many clients read files at the same time).
const STREAMS: usize = 64;

#[derive(Debug, Clone, Copy)]
struct Stream {
    is_write: bool,
    /// The block that it goes on with.
    next: ArrayBlock,
    blocks: u32,
    /// When it went on last, counted in accesses.
    last: u64,
}

#[derive(Debug, Default)]
pub struct Streams {
    known: Vec<Stream>,
    accesses: u64,
}

impl Streams {
    /// Notes an access to a block. How many blocks the stream has that it belongs to, this one too.
    pub fn note(&mut self, block: ArrayBlock, is_write: bool) -> u32 {
        self.accesses += 1;
        // A block that is accessed again, as by requests of less than a block, is no new one.
        let goes_on = |stream: &&mut Stream| {
            stream.is_write == is_write
                && (stream.next == block || block.0.checked_add(1) == Some(stream.next.0))
        };
        let known = self.known.iter_mut().filter(goes_on);
        if let Some(stream) = known.max_by_key(|stream| stream.blocks) {
            stream.blocks += u32::from(stream.next == block);
            stream.next = behind(block);
            stream.last = self.accesses;
            return stream.blocks;
        }
        let new = Stream {
            is_write,
            next: behind(block),
            blocks: 1,
            last: self.accesses,
        };
        if self.known.len() < STREAMS {
            self.known.push(new);
        } else if let Some(oldest) = self.known.iter_mut().min_by_key(|stream| stream.last) {
            *oldest = new;
        }
        1
    }
}

/// The block behind one.
fn behind(block: ArrayBlock) -> ArrayBlock {
    ArrayBlock(block.0.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_followed_side_by_side_reads_and_writes_apart() {
        let mut streams = Streams::default();
        for number in 0..100 {
            assert_eq!(streams.note(ArrayBlock(number), false), number + 1);
            assert_eq!(streams.note(ArrayBlock(5000 + number), false), number + 1);
            assert_eq!(streams.note(ArrayBlock(number), true), number + 1);
            // By no stream, and no more than fit beside the three.
            if number % 2 == 0 {
                assert_eq!(streams.note(ArrayBlock(90_000 + 7 * number), false), 1);
            }
        }
        assert_eq!(streams.note(ArrayBlock(102), false), 1);
        assert_eq!(
            streams.note(ArrayBlock(5100), true),
            1,
            "only reads came there"
        );
        assert_eq!(streams.note(ArrayBlock(100), false), 101);
    }

    #[test]
    fn a_block_that_is_accessed_again_ends_no_stream_and_makes_it_no_longer() {
        let mut streams = Streams::default();
        for block in 0..10 {
            for _ in 0..8 {
                assert_eq!(streams.note(ArrayBlock(block), true), block + 1);
            }
        }
        assert_eq!(streams.known.len(), 1);
        assert_eq!(streams.note(ArrayBlock(u32::MAX), true), 1);
        assert_eq!(streams.note(ArrayBlock(u32::MAX), true), 2);
    }

    #[test]
    fn the_one_that_paused_longest_is_forgotten() {
        let mut streams = Streams::default();
        streams.note(ArrayBlock(0), false);
        streams.note(ArrayBlock(1), false);
        for number in 0..STREAMS as u32 - 1 {
            streams.note(ArrayBlock(10_000 + 9 * number), false);
        }
        assert_eq!(streams.note(ArrayBlock(2), false), 3);
        for number in 0..STREAMS as u32 {
            streams.note(ArrayBlock(20_000 + 9 * number), false);
        }
        assert_eq!(streams.note(ArrayBlock(3), false), 1);
    }
}
