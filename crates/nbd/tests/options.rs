//! Every option and the errors it may get, and what a client reads of it.

use crate::exercise;

use crate::client::{ClientEvent, ClientHandshake, ClientSession, Goal};
use exercise::negotiate;
use exercise::shop::{FLAGS, info, meta, option, replies};
use flashlore_nbd::handshake::Tls;
use flashlore_nbd::{BlockSizes, ExportInfo, Limits};

type Replies = Vec<(u32, u32, Vec<u8>)>;

fn talk(options: &[Vec<u8>]) -> (Replies, Vec<String>, Vec<u8>) {
    let stream = [FLAGS.to_vec(), options.concat()].concat();
    let talk = negotiate(Tls::Absent, Limits::default(), &stream, &[]);
    (replies(&talk.said), talk.events, talk.said)
}

fn types(options: &[Vec<u8>]) -> Vec<u32> {
    talk(options)
        .0
        .into_iter()
        .map(|(_, kind, _)| kind)
        .collect()
}

#[test]
fn the_greeting_is_that_of_the_fixed_newstyle() {
    let (_, _, said) = talk(&[]);
    assert_eq!(said, b"NBDMAGICIHAVEOPT\x00\x03");
}

#[test]
fn go_tells_size_flags_name_description_and_block_sizes() {
    let (said, events, _) = talk(&[option(8, b""), option(7, &info("past", &[1, 2, 3, 9]))]);
    let data: Vec<&[u8]> = said[1..].iter().map(|(_, _, data)| &data[..]).collect();
    // READ_ONLY, FLUSH, FUA, DF, MULTI_CONN, CACHE.
    assert_eq!(data[0], [0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0x05, 0x8f]);
    assert_eq!(data[1], b"\0\x01past");
    assert_eq!(data[2], b"\0\x02as it was");
    assert_eq!(data[3], [0, 3, 0, 0, 0, 1, 0, 0, 16, 0, 2, 0, 0, 0]);
    assert_eq!(said.last().unwrap().1, 1);
    assert!(events[0].starts_with("Transmission"));
}

#[test]
fn a_writable_export_offers_everything() {
    let (said, _, _) = talk(&[option(6, &info("", &[1]))]);
    // FLUSH, FUA, TRIM, WRITE_ZEROES, MULTI_CONN, CACHE, FAST_ZERO; no DF without structured replies.
    assert_eq!(said[0].2[10..], [0x0d, 0x6d]);
    assert_eq!(said[1].2, b"\0\x01disk", "the default export has a name");
}

#[test]
fn info_leaves_the_negotiation_open_and_go_ends_it() {
    let (said, events, _) = talk(&[option(6, &info("disk", &[])), option(2, b"")]);
    assert_eq!(said.last().unwrap(), &(2, 1, vec![]));
    assert_eq!(events, ["Aborted"]);
}

#[test]
fn exports_that_cannot_be_had_say_why() {
    for (name, kind, why) in [
        ("nix", 0x8000_0006u32, "there is no nix"),
        ("private", 0x8000_0002, "not for you"),
        ("late", 0x8000_0007, "the server is shutting down"),
        (
            "odd",
            0x8000_0002,
            "minimum block size is 3, expected a power of two up to 65536",
        ),
        (
            "wide",
            0x8000_0008,
            "this export is for clients that ask for its block sizes",
        ),
    ] {
        for which in [6, 7] {
            let (said, events, _) = talk(&[option(which, &info(name, &[]))]);
            assert_eq!(said, [(which, kind, why.as_bytes().to_vec())]);
            assert!(events.is_empty());
        }
    }
    assert_eq!(types(&[option(7, &info("wide", &[3]))]), [3, 3, 1]);
}

#[test]
fn export_name_begins_transmission_or_ends_the_connection() {
    let (_, events, said) = talk(&[option(1, b"disk")]);
    assert_eq!(said[18..], [0, 0, 0, 0, 0, 0x10, 0, 0, 0x0d, 0x6d]);
    assert!(events[0].starts_with("Transmission"));
    // Without NO_ZEROES, 124 bytes of padding; and for clients of the first newstyle too.
    for flags in [0, 1] {
        let stream = [vec![0, 0, 0, flags], option(1, b"disk")].concat();
        let talk = negotiate(Tls::Absent, Limits::default(), &stream, &[]);
        assert_eq!(talk.said.len(), 18 + 10 + 124);
    }
    for name in ["nix", "private", "late", "wide"] {
        let (_, events, said) = talk(&[option(1, name.as_bytes())]);
        assert_eq!(said.len(), 18);
        assert!(
            events[0].starts_with("EXPORT_NAME cannot be granted"),
            "{events:?}"
        );
    }
}

#[test]
fn list_names_every_export() {
    let (said, _, _) = talk(&[option(3, b"")]);
    assert_eq!(said[0], (3, 2, b"\0\0\0\x04disk".to_vec()));
    assert_eq!(said[1], (3, 2, b"\0\0\0\x04pastas it was".to_vec()));
    assert_eq!(said[2], (3, 1, vec![]));
    assert_eq!(types(&[option(3, b"x")]), [0x8000_0003]);
}

#[test]
fn options_that_are_not_known_are_refused_and_no_more() {
    for which in [0, 4, 11, 12, u32::MAX] {
        assert_eq!(
            types(&[option(which, b"abc"), option(2, b"")]),
            [0x8000_0001, 1]
        );
    }
    assert_eq!(
        types(&[option(5, b"")]),
        [0x8000_0001],
        "there is no TLS here"
    );
    assert_eq!(types(&[option(8, b"x")]), [0x8000_0003]);
}

#[test]
fn starttls_is_granted_once_and_without_data() {
    let tls = |options: &[Vec<u8>]| {
        let stream = [FLAGS.to_vec(), options.concat()].concat();
        let talk = negotiate(Tls::Offered, Limits::default(), &stream, &[]);
        let kinds: Vec<u32> = replies(&talk.said).iter().map(|reply| reply.1).collect();
        (kinds, talk.events)
    };
    assert_eq!(tls(&[option(5, b"x")]), (vec![0x8000_0003], vec![]));
    let twice = tls(&[option(5, b""), option(5, b"")]);
    assert_eq!(twice, (vec![1, 0x8000_0003], vec!["StartTls".to_owned()]));
}

#[test]
fn contexts_need_structured_replies() {
    for which in [9, 10] {
        assert_eq!(types(&[option(which, &meta("disk", &[]))]), [0x8000_0003]);
    }
}

#[test]
fn contexts_are_listed_by_namespace_by_name_or_all() {
    let list = |queries: &[&str]| -> Vec<String> {
        let (said, _, _) = talk(&[option(8, b""), option(9, &meta("disk", queries))]);
        assert_eq!(said.last().unwrap().1, 1);
        said[1..said.len() - 1]
            .iter()
            .map(|(_, kind, data)| {
                assert_eq!((*kind, &data[..4]), (4, &[0; 4][..]));
                String::from_utf8(data[4..].to_vec()).unwrap()
            })
            .collect()
    };
    assert_eq!(list(&[]), ["base:allocation", "flashlore:stored"]);
    assert_eq!(list(&["flashlore:"]), ["flashlore:stored"]);
    assert_eq!(list(&["base:allocation", "base:"]), ["base:allocation"]);
    assert_eq!(
        list(&["flashlore:changed-since=1"]),
        ["flashlore:changed-since=1"]
    );
    assert!(list(&["qemu:", "nonsense", "flashlore:changed-since="]).is_empty());
}

#[test]
fn contexts_are_chosen_by_full_name_for_one_export() {
    let go = |set: &[Vec<u8>], name: &str| {
        let options = [
            vec![option(8, b"")],
            set.to_vec(),
            vec![option(7, &info(name, &[]))],
        ];
        let (_, events, _) = talk(&options.concat());
        events[0].split("contexts: ").last().unwrap().to_owned()
    };
    let set = |queries: &[&str]| option(10, &meta("disk", queries));
    let both = set(&[
        "flashlore:stored",
        "base:",
        "base:allocation",
        "flashlore:stored",
    ]);
    let chosen = "[Context { id: 1, name: \"flashlore:stored\" }, \
                  Context { id: 2, name: \"base:allocation\" }] })";
    assert_eq!(go(std::slice::from_ref(&both), "disk"), chosen);
    assert_eq!(
        go(std::slice::from_ref(&both), "past"),
        "[] })",
        "for another export"
    );
    assert_eq!(
        go(&[both.clone(), set(&[])], "disk"),
        "[] })",
        "the last choice counts"
    );
    let failed = option(10, &meta("nix", &["base:allocation"]));
    assert_eq!(
        go(&[both, failed], "disk"),
        "[] })",
        "a choice that failed counts too"
    );
}

#[test]
fn exports_that_contradict_themselves_are_told_apart() {
    let with = |change: fn(&mut ExportInfo)| {
        let mut info = ExportInfo::writable(1 << 20);
        change(&mut info);
        info.check().map_err(|error| error.to_string())
    };
    let sizes = |minimum, preferred, maximum| BlockSizes {
        minimum,
        preferred,
        maximum,
    };
    assert_eq!(with(|_| ()), Ok(()));
    assert!(with(|i| i.size = 1 << 63).unwrap_err().starts_with("size"));
    assert!(
        with(|i| i.block_sizes.minimum = 1 << 17)
            .unwrap_err()
            .starts_with("minimum")
    );
    assert!(
        with(|i| i.block_sizes.preferred = 256)
            .unwrap_err()
            .starts_with("preferred")
    );
    assert!(
        with(|i| i.block_sizes.maximum = 5000)
            .unwrap_err()
            .starts_with("maximum")
    );
    assert!(
        with(|i| i.description = "x".repeat(5000))
            .unwrap_err()
            .starts_with("a text")
    );
    let mut info = ExportInfo::writable(512);
    info.block_sizes = sizes(4096, 4096, u32::MAX);
    assert!(info.check().is_err(), "not a multiple of the minimum");
}

/// Lets a client and a server talk until the client knows what it wanted.
fn converse(goal: Goal) -> (ClientEvent, Vec<String>) {
    let mut client = ClientHandshake::new(goal, false);
    let mut to_server = Vec::new();
    let mut heard = 0;
    loop {
        let talk = negotiate(Tls::Absent, Limits::default(), &to_server, &[5, 11]);
        let received = client.receive(&talk.said[heard..], &mut to_server).unwrap();
        heard += received.consumed;
        if let Some(event) = received.event {
            let talk = negotiate(Tls::Absent, Limits::default(), &to_server, &[]);
            return (event, talk.events);
        }
    }
}

#[test]
fn a_client_and_a_server_agree() {
    let (event, events) = converse(Goal::Export {
        name: "past".to_owned(),
        structured: true,
        contexts: vec!["base:allocation".to_owned(), "qemu:none".to_owned()],
    });
    let ClientEvent::Ready(session) = event else {
        panic!("{event:?}");
    };
    assert!(events[0].starts_with("Transmission"));
    assert_eq!((session.size, session.structured), (1 << 20, true));
    assert_eq!(session.description, "as it was");
    assert_eq!(session.block_sizes, Some((1, 4096, 32 << 20)));
    assert_eq!(session.contexts.len(), 1);

    let (event, _) = converse(Goal::Export {
        name: String::new(),
        structured: false,
        contexts: vec!["base:allocation".to_owned()],
    });
    let ClientEvent::Ready(ClientSession {
        structured,
        contexts,
        ..
    }) = event
    else {
        panic!("{event:?}");
    };
    assert!(!structured && contexts.is_empty());

    let (event, events) = converse(Goal::List);
    assert!(matches!(event, ClientEvent::List(list) if list[1].description == "as it was"));
    assert_eq!(events, ["Aborted"]);
}
