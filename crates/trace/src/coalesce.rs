//! Records that were one request become one again.
//!
//! Some traces have a record for each page. A record *continues* the one before it if it has its device and
//! operation, begins where it ends, arrives at most the given time after the first of them, and both tell their
//! content, and their R_c, or neither does. The joined record has the time of its first.
//!
//! Invariant: between two calls at most one record is held back, the last one, which the next may continue.

use crate::error::Result;
use crate::record::{Batch, MAX_TRANSFER_BYTES, Op, Record, UNIT_BYTES};

/// Joins records as they are read.
#[derive(Debug)]
pub(crate) struct Coalescer {
    within_ns: u64,
    /// Records as they are read.
    read: Batch,
    /// The record held back, or none.
    held: Batch,
}

impl Coalescer {
    /// Joins what arrives at most so long after the first record of a request.
    pub(crate) fn new(within_ns: u64) -> Self {
        Coalescer {
            within_ns,
            read: Batch::default(),
            held: Batch::default(),
        }
    }

    /// Forgets what is held back, as before the first record.
    pub(crate) fn rewind(&mut self) {
        self.held.clear();
    }

    /// Replaces the contents of `batch` with the next joined records and adds to `joined` how many continue another;
    /// false, and no record, at the end. `next` is where the records come from.
    pub(crate) fn next_batch(
        &mut self,
        batch: &mut Batch,
        joined: &mut u64,
        mut next: impl FnMut(&mut Batch) -> Result<bool>,
    ) -> Result<bool> {
        batch.copy_from(&self.held);
        self.held.clear();
        while batch.len() < 2 {
            if !next(&mut self.read)? {
                return Ok(!batch.is_empty());
            }
            for record in self.read.iter() {
                if batch
                    .last()
                    .is_some_and(|last| self.continues(&last, &record))
                {
                    batch.extend_last(&record);
                    *joined += 1;
                } else {
                    batch.push(&record);
                }
            }
        }
        if let Some(last) = batch.last() {
            self.held.push(&last);
        }
        batch.pop();
        Ok(true)
    }

    fn continues(&self, last: &Record<'_>, record: &Record<'_>) -> bool {
        let per_chunk = last.content.is_some() || last.delta_ratios.is_some();
        record.op == last.op
            && record.op != Op::Flush
            && record.device == last.device
            && Some(record.offset) == last.offset.checked_add(last.length)
            && record.time_ns - last.time_ns <= self.within_ns
            && last.length.saturating_add(record.length) <= MAX_TRANSFER_BYTES
            && record.content.is_some() == last.content.is_some()
            && record.delta_ratios.is_some() == last.delta_ratios.is_some()
            // Chunks are counted from the first byte of a record.
            && (!per_chunk || last.length.is_multiple_of(UNIT_BYTES))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// One record in a form of its own: what an oracle can join.
    #[derive(Debug, Clone, PartialEq)]
    struct Plain {
        time_ns: u64,
        device: u32,
        op: Op,
        offset: u64,
        length: u64,
        content: Option<Vec<u32>>,
        ratios: Option<Vec<u16>>,
    }

    impl Plain {
        fn of(record: &Record<'_>) -> Plain {
            Plain {
                time_ns: record.time_ns,
                device: record.device,
                op: record.op,
                offset: record.offset,
                length: record.length,
                content: record.content.map(<[u32]>::to_vec),
                ratios: record.delta_ratios.map(<[u16]>::to_vec),
            }
        }

        fn record(&self) -> Record<'_> {
            Record {
                time_ns: self.time_ns,
                device: self.device,
                op: self.op,
                offset: self.offset,
                length: self.length,
                content: self.content.as_deref(),
                delta_ratios: self.ratios.as_deref(),
            }
        }
    }

    /// Records whose addresses often continue each other.
    fn records() -> impl Strategy<Value = Vec<Plain>> {
        let one = (0u64..4, 0u32..2, 0u32..4, 0u64..3, 1u64..4, 0u32..3);
        prop::collection::vec(one, 0..60).prop_map(|draws| {
            let (mut time_ns, mut end) = (0, 0);
            let mut records = Vec::new();
            for (n, (gap, device, op, jump, pages, known)) in (0u32..).zip(draws) {
                time_ns += gap;
                let op = Op::from_number(op).unwrap();
                let short = u64::from(n % 7 == 0) * 512;
                let length = pages * UNIT_BYTES - short;
                let offset = if jump == 0 {
                    64 * UNIT_BYTES * u64::from(n)
                } else {
                    end
                };
                let (offset, length) = if op == Op::Flush {
                    (0, 0)
                } else {
                    (offset, length)
                };
                let transfers = matches!(op, Op::Read | Op::Write);
                records.push(Plain {
                    time_ns,
                    device,
                    op,
                    offset,
                    length,
                    content: (transfers && known > 0)
                        .then(|| (0..pages as u32).map(|p| 10 * n + p).collect()),
                    ratios: (op == Op::Write && known > 1)
                        .then(|| vec![1 + n as u16; pages as usize]),
                });
                end = offset + length;
            }
            records
        })
    }

    /// The records as they come out, read in batches of `size`.
    fn coalesced(records: &[Plain], within_ns: u64, size: usize) -> (Vec<Plain>, u64) {
        let mut parts = records.chunks(size);
        let mut next = |batch: &mut Batch| {
            batch.clear();
            let part = parts.next();
            part.into_iter()
                .flatten()
                .for_each(|plain| batch.push(&plain.record()));
            Ok(part.is_some())
        };
        let (mut coalescer, mut out, mut joined) = (Coalescer::new(within_ns), Vec::new(), 0);
        let mut batch = Batch::default();
        while coalescer
            .next_batch(&mut batch, &mut joined, &mut next)
            .unwrap()
        {
            assert!(!batch.is_empty());
            out.extend(batch.iter().map(|record| Plain::of(&record)));
        }
        assert!(batch.is_empty());
        (out, joined)
    }

    /// Joined records one by one, as the head of this file says it.
    fn oracle(records: &[Plain], within_ns: u64) -> Vec<Plain> {
        let mut out: Vec<Plain> = Vec::new();
        for next in records {
            let Some(last) = out.last_mut() else {
                out.push(next.clone());
                continue;
            };
            let alike = (last.device, last.op) == (next.device, next.op) && last.op != Op::Flush;
            let told = |plain: &Plain| (plain.content.is_some(), plain.ratios.is_some());
            let whole = told(last) == (false, false) || last.length % UNIT_BYTES == 0;
            let near = last.offset + last.length == next.offset
                && next.time_ns <= last.time_ns + within_ns;
            if alike && near && whole && told(last) == told(next) {
                last.length += next.length;
                last.content
                    .iter_mut()
                    .for_each(|all| all.extend(next.content.iter().flatten()));
                last.ratios
                    .iter_mut()
                    .for_each(|all| all.extend(next.ratios.iter().flatten()));
            } else {
                out.push(next.clone());
            }
        }
        out
    }

    proptest! {
        #[test]
        fn joins_what_the_rule_joins_wherever_batches_end(records in records(), within in 0u64..6, size in 1usize..9) {
            let (found, joined) = coalesced(&records, within, size);
            prop_assert_eq!(joined as usize, records.len() - found.len());
            prop_assert_eq!(found, oracle(&records, within));
        }
    }

    #[test]
    fn a_request_is_no_longer_than_the_longest_that_is_taken() {
        let half = |n| Plain {
            time_ns: 0,
            device: 0,
            op: Op::Read,
            offset: n * MAX_TRANSFER_BYTES / 2,
            length: MAX_TRANSFER_BYTES / 2,
            content: None,
            ratios: None,
        };
        let (found, joined) = coalesced(&[half(0), half(1), half(2)], 0, 2);
        let lengths: Vec<u64> = found.iter().map(|plain| plain.length).collect();
        assert_eq!(
            (lengths, joined),
            (vec![MAX_TRANSFER_BYTES, MAX_TRANSFER_BYTES / 2], 1)
        );
    }
}
