//! The file medium: it behaves as memory does, keeps a second opener out, and its errors say where.
#![cfg(target_os = "linux")]

use std::env;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use flashlore_medium::{
    AlignedBuf, Cause, FileMedium, Medium, MediumError, MemoryMedium, Mode, SECTOR,
};
use flashlore_testkit::skip;
use proptest::prelude::*;
use tempfile::TempDir;

/// Blocks of the media that are compared with memory.
const BLOCKS: usize = 16;
const MODES: [Mode; 2] = [Mode::Buffered, Mode::Direct];

fn directory() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// A new medium, or none where the file system has no direct I/O.
fn create(path: &Path, len: u64, mode: Mode) -> Option<FileMedium> {
    match FileMedium::create(path, len, mode) {
        Err(MediumError {
            cause: Cause::NoDirectIo,
            ..
        }) => {
            skip(
                "no-direct-io",
                format!(
                    "{} lies on a file system without direct I/O: the build directory must lie on one that has it",
                    path.display()
                ),
            );
            None
        }
        other => Some(other.unwrap()),
    }
}

#[derive(Debug, Clone)]
enum Step {
    Write {
        first: usize,
        blocks: usize,
        byte: u8,
    },
    Discard {
        first: usize,
        blocks: usize,
    },
    Read {
        first: usize,
        blocks: usize,
    },
    Sync,
    Reopen(bool),
}

fn step() -> impl Strategy<Value = Step> {
    let range = (0..BLOCKS).prop_flat_map(|first| (Just(first), 1..=BLOCKS - first));
    prop_oneof![
        6 => (range.clone(), any::<u8>())
            .prop_map(|((first, blocks), byte)| Step::Write { first, blocks, byte }),
        2 => range.clone().prop_map(|(first, blocks)| Step::Discard { first, blocks }),
        4 => range.prop_map(|(first, blocks)| Step::Read { first, blocks }),
        1 => Just(Step::Sync),
        1 => any::<bool>().prop_map(Step::Reopen),
    ]
}

/// A file medium, its model, and which blocks have a defined content.
struct Compared {
    file: FileMedium,
    model: MemoryMedium,
    defined: [bool; BLOCKS],
    block: usize,
    /// Bytes by which buffers miss their alignment.
    skew: usize,
}

impl Compared {
    fn take(mut self, step: &Step) -> Self {
        let at = |first: usize| (first * self.block) as u64;
        match *step {
            Step::Write {
                first,
                blocks,
                byte,
            } => {
                let mut bytes = AlignedBuf::zeroed(self.skew + blocks * self.block);
                for (index, place) in bytes.iter_mut().enumerate() {
                    *place = byte.wrapping_add((index / 7) as u8);
                }
                self.file.write(at(first), &bytes[self.skew..]).unwrap();
                self.model.write(at(first), &bytes[self.skew..]).unwrap();
                self.defined[first..first + blocks].fill(true);
            }
            Step::Discard { first, blocks } => {
                self.file.discard(at(first), at(blocks)).unwrap();
                self.defined[first..first + blocks].fill(false);
            }
            Step::Read { first, blocks } => self.compare(first, blocks),
            Step::Sync => self.file.sync().unwrap(),
            Step::Reopen(direct) => {
                let path = self.file.path().to_owned();
                drop(self.file);
                let mode = MODES[usize::from(direct)];
                self.file = FileMedium::open(&path, mode).unwrap();
            }
        }
        self
    }

    /// Compares blocks, but not those whose content a discard left undefined.
    fn compare(&self, first: usize, blocks: usize) {
        let offset = (first * self.block) as u64;
        let mut found = AlignedBuf::zeroed(self.skew + blocks * self.block);
        let mut expected = vec![0; blocks * self.block];
        self.file.read(offset, &mut found[self.skew..]).unwrap();
        self.model.read(offset, &mut expected).unwrap();
        let found = found[self.skew..].chunks(self.block);
        for (index, pair) in found.zip(expected.chunks(self.block)).enumerate() {
            if self.defined[first + index] {
                assert_eq!(pair.0, pair.1, "block {}", first + index);
            }
        }
    }
}

/// What both modes take here; none where the file system has no direct I/O.
fn finest_block(directory: &Path) -> Option<usize> {
    let probe = create(&directory.join("probe"), 1 << 20, Mode::Direct)?;
    Some(probe.alignment() as usize)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_file_behaves_as_memory_does(
        steps in prop::collection::vec(step(), 1..40),
        skew in prop::sample::select(vec![0usize, 0, 1, 513]),
        coarser in prop::sample::select(vec![1usize, 8]),
    ) {
        let directory = directory();
        let Some(block) = finest_block(directory.path()) else { return Ok(()) };
        for (mode, name) in MODES.into_iter().zip(["buffered", "direct"]) {
            let block = block * coarser;
            let len = BLOCKS * block;
            let path = directory.path().join(name);
            let mut compared = Compared {
                file: FileMedium::create(&path, len as u64, mode).unwrap(),
                model: MemoryMedium::new(len),
                defined: [true; BLOCKS],
                block,
                skew,
            };
            for step in &steps {
                compared = compared.take(step);
            }
            compared.compare(0, BLOCKS);
        }
    }
}

/// Larger than what is copied at once for a buffer that is not aligned.
#[test]
fn large_transfers_from_unaligned_buffers() {
    let directory = directory();
    for (mode, name) in MODES.into_iter().zip(["buffered", "direct"]) {
        let len = 3 << 20;
        let Some(medium) = create(&directory.path().join(name), len as u64, mode) else {
            continue;
        };
        let mut written = AlignedBuf::zeroed(len + 1);
        for (index, place) in written.iter_mut().enumerate() {
            *place = (index / 1000) as u8;
        }
        medium.write(0, &written[1..]).unwrap();
        let mut read = AlignedBuf::zeroed(len + 3);
        medium.read(0, &mut read[3..]).unwrap();
        assert!(read[3..] == written[1..], "{mode:?}");
    }
}

#[test]
fn a_new_file_is_sparse_and_a_discard_gives_space_back() {
    let directory = directory();
    let path = directory.path().join("volume");
    let len = 8 << 20;
    let medium = FileMedium::create(&path, len, Mode::Buffered).unwrap();
    let taken = || fs::metadata(&path).unwrap().blocks() * 512;
    let mode = fs::metadata(&path).unwrap().mode();
    assert_eq!(mode & 0o777, 0o600, "its owner's alone");
    assert!(taken() < len / 8, "{} bytes taken", taken());
    medium.write(0, &vec![1; len as usize]).unwrap();
    medium.sync().unwrap();
    assert!(taken() >= len, "{} bytes taken", taken());
    medium.discard(0, len).unwrap();
    medium.sync().unwrap();
    let mut first = [9; SECTOR];
    medium.read(0, &mut first).unwrap();
    if first == [1; SECTOR] {
        skip(
            "no-holes",
            "the file system of the build directory punches no holes",
        );
        return;
    }
    assert_eq!(first, [0; SECTOR]);
    assert!(taken() < len / 8, "{} bytes taken", taken());
    assert_eq!(fs::metadata(&path).unwrap().len(), len);
}

#[test]
fn a_second_opener_is_kept_out() {
    let directory = directory();
    let path = directory.path().join("volume");
    let medium = FileMedium::create(&path, 4096, Mode::Buffered).unwrap();
    let error = FileMedium::open(&path, Mode::Buffered).unwrap_err();
    assert!(matches!(error.cause, Cause::InUse));
    let expected = format!(
        "cannot open the medium at {}: it is in use by another process or another opener in this one",
        path.display()
    );
    assert_eq!(error.to_string(), expected);
    drop(medium);
    FileMedium::open(&path, Mode::Buffered).unwrap();
}

/// Names the file that a child process shall hold.
const HELD: &str = "FLASHLORE_TEST_HOLD";

/// Not a test of its own: what the child process of the next test does.
#[test]
fn hold_until_killed() {
    let Some(path) = env::var_os(HELD) else {
        return;
    };
    let _medium = FileMedium::open(&path, Mode::Buffered).unwrap();
    println!("\nholding");
    loop {
        std::thread::park();
    }
}

fn holder_of(path: &Path) -> Child {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "hold_until_killed", "--nocapture"])
        .env(HELD, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(
        lines.map_while(Result::ok).any(|line| line == "holding"),
        "the child did not open the file"
    );
    child
}

#[test]
fn a_killed_process_holds_no_lock() {
    let directory = directory();
    let path = directory.path().join("volume");
    drop(FileMedium::create(&path, 4096, Mode::Buffered).unwrap());
    let mut child = holder_of(&path);
    let refused = FileMedium::open(&path, Mode::Buffered);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(matches!(refused.unwrap_err().cause, Cause::InUse));
    FileMedium::open(&path, Mode::Buffered).unwrap();
}

#[test]
fn create_spares_what_exists_and_leaves_nothing_half_made() {
    let directory = directory();
    let path = directory.path().join("volume");
    fs::write(&path, "precious").unwrap();
    let error = FileMedium::create(&path, 4096, Mode::Buffered).unwrap_err();
    assert!(error.to_string().contains("File exists"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), b"precious");

    let path = directory.path().join("odd");
    let error = FileMedium::create(&path, 1000, Mode::Buffered).unwrap_err();
    assert!(matches!(
        error.cause,
        Cause::BadSize {
            len: 1000,
            alignment: 512
        }
    ));
    assert!(!path.exists());
}

#[test]
fn what_is_no_medium_is_refused() {
    let directory = directory();
    let cause = |path: &Path| FileMedium::open(path, Mode::Buffered).unwrap_err().cause;
    assert!(matches!(cause(directory.path()), Cause::NotAMedium));
    assert!(matches!(cause(Path::new("/dev/zero")), Cause::NotAMedium));
    assert!(matches!(
        cause(&directory.path().join("none")),
        Cause::Io(_)
    ));
    let odd = directory.path().join("odd");
    fs::write(&odd, [0; 700]).unwrap();
    assert!(matches!(cause(&odd), Cause::BadSize { len: 700, .. }));
}

#[test]
fn errors_name_file_and_offset() {
    let directory = directory();
    let path = directory.path().join("volume");
    let medium = FileMedium::create(&path, 8192, Mode::Buffered).unwrap();
    let error = medium.write(8192, &[0; SECTOR]).unwrap_err();
    let expected = format!(
        "cannot write 512 bytes at offset 8192 of {}: the medium has 8192 bytes",
        path.display()
    );
    assert_eq!(error.to_string(), expected);

    // Somebody shortens the file behind our back.
    File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(4096)
        .unwrap();
    let error = medium.read(4096, &mut [0; SECTOR]).unwrap_err();
    assert!(matches!(error.cause, Cause::Io(_)));
    let start = format!(
        "cannot read 512 bytes at offset 4096 of {}: ",
        path.display()
    );
    assert!(error.to_string().starts_with(&start), "{error}");
}

#[test]
fn a_file_becomes_longer_and_shorter() {
    for mode in MODES {
        let directory = directory();
        let path = directory.path().join("medium");
        let Some(medium) = create(&path, 8192, mode) else {
            continue;
        };
        let page = {
            let mut page = AlignedBuf::zeroed(4096);
            page.fill(7);
            page
        };
        medium.write(4096, &page).unwrap();
        medium.write(8192, &page).unwrap_err();
        medium.extend(16384).unwrap();
        medium.extend(4096).unwrap();
        assert!(medium.is_file().unwrap());
        assert_eq!(medium.len(), 16384);
        medium.write(12288, &page).unwrap();
        medium.sync().unwrap();
        let error = medium.extend(16385).unwrap_err();
        assert!(error.to_string().contains("16385 bytes long"), "{error}");
        let longer = medium;
        longer.extend(32768).unwrap();
        longer.shorten(16384).unwrap();
        longer.shorten(32768).unwrap();
        assert_eq!(longer.len(), 16384);
        longer.write(16384, &page).unwrap_err();
        let error = longer.shorten(1).unwrap_err();
        assert!(error.to_string().contains("1 bytes short"), "{error}");
        drop(longer);
        let medium = FileMedium::open(&path, mode).unwrap();
        let mut found = AlignedBuf::zeroed(16384);
        medium.read(0, &mut found).unwrap();
        let bytes = [0, 7, 0, 7].map(|byte| [byte; 4096]).concat();
        assert!(*found == *bytes);
    }
}

#[test]
fn room_that_was_taken_is_there() {
    let directory = directory();
    let path = directory.path().join("medium");
    let medium = FileMedium::create(&path, 8 << 20, Mode::Buffered).unwrap();
    medium.take_room(0, 1 << 20).unwrap();
    let taken = fs::metadata(&path).unwrap();
    assert!(taken.blocks() * 512 >= 1 << 20);
    assert_eq!((taken.len(), medium.len()), (8 << 20, 8 << 20));
    medium.take_room(4 << 20, 1 << 20).unwrap();
    assert!(fs::metadata(&path).unwrap().blocks() * 512 >= 2 << 20);
    let beyond = medium.take_room(0, 9 << 20).unwrap_err().to_string();
    assert!(beyond.contains("medium"), "{beyond}");
}
