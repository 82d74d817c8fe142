//! Requests in simulated time, against a model that looks at every nanosecond.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use flashlore_array::element::{Device as Medium, DeviceOperation, OperationKind, Work};
use flashlore_array::hdd::{Completion, DiskOptions, Hdd, Request, Time, drives};
use flashlore_array::timed::{Costs, Ended, Engine, Limits, TimedDevice, TimedError, TimedStep};
use proptest::prelude::*;

/// A device that serves one operation at a time, in as many nanoseconds as it has bytes, and none for a sync.
#[derive(Debug, Default)]
struct Server {
    waiting: VecDeque<(u64, Time)>,
    free: Time,
}

impl TimedDevice for Server {
    fn submit(&mut self, time: Time, id: u64, op: &DeviceOperation) -> Result<(), TimedError> {
        self.free = self.free.max(time) + op.bytes;
        self.waiting.push_back((id, self.free));
        Ok(())
    }

    fn next_event(&self) -> Option<Time> {
        self.waiting.front().map(|&(_, at)| at)
    }

    fn advance(&mut self, until: Time, done: &mut Vec<Completion>) -> Result<(), TimedError> {
        while let Some(&(id, at)) = self.waiting.front().filter(|&&(_, at)| at <= until) {
            self.waiting.pop_front();
            done.push(Completion { id, at });
        }
        Ok(())
    }
}

const COSTS: Costs = Costs {
    encode: 7,
    decode: 3,
    signature: 0,
    fingerprint: 5,
};

fn device(device: Medium, bytes: u64) -> TimedStep {
    let kind = if bytes == 0 {
        OperationKind::Sync
    } else {
        OperationKind::Read
    };
    TimedStep::Device(DeviceOperation {
        device,
        kind,
        offset: 0,
        bytes,
    })
}

fn steps() -> impl Strategy<Value = Vec<TimedStep>> {
    let step = prop_oneof![
        4 => (0u64..30).prop_map(|bytes| device(Medium::Fast, bytes)),
        4 => (0u64..90).prop_map(|bytes| device(Medium::Slow, bytes)),
        1 => Just(TimedStep::Work(Work::Encode)),
        1 => Just(TimedStep::Work(Work::Decode)),
        1 => Just(TimedStep::Work(Work::Signature)),
        1 => Just(TimedStep::Work(Work::Fingerprint)),
        2 => Just(TimedStep::Background),
        1 => Just(TimedStep::Barrier),
    ];
    proptest::collection::vec(step, 0..8)
}

/// A chain of a request of the model: what is left of it.
struct Left {
    tag: usize,
    place: u64,
    steps: VecDeque<TimedStep>,
    began: Time,
    answered: bool,
}

fn answer_at(tag: usize, began: Time, at: Time) -> Ended {
    let tag = tag as u64;
    Ended { tag, began, at }
}

/// Every nanosecond: what each server works on loses one of its nanoseconds; what has ended goes on, devices before
/// the processor, each in order of arrival; then requests begin.
fn by_the_nanosecond(requests: &[(Time, Vec<Vec<TimedStep>>)], limits: Limits) -> Vec<Ended> {
    const FAST: usize = 0;
    const SLOW: usize = 1;
    const PROCESSOR: usize = 2;
    let mut queues: [VecDeque<(Left, u64)>; 3] = Default::default();
    let mut waiting: VecDeque<_> = requests.iter().cloned().zip(0..).collect();
    let mut unanswered: Vec<usize> = requests.iter().map(|(_, chains)| chains.len()).collect();
    let (mut outstanding, mut background) = (0, 0);
    let mut answers = Vec::new();
    // Which chains have not ended, and those at a barrier.
    let (mut begun, mut live, mut barred) = (0, BTreeSet::new(), BTreeMap::new());
    for now in 0.. {
        if now > 0 {
            for queue in &mut queues {
                if let Some((_, left)) = queue.front_mut() {
                    *left -= 1;
                }
            }
        }
        loop {
            // Whatever has ended by now, in order; then one request, if there is room.
            let over =
                |queue: &VecDeque<(Left, u64)>| queue.front().is_some_and(|(_, left)| *left == 0);
            let mut ended: VecDeque<Left> = VecDeque::new();
            for device in [FAST, SLOW] {
                while over(&queues[device]) {
                    ended.extend(queues[device].pop_front().map(|(left, _)| left));
                }
            }
            if ended.is_empty() && over(&queues[PROCESSOR]) {
                ended.extend(queues[PROCESSOR].pop_front().map(|(left, _)| left));
            }
            if ended.is_empty() {
                let room = outstanding < limits.depth && background < limits.background;
                match waiting.front() {
                    Some(((earliest, _), _)) if room && *earliest <= now => {
                        let ((_, chains), tag) = waiting.pop_front().unwrap();
                        outstanding += 1;
                        if chains.is_empty() {
                            outstanding -= 1;
                            answers.push(answer_at(tag, now, now));
                            continue;
                        }
                        for steps in chains {
                            live.insert(begun);
                            ended.push_back(Left {
                                tag,
                                place: begun,
                                steps: steps.into(),
                                began: now,
                                answered: false,
                            });
                            begun += 1;
                        }
                    }
                    _ => break,
                }
            }
            while let Some(mut left) = ended.pop_front() {
                let mut answer = |left: &mut Left| {
                    if std::mem::replace(&mut left.answered, true) {
                        return;
                    }
                    background += 1;
                    unanswered[left.tag] -= 1;
                    if unanswered[left.tag] == 0 {
                        outstanding -= 1;
                        answers.push(answer_at(left.tag, left.began, now));
                    }
                };
                loop {
                    let (queue, cost) = match left.steps.pop_front() {
                        None => {
                            answer(&mut left);
                            background -= 1;
                            live.remove(&left.place);
                            let first = live.first();
                            if let Some(next) = first.and_then(|place| barred.remove(place)) {
                                ended.push_front(next);
                            }
                            break;
                        }
                        Some(TimedStep::Barrier) if live.first() == Some(&left.place) => continue,
                        Some(TimedStep::Barrier) => {
                            barred.insert(left.place, left);
                            break;
                        }
                        Some(TimedStep::Background) => {
                            answer(&mut left);
                            continue;
                        }
                        Some(TimedStep::Work(work)) if COSTS.of(work) == 0 => continue,
                        Some(TimedStep::Work(work)) => (PROCESSOR, COSTS.of(work)),
                        Some(TimedStep::Device(op)) if op.device == Medium::Fast => {
                            (FAST, op.bytes)
                        }
                        Some(TimedStep::Device(op)) => (SLOW, op.bytes),
                    };
                    queues[queue].push_back((left, cost));
                    break;
                }
            }
        }
        if waiting.is_empty() && outstanding + background == 0 {
            break;
        }
    }
    answers
}

proptest! {
    #[test]
    fn requests_are_answered_when_they_should_be(
        requests in proptest::collection::vec(
            (0u64..20, proptest::collection::vec(steps(), 0..4)),
            0..20,
        ),
        depth in 1usize..5,
        background in 1usize..4,
    ) {
        let mut at = 0;
        let requests: Vec<_> = requests
            .into_iter()
            .map(|(gap, chains)| {
                at += gap * 3;
                (at, chains)
            })
            .collect();
        let limits = Limits { depth, background };
        let mut engine = Engine::new(Server::default(), Server::default(), COSTS, limits);
        for (tag, (earliest, chains)) in requests.iter().enumerate() {
            let chains = chains.iter().map(Vec::as_slice);
            engine.begin(*earliest, tag as u64, chains).unwrap();
        }
        engine.finish().unwrap();
        let mut found: Vec<_> = engine.answers().collect();
        let mut expected = by_the_nanosecond(&requests, limits);
        prop_assert!(found.is_sorted_by_key(|ended| ended.at));
        found.sort_by_key(|ended| ended.tag);
        expected.sort_by_key(|ended| ended.tag);
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn a_request_by_itself_takes_the_sum_of_its_steps() {
    let limits = Limits {
        depth: 1,
        background: 1,
    };
    let disk = || {
        Hdd::new(
            &drives::named("barracuda-7200.7-160g").unwrap(),
            DiskOptions::default(),
        )
        .unwrap()
    };
    let mut engine = Engine::new(Server::default(), disk(), Costs::PAPER, limits);
    let read = DeviceOperation {
        device: Medium::Slow,
        kind: OperationKind::Read,
        offset: 1 << 30,
        bytes: 4096,
    };
    let steps = [
        device(Medium::Fast, 20_000),
        TimedStep::Work(Work::Decode),
        TimedStep::Device(read),
        TimedStep::Background,
        TimedStep::Work(Work::Encode),
    ];
    engine.begin(0, 7, [&steps[..]]).unwrap();
    let end = engine.finish().unwrap();
    let expected = disk()
        .serve(30_000, Request::read((1 << 30) / 512, 8))
        .unwrap();
    let answers: Vec<_> = engine.answers().collect();
    assert_eq!(answers.len(), 1);
    assert_eq!(
        (answers[0].tag, answers[0].began, answers[0].at),
        (7, 0, expected)
    );
    assert_eq!(end, expected + 10_000);
    assert_eq!(engine.processor_busy(), 20_000);
}

#[test]
fn an_operation_beyond_the_disk_or_within_a_sector_is_refused() {
    let limits = Limits {
        depth: 1,
        background: 1,
    };
    for (offset, bytes, expected) in [(1 << 60, 4096, "slow medium"), (100, 512, "sectors of 512")]
    {
        let disk = Hdd::new(
            &drives::named("barracuda-7200.7-160g").unwrap(),
            DiskOptions::default(),
        )
        .unwrap();
        let mut engine = Engine::new(Server::default(), disk, COSTS, limits);
        let step = TimedStep::Device(DeviceOperation {
            device: Medium::Slow,
            kind: OperationKind::Write,
            offset,
            bytes,
        });
        let refused = engine.begin(0, 0, [&[step][..]]).unwrap_err().to_string();
        assert!(refused.contains(expected), "{refused}");
    }
}
