//! A full volume: at its default capacity no overwrite fails for space, whatever the system makes of the content.

use crate::support::Draw;
use flashlore_flash::Lpn;

use std::sync::Arc;

use flashlore_content::{PAGE_BYTES, PageBytes};
use flashlore_medium::{CrashMedium, MemoryMedium, Style};
use flashlore_volume::options::default_capacity;
use flashlore_volume::{
    CreateOptions, Encoding, HistoryIdentity, Identity, Policy, Volume, VolumeError, bytes_needed,
    create,
};

const SECOND: u64 = 1_000_000_000;

/// A system as `create` makes it.
#[derive(Debug, Clone, Copy)]
struct System {
    name: &'static str,
    policy: Policy,
    encoding: Encoding,
    history: bool,
}

const fn system(
    name: &'static str,
    policy: Policy,
    (deltas, compression): (bool, bool),
    history: bool,
) -> System {
    let encoding = Encoding {
        deltas,
        compression,
    };
    System {
        name,
        policy,
        encoding,
        history,
    }
}

const DELTA_FTL: System = system("delta-ftl", Policy::Plain, (true, false), false);
const COMBINED: System = system("combined", Policy::Dedup, (true, true), true);

/// All systems, and what else the format can hold.
const SYSTEMS: [System; 11] = [
    system("plain", Policy::Plain, (false, false), false),
    system("ca-ssd", Policy::Dedup, (false, false), false),
    system(
        "ca-ssd-trusted",
        Policy::DedupTrusted,
        (false, false),
        false,
    ),
    system("compress", Policy::Plain, (false, true), false),
    DELTA_FTL,
    system("bvssd", Policy::Plain, (false, false), true),
    COMBINED,
    system("dedup and deltas", Policy::Dedup, (true, false), false),
    system("dedup and both", Policy::DedupTrusted, (true, true), false),
    system("both", Policy::Plain, (true, true), false),
    system("deltas and history", Policy::Plain, (true, false), true),
];

impl System {
    fn identity(self, size: u64) -> Identity {
        self.identity_with(size, 0, false)
    }

    fn identity_with(self, size: u64, least_window: u64, protected: bool) -> Identity {
        let options = CreateOptions {
            policy: self.policy,
            history: self.history.then_some(HistoryIdentity {
                entries: 0,
                least_window,
                protected,
            }),
            encoding: self.encoding,
            size,
            capacity: default_capacity(size, self.history),
            now: 1,
            seed: [7; 48],
        };
        options.identity().unwrap()
    }
}

/// What a host does next.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// Sixty bytes of a page change.
    Edit,
    /// A page gets a value that nothing resembles.
    Fresh,
    /// A page gets a value that can be compressed.
    Text,
    /// A page gets what another one holds.
    Copy,
    Trim,
    Flush,
    Checkpoint,
    Collect,
    /// The power is cut, or the process killed; the volume is opened again.
    Crash,
}

/// How often a host does what, in per mille; the rest are edits.
#[derive(Debug, Clone, Copy)]
struct Mix {
    fresh: u32,
    text: u32,
    copy: u32,
    trim: u32,
    flush: u32,
    checkpoint: u32,
    collect: u32,
    crash: u32,
}

impl Mix {
    fn step(self, draw: &mut Draw) -> Step {
        let mut left = draw.below(1000);
        let kinds = [
            (self.fresh, Step::Fresh),
            (self.text, Step::Text),
            (self.copy, Step::Copy),
            (self.trim, Step::Trim),
            (self.flush, Step::Flush),
            (self.checkpoint, Step::Checkpoint),
            (self.collect, Step::Collect),
            (self.crash, Step::Crash),
        ];
        for (share, step) in kinds {
            if left < share {
                return step;
            }
            left -= share;
        }
        Step::Edit
    }

    fn draw(draw: &mut Draw) -> Mix {
        let mut share = |most: u32| draw.below(3) * draw.below(most) / 2;
        Mix {
            fresh: share(100),
            text: share(100),
            copy: share(100),
            trim: share(200),
            flush: share(100),
            checkpoint: share(5),
            collect: share(100),
            crash: share(4),
        }
    }
}

/// A volume, and what it should hold.
struct Host {
    medium: Arc<CrashMedium>,
    volume: Option<Volume>,
    pages: Vec<Box<PageBytes>>,
    draw: Draw,
    now: u64,
}

impl Host {
    fn new(id: &Identity, seed: u64) -> Self {
        let medium = Arc::new(CrashMedium::new(bytes_needed(id).unwrap() as usize));
        create(&medium, id).unwrap();
        let volume = Volume::open(Arc::clone(&medium)).unwrap().0;
        Host {
            pages: vec![Box::new([0; PAGE_BYTES]); volume.exported() as usize],
            medium,
            volume: Some(volume),
            draw: Draw::new(seed),
            now: SECOND,
        }
    }

    fn volume(&mut self) -> &mut Volume {
        self.volume.as_mut().expect("the volume is open")
    }

    /// A page of any of the first so many per cent of all.
    fn any(&mut self, per_cent: u32) -> u32 {
        let exported = self.pages.len() as u32;
        self.draw.below((exported * per_cent / 100).max(1))
    }

    fn fresh(&mut self) -> Box<PageBytes> {
        let mut page = Box::new([0; PAGE_BYTES]);
        self.scribble(&mut page[..]);
        page
    }

    fn scribble(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(4) {
            let word = self.draw.below(u32::MAX).to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }

    fn write(&mut self, lpn: Lpn, page: Box<PageBytes>) -> Result<(), VolumeError> {
        self.now += 1_000_000;
        let now = self.now;
        self.volume().write(now, lpn, &page)?;
        self.pages[lpn.index()] = page;
        Ok(())
    }

    fn run(&mut self, step: Step, per_cent: u32) -> Result<(), VolumeError> {
        let lpn = self.any(per_cent);
        match step {
            Step::Edit => {
                let mut page = self.pages[lpn as usize].clone();
                let at = self.draw.below(PAGE_BYTES as u32 - 60) as usize;
                self.scribble(&mut page[at..at + 60]);
                self.write(Lpn(lpn), page)
            }
            Step::Fresh => {
                let page = self.fresh();
                self.write(Lpn(lpn), page)
            }
            Step::Text => {
                let mut page = Box::new([0x20; PAGE_BYTES]);
                let some = self.draw.below(3000) as usize;
                self.scribble(&mut page[..some]);
                self.write(Lpn(lpn), page)
            }
            Step::Copy => {
                let page = self.any(per_cent);
                let page = self.pages[page as usize].clone();
                self.write(Lpn(lpn), page)
            }
            Step::Trim => {
                self.now += 1_000_000;
                let now = self.now;
                *self.pages[lpn as usize] = [0; PAGE_BYTES];
                self.volume().trim(now, Lpn(lpn))
            }
            Step::Flush => self.volume().flush(),
            Step::Checkpoint => self.volume().checkpoint(),
            Step::Collect => {
                let mut steps = self.draw.below(20);
                while steps > 0 && self.volume().collect_step()? {
                    steps -= 1;
                }
                Ok(())
            }
            Step::Crash => self.crash(),
        }
    }

    /// What is found afterwards is what the host goes on from: that it is a state of the past others test.
    fn crash(&mut self) -> Result<(), VolumeError> {
        let styles = Style::SEARCH.len() as u32;
        let style = Style::SEARCH[self.draw.below(styles) as usize];
        let image = self
            .medium
            .survivors(u64::from(self.draw.below(u32::MAX)), style);
        self.volume = None;
        self.medium = Arc::new(CrashMedium::from_bytes(image));
        let volume = Volume::open(Arc::clone(&self.medium))?.0;
        self.volume = Some(volume);
        for lpn in 0..self.pages.len() {
            let mut page = Box::new([0; PAGE_BYTES]);
            self.volume().read(Lpn(lpn as u32), &mut page)?;
            self.pages[lpn] = page;
        }
        Ok(())
    }

    fn fill(&mut self, per_cent: u32) {
        for lpn in 0..self.pages.len() as u32 * per_cent / 100 {
            let page = self.fresh();
            self.write(Lpn(lpn), page).unwrap();
        }
    }

    fn compare(&mut self, name: &str) {
        self.volume()
            .check()
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        for lpn in 0..self.pages.len() {
            let mut page = [0; PAGE_BYTES];
            self.volume().read(Lpn(lpn as u32), &mut page).unwrap();
            assert_eq!(page, *self.pages[lpn], "{name}: page {lpn}");
        }
    }
}

/// One drawn history on one system.
fn drawn(system: System, seed: u64, steps: u32) {
    let mut draw = Draw::new(seed);
    let mix = Mix::draw(&mut draw);
    let per_cent = [60, 75, 90, 100][draw.below(4) as usize];
    let size = (1 + u64::from(draw.below(2))) << 20;
    let name = format!(
        "{} seed {seed}: {per_cent} % of {size}, {mix:?}",
        system.name
    );
    let mut host = Host::new(&system.identity(size), seed);
    host.fill(per_cent);
    for n in 0..steps {
        let step = mix.step(&mut draw);
        if let Err(error) = host.run(step, per_cent) {
            panic!("{name}: step {n}, {step:?}: {error}");
        }
        if n % 500 == 0 {
            host.volume()
                .check()
                .unwrap_or_else(|e| panic!("{name}: step {n}, {step:?}: {e}"));
        }
    }
    host.compare(&name);
}

/// More of them, and longer ones: for each system as many as `FLASHLORE_SPACE_HISTORIES` says, from the first that
/// `FLASHLORE_SPACE_FIRST` names on.
#[test]
#[ignore = "a search of minutes; docs/testing.md has its command"]
fn a_long_search_finds_no_overwrite_that_fails_for_space() {
    let number = |name: &str, default| {
        std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
    };
    let first = number("FLASHLORE_SPACE_FIRST", 1000);
    for seed in first..first + number("FLASHLORE_SPACE_HISTORIES", 100) {
        for system in SYSTEMS {
            drawn(system, seed, 20_000);
        }
    }
}

#[test]
fn no_overwrite_fails_for_space_at_the_default_capacity() {
    for system in SYSTEMS {
        for seed in 0..6 {
            drawn(system, seed, 3000);
        }
    }
}

/// A recovery brought blocks back that had been collected: the copies in a block that collection had opened before its
/// victim counted as older than those in the victim, and values that collection had moved to RAM were found in the
/// victim alone. Then no block was free, and none could be freed.
#[test]
fn blocks_that_were_collected_stay_free_through_power_cuts() {
    drawn(COMBINED, 1012, 10_000);
    let dedup_and_deltas = SYSTEMS[7];
    drawn(dedup_and_deltas, 1020, 6_000);
}

/// Nothing of a volume of 64 MiB is damaged or protected; three quarters of it hold something. Edits of sixty bytes
/// with one trim in ten once ended it after 7,166 operations.
#[test]
fn small_edits_and_trims_do_not_fill_a_volume_of_deltas() {
    let id = DELTA_FTL.identity(64 << 20);
    let medium = Arc::new(MemoryMedium::new(bytes_needed(&id).unwrap() as usize));
    create(&medium, &id).unwrap();
    let mut volume = Volume::open(medium).unwrap().0;
    let mut draw = Draw::new(22);
    let pages = volume.exported() / 4 * 3;
    let mut page = [0; PAGE_BYTES];
    let scribble = |draw: &mut Draw, bytes: &mut [u8]| {
        let words = bytes.chunks_exact_mut(4);
        words.for_each(|word| word.copy_from_slice(&draw.below(u32::MAX).to_le_bytes()));
    };
    for lpn in 0..pages {
        scribble(&mut draw, &mut page);
        volume.write(1, Lpn(lpn), &page).unwrap();
    }
    for n in 0..60_000 {
        let lpn = draw.below(pages);
        if draw.below(10) == 0 {
            volume.trim(1, Lpn(lpn)).unwrap();
            continue;
        }
        volume.read(Lpn(lpn), &mut page).unwrap();
        let at = draw.below(1000) as usize * 4;
        scribble(&mut draw, &mut page[at..at + 60]);
        if let Err(error) = volume.write(1, Lpn(lpn), &page) {
            panic!("operation {n}: {error}");
        }
    }
    volume.check().unwrap();
}

/// Writes until the volume refuses; what it says.
fn refusal(host: &mut Host) -> VolumeError {
    for n in 0..4000 {
        let page = host.fresh();
        let lpn = n % host.pages.len() as u32;
        if let Err(error) = host.write(Lpn(lpn), page) {
            host.volume().check().unwrap();
            return error;
        }
    }
    panic!("4000 writes were taken");
}

/// The capacity runs out before the entries of the history do.
#[test]
fn what_holds_the_room_of_a_full_volume_is_named_with_what_helps() {
    let roomy = |protected| {
        let mut id = COMBINED.identity_with(1 << 20, 1000 * SECOND, protected);
        id.history = id.history.map(|history| HistoryIdentity {
            entries: 4000,
            ..history
        });
        id
    };
    let told = |error: VolumeError| match &error {
        VolumeError::Held { holders, .. } => (holders.window, holders.snapshots, error.to_string()),
        other => panic!("{other}"),
    };

    let mut host = Host::new(&roomy(true), 1);
    let (window, snapshots, text) = told(refusal(&mut host));
    assert!(window && !snapshots, "{text}");
    assert!(
        text.contains("the protected window may not be forgotten") && text.contains("wait until")
    );
    // A thousand seconds later it may go.
    host.now += 1001 * SECOND;
    let page = host.fresh();
    host.write(Lpn(0), page).unwrap();

    let mut host = Host::new(&roomy(false), 2);
    host.fill(100);
    let snapshot = |host: &mut Host| {
        let now = host.now + SECOND;
        host.volume().snapshot(now).unwrap()
    };
    let first = snapshot(&mut host);
    for lpn in 0..150 {
        let page = host.fresh();
        host.write(Lpn(lpn), page).unwrap();
    }
    let second = snapshot(&mut host);
    let (window, snapshots, text) = told(refusal(&mut host));
    assert!(snapshots && !window, "{text}");
    assert!(text.contains("snapshots may not be forgotten") && text.contains("snapshot delete"));
    for instant in [first, second] {
        let now = host.now;
        assert!(host.volume().delete_snapshot(now, instant).unwrap());
    }
    for lpn in 0..256 {
        let page = host.fresh();
        host.write(Lpn(lpn), page).unwrap();
    }
    host.compare("after the snapshots");
}
