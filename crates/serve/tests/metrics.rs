//! Metrics and health: what they say is true, and what anybody may send does no harm.

mod support;

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use flashlore_medium::{Access, Mode};
use flashlore_serve::metrics::Metrics;
use flashlore_serve::metrics::http::{Endpoint, MOST_CONNECTIONS, MOST_HEAD};
use flashlore_serve::{Home, Served as _, Service};
use flashlore_volume::disk::BlockDevice;
use flashlore_volume::disk::filters::{Count, Filtered};
use tempfile::TempDir;

use support::options;

const PAGE: u64 = 4096;
const SECOND: u64 = 1_000_000_000;

/// A served volume of 1 MiB, with a clock that stands still.
struct Served {
    _directory: TempDir,
    service: Arc<Service>,
    device: Filtered<Arc<dyn BlockDevice>, Count>,
    count: Count,
}

impl Served {
    fn new() -> Served {
        Served::named("disk")
    }

    fn named(name: &str) -> Served {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::new(directory.path().join(name));
        let options = options(SECOND);
        home.create(&options).unwrap();
        let opened = home.open(Mode::Buffered, Access::Change).unwrap();
        let service = Service::new(home, opened, Arc::new(|| 100 * SECOND)).unwrap();
        let disk: Arc<dyn BlockDevice> = Arc::clone(service.disk()) as _;
        let count = Count::default();
        Served {
            _directory: directory,
            service: Arc::new(service),
            device: Filtered::new(disk, count.clone()),
            count,
        }
    }

    fn metrics(&self, read_only: bool) -> Metrics {
        Metrics::new(self.service.clone(), self.count.clone(), read_only)
    }

    fn listen(&self) -> Endpoint {
        let any: SocketAddr = ([127, 0, 0, 1], 0).into();
        self.metrics(false).listen(any).unwrap()
    }

    fn samples(&self) -> Samples {
        Samples::parse(&self.metrics(false).metrics().body)
    }
}

/// The samples of a page, by name and labels.
struct Samples(BTreeMap<String, f64>);

impl Samples {
    /// Parses a page and demands what its format demands: each family once, with help, a type, and its own samples
    /// behind it, none twice.
    fn parse(text: &str) -> Samples {
        let (mut families, mut samples) = (BTreeMap::new(), BTreeMap::new());
        let (mut family, mut kind) = ("", "");
        assert!(text.ends_with('\n'));
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, words) = help.split_once(' ').unwrap();
                assert!(words.ends_with('.'), "{help}");
                let of_type = lines.next().unwrap().strip_prefix("# TYPE ").unwrap();
                (family, kind) = of_type.split_once(' ').unwrap();
                assert_eq!(family, name);
                assert!(["counter", "gauge", "histogram"].contains(&kind));
                assert_eq!(kind == "counter", name.ends_with("_total"), "{name}");
                assert!(name.starts_with("flashlore_"));
                assert!(families.insert(name, kind).is_none(), "{name} twice");
                continue;
            }
            let (sample, value) = line.rsplit_once(' ').unwrap();
            let name = sample.split('{').next().unwrap();
            let suffix = name.strip_prefix(family).unwrap();
            let suffixes: &[&str] = match kind {
                "histogram" => &["_bucket", "_sum", "_count"],
                _ => &[""],
            };
            assert!(suffixes.contains(&suffix), "{line}");
            let value = value.parse().unwrap();
            assert!(samples.insert(sample.to_owned(), value).is_none(), "{line}");
        }
        Samples(samples)
    }

    fn get(&self, sample: &str) -> f64 {
        *self.0.get(sample).unwrap_or_else(|| panic!("no {sample}"))
    }
}

fn exchange(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    stream.write_all(request).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn counters_equal_the_truth_after_a_known_sequence() {
    let served = Served::new();
    let before = served.samples();
    assert_eq!(before.get("flashlore_logical_bytes"), 0.0);
    let device = &served.device;
    let page = |byte: u8| vec![byte; PAGE as usize];
    for (number, byte) in [1, 2, 1, 3, 1].into_iter().enumerate() {
        device.write(number as u64 * PAGE, &page(byte)).unwrap();
    }
    // Equal to what is there.
    device.write(0, &page(1)).unwrap();
    device.read(0, &mut [0; 3 * PAGE as usize]).unwrap();
    device.read(100, &mut [0; 10]).unwrap();
    device.trim(3 * PAGE, PAGE).unwrap();
    device.write_zeroes(4 * PAGE, PAGE, false).unwrap();
    device.flush().unwrap();
    assert!(device.read(1 << 20, &mut [0; 1]).is_err());
    let after = served.samples();
    let page = PAGE as f64;
    let expected = [
        ("flashlore_writable", 1.0),
        ("flashlore_failed", 0.0),
        ("flashlore_requests_total{kind=\"write\"}", 6.0),
        ("flashlore_requests_total{kind=\"read\"}", 2.0),
        ("flashlore_requests_total{kind=\"trim\"}", 1.0),
        ("flashlore_requests_total{kind=\"zero\"}", 1.0),
        ("flashlore_requests_total{kind=\"flush\"}", 1.0),
        ("flashlore_request_bytes_total{kind=\"write\"}", 6.0 * page),
        (
            "flashlore_request_bytes_total{kind=\"read\"}",
            3.0 * page + 10.0,
        ),
        ("flashlore_request_errors_total{kind=\"read\"}", 1.0),
        ("flashlore_request_seconds_count{kind=\"write\"}", 6.0),
        (
            "flashlore_request_seconds_bucket{kind=\"write\",le=\"+Inf\"}",
            6.0,
        ),
        ("flashlore_size_bytes", 256.0 * page),
        // Pages 0 to 2 hold two values; the values of pages 3 and 4 are old versions' alone, but for that of page 4.
        ("flashlore_logical_bytes", 3.0 * page),
        ("flashlore_saved_bytes{by=\"dedup\"}", page),
        ("flashlore_old_version_bytes", page),
        ("flashlore_host_pages_total{kind=\"write\"}", 6.0),
        ("flashlore_host_pages_total{kind=\"trim\"}", 2.0),
        ("flashlore_dedup_writes_total{found=\"same\"}", 1.0),
        ("flashlore_dedup_writes_total{found=\"elsewhere\"}", 2.0),
        ("flashlore_dedup_writes_total{found=\"nothing\"}", 3.0),
        ("flashlore_changes_not_durable", 0.0),
        ("flashlore_opened_total", 1.0),
        ("flashlore_clients{may=\"write\"}", 0.0),
        ("flashlore_unreadable_pages", 0.0),
        ("flashlore_used_bytes", 2.0 * page),
        ("flashlore_window_least_seconds", 0.0),
        ("flashlore_window_protected", 0.0),
        ("flashlore_block_erases{quantile=\"1\"}", 0.0),
    ];
    for (sample, value) in expected {
        assert_eq!(after.get(sample), value, "{sample}");
    }
    let sum = |family: &str| -> f64 {
        let begins = format!("{family}{{");
        let all = after.0.iter();
        let of_family = all.filter(|(name, _)| name.starts_with(&begins));
        of_family.map(|(_, value)| value).sum()
    };
    assert_eq!(sum("flashlore_values"), 3.0);
    let stored = after.get("flashlore_stored_bytes");
    assert_eq!(sum("flashlore_value_bytes"), stored);
    // What was saved and what is stored make what plain pages would take.
    let (logical, old) = (
        after.get("flashlore_logical_bytes"),
        after.get("flashlore_old_version_bytes"),
    );
    assert_eq!(sum("flashlore_saved_bytes") + stored, logical + old);
    let start = after.get("flashlore_window_start_timestamp_seconds");
    let back = after.get("flashlore_window_seconds");
    assert!((start + back - 100.0).abs() < 1e-6, "{start} {back}");
    // Looking is no request.
    let of_requests = |samples: &Samples| -> Vec<(String, f64)> {
        let all = samples.0.iter();
        let of_requests = all.filter(|(name, _)| name.starts_with("flashlore_request"));
        of_requests
            .map(|(name, value)| (name.clone(), *value))
            .collect()
    };
    assert_eq!(of_requests(&served.samples()), of_requests(&after));
    let buckets: Vec<f64> = after
        .0
        .iter()
        .filter(|(name, _)| name.starts_with("flashlore_request_seconds_bucket{kind=\"write\""))
        .map(|(_, value)| *value)
        .collect();
    assert_eq!(buckets.len(), 14);
    assert!(buckets.iter().all(|&count| count <= 6.0));
}

#[test]
fn health_says_whether_the_volume_can_be_written_to() {
    let served = Served::new();
    assert_eq!(served.metrics(false).health().status, "200 OK");
    let read_only = served.metrics(true).health();
    assert_eq!(read_only.status, "503 Service Unavailable");
    assert!(read_only.body.contains("served read-only"));
    served.service.close().unwrap();
    let closed = served.metrics(false).health();
    assert_eq!(closed.status, "503 Service Unavailable");
    assert!(closed.body.contains("closed"), "{}", closed.body);
    // What is known is still told.
    let samples = served.samples();
    assert_eq!(samples.get("flashlore_writable"), 0.0);
    assert_eq!(samples.get("flashlore_requests_total{kind=\"read\"}"), 0.0);
}

#[test]
fn scrapers_are_answered_and_junk_is_refused() {
    let served = Served::new();
    let endpoint = served.listen();
    let ask = |request: &str| exchange(endpoint.address(), request.as_bytes());
    let answer = ask("GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\n\r\n");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains(&format!("Content-Length: {}", body.len())));
    Samples::parse(body);
    let answer = ask("HEAD /health HTTP/1.0\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("\r\n\r\n"));
    for (request, status) in [
        ("GET // HTTP/1.1\r\n\r\n", 404),
        ("GET /page.html HTTP/1.1\r\n\r\n", 404),
        ("POST / HTTP/1.1\r\n\r\n", 405),
        ("GET /metrics/../health HTTP/1.1\r\n\r\n", 404),
        ("POST /metrics HTTP/1.1\r\nContent-Length: 9\r\n\r\n", 405),
        ("\r\n\r\n", 400),
        ("GET /metrics\r\n\r\n", 400),
        ("GET metrics HTTP/1.1\r\n\r\n", 400),
        ("GET /metrics HTTP/2.0\r\n\r\n", 400),
        ("NBDMAGICIHAVEOPT\0\0\r\n\r\n", 400),
    ] {
        let answer = ask(request);
        let expected = format!("HTTP/1.1 {status} ");
        assert!(answer.starts_with(&expected), "{request:?}: {answer}");
    }
    let answer = exchange(endpoint.address(), b"\xff\xfe\x00 \x80 x\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 400 "));
}

#[test]
fn a_browser_gets_a_page_that_may_do_nothing_else() {
    let served = Served::new();
    let endpoint = served.listen();
    let ask = |request: &str| exchange(endpoint.address(), request.as_bytes());
    let answer = ask("GET /?from=a-bookmark HTTP/1.1\r\nHost: a\r\n\r\n");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    for line in [
        "HTTP/1.1 200 OK",
        "Content-Type: text/html; charset=utf-8",
        "Cache-Control: no-store",
        "X-Content-Type-Options: nosniff",
        &format!("Content-Length: {}", body.len()),
    ] {
        assert!(head.lines().any(|found| found == line), "{line}: {head}");
    }
    let mut lines = head.lines();
    let policy = lines.find_map(|line| line.strip_prefix("Content-Security-Policy: "));
    let policy = policy.expect(head);
    assert!(policy.starts_with("default-src 'none';"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    assert!(body.starts_with("<!DOCTYPE html>") && body.ends_with("</html>\n"));
    // Nothing of the volume is in it: names and numbers come as text from /metrics.
    assert!(!body.contains("flashlore_info{"));
    let only_head = ask("HEAD / HTTP/1.1\r\n\r\n");
    assert_eq!(only_head, format!("{head}\r\n\r\n"));
    for path in ["/metrics", "/health", "/other"] {
        let answer = ask(&format!("GET {path} HTTP/1.1\r\n\r\n"));
        for line in [
            "Cache-Control: no-store\r\n",
            "X-Content-Type-Options: nosniff\r\n",
            "Content-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n",
            "Content-Type: text/plain; ",
        ] {
            assert!(answer.contains(line), "{path}: {line}: {answer}");
        }
    }
}

#[test]
fn a_name_with_odd_letters_is_one_label() {
    let served = Served::named("a \"b\" \\ <c>\nd");
    let page = served.metrics(false).metrics().body;
    let info = page
        .lines()
        .find(|line| line.starts_with("flashlore_info{"));
    let name = r#"name="a \"b\" \\ <c>\nd""#;
    assert!(info.is_some_and(|line| line.contains(name)), "{info:?}");
    Samples::parse(&page);
}

#[test]
fn a_head_without_end_takes_no_memory() {
    let served = Served::new();
    let endpoint = served.listen();
    let mut stream = TcpStream::connect(endpoint.address()).unwrap();
    // More than is read: the connection ends while this is sent, or the answer comes.
    let mut sent = 0;
    while sent < 64 << 20 {
        match stream.write(&[b'a'; 65536]) {
            Ok(count) => sent += count,
            Err(error) => {
                let ended = [ErrorKind::BrokenPipe, ErrorKind::ConnectionReset];
                assert!(ended.contains(&error.kind()), "{error}");
                break;
            }
        }
    }
    assert!(sent < 64 << 20, "{MOST_HEAD} bytes are enough");
    assert!(exchange(endpoint.address(), b"GET /health HTTP/1.1\r\n\r\n").contains("200 OK"));
}

#[test]
fn slow_clients_keep_nobody_out() {
    let served = Served::new();
    let endpoint = served.listen();
    // Some say nothing, some stop in the middle of a request, some do not take the answer.
    let mut slow = Vec::new();
    for number in 0..4 * MOST_CONNECTIONS {
        let mut stream = TcpStream::connect(endpoint.address()).unwrap();
        // Whoever is dropped meanwhile cannot say it.
        let _ = match number % 3 {
            0 => stream.write_all(b""),
            1 => stream.write_all(b"GET /hea"),
            _ => stream.write_all(b"GET / HTTP/1.1\r\n\r\n"),
        };
        slow.push(stream);
    }
    for _ in 0..2 * MOST_CONNECTIONS {
        let answer = exchange(endpoint.address(), b"GET /health HTTP/1.1\r\n\r\n");
        assert!(answer.contains("200 OK"), "{answer}");
    }
    drop(slow);
}

#[test]
fn an_endpoint_that_is_dropped_answers_no_more() {
    let served = Served::new();
    let endpoint = served.listen();
    let address = endpoint.address();
    assert!(exchange(address, b"GET /health HTTP/1.1\r\n\r\n").contains("200 OK"));
    drop(endpoint);
    // The listener ends in its own time: from then on nobody is let in.
    while TcpStream::connect(address).is_ok() {
        std::thread::yield_now();
    }
}
