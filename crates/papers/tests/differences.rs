//! The README of a paper tells its differences in the words of the definition. Where it does not, run the test with
//! FLASHLORE_WRITE=1 in the environment: it writes them there.

use std::fs;
use std::path::PathBuf;

use flashlore_papers::load;

/// Names, README files and files of definitions, in the folder of papers.
const PAPERS: [(&str, &str, &str); 6] = [
    ("ca-ssd", "ca-ssd/README.md", "experiment.toml"),
    ("delta-ftl", "delta-ftl/README.md", "experiment.toml"),
    ("bvssd", "bvssd/README.md", "experiment.toml"),
    ("combined", "combined/README.md", "experiment.toml"),
    ("i-cash", "i-cash/README.md", "experiment.toml"),
    ("i-cash-control", "i-cash/README.md", "control.toml"),
];

const END: &str = "<!-- Their end. -->";

#[test]
fn the_readme_tells_what_the_definition_tells() {
    for (name, readme, definition) in PAPERS {
        let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../papers")).join(readme);
        let text = fs::read_to_string(&path).unwrap();
        let begin =
            format!("<!-- The differences of {definition}, which a test compares with it. -->");
        let from = text.find(&begin).expect("a beginning") + begin.len();
        let to = from + text[from..].find(END).expect("an end");
        let differences = load(name).unwrap().difference;
        assert!(!differences.is_empty(), "{name}");
        let told: Vec<String> = differences
            .iter()
            .map(|d| format!("**{}** {}", d.title, d.text.trim_end()))
            .collect();
        let expected = format!("\n\n{}\n\n", told.join("\n\n"));
        if std::env::var_os("FLASHLORE_WRITE").is_some() {
            fs::write(&path, [&text[..from], &expected, &text[to..]].concat()).unwrap();
        } else {
            assert_eq!(&text[from..to], expected, "{readme}");
        }
    }
}
