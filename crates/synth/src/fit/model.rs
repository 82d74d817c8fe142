//! The fit as a file: TOML whose tables of runs are text, a line each.

use std::collections::{BTreeMap, BTreeSet};

use flashlore_units::Nanos;
use serde::{Deserialize, Serialize};

use super::run::{Class, Run, RunCount};
use crate::error::ProfileError;
use crate::feasible::{Fault, at_least};

#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    pub name: String,
    /// One line for lists.
    pub description: String,
    /// What it was fitted to.
    pub source: String,
    pub content: bool,
    /// Requests to a burst, on average, and the mean time between them.
    pub burst: f64,
    /// Mean time between the requests of a burst.
    pub within: Nanos,
    /// Sizes of reads and of writes and trims.
    pub sizes: RequestSizes,
    pub epochs: Vec<Epoch>,
    /// Which class of runs follows which.
    pub following: Vec<Following>,
}

/// How many pages requests have, before the end of a run cuts them: pages and share of the requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestSizes {
    pub reads: Vec<(u32, f64)>,
    /// Of writes and trims.
    pub writes: Vec<(u32, f64)>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Epoch {
    /// From its beginning to that of the next.
    pub duration: Nanos,
    pub runs: Vec<RunCount>,
}

/// How often a run of one class came behind runs of others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Following {
    /// At least 1.
    pub count: u32,
    /// The classes of the runs before, the latest at the end.
    pub before: Vec<Class>,
    pub after: Class,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    description: String,
    source: String,
    fit: Head,
    sizes: RequestSizes,
    following: FollowingText,
    epoch: Vec<EpochText>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    content: bool,
    burst: f64,
    within: Nanos,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FollowingText {
    classes: String,
    table: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EpochText {
    duration: Nanos,
    runs: String,
}

/// A workload takes at most so long before it is scaled: 146 years.
const LONGEST_NS: u64 = 1 << 62;

/// The most classes of a context.
const LONGEST_CONTEXT: usize = 16;

const HEAD: &str = "\
# A fit: how the pages and values of a workload follow one another, measured on a trace. Workloads like
# it are made from these tables. docs/workloads.md, \"Fits\", explains the model and each word.
#
# runs:  COUNT OP PAGES PLACE VALUE, of each epoch; distances are counted in page writes
# table: COUNT CLASSES > CLASS, how often a run of the class came behind runs of the classes, which are
#        numbered from 0 in the order of the list
";

impl Fit {
    /// Reads a fit.
    pub fn parse(origin: &str, text: &str) -> Result<Fit, ProfileError> {
        let file: File = toml_edit::de::from_str(text).map_err(|source| ProfileError::Syntax {
            origin: origin.to_owned(),
            source: Box::new(source),
        })?;
        let invalid = |(key, message): Fault| ProfileError::Invalid {
            origin: origin.to_owned(),
            key,
            message,
        };
        let epoch = |(at, epoch): (usize, &EpochText)| {
            let runs = lines(&epoch.runs, |line| line.parse()).map_err(|message| {
                invalid(("epoch.runs", format!("of epoch {}, {message}", at + 1)))
            })?;
            let duration = epoch.duration;
            Ok(Epoch { duration, runs })
        };
        let epochs = file.epoch.iter().enumerate().map(epoch);
        let fit = Fit {
            name: file.name,
            description: file.description,
            source: file.source,
            content: file.fit.content,
            burst: file.fit.burst,
            within: file.fit.within,
            sizes: file.sizes,
            epochs: epochs.collect::<Result<_, ProfileError>>()?,
            following: following(&file.following)
                .map_err(|message| invalid(("following.table", message)))?,
        };
        fit.check().map_err(invalid)?;
        Ok(fit)
    }

    /// The text that [`Fit::parse`] reads.
    pub fn to_text(&self) -> String {
        let file = File {
            name: self.name.clone(),
            description: self.description.clone(),
            source: self.source.clone(),
            fit: Head {
                content: self.content,
                burst: self.burst,
                within: self.within,
            },
            sizes: self.sizes.clone(),
            following: FollowingText::from(&self.following[..]),
            epoch: self.epochs.iter().map(EpochText::from).collect(),
        };
        let text = toml_edit::ser::to_string_pretty(&file).expect("plain data");
        format!("{HEAD}{text}")
    }

    /// Page accesses of the whole workload.
    pub fn pages(&self) -> u64 {
        let runs = self.epochs.iter().flat_map(|epoch| &epoch.runs);
        runs.map(|run| u64::from(run.count) * u64::from(run.run.pages))
            .fold(0, u64::saturating_add)
    }

    /// Lines of its tables.
    pub fn lines(&self) -> usize {
        let runs: usize = self.epochs.iter().map(|epoch| epoch.runs.len()).sum();
        runs + self.following.len()
    }

    fn check(&self) -> Result<(), Fault> {
        at_least("fit.burst", self.burst, 1.0)?;
        for (key, sizes) in [
            ("sizes.reads", &self.sizes.reads),
            ("sizes.writes", &self.sizes.writes),
        ] {
            let total: f64 = sizes.iter().map(|size| size.1).sum();
            let sound = |&(pages, share): &(u32, f64)| pages > 0 && (0.0..=1.0).contains(&share);
            if !sizes.iter().all(sound) || !(0.99..=1.01).contains(&total) {
                return Err((
                    key,
                    format!(
                        "found {sizes:?}, expected [pages, share] pairs with pages above 0 and shares \
                         that make 1"
                    ),
                ));
            }
        }
        if self.pages() == 0 || self.pages() >= u64::from(u32::MAX) {
            let found = self.pages();
            return Err((
                "epoch.runs",
                format!(
                    "{found} page accesses in all, expected from 1 to {}",
                    u32::MAX - 1
                ),
            ));
        }
        let durations = self.epochs.iter().map(|epoch| epoch.duration.0);
        let total = durations.fold(0, u64::saturating_add);
        if total > LONGEST_NS {
            return Err((
                "epoch.duration",
                format!(
                    "{} in all, expected at most {}",
                    Nanos(total),
                    Nanos(LONGEST_NS)
                ),
            ));
        }
        let mut runs = self.epochs.iter().flat_map(|epoch| &epoch.runs);
        if let Some(run) = runs.find(|run| run.run.fault(self.content)) {
            return Err((
                "epoch.runs",
                format!(
                    "'{run}': expected a value where a page is written or first read, and '-' \
                         in trims, in reads of pages that were used, and without content"
                ),
            ));
        }
        self.check_following()
    }

    fn check_following(&self) -> Result<(), Fault> {
        let classes = self.classes();
        for row in &self.following {
            if row.before.len() > LONGEST_CONTEXT {
                return Err((
                    "following.table",
                    format!(
                        "found a context of {} classes, expected at most {LONGEST_CONTEXT}",
                        row.before.len()
                    ),
                ));
            }
            let mut all = row.before.iter().chain([&row.after]);
            if let Some(class) = all.find(|class| !classes.contains_key(class)) {
                return Err((
                    "following.classes",
                    format!("'{class}': no run of any epoch is of this class"),
                ));
            }
        }
        Ok(())
    }

    /// Classes that occur, each with its number.
    pub(super) fn classes(&self) -> BTreeMap<Class, u32> {
        let runs = self.epochs.iter().flat_map(|epoch| &epoch.runs);
        let all: BTreeSet<Class> = runs.map(|run| run.run.class()).collect();
        all.into_iter().zip(0..).collect()
    }
}

impl Run {
    /// Whether it has a value where there can be none, or none where there must be one.
    fn fault(&self, content: bool) -> bool {
        use super::run::{RunPlace, Worth};
        use flashlore_trace::Op;
        let brings = match self.op {
            Op::Write => true,
            Op::Trim => false,
            _ => self.place == RunPlace::Fresh,
        };
        let trims_nothing = self.op == Op::Trim && self.place == RunPlace::Fresh;
        trims_nothing || (self.worth != Worth::Absent) != (brings && content)
    }
}

impl From<&[Following]> for FollowingText {
    fn from(following: &[Following]) -> FollowingText {
        let named = |row: &Following| [&row.before[..], std::slice::from_ref(&row.after)].concat();
        let classes: BTreeSet<Class> = following.iter().flat_map(named).collect();
        let numbers: BTreeMap<&Class, usize> = classes.iter().zip(0..).collect();
        let line = |row: &Following| {
            let before: Vec<String> = row.before.iter().map(|c| numbers[c].to_string()).collect();
            format!(
                "{} {} > {}",
                row.count,
                before.join(" "),
                numbers[&row.after]
            )
        };
        FollowingText {
            classes: table(classes.iter().map(Class::to_string)),
            table: table(following.iter().map(line)),
        }
    }
}

/// Lines as a text of their own.
fn table(lines: impl Iterator<Item = String>) -> String {
    let lines: Vec<String> = lines.collect();
    format!("\n{}\n", lines.join("\n"))
}

impl From<&Epoch> for EpochText {
    fn from(epoch: &Epoch) -> EpochText {
        EpochText {
            duration: epoch.duration,
            runs: table(epoch.runs.iter().map(RunCount::to_string)),
        }
    }
}

/// The lines of a table that are not empty, or which of them is wrong.
fn lines<T>(text: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    let lines = text.trim().lines().enumerate();
    lines
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(at, line)| read(line).map_err(|message| format!("line {}: {message}", at + 1)))
        .collect()
}

fn following(text: &FollowingText) -> Result<Vec<Following>, String> {
    let classes: Vec<Class> = text.classes.trim().lines().map(Class::from).collect();
    let class = |word: &str| classes.get(word.parse::<usize>().ok()?).cloned();
    let row = |line: &str| {
        let (before, after) = line.split_once('>')?;
        let mut before = before.split_ascii_whitespace();
        let count = before
            .next()?
            .parse()
            .ok()
            .filter(|&count: &u32| count > 0)?;
        let before = before.map(class).collect::<Option<Vec<_>>>()?;
        let after = class(after.trim())?;
        Some(Following {
            count,
            before,
            after,
        })
    };
    lines(&text.table, |line| {
        let last = classes.len().saturating_sub(1);
        row(line)
            .filter(|row| !row.before.is_empty())
            .ok_or_else(|| {
                format!("'{line}': expected COUNT CLASSES > CLASS with classes from 0 to {last}")
            })
    })
}

/// A share of sizes as the file has it: four digits say enough.
pub(super) fn rounded(share: f64) -> f64 {
    (share * 1e4).round() / 1e4
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        name = "x"
        description = "y"
        source = "z"
        [fit]
        content = true
        burst = 2.0
        within = "1ms"
        [sizes]
        reads = [[1, 1.0]]
        writes = [[1, 0.5], [8, 0.5]]
        [following]
        classes = """
w 1 fresh new
w 1 back:0/sole same"""
        table = """
        3 0 > 1
        """
        [[epoch]]
        duration = "1s"
        runs = """
        4 w 1 fresh new
        3 w 1 back:1+0/sole same
        """
    "#;

    #[test]
    fn a_fit_is_read_as_it_is_written() {
        let fit = Fit::parse("t", TEXT).unwrap();
        assert_eq!((fit.pages(), fit.lines()), (7, 3));
        assert_eq!(Fit::parse("t", &fit.to_text()).unwrap(), fit);
    }

    #[test]
    fn mistakes_are_explained() {
        for (from, to, wanted) in [
            ("4 w", "0 w", "epoch.runs: of epoch 1, line 1: count '0'"),
            ("fresh new\n", "fresh -\n", "expected a value where"),
            (
                "content = true",
                "content = false",
                "expected a value where",
            ),
            ("4 w 1 fresh", "4 t 1 fresh", "expected a value where"),
            ("1+0/sole", "0+1", "expected LOW+WIDTH"),
            ("4 w 1", "4000000000 w 9", "page accesses in all"),
            (" > ", " < ", "following.table: line 1"),
            ("> 1", "> 2", "with classes from 0 to 1"),
            ("w 1 fresh new\nw", "x\nw", "following.classes: 'x': no run"),
            (
                "duration = \"1s\"",
                "duration = \"150000d\"",
                "epoch.duration: ",
            ),
            (
                "[8, 0.5]",
                "[8, 0.6]",
                "sizes.writes: found [(1, 0.5), (8, 0.6)], expected [pages, share]",
            ),
            ("burst = 2.0", "burst = 0.5", "fit.burst"),
            ("burst = 2.0", "brust = 2.0", "unknown field"),
        ] {
            assert!(TEXT.contains(from), "{from}");
            let error = Fit::parse("t", &TEXT.replace(from, to)).unwrap_err();
            assert!(error.to_string().contains(wanted), "{to}: {error}");
        }
    }
}
