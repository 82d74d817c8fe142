//! Speed of a file medium: sequential writes of 64 KiB with a sync every so many, and random reads of
//! 4 KiB, through the page cache and past it. One thread, one call at a time.
//!
//! `cargo bench -p flashlore-medium` measures on the disk of the build directory, `-- DIRECTORY`
//! elsewhere. It prints the median of interleaved rounds in wall time, and a hash of what was read.
//! Buffered reads come from the page cache. Without `--bench` (as `cargo test --bench medium`) it
//! runs small. Either way all rounds must read the same, and the small run what is written below.

#[cfg(target_os = "linux")]
fn main() {
    linux::main();
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("file media need Linux");
}

#[cfg(target_os = "linux")]
mod linux {
    use std::path::{Path, PathBuf};
    use std::time::Instant;

    use flashlore_medium::{AlignedBuf, Cause, FileMedium, Medium, MediumError, Mode};
    use rand_core::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    const WRITE: usize = 64 << 10;
    const READ: usize = 4 << 10;
    const SMALL_HASH: &str = "219f4a8527d0625e";

    struct Scale {
        /// Bytes of the medium; all are written in a round.
        len: usize,
        reads: usize,
        rounds: usize,
    }

    /// What a round does.
    #[derive(Clone, Copy)]
    enum Job {
        /// Writes into holes, with a sync every so many writes.
        Fill { sync_every: usize },
        /// Writes over what is there.
        Overwrite { sync_every: usize },
        /// Reads at random.
        Read,
    }

    const JOBS: [Job; 5] = [
        Job::Fill { sync_every: 16 },
        Job::Overwrite { sync_every: 1 },
        Job::Overwrite { sync_every: 16 },
        Job::Overwrite { sync_every: 256 },
        Job::Read,
    ];

    pub fn main() {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let full = arguments.iter().any(|argument| argument == "--bench");
        let place = arguments.iter().find(|argument| !argument.starts_with('-'));
        let place = place.map_or(Path::new(env!("CARGO_TARGET_TMPDIR")), Path::new);
        let scale = match full {
            true => Scale {
                len: 256 << 20,
                reads: 32_768,
                rounds: 5,
            },
            false => Scale {
                len: 4 << 20,
                reads: 256,
                rounds: 1,
            },
        };
        let directory = tempfile::tempdir_in(place).expect("a directory to write in");
        let media: Vec<(&str, FileMedium)> =
            [("buffered", Mode::Buffered), ("direct", Mode::Direct)]
                .into_iter()
                .filter_map(|(name, mode)| {
                    Some((name, create(directory.path().join(name), mode, &scale)?))
                })
                .collect();
        for job in JOBS {
            measure(&media, job, &scale);
        }
        let hashes: Vec<String> = media
            .iter()
            .map(|(_, medium)| hash(medium, &scale))
            .collect();
        println!("hash of what was read: {}", hashes.join(" "));
        assert!(
            hashes.iter().all(|hash| *hash == hashes[0]),
            "the modes differ"
        );
        assert!(full || hashes[0] == SMALL_HASH, "expected {SMALL_HASH}");
    }

    fn create(path: PathBuf, mode: Mode, scale: &Scale) -> Option<FileMedium> {
        match FileMedium::create(path, scale.len as u64, mode) {
            Err(MediumError {
                cause: Cause::NoDirectIo,
                ..
            }) => {
                println!("no direct I/O here");
                None
            }
            medium => Some(medium.expect("a medium")),
        }
    }

    fn measure(media: &[(&str, FileMedium)], job: Job, scale: &Scale) {
        let mut seconds = vec![Vec::new(); media.len()];
        for _ in 0..scale.rounds {
            for ((_, medium), seconds) in media.iter().zip(&mut seconds) {
                seconds.push(round(medium, job, scale));
            }
        }
        for ((name, _), seconds) in media.iter().zip(&mut seconds) {
            seconds.sort_by(f64::total_cmp);
            report(name, job, seconds[seconds.len() / 2], scale);
        }
    }

    fn report(name: &str, job: Job, seconds: f64, scale: &Scale) {
        let (what, size, calls) = match job {
            Job::Fill { sync_every } => (
                format!("write 64 KiB into holes, sync every {sync_every}"),
                WRITE,
                scale.len / WRITE,
            ),
            Job::Overwrite { sync_every } => (
                format!("overwrite 64 KiB, sync every {sync_every}"),
                WRITE,
                scale.len / WRITE,
            ),
            Job::Read => ("random read 4 KiB".to_string(), READ, scale.reads),
        };
        let megabytes = (size * calls) as f64 / 1e6;
        println!(
            "{name:8} {what:40} {:8.0} MB/s {:9.1} us a call",
            megabytes / seconds,
            seconds * 1e6 / calls as f64
        );
    }

    /// One round, in seconds.
    fn round(medium: &FileMedium, job: Job, scale: &Scale) -> f64 {
        match job {
            Job::Fill { sync_every } => {
                medium.discard(0, scale.len as u64).expect("a discard");
                medium.sync().expect("a sync");
                write_all(medium, sync_every, scale)
            }
            Job::Overwrite { sync_every } => write_all(medium, sync_every, scale),
            Job::Read => read_some(medium, scale).0,
        }
    }

    fn write_all(medium: &FileMedium, sync_every: usize, scale: &Scale) -> f64 {
        let content = content();
        let begin = Instant::now();
        for index in 0..scale.len / WRITE {
            let start = index % 16 * READ;
            let piece = &content[start..start + WRITE];
            medium
                .write((index * WRITE) as u64, piece)
                .expect("a write");
            if (index + 1) % sync_every == 0 {
                medium.sync().expect("a sync");
            }
        }
        medium.sync().expect("a sync");
        begin.elapsed().as_secs_f64()
    }

    /// Twice the bytes of a write, so that writes can begin at any of their pages.
    fn content() -> AlignedBuf {
        let mut bytes = AlignedBuf::zeroed(2 * WRITE);
        Xoshiro256PlusPlus::seed_from_u64(1).fill_bytes(&mut bytes);
        bytes
    }

    /// Reads pages drawn at random; the seconds it took, and their bytes.
    fn read_some(medium: &FileMedium, scale: &Scale) -> (f64, AlignedBuf) {
        let mut draw = Xoshiro256PlusPlus::seed_from_u64(2);
        let pages = (scale.len / READ) as u64;
        let mut bytes = AlignedBuf::zeroed(scale.reads * READ);
        // Touched once, so that no fault falls into the measurement.
        bytes.fill(0xFF);
        let begin = Instant::now();
        for place in bytes.chunks_mut(READ) {
            let page = draw.next_u64() % pages;
            medium.read(page * READ as u64, place).expect("a read");
        }
        (begin.elapsed().as_secs_f64(), bytes)
    }

    fn hash(medium: &FileMedium, scale: &Scale) -> String {
        let (_, bytes) = read_some(medium, scale);
        blake3::hash(&bytes).to_hex()[..16].to_string()
    }
}
