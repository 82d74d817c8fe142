//! A paper's experiments as TOML: workloads, systems, one calibration, checks.
//!
//! A definition that parses is sound: every expression reads, every run and figure it names exists,
//! and every check says what it accepts or why it cannot be judged.

mod series;
mod sound;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::error::PaperError;
use crate::expression::{Expression, TRACE};
use crate::search::Search;

pub use self::series::{Requests, Series, Workload, Zipf};

/// What stands in a run's name in the place of a system for the count of the workload's values.
pub const VALUES: &str = "values";

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// Short name, as given to the command.
    pub name: String,
    /// Title and authors.
    pub title: String,
    /// Where it was published.
    pub source: String,
    /// What `{trace}` stands for.
    pub traces: Vec<String>,
    /// The one input fitted to a published figure, if there is one.
    pub calibration: Option<Calibration>,
    pub system: BTreeMap<String, SystemChoice>,
    /// Workloads, or series of them.
    pub workload: Vec<Series>,
    #[serde(default)]
    pub search: Vec<Search>,
    /// How the results depend on what was fitted or assumed.
    #[serde(default)]
    pub sensitivity: Sensitivity,
    /// What was published, and what is accepted.
    pub check: Vec<Check>,
    pub quick: Option<Quick>,
    /// Where and why results differ from what was published.
    #[serde(default)]
    pub difference: Vec<Difference>,
}

/// What `--quick` chooses: enough to see how an experiment works, in seconds.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quick {
    /// As `--scale`.
    pub scale: f64,
    /// Figures whose checks are done; none for all. There are no variants either way.
    #[serde(default)]
    pub figures: Vec<String>,
}

/// A known difference in plain words, or what else is to be known of results. Its figures are those of the whole
/// experiment with seed 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// Checks that it is about; none for all of them.
    #[serde(default)]
    pub checks: Vec<String>,
    pub title: String,
    /// Paragraphs and tables in Markdown.
    pub text: String,
}

/// A device setting that is searched until a figure has its published value, then frozen.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    pub run: String,
    /// Its figure, which falls when the setting grows.
    pub figure: String,
    pub target: f64,
    pub tolerance: f64,
    /// The setting, as `--set` names it.
    pub setting: String,
    pub from: f64,
    pub to: f64,
}

/// A preset with settings of its own.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SystemChoice {
    pub preset: String,
    /// `KEY=VALUE` texts.
    #[serde(default)]
    pub set: Vec<String>,
}

/// Runs repeated with something changed.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sensitivity {
    pub workloads: Vec<String>,
    pub systems: Vec<String>,
    pub column: Vec<Column>,
    pub variant: Vec<Variant>,
}

/// A column of the table of variants.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// Columns of one name here make a table.
    pub table: String,
    pub name: String,
    pub measure: String,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    pub name: String,
    /// Added to the calibrated setting.
    #[serde(default)]
    pub offset: f64,
    /// `KEY=VALUE` texts that win over those of the workload.
    #[serde(default)]
    pub set: Vec<String>,
}

/// What a figure can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureKind {
    /// Must come out whatever the workload: arithmetic or an identity.
    Exact,
    /// A range or an order that a workload with the published statistics must show.
    Shape,
    /// An input was chosen so that it comes out.
    Fitted,
    /// The paper contradicts itself.
    Contradictory,
    /// Depends on what is not published.
    NotReproducible,
}

/// One claim.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// C1, D1, B1 and further.
    pub id: String,
    /// Figures, tables or sections it belongs to.
    pub figures: Vec<String>,
    pub claim: String,
    pub source: String,
    pub kind: FigureKind,
    /// Why, unless exact or shape.
    pub reason: Option<String>,
    pub item: Vec<Item>,
}

/// One number of a claim, or one order of several.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Item {
    /// Its name; with `{trace}` in it there is one for each trace.
    pub name: String,
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
    /// Instead of the check's.
    pub kind: Option<FigureKind>,
    /// Instead of the check's.
    pub reason: Option<String>,
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
    /// One expression, or those of an order.
    pub measures: Vec<Expression>,
    pub accept: Accept,
    pub kind: FigureKind,
    pub reason: Option<String>,
    pub published: Option<f64>,
    pub unit: String,
}

impl Row {
    /// The runs whose figures it uses.
    pub fn runs(&self) -> BTreeSet<String> {
        let mut needed = BTreeSet::new();
        self.measures.iter().for_each(|e| e.needs(&mut needed));
        needed.into_iter().map(|(run, _)| run).collect()
    }
}

impl Paper {
    /// Reads a definition.
    pub fn parse(name: &str, text: &str) -> Result<Self, PaperError> {
        let paper: Paper = toml_edit::de::from_str(text).map_err(|source| PaperError::Syntax {
            paper: name.to_owned(),
            source: Box::new(source),
        })?;
        paper.check_definition()?;
        Ok(paper)
    }

    pub fn workloads(&self) -> Vec<Workload> {
        self.workload.iter().flat_map(Series::workloads).collect()
    }

    /// The numbers of a check.
    pub fn rows(&self, check: &Check) -> Result<Vec<Row>, PaperError> {
        let mut rows = Vec::new();
        for item in &check.item {
            // An item without it in its name may still have functions over all traces.
            let names: Vec<&str> = match item.name.contains(TRACE) {
                true => self.traces.iter().map(String::as_str).collect(),
                false => vec![TRACE],
            };
            for trace in names {
                let row = self.row(check, item, trace);
                let place = format!("check {}, item {}", check.id, item.name);
                rows.push(row.map_err(|message| self.fault(place, message))?);
            }
        }
        Ok(rows)
    }

    fn row(&self, check: &Check, item: &Item, trace: &str) -> Result<Row, String> {
        let texts = item.measure.iter().chain(&item.falling);
        // An order has a figure more than it has steps; one figure alone is no order.
        let accept = match (item.measure.is_some(), item.falling.len()) {
            (true, 0) => match (item.within, item.tolerance, item.published) {
                (Some([low, high]), None, _) => Accept::Within(low, high),
                (None, Some(by), Some(at)) => Accept::Within(at - by, at + by),
                (None, None, _) => Accept::Shown,
                _ => return Err("expected within, or published with tolerance".to_owned()),
            },
            (false, 2..) => Accept::Falling(item.slack),
            _ => return Err("expected either measure or falling with two or more".to_owned()),
        };
        let kind = item.kind.unwrap_or(check.kind);
        let reason = item.reason.clone().or_else(|| check.reason.clone());
        let judged = matches!(
            kind,
            FigureKind::Exact | FigureKind::Shape | FigureKind::Fitted
        );
        if judged && accept == Accept::Shown {
            return Err("nothing says what is accepted".to_owned());
        }
        if !matches!(kind, FigureKind::Exact | FigureKind::Shape) && reason.is_none() {
            return Err("a reason is missing".to_owned());
        }
        let measures = texts
            .map(|text| Expression::parse(&text.replace(TRACE, trace), &self.traces))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Row {
            name: item.name.replace(TRACE, trace),
            measures,
            accept,
            kind,
            reason,
            published: item.published,
            unit: item.unit.clone(),
        })
    }

    /// The expressions of the columns of the table of variants.
    pub fn columns(&self) -> Result<Vec<Expression>, PaperError> {
        let parse = |column: &Column| {
            Expression::parse(&column.measure, &self.traces)
                .map_err(|message| self.fault(format!("column {}", column.name), message))
        };
        self.sensitivity.column.iter().map(parse).collect()
    }

    /// The expression of a search.
    pub fn measure(&self, search: &Search) -> Result<Expression, PaperError> {
        Expression::parse(&search.measure, &self.traces)
            .map_err(|message| self.fault(format!("search {}", search.name), message))
    }

    fn fault(&self, place: String, message: String) -> PaperError {
        PaperError::Definition {
            paper: self.name.clone(),
            place,
            message,
        }
    }

    /// Figures, tables and sections that have checks.
    pub fn figures(&self) -> BTreeSet<&str> {
        let figures = self.check.iter().flat_map(|check| &check.figures);
        figures.map(String::as_str).collect()
    }
}

/// What a scale has to be.
pub(crate) const EXPECTED_SCALE: &str = "expected a number above 0 and at most 1";

/// Whether a device can be built at it.
pub(crate) fn is_scale(factor: f64) -> bool {
    factor > 0.0 && factor <= 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOUND: &str = r#"
name = "small"
title = "t"
source = "s"
traces = ["web", "mail"]
calibration = { run = "web/plain", figure = "erases", target = 1, tolerance = 1, setting = "x", from = 0, to = 1 }
system.plain = { preset = "plain" }
sensitivity = { workloads = [], systems = [], column = [], variant = [] }
workload = [
    { id = "{profile}", profiles = ["web", "mail"], systems = ["plain"], values = true },
    { id = "z/{profile}/{a}-{n}", profiles = ["web"], zipf = { exponents = [0.0, 0.5], values = [1.0, 2.0] }, systems = ["plain"] },
]
[[check]]
id = "C1"
figures = ["1"]
claim = "c"
source = "s"
kind = "shape"
item = [
    { name = "{trace}", measure = "erases@{trace}/plain", published = 5, tolerance = 2 },
    { name = "largest", falling = ["max(erases@{trace}/plain)", "erases@z/web/0.5-2/plain"] },
]
"#;

    fn error(from: &str, to: &str) -> String {
        assert!(SOUND.contains(from));
        let text = SOUND.replace(from, to);
        Paper::parse("small", &text).unwrap_err().to_string()
    }

    #[test]
    fn series_and_items_are_expanded() {
        let paper = Paper::parse("small", SOUND).unwrap();
        let ids: Vec<String> = paper.workloads().into_iter().map(|w| w.id).collect();
        let zipf = ["z/web/0-1", "z/web/0-2", "z/web/0.5-1", "z/web/0.5-2"];
        assert_eq!(ids, [&["web", "mail"][..], &zipf[..]].concat());
        let rows = paper.rows(&paper.check[0]).unwrap();
        let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["web", "mail", "largest"]);
        assert_eq!(rows[0].accept, Accept::Within(3.0, 7.0));
        assert_eq!(rows[2].accept, Accept::Falling(0.0));
        assert_eq!(rows[2].measures.len(), 2);
    }

    #[test]
    fn contradictions_are_refused() {
        let run = error(
            "erases@{trace}/plain\", published",
            "erases@{trace}/ca\", published",
        );
        assert_eq!(run, "small: erases@mail/ca: there is no such run");
        let figure = error(
            "erases@{trace}/plain\", published",
            "erase@{trace}/plain\", published",
        );
        assert!(
            figure.contains("erase@mail/plain: expected one of requests, "),
            "{figure}"
        );
        let accepted = error(", published = 5, tolerance = 2", "");
        assert!(
            accepted.ends_with("item {trace}: nothing says what is accepted"),
            "{accepted}"
        );
        let reason = error("kind = \"shape\"", "kind = \"fitted\"");
        assert!(reason.ends_with("a reason is missing"), "{reason}");
        let twice = error(
            "profiles = [\"web\", \"mail\"]",
            "profiles = [\"web\", \"web\"]",
        );
        assert!(
            twice.contains("workload web: there are two runs web/plain"),
            "{twice}"
        );
        let system = error(
            "values = true",
            "values = true }, { id = \"x\", profiles = [\"web\"], systems = [\"y\"]",
        );
        assert!(
            system.ends_with("workload x: there is no system y"),
            "{system}"
        );
        let single = error("falling = [\"max(erases@{trace}/plain)\", ", "falling = [");
        assert!(
            single.contains("expected either measure or falling"),
            "{single}"
        );
        assert!(error("kind = \"shape\"", "kind = \"likely\"").contains("likely"));
        let quick = |text: &str| error("traces =", &format!("{text}\ntraces ="));
        let figure = quick("quick = { scale = 0.1, figures = [\"2\"] }");
        assert_eq!(figure, "small: quick: no check belongs to figure '2'");
        let scale = quick("quick = { scale = 2 }");
        assert!(
            scale.ends_with("quick: scale 2: expected a number above 0 and at most 1"),
            "{scale}"
        );
        let check = quick("difference = [{ checks = [\"C2\"], title = \"t\", text = \"x\" }]");
        assert_eq!(check, "small: difference t: there is no check C2");
    }
}
