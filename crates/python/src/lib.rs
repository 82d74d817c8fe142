//! `flashlore._core`: what the Python package takes from the core. Thin: names, types and documentation for users
//! stand in `python/flashlore`.
//!
//! | module | what it is |
//! |---|---|
//! | `command` | the command line |
//! | `errors` | the core's errors as exceptions |
//! | `watch` | long work with the interpreter lock released |
//! | `trace` | traces; `arrays` records out of arrays |
//! | `characterize` | statistics of traces |
//! | `run` | systems, devices and runs; `results` what they leave |
//! | `sweep` | what a sweep asks about a cell |
//! | `table` | tables for other libraries |
//! | `volume` | volumes and arrays |

mod arrays;
mod characterize;
mod command;
mod errors;
mod results;
mod run;
mod sweep;
mod table;
mod trace;
mod volume;
mod watch;

use pyo3::prelude::*;

/// The core of Flashlore.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<characterize::Characterization>()?;
    module.add_class::<results::Output>()?;
    module.add_class::<table::Table>()?;
    module.add_class::<trace::Trace>()?;
    module.add_function(wrap_pyfunction!(characterize::characterize, module)?)?;
    module.add_class::<volume::Volume>()?;
    module.add_function(wrap_pyfunction!(command::command, module)?)?;
    module.add_function(wrap_pyfunction!(run::system, module)?)?;
    module.add_function(wrap_pyfunction!(run::device, module)?)?;
    module.add_function(wrap_pyfunction!(run::systems, module)?)?;
    module.add_function(wrap_pyfunction!(run::devices, module)?)?;
    module.add_function(wrap_pyfunction!(run::compare, module)?)?;
    module.add_function(wrap_pyfunction!(results::save, module)?)?;
    module.add_function(wrap_pyfunction!(results::load, module)?)?;
    module.add_function(wrap_pyfunction!(results::table, module)?)?;
    module.add_function(wrap_pyfunction!(results::describe, module)?)?;
    module.add_function(wrap_pyfunction!(results::findings, module)?)?;
    module.add_function(wrap_pyfunction!(sweep::configuration, module)?)?;
    module.add_function(wrap_pyfunction!(volume::create_volume, module)?)?;
    module.add_function(wrap_pyfunction!(volume::check_volume, module)?)
}
