//! How much memory an array as large as a tebibyte takes: an array on sparse files is used at random, over all of its
//! addresses, so that nearly every request needs another page of the place table.
//!
//! ```sh
//! cargo run --release -p flashlore-array --example large -- DIRECTORY GIB SECONDS [TABLE_PAGES]
//! ```
//!
//! Makes the array, if it is not there, with a fast medium of 2 GiB and 128 MiB for deltas; opens it, reads and writes for so
//! many seconds, flushes and ends as if it were killed; opens it again, and closes it. Prints, each in a line, what an
//! opening and the use took: seconds, requests, and the peak of the resident memory until then.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use flashlore_array::Element;
use flashlore_array::icash::parameters::{
    SEGMENT_BYTES, SEQUENTIAL_CUTOFF, TABLE_PAGES, frozen_blocks, write_back_batch,
};
use flashlore_array::icash::{ICash, Machine, Options, Shape, bytes_needed, create};
use flashlore_medium::{FileMedium, Medium, Mode};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const PAGE: u64 = 4096;
const FAST: u64 = 2 << 30;
const DELTA_RAM: u64 = 128 << 20;
const SEGMENT_BLOCKS: u32 = 256;
/// Writes between two flushes.
const FLUSH_EVERY: u64 = 10_000;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// What `flashlore create --fast-size 2GiB --delta-ram 128MiB` makes.
fn shape(gib: u64) -> Shape {
    let blocks = (gib << 30) / PAGE;
    let slots = (FAST / PAGE - 2) as u32;
    Shape {
        machines: vec![Machine {
            number: 0,
            blocks: blocks as u32,
        }],
        slots,
        log_segments: (blocks / 8 / u64::from(SEGMENT_BLOCKS)) as u32,
        segment_blocks: SEGMENT_BLOCKS,
        journal_blocks: 0,
        frozen_blocks: frozen_blocks(slots),
    }
}

fn options(shape: &Shape, table_pages: u32) -> Options {
    let segments = (DELTA_RAM / SEGMENT_BYTES as u64) as u32;
    let virtual_blocks = shape.data_blocks() as u32 + Options::LEAST_MORE_VIRTUAL + segments / 3;
    Options {
        write_back_batch: write_back_batch(shape.slots),
        sequential_cutoff: SEQUENTIAL_CUTOFF,
        table_pages,
        ..Options::new(virtual_blocks, segments)
    }
}

/// The most memory of the process so far, in MiB.
fn peak() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1));
    Ok(kib.ok_or("the system does not tell")?.parse::<u64>()? >> 10)
}

/// A page that resembles others of one of a hundred families.
fn fill(page: &mut [u8; PAGE as usize], rng: &mut Xoshiro256PlusPlus) {
    let family = rng.next_u64() % 100;
    Xoshiro256PlusPlus::seed_from_u64(family).fill_bytes(page);
    let at = (rng.next_u64() % (PAGE - 64)) as usize;
    rng.fill_bytes(&mut page[at..at + 64]);
}

fn use_it(element: &mut ICash, blocks: u64, seconds: u64) -> Result<u64> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(element.status().epoch.into());
    let mut page = [0; PAGE as usize];
    let (began, mut requests) = (Instant::now(), 0);
    while began.elapsed() < Duration::from_secs(seconds) {
        let lba = rng.next_u64() % blocks;
        requests += 1;
        match requests % 2 {
            0 => element.read(lba, &mut page)?,
            _ => {
                fill(&mut page, &mut rng);
                element.write(lba, &page)?;
            }
        }
        if requests % (2 * FLUSH_EVERY) == 0 {
            element.flush()?;
        }
    }
    element.flush()?;
    Ok(requests)
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, gib, seconds, more @ ..] = &arguments[..] else {
        return Err("expected DIRECTORY GIB SECONDS [TABLE_PAGES]".into());
    };
    let table_pages = more
        .first()
        .map_or(Ok(TABLE_PAGES), |pages| pages.parse())?;
    let shape = shape(gib.parse()?);
    let options = options(&shape, table_pages);
    let medium = |name: &str, bytes: u64| -> Result<Arc<dyn Medium>> {
        let path = Path::new(directory).join(name);
        Ok(Arc::new(match path.exists() {
            true => FileMedium::open(&path, Mode::Buffered)?,
            false => FileMedium::create(&path, bytes, Mode::Buffered)?,
        }))
    };
    let is_new = !Path::new(directory).join("slow").exists();
    let (fast, slow) = bytes_needed(&shape)?;
    let media = || -> Result<_> { Ok((medium("fast", fast)?, medium("slow", slow)?)) };
    if is_new {
        let (fast, slow) = media()?;
        create(fast, slow, [1; 16], &shape)?;
    }
    for round in 0..2 {
        let began = Instant::now();
        let (fast, slow) = media()?;
        let mut element = ICash::open(fast, slow, options.clone())?;
        println!(
            "{} closed, opened in {:.2} s, peak {} MiB",
            if element.was_closed() {
                "was"
            } else {
                "was not"
            },
            began.elapsed().as_secs_f64(),
            peak()?
        );
        if round == 0 {
            let requests = use_it(&mut element, shape.blocks(), seconds.parse()?)?;
            let (memory, status) = (element.memory(), element.status());
            println!(
                "{requests} requests in {seconds} s, {} checkpoints, {} blocks not at home, peak {} MiB; table {} MiB of {} MiB",
                element.counters().checkpoints,
                status.dirty,
                peak()?,
                memory.table >> 20,
                memory.all() >> 20
            );
        } else {
            let began = Instant::now();
            element.close()?;
            println!(
                "closed in {:.2} s, peak {} MiB",
                began.elapsed().as_secs_f64(),
                peak()?
            );
        }
    }
    Ok(())
}
