//! R_c of units from R_c of chunks.
//!
//! The chunks of a record that begins within a unit are no units: two units share a chunk. The bytes of
//! its delta are taken to lie evenly in it, and each unit gets those of its part, so that the units
//! of a record have together the bytes that its chunks have. A unit that the record touches in part has
//! no other delta.

use std::ops::Range;

use crate::overlay::FULL_RATIO;
use crate::record::{Record, UNIT_BYTES};

/// Appends R_c of every unit that a record touches, in 1/65535 and never 0. `ratios` are those of its
/// chunks.
pub(super) fn of_units(record: &Record<'_>, ratios: &[u16], out: &mut Vec<u16>) {
    let bytes = record.bytes();
    if !bytes.begins_within() {
        out.extend_from_slice(ratios);
        return;
    }
    for unit in bytes.touched() {
        let Range { start, end } = bytes.on(unit);
        let chunks = start / UNIT_BYTES..end.div_ceil(UNIT_BYTES);
        let ratio: u64 = chunks
            .map(|chunk| {
                let ratio = u64::from(ratios[chunk as usize]);
                part(record, chunk, ratio, end) - part(record, chunk, ratio, start)
            })
            .sum();
        out.push(ratio.clamp(1, u64::from(FULL_RATIO)) as u16);
    }
}

/// What of a chunk's ratio falls on its bytes before byte `end` of the record.
fn part(record: &Record<'_>, chunk: u64, ratio: u64, end: u64) -> u64 {
    let first = chunk * UNIT_BYTES;
    let length = (record.length - first).min(UNIT_BYTES);
    ratio * end.saturating_sub(first).min(length) / length
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::record::Op;

    fn units_of(offset: u64, length: u64, ratios: &[u16]) -> Vec<u16> {
        let record = Record {
            time_ns: 0,
            device: 0,
            op: Op::Write,
            offset,
            length,
            content: None,
            delta_ratios: Some(ratios),
        };
        let mut out = Vec::new();
        of_units(&record, ratios, &mut out);
        out
    }

    #[test]
    fn chunks_that_are_units_keep_their_ratios() {
        assert_eq!(units_of(8192, 8292, &[7, 65535, 3]), [7, 65535, 3]);
    }

    #[test]
    fn a_shifted_chunk_is_shared_by_two_units() {
        // A quarter of the chunk lies in the second unit.
        assert_eq!(units_of(1024, 4096, &[4000]), [3000, 1000]);
        // The last chunk has 1024 bytes, which all lie in the third unit with half of the second.
        assert_eq!(units_of(2048, 9216, &[100, 60, 9]), [50, 80, 39]);
        // Within one unit nothing is shared.
        assert_eq!(units_of(512, 512, &[9]), [9]);
    }

    proptest! {
        #[test]
        fn units_have_the_bytes_of_the_chunks(
            offset in 0u64..20_000,
            length in 1u64..40_000,
            seed in prop::collection::vec(100u16..8000, 10),
        ) {
            let ratios = &seed[..length.div_ceil(UNIT_BYTES) as usize];
            let units = units_of(offset, length, ratios);
            let end = (offset + length).div_ceil(UNIT_BYTES);
            prop_assert_eq!(units.len() as u64, end - offset / UNIT_BYTES);
            let sum = |all: &[u16]| all.iter().map(|&r| u64::from(r)).sum::<u64>();
            // A unit never has nothing, which can add 1 at either end.
            let more = sum(&units) - sum(ratios);
            prop_assert!(more <= 2, "{:?} of {:?}", units, ratios);
        }
    }
}
