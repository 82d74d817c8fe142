//! Smart retention (combination K): which instants stay readable when the window has passed them.
//!
//! Everything younger than an age is exact. Behind it instants at regular distances stay, in *tiers*:
//! up to one age those that are multiples of one spacing, up to the next age those of a larger one,
//! and beyond the last age none. Every spacing is a multiple of the one before, so that what a tier
//! wants was wanted before and is still there. Ages and spacings have the unit of the stamps.

use thiserror::Error;

/// Most instants a schedule may want at a time: each is looked at when it is applied.
pub const MAX_INSTANTS: u64 = 1 << 16;

/// Instants of these ages stay if they are multiples of the spacing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tier {
    /// The largest age of the tier. It begins behind the tier before.
    pub up_to: u64,
    /// The distance of the instants that stay.
    pub spacing: u64,
}

/// What stays how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    exact: u64,
    tiers: Vec<Tier>,
}

/// Why a schedule cannot be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ScheduleError {
    /// The ages must rise.
    #[error(
        "tier {tier} of the schedule ends at age {found}; expected more than {before}, where it begins"
    )]
    Age {
        /// Which tier, from 1.
        tier: usize,
        /// Its last age.
        found: u64,
        /// The last age before it.
        before: u64,
    },
    /// A spacing must be a multiple of the one before.
    #[error(
        "tier {tier} of the schedule has spacing {found}; expected a multiple of {before} other than 0"
    )]
    Spacing {
        /// Which tier, from 1.
        tier: usize,
        /// Its spacing.
        found: u64,
        /// The spacing of the tier before, or 1.
        before: u64,
    },
    /// There would be too many instants.
    #[error(
        "up to tier {tier} the schedule keeps {found} instants; expected at most {MAX_INSTANTS}"
    )]
    TooMany {
        /// Which tier, from 1.
        tier: usize,
        /// The instants of all tiers up to it.
        found: u64,
    },
}

impl Schedule {
    /// A schedule under which every instant younger than `exact` stays, and the instants of the
    /// tiers, youngest tier first.
    ///
    /// # Errors
    /// If ages do not rise, a spacing is no multiple of the one before, or too many instants would
    /// be kept.
    pub fn new(exact: u64, tiers: Vec<Tier>) -> Result<Self, ScheduleError> {
        let (mut before, mut instants) = (
            Tier {
                up_to: exact,
                spacing: 1,
            },
            0u64,
        );
        for (i, &tier) in tiers.iter().enumerate() {
            if tier.up_to <= before.up_to {
                return Err(ScheduleError::Age {
                    tier: i + 1,
                    found: tier.up_to,
                    before: before.up_to,
                });
            }
            if tier.spacing == 0 || !tier.spacing.is_multiple_of(before.spacing) {
                return Err(ScheduleError::Spacing {
                    tier: i + 1,
                    found: tier.spacing,
                    before: before.spacing,
                });
            }
            // The first tier has those of the window too, when the window must shrink.
            let begins = if i == 0 { 0 } else { before.up_to };
            instants = instants.saturating_add((tier.up_to - begins) / tier.spacing);
            if instants > MAX_INSTANTS {
                return Err(ScheduleError::TooMany {
                    tier: i + 1,
                    found: instants,
                });
            }
            before = tier;
        }
        Ok(Schedule { exact, tiers })
    }

    /// The age up to which everything stays.
    pub fn exact(&self) -> u64 {
        self.exact
    }

    /// The smallest distance of instants that stay, if any do behind the exact age.
    pub fn spacing(&self) -> Option<u64> {
        self.tiers.first().map(|tier| tier.spacing)
    }

    /// Whether the tiers want an instant to stay, seen from `now`.
    pub fn wants(&self, instant: u64, now: u64) -> bool {
        let age = now.saturating_sub(instant);
        let tier = self.tiers.iter().find(|tier| age <= tier.up_to);
        tier.is_some_and(|tier| instant.is_multiple_of(tier.spacing))
    }

    /// The instants in `[from, now)` that the tiers want to stay, seen from `now`.
    pub(super) fn instants(&self, from: u64, now: u64) -> impl Iterator<Item = u64> {
        let mut end = now;
        self.tiers.iter().flat_map(move |tier| {
            let begin = now.saturating_sub(tier.up_to).max(from);
            let multiples = begin.div_ceil(tier.spacing)..end.div_ceil(tier.spacing);
            end = begin.min(end);
            multiples.map(|n| n * tier.spacing)
        })
    }

    /// The last instant in `[from, before)` that the first tier could want to stay.
    pub(super) fn last_before(&self, from: u64, before: u64) -> Option<u64> {
        let spacing = self.tiers.first()?.spacing;
        let instant = before.checked_sub(1)? / spacing * spacing;
        (instant >= from).then_some(instant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tier(up_to: u64, spacing: u64) -> Tier {
        Tier { up_to, spacing }
    }

    #[test]
    fn instants_thin_out_with_age() {
        let schedule = Schedule::new(5, vec![tier(20, 4), tier(60, 12)]).unwrap();
        let stay: Vec<u64> = (0..100).filter(|&t| schedule.wants(t, 100)).collect();
        assert_eq!(stay, [48, 60, 72, 80, 84, 88, 92, 96]);
    }

    #[test]
    fn the_instants_of_a_range_are_those_that_are_wanted() {
        let schedule = Schedule::new(2, vec![tier(9, 2), tier(10, 6), tier(31, 6)]).unwrap();
        for now in 0..80 {
            for from in 0..=now {
                let mut listed: Vec<u64> = schedule.instants(from, now).collect();
                listed.sort_unstable();
                let expected: Vec<u64> = (from..now).filter(|&t| schedule.wants(t, now)).collect();
                assert_eq!(listed, expected, "[{from}, {now})");
                let last = (from..now).rfind(|t| t % 2 == 0);
                assert_eq!(schedule.last_before(from, now), last, "[{from}, {now})");
            }
        }
        assert_eq!(schedule.instants(0, u64::MAX).count(), 8);
    }

    #[test]
    fn an_impossible_schedule_says_where_and_why() {
        let error = |exact, tiers| Schedule::new(exact, tiers).unwrap_err().to_string();
        assert_eq!(
            error(5, vec![tier(5, 1)]),
            "tier 1 of the schedule ends at age 5; expected more than 5, where it begins"
        );
        assert_eq!(
            error(5, vec![tier(9, 4), tier(20, 6)]),
            "tier 2 of the schedule has spacing 6; expected a multiple of 4 other than 0"
        );
        assert_eq!(
            error(5, vec![tier(9, 0)]),
            "tier 1 of the schedule has spacing 0; expected a multiple of 1 other than 0"
        );
        assert_eq!(
            error(5, vec![tier(1 << 40, 1)]),
            "up to tier 1 the schedule keeps 1099511627776 instants; expected at most 65536"
        );
    }
}
