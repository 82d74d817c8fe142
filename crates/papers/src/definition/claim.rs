//! Claims: what a paper says, what it published for it, and which figures are the same result.
//!
//! A claim is one statement and is counted once, however many numbers it has. What is accepted is written before a run
//! and must be something that a run can miss: [`Item::accept`] refuses ranges that nothing can leave.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::Paper;
use crate::error::PaperError;
use crate::expression::{Expression, TRACE};
use crate::figures::Figures;

/// Where the numbers of a claim come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimKind {
    /// The authors measured them.
    Measured,
    /// They follow from what the authors print.
    Derived,
    /// No paper has them.
    Ours,
}

impl ClaimKind {
    pub const ALL: [Self; 3] = [Self::Measured, Self::Derived, Self::Ours];

    pub fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Derived => "derived",
            Self::Ours => "ours",
        }
    }
}

/// What about a claim a number tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aspect {
    /// A sign, or which is larger.
    Order,
    /// How something depends on something else.
    Shape,
    /// How large it is.
    Size,
    /// Arithmetic that must come out whatever the workload: a check of the program, and no claim.
    Identity,
}

impl Aspect {
    /// Those that have verdicts.
    pub const JUDGED: [Self; 3] = [Self::Order, Self::Shape, Self::Size];

    pub fn name(self) -> &'static str {
        match self {
            Self::Order => "order",
            Self::Shape => "shape",
            Self::Size => "size",
            Self::Identity => "identity",
        }
    }
}

/// What keeps a number from being judged by itself, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "is", content = "because")]
pub enum Standing {
    Judged,
    /// An input was chosen so that it comes out.
    Fitted(String),
    /// The paper contradicts itself.
    Contradictory(String),
    /// It depends on what is not published, or there is nothing to compare it with.
    Unjudged(String),
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// C1, D1, B1 and further.
    pub id: String,
    /// Figures, tables or sections it belongs to.
    pub places: Vec<String>,
    pub kind: ClaimKind,
    pub statement: String,
    /// A few words of the paper.
    pub quote: Option<String>,
    pub source: String,
    /// How the published values were read.
    #[serde(default)]
    pub reading: String,
    pub fitted: Option<String>,
    pub contradictory: Option<String>,
    pub unjudged: Option<String>,
    pub item: Vec<Item>,
}

/// One number of a claim, or one order of several.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Item {
    /// Its name; with `{trace}` in it there is one for each trace.
    pub name: String,
    /// Size of a measure and order of several, if it is left out.
    pub aspect: Option<Aspect>,
    pub measure: Option<String>,
    /// Expressions none of which may be above the one before.
    #[serde(default)]
    pub falling: Vec<String>,
    /// By which share one may be above it nevertheless.
    #[serde(default)]
    pub slack: f64,
    #[serde(default)]
    pub unit: String,
    pub published: Option<f64>,
    /// Accepted distance from it.
    pub tolerance: Option<f64>,
    pub within: Option<[f64; 2]>,
    /// The item, of this claim or as `CLAIM/NAME`, whose place it takes where something is changed: the same figure of
    /// another run, which a known difference may name as its cause.
    pub instead_of: Option<String>,
    /// These three instead of the claim's.
    pub fitted: Option<String>,
    pub contradictory: Option<String>,
    pub unjudged: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Accept {
    Within(f64, f64),
    /// None above the one before, but for this share.
    Falling(f64),
    /// Nothing: the figure is shown.
    Shown,
}

/// An item ready to be judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub name: String,
    pub aspect: Aspect,
    /// One expression, or those of an order.
    pub measures: Vec<Expression>,
    pub accept: Accept,
    pub standing: Standing,
    pub published: Option<f64>,
    pub unit: String,
    /// As [`Item::instead_of`].
    pub instead_of: Option<Instead>,
}

/// The number whose place another takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instead {
    pub claim: String,
    pub item: String,
    /// The item that takes it, as the definition names it: with `{trace}`.
    pub by: String,
}

/// The largest slack of an order.
const MOST_SLACK: f64 = 0.05;
/// How far from a published value a range may reach: as a share of it.
const MOST_SHARE: f64 = 0.4;
/// Or in points, where the unit is percent.
const MOST_POINTS: f64 = 10.0;
/// The widest range where nothing is published: the upper over the lower end.
const WIDEST_RATIO: f64 = 4.0;
/// Or in points, where the unit is percent.
const WIDEST_POINTS: f64 = 40.0;
/// The same of a range that a paper prints.
const WIDEST_PRINTED: (f64, f64) = (2.0, 20.0);
/// For ends that are printed with few digits.
const ROUNDING: f64 = 1e-9;

impl Standing {
    fn of(
        fitted: Option<&String>,
        contradictory: Option<&String>,
        unjudged: Option<&String>,
    ) -> Result<Option<Self>, String> {
        match (fitted, contradictory, unjudged) {
            (None, None, None) => Ok(None),
            (Some(why), None, None) => Ok(Some(Self::Fitted(why.clone()))),
            (None, Some(why), None) => Ok(Some(Self::Contradictory(why.clone()))),
            (None, None, Some(why)) => Ok(Some(Self::Unjudged(why.clone()))),
            _ => Err("expected one of fitted, contradictory and unjudged".to_owned()),
        }
    }

    /// Why it is not simply judged.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Judged => None,
            Self::Fitted(why) | Self::Contradictory(why) | Self::Unjudged(why) => Some(why),
        }
    }

    pub fn name(&self) -> &'static str {
        match self {
            Self::Judged => "judged",
            Self::Fitted(_) => "fitted",
            Self::Contradictory(_) => "contradictory",
            Self::Unjudged(_) => "not judged",
        }
    }

    pub fn is_judged(&self) -> bool {
        matches!(self, Self::Judged | Self::Fitted(_))
    }
}

impl Claim {
    /// Its numbers.
    pub(super) fn rows(&self, paper: &Paper) -> Result<Vec<Row>, PaperError> {
        let mut rows = Vec::new();
        for item in &self.item {
            // An item without it in its name may still have functions over all traces.
            let names: Vec<&str> = match item.name.contains(TRACE) {
                true => paper.traces.iter().map(String::as_str).collect(),
                false => vec![TRACE],
            };
            for trace in names {
                let row = self.row(paper, item, trace);
                let place = format!("claim {}, item {}", self.id, item.name);
                rows.push(row.map_err(|message| paper.fault(place, message))?);
            }
        }
        Ok(rows)
    }

    fn row(&self, paper: &Paper, item: &Item, trace: &str) -> Result<Row, String> {
        let own = Standing::of(
            item.fitted.as_ref(),
            item.contradictory.as_ref(),
            item.unjudged.as_ref(),
        )?;
        let all = Standing::of(
            self.fitted.as_ref(),
            self.contradictory.as_ref(),
            self.unjudged.as_ref(),
        )?;
        let aspect = item.aspect.unwrap_or(match item.falling.is_empty() {
            true => Aspect::Size,
            false => Aspect::Order,
        });
        let standing = match aspect {
            Aspect::Identity => Standing::Judged,
            _ => own.or(all).unwrap_or(Standing::Judged),
        };
        let accept = item.accept(aspect, self.kind, &standing)?;
        let texts = item.measure.iter().chain(&item.falling);
        let measures = texts
            .map(|text| Expression::parse(&text.replace(TRACE, trace), &paper.traces))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Row {
            name: item.name.replace(TRACE, trace),
            aspect,
            measures,
            accept,
            standing,
            published: item.published,
            unit: item.unit.clone(),
            instead_of: self.instead(paper, item, trace),
        })
    }

    /// The number whose place an item takes.
    fn instead(&self, paper: &Paper, item: &Item, trace: &str) -> Option<Instead> {
        let of = item.instead_of.as_ref()?.replace(TRACE, trace);
        let other = |(id, _): &(&str, &str)| paper.claim.iter().any(|claim| claim.id == *id);
        let (claim, name) = of.split_once('/').filter(other).unwrap_or((&self.id, &of));
        Some(Instead {
            claim: claim.to_owned(),
            item: name.to_owned(),
            by: item.name.clone(),
        })
    }
}

impl Row {
    /// Whether it takes the place of a number of a claim.
    pub fn stands_for(&self, claim: &Claim, row: &Row) -> bool {
        let of = self.instead_of.as_ref();
        of.is_some_and(|of| of.claim == claim.id && of.item == row.name)
    }

    /// The runs whose figures it uses.
    pub fn runs(&self) -> BTreeSet<String> {
        let mut needed = BTreeSet::new();
        self.measures.iter().for_each(|e| e.needs(&mut needed));
        needed.into_iter().map(|(run, _)| run).collect()
    }

    /// Each of its figures, for each seed.
    pub fn values(&self, runs: &[Figures], scale: f64, suffix: &str) -> Vec<Vec<f64>> {
        let of = |e: &Expression| {
            runs.iter()
                .map(|seed| e.value(seed, scale, suffix))
                .collect()
        };
        self.measures.iter().map(of).collect()
    }
}

impl Item {
    /// What is accepted, if it is something that can be missed.
    fn accept(
        &self,
        aspect: Aspect,
        kind: ClaimKind,
        standing: &Standing,
    ) -> Result<Accept, String> {
        // An order has a figure more than it has steps; one figure alone is no order.
        let accept = match (self.measure.is_some(), self.falling.len()) {
            (true, 0) => match (self.within, self.tolerance, self.published) {
                (Some([low, high]), None, _) => Accept::Within(low, high),
                (None, Some(by), Some(at)) => Accept::Within(at - by, at + by),
                (None, None, _) => Accept::Shown,
                _ => return Err("expected within, or published with tolerance".to_owned()),
            },
            (false, 2..) => Accept::Falling(self.slack),
            _ => return Err("expected either measure or falling with two or more".to_owned()),
        };
        if !standing.is_judged() {
            return Ok(accept);
        }
        match accept {
            Accept::Shown => Err("nothing says what is accepted".to_owned()),
            Accept::Falling(slack) if !(0.0..=MOST_SLACK).contains(&slack) => {
                Err(format!("slack {slack}: expected 0 to {MOST_SLACK}"))
            }
            Accept::Within(low, high) if aspect != Aspect::Identity => {
                self.can_be_missed(low, high, aspect == Aspect::Size && kind != ClaimKind::Ours)?;
                Ok(accept)
            }
            _ => Ok(accept),
        }
    }

    /// Refuses a range that no outcome leaves, or that says nothing about what was published.
    fn can_be_missed(&self, low: f64, high: f64, is_published: bool) -> Result<(), String> {
        let range = format!("{low} to {high}");
        if !(low.is_finite() && high.is_finite() && low < high) {
            return Err(format!("{range}: expected two ends, the lower one first"));
        }
        let percent = self.unit == "%";
        if is_published && let Some(at) = self.published {
            let share = MOST_SHARE * at.abs();
            let most = match percent {
                true => share.max(MOST_POINTS),
                false => share,
            } + ROUNDING;
            let reaches = low <= at && at <= high && at - low <= most && high - at <= most;
            return match reaches {
                true => Ok(()),
                false => Err(format!(
                    "{range}: expected a range around {at} that reaches no further than {most:.4} from it"
                )),
            };
        }
        // A paper may print a range and no value.
        let (ratio, points) = match is_published {
            true => (WIDEST_PRINTED.0, WIDEST_PRINTED.1),
            false => (WIDEST_RATIO, WIDEST_POINTS),
        };
        let narrow = (percent && high - low <= points + ROUNDING)
            || (low > 0.0 && high / low <= ratio + ROUNDING);
        match narrow {
            true => Ok(()),
            false => Err(format!(
                "{range}: expected ends above 0 whose ratio is at most {ratio}, or at most {points} points of %; a \
                 sign or an order is `falling`"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(text: &str) -> Item {
        toml_edit::de::from_str(&format!("name = \"x\"\n{text}")).unwrap()
    }

    fn accept(text: &str, kind: ClaimKind) -> Result<Accept, String> {
        let aspect = match text.contains("falling") {
            true => Aspect::Order,
            false => Aspect::Size,
        };
        item(text).accept(aspect, kind, &Standing::Judged)
    }

    #[test]
    fn ranges_that_nothing_can_leave_are_refused() {
        use ClaimKind::{Measured, Ours};
        let refused = [
            ("measure = '1'\nwithin = [1, 1e9]", Ours),
            ("measure = '1'\nwithin = [0, 1]", Ours),
            ("measure = '1'\nwithin = [0, 41]\nunit = '%'", Ours),
            ("measure = '1'\nwithin = [1, inf]", Ours),
            ("measure = '1'\nwithin = [2, 1]", Ours),
            ("measure = '1'\nwithin = [0.4, 1]", Measured),
            ("measure = '1'\npublished = 10\ntolerance = 4.1", Measured),
            (
                "measure = '1'\npublished = 10\nwithin = [10.5, 12]",
                Measured,
            ),
            (
                "measure = '1'\npublished = 20\ntolerance = 10.1\nunit = '%'",
                Measured,
            ),
            ("measure = '1'", Measured),
            ("falling = ['1', '2']\nslack = 0.06", Measured),
        ];
        for (text, kind) in refused {
            assert!(accept(text, kind).is_err(), "{text}");
        }
        let taken = [
            ("measure = '1'\nwithin = [0.5, 2]", Ours),
            ("measure = '1'\nwithin = [-10, 30]\nunit = '%'", Ours),
            ("measure = '1'\npublished = 10\ntolerance = 4", Measured),
            (
                "measure = '1'\npublished = 20\ntolerance = 10\nunit = '%'",
                Measured,
            ),
            ("falling = ['1', '2']\nslack = 0.05", Measured),
        ];
        for (text, kind) in taken {
            assert!(accept(text, kind).is_ok(), "{text}");
        }
    }

    #[test]
    fn what_is_not_judged_may_be_shown() {
        let shown = item("measure = '1'");
        let why = Standing::Unjudged("w".to_owned());
        let accept = shown.accept(Aspect::Size, ClaimKind::Measured, &why);
        assert_eq!(accept, Ok(Accept::Shown));
        let identity = item("measure = '1'\nwithin = [0, 1e-9]");
        let accept = identity.accept(Aspect::Identity, ClaimKind::Measured, &Standing::Judged);
        assert_eq!(accept, Ok(Accept::Within(0.0, 1e-9)));
    }
}
