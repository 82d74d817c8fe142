//! Standard output.

use std::io::{self, IsTerminal, Write};

use flashlore_sim::results::TableStyle;

use crate::error::CliError;

pub fn print(text: &str) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(CliError::Output)
}

/// How tables look on standard output.
pub fn style() -> TableStyle {
    TableStyle::detect(io::stdout().is_terminal())
}

/// Writes a line to standard error, if anybody listens.
pub fn tell(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}
