//! Every capture through a whole simulation on a device large enough that nothing is collected,
//! against counts that know neither flash nor map (`crates/oracle/src/counts.rs`), exactly.
//!
//! The captures are parsed here by a few lines of their own. An address whose first access is a read
//! holds that content before the run; it is written through the index in ascending order of addresses.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};

use flashlore_oracle::counts::{
    Access, IndexCounts, classify_writes, programs_unlimited, with_lru_index,
};
use flashlore_sim::config::{RunConfig, Settings, load_device, load_host, load_system};
use flashlore_sim::engine::{RunOptions, simulate};
use flashlore_sim::results::RunResult;
use flashlore_testkit::data;
use flashlore_trace::{ContentModel, Workload, WorkloadOptions};

const CAPTURES: [&str; 5] = [
    "django-upgrade",
    "maildir",
    "sqlite-bytes",
    "sqlite-tpcb",
    "upgrade-bytes",
];

/// The captures at hand.
fn captures() -> impl Iterator<Item = PathBuf> {
    CAPTURES
        .iter()
        .filter_map(|name| data(&format!("captures/{name}.fiu.xz")))
}

/// One access of the host: whether it writes, the page, and the digest of its content.
struct Parsed {
    writes: bool,
    page: u64,
    digest: u128,
}

/// `timestamp pid process lba sectors R|W major minor digests`, 4 KiB aligned, a digest a page.
fn parse(path: &Path) -> Vec<Parsed> {
    let mut text = String::new();
    liblzma::read::XzDecoder::new(std::fs::File::open(path).unwrap())
        .read_to_string(&mut text)
        .unwrap();
    let mut all = Vec::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let [_, _, _, lba, sectors, op, "7", "0", digests] = fields[..] else {
            panic!("{}: {line}", path.display());
        };
        let (lba, sectors): (u64, u64) = (lba.parse().unwrap(), sectors.parse().unwrap());
        assert!(lba % 8 == 0 && sectors % 8 == 0, "{line}");
        assert_eq!(digests.len() as u64, sectors / 8 * 32, "{line}");
        for i in 0..sectors / 8 {
            let digits = &digests[i as usize * 32..][..32];
            all.push(Parsed {
                writes: op == "W",
                page: lba / 8 + i,
                digest: u128::from_str_radix(digits, 16).unwrap(),
            });
        }
    }
    all
}

/// What the device holds before the run, and the writes of the run.
fn split(accesses: &[Parsed]) -> (Vec<Access<u128>>, Vec<Access<u128>>) {
    let mut touched = BTreeSet::new();
    let mut held = BTreeMap::new();
    for access in accesses {
        if touched.insert(access.page) && !access.writes {
            held.insert(access.page, access.digest);
        }
    }
    let write = |(lpn, value)| Access::Write { lpn, value };
    let run = accesses.iter().filter(|a| a.writes);
    (
        held.into_iter().map(write).collect(),
        run.map(|a| write((a.page, a.digest))).collect(),
    )
}

/// Counts of the run alone: those of everything less those of what came before.
fn counts_of_run(before: &[Access<u128>], run: &[Access<u128>], entries: usize) -> IndexCounts {
    let all = with_lru_index(before.iter().chain(run).copied(), entries);
    let prefill = with_lru_index(before.iter().copied(), entries);
    IndexCounts {
        programs: all.programs - prefill.programs,
        hits: all.hits - prefill.hits,
        silent: all.silent - prefill.silent,
        evictions: all.evictions - prefill.evictions,
        unique: all.unique - prefill.unique,
        duplicate: all.duplicate - prefill.duplicate,
        reborn: all.reborn - prefill.reborn,
    }
}

/// A simulation on 4 GiB that nothing fills, so that nothing is collected.
fn simulated(path: &Path, system: &str, settings: &[&str]) -> RunResult {
    let mut all = vec!["device.precondition.fill=0"];
    all.extend(settings);
    let settings = Settings::parse(&all).unwrap();
    let config = RunConfig {
        device: load_device("ca-ssd-4g", &settings).unwrap().config,
        system: load_system(system, &settings).unwrap().config,
        host: load_host(&settings).unwrap().config,
    };
    let mut options = WorkloadOptions::new(ContentModel::FromTrace);
    options.compact = true;
    let mut workload = Workload::open(&[path], &options).unwrap();
    let output = simulate(&config, &mut workload, RunOptions::default()).unwrap();
    assert_eq!(output.result.flash.block_erases, 0, "nothing is collected");
    output.result
}

fn with_index(path: &Path, entries: &str) -> RunResult {
    let entries = format!("dedup.index_entries={entries}");
    let settings = ["dedup.prefill_in_index=true", "dedup.oracle=true", &entries];
    simulated(path, "ca-ssd", &settings)
}

fn counts_of(result: &RunResult) -> IndexCounts {
    let (programs, dedup) = (&result.programs, &result.dedup);
    assert_eq!(dedup.hits + dedup.misses, result.host.write_pages);
    assert_eq!(programs.host, dedup.misses);
    assert_eq!(result.flash.page_programs, programs.host);
    IndexCounts {
        programs: programs.host,
        hits: dedup.hits,
        silent: dedup.silent,
        evictions: dedup.evictions,
        unique: programs.unique.unwrap(),
        duplicate: programs.duplicate.unwrap(),
        reborn: programs.reborn.unwrap(),
    }
}

#[test]
fn the_plain_device_programs_every_write_of_a_capture() {
    for path in captures() {
        let result = simulated(&path, "plain", &[]);
        let writes = parse(&path).iter().filter(|a| a.writes).count() as u64;
        assert_eq!(result.host.write_pages, writes, "{}", path.display());
        assert_eq!(result.programs.host, writes, "{}", path.display());
    }
}

#[test]
fn an_unlimited_index_programs_what_is_not_live() {
    for path in captures() {
        let (before, run) = split(&parse(&path));
        let all = before.iter().chain(&run).copied();
        let programs = programs_unlimited(all.clone()) - programs_unlimited(before.iter().copied());
        let found = counts_of(&with_index(&path, "unlimited"));
        println!(
            "{}: {} pages held before, {} writes, {programs} programs",
            path.display(),
            before.len(),
            run.len()
        );
        assert_eq!(found.programs, programs, "{}", path.display());
        assert_eq!((found.duplicate, found.evictions), (0, 0));
        let silent = classify_writes(all).silent - classify_writes(before).silent;
        assert_eq!(found.silent, silent, "{}", path.display());
    }
}

#[test]
fn a_limited_index_programs_what_an_lru_of_its_size_lets_through() {
    for path in captures() {
        let (before, run) = split(&parse(&path));
        for (setting, entries) in [("1024", 1024), ("16Ki", 16384)] {
            let expected = counts_of_run(&before, &run, entries);
            let found = counts_of(&with_index(&path, setting));
            println!("{}, {entries} entries: {found:?}", path.display());
            assert_eq!(found, expected, "{}, {entries} entries", path.display());
        }
    }
}
