//! What the Python package does for a command: pages of figures, and sweeps over a cluster.
//!
//! The command of the package hands itself over as [`Python`]; the program that cargo builds has [`Missing`], which
//! says where to get the other one.

use std::path::Path;

use serde_json::Value;

use crate::error::CliError;

/// The Python package, as the command line sees it.
pub trait Python: Sync {
    /// Refuses early, before hours of work, what could not be called later.
    ///
    /// # Errors
    /// There is no package.
    fn demand(&self, what: &str) -> Result<(), CliError>;

    /// Calls a function of the package's module for the command line with named arguments.
    ///
    /// # Errors
    /// What the function raised, or that there is no package.
    fn call(&self, function: &str, arguments: Value) -> Result<(), CliError>;
}

/// A path as an argument for the package.
///
/// # Errors
/// Arguments are JSON, and the path is no text.
pub fn as_text(path: &Path) -> Result<&str, CliError> {
    let refused = || CliError::Usage(format!("{}: expected a path in UTF-8", path.display()));
    path.to_str().ok_or_else(refused)
}

pub struct Missing;

impl Python for Missing {
    fn demand(&self, what: &str) -> Result<(), CliError> {
        Err(CliError::Python(format!(
            "{what} needs the Python package: `pip install .` in the source makes a command flashlore that has it"
        )))
    }

    fn call(&self, function: &str, _: Value) -> Result<(), CliError> {
        self.demand(function)
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn a_path_that_is_no_text_is_refused() {
        assert_eq!(as_text(Path::new("grid.toml")).unwrap(), "grid.toml");
        let refused = as_text(Path::new(OsStr::from_bytes(b"\xff.toml"))).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "\u{fffd}.toml: expected a path in UTF-8"
        );
        assert_eq!(refused.code(), 2);
    }
}
