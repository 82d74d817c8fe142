//! Pages of many kinds through both codecs and back, and what becomes of damaged bytes.

mod exercise;

use flashlore_delta::{Codec, Encoder, HEADER_BYTES, PAGE_BYTES, Page, decode};
use proptest::collection::vec;
use proptest::prelude::*;

/// Bytes that look random.
fn noise(seed: u64) -> Page {
    let mut state = seed | 1;
    std::array::from_fn(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    })
}

/// Words of a small vocabulary.
fn text(seed: u64) -> Page {
    let words = [
        "page ", "block ", "erase ", "of ", "the\n", "program ", "victim ",
    ];
    let draws = noise(seed);
    let drawn = draws
        .iter()
        .flat_map(|draw| words[usize::from(*draw) % words.len()].bytes());
    let mut page = [0; PAGE_BYTES];
    page.iter_mut()
        .zip(drawn)
        .for_each(|(into, byte)| *into = byte);
    page
}

/// Bytes moved towards the end from `at` on by `by`, which are `filler` then.
fn inserted(page: &Page, at: usize, by: usize, filler: u8) -> Page {
    let mut shifted = *page;
    let by = by.min(PAGE_BYTES - at);
    shifted.copy_within(at..PAGE_BYTES - by, at + by);
    shifted[at..at + by].fill(filler);
    shifted
}

fn deleted(page: &Page, at: usize, by: usize) -> Page {
    let mut shifted = *page;
    let by = by.min(PAGE_BYTES - at);
    shifted.copy_within(at + by.., at);
    shifted
}

fn page() -> impl Strategy<Value = Page> {
    prop_oneof![
        Just([0; PAGE_BYTES]),
        any::<u8>().prop_map(|byte| [byte; PAGE_BYTES]),
        any::<u64>().prop_map(noise),
        any::<u64>().prop_map(text),
        vec(0..4_u8, PAGE_BYTES).prop_map(|bytes| bytes.try_into().expect("a page")),
        (any::<u64>(), 0..PAGE_BYTES).prop_map(|(seed, used)| {
            let mut page = noise(seed);
            page[used..].fill(0);
            page
        }),
    ]
}

#[derive(Debug, Clone)]
enum Edit {
    Set(usize, Vec<u8>),
    Insert(usize, usize, u8),
    Delete(usize, usize),
    Move(usize, usize, usize),
}

fn edit() -> impl Strategy<Value = Edit> {
    let at = || 0..PAGE_BYTES;
    prop_oneof![
        (at(), vec(any::<u8>(), 1..40)).prop_map(|(at, bytes)| Edit::Set(at, bytes)),
        (at(), 1..300_usize, any::<u8>()).prop_map(|(at, by, byte)| Edit::Insert(at, by, byte)),
        (at(), 1..300_usize).prop_map(|(at, by)| Edit::Delete(at, by)),
        (at(), at(), 1..900_usize).prop_map(|(from, to, bytes)| Edit::Move(from, to, bytes)),
    ]
}

fn edited(page: &Page, edits: &[Edit]) -> Page {
    edits.iter().fold(*page, |mut page, edit| match edit {
        Edit::Set(at, bytes) => {
            page[*at..]
                .iter_mut()
                .zip(bytes)
                .for_each(|(into, byte)| *into = *byte);
            page
        }
        Edit::Insert(at, by, byte) => inserted(&page, *at, *by, *byte),
        Edit::Delete(at, by) => deleted(&page, *at, *by),
        Edit::Move(from, to, bytes) => {
            let bytes = *bytes.min(&(PAGE_BYTES - from.max(to)));
            page.copy_within(*from..from + bytes, *to);
            page
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn edited_pages_come_back(old in page(), edits in vec(edit(), 0..12)) {
        exercise::round_trip(&old, &edited(&old, &edits));
    }

    #[test]
    fn unrelated_pages_come_back(old in page(), new in page()) {
        exercise::round_trip(&old, &new);
    }

    #[test]
    fn any_bytes_give_a_page_or_an_error(bytes in vec(any::<u8>(), 0..6000)) {
        exercise::exercise(&bytes);
    }

    #[test]
    fn damaged_bytes_give_a_page_or_an_error(
        old in page(),
        edits in vec(edit(), 1..12),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let new = edited(&old, &edits);
        let mut encoder = Encoder::new();
        for codec in Codec::ALL {
            let Some(encoded) = encoder.delta(codec, &old, &new, usize::MAX) else { continue };
            let mut damaged = encoded.to_vec();
            for (at, byte) in &damage {
                let at = at.index(damaged.len());
                damaged[at] = *byte;
            }
            exercise::exercise(&damaged);
            damaged.truncate(cut.index(damaged.len()));
            exercise::exercise(&damaged);
            exercise::exercise(&damaged[HEADER_BYTES.min(damaged.len())..]);
        }
    }
}

/// Bytes of a delta's body.
fn body_bytes(codec: Codec, old: &Page, new: &Page) -> usize {
    let mut encoder = Encoder::new();
    let encoded = encoder.delta(codec, old, new, usize::MAX);
    encoded.map_or(PAGE_BYTES, |encoded| encoded.len() - HEADER_BYTES)
}

#[test]
fn sparse_edits_are_short_with_both_codecs() {
    let old = noise(3);
    let mut new = old;
    (0..8).for_each(|i| new[i * 500 + 17] ^= 0x40);
    assert!(body_bytes(Codec::Lz4, &old, &new) < 100);
    assert!(body_bytes(Codec::Copy, &old, &new) < 50);
    assert!(body_bytes(Codec::Copy, &old, &old) < 5);
}

#[test]
fn only_copies_survive_a_shift() {
    let old = noise(4);
    for new in [inserted(&old, 100, 5, 7), deleted(&old, 100, 5)] {
        assert!(body_bytes(Codec::Lz4, &old, &new) > 3900);
        assert!(body_bytes(Codec::Copy, &old, &new) < 30);
    }
    // Of both a shift and edits behind it, each edit costs a few bytes.
    let mut new = inserted(&old, 100, 5, 7);
    (1..20).for_each(|i| new[i * 200] ^= 0x11);
    assert!(body_bytes(Codec::Copy, &old, &new) < 120);
}

#[test]
fn noise_against_noise_is_given_up() {
    let mut encoder = Encoder::new();
    for codec in Codec::ALL {
        assert_eq!(encoder.delta(codec, &noise(1), &noise(2), PAGE_BYTES), None);
        assert_eq!(encoder.alone(codec, &noise(1), PAGE_BYTES), None);
        for limit in 0..HEADER_BYTES {
            assert_eq!(encoder.alone(codec, &[0; PAGE_BYTES], limit), None);
        }
    }
}

#[test]
fn an_encoder_keeps_nothing_of_the_pages_before() {
    let (a, b) = (text(5), text(6));
    let mut used = Encoder::new();
    for codec in Codec::ALL {
        used.delta(codec, &noise(7), &noise(8), usize::MAX);
        used.delta(codec, &a, &noise(8), 200);
        let fresh = |base: Option<&Page>| {
            let mut encoder = Encoder::new();
            match base {
                Some(base) => encoder
                    .delta(codec, base, &b, usize::MAX)
                    .map(<[u8]>::to_vec),
                None => encoder.alone(codec, &b, usize::MAX).map(<[u8]>::to_vec),
            }
        };
        let again = used.delta(codec, &a, &b, usize::MAX).map(<[u8]>::to_vec);
        assert_eq!(again, fresh(Some(&a)));
        let again = used.alone(codec, &b, usize::MAX).map(<[u8]>::to_vec);
        assert_eq!(again, fresh(None));
    }
}

#[test]
fn errors_say_what_was_found() {
    let mut page = [0; PAGE_BYTES];
    let mut said = |encoded: &[u8], base: Option<&Page>| {
        decode(encoded, base, &mut page)
            .expect_err("damage")
            .to_string()
    };
    let base = [0; PAGE_BYTES];
    for (encoded, expected) in [
        (
            &[2, 0][..],
            "an encoded page begins with 3 bytes of header, found 2 bytes",
        ),
        (
            &[5, 0, 0],
            "an encoded page begins with its kind, 1 to 4, found 5",
        ),
        (&[4, 2, 0, 9], "the header says 2 bytes of body, found 1"),
        (
            &[2, 0, 0],
            "the body ends when 0 of 4096 bytes of the page are known",
        ),
        // Eight literals, four of them missing.
        (
            &[4, 6, 0, 0xE0, 1, 1, 1, 1, 1],
            "the body ends when 0 of 4096 bytes of the page are known",
        ),
        // A copy of two bytes from distance 4096 without a base.
        (
            &[4, 1, 0, 0],
            "byte 0 of the page is to be copied from 4096 bytes before, expected 1 to 0",
        ),
        (
            &[2, 3, 0, 0x18, 0x81, 0x20],
            "byte 0 of the page is to be copied from 4097 bytes before, expected 1 to 4096",
        ),
        (
            &[2, 3, 0, 7, 0x80, 0x80],
            "byte 2 of the body continues a number that already has two bytes, the most there are",
        ),
        // All of the base, and one byte more.
        (
            &[2, 3, 0, 7, 0xF8, 0x1F],
            "4097 bytes are to follow byte 0 of the page, expected at most 4096",
        ),
        (
            &[2, 4, 0, 7, 0xF7, 0x1F, 0],
            "1 bytes of the body are left over when the page is complete",
        ),
    ] {
        assert_eq!(said(encoded, Some(&base)), expected, "{encoded:?}");
    }
    assert_eq!(
        said(&[2, 3, 0, 7, 0xF7, 0x1F], None),
        "this is a delta, and no base was given"
    );
}

#[test]
fn the_format_by_hand() {
    let mut base = noise(9);
    let mut encoder = Encoder::new();
    // One copy of 4096 bytes: 4096 less 2 less 7 is 31 * 128 + 119.
    let same = encoder.delta(Codec::Copy, &base, &base, usize::MAX);
    assert_eq!(same, Some(&[2, 3, 0, 0x07, 0xF7, 0x1F][..]));
    // A copy of 10 bytes, a literal, and a copy of the rest, 4085 bytes, from the same distance.
    let old = base;
    base[10] ^= 1;
    let changed = encoder.delta(Codec::Copy, &old, &base, usize::MAX);
    let literal = base[10];
    let expected = [2, 6, 0, 0x07, 1, 0x27, literal, 0xEC, 0x1F];
    assert_eq!(changed, Some(&expected[..]));
    // A zero, and a copy of 4095 bytes from distance 1, the second of the recent ones.
    let zeros = encoder.alone(Codec::Copy, &[0; PAGE_BYTES], usize::MAX);
    assert_eq!(zeros, Some(&[4, 4, 0, 0x2F, 0, 0xF6, 0x1F][..]));
}

#[test]
fn a_body_of_lz4_is_lz4_of_the_exclusive_or() {
    let mut encoder = Encoder::new();
    let (old, new) = (text(10), deleted(&text(10), 3000, 40));
    let delta: Page = std::array::from_fn(|i| old[i] ^ new[i]);
    for (base, input) in [(Some(&old), &delta), (None, &new)] {
        let encoded = match base {
            Some(base) => encoder.delta(Codec::Lz4, base, &new, usize::MAX),
            None => encoder.alone(Codec::Lz4, &new, usize::MAX),
        };
        let expected = lz4_flex::block::compress(input);
        assert_eq!(
            encoded.map(|encoded| &encoded[HEADER_BYTES..]),
            Some(&expected[..])
        );
    }
}
