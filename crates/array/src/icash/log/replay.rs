//! The groups behind a root, up to the first gap.
//!
//! A group counts if all its blocks are there and hold, it names the group before it, and the contents that follow
//! its blocks have the checksums its records say.

use std::collections::BTreeSet;

use crate::icash::format::block::{Block, RecordKind, epoch_of};
use crate::icash::format::root::Head;
use crate::icash::parameters::BLOCK_BYTES;
use crate::icash::place::{DataBlock, LogPlace};
use crate::index::{LogBlock, LogSegment};

/// A record that was found, without its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    pub kind: RecordKind,
    pub lba: u64,
    pub data: DataBlock,
    pub crc: u32,
    /// Where its content lies.
    pub at: LogPlace,
}

/// A group that counts.
#[derive(Debug)]
pub struct FoundGroup {
    pub group: u64,
    pub records: Vec<Found>,
    pub head: Head,
}

/// The sizes of the log, and the array it belongs to.
#[derive(Debug, Clone, Copy)]
pub struct LogShape {
    pub tag: u64,
    pub segments: u32,
    /// Blocks of one.
    pub segment_blocks: u32,
    /// The mount epoch that wrote the root. What another epoch began behind it does not count.
    pub epoch: u32,
}

impl LogShape {
    pub fn has(&self, segment: LogSegment) -> bool {
        segment.0 < self.segments
    }

    /// Reads the group that begins at `head` after group `previous`. `read` fills one block, or says that it cannot.
    pub fn next_group(
        &self,
        mut head: Head,
        previous: u64,
        read: &mut dyn FnMut(LogBlock, &mut [u8]) -> bool,
    ) -> Option<FoundGroup> {
        let mut group = None;
        let mut records = Vec::new();
        let mut bytes = vec![0; BLOCK_BYTES];
        for index in 0.. {
            if head.position >= self.segment_blocks {
                head.segment = head.next;
                head.position = 0;
            }
            if !self.has(head.segment) {
                return None;
            }
            let number = head.segment.block(head.position, self.segment_blocks);
            let block =
                read(number, &mut bytes).then(|| Block::parse(&bytes, self.tag, number))??;
            let belongs = block.head.index == index
                && block.head.previous == previous
                && block.head.group > previous
                && epoch_of(block.head.group) == self.epoch
                && block.head.group == *group.get_or_insert(block.head.group)
                && head.position + block.whole < self.segment_blocks
                && self.has(block.head.next_segment)
                && block.head.next_segment != head.segment;
            if !belongs {
                return None;
            }
            head.next = block.head.next_segment;
            head.position += 1 + block.whole;
            let is_last = block.head.is_last;
            if !collect(&block, number, read, &mut records) {
                return None;
            }
            if is_last {
                return Some(FoundGroup {
                    group: block.head.group,
                    records,
                    head,
                });
            }
        }
        None
    }
}

impl LogShape {
    /// Looks behind the last group that was found for a block that follows a later group: a group is begun only after
    /// the one before was durable, so that one has rotted. It looks at the rest of its segment, at the next one, and at
    /// those that blocks of groups which do not count name in turn.
    ///
    /// # Errors
    /// A sentence that says which group is missing.
    pub fn must_be_the_end(
        &self,
        head: Head,
        last: u64,
        read: &mut dyn FnMut(LogBlock, &mut [u8]) -> bool,
    ) -> Result<(), String> {
        let mut looked_at = BTreeSet::from([head.segment, head.next]);
        let mut segments = vec![(head.next, 0), (head.segment, head.position)];
        let mut bytes = vec![0; BLOCK_BYTES];
        while let Some((segment, position)) = segments.pop() {
            let exists = self.has(segment);
            for position in (position..self.segment_blocks).filter(|_| exists) {
                let number = segment.block(position, self.segment_blocks);
                let block =
                    read(number, &mut bytes).then(|| Block::parse(&bytes, self.tag, number));
                let Some(Some(Block { head, .. })) = block else {
                    continue;
                };
                if epoch_of(head.group) != self.epoch || head.group <= last {
                    continue;
                }
                if head.previous > last {
                    return Err(format!(
                        "group {:#x} of the log was durable and does not hold: block {number} of the log follows it, \
                         the last one found is {last:#x}",
                        head.previous
                    ));
                }
                if looked_at.insert(head.next_segment) {
                    segments.push((head.next_segment, 0));
                }
            }
        }
        Ok(())
    }
}

/// Adds the records of a block; false if the content of one does not follow it.
fn collect(
    block: &Block<'_>,
    number: LogBlock,
    read: &mut dyn FnMut(LogBlock, &mut [u8]) -> bool,
    records: &mut Vec<Found>,
) -> bool {
    let mut next_whole = number + 1;
    let mut content = vec![0; BLOCK_BYTES];
    for (record, payload_at) in &block.records {
        let mut at = LogPlace {
            block: number,
            offset: payload_at % BLOCK_BYTES as u16,
            bytes: record.payload.len() as u16,
        };
        if record.kind == RecordKind::Whole {
            (at.block, at.offset) = (next_whole, 0);
            if !read(next_whole, &mut content) || crc32fast::hash(&content) != record.crc {
                return false;
            }
            next_whole += 1;
        }
        records.push(Found {
            kind: record.kind,
            lba: record.lba,
            data: record.data,
            crc: record.crc,
            at,
        });
    }
    true
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::icash::format::block::group_of;
    use crate::icash::log::pack::{Group, Packed, Recorded, Unpacked, pack};
    use crate::index::ArrayBlock;

    const SHAPE: LogShape = LogShape {
        tag: 5,
        segments: 12,
        segment_blocks: 4,
        epoch: 3,
    };

    const HEAD: Head = Head {
        segment: LogSegment(7),
        position: 2,
        next: LogSegment(1),
    };

    fn group(epoch: u32, number: u64, previous: u64) -> Group {
        Group {
            tag: SHAPE.tag,
            group: group_of(epoch, number),
            previous,
            segment_blocks: SHAPE.segment_blocks,
        }
    }

    /// A record for each length; one that is too long for a delta is a whole block.
    fn records(lengths: &[usize]) -> Vec<Unpacked> {
        let record = |(index, &length): (usize, &usize)| {
            let is_whole = length > 2048;
            let payload = vec![index as u8; if is_whole { BLOCK_BYTES } else { length }];
            Unpacked {
                of: Recorded::Block(ArrayBlock(index as u32)),
                lba: index as u64,
                kind: if is_whole {
                    RecordKind::Whole
                } else {
                    RecordKind::Alone
                },
                data: DataBlock::NONE,
                crc: crc32fast::hash(&payload),
                payload,
            }
        };
        lengths.iter().enumerate().map(record).collect()
    }

    fn write(log: &mut BTreeMap<LogBlock, Vec<u8>>, packed: &Packed) {
        for (first, bytes) in &packed.writes {
            for (position, block) in (0..).zip(bytes.chunks(BLOCK_BYTES)) {
                log.insert(*first + position, block.to_vec());
            }
        }
    }

    fn next(log: &BTreeMap<LogBlock, Vec<u8>>, head: Head, previous: u64) -> Option<FoundGroup> {
        let mut read = |number: LogBlock, bytes: &mut [u8]| {
            let block = log.get(&number);
            block
                .inspect(|block| bytes.copy_from_slice(block))
                .is_some()
        };
        SHAPE.next_group(head, previous, &mut read)
    }

    proptest! {
        #[test]
        fn a_group_is_found_whole_or_not_at_all(
            lengths in prop::collection::vec(prop_oneof![3 => 3usize..300, 2 => 1500usize..2049, 1 => Just(4096usize)], 1..14),
            lost: prop::sample::Index,
        ) {
            let free: BTreeSet<LogSegment> = (2..7).chain(8..12).map(LogSegment).collect();
            let records = records(&lengths);
            let packed = pack(group(3, 1, 9), HEAD, &free, &records).expect("there is room");
            let mut log = BTreeMap::new();
            write(&mut log, &packed);
            prop_assert_eq!(log.len(), packed.blocks as usize);
            let found = next(&log, HEAD, 9).expect("it is there");
            prop_assert_eq!((found.group, found.head), (group_of(3, 1), packed.head));
            prop_assert_eq!(found.records.len(), records.len());
            for ((found, record), &at) in found.records.iter().zip(&records).zip(&packed.places) {
                prop_assert_eq!((found.kind, found.lba, found.crc), (record.kind, record.lba, record.crc));
                prop_assert_eq!(found.at, at);
                let block = &log[&at.block];
                let start = usize::from(at.offset);
                prop_assert_eq!(&block[start..start + record.payload.len()], &record.payload[..]);
            }
            prop_assert!(next(&log, HEAD, 8).is_none(), "it follows another group");
            let numbers: Vec<LogBlock> = log.keys().copied().collect();
            log.remove(lost.get(&numbers));
            prop_assert!(next(&log, HEAD, 9).is_none(), "a block is lost");
        }
    }

    /// A group of four segments whose first block has rotted, and one that follows it.
    #[test]
    fn a_long_group_that_rotted_is_missed_where_another_one_follows_it() {
        let free: BTreeSet<LogSegment> = (2..7).map(LogSegment).collect();
        let long = pack(group(3, 1, 9), HEAD, &free, &records(&[4096; 9])).unwrap();
        assert!(long.taken.len() >= 3);
        let free: BTreeSet<LogSegment> = (8..12).map(LogSegment).collect();
        let next_one = group(3, 2, group_of(3, 1));
        let behind = pack(next_one, long.head, &free, &records(&[50])).unwrap();
        for is_followed in [false, true] {
            let mut log = BTreeMap::new();
            write(&mut log, &long);
            if is_followed {
                write(&mut log, &behind);
            }
            log.remove(&HEAD.segment.block(HEAD.position, SHAPE.segment_blocks));
            let mut read = |number: LogBlock, bytes: &mut [u8]| {
                let block = log.get(&number);
                block
                    .inspect(|block| bytes.copy_from_slice(block))
                    .is_some()
            };
            assert!(SHAPE.next_group(HEAD, 9, &mut read).is_none());
            let is_end = SHAPE.must_be_the_end(HEAD, 9, &mut read);
            assert_eq!(is_end.is_err(), is_followed, "{is_end:?}");
        }
    }

    #[test]
    fn a_group_of_another_epoch_does_not_count() {
        let packed = pack(group(2, 1, 9), HEAD, &BTreeSet::new(), &records(&[50])).unwrap();
        let mut log = BTreeMap::new();
        write(&mut log, &packed);
        assert!(next(&log, HEAD, 9).is_none());
    }

    #[test]
    fn a_group_finds_no_room_when_no_segment_is_free() {
        let lengths = [2000; 9];
        assert!(pack(group(3, 1, 9), HEAD, &BTreeSet::new(), &records(&lengths)).is_none());
        assert!(
            pack(
                group(3, 1, 9),
                HEAD,
                &BTreeSet::from([3, 4].map(LogSegment)),
                &records(&lengths)
            )
            .is_some()
        );
    }
}
