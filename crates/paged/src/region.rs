//! One shared mapping of a file without a name, from which ranges of whole blocks are given out.
//!
//! The file is sparse and as long as the mapping. Its blocks get space on the store before they are given out, so that
//! a touch never fails for want of it (a file system that copies on write promises less). Address and offset in the
//! file go together: block `n` lies `n * BLOCK` bytes from the start of both.
//!
//! Invariants: a block is given out to one owner at a time; what is given out was mapped for reading and writing
//! and stays so until the process ends, as the mapping is never undone; a block that is not *backed* reads as zeros;
//! nothing here allocates from the global allocator once the region is open, as it is called from there.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of a block: what is given out is a multiple of it, and aligned to it.
pub(crate) const BLOCK: usize = 64 << 10;
/// From so many bytes on the space of what is given back goes back to the store at once.
const PUNCHED: usize = 1 << 20;

/// Why there is no scratch file.
#[derive(Debug, thiserror::Error)]
pub enum RegionError {
    #[error("cannot {action} a scratch file in {}: {source}", directory.display())]
    File {
        action: &'static str,
        directory: PathBuf,
        source: io::Error,
    },
    #[error("the scratch file in {} needs {room} bytes, and there is no room for them: {source}", directory.display())]
    NoRoom {
        directory: PathBuf,
        room: u64,
        source: io::Error,
    },
    #[error("{} is a file system in memory: a scratch file there would save none", .0.display())]
    InMemory(PathBuf),
    #[error("the scratch file of this process is open already")]
    Open,
}

/// A region, open or not yet.
pub(crate) struct Region {
    /// The address of the mapping, 0 before.
    base: AtomicUsize,
    /// Its bytes, 0 before. Written after the address.
    len: AtomicUsize,
    /// A lock of the standard library, unlike all others here: one that is waited for must not allocate, and those of
    /// `parking_lot` do for a thread that waits for the first time.
    state: Mutex<Option<RegionState>>,
}

struct RegionState {
    file: File,
    used: Bits,
    /// Blocks that may hold something else than zeros.
    backed: Bits,
    /// No block before this one is free.
    hint: usize,
    /// No block from this one on was ever given out.
    end: usize,
}

/// A range that was given out.
pub(crate) struct Taken {
    pub start: *mut u8,
    pub is_zero: bool,
}

impl Region {
    /// A region that is not open: it gives nothing out.
    pub const fn new() -> Self {
        Region {
            base: AtomicUsize::new(0),
            len: AtomicUsize::new(0),
            state: Mutex::new(None),
        }
    }

    /// Opens it over a new file in a directory, which has space for `room` bytes and addresses for four times as many
    /// and a GiB.
    pub fn open(&self, directory: &Path, room: u64) -> Result<(), RegionError> {
        let mut state = self.lock();
        if state.is_some() {
            return Err(RegionError::Open);
        }
        let failed = |action| {
            move |source| RegionError::File {
                action,
                directory: directory.to_path_buf(),
                source,
            }
        };
        if is_in_memory(directory).map_err(failed("make"))? {
            return Err(RegionError::InMemory(directory.to_path_buf()));
        }
        let file = nameless(directory).map_err(failed("make"))?;
        let len = (room as usize * 4 + (1 << 30)).next_multiple_of(BLOCK);
        file.set_len(len as u64).map_err(failed("extend"))?;
        let reserved = allocate(file.as_raw_fd(), 0, room.next_multiple_of(BLOCK as u64));
        reserved.map_err(|source| RegionError::NoRoom {
            directory: directory.to_path_buf(),
            room,
            source,
        })?;
        let base = map(&file, len).map_err(failed("map"))?;
        *state = Some(RegionState {
            file,
            used: Bits::new(len / BLOCK),
            backed: Bits::new(len / BLOCK),
            hint: 0,
            end: 0,
        });
        self.base.store(base, Ordering::Release);
        self.len.store(len, Ordering::Release);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Option<RegionState>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn is_open(&self) -> bool {
        self.len.load(Ordering::Acquire) > 0
    }

    fn start(&self) -> usize {
        self.base.load(Ordering::Acquire)
    }

    pub fn contains(&self, address: *mut u8) -> bool {
        let len = self.len.load(Ordering::Acquire);
        len > 0 && address.addr().wrapping_sub(self.start()) < len
    }

    fn block_of(&self, address: *mut u8) -> usize {
        (address.addr() - self.start()) / BLOCK
    }

    fn address_of(&self, block: usize) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.start() + block * BLOCK)
    }

    /// Gives so many bytes out, rounded up to blocks; nothing if there is no room for them.
    pub fn take(&self, bytes: usize) -> Option<Taken> {
        let mut guard = self.lock();
        let state = guard.as_mut()?;
        let count = bytes.div_ceil(BLOCK);
        let block = state.used.first_clear_run(state.hint, count)?;
        let is_zero = state.back(block, count)?;
        state.used.set(block, count, true);
        if block == state.hint {
            state.hint += count;
        }
        state.end = state.end.max(block + count);
        Some(Taken {
            start: self.address_of(block),
            is_zero,
        })
    }

    /// Makes what was given out longer or shorter in place; whether that could be done.
    ///
    /// # Safety
    /// `start` was given out as `old` bytes and not given back, and nothing uses what lies behind the first `new` of
    /// them.
    pub unsafe fn resize(&self, start: *mut u8, old: usize, new: usize) -> bool {
        let (before, after) = (old.div_ceil(BLOCK), new.div_ceil(BLOCK));
        let block = self.block_of(start);
        if after < before {
            // SAFETY: the caller gave these blocks up.
            unsafe { self.give_back_blocks(block + after, before - after) };
        }
        if after <= before {
            return true;
        }
        let mut guard = self.lock();
        let Some(state) = guard.as_mut() else {
            return false;
        };
        let (first, more) = (block + before, after - before);
        if !state.used.is_clear(first, more) || state.back(first, more).is_none() {
            return false;
        }
        state.used.set(first, more, true);
        state.end = state.end.max(first + more);
        true
    }

    /// Takes back what was given out.
    ///
    /// # Safety
    /// `start` was given out as so many bytes, was not given back, and nothing uses it any more.
    pub unsafe fn give_back(&self, start: *mut u8, bytes: usize) {
        // SAFETY: as the caller says.
        unsafe { self.give_back_blocks(self.block_of(start), bytes.div_ceil(BLOCK)) };
    }

    /// # Safety
    /// These blocks were given out, and nothing uses them any more.
    unsafe fn give_back_blocks(&self, block: usize, count: usize) {
        // While they count as used nobody else gets them: no lock is needed for this.
        // SAFETY: they lie in the mapping, and nobody reads them before they are given out anew.
        let is_zero = count * BLOCK >= PUNCHED
            && unsafe { advise(self.address_of(block), count * BLOCK, libc::MADV_REMOVE) };
        if let Some(state) = self.lock().as_mut() {
            state.used.set(block, count, false);
            if is_zero {
                state.backed.set(block, count, false);
            }
            state.hint = state.hint.min(block);
        }
    }

    /// Makes a range that was given out read as zeros, if the file system can do that quickly.
    ///
    /// # Safety
    /// The range was given out, and nothing uses its content.
    pub unsafe fn clear(&self, start: *mut u8, bytes: usize) -> bool {
        let (block, count) = (self.block_of(start), bytes.div_ceil(BLOCK));
        // SAFETY: the range lies in the mapping, and its content is given up.
        let removed =
            count * BLOCK >= PUNCHED && unsafe { advise(start, count * BLOCK, libc::MADV_REMOVE) };
        if !removed {
            return false;
        }
        let guard = self.lock();
        guard.as_ref().is_some_and(|state| {
            let (at, len) = ((block * BLOCK) as u64, (count * BLOCK) as u64);
            // Without its space a later touch may fail; what could be taken a moment ago can be taken again.
            allocate(state.file.as_raw_fd(), at, len).is_ok()
        })
    }

    /// Bytes from its start on that hold everything that was ever given out.
    pub fn extent(&self) -> usize {
        self.lock().as_ref().map_or(0, |state| state.end * BLOCK)
    }

    /// Of a range, the pages that are in memory, one byte each, in `pages`.
    pub fn resident(&self, offset: usize, bytes: usize, pages: &mut Vec<u8>) -> usize {
        pages.clear();
        pages.resize(bytes.div_ceil(page_size()), 0);
        let start = std::ptr::with_exposed_provenance_mut::<libc::c_void>(self.start() + offset);
        // SAFETY: the range lies in the mapping, and there is a byte for each page of it.
        if unsafe { libc::mincore(start, bytes, pages.as_mut_ptr()) } != 0 {
            return 0;
        }
        pages.iter().filter(|&&page| page & 1 == 1).count() * page_size()
    }

    /// Writes a range of the file out, and lets the kernel drop those of its pages that are mapped nowhere. Then
    /// unmaps the others: what is used until the next time will be mapped again, the rest is dropped then.
    pub fn push_out(&self, offset: usize, bytes: usize) {
        let Some(file) = self.lock().as_ref().map(|state| state.file.as_raw_fd()) else {
            return;
        };
        let (at, len) = (offset as i64, bytes as i64);
        let wait = libc::SYNC_FILE_RANGE_WAIT_BEFORE
            | libc::SYNC_FILE_RANGE_WRITE
            | libc::SYNC_FILE_RANGE_WAIT_AFTER;
        // SAFETY: calls on an open file; they change no content. The descriptor stays open as long as the process.
        unsafe {
            libc::sync_file_range(file, at, len, wait);
            libc::posix_fadvise(file, at, len, libc::POSIX_FADV_DONTNEED);
        }
        let start = std::ptr::with_exposed_provenance_mut(self.start() + offset);
        // SAFETY: the range lies in the mapping. Of a shared mapping of a file this advice gives up only the entries
        // of the page table: the next touch finds the same content in the file's pages.
        unsafe { advise(start, bytes, libc::MADV_DONTNEED) };
    }
}

impl RegionState {
    /// Gives blocks space on the store; whether they read as zeros, or nothing if there is no space.
    fn back(&mut self, block: usize, count: usize) -> Option<bool> {
        let (at, len) = ((block * BLOCK) as u64, (count * BLOCK) as u64);
        allocate(self.file.as_raw_fd(), at, len).ok()?;
        let is_zero = self.backed.is_clear(block, count);
        self.backed.set(block, count, true);
        Some(is_zero)
    }
}

/// Bits, of which none is allocated after the start.
struct Bits(Vec<u64>, usize);

impl Bits {
    fn new(count: usize) -> Self {
        Bits(vec![0; count.div_ceil(64)], count)
    }

    fn get(&self, at: usize) -> bool {
        self.0[at / 64] >> (at % 64) & 1 == 1
    }

    fn set(&mut self, first: usize, count: usize, value: bool) {
        for at in first..first + count {
            let bit = 1 << (at % 64);
            match value {
                true => self.0[at / 64] |= bit,
                false => self.0[at / 64] &= !bit,
            }
        }
    }

    fn is_clear(&self, first: usize, count: usize) -> bool {
        first + count <= self.1 && (first..first + count).all(|at| !self.get(at))
    }

    /// The first so many clear bits in a row, from one on.
    fn first_clear_run(&self, from: usize, count: usize) -> Option<usize> {
        let (mut first, mut at) = (from, from);
        while at - first < count {
            if at >= self.1 {
                return None;
            }
            if at % 64 == 0 && self.0[at / 64] == u64::MAX {
                at += 64;
                first = at;
            } else if self.get(at) {
                at += 1;
                first = at;
            } else {
                at += 1;
            }
        }
        Some(first)
    }
}

/// A new file that nobody else can open; it goes with the process.
fn nameless(directory: &Path) -> io::Result<File> {
    let path = directory.join(format!(".scratch-{}", std::process::id()));
    let mut options = OpenOptions::new();
    let file = options
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

fn is_in_memory(directory: &Path) -> io::Result<bool> {
    const TMPFS: i64 = 0x0102_1994;
    const RAMFS: i64 = 0x8584_58f6;
    let path = CString::new(directory.as_os_str().as_bytes())?;
    // SAFETY: all zeros is a value of this struct of numbers.
    let mut told: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: a path that ends with zero, and space for the answer.
    match unsafe { libc::statfs(path.as_ptr(), &mut told) } {
        0 => Ok(matches!(told.f_type as i64, TMPFS | RAMFS)),
        _ => Err(io::Error::last_os_error()),
    }
}

fn map(file: &File, len: usize) -> io::Result<usize> {
    // A block's alignment is that of the mapping's start: reserved with room to choose from.
    let none = std::ptr::null_mut();
    let (hidden, open) = (libc::PROT_NONE, libc::PROT_READ | libc::PROT_WRITE);
    let reserve = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping, of addresses that nothing uses.
    let space = unsafe { libc::mmap(none, len + BLOCK, hidden, reserve, -1, 0) };
    if space == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let start = space.expose_provenance().next_multiple_of(BLOCK);
    let at = std::ptr::with_exposed_provenance_mut(start);
    let fixed = libc::MAP_SHARED | libc::MAP_FIXED | libc::MAP_NORESERVE;
    // SAFETY: the addresses are those that were reserved just now.
    let mapped = unsafe { libc::mmap(at, len, open, fixed, file.as_raw_fd(), 0) };
    if mapped == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the mapping; nothing is near what is read, so that reading ahead would only fill memory.
    unsafe { advise(at.cast(), len, libc::MADV_RANDOM) };
    Ok(mapped.expose_provenance())
}

/// Gives the kernel an advice; whether it took it.
///
/// # Safety
/// The range lies in a mapping, and the advice changes no content that anybody uses.
unsafe fn advise(start: *mut u8, bytes: usize, advice: libc::c_int) -> bool {
    // SAFETY: as the caller says.
    unsafe { libc::madvise(start.cast(), bytes, advice) == 0 }
}

fn allocate(file: RawFd, offset: u64, bytes: u64) -> io::Result<()> {
    loop {
        // SAFETY: a call on an open file, which adds space and changes no content.
        let done = unsafe { libc::fallocate(file, 0, offset as i64, bytes as i64) };
        if done == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR) => {}
            // What such a file system cannot promise, a store that is full refuses at the first touch.
            Some(libc::EOPNOTSUPP) => return Ok(()),
            _ => return Err(error),
        }
    }
}

/// Bytes of a page of memory.
pub(crate) fn page_size() -> usize {
    // SAFETY: a call without arguments that could be wrong.
    let told = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(told).unwrap_or(4096).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A directory beside the test, which lies on a disk: that of the system may lie in memory.
    fn directory() -> tempfile::TempDir {
        let program = std::env::current_exe().unwrap();
        tempfile::tempdir_in(program.parent().unwrap()).unwrap()
    }

    /// What a test does with ranges.
    #[derive(Debug, Clone)]
    enum RangeStep {
        Take { bytes: usize },
        GiveBack { pick: usize },
        Resize { pick: usize, bytes: usize },
        Clear { pick: usize },
        PushOut { pick: usize },
    }

    fn step() -> impl Strategy<Value = RangeStep> {
        let bytes = prop_oneof![1usize..3 * BLOCK, BLOCK..40 * BLOCK];
        prop_oneof![
            4 => bytes.clone().prop_map(|bytes| RangeStep::Take { bytes }),
            2 => any::<usize>().prop_map(|pick| RangeStep::GiveBack { pick }),
            2 => (any::<usize>(), bytes).prop_map(|(pick, bytes)| RangeStep::Resize { pick, bytes }),
            1 => any::<usize>().prop_map(|pick| RangeStep::Clear { pick }),
            3 => any::<usize>().prop_map(|pick| RangeStep::PushOut { pick }),
        ]
    }

    /// A range, and the byte that all of it holds.
    struct HeldRange {
        start: *mut u8,
        bytes: usize,
        fill: u8,
    }

    impl HeldRange {
        fn content(&mut self) -> &mut [u8] {
            // SAFETY: the range was given out to this owner alone.
            unsafe { std::slice::from_raw_parts_mut(self.start, self.bytes) }
        }
    }

    fn pick(held: &[HeldRange], pick: usize) -> Option<usize> {
        (!held.is_empty()).then(|| pick % held.len())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
        #[test]
        fn ranges_never_meet_and_keep_their_content(steps in prop::collection::vec(step(), 1..60)) {
            let directory = directory();
            let region = Region::new();
            prop_assert!(region.take(1).is_none());
            region.open(directory.path(), 8 << 20).unwrap();
            prop_assert!(matches!(region.open(directory.path(), 1), Err(RegionError::Open)));
            let mut held: Vec<HeldRange> = Vec::new();
            for (number, step) in (1u8..).zip(steps) {
                match step {
                    RangeStep::Take { bytes } => {
                        let taken = region.take(bytes).unwrap();
                        prop_assert!(region.contains(taken.start));
                        prop_assert_eq!(taken.start.addr() % BLOCK, 0);
                        let mut range = HeldRange { start: taken.start, bytes, fill: number };
                        if taken.is_zero {
                            prop_assert!(range.content().iter().all(|&byte| byte == 0));
                        }
                        range.content().fill(number);
                        held.push(range);
                    }
                    RangeStep::GiveBack { pick: at } => if let Some(at) = pick(&held, at) {
                        let range = held.swap_remove(at);
                        // SAFETY: nothing uses it any more.
                        unsafe { region.give_back(range.start, range.bytes) };
                    },
                    RangeStep::Resize { pick: at, bytes } => if let Some(at) = pick(&held, at) {
                        let range = &mut held[at];
                        // SAFETY: what is cut off is not used.
                        if unsafe { region.resize(range.start, range.bytes, bytes) } {
                            let fill = range.fill;
                            let kept = range.bytes.min(bytes);
                            range.bytes = bytes;
                            prop_assert!(range.content()[..kept].iter().all(|&byte| byte == fill));
                            range.content().fill(fill);
                        } else {
                            prop_assert!(bytes > range.bytes);
                        }
                    },
                    RangeStep::Clear { pick: at } => if let Some(at) = pick(&held, at) {
                        let range = &mut held[at];
                        // SAFETY: its content is given up.
                        if unsafe { region.clear(range.start, range.bytes) } {
                            prop_assert!(range.content().iter().all(|&byte| byte == 0));
                        }
                        let fill = range.fill;
                        range.content().fill(fill);
                    },
                    RangeStep::PushOut { pick: at } => if let Some(at) = pick(&held, at) {
                        let range = &held[at];
                        let offset = range.start.addr() - region.start();
                        region.push_out(offset, range.bytes.next_multiple_of(BLOCK));
                    },
                }
                for range in &mut held {
                    let fill = range.fill;
                    prop_assert!(range.content().iter().all(|&byte| byte == fill));
                }
            }
        }
    }

    #[test]
    fn what_is_pushed_out_twice_is_not_in_memory() {
        let directory = directory();
        let region = Region::new();
        region.open(directory.path(), 4 << 20).unwrap();
        let bytes = 2 << 20;
        let mut range = HeldRange {
            start: region.take(bytes).unwrap().start,
            bytes,
            fill: 7,
        };
        range.content().fill(7);
        let mut pages = Vec::new();
        assert_eq!(region.resident(0, bytes, &mut pages), bytes);
        region.push_out(0, bytes);
        region.push_out(0, bytes);
        assert_eq!(region.resident(0, bytes, &mut pages), 0);
        assert!(range.content().iter().all(|&byte| byte == 7));
        assert_eq!(region.resident(0, bytes, &mut pages), bytes);
    }

    #[test]
    fn a_directory_that_cannot_be_used_is_named() {
        let region = Region::new();
        let missing = region.open(Path::new("/nowhere"), 1).unwrap_err();
        assert!(missing.to_string().contains("/nowhere"), "{missing}");
        let directory = directory();
        let huge = region.open(directory.path(), 1 << 45).unwrap_err();
        assert!(huge.to_string().contains("scratch file"), "{huge}");
        assert!(!region.is_open());
        if let Ok(true) = is_in_memory(Path::new("/dev/shm")) {
            let memory = region.open(Path::new("/dev/shm"), 1).unwrap_err();
            assert!(matches!(memory, RegionError::InMemory(_)), "{memory}");
        }
    }
}
