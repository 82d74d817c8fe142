//! Persistent volumes.
//!
//! | module | commands |
//! |---|---|
//! | [`mod@array`] | `array` |
//! | [`mod@bench`] | `bench` |
//! | [`mod@create`] | `create` |
//! | [`mod@clone`] | `clone` |
//! | [`mod@resize`] | `resize` |
//! | [`mod@upgrade`] | `upgrade` |
//! | [`mod@serve`] | `serve`, `record` |
//! | [`mod@mount`] | `mount` |
//! | [`image`] | `import`, `export`, `read` |
//! | [`state`] | `info` |
//! | [`mod@tune`] | `tune` |
//! | [`history`] | `log`, `snapshot`, `mark`, `recover`, `diff`, `purge` |
//! | [`inspect`] | `check`, `scrub`, `dump` |
//!
//! Here, in [`running`] and in [`memory`]: what they share. Commands that the control socket knows work on a served volume and on one that is not alike.

mod array;
mod bench;
mod clone;
mod create;
mod history;
mod image;
mod inspect;
mod mount;
mod resize;
mod running;
mod serve;
mod state;
mod tune;
mod upgrade;

use flashlore_medium::{Access, FileMedium, Mode};
use flashlore_serve::control::{Reach, ask};
use flashlore_serve::{Answer, Home, Request, ServeError, Served, served};
use flashlore_volume::disk::DiskError;

pub use array::array;
pub use bench::bench;
pub use clone::clone;
pub use create::{create, make};
pub use flashlore_serve::clock::machine as clocks;
pub use history::{diff, log, mark, purge, recover, snapshot};
pub use image::{export, import, read};
pub use inspect::{check, checked, dump, scrub};
pub use mount::mount;
pub use resize::resize;
pub use serve::{record, serve};
pub use state::info;
pub use tune::tune;
pub use upgrade::upgrade;

use flashlore_volume::{Identity, USUAL_MEMORY, least_memory, memory_needed};

use crate::cli::VolumeArgs;
use crate::error::CliError;
use crate::output::tell;

fn home(args: &VolumeArgs) -> Home {
    Home::new(&args.directory).within(args.budget)
}

fn mode(args: &VolumeArgs) -> Mode {
    match args.direct {
        true => Mode::Direct,
        false => Mode::Buffered,
    }
}

/// What messages call what is in a directory, and what an image is of.
struct DirectoryNames {
    is_array: bool,
    /// A volume or an array, with its article.
    whole: &'static str,
    /// The same volume, or a machine of the array.
    disk: &'static str,
    /// What is stored: pages, or blocks.
    units: &'static str,
}

fn named(args: &VolumeArgs) -> DirectoryNames {
    match home(args).is_array() {
        true => DirectoryNames {
            is_array: true,
            whole: "an array",
            disk: "machine",
            units: "blocks",
        },
        false => DirectoryNames {
            is_array: false,
            whole: "a volume",
            disk: "volume",
            units: "pages",
        },
    }
}

/// An error of the volume of a command.
fn failed(args: &VolumeArgs) -> impl Fn(ServeError) -> CliError {
    move |source| CliError::serve(&args.directory, source)
}

/// The same of the volume as a device.
fn disk_failed(args: &VolumeArgs) -> impl Fn(DiskError) -> CliError {
    move |source| CliError::serve(&args.directory, source.into())
}

/// The file of a volume, to be looked at.
fn medium(args: &VolumeArgs) -> Result<FileMedium, CliError> {
    let opened = home(args).medium(mode(args), Access::Look);
    opened.map_err(failed(args))
}

/// Says what should be known of what was opened, such as that it was not closed.
fn tell_of(args: &VolumeArgs, recovered: Option<String>) {
    if let Some(recovered) = recovered {
        tell(&format!("{}: {recovered}", args.directory.display()));
    }
}

/// The volume, served by somebody or opened here to be looked at.
fn reach(args: &VolumeArgs) -> Result<Reach, CliError> {
    let reached = Reach::open(&home(args), mode(args), clocks(), Access::Look);
    let reached = reached.map_err(failed(args))?;
    tell_of(args, reached.recovered());
    Ok(reached)
}

/// The volume or the array, opened here to be used.
fn open(args: &VolumeArgs) -> Result<Box<dyn Served>, CliError> {
    let opened = served::open(&home(args), mode(args), clocks(), Access::Change);
    let opened = opened.map_err(failed(args))?;
    tell_of(args, opened.recovered());
    Ok(opened)
}

/// Has one request carried out.
fn request(args: &VolumeArgs, request: &Request) -> Result<Answer, CliError> {
    let heard = |sentence: &str| tell_of(args, Some(sentence.to_owned()));
    ask(&home(args), mode(args), clocks(), request, heard).map_err(failed(args))
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

/// What a volume takes of memory, unless it is told otherwise, and with how much it works.
fn memory_told(id: &Identity) -> String {
    let least = least_memory(id);
    let usual = memory_needed(id).min(USUAL_MEMORY.max(least));
    format!(
        "up to {} of memory, {} at least",
        human(usual),
        human(least)
    )
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
