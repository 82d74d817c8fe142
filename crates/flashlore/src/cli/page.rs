//! Flags of `report` and `sweep`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use flashlore_sim::config::Size;

/// Flags of `report`.
#[derive(Args)]
#[command(
    after_help = "Example:\n  flashlore compare demo:maildir --timeline 1s --out results\n  \
                  flashlore report results -o report.html"
)]
pub struct ReportArgs {
    /// A directory of --out, or a results.json
    pub results: PathBuf,
    /// The page
    #[arg(long, short, value_name = "FILE", default_value = "report.html")]
    pub output: PathBuf,
    /// Its title
    #[arg(long)]
    pub title: Option<String>,
    /// Replace a page that is there already
    #[arg(long)]
    pub force: bool,
}

/// Flags of `sweep`.
#[derive(Args)]
#[command(after_help = "Examples:\n  flashlore sweep spare.toml -o spare\n  \
                  flashlore sweep spare.toml --scheduler tcp://head:8786")]
pub struct SweepArgs {
    /// What is swept, as TOML
    pub file: PathBuf,
    /// Directory of the results; cells that are there are not run again [default: the name of the file]
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// A Dask scheduler, or its scheduler file; without it the cells run in processes of this machine
    #[arg(long, value_name = "ADDRESS")]
    pub scheduler: Option<String>,
    /// Send the files of traces to the workers, which then need not see their paths
    #[arg(long, requires = "scheduler")]
    pub send_traces: bool,
    /// Processes at a time, without a scheduler [default: the cores there are]
    #[arg(long, value_name = "N", conflicts_with = "scheduler")]
    pub jobs: Option<NonZeroUsize>,
    /// Most memory of each process, without a scheduler; a cell that needs more fails
    #[arg(long, value_name = "SIZE", conflicts_with = "scheduler")]
    pub memory: Option<Size>,
    /// Try cells again that failed before
    #[arg(long)]
    pub retry_failed: bool,
    /// Replace the results of another grid in the directory; its finished cells are kept
    #[arg(long)]
    pub force: bool,
    /// Print the results as JSON instead of a table
    #[arg(long)]
    pub json: bool,
}
