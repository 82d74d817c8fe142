//! One file a command.

mod characterize;
mod definition;
mod demo;
mod fit;
mod list;
mod page;
mod replay;
mod reproduce;
mod rerun;
mod synth;
mod trace;
pub(crate) mod volume;

use crate::cli::{Command, TraceCommand};
use crate::error::CliError;
use crate::python::Python;

/// Does what was asked.
pub fn run(command: Command, python: &dyn Python) -> Result<(), CliError> {
    match command {
        Command::Demo(args) => demo::demo(&args, python),
        Command::Compare(args) => replay::compare(&args),
        Command::Simulate(args) => replay::simulate(&args),
        Command::Trace(TraceCommand::Info(args)) => trace::info(&args),
        Command::Trace(TraceCommand::Convert(args)) => trace::convert(&args),
        Command::Trace(TraceCommand::Characterize(args)) => characterize::characterize(&args),
        Command::Trace(TraceCommand::Fit(args)) => fit::fit(&args),
        Command::Trace(TraceCommand::Synth(args)) => synth::synth(&args),
        Command::Trace(TraceCommand::Profiles(args)) => synth::profiles(&args),
        Command::Systems(args) => list::systems(&args),
        Command::Devices(args) => list::devices(&args),
        Command::Report(args) => page::report(&args, python),
        Command::Sweep(args) => page::sweep(&args, python),
        Command::Reproduce(args) => reproduce::reproduce(&args, python),
        Command::Create(args) => volume::create(&args),
        Command::Array(command) => volume::array(&command),
        Command::Clone(args) => volume::clone(&args),
        Command::Tune(args) => volume::tune(&args),
        Command::Resize(args) => volume::resize(&args),
        Command::Upgrade(args) => volume::upgrade(&args),
        Command::Serve(args) => volume::serve(&args),
        Command::Record(args) => volume::record(&args),
        Command::Mount(args) => volume::mount(&args),
        Command::Info(args) => volume::info(&args),
        Command::Log(args) => volume::log(&args),
        Command::Snapshot(command) => volume::snapshot(&command),
        Command::Mark(args) => volume::mark(&args),
        Command::Recover(args) => volume::recover(&args),
        Command::Read(args) => volume::read(&args),
        Command::Diff(args) => volume::diff(&args),
        Command::Purge(args) => volume::purge(&args),
        Command::Import(args) => volume::import(&args),
        Command::Export(args) => volume::export(&args),
        Command::Check(args) => volume::check(&args),
        Command::Scrub(args) => volume::scrub(&args),
        Command::Dump(args) => volume::dump(&args),
        Command::Bench(args) => volume::bench(&args),
        Command::Completions(args) => definition::completions(&args),
        Command::Man(args) => definition::man(&args),
        Command::Rerun(args) => rerun::rerun(&args),
    }
}
