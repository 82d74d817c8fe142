//! Requests that have begun, and what those did that have ended, in the order in which they began.
//!
//! Invariant: the first request of the queue has not ended; times never decrease.

use std::collections::VecDeque;

use flashlore_trace::Op;
use flashlore_trace::digests::Digest;
use flashlore_trace::pages::PAGE_BYTES;
use flashlore_trace::record::MAX_TRANSFER_BYTES;
use flashlore_volume::disk::filters::record::Done;

static ZEROES: [u8; PAGE_BYTES] = [0; PAGE_BYTES];

/// What a record says, but for time and content. Bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub op: Op,
    pub offset: u64,
    pub length: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
    /// Nobody wants them, or there are none.
    Unwanted,
    Zeroes,
    Bytes(Vec<u8>),
}

/// A record to be, with the digests of its pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PendingRecord {
    pub head: Head,
    pub digests: Vec<Digest>,
    pub content: Content,
}

/// The digest of a page: the first half of its BLAKE3.
fn digest(page: &[u8]) -> Digest {
    let mut digest = [0; 16];
    digest.copy_from_slice(&blake3::hash(page).as_bytes()[..16]);
    digest
}

/// What a request did as records, their bytes kept if they are wanted.
pub(super) fn entries(done: &[Done<'_>], wanted: bool) -> Vec<PendingRecord> {
    let mut entries = Vec::new();
    for done in done {
        match *done {
            Done::Flush => entries.push(PendingRecord::without_content(Op::Flush, 0, 0)),
            Done::Trim(offset, length) => {
                entries.push(PendingRecord::without_content(Op::Trim, offset, length));
            }
            Done::Read(offset, bytes) => add_bytes(&mut entries, Op::Read, offset, bytes, wanted),
            Done::Write(offset, bytes) => add_bytes(&mut entries, Op::Write, offset, bytes, wanted),
            Done::Zero(offset, length) => add_zeroes(&mut entries, offset, length, wanted),
        }
    }
    entries
}

/// Adds a read or write, in several records where it is longer than one may be.
fn add_bytes(entries: &mut Vec<PendingRecord>, op: Op, offset: u64, bytes: &[u8], wanted: bool) {
    let pieces = bytes.chunks(MAX_TRANSFER_BYTES as usize);
    for (at, piece) in (offset..).step_by(MAX_TRANSFER_BYTES as usize).zip(pieces) {
        entries.push(PendingRecord {
            head: Head {
                op,
                offset: at,
                length: piece.len() as u64,
            },
            digests: piece.chunks(PAGE_BYTES).map(digest).collect(),
            content: match wanted {
                true => Content::Bytes(piece.to_vec()),
                false => Content::Unwanted,
            },
        });
    }
}

/// Adds a write of zeroes, in several records where it is longer than one may be.
fn add_zeroes(entries: &mut Vec<PendingRecord>, offset: u64, length: u64, wanted: bool) {
    let zero = digest(&ZEROES);
    let end = offset + length;
    for at in (offset..end).step_by(MAX_TRANSFER_BYTES as usize) {
        let length = (end - at).min(MAX_TRANSFER_BYTES);
        entries.push(PendingRecord {
            head: Head {
                op: Op::Write,
                offset: at,
                length,
            },
            digests: vec![zero; length as usize / PAGE_BYTES],
            content: match wanted {
                true => Content::Zeroes,
                false => Content::Unwanted,
            },
        });
    }
}

impl PendingRecord {
    fn without_content(op: Op, offset: u64, length: u64) -> PendingRecord {
        PendingRecord {
            head: Head { op, offset, length },
            digests: Vec::new(),
            content: Content::Unwanted,
        }
    }

    /// The bytes of a page; zeroes where none were kept.
    pub fn page(&self, index: usize) -> &[u8] {
        match &self.content {
            Content::Bytes(bytes) => &bytes[index * PAGE_BYTES..(index + 1) * PAGE_BYTES],
            Content::Zeroes | Content::Unwanted => &ZEROES,
        }
    }

    /// Bytes of memory, about.
    fn held(&self) -> usize {
        let bytes = match &self.content {
            Content::Bytes(bytes) => bytes.len(),
            Content::Zeroes | Content::Unwanted => 0,
        };
        size_of::<PendingRecord>() + self.digests.len() * size_of::<Digest>() + bytes
    }
}

/// A request: when it began, and what it did once it has ended.
#[derive(Debug)]
struct Slot {
    time: u64,
    done: Option<Vec<PendingRecord>>,
}

/// What requests did, with the times at which they began.
pub(super) type Timed = Vec<(u64, Vec<PendingRecord>)>;

/// The requests from the first that has not ended on.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// The number of the first of them.
    first: u64,
    slots: VecDeque<Slot>,
    last_time: u64,
    held: usize,
}

fn held(entries: &[PendingRecord]) -> usize {
    size_of::<Slot>() + entries.iter().map(PendingRecord::held).sum::<usize>()
}

impl Order {
    /// Bytes of what waits for an earlier request.
    pub fn held(&self) -> usize {
        self.held
    }

    /// A request begins; its number.
    pub fn begin(&mut self, now: u64) -> u64 {
        self.last_time = self.last_time.max(now);
        self.slots.push_back(Slot {
            time: self.last_time,
            done: None,
        });
        self.first + self.slots.len() as u64 - 1
    }

    /// A request ended. What is complete now, in order.
    pub fn end_of(&mut self, number: u64, entries: Vec<PendingRecord>) -> Timed {
        let at = number.checked_sub(self.first);
        if let Some(slot) = at.and_then(|at| self.slots.get_mut(at as usize)) {
            self.held += held(&entries);
            slot.done = Some(entries);
        }
        let mut complete = Vec::new();
        while let Some(slot) = self.slots.front_mut() {
            let Some(entries) = slot.done.take() else {
                break;
            };
            let time = slot.time;
            self.slots.pop_front();
            self.first += 1;
            self.held -= held(&entries);
            complete.push((time, entries));
        }
        complete
    }

    /// Gives everything up. What the requests did that have ended, in order, and how many have not.
    pub fn end(&mut self) -> (Timed, u64) {
        let slots = std::mem::take(self).slots;
        let all = slots.len();
        let ended = slots.into_iter();
        let ended: Timed = ended.filter_map(|s| Some((s.time, s.done?))).collect();
        let unfinished = (all - ended.len()) as u64;
        (ended, unfinished)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flush() -> Vec<PendingRecord> {
        entries(&[Done::Flush], false)
    }

    #[test]
    fn what_ends_early_waits_for_its_turn() {
        let mut order = Order::default();
        let numbers: Vec<u64> = [5, 7, 6].map(|now| order.begin(now)).into();
        assert!(order.end_of(numbers[1], flush()).is_empty());
        assert!(order.end_of(numbers[2], Vec::new()).is_empty());
        assert!(order.held() > 0);
        let complete = order.end_of(numbers[0], flush());
        // A clock that went back does not.
        let expected = [(5, flush()), (7, flush()), (7, Vec::new())];
        assert_eq!(complete, expected);
        assert_eq!(order.held(), 0);
        order.begin(8);
        let late = order.begin(9);
        assert!(order.end_of(late, flush()).is_empty());
        assert_eq!(order.end(), (vec![(9, flush())], 1));
    }

    #[test]
    fn long_writes_of_zeroes_are_cut_into_records_that_a_trace_may_have() {
        let length = 2 * MAX_TRANSFER_BYTES + 8192;
        let entries = entries(&[Done::Zero(4096, length)], true);
        let lengths: Vec<u64> = entries.iter().map(|e| e.head.length).collect();
        assert_eq!(lengths, [MAX_TRANSFER_BYTES, MAX_TRANSFER_BYTES, 8192]);
        assert_eq!(entries[2].head.offset, 4096 + 2 * MAX_TRANSFER_BYTES);
        assert_eq!(entries[2].digests.len(), 2);
    }
}
