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
