//! The elided medium: it behaves as memory does whatever is written where, only what is no pattern takes room, and its two
//! files are all it needs.

use std::env;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use flashlore_medium::{
    Cause, Elided, Failure, Faults, FaultyMedium, Medium, MediumError, MemoryMedium, PATTERN_BYTES,
    PageParts, Parted, Pattern, SECTOR, When, WriteFault,
};
use proptest::prelude::*;

/// Blocks of 4096 bytes of the media that are compared with memory, and sectors behind the last one.
const BLOCKS: usize = 12;
const REST: usize = 3;
const IN_BLOCK: usize = PATTERN_BYTES / SECTOR;
const SECTORS: usize = BLOCKS * IN_BLOCK + REST;

/// What a block of a write holds.
#[derive(Debug, Clone, Copy)]
enum Page {
    Whole(u32),
    Changed(u32),
    /// A pattern off by a bit.
    Near(u32, usize),
    Zeros,
    /// Zeros but for a bit.
    NearZeros(usize),
    Fill(u8),
}

impl Page {
    fn bytes(self) -> [u8; PATTERN_BYTES] {
        let flipped = |mut page: [u8; PATTERN_BYTES], bit: usize| {
            page[bit / 8] ^= 1 << (bit % 8);
            page
        };
        match self {
            Page::Whole(version) => Pattern::whole(7, version).page(),
            Page::Changed(version) => Pattern::changed(7, version, 5).page(),
            Page::Near(version, bit) => flipped(Pattern::whole(7, version).page(), bit),
            Page::Zeros => [0; PATTERN_BYTES],
            Page::NearZeros(bit) => flipped([0; PATTERN_BYTES], bit),
            Page::Fill(byte) => [byte; PATTERN_BYTES],
        }
    }
}

fn page() -> impl Strategy<Value = Page> {
    let bit = || 0..8 * PATTERN_BYTES;
    prop_oneof![
        4 => (0u32..4).prop_map(Page::Whole),
        2 => (0u32..4).prop_map(Page::Changed),
        2 => (0u32..4, bit()).prop_map(|(version, bit)| Page::Near(version, bit)),
        2 => Just(Page::Zeros),
        1 => bit().prop_map(Page::NearZeros),
        2 => (1u8..).prop_map(Page::Fill),
    ]
}

#[derive(Debug, Clone)]
enum Step {
    /// Pages of which `skipped` sectors are left out before, and as many as needed behind. They begin in the medium
    /// at `first`: with `skipped` not the remainder of it, patterns lie where no block begins.
    Write {
        first: usize,
        sectors: usize,
        skipped: usize,
        pages: Vec<Page>,
    },
    Discard {
        first: usize,
        sectors: usize,
    },
    Read {
        first: usize,
        sectors: usize,
    },
    Reopen,
}

/// Ranges of sectors, most of them of whole blocks.
fn range() -> impl Strategy<Value = (usize, usize)> {
    let any = (0..SECTORS).prop_flat_map(|first| (Just(first), 1..=SECTORS - first));
    let short = (0..SECTORS, 1..=IN_BLOCK)
        .prop_map(|(first, sectors)| (first, sectors.min(SECTORS - first)));
    let whole = (0..BLOCKS).prop_flat_map(|first| (Just(first), 1..=BLOCKS - first));
    prop_oneof![
        1 => any,
        2 => short,
        3 => whole.prop_map(|(first, blocks)| (first * IN_BLOCK, blocks * IN_BLOCK)),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let pages = prop::collection::vec(page(), 1..4);
    let aligned = prop_oneof![3 => Just(None), 1 => (0..IN_BLOCK).prop_map(Some)];
    prop_oneof![
        8 => (range(), aligned, pages).prop_map(|((first, sectors), skipped, pages)| Step::Write {
            first,
            sectors,
            skipped: skipped.unwrap_or(first % IN_BLOCK),
            pages,
        }),
        1 => range().prop_map(|(first, sectors)| Step::Discard { first, sectors }),
        3 => range().prop_map(|(first, sectors)| Step::Read { first, sectors }),
        1 => Just(Step::Reopen),
    ]
}

fn content(skipped: usize, sectors: usize, pages: &[Page]) -> Vec<u8> {
    let blocks = (skipped + sectors).div_ceil(IN_BLOCK);
    let pages = pages.iter().cycle().take(blocks);
    let bytes: Vec<u8> = pages.flat_map(|page| page.bytes()).collect();
    bytes[skipped * SECTOR..(skipped + sectors) * SECTOR].to_vec()
}

/// Takes steps on a medium and on memory. `reopen` makes the medium anew of what it left.
struct Compared<M> {
    medium: M,
    model: MemoryMedium,
    defined: [bool; SECTORS],
}

impl<M: Medium> Compared<M> {
    fn new(medium: M) -> Self {
        Compared {
            medium,
            model: MemoryMedium::new(SECTORS * SECTOR),
            defined: [true; SECTORS],
        }
    }

    fn take(mut self, step: &Step, reopen: impl FnOnce(M) -> M) -> Self {
        let at = |first: usize| (first * SECTOR) as u64;
        match *step {
            Step::Write {
                first,
                sectors,
                skipped,
                ref pages,
            } => {
                let bytes = content(skipped, sectors, pages);
                self.medium.write(at(first), &bytes).unwrap();
                self.model.write(at(first), &bytes).unwrap();
                self.defined[first..first + sectors].fill(true);
            }
            Step::Discard { first, sectors } => {
                self.medium.discard(at(first), at(sectors)).unwrap();
                self.defined[first..first + sectors].fill(false);
            }
            Step::Read { first, sectors } => self.compare(first, sectors),
            Step::Reopen => self.medium = reopen(self.medium),
        }
        self
    }

    /// Compares sectors, but not those whose content a discard left undefined.
    fn compare(&self, first: usize, sectors: usize) {
        let offset = (first * SECTOR) as u64;
        let mut found = vec![1; sectors * SECTOR];
        let mut expected = vec![2; sectors * SECTOR];
        self.medium.read(offset, &mut found).unwrap();
        self.model.read(offset, &mut expected).unwrap();
        let pairs = found.chunks(SECTOR).zip(expected.chunks(SECTOR));
        for (sector, (found, expected)) in (first..).zip(pairs) {
            if self.defined[sector] {
                assert!(found == expected, "sector {sector}");
            }
        }
    }
}

/// Blocks of which a medium holds a pattern or zeros, as whoever reads it sees them.
fn patterns(medium: &impl Medium) -> u64 {
    let mut bytes = vec![0; BLOCKS * PATTERN_BYTES];
    medium.read(0, &mut bytes).unwrap();
    let pages = bytes.as_chunks().0.iter();
    pages.filter(|page| Pattern::of(page).is_some()).count() as u64
}

proptest! {
    #[test]
    fn it_behaves_as_memory_does(steps in prop::collection::vec(step(), 1..40)) {
        let inner = MemoryMedium::new(SECTORS * SECTOR);
        let mut compared = Compared::new(Elided::new(inner).unwrap());
        for step in &steps {
            compared = compared.take(step, |medium| medium);
            compared.compare(0, SECTORS);
        }
    }

    /// A write at a block is elided, whatever was there before.
    #[test]
    fn pages_at_blocks_are_elided(
        before in prop::collection::vec(step(), 0..8),
        first in 0..BLOCKS,
        pages in prop::collection::vec(page(), BLOCKS),
    ) {
        let inner = Arc::new(MemoryMedium::new(SECTORS * SECTOR));
        let mut compared = Compared::new(Elided::new(&inner).unwrap());
        for step in &before {
            compared = compared.take(step, |medium| medium);
        }
        compared = compared.take(
            &Step::Write { first: 0, sectors: first * IN_BLOCK + 1, skipped: 0, pages: pages.clone() },
            |medium| medium,
        );
        compared.medium.write(0, &content(0, BLOCKS * IN_BLOCK, &pages)).unwrap();
        let elided = |page: &&Page| matches!(page, Page::Whole(_) | Page::Changed(_) | Page::Zeros);
        let expected = pages.iter().filter(elided).count() as u64;
        prop_assert_eq!(compared.medium.elided_blocks().unwrap(), expected);
        let zeros = pages.iter().filter(|page| matches!(page, Page::Zeros)).count() as u64;
        prop_assert_eq!(patterns(&compared.medium), expected - zeros);
    }
}

/// A medium that counts calls, and the reads and writes since the last time.
fn counted() -> (Arc<FaultyMedium<MemoryMedium>>, impl FnMut() -> (u64, u64)) {
    let inner = MemoryMedium::new(SECTORS * SECTOR);
    let medium = Arc::new(FaultyMedium::new(inner, Faults::default()));
    let counted = Arc::clone(&medium);
    let mut before = (0, 0);
    let calls = move || {
        let now = (counted.reads(), counted.writes());
        let (reads, writes) = std::mem::replace(&mut before, now);
        (now.0 - reads, now.1 - writes)
    };
    (medium, calls)
}

#[test]
fn each_run_that_is_not_elided_is_one_call() {
    let (inner, mut calls) = counted();
    let medium = Elided::new(inner).unwrap();
    let write = |first: usize, pages: &[Page]| {
        let bytes = content(0, pages.len() * IN_BLOCK, pages);
        medium
            .write((first * PATTERN_BYTES) as u64, &bytes)
            .unwrap();
    };
    let (pattern, fill) = (Page::Whole(1), Page::Fill(9));
    write(0, &[pattern; BLOCKS]);
    assert_eq!(calls(), (0, 0));
    assert_eq!(medium.elided_blocks().unwrap(), BLOCKS as u64);
    write(2, &[fill; 3]);
    write(6, &[fill, fill, pattern, fill]);
    assert_eq!(calls(), (0, 3));
    medium.read(0, &mut [0; BLOCKS * PATTERN_BYTES]).unwrap();
    assert_eq!(calls(), (3, 0));
    medium
        .read(SECTOR as u64, &mut [0; 2 * PATTERN_BYTES])
        .unwrap();
    assert_eq!(calls(), (1, 0));
    // Both ends are parts of blocks that are not noted, and so is what lies between.
    let at = (2 * PATTERN_BYTES + SECTOR) as u64;
    medium.write(at, &[1; PATTERN_BYTES]).unwrap();
    assert_eq!(calls(), (0, 1));
    // Both ends are parts of patterns: two blocks, and what lies between.
    let at = (PATTERN_BYTES + SECTOR) as u64;
    medium.write(at, &[2; 4 * PATTERN_BYTES]).unwrap();
    assert_eq!(calls(), (0, 3));
    // What is written is there already.
    let sector = &Pattern::whole(7, 1).page()[SECTOR..2 * SECTOR];
    medium.write(SECTOR as u64, sector).unwrap();
    assert_eq!(calls(), (0, 0));
    assert_eq!(medium.elided_blocks().unwrap(), 4);
}

/// The rest of a record area is zeros: they take no room where there is nothing else.
#[test]
fn parts_of_blocks_of_zeros_are_elided() {
    let (inner, mut calls) = counted();
    let medium = Elided::new(Arc::clone(&inner)).unwrap();
    medium.write(3072, &[0; 3072]).unwrap();
    assert_eq!(calls(), (2, 0));
    assert_eq!(medium.elided_blocks().unwrap(), 2);
    medium.write(4096 + 512, &[0; 512]).unwrap();
    medium.write(4096 + 1024, &[1; 512]).unwrap();
    assert_eq!(medium.elided_blocks().unwrap(), 1);
    assert_eq!(calls(), (0, 1));
    medium.write(4096, &[0; 512]).unwrap();
    assert_eq!(calls(), (1, 1));
    // A block that cannot be read can be written.
    inner.set_faults(Faults {
        unreadable: std::iter::once(8192..12288).collect(),
        ..Faults::default()
    });
    medium.write(8192, &[0; 512]).unwrap();
    assert_eq!(calls(), (1, 1));
}

#[test]
fn a_write_that_fails_leaves_what_was_there() {
    let faults = Faults {
        writes: Some(WriteFault {
            when: When::From(1),
            failure: Failure::NoSpace,
        }),
        ..Faults::default()
    };
    let medium = FaultyMedium::new(MemoryMedium::new(SECTORS * SECTOR), faults);
    let medium = Elided::new(medium).unwrap();
    let page = Pattern::whole(1, 1).page();
    medium.write(0, &page).unwrap();
    for (offset, bytes) in [(0, PATTERN_BYTES), (512, SECTOR), (512, PATTERN_BYTES)] {
        let failed = medium.write(offset, &vec![1; bytes]).unwrap_err();
        assert!(failed.is_no_space());
        let mut found = [0; PATTERN_BYTES];
        medium.read(0, &mut found).unwrap();
        assert!(found == page);
    }
}

#[test]
fn calls_that_no_medium_takes_are_refused() {
    let medium = Elided::new(MemoryMedium::new(SECTORS * SECTOR)).unwrap();
    let message = |result: Result<(), MediumError>| result.unwrap_err().to_string();
    let behind = (SECTORS * SECTOR) as u64;
    assert_eq!(
        message(medium.write(behind, &[0; SECTOR])),
        format!("cannot write 512 bytes at offset {behind}: the medium has {behind} bytes")
    );
    assert!(message(medium.read(100, &mut [0; SECTOR])).contains("multiples of 512"));
    assert!(message(medium.discard(behind, 512)).contains("cannot discard 512 bytes"));
    medium.write(0, &[]).unwrap();
    medium.read(0, &mut []).unwrap();
    medium.discard(0, 0).unwrap();
    medium.sync().unwrap();

    #[derive(Debug)]
    struct Coarse(MemoryMedium);
    impl Medium for Coarse {
        fn len(&self) -> u64 {
            self.0.len()
        }
        fn alignment(&self) -> u32 {
            8192
        }
        fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), MediumError> {
            self.0.read(offset, buf)
        }
        fn write(&self, offset: u64, buf: &[u8]) -> Result<(), MediumError> {
            self.0.write(offset, buf)
        }
        fn discard(&self, offset: u64, len: u64) -> Result<(), MediumError> {
            self.0.discard(offset, len)
        }
        fn sync(&self) -> Result<(), MediumError> {
            self.0.sync()
        }
    }
    let error = Elided::new(Coarse(MemoryMedium::new(8192))).unwrap_err();
    assert!(matches!(error.cause, Cause::TooCoarse { .. }));
    assert!(
        error.to_string().contains("expected at most 4096"),
        "{error}"
    );
}

/// Memory whose writes take a while.
struct Slow(MemoryMedium);

impl Medium for Slow {
    fn len(&self) -> u64 {
        self.0.len()
    }

    fn alignment(&self) -> u32 {
        self.0.alignment()
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), MediumError> {
        self.0.read(offset, buf)
    }

    fn write(&self, offset: u64, buf: &[u8]) -> Result<(), MediumError> {
        thread::sleep(Duration::from_millis(1));
        self.0.write(offset, buf)
    }

    fn discard(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        self.0.discard(offset, len)
    }

    fn sync(&self) -> Result<(), MediumError> {
        self.0.sync()
    }
}

/// Each of several threads has a sector of every block. That a block is written whole for one of them takes nothing from
/// the others.
#[test]
fn parts_of_a_block_are_written_by_several_at_once() {
    let medium = Elided::new(Slow(MemoryMedium::new(SECTORS * SECTOR))).unwrap();
    for page in [Page::Whole(1), Page::Zeros, Page::Changed(1)] {
        let pages = content(0, BLOCKS * IN_BLOCK, &[page]);
        medium.write(0, &pages).unwrap();
        let start = Barrier::new(IN_BLOCK);
        thread::scope(|scope| {
            for writer in 0..IN_BLOCK {
                let (medium, start) = (&medium, &start);
                scope.spawn(move || {
                    let sector = [1 + writer as u8; SECTOR];
                    for block in 0..BLOCKS {
                        start.wait();
                        let at = (block * PATTERN_BYTES + writer * SECTOR) as u64;
                        // Who panics here lets the others wait for ever.
                        let _ = medium.write(at, &sector);
                    }
                });
            }
        });
        let mut found = vec![0; BLOCKS * PATTERN_BYTES];
        medium.read(0, &mut found).unwrap();
        for (sector, bytes) in found.chunks(SECTOR).enumerate() {
            let writer = 1 + (sector % IN_BLOCK) as u8;
            assert!(bytes.iter().all(|&byte| byte == writer));
        }
    }
}

/// Flash pages as a volume lays them out at each alignment: all data are elided, and records are dense below.
#[test]
fn flash_pages_are_elided_at_each_alignment() {
    for (alignment, units) in [(512, 1), (512, 16), (1024, 3), (4096, 4), (4096, 16)] {
        let data = units * PATTERN_BYTES;
        let records = (64 * units).next_multiple_of(SECTOR);
        let area = records.next_multiple_of(alignment);
        let mut parts = vec![data as u64, records as u64];
        parts.extend((area > records).then_some((area - records) as u64));
        let (at, pages, stride) = (8192, 40, data + area);
        let layout = PageParts {
            at: at as u64,
            pages: pages as u64,
            parts,
        };
        let len = (at + pages * stride).next_multiple_of(4096) + 4096;
        let inner = MemoryMedium::new(len);
        let medium = Parted::new(Elided::new(inner).unwrap(), &layout).unwrap();
        let mut page = vec![0; stride];
        for number in 0..pages {
            fill_flash_page(&mut page, number, units);
            medium.write((at + number * stride) as u64, &page).unwrap();
        }
        let mut found = vec![0; stride];
        for number in 0..pages {
            fill_flash_page(&mut page, number, units);
            medium
                .read((at + number * stride) as u64, &mut found)
                .unwrap();
            assert!(found == page);
        }
        let least = (pages * units) as u64;
        let elided = medium.inner().elided_blocks().unwrap();
        assert!(elided >= least, "{elided} of {least}");
        // Blocks below that are not elided.
        let taken = (at + pages * records).div_ceil(4096) + 2;
        let blocks = (len / 4096) as u64;
        let mut block = [0; PATTERN_BYTES];
        let is_taken = |number: &u64| {
            let below = medium.inner().inner();
            below.read(number * 4096, &mut block).unwrap();
            block != [0; PATTERN_BYTES]
        };
        let found = (0..blocks).filter(is_taken).count();
        assert!(found <= taken, "{found} blocks, at most {taken}");
        medium.discard(at as u64, (pages * stride) as u64).unwrap();
        assert_eq!(medium.inner().elided_blocks().unwrap(), 0);
    }
}

fn fill_flash_page(page: &mut [u8], number: usize, units: usize) {
    for unit in 0..units {
        let pattern = Pattern::whole((number * units + unit) as u32, 3);
        let bytes = &mut page[unit * PATTERN_BYTES..][..PATTERN_BYTES];
        bytes.copy_from_slice(&pattern.page());
        page[units * PATTERN_BYTES + 64 * unit..][..64].fill(1 + number as u8);
    }
}

/// What needs files.
#[cfg(target_os = "linux")]
mod files {
    use std::fs::{self, File, OpenOptions};
    use std::io::{BufRead, BufReader};
    use std::os::unix::fs::{FileExt, MetadataExt};
    use std::path::Path;
    use std::process::{Child, Command, Stdio};

    use flashlore_medium::{FileMedium, Mode};
    use flashlore_testkit::skip;
    use tempfile::TempDir;

    use super::*;

    fn directory() -> TempDir {
        tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
    }

    fn create(directory: &Path, len: u64) -> Elided<FileMedium> {
        let inner = FileMedium::create(directory.join("medium"), len, Mode::Buffered).unwrap();
        Elided::create(inner, directory.join("table")).unwrap()
    }

    fn open(directory: &Path) -> Elided<FileMedium> {
        let inner = FileMedium::open(directory.join("medium"), Mode::Buffered).unwrap();
        Elided::open(inner, directory.join("table")).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

        #[test]
        fn files_behave_as_memory_does(steps in prop::collection::vec(step(), 1..40)) {
            let directory = directory();
            let medium = create(directory.path(), (SECTORS * SECTOR) as u64);
            let mut compared = Compared::new(medium);
            for step in &steps {
                compared = compared.take(step, |medium| {
                    let elided = medium.elided_blocks().unwrap();
                    drop(medium);
                    let medium = open(directory.path());
                    assert_eq!(medium.elided_blocks().unwrap(), elided);
                    medium
                });
            }
            compared.compare(0, SECTORS);
        }

        /// Whatever a table holds, it is refused or read, and what is read of it is no panic.
        #[test]
        fn garbage_in_a_table_is_an_error(
            at in prop_oneof![0u64..32, 0..4096 + 8 * BLOCKS as u64],
            bytes in prop::collection::vec(any::<u8>(), 1..20),
            len in prop::option::of(0..2 * 4096u64),
        ) {
            let directory = directory();
            drop(create(directory.path(), (SECTORS * SECTOR) as u64));
            let table = directory.path().join("table");
            let file = OpenOptions::new().write(true).open(&table).unwrap();
            file.write_all_at(&bytes, at).unwrap();
            if let Some(len) = len {
                file.set_len(len).unwrap();
            }
            drop(file);
            let inner = FileMedium::open(directory.path().join("medium"), Mode::Buffered).unwrap();
            let name = table.display().to_string();
            match Elided::open(inner, &table) {
                Err(error) => assert!(error.to_string().contains(&name), "{error}"),
                Ok(medium) => for block in 0..BLOCKS {
                    let mut page = [0; PATTERN_BYTES];
                    if let Err(error) = medium.read((block * PATTERN_BYTES) as u64, &mut page) {
                        assert!(error.to_string().contains(&name), "{error}");
                        assert!(matches!(error.cause, Cause::SideTable(_)));
                    }
                },
            }
        }
    }

    #[test]
    fn a_table_that_is_none_is_refused_in_a_sentence() {
        let directory = directory();
        let len = 1 << 20;
        drop(create(directory.path(), len));
        let table = directory.path().join("table");
        let good = fs::read(&table).unwrap();
        let message = |bytes: &[u8], len: usize| {
            fs::write(&table, bytes).unwrap();
            let error = Elided::open(MemoryMedium::new(len), &table).unwrap_err();
            let start = format!("cannot open the medium at {}: ", table.display());
            let text = error.to_string();
            text.strip_prefix(&start).expect(&text).to_owned()
        };
        let changed = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            bytes
        };
        let len = len as usize;
        for (bytes, medium, expected) in [
            (
                Vec::new(),
                len,
                "it has 0 bytes, expected a side table of at least 4096",
            ),
            (
                changed(0, b'X'),
                len,
                "it begins with \"XLSHELID\", expected a side table, which begins with \"FLSHELID\"",
            ),
            (
                changed(8, 2),
                len,
                "it is a side table of version 2, expected 1",
            ),
            (
                good.clone(),
                2 * len,
                "it is the side table of a medium of 1048576 bytes, the medium has 2097152",
            ),
            (
                good[..good.len() - 8].to_vec(),
                len,
                "it has 6136 bytes, expected 6144 for a medium of 1048576: it was cut or something was added",
            ),
        ] {
            assert_eq!(message(&bytes, medium), expected);
        }
        assert!(message(&changed(100, 1), len).ends_with("it was damaged"));

        let mut bytes = good.clone();
        bytes[4096 + 8] = 5;
        fs::write(&table, bytes).unwrap();
        let medium = Elided::open(MemoryMedium::new(len), &table).unwrap();
        medium.read(0, &mut [0; PATTERN_BYTES]).unwrap();
        let error = medium.read(4096, &mut [0; SECTOR]).unwrap_err();
        let start = format!(
            "cannot read 8 bytes at offset 4104 of {}: the side table has 0x0000000000000005 for the block at byte 4096",
            table.display()
        );
        assert!(error.to_string().starts_with(&start), "{error}");
        // A block that is damaged so can be written anew.
        medium.write(4096, &[1; PATTERN_BYTES]).unwrap();
        medium.read(4096, &mut [0; SECTOR]).unwrap();

        // It was cut behind our back.
        OpenOptions::new()
            .write(true)
            .open(&table)
            .unwrap()
            .set_len(4096)
            .unwrap();
        let error = medium.read(0, &mut [0; SECTOR]).unwrap_err();
        let start = format!(
            "cannot read 8 bytes at offset 4096 of {}: ",
            table.display()
        );
        assert!(error.to_string().starts_with(&start), "{error}");
    }

    #[test]
    fn a_table_is_kept_from_a_second_opener_and_not_overwritten() {
        let directory = directory();
        let medium = create(directory.path(), 1 << 20);
        let table = directory.path().join("table");
        let error = Elided::open(MemoryMedium::new(1 << 20), &table).unwrap_err();
        assert!(matches!(error.cause, Cause::InUse));
        drop(medium);
        let error = Elided::create(MemoryMedium::new(1 << 20), &table).unwrap_err();
        assert!(error.to_string().contains("File exists"), "{error}");
        assert!(
            error.to_string().contains(&table.display().to_string()),
            "{error}"
        );
        drop(open(directory.path()));
        let error = Elided::open(MemoryMedium::new(1 << 20), directory.path()).unwrap_err();
        assert!(matches!(error.cause, Cause::Io(_) | Cause::SideTable(_)));
        let none = directory.path().join("none");
        let error = Elided::open(MemoryMedium::new(1 << 20), none).unwrap_err();
        assert!(matches!(error.cause, Cause::Io(_)));
    }

    /// Bytes on the disk.
    fn taken(path: &Path) -> u64 {
        fs::metadata(path).unwrap().blocks() * 512
    }

    /// 1 TiB is as fast as 1 MiB, and what is discarded is given back.
    #[test]
    fn a_large_medium_takes_room_for_what_is_no_pattern() {
        let directory = directory();
        let (medium, table) = (
            directory.path().join("medium"),
            directory.path().join("table"),
        );
        let len: u64 = 1 << 40;
        let probe = File::create(&medium).unwrap();
        if probe.set_len(len).is_err() {
            skip(
                "no-large-file",
                "the file system of the build directory has no files of 1 TiB",
            );
            return;
        }
        drop(probe);
        fs::remove_file(&medium).unwrap();
        let elided = create(directory.path(), len);
        let pages = content(
            0,
            256 * IN_BLOCK,
            &[Page::Whole(1), Page::Changed(2), Page::Zeros],
        );
        let places = (0..64)
            .map(|place| place * (len / 64))
            .chain([len - (1 << 20)]);
        for place in places.clone() {
            elided.write(place, &pages).unwrap();
        }
        drop(elided);
        assert!(taken(&medium) < 1 << 20, "{} bytes", taken(&medium));
        assert!(taken(&table) < 4 << 20, "{} bytes", taken(&table));
        let elided = open(directory.path());
        let mut found = vec![0; 1 << 20];
        for place in places {
            elided.read(place, &mut found).unwrap();
            assert!(found == pages);
        }
        assert_eq!(elided.elided_blocks().unwrap(), 65 * 256);
        elided.discard(0, len).unwrap();
        assert_eq!(elided.elided_blocks().unwrap(), 0);
        let file = OpenOptions::new().write(true).open(&table).unwrap();
        file.sync_all().unwrap();
        elided.read(0, &mut found).unwrap();
        assert!(found != pages);
        assert!(taken(&table) < 1 << 20, "{} bytes", taken(&table));
    }

    /// Names the directory that a child process shall write in.
    const WRITTEN: &str = "FLASHLORE_TEST_ELIDED";

    /// What the child writes, in this order.
    fn writes() -> impl Iterator<Item = (usize, Vec<u8>)> {
        (0..BLOCKS * 20).map(|number| {
            let page = match number % 5 {
                0 => Page::Fill(number as u8),
                1 => Page::Zeros,
                2 => Page::Changed(number as u32),
                3 => Page::Near(number as u32, number),
                _ => Page::Whole(number as u32),
            };
            let sectors = 1 + number * 7 % (2 * IN_BLOCK);
            let first = number * 31 % (SECTORS - sectors);
            (first, content(first % IN_BLOCK, sectors, &[page]))
        })
    }

    /// Not a test of its own: what the child process of the next test does.
    #[test]
    fn write_until_killed() {
        let Some(directory) = env::var_os(WRITTEN) else {
            return;
        };
        let medium = open(Path::new(&directory));
        for (first, bytes) in writes() {
            medium.write((first * SECTOR) as u64, &bytes).unwrap();
        }
        println!("\nwritten");
        loop {
            thread::park();
        }
    }

    fn writer(directory: &Path) -> Child {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "files::write_until_killed", "--nocapture"])
            .env(WRITTEN, directory)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(
            lines.map_while(Result::ok).any(|line| line == "written"),
            "the child did not write"
        );
        child
    }

    #[test]
    fn what_a_killed_process_wrote_is_there() {
        let directory = directory();
        drop(create(directory.path(), (SECTORS * SECTOR) as u64));
        let mut child = writer(directory.path());
        child.kill().unwrap();
        child.wait().unwrap();
        let compared = Compared::new(open(directory.path()));
        for (first, bytes) in writes() {
            compared
                .model
                .write((first * SECTOR) as u64, &bytes)
                .unwrap();
        }
        compared.compare(0, SECTORS);
        assert!(compared.medium.elided_blocks().unwrap() > 0);
        let bytes = [3; SECTOR];
        compared.medium.write(0, &bytes).unwrap();
        compared.model.write(0, &bytes).unwrap();
        compared.compare(0, SECTORS);
    }
}
