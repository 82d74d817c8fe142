//! A profile becomes records: runs over extents, a time for each request, a value for each page.

use flashlore_trace::workload::NO_VALUE;
use flashlore_trace::{Batch, NO_CONTENT, Op, UNIT_BYTES};

use crate::arrivals::Clock;
use crate::draw::Draw;
use crate::extents::{Extent, Pool, Zones};
use crate::profile::{Address, Profile};
use crate::similarity::{Recipes, Similarity};
use crate::values::ValueStream;

/// Records of one batch.
pub(crate) const BATCH_RECORDS: usize = 1 << 14;

/// How a profile is generated.
#[derive(Debug, Clone, PartialEq)]
pub struct SynthOptions {
    /// Factor on requests, footprint, duration and gaps.
    pub scale: f64,
    /// Requests instead of the profile's number (after scaling); the duration changes with them, the
    /// footprint does not.
    pub requests: Option<u64>,
    pub seed: u64,
}

impl Default for SynthOptions {
    fn default() -> Self {
        SynthOptions {
            scale: 1.0,
            requests: None,
            seed: 1,
        }
    }
}

/// What the numbers of a profile come to with options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scaled {
    pub requests: u64,
    /// Those of them that write.
    pub writes: u64,
    /// Pages of 4 KiB of the footprint.
    pub pages: u64,
    /// Those of them that are only read.
    pub read_only: u64,
}

impl SynthOptions {
    /// How large the workload of a profile is.
    pub fn scaled(&self, profile: &Profile) -> Scaled {
        let times = |number: u64, factor: f64| (number as f64 * factor).round() as u64;
        let at_least_one = |number: u64| times(number, self.scale).max(1);
        let requests = self
            .requests
            .unwrap_or_else(|| at_least_one(profile.requests.count));
        let pages = at_least_one(profile.address.footprint);
        Scaled {
            requests,
            writes: times(requests, profile.requests.writes),
            pages,
            read_only: times(pages, profile.address.read_only),
        }
    }
}

/// A stream of records made from a profile. Records are those of one device, number 0, and aligned
/// to 4 KiB.
#[derive(Debug, Clone)]
pub struct Generator {
    address: Address,
    zones: Zones,
    /// Extents written often, those written less often, those only read.
    hot: Pool,
    cold: Pool,
    read_only: Pool,
    values: Option<ValueStream>,
    /// What each page holds.
    held: Vec<u32>,
    /// What tells the bytes of each value, when asked for.
    recipes: Option<Recipes>,
    clock: Clock,
    draw: Draw,
    writes: Quota,
    reads: Quota,
    run: Option<SequentialRun>,
}

/// Requests of one kind, and their mean number of pages.
#[derive(Debug, Clone, Copy)]
struct Quota {
    total: u64,
    left: u64,
    pages: f64,
}

impl Quota {
    fn progress(&self) -> f64 {
        1.0 - self.left as f64 / self.total.max(1) as f64
    }

    fn pages_left(&self) -> f64 {
        self.left as f64 * self.pages
    }
}

/// A run of sequential requests that is under way.
#[derive(Debug, Clone, Copy)]
struct SequentialRun {
    op: Op,
    next: u32,
    end: u32,
    request_pages: u32,
    /// Whether it writes a hot extent.
    hot: bool,
}

impl Generator {
    /// Begins a workload. `profile` was checked when it was read.
    ///
    /// # Panics
    /// Later, with options that leave no page to write though there are writes;
    /// [`ProfileSource::new`](crate::ProfileSource::new) refuses them.
    pub fn new(profile: &Profile, options: &SynthOptions) -> Self {
        let address = &profile.address;
        let scaled = options.scaled(profile);
        let count = scaled.requests;
        let duration_ns =
            profile.arrivals.duration.0 as f64 * count as f64 / profile.requests.count as f64;
        let quota = |total, size: u64| Quota {
            total,
            left: total,
            pages: size as f64 / UNIT_BYTES as f64,
        };
        let writes = quota(scaled.writes, profile.requests.write_size.0);
        let reads = quota(count - scaled.writes, profile.requests.read_size.0);
        let (footprint, read_only) = (scaled.pages as u32, scaled.read_only as u32);
        let hot = (f64::from(footprint - read_only) * address.hot).round() as u32;
        let run = address.mean_run();
        let pool = |target, quota: Quota| Pool::new(target, address.growth, run, quota.pages);
        let mut address = address.clone();
        for reach in [
            &mut address.rewrite,
            &mut address.reread,
            &mut address.read_written,
        ] {
            reach.gap *= options.scale;
        }
        let values = profile.values.as_ref().map(|model| {
            let mut model = model.clone();
            model.heavy_reach.gap *= options.scale;
            model.light_reach.gap *= options.scale;
            ValueStream::new(&model, writes.pages_left(), Draw::new(options.seed, 1))
        });
        Generator {
            zones: Zones::new(footprint),
            hot: pool(hot, writes),
            cold: pool(footprint - read_only - hot, writes),
            read_only: pool(read_only, reads),
            held: match values {
                Some(_) => vec![NO_VALUE; footprint as usize],
                None => Vec::new(),
            },
            values,
            recipes: None,
            clock: Clock::new(
                &profile.arrivals,
                count,
                duration_ns,
                Draw::new(options.seed, 2),
            ),
            draw: Draw::new(options.seed, 0),
            address,
            writes,
            reads,
            run: None,
        }
    }

    /// Keeps what tells the bytes of each value from now on, which is before the first record.
    pub(crate) fn keep_recipes(&mut self, model: &Similarity, seed: u64) {
        self.recipes = Some(Recipes::new(model, seed, self.held.len() as u32));
    }

    /// What was kept, at the end.
    pub(crate) fn into_recipes(self) -> Option<Recipes> {
        self.recipes
    }

    /// Replaces the contents of `batch` with the next records; false, and no record, at the end.
    pub fn next_batch(&mut self, batch: &mut Batch) -> bool {
        batch.clear();
        while batch.len() < BATCH_RECORDS && self.writes.left + self.reads.left > 0 {
            self.next_record(batch);
        }
        !batch.is_empty()
    }

    fn next_record(&mut self, batch: &mut Batch) {
        let mut run = match self.run.take() {
            Some(run) if self.quota(run.op).left > 0 => run,
            _ => self.begin_run(),
        };
        let first = run.next;
        let pages = run.request_pages.min(run.end - first);
        run.next += pages;
        self.quota(run.op).left -= 1;
        batch.time_ns.push(self.clock.next());
        batch.device.push(0);
        batch.op.push(run.op);
        batch.offset.push(u64::from(first) * UNIT_BYTES);
        batch.length.push(u64::from(pages) * UNIT_BYTES);
        batch.first_value.push(match self.values {
            Some(_) => batch.values.len() as u32,
            None => NO_CONTENT,
        });
        if let Some(values) = &mut self.values {
            let end = first + pages;
            for (page, held) in (first..).zip(&mut self.held[first as usize..end as usize]) {
                let before = *held;
                match run.op {
                    Op::Write => *held = values.write(*held, run.hot),
                    _ if *held == NO_VALUE => *held = values.found(),
                    _ => {}
                }
                if let Some(recipes) = &mut self.recipes {
                    recipes.observe(page, run.op, before, *held);
                }
                batch.values.push(*held);
            }
        }
        if run.next < run.end {
            self.run = Some(run);
        }
    }

    fn quota(&mut self, op: Op) -> &mut Quota {
        match op {
            Op::Write => &mut self.writes,
            _ => &mut self.reads,
        }
    }

    /// The next run: of writes or reads in proportion to what is left of each.
    fn begin_run(&mut self) -> SequentialRun {
        let left = self.writes.left + self.reads.left;
        if self.draw.chance(self.writes.left as f64 / left as f64) {
            return self.write_run();
        }
        let read_only = self.draw.chance(self.address.cold_reads);
        let extent = if read_only { self.cold_read() } else { None };
        if let Some(extent) = extent {
            return SequentialRun::over(Op::Read, extent, false);
        }
        // Hot and cold extents are read in proportion to the pages written.
        let hot = self.draw.chance(self.address.hot_writes);
        let reach = self.address.read_written;
        let mut peek = |hot: bool| {
            let pool = if hot { &self.hot } else { &self.cold };
            pool.peek(reach, &mut self.draw)
        };
        if let Some(extent) = peek(hot).or_else(|| peek(!hot)) {
            return self.read_from(extent.first);
        }
        // Nothing was written yet: what is only read, or what will be written later.
        match self.cold_read() {
            Some(extent) => SequentialRun::over(Op::Read, extent, false),
            None => SequentialRun {
                op: Op::Read,
                ..self.write_run()
            },
        }
    }

    fn write_run(&mut self) -> SequentialRun {
        let hot = self.draw.chance(self.address.hot_writes);
        let share = self.address.hot_writes;
        let mut next = |hot: bool| {
            let (pool, share) = match hot {
                true => (&mut self.hot, share),
                false => (&mut self.cold, 1.0 - share),
            };
            let left = self.writes.pages_left() * share;
            let reach = self.address.rewrite;
            let progress = self.writes.progress();
            let extent = pool.next_run(&mut self.zones, reach, progress, left, &mut self.draw);
            extent.map(|extent| SequentialRun::over(Op::Write, extent, hot))
        };
        let run = next(hot).or_else(|| next(!hot));
        run.expect("some page of every workload may be written, or all are only read")
    }

    fn cold_read(&mut self) -> Option<Extent> {
        self.read_only.next_run(
            &mut self.zones,
            self.address.reread,
            self.reads.progress(),
            self.reads.pages_left() * self.address.cold_reads,
            &mut self.draw,
        )
    }

    /// A run of reads from a page on, of a length of its own.
    fn read_from(&mut self, first: u32) -> SequentialRun {
        let request_pages = self.draw.geometric(self.reads.pages);
        let requests = self.draw.geometric(self.address.mean_run());
        let pages = requests.saturating_mul(request_pages);
        SequentialRun {
            op: Op::Read,
            next: first,
            end: first + pages.min(self.zones.laid_from(first)),
            request_pages,
            hot: false,
        }
    }
}

impl Address {
    /// Mean requests of a run: each but the first of a run is sequential.
    fn mean_run(&self) -> f64 {
        1.0 / (1.0 - self.sequential).max(1e-9)
    }
}

impl SequentialRun {
    fn over(op: Op, extent: Extent, hot: bool) -> SequentialRun {
        SequentialRun {
            op,
            next: extent.first,
            end: extent.first + extent.pages,
            request_pages: extent.request_pages,
            hot,
        }
    }
}
