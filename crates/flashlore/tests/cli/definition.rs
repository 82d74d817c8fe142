//! Completion scripts and manual pages: all of the commands, in a form their readers take.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use flashlore_testkit::installed;

use crate::program::{Place, run};

/// The commands below one, as its help lists them.
fn subcommands(of: &[&str]) -> Vec<String> {
    let help = run(&[of, &["--help"]].concat()).ok();
    let Some((_, list)) = help.split_once("\nCommands:\n") else {
        return Vec::new();
    };
    let lines = list.lines().take_while(|line| !line.is_empty());
    // A name stands at the second column; descriptions that go on are further right.
    let names = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let names = names.filter(|name| !name.is_empty() && *name != "help");
    names.map(str::to_owned).collect()
}

/// The names of all pages there must be.
fn pages() -> BTreeSet<String> {
    let mut pages = BTreeSet::from(["flashlore.1".to_owned()]);
    for command in subcommands(&[]) {
        pages.insert(format!("flashlore-{command}.1"));
        for below in subcommands(&[&command]) {
            pages.insert(format!("flashlore-{command}-{below}.1"));
        }
    }
    pages
}

#[test]
fn every_command_has_a_manual_page() {
    let place = Place::new();
    assert_eq!(place.run(&["man", "share/man1"]).ok(), "");
    let files = fs::read_dir(place.path("share/man1")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let names: BTreeSet<String> = names.collect();
    let expected = pages();
    assert!(
        expected.contains("flashlore-trace-characterize.1"),
        "{expected:?}"
    );
    assert_eq!(names, expected);
    for name in &names {
        let page = fs::read_to_string(place.path("share/man1").join(name)).unwrap();
        let stem = name.strip_suffix(".1").unwrap();
        assert!(page.contains(&format!(".TH {stem} 1")), "{name}: {page}");
        assert!(
            page.contains("\n.SH NAME\n") && page.contains("\n.SH SYNOPSIS\n"),
            "{name}"
        );
    }
    let record = fs::read_to_string(place.path("share/man1/flashlore-record.1")).unwrap();
    let said = record.replace("\\-", "-");
    assert!(
        said.contains("--content") && said.contains("--metrics"),
        "{record}"
    );
    // Without a directory: the page of the program.
    let main = fs::read_to_string(place.path("share/man1/flashlore.1")).unwrap();
    assert_eq!(run(&["man"]).ok(), main);
}

#[test]
fn completion_scripts_know_the_commands_and_bash_takes_its_own() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = run(&["completions", shell]).ok();
        for known in ["characterize", "most-values", "on-pressure"] {
            assert!(script.contains(known), "{shell}: {known}");
        }
        place.write(shell, &script);
    }
    if installed(&["bash"]) {
        let mut bash = Command::new("bash");
        let checked = bash.arg("-n").arg(place.path("bash")).output().unwrap();
        let complaint = String::from_utf8_lossy(&checked.stderr);
        assert!(checked.status.success(), "{complaint}");
    }
    let message = run(&["completions", "cmd"]);
    assert_eq!(message.code, 2);
}
