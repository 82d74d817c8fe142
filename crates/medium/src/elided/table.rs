//! The side table of [`Elided`](super::Elided): 8 bytes a block, in memory or in a file.
//!
//! | offset in the file | bytes | field, little-endian |
//! |---:|---:|---|
//! | 0 | 8 | `FLSHELID` |
//! | 8 | 4 | version, 1: that of the table and of the patterns that its seeds stand for |
//! | 12 | 4 | zero |
//! | 16 | 8 | bytes of the medium |
//! | 24 | 4072 | zero |
//! | 4096 | 8 each | what is noted of a block |
//!
//! Invariants: a note is read whole, whoever writes it meanwhile: in a file, whoever writes notes is alone. A process that is
//! killed has written a note whole or not at all, because the note lies within a page of the kernel's cache. What was
//! never noted takes no memory and no room in the file.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Cause, MediumError, Operation};

use super::BELOW;

/// Notes of a chunk of a table in memory.
const CHUNK: u64 = 4096;

type Chunk = OnceLock<Box<[AtomicU64]>>;

/// What is noted of each block.
#[derive(Debug)]
pub(super) enum SideTable {
    Memory(Vec<Chunk>),
    #[cfg(target_os = "linux")]
    File(file::TableFile),
}

impl SideTable {
    pub(super) fn in_memory(blocks: u64) -> Self {
        let chunks = (0..blocks.div_ceil(CHUNK)).map(|_| Chunk::new());
        SideTable::Memory(chunks.collect())
    }

    /// The notes of blocks from `first` on.
    pub(super) fn load(&self, first: u64, notes: &mut [u64]) -> Result<(), MediumError> {
        match self {
            SideTable::Memory(chunks) => {
                for (block, note) in (first..).zip(notes) {
                    *note = match chunks[(block / CHUNK) as usize].get() {
                        Some(chunk) => chunk[(block % CHUNK) as usize].load(Ordering::Acquire),
                        None => BELOW,
                    };
                }
                Ok(())
            }
            #[cfg(target_os = "linux")]
            SideTable::File(file) => file.load(first, notes),
        }
    }

    /// Notes blocks from `first` on.
    pub(super) fn store(&self, first: u64, notes: &[u64]) -> Result<(), MediumError> {
        match self {
            SideTable::Memory(chunks) => {
                for (block, &note) in (first..).zip(notes) {
                    let chunk = &chunks[(block / CHUNK) as usize];
                    let chunk = match note {
                        BELOW => chunk.get(),
                        _ => Some(chunk.get_or_init(|| (0..CHUNK).map(|_| BELOW.into()).collect())),
                    };
                    if let Some(chunk) = chunk {
                        chunk[(block % CHUNK) as usize].store(note, Ordering::Release);
                    }
                }
                Ok(())
            }
            #[cfg(target_os = "linux")]
            SideTable::File(file) => file.store(first, notes),
        }
    }

    /// Forgets what is noted of so many blocks.
    pub(super) fn clear(&self, first: u64, blocks: u64) -> Result<(), MediumError> {
        match self {
            SideTable::Memory(chunks) => {
                let behind = first + blocks;
                let mut block = first;
                while block < behind {
                    let end = (block / CHUNK * CHUNK + CHUNK).min(behind);
                    if let Some(chunk) = chunks[(block / CHUNK) as usize].get() {
                        let start = (block % CHUNK) as usize;
                        for note in &chunk[start..start + (end - block) as usize] {
                            note.store(BELOW, Ordering::Release);
                        }
                    }
                    block = end;
                }
                Ok(())
            }
            #[cfg(target_os = "linux")]
            SideTable::File(file) => file.clear(first, blocks),
        }
    }

    /// Blocks that are noted.
    pub(super) fn count(&self) -> Result<u64, MediumError> {
        match self {
            SideTable::Memory(chunks) => {
                let notes = chunks.iter().filter_map(OnceLock::get).flatten();
                let noted = notes.filter(|note| note.load(Ordering::Acquire) != BELOW);
                Ok(noted.count() as u64)
            }
            #[cfg(target_os = "linux")]
            SideTable::File(file) => file.count(),
        }
    }

    /// The error of a note that is none.
    pub(super) fn no_note(&self, block: u64, found: u64) -> MediumError {
        let why = format!(
            "the side table has {found:#018x} for the block at byte {} of the medium, expected 0, the seed of a pattern or \
             all ones; it was damaged: make the medium anew",
            block * super::BLOCK
        );
        let cause = Cause::SideTable(why);
        match self {
            SideTable::Memory(_) => MediumError::at(Operation::Read, block * 8, 8, cause),
            #[cfg(target_os = "linux")]
            SideTable::File(file) => {
                let at = file::place(block);
                MediumError::at(Operation::Read, at, 8, cause).with_path(file.path())
            }
        }
    }
}

#[cfg(target_os = "linux")]
mod file {
    use std::fs::{self, OpenOptions};
    use std::io;
    use std::os::unix::fs::{FileExt, OpenOptionsExt};
    use std::path::{Path, PathBuf};
    use std::thread;

    use parking_lot::RwLock;
    use rustix::fs::{FallocateFlags, SeekFrom};
    use rustix::io::{Errno, retry_on_intr};

    use super::super::{BELOW, BLOCK};
    use super::SideTable;
    use crate::error::{Cause, MediumError, Operation};
    use crate::file::Access;
    use crate::lock::{Locked, patiently};

    const HEAD: usize = 4096;
    const MAGIC: &[u8; 8] = b"FLSHELID";
    const VERSION: u32 = 1;
    /// Bytes of a note.
    const NOTE: usize = 8;
    /// Bytes of notes that are read or written at once.
    const PIECE: usize = 512;
    /// Bytes of notes that are read at once where all of them are.
    const LARGE_PIECE: usize = 64 << 10;
    /// From so many bytes of notes on, what is forgotten becomes a hole of the file.
    const LEAST_HOLE: u64 = 1 << 20;

    /// Where the note of a block lies.
    pub(super) fn place(block: u64) -> u64 {
        HEAD as u64 + block * NOTE as u64
    }

    /// A side table in a file.
    #[derive(Debug)]
    pub(in super::super) struct TableFile {
        file: Locked,
        path: PathBuf,
        blocks: u64,
        /// Held alone by who writes notes.
        writing: RwLock<()>,
    }

    impl SideTable {
        /// A table of a medium of so many bytes, of which nothing is noted, in a new file.
        pub(in super::super) fn create(path: &Path, medium: u64) -> Result<Self, MediumError> {
            let len = place(medium / BLOCK);
            let failed = |cause| MediumError::at(Operation::Create, 0, len, cause).with_path(path);
            let made = OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(path)
                .map_err(|error| failed(Cause::Io(error)))?;
            let prepared = Locked::new(made, Access::Change).and_then(|file| {
                file.set_len(len).map_err(Cause::Io)?;
                file.write_all_at(&head(medium), 0).map_err(Cause::Io)?;
                Ok(file)
            });
            let file = prepared.map_err(|cause| {
                // Best effort: the reason why it failed says more than why it could not be removed.
                let _ = fs::remove_file(path);
                failed(cause)
            })?;
            Ok(SideTable::new(file, path, medium))
        }

        /// The table of a medium of so many bytes.
        pub(in super::super) fn open(path: &Path, medium: u64) -> Result<Self, MediumError> {
            let open = || {
                let mut options = OpenOptions::new();
                let file = options.read(true).write(true).open(path);
                Locked::new(file.map_err(Cause::Io)?, Access::Change)
            };
            let file = patiently(thread::sleep, open).and_then(|file| {
                demand_table(&file, medium)?;
                Ok(file)
            });
            let failed = |cause| MediumError::at(Operation::Open, 0, 0, cause).with_path(path);
            Ok(SideTable::new(file.map_err(failed)?, path, medium))
        }

        fn new(file: Locked, path: &Path, medium: u64) -> Self {
            SideTable::File(TableFile {
                file,
                path: path.to_owned(),
                blocks: medium / BLOCK,
                writing: RwLock::default(),
            })
        }
    }

    fn head(medium: u64) -> [u8; HEAD] {
        let mut head = [0; HEAD];
        head[..8].copy_from_slice(MAGIC);
        head[8..12].copy_from_slice(&VERSION.to_le_bytes());
        head[16..24].copy_from_slice(&medium.to_le_bytes());
        head
    }

    /// Refuses a file that is not the table of a medium of so many bytes.
    fn demand_table(file: &fs::File, medium: u64) -> Result<(), Cause> {
        let refuse = |why: String| Err(Cause::SideTable(why));
        let metadata = file.metadata().map_err(Cause::Io)?;
        if !metadata.is_file() {
            return refuse("it is no regular file, which a side table is".to_owned());
        }
        let len = metadata.len();
        if len < HEAD as u64 {
            return refuse(format!(
                "it has {len} bytes, expected a side table of at least {HEAD}"
            ));
        }
        let mut found = [0; HEAD];
        file.read_exact_at(&mut found, 0).map_err(Cause::Io)?;
        let (magic, rest) = found.split_first_chunk::<8>().expect("a head");
        let (version, rest) = rest.split_first_chunk::<4>().expect("a head");
        let (_, rest) = rest.split_first_chunk::<4>().expect("a head");
        let (bytes, _) = rest.split_first_chunk::<8>().expect("a head");
        if magic != MAGIC {
            return refuse(format!(
                "it begins with \"{}\", expected a side table, which begins with \"{}\"",
                magic.escape_ascii(),
                MAGIC.escape_ascii()
            ));
        }
        let version = u32::from_le_bytes(*version);
        if version != VERSION {
            return refuse(format!(
                "it is a side table of version {version}, expected {VERSION}"
            ));
        }
        let bytes = u64::from_le_bytes(*bytes);
        if bytes != medium {
            return refuse(format!(
                "it is the side table of a medium of {bytes} bytes, the medium has {medium}"
            ));
        }
        if found != head(medium) {
            return refuse(format!(
                "its first {HEAD} bytes have something behind byte 24, or in bytes 12 to 15, that is not zero: it was \
                 damaged"
            ));
        }
        let expected = place(medium / BLOCK);
        match len == expected {
            true => Ok(()),
            false => refuse(format!(
                "it has {len} bytes, expected {expected} for a medium of {medium}: it was cut or something was added"
            )),
        }
    }

    impl TableFile {
        pub(super) fn path(&self) -> &Path {
            &self.path
        }

        fn run<T>(
            &self,
            operation: Operation,
            at: u64,
            length: u64,
            done: io::Result<T>,
        ) -> Result<T, MediumError> {
            done.map_err(|error| {
                MediumError::at(operation, at, length, Cause::Io(error)).with_path(&self.path)
            })
        }

        pub(super) fn load(&self, first: u64, notes: &mut [u64]) -> Result<(), MediumError> {
            let _shared = self.writing.read();
            self.load_now(first, notes)
        }

        fn load_now(&self, first: u64, notes: &mut [u64]) -> Result<(), MediumError> {
            let mut bytes = [0; PIECE];
            let mut at = place(first);
            for notes in notes.chunks_mut(PIECE / NOTE) {
                let bytes = &mut bytes[..notes.len() * NOTE];
                let read = self.file.read_exact_at(bytes, at);
                self.run(Operation::Read, at, bytes.len() as u64, read)?;
                for (note, bytes) in notes.iter_mut().zip(bytes.as_chunks().0) {
                    *note = u64::from_le_bytes(*bytes);
                }
                at += bytes.len() as u64;
            }
            Ok(())
        }

        pub(super) fn store(&self, first: u64, notes: &[u64]) -> Result<(), MediumError> {
            let _alone = self.writing.write();
            self.store_now(first, notes)
        }

        fn store_now(&self, first: u64, notes: &[u64]) -> Result<(), MediumError> {
            let mut bytes = [0; PIECE];
            let mut at = place(first);
            for notes in notes.chunks(PIECE / NOTE) {
                let bytes = &mut bytes[..notes.len() * NOTE];
                for (note, bytes) in notes.iter().zip(bytes.as_chunks_mut().0) {
                    *bytes = note.to_le_bytes();
                }
                let written = self.file.write_all_at(bytes, at);
                self.run(Operation::Write, at, bytes.len() as u64, written)?;
                at += bytes.len() as u64;
            }
            Ok(())
        }

        /// Writes where anything is noted: a file stays sparse.
        pub(super) fn clear(&self, first: u64, blocks: u64) -> Result<(), MediumError> {
            let bytes = blocks * NOTE as u64;
            let _alone = self.writing.write();
            if bytes >= LEAST_HOLE {
                let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                let (file, at) = (&*self.file, place(first));
                if retry_on_intr(|| rustix::fs::fallocate(file, flags, at, bytes)).is_ok() {
                    return Ok(());
                }
            }
            const NOTES: u64 = (PIECE / NOTE) as u64;
            let mut notes = [BELOW; NOTES as usize];
            for from in (0..blocks).step_by(NOTES as usize) {
                let notes = &mut notes[..(blocks - from).min(NOTES) as usize];
                self.load_now(first + from, notes)?;
                if notes.iter().any(|&note| note != BELOW) {
                    notes.fill(BELOW);
                    self.store_now(first + from, notes)?;
                }
            }
            Ok(())
        }

        pub(super) fn count(&self) -> Result<u64, MediumError> {
            let mut bytes = vec![0; LARGE_PIECE];
            let end = place(self.blocks);
            let mut at = HEAD as u64;
            let mut noted = 0;
            while at < end {
                at = self.next_data(at).clamp(at, end);
                let bytes = &mut bytes[..(end - at).min(LARGE_PIECE as u64) as usize];
                let read = self.file.read_exact_at(bytes, at);
                self.run(Operation::Read, at, bytes.len() as u64, read)?;
                let notes = bytes.as_chunks().0.iter();
                noted += notes
                    .filter(|note| u64::from_le_bytes(**note) != BELOW)
                    .count() as u64;
                at += bytes.len() as u64;
            }
            Ok(noted)
        }

        /// Where the hole ends that the file has here, at a note.
        fn next_data(&self, at: u64) -> u64 {
            match rustix::fs::seek(&*self.file, SeekFrom::Data(at)) {
                Ok(data) => data / NOTE as u64 * NOTE as u64,
                // No data follow.
                Err(Errno::NXIO) => u64::MAX,
                Err(_) => at,
            }
        }
    }
}
