//! What a bounded fingerprint index keeps of the savings of deduplication, and what other indexes of the same memory
//! would keep.
//!
//! `cargo bench -p flashlore-content --bench savings -- [NATIVE CLONE...]`
//!
//! Streams of page writes are the captures, where they are at hand; images of disks (`tools/vm-images.sh` makes some),
//! each written whole after the first one, in one stream with all and in one for each clone; and clones that are made
//! up (`streams.rs`). Each runs through a disk that stores equal pages once if its index finds the live object that has
//! them. *Savings* are the page writes that found one; an unbounded index finds all. The others have 1 byte for each
//! KiB that the disk of the unbounded index holds at most, or a half or a quarter of that.
//!
//! An index is named by the bytes of an entry, by what leaves a full set, and by whether neighbours of what was found
//! are looked for first (*runs*). *Bounded* is the index of this crate: *5 B rank, runs* within a budget that counts
//! all of its memory. Its neighbours are what was stored next; *by handle* they are the objects with the next handles;
//! *cleaned*, the log of the disk is garbage collected meanwhile; *32 late*, they are known 32 writes later, as if they
//! were read from a medium behind the write; *crashed*, the index is empty in the middle of the stream and is refilled
//! beside the writes, four handles each.
//!
//! The tables show which percentage of the savings each index keeps. An index passes where it keeps 95 %, or where it
//! loses at most one page write of 1,000: what is lost of a stream without duplicates is not measurable. Without
//! `--bench` a few made-up clones run and the hash of all figures is checked.

mod disk;
mod policies;
mod streams;

use std::process::ExitCode;

use disk::{Disk, Index, Outcome};
use policies::{Bounded, Crashed, Layout, Leaves, Sets, Unbounded, WithRuns};
use streams::Stream;

/// Of all figures of the small run.
const EXPECTED: &str = "8f936be0d438999a";

/// Pages of an image that is made up, and in the small run.
const PAGES: u64 = 40_000;
const SMALL_PAGES: u64 = 4_000;

/// Bytes of an index for each page of content.
const BUDGETS: [usize; 3] = [4, 2, 1];

const SIXTEEN_BYTES: Layout = Layout {
    ways: 8,
    set_bytes: 128,
    tag_bits: 48,
};
const EIGHT_BYTES: Layout = Layout {
    ways: 8,
    set_bytes: 64,
    tag_bits: 28,
};
/// 12 handles and 12 tags of a byte in a cache line.
const LINE: Layout = Layout {
    ways: 12,
    set_bytes: 64,
    tag_bits: 8,
};

/// An index of so many bytes.
type Make = fn(usize) -> Box<dyn Index>;

fn sets(bytes: usize, layout: Layout, leaves: Leaves) -> Box<dyn Index> {
    Box::new(Sets::new(bytes, layout, leaves))
}

fn runs(bytes: usize, layout: Layout, leaves: Leaves) -> Box<dyn Index> {
    Box::new(WithRuns::new(Sets::new(bytes, layout, leaves)))
}

/// Names, and how they are made. The last five are the index of this crate.
const INDEXES: [(&str, Make); 19] = [
    ("16 B LRU", |bytes| {
        sets(bytes, SIXTEEN_BYTES, Leaves::Oldest)
    }),
    ("8 B LRU", |bytes| sets(bytes, EIGHT_BYTES, Leaves::Oldest)),
    ("8 B any", |bytes| sets(bytes, EIGHT_BYTES, Leaves::Any)),
    ("8 B BIP", |bytes| sets(bytes, EIGHT_BYTES, Leaves::Newest)),
    ("8 B DIP", |bytes| sets(bytes, EIGHT_BYTES, Leaves::Better)),
    ("8 B rank", |bytes| {
        sets(bytes, EIGHT_BYTES, Leaves::Rank(3))
    }),
    ("5 B LRU", |bytes| sets(bytes, LINE, Leaves::Oldest)),
    ("5 B rank", |bytes| sets(bytes, LINE, Leaves::Rank(4))),
    ("16 B LRU, runs", |bytes| {
        runs(bytes, SIXTEEN_BYTES, Leaves::Oldest)
    }),
    ("8 B LRU, runs", |bytes| {
        runs(bytes, EIGHT_BYTES, Leaves::Oldest)
    }),
    ("8 B rank, runs", |bytes| {
        runs(bytes, EIGHT_BYTES, Leaves::Rank(3))
    }),
    ("5 B LRU, runs", |bytes| runs(bytes, LINE, Leaves::Oldest)),
    ("5 B any, runs", |bytes| runs(bytes, LINE, Leaves::Any)),
    ("5 B rank, runs", |bytes| runs(bytes, LINE, Leaves::Rank(4))),
    ("bounded", |bytes| {
        Box::new(Bounded::new(bytes, Disk::after))
    }),
    ("by handle", |bytes| {
        Box::new(Bounded::new(bytes, Disk::beside))
    }),
    (CLEANED, |bytes| Box::new(Bounded::new(bytes, Disk::after))),
    ("32 late", |bytes| {
        Box::new(Bounded::new(bytes, Disk::after).delayed(LATE))
    }),
    ("crashed", |bytes| {
        Box::new(Crashed::new(Bounded::new(bytes, Disk::after)))
    }),
];

/// After how many further writes late neighbours are known.
const LATE: u64 = 32;

/// The one whose log is cleaned.
const CLEANED: &str = "cleaned";

/// Which of them is the one whose costs are shown.
const BOUNDED: usize = INDEXES.len() - 5;

fn main() -> ExitCode {
    let full = std::env::args().any(|argument| argument == "--bench");
    let arguments = std::env::args().skip(1);
    let files: Vec<String> = arguments
        .filter(|argument| !argument.starts_with("--"))
        .collect();
    let streams = match streams(full, &files) {
        Ok(streams) => streams,
        Err(error) => {
            eprintln!("savings: {error}");
            return ExitCode::FAILURE;
        }
    };
    let hash = run(&streams);
    println!("hash {hash}");
    assert!(
        full || hash == EXPECTED,
        "what the same streams come to changed: {hash}"
    );
    ExitCode::SUCCESS
}

fn streams(full: bool, files: &[String]) -> std::io::Result<Vec<Stream>> {
    if !full {
        return Ok(streams::clones(SMALL_PAGES));
    }
    let mut all = streams::captures();
    if let Some((native, clones)) = files.split_first()
        && !clones.is_empty()
    {
        all.push(streams::images("all images", files)?);
        for clone in clones {
            let name = std::path::Path::new(clone).file_stem().unwrap_or_default();
            let pair = [native.clone(), clone.clone()];
            all.push(streams::images(&name.to_string_lossy(), &pair)?);
        }
    }
    all.extend(streams::clones(PAGES));
    Ok(all)
}

/// Prints the tables; a hash of all figures.
fn run(streams: &[Stream]) -> String {
    let mut hasher = blake3::Hasher::new();
    let unbounded = streams.iter().map(|stream| {
        let outcome = Disk::run(stream, &mut Unbounded::default(), false);
        hasher.update(&outcome.found.to_le_bytes());
        outcome
    });
    let unbounded: Vec<Outcome> = unbounded.collect();
    println!(
        "\n| stream | page writes | KiB held at most | savings, % of writes |\n|---|---:|---:|---:|"
    );
    for (stream, all) in streams.iter().zip(&unbounded) {
        let savings = percent(all.found, all.writes);
        let held = all.most * 4;
        println!(
            "| {} | {} | {held} | {savings:.2} |",
            stream.name, all.writes
        );
    }
    for budget in BUDGETS {
        let outcome = |stream: &Stream, all: &Outcome| {
            INDEXES.map(|(name, make)| {
                Disk::run(stream, &mut *make(all.most * budget), name == CLEANED)
            })
        };
        let pairs = streams.iter().zip(&unbounded);
        let outcomes: Vec<_> = pairs.map(|(stream, all)| outcome(stream, all)).collect();
        let found = outcomes.iter().flatten().map(|outcome| outcome.found);
        found.for_each(|found| {
            hasher.update(&found.to_le_bytes());
        });
        print_kept(budget, streams, &unbounded, &outcomes);
        print_costs(streams, &outcomes);
    }
    hasher.finalize().to_hex()[..16].to_owned()
}

fn print_kept(
    budget: usize,
    streams: &[Stream],
    unbounded: &[Outcome],
    outcomes: &[[Outcome; INDEXES.len()]],
) {
    println!("\n{budget} bytes for each page held. Percent of the savings that are kept:\n");
    let names = INDEXES.map(|(name, _)| name).join(" | ");
    println!(
        "| stream | {names} |\n|---|{}",
        "---:|".repeat(INDEXES.len())
    );
    let mut failures = [0; INDEXES.len()];
    for ((stream, all), outcomes) in streams.iter().zip(unbounded).zip(outcomes) {
        print!("| {} |", stream.name);
        for (outcome, failures) in outcomes.iter().zip(&mut failures) {
            let lost = all.found.saturating_sub(outcome.found);
            let fails = lost * 20 > all.found && lost * 1_000 > all.writes;
            *failures += u32::from(fails);
            let mark = if fails { "*" } else { "" };
            print!(" {mark}{:.2} |", percent(outcome.found, all.found));
        }
        println!();
    }
    let failures = failures.map(|failures| failures.to_string()).join(" | ");
    println!("| streams that fail (*) | {failures} |");
}

fn print_costs(streams: &[Stream], outcomes: &[[Outcome; INDEXES.len()]]) {
    println!("\nThe bounded index, for 100 page writes:\n");
    println!(
        "| stream | objects looked at in vain | windows of neighbours | misses that may be its fault |"
    );
    println!("|---|---:|---:|---:|");
    for (stream, outcomes) in streams.iter().zip(outcomes) {
        let Outcome { writes, costs, .. } = outcomes[BOUNDED];
        let each = [costs.wrong, costs.windows, costs.doubtful];
        let [wrong, windows, doubtful] = each.map(|count| percent(count, writes));
        println!(
            "| {} | {wrong:.2} | {windows:.2} | {doubtful:.2} |",
            stream.name
        );
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    part as f64 * 100.0 / whole.max(1) as f64
}
