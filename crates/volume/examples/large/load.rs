//! What is asked of a volume, and how long that takes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use flashlore_medium::{CHANGED_VERSIONS, PATTERN_BYTES, Pattern, WHOLE_VERSIONS};
use flashlore_volume::disk::{BlockDevice, Disk};
use hdrhistogram::Histogram;
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::Result;
use crate::draw::{Addresses, Draw};

/// Of a job that does not say how many.
const THREADS: u64 = 2;
/// Pages of a request that fills.
const FILLED_AT_ONCE: u32 = 256;

/// What a run does.
#[derive(Debug, Clone, Copy)]
pub struct Job {
    writes: bool,
    addresses: Addresses,
    threads: u64,
}

impl Job {
    pub fn of(name: &str) -> Result<Job> {
        let (kind, threads) = match name.split_once('@') {
            Some((kind, threads)) => (kind, threads.parse()?),
            None => (name, THREADS),
        };
        let (writes, addresses) = match kind {
            "write-uniform" => (true, Addresses::Uniform),
            "write-zipf" => (true, Addresses::Zipf),
            "read-uniform" => (false, Addresses::Uniform),
            "read-zipf" => (false, Addresses::Zipf),
            other => {
                return Err(
                    format!("job {other}, expected write- or read-, and uniform or zipf").into(),
                );
            }
        };
        Ok(Job {
            writes,
            addresses,
            threads,
        })
    }

    fn name(self) -> String {
        let what = if self.writes { "write" } else { "read" };
        let how = match self.addresses {
            Addresses::Uniform => "uniform",
            Addresses::Zipf => "zipf",
        };
        format!("{what}-{how}@{}", self.threads)
    }
}

/// A volume and who uses it.
pub struct Load {
    disk: Arc<Disk>,
    pages: u32,
    /// Words in which an overwrite differs, or 0 for all.
    changes: u32,
    /// The number of the next write.
    next: AtomicU64,
}

impl Load {
    pub fn new(disk: Arc<Disk>, changes: u32) -> Result<Self> {
        let status = disk.with(|volume| volume.status())?;
        Ok(Load {
            pages: status.exported,
            changes,
            // No page is written twice alike.
            next: AtomicU64::new(status.sequence % (1 << 40) + (status.checkpoint << 20)),
            disk,
        })
    }

    fn page(&self, lpn: u32) -> [u8; PATTERN_BYTES] {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let pattern = match self.changes {
            0 => Pattern::whole(lpn, (number % u64::from(WHOLE_VERSIONS)) as u32),
            changes => {
                Pattern::changed(lpn, (number % u64::from(CHANGED_VERSIONS)) as u32, changes)
            }
        };
        pattern.page()
    }

    /// Writes all pages in order.
    pub fn fill(&self) -> Result<String> {
        let began = Instant::now();
        let mut bytes = Vec::with_capacity(FILLED_AT_ONCE as usize * PATTERN_BYTES);
        let mut told = 0;
        for first in (0..self.pages).step_by(FILLED_AT_ONCE as usize) {
            bytes.clear();
            let end = (first + FILLED_AT_ONCE).min(self.pages);
            (first..end).for_each(|lpn| bytes.extend_from_slice(&self.page(lpn)));
            self.disk
                .write(u64::from(first) * PATTERN_BYTES as u64, &bytes)?;
            let percent = u64::from(end) * 100 / u64::from(self.pages);
            if percent >= told + 5 {
                told = percent;
                let seconds = began.elapsed().as_secs_f64();
                eprintln!("{percent} % after {seconds:.0} s, {} MiB", peak()? >> 20);
            }
        }
        let seconds = began.elapsed().as_secs_f64();
        let rate = f64::from(self.pages) / seconds;
        Ok(format!(
            "\"fill_seconds\": {seconds:.1}, \"fill_rate\": {rate:.0}, \"fill_peak\": {}",
            peak()?
        ))
    }

    /// Does a job for so many seconds.
    pub fn run(&self, job: Job, seconds: u64) -> Result<String> {
        forget_peak()?;
        let draw = Draw::new(job.addresses, self.pages);
        let before = self.disk.with(|volume| volume.table_state())?;
        let began = Instant::now();
        let end = began + Duration::from_secs(seconds);
        let times: std::result::Result<Vec<_>, String> = std::thread::scope(|scope| {
            let each = (0..job.threads).map(|thread| {
                scope.spawn({
                    let draw = &draw;
                    move || {
                        self.requests(job, draw, end, thread)
                            .map_err(|error| error.to_string())
                    }
                })
            });
            let all: Vec<_> = each.collect();
            let joined = all
                .into_iter()
                .map(|thread| thread.join().map_err(|_| "a thread panicked".to_owned())?);
            joined.collect()
        });
        let mut all: Histogram<u64> = Histogram::new(3)?;
        for times in times? {
            all.add(times)?;
        }
        let seconds = began.elapsed().as_secs_f64();
        let after = self.disk.with(|volume| volume.table_state())?;
        let (hits, misses) = (after.hits - before.hits, after.misses - before.misses);
        let at = |quantile: f64| all.value_at_quantile(quantile) as f64 / 1e6;
        Ok(format!(
            "{{\"job\": \"{}\", \"rate\": {:.0}, \"p50_ms\": {:.3}, \"p999_ms\": {:.3}, \"max_ms\": {:.3}, \"peak\": {}, \"hits\": {hits}, \"misses\": {misses}}}",
            job.name(),
            all.len() as f64 / seconds,
            at(0.5),
            at(0.999),
            all.max() as f64 / 1e6,
            peak()?
        ))
    }

    /// The requests of a thread, in nanoseconds.
    fn requests(&self, job: Job, draw: &Draw, end: Instant, thread: u64) -> Result<Histogram<u64>> {
        let seed = self.next.load(Ordering::Relaxed) + thread;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut times = Histogram::new(3)?;
        let mut page = [0; PATTERN_BYTES];
        loop {
            let lpn = draw.next(&mut random);
            let offset = u64::from(lpn) * PATTERN_BYTES as u64;
            if job.writes {
                page = self.page(lpn);
            }
            let began = Instant::now();
            if began >= end {
                return Ok(times);
            }
            match job.writes {
                true => self.disk.write(offset, &page)?,
                false => self.disk.read(offset, &mut page)?,
            }
            times.record(began.elapsed().as_nanos() as u64)?;
            if !job.writes && Pattern::of(&page).is_none_or(|found| found.address() != lpn) {
                return Err(format!("page {lpn} is not what was written there").into());
            }
        }
    }
}

/// Most bytes of this process that were resident since [`forget_peak`].
pub fn peak() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: Option<u64> = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
    Ok(kib.ok_or("no VmHWM in /proc/self/status")? << 10)
}

/// From now on the peak is counted anew.
pub fn forget_peak() -> Result<()> {
    std::fs::write("/proc/self/clear_refs", "5")?;
    Ok(())
}
