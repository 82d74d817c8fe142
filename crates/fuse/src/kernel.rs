//! The kernel's side of a mount: where it is, and how it begins and ends.
//!
//! Each mount has a source of its own, drawn at random, which the kernel shows in the table of mounts. By that it is
//! found there, wherever the directories above it have been moved to. So nothing is ever unmounted because of its path
//! (another mount that lies there by now stays), nor because of its device number or its number as a mount (the kernel
//! gives those of a mount that ended to the next one).
//!
//! Root mounts by the system call, others through `fusermount3`, which hands the open device over.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, umount2};
use nix::unistd::{getgid, getuid};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

/// The device that the kernel's requests come from.
pub const DEVICE: &str = "/dev/fuse";
const HELPER: &str = "fusermount3";
/// The mounts that this process sees.
const TABLE: &str = "/proc/self/mountinfo";
/// What the table calls our file systems.
const KIND: &str = "fuse.flashlore";

/// A mount, by its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountId(String);

/// Whether a mount is gone, or only its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gone {
    /// It is gone, and nobody is known to use it: somebody else may have unmounted it before.
    Unused,
    /// Nobody finds it any more, and it ends when the last one who uses it has left.
    Detached,
}

/// Mounts at a directory whose path has no links; answers the device and how the mount is found again.
pub fn mount(point: &Path, read_only: bool) -> io::Result<(OwnedFd, MountId)> {
    let id = MountId::draw()?;
    let device = match by_call(point, &id, read_only) {
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
            by_helper(point, &id, read_only)?
        }
        mounted => mounted?,
    };
    match table()?.iter().any(|row| row.is(&id)) {
        true => Ok((device, id)),
        false => Err(io::Error::other(format!("the mount is not in {TABLE}"))),
    }
}

/// As root does it.
fn by_call(point: &Path, id: &MountId, read_only: bool) -> io::Result<OwnedFd> {
    let device = OpenOptions::new().read(true).write(true).open(DEVICE)?;
    let options = format!(
        "fd={},rootmode={:o},user_id={},group_id={},default_permissions",
        device.as_raw_fd(),
        fs::metadata(point)?.mode(),
        getuid(),
        getgid()
    );
    let mut flags = MsFlags::MS_NODEV | MsFlags::MS_NOSUID | MsFlags::MS_NOATIME;
    flags.set(MsFlags::MS_RDONLY, read_only);
    nix::mount::mount(
        Some(id.0.as_str()),
        point,
        Some(KIND),
        flags,
        Some(options.as_str()),
    )?;
    Ok(device.into())
}

/// As others do it: the helper gets one end of a pair of sockets as its standard input, and sends the device through it.
fn by_helper(point: &Path, id: &MountId, read_only: bool) -> io::Result<OwnedFd> {
    let (ours, its) = UnixStream::pair()?;
    let access = if read_only { "ro" } else { "rw" };
    let child = Command::new(HELPER)
        .arg("-o")
        .arg(format!(
            "fsname={},subtype=flashlore,default_permissions,noatime,{access}",
            id.0
        ))
        .arg("--")
        .arg(point)
        .env("_FUSE_COMMFD", "0")
        .stdin(Stdio::from(OwnedFd::from(its)))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let device = received(&ours);
    let ended = child.wait_with_output()?;
    device?.ok_or_else(|| {
        let said = String::from_utf8_lossy(&ended.stderr);
        io::Error::other(said.trim().to_owned())
    })
}

/// The open file that comes through a socket; nothing if that ends before.
fn received(socket: &UnixStream) -> io::Result<Option<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut data = [IoSliceMut::new(&mut byte)];
    rustix::io::retry_on_intr(|| {
        recvmsg(socket, &mut data, &mut control, RecvFlags::CMSG_CLOEXEC)
    })?;
    let mut files = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    Ok(files.next().and_then(|mut files| files.next()))
}

impl MountId {
    /// One that no mount has had.
    fn draw() -> io::Result<Self> {
        let drawn = getrandom::u64().map_err(io::Error::from)?;
        Ok(MountId(format!("flashlore-{drawn:016x}")))
    }

    /// Takes the mount away, wherever it is: nobody finds it any more.
    ///
    /// # Errors
    /// Something is mounted over it, or the kernel does not let it go.
    pub fn unmount(&self) -> io::Result<Gone> {
        let table = table()?;
        let Some(own) = table.iter().rfind(|row| row.is(self)) else {
            return Ok(Gone::Unused);
        };
        let top = table.iter().rfind(|row| row.point == own.point);
        if top.is_some_and(|top| !top.is(self)) {
            return Err(io::Error::other(format!(
                "something else is mounted over it at {}: unmount that first",
                own.point.display()
            )));
        }
        match umount2(&own.point, MntFlags::UMOUNT_NOFOLLOW) {
            Ok(()) | Err(Errno::EINVAL) => return Ok(Gone::Unused),
            Err(Errno::EBUSY) => {}
            Err(Errno::EPERM) => return by_helper_unmounted(&own.point),
            Err(errno) => return Err(errno.into()),
        }
        match umount2(&own.point, MntFlags::MNT_DETACH | MntFlags::UMOUNT_NOFOLLOW) {
            Ok(()) | Err(Errno::EINVAL) => Ok(Gone::Detached),
            Err(errno) => Err(errno.into()),
        }
    }
}

/// Without root it is taken away like this even while it is used.
fn by_helper_unmounted(point: &Path) -> io::Result<Gone> {
    let ended = Command::new(HELPER)
        .args(["-u", "-z", "--"])
        .arg(point)
        .stdin(Stdio::null())
        .output()?;
    match ended.status.success() {
        true => Ok(Gone::Unused),
        false => {
            let said = String::from_utf8_lossy(&ended.stderr);
            Err(io::Error::other(said.trim().to_owned()))
        }
    }
}

/// A row of the table of mounts.
struct Row {
    point: PathBuf,
    kind: String,
    source: String,
}

impl Row {
    fn is(&self, id: &MountId) -> bool {
        self.kind == KIND && self.source == id.0
    }
}

/// The mounts that this process sees; of several at one place the last one is on top.
fn table() -> io::Result<Vec<Row>> {
    let text = fs::read(TABLE)?;
    Ok(text.split(|&byte| byte == b'\n').filter_map(row).collect())
}

/// `36 35 98:0 /root /point options [tags] - kind source options`
fn row(line: &[u8]) -> Option<Row> {
    let mut fields = line.split(|&byte| byte == b' ');
    let point = unescaped(fields.nth(4)?);
    let mut behind = fields.skip_while(|field| *field != b"-").skip(1);
    let mut text = || Some(String::from_utf8_lossy(behind.next()?).into_owned());
    Some(Row {
        point: PathBuf::from(OsString::from_vec(point)),
        kind: text()?,
        source: text()?,
    })
}

/// A path of the table, where white space and backslashes are three octal digits behind a backslash.
fn unescaped(path: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = path;
    while let Some((&first, behind)) = rest.split_first() {
        let octal = behind.get(..3).filter(|_| first == b'\\');
        let octal = octal.and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = octal.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.push(byte.unwrap_or(first));
        rest = if byte.is_some() { &behind[3..] } else { behind };
    }
    bytes
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn rows_of_the_table_are_understood() {
        let line =
            b"36 35 98:12 / /mnt/a\\040b\\134 rw,noatime master:1 - fuse.flashlore flashlore-1 rw";
        let found = row(line).unwrap();
        assert_eq!(found.point.as_os_str().as_bytes(), b"/mnt/a b\\");
        assert!(found.is(&MountId("flashlore-1".to_owned())));
        assert!(!found.is(&MountId("flashlore".to_owned())));
        for line in [&b""[..], b"36 35 98 / /mnt", b"36 35 98:0 / /mnt rw - fuse"] {
            assert!(row(line).is_none());
        }
        // One that cannot be unmounted because it is not there.
        let nowhere = MountId::draw().unwrap();
        assert_eq!(nowhere.unmount().unwrap(), Gone::Unused);
    }
}
