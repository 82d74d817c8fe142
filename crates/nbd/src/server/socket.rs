//! Unix and TCP sockets as one, and the addresses that are listened on.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest path that a Unix socket can have, in bytes: `sun_path` less the zero at its end.
const MOST_PATH: usize = 107;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A path of a Unix socket. A socket left there by a server that is gone is replaced.
    Unix(PathBuf),
    /// An address and port; port 0 is any that is free.
    Tcp(SocketAddr),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "{}", path.display()),
            Self::Tcp(address) => write!(f, "{address}"),
        }
    }
}

/// A bound address.
#[derive(Debug)]
pub(super) enum Listening {
    Unix(UnixListener, PathBuf),
    Tcp(TcpListener),
}

impl Listening {
    pub(super) fn bind(address: &Address) -> io::Result<Self> {
        let bound = match address {
            Address::Unix(path) if path.as_os_str().len() > MOST_PATH => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    format!(
                        "the path of a Unix socket has at most {MOST_PATH} bytes, this one has {}: listen somewhere else",
                        path.as_os_str().len()
                    ),
                ));
            }
            Address::Unix(path) => {
                let listener = UnixListener::bind(path).or_else(|error| {
                    if error.kind() != io::ErrorKind::AddrInUse || !is_left(path)? {
                        return Err(error);
                    }
                    std::fs::remove_file(path)?;
                    UnixListener::bind(path)
                })?;
                listener.set_nonblocking(true)?;
                Self::Unix(listener, path.clone())
            }
            Address::Tcp(address) => {
                let listener = TcpListener::bind(address)?;
                listener.set_nonblocking(true)?;
                Self::Tcp(listener)
            }
        };
        Ok(bound)
    }

    pub(super) fn address(&self) -> io::Result<Address> {
        match self {
            Self::Unix(_, path) => Ok(Address::Unix(path.clone())),
            Self::Tcp(listener) => listener.local_addr().map(Address::Tcp),
        }
    }

    /// A connection, if one waits.
    pub(super) fn accept(&self) -> io::Result<Socket> {
        match self {
            Self::Unix(listener, _) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(false)?;
                Ok(Socket::Unix(stream))
            }
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(false)?;
                stream.set_nodelay(true)?;
                Ok(Socket::Tcp(stream))
            }
        }
    }
}

/// Whether what has a path is a socket that nobody listens on any more. A connection to a file is refused as well.
fn is_left(path: &Path) -> io::Result<bool> {
    if !std::fs::metadata(path)?.file_type().is_socket() {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "there is something that is no socket, and it is not replaced",
        ));
    }
    let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    Ok(UnixStream::connect(path).is_err_and(refused))
}

impl AsFd for Listening {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(listener, _) => listener.as_fd(),
            Self::Tcp(listener) => listener.as_fd(),
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if let Self::Unix(_, path) = self {
            // Nothing is lost if it is gone already.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// A connected socket.
#[derive(Debug)]
pub(super) enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Socket {
    pub(super) fn try_clone(&self) -> io::Result<Self> {
        match self {
            Self::Unix(stream) => stream.try_clone().map(Self::Unix),
            Self::Tcp(stream) => stream.try_clone().map(Self::Tcp),
        }
    }

    /// How long one call may block.
    pub(super) fn set_tick(&self, tick: Duration) -> io::Result<()> {
        match self {
            Self::Unix(stream) => {
                stream.set_read_timeout(Some(tick))?;
                stream.set_write_timeout(Some(tick))
            }
            Self::Tcp(stream) => {
                stream.set_read_timeout(Some(tick))?;
                stream.set_write_timeout(Some(tick))
            }
        }
    }

    pub(super) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => (&mut &*stream).read(buffer),
            Self::Tcp(stream) => (&mut &*stream).read(buffer),
        }
    }

    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => (&mut &*stream).write(bytes),
            Self::Tcp(stream) => (&mut &*stream).write(bytes),
        }
    }

    /// Ends one direction or both; whoever is blocked in it returns.
    pub(super) fn shutdown(&self, how: Shutdown) {
        // It fails only if the connection is gone.
        let _ = match self {
            Self::Unix(stream) => stream.shutdown(how),
            Self::Tcp(stream) => stream.shutdown(how),
        };
    }
}
