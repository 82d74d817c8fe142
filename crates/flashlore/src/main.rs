//! The command `flashlore` by itself, without the Python package.

use std::process::ExitCode;

use flashlore_command::python::Missing;

fn main() -> ExitCode {
    ExitCode::from(flashlore_command::run(std::env::args_os(), &Missing))
}
