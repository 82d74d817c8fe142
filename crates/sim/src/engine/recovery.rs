//! Whether a device with history shows at an instant what the host had written by then.
//!
//! The truth is written down beside the run: what every page held when it began, and every change with the instant at
//! which the host asked for it, in the order in which the changes were made. After the run, instants are drawn from the
//! window and from those that outlive it. At each, every page of the truth is looked up without changing anything; then
//! the device is rewound to the instant, compared, and rewound to the present.
//!
//! A rewind is a change like any other, and where it takes space it may push the start of the window on.
//! Instants that have left the window by then are not rewound to, and when the present of the run has left it,
//! the comparison ends.

use flashlore_content::PageTag;
use flashlore_flash::{Lpn, Time};
use flashlore_ftl::policies::history::RewindCost;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::system::System;

/// What happened to the pages.
#[derive(Debug, Default)]
pub struct Truth {
    initial: Vec<Option<PageTag>>,
    changes: Vec<(Time, Lpn, Option<PageTag>)>,
}

/// Instants were compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recovered {
    pub instants: u32,
    /// Rewinds to them and back: two for each instant, unless rewinds themselves filled the window.
    pub rewinds: u32,
    /// Pages compared at each.
    pub pages: u64,
    /// What all rewinds took.
    pub cost: RewindCost,
}

/// A device does not answer as it should.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecoveryError {
    /// A page does not hold what it should.
    #[error(transparent)]
    Wrong(#[from] Wrong),
    /// It does not rewind to an instant that it remembers.
    #[error(
        "the device refuses to rewind to {instant} ns, expected any instant from {oldest} ns on"
    )]
    Refused {
        instant: Time,
        /// The start of the window.
        oldest: Time,
    },
}

/// A page does not hold what it should.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("page {lpn} {when}, expected {expected:?}, found {found:?}")]
pub struct Wrong {
    lpn: Lpn,
    when: String,
    expected: Option<PageTag>,
    found: Option<PageTag>,
}

impl Recovered {
    fn add(&mut self, cost: RewindCost) {
        self.rewinds += 1;
        self.cost.pages += cost.pages;
        self.cost.reads += cost.reads;
        self.cost.decodes += cost.decodes;
        self.cost.programs += cost.programs;
    }
}

impl Truth {
    /// What a device holds before its run.
    pub fn of<S: System>(system: &S, pages: u32) -> Self {
        let initial = (0..pages).map(|lpn| system.content(Lpn(lpn))).collect();
        Truth {
            initial,
            changes: Vec::new(),
        }
    }

    /// A page is written or trimmed.
    pub fn change(&mut self, stamp: Time, lpn: Lpn, value: Option<PageTag>) {
        self.changes.push((stamp, lpn, value));
    }

    /// When the last change was asked for.
    fn latest(&self) -> Time {
        let stamps = self.changes.iter().map(|&(stamp, ..)| stamp);
        stamps.max().unwrap_or(0)
    }

    /// What every page held at an instant.
    fn image(&self, instant: Time) -> Vec<Option<PageTag>> {
        let mut image = self.initial.clone();
        for &(stamp, lpn, value) in &self.changes {
            if stamp <= instant {
                image[lpn.index()] = value;
            }
        }
        image
    }

    /// Compares a device with the truth at instants drawn from its window and from those that outlive it, and
    /// returns it to them and back. It is as before afterwards.
    ///
    /// # Errors
    /// The first page that differs, or a rewind that is refused.
    pub fn verify<S: System>(
        &self,
        system: &mut S,
        now: Time,
        instants: u32,
        seed: u64,
    ) -> Result<Recovered, RecoveryError> {
        let mut recovered = Recovered {
            instants,
            rewinds: 0,
            pages: self.initial.len() as u64,
            cost: RewindCost::default(),
        };
        let drawn = self.draw(system, instants, seed);
        for &instant in &drawn {
            compare(
                &self.image(instant),
                |lpn| system.content_at(Lpn(lpn), instant),
                || format!("at {instant} ns"),
            )?;
        }
        let mut present = now;
        for &instant in &drawn {
            let remembered =
                instant >= system.oldest_instant() || system.kept_instants().contains(&instant);
            if system.oldest_instant() > now || !remembered {
                continue;
            }
            // Each rewind is an instant of its own.
            present += 2;
            system.set_instant(present - 1);
            recovered.add(rewind_to(system, instant)?);
            compare(
                &self.image(instant),
                |lpn| system.content(Lpn(lpn)),
                || format!("after the rewind to {instant} ns"),
            )?;
            if system.oldest_instant() > present - 2 {
                break;
            }
            system.set_instant(present);
            recovered.add(rewind_to(system, present - 2)?);
            compare(
                &self.image(now),
                |lpn| system.content(Lpn(lpn)),
                || format!("after the rewind to {instant} ns was undone"),
            )?;
        }
        Ok(recovered)
    }

    /// Instants to be compared.
    fn draw<S: System>(&self, system: &S, instants: u32, seed: u64) -> Vec<Time> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        // After the last change every instant is the present.
        let oldest = system.oldest_instant();
        let span = self.latest().saturating_sub(oldest) + 1;
        let kept = system.kept_instants();
        let draws = (0..instants).map(|_| random.next_u64());
        // Half of them from behind the window, if any are left there.
        let instant = |drawn: u64| match kept.len() as u64 {
            count if count > 0 && drawn >> 63 == 1 => kept[(drawn % count) as usize],
            _ => oldest + drawn % span,
        };
        draws.map(instant).collect()
    }
}

fn rewind_to<S: System>(system: &mut S, instant: Time) -> Result<RewindCost, RecoveryError> {
    let oldest = system.oldest_instant();
    let cost = system.rewind_to(instant);
    cost.ok_or(RecoveryError::Refused { instant, oldest })
}

fn compare(
    image: &[Option<PageTag>],
    found: impl Fn(u32) -> Option<PageTag>,
    when: impl Fn() -> String,
) -> Result<(), Wrong> {
    for (lpn, &expected) in (0..).zip(image) {
        let found = found(lpn);
        if found != expected {
            return Err(Wrong {
                lpn: Lpn(lpn),
                when: when(),
                expected,
                found,
            });
        }
    }
    Ok(())
}
