//! Damage of the medium between the kill and the opening.

use std::sync::atomic::{AtomicU64, Ordering};

use super::killed::{Killed, SYSTEMS};
use super::strike::{self, Drawn};
use super::verdict::{Outcomes, judge};
use crate::support::Draw;

/// Strikes each of `volumes` volumes of a system so many times.
fn campaign(system: &str, volumes: u64, flips: u32, replacements: u32) -> Outcomes {
    let mut outcomes = Outcomes::default();
    let foreign = Killed::foreign();
    for seed in 1..=volumes {
        let killed = Killed::new(system, seed);
        let mut draw = Draw::new(seed + 1000);
        for n in 0..flips + replacements {
            let drawn = match n < flips {
                true => strike::flip(&killed, &mut draw),
                false => strike::replace(&killed, &foreign, &mut draw),
            };
            let Drawn { strike, other, how } = drawn;
            let mut damaged = killed.image.to_vec();
            if !strike.on(&mut damaged, other) {
                outcomes.unharmed += 1;
                continue;
            }
            let what = format!("{}, strike {n}: {how}, {strike:?}", killed.name);
            judge(&killed, damaged, &what, &mut outcomes);
        }
    }
    println!("{system}: {outcomes:?}");
    outcomes
}

/// Campaigns of all systems, on all processors.
fn campaigns(volumes: u64, flips: u32, replacements: u32) {
    let next = AtomicU64::new(0);
    let work = || {
        while let Some(system) = SYSTEMS.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
            let outcomes = campaign(system, volumes, flips, replacements);
            let all = (flips + replacements) * volumes as u32;
            assert_eq!(outcomes.all(), all, "{system}");
            assert!(outcomes.with_errors > 0, "{system}: nothing was hit");
            assert!(outcomes.refused > 0, "{system}: nothing was refused");
        }
    };
    std::thread::scope(|scope| {
        let workers = std::thread::available_parallelism().map_or(1, |n| n.get());
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            worker.join().expect("a campaign failed");
        }
    });
}

#[test]
fn damage_after_a_kill_is_an_error_and_never_other_content() {
    campaigns(1, 70, 70);
}

/// As many as the issue of durability asks for; `--ignored`, minutes.
#[test]
#[ignore = "takes minutes"]
fn much_damage_after_a_kill_is_an_error_and_never_other_content() {
    campaigns(5, 400, 200);
}
