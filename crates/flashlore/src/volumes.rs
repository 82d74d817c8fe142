//! Commands for volumes whose results the Python package takes as values.

use std::ffi::OsString;
use std::path::Path;

use clap::Parser;
use serde_json::Value;

use flashlore_serve::Budget;

use crate::cli::{CreateArgs, VolumeArgs};
pub use crate::commands::volume::clocks;
use crate::commands::volume::{checked, make};
use crate::error::CliError;

/// The arguments of `create`, without a program's name in front.
#[derive(Parser)]
#[command(no_binary_name = true)]
struct Create {
    #[command(flatten)]
    args: CreateArgs,
}

/// Makes a volume or an array from the arguments of the command `create`; answers the sentence that it prints.
pub fn create(arguments: Vec<OsString>) -> Result<String, CliError> {
    let parsed = Create::try_parse_from(arguments);
    let Create { args } = parsed.map_err(|error| CliError::Usage(sentence(&error)))?;
    make(&args)
}

/// Checks a volume or an array that nobody has open; unless it is to be `quick`, every stored page is read too.
/// Answers what `check --json` prints.
///
/// # Errors
/// It cannot be opened. That it is not clean is no error here.
pub fn check(
    directory: &Path,
    direct: bool,
    quick: bool,
    budget: Budget,
) -> Result<Value, CliError> {
    let args = VolumeArgs {
        directory: directory.to_owned(),
        direct,
        budget,
    };
    Ok(checked(&args, quick, &|_, _| {})?.json())
}

/// What clap says of arguments, without what helps at a command line alone.
fn sentence(error: &clap::Error) -> String {
    let rendered = error.render().to_string();
    let told = rendered
        .split("\n\nUsage:")
        .next()
        .unwrap_or(&rendered)
        .split("\n\nFor more")
        .next()
        .unwrap_or(&rendered);
    let words = told.trim_start_matches("error: ").split_whitespace();
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_that_cannot_be_used_are_told_in_one_sentence() {
        let refused = |arguments: &[&str]| {
            let arguments = arguments.iter().map(OsString::from);
            create(arguments.collect()).unwrap_err().to_string()
        };
        assert_eq!(
            refused(&["--size=1GiB", "--system=zfs", "--", "disk"]),
            "invalid value 'zfs' for '--system <SYSTEM>' [possible values: plain, ca-ssd, ca-ssd-trusted, compress, \
             delta-ftl, bvssd, combined, i-cash]"
        );
        assert_eq!(
            refused(&["--size=much", "--", "disk"]),
            "invalid value 'much' for '--size <SIZE>': expected a size such as \"4GiB\", \"512KiB\" or 4096, found \
             \"much\""
        );
        let lonely = refused(&["--size=1GiB", "--on-pressure=enospc", "--", "disk"]);
        assert!(lonely.ends_with("--min-window <DURATION>"), "{lonely}");
    }
}
