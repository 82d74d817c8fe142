//! Verdicts: what became of an aspect of a claim, computed from its numbers and from nothing else.

use flashlore_sim::results::estimate;
use serde::Serialize;

use crate::definition::{Accept, ClaimKind, Standing};

/// What became of an aspect of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// All numbers are inside what is accepted, on inputs that were not fitted to them.
    Reproduced,
    /// The same for a claim that no paper has.
    Holds,
    /// All numbers are inside, and an input was chosen so that they are.
    Fitted,
    /// A number is outside, and an experiment shows why.
    Differs,
    /// A number is outside, and nothing shows why.
    CauseUnknown,
    /// The runs are smaller than those that the ranges are meant for.
    Scaled,
    /// The paper contradicts itself.
    Contradictory,
    /// It depends on what is not published, or there is nothing to compare it with.
    NotJudged,
}

impl Verdict {
    pub const ALL: [Self; 8] = [
        Self::Reproduced,
        Self::Holds,
        Self::Fitted,
        Self::Differs,
        Self::CauseUnknown,
        Self::Scaled,
        Self::Contradictory,
        Self::NotJudged,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::Holds => "holds",
            Self::Fitted => "fitted",
            Self::Differs => "differs",
            Self::CauseUnknown => "cause unknown",
            Self::Scaled => "scaled",
            Self::Contradictory => "contradictory",
            Self::NotJudged => "not judged",
        }
    }

    /// The verdict on the numbers of one aspect of a claim; `explained` when an experiment shows why it differs.
    pub fn of(kind: ClaimKind, numbers: &[Judged<'_>], explained: bool) -> Option<Self> {
        let counted: Vec<_> = numbers.iter().filter(|n| n.standing.is_judged()).collect();
        if counted.is_empty() {
            let contradictory = |n: &Judged| matches!(n.standing, Standing::Contradictory(_));
            return match numbers.iter().any(contradictory) {
                true => Some(Self::Contradictory),
                false => numbers.first().map(|_| Self::NotJudged),
            };
        }
        let fitted = |n: &&Judged| matches!(n.standing, Standing::Fitted(_));
        let inside = counted.iter().all(|n| n.inside);
        Some(match (counted.iter().any(|n| n.scaled), inside) {
            (true, _) => Self::Scaled,
            (false, false) if explained => Self::Differs,
            (false, false) => Self::CauseUnknown,
            (false, true) if counted.iter().any(fitted) => Self::Fitted,
            (false, true) if kind == ClaimKind::Ours => Self::Holds,
            (false, true) => Self::Reproduced,
        })
    }

    /// Whether a number is outside what is accepted.
    pub fn is_outside(self) -> bool {
        matches!(self, Self::Differs | Self::CauseUnknown)
    }
}

/// What a verdict has to know of a number.
#[derive(Debug, Clone, Copy)]
pub struct Judged<'a> {
    pub standing: &'a Standing,
    pub inside: bool,
    /// Whether a run of it is smaller than it is defined.
    pub scaled: bool,
}

/// Mean over the seeds, and its 95 % interval; of a single seed the interval is the value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Measured {
    pub mean: f64,
    pub low: f64,
    pub high: f64,
}

impl Measured {
    /// Nothing if a value is absent.
    pub fn of(values: &[f64]) -> Option<Self> {
        if !values.iter().all(|value| value.is_finite()) {
            return None;
        }
        let found = estimate(values)?;
        let half = found.ci95.unwrap_or(0.0);
        Some(Measured {
            mean: found.mean,
            low: found.mean - half,
            high: found.mean + half,
        })
    }
}

/// Whether figures are accepted, each given for every seed: the whole interval is in the range, and an order holds for
/// every seed.
pub fn accepts(accept: Accept, figures: &[Vec<f64>]) -> bool {
    let there = |values: &Vec<f64>| Measured::of(values);
    let Some(found) = figures.iter().map(there).collect::<Option<Vec<_>>>() else {
        return false;
    };
    match accept {
        Accept::Within(low, high) => found.iter().all(|m| low <= m.low && m.high <= high),
        Accept::Falling(slack) => figures.windows(2).all(|pair| {
            let steps = pair[0].iter().zip(&pair[1]);
            steps.into_iter().all(|(a, b)| *b <= a + slack * a.abs())
        }),
        Accept::Shown => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict<'a>(
        kind: ClaimKind,
        numbers: &[(&'a Standing, bool)],
        explained: bool,
    ) -> Option<Verdict> {
        let judged = |(standing, inside): &(&'a Standing, bool)| Judged {
            standing,
            inside: *inside,
            scaled: false,
        };
        let numbers: Vec<Judged<'a>> = numbers.iter().map(judged).collect();
        Verdict::of(kind, &numbers, explained)
    }

    #[test]
    fn one_number_outside_decides_and_one_fitted_input_is_told() {
        use ClaimKind::{Measured, Ours};
        let judged = &Standing::Judged;
        let fitted = &Standing::Fitted("w".to_owned());
        let unjudged = &Standing::Unjudged("w".to_owned());
        let both = &Standing::Contradictory("w".to_owned());
        let all = [
            (
                Measured,
                vec![(judged, true); 2],
                false,
                Verdict::Reproduced,
            ),
            (Ours, vec![(judged, true)], false, Verdict::Holds),
            (
                Measured,
                vec![(judged, true), (fitted, true)],
                false,
                Verdict::Fitted,
            ),
            (
                Measured,
                vec![(judged, true), (judged, false)],
                true,
                Verdict::Differs,
            ),
            (
                Measured,
                vec![(fitted, false)],
                false,
                Verdict::CauseUnknown,
            ),
            (
                Measured,
                vec![(unjudged, false), (judged, true)],
                false,
                Verdict::Reproduced,
            ),
            (Measured, vec![(unjudged, true)], false, Verdict::NotJudged),
            (
                Measured,
                vec![(unjudged, true), (both, true)],
                false,
                Verdict::Contradictory,
            ),
        ];
        for (kind, numbers, explained, expected) in all {
            assert_eq!(verdict(kind, &numbers, explained), Some(expected));
        }
        assert_eq!(verdict(Measured, &[], true), None);
    }

    #[test]
    fn what_is_too_small_is_not_judged() {
        let small = Judged {
            standing: &Standing::Judged,
            inside: false,
            scaled: true,
        };
        let verdict = Verdict::of(ClaimKind::Measured, &[small], true);
        assert_eq!(verdict, Some(Verdict::Scaled));
    }

    #[test]
    fn the_whole_interval_is_inside_and_an_order_holds_for_every_seed() {
        let within = Accept::Within(1.0, 2.0);
        assert!(accepts(within, &[vec![2.0]]));
        assert!(!accepts(within, &[vec![2.001]]));
        assert!(!accepts(within, &[vec![f64::NAN]]));
        assert!(accepts(within, &[vec![1.5, 1.5, 1.6]]));
        // Their mean is 1.5, but not even its sign is known.
        assert!(!accepts(within, &[vec![1.0, 2.0]]));
        let order = |slack: f64, values: &[&[f64]]| {
            let figures: Vec<Vec<f64>> = values.iter().map(|v| v.to_vec()).collect();
            accepts(Accept::Falling(slack), &figures)
        };
        assert!(order(0.0, &[&[3.0], &[2.0], &[2.0], &[1.0]]));
        assert!(!order(0.0, &[&[3.0], &[2.0], &[2.01]]));
        assert!(order(0.01, &[&[3.0], &[2.0], &[2.01]]));
        assert!(!order(0.0, &[&[3.0, 3.0], &[2.0, 3.1]]));
        assert!(!order(0.0, &[&[f64::INFINITY], &[2.0]]));
        assert!(order(0.0, &[&[-1.0], &[-2.0]]));
        assert!(!accepts(Accept::Shown, &[vec![f64::NAN]]));
    }
}
