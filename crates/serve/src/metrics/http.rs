//! As much of HTTP/1.1 as a scraper and a page need: GET and HEAD of a path, one request a connection.
//!
//! Written here because a server of a library would bring a runtime, keep-alive, bodies and their limits, of which
//! nothing is needed. Whatever comes, a connection holds one thread and [`MOST_HEAD`] bytes for at most [`PATIENCE`] to
//! come and as long to go, and there are [`MOST_CONNECTIONS`] of them. One more takes the place of the oldest that waits
//! for its client, to send or to take something: clients that are slow keep nobody out. Nothing that is sent is kept,
//! and nothing but the first line is looked at.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Bytes of a request's head at most.
pub const MOST_HEAD: usize = 8 << 10;
pub const MOST_CONNECTIONS: usize = 16;
/// How long a request may take to arrive, and its answer to leave.
pub const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpAnswer {
    /// Such as `200 OK`.
    pub status: &'static str,
    pub content_type: &'static str,
    /// What a browser that shows the body may do with it: a Content-Security-Policy.
    pub policy: &'static str,
    pub body: String,
}

/// The policy of what is no page: nothing.
pub const NOTHING: &str = "default-src 'none'; frame-ancestors 'none'";

impl HttpAnswer {
    pub fn sentence(status: &'static str, text: impl Into<String>) -> HttpAnswer {
        HttpAnswer {
            status,
            content_type: "text/plain; charset=utf-8",
            policy: NOTHING,
            body: text.into() + "\n",
        }
    }
}

/// Answers a path, if there is something under it.
pub type Handler = Box<dyn Fn(&str) -> Option<HttpAnswer> + Send + Sync>;

/// A listener that answers until it is dropped.
pub struct Endpoint {
    address: SocketAddr,
    stops: Arc<AtomicBool>,
}

/// The connections there are, by number: the first is the oldest.
#[derive(Default)]
struct Connections {
    open: BTreeMap<u64, Connection>,
    next: u64,
}

struct Connection {
    stream: TcpStream,
    /// Whether its answer is being made: it waits for nobody outside.
    works: bool,
}

struct HttpPlace {
    all: Arc<Mutex<Connections>>,
    number: u64,
}

impl HttpPlace {
    /// A place for one more; nothing if all others are at work.
    fn of(all: &Arc<Mutex<Connections>>, stream: TcpStream) -> Option<Self> {
        let mut inner = all.lock();
        if inner.open.len() >= MOST_CONNECTIONS {
            let mut waiting = inner.open.iter().filter(|(_, open)| !open.works);
            let oldest = waiting.next().map(|(&number, _)| number)?;
            if let Some(late) = inner.open.remove(&oldest) {
                // It fails only if the connection is gone.
                let _ = late.stream.shutdown(Shutdown::Both);
            }
        }
        let number = inner.next;
        inner.next += 1;
        let works = false;
        inner.open.insert(number, Connection { stream, works });
        let all = Arc::clone(all);
        Some(HttpPlace { all, number })
    }

    fn works(&self, works: bool) {
        let mut inner = self.all.lock();
        if let Some(own) = inner.open.get_mut(&self.number) {
            own.works = works;
        }
    }
}

impl Drop for HttpPlace {
    fn drop(&mut self) {
        let mut inner = self.all.lock();
        inner.open.remove(&self.number);
    }
}

impl Endpoint {
    pub fn start(address: SocketAddr, handler: Handler) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let stops = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stops);
        let accept = move || accept(&listener, &Arc::new(handler), &stopped);
        std::thread::Builder::new()
            .name("metrics".into())
            .spawn(accept)?;
        Ok(Endpoint { address, stops })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.stops.store(true, Ordering::SeqCst);
        let own = match self.address.ip() {
            ip if !ip.is_unspecified() => ip,
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        };
        // Wakes the listener, which then ends.
        let address = SocketAddr::new(own, self.address.port());
        drop(TcpStream::connect_timeout(&address, PATIENCE));
    }
}

fn accept(listener: &TcpListener, handler: &Arc<Handler>, stops: &AtomicBool) {
    let connections = Arc::default();
    for stream in listener.incoming() {
        if stops.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else {
            // No file can be opened, say: not to be asked again at once.
            std::thread::sleep(Duration::from_millis(10));
            continue;
        };
        let place = stream.try_clone().ok();
        let Some(place) = place.and_then(|handle| HttpPlace::of(&connections, handle)) else {
            continue;
        };
        let handler = Arc::clone(handler);
        let serve = move || {
            // Whoever is gone misses nothing.
            let _ = serve(&stream, &place, &handler);
        };
        // Without a thread the client sees the end of its connection.
        drop(
            std::thread::Builder::new()
                .name("metrics request".into())
                .spawn(serve),
        );
    }
}

/// What is left until a deadline.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    match left.is_zero() {
        true => Err(ErrorKind::TimedOut.into()),
        false => Ok(left),
    }
}

fn serve(mut stream: &TcpStream, place: &HttpPlace, handler: &Handler) -> io::Result<()> {
    let head = read_head(stream)?;
    place.works(true);
    let (answer, with_body) = match &head {
        Some(head) => answer(head, handler),
        None => {
            let text = format!("the head of a request has at most {MOST_HEAD} bytes");
            let status = "431 Request Header Fields Too Large";
            (HttpAnswer::sentence(status, text), true)
        }
    };
    let mut bytes = format!(
        "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\
         Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\
         Content-Security-Policy: {}\r\n\r\n",
        answer.status,
        answer.content_type,
        answer.body.len(),
        answer.policy
    );
    if with_body {
        bytes.push_str(&answer.body);
    }
    place.works(false);
    let deadline = Instant::now() + PATIENCE;
    let mut rest = bytes.as_bytes();
    while !rest.is_empty() {
        stream.set_write_timeout(Some(left(deadline)?))?;
        match stream.write(rest)? {
            0 => return Err(ErrorKind::WriteZero.into()),
            written => rest = &rest[written..],
        }
    }
    stream.shutdown(Shutdown::Write)
}

/// The head of a request, up to the empty line; nothing if it is too long.
fn read_head(mut stream: &TcpStream) -> io::Result<Option<Vec<u8>>> {
    let deadline = Instant::now() + PATIENCE;
    let (mut head, mut buffer) = (Vec::new(), [0; 1024]);
    loop {
        stream.set_read_timeout(Some(left(deadline)?))?;
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        head.extend_from_slice(&buffer[..count]);
        if head.windows(4).any(|four| four == b"\r\n\r\n") {
            return Ok(Some(head));
        }
        if head.len() > MOST_HEAD {
            return Ok(None);
        }
    }
}

/// The answer to a head, and whether its body is wanted.
fn answer(head: &[u8], handler: &Handler) -> (HttpAnswer, bool) {
    let line = head.split(|&byte| byte == b'\r').next().unwrap_or_default();
    let line = std::str::from_utf8(line).unwrap_or_default();
    let parts: Vec<&str> = line.split(' ').collect();
    let [method, target, version] = parts[..] else {
        let text = "expected a line such as GET /metrics HTTP/1.1";
        return (HttpAnswer::sentence("400 Bad Request", text), true);
    };
    if !version.starts_with("HTTP/1.") || !target.starts_with('/') {
        let text = "expected a path and HTTP/1.0 or HTTP/1.1";
        return (HttpAnswer::sentence("400 Bad Request", text), true);
    }
    if method != "GET" && method != "HEAD" {
        let text = "only GET and HEAD are answered";
        return (HttpAnswer::sentence("405 Method Not Allowed", text), true);
    }
    let path = target.split('?').next().unwrap_or_default();
    let found = handler(path);
    let missing = || HttpAnswer::sentence("404 Not Found", "expected /, /metrics or /health");
    (found.unwrap_or_else(missing), method == "GET")
}
