//! The command `flashlore`: definition and glue.
//!
//! | module | what it is |
//! |---|---|
//! | [`cli`] | the flags, as clap derives them |
//! | [`commands`] | one file a command: flags to objects, objects to output |
//! | [`plan`] | systems, device, host and seeds to configurations |
//! | [`input`] | traces to workloads, shared between runs; [`bundled`] the captures inside |
//! | [`runs`] | runs on all cores, in order; [`progress`] the ticker |
//! | [`output`] | standard output; [`error`] messages and exit codes |
//!
//! Results go to standard output, progress and errors to standard error. Exit code 0: done; 1: it
//! failed; 2: it was asked for in a way that cannot work.

mod bundled;
mod bytes;
mod cli;
mod commands;
mod error;
mod fitting;
mod input;
mod output;
mod plan;
mod progress;
mod runs;

use std::process::ExitCode;

use clap::Parser;

/// The system's allocator, until `--memory` lets large tables lie in a scratch file.
#[global_allocator]
static ALLOCATOR: flashlore_paged::Paged = flashlore_paged::Paged;

fn main() -> ExitCode {
    let cli = match cli::Cli::try_parse() {
        Ok(cli) => cli,
        Err(message) => {
            // Help and usage errors; a closed pipe is no reason to complain.
            let _ = message.print();
            return ExitCode::from(u8::try_from(message.exit_code()).unwrap_or(2));
        }
    };
    match commands::run(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report(),
    }
}
