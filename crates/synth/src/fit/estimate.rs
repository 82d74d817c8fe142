//! A trace becomes a fit.

use std::collections::{BTreeMap, BTreeSet};

use flashlore_trace::{Access, Op};
use flashlore_units::Nanos;
use rustc_hash::FxHashMap;

use super::cursors::{ByOp, Cursors};
use super::features::{Feature, Follower, NONE, Seen};
use super::model::{Epoch, Fit, Following, RequestSizes, rounded};
use super::run::{Class, Gap, Run, RunCount, RunPlace, Worth};

/// How finely a fit describes the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Detail {
    /// Stretches whose runs are counted separately, of equally many page accesses.
    pub epochs: u32,
    /// Steps to a doubling by which gaps are told apart.
    pub steps: u32,
    /// Runs from whose classes the class of the next is drawn.
    pub context: usize,
    /// Whether pages that share their value with others are told from those that do not.
    pub sharing: bool,
}

/// Follows a trace and keeps 40 bytes for each page access, besides its pages and values.
#[derive(Debug, Default)]
pub struct Estimator {
    follower: Follower,
    features: Vec<Feature>,
    times: Vec<u64>,
    content: bool,
    requests: RequestCounts,
}

#[derive(Debug, Default)]
struct RequestCounts {
    reads: BTreeMap<u32, u64>,
    writes: BTreeMap<u32, u64>,
    /// Nanoseconds between requests, in order of arrival.
    gaps: Vec<u64>,
    last_ns: Option<u64>,
}

impl Estimator {
    pub fn observe(&mut self, access: &Access<'_>) {
        if access.units == 0 {
            return;
        }
        self.requests.observe(access);
        for at in 0..access.units {
            let value = access.values.map(|values| values[at as usize]);
            self.content |= value.is_some();
            let unit = access.unit + u64::from(at);
            let page = u64::from(access.device) << 40 | unit;
            if let Some(feature) = self.follower.follow(access.op, page, value) {
                self.features.push(feature);
                self.times.push(access.time_ns);
            }
        }
    }

    /// Page accesses followed.
    pub fn pages(&self) -> u64 {
        self.features.len() as u64
    }

    pub fn has_content(&self) -> bool {
        self.content
    }

    pub fn footprint(&self) -> u64 {
        self.follower.footprint()
    }

    /// The fit of what was followed, which is at least one access.
    pub fn fit(&self, name: &str, source: &str, detail: Detail) -> Fit {
        let runs = self.runs(detail);
        let following = following(&runs, detail.context);
        let (burst, within) = self.requests.bursts();
        Fit {
            name: name.to_owned(),
            description: format!("like {source}"),
            source: format!("fitted to {source}"),
            content: self.content,
            burst,
            within,
            sizes: self.requests.sizes(),
            epochs: self.epochs(&runs, detail.epochs),
            following,
        }
    }

    /// The runs, and the access each begins with.
    fn runs(&self, detail: Detail) -> Vec<(usize, Run)> {
        let mut cursors = ByOp::default();
        let mut copied = Cursors::default();
        let mut runs = Vec::new();
        let mut begin = 0;
        while begin < self.features.len() {
            let mut end = begin + 1;
            while end < self.features.len() && self.goes_on(end, detail.sharing) {
                end += 1;
            }
            let of = &self.features[begin..end];
            let run = Run {
                op: of[0].op,
                pages: of.len() as u32,
                place: place(of, cursors.of(of[0].op), detail),
                worth: self.worth(of, &mut copied, detail.steps),
            };
            runs.push((begin, run));
            begin = end;
        }
        runs
    }

    /// Whether the access at `at` belongs to the run of the one before.
    fn goes_on(&self, at: usize, sharing: bool) -> bool {
        let (before, here) = (&self.features[at - 1], &self.features[at]);
        let place = match (before.last, here.last) {
            (NONE, NONE) => here.page == before.page + 1,
            (NONE, _) | (_, NONE) => false,
            (before, here) => here == before + 1,
        };
        let worth = match (before.worth, here.worth) {
            (Seen::Copy { last: before }, Seen::Copy { last })
            | (Seen::Reborn { last: before }, Seen::Reborn { last }) => last == before + 1,
            (before, here) => before == here,
        };
        let shared = !sharing || before.shared == here.shared;
        before.op == here.op && place && worth && shared
    }

    fn worth(&self, of: &[Feature], copied: &mut Cursors, steps: u32) -> Worth {
        let first = &of[0];
        let ago = |last: u32| Gap::around(first.position - last, steps);
        match first.worth {
            // What a trace with content does not tell is taken for new.
            Seen::Absent if self.content && first.uses() => Worth::New,
            Seen::Absent => Worth::Absent,
            Seen::New => Worth::New,
            Seen::Same => Worth::Same,
            Seen::Reborn { last } => Worth::Reborn(ago(last)),
            Seen::Copy { last } => {
                let rank = copied.rank(last.into());
                copied.ended(rank, u64::from(last) + of.len() as u64);
                match rank {
                    Some(rank) => Worth::CopyOn(rank as u32),
                    None => Worth::Copy(ago(last)),
                }
            }
        }
    }

    fn epochs(&self, runs: &[(usize, Run)], epochs: u32) -> Vec<Epoch> {
        let pages = self.features.len();
        let end_ns = *self.times.last().expect("at least one access");
        let mut rest = runs;
        let mut all = Vec::new();
        for epoch in 1..=epochs as usize {
            let until = pages * epoch / epochs as usize;
            let here = rest.partition_point(|&(begin, _)| begin < until);
            let (of, behind) = rest.split_at(here);
            rest = behind;
            let Some(first) = of.first() else { continue };
            let next_ns = behind.first().map_or(end_ns, |next| self.times[next.0]);
            all.push(Epoch {
                duration: Nanos(next_ns - self.times[first.0]),
                runs: counted(of.iter().map(|&(_, run)| run)),
            });
        }
        all
    }
}

impl Feature {
    /// Whether it is a use: a write, or the first read of a page.
    fn uses(&self) -> bool {
        self.op == Op::Write || (self.op == Op::Read && self.last == NONE)
    }
}

fn place(of: &[Feature], cursors: &mut Cursors, detail: Detail) -> RunPlace {
    let first = &of[0];
    if first.last == NONE {
        return RunPlace::Fresh;
    }
    let begin = u64::from(first.last);
    let rank = cursors.rank(begin);
    cursors.ended(rank, begin + of.len() as u64);
    RunPlace::Back {
        gap: Gap::around(first.position - first.last, detail.steps),
        on: rank.is_some(),
        shared: (detail.sharing && first.op == Op::Write).then_some(first.shared),
    }
}

fn counted(runs: impl Iterator<Item = Run>) -> Vec<RunCount> {
    let mut counts: BTreeMap<Run, u32> = BTreeMap::new();
    for run in runs {
        *counts.entry(run).or_default() += 1;
    }
    let count = |(run, count)| RunCount { count, run };
    counts.into_iter().map(count).collect()
}

/// A context of several classes counts if it came more often than this.
const SEEN: u32 = 4;

/// Which classes followed up to `longest` classes.
fn following(runs: &[(usize, Run)], longest: usize) -> Vec<Following> {
    let classes: BTreeSet<Class> = runs.iter().map(|(_, run)| run.class()).collect();
    let classes: Vec<Class> = classes.into_iter().collect();
    let number = |run: &Run| {
        classes
            .binary_search(&run.class())
            .expect("a class of a run") as u32
    };
    let numbers: Vec<u32> = runs.iter().map(|(_, run)| number(run)).collect();
    let mut counts: FxHashMap<&[u32], BTreeMap<u32, u32>> = FxHashMap::default();
    for length in 1..=longest {
        for window in numbers.windows(length + 1) {
            let (&after, before) = window.split_last().expect("one more than the length");
            *counts.entry(before).or_default().entry(after).or_default() += 1;
        }
    }
    counts.retain(|before, after| before.len() == 1 || after.values().sum::<u32>() > SEEN);
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_unstable_by_key(|&(before, _)| before);
    let named = |number: &u32| classes[*number as usize].clone();
    let rows = |(before, after): (&[u32], BTreeMap<u32, u32>)| {
        let before: Vec<Class> = before.iter().map(named).collect();
        let row = |(after, count)| Following {
            count,
            before: before.clone(),
            after: named(&after),
        };
        after.into_iter().map(row).collect::<Vec<_>>()
    };
    counts.into_iter().flat_map(rows).collect()
}

impl RequestCounts {
    fn observe(&mut self, access: &Access<'_>) {
        let sizes = match access.op {
            Op::Read => &mut self.reads,
            _ => &mut self.writes,
        };
        *sizes.entry(access.units).or_default() += 1;
        if let Some(last) = self.last_ns.replace(access.time_ns) {
            self.gaps.push(access.time_ns - last);
        }
    }

    fn sizes(&self) -> RequestSizes {
        let shares = |sizes: &BTreeMap<u32, u64>| {
            let total: u64 = sizes.values().sum();
            let share = |(&pages, &count): (&u32, &u64)| (pages, count as f64 / total as f64);
            match total {
                0 => vec![(1, 1.0)],
                _ => thinned(sizes.iter().map(share).collect()),
            }
        };
        RequestSizes {
            reads: shares(&self.reads),
            writes: shares(&self.writes),
        }
    }

    /// Mean requests to a burst and mean time within one. A burst ends with a gap that is longer than
    /// the mean gap.
    fn bursts(&self) -> (f64, Nanos) {
        let all: u64 = self.gaps.iter().sum();
        let mean = all as f64 / self.gaps.len().max(1) as f64;
        let short: Vec<u64> = self
            .gaps
            .iter()
            .copied()
            .filter(|&gap| gap as f64 <= mean)
            .collect();
        let pauses = self.gaps.len() - short.len();
        let burst = (self.gaps.len() + 1) as f64 / (pauses + 1) as f64;
        let within = short.iter().sum::<u64>() as f64 / short.len().max(1) as f64;
        ((burst * 100.0).round() / 100.0, Nanos(within as u64))
    }
}

/// Sizes rarer than one in ten thousand go to the most frequent one.
fn thinned(mut sizes: Vec<(u32, f64)>) -> Vec<(u32, f64)> {
    let most = sizes.iter().map(|size| size.1).fold(0.0, f64::max);
    sizes.retain(|size| rounded(size.1) > 0.0);
    let mut others = 0.0;
    let mut main = None;
    for (at, size) in sizes.iter_mut().enumerate() {
        if main.is_none() && size.1 == most {
            main = Some(at);
        } else {
            size.1 = rounded(size.1);
            others += size.1;
        }
    }
    if let Some(main) = main {
        sizes[main].1 = rounded(1.0 - others);
    }
    sizes
}
