//! Words that the table of terms in ARCHITECTURE.md gives up stand in no name and in no document.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The root of the project.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The last column of the table of terms: words that are not used any more.
fn given_up(architecture: &str) -> Vec<String> {
    let table = architecture
        .lines()
        .skip_while(|line| *line != "| term | what it is | not |");
    let rows = table.skip(2).take_while(|line| line.starts_with('|'));
    let last = rows.filter_map(|row| row.trim_end_matches('|').rsplit('|').next());
    let words = last.flat_map(|cell| cell.split(',').map(|word| word.trim().to_lowercase()));
    words.filter(|word| !word.is_empty()).collect()
}

/// The words of a text with their lines, those of a name apart: `next_lane`, `NextLane` and `lanes` have the word `lane`.
fn words(text: &str) -> Vec<(usize, String)> {
    let mut words = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        words.push((number, String::new()));
        let mut was_lower = false;
        for letter in line.chars() {
            if !letter.is_ascii_alphabetic() || letter.is_ascii_uppercase() && was_lower {
                words.push((number, String::new()));
            }
            was_lower = letter.is_ascii_lowercase();
            if letter.is_ascii_alphabetic()
                && let Some((_, word)) = words.last_mut()
            {
                word.push(letter.to_ascii_lowercase());
            }
        }
    }
    words.retain(|(_, word)| !word.is_empty());
    words
}

/// The lines that have a word, or several that follow one another, on one line or across its end; the last one in the
/// plural too.
fn uses(words: &[(usize, String)], given_up: &str) -> Vec<usize> {
    let sought: Vec<&str> = given_up.split(' ').collect();
    let (last, before) = sought.split_last().expect("a word");
    let is_it = |found: &&[(usize, String)]| {
        let (end, begin) = found.split_last().expect("a word");
        begin.iter().map(|(_, word)| word).eq(before)
            && end
                .1
                .strip_prefix(last)
                .is_some_and(|rest| matches!(rest, "" | "s"))
    };
    let found = words.windows(sought.len()).filter(is_it);
    found.map(|found| found[0].0).collect()
}

/// Whether a text has them.
fn is_used(text: &str, given_up: &str) -> bool {
    !uses(&words(text), given_up).is_empty()
}

/// What people read: sources, documents, settings, planted bugs.
const READ: [&str; 10] = [
    ".rs", ".md", ".toml", ".py", ".pyi", ".js", ".css", ".sh", ".patch", ".ipynb",
];

/// The files below a folder whose names end so.
fn files(folder: &Path, ends: &[&str], found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            files(&path, ends, found);
        } else if ends.iter().any(|end| name.ends_with(end)) {
            found.push(path);
        }
    }
}

#[test]
fn words_that_were_given_up_are_not_used() {
    let architecture = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let given_up = given_up(&architecture);
    assert!(!given_up.is_empty(), "the table of terms was not found");
    let mut all = Vec::new();
    for folder in [
        "crates",
        "docs",
        "fuzz",
        "notebooks",
        "papers",
        "python",
        "tools",
    ] {
        files(&root().join(folder), &READ, &mut all);
    }
    all.retain(|path| !path.ends_with(file!().trim_start_matches("crates/")));
    all.push(root().join("README.md"));
    let mut texts: Vec<(PathBuf, String)> = { all.into_iter() }
        .map(|path| (path.clone(), fs::read_to_string(&path).unwrap()))
        .collect();
    let without_table = { architecture.lines() }.map(|line| match line.starts_with("| ") {
        true => "",
        false => line,
    });
    let without_table = without_table.collect::<Vec<_>>().join("\n");
    texts.push((root().join("ARCHITECTURE.md"), without_table));
    let mut found = Vec::new();
    for (path, text) in texts {
        let words = words(&text);
        for word in &given_up {
            let lines = uses(&words, word).into_iter();
            found.extend(lines.map(|line| format!("{}:{line}: {word}", path.display())));
        }
    }
    assert!(
        found.is_empty(),
        "ARCHITECTURE.md has other words for these:\n{}",
        found.join("\n")
    );
}

/// Words that say nothing alone: a type that is called so says what of.
const TOO_SHORT: [&str; 8] = [
    "Entry", "Event", "Held", "Kind", "Place", "Source", "State", "Step",
];

/// The type that a line defines with one of these keywords.
fn defined<'a>(line: &'a str, keywords: &[&str]) -> Option<&'a str> {
    let mut words = line.split([' ', '<', '(', '{', ';', ':']);
    words.find(|word| keywords.contains(word))?;
    words.next()
}

/// Keywords of types that are defined apart from others, and of those that are a name for another too.
const NEW_TYPES: [&str; 3] = ["struct", "enum", "trait"];
const TYPES: [&str; 4] = ["struct", "enum", "trait", "type"];

#[test]
fn types_say_in_their_names_what_they_are() {
    let mut all = Vec::new();
    for krate in fs::read_dir(root().join("crates")).unwrap() {
        let sources = krate.unwrap().path().join("src");
        if sources.is_dir() {
            files(&sources, &[".rs"], &mut all);
        }
    }
    let mut found = Vec::new();
    for path in all {
        let text = fs::read_to_string(&path).unwrap();
        for (number, line) in (1..).zip(text.lines()) {
            let code = line.trim_start();
            if !code.starts_with("//")
                && defined(code, &TYPES).is_some_and(|name| TOO_SHORT.contains(&name))
            {
                found.push(format!("{}:{number}: {code}", path.display()));
            }
        }
    }
    assert!(found.is_empty(), "of what?\n{}", found.join("\n"));
}

#[test]
fn a_definition_is_found_behind_its_keyword() {
    assert_eq!(defined("pub(super) enum State {", &TYPES), Some("State"));
    assert_eq!(defined("struct Held(Arc<OwnedFd>);", &TYPES), Some("Held"));
    assert_eq!(defined("pub struct Place<'a> {", &TYPES), Some("Place"));
    assert_eq!(defined("let state = State::new();", &TYPES), None);
}

/// The modules with bodies of their own in a file that are for tests alone, as paths without an end.
fn test_modules(path: &Path, text: &str) -> Vec<PathBuf> {
    let folder = match path.file_stem().unwrap().to_str() {
        Some("mod" | "lib" | "main") => path.parent().unwrap().to_owned(),
        _ => path.with_extension(""),
    };
    let lines = text.lines().zip(text.lines().skip(1));
    let for_tests = lines.filter(|(attribute, _)| attribute.trim() == "#[cfg(test)]");
    let names =
        for_tests.filter_map(|(_, line)| line.trim().strip_suffix(';')?.rsplit_once("mod "));
    names.map(|(_, name)| folder.join(name)).collect()
}

/// The structs, enums and traits of a file, with their lines, without those in modules for tests.
fn new_types(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut lines = (1..).zip(text.lines());
    let mut is_for_tests = false;
    while let Some((number, line)) = lines.next() {
        let code = line.trim_start();
        if is_for_tests && code.contains("mod ") && code.ends_with('{') {
            let indent = line.len() - code.len();
            let end = format!("{}}}", &line[..indent]);
            lines.find(|(_, line)| *line == end);
        }
        is_for_tests = code == "#[cfg(test)]";
        let name = defined(code, &NEW_TYPES).filter(|name| name.starts_with(char::is_uppercase));
        found.extend(
            name.filter(|_| !code.starts_with("//"))
                .map(|name| (number, name)),
        );
    }
    found
}

#[test]
fn no_two_types_of_a_crate_have_one_name() {
    let mut twice = Vec::new();
    for krate in fs::read_dir(root().join("crates")).unwrap() {
        let krate = krate.unwrap();
        let sources = krate.path().join("src");
        let mut all = Vec::new();
        if sources.is_dir() {
            files(&sources, &[".rs"], &mut all);
        }
        let texts: Vec<(PathBuf, String)> = { all.into_iter() }
            .map(|path| (path.clone(), fs::read_to_string(&path).unwrap()))
            .collect();
        let for_tests: Vec<PathBuf> = { texts.iter() }
            .flat_map(|(path, text)| test_modules(path, text))
            .collect();
        let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (path, text) in &texts {
            let is_of = |module: &PathBuf| path.with_extension("").starts_with(module);
            if for_tests.iter().any(is_of) {
                continue;
            }
            for (number, name) in new_types(text) {
                let place = format!("{}:{number}: {name}", path.display());
                places.entry(name).or_default().push(place);
            }
        }
        for places in places.into_values().filter(|places| places.len() > 1) {
            twice.extend(places);
        }
    }
    assert!(
        twice.is_empty(),
        "say in the names what tells these apart:\n{}",
        twice.join("\n")
    );
}

#[test]
fn types_for_tests_may_have_names_of_others() {
    let text = "struct A;\n#[cfg(test)]\nmod tests {\n    struct A;\n}\npub(super) enum B<T> {\n// enum C {\n";
    assert_eq!(new_types(text), [(1, "A"), (6, "B")]);
    let text = "#[cfg(test)]\nmod tests;\n#[cfg(test)]\npub(crate) mod rules;\n";
    let in_mod = test_modules(Path::new("src/a/mod.rs"), text);
    assert_eq!(in_mod, [Path::new("src/a/tests"), Path::new("src/a/rules")]);
    let in_file = test_modules(Path::new("src/a.rs"), text);
    assert_eq!(in_file, in_mod);
}

#[test]
fn a_word_is_found_within_a_name() {
    for line in [
        "fn next_lane()",
        "struct NextLane;",
        "the lanes of a group",
        "LANES",
    ] {
        assert!(is_used(line, "lane"), "{line}");
    }
    for line in [
        "fn make_whole()",
        "MakeWhole",
        "make  wholes",
        "make\n    /// whole",
    ] {
        assert!(is_used(line, "make whole"), "{line}");
    }
    assert!(!is_used("make it whole, the whole", "make whole"));
    for line in ["a plane of a die", "planes", "airplane", "lanetail"] {
        assert!(!is_used(line, "lane"), "{line}");
    }
}
