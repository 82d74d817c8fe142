//! `serve --metrics`: looked at while the volume is used.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::served::{Server, place};

pub fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_served_volume_tells_what_its_clients_do() {
    let place = place();
    let server = Server::start(&place, &["--metrics", "127.0.0.1:0"]);
    let told = &server.told;
    let address = told.strip_prefix("metrics at http://").expect(told);
    let address = address.split('/').next().unwrap();
    let mut client = server.open("disk");
    assert_eq!(client.write(0, &[1; 8192]).unwrap(), 0);
    let metrics = get(address, "/metrics");
    for line in [
        "flashlore_requests_total{kind=\"write\"} 1\n",
        "flashlore_request_bytes_total{kind=\"write\"} 8192\n",
        "flashlore_logical_bytes 8192\n",
        "flashlore_clients{may=\"write\"} 1\n",
    ] {
        assert!(metrics.contains(line), "{line}{metrics}");
    }
    assert!(get(address, "/health").starts_with("HTTP/1.1 200 OK"));
    let page = format!("a live page at http://{address}/\n");
    assert!(told.contains(&page), "{told}");
    assert!(get(address, "/").contains("<!DOCTYPE html>"));
    server.stop();
}

#[test]
fn metrics_are_for_this_machine_unless_told_otherwise() {
    let place = place();
    for (address, expected) in [
        (
            "0.0.0.0:9100",
            "0.0.0.0:9100 can be reached from other machines",
        ),
        (
            "somewhere",
            "expected HOST:PORT or a port, found \"somewhere\"",
        ),
        ("70000", "expected HOST:PORT or a port, found \"70000\""),
    ] {
        let message = place.run(&["serve", "disk", "--metrics", address]).fails(2);
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn a_volume_whose_disk_is_full_is_not_healthy() {
    let place = place();
    // The volume's file has 6 MiB; the server cannot write to the second half.
    let serve = ["serve", "disk", "--metrics", "127.0.0.1:0"];
    let server = Server::limited(&place, 6144, &serve);
    let address = server.told.strip_prefix("metrics at http://").unwrap();
    let address = address.split('/').next().unwrap().to_owned();
    assert!(get(&address, "/health").starts_with("HTTP/1.1 200 OK"));
    let mut client = server.open("disk");
    let mut page = [0; 4096];
    let failed = (0..4096u64).any(|number| {
        page.fill_with({
            let mut state = number + 1;
            move || {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state as u8
            }
        });
        client.write(number % 256 * 4096, &page).unwrap() != 0 || client.flush().unwrap() != 0
    });
    assert!(failed);
    let health = get(&address, "/health");
    assert!(health.starts_with("HTTP/1.1 503 "), "{health}");
    assert!(
        health.contains("\r\n\r\nthe volume is read-only: "),
        "{health}"
    );
    let metrics = get(&address, "/metrics");
    for line in ["flashlore_writable 0\n", "flashlore_failed 1\n"] {
        assert!(metrics.contains(line), "{line}{metrics}");
    }
    assert_eq!(server.ended().0, Some(1));
}
