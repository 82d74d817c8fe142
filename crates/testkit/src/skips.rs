use std::ffi::OsString;
use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

/// The list of accepted skips.
const LIST: &str = include_str!("../../../.ci/skips.txt");

/// How skips are judged: by the environment and a list.
#[derive(Debug)]
pub struct Skips {
    /// Whether skips that are not listed fail.
    strict: bool,
    /// The file that is told of each skip.
    log: Option<PathBuf>,
    list: Vec<(String, String)>,
}

impl Skips {
    /// The list of the repository, in an environment: `CI=true` makes it strict, `FLASHLORE_SKIPS` names a file to
    /// which each accepted skip is appended.
    pub fn new(environment: impl Fn(&str) -> Option<OsString>) -> Skips {
        Skips::with_list(environment, LIST)
    }

    /// As [`Skips::new`] with another list.
    ///
    /// # Panics
    /// A line is neither a comment nor a name and a reason.
    pub fn with_list(environment: impl Fn(&str) -> Option<OsString>, list: &str) -> Skips {
        let lines = list
            .lines()
            .filter(|line| !line.starts_with('#') && !line.trim().is_empty());
        let entry = |line: &str| match line.split_once(": ") {
            Some((name, reason)) if !reason.trim().is_empty() => {
                (name.to_owned(), reason.trim().to_owned())
            }
            _ => panic!(".ci/skips.txt: expected \"NAME: REASON\", found {line:?}"),
        };
        Skips {
            strict: environment("CI").is_some_and(|value| value == "true"),
            log: environment("FLASHLORE_SKIPS").map(PathBuf::from),
            list: lines.map(entry).collect(),
        }
    }

    /// The names on the list.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|(name, _)| name.as_str())
    }

    /// Says that something was skipped.
    ///
    /// # Panics
    /// Skips are strict and the list lacks the name, or the log cannot be written.
    #[track_caller]
    pub fn skip(&self, name: &str, what: impl Display) {
        let what = what.to_string();
        let what = what.trim();
        println!("skipped: {name}: {what}");
        assert!(
            !self.strict || self.names().any(|listed| listed == name),
            "this test cannot run here: {what}. In continuous integration that is a failure: install what is missing \
             (.ci/run has the packages), or, where a machine cannot have it, list {name:?} with a reason in \
             .ci/skips.txt"
        );
        if let Some(log) = &self.log {
            // One write, so that lines of several processes stay whole.
            let line = format!("{name}: {}\n", what.replace('\n', " "));
            let file = OpenOptions::new().create(true).append(true).open(log);
            file.and_then(|mut file| file.write_all(line.as_bytes()))
                .unwrap_or_else(|error| panic!("FLASHLORE_SKIPS={}: {error}", log.display()));
        }
    }
}
