//! Unix and TCP sockets as one, and the addresses that are listened on.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::local::LocalListener;

/// The longest path that a Unix socket can have, in bytes: `sun_path` less the zero at its end.
const MOST_PATH: usize = 107;

/// A directory that is held open: the same one whatever its path is called by now.
#[derive(Clone, Debug)]
pub struct HeldDirectory(Arc<OwnedFd>);

impl From<OwnedFd> for HeldDirectory {
    fn from(directory: OwnedFd) -> Self {
        HeldDirectory(Arc::new(directory))
    }
}

impl PartialEq for HeldDirectory {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for HeldDirectory {}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A path of a Unix socket. A socket left there by a server that is gone is replaced.
    Unix(PathBuf),
    /// The same, by the last name of the path in a directory that is held open. The path is what it is called.
    Within(HeldDirectory, PathBuf),
    /// An address and port; port 0 is any that is free.
    Tcp(SocketAddr),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) | Self::Within(_, path) => write!(f, "{}", path.display()),
            Self::Tcp(address) => write!(f, "{address}"),
        }
    }
}

#[derive(Debug)]
pub(super) enum Listening {
    Unix(LocalListener, PathBuf),
    Tcp(TcpListener),
}

impl Listening {
    pub(super) fn bind(address: &Address) -> io::Result<Self> {
        let bound = match address {
            Address::Unix(path) | Address::Within(_, path)
                if path.as_os_str().len() > MOST_PATH =>
            {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    format!(
                        "the path of a Unix socket has at most {MOST_PATH} bytes, this one has {}: listen somewhere else",
                        path.as_os_str().len()
                    ),
                ));
            }
            Address::Unix(path) => Self::local(LocalListener::bind(path)?, path)?,
            Address::Within(HeldDirectory(directory), path) => {
                let name = path.file_name().unwrap_or_default();
                Self::local(LocalListener::bind_in(directory.try_clone()?, name)?, path)?
            }
            Address::Tcp(address) => {
                let listener = TcpListener::bind(address)?;
                listener.set_nonblocking(true)?;
                Self::Tcp(listener)
            }
        };
        Ok(bound)
    }

    fn local(listener: LocalListener, path: &Path) -> io::Result<Self> {
        listener.listener().set_nonblocking(true)?;
        Ok(Self::Unix(listener, path.to_owned()))
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
                let (stream, _) = listener.listener().accept()?;
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

impl AsFd for Listening {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(local, _) => local.listener().as_fd(),
            Self::Tcp(listener) => listener.as_fd(),
        }
    }
}

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

    /// Whether the client is of this machine and came through a file.
    pub(super) fn is_local(&self) -> bool {
        matches!(self, Self::Unix(_))
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
