//! Speed of a volume on a file: random 4 KiB writes with a flush every so many, and how long a
//! recovery takes against what was written since the checkpoint.
//!
//! `cargo bench -p flashlore-volume --bench volume -- [DIRECTORY] [SIZE_MIB] [POLICY]`; without arguments it
//! uses a directory of the build, 1024 MiB and all policies. Under `cargo test` it runs small.
//!
//! Both wall-clock and processor time are printed, because a flush waits for the disk. The hash is of
//! what a final read of every page returned: it depends on nothing but the workload.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use flashlore_content::{PAGE_BYTES, PageBytes, VolumeKey};
use flashlore_flash::Lpn;
use flashlore_medium::{FileMedium, Mode};
use flashlore_volume::{Encoding, Identity, Policy, Volume, bytes_needed, create};

/// Writes between two flushes.
const FLUSH_EVERY: u32 = 1000;

fn identity(policy: Policy, exported: u32, spare: u32) -> Identity {
    let block_units = 64 * 16;
    Identity {
        version: flashlore_volume::format::superblock::VERSION,
        policy,
        history: None,
        encoding: Encoding::default(),
        uuid: [7; 16],
        key: VolumeKey([3; 32]),
        created: 0,
        exported,
        // The spare space, and what collection needs.
        blocks: (exported + exported / 100 * spare) / block_units + 8,
        pages_per_block: 64,
        units_per_page: 16,
        alignment: 4096,
        // As `create` makes it: room for all values.
        index_entries: exported,
        journal_bytes: 32 << 20,
    }
}

/// Deterministic numbers (xorshift).
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

fn fill(page: &mut PageBytes, value: u64) {
    let mut draw = Draw(value.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    for chunk in page.chunks_exact_mut(8) {
        chunk.copy_from_slice(&draw.next().to_le_bytes());
    }
}

fn processor_time() -> Duration {
    cpu_time::ProcessTime::now().as_duration()
}

struct Setting<'a> {
    directory: &'a Path,
    exported: u32,
    writes: u32,
    policy: Policy,
    /// Physical pages beyond the exported ones, in percent of these.
    spare: u32,
    /// Of 100 writes, how many repeat an earlier page.
    duplicates: u64,
    mode: Mode,
}

fn file(directory: &Path) -> PathBuf {
    directory.join("bench.flashlore")
}

fn fresh(setting: &Setting<'_>) -> Volume {
    let path = file(setting.directory);
    let _ = std::fs::remove_file(&path);
    let id = identity(setting.policy, setting.exported, setting.spare);
    let medium = FileMedium::create(&path, bytes_needed(&id).expect("sizes"), setting.mode)
        .expect("a file for the volume");
    create(&medium, &id).expect("a volume");
    Volume::open(medium).expect("opens").0
}

/// Fills the volume in order and overwrites as many pages at random, so that collection has settled;
/// the random overwrites after that are timed.
fn random_writes(setting: &Setting<'_>) {
    let mut volume = fresh(setting);
    let mut page = [0; PAGE_BYTES];
    let mut value = 0u64;
    for lpn in 0..setting.exported {
        value += 1;
        fill(&mut page, value);
        volume.write(0, Lpn(lpn), &page).expect("fills");
    }
    volume.checkpoint().expect("checkpoint");
    // Content is made before the clock runs: several rounds of one pool of pages would be duplicates.
    let mut draw = Draw(88_172_645_463_325_252);
    let mut before = volume.counters().clone();
    let (mut wall, mut processor) = (Duration::ZERO, Duration::ZERO);
    let warm_up = setting.exported / FLUSH_EVERY * FLUSH_EVERY;
    let mut batch = Vec::with_capacity(FLUSH_EVERY as usize);
    let mut done = 0;
    while done < warm_up + setting.writes {
        if done == warm_up {
            (wall, processor) = (Duration::ZERO, Duration::ZERO);
            before = volume.counters().clone();
        }
        batch.clear();
        for _ in 0..FLUSH_EVERY {
            let lpn = (draw.next() % u64::from(setting.exported)) as u32;
            // A page written a while ago is likely to be indexed and alive.
            let repeat = draw.next() % 100 < setting.duplicates;
            let back = 1 + draw.next() % 10_000;
            let content = if repeat {
                value.saturating_sub(back).max(1)
            } else {
                value += 1;
                value
            };
            fill(&mut page, content);
            batch.push((lpn, page));
        }
        let (clock, cpu) = (Instant::now(), processor_time());
        for (lpn, page) in &batch {
            volume.write(0, Lpn(*lpn), page).expect("writes");
        }
        volume.flush().expect("flushes");
        wall += clock.elapsed();
        processor += processor_time() - cpu;
        done += FLUSH_EVERY;
    }
    let after = volume.counters().clone();
    let host = after.host_writes - before.host_writes;
    let programs = after.programs() - before.programs();
    println!(
        "{:?} {:?}, {} % spare, {:>2} % duplicates: {:>7.0} writes/s ({:>7.0} a processor second), \
         {:.2} programs a write, {} collections",
        setting.policy,
        setting.mode,
        setting.spare,
        setting.duplicates,
        f64::from(done - warm_up) / wall.as_secs_f64(),
        f64::from(done - warm_up) / processor.as_secs_f64(),
        programs as f64 / host as f64,
        after.victims - before.victims,
    );
    println!("    hash {:016x}", hash(&mut volume));
}

fn hash(volume: &mut Volume) -> u64 {
    let mut page = [0; PAGE_BYTES];
    let mut sum = 0xcbf2_9ce4_8422_2325u64;
    for lpn in 0..volume.exported() {
        volume.read(Lpn(lpn), &mut page).expect("reads");
        for chunk in page.chunks_exact(8) {
            let word = u64::from_le_bytes(chunk.try_into().expect("8 bytes"));
            sum = (sum ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    sum
}

/// Recovery against pages written since the checkpoint, and against the size of the volume.
fn recoveries(setting: &Setting<'_>) {
    for share in [0, 4, 2, 1] {
        let mut volume = fresh(setting);
        let mut page = [0; PAGE_BYTES];
        for lpn in 0..setting.exported {
            fill(&mut page, u64::from(lpn) + 1);
            volume.write(0, Lpn(lpn), &page).expect("fills");
        }
        volume.checkpoint().expect("checkpoint");
        let since = setting.writes.checked_div(share).unwrap_or(0);
        for i in 0..since {
            fill(&mut page, u64::from(i) + (1 << 40));
            let lpn = i.wrapping_mul(2_654_435_761) % setting.exported;
            volume.write(0, Lpn(lpn), &page).expect("writes");
        }
        volume.flush().expect("flushes");
        drop(volume);
        let medium = FileMedium::open(file(setting.directory), setting.mode).expect("the file");
        let clock = Instant::now();
        let (_, recovery) = Volume::open(medium).expect("recovers");
        println!(
            "recovery, {:?}, {} pages, {since:>7} written since the checkpoint: {:>8.2?} \
             ({} events, {} units in {} blocks)",
            setting.policy,
            setting.exported,
            clock.elapsed(),
            recovery.events,
            recovery.units,
            recovery.blocks,
        );
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    let small = !std::env::args().any(|a| a == "--bench");
    let directory = match arguments.first() {
        Some(path) if !small => PathBuf::from(path),
        _ => PathBuf::from(env!("CARGO_TARGET_TMPDIR")),
    };
    let mib: u32 = match arguments.get(1) {
        _ if small => 16,
        Some(size) => size.parse().expect("a size in MiB"),
        None => 1024,
    };
    let setting = |policy, spare, duplicates, mode| Setting {
        directory: &directory,
        exported: mib * 256,
        writes: mib * 256 / 2,
        policy,
        spare,
        duplicates,
        mode,
    };
    let wanted = |policy: &Policy| {
        let only = arguments.get(2);
        only.is_none_or(|only| format!("{policy:?}") == *only)
    };
    for (mode, spare) in [
        (Mode::Buffered, 50),
        (Mode::Buffered, 10),
        (Mode::Direct, 10),
    ] {
        for (policy, duplicates) in [
            (Policy::Plain, 0),
            (Policy::Dedup, 0),
            (Policy::Dedup, 50),
            (Policy::DedupTrusted, 50),
        ] {
            if wanted(&policy) {
                random_writes(&setting(policy, spare, duplicates, mode));
            }
        }
    }
    for policy in [Policy::Plain, Policy::Dedup].into_iter().filter(wanted) {
        for part in [4, 2, 1] {
            let mut setting = setting(policy, 10, 0, Mode::Buffered);
            setting.exported /= part;
            recoveries(&setting);
        }
    }
    let _ = std::fs::remove_file(file(&directory));
}
