//! The command line as clap derives it. What a flag means to users stands here and nowhere else.

mod definition;
mod page;
mod reproduce;
mod run;
mod trace;
mod volume;

use clap::{Parser, Subcommand};
use flashlore_trace::Format;

pub use definition::{CompletionShell, CompletionsArgs, ManArgs};
pub use page::{ReportArgs, SweepArgs};
pub use reproduce::ReproduceArgs;
pub use run::{CompareArgs, DemoArgs, RerunArgs, RunArgs, SimulateArgs};
pub use trace::{
    CharacterizeArgs, ConvertArgs, FitArgs, InfoArgs, ProfilesArgs, Rating, SynthArgs, TraceCommand,
};
pub use volume::{
    ArrayArgs, ArrayBudgets, ArrayCommand, ArrayMode, BenchArgs, BenchPattern, CheckArgs,
    CloneArgs, CreateArgs, DiffArgs, DumpArgs, DumpPart, ExportArgs, FilterArgs, ImportArgs,
    InfoVolumeArgs, LeaveArgs, LogArgs, MarkArgs, MountArgs, OnPressure, PurgeArgs, ReadVolumeArgs,
    RebuildArgs, RecordArgs, RecoverArgs, ReplaceFastArgs, ResizeArgs, ScrubArgs, ServeArgs,
    ServingArgs, SnapshotCommand, SnapshotListArgs, TuneArgs, UpgradeArgs, VolumeArgs,
    VolumeSystem,
};

/// A content-aware flash translation layer: replays block traces in simulated time on a plain SSD
/// and on content-aware ones, and serves persistent volumes that go back in time.
#[derive(Parser)]
#[command(name = "flashlore", version, after_help = EXAMPLES, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  flashlore demo
  flashlore compare my-trace.csv.gz --content distinct
  flashlore compare demo:maildir --set dedup.index_entries=1Ki
  flashlore trace info my-trace.csv.gz
  flashlore trace characterize my-trace.csv.gz
  flashlore compare profile:mail,scale=0.1
  flashlore create disk --size 10GiB && flashlore serve disk
  flashlore recover disk --to \"10min ago\" --dry-run

A trace is a file in a known format (fiu, msr, spc, alibaba, tencent, systor, cloudphysics, disksim,
ssdsim, blkparse, fio, vscsi, native), plain or compressed by gzip, xz or zstd; `-` is standard
input, `demo:NAME` a capture inside the program, `profile:NAME` a synthetic workload (`flashlore
trace profiles` lists them; `profile:NAME,scale=0.1,seed=2` is a tenth of it, drawn anew).";

/// Help of a flag that names the format of an input.
fn readable(what: &str) -> String {
    format!(
        "{what}: {}; blkparse:Q, :D, :I or :C names the action [default: recognised]",
        Format::list(&Format::ALL)
    )
}

/// What to do.
#[derive(Subcommand)]
pub enum Command {
    /// Replay the captures inside the program on a plain SSD and on CA-SSD
    Demo(DemoArgs),
    /// Replay traces on several systems and set them side by side
    Compare(CompareArgs),
    /// Replay traces on one system
    Simulate(SimulateArgs),
    /// Look at traces, or convert them
    #[command(subcommand)]
    Trace(TraceCommand),
    /// List the systems, or print one as TOML
    Systems(ListArgs),
    /// List the devices, or print one as TOML
    Devices(ListArgs),
    /// Repeat the runs of a results file and verify that nothing differs
    Rerun(RerunArgs),
    /// Make a page of results, with figures, that opens without a network
    Report(ReportArgs),
    /// Run a grid of configurations, here or on a cluster
    Sweep(SweepArgs),
    /// Repeat the experiments of a paper and judge what comes out
    Reproduce(ReproduceArgs),
    /// Make a persistent volume, or an array of an SSD and a disk
    Create(CreateArgs),
    /// Give an array other media, or its disk image back
    #[command(subcommand)]
    Array(ArrayCommand),
    /// Fill a machine of an array as a clone of another one
    Clone(CloneArgs),
    /// Show or change how an array works, also while it is served
    Tune(TuneArgs),
    /// Make a volume or an array larger
    Resize(ResizeArgs),
    /// Give a volume of an older program the present format
    Upgrade(UpgradeArgs),
    /// Serve a volume or an array over NBD
    Serve(ServeArgs),
    /// Serve a volume and record what clients do as a trace
    Record(RecordArgs),
    /// Mount a volume as a file, with its instants beside it, or an array as a file for each machine
    Mount(MountArgs),
    /// Show the state of a volume or an array
    Info(InfoVolumeArgs),
    /// Show what happened to a volume, and how far back it goes
    Log(LogArgs),
    /// Make, list or delete snapshots of a volume
    #[command(subcommand)]
    Snapshot(SnapshotCommand),
    /// Remember the present as a consistency point
    Mark(MarkArgs),
    /// Bring a volume back to an instant
    Recover(RecoverArgs),
    /// Write bytes of a volume, as they are or were, to standard output
    Read(ReadVolumeArgs),
    /// List what differs between two instants of a volume
    Diff(DiffArgs),
    /// Forget old versions
    Purge(PurgeArgs),
    /// Copy a raw disk image into a volume
    Import(ImportArgs),
    /// Copy a volume, or an instant of it, into a raw disk image
    Export(ExportArgs),
    /// Check a volume or an array that is not open: structures, references, checksums
    Check(CheckArgs),
    /// Read every stored page of a volume, or every block of an array
    Scrub(ScrubArgs),
    /// Show what lies on the medium of a volume, in words
    Dump(DumpArgs),
    /// Measure how fast a volume is under a load
    Bench(BenchArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Print the manual page, or write one for each command
    Man(ManArgs),
}

/// Flags of `systems` and `devices`.
#[derive(clap::Args)]
#[command(after_help = LIST_EXAMPLES)]
pub struct ListArgs {
    /// A preset or a TOML file, printed with every key that is in use; without it, a list
    pub name: Option<String>,
    /// Change a key before printing, as in `compare`
    #[arg(long, value_name = "KEY=VALUE", requires = "name")]
    pub set: Vec<String>,
}

const LIST_EXAMPLES: &str = "\
Examples:
  flashlore systems
  flashlore systems ca-ssd > my.toml
  flashlore devices ca-ssd-4g --set device.capacity=3GiB > small.toml";

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        super::Cli::command().debug_assert();
    }

    #[test]
    fn the_examples_name_every_format() {
        for format in flashlore_trace::Format::ALL {
            assert!(super::EXAMPLES.contains(format.name()), "{format}");
        }
    }
}
