//! Encoding and decoding of one block: its delta from another of its family, and by itself.

use std::rc::Rc;
use std::time::Duration;

use cpu_time::ThreadTime;
use flashlore_array::icash::parameters::DELTA_LIMIT;
use flashlore_delta::{Codec, Encoder, Page, decode};

use crate::contents::content;
use crate::{Row, Table};

/// Times each pair is encoded in a round.
const TURNS: usize = 20;

/// A block's content, and an earlier one of the same block, which is at the same time what a reference of its family
/// is: the same but for a few short parts.
type Pairs = Rc<Vec<(Page, Page)>>;

pub fn table(full: bool) -> Table {
    let count = if full { 2000 } else { 50 };
    let pairs: Pairs = Rc::new(
        (0..count)
            .map(|block| (content(block, 1), content(block, 2)))
            .collect(),
    );
    let mut rows = Vec::new();
    for codec in [Codec::Copy, Codec::Lz4] {
        for is_delta in [true, false] {
            for is_encoding in [true, false] {
                rows.push(row(codec, is_delta, is_encoding, pairs.clone()));
            }
        }
    }
    let control = rows
        .iter()
        .position(|row| row.name == "Copy, alone, encode");
    Table {
        what: "an encoding or a decoding of one block",
        rows,
        control: control.expect("it was just made"),
    }
}

fn row(codec: Codec, is_delta: bool, is_encoding: bool, pairs: Pairs) -> Row {
    let what = if is_delta { "delta" } else { "alone" };
    let doing = if is_encoding { "encode" } else { "decode" };
    Row {
        name: format!("{codec:?}, {what}, {doing}"),
        run: Box::new(move |hasher| {
            let mut encoder = Encoder::new();
            let mut encode = |(base, page): &(Page, Page)| -> Option<Vec<u8>> {
                let bytes = match is_delta {
                    true => encoder.delta(codec, base, page, DELTA_LIMIT),
                    false => encoder.alone(codec, page, DELTA_LIMIT),
                };
                bytes.map(<[u8]>::to_vec)
            };
            let bodies: Vec<_> = pairs.iter().map(&mut encode).collect();
            for body in bodies.iter().flatten() {
                hasher.update(body);
            }
            match is_encoding {
                true => encoding(&pairs, encode),
                false => decoding(&pairs, &bodies, is_delta),
            }
        }),
    }
}

fn encoding(
    pairs: &[(Page, Page)],
    mut encode: impl FnMut(&(Page, Page)) -> Option<Vec<u8>>,
) -> (Duration, u64) {
    let begin = ThreadTime::now();
    for _ in 0..TURNS {
        for pair in pairs {
            std::hint::black_box(encode(pair));
        }
    }
    (begin.elapsed(), (TURNS * pairs.len()) as u64)
}

fn decoding(pairs: &[(Page, Page)], bodies: &[Option<Vec<u8>>], is_delta: bool) -> (Duration, u64) {
    let mut page = [0; 4096];
    let mut count = 0;
    let begin = ThreadTime::now();
    for _ in 0..TURNS {
        for ((base, new), body) in pairs.iter().zip(bodies) {
            let Some(body) = body else { continue };
            decode(body, is_delta.then_some(base), &mut page).expect("what was encoded");
            assert_eq!(page[..8], new[..8]);
            count += 1;
        }
    }
    (begin.elapsed(), count)
}
