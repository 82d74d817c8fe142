//! A load on a block device: so many threads ask for one request after the other.
//!
//! What request number n is depends on the load, its seed and n alone. With one thread the device therefore ends with
//! the same bytes each time; with several, requests to one place race as those of several clients do.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use flashlore_volume::disk::{BlockDevice, DiskError};
use parking_lot::Mutex;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const PAGE: usize = 4096;
/// Values that duplicates are drawn from.
const POOL: u64 = 1024;
/// How long a request waits for its turn before it looks whether it is to come at all.
const LOOK: Duration = Duration::from_millis(50);

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pattern {
    /// Anywhere, rather than one behind the other.
    pub random: bool,
    /// The share of reads, from 0 to 1.
    pub reads: f64,
    /// The share of trims, with that of reads at most 1; the rest are writes.
    pub trims: f64,
}

impl Pattern {
    pub fn changes(&self) -> bool {
        self.reads < 1.0
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    Requests(u64),
    Time(Duration),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    pub pattern: Pattern,
    /// Requests at once.
    pub depth: usize,
    /// Requests a second, at equal distances; as many as the device takes if nothing is said. One whose turn comes
    /// while `depth` others have not ended begins late.
    pub rate: Option<f64>,
    /// Bytes of each, at most those of the device.
    pub bytes: usize,
    /// The share of pages written whose value is one of a thousand; the others are random bytes, unlike all others.
    pub duplicates: f64,
    /// The share of each page that is zeros, behind random bytes: how far it compresses.
    pub compressible: f64,
    /// A flush after every so many requests; none if 0.
    pub flush_every: u64,
    pub seed: u64,
    pub until: Until,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Went {
    pub took: Duration,
    /// The longest that a request began after its turn; zero without a rate.
    pub latest: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestKind {
    Read,
    Write,
    Trim,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LoadRequest {
    kind: RequestKind,
    offset: u64,
}

impl Load {
    fn draws(&self, number: u64) -> Xoshiro256PlusPlus {
        // The two are spread before they meet: neighbouring seeds share no requests.
        let spread = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Xoshiro256PlusPlus::seed_from_u64(self.seed.rotate_left(32) ^ spread)
    }

    fn request(&self, number: u64, size: u64, draws: &mut Xoshiro256PlusPlus) -> LoadRequest {
        let places = (size / self.bytes as u64).max(1);
        let drawn = draws.next_u64();
        let place = match self.pattern.random {
            true => ((u128::from(drawn) * u128::from(places)) >> 64) as u64,
            false => number % places,
        };
        let kind = match share(draws) {
            drawn if drawn < self.pattern.reads => RequestKind::Read,
            drawn if drawn < self.pattern.reads + self.pattern.trims => RequestKind::Trim,
            _ => RequestKind::Write,
        };
        LoadRequest {
            kind,
            offset: place * self.bytes as u64,
        }
    }

    /// When the turn of a request comes, after the beginning; at once without a rate.
    fn turn(&self, number: u64) -> Duration {
        let seconds = self.rate.map_or(0.0, |rate| number as f64 / rate);
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }

    /// Waits for a time, unless `stop` is set meanwhile; how late it is then, or nothing if it was stopped.
    fn wait_until(due: Duration, began: Instant, stop: &AtomicBool) -> Option<Duration> {
        while !stop.load(Ordering::Relaxed) {
            let elapsed = began.elapsed();
            if let Some(late) = elapsed.checked_sub(due) {
                return Some(late);
            }
            std::thread::sleep((due - elapsed).min(LOOK));
        }
        None
    }

    fn fill(&self, buffer: &mut [u8], draws: &mut Xoshiro256PlusPlus) {
        for page in buffer.chunks_mut(PAGE) {
            let random = page.len() - (page.len() as f64 * self.compressible) as usize;
            let (page, zeros) = page.split_at_mut(random);
            zeros.fill(0);
            match share(draws) < self.duplicates {
                true => {
                    let value = draws.next_u64() % POOL;
                    let mut value = Xoshiro256PlusPlus::seed_from_u64(self.seed ^ value);
                    value.fill_bytes(page);
                }
                false => draws.fill_bytes(page),
            }
        }
    }

    /// Puts the load on a device. It ends early when `stop` is set. Changes are durable then.
    ///
    /// # Errors
    /// The first request that failed.
    pub fn run(&self, device: &dyn BlockDevice, stop: &AtomicBool) -> Result<Went, DiskError> {
        let (next, over) = (AtomicU64::new(0), AtomicBool::new(false));
        let latest = AtomicU64::new(0);
        let failed = Mutex::new(None);
        let began = Instant::now();
        let ends = |number: u64| match self.until {
            Until::Requests(most) => number >= most,
            // One whose turn comes later is not waited for.
            Until::Time(most) => began.elapsed().max(self.turn(number)) >= most,
        };
        let work = || {
            let mut buffer = vec![0; self.bytes];
            while !stop.load(Ordering::Relaxed) && !over.load(Ordering::Relaxed) {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if ends(number) {
                    return;
                }
                if self.rate.is_some() {
                    let Some(late) = Self::wait_until(self.turn(number), began, stop) else {
                        return;
                    };
                    latest.fetch_max(late.as_nanos() as u64, Ordering::Relaxed);
                }
                if let Err(error) = self.carry_out(number, device, &mut buffer) {
                    over.store(true, Ordering::Relaxed);
                    let mut failed = failed.lock();
                    failed.get_or_insert(error);
                    return;
                }
            }
        };
        std::thread::scope(|scope| {
            (0..self.depth).for_each(|_| drop(scope.spawn(work)));
        });
        match failed.into_inner() {
            Some(error) => return Err(error),
            None if self.pattern.changes() => device.flush()?,
            None => {}
        }
        Ok(Went {
            took: began.elapsed(),
            latest: Duration::from_nanos(latest.into_inner()),
        })
    }

    fn carry_out(
        &self,
        number: u64,
        device: &dyn BlockDevice,
        buffer: &mut [u8],
    ) -> Result<(), DiskError> {
        let mut draws = self.draws(number);
        let request = self.request(number, device.size(), &mut draws);
        match request.kind {
            RequestKind::Read => device.read(request.offset, buffer)?,
            RequestKind::Trim => device.trim(request.offset, self.bytes as u64)?,
            RequestKind::Write => {
                self.fill(buffer, &mut draws);
                device.write(request.offset, buffer)?;
            }
        }
        match self.flush_every {
            0 => Ok(()),
            every if (number + 1).is_multiple_of(every) => device.flush(),
            _ => Ok(()),
        }
    }
}

/// From 0 to below 1.
fn share(draws: &mut Xoshiro256PlusPlus) -> f64 {
    // 53 bits are what a double holds.
    (draws.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use flashlore_volume::disk::device::About;
    use flashlore_volume::disk::filters::{Count, Fault, Filtered};

    use super::*;

    /// A device in memory.
    struct Memory(Mutex<Vec<u8>>);

    impl Memory {
        fn new(pages: usize) -> Memory {
            Memory(Mutex::new(vec![0; pages * PAGE]))
        }

        fn bytes(self) -> Vec<u8> {
            self.0.into_inner()
        }
    }

    impl BlockDevice for Memory {
        fn size(&self) -> u64 {
            self.0.lock().len() as u64
        }

        fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DiskError> {
            let (at, length) = (offset as usize, buffer.len());
            buffer.copy_from_slice(&self.0.lock()[at..at + length]);
            Ok(())
        }

        fn write(&self, offset: u64, data: &[u8]) -> Result<(), DiskError> {
            let at = offset as usize;
            self.0.lock()[at..at + data.len()].copy_from_slice(data);
            Ok(())
        }

        fn write_zeroes(&self, _: u64, _: u64, _: bool) -> Result<(), DiskError> {
            Err(DiskError::NotKnown)
        }

        fn trim(&self, offset: u64, length: u64) -> Result<(), DiskError> {
            self.write(offset, &vec![0; length as usize])
        }

        fn flush(&self) -> Result<(), DiskError> {
            Ok(())
        }

        fn ask(
            &self,
            _: About,
            _: u64,
            _: u64,
            _: &mut dyn FnMut(u64, u32) -> bool,
        ) -> Result<(), DiskError> {
            Err(DiskError::NotKnown)
        }
    }

    fn load(random: bool, reads: f64, requests: u64) -> Load {
        Load {
            pattern: Pattern {
                random,
                reads,
                trims: 0.0,
            },
            depth: 1,
            rate: None,
            bytes: PAGE,
            duplicates: 0.0,
            compressible: 0.0,
            flush_every: 0,
            seed: 1,
            until: Until::Requests(requests),
        }
    }

    fn left_by(load: Load) -> Vec<u8> {
        let memory = Memory::new(64);
        load.run(&memory, &AtomicBool::new(false)).unwrap();
        memory.bytes()
    }

    #[test]
    fn one_behind_the_other_reaches_every_place_whatever_the_depth() {
        let one = load(false, 0.0, 64);
        let bytes = left_by(one);
        assert!(bytes.chunks(PAGE).all(|page| page != [0; PAGE]));
        assert!(bytes == left_by(Load { depth: 4, ..one }));
        let larger = Load {
            bytes: 3 * PAGE,
            until: Until::Requests(21),
            ..one
        };
        let bytes = left_by(larger);
        // What is left behind the last whole request is not touched.
        assert!(bytes[63 * PAGE..].iter().all(|&byte| byte == 0));
        assert!(
            bytes[..63 * PAGE]
                .chunks(PAGE)
                .all(|page| page != [0; PAGE])
        );
    }

    #[test]
    fn a_seed_repeats_its_bytes_and_another_does_not() {
        let one = load(true, 0.3, 200);
        assert!(left_by(one) == left_by(one));
        assert!(left_by(one) != left_by(Load { seed: 2, ..one }));
    }

    #[test]
    fn shares_of_reads_and_duplicates_are_about_what_was_asked_for() {
        let count = Count::default();
        let device = Filtered::new(Memory::new(64), count.clone());
        let mixed = Load {
            depth: 3,
            flush_every: 100,
            ..load(true, 0.25, 4000)
        };
        let mixed = Load {
            pattern: Pattern {
                trims: 0.1,
                ..mixed.pattern
            },
            ..mixed
        };
        mixed.run(&device, &AtomicBool::new(false)).unwrap();
        let [read, write, _, trim, flush] = count.counts().kinds;
        assert_eq!(read.requests + write.requests + trim.requests, 4000);
        assert!((850..1150).contains(&read.requests), "{}", read.requests);
        assert!((330..470).contains(&trim.requests), "{}", trim.requests);
        assert_eq!(flush.requests, 40 + 1);

        let half = Load {
            duplicates: 0.5,
            compressible: 0.25,
            ..load(false, 0.0, 4096)
        };
        let memory = Memory::new(4096);
        half.run(&memory, &AtomicBool::new(false)).unwrap();
        let mut seen: HashMap<Vec<u8>, u32> = HashMap::new();
        for page in memory.bytes().chunks(PAGE) {
            let (random, zeros) = page.split_at(PAGE / 4 * 3);
            assert!(zeros.iter().all(|&byte| byte == 0));
            assert!(random.iter().filter(|&&byte| byte == 0).count() < 100);
            *seen.entry(page.to_vec()).or_default() += 1;
        }
        // Half are of their own; of the others each of a thousand values comes about twice.
        let distinct = seen.len();
        assert!((2700..3100).contains(&distinct), "{distinct}");
    }

    #[test]
    fn requests_wait_for_their_turns() {
        let device = Filtered::new(Memory::new(64), Count::default());
        let paced = Load {
            rate: Some(1000.0),
            depth: 2,
            ..load(true, 0.0, 51)
        };
        let went = paced.run(&device, &AtomicBool::new(false)).unwrap();
        // The last one is due after 50 ms, however fast the device is.
        assert!(went.took >= Duration::from_millis(50));
        // The turn of the second one comes after the end, and never, when the load is stopped.
        let rare = Load {
            rate: Some(1e-6),
            until: Until::Time(Duration::from_secs(3600)),
            ..paced
        };
        assert!(rare.run(&device, &AtomicBool::new(false)).is_ok());
        assert_eq!(device.filter().counts().kinds[1].requests, 52);
        let stop = AtomicBool::new(false);
        let waiting = Load {
            until: Until::Requests(2),
            ..rare
        };
        std::thread::scope(|scope| {
            let ran = scope.spawn(|| waiting.run(&device, &stop));
            std::thread::sleep(Duration::from_millis(20));
            stop.store(true, Ordering::Relaxed);
            assert!(ran.join().unwrap().is_ok());
        });
        let unpaced = load(true, 0.0, 51);
        let went = unpaced.run(&device, &AtomicBool::new(false)).unwrap();
        assert_eq!(went.latest, Duration::ZERO);
    }

    #[test]
    fn the_first_failure_ends_it_and_so_does_a_stop() {
        let faulty = Filtered::new(Memory::new(8), Fault::new(0.0, 0.1, 0.0, 1));
        let endless = Load {
            until: Until::Requests(u64::MAX),
            depth: 3,
            ..load(true, 0.5, 0)
        };
        let failed = endless.run(&faulty, &AtomicBool::new(false));
        assert!(matches!(failed, Err(DiskError::Injected)));
        let stopped = endless.run(&Memory::new(8), &AtomicBool::new(true));
        assert!(stopped.is_ok());
    }
}
