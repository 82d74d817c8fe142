//! Runs, their classes, and both as text.
//!
//! A run is written `OP PAGES PLACE VALUE`, as in `w 8 back:512+4 new`: eight pages written with new
//! values where pages stand that were written 512 to 516 page writes ago.
//!
//! | place | the pages |
//! |---|---|
//! | `fresh` | were not used before; one behind the other |
//! | `back:LOW+WIDTH` | were written so many page writes ago, and follow one another in that order |
//! | `on:LOW+WIDTH` | the same, where an earlier run back stopped |
//!
//! With `/shared` or `/sole` behind it a place also says whether another page holds the value that
//! goes.
//!
//! | value | what is written, or what is found by the first read of a page |
//! |---|---|
//! | `-` | no content, or nothing that the run changes |
//! | `new` | what was never written |
//! | `same` | what the page holds |
//! | `copy:LOW+WIDTH` | what other pages hold, last written so many page writes ago, and on from there |
//! | `copyon:N` | what stands behind what an earlier run copied, the Nth before among such runs |
//! | `reborn:LOW+WIDTH` | what was last written so many page writes ago and is held by none |

use std::fmt;
use std::str::FromStr;

use flashlore_trace::Op;

use crate::draw::Draw;

/// Distances in page writes from `low` to `low + width`, equally likely.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gap {
    /// The least, at least 1.
    pub low: u32,
    /// The greatest less the least.
    pub width: u32,
}

impl Gap {
    /// The step of a scale with so many steps to a doubling that holds `gap`.
    pub fn around(gap: u32, steps: u32) -> Gap {
        let gap = gap.max(1);
        let steps = f64::from(steps);
        let step = (f64::from(gap).log2() * steps).floor();
        let edge = |step: f64| (step / steps).exp2().ceil();
        // Rounding may put an edge beyond the gap itself.
        let low = edge(step).min(f64::from(gap)).max(1.0);
        let high = (edge(step + 1.0) - 1.0).clamp(f64::from(gap), f64::from(u32::MAX));
        Gap {
            low: low as u32,
            width: (high - low) as u32,
        }
    }

    pub(super) fn draw(self, draw: &mut Draw) -> u32 {
        match self.width {
            0 => self.low,
            width => self.low + draw.below(width.saturating_add(1)),
        }
    }

    fn octave(self) -> u32 {
        self.low.ilog2()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RunPlace {
    /// Pages that were not used before.
    Fresh,
    /// Pages written so long ago.
    Back {
        gap: Gap,
        /// Whether an earlier run back stopped there.
        on: bool,
        /// Whether another page holds the value that goes; not asked when absent.
        shared: Option<bool>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Worth {
    /// No content, or nothing that the run changes.
    Absent,
    /// What was never written.
    New,
    /// What the page holds.
    Same,
    /// What pages hold that were last written so long ago.
    Copy(Gap),
    /// What stands behind what an earlier copying run copied: 0 is the latest.
    CopyOn(u32),
    /// What no page holds and was last written so long ago.
    Reborn(Gap),
}

/// Pages used one after the other in one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Run {
    /// Read, write or trim.
    pub op: Op,
    /// How many pages, at least 1.
    pub pages: u32,
    pub place: RunPlace,
    pub worth: Worth,
}

/// A run and how often it occurs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunCount {
    /// At least 1.
    pub count: u32,
    pub run: Run,
}

/// Runs that are alike: the same operation, place and kind of value, gaps within a doubling, and the
/// same number of pages up to 8. Written like a run with the gaps' octaves, `w 8 back:9 new`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Class(String);

/// Runs of so many pages and more are of one class.
const LONG: u32 = 8;

impl Run {
    pub fn class(&self) -> Class {
        let place = match self.place {
            RunPlace::Fresh => "fresh".to_owned(),
            RunPlace::Back { gap, on, shared } => {
                format!("{}:{}{}", back(on), gap.octave(), suffix(shared))
            }
        };
        let worth = match self.worth {
            Worth::Copy(gap) => format!("copy:{}", gap.octave()),
            Worth::CopyOn(_) => "copyon".to_owned(),
            Worth::Reborn(gap) => format!("reborn:{}", gap.octave()),
            other => other.to_string(),
        };
        let pages = self.pages.min(LONG);
        Class(format!("{} {pages} {place} {worth}", letter(self.op)))
    }
}

fn letter(op: Op) -> char {
    match op {
        Op::Write => 'w',
        Op::Trim => 't',
        _ => 'r',
    }
}

fn back(on: bool) -> &'static str {
    if on { "on" } else { "back" }
}

fn suffix(shared: Option<bool>) -> &'static str {
    match shared {
        None => "",
        Some(true) => "/shared",
        Some(false) => "/sole",
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.low, self.width)
    }
}

impl fmt::Display for RunPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            RunPlace::Fresh => f.write_str("fresh"),
            RunPlace::Back { gap, on, shared } => write!(f, "{}:{gap}{}", back(on), suffix(shared)),
        }
    }
}

impl fmt::Display for Worth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Worth::Absent => f.write_str("-"),
            Worth::New => f.write_str("new"),
            Worth::Same => f.write_str("same"),
            Worth::Copy(gap) => write!(f, "copy:{gap}"),
            Worth::CopyOn(rank) => write!(f, "copyon:{rank}"),
            Worth::Reborn(gap) => write!(f, "reborn:{gap}"),
        }
    }
}

impl fmt::Display for RunCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Run {
            op,
            pages,
            place,
            worth,
        } = self.run;
        write!(f, "{} {} {pages} {place} {worth}", self.count, letter(op))
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Gap {
    type Err = String;

    fn from_str(text: &str) -> Result<Gap, String> {
        let read = || {
            let (low, width) = text.split_once('+')?;
            let (low, width) = (low.parse::<u32>().ok()?, width.parse::<u32>().ok()?);
            low.checked_add(width)?;
            (low > 0).then_some(Gap { low, width })
        };
        read().ok_or_else(|| format!("'{text}': expected LOW+WIDTH in page writes, as in 512+4"))
    }
}

impl FromStr for RunPlace {
    type Err = String;

    fn from_str(text: &str) -> Result<RunPlace, String> {
        if text == "fresh" {
            return Ok(RunPlace::Fresh);
        }
        let fault = || {
            format!(
                "place '{text}': expected fresh, back:LOW+WIDTH or on:LOW+WIDTH, which /shared or \
                 /sole may follow"
            )
        };
        let (kind, rest) = text.split_once(':').ok_or_else(fault)?;
        let on = match kind {
            "back" => false,
            "on" => true,
            _ => return Err(fault()),
        };
        let (gap, shared) = match rest.split_once('/') {
            None => (rest, None),
            Some((gap, "shared")) => (gap, Some(true)),
            Some((gap, "sole")) => (gap, Some(false)),
            Some(_) => return Err(fault()),
        };
        Ok(RunPlace::Back {
            gap: gap.parse()?,
            on,
            shared,
        })
    }
}

impl FromStr for Worth {
    type Err = String;

    fn from_str(text: &str) -> Result<Worth, String> {
        Ok(match text.split_once(':') {
            None if text == "-" => Worth::Absent,
            None if text == "new" => Worth::New,
            None if text == "same" => Worth::Same,
            Some(("copy", gap)) => Worth::Copy(gap.parse()?),
            Some(("reborn", gap)) => Worth::Reborn(gap.parse()?),
            Some(("copyon", rank)) => Worth::CopyOn(
                rank.parse()
                    .map_err(|_| format!("value '{text}': expected copyon:N"))?,
            ),
            _ => {
                return Err(format!(
                    "value '{text}': expected -, new, same, copy:LOW+WIDTH, copyon:N or \
                     reborn:LOW+WIDTH"
                ));
            }
        })
    }
}

impl FromStr for RunCount {
    type Err = String;

    fn from_str(line: &str) -> Result<RunCount, String> {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [count, op, pages, place, worth] = words[..] else {
            return Err(format!(
                "found {} words, expected 5: COUNT OP PAGES PLACE VALUE",
                words.len()
            ));
        };
        let number = |what: &str, text: &str| match text.parse::<u32>() {
            Ok(number) if number > 0 => Ok(number),
            _ => Err(format!("{what} '{text}': expected a number from 1 up")),
        };
        let run = Run {
            op: match op {
                "r" => Op::Read,
                "w" => Op::Write,
                "t" => Op::Trim,
                _ => return Err(format!("operation '{op}': expected r, w or t")),
            },
            pages: number("pages", pages)?,
            place: place.parse()?,
            worth: worth.parse()?,
        };
        let count = number("count", count)?;
        Ok(RunCount { count, run })
    }
}

impl From<&str> for Class {
    fn from(text: &str) -> Class {
        Class(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn gaps() -> impl Strategy<Value = Gap> {
        (1u32.., 0u32..1000).prop_map(|(low, width)| Gap {
            low,
            width: width.min(u32::MAX - low),
        })
    }

    fn runs() -> impl Strategy<Value = Run> {
        let place = prop_oneof![
            Just(RunPlace::Fresh),
            (gaps(), any::<bool>(), any::<Option<bool>>())
                .prop_map(|(gap, on, shared)| RunPlace::Back { gap, on, shared }),
        ];
        let worth = prop_oneof![
            Just(Worth::Absent),
            Just(Worth::New),
            Just(Worth::Same),
            gaps().prop_map(Worth::Copy),
            any::<u32>().prop_map(Worth::CopyOn),
            gaps().prop_map(Worth::Reborn),
        ];
        let op = prop::sample::select(vec![Op::Read, Op::Write, Op::Trim]);
        (op, 1u32.., place, worth).prop_map(|(op, pages, place, worth)| Run {
            op,
            pages,
            place,
            worth,
        })
    }

    proptest! {
        #[test]
        fn a_run_is_read_as_it_is_written(run in runs(), count in 1u32..) {
            let run = RunCount { count, run };
            prop_assert_eq!(run.to_string().parse::<RunCount>(), Ok(run));
        }

        #[test]
        fn a_step_holds_its_gap_and_no_more_than_its_share(gap in 1u32.., steps in 1u32..1000) {
            let step = Gap::around(gap, steps);
            prop_assert!(step.low <= gap && gap - step.low <= step.width, "{step}");
            let most = f64::from(step.low) * ((1.0 / f64::from(steps)).exp2() - 1.0) + 1.0;
            prop_assert!(f64::from(step.width) <= most, "{step} {most}");
        }

        #[test]
        fn any_text_is_a_run_or_explained(line in "[0-9]{0,3} ?[rwtx]? ?[0-9a-z:+/ -]{0,30}") {
            if let Err(message) = line.parse::<RunCount>() {
                prop_assert!(message.contains("expected"), "{message}");
            }
        }
    }

    #[test]
    fn classes_take_gaps_by_their_octaves() {
        let run = |line: &str| line.parse::<RunCount>().unwrap().run;
        let class = run("1 w 12 back:600+9/sole copy:33+0").class();
        assert_eq!(class.to_string(), "w 8 back:9/sole copy:5");
        assert_eq!(class, run("7 w 9 back:512+9/sole copy:63+2").class());
        assert_ne!(class, run("1 w 12 on:600+9/sole copy:33+0").class());
        assert_ne!(class, run("1 w 7 back:600+9/sole copy:33+0").class());
    }
}
