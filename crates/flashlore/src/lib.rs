//! The command `flashlore`: definition and glue.
//!
//! It is a library so that the Python package carries the same command, and uses the same plans and workloads.
//!
//! | module | what it is |
//! |---|---|
//! | `cli` | the flags, as clap derives them |
//! | `commands` | one file a command: flags to objects, objects to output |
//! | [`plan`] | systems, device, host and seeds to configurations |
//! | [`input`] | traces to workloads, shared between runs; `bundled` the captures inside |
//! | [`draws`] | what several seeds draw anew |
//! | [`characterizing`] | traces to what is known about their locality |
//! | [`runs`] | runs on all cores, in order; `progress` the ticker |
//! | `output` | standard output; [`error`] messages and exit codes |
//! | [`python`] | what the Python package does for a command |
//! | [`volumes`] | commands for volumes whose results the Python package takes as values |
//!
//! Results go to standard output, progress and errors to standard error. Exit code 0: done; 1: it
//! failed; 2: it was asked for in a way that cannot work.

// Used within this workspace alone: a comment stands where a name does not say it all.
#![allow(missing_docs)]

mod bundled;
pub mod bytes;
pub mod characterizing;
mod cli;
mod commands;
pub mod draws;
pub mod error;
mod fitting;
pub mod input;
mod output;
pub mod plan;
mod progress;
pub mod python;
pub mod runs;
pub mod volumes;

use std::ffi::OsString;

use clap::Parser;

use python::Python;

/// Carries out a command line, whose first argument is the name of the program, and gives the exit status.
pub fn run(arguments: impl IntoIterator<Item = OsString>, python: &dyn Python) -> u8 {
    let cli = match cli::Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(message) => {
            // Help and usage errors; a closed pipe is no reason to complain.
            let _ = message.print();
            return u8::try_from(message.exit_code()).unwrap_or(2);
        }
    };
    match commands::run(cli.command, python) {
        Ok(()) => 0,
        Err(error) => error.report(),
    }
}
