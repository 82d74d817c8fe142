//! Speed of patterns and of the elided medium. Patterns: making them, recognising them, and seeing that a page is none.
//! Media: a file, and the same elided with its side table in memory and in a file, each written in flash pages of 64 KiB
//! and read at random in units of 4 KiB. All are read through the page cache. One thread, one call at a time.
//!
//! `cargo bench -p flashlore-medium --bench elided` measures on the disk of the build directory, `-- DIRECTORY` elsewhere.
//! It prints the median of interleaved rounds in wall time, and a hash of what was read. Without `--bench` (as
//! `cargo test --bench elided`) it runs small. Either way all media must read the same, and the small run what is written
//! below.

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
    use std::hint::black_box;
    use std::path::Path;
    use std::time::Instant;

    use flashlore_medium::{Elided, FileMedium, Medium, Mode, PATTERN_BYTES, Pattern};
    use rand_core::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    const WRITE: usize = 64 << 10;
    const SMALL_HASH: &str = "f505815dcd54f779";

    struct Scale {
        /// Bytes of the medium; all are written in a round.
        len: usize,
        reads: usize,
        rounds: usize,
        /// Pages that are made or looked at in a round.
        pages: u32,
    }

    /// What is written.
    #[derive(Debug, Clone, Copy)]
    enum Content {
        Whole,
        Changed,
        /// Patterns off by their last bit: they are looked at to their end.
        Near,
        /// Bytes drawn at random.
        Drawn,
    }

    impl Content {
        const ALL: [Content; 4] = [
            Content::Whole,
            Content::Changed,
            Content::Near,
            Content::Drawn,
        ];

        fn name(self) -> &'static str {
            match self {
                Content::Whole => "patterns",
                Content::Changed => "changed patterns",
                Content::Near => "near patterns",
                Content::Drawn => "random bytes",
            }
        }

        fn fill(self, number: u32, page: &mut [u8; PATTERN_BYTES]) {
            match self {
                Content::Whole => Pattern::whole(number, 1).fill(page),
                Content::Changed => Pattern::changed(number, 1, 8).fill(page),
                Content::Near => {
                    Pattern::whole(number, 1).fill(page);
                    page[PATTERN_BYTES - 1] ^= 1;
                }
                Content::Drawn => {
                    Xoshiro256PlusPlus::seed_from_u64(number.into()).fill_bytes(page);
                }
            }
        }
    }

    pub fn main() {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let full = arguments.iter().any(|argument| argument == "--bench");
        let place = arguments.iter().find(|argument| !argument.starts_with('-'));
        let place = place.map_or(Path::new(env!("CARGO_TARGET_TMPDIR")), Path::new);
        let scale = match full {
            true => Scale {
                len: 256 << 20,
                reads: 65_536,
                rounds: 5,
                pages: 65_536,
            },
            false => Scale {
                len: 4 << 20,
                reads: 256,
                rounds: 1,
                pages: 256,
            },
        };
        patterns(&scale);
        let directory = tempfile::tempdir_in(place).expect("a directory to write in");
        let file = |name: &str| {
            let path = directory.path().join(name);
            FileMedium::create(path, scale.len as u64, Mode::Buffered).expect("a medium")
        };
        let table = directory.path().join("table");
        let media: [(&str, Box<dyn Medium>); 3] = [
            ("a file", Box::new(file("plain"))),
            (
                "elided, table in memory",
                Box::new(Elided::new(file("memory")).expect("a medium")),
            ),
            (
                "elided, table in a file",
                Box::new(Elided::create(file("file"), table).expect("a medium")),
            ),
        ];
        let mut hash = blake3::Hasher::new();
        for content in Content::ALL {
            hash.update(measure(&media, content, &scale).as_bytes());
        }
        let hash = hash.finalize().to_hex()[..16].to_string();
        println!("hash of what was read: {hash}");
        assert!(full || hash == SMALL_HASH, "expected {SMALL_HASH}");
    }

    fn median(mut seconds: Vec<f64>) -> f64 {
        seconds.sort_by(f64::total_cmp);
        seconds[seconds.len() / 2]
    }

    /// Each page is made or looked at where it lies in the cache of the processor.
    fn patterns(scale: &Scale) {
        let time = |work: &mut dyn FnMut(u32)| {
            let rounds = (0..scale.rounds).map(|_| {
                let begin = Instant::now();
                (0..scale.pages).for_each(&mut *work);
                begin.elapsed().as_secs_f64()
            });
            median(rounds.collect())
        };
        let report = |what: &str, content: Content, seconds: f64| {
            let bytes = f64::from(scale.pages) * PATTERN_BYTES as f64;
            println!(
                "{what:9} {:17} {:6.1} GB/s {:7.3} us a page",
                content.name(),
                bytes / 1e9 / seconds,
                seconds * 1e6 / f64::from(scale.pages)
            );
        };
        let mut page = [0; PATTERN_BYTES];
        for content in [Content::Whole, Content::Changed] {
            let seconds = time(&mut |number| content.fill(number, black_box(&mut page)));
            report("make", content, seconds);
        }
        for content in Content::ALL {
            content.fill(5, &mut page);
            let is_pattern = matches!(content, Content::Whole | Content::Changed);
            let seconds = time(&mut |_| {
                assert_eq!(Pattern::of(black_box(&page)).is_some(), is_pattern);
            });
            report("recognise", content, seconds);
        }
    }

    /// Writes and reads all media; the hash of what each read.
    fn measure(media: &[(&str, Box<dyn Medium>)], content: Content, scale: &Scale) -> String {
        let mut seconds = vec![[Vec::new(), Vec::new(), Vec::new()]; media.len()];
        let mut hashes = vec![String::new(); media.len()];
        for _ in 0..scale.rounds {
            for (index, (_, medium)) in media.iter().enumerate() {
                medium.discard(0, scale.len as u64).expect("a discard");
                medium.sync().expect("a sync");
                // Into holes, and over what is there.
                seconds[index][0].push(write_all(medium, content));
                seconds[index][1].push(write_all(medium, content));
                let (took, hash) = read_some(medium, scale);
                seconds[index][2].push(took);
                hashes[index] = hash;
            }
        }
        for ((name, _), [fill, overwrite, read]) in media.iter().zip(seconds) {
            let [fill, overwrite, read] = [fill, overwrite, read].map(median);
            let megabytes = |bytes: usize, seconds: f64| bytes as f64 / 1e6 / seconds;
            println!(
                "{name:24} {:17} write 64 KiB {:6.0} MB/s, again {:6.0} MB/s, read 4 KiB {:6.0} MB/s {:5.2} us a call",
                content.name(),
                megabytes(scale.len, fill),
                megabytes(scale.len, overwrite),
                megabytes(scale.reads * PATTERN_BYTES, read),
                read * 1e6 / scale.reads as f64,
            );
        }
        assert!(
            hashes.iter().all(|hash| *hash == hashes[0]),
            "the media differ"
        );
        hashes.swap_remove(0)
    }

    /// The seconds without those in which the bytes are made.
    fn write_all(medium: &dyn Medium, content: Content) -> f64 {
        let mut bytes = vec![0; WRITE];
        let mut seconds = 0.0;
        let mut number = 0;
        for offset in (0..medium.len()).step_by(WRITE) {
            for page in bytes.as_chunks_mut().0 {
                content.fill(number, page);
                number += 1;
            }
            let begin = Instant::now();
            medium.write(offset, &bytes).expect("a write");
            seconds += begin.elapsed().as_secs_f64();
        }
        seconds
    }

    /// Reads pages drawn at random; the seconds it took, and the hash of their bytes.
    fn read_some(medium: &dyn Medium, scale: &Scale) -> (f64, String) {
        let mut draw = Xoshiro256PlusPlus::seed_from_u64(2);
        let pages = medium.len() / PATTERN_BYTES as u64;
        let mut bytes = vec![0xFF; scale.reads * PATTERN_BYTES];
        let begin = Instant::now();
        for place in bytes.chunks_mut(PATTERN_BYTES) {
            let page = draw.next_u64() % pages;
            let offset = page * PATTERN_BYTES as u64;
            medium.read(offset, place).expect("a read");
        }
        let seconds = begin.elapsed().as_secs_f64();
        (seconds, blake3::hash(&bytes).to_hex()[..16].to_string())
    }
}
