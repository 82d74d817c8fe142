//! Flags of `bench`.

use std::num::{NonZeroU64, NonZeroUsize};

use clap::{Args, ValueEnum};
use flashlore_sim::config::{Nanos, Share, Size};

use super::{VolumeArgs, VolumeSystem};

/// Which requests come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BenchPattern {
    /// Writes anywhere
    Randwrite,
    /// Reads anywhere
    Randread,
    /// Writes one behind the other, from the start again at the end
    Write,
    /// Reads one behind the other
    Read,
    /// Reads, trims and writes anywhere, by --reads and --trims
    Mixed,
}

/// Flags of `bench`.
#[derive(Args)]
#[command(after_help = "Examples:\n  flashlore bench /var/tmp\n  \
                        flashlore bench disk --pattern randread --depth 8 --time 30s\n  \
                        flashlore bench disk --overwrite --duplicates 50% --flush-every 32 --json\n\n\
                        If DIR holds no volume, one is made in a directory of its own in DIR and removed at the end;\n\
                        it is filled before reads are measured. The volume is used directly, without NBD. Bytes that\n\
                        are no duplicates are random. SIGINT ends it early, with results.")]
pub struct BenchArgs {
    /// The volume, or where to make one
    #[command(flatten)]
    pub volume: VolumeArgs,
    /// Which requests come
    #[arg(long, value_enum, default_value = "randwrite")]
    pub pattern: BenchPattern,
    /// Requests at once, at most 1,024 and 1GiB
    #[arg(long, value_name = "N", default_value = "1")]
    pub depth: NonZeroUsize,
    /// Bytes of each request, at most 32MiB
    #[arg(long, value_name = "BYTES", default_value = "4KiB")]
    pub block_size: Size,
    /// The share of pages written that are duplicates, of one of 1,024 values
    #[arg(long, value_name = "SHARE", default_value = "0")]
    pub duplicates: Share,
    /// The share of each page written that is zeros, so that it compresses
    #[arg(long, value_name = "SHARE", default_value = "0")]
    pub compressible: Share,
    /// The share of reads of `mixed` [default: 50%]
    #[arg(long, value_name = "SHARE")]
    pub reads: Option<Share>,
    /// The share of trims of `mixed` [default: 0]
    #[arg(long, value_name = "SHARE")]
    pub trims: Option<Share>,
    /// Requests a second, at equal distances [default: as many as the volume takes]
    #[arg(long, value_name = "N")]
    pub rate: Option<NonZeroU64>,
    /// Flush after every so many requests; 0: only at the end
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub flush_every: u64,
    /// How long it runs
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "10s",
        conflicts_with = "operations"
    )]
    pub time: Nanos,
    /// How many requests it sends, instead
    #[arg(long, value_name = "N")]
    pub operations: Option<NonZeroU64>,
    /// What is drawn
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Write to a volume that holds something
    #[arg(long)]
    pub overwrite: bool,
    /// The size of a volume made for this [default: 256MiB]
    #[arg(long, value_name = "BYTES")]
    pub size: Option<Size>,
    /// What a volume made for this does with content [default: combined]
    #[arg(long, value_enum)]
    pub system: Option<VolumeSystem>,
    /// Print JSON; times in nanoseconds
    #[arg(long)]
    pub json: bool,
}
