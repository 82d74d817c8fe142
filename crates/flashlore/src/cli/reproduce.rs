//! Flags of `reproduce`.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

use clap::Args;

/// Flags of `reproduce`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct ReproduceArgs {
    /// The paper: ca-ssd, delta-ftl, bvssd, i-cash; combined and i-cash-control, our own experiments; a TOML file
    /// like theirs; or all, for the six in one go
    pub paper: String,
    /// Only the claims of one figure, table or section, with the runs they need
    #[arg(long, value_name = "FIGURE")]
    pub figure: Option<String>,
    /// Scale workloads, devices and indexes down to this factor, if they are not below it; what is then measured
    /// is shown and not judged
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pub scale: f64,
    /// A look at how it works: the scale and the figures that the experiment names for it
    #[arg(long, conflicts_with_all = ["figure", "scale"])]
    pub quick: bool,
    /// Where the captures are that an experiment replays: NAME.fiu.xz, with pages in NAME.pages.zst; without it `all`
    /// leaves out what needs them
    #[arg(long, value_name = "DIR")]
    pub captures: Option<PathBuf>,
    /// Where traces are that the papers used, as they were published, perhaps compressed: those that are there by the
    /// names that the experiment knows are replayed, whole, instead of the profiles that stand for them
    #[arg(long, value_name = "DIR", conflicts_with_all = ["scale", "quick"])]
    pub traces: Option<PathBuf>,
    /// First seed of all random choices
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
    /// So many seeds, from the first on: figures are then means with 95 % intervals, and what is accepted must hold the
    /// whole interval [default: 5, with --quick 1]
    #[arg(long, value_name = "N")]
    pub seeds: Option<NonZeroU32>,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
    /// Write a page with figures, published beside measured, that opens without a network
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Replace a page that is there already
    #[arg(long)]
    pub force: bool,
    /// Fail when a claim has a number outside what is accepted
    #[arg(long)]
    pub strict: bool,
    /// Workloads at a time [default: the cores there are]
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
}

const EXAMPLES: &str = "\
Examples:
  flashlore reproduce all --captures captures --report papers.html
  flashlore reproduce all --quick
  flashlore reproduce ca-ssd --figure 7a
  flashlore reproduce ca-ssd --scale 0.05
  flashlore reproduce delta-ftl --seeds 1
  flashlore reproduce combined --captures captures
  flashlore reproduce i-cash --figure table6
  flashlore reproduce ca-ssd --json > ca-ssd.json";
