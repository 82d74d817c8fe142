//! The file `names.json`, in which volumes made before format version 4 had the names of their snapshots and marks.
//!
//! Names lie in the volume. What this file holds is taken over once, when the volume is opened; then it is removed. One
//! that holds something else blocks nothing: it is told of and left where it is.

use std::io;

use flashlore_volume::format::Note;
use serde::Deserialize;

use crate::home::Home;
use crate::moment::is_name;

pub(crate) const NAMES: &str = "names.json";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    name: String,
    instant: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    snapshots: Vec<Named>,
    marks: Vec<Named>,
}

/// The names in the file of a directory; nothing if there is no file.
///
/// # Errors
/// A sentence: the file cannot be read or holds something else.
pub(crate) fn read(home: &Home) -> Result<Option<Vec<Note>>, String> {
    let failed = |why: String| format!("{}: {why}", home.names().display());
    let bytes = match home.read(NAMES) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error.to_string())),
    };
    let stored: Stored = serde_json::from_slice(&bytes)
        .map_err(|error| failed(format!("expected names of snapshots and marks: {error}")))?;
    let snapshot = |Named { name, instant }| Note::Snapshot { instant, name };
    let mark = |Named { name, instant }| Note::Mark { instant, name };
    let fits = |named: &Named| is_name(&named.name);
    let snapshots = stored.snapshots.into_iter().filter(fits).map(snapshot);
    let marks = stored.marks.into_iter().filter(fits).map(mark);
    Ok(Some(snapshots.chain(marks).collect()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn names_of_a_file_are_notes_and_anything_else_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::new(directory.path());
        let path = home.names();
        assert_eq!(read(&home), Ok(None));
        let text = r#"{"snapshots":[{"name":"a","instant":7}],"marks":[{"name":"b","instant":9},{"name":" ","instant":1}]}"#;
        fs::write(&path, text).unwrap();
        let name = |name: &str| name.to_owned();
        let expected = vec![
            Note::Snapshot {
                instant: 7,
                name: name("a"),
            },
            Note::Mark {
                instant: 9,
                name: name("b"),
            },
        ];
        assert_eq!(read(&home), Ok(Some(expected)));
        fs::write(&path, "[1]").unwrap();
        let told = read(&home).unwrap_err();
        assert!(told.contains("names.json: expected names"), "{told}");
    }
}
