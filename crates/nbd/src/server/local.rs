//! Unix sockets with a name in a directory: one that listens and belongs to this process, and one that connects.
//!
//! The directory is held open, so the socket is found and removed where it was made, whatever the directory is called
//! by then. The socket itself is held open too, which keeps its inode number from being given to another file: what
//! has the same device and inode *is* the socket that was bound here, and nothing else is ever removed.
//!
//! Nobody but its owner can connect, whatever the umask is: the socket has its permissions before it listens, and
//! until it listens connections are refused.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;
/// Permissions of a socket: its owner may connect.
const OWNER_ALONE: Mode = Mode::RUSR.union(Mode::WUSR);
/// How the numbers of open files can be used as paths.
const OPEN_FILES: &str = "/proc/self/fd";

/// A Unix socket that listens. Dropping it removes its name, if the name is still that of this socket.
#[derive(Debug)]
pub struct LocalListener {
    listener: UnixListener,
    directory: OwnedFd,
    name: OsString,
    /// The socket as a file.
    own: OwnedFd,
}

impl LocalListener {
    /// Listens at a path. A socket that nobody listens on any more is replaced.
    ///
    /// # Errors
    /// Somebody listens there, there is something that is no socket, or the file system refuses.
    pub fn bind(path: &Path) -> io::Result<Self> {
        let (directory, name) = parts(path)?;
        Self::bind_in(open_directory(directory)?, name)
    }

    /// Listens at a name in a directory that is held open, as [`LocalListener::bind`].
    ///
    /// # Errors
    /// As there.
    pub fn bind_in(directory: OwnedFd, name: &OsStr) -> io::Result<Self> {
        let socket = unix_socket()?;
        // Linux gives a socket's name the permissions that the socket has, less the umask.
        rustix::fs::fchmod(&socket, OWNER_ALONE)?;
        let address = address_in(directory.as_fd(), name)?;
        match rustix::net::bind(&socket, &address) {
            Err(Errno::ADDRINUSE) if is_left(directory.as_fd(), name, &address)? => {
                rustix::fs::unlinkat(&directory, name, AtFlags::empty())?;
                rustix::net::bind(&socket, &address)?;
            }
            bound => bound?,
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let own = rustix::fs::openat(&directory, name, flags, Mode::empty())?;
        // From here on a failure removes the name again.
        let local = LocalListener {
            listener: UnixListener::from(socket),
            directory,
            name: name.to_owned(),
            own,
        };
        local.start()?;
        Ok(local)
    }

    fn start(&self) -> io::Result<()> {
        let stat = rustix::fs::fstat(&self.own)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Socket {
            return Err(io::Error::other("it was replaced by something else"));
        }
        if Mode::from_raw_mode(stat.st_mode) != OWNER_ALONE {
            let (directory, name) = (&self.directory, self.name.as_os_str());
            rustix::fs::chmodat(directory, name, OWNER_ALONE, AtFlags::empty())?;
        }
        rustix::net::listen(&self.listener, BACKLOG)?;
        Ok(())
    }

    pub fn listener(&self) -> &UnixListener {
        &self.listener
    }

    /// Another handle of the socket, for a thread of its own.
    ///
    /// # Errors
    /// No file can be opened.
    pub fn try_clone_listener(&self) -> io::Result<UnixListener> {
        self.listener.try_clone()
    }

    /// Connects to this socket itself, wherever its directory is now; so a thread that waits for a connection wakes.
    ///
    /// # Errors
    /// The name is not that of this socket any more, or nobody can connect.
    pub fn connect(&self) -> io::Result<UnixStream> {
        if !self.is_own()? {
            return Err(io::ErrorKind::NotFound.into());
        }
        connect_in(self.directory.as_fd(), &self.name, None)
    }

    /// Whether the name in the directory is that of this socket.
    fn is_own(&self) -> io::Result<bool> {
        let own = rustix::fs::fstat(&self.own)?;
        let name = self.name.as_os_str();
        match rustix::fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => Ok(same_file(&found, &own)),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for LocalListener {
    fn drop(&mut self) {
        if self.is_own().is_ok_and(|own| own) {
            // Best effort: whoever listens there next replaces it.
            let _ = rustix::fs::unlinkat(&self.directory, self.name.as_os_str(), AtFlags::empty());
        }
    }
}

/// Connects to a Unix socket at a path of any length.
///
/// # Errors
/// Nobody listens there, or, with a `patience`, the listener takes no more connections for so long.
pub fn connect(path: &Path, patience: Option<Duration>) -> io::Result<UnixStream> {
    let (directory, name) = parts(path)?;
    connect_in(open_directory(directory)?.as_fd(), name, patience)
}

fn connect_in(
    directory: BorrowedFd<'_>,
    name: &OsStr,
    patience: Option<Duration>,
) -> io::Result<UnixStream> {
    let socket = unix_socket()?;
    // The time to send bounds the time to connect as well.
    set_socket_timeout(&socket, Timeout::Send, patience)?;
    rustix::net::connect(&socket, &address_in(directory, name)?)?;
    set_socket_timeout(&socket, Timeout::Send, None)?;
    Ok(UnixStream::from(socket))
}

fn same_file(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}

fn unix_socket() -> io::Result<OwnedFd> {
    let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
    Ok(rustix::net::socket_with(
        family,
        kind,
        SocketFlags::CLOEXEC,
        None,
    )?)
}

/// The directory and the name of a path.
fn parts(path: &Path) -> io::Result<(&Path, &OsStr)> {
    let name = path.file_name().ok_or_else(|| {
        let why = "it does not end in a name, expected the path of a socket";
        io::Error::new(io::ErrorKind::InvalidInput, why)
    })?;
    let directory = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    Ok((directory.unwrap_or(Path::new(".")), name))
}

fn open_directory(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// The address of a name in an open directory: there is no call that takes the two apart.
fn address_in(directory: BorrowedFd<'_>, name: &OsStr) -> io::Result<SocketAddrUnix> {
    let number = directory.as_raw_fd().to_string();
    let path: PathBuf = [OsStr::new(OPEN_FILES), OsStr::new(&number), name]
        .iter()
        .collect();
    Ok(SocketAddrUnix::new(path.as_path())?)
}

/// Whether what has a name is a socket that nobody listens on any more. A connection to a file is refused as well.
fn is_left(directory: BorrowedFd<'_>, name: &OsStr, address: &SocketAddrUnix) -> io::Result<bool> {
    let found = rustix::fs::statat(directory, name, AtFlags::empty())?;
    if FileType::from_raw_mode(found.st_mode) != FileType::Socket {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "there is something that is no socket, and it is not replaced",
        ));
    }
    let socket = unix_socket()?;
    // A listener that takes no more connections is not waited for: it is there.
    rustix::io::ioctl_fionbio(&socket, true)?;
    Ok(rustix::net::connect(&socket, address) == Err(Errno::CONNREFUSED))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{FileTypeExt, PermissionsExt};

    use super::*;

    #[test]
    fn a_socket_goes_with_its_directory_and_leaves_anothers_alone() {
        let top = tempfile::tempdir().unwrap();
        let (here, away) = (top.path().join("here"), top.path().join("away"));
        fs::create_dir(&here).unwrap();
        let first = LocalListener::bind(&here.join("s")).unwrap();
        fs::rename(&here, &away).unwrap();
        fs::create_dir(&here).unwrap();
        let second = LocalListener::bind(&here.join("s")).unwrap();
        first.connect().unwrap();
        assert!(first.listener().accept().is_ok());
        drop(first);
        assert!(!away.join("s").exists());
        assert!(here.join("s").exists());
        connect(&here.join("s"), None).unwrap();
        drop(second);
        assert!(!here.join("s").exists());
    }

    #[test]
    fn a_name_that_somebody_else_took_is_left_to_them() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("s");
        let first = LocalListener::bind(&path).unwrap();
        fs::remove_file(&path).unwrap();
        // File systems like to give the number of the last removed file to the next one.
        let second = LocalListener::bind(&path).unwrap();
        assert!(first.connect().is_err());
        drop(first);
        connect(&path, None).unwrap();
        drop(second);
        assert!(!path.exists());
    }

    #[test]
    fn what_nobody_listens_on_is_replaced_and_nothing_else() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("s");
        drop(UnixListener::bind(&path).unwrap());
        let listener = LocalListener::bind(&path).unwrap();
        let used = LocalListener::bind(&path).unwrap_err();
        assert_eq!(used.kind(), io::ErrorKind::AddrInUse);
        drop(listener);
        fs::write(&path, "precious").unwrap();
        let refused = LocalListener::bind(&path).unwrap_err();
        assert!(refused.to_string().contains("no socket"), "{refused}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
        assert!(LocalListener::bind(Path::new("/")).is_err());
    }

    #[test]
    fn its_owner_alone_may_connect() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("long/".repeat(40)).join("s");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _listener = LocalListener::bind(&path).unwrap();
        let told = fs::metadata(&path).unwrap();
        assert!(told.file_type().is_socket());
        assert_eq!(told.permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_listener_that_takes_nobody_is_not_waited_for_for_ever() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("s");
        let listener = LocalListener::bind(&path).unwrap();
        let mut waiting = Vec::new();
        let error = loop {
            match connect(&path, Some(Duration::from_millis(50))) {
                Ok(stream) => waiting.push(stream),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert!(waiting.len() as i32 >= BACKLOG);
        drop(listener);
    }
}
