//! A medium in a file or on a block device, through the page cache or past it (direct I/O).
//!
//! An advisory lock ([`lock`]) keeps a second opener out; those who only look share it. The kernel releases it when the
//! process ends, however it ends.
//!
//! [`lock`]: crate::lock

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use parking_lot::Mutex;
use rustix::fs::{AtFlags, CWD, FallocateFlags, FileType, OFlags, StatxFlags};
use rustix::io::{Errno, retry_on_intr};

use crate::buffer::{AlignedBuf, PAGE};
use crate::error::{Cause, MediumError, Operation};
use crate::lock::{Locked, patiently};
use crate::medium::{Medium, SECTOR, check};

/// Most bytes copied at once for a caller whose buffer is not aligned.
const BOUNCE: usize = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Through the page cache of the operating system.
    Buffered,
    /// Past the page cache. Coarser alignment; see [`Medium::alignment`].
    Direct,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// To be read and written, by one opener at a time.
    Change,
    /// To be read, by several openers at once and by nobody who writes. It may lie on a file system that is read-only.
    Look,
}

/// A file or block device, open and locked.
#[derive(Debug)]
pub struct FileMedium {
    file: Locked,
    path: PathBuf,
    access: Access,
    /// It changes where the file becomes longer or shorter, which whoever shares it sees.
    len: AtomicU64,
    /// What offsets and lengths must be multiples of.
    alignment: u32,
    /// What addresses of buffers must be multiples of; others are copied.
    memory_alignment: usize,
    syncs: Syncs,
}

/// Syncs of a file, one at a time. The kernel tells of a write that failed once: whoever syncs beside or after the one
/// who was told would take lost bytes for durable.
#[derive(Debug, Default)]
struct Syncs {
    failed: Mutex<bool>,
}

impl Syncs {
    /// Runs a sync, unless one has failed before.
    fn run(&self, sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let mut failed = self.failed.lock();
        if *failed {
            return Err(io::Error::other("an earlier sync of the file failed"));
        }
        let synced = sync();
        *failed = synced.is_err();
        synced
    }
}

impl FileMedium {
    /// Makes a sparse file of `len` bytes that only its owner may open; it and its name are durable when this returns.
    ///
    /// # Errors
    /// The file exists, `len` is not aligned as the mode asks, or the file system refuses. A file
    /// that could not be finished is removed.
    pub fn create(path: impl AsRef<Path>, len: u64, mode: Mode) -> Result<Self, MediumError> {
        let path = path.as_ref();
        Self::try_create(path, len, mode)
            .map_err(|cause| MediumError::at(Operation::Create, 0, len, cause).with_path(path))
    }

    /// Opens a file or block device with all the bytes it has. A block device that is mounted is refused. One that is in
    /// use is tried again for about a second: a child that its last user was starting when it died may hold it until
    /// it runs its own program.
    ///
    /// # Errors
    /// It does not exist, stays in use, is neither file nor block device, cannot be accessed in this
    /// mode, or its size is not aligned as the mode asks.
    pub fn open(path: impl AsRef<Path>, mode: Mode) -> Result<Self, MediumError> {
        Self::open_for(path, mode, Access::Change)
    }

    /// As [`FileMedium::open`], to be changed or only looked at.
    pub fn open_for(
        path: impl AsRef<Path>,
        mode: Mode,
        access: Access,
    ) -> Result<Self, MediumError> {
        let path = path.as_ref();
        Self::open_in(CWD, path, path, mode, access)
    }

    /// Opens what has a name in a directory that is held open, as [`FileMedium::open`]; errors name it by `path`.
    pub fn open_in(
        directory: BorrowedFd<'_>,
        name: &Path,
        path: &Path,
        mode: Mode,
        access: Access,
    ) -> Result<Self, MediumError> {
        Self::try_open(directory, name, path, mode, access)
            .map_err(|cause| MediumError::at(Operation::Open, 0, 0, cause).with_path(path))
    }

    fn try_create(path: &Path, len: u64, mode: Mode) -> Result<Self, Cause> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(Cause::Io)?;
        let prepared = file
            .set_len(len)
            .map_err(Cause::Io)
            .and_then(|()| Locked::new(file, Access::Change))
            .and_then(|file| Self::prepare(file, path, mode, Access::Change))
            .and_then(|medium| {
                medium.file.sync_all().map_err(Cause::Io)?;
                sync_directory_of(path).map_err(Cause::Io)?;
                Ok(medium)
            });
        if prepared.is_err() {
            // Best effort: the reason why it failed says more than why it could not be removed.
            let _ = fs::remove_file(path);
        }
        prepared
    }

    fn try_open(
        directory: BorrowedFd<'_>,
        name: &Path,
        path: &Path,
        mode: Mode,
        access: Access,
    ) -> Result<Self, Cause> {
        let system = |errno: Errno| Cause::Io(errno.into());
        let found = rustix::fs::statat(directory, name, AtFlags::empty()).map_err(system)?;
        let mut flags = OFlags::CLOEXEC;
        flags |= match access {
            Access::Change => OFlags::RDWR,
            Access::Look => OFlags::RDONLY,
        };
        match FileType::from_raw_mode(found.st_mode) {
            // The kernel then refuses a device that is mounted or otherwise claimed.
            FileType::BlockDevice => flags |= OFlags::EXCL,
            FileType::RegularFile => {}
            _ => return Err(Cause::NotAMedium),
        }
        let open = || {
            let opened = rustix::fs::openat(directory, name, flags, rustix::fs::Mode::empty());
            let file = opened.map_err(|errno| match errno {
                Errno::BUSY => Cause::InUse,
                _ => system(errno),
            })?;
            Locked::new(file.into(), access)
        };
        let medium = Self::prepare(patiently(thread::sleep, open)?, path, mode, access)?;
        medium.forget_the_cache().map_err(Cause::Io)?;
        Ok(medium)
    }

    /// What is read from now on is what the device holds. After a failed sync the kernel may keep
    /// pages that never reached the device and count them as written; the process that saw the failure
    /// may be gone.
    fn forget_the_cache(&self) -> io::Result<()> {
        match self.file.sync_data() {
            // Nothing waits to be written to a file system that takes nothing.
            Err(error)
                if self.access == Access::Look
                    && error.kind() == io::ErrorKind::ReadOnlyFilesystem => {}
            synced => synced?,
        }
        // Where the file system knows no such advice, nothing better can be done.
        let _ = rustix::fs::fadvise(&*self.file, 0, None, rustix::fs::Advice::DontNeed);
        Ok(())
    }

    /// Finds out the size of a file, and switches to direct I/O if wanted.
    fn prepare(file: Locked, path: &Path, mode: Mode, access: Access) -> Result<Self, Cause> {
        let len = (&*file).seek(SeekFrom::End(0)).map_err(Cause::Io)?;
        let (alignment, memory_alignment) = match mode {
            Mode::Buffered => (buffered_alignment(&file)?, 1),
            Mode::Direct => enter_direct_mode(&file)?,
        };
        if !len.is_multiple_of(u64::from(alignment)) {
            return Err(Cause::BadSize { len, alignment });
        }
        Ok(FileMedium {
            file,
            path: path.to_owned(),
            access,
            len: AtomicU64::new(len),
            alignment,
            memory_alignment,
            syncs: Syncs::default(),
        })
    }

    /// Makes a file that is shorter than `len` bytes so long; what is new is sparse, and durable when this returns. A
    /// block device has the length it has.
    ///
    /// # Errors
    /// The file system refuses, or `len` is not aligned as the mode asks.
    pub fn extend(&self, len: u64) -> Result<(), MediumError> {
        if self.len() >= len {
            return Ok(());
        }
        self.try_resize(len).map_err(|cause| {
            MediumError::at(Operation::Extend, 0, len, cause).with_path(&self.path)
        })
    }

    fn try_resize(&self, len: u64) -> Result<(), Cause> {
        let kind = self.file.metadata().map_err(Cause::Io)?.file_type();
        if kind.is_block_device() {
            return Ok(());
        }
        let alignment = self.alignment;
        if !len.is_multiple_of(u64::from(alignment)) {
            return Err(Cause::BadSize { len, alignment });
        }
        self.file.set_len(len).map_err(Cause::Io)?;
        self.file.sync_all().map_err(Cause::Io)?;
        self.len.store(len, Ordering::Release);
        Ok(())
    }

    /// Makes a file that is longer than `len` bytes so short; durable when this returns. A block device has the length it
    /// has.
    ///
    /// # Errors
    /// The file system refuses, or `len` is not aligned as the mode asks.
    pub fn shorten(&self, len: u64) -> Result<(), MediumError> {
        let before = self.len();
        if before <= len {
            return Ok(());
        }
        self.try_resize(len).map_err(|cause| {
            MediumError::at(Operation::Shorten, len, before - len, cause).with_path(&self.path)
        })
    }

    /// Whether it is a file, which may become longer or shorter.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn is_file(&self) -> Result<bool, MediumError> {
        let found = self.file.metadata().map(|metadata| metadata.is_file());
        found.map_err(|error| {
            MediumError::at(Operation::Open, 0, 0, Cause::Io(error)).with_path(&self.path)
        })
    }

    /// Takes the room of so many bytes of a file at `offset` now, so that writes to them do not find the file system
    /// full later. A block device has its room; a file system that cannot do this is left to take it when it is
    /// written.
    pub fn take_room(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        self.run(Operation::Extend, offset, len, || {
            match self.allocate(FallocateFlags::KEEP_SIZE, offset, len) {
                Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::NODEV) => Ok(()),
                done => Ok(done?),
            }
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    fn is_aligned(&self, buf: &[u8]) -> bool {
        buf.as_ptr().addr().is_multiple_of(self.memory_alignment)
    }

    fn read_any(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        if self.is_aligned(buf) {
            return self.file.read_exact_at(buf, offset);
        }
        let mut bounce = AlignedBuf::zeroed(buf.len().min(BOUNCE));
        for (index, piece) in buf.chunks_mut(BOUNCE).enumerate() {
            let aligned = &mut bounce[..piece.len()];
            self.file
                .read_exact_at(aligned, offset + (index * BOUNCE) as u64)?;
            piece.copy_from_slice(aligned);
        }
        Ok(())
    }

    fn write_any(&self, offset: u64, buf: &[u8]) -> io::Result<()> {
        if self.is_aligned(buf) {
            return self.file.write_all_at(buf, offset);
        }
        let mut bounce = AlignedBuf::zeroed(buf.len().min(BOUNCE));
        for (index, piece) in buf.chunks(BOUNCE).enumerate() {
            let aligned = &mut bounce[..piece.len()];
            aligned.copy_from_slice(piece);
            self.file
                .write_all_at(aligned, offset + (index * BOUNCE) as u64)?;
        }
        Ok(())
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match self.allocate(flags, offset, len) {
            // The space stays taken; the content is undefined after a discard anyway.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            done => Ok(done?),
        }
    }

    fn allocate(&self, flags: FallocateFlags, offset: u64, len: u64) -> rustix::io::Result<()> {
        retry_on_intr(|| rustix::fs::fallocate(&*self.file, flags, offset, len))
    }

    /// Checks a call, makes it unless it is empty, and says where it failed.
    fn run(
        &self,
        operation: Operation,
        offset: u64,
        length: u64,
        call: impl FnOnce() -> io::Result<()>,
    ) -> Result<(), MediumError> {
        check(self, operation, offset, length)
            .and_then(|()| match length {
                0 => Ok(()),
                _ => call()
                    .map_err(|error| MediumError::at(operation, offset, length, Cause::Io(error))),
            })
            .map_err(|error| error.with_path(&self.path))
    }
}

impl Medium for FileMedium {
    fn len(&self) -> u64 {
        self.len.load(Ordering::Acquire)
    }

    fn alignment(&self) -> u32 {
        self.alignment
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), MediumError> {
        self.run(Operation::Read, offset, buf.len() as u64, || {
            self.read_any(offset, buf)
        })
    }

    fn write(&self, offset: u64, buf: &[u8]) -> Result<(), MediumError> {
        self.run(Operation::Write, offset, buf.len() as u64, || {
            self.write_any(offset, buf)
        })
    }

    fn discard(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        self.run(Operation::Discard, offset, len, || self.punch(offset, len))
    }

    fn sync(&self) -> Result<(), MediumError> {
        let synced = self.syncs.run(|| self.file.sync_data());
        synced.map_err(|error| {
            MediumError::at(Operation::Sync, 0, 0, Cause::Io(error)).with_path(&self.path)
        })
    }
}

/// Makes the name of a new file durable.
fn sync_directory_of(path: &Path) -> io::Result<()> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(directory)?.sync_all()
}

/// Sectors, or larger logical blocks of a device: it discards nothing smaller.
fn buffered_alignment(file: &File) -> Result<u32, Cause> {
    let kind = file.metadata().map_err(Cause::Io)?.file_type();
    if !kind.is_block_device() {
        return Ok(SECTOR as u32);
    }
    let logical = rustix::fs::ioctl_blksszget(file).map_err(|errno| Cause::Io(errno.into()))?;
    Ok(logical.max(SECTOR as u32))
}

/// Switches an open file to direct I/O. Returns what offsets and lengths, and what addresses, must
/// be multiples of: as the kernel says (since Linux 6.1), else a page.
fn enter_direct_mode(file: &File) -> Result<(u32, usize), Cause> {
    let system = |errno: Errno| Cause::Io(errno.into());
    let flags = rustix::fs::fcntl_getfl(file).map_err(system)?;
    rustix::fs::fcntl_setfl(file, flags | OFlags::DIRECT).map_err(|errno| match errno {
        Errno::INVAL => Cause::NoDirectIo,
        _ => system(errno),
    })?;
    let told = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN);
    match told {
        Ok(told) if told.stx_mask & StatxFlags::DIOALIGN.bits() != 0 => {
            match (told.stx_dio_offset_align, told.stx_dio_mem_align) {
                (0, _) => Err(Cause::NoDirectIo),
                (offset, memory) => Ok((offset.max(SECTOR as u32), memory.max(1) as usize)),
            }
        }
        Ok(_) | Err(Errno::NOSYS) => Ok((PAGE as u32, PAGE)),
        Err(errno) => Err(system(errno)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_sync_that_failed_none_succeeds() {
        let syncs = Syncs::default();
        syncs.run(|| Ok(())).unwrap();
        let lost = syncs.run(|| Err(io::ErrorKind::StorageFull.into()));
        assert_eq!(lost.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert!(syncs.run(|| Ok(())).is_err());
    }
}
