//! Speed of rows: read and changed while all of them are in memory, and while only a part of them can be, which must be
//! read from a file and written back; beside a plain vector. One thread, a row at a time.
//!
//! `cargo bench -p flashlore-metadata` uses the disk of the build directory, `-- DIRECTORY` another one. Prints the best
//! of interleaved rounds in millions of rows a second of wall time, and a hash of what was read. Rows have 32 bytes and
//! are drawn uniformly or by zipf .99 over the table. Reads come from the page cache if the file fits there.

use std::sync::Arc;
use std::time::Instant;

use flashlore_content::VolumeKey;
use flashlore_medium::{FileMedium, Medium, Mode};
use flashlore_metadata::{Access, Area, Empty, Row, Shape, Store, TableId};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const ROUNDS: usize = 3;
const KEY: VolumeKey = VolumeKey([1; 32]);
const TABLE: TableId = TableId(0);

/// What rows are drawn by.
#[derive(Clone, Copy)]
enum Draw {
    Uniform,
    Zipf,
}

impl Draw {
    /// A row of so many. The zipf is that of Gray et al. (SIGMOD 1994), spread over the table.
    fn row(self, rng: &mut Xoshiro256PlusPlus, rows: u32) -> Row {
        let unit = (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let rank = match self {
            Draw::Uniform => return Row((unit * f64::from(rows)) as u32),
            // The inverse of the distribution as a continuous one; ranks below the first two are rounded.
            Draw::Zipf => {
                let most = f64::from(rows).powf(0.01);
                ((1.0 + unit * (most - 1.0)).powf(100.0) - 1.0) as u64
            }
        };
        Row((rank.wrapping_mul(0x9E37_79B9_7F4A_7C15) % u64::from(rows)) as u32)
    }
}

struct Case {
    name: &'static str,
    store: Store,
    rows: u32,
    draw: Draw,
    changes: bool,
    operations: u32,
    best: f64,
    hash: u64,
}

impl Case {
    fn new(
        name: &'static str,
        directory: &str,
        (rows, part): (u32, u32),
        draw: Draw,
        changes: bool,
        operations: u32,
    ) -> Case {
        let shape = Shape {
            rows,
            row_bytes: 32,
            empty: Empty::Zeros,
        };
        let pages = shape.pages() as u32;
        let area = Area {
            at: 0,
            slots: pages + pages / 2 + 1_000,
            tables: 1,
            user_bytes: 0,
        };
        let path = format!("{directory}/rows-{name}-{rows}-{part}.bench").replace([' ', ','], "-");
        let _ = std::fs::remove_file(&path);
        let medium = FileMedium::create(&path, area.bytes(), Mode::Buffered).unwrap();
        let _ = std::fs::remove_file(&path);
        let medium: Arc<dyn Medium> = Arc::new(medium);
        let frames = (pages / part) as usize + 64;
        Store::create(&medium, &area, &KEY, 1, &[(1, shape)], &[]).unwrap();
        let (store, _) = Store::open(medium, area, KEY, frames).unwrap();
        let mut case = Case {
            name,
            store,
            rows,
            draw,
            changes,
            operations,
            best: 0.0,
            hash: 0,
        };
        for row in 0..rows {
            case.change(Row(row), u64::from(row));
        }
        case.commit();
        case
    }

    fn commit(&mut self) {
        self.store.commit_at_once(&[]).unwrap();
    }

    /// Does something with a row, once it is there.
    fn fetching<R>(&mut self, mut ask: impl FnMut(&mut Store) -> Result<R, Access>) -> R {
        loop {
            match ask(&mut self.store) {
                Ok(answer) => return answer,
                Err(Access::Absent(fetch)) => {
                    self.store.fetch_at_once(&fetch).unwrap();
                }
                Err(Access::Error(error)) => panic!("{error}"),
            }
        }
    }

    fn change(&mut self, row: Row, value: u64) {
        if self.store.wants_commit() {
            self.commit();
        }
        self.fetching(|store| {
            store.row_mut(TABLE, row)?[..8].copy_from_slice(&value.to_le_bytes());
            Ok(())
        });
    }

    fn read(&mut self, row: Row) -> u64 {
        self.fetching(|store| {
            let row = store.row(TABLE, row)?;
            Ok(row.first_chunk().copied().map_or(0, u64::from_le_bytes))
        })
    }

    fn round(&mut self) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let began = Instant::now();
        let mut hash = 0u64;
        for n in 0..u64::from(self.operations) {
            let row = self.draw.row(&mut rng, self.rows);
            if self.changes {
                self.change(row, n);
            } else {
                hash = hash.rotate_left(5) ^ self.read(row);
            }
        }
        let rate = f64::from(self.operations) / began.elapsed().as_secs_f64() / 1e6;
        self.best = self.best.max(rate);
        self.hash = hash;
    }

    fn report(&mut self) {
        let counters = self.store.cache_counters();
        let asked = counters.hits + counters.misses;
        println!(
            "{:34} {:8.3} M rows/s  {:5.1} % of questions found their page  {:9} pages written to make room  {} MiB  hash {:016x}",
            self.name,
            self.best,
            counters.hits as f64 * 100.0 / asked as f64,
            counters.written_for_room,
            self.store.heap_bytes() >> 20,
            self.hash,
        );
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with("--"))
        .collect();
    let is_full = std::env::args().any(|argument| argument == "--bench");
    let directory = arguments
        .first()
        .map_or(env!("CARGO_TARGET_TMPDIR"), String::as_str);
    let scale = if is_full { 4 } else { 1 };
    let rows = scale * 500_000;
    let (much, few) = (scale * 200_000, scale * 20_000);
    let mut cases = [
        Case::new(
            "all in memory, read",
            directory,
            (rows, 1),
            Draw::Uniform,
            false,
            much,
        ),
        Case::new(
            "all in memory, changed",
            directory,
            (rows, 1),
            Draw::Uniform,
            true,
            much,
        ),
        Case::new(
            "an eighth in memory, read",
            directory,
            (rows, 8),
            Draw::Uniform,
            false,
            few,
        ),
        Case::new(
            "an eighth in memory, changed",
            directory,
            (rows, 8),
            Draw::Uniform,
            true,
            few,
        ),
        Case::new(
            "an eighth, zipf, read",
            directory,
            (rows, 8),
            Draw::Zipf,
            false,
            few,
        ),
        Case::new(
            "an eighth, zipf, changed",
            directory,
            (rows, 8),
            Draw::Zipf,
            true,
            few,
        ),
    ];
    for _ in 0..ROUNDS {
        cases.iter_mut().for_each(Case::round);
        vector(rows, much);
    }
    cases.iter_mut().for_each(Case::report);
    println!(
        "{:34} {:8.3} M rows/s",
        "a vector, read",
        vector(rows, much)
    );
}

/// A plain vector of rows, for comparison.
fn vector(rows: u32, operations: u32) -> f64 {
    let table = vec![[1u64; 4]; rows as usize];
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let began = Instant::now();
    let sum: u64 = (0..operations)
        .map(|_| table[Draw::Uniform.row(&mut rng, rows).index()][0])
        .sum();
    let rate = f64::from(operations) / began.elapsed().as_secs_f64() / 1e6;
    assert_eq!(sum, operations.into());
    rate
}
