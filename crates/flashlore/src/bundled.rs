//! The captures inside the program, which `demo:NAME` names wherever a trace may stand.

use std::path::Path;

/// What a bundled capture's name begins with.
const PREFIX: &str = "demo:";

/// A capture: its name, what ran, and the FIU text, compressed.
pub struct Capture {
    /// Its name with the prefix.
    pub name: &'static str,
    pub description: &'static str,
    pub bytes: &'static [u8],
}

/// All of them, in the order of the demo.
pub const CAPTURES: [Capture; 4] = [
    Capture {
        name: "demo:sqlite-tpcb",
        description: "SQLite, transactions like TPC-B, rollback journal",
        bytes: include_bytes!("../data/sqlite-tpcb.fiu.xz"),
    },
    Capture {
        name: "demo:sqlite-bytes",
        description: "the same with random filler, reads included",
        bytes: include_bytes!("../data/sqlite-bytes.fiu.xz"),
    },
    Capture {
        name: "demo:maildir",
        description: "6,046 mails delivered to a Maildir",
        bytes: include_bytes!("../data/maildir.fiu.xz"),
    },
    Capture {
        name: "demo:django-upgrade",
        description: "eight releases of a Python package, upgraded in place",
        bytes: include_bytes!("../data/django-upgrade.fiu.xz"),
    },
];

/// Whether `path` names a bundled capture, existing or not.
pub fn is_bundled(path: &Path) -> bool {
    path.to_str().is_some_and(|text| text.starts_with(PREFIX))
}

pub fn find(path: &Path) -> Option<&'static Capture> {
    CAPTURES
        .iter()
        .find(|capture| path.to_str() == Some(capture.name))
}
