//! A naive event-driven simulator of FIFO servers, and the closed forms it is held against.
//!
//! Each server serves one stage at a time, in order of the time at which stages became ready;
//! ties go to the lower job, then the lower stage. Nothing is ever booked ahead: a stage enters
//! its server's queue at the instant it becomes ready, and every start and completion is an event.
//!
//! All that happens at one instant is settled before time moves on: first every stage that is
//! complete or ready at this instant is noted, then one stage is started, the first by (readiness,
//! job, stage) among the heads of idle servers' queues, and so on until none can be. A stage of
//! duration zero therefore completes, and readies the next, before later stages are started.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// A chain of stages; stage 0 is ready at arrival, stage i + 1 when stage i completes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// When the job arrives.
    pub arrival_ns: u64,
    /// The server of each stage and how long it serves it.
    pub stages: Vec<(usize, u64)>,
}

/// When a stage was served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// When its server began.
    pub start_ns: u64,
    /// When its server was done.
    pub completion_ns: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum JobEvent {
    Completion { server: usize },
    Ready { job: usize, stage: usize },
}

/// Simulates the jobs and returns the spans of each job's stages. Times must stay below 2^64 ns.
pub fn simulate(jobs: &[Job]) -> Vec<Vec<Span>> {
    let stages = jobs.iter().flat_map(|job| &job.stages);
    let servers = stages.map(|&(server, _)| server + 1).max().unwrap_or(0);
    let mut simulator = Simulator {
        jobs,
        events: BinaryHeap::new(),
        queues: vec![BTreeSet::new(); servers],
        busy: vec![false; servers],
        spans: jobs
            .iter()
            .map(|job| vec![Span::default(); job.stages.len()])
            .collect(),
    };
    for (number, job) in jobs.iter().enumerate() {
        simulator.schedule(
            job.arrival_ns,
            JobEvent::Ready {
                job: number,
                stage: 0,
            },
        );
    }
    while let Some(&Reverse((now, _))) = simulator.events.peek() {
        simulator.settle(now);
    }
    simulator.spans
}

struct Simulator<'a> {
    jobs: &'a [Job],
    events: BinaryHeap<Reverse<(u64, JobEvent)>>,
    /// The waiting stages of each server: (ready at, job, stage).
    queues: Vec<BTreeSet<(u64, usize, usize)>>,
    busy: Vec<bool>,
    spans: Vec<Vec<Span>>,
}

impl Simulator<'_> {
    fn schedule(&mut self, at: u64, event: JobEvent) {
        self.events.push(Reverse((at, event)));
    }

    /// Settles all that happens at this instant.
    fn settle(&mut self, now: u64) {
        loop {
            while let Some(&Reverse((at, event))) = self.events.peek() {
                if at > now {
                    break;
                }
                self.events.pop();
                self.note(now, event);
            }
            let idle = (0..self.queues.len()).filter(|&server| !self.busy[server]);
            let heads = idle.filter_map(|server| self.queues[server].first().copied());
            match heads.min() {
                Some(first) => self.start(now, first),
                None => return,
            }
        }
    }

    fn note(&mut self, now: u64, event: JobEvent) {
        match event {
            JobEvent::Completion { server } => self.busy[server] = false,
            JobEvent::Ready { job, stage } => {
                if let Some(&(server, _)) = self.jobs[job].stages.get(stage) {
                    self.queues[server].insert((now, job, stage));
                }
            }
        }
    }

    fn start(&mut self, now: u64, (ready, job, stage): (u64, usize, usize)) {
        let (server, duration) = self.jobs[job].stages[stage];
        self.queues[server].remove(&(ready, job, stage));
        self.busy[server] = true;
        let completion = now + duration;
        self.spans[job][stage] = Span {
            start_ns: now,
            completion_ns: completion,
        };
        self.schedule(completion, JobEvent::Completion { server });
        self.schedule(
            completion,
            JobEvent::Ready {
                job,
                stage: stage + 1,
            },
        );
    }
}

/// Mean waiting time (without service) of the queue M/D/1: Poisson arrivals with this mean
/// distance, one server, constant service. `None` if the load is 1 or more.
pub fn md1_mean_wait_ns(mean_interarrival_ns: f64, service_ns: f64) -> Option<f64> {
    let load = service_ns / mean_interarrival_ns;
    (load < 1.0).then(|| load * service_ns / (2.0 * (1.0 - load)))
}

/// What a die spends its time on when it does nothing but write.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WriteCosts {
    /// Time a host page program keeps the die, transfer included where the die waits for it.
    pub program_ns: f64,
    /// Time a relocated page keeps the die: its read, its program and what transfers it needs.
    pub copy_ns: f64,
    /// Time of an erase.
    pub erase_ns: f64,
    pub pages_per_block: f64,
}

/// Host pages a second that one saturated die takes at a write amplification A (all programs over
/// host programs). In the steady state a host page costs one program, A - 1 copies and A /
/// pages-per-block erases.
pub fn saturated_pages_per_second(costs: &WriteCosts, write_amplification: f64) -> f64 {
    let copies = (write_amplification - 1.0) * costs.copy_ns;
    let erases = write_amplification / costs.pages_per_block * costs.erase_ns;
    1e9 / (costs.program_ns + copies + erases)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    fn job(arrival_ns: u64, stages: &[(usize, u64)]) -> Job {
        Job {
            arrival_ns,
            stages: stages.to_vec(),
        }
    }

    fn spans(jobs: &[Job]) -> Vec<Vec<(u64, u64)>> {
        let pair = |span: &Span| (span.start_ns, span.completion_ns);
        simulate(jobs)
            .iter()
            .map(|job| job.iter().map(pair).collect())
            .collect()
    }

    #[test]
    fn two_dies_share_a_channel_in_order_of_readiness() {
        // Reads: array on the die (servers 1 and 2), then transfer on the channel (server 0).
        let jobs = [
            job(0, &[(1, 25), (0, 100)]),
            job(1, &[(2, 25), (0, 100)]),
            job(2, &[(1, 25), (0, 100)]),
        ];
        let expected = vec![
            vec![(0, 25), (25, 125)],
            vec![(1, 26), (125, 225)],
            vec![(25, 50), (225, 325)],
        ];
        assert_eq!(spans(&jobs), expected);
    }

    #[test]
    fn a_later_arrival_uses_the_gap_before_an_earlier_job_needs_the_server() {
        let jobs = [job(0, &[(1, 500), (0, 10)]), job(5, &[(0, 10)])];
        assert_eq!(
            spans(&jobs),
            vec![vec![(0, 500), (500, 510)], vec![(5, 15)]]
        );
    }

    #[test]
    fn ties_go_to_the_lower_job_even_when_it_is_readied_by_a_completion() {
        // At 10, job 1 arrives, and job 0's first stage completes and needs the same server.
        let jobs = [job(0, &[(1, 10), (0, 5)]), job(10, &[(0, 5)])];
        assert_eq!(spans(&jobs), vec![vec![(0, 10), (10, 15)], vec![(15, 20)]]);
        // The order of readiness beats the job's number.
        let jobs = [job(7, &[(0, 5)]), job(6, &[(0, 5)]), job(0, &[(0, 9)])];
        assert_eq!(
            spans(&jobs),
            vec![vec![(14, 19)], vec![(9, 14)], vec![(0, 9)]]
        );
    }

    #[test]
    fn stages_of_no_duration_take_their_turn() {
        let jobs = [
            job(0, &[(1, 0), (0, 4)]),
            job(0, &[(0, 3)]),
            job(2, &[(0, 0)]),
            job(3, &[]),
        ];
        let expected = vec![vec![(0, 0), (0, 4)], vec![(4, 7)], vec![(7, 7)], vec![]];
        assert_eq!(spans(&jobs), expected);
    }

    #[test]
    fn a_server_never_serves_two_nor_idles_while_one_waits() {
        let mut random = Random(1);
        let mut arrival = 0;
        let jobs: Vec<Job> = (0..2000)
            .map(|_| {
                arrival += random.below(30);
                let stages =
                    (0..1 + random.below(3)).map(|_| (random.below(4) as usize, random.below(25)));
                job(arrival, &stages.collect::<Vec<_>>())
            })
            .collect();
        let result = simulate(&jobs);
        for server in 0..4 {
            let mut served = Vec::new();
            for (job, spans) in jobs.iter().zip(&result) {
                let mut ready = job.arrival_ns;
                for (&(at, duration), span) in job.stages.iter().zip(spans) {
                    assert_eq!(span.completion_ns - span.start_ns, duration);
                    assert!(span.start_ns >= ready);
                    if at == server {
                        served.push((span.start_ns, span.completion_ns, ready));
                    }
                    ready = span.completion_ns;
                }
            }
            served.sort_unstable();
            for pair in served.windows(2) {
                assert_eq!(pair[1].0, pair[0].1.max(pair[1].2), "{pair:?}");
                assert!(
                    pair[0].2 <= pair[1].2,
                    "not in order of readiness: {pair:?}"
                );
            }
        }
    }

    #[test]
    fn poisson_arrivals_wait_as_long_as_md1_says() {
        let mut random = Random(2);
        for load in [0.3, 0.7] {
            let mut arrival = 0.0;
            let jobs: Vec<Job> = (0..400_000)
                .map(|_| {
                    arrival -= 1000.0 / load * random.unit().ln();
                    job(arrival as u64, &[(0, 1000)])
                })
                .collect();
            let waits = simulate(&jobs)
                .iter()
                .zip(&jobs)
                .map(|(s, j)| s[0].start_ns - j.arrival_ns)
                .sum::<u64>();
            let mean = waits as f64 / jobs.len() as f64;
            let theory = md1_mean_wait_ns(1000.0 / load, 1000.0).unwrap();
            assert!(
                (mean / theory - 1.0).abs() < 0.02,
                "load {load}: {mean} against {theory}"
            );
        }
        assert_eq!(md1_mean_wait_ns(2.0, 1.0), Some(0.5));
        assert_eq!(md1_mean_wait_ns(1.0, 1.0), None);
    }

    #[test]
    fn a_saturated_die_writes_as_fast_as_its_costs_allow() {
        let costs = WriteCosts {
            program_ns: 200e3,
            copy_ns: 225e3,
            erase_ns: 1.5e6,
            pages_per_block: 64.0,
        };
        // Without copies: 64 programs and one erase per 64 pages.
        let expected = 64.0 * 1e9 / (64.0 * 200e3 + 1.5e6);
        assert!((saturated_pages_per_second(&costs, 1.0) / expected - 1.0).abs() < 1e-12);
        // A = 2: a victim gives room for 32 host pages and costs 32 copies and an erase.
        let expected = 32.0 * 1e9 / (32.0 * 200e3 + 32.0 * 225e3 + 1.5e6);
        assert!((saturated_pages_per_second(&costs, 2.0) / expected - 1.0).abs() < 1e-12);
    }
}
