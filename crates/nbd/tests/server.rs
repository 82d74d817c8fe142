//! The listener with clients that behave and clients that do not.

use crate::served;

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::client::Goal;
use flashlore_nbd::server::{Address, Config, Server, ServerError};
use flashlore_nbd::transmission::Command;
use flashlore_nbd::wire::command_flags::{DF, FAST_ZERO, FUA, NO_HOLE, REQ_ONE};
use flashlore_nbd::{Errno, Limits};
use served::{
    Client, MemoryDisk, PATIENCE, Shelf, connect, eventually, negotiate, negotiate_for, serve,
};

const MIB: usize = 1 << 20;

#[test]
fn every_command_over_a_socket() {
    let served = serve(4 * MIB, Config::default());
    let mut client = connect(&served.socket, "disk").unwrap();
    assert_eq!(client.session.size, 4 * MIB as u64);
    assert_eq!(client.session.contexts.len(), 2);
    let data: Vec<u8> = (0..20_000).map(|n| n as u8).collect();
    assert_eq!(client.write(5000, &data).unwrap(), None);
    assert_eq!(client.read(5000, 20_000).unwrap(), data);
    assert_eq!(client.ask(Command::Flush, 0, 0, 0).unwrap().error, None);
    assert_eq!(served.disk.flushes.load(Ordering::SeqCst), 1);
    assert_eq!(client.ask(Command::Cache, 0, 0, 4096).unwrap().error, None);

    let status = client.ask(Command::BlockStatus, 0, 0, 65536).unwrap();
    assert_eq!(
        status.extents,
        [
            (1, vec![(4096, 3), (24576, 0), (36864, 3)]),
            (2, vec![(4096, 0), (24576, 1), (36864, 0)])
        ]
    );
    let one = client
        .ask(Command::BlockStatus, REQ_ONE, 8192, 65536 - 8192)
        .unwrap();
    assert_eq!(one.extents[0].1, [(20480, 0)]);

    let zeroes = client
        .ask(Command::WriteZeroes, NO_HOLE | FAST_ZERO, 8192, 4096)
        .unwrap();
    assert_eq!(zeroes.error, None);
    let hole = client.ask(Command::Read, 0, 8192, 4096).unwrap();
    assert_eq!((hole.holes, hole.data), (1, vec![0; 4096]));
    let whole = client.ask(Command::Read, DF, 8192, 4096).unwrap();
    assert_eq!((whole.holes, whole.data), (0, vec![0; 4096]));
    assert_eq!(client.ask(Command::Trim, 0, 0, 65536).unwrap().error, None);
    let status = client.ask(Command::BlockStatus, 0, 0, 65536).unwrap();
    assert_eq!(status.extents[0].1, [(65536, 3)]);
    assert_eq!(client.read(0, 0).unwrap(), []);
    assert_eq!(
        client.write(4 * MIB as u64 - 1, &[1, 2]).unwrap(),
        Some(Errno::NoSpace)
    );

    let mut past = connect(&served.socket, "past").unwrap();
    assert_eq!(past.write(0, &[1; 512]).unwrap(), Some(Errno::NotPermitted));
    assert_eq!(past.read(0, 512).unwrap(), [0; 512]);
    assert!(connect(&served.socket, "future").is_err());
}

#[test]
fn a_long_write_and_a_long_read_come_through() {
    let served = serve(64 * MIB, Config::default());
    let mut client = connect(&served.socket, "").unwrap();
    let data: Vec<u8> = (0..32 * MIB).map(|n| (n >> 3) as u8).collect();
    assert_eq!(client.write(7, &data).unwrap(), None);
    assert!(client.read(7, 32 << 20).unwrap() == data);
    assert_eq!(
        client.write(0, &vec![1; 33 * MIB]).unwrap(),
        Some(Errno::Invalid)
    );
    assert_eq!(
        client.read(0, 7).unwrap(),
        [0; 7],
        "nothing of it was written"
    );
}

#[test]
fn a_slow_request_holds_up_no_other() {
    let served = serve(4 * MIB, Config::default());
    served.disk.set_gate(false);
    let mut client = connect(&served.socket, "disk").unwrap();
    let end = 4 * MIB as u64 - 4096;
    let slow = client.send(Command::Write, 0, end, 3, b"abc").unwrap();
    for n in 0..100u8 {
        assert_eq!(client.write(u64::from(n) * 512, &[n; 512]).unwrap(), None);
    }
    served.disk.set_gate(true);
    assert_eq!(client.reply().unwrap().0, slow);
    assert_eq!(client.read(end, 3).unwrap(), b"abc");
}

#[test]
fn requests_without_waiting_are_all_answered() {
    let served = serve(4 * MIB, Config::default());
    let mut client = connect(&served.socket, "disk").unwrap();
    let mut due = std::collections::BTreeMap::new();
    for round in 0..50u64 {
        for n in 0..32u64 {
            let offset = (round * 32 + n) * 512;
            let cookie = client
                .send(Command::Write, 0, offset, 512, &[n as u8; 512])
                .unwrap();
            due.insert(cookie, ());
        }
        for _ in 0..32 {
            let (cookie, outcome) = client.reply().unwrap();
            assert_eq!(outcome.error, None);
            assert!(due.remove(&cookie).is_some());
        }
    }
    assert_eq!(client.read(31 * 512, 512).unwrap(), [31; 512]);
}

#[test]
fn a_thousand_half_open_connections_keep_nobody_out() {
    // Nobody gets a place because those before run out of time.
    let config = Config {
        negotiation: Duration::from_secs(3600),
        ..Config::default()
    };
    let served = serve(MIB, config);
    let mut established = connect(&served.socket, "disk").unwrap();
    let mut half_open = Vec::new();
    for n in 0..1000u32 {
        let mut stream = UnixStream::connect(&served.socket).unwrap();
        if n % 2 == 0 {
            // Some say something.
            let _ = stream.write_all(&[0, 0, 0]);
        }
        half_open.push(stream);
        if n % 100 == 0 {
            established.read(0, 512).unwrap();
        }
    }
    let mut newcomer = connect(&served.socket, "disk").unwrap();
    assert_eq!(newcomer.read(0, 512).unwrap(), [0; 512]);
    let (serving, negotiating) = served.server.connections();
    assert_eq!(serving, 2);
    assert!(
        negotiating <= Config::default().negotiating,
        "{negotiating}"
    );
}

/// Whether the server ends the connection instead of sending a reply.
fn is_ended(client: &mut Client<UnixStream>) -> bool {
    let ended = client.reply().expect_err("nothing was asked");
    ended.kind() != ErrorKind::WouldBlock
}

#[test]
fn a_negotiation_that_drags_on_is_ended() {
    let config = Config {
        negotiation: Duration::from_millis(300),
        ..Config::default()
    };
    let served = serve(MIB, config);
    let mut stream = UnixStream::connect(&served.socket).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut greeting = Vec::new();
    stream.read_to_end(&mut greeting).unwrap();
    assert_eq!(greeting.len(), 18);
}

#[test]
fn a_message_that_stops_in_the_middle_ends_the_connection_and_silence_does_not() {
    let config = Config {
        message: Duration::from_millis(200),
        limits: Limits {
            skipped_bytes: 0,
            payload_bytes: 65536,
            ..Limits::default()
        },
        ..Config::default()
    };
    let served = serve(MIB, config);
    let mut quiet = connect(&served.socket, "disk").unwrap();
    for part in [&[0x25, 0x60][..], &[0; 0]] {
        let mut client = connect(&served.socket, "disk").unwrap();
        if part.is_empty() {
            client.send(Command::Write, 0, 0, 4096, &[1; 100]).unwrap();
        } else {
            client.stream.write_all(part).unwrap();
        }
        assert!(is_ended(&mut client));
    }
    std::thread::sleep(Duration::from_millis(600));
    assert_eq!(quiet.read(0, 1).unwrap(), [0]);
}

#[test]
fn a_silent_connection_is_ended_where_that_is_wanted() {
    let config = Config {
        idle: Some(Duration::from_millis(200)),
        ..Config::default()
    };
    let served = serve(MIB, config);
    let mut client = connect(&served.socket, "disk").unwrap();
    assert!(is_ended(&mut client));
    eventually("it is gone", || served.server.connections() == (0, 0));
}

#[test]
fn a_client_that_does_not_read_its_replies_is_dropped_and_blocks_nobody() {
    let config = Config {
        message: Duration::from_secs(2),
        ..Config::default()
    };
    let served = serve(8 * MIB, config);
    let mut writer = connect(&served.socket, "disk").unwrap();
    for n in 0..8 {
        writer.write(n * MIB as u64, &vec![7; MIB]).unwrap();
    }
    let mut deaf = connect(&served.socket, "disk").unwrap();
    for _ in 0..20 {
        deaf.send(Command::Read, 0, 0, 8 << 20, &[]).unwrap();
    }
    for _ in 0..50 {
        assert_eq!(writer.read(0, 4096).unwrap(), [7; 4096]);
    }
    eventually("it is dropped", || served.server.connections() == (1, 0));
}

#[test]
fn long_requests_that_stall_leave_room_for_short_ones() {
    let config = Config {
        budget_bytes: MIB,
        ..Config::default()
    };
    let served = serve(64 * MIB, config);
    let mut hogs = Vec::new();
    for _ in 0..8 {
        let mut hog = connect(&served.socket, "disk").unwrap();
        hog.send(Command::Write, 0, 0, 16 << 20, &[1; 1000])
            .unwrap();
        hogs.push(hog);
    }
    let mut client = connect(&served.socket, "disk").unwrap();
    for n in 0..50 {
        assert_eq!(client.write(n * 65536, &[2; 65536]).unwrap(), None);
    }
    // And once they are gone, a long one gets its turn.
    drop(hogs);
    assert_eq!(client.write(0, &vec![3; 16 * MIB]).unwrap(), None);
}

/// Whatever kind of replies a client wants: in pieces, where there is no memory for the whole of it.
#[test]
fn long_requests_that_find_no_memory_come_through_in_pieces() {
    let config = Config {
        budget_bytes: 0,
        ..Config::default()
    };
    let served = serve(8 * MIB, config);
    let data: Vec<u8> = (0..5 * MIB as u32 + 77).map(|n| (n >> 4) as u8).collect();
    let length = data.len() as u32;
    for (structured, flags) in [(true, 0), (true, DF), (false, 0)] {
        let stream = UnixStream::connect(&served.socket).unwrap();
        let goal = Goal::Export {
            name: "disk".to_owned(),
            structured,
            contexts: Vec::new(),
        };
        let mut client = negotiate_for(stream, goal).unwrap();
        assert_eq!(client.write(0, &vec![0; 8 * MIB]).unwrap(), None);
        let empty = client.ask(Command::Read, flags, 0, 8 << 20).unwrap();
        assert!(empty.error.is_none() && empty.data == vec![0; 8 * MIB]);
        let flushes = || served.disk.flushes.load(Ordering::SeqCst);
        let before = flushes();
        let cookie = client.send(Command::Write, FUA, 99, length, &data).unwrap();
        assert_eq!(client.reply().unwrap(), (cookie, Default::default()));
        assert_eq!(flushes(), before + 1);
        let read = client.ask(Command::Read, flags, 99, length).unwrap();
        assert!(read.error.is_none() && read.data == data);
        // The stream is in step, and what stands around it was not touched.
        assert_eq!(client.read(98, 1).unwrap(), [0]);
        assert_eq!(client.read(99 + data.len() as u64, 2).unwrap(), [0, 0]);
    }
}

#[test]
fn clients_that_read_no_replies_and_send_no_payloads_stall_nobody() {
    let config = Config {
        budget_bytes: 24 * MIB,
        client_bytes: 8 * MIB,
        // They stay for as long as the others work.
        message: Duration::from_secs(600),
        ..Config::default()
    };
    let served = serve(64 * MIB, config);
    let mut client = connect(&served.socket, "disk").unwrap();
    let data: Vec<u8> = (0..16 * MIB).map(|n| (n >> 3) as u8 | 1).collect();
    assert_eq!(client.write(0, &data).unwrap(), None);
    let mut deaf = Vec::new();
    for _ in 0..10 {
        let mut other = connect(&served.socket, "disk").unwrap();
        for _ in 0..8 {
            other.send(Command::Read, 0, 0, 8 << 20, &[]).unwrap();
        }
        deaf.push(other);
        let mut mute = connect(&served.socket, "disk").unwrap();
        mute.send(Command::Write, 0, 32 << 20, 8 << 20, &[1; 1000])
            .unwrap();
        deaf.push(mute);
    }
    for _ in 0..4 {
        assert_eq!(client.write(0, &data).unwrap(), None);
        assert!(client.read(0, 16 << 20).unwrap() == data);
        assert_eq!(client.read(5, 4096).unwrap(), data[5..][..4096]);
    }
    assert_eq!(served.server.connections(), (21, 0));
}

#[test]
fn clients_over_tcp_leave_places_for_those_of_this_machine() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("nbd.sock");
    let addresses = [
        Address::Unix(socket.clone()),
        Address::Tcp("127.0.0.1:0".parse().unwrap()),
    ];
    let config = Config {
        connections: 4,
        local_connections: 2,
        negotiating: 3,
        ..Config::default()
    };
    let shelf = Arc::new(Shelf(MemoryDisk::new(MIB)));
    let server = Server::start(&addresses, config, shelf).unwrap();
    let Address::Tcp(tcp) = server.addresses()[1] else {
        panic!("{:?}", server.addresses());
    };
    let idle: Vec<_> = (0..4)
        .map(|_| negotiate(TcpStream::connect(tcp).unwrap(), "disk").unwrap())
        .collect();
    assert!(negotiate(TcpStream::connect(tcp).unwrap(), "disk").is_err());
    let mut first = connect(&socket, "disk").unwrap();
    let second = connect(&socket, "disk").unwrap();
    assert_eq!(first.read(0, 1).unwrap(), [0]);
    assert!(connect(&socket, "disk").is_err());
    drop(second);
    eventually("there is a place again", || {
        connect(&socket, "disk").is_ok()
    });
    drop(idle);
    // Nor do those that only begin to talk drive one of this machine out.
    eventually("they are gone", || server.connections().0 == 1);
    let waiting = UnixStream::connect(&socket).unwrap();
    eventually("it waits", || server.connections() == (1, 1));
    let _crowd: Vec<_> = (0..20).map(|_| TcpStream::connect(tcp).unwrap()).collect();
    assert_eq!(negotiate(waiting, "disk").unwrap().read(0, 1).unwrap(), [0]);
}

#[test]
fn draining_answers_what_was_asked_and_lets_nobody_in() {
    let served = serve(4 * MIB, Config::default());
    served.disk.set_gate(false);
    let mut client = connect(&served.socket, "disk").unwrap();
    let mut idle = connect(&served.socket, "disk").unwrap();
    let _negotiating = UnixStream::connect(&served.socket).unwrap();
    let end = 4 * MIB as u64 - 4096;
    let cookie = client.send(Command::Write, 0, end, 4, b"last").unwrap();
    eventually("it is being written", || {
        served.disk.at_gate.load(Ordering::SeqCst) == 1
    });
    let (server, socket, disk) = (served.server, served.socket.clone(), served.disk.clone());
    let draining = std::thread::spawn(move || server.drain(PATIENCE));
    assert!(idle.reply().is_err(), "the idle one is closed");
    eventually("nobody is let in", || UnixStream::connect(&socket).is_err());
    disk.set_gate(true);
    let (answered, outcome) = client.reply().unwrap();
    assert_eq!((answered, outcome.error), (cookie, None));
    assert!(client.reply().is_err());
    assert!(draining.join().unwrap(), "all left by themselves");
    assert!(!socket.exists());
}

#[test]
fn draining_ends_even_with_a_request_that_does_not() {
    let served = serve(4 * MIB, Config::default());
    served.disk.set_gate(false);
    let mut client = connect(&served.socket, "disk").unwrap();
    client
        .send(Command::Write, 0, 4 * MIB as u64 - 4096, 4, b"last")
        .unwrap();
    eventually("it is being written", || {
        served.disk.at_gate.load(Ordering::SeqCst) == 1
    });
    assert!(!served.server.drain(Duration::from_millis(300)));
    served.disk.set_gate(true);
}

#[test]
fn more_connections_than_allowed_are_closed() {
    let config = Config {
        connections: 2,
        local_connections: 0,
        ..Config::default()
    };
    let served = serve(MIB, config);
    let late = UnixStream::connect(&served.socket).unwrap();
    eventually("it negotiates", || served.server.connections() == (0, 1));
    let first = connect(&served.socket, "disk").unwrap();
    let mut second = connect(&served.socket, "disk").unwrap();
    assert!(connect(&served.socket, "disk").is_err());
    // Nor is it told that it may send requests, be it for a moment.
    assert!(negotiate(late, "disk").is_err());
    second.read(0, 1).unwrap();
    drop(first);
    eventually("there is room again", || {
        connect(&served.socket, "disk").is_ok()
    });
}

#[test]
fn an_export_that_panics_fails_one_request() {
    let served = serve(77 * 4096, Config::default());
    let mut client = connect(&served.socket, "disk").unwrap();
    for _ in 0..3 {
        let outcome = client.ask(Command::Read, 0, 0, 512).unwrap();
        assert_eq!(outcome.error, Some(Errno::Io));
        assert_eq!(client.write(0, &[1; 512]).unwrap(), None);
    }
}

#[test]
fn tcp_on_this_machine_is_served_and_beyond_it_needs_tls() {
    let shelf = Arc::new(Shelf(MemoryDisk::new(MIB)));
    let start = |address: &str, insecure| {
        let address = Address::Tcp(address.parse().unwrap());
        let config = Config {
            insecure,
            ..Config::default()
        };
        Server::start(&[address], config, shelf.clone())
    };
    let server = start("127.0.0.1:0", false).unwrap();
    let Address::Tcp(address) = server.addresses()[0] else {
        panic!("{:?}", server.addresses());
    };
    let mut client = negotiate(TcpStream::connect(address).unwrap(), "disk").unwrap();
    assert_eq!(client.write(3, b"tcp").unwrap(), None);
    assert_eq!(client.read(3, 3).unwrap(), b"tcp");
    assert!(server.drain(PATIENCE));

    let refused = start("0.0.0.0:0", false).unwrap_err();
    assert!(matches!(refused, ServerError::Exposed(_)), "{refused}");
    assert!(start("0.0.0.0:0", true).is_ok());
}

#[test]
fn a_socket_left_behind_is_replaced_and_one_in_use_is_not() {
    let served = serve(MIB, Config::default());
    let address = [Address::Unix(served.socket.clone())];
    let shelf = Arc::new(Shelf(served.disk.clone()));
    let refused = Server::start(&address, Config::default(), shelf.clone()).unwrap_err();
    assert!(refused.to_string().contains("nbd.sock"), "{refused}");
    connect(&served.socket, "disk").unwrap();

    let left = served.socket.with_file_name("left.sock");
    drop(std::os::unix::net::UnixListener::bind(&left).unwrap());
    Server::start(&[Address::Unix(left)], Config::default(), shelf.clone()).unwrap();

    let file = served.socket.with_file_name("file");
    std::fs::write(&file, "precious").unwrap();
    let refused = Server::start(&[Address::Unix(file.clone())], Config::default(), shelf);
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("no socket"), "{refused}");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "precious");
}

#[test]
fn noise_over_a_socket_neither_kills_nor_blocks() {
    let served = serve(MIB, Config::default());
    let mut seed = 1u64;
    let mut random = move || {
        seed = seed
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (seed >> 33) as u8
    };
    let mut good = connect(&served.socket, "disk").unwrap();
    for round in 0..200 {
        let noise: Vec<u8> = (0..300).map(|_| random()).collect();
        // Half of them before the negotiation, half behind it.
        let stream = if round % 2 == 0 {
            let mut stream = UnixStream::connect(&served.socket).unwrap();
            let _ = stream.write_all(&[0, 0, 0, 3]);
            stream
        } else {
            connect(&served.socket, "disk").unwrap().stream
        };
        let mut stream = stream;
        let _ = stream.write_all(&noise);
        let _ = stream.shutdown(Shutdown::Write);
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        assert_eq!(good.read(0, 1).unwrap(), [0]);
    }
    eventually("all are gone", || served.server.connections() == (1, 0));
}
