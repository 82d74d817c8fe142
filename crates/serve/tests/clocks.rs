//! A clock that jumps: what is protected stays so, no write is refused for good, and instants stay where they were.

mod support;

use std::sync::Arc;

use flashlore_medium::{Access, Mode};
use flashlore_serve::clock::Clocks;
use flashlore_serve::request::LogEntry;
use flashlore_serve::{Answer, Home, Request, Served, Service};
use flashlore_volume::disk::{BlockDevice, DiskError, ErrorKind};
use flashlore_volume::{CreateOptions, HistoryIdentity};
use parking_lot::Mutex;
use tempfile::TempDir;

const SECOND: u64 = 1_000_000_000;
const HOUR: u64 = 3_600 * SECOND;
const YEAR: u64 = 31_557_600 * SECOND;
const TODAY: u64 = 1_790_000_000 * SECOND;
const PAGE: u64 = 4096;

#[derive(Clone, Copy)]
struct Hands {
    wall: u64,
    since_boot: u64,
    boot: u64,
}

/// Clocks that a test sets.
struct Set(Mutex<Hands>);

impl Set {
    fn with<R>(&self, act: impl FnOnce(&mut Hands) -> R) -> R {
        act(&mut self.0.lock())
    }

    fn go_on(&self, nanos: u64) {
        self.with(|hands| {
            hands.wall += nanos;
            hands.since_boot += nanos;
        });
    }
}

impl Clocks for Set {
    fn wall(&self) -> u64 {
        self.with(|hands| hands.wall)
    }

    fn since_boot(&self) -> u64 {
        self.with(|hands| hands.since_boot)
    }

    fn boot(&self) -> Option<u64> {
        Some(self.with(|hands| hands.boot))
    }
}

struct Place {
    _directory: TempDir,
    home: Home,
    clocks: Arc<Set>,
}

impl Place {
    /// A volume of 256 pages that remembers 512 changes and protects those of an hour.
    fn new() -> Place {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::new(directory.path().join("disk"));
        let options = support::options(TODAY - SECOND);
        home.create(&CreateOptions {
            history: Some(HistoryIdentity {
                entries: 512,
                least_window: HOUR,
                protected: true,
            }),
            ..options
        })
        .unwrap();
        let hands = Hands {
            wall: TODAY,
            since_boot: 9 * SECOND,
            boot: 1,
        };
        Place {
            _directory: directory,
            home,
            clocks: Arc::new(Set(Mutex::new(hands))),
        }
    }

    fn open(&self) -> Service {
        let opened = self.home.open(Mode::Buffered, Access::Change).unwrap();
        Service::new(self.home.clone(), opened, self.clocks.clone()).unwrap()
    }
}

/// Fills pages with a byte, which the clock takes a millisecond for each.
fn fill(place: &Place, service: &Service, pages: u64, byte: u8) -> Result<(), DiskError> {
    for page in 0..pages {
        place.clocks.go_on(1_000_000);
        let bytes = [byte ^ page as u8; PAGE as usize];
        service.disk().write(page * PAGE, &bytes)?;
    }
    Ok(())
}

/// Ends the use of a volume, and gives its file free.
fn close(service: Service) {
    service.close().unwrap();
}

fn first_byte(service: &Service, at: &str) -> u8 {
    let mut byte = [0];
    let instant = service.resolve(at).unwrap();
    service.read_at(instant, 0, &mut byte, false).unwrap();
    byte[0]
}

/// Writes until that is refused for room; whether it was, and how often it was not.
fn fill_up(place: &Place, service: &Service) -> (bool, u64) {
    for round in 0..2_000 {
        place.clocks.go_on(1_000_000);
        let bytes = [round as u8 | 1; 4096];
        match service.disk().write(round % 200 * PAGE, &bytes) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::NoSpace => return (true, round),
            Err(error) => panic!("{error}"),
        }
    }
    (false, 2_000)
}

#[test]
fn two_hours_ahead_drop_no_protected_hour() {
    for boot in [1, 2] {
        let place = Place::new();
        let service = place.open();
        fill(&place, &service, 250, 7).unwrap();
        let instant = service.resolve("now").unwrap();
        let first = format!("ns:{instant}");
        close(service);
        place.clocks.go_on(SECOND);
        place.clocks.with(|hands| {
            hands.wall += 2 * HOUR;
            hands.boot = boot;
            if boot == 2 {
                hands.since_boot = SECOND;
            }
        });
        let service = place.open();
        let (refused, count) = fill_up(&place, &service);
        assert!(refused && count > 0, "{count} changes");
        assert_eq!(
            first_byte(&service, &first),
            7,
            "start of the machine {boot}"
        );
        // And an hour later there is room.
        place.clocks.go_on(HOUR);
        service.disk().write(0, &[9; PAGE as usize]).unwrap();
        close(service);
    }
}

#[test]
fn ten_years_ahead_for_one_write_do_not_fill_the_volume_for_good() {
    let place = Place::new();
    let service = place.open();
    fill(&place, &service, 250, 7).unwrap();
    close(service);
    place.clocks.go_on(SECOND);
    place.clocks.with(|hands| hands.wall += 10 * YEAR);
    let service = place.open();
    service.disk().write(0, &[8; PAGE as usize]).unwrap();
    close(service);
    place.clocks.with(|hands| hands.wall -= 10 * YEAR);
    place.clocks.go_on(SECOND);
    let service = place.open();
    let newest = service.resolve("now").unwrap();
    assert!(newest < TODAY + HOUR, "{newest}");
    let (refused, _) = fill_up(&place, &service);
    assert!(refused);
    place.clocks.go_on(HOUR);
    fill(&place, &service, 200, 3).unwrap();
    close(service);
}

/// Started anew with a clock that is years ahead, and right again at the next start: stamps stay ahead, as they must not
/// go back, but time goes on by them, and nothing is held for longer than its hour.
#[test]
fn years_ahead_at_a_start_of_the_machine_leave_a_window_that_goes_on() {
    let place = Place::new();
    for (boot, wall) in [(1, TODAY), (2, TODAY + 10 * YEAR), (3, TODAY + HOUR)] {
        place.clocks.with(|hands| {
            *hands = Hands {
                wall,
                since_boot: SECOND,
                boot,
            }
        });
        let service = place.open();
        fill(&place, &service, 100, boot as u8).unwrap();
        close(service);
    }
    place.clocks.go_on(SECOND);
    let service = place.open();
    assert!(service.resolve("now").unwrap() > TODAY + 10 * YEAR);
    let (refused, _) = fill_up(&place, &service);
    assert!(refused);
    place.clocks.go_on(HOUR);
    fill(&place, &service, 200, 3).unwrap();
    close(service);
}

#[test]
fn a_jump_while_it_is_open_moves_no_instant_and_is_remembered() {
    let place = Place::new();
    let service = place.open();
    fill(&place, &service, 1, 7).unwrap();
    place.clocks.go_on(SECOND);
    place.clocks.with(|hands| hands.wall += 10 * YEAR);
    let Answer::Info(info) = service.carry_out(&Request::Info).unwrap() else {
        panic!("no info");
    };
    assert!(
        info.warnings[0].contains("10y ahead of the time"),
        "{info:?}"
    );
    assert!(info.clock.1 - info.clock.0 >= 10 * YEAR);
    fill(&place, &service, 1, 8).unwrap();
    place.clocks.go_on(SECOND);
    fill(&place, &service, 1, 9).unwrap();
    // Time that has passed, not what the wall clock shows.
    assert_eq!(first_byte(&service, "500ms ago"), 8);
    assert_eq!(first_byte(&service, "1500ms ago"), 7);
    place.clocks.with(|hands| hands.wall -= 10 * YEAR);
    assert_eq!(first_byte(&service, "1500ms ago"), 7);
    close(service);
    let service = place.open();
    let Answer::Log { entries, .. } = service.carry_out(&Request::Log { most: 20 }).unwrap() else {
        panic!("no log");
    };
    let jumped = |entry: &LogEntry| matches!(entry, LogEntry::Clock { instant, wall, .. } if wall - instant >= 10 * YEAR - SECOND);
    assert!(entries.iter().any(jumped), "{entries:?}");
}
