//! What the kernel asks, answered.
//!
//! Several threads ask at once; none holds a lock while the volume works.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use flashlore_serve::clients::{Access, Use};
use flashlore_serve::moment::Time;
use flashlore_serve::{Live, Served, Service};
use flashlore_volume::disk::InstantDevice;
use fuser::{
    BsdFileFlags, Errno, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, LockOwner, OpenAccMode, OpenFlags, RenameFlags, ReplyAttr, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite,
    Request, TimeOrNow, WriteFlags,
};
use parking_lot::RwLock;

use crate::errno::{of_disk, of_lookup};
use crate::file::{OpenFile, Sought};
use crate::later::Later;
use crate::node::{Facts, Node, PAGE, attributes};

/// The directory of instants.
pub(crate) const AT: &str = "at";
/// The most bytes of one read or write.
const MOST_BYTES: u32 = 1 << 20;
/// Requests that the kernel sends without waiting for those before them.
const IN_FLIGHT: u16 = 64;
/// A hole or a range of zeros of up to so many bytes is quickly made.
const SHORT: u64 = 64 << 20;
/// How long the kernel may take what never changes as known.
const FIXED: Duration = Duration::from_secs(1);
/// What a name in `at/` means may change at any time.
const CHANGING: Duration = Duration::ZERO;

#[derive(Default)]
pub(crate) struct OpenFiles {
    files: RwLock<HashMap<u64, Arc<OpenFile>>>,
    next: AtomicU64,
}

impl OpenFiles {
    fn add(&self, file: OpenFile) -> FileHandle {
        let handle = self.next.fetch_add(1, Ordering::Relaxed);
        let mut files = self.files.write();
        files.insert(handle, Arc::new(file));
        FileHandle(handle)
    }

    fn get(&self, handle: FileHandle) -> Result<Arc<OpenFile>, Errno> {
        let files = self.files.read();
        files.get(&handle.0).cloned().ok_or(Errno::EBADF)
    }

    fn remove(&self, handle: FileHandle) {
        let mut files = self.files.write();
        files.remove(&handle.0);
    }

    pub fn count(&self) -> usize {
        self.files.read().len()
    }
}

/// A volume, or an array, as a file system.
pub(crate) struct Files {
    service: Arc<dyn Served>,
    /// Its disks, by their names as files.
    lives: Vec<Live>,
    read_only: bool,
    open: Arc<OpenFiles>,
    later: Later,
    /// When it was last written, in nanoseconds since 1970.
    written: AtomicU64,
}

impl Files {
    /// The files of a service.
    ///
    /// # Errors
    /// There is no thread to be had, or nothing to show.
    pub fn new(
        service: Arc<dyn Served>,
        read_only: bool,
        open: Arc<OpenFiles>,
    ) -> io::Result<Self> {
        let mut lives = service.lives();
        for live in &mut lives {
            live.name = file_name(&live.name);
        }
        let first = lives.first().ok_or(io::ErrorKind::NotFound)?;
        Ok(Files {
            // A flush of one is a flush of all.
            later: Later::start(Arc::clone(&first.device))?,
            written: AtomicU64::new(service.now()),
            service,
            lives,
            read_only,
            open,
        })
    }

    /// What attributes are made of: of a disk, and of the first one for what is none.
    fn facts(&self, node: Node) -> Facts {
        let disk = match node {
            Node::Live(disk) => usize::from(disk),
            _ => 0,
        };
        // What failed has attributes too.
        let space = self.service.space(disk);
        Facts {
            size: self.lives[disk].device.size(),
            stored: space.map_or(0, |space| space.stored),
            written: self.written.load(Ordering::Relaxed),
            read_only: self.read_only,
            uid: nix::unistd::getuid().as_raw(),
            gid: nix::unistd::getgid().as_raw(),
        }
    }

    fn find(&self, parent: INodeNo, name: &OsStr) -> Result<Node, Errno> {
        let name = name.to_str().ok_or(Errno::ENOENT)?;
        match Node::of(parent) {
            Some(Node::Root) if name == AT => self.past().map(|_| Node::At),
            Some(Node::Root) => {
                let found = self.lives.iter().position(|live| live.name == name);
                let disk = found.and_then(|disk| u8::try_from(disk).ok());
                disk.map(Node::Live).ok_or(Errno::ENOENT)
            }
            Some(Node::At) => {
                let instant = self.past()?.resolve(name);
                instant.map(Node::Instant).map_err(|e| of_lookup(&e))
            }
            _ => Err(Errno::ENOTDIR),
        }
    }

    /// The number of a file or directory that there is.
    fn node(&self, number: INodeNo) -> Result<Node, Errno> {
        let node = Node::of(number).ok_or(Errno::ENOENT)?;
        match node {
            Node::Live(disk) if usize::from(disk) >= self.lives.len() => Err(Errno::ENOENT),
            Node::At | Node::Instant(_) => self.past().map(|_| node),
            _ => Ok(node),
        }
    }

    /// The volume, whose past is shown; an array has none.
    fn past(&self) -> Result<&Service, Errno> {
        self.service.volume().ok_or(Errno::ENOENT)
    }

    fn open_node(&self, node: Node, writes: bool) -> Result<OpenFile, Errno> {
        let clients = self.service.clients();
        match node {
            Node::Root | Node::At => Err(Errno::EISDIR),
            Node::Live(_) if writes && self.read_only => Err(Errno::EROFS),
            Node::Live(disk) => {
                let access = match writes {
                    true => Access::Write { droppable: false },
                    false => Access::Read,
                };
                // It is just going back in time.
                let counted = Use::begin(clients, access).ok_or(Errno::EBUSY)?;
                let device = Arc::clone(&self.lives[usize::from(disk)].device);
                Ok(OpenFile::new(device, writes, Some(counted)))
            }
            Node::Instant(_) if writes => Err(Errno::EROFS),
            Node::Instant(instant) => {
                let device = InstantDevice::new(Arc::clone(self.past()?.disk()), instant);
                // It was there when its name was looked up.
                let device = device.map_err(|_| Errno::ESTALE)?;
                let counted = Use::begin(clients, Access::Read);
                Ok(OpenFile::new(Arc::new(device), false, counted))
            }
        }
    }

    /// The entries of a directory: numbers, kinds, names.
    fn entries(&self, node: Node) -> Result<Vec<(Node, String)>, Errno> {
        let dots = [(node, "."), (Node::Root, "..")];
        let mut entries: Vec<_> = dots.map(|(node, name)| (node, name.to_owned())).into();
        match node {
            Node::Root => {
                let files = (0..=u8::MAX).zip(&self.lives);
                entries.extend(files.map(|(disk, live)| (Node::Live(disk), live.name.clone())));
                if self.past().is_ok() {
                    entries.push((Node::At, AT.to_owned()));
                }
            }
            Node::At => {
                // Without a history there are none.
                let snapshots = self.past()?.snapshot_list().unwrap_or_default();
                entries.extend(snapshots.into_iter().map(|snapshot| {
                    let instant = snapshot.instant;
                    let name = snapshot.name.unwrap_or_else(|| Time(instant).to_string());
                    (Node::Instant(instant), name)
                }));
            }
            _ => return Err(Errno::ENOTDIR),
        }
        Ok(entries)
    }

    fn touch(&self) {
        self.written.store(self.service.now(), Ordering::Relaxed);
    }

    /// The size cannot be changed; times are the volume's own, and asking for others is no error.
    fn may_set(&self, node: Node, size: Option<u64>, owner_or_mode: bool) -> Result<(), Errno> {
        if owner_or_mode {
            return Err(Errno::EPERM);
        }
        match (node, size) {
            (_, None) => Ok(()),
            (Node::Instant(_), Some(_)) => Err(Errno::EROFS),
            (Node::Live(disk), Some(size))
                if size == self.lives[usize::from(disk)].device.size() =>
            {
                Ok(())
            }
            (_, Some(_)) => Err(Errno::EPERM),
        }
    }
}

/// The name of the file of a disk.
pub(crate) fn file_name(disk: &str) -> String {
    match disk {
        AT => "volume".to_owned(),
        name => name.to_owned(),
    }
}

impl Filesystem for Files {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // What the kernel does not know it does without; a limit below ours it answers.
        let wanted = [InitFlags::FUSE_ASYNC_DIO, InitFlags::FUSE_PARALLEL_DIROPS];
        for flag in wanted {
            let _ = config.add_capabilities(flag);
        }
        let _ = config.set_max_write(MOST_BYTES);
        let _ = config.set_max_background(IN_FLIGHT);
        Ok(())
    }

    fn lookup(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = self.find(parent, name);
        let attr = found.and_then(|node| attributes(node, &self.facts(node)).ok_or(Errno::ENOENT));
        let ttl = match found {
            Ok(Node::Instant(_)) => &CHANGING,
            _ => &FIXED,
        };
        match attr {
            Ok(attr) => reply.entry_with_ttls(&FIXED, ttl, &attr, Generation(0)),
            Err(errno) => reply.error(errno),
        }
    }

    fn getattr(&self, _req: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        let node = self.node(ino).ok();
        match node.and_then(|node| attributes(node, &self.facts(node))) {
            Some(attr) => reply.attr(&FIXED, &attr),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn setattr(
        &self,
        req: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let owner_or_mode = mode.is_some() || uid.is_some() || gid.is_some();
        let node = self.node(ino);
        let may = node.and_then(|node| self.may_set(node, size, owner_or_mode));
        match may {
            Ok(()) => self.getattr(req, ino, fh, reply),
            Err(errno) => reply.error(errno),
        }
    }

    fn open(&self, _req: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let writes = flags.acc_mode() != OpenAccMode::O_RDONLY;
        match self.node(ino).and_then(|node| self.open_node(node, writes)) {
            Ok(file) => {
                let direct = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
                reply.opened(self.open.add(file), direct);
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn read(
        &self,
        _req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.open.get(fh).and_then(|file| file.read(offset, size)) {
            Ok(bytes) => reply.data(&bytes),
            Err(errno) => reply.error(errno),
        }
    }

    fn write(
        &self,
        _req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        self.touch();
        match self.open.get(fh).and_then(|file| file.write(offset, data)) {
            Ok(count) => reply.written(count),
            Err(errno) => reply.error(errno),
        }
    }

    /// A descriptor is closed. Who wrote hears of a failure now or never.
    fn flush(
        &self,
        _req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        _owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        match self.open.get(fh) {
            Ok(file) if file.is_writable() => self.later.flush(reply),
            Ok(_) => reply.ok(),
            Err(errno) => reply.error(errno),
        }
    }

    fn fsync(
        &self,
        _req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        match self.open.get(fh) {
            // Also for a reader: what another one wrote is to be durable.
            Ok(_) => self.later.flush(reply),
            Err(errno) => reply.error(errno),
        }
    }

    fn release(
        &self,
        _req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        self.open.remove(fh);
        reply.ok();
    }

    fn fallocate(
        &self,
        _req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        self.touch();
        let file = match self.open.get(fh) {
            Ok(file) => file,
            Err(errno) => return reply.error(errno),
        };
        let act = move || match file.allocate(offset, length, mode) {
            Ok(()) => reply.ok(),
            Err(errno) => reply.error(errno),
        };
        match length <= SHORT {
            true => act(),
            false => self.later.run(act),
        }
    }

    fn lseek(
        &self,
        _req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let sought = match whence {
            libc::SEEK_DATA => Ok(Sought::Data),
            libc::SEEK_HOLE => Ok(Sought::Hole),
            _ => Err(Errno::EINVAL),
        };
        let (file, sought) = match (self.open.get(fh), sought) {
            (Ok(file), Ok(sought)) => (file, sought),
            (Err(errno), _) | (_, Err(errno)) => return reply.error(errno),
        };
        // A hole can be as long as the volume.
        self.later.run(move || match file.seek(offset, sought) {
            Ok(at) => reply.offset(at),
            Err(errno) => reply.error(errno),
        });
    }

    fn readdir(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let entries = match self.node(ino).and_then(|node| self.entries(node)) {
            Ok(entries) => entries,
            Err(errno) => return reply.error(errno),
        };
        for (next, (node, name)) in (1..).zip(entries).skip(offset as usize) {
            let Some(number) = node.number() else {
                continue;
            };
            let kind: FileType = node.kind();
            if reply.add(number, next, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _req: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        let spaces = (0..self.lives.len()).map(|disk| self.service.space(disk));
        match spaces.collect::<Result<Vec<_>, _>>() {
            Ok(spaces) => {
                let most = spaces.iter().map(|space| space.most).sum();
                let free = spaces.iter().map(|s| s.most.saturating_sub(s.stored)).sum();
                reply.statfs(most, free, free, 0, 0, PAGE, 255, PAGE);
            }
            Err(error) => reply.error(of_disk(&error)),
        }
    }

    // What is here is what there is: no file is made, removed or renamed.

    fn mknod(
        &self,
        _req: &Request,
        _parent: INodeNo,
        _name: &OsStr,
        _mode: u32,
        _umask: u32,
        _rdev: u32,
        reply: ReplyEntry,
    ) {
        reply.error(Errno::EPERM);
    }

    fn mkdir(
        &self,
        _req: &Request,
        _parent: INodeNo,
        _name: &OsStr,
        _mode: u32,
        _umask: u32,
        reply: ReplyEntry,
    ) {
        reply.error(Errno::EPERM);
    }

    fn unlink(&self, _req: &Request, _parent: INodeNo, _name: &OsStr, reply: ReplyEmpty) {
        reply.error(Errno::EPERM);
    }

    fn rmdir(&self, _req: &Request, _parent: INodeNo, _name: &OsStr, reply: ReplyEmpty) {
        reply.error(Errno::EPERM);
    }

    fn rename(
        &self,
        _req: &Request,
        _parent: INodeNo,
        _name: &OsStr,
        _newparent: INodeNo,
        _newname: &OsStr,
        _flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        reply.error(Errno::EPERM);
    }
}
