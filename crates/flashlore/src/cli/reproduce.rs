//! Flags of `reproduce`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

/// Flags of `reproduce`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct ReproduceArgs {
    /// The paper: ca-ssd, delta-ftl, bvssd, i-cash; combined and i-cash-control, our own experiments; or a TOML file
    /// like theirs
    pub paper: String,
    /// Only the checks of one figure or table, with the runs they need
    #[arg(long, value_name = "FIGURE")]
    pub figure: Option<String>,
    /// Scale workloads, devices and indexes down to this factor, if they are not below it
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pub scale: f64,
    /// Where the captures are that an experiment replays: NAME.fiu.xz, with pages in NAME.pages.zst
    #[arg(long, value_name = "DIR")]
    pub captures: Option<PathBuf>,
    /// Seed of all random choices
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
    /// Fail when a check differs
    #[arg(long)]
    pub strict: bool,
    /// Workloads at a time [default: the cores there are]
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
}

const EXAMPLES: &str = "\
Examples:
  flashlore reproduce ca-ssd --figure 7a
  flashlore reproduce ca-ssd --scale 0.05
  flashlore reproduce delta-ftl
  flashlore reproduce combined --captures captures
  flashlore reproduce i-cash --figure table6
  flashlore reproduce ca-ssd --json > ca-ssd.json";
