//! The time of a volume.
//!
//! Changes are stamped, windows are measured, and "10min ago" is counted on a time of the volume's own. While a volume
//! is open, and from one opening to the next as long as the machine runs on, that time goes on with the clock that
//! counts since the start of the machine; whatever is done to the wall clock does not move it. Only after another start
//! of the machine is it taken from the wall clock, if that is not behind the last change. What the clocks showed is
//! noted in the volume ([`ClockNote`]): at the first change after a start of the machine, and when the wall clock was
//! moved against the volume's time.
//!
//! Invariants: the time of a volume never goes back; time for which only a wall clock vouches is told to the volume,
//! which does not count it towards a protected window.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use flashlore_volume::ClockNote;
use flashlore_volume::disk::live::Clock;
use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};

use crate::moment::Time;

/// The wall clock was moved if it is this much away from where it was, in nanoseconds.
pub(crate) const MOVED: u64 = 1_000_000_000;

pub trait Clocks: Send + Sync {
    /// The wall clock: nanoseconds since 1970.
    fn wall(&self) -> u64;

    /// Nanoseconds since the machine was started. They go on while it sleeps.
    fn since_boot(&self) -> u64;

    /// Stands for the start of the machine, if that can be known.
    fn boot(&self) -> Option<u64>;
}

/// Clocks behind which stands one function: it is right, and nothing is known of a start.
impl<F: Fn() -> u64 + Send + Sync> Clocks for F {
    fn wall(&self) -> u64 {
        self()
    }

    fn since_boot(&self) -> u64 {
        self()
    }

    fn boot(&self) -> Option<u64> {
        None
    }
}

/// What the kernel calls the time namespace that it starts with (PROC_TIME_INIT_INO).
const FIRST_TIME_NAMESPACE: &str = "time:[4026531834]";

struct Machine {
    boot: Option<u64>,
    /// When this was made: the time since the start, and what the clock showed that has measured it since. The two
    /// differ where somebody shows the process another clock than there is.
    began: (u64, u64),
}

/// The clocks of the machine this runs on.
pub fn machine() -> Arc<dyn Clocks> {
    let read = |path| std::fs::read_to_string(path).ok();
    // A time namespace has a clock since its start of its own, which says nothing of another one's.
    let namespace = std::fs::read_link("/proc/self/ns/time");
    let is_own = namespace.is_ok_and(|name| name.as_os_str() != FIRST_TIME_NAMESPACE);
    let boot = read("/proc/sys/kernel/random/boot_id").filter(|_| !is_own);
    let boot = boot.map(|id| {
        id.chars()
            .filter(char::is_ascii_hexdigit)
            .collect::<String>()
    });
    let boot = boot.and_then(|id| u64::from_str_radix(id.get(..16)?, 16).ok());
    let uptime = read("/proc/uptime");
    let uptime = uptime.and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    let since = uptime.map(|seconds| (seconds * 1e9) as u64);
    // The finer one, unless somebody shows this process another clock than there is.
    let shown = boottime();
    let since = since.map(|since| match since.abs_diff(shown) < MOVED {
        true => shown,
        false => since,
    });
    Arc::new(Machine {
        boot: boot.filter(|_| since.is_some()),
        began: (since.unwrap_or(0), shown),
    })
}

/// The clock that counts since the start of the machine, sleep included.
fn boottime() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    let (seconds, nanos) = (now.tv_sec as u64, now.tv_nsec as u64);
    seconds * 1_000_000_000 + nanos
}

impl Clocks for Machine {
    fn wall(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.map_or(0, |since| since.as_nanos() as u64)
    }

    fn since_boot(&self) -> u64 {
        let (since, shown) = self.began;
        since + boottime().saturating_sub(shown)
    }

    fn boot(&self) -> Option<u64> {
        self.boot
    }
}

/// A clock that begins with the wall clock and goes on evenly, whatever is done to that.
pub fn even(clocks: Arc<dyn Clocks>) -> Clock {
    let (wall, since) = (clocks.wall(), clocks.since_boot());
    Arc::new(move || wall.saturating_add(clocks.since_boot().saturating_sub(since)))
}

/// What a volume remembers of time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Remembered<'a> {
    /// The last change.
    pub newest: u64,
    pub is_new: bool,
    /// What the clocks showed last.
    pub clock: Option<&'a ClockNote>,
}

pub(crate) struct VolumeTime {
    clocks: Arc<dyn Clocks>,
    /// The time of the volume at a time since the start of the machine.
    base: (u64, u64),
    /// How far the wall clock was ahead when somebody looked last; less than nothing is behind.
    ahead: Mutex<i128>,
}

/// What the opening of a volume found about the clocks.
pub(crate) struct Begun {
    /// What the volume is to note with its next change.
    pub note: Option<ClockNote>,
    pub told: Option<String>,
}

impl VolumeTime {
    pub fn begin(clocks: Arc<dyn Clocks>, known: Remembered<'_>) -> (Self, Begun) {
        let (wall, since_boot, boot) = (clocks.wall(), clocks.since_boot(), clocks.boot());
        let after = known.newest.saturating_add(1);
        let same = known
            .clock
            .filter(|clock| boot == Some(clock.boot) && since_boot >= clock.since_boot);
        let (time, unproven, before) = match same {
            Some(clock) => {
                let time = clock.time + (since_boot - clock.since_boot);
                (time.max(after), 0, ahead(clock.wall, clock.time))
            }
            None => {
                let time = wall.max(after);
                let gap = if known.is_new { 0 } else { time - known.newest };
                (time, gap, 0)
            }
        };
        let now = ahead(wall, time);
        let moved = now.abs_diff(before) >= u128::from(MOVED);
        let note = ClockNote {
            time,
            boot: boot.unwrap_or(0),
            since_boot,
            wall,
            unproven,
        };
        let begun = Begun {
            note: (same.is_none() || moved).then_some(note),
            told: moved.then(|| sentence(now)),
        };
        let volume = VolumeTime {
            clocks,
            base: (time, since_boot),
            ahead: Mutex::new(now),
        };
        (volume, begun)
    }

    pub fn now(&self) -> u64 {
        self.at(self.clocks.since_boot())
    }

    fn at(&self, since_boot: u64) -> u64 {
        let (time, began) = self.base;
        time.saturating_add(since_boot.saturating_sub(began))
    }

    pub fn wall(&self) -> u64 {
        self.clocks.wall()
    }

    /// Whether the wall clock was moved since somebody looked last: what to note, and what to tell.
    pub fn look(&self) -> Option<(ClockNote, String)> {
        let (wall, since_boot) = (self.clocks.wall(), self.clocks.since_boot());
        let time = self.at(since_boot);
        let now = ahead(wall, time);
        let mut before = self.ahead.lock();
        if now.abs_diff(*before) < u128::from(MOVED) {
            return None;
        }
        *before = now;
        let note = ClockNote {
            time,
            boot: self.clocks.boot().unwrap_or(0),
            since_boot,
            wall,
            unproven: 0,
        };
        Some((note, sentence(now)))
    }
}

/// How far a wall clock is ahead of the time of a volume.
fn ahead(wall: u64, time: u64) -> i128 {
    i128::from(wall) - i128::from(time)
}

/// What is told when the wall clock does not go with the volume.
fn sentence(ahead: i128) -> String {
    let by = u64::try_from(ahead.unsigned_abs()).unwrap_or(u64::MAX);
    if by < MOVED {
        return "the clock of the machine shows the time of the volume again".to_owned();
    }
    let by = span(by);
    let way = if ahead < 0 { "behind" } else { "ahead of" };
    format!(
        "the clock of the machine is {by} {way} the time of the volume, which goes on evenly: instants are times of the \
         volume"
    )
}

/// A duration for people: the two largest units of it.
pub fn span(nanos: u64) -> String {
    const UNITS: [(u64, &str); 5] = [
        (31_557_600, "y"),
        (86_400, "d"),
        (3_600, "h"),
        (60, "min"),
        (1, "s"),
    ];
    let mut left = nanos / MOVED;
    let mut parts = Vec::new();
    for (seconds, name) in UNITS {
        if left >= seconds {
            parts.push(format!("{}{name}", left / seconds));
        }
        left %= seconds;
    }
    parts.truncate(2);
    match parts.is_empty() {
        true => "less than 1s".to_owned(),
        false => parts.join(" "),
    }
}

/// What the clocks showed, for people: how far the wall clock was from the time of the volume, and what time nobody
/// but it vouches for.
pub fn told(time: u64, wall: u64, unproven: u64) -> String {
    let mut parts = Vec::new();
    let by = wall.abs_diff(time);
    if by >= MOVED {
        let way = if wall < time { "behind" } else { "ahead" };
        let by = span(by);
        parts.push(format!(
            "the clock of the machine showed {}, {by} {way}",
            Time(wall)
        ));
    }
    if unproven >= MOVED {
        let length = span(unproven);
        parts.push(format!(
            "the machine had been started anew, {length} after the change before by its clock; a protected window does \
             not count them"
        ));
    }
    match parts.is_empty() {
        true => "the clock of the machine showed the time of the volume".to_owned(),
        false => parts.join("; "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const YEAR: u64 = 31_557_600 * SECOND;
    /// In 2026.
    const TODAY: u64 = 1_790_000_000 * SECOND;

    /// Clocks that a test sets.
    struct Set {
        wall: Mutex<u64>,
        since_boot: Mutex<u64>,
        boot: u64,
    }

    impl Set {
        fn new(wall: u64, since_boot: u64, boot: u64) -> Arc<Set> {
            Arc::new(Set {
                wall: Mutex::new(wall),
                since_boot: Mutex::new(since_boot),
                boot,
            })
        }

        fn go_on(&self, nanos: u64) {
            *self.wall.lock() += nanos;
            *self.since_boot.lock() += nanos;
        }

        fn set(&self, wall: u64) {
            *self.wall.lock() = wall;
        }
    }

    impl Clocks for Set {
        fn wall(&self) -> u64 {
            *self.wall.lock()
        }

        fn since_boot(&self) -> u64 {
            *self.since_boot.lock()
        }

        fn boot(&self) -> Option<u64> {
            Some(self.boot)
        }
    }

    fn known(newest: u64, clock: Option<&ClockNote>) -> Remembered<'_> {
        Remembered {
            newest,
            is_new: false,
            clock,
        }
    }

    #[test]
    fn a_wall_clock_that_jumps_moves_nothing_and_is_told_once() {
        let clocks = Set::new(TODAY, 5 * SECOND, 1);
        let (time, begun) = VolumeTime::begin(clocks.clone(), known(TODAY - 9 * SECOND, None));
        let note = begun.note.unwrap();
        assert_eq!((note.time, note.unproven), (TODAY, 9 * SECOND));
        assert_eq!(begun.told, None);
        clocks.go_on(SECOND);
        assert_eq!((time.now(), time.look()), (TODAY + SECOND, None));
        clocks.set(TODAY + 10 * YEAR);
        assert_eq!(time.now(), TODAY + SECOND);
        let (note, told) = time.look().unwrap();
        assert_eq!(
            (note.time, note.wall, note.unproven),
            (TODAY + SECOND, TODAY + 10 * YEAR, 0)
        );
        assert!(told.contains("ahead of the time of the volume"), "{told}");
        clocks.go_on(SECOND);
        assert_eq!(time.look(), None);
        clocks.set(TODAY + 2 * SECOND);
        let (_, told) = time.look().unwrap();
        assert!(told.contains("again"), "{told}");
        assert_eq!(time.now(), TODAY + 2 * SECOND);
    }

    #[test]
    fn an_opening_on_a_machine_that_runs_on_does_not_ask_the_wall_clock() {
        let clocks = Set::new(TODAY, 5 * SECOND, 1);
        let (_, begun) = VolumeTime::begin(clocks.clone(), known(TODAY - 1, None));
        let note = begun.note.unwrap();
        clocks.go_on(3 * SECOND);
        clocks.set(TODAY + 2 * 3_600 * SECOND);
        let (time, begun) = VolumeTime::begin(clocks.clone(), known(TODAY + SECOND, Some(&note)));
        assert_eq!(time.now(), TODAY + 3 * SECOND);
        let jump = begun.note.unwrap();
        assert_eq!(jump.unproven, 0);
        let told = begun.told.unwrap();
        assert!(told.contains("1h 59min ahead of"), "{told}");
        // It stays where it was set: nothing new.
        let (_, begun) = VolumeTime::begin(clocks, known(TODAY + 3 * SECOND, Some(&jump)));
        assert!(begun.note.is_none() && begun.told.is_none());
    }

    #[test]
    fn after_a_start_of_the_machine_the_wall_clock_counts_unless_it_is_behind() {
        let note = ClockNote {
            time: TODAY,
            boot: 1,
            since_boot: SECOND,
            wall: TODAY,
            unproven: 0,
        };
        let right = Set::new(TODAY + 60 * SECOND, SECOND, 2);
        let (time, begun) = VolumeTime::begin(right, known(TODAY + SECOND, Some(&note)));
        assert_eq!(time.now(), TODAY + 60 * SECOND);
        assert_eq!(begun.note.unwrap().unproven, 59 * SECOND);
        assert_eq!(begun.told, None);
        // A clock without a battery.
        let behind = Set::new(7, SECOND, 2);
        let (time, begun) = VolumeTime::begin(behind.clone(), known(TODAY + SECOND, Some(&note)));
        assert_eq!(time.now(), TODAY + SECOND + 1);
        assert_eq!(begun.note.unwrap().unproven, 1);
        assert!(
            begun
                .told
                .unwrap()
                .contains("behind the time of the volume")
        );
        behind.go_on(SECOND);
        assert_eq!(time.now(), TODAY + 2 * SECOND + 1);
    }

    #[test]
    fn a_new_volume_has_no_time_that_nobody_vouches_for() {
        let first = Remembered {
            newest: TODAY,
            is_new: true,
            clock: None,
        };
        let (_, begun) = VolumeTime::begin(Set::new(TODAY + YEAR, 1, 1), first);
        assert_eq!(begun.note.unwrap().unproven, 0);
    }

    #[test]
    fn the_machine_knows_its_start_and_goes_on() {
        let clocks = machine();
        assert!(clocks.boot().is_some());
        let (wall, since) = (clocks.wall(), clocks.since_boot());
        assert!(wall > TODAY / 2 && since > 0);
        assert!(clocks.since_boot() >= since);
        assert_eq!(machine().boot(), clocks.boot());
    }
}
