//! A fit becomes records.

use std::collections::BTreeMap;

use flashlore_trace::{Batch, NO_CONTENT, Op, UNIT_BYTES};
use flashlore_units::Nanos;

use super::cursors::{ByOp, Cursors};
use super::features::NONE;
use super::model::{Epoch, Fit};
use super::order::Order;
use super::run::{Class, Gap, Run, RunCount, RunPlace, Worth};
use super::state::FitState;
use crate::arrivals::Clock;
use crate::draw::Draw;
use crate::generate::{BATCH_RECORDS, SynthOptions};
use crate::profile::Arrivals;

/// A run that goes on takes up an earlier one whose gap is within so many doublings of its own.
const REACH: f64 = 0.3;

/// How many pages on either side are looked at for one that shares its value, or does not.
const LOOK: u32 = 64;

/// A stream of records made from a fit, of one device, number 0, in whole pages.
#[derive(Debug, Clone)]
pub struct FitGenerator {
    fit: Fit,
    classes: BTreeMap<Class, u32>,
    options: SynthOptions,
    order: Order,
    state: FitState,
    ends: ByOp,
    copied: Cursors,
    draw: Draw,
    sizes: Draw,
    next_epoch: usize,
    clock: Option<Clock>,
    begin_ns: u64,
    end_ns: u64,
    last_ns: u64,
    made: u64,
}

/// Where the next page of a run is.
#[derive(Debug, Clone, Copy)]
enum Next {
    Fresh,
    At(u32),
}

/// A request that grows page by page.
#[derive(Debug, Clone, Copy)]
struct Request {
    first: u32,
    pages: u32,
    most: u32,
}

impl FitGenerator {
    pub fn new(fit: &Fit, options: &SynthOptions) -> Self {
        let classes = fit.classes();
        FitGenerator {
            order: Order::new(&classes, &fit.following),
            classes,
            fit: fit.clone(),
            options: options.clone(),
            state: FitState::default(),
            ends: ByOp::default(),
            copied: Cursors::default(),
            draw: Draw::new(options.seed, 0),
            sizes: Draw::new(options.seed, 3),
            next_epoch: 0,
            clock: None,
            begin_ns: 0,
            end_ns: 0,
            last_ns: 0,
            made: 0,
        }
    }

    /// Replaces the contents of `batch` with the next records; false, and no record, at the end.
    pub fn next_batch(&mut self, batch: &mut Batch) -> bool {
        batch.clear();
        while batch.len() < BATCH_RECORDS && self.wanted() {
            match self.order.take(&mut self.draw) {
                // Before anything was used, there is nothing to trim.
                Some(run) if run.op == Op::Trim && self.state.footprint() == 0 => {}
                Some(run) => self.make(run, batch),
                None if self.next_epoch < self.fit.epochs.len() => self.begin_epoch(),
                None => break,
            }
        }
        !batch.is_empty()
    }

    fn wanted(&self) -> bool {
        self.options.requests.is_none_or(|most| self.made < most)
    }

    fn begin_epoch(&mut self) {
        let epoch = &self.fit.epochs[self.next_epoch];
        let scale = self.options.scale;
        self.order.fill(epoch, &self.classes, scale, &mut self.draw);
        let duration = (epoch.duration.0 as f64 * scale) as u64;
        let arrivals = Arrivals {
            duration: Nanos(duration),
            burst: self.fit.burst,
            within: self.fit.within,
        };
        let count = (self.fit.requests_of(epoch) * scale).round().max(1.0) as u64;
        let draw = Draw::new(self.options.seed, 4 + self.next_epoch as u64);
        self.clock = Some(Clock::new(&arrivals, count, duration as f64, draw));
        self.begin_ns = self.end_ns;
        self.end_ns = self.end_ns.saturating_add(duration);
        self.next_epoch += 1;
    }

    fn make(&mut self, run: Run, batch: &mut Batch) {
        let (mut next, rank) = self.begin_run(&run);
        let mut source = self.source(&run);
        let mut request: Option<Request> = None;
        for _ in 0..run.pages {
            let page = self.page(&mut next, &run);
            let value = self.value(&run, page, &mut source);
            match &mut request {
                Some(grows) if grows.first + grows.pages == page && grows.pages < grows.most => {
                    grows.pages += 1;
                }
                full => {
                    if let Some(full) = full.take() {
                        self.finish(run.op, full, batch);
                    }
                    if !self.wanted() {
                        return;
                    }
                    *full = Some(Request {
                        first: page,
                        pages: 1,
                        most: self.size(run.op),
                    });
                    self.begin_request(run.op, batch);
                }
            }
            self.use_page(&run, page, value, batch);
        }
        if let Some(last) = request {
            self.finish(run.op, last, batch);
        }
        if let Next::At(end) = next {
            self.ends.of(run.op).ended(rank, u64::from(end));
        }
    }

    /// Where a run begins, and which earlier one it takes up.
    fn begin_run(&mut self, run: &Run) -> (Next, Option<usize>) {
        let RunPlace::Back { gap, on, .. } = run.place else {
            return (Next::Fresh, None);
        };
        let now = self.state.position();
        let ago = self.reach(gap);
        if on {
            let octaves = |end: u64| {
                let ago_of_end = u64::from(now).saturating_sub(end).max(1) as f64;
                (ago_of_end / f64::from(ago)).log2().abs()
            };
            let ends = self.ends.of(run.op);
            if let Some((rank, off)) = ends.nearest(octaves)
                && off <= REACH
                && let Some(end) = ends.at(rank)
            {
                return (Next::At(end as u32), Some(rank));
            }
        }
        (Next::At(now.saturating_sub(ago)), None)
    }

    fn reach(&mut self, gap: Gap) -> u32 {
        let ago = f64::from(gap.draw(&mut self.draw)) * self.options.scale;
        ago.round().max(1.0) as u32
    }

    /// The position from which a run begins to copy.
    fn source(&mut self, run: &Run) -> u32 {
        let now = self.state.position();
        let (position, rank) = match run.worth {
            Worth::Copy(gap) => (now.saturating_sub(self.reach(gap)), None),
            Worth::CopyOn(rank) => match self.copied.at(rank as usize) {
                Some(end) => (end as u32, Some(rank as usize)),
                None => (self.draw.below(now.max(1)), None),
            },
            _ => return 0,
        };
        self.copied
            .ended(rank, u64::from(position) + u64::from(run.pages));
        position
    }

    fn page(&mut self, next: &mut Next, run: &Run) -> u32 {
        let standing = match *next {
            Next::Fresh => None,
            Next::At(position) => self.state.standing(position),
        };
        // Before anything was written, there is nothing to go back to.
        let Some(mut at) = standing else {
            return self.state.footprint();
        };
        if let RunPlace::Back {
            shared: Some(shared),
            ..
        } = run.place
        {
            at = self.state.nearest(at, shared, LOOK).unwrap_or(at);
        }
        *next = Next::At(at + 1);
        self.state.page_at(at)
    }

    /// What the page takes; [`NONE`] where it keeps what it has or content is not known.
    fn value(&mut self, run: &Run, page: u32, source: &mut u32) -> u32 {
        let found = match run.worth {
            Worth::Absent => return NONE,
            Worth::New => None,
            Worth::Same => self.state.held(page),
            Worth::Reborn(gap) => {
                let ago = self.reach(gap);
                self.state.dead(ago)
            }
            Worth::Copy(_) | Worth::CopyOn(_) => {
                let live = self.state.live(*source);
                *source = live.map_or(*source, |(at, _)| at + 1);
                live.map(|(_, value)| value)
            }
        };
        found.unwrap_or_else(|| self.state.new_value())
    }

    fn use_page(&mut self, run: &Run, page: u32, value: u32, batch: &mut Batch) {
        match run.op {
            Op::Trim => return self.state.trim(page),
            Op::Read if self.known(page) => {}
            Op::Read if self.fit.content && value == NONE => {
                let found = self.state.new_value();
                self.state.take(page, found);
            }
            _ => self.state.take(page, value),
        }
        batch.values.extend(self.state.held(page));
    }

    /// Whether a read of the page finds what is known already.
    fn known(&self, page: u32) -> bool {
        match self.fit.content {
            true => self.state.held(page).is_some(),
            false => page < self.state.footprint(),
        }
    }

    fn size(&mut self, op: Op) -> u32 {
        let sizes = match op {
            Op::Read => &self.fit.sizes.reads,
            _ => &self.fit.sizes.writes,
        };
        let mut at = self.sizes.unit();
        for &(pages, share) in sizes {
            at -= share;
            if at < 0.0 {
                return pages;
            }
        }
        sizes.last().map_or(1, |size| size.0)
    }

    fn begin_request(&mut self, op: Op, batch: &mut Batch) {
        batch
            .first_value
            .push(match self.fit.content && op != Op::Trim {
                true => batch.values.len() as u32,
                false => NO_CONTENT,
            });
    }

    fn finish(&mut self, op: Op, request: Request, batch: &mut Batch) {
        let clock = self.clock.as_mut().expect("an epoch began");
        self.last_ns = self.last_ns.max(self.begin_ns.saturating_add(clock.next()));
        batch.time_ns.push(self.last_ns);
        batch.device.push(0);
        batch.op.push(op);
        batch.offset.push(u64::from(request.first) * UNIT_BYTES);
        batch.length.push(u64::from(request.pages) * UNIT_BYTES);
        self.made += 1;
    }
}

#[cfg(test)]
impl FitGenerator {
    pub(super) fn check(&self) {
        self.state.check();
    }
}

impl Fit {
    /// Requests of the whole workload, about: what is known is how large they are and how long runs.
    pub fn requests(&self) -> u64 {
        let all: f64 = self
            .epochs
            .iter()
            .map(|epoch| self.requests_of(epoch))
            .sum();
        all.round().max(1.0) as u64
    }

    fn requests_of(&self, epoch: &Epoch) -> f64 {
        let mean = |sizes: &[(u32, f64)]| -> f64 {
            sizes.iter().map(|&(p, share)| f64::from(p) * share).sum()
        };
        let (reads, writes) = (mean(&self.sizes.reads), mean(&self.sizes.writes));
        let of = |run: &RunCount| {
            let mean = match run.run.op {
                Op::Read => reads,
                _ => writes,
            };
            f64::from(run.count) * (f64::from(run.run.pages) / mean).max(1.0)
        };
        epoch.runs.iter().map(of).sum()
    }
}
