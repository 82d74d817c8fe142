//! Random, built and mutated streams through every state machine: the short, deterministic form of the
//! fuzz target, and the property that cutting changes nothing.

use crate::exercise;

use exercise::shop::{FLAGS, announced, info, meta, option, request};
use proptest::collection::vec;
use proptest::prelude::*;

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(
        &[
            "", "disk", "past", "wide", "odd", "private", "late", "x\0", "nix",
        ][..],
    )
    .prop_map(str::to_owned)
}

fn query() -> impl Strategy<Value = &'static str> {
    prop::sample::select(
        &[
            "base:",
            "base:allocation",
            "flashlore:",
            "flashlore:stored",
            "flashlore:changed-since=7",
            "flashlore:changed-since=",
            "qemu:dirty",
            "",
        ][..],
    )
}

fn one_option() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        name().prop_map(|name| option(1, name.as_bytes())),
        Just(option(3, &[])),
        Just(option(5, &[])),
        Just(option(8, &[])),
        (6u32..8, name(), vec(0u16..5, 0..4))
            .prop_map(|(which, name, wanted)| option(which, &info(&name, &wanted))),
        (9u32..11, name(), vec(query(), 0..4))
            .prop_map(|(which, name, queries)| option(which, &meta(&name, &queries))),
        (0u32..13, vec(any::<u8>(), 0..12)).prop_map(|(which, data)| option(which, &data)),
        (3u32..12, 0usize..400).prop_map(|(which, length)| option(which, &vec![7; length])),
        (1u32..12, any::<u32>()).prop_map(|(which, length)| announced(which, length, b"x")),
    ]
}

fn one_request() -> impl Strategy<Value = Vec<u8>> {
    let offset = prop_oneof![
        0u64..4096,
        (0u64..2050).prop_map(|n| n * 512),
        (1u64 << 20) - 1024..1 << 20,
        any::<u64>()
    ];
    let length = prop_oneof![
        0u32..64,
        (0u32..20).prop_map(|n| n * 512),
        8190u32..8196,
        any::<u32>()
    ];
    let flags = prop_oneof![8 => Just(0u16), 3 => 0u16..32, 1 => any::<u16>()];
    let code = prop_oneof![15 => 0u16..8, 1 => any::<u16>()];
    (flags, code, 1u64..8, offset, length).prop_map(|(flags, code, cookie, offset, length)| {
        let mut bytes = request(flags, code, cookie, offset, length);
        if code == 1 && length < 20_000 {
            bytes.extend((0..length).map(|n| n as u8));
        }
        bytes
    })
}

/// A chunk of a reply, or a simple reply, to one of `exercise::calls`.
fn one_reply() -> impl Strategy<Value = Vec<u8>> {
    let data = prop_oneof![
        (prop_oneof![Just(4096u64), Just(0), 4090u64..4140], 0u8..45).prop_map(
            |(offset, length)| {
                let mut data = offset.to_be_bytes().to_vec();
                data.extend(0..length);
                data
            }
        ),
        (4096u64..4140, 0u32..45).prop_map(|(offset, length)| {
            [&offset.to_be_bytes()[..], &length.to_be_bytes()].concat()
        }),
        (0u32..4, vec((0u32..5000, 0u32..4), 0..4)).prop_map(|(context, extents)| {
            let mut data = context.to_be_bytes().to_vec();
            for (length, flags) in extents {
                data.extend(length.to_be_bytes());
                data.extend(flags.to_be_bytes());
            }
            data
        }),
        (0u32..30, vec(any::<u8>(), 0..20)).prop_map(|(errno, text)| {
            let mut data = errno.to_be_bytes().to_vec();
            data.extend((text.len() as u16).to_be_bytes());
            data.extend(text);
            data
        }),
        Just(Vec::new()),
    ];
    let kind = prop::sample::select(&[0u16, 1, 2, 5, 0x8001, 0x8002, 0x8005, 9][..]);
    prop_oneof![
        4 => (0u16..2, kind, 1u64..8, data).prop_map(|(flags, kind, cookie, data)| {
            let mut bytes = 0x668e_33efu32.to_be_bytes().to_vec();
            bytes.extend(flags.to_be_bytes());
            bytes.extend(kind.to_be_bytes());
            bytes.extend(cookie.to_be_bytes());
            bytes.extend((data.len() as u32).to_be_bytes());
            bytes.extend(data);
            bytes
        }),
        1 => (0u32..3, 1u64..9, 0u8..50).prop_map(|(error, cookie, data)| {
            let mut bytes = 0x6744_6698u32.to_be_bytes().to_vec();
            bytes.extend(error.to_be_bytes());
            bytes.extend(cookie.to_be_bytes());
            bytes.extend(0..data);
            bytes
        }),
    ]
}

/// A stream of one kind of message, with some bytes changed, and what goes before it.
fn input(message: BoxedStrategy<Vec<u8>>, start: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    let changes = prop_oneof![
        3 => Just(Vec::new()),
        1 => vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)
    ];
    (vec(any::<u8>(), 8), vec(message, 1..14), changes).prop_map(move |(head, list, changes)| {
        let mut stream = start.clone();
        stream.extend(list.concat());
        for (place, value) in changes {
            let place = place.index(stream.len());
            stream[place] = value;
        }
        [head, stream].concat()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn negotiations_agree_with_the_slow_reader_however_they_are_cut(
        input in input(one_option().boxed(), FLAGS.to_vec())
    ) {
        exercise::exercise(&input);
    }

    #[test]
    fn requests_agree_with_the_slow_reader_however_they_are_cut(
        input in input(one_request().boxed(), Vec::new())
    ) {
        exercise::exercise(&input);
    }

    #[test]
    fn replies_give_the_same_events_however_they_are_cut(
        input in input(one_reply().boxed(), Vec::new())
    ) {
        exercise::exercise(&input);
    }

    #[test]
    fn no_bytes_at_all_make_anything_panic(input in vec(any::<u8>(), 0..200)) {
        exercise::exercise(&input);
    }

    #[test]
    fn answers_of_a_server_give_a_client_the_same_events_however_they_are_cut(
        head in vec(any::<u8>(), 8),
        list in vec(one_option(), 1..10),
        place in any::<prop::sample::Index>(),
        change in any::<Option<u8>>(),
    ) {
        // What a server says to a client of the right order, and to one of any.
        let sane = [
            FLAGS.to_vec(),
            option(8, &[]),
            option(10, &meta("disk", &["base:allocation", "flashlore:stored"])),
            option(7, &info("disk", &[2, 3])),
        ]
        .concat();
        for stream in [sane, [FLAGS.to_vec(), list.concat()].concat()] {
            let tls = flashlore_nbd::handshake::Tls::Offered;
            let mut said = exercise::negotiate(tls, exercise::TIGHT, &stream, &[]).said;
            if let Some(change) = change {
                let place = place.index(said.len());
                said[place] = change;
            }
            exercise::exercise(&[head.clone(), said].concat());
        }
    }
}
