//! Flags of `trace`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use flashlore_trace::Format;

use super::readable;

/// Look at traces, or convert them.
#[derive(Subcommand)]
pub enum TraceCommand {
    /// Print format, mix, sizes, footprint, span and content of a trace
    Info(InfoArgs),
    /// Write a trace in another format
    Convert(ConvertArgs),
    /// Write the synthetic workload of a profile
    Synth(SynthArgs),
    /// List the profiles that come with the program
    Profiles(ProfilesArgs),
}

/// Flags of `trace info`.
#[derive(Args)]
#[command(after_help = "Examples:\n  flashlore trace info mail.fiu.xz\n  \
                        flashlore trace info demo:maildir --json")]
pub struct InfoArgs {
    /// The trace
    pub trace: PathBuf,
    #[arg(long, value_name = "FORMAT", help = readable("Its format"))]
    pub format: Option<Format>,
    /// Skip malformed records, and count them, instead of stopping
    #[arg(long)]
    pub lenient: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Flags of `trace convert`.
#[derive(Args)]
#[command(after_help = CONVERT_EXAMPLES)]
pub struct ConvertArgs {
    /// The trace
    #[arg(value_name = "IN")]
    pub input: PathBuf,
    /// The file to write, which is replaced if it exists
    #[arg(value_name = "OUT")]
    pub output: PathBuf,
    #[arg(long, value_name = "FORMAT", help = readable("Format of the input"))]
    pub format: Option<Format>,
    #[arg(long, value_name = "FORMAT", help = writable())]
    pub to: Option<Format>,
    /// Leave out the content where the output format has no place for it
    #[arg(long)]
    pub drop_content: bool,
    /// Skip malformed records, and count them, instead of stopping
    #[arg(long)]
    pub lenient: bool,
}

/// Flags of `trace synth`.
#[derive(Args)]
#[command(after_help = SYNTH_EXAMPLES)]
pub struct SynthArgs {
    /// The profile: a preset or a TOML file
    #[arg(value_name = "NAME|FILE")]
    pub profile: String,
    /// The file to write, which is replaced if it exists
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
    #[arg(long, value_name = "FORMAT", help = writable())]
    pub to: Option<Format>,
    /// Factor on requests, footprint, duration and gaps
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pub scale: f64,
    /// Requests instead of the profile's number; the duration changes with them, the footprint does
    /// not
    #[arg(long, value_name = "N")]
    pub requests: Option<u64>,
    /// Seed of every draw
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Leave out the content where the output format has no place for it
    #[arg(long)]
    pub drop_content: bool,
}

const SYNTH_EXAMPLES: &str = "\
Examples:
  flashlore trace synth mail -o mail.parquet
  flashlore trace synth homes-7d --scale 0.1 --seed 2 -o homes.fiu
  flashlore trace synth my-profile.toml --requests 100000 -o my.txt --to disksim

A profile need not be written to be replayed: `flashlore compare profile:mail,scale=0.1`.";

/// Flags of `trace profiles`.
#[derive(Args)]
#[command(after_help = "Examples:\n  flashlore trace profiles\n  flashlore trace profiles --json")]
pub struct ProfilesArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Help of the output's format.
fn writable() -> String {
    format!(
        "Format of the output: {} [default: by the ending of OUT: .parquet is native, others by \
         name]",
        Format::list(&Format::WRITABLE)
    )
}

const CONVERT_EXAMPLES: &str = "\
Examples:
  flashlore trace convert mail.fiu.xz mail.parquet
  flashlore trace convert prxy_0.csv.gz prxy_0.txt --to disksim
  flashlore trace convert mail.fiu.xz mail.msr --drop-content

Native traces (Parquet) are replayed fastest and without being held in memory. Text is written
uncompressed.";
