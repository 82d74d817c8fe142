//! Persistent volumes.
//!
//! | module | commands |
//! |---|---|
//! | [`mod@bench`] | `bench` |
//! | [`mod@create`] | `create` |
//! | [`mod@clone`] | `clone` |
//! | [`mod@resize`] | `resize` |
//! | [`mod@serve`] | `serve`, `record` |
//! | [`mod@mount`] | `mount` |
//! | [`image`] | `import`, `export`, `read` |
//! | [`state`] | `info` |
//! | [`history`] | `log`, `snapshot`, `mark`, `recover`, `diff`, `purge` |
//! | [`inspect`] | `check`, `scrub`, `dump` |
//!
//! Here, in [`running`] and in [`memory`]: what they share. Commands that the control socket knows work on a served volume and on one that is not alike.

mod bench;
mod clone;
mod create;
mod history;
mod image;
mod inspect;
mod memory;
mod mount;
mod resize;
mod running;
mod serve;
mod state;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use flashlore_medium::{Access, FileMedium, Mode};
use flashlore_serve::clock::{Clocks, machine};
use flashlore_serve::control::{Reach, ask};
use flashlore_serve::{Answer, Home, Request};

pub use bench::bench;
pub use clone::clone;
pub use create::{create, make};
pub use history::{diff, log, mark, purge, recover, snapshot};
pub use image::{export, import, read};
pub use inspect::{check, checked, dump, scrub};
pub use mount::mount;
pub use resize::resize;
pub use serve::{record, serve};
pub use state::info;

use crate::cli::VolumeArgs;
use crate::error::CliError;

/// Nanoseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |d| d.as_nanos() as u64)
}

/// The clocks of the machine.
pub fn clocks() -> Arc<dyn Clocks> {
    machine()
}

fn home(args: &VolumeArgs) -> Home {
    Home::new(&args.directory)
}

fn mode(args: &VolumeArgs) -> Mode {
    match args.direct {
        true => Mode::Direct,
        false => Mode::Buffered,
    }
}

/// The file of a volume, to be looked at.
fn medium(args: &VolumeArgs) -> Result<FileMedium, CliError> {
    let opened = home(args).medium(mode(args), Access::Look);
    opened.map_err(|source| CliError::serve(&args.directory, source))
}

/// The volume, served by somebody or opened here to be looked at.
fn reach(args: &VolumeArgs) -> Result<Reach, CliError> {
    let reached = Reach::open(&home(args), mode(args), clocks(), Access::Look);
    reached.map_err(|source| CliError::serve(&args.directory, source))
}

/// Has one request carried out.
fn request(args: &VolumeArgs, request: &Request) -> Result<Answer, CliError> {
    ask(&home(args), mode(args), clocks(), request)
        .map_err(|source| CliError::serve(&args.directory, source))
}

/// An answer that does not answer what was asked: the server is another version.
fn unexpected(args: &VolumeArgs) -> CliError {
    CliError::Differs(format!(
        "{}: the server answered something else, it may be another version",
        args.directory.display()
    ))
}

/// An answer as JSON on one line.
fn json(answer: &Answer) -> String {
    // What is in an answer can always be written.
    serde_json::to_string(answer).unwrap_or_default() + "\n"
}

/// Bytes for people: three digits and a unit.
fn human(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    match unit {
        0 => format!("{bytes} B"),
        _ if value >= 100.0 => format!("{value:.0} {}", UNITS[unit]),
        _ => format!("{value:.1} {}", UNITS[unit]),
    }
}
