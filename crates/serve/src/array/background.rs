//! The thread that does the work of an array between the requests of clients: scans, replacements, cleaning of the log;
//! and ahead of them: what holds nothing is given back, and blocks go home before anything needs the places they have.
//!
//! It holds the array for one bounded step at a time. A client waits for one step at most; it does such work itself
//! only where its request cannot go on without, so that an array that is asked for more than its media can take
//! becomes slow and not stuck.
//!
//! While clients ask for something, only those blocks go home ahead whose places on the fast medium are needed next;
//! all others wait until nobody has asked for a while. No more bytes a second go home ahead than it is told to.
//!
//! A step that fails is told like any other failure, and tried again later.

use std::io;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use flashlore_array::icash::ahead::Reach;
use flashlore_delta::PAGE_BYTES;
use flashlore_units::{Bytes, Size};
use flashlore_volume::disk::DiskError;
use parking_lot::{Condvar, Mutex};

use super::machines::Machines;
use crate::troubles::Troubles;

/// How long nobody must have asked for anything until the array counts as idle, and how often it looks.
const TICK: Duration = Duration::from_millis(500);
/// How long it waits after a step that failed: what is due is due again with the next request.
const PAUSE: Duration = Duration::from_secs(1);
/// Blocks that go home ahead in one step: a client may have to wait for them, which takes a disk some tenths of a second.
const AHEAD_STEP: usize = 64;

/// Calls for the thread.
#[derive(Default)]
pub struct Calls {
    calls: Mutex<Call>,
    called: Condvar,
}

#[derive(Default)]
struct Call {
    /// A client asked for something.
    asked: bool,
    /// Work is due.
    work: bool,
    end: bool,
    /// Whether whoever asks wakes the thread.
    sleeps: bool,
}

impl Calls {
    /// A client was served, and perhaps left work that is due.
    pub fn served(&self, is_work_due: bool) {
        let mut calls = self.calls.lock();
        calls.asked = true;
        let wakes = calls.sleeps || is_work_due && !calls.work;
        calls.work |= is_work_due;
        if wakes {
            self.called.notify_one();
        }
    }

    fn end(&self) {
        self.calls.lock().end = true;
        self.called.notify_one();
    }

    fn is_over(&self) -> bool {
        self.calls.lock().end
    }

    /// Waits until work is due, for so long at most; without a limit until somebody asks for something. Whether
    /// somebody has, since the last time; nothing at the end.
    fn wait(&self, most: Option<Duration>) -> Option<bool> {
        let mut calls = self.calls.lock();
        let waits = |calls: &mut Call| !calls.work && !calls.end;
        match most {
            Some(most) => {
                self.called.wait_while_for(&mut calls, waits, most);
            }
            None => {
                calls.sleeps = true;
                let waits = |calls: &mut Call| waits(calls) && !calls.asked;
                self.called.wait_while(&mut calls, waits);
                calls.sleeps = false;
            }
        }
        calls.work = false;
        (!calls.end).then(|| std::mem::take(&mut calls.asked))
    }

    /// Waits for a while, or for the end.
    fn pause(&self) {
        let mut calls = self.calls.lock();
        let waits = |calls: &mut Call| !calls.end;
        self.called.wait_while_for(&mut calls, waits, PAUSE);
    }
}

/// The thread. It ends when this is dropped, at the latest.
pub struct Background {
    calls: Arc<Calls>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Background {
    /// Starts it for an array that may be changed.
    pub fn start(machines: &Arc<Machines>, troubles: &Arc<Troubles>) -> io::Result<Self> {
        let calls = Arc::clone(machines.calls());
        let attendant = Attendant {
            machines: Arc::clone(machines),
            troubles: Arc::clone(troubles),
            asked: Instant::now(),
            not_before: Instant::now(),
            rate: machines.running().write_back_rate,
        };
        let thread = Builder::new()
            .name("array work".into())
            .spawn(move || attendant.attend())?;
        Ok(Background {
            calls,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Ends it behind the step under way.
    pub fn end(&self) {
        self.calls.end();
        if let Some(thread) = self.thread.lock().take() {
            // One that panicked has left the array broken, as whoever asks for it is told.
            let _ = thread.join();
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.end();
    }
}

struct Attendant {
    machines: Arc<Machines>,
    troubles: Arc<Troubles>,
    /// When a client asked for something last.
    asked: Instant,
    /// When blocks may go home ahead again, at the rate that it was worked out for.
    not_before: Instant,
    rate: Bytes,
}

impl Attendant {
    fn attend(mut self) {
        let mut wait = Some(TICK);
        while let Some(asked) = self.machines.calls().wait(wait) {
            if asked {
                self.asked = Instant::now();
            }
            wait = match self.do_what_there_is() {
                Ok(wait) => wait,
                Err(DiskError::Closed | DiskError::Broken) => return,
                Err(error) => {
                    self.troubles
                        .note(format!("work in the background failed: {error}"));
                    self.machines.calls().pause();
                    Some(TICK)
                }
            };
        }
    }

    /// Does what is due, and what may be done ahead at once. How long to wait then; until somebody asks without.
    fn do_what_there_is(&mut self) -> Result<Option<Duration>, DiskError> {
        let is_over = || self.machines.calls().is_over();
        while !is_over() && self.machines.work()? {}
        while !is_over() && self.machines.give_back()? {}
        let is_idle = self.asked.elapsed() >= TICK;
        let running = self.machines.running();
        if std::mem::replace(&mut self.rate, running.write_back_rate) != running.write_back_rate {
            // Another rate counts at once.
            self.not_before = Instant::now();
        }
        let until_pace = self.not_before.saturating_duration_since(Instant::now());
        if !until_pace.is_zero() {
            return Ok(Some(until_pace.min(TICK)));
        }
        let reach = match is_idle {
            true => Reach::All,
            false => Reach::Oldest,
        };
        let blocks = self
            .machines
            .write_back_ahead(running.dirty_target, reach, AHEAD_STEP)?;
        self.not_before = Instant::now() + time_for(blocks, running.write_back_rate);
        Ok(match (blocks, is_idle) {
            (0, true) => None,
            (0, false) => Some(TICK),
            _ => Some(time_for(blocks, running.write_back_rate)),
        })
    }
}

/// How long blocks take at a rate.
fn time_for(blocks: u64, rate: Bytes) -> Duration {
    let bytes = (blocks * PAGE_BYTES as u64) as f64;
    match rate {
        Bytes::Unlimited => Duration::ZERO,
        Bytes::Limited(Size(rate)) => Duration::from_secs_f64(bytes / rate.max(1) as f64),
    }
}

#[cfg(test)]
mod tests {
    use flashlore_array::icash::{self, ICash, Machine, Options, Shape, TooBig};
    use flashlore_medium::{Failure, Faults, FaultyMedium, MemoryMedium, When, WriteFault};
    use flashlore_volume::disk::BlockDevice;

    use super::*;

    type Faulty = Arc<FaultyMedium<MemoryMedium>>;

    /// An array with room for twenty blocks on the fast medium, which scans often, and its fast medium.
    fn machines() -> (Arc<Machines>, Faulty) {
        let options = Options {
            scan_every: 50,
            // What is written waits in RAM: a scan alone writes to the fast medium.
            too_big: TooBig::Log,
            ..Options::new(260, 9000)
        };
        let shape = Shape {
            machines: vec![Machine {
                number: 0,
                blocks: 200,
            }],
            slots: 20,
            log_segments: options.least_log_segments(32, 0) + 4,
            segment_blocks: 32,
            journal_blocks: 0,
            frozen_blocks: 20,
        };
        let (fast, slow) = icash::bytes_needed(&shape).unwrap();
        let medium = |bytes| {
            let medium = MemoryMedium::new(bytes as usize);
            Arc::new(FaultyMedium::new(medium, Faults::default()))
        };
        let (fast, slow): (Faulty, Faulty) = (medium(fast), medium(slow));
        icash::create(fast.clone(), slow.clone(), [1; 16], &shape).unwrap();
        let element = ICash::open(fast.clone(), slow, options).unwrap();
        (Machines::whole(element).unwrap(), fast)
    }

    /// Writes blocks that resemble each other.
    fn write(machines: &Arc<Machines>, number: u64) {
        let mut page: Vec<u8> = (0..PAGE_BYTES as u64)
            .map(|at| ((at * at) >> 3) as u8)
            .collect();
        page[100..108].copy_from_slice(&number.to_le_bytes());
        let at = number % 100 * 2 * PAGE_BYTES as u64;
        machines.disk(0).write(at, &page).unwrap();
    }

    #[test]
    fn what_fails_behind_requests_is_told_and_done_later() {
        let (machines, fast) = machines();
        let troubles = Arc::new(Troubles::default());
        let background = Background::start(&machines, &troubles).unwrap();
        fast.set_faults(Faults {
            writes: Some(WriteFault {
                when: When::From(1),
                failure: Failure::NoSpace,
            }),
            ..Faults::default()
        });
        let begun = Instant::now();
        let until = |what: &str, is_so: &dyn Fn() -> bool| {
            while !is_so() {
                assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
                std::thread::sleep(Duration::from_millis(5));
            }
        };
        (0..50).for_each(|number| write(&machines, number));
        until("nothing is told", &|| troubles.failures().is_some());
        let told = troubles.failures().unwrap().last;
        assert!(
            told.starts_with("work in the background failed: "),
            "{told}"
        );
        fast.set_faults(Faults::default());
        (50..100).for_each(|number| write(&machines, number));
        let references = || machines.look(|store| Ok(store.figures().unwrap().0.scan_references));
        until("it is not done", &|| references().unwrap() > 0);
        assert_eq!(troubles.failures().unwrap().count, 1);
        background.end();
        machines.close().unwrap();
    }

    #[test]
    fn it_ends_when_it_is_told_to_and_when_it_is_dropped() {
        for is_told in [false, true] {
            let (machines, _) = machines();
            let background = Background::start(&machines, &Arc::default()).unwrap();
            (0..200).for_each(|number| write(&machines, number));
            if is_told {
                background.end();
                assert_eq!(Arc::strong_count(&machines), 1);
            }
            drop(background);
            assert_eq!(Arc::strong_count(&machines), 1, "somebody still has it");
            machines.close().unwrap();
        }
    }
}
