//! What the Python package does for a command: pages of figures, and sweeps over a cluster.
//!
//! The command of the package hands itself over as [`Python`]; the program that cargo builds has [`Missing`], which
//! says where to get the other one.

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

/// No package.
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
