//! The control socket: requests to a served volume, one line of JSON each, answered by one line.
//!
//! Who may open the socket may do everything: it lies in the volume's directory and has its permissions, less all
//! those of others.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flashlore_medium::Mode;
use flashlore_volume::disk::live::Clock;

use crate::error::ServeError;
use crate::home::Home;
use crate::request::{Answer, Request};
use crate::service::Service;

/// The longest line of a request.
const MOST_LINE: u64 = 64 << 10;
/// The longest line of an answer: what [`crate::request::MOST_READ`] bytes need in base 64, or many ranges.
const MOST_ANSWER: u64 = 1 << 30;
/// How long a request may take to arrive.
const PATIENCE: Duration = Duration::from_secs(10);

/// A control socket that takes requests. It is removed when this is dropped.
pub struct Control {
    path: PathBuf,
    stops: Arc<AtomicBool>,
}

impl Control {
    /// Takes requests to a service. One that a dead server left is replaced: the caller holds the lock of the volume.
    ///
    /// # Errors
    /// The socket cannot be made.
    pub fn start(service: Arc<Service>) -> Result<Self, ServeError> {
        let path = service.home().control();
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(ServeError::file("replace", &path)(error));
            }
            _ => {}
        }
        let listener = UnixListener::bind(&path).map_err(ServeError::file("listen on", &path))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))
            .map_err(ServeError::file("set permissions of", &path))?;
        let stops = Arc::new(AtomicBool::new(false));
        let control = Control {
            path: path.clone(),
            stops: Arc::clone(&stops),
        };
        let accept = move || {
            for stream in listener.incoming() {
                if stops.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                let service = Arc::clone(&service);
                let serve = move || drop(serve(&service, stream));
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
        // Wakes the listener, which then ends.
        drop(UnixStream::connect(&self.path));
        // Best effort: the next server replaces it.
        let _ = fs::remove_file(&self.path);
    }
}

/// Answers the requests of a connection.
fn serve(service: &Service, stream: UnixStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut reader = BufReader::new(&stream);
    let mut writer = &stream;
    loop {
        let mut line = Vec::new();
        (&mut reader).take(MOST_LINE).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(());
        }
        let answer = match serde_json::from_slice(&line) {
            Ok(request) => service.answer(&request),
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

/// A connection to a served volume.
pub struct Remote {
    path: PathBuf,
    reader: BufReader<UnixStream>,
}

impl Remote {
    /// Connects, if the volume is served.
    pub fn connect(home: &Home) -> Option<Self> {
        let path = home.control();
        let stream = UnixStream::connect(&path).ok()?;
        Some(Remote {
            path,
            reader: BufReader::new(stream),
        })
    }

    /// Sends a request and waits for the answer.
    ///
    /// # Errors
    /// The server is gone, or said why not.
    pub fn ask(&mut self, request: &Request) -> Result<Answer, ServeError> {
        let answer = self.exchange(request);
        let answer = answer.map_err(ServeError::file("talk to the server at", &self.path))?;
        match answer {
            Answer::Error { text, usage } => Err(ServeError::Remote { text, usage }),
            answer => Ok(answer),
        }
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

/// A volume, served by somebody or opened here.
pub enum Reach {
    /// Somebody serves it.
    Remote(Remote),
    /// It is open here.
    Local(Box<Service>),
}

impl Reach {
    /// Reaches the volume of a directory.
    ///
    /// # Errors
    /// Nobody serves it and it cannot be opened.
    pub fn open(home: &Home, mode: Mode, clock: Clock) -> Result<Self, ServeError> {
        if let Some(remote) = Remote::connect(home) {
            return Ok(Reach::Remote(remote));
        }
        let (volume, _) = home.open(mode)?;
        let service = Service::new(home.clone(), volume, clock)?;
        Ok(Reach::Local(Box::new(service)))
    }

    /// Has a request carried out.
    ///
    /// # Errors
    /// Why it was not done.
    pub fn ask(&mut self, request: &Request) -> Result<Answer, ServeError> {
        match self {
            Reach::Remote(remote) => remote.ask(request),
            Reach::Local(service) => service.carry_out(request),
        }
    }

    /// Ends the use; a volume that was opened here is closed.
    ///
    /// # Errors
    /// It could not be closed.
    pub fn close(self) -> Result<(), ServeError> {
        match self {
            Reach::Remote(_) => Ok(()),
            Reach::Local(service) => Ok(service.close()?),
        }
    }
}

/// Has one request carried out, by whoever serves the volume or here.
///
/// # Errors
/// Why it was not done.
pub fn ask(home: &Home, mode: Mode, clock: Clock, request: &Request) -> Result<Answer, ServeError> {
    let mut reach = Reach::open(home, mode, clock)?;
    let answer = reach.ask(request);
    reach.close().and(answer)
}
