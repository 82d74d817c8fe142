//! Flags of the commands for persistent volumes.
//!
//! | module | commands |
//! |---|---|
//! | [`array`] | `array` |
//! | [`mod@bench`] | `bench` |
//! | [`create`] | `create`, `clone`, `mount` |
//! | [`mod@serve`] | `serve`, `record` |
//! | [`resize`] | `resize` |
//! | [`upgrade`] | `upgrade` |
//! | [`tune`] | `tune` |
//! | [`history`] | `log`, `snapshot`, `mark`, `recover`, `read`, `diff`, `purge` |
//!
//! Here: what all share, and the commands that look at a volume.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use flashlore_serve::Budget;
use flashlore_sim::config::Size;

mod array;
mod bench;
mod create;
mod history;
mod resize;
mod serve;
mod tune;
mod upgrade;

pub use array::{ArrayCommand, LeaveArgs, RebuildArgs, ReplaceFastArgs};
pub use bench::{BenchArgs, BenchPattern};
pub use create::{
    ArrayArgs, ArrayBudgets, ArrayMode, CloneArgs, CreateArgs, MountArgs, OnPressure, VolumeSystem,
};
pub use history::{
    DiffArgs, LogArgs, MarkArgs, PurgeArgs, ReadVolumeArgs, RecoverArgs, SnapshotCommand,
    SnapshotListArgs,
};
pub use resize::ResizeArgs;
pub use serve::{FilterArgs, RecordArgs, ServeArgs, ServingArgs};
pub use tune::TuneArgs;
pub use upgrade::UpgradeArgs;

/// The volume of a command.
#[derive(Args, Clone)]
pub struct VolumeArgs {
    /// The directory of the volume or the array
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Bypass the page cache
    #[arg(long)]
    pub direct: bool,
    /// The memory that it may take, of commands that can be told
    #[arg(skip)]
    pub budget: Budget,
}

/// The memory of a volume that a command opens.
#[derive(Args)]
pub struct MemoryArgs {
    /// The most memory for the volume, such as 512MiB: what is needed for its size, and of the rest half for its
    /// fingerprint index and half for pages of its tables, which come and go [default: a quarter of the machine's, at most
    /// 4GiB, or as much as it needs at least]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<Size>,
    /// Of it, memory for the fingerprint index; what has no room in it is not found as a duplicate
    #[arg(long, value_name = "SIZE")]
    pub index: Option<Size>,
}

impl MemoryArgs {
    /// The volume, which may take so much.
    pub fn of(&self, volume: &VolumeArgs) -> VolumeArgs {
        VolumeArgs {
            budget: Budget {
                memory: self.memory.map(|size| size.0),
                index: self.index.map(|size| size.0),
            },
            ..volume.clone()
        }
    }
}

/// Flags of `info`.
#[derive(Args)]
#[command(after_help = "Examples:\n  flashlore info disk\n  flashlore info disk --json")]
pub struct InfoVolumeArgs {
    /// The volume
    #[command(flatten)]
    pub volume: VolumeArgs,
    /// Print JSON; sizes in bytes, instants in nanoseconds since 1970
    #[arg(long)]
    pub json: bool,
}

/// Flags of `import`.
#[derive(Args)]
#[command(after_help = "Examples:\n  flashlore import disk image.raw\n  \
                        flashlore import disk image.raw --trim-rest\n\n\
                        Pages of zeros are trimmed. What the volume shows behind the end of a shorter image stays as\n\
                        it is, which is told, unless --trim-rest makes it zeros. A served volume is filled over NBD:\n\
                        nbdcopy image.raw URI")]
pub struct ImportArgs {
    /// The volume
    #[command(flatten)]
    pub volume: VolumeArgs,
    /// Its memory
    #[command(flatten)]
    pub memory: MemoryArgs,
    /// The raw disk image
    #[arg(value_name = "IMAGE")]
    pub image: PathBuf,
    /// Into which machine of an array [default: the first one]
    #[arg(long, value_name = "N")]
    pub machine: Option<u8>,
    /// Make zeros of what the volume or machine shows behind the end of a shorter image
    #[arg(long)]
    pub trim_rest: bool,
}

/// Flags of `export`.
#[derive(Args)]
#[command(after_help = "Examples:\n  flashlore export disk copy.raw\n  \
                        flashlore export disk hour-ago.raw --at \"1h ago\"\n  \
                        flashlore export vms second.raw --machine 1\n  \
                        flashlore export vms saved.raw --slow-alone")]
pub struct ExportArgs {
    /// The volume
    #[command(flatten)]
    pub volume: VolumeArgs,
    /// Its memory
    #[command(flatten)]
    pub memory: MemoryArgs,
    /// The raw disk image; one that exists is not overwritten
    #[arg(value_name = "IMAGE")]
    pub image: PathBuf,
    /// As it was at this instant: "10min ago", a time in RFC 3339, or a snapshot
    #[arg(long, value_name = "INSTANT")]
    pub at: Option<String>,
    /// Write zeros for pages that cannot be read and list them, instead of giving up
    #[arg(long)]
    pub skip_bad: bool,
    /// Write zeros for what was purged of the instant and list it, instead of giving up
    #[arg(long)]
    pub allow_missing: bool,
    /// Of which machine of an array [default: the first one]
    #[arg(long, value_name = "N")]
    pub machine: Option<u8>,
    /// An array whose fast medium is lost: copy what the slow one holds (made with --ordered)
    #[arg(long, conflicts_with = "at")]
    pub slow_alone: bool,
}

/// Flags of `check`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  flashlore check disk\n  flashlore check disk --affected\n  \
                        flashlore check disk --memory 1GiB\n\n\
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
    /// The most memory for the check of a volume, such as 512MiB: with less of it the tables are read more often
    /// [default: a quarter of the machine's, at most 4GiB, or as much as it needs at least]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<Size>,
    /// First derive the superblocks of a volume from the rest, where both are older than that; this writes to the volume
    #[arg(long)]
    pub rebuild_superblocks: bool,
}

/// Flags of `scrub`.
#[derive(Args)]
#[command(after_help = "Example:\n  flashlore scrub disk\n\n\
                        Reads every stored page, those of old versions too; of an array every block of its machines,\n\
                        in RAM and where it is durable. Exit code 1 if one cannot be read. What is not served is\n\
                        only looked at: nothing is written.")]
pub struct ScrubArgs {
    /// The volume
    #[command(flatten)]
    pub volume: VolumeArgs,
    /// Its memory
    #[command(flatten)]
    pub memory: MemoryArgs,
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
