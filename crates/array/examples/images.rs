//! What I-CASH makes of images of virtual machines, and what plain compression and plain deduplication would: the
//! tables of `docs/array.md`, as Markdown.
//!
//! `cargo run --release -p flashlore-array --example images -- NATIVE CLONE... [--fast-share PERCENT]... [--requests N]`
//!
//! `tools/vm-images.sh` makes images. For each share of the native image that the fast medium holds, and for each way
//! to store, an array in memory gets one machine for each image:
//!
//! 1. The native image is laid in, and lies at home.
//! 2. Each clone is made by `create_image`, and all is flushed.
//! 3. Runs of 32 blocks, one of eight, are read from all clones in the order of addresses, but for zeros.
//! 4. Random requests, the same for all ways: nine of ten go to a tenth of the blocks (runs of 32), three of ten are
//!    writes. What is written is what the block holds, with 16 random bytes at three random places. Every hundredth
//!    request is followed by a flush.
//!
//! With `--requests 0` it ends after the second step.
//!
//! Every read is compared with what the block must hold. RAM for deltas is an eighth of the native image, there
//! is a virtual block for each data block and for each four blocks of the largest image, and the log is as long as all
//! images, so that its cleaning decides nothing.

use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

use flashlore_array::Element;
use flashlore_array::element::Statistics;
use flashlore_array::icash::{self, ICash, Image, Machine, Shape, Stored, lba};
use flashlore_array::icash::{Compression, Options, Similarity};
use flashlore_medium::MemoryMedium;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const BLOCK: usize = 4096;
const ZEROS: Page = [0; BLOCK];
const SEGMENT_BLOCKS: u32 = 256;
/// Bytes of the head of a record in the log.
const RECORD_HEAD: u64 = 20;
/// Blocks next to each other that are read, or are hot, together.
const RUN: u64 = 32;
const SHARES: [f64; 4] = [3.0, 10.0, 30.0, 100.0];

type Page = [u8; BLOCK];
type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The ways to store that are compared.
const WAYS: [(&str, Similarity, Compression); 5] = [
    (
        "signatures (paper)",
        Similarity::Signatures,
        Compression::Never,
    ),
    (
        "super-features",
        Similarity::SuperFeatures,
        Compression::Never,
    ),
    (
        "signatures and compression",
        Similarity::Signatures,
        Compression::IfShorter,
    ),
    (
        "compression alone",
        Similarity::Nothing,
        Compression::IfShorter,
    ),
    ("neither", Similarity::Nothing, Compression::Never),
];

fn main() -> ExitCode {
    let arguments = match Arguments::parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(error) => {
            eprintln!("images: {error}");
            return ExitCode::from(2);
        }
    };
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("images: {error}");
            ExitCode::FAILURE
        }
    }
}

struct Arguments {
    images: Vec<String>,
    /// Percent of the native image.
    shares: Vec<f64>,
    requests: u64,
}

impl Arguments {
    fn parse(mut given: impl Iterator<Item = String>) -> Result<Arguments> {
        let (mut images, mut shares, mut requests) = (Vec::new(), Vec::new(), 20_000);
        while let Some(argument) = given.next() {
            match argument.as_str() {
                "--fast-share" => {
                    let value = given.next().unwrap_or_default();
                    let share = value.trim_end_matches('%').parse();
                    let share = share.ok().filter(|share| *share > 0.0 && *share <= 100.0);
                    shares.push(share.ok_or(format!(
                        "--fast-share is followed by \"{value}\", expected a share above 0 % and up to 100 %"
                    ))?);
                }
                "--requests" => {
                    let value = given.next().unwrap_or_default();
                    requests = value.parse().map_err(|_| {
                        format!("--requests is followed by \"{value}\", expected a number")
                    })?;
                }
                option if option.starts_with("--") => {
                    return Err(format!(
                        "there is no option {option}, expected --fast-share or --requests"
                    )
                    .into());
                }
                _ => images.push(argument),
            }
        }
        if !(2..=256).contains(&images.len()) {
            return Err(format!(
                "{} images are named, expected a native one and 1 to 255 clones",
                images.len()
            )
            .into());
        }
        if shares.is_empty() {
            shares = SHARES.to_vec();
        }
        Ok(Arguments {
            images,
            shares,
            requests,
        })
    }
}

/// An image file, in memory.
struct File {
    name: String,
    pages: Vec<Page>,
}

impl File {
    /// Reads a file; a last block that is not whole is filled up with zeros.
    fn read(path: &str) -> Result<File> {
        let bytes = std::fs::read(path).map_err(|error| format!("{path}: {error}"))?;
        if bytes.is_empty() || bytes.len() / BLOCK >= u32::MAX as usize {
            let found = bytes.len();
            return Err(format!("{path} has {found} bytes, expected 1 byte to 16 TiB").into());
        }
        let page = |chunk: &[u8]| {
            let mut page = ZEROS;
            page[..chunk.len()].copy_from_slice(chunk);
            page
        };
        let name = std::path::Path::new(path).file_stem().unwrap_or_default();
        Ok(File {
            name: name.to_string_lossy().into_owned(),
            pages: bytes.chunks(BLOCK).map(page).collect(),
        })
    }

    /// Addresses of the blocks that are not zeros.
    fn used(&self) -> impl Iterator<Item = u64> {
        let pages = (0..).zip(&self.pages);
        pages
            .filter(|(_, page)| **page != ZEROS)
            .map(|(address, _)| address)
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    let files: Vec<File> = arguments
        .images
        .iter()
        .map(|path| File::read(path))
        .collect::<Result<_>>()?;
    print_equal(&files);
    for &share in &arguments.shares {
        let outcomes: Vec<Outcome> = WAYS
            .iter()
            .map(|way| Outcome::of(&files, share, way, arguments.requests))
            .collect::<Result<_>>()?;
        print_stored(&files, share, &outcomes);
        print_accesses(share, &outcomes);
    }
    Ok(())
}

/// What deduplication by blocks would find.
fn print_equal(files: &[File]) {
    let native = &files[0].pages;
    let natives: HashSet<&Page> = native.iter().collect();
    println!(
        "\n| image | blocks in use | equal at the same address | equal to any native block | equal to any block before |"
    );
    println!("|---|---:|---:|---:|---:|");
    let mut before: HashSet<&Page> = HashSet::new();
    for file in files {
        let (mut same, mut any, mut known) = (0, 0, 0);
        for address in file.used() {
            let page = &file.pages[address as usize];
            same += u64::from(native.get(address as usize) == Some(page));
            any += u64::from(natives.contains(page));
            known += u64::from(!before.insert(page));
        }
        println!(
            "| {} | {} | {same} | {any} | {known} |",
            file.name,
            file.used().count()
        );
    }
}

/// What one way made of the images.
struct Outcome {
    name: &'static str,
    /// Of each clone, as it was made.
    images: Vec<Image>,
    /// Of each clone, before the accesses.
    stored: Vec<Stored>,
    /// While the clones were made, read, and used.
    phases: [Statistics; 3],
    /// Most bytes of deltas in RAM.
    delta_ram: u64,
    /// Associates and references in RAM at the end.
    similar: u64,
}

impl Outcome {
    fn of(
        files: &[File],
        share: f64,
        way: &(&'static str, Similarity, Compression),
        requests: u64,
    ) -> Result<Outcome> {
        let mut element = new_array(files, share, way.1, way.2)?;
        let mut native = files[0]
            .used()
            .map(|address| (lba(0, address), files[0].pages[address as usize]));
        element.lay_in(&mut native)?;
        element.flush()?;
        let start = element.statistics();
        let mut images = Vec::new();
        for (file, machine) in files.iter().zip(0..=255).skip(1) {
            images.push(element.create_image(0, machine, &mut |address, page| {
                *page = file.pages[address as usize];
                Ok(())
            })?);
        }
        element.flush()?;
        let made = element.statistics();
        let machines = (0..=255).take(files.len()).skip(1);
        let stored = machines
            .map(|machine| element.how_stored(machine))
            .collect::<std::result::Result<_, _>>()?;
        if requests > 0 {
            read_runs(&mut element, files)?;
        }
        let read = element.statistics();
        use_clones(&mut element, files, requests)?;
        let used = element.statistics();
        element.check()?;
        let states = element.states();
        Ok(Outcome {
            name: way.0,
            images,
            stored,
            phases: [
                since(&made, &start),
                since(&read, &made),
                since(&used, &read),
            ],
            delta_ram: u64::from(element.segments_used().1) * 64,
            similar: states.associates + states.references,
        })
    }
}

fn since(now: &Statistics, earlier: &Statistics) -> Statistics {
    Statistics {
        reads: now.reads - earlier.reads,
        writes: now.writes - earlier.writes,
        trims: now.trims - earlier.trims,
        flushes: now.flushes - earlier.flushes,
        fast: now.fast.since(&earlier.fast),
        slow: now.slow.since(&earlier.slow),
    }
}

/// An array in memory with a machine for each image.
fn new_array(
    files: &[File],
    share: f64,
    similarity: Similarity,
    compression: Compression,
) -> Result<ICash> {
    let blocks = |file: &File| file.pages.len() as u32;
    let slots = ((f64::from(blocks(&files[0])) * share / 100.0) as u32).max(16);
    let segments = (blocks(&files[0]) * 8).max(1024);
    let largest = files.iter().map(blocks).max().unwrap_or(0);
    let mut options = Options::new(slots + (largest / 4).max(64), segments);
    (options.similarity, options.compression) = (similarity, compression);
    let all: u32 = files.iter().map(blocks).sum();
    let machines = files.iter().zip(0..=255).map(|(file, number)| Machine {
        number,
        blocks: blocks(file),
    });
    let shape = Shape {
        machines: machines.collect(),
        slots,
        log_segments: options.least_log_segments(SEGMENT_BLOCKS, 0) + all.div_ceil(SEGMENT_BLOCKS),
        segment_blocks: SEGMENT_BLOCKS,
        journal_blocks: 0,
        frozen_blocks: 0,
    };
    let (fast, slow) = icash::bytes_needed(&shape)?;
    let fast = Arc::new(MemoryMedium::new(fast as usize));
    let slow = Arc::new(MemoryMedium::new(slow as usize));
    icash::create(fast.clone(), slow.clone(), *b"images of clones", &shape)?;
    Ok(ICash::open(fast, slow, options)?)
}

fn read_runs(element: &mut ICash, files: &[File]) -> Result<()> {
    for (file, machine) in files.iter().zip(0..=255).skip(1) {
        for address in file
            .used()
            .filter(|address| (address / RUN).is_multiple_of(8))
        {
            expect(element, machine, address, &file.pages[address as usize])?;
        }
    }
    Ok(())
}

fn expect(element: &mut ICash, machine: u8, address: u64, expected: &Page) -> Result<()> {
    let mut found = ZEROS;
    element.read(lba(machine, address), &mut found)?;
    element.work_off();
    match found == *expected {
        true => Ok(()),
        false => Err(format!(
            "block {address} of machine {machine} was read with other content than it has"
        )
        .into()),
    }
}

/// Random requests: the fourth step.
fn use_clones(element: &mut ICash, files: &[File], requests: u64) -> Result<()> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let clones = files.iter().zip(0u8..=255).skip(1);
    let all = clones.flat_map(|(file, machine)| file.used().map(move |address| (machine, address)));
    let is_hot =
        |address: u64| Xoshiro256PlusPlus::seed_from_u64(address / RUN).next_u64() % 10 == 0;
    let (hot, cold): (Vec<_>, Vec<_>) = all.partition(|(_, address)| is_hot(*address));
    let mut written: HashMap<(u8, u64), Page> = HashMap::new();
    for request in 1..=requests {
        let class = match below(&mut random, 10) < 9 && !hot.is_empty() || cold.is_empty() {
            true => &hot,
            false => &cold,
        };
        let Some(&(machine, address)) = class.get(below(&mut random, class.len())) else {
            return Ok(());
        };
        let first = &files[usize::from(machine)].pages[address as usize];
        let mut page = *written.get(&(machine, address)).unwrap_or(first);
        if below(&mut random, 10) < 3 {
            for _ in 0..3 {
                let at = below(&mut random, BLOCK - 16);
                random.fill_bytes(&mut page[at..at + 16]);
            }
            element.write(lba(machine, address), &page)?;
            element.work_off();
            written.insert((machine, address), page);
        } else {
            expect(element, machine, address, &page)?;
        }
        if request % 100 == 0 {
            element.flush()?;
        }
    }
    Ok(())
}

fn below(random: &mut Xoshiro256PlusPlus, limit: usize) -> usize {
    ((u128::from(random.next_u64()) * limit as u128) >> 64) as usize
}

fn print_stored(files: &[File], share: f64, outcomes: &[Outcome]) {
    println!("\nFast medium: {share} % of the native image. Clones as they were made:\n");
    println!(
        "| clone | way | zeros | deltas | mean bytes | compressed | mean bytes | whole | log KiB | home KiB | stored |"
    );
    println!("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    for (number, file) in files[1..].iter().enumerate() {
        for outcome in outcomes {
            let (image, stored) = (&outcome.images[number], &outcome.stored[number]);
            let records = stored.deltas + stored.compressed + stored.whole;
            let log = records * RECORD_HEAD
                + stored.delta_bytes
                + stored.compressed_bytes
                + stored.whole * BLOCK as u64;
            let home = (stored.home + stored.slot) * BLOCK as u64;
            println!(
                "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {:.1} % |",
                file.name,
                outcome.name,
                image.zeros,
                image.deltas,
                mean(image.delta_bytes, image.deltas),
                image.compressed,
                mean(image.compressed_bytes, image.compressed),
                image.whole,
                log / 1024,
                home / 1024,
                (log + home) as f64 / (file.used().count() * BLOCK) as f64 * 100.0,
            );
        }
    }
}

fn mean(bytes: u64, count: u64) -> String {
    match count {
        0 => "–".into(),
        _ => format!("{:.0}", bytes as f64 / count as f64),
    }
}

fn print_accesses(share: f64, outcomes: &[Outcome]) {
    println!(
        "\nFast medium: {share} % of the native image. Operations for each block that was made, read or used:\n"
    );
    println!(
        "| phase | way | SSD reads | SSD writes | HDD reads | HDD KiB read | HDD writes | HDD KiB written | deltas in RAM, most KiB | similar at the end |"
    );
    println!("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|");
    let phases = ["made", "read", "used"].into_iter().enumerate();
    for (number, phase) in
        phases.filter(|(number, _)| *number == 0 || outcomes[0].phases[*number].reads > 0)
    {
        for outcome in outcomes {
            let statistics = &outcome.phases[number];
            let made = outcome
                .images
                .iter()
                .map(|image| image.deltas + image.compressed + image.whole)
                .sum();
            let blocks = match number {
                0 => made,
                _ => statistics.reads + statistics.writes,
            };
            let each = |count: u64| count as f64 / blocks as f64;
            println!(
                "| {phase} | {} | {:.3} | {:.3} | {:.3} | {:.2} | {:.3} | {:.2} | {} | {} |",
                outcome.name,
                each(statistics.fast.reads),
                each(statistics.fast.writes),
                each(statistics.slow.reads),
                each(statistics.slow.read_bytes) / 1024.0,
                each(statistics.slow.writes),
                each(statistics.slow.written_bytes) / 1024.0,
                outcome.delta_ram / 1024,
                outcome.similar,
            );
        }
    }
}
