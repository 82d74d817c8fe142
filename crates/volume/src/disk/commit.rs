//! Flushes that come together share one.
//!
//! A flush covers whatever had returned before it was asked for. One that comes while another runs waits for the end
//! of that and is covered, with all others that wait, by the next.
//!
//! Invariant: a caller is answered by a flush that began after its call.

use parking_lot::{Condvar, Mutex, MutexGuard};

#[derive(Debug, Default)]
struct Rounds {
    /// Flushes that have begun.
    begun: u64,
    /// The last one that succeeded.
    done: u64,
    running: bool,
}

/// Brings flushes together.
#[derive(Debug, Default)]
pub(crate) struct Commit {
    rounds: Mutex<Rounds>,
    changed: Condvar,
}

impl Commit {
    fn lock(&self) -> MutexGuard<'_, Rounds> {
        self.rounds.lock()
    }

    /// Returns once a run of `flush` that began after this call has succeeded, by this thread or by another.
    ///
    /// # Errors
    /// That of `flush`, run by this thread.
    pub fn run<E>(&self, flush: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        let rounds = self.lock();
        let needed = rounds.begun + 1;
        let rounds = self.wait_for(needed, rounds);
        if rounds.done >= needed {
            return Ok(());
        }
        self.lead(rounds, flush)
    }

    /// Runs `flush`, which covers as much as any, while no other runs.
    ///
    /// # Errors
    /// That of `flush`.
    pub fn run_alone<E>(&self, flush: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        self.lead(self.wait_for(u64::MAX, self.lock()), flush)
    }

    /// Waits for the end of the flush that runs, if one does, however it ends.
    pub fn join(&self) {
        let rounds = self.lock();
        drop(self.wait_for(rounds.begun, rounds));
    }

    /// Waits until this round has succeeded, or none runs.
    fn wait_for<'a>(
        &self,
        round: u64,
        mut rounds: MutexGuard<'a, Rounds>,
    ) -> MutexGuard<'a, Rounds> {
        while rounds.running && rounds.done < round {
            self.changed.wait(&mut rounds);
        }
        rounds
    }

    fn lead<E>(
        &self,
        mut rounds: MutexGuard<'_, Rounds>,
        flush: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        rounds.begun += 1;
        rounds.running = true;
        let round = rounds.begun;
        drop(rounds);
        let mut leader = Leader {
            commit: self,
            round: None,
        };
        let flushed = flush();
        leader.round = flushed.is_ok().then_some(round);
        flushed
    }
}

/// Ends a round however it ends, by a panic too.
struct Leader<'a> {
    commit: &'a Commit,
    round: Option<u64>,
}

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        let mut rounds = self.commit.lock();
        rounds.running = false;
        rounds.done = self.round.unwrap_or(rounds.done);
        self.commit.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use super::*;

    #[test]
    fn each_caller_is_covered_by_a_flush_that_began_after_its_call() {
        let (commit, written, durable) = (Commit::default(), AtomicU64::new(0), AtomicU64::new(0));
        let flushes = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        let mine = written.fetch_add(1, Ordering::SeqCst) + 1;
                        let done: Result<(), ()> = commit.run(|| {
                            let all = written.load(Ordering::SeqCst);
                            flushes.fetch_add(1, Ordering::SeqCst);
                            std::thread::yield_now();
                            durable.fetch_max(all, Ordering::SeqCst);
                            Ok(())
                        });
                        done.unwrap();
                        assert!(durable.load(Ordering::SeqCst) >= mine);
                    }
                });
            }
        });
        assert!(flushes.load(Ordering::SeqCst) <= 2000);
    }

    /// Others wait while the first flush runs. The one that then leads them fails.
    #[test]
    fn who_waits_for_a_flush_that_fails_flushes_again() {
        let (commit, come, flushes) = (Commit::default(), AtomicU64::new(0), AtomicU64::new(0));
        let flush = || match flushes.fetch_add(1, Ordering::SeqCst) {
            0 => Err("no"),
            _ => Ok(()),
        };
        let failed = std::thread::scope(|scope| {
            let mut others = Vec::new();
            let first = commit.run(|| {
                let run = || {
                    come.fetch_add(1, Ordering::SeqCst);
                    commit.run(flush)
                };
                others.extend((0..3).map(|_| scope.spawn(run)));
                while come.load(Ordering::SeqCst) < 3 {
                    std::thread::yield_now();
                }
                // By now they wait, though not surely; what is expected of one that is late is the same.
                std::thread::sleep(Duration::from_millis(20));
                Ok::<(), &str>(())
            });
            first.unwrap();
            let others = others.into_iter().map(|other| other.join().unwrap());
            others.filter(Result::is_err).count()
        });
        assert_eq!(failed, 1, "the one whose own flush failed");
        assert!(flushes.into_inner() > 1, "somebody flushed again");
    }

    #[test]
    fn a_flush_that_failed_covers_nobody() {
        let commit = Commit::default();
        assert_eq!(commit.run(|| Err("no")), Err("no"));
        let mut ran = false;
        let second: Result<(), ()> = commit.run(|| {
            ran = true;
            Ok(())
        });
        assert!(second.is_ok() && ran);
    }
}
