//! The command `flashlore` by itself, without the Python package.

use std::process::ExitCode;

use flashlore_command::python::Missing;

/// The system's allocator, until `--memory` lets large tables lie in a scratch file.
#[global_allocator]
static ALLOCATOR: flashlore_paged::Paged = flashlore_paged::Paged;

fn main() -> ExitCode {
    ExitCode::from(flashlore_command::run(std::env::args_os(), &Missing))
}
