//! Standard output.

use std::io::{self, IsTerminal, Write};

use flashlore_sim::results::TableStyle;
use serde::Serialize;

use crate::error::CliError;

pub fn print(text: &str) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(CliError::Output)
}

/// Prints a value as JSON for people.
pub fn print_json(value: &impl Serialize) -> Result<(), CliError> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|source| CliError::Output(io::Error::other(source)))?;
    print(&format!("{text}\n"))
}

/// How tables look on standard output.
pub fn style() -> TableStyle {
    TableStyle::detect(io::stdout().is_terminal())
}

/// Writes a line to standard error, if anybody listens.
pub fn tell(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}
