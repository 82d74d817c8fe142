//! Every capture through a whole simulation: on a device large enough that nothing is collected, against counts that
//! know neither flash nor map (`crates/oracle/src/counts.rs`), exactly; and on a full one, every preset against the
//! plain device.
//!
//! What takes longest runs on one capture of each kind, and on all of them with FLASHLORE_LONG set.
//!
//! The captures are parsed here by a few lines of their own. An address whose first access is a read
//! holds that content before the run; it is written through the index in ascending order of addresses.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};

use flashlore_oracle::counts::{
    DiskAccess, IndexCounts, classify_writes, programs_unlimited, with_lru_index,
};
use flashlore_sim::config::{
    RunConfig, Settings, load_device, load_host, load_system, system_presets,
};
use flashlore_sim::engine::{RunOptions, simulate};
use flashlore_sim::results::RunResult;
use flashlore_testkit::data;
use flashlore_trace::{ContentModel, RequestSource, Workload, WorkloadOptions};

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

/// Those at hand without the ones that resemble another.
fn captures_of_each_kind() -> impl Iterator<Item = PathBuf> {
    let all = std::env::var_os("FLASHLORE_LONG").is_some();
    let resembles = |path: &PathBuf| {
        path.ends_with("django-upgrade.fiu.xz") || path.ends_with("sqlite-tpcb.fiu.xz")
    };
    captures().filter(move |path| all || !resembles(path))
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
fn split(accesses: &[Parsed]) -> (Vec<DiskAccess<u128>>, Vec<DiskAccess<u128>>) {
    let mut touched = BTreeSet::new();
    let mut held = BTreeMap::new();
    for access in accesses {
        if touched.insert(access.page) && !access.writes {
            held.insert(access.page, access.digest);
        }
    }
    let write = |(lpn, value)| DiskAccess::Write { lpn, value };
    let run = accesses.iter().filter(|a| a.writes);
    (
        held.into_iter().map(write).collect(),
        run.map(|a| write((a.page, a.digest))).collect(),
    )
}

/// Counts of the run alone: those of everything less those of what came before.
fn counts_of_run(
    before: &[DiskAccess<u128>],
    run: &[DiskAccess<u128>],
    entries: usize,
) -> IndexCounts {
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
    for path in captures_of_each_kind() {
        let (before, run) = split(&parse(&path));
        for (setting, entries) in [("1024", 1024), ("16Ki", 16384)] {
            let expected = counts_of_run(&before, &run, entries);
            let found = counts_of(&with_index(&path, setting));
            println!("{}, {entries} entries: {found:?}", path.display());
            assert_eq!(found, expected, "{}, {entries} entries", path.display());
        }
    }
}

/// A run on the device `auto`, which is full of what it exports, with eight requests in flight: as `flashlore demo`.
fn on_auto(path: &Path, system: &str, settings: &[&str]) -> RunResult {
    let mut all = vec!["host.mode=closed", "host.queue_depth=8"];
    all.extend(settings);
    let settings = Settings::parse(&all).unwrap();
    let mut config = RunConfig {
        device: load_device("auto", &settings).unwrap().config,
        system: load_system(system, &settings).unwrap().config,
        host: load_host(&settings).unwrap().config,
    };
    let mut options = WorkloadOptions::new(ContentModel::FromTrace);
    options.compact = true;
    let mut workload = Workload::open(&[path], &options).unwrap();
    let summary = workload.summary();
    let (footprint, pages) = (summary.footprint_units, summary.lpn_count);
    config.fit(footprint, pages, None).unwrap();
    let output = simulate(&config, &mut workload, RunOptions::default());
    output.unwrap().result
}

/// What presets may program of what they are compared with.
const MOST: f64 = 1.1;
/// To the letter of its paper, which assumes twice the spare space of `auto`.
const TO_THE_LETTER: &str = "delta-ftl-letter";

/// What a capture makes the plain device program.
struct Bounds {
    plain: f64,
    /// On a device whose spare space is what the presets' old versions leave of that of `auto`: their reserve, and what
    /// collection keeps free. So much costs the room of a history, if nothing in it ever moved by itself.
    with_less_spare: f64,
}

impl Bounds {
    fn of(path: &Path) -> Bounds {
        let programs = |settings: &[&str]| on_auto(path, "plain", settings).programs.total() as f64;
        Bounds {
            plain: programs(&[]),
            with_less_spare: programs(&["device.space.over_provisioning=10%"]),
        }
    }

    /// The most that a run may program. Parities are programs of their own.
    fn most(&self, run: &RunResult) -> f64 {
        let system = &run.configuration.system;
        let parities = match system.keeps_parities() {
            true => run.programs.packed,
            false => 0,
        };
        MOST * match system.history.enabled {
            true => self.with_less_spare + parities as f64,
            false => self.plain,
        }
    }

    fn check(&self, path: &Path, system: &str, settings: &[&str]) {
        let run = on_auto(path, system, settings);
        let (programs, most) = (run.programs.total() as f64, self.most(&run));
        let (window, versions) = (run.history.window_s, run.history.entries);
        let what = format!("{} on {system} {settings:?}", path.display());
        println!("{what}: {programs}, at most {most:.0}; {versions} versions of {window:.2} s");
        assert!(
            programs <= most,
            "{what}: {programs} programs, at most {most:.0}"
        );
        if run.configuration.system.history.enabled {
            assert!(window > 0.0 && versions > 0, "{what}: {versions} versions");
        }
    }

    fn is_exceeded(&self, path: &Path, system: &str, settings: &[&str]) -> bool {
        let run = on_auto(path, system, settings);
        run.programs.total() as f64 > self.most(&run)
    }
}

/// On a device that is full, where content-aware systems have least to win. Without history a preset programs at most
/// 1.1 times what the plain device does; with one, 1.1 times what the plain device does that has as little spare space
/// as the history leaves, and there are old versions. That the bounds bind is shown by settings that exceed them.
#[test]
fn a_preset_never_programs_much_more_than_the_plain_device() {
    let of_capture = |path: PathBuf| {
        let bounds = Bounds::of(&path);
        let ssd = |name: &str| load_system(name, &Settings::default()).unwrap().config;
        for name in system_presets().iter().map(|preset| preset.name) {
            if ssd(name).array.is_some() || name == TO_THE_LETTER {
                continue;
            }
            bounds.check(&path, name, &[]);
        }
        bounds.check(&path, "combined", &["history.enabled=false"]);
        assert!(
            bounds.is_exceeded(&path, TO_THE_LETTER, &[]),
            "{}",
            path.display()
        );
        if path.ends_with("maildir.fiu.xz") {
            assert!(bounds.is_exceeded(&path, "bvssd", &["history.reserve=0"]));
        }
    };
    std::thread::scope(|scope| {
        for path in captures_of_each_kind() {
            scope.spawn(move || of_capture(path));
        }
    });
}
