//! The control socket: requests to a served volume, one line of JSON each, answered by one line.
//!
//! Who may open the socket may do everything: its owner alone.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use flashlore_medium::{Access, Mode};
use flashlore_nbd::server::local::{self, LocalListener};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::clock::Clocks;
use crate::error::ServeError;
use crate::home::{CONTROL, Home};
use crate::request::{Answer, Request};
use crate::served::{self, Served};

/// The longest line of a request.
const MOST_LINE: u64 = 64 << 10;
/// The longest line of an answer: what [`crate::request::MOST_READ`] bytes need in base 64, or many ranges.
const MOST_ANSWER: u64 = 1 << 30;
/// How long it waits after a client could not be taken.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a server may say nothing before whoever asked it gives up. While it works on a request it says that it does
/// so all the time: a long request is waited for, a server that was stopped is not.
pub const SILENCE: Duration = Duration::from_secs(10);
/// How often a server says that it works on a request: with a space, which JSON has room for before an answer.
const PULSE: Duration = Duration::from_secs(1);
/// How long each piece of a request that has begun may take to arrive, and each of an answer to be taken. Between
/// requests a client may be silent for as long as it likes: a copy waits for whoever takes what was read.
const PATIENCE: Duration = Duration::from_secs(10);

/// A control socket that takes requests. It is removed when this is dropped.
pub struct Control {
    socket: LocalListener,
    stops: Arc<AtomicBool>,
}

impl Control {
    /// Takes requests to a service. One that a dead server left is replaced: the caller holds the lock of the volume.
    pub fn start(service: Arc<dyn Served>) -> Result<Self, ServeError> {
        let path = service.home().control();
        let handle = service.home().handle();
        let socket = handle.and_then(|home| LocalListener::bind_in(home, OsStr::new(CONTROL)));
        let listened = socket.and_then(|socket| Ok((socket.try_clone_listener()?, socket)));
        let (listener, socket) = listened.map_err(ServeError::file("listen on", &path))?;
        let stops = Arc::new(AtomicBool::new(false));
        let control = Control {
            socket,
            stops: Arc::clone(&stops),
        };
        let accept = move || {
            for stream in listener.incoming() {
                if stops.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(stream) = stream else {
                    // Such as no file descriptors left: it will not be better at once.
                    std::thread::sleep(PAUSE);
                    continue;
                };
                let service = Arc::clone(&service);
                let serve = move || drop(serve(&*service, stream, PATIENCE));
                // Without a thread the client sees the end of its connection.
                drop(
                    std::thread::Builder::new()
                        .name("control".into())
                        .spawn(serve),
                );
            }
        };
        std::thread::Builder::new()
            .name("control listener".into())
            .spawn(accept)
            .map_err(ServeError::file("start a thread for", &path))?;
        Ok(control)
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.stops.store(true, Ordering::SeqCst);
        // Wakes the listener, which then ends. If somebody took its name, it ends with the process.
        drop(self.socket.connect());
    }
}

fn serve(service: &dyn Served, stream: UnixStream, patience: Duration) -> io::Result<()> {
    stream.set_write_timeout(Some(patience))?;
    let mut reader = BufReader::new(&stream);
    let mut writer = &stream;
    loop {
        stream.set_read_timeout(None)?;
        if reader.fill_buf()?.is_empty() {
            return Ok(());
        }
        stream.set_read_timeout(Some(patience))?;
        let mut line = Vec::new();
        (&mut reader).take(MOST_LINE).read_until(b'\n', &mut line)?;
        let answer = match serde_json::from_slice(&line) {
            // It was told that its request was given up, and may have asked for something else since.
            Ok(_) if has_hung_up(&stream) => return Ok(()),
            Ok(request) => pulsing(&stream, || service.answer(&request)),
            Err(error) => Answer::Error {
                text: format!("expected a request as a line of JSON: {error}"),
                usage: true,
            },
        };
        let over = !line.ends_with(b"\n");
        let mut answer = serde_json::to_vec(&answer)?;
        answer.push(b'\n');
        writer.write_all(&answer)?;
        if over {
            // The end, or a line that is too long.
            return Ok(());
        }
    }
}

/// Whether nobody waits for an answer any more: not only has the other side said all that it wants, it has closed.
fn has_hung_up(stream: &UnixStream) -> bool {
    let mut asked = [PollFd::new(stream, PollFlags::empty())];
    let polled = poll(&mut asked, Some(&Timespec::default()));
    polled.is_ok() && asked[0].revents().contains(PollFlags::HUP)
}

/// Does something while whoever waits for it is told again and again that it is being done.
fn pulsing<T>(stream: &UnixStream, act: impl FnOnce() -> T) -> T {
    let (done, until) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let pulse = move || {
            let mut writer = stream;
            while until.recv_timeout(PULSE) == Err(RecvTimeoutError::Timeout)
                && writer.write_all(b" ").is_ok()
            {}
        };
        // Without a thread the client hears nothing before the answer.
        let named = std::thread::Builder::new().name("control pulse".into());
        drop(named.spawn_scoped(scope, pulse));
        let result = act();
        drop(done);
        result
    })
}

pub struct Remote {
    path: PathBuf,
    reader: BufReader<UnixStream>,
}

impl Remote {
    /// Connects, if the volume is served.
    pub fn connect(home: &Home) -> Option<Self> {
        let path = home.control();
        let stream = local::connect(&path, Some(SILENCE)).ok()?;
        stream.set_read_timeout(Some(SILENCE)).ok()?;
        stream.set_write_timeout(Some(SILENCE)).ok()?;
        Some(Remote {
            path,
            reader: BufReader::new(stream),
        })
    }

    /// Sends a request and waits for the answer.
    ///
    /// # Errors
    /// The server is gone, says nothing for [`SILENCE`], or said why not.
    pub fn ask(&mut self, request: &Request) -> Result<Answer, ServeError> {
        let answer = self.exchange(request);
        let answer = answer.map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => self.is_silent(),
            _ => ServeError::file("talk to the server at", &self.path)(error),
        })?;
        match answer {
            Answer::Error { text, usage } => Err(ServeError::Remote { text, usage }),
            answer => Ok(answer),
        }
    }

    fn is_silent(&self) -> ServeError {
        ServeError::Refused(format!(
            "the server at {} has said nothing for {} seconds: it is stopped (kill -CONT lets it go on), or the machine \
             is too busy. What it was asked for is not carried out later, unless it had begun",
            self.path.display(),
            SILENCE.as_secs()
        ))
    }

    fn exchange(&mut self, request: &Request) -> io::Result<Answer> {
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        self.reader.get_ref().write_all(&line)?;
        let mut answer = Vec::new();
        let mut reader = (&mut self.reader).take(MOST_ANSWER);
        reader.read_until(b'\n', &mut answer)?;
        if !answer.ends_with(b"\n") {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(serde_json::from_slice(&answer)?)
    }
}

/// A volume or an array, served by somebody or opened here.
pub enum Reach {
    /// Somebody serves it.
    Remote(Remote),
    Local {
        service: Box<dyn Served>,
        /// Whether it was asked to change anything.
        changes: bool,
    },
}

impl Reach {
    /// Reaches the volume of a directory. If it is opened here to be looked at, nothing is written.
    ///
    /// # Errors
    /// Nobody serves it and it cannot be opened.
    pub fn open(
        home: &Home,
        mode: Mode,
        clocks: Arc<dyn Clocks>,
        access: Access,
    ) -> Result<Self, ServeError> {
        if let Some(remote) = Remote::connect(home) {
            return Ok(Reach::Remote(remote));
        }
        Ok(Reach::local(served::open(home, mode, clocks, access)?))
    }

    pub fn local(service: Box<dyn Served>) -> Self {
        Reach::Local {
            service,
            changes: false,
        }
    }

    /// What whoever reached it should know, as a sentence: that it was opened here and had not been closed. A server
    /// has told whoever started it.
    pub fn recovered(&self) -> Option<String> {
        match self {
            Reach::Remote(_) => None,
            Reach::Local { service, .. } => service.recovered(),
        }
    }

    pub fn ask(&mut self, request: &Request) -> Result<Answer, ServeError> {
        match self {
            Reach::Remote(remote) => remote.ask(request),
            Reach::Local { service, changes } => {
                *changes |= !request.only_looks();
                service.carry_out(request)
            }
        }
    }

    /// Ends the use; a volume that was opened here is closed.
    ///
    /// # Errors
    /// It was changed and could not be closed. If it was not, the next opening does what this end could not: whoever
    /// looks at a volume on a full store is to see it.
    pub fn close(self) -> Result<(), ServeError> {
        match self {
            Reach::Remote(_) => Ok(()),
            Reach::Local { service, changes } => match service.close() {
                Err(_) if !changes => Ok(()),
                closed => Ok(closed?),
            },
        }
    }
}

/// Has one request carried out, by whoever serves the volume or here; `tell` hears what should be known of a volume
/// that is opened here.
pub fn ask(
    home: &Home,
    mode: Mode,
    clocks: Arc<dyn Clocks>,
    request: &Request,
    tell: impl Fn(&str),
) -> Result<Answer, ServeError> {
    let access = match request.only_looks() {
        true => Access::Look,
        false => Access::Change,
    };
    let mut reach = Reach::open(home, mode, clocks, access)?;
    if let Some(recovered) = reach.recovered() {
        tell(&recovered);
    }
    let answer = reach.ask(request);
    reach.close().and(answer)
}

#[cfg(test)]
mod tests {
    use flashlore_volume::{CreateOptions, Encoding, Policy};

    use flashlore_nbd::server::{Config, Server};

    use super::*;
    use crate::exports::Exports;
    use crate::service::Service;

    fn service(home: &Home) -> Service {
        let options = CreateOptions {
            policy: Policy::Plain,
            history: None,
            encoding: Encoding {
                deltas: false,
                compression: false,
            },
            size: 1 << 20,
            capacity: 1 << 20,
            now: 1,
            seed: [3; 48],
        };
        home.create(&options).unwrap();
        let opened = home.open(Mode::Buffered, Access::Change).unwrap();
        Service::new(home.clone(), opened, Arc::new(|| 2)).unwrap()
    }

    #[test]
    fn a_client_may_be_silent_between_requests_and_not_within_one() {
        let directory = tempfile::tempdir().unwrap();
        let service = service(&Home::new(directory.path().join("disk")));
        let patience = Duration::from_millis(20);
        let (client, server) = UnixStream::pair().unwrap();
        std::thread::scope(|scope| {
            let serving = scope.spawn(|| serve(&service, server, patience));
            let mut answers = BufReader::new(&client).lines();
            for _ in 0..2 {
                std::thread::sleep(3 * patience);
                (&client).write_all(b"{\"request\":\"flush\"}\n").unwrap();
                assert_eq!(answers.next().unwrap().unwrap(), r#"{"answer":"done"}"#);
            }
            (&client).write_all(b"{").unwrap();
            assert!(serving.join().unwrap().is_err());
        });
        service.close().unwrap();
    }

    /// Between the opening and the first client somebody renames the directory and makes another one in its place.
    #[test]
    fn sockets_are_made_in_the_directory_that_was_opened_whatever_lies_at_its_path() {
        let top = tempfile::tempdir().unwrap();
        let [here, away] = ["disk", "away"].map(|name| top.path().join(name));
        let service: Arc<dyn Served> = Arc::new(service(&Home::new(&here)));
        std::fs::rename(&here, &away).unwrap();
        std::fs::create_dir(&here).unwrap();
        let control = Control::start(Arc::clone(&service)).unwrap();
        let exports = Exports::new(Arc::clone(&service), service.lives(), false);
        let address = service.home().nbd().unwrap();
        let server = Server::start(&[address], Config::default(), Arc::new(exports)).unwrap();
        let sockets = |directory: &std::path::Path| {
            ["nbd.sock", "control.sock"].map(|socket| directory.join(socket).exists())
        };
        assert_eq!((sockets(&here), sockets(&away)), ([false; 2], [true; 2]));
        drop((server, control));
        assert_eq!((sockets(&here), sockets(&away)), ([false; 2], [false; 2]));
        service.close().unwrap();
    }

    #[test]
    fn a_directory_with_a_long_path_has_a_control_socket() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::new(directory.path().join("long/".repeat(40)).join("disk"));
        let service = Arc::new(service(&home));
        assert!(Remote::connect(&home).is_none());
        let control = Control::start(service.clone()).unwrap();
        let mut remote = Remote::connect(&home).unwrap();
        assert_eq!(remote.ask(&Request::Flush).unwrap(), Answer::Done);
        drop(control);
        assert!(!home.control().exists());
        service.close().unwrap();
    }
}
