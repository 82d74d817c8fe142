//! A paper's experiments as TOML: workloads, systems, one calibration, claims.
//!
//! A definition that parses is sound: every expression reads, every run and figure it names exists,
//! and every claim says what it accepts, which a run can miss, or why it cannot be judged.

mod claim;
mod series;
mod sound;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::error::PaperError;
use crate::expression::Expression;
use crate::search::Search;

pub use self::claim::{Accept, Aspect, Claim, ClaimKind, Instead, Item, Row, Standing};
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
    /// The names of the files that are the trace behind a profile, with at most one `*`.
    #[serde(default)]
    pub original: BTreeMap<String, String>,
    pub system: BTreeMap<String, SystemChoice>,
    /// Workloads, or series of them.
    pub workload: Vec<Series>,
    #[serde(default)]
    pub search: Vec<Search>,
    /// How the results depend on what was fitted or assumed.
    #[serde(default)]
    pub sensitivity: Sensitivity,
    /// What was published, and what is accepted.
    pub claim: Vec<Claim>,
    /// Figures and tables of the paper that claim nothing measurable, with the reason.
    #[serde(default)]
    pub without_claim: BTreeMap<String, String>,
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
    /// Figures whose claims are judged; none for all. There are no variants either way.
    #[serde(default)]
    pub figures: Vec<String>,
}

/// A known difference in plain words, or what else is to be known of results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// Claims that it is about; none for all of them.
    #[serde(default)]
    pub claims: Vec<String>,
    pub title: String,
    /// The experiments that show the cause: `variant NAME`, or `item CLAIM/NAME` with a number that stands in the place
    /// of another. Without one that moves what is outside the cause is not known.
    #[serde(default)]
    pub shown_by: Vec<String>,
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
    /// The largest factor on the workloads of variants; none where they are as large as the others.
    pub scale: Option<f64>,
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
    /// Further ones for workloads by name, which win over those.
    #[serde(default)]
    pub set_for: BTreeMap<String, Vec<String>>,
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

    /// The numbers of a claim.
    pub fn rows(&self, claim: &Claim) -> Result<Vec<Row>, PaperError> {
        claim.rows(self)
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

    pub(crate) fn fault(&self, place: String, message: String) -> PaperError {
        PaperError::Definition {
            paper: self.name.clone(),
            place,
            message,
        }
    }

    /// Figures, tables and sections that have claims.
    pub fn figures(&self) -> BTreeSet<&str> {
        let places = self.claim.iter().flat_map(|claim| &claim.places);
        places.map(String::as_str).collect()
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
[[claim]]
id = "C1"
places = ["1"]
statement = "c"
source = "s"
kind = "measured"
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
        let rows = paper.rows(&paper.claim[0]).unwrap();
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
            figure.contains("erase@mail/plain: expected one of factor, requests, "),
            "{figure}"
        );
        let accepted = error(", published = 5, tolerance = 2", "");
        assert!(
            accepted.ends_with("item {trace}: nothing says what is accepted"),
            "{accepted}"
        );
        let range = error("tolerance = 2", "tolerance = 3");
        assert!(
            range.contains("item {trace}: 2 to 8: expected a range around 5"),
            "{range}"
        );
        let two = error(
            "kind = \"measured\"",
            "kind = \"measured\"\nfitted = \"a\"\nunjudged = \"b\"",
        );
        assert!(
            two.ends_with("expected one of fitted, contradictory and unjudged"),
            "{two}"
        );
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
        assert!(error("kind = \"measured\"", "kind = \"likely\"").contains("likely"));
        let quick = |text: &str| error("traces =", &format!("{text}\ntraces ="));
        let figure = quick("quick = { scale = 0.1, figures = [\"2\"] }");
        assert_eq!(figure, "small: quick: no claim belongs to figure '2'");
        let scale = quick("quick = { scale = 2 }");
        assert!(
            scale.ends_with("quick: scale 2: expected a number above 0 and at most 1"),
            "{scale}"
        );
        let variants = error("systems = [], column", "systems = [], scale = 0, column");
        assert!(
            variants.ends_with("sensitivity: scale 0: expected a number above 0 and at most 1"),
            "{variants}"
        );
        let claim = quick("difference = [{ claims = [\"C2\"], title = \"t\", text = \"x\" }]");
        assert_eq!(claim, "small: difference t: there is no claim C2");
        let shown = |by: &str| {
            quick(&format!(
                "difference = [{{ claims = [\"C1\"], title = \"t\", shown_by = [\"{by}\"], text = \"x\" }}]"
            ))
        };
        assert_eq!(
            shown("variant one die"),
            "small: difference t: shown_by 'variant one die': expected `variant NAME`, or `item CLAIM/NAME` with \
             instead_of, of those that there are"
        );
        assert!(shown("item C1/nothing").contains("'item C1/nothing'"));
        let hours = error("values = true", "values = true, hours = 24");
        assert_eq!(
            hours,
            "small: workload web: hours are for values alone, and there are systems"
        );
        let variant = "variant = [{ name = \"v\", set_for = { x = [] } }]";
        let set_for = error("variant = []", variant);
        assert_eq!(set_for, "small: variant v: set_for x: it is not varied");
        let place = quick("without_claim = { \"1\" = \"w\" }");
        assert_eq!(place, "small: without_claim 1: there are claims of it");
    }
}
