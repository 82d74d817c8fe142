//! Files of the code that documents name are there.

use std::fs;
use std::path::{Path, PathBuf};

/// The root of the project.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The documents: those at the root but the history of changes, and those of `docs`.
fn documents() -> Vec<PathBuf> {
    let folders = [root(), root().join("docs")];
    let entries = folders
        .iter()
        .flat_map(|folder| fs::read_dir(folder).unwrap());
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.extension().is_some_and(|end| end == "md"))
        .filter(|path| !path.ends_with("CHANGELOG.md"))
        .collect()
}

/// What a document names in a crate: `ftl/src/plain.rs`, with or without `crates/` before it.
fn named(text: &str) -> Vec<&str> {
    let is_path = |letter: char| letter.is_ascii_alphanumeric() || "_-/.".contains(letter);
    let words = text.split(|letter| !is_path(letter));
    let words = words.map(|word| word.trim_end_matches('.'));
    let in_a_crate = |word: &&str| {
        ["/src/", "/tests/", "/benches/", "/planted/"]
            .iter()
            .any(|folder| word.find(folder).is_some_and(|at| at > 0))
    };
    words.filter(in_a_crate).collect()
}

#[test]
fn what_documents_name_in_crates_is_there() {
    let mut count = 0;
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        for path in named(&text) {
            count += 1;
            let found = ["crates", "."]
                .iter()
                .any(|base| root().join(base).join(path).exists());
            assert!(
                found,
                "{} names {path}, which is not there",
                document.display()
            );
        }
    }
    assert!(count > 100, "only {count} paths were found");
}

#[test]
fn paths_are_found_in_text() {
    let text = "see `ftl/src/plain.rs`, crates/volume/tests/all.rs. Not a/b.rs, nor /src/x.rs;";
    assert_eq!(
        named(text),
        ["ftl/src/plain.rs", "crates/volume/tests/all.rs"]
    );
}
