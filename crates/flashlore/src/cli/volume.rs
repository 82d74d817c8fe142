//! Flags of the commands for persistent volumes.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use flashlore_sim::config::Size;

/// What a volume does with the content of its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum VolumeSystem {
    /// Store every page
    Plain,
    /// Store one page per distinct value; bytes are compared before a page is shared
    CaSsd,
    /// The same, but pages with equal keyed 128-bit digests are taken for equal without comparing
    CaSsdTrusted,
}

/// Flags of `create`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  flashlore create disk --size 100GiB --system ca-ssd\n  \
                        flashlore create disk --size 100GiB --capacity 40GiB --system ca-ssd"
)]
pub struct CreateArgs {
    /// The directory of the new volume; it must not hold one
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Bytes the volume shows, such as 100GiB
    #[arg(long)]
    pub size: Size,
    /// What the content of pages is used for
    #[arg(long, value_enum, default_value = "ca-ssd")]
    pub system: VolumeSystem,
    /// Bytes of distinct content it can hold [default: the size]
    #[arg(long)]
    pub capacity: Option<Size>,
}

/// The volume of a command.
#[derive(Args)]
pub struct VolumeArgs {
    /// The directory of the volume
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Bypass the page cache
    #[arg(long)]
    pub direct: bool,
}

/// Flags of `import` and `export`.
#[derive(Args)]
#[command(after_help = "Examples:\n  flashlore import disk image.raw\n  \
                        flashlore export disk copy.raw")]
pub struct ImageArgs {
    /// The volume
    #[command(flatten)]
    pub volume: VolumeArgs,
    /// The raw disk image; `export` refuses to overwrite one
    #[arg(value_name = "IMAGE")]
    pub image: PathBuf,
}

/// Flags of `check`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  flashlore check disk\n  flashlore check disk --affected\n\n\
                        Exit code 1 if anything does not hold. Nothing is written."
)]
pub struct CheckArgs {
    /// The volume
    #[command(flatten)]
    pub volume: VolumeArgs,
    /// Do not read the stored pages, only what describes them
    #[arg(long, conflicts_with = "affected")]
    pub quick: bool,
    /// List every address hit by a page that cannot be read, one a line
    #[arg(long, conflicts_with = "json")]
    pub affected: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Flags of `scrub`.
#[derive(Args)]
#[command(after_help = "Example:\n  flashlore scrub disk\n\n\
                        Opens the volume, recovers it if it was not closed, reads every stored page, and\n\
                        rewrites a broken copy of the superblock. Exit code 1 if a page cannot be read.")]
pub struct ScrubArgs {
    /// The volume
    #[command(flatten)]
    pub volume: VolumeArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// A part of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DumpPart {
    /// Superblocks and roots
    Heads,
    /// The tables of the last checkpoint
    Tables,
    /// The journal after it
    Journal,
    /// The records of all flash pages
    Records,
}

/// Flags of `dump`.
#[derive(Args)]
#[command(after_help = "Examples:\n  flashlore dump disk\n  \
                        flashlore dump disk --part journal,records | less\n\n\
                        docs/format.md explains every field.")]
pub struct DumpArgs {
    /// The volume
    #[command(flatten)]
    pub volume: VolumeArgs,
    /// Which parts to show
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_values = ["heads", "journal"]
    )]
    pub part: Vec<DumpPart>,
}
