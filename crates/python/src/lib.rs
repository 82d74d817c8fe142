//! `flashlore._core`: what the Python package takes from the core. Thin: names, types and documentation for users
//! stand in `python/flashlore`.
//!
//! | module | what it is |
//! |---|---|
//! | [`command`] | the command line |

mod command;

use pyo3::prelude::*;

/// The system's allocator, until `--memory` lets large tables lie in a scratch file.
#[global_allocator]
static ALLOCATOR: flashlore_paged::Paged = flashlore_paged::Paged;

/// The core of Flashlore.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(command::command, module)?)
}
