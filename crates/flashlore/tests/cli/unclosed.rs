//! What was not closed: each command that opens or looks at it says so, and none that meets what was closed does.

use std::fs;

use serde_json::Value;

use crate::program::{Place, Ran};
use crate::served::{Server, place};

/// A volume with one machine, or an array of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Volume,
    Array,
}

impl Kind {
    /// The directory `disk`, which holds something and was closed.
    fn made(self) -> Place {
        let place = match self {
            Kind::Volume => place(),
            Kind::Array => {
                let place = Place::new();
                let create = ["create", "disk", "--system", "i-cash", "--size", "1MiB"];
                let media = ["--fast", "fast", "--slow", "slow", "--machines", "2"];
                let made = place.run(&[&create[..], &media].concat());
                assert_eq!(made.code, 0, "{}", made.stderr);
                place
            }
        };
        fs::write(place.path("image.raw"), vec![7; 1 << 16]).unwrap();
        succeeded(&place, &["import", "disk", "image.raw"]);
        place
    }

    /// The files that hold it.
    fn files(self) -> &'static [&'static str] {
        match self {
            Kind::Volume => &["disk/volume.flashlore"],
            Kind::Array => &["fast", "slow"],
        }
    }

    /// Commands that open it, or look at it.
    fn commands(self) -> Vec<Vec<&'static str>> {
        let mut commands = vec![
            vec!["info", "disk"],
            vec!["info", "disk", "--json"],
            vec!["check", "disk"],
            vec!["check", "disk", "--quick", "--json"],
            vec!["scrub", "disk"],
            vec!["read", "disk", "--length", "4096"],
            vec!["export", "disk", "out.raw"],
            vec!["import", "disk", "image.raw"],
            vec!["bench", "disk", "--pattern", "read", "--operations", "1"],
        ];
        commands.extend(match self {
            Kind::Array => vec![vec!["clone", "disk", "0", "1"]],
            Kind::Volume => vec![
                vec!["log", "disk"],
                vec!["snapshot", "create", "disk", "kept"],
                vec!["snapshot", "list", "disk"],
                vec!["mark", "disk", "here"],
                vec!["diff", "disk", "now", "now"],
                vec!["recover", "disk", "--to", "now"],
                vec!["purge", "disk", "--all"],
                vec!["dump", "disk", "--part", "heads"],
                vec!["resize", "disk", "--grow", "2MiB"],
            ],
        });
        commands
    }
}

fn succeeded(place: &Place, command: &[&str]) -> Ran {
    let ran = place.run(command);
    assert_eq!(ran.code, 0, "{command:?}: {}", ran.stderr);
    ran
}

/// Lays bytes that were there before where they were.
fn lay(place: &Place, files: &[(&str, Vec<u8>)]) {
    for (name, bytes) in files {
        fs::write(place.path(name), bytes).unwrap();
    }
    let _ = fs::remove_file(place.path("out.raw"));
}

fn copied(place: &Place, kind: Kind) -> Vec<(&'static str, Vec<u8>)> {
    let files = kind.files().iter();
    files
        .map(|&name| (name, fs::read(place.path(name)).unwrap()))
        .collect()
}

/// Runs every command on what lies there, and says which tell that it was not closed.
fn expect(place: &Place, kind: Kind, files: &[(&str, Vec<u8>)], closed: bool) {
    for command in kind.commands() {
        lay(place, files);
        let ran = succeeded(place, &command);
        let told = ran.stderr.matches("was not closed").count();
        let what = format!(
            "{command:?} of a closed ({closed}) {kind:?}: {}",
            ran.stderr
        );
        assert_eq!(told, usize::from(!closed), "{what}");
        assert!(closed || ran.stderr.contains("may be older"), "{what}");
        if command.contains(&"--json") {
            let json: Value = serde_json::from_str(&ran.stdout).unwrap();
            assert_eq!(json["closed"], closed, "{what}");
        }
    }
    lay(place, files);
}

#[test]
fn each_command_tells_of_what_was_not_closed_and_of_nothing_else() {
    for kind in [Kind::Volume, Kind::Array] {
        let place = kind.made();
        expect(&place, kind, &copied(&place, kind), true);
        let server = Server::start(&place, &[]);
        assert!(!server.told.contains("not closed"), "{}", server.told);
        // Right after an opening nothing has changed yet, but somebody uses it.
        let in_use = copied(&place, kind);
        server.kill();
        expect(&place, kind, &copied(&place, kind), false);
        expect(&place, kind, &in_use, false);
        lay(&place, &in_use);
        let server = Server::start(&place, &[]);
        assert!(server.told.contains("was not closed"), "{}", server.told);
        let info = place.run(&["info", "disk", "--json"]).json();
        assert_eq!(info["closed"], false);
        server.stop();
        expect(&place, kind, &copied(&place, kind), true);
    }
}

/// An image that does not fit is refused once the volume is open: it is closed all the same.
#[test]
fn an_import_that_fails_closes_the_volume() {
    let place = place();
    fs::write(place.path("large.raw"), vec![1; 2 << 20]).unwrap();
    place.run(&["import", "disk", "large.raw"]).fails(2);
    place.run(&["info", "disk"]).ok();
}
