//! Names of snapshots and marks, in the file `names.json` beside the volume.
//!
//! The volume knows instants only. The file is replaced as a whole, durably, after the volume has made a snapshot
//! durable: a crash in between leaves a snapshot without a name, which is listed by its instant. A name whose
//! snapshot is gone is not shown.

use std::io;

use serde::{Deserialize, Serialize};

use crate::error::ServeError;
use crate::home::Home;

/// A name and the instant it stands for, in nanoseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Named {
    /// The name.
    pub name: String,
    /// The instant.
    pub instant: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    snapshots: Vec<Named>,
    /// In the order of their instants.
    marks: Vec<Named>,
}

/// The names of a volume.
#[derive(Debug)]
pub struct Names {
    home: Home,
    stored: Stored,
}

/// The file.
pub(crate) const NAMES: &str = "names.json";
/// Marks that are remembered; the oldest go first.
pub const MOST_MARKS: usize = 10_000;

impl Names {
    /// Reads the names; none if there is no file.
    ///
    /// # Errors
    /// A file that cannot be read, or does not hold names.
    pub fn load(home: &Home) -> Result<Self, ServeError> {
        let path = home.names();
        let stored = match home.read(NAMES) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| ServeError::Content {
                path,
                why: format!("expected names of snapshots and marks: {error}"),
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Stored::default(),
            Err(error) => return Err(ServeError::file("read", &path)(error)),
        };
        let home = home.clone();
        Ok(Names { home, stored })
    }

    /// Named snapshots.
    pub fn snapshots(&self) -> &[Named] {
        &self.stored.snapshots
    }

    /// The instant of a snapshot.
    pub fn snapshot(&self, name: &str) -> Option<u64> {
        let named = self.stored.snapshots.iter().find(|s| s.name == name);
        named.map(|named| named.instant)
    }

    /// The name of the snapshot of an instant.
    pub fn name_of(&self, instant: u64) -> Option<&str> {
        let named = self.stored.snapshots.iter().find(|s| s.instant == instant);
        named.map(|named| named.name.as_str())
    }

    /// Marks, oldest first.
    pub fn marks(&self) -> &[Named] {
        &self.stored.marks
    }

    /// The instant of the last mark of that name.
    pub fn mark(&self, name: &str) -> Option<u64> {
        let mut marks = self.stored.marks.iter().rev();
        marks
            .find(|mark| mark.name == name)
            .map(|mark| mark.instant)
    }

    /// The last mark at an instant or before.
    pub fn mark_before(&self, instant: u64) -> Option<&Named> {
        let marks = &self.stored.marks;
        marks[..marks.partition_point(|m| m.instant <= instant)].last()
    }

    /// Names a snapshot.
    ///
    /// # Errors
    /// The file cannot be written; nothing has changed then.
    pub fn add_snapshot(&mut self, named: Named) -> Result<(), ServeError> {
        self.change(|stored| stored.snapshots.push(named))
    }

    /// Forgets the name of a snapshot.
    ///
    /// # Errors
    /// As [`Names::add_snapshot`].
    pub fn remove_snapshot(&mut self, instant: u64) -> Result<(), ServeError> {
        self.change(|stored| stored.snapshots.retain(|s| s.instant != instant))
    }

    /// Remembers a mark.
    ///
    /// # Errors
    /// As [`Names::add_snapshot`].
    pub fn add_mark(&mut self, named: Named) -> Result<(), ServeError> {
        self.change(|stored| {
            let at = stored.marks.partition_point(|m| m.instant <= named.instant);
            stored.marks.insert(at, named);
            let extra = stored.marks.len().saturating_sub(MOST_MARKS);
            stored.marks.drain(..extra);
        })
    }

    fn change(&mut self, change: impl FnOnce(&mut Stored)) -> Result<(), ServeError> {
        let mut next = self.stored.clone();
        change(&mut next);
        let bytes = serde_json::to_vec_pretty(&next).map_err(|error| ServeError::Content {
            path: self.home.names(),
            why: error.to_string(),
        })?;
        let replaced = self.home.replace(NAMES, &bytes);
        replaced.map_err(ServeError::file("write", &self.home.names()))?;
        self.stored = next;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str, instant: u64) -> Named {
        Named {
            name: name.to_owned(),
            instant,
        }
    }

    #[test]
    fn names_are_found_again() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::new(directory.path());
        let mut names = Names::load(&home).unwrap();
        names.add_snapshot(named("one", 10)).unwrap();
        names.add_snapshot(named("two", 20)).unwrap();
        names.remove_snapshot(10).unwrap();
        for instant in [30, 5, 12] {
            names.add_mark(named("m", instant)).unwrap();
        }
        let again = Names::load(&home).unwrap();
        assert_eq!(again.stored, names.stored);
        assert_eq!(again.snapshot("one"), None);
        assert_eq!(again.snapshot("two"), Some(20));
        assert_eq!(again.name_of(20), Some("two"));
        assert_eq!((again.mark("m"), again.mark("two")), (Some(30), None));
        assert_eq!(again.mark_before(4), None);
        assert_eq!(again.mark_before(12), Some(&named("m", 12)));
        assert_eq!(again.mark_before(29), Some(&named("m", 12)));
    }

    #[test]
    fn a_file_that_holds_something_else_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::new(directory.path());
        std::fs::write(home.names(), "[1]").unwrap();
        let error = Names::load(&home).unwrap_err().to_string();
        assert!(error.contains("names.json: expected names"), "{error}");
    }
}
