//! The runs of all experiments on a number of threads, the longest first, so that none is left to one thread at the
//! end.
//!
//! A calibration comes before everything else, since it is one run after another and the groups of its experiment
//! wait for it; meanwhile other threads do groups of experiments that need none. An experiment that fails is left;
//! the others go on. Which of its failures is told does not depend on the threads: groups are begun in one order, and
//! the first of them wins.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZeroUsize;
use std::thread;

use flashlore_papers::group::Found;
use flashlore_papers::{Calibrated, Experiment, Group, PaperError, Report};
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::progress::Progress;

/// Reports or failures, in the order of the experiments.
pub fn run(
    experiments: &[Experiment<'_>],
    threads: NonZeroUsize,
) -> Vec<Result<Report, PaperError>> {
    let pool = Pool::new(experiments);
    let progress = pool.progress();
    thread::scope(|scope| {
        for _ in 0..threads.get() {
            let mut progress = progress.clone();
            let pool = &pool;
            scope.spawn(move || {
                while let Some(task) = pool.next() {
                    pool.carry_out(&task, &mut progress);
                }
            });
        }
    });
    drop(progress);
    pool.reports()
}

struct Pool<'a> {
    experiments: &'a [Experiment<'a>],
    state: Mutex<PoolState>,
    /// Something was added to the tasks, or nothing more will be.
    changed: Condvar,
}

struct PoolState {
    /// The next one, and what comes after it.
    tasks: BinaryHeap<Task>,
    /// Calibrations that are not over.
    calibrating: usize,
    parts: Vec<Part>,
}

/// What there is of an experiment.
#[derive(Default)]
struct Part {
    calibrated: Option<Calibrated>,
    /// With the place of its group in the order of beginning.
    found: Vec<(usize, Found)>,
    /// The first failure, with the place of its group.
    failed: Option<(usize, PaperError)>,
}

struct Task {
    /// Position of the experiment.
    experiment: usize,
    /// Requests to be replayed; the most is done first.
    requests: u64,
    /// Place in the order in which the experiment's groups are begun.
    place: usize,
    work: Work,
}

enum Work {
    /// Searches a setting; the groups follow.
    Calibrate,
    Run(Box<Group>),
}

impl<'a> Pool<'a> {
    fn new(experiments: &'a [Experiment<'a>]) -> Self {
        let mut state = PoolState {
            tasks: BinaryHeap::new(),
            calibrating: 0,
            parts: experiments.iter().map(|_| Part::default()).collect(),
        };
        for (at, experiment) in experiments.iter().enumerate() {
            if experiment.has_calibration() {
                state.calibrating += 1;
                state.tasks.push(Task {
                    experiment: at,
                    requests: u64::MAX,
                    place: 0,
                    work: Work::Calibrate,
                });
            } else {
                state.add_groups(at, experiment);
            }
        }
        Pool {
            experiments,
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    /// For all requests that are known of before anything runs.
    fn progress(&self) -> Progress {
        let state = self.lock();
        let groups = state.tasks.iter().filter(|task| task.requests < u64::MAX);
        let requests = groups.clone().map(|task| task.requests).sum();
        Progress::requests(requests, groups.map(Task::runs).sum())
    }

    /// The longest task; waits where a calibration may still add some.
    fn next(&self) -> Option<Task> {
        let mut state = self.lock();
        loop {
            if let Some(task) = state.tasks.pop() {
                if state.parts[task.experiment].failed.is_none() {
                    return Some(task);
                }
            } else if state.calibrating == 0 {
                return None;
            } else {
                self.changed.wait(&mut state);
            }
        }
    }

    fn carry_out(&self, task: &Task, progress: &mut Progress) {
        let at = task.experiment;
        match &task.work {
            Work::Calibrate => {
                let over = CalibrationEnds(self);
                let calibrated = self.experiments[at].calibrate(&mut progress.unforeseen());
                let mut state = self.lock();
                match calibrated {
                    Ok(calibrated) => {
                        state.parts[at].calibrated = calibrated;
                        let foreseen = state.add_groups(at, &self.experiments[at]);
                        progress.lengthen(foreseen);
                    }
                    Err(error) => state.parts[at].fail(0, error),
                }
                drop(state);
                drop(over);
            }
            Work::Run(group) => {
                let found = group.run(progress);
                let mut state = self.lock();
                match found {
                    Ok(found) => state.parts[at].found.push((task.place, found)),
                    Err(error) => state.parts[at].fail(task.place, error),
                }
            }
        }
    }

    fn reports(self) -> Vec<Result<Report, PaperError>> {
        let state = self.state.into_inner();
        let pairs = state.parts.into_iter().zip(self.experiments);
        pairs
            .map(|(part, experiment)| part.report(experiment))
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock()
    }
}

/// Tells those who wait, even where a calibration panics.
struct CalibrationEnds<'a, 'b>(&'a Pool<'b>);

impl Drop for CalibrationEnds<'_, '_> {
    fn drop(&mut self) {
        self.0.lock().calibrating -= 1;
        self.0.changed.notify_all();
    }
}

impl PoolState {
    /// Adds the groups of an experiment; so many requests they have.
    fn add_groups(&mut self, at: usize, experiment: &Experiment<'_>) -> u64 {
        let tasks = match tasks(at, experiment, self.parts[at].calibrated.as_ref()) {
            Ok(tasks) => tasks,
            Err(error) => {
                self.parts[at].fail(0, error);
                return 0;
            }
        };
        let requests = tasks.iter().map(|task| task.requests).sum();
        self.tasks.extend(tasks);
        requests
    }
}

/// The groups of an experiment, the longest first.
fn tasks(
    at: usize,
    experiment: &Experiment<'_>,
    calibrated: Option<&Calibrated>,
) -> Result<Vec<Task>, PaperError> {
    let groups = experiment.groups(calibrated)?;
    let mut tasks = groups
        .into_iter()
        .map(|group| {
            Ok(Task {
                experiment: at,
                requests: group.requests()? * group.runs.len() as u64,
                place: 0,
                work: Work::Run(Box::new(group)),
            })
        })
        .collect::<Result<Vec<_>, PaperError>>()?;
    tasks.sort_by_key(|task| Reverse(task.requests));
    for (place, task) in tasks.iter_mut().enumerate() {
        task.place = place;
    }
    Ok(tasks)
}

impl Part {
    fn fail(&mut self, place: usize, error: PaperError) {
        if self.failed.as_ref().is_none_or(|(first, _)| place < *first) {
            self.failed = Some((place, error));
        }
    }

    fn report(mut self, experiment: &Experiment<'_>) -> Result<Report, PaperError> {
        if let Some((_, error)) = self.failed {
            return Err(error);
        }
        self.found.sort_by_key(|(place, _)| *place);
        let found = self.found.into_iter().map(|(_, found)| found).collect();
        experiment.report(self.calibrated, found)
    }
}

impl Task {
    fn runs(&self) -> usize {
        match &self.work {
            Work::Calibrate => 0,
            Work::Run(group) => group.runs.len() + group.trials.len(),
        }
    }

    /// The most requests first; of as many, the experiment and the group that come first.
    fn rank(&self) -> (u64, Reverse<(usize, usize)>) {
        (self.requests, Reverse((self.experiment, self.place)))
    }
}

impl PartialEq for Task {
    fn eq(&self, other: &Self) -> bool {
        self.rank() == other.rank()
    }
}

impl Eq for Task {}

impl PartialOrd for Task {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Task {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.rank().cmp(&other.rank())
    }
}
