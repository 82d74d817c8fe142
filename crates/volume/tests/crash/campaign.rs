//! Many histories on several threads, and what was reached.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use flashlore_volume::Policy;
use parking_lot::Mutex;

use crate::crash::draw::Draw;
use crate::crash::history::{Setup, operations};
use crate::crash::search::{Distinct, Effort, Failure, Tally, search};
use crate::crash::shrink::shrink;

/// A search through histories of consecutive seeds.
#[derive(Debug, Clone, Copy)]
pub struct Campaign {
    pub first_seed: u64,
    /// Goes on until so many histories were searched...
    pub histories: u64,
    /// ...and so many distinct contents of media were seen.
    pub states: usize,
    pub effort: Effort,
    /// How long a failing scenario is made smaller.
    pub shrinking: Duration,
    /// Goes on until so many histories failed.
    pub most_failures: usize,
}

/// What a campaign went through.
#[derive(Debug, Default)]
pub struct Report {
    pub histories: u64,
    /// Histories with deduplication.
    pub deduplicating: u64,
    /// Histories in which a block was collected.
    pub collecting: u64,
    /// Histories with a checkpoint.
    pub checkpointing: u64,
    /// Histories in which the index evicted an entry.
    pub evicting: u64,
    /// Histories in which pages of the tables that had changed left memory before a checkpoint.
    pub crowded: u64,
    /// Histories with old versions, and those of them in which a return changed something.
    pub versioned: u64,
    pub returning: u64,
    /// Distinct contents of media.
    pub distinct: usize,
    pub total: Tally,
    pub took: Duration,
}

impl Campaign {
    /// Searches.
    ///
    /// # Panics
    /// A volume broke its promise: each scenario that was found is printed, as found and shrunk.
    pub fn run(&self) -> Report {
        let begin = Instant::now();
        let next_seed = AtomicU64::new(self.first_seed);
        let distinct = Distinct::default();
        let report = Mutex::new(Report::default());
        let failures = Mutex::new(Vec::new());
        let found_enough = || failures.lock().len() >= self.most_failures;
        let worker = || {
            while !found_enough() {
                let seed = next_seed.fetch_add(1, Ordering::Relaxed);
                let done = seed - self.first_seed >= self.histories;
                if done && distinct.len() >= self.states {
                    break;
                }
                match one_history(seed, self.effort, &distinct) {
                    Ok((setup, tally)) => {
                        let mut report = report.lock();
                        report.add(&setup, &tally);
                        if report.histories % 50 == 0 {
                            let (histories, states) = (report.histories, distinct.len());
                            let seconds = begin.elapsed().as_secs();
                            eprintln!("{histories} histories, {states} states, {seconds} s");
                        }
                    }
                    Err(found) => {
                        let story = story(seed, *found, self.shrinking);
                        eprintln!("{story}");
                        failures.lock().push(seed);
                    }
                }
            }
        };
        let threads = thread::available_parallelism().map_or(1, usize::from);
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(worker);
            }
        });
        let mut report = report.into_inner();
        report.distinct = distinct.len();
        report.took = begin.elapsed();
        let failures = failures.into_inner();
        assert!(
            failures.is_empty(),
            "histories of the seeds {failures:?} broke their promise, see above; {report}"
        );
        report
    }
}

fn one_history(
    seed: u64,
    effort: Effort,
    distinct: &Distinct,
) -> Result<(Setup, Tally), Box<Failure>> {
    let mut draw = Draw::new(seed);
    let setup = Setup::draw(&mut draw);
    let units = setup.blocks * setup.pages_per_block * setup.units_per_page;
    let count = match setup.encoding.is_on() {
        // Packed pages are collected only after many writes: each holds several.
        true => draw.between(60, 100 + 6 * u64::from(units)).min(500),
        false => draw.between(20, 40 + 2 * u64::from(units)).min(250),
    };
    let believed = vec![0; setup.exported as usize];
    let ops = operations(&mut draw, count, &believed, setup.first_unique(1_000)).into();
    let tally = search(&setup, &ops, effort, draw.number(), distinct)?;
    Ok((setup, tally))
}

/// A failure, made small, with a test that shows it.
fn story(seed: u64, found: Failure, shrinking: Duration) -> String {
    let test = found.scenario.as_test();
    let small = shrink(found.scenario, Instant::now() + shrinking);
    let how = small
        .as_ref()
        .map_or("it did not fail again", |small| &small.how);
    let small = small
        .as_ref()
        .map_or(String::new(), |small| small.scenario.as_test());
    format!(
        "history of seed {seed}: {}\n\nas found:\n{test}\nshrunk: {how}\n\n{small}",
        found.how
    )
}

impl Report {
    fn add(&mut self, setup: &Setup, tally: &Tally) {
        let work = &tally.work;
        self.histories += 1;
        self.deduplicating += u64::from(setup.policy != Policy::Plain);
        self.versioned += u64::from(setup.history.is_some());
        self.returning += u64::from(work.returns > 0);
        self.collecting += u64::from(work.collections > 0);
        self.checkpointing += u64::from(work.checkpoints > 0);
        self.evicting += u64::from(work.evictions > 0);
        self.crowded += u64::from(work.written_for_room > 0);
        let total = &mut self.total;
        total.cuts += tally.cuts;
        total.failed_syncs += tally.failed_syncs;
        total.images += tally.images;
        total.recoveries += tally.recoveries;
        total.recoveries_cut += tally.recoveries_cut;
        total.went_on += tally.went_on;
        total.failed_reads += tally.failed_reads;
        total.damaged.refused += tally.damaged.refused;
        total.damaged.with_errors += tally.damaged.with_errors;
        total.damaged.unharmed += tally.damaged.unharmed;
        total.damaged.went_on += tally.damaged.went_on;
        total.work.collections += work.collections;
        total.work.checkpoints += work.checkpoints;
        total.work.evictions += work.evictions;
        total.work.written_for_room += work.written_for_room;
        total.work.shares += work.shares;
        total.work.refusals += work.refusals;
        total.work.returns += work.returns;
        total.work.instants += work.instants;
        total.work.snapshots += work.snapshots;
        total.work.purges += work.purges;
        total.work.deltas += work.deltas;
        total.work.compressed += work.compressed;
        total.work.merged += work.merged;
        total.work.repacked += work.repacked;
        total.work.steps += work.steps;
        total.work.similar += work.similar;
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = &self.total;
        let work = &total.work;
        writeln!(
            f,
            "{} histories ({} deduplicating; {} with collections, {} with checkpoints, {} with \
             evictions): {} collections, {} checkpoints, {} evictions, {} shares, {} refusals",
            self.histories,
            self.deduplicating,
            self.collecting,
            self.checkpointing,
            self.evicting,
            work.collections,
            work.checkpoints,
            work.evictions,
            work.shares,
            work.refusals,
        )?;
        writeln!(
            f,
            "{} with old versions ({} returning): {} returns, {} instants compared, {} snapshots, {} purges",
            self.versioned,
            self.returning,
            work.returns,
            work.instants,
            work.snapshots,
            work.purges,
        )?;
        writeln!(
            f,
            "{} with changed pages of tables that leave before a checkpoint: {} pages",
            self.crowded, work.written_for_room,
        )?;
        writeln!(
            f,
            "{} deltas, {} of them from pages found by similarity, {} compressed, {} materialized, {} packed anew",
            work.deltas, work.similar, work.compressed, work.merged, work.repacked,
        )?;
        let damaged = &total.damaged;
        writeln!(
            f,
            "damaged images: {} refused, {} with pages that cannot be read, {} unharmed, {} used on; {} failing reads",
            damaged.refused,
            damaged.with_errors,
            damaged.unharmed,
            damaged.went_on,
            total.failed_reads,
        )?;
        write!(
            f,
            "{} cuts, {} failing syncs, {} media states, {} distinct, {} recoveries, {} recoveries cut, {} times gone \
             on, {:.1} s",
            total.cuts,
            total.failed_syncs,
            total.images,
            self.distinct,
            total.recoveries,
            total.recoveries_cut,
            total.went_on,
            self.took.as_secs_f64(),
        )
    }
}
