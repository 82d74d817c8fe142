//! Flags of the commands that look into the past of a volume, go back to it, or forget it.

use clap::{Args, Subcommand};
use flashlore_sim::config::Size;

use super::{MemoryArgs, VolumeArgs};

/// Flags of `log`.
#[derive(Args)]
#[command(after_help = "Example:\n  flashlore log disk --most 50")]
pub struct LogArgs {
    /// The volume
    #[command(flatten)]
    pub volume: VolumeArgs,
    /// The most lines: the latest are shown
    #[arg(long, default_value_t = 20)]
    pub most: usize,
    /// Print JSON; instants in nanoseconds since 1970
    #[arg(long)]
    pub json: bool,
}

/// What to do with snapshots.
#[derive(Subcommand)]
pub enum SnapshotCommand {
    /// Keep an instant until the snapshot is deleted
    Create(SnapshotCreateArgs),
    /// List the snapshots
    List(SnapshotListArgs),
    /// Give a snapshot up
    Delete(SnapshotDeleteArgs),
}

/// Flags of `snapshot create`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  flashlore snapshot create disk before-upgrade\n  \
                        flashlore snapshot create disk noon --at 2026-01-01T12:00:00Z"
)]
pub struct SnapshotCreateArgs {
    /// The volume
    #[command(flatten)]
    pub volume: VolumeArgs,
    /// Its name: letters, digits, '.', '_', '-', a letter first
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Which instant [default: the present]
    #[arg(long, value_name = "INSTANT")]
    pub at: Option<String>,
}

/// Flags of `snapshot list`.
#[derive(Args)]
pub struct SnapshotListArgs {
    /// The volume
    #[command(flatten)]
    pub volume: VolumeArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Flags of `snapshot delete`.
#[derive(Args)]
pub struct SnapshotDeleteArgs {
    /// The volume
    #[command(flatten)]
    pub volume: VolumeArgs,
    /// Its name, or its instant
    #[arg(value_name = "SNAPSHOT")]
    pub snapshot: String,
}

/// Flags of `mark`.
#[derive(Args)]
#[command(
    after_help = "Example:\n  sync -f mnt && flashlore mark disk backup\n  \
                        flashlore recover disk --to now --to-mark\n\n\
                        Makes everything so far durable. The mark keeps nothing: the window may pass it."
)]
pub struct MarkArgs {
    /// The volume
    #[command(flatten)]
    pub volume: VolumeArgs,
    /// Its name
    #[arg(value_name = "NAME")]
    pub name: String,
}

/// Flags of `recover`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  flashlore recover disk --to \"10min ago\" --dry-run\n  \
                        flashlore recover disk --to 2026-01-01T12:00:00Z\n  \
                        flashlore recover disk --to before-upgrade\n\n\
                        It can be undone: what was before is in the history too. Refused while a client of a\n\
                        served volume may write; the instant can be looked at as the export NAME@INSTANT instead."
)]
pub struct RecoverArgs {
    /// The volume
    #[command(flatten)]
    pub volume: VolumeArgs,
    /// Its memory
    #[command(flatten)]
    pub memory: MemoryArgs,
    /// The instant: "10min ago", a time in RFC 3339, a snapshot, or "now"
    #[arg(long, value_name = "INSTANT")]
    pub to: String,
    /// Rather the last mark at that instant or before
    #[arg(long)]
    pub to_mark: bool,
    /// Only tell what would change
    #[arg(long)]
    pub dry_run: bool,
    /// Drop clients that may write first
    #[arg(long)]
    pub disconnect: bool,
    /// Go back where something was purged, too: it is told, and holds zeros then
    #[arg(long)]
    pub allow_missing: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Flags of `read`.
#[derive(Args)]
#[command(
    after_help = "Example:\n  flashlore read disk --at \"10min ago\" --offset 1MiB --length 4KiB | xxd"
)]
pub struct ReadVolumeArgs {
    /// The volume
    #[command(flatten)]
    pub volume: VolumeArgs,
    /// The instant [default: the present]
    #[arg(long, value_name = "INSTANT")]
    pub at: Option<String>,
    /// The first byte
    #[arg(long, default_value = "0")]
    pub offset: Size,
    /// How many [default: up to the end]
    #[arg(long)]
    pub length: Option<Size>,
    /// Go on where something was purged: it is told, and reads as zeros
    #[arg(long)]
    pub allow_missing: bool,
    /// Of which machine of an array [default: the first one]
    #[arg(long, value_name = "N")]
    pub machine: Option<u8>,
}

/// Flags of `diff`.
#[derive(Args)]
#[command(after_help = "Example:\n  flashlore diff disk \"1h ago\" now\n\n\
                        A line a range: first byte and number of bytes. Exit code 0 whether anything differs or not.")]
pub struct DiffArgs {
    /// The volume
    #[command(flatten)]
    pub volume: VolumeArgs,
    /// One instant
    #[arg(value_name = "A")]
    pub from: String,
    /// The other
    #[arg(value_name = "B", default_value = "now")]
    pub to: String,
    /// Go on where something was purged: it is told, and not among the ranges
    #[arg(long)]
    pub allow_missing: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Flags of `purge`.
#[derive(Args)]
#[command(after_help = "Examples:\n  flashlore purge disk --all --erase\n  \
                        flashlore purge disk --before \"1h ago\"\n  \
                        flashlore purge disk --offset 1GiB --length 64KiB --erase\n\n\
                        What is present stays; only old versions go. --all moves the start of the history to the\n\
                        last change and ends the snapshots that lack something then. A range leaves earlier\n\
                        instants, snapshots too, without it: reading it there is an error. --before leaves\n\
                        snapshots alone. What a protected window holds is not purged.")]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(false).args(["all", "before", "offset"]))]
pub struct PurgeArgs {
    /// The volume
    #[command(flatten)]
    pub volume: VolumeArgs,
    /// Forget all old versions
    #[arg(long)]
    pub all: bool,
    /// Forget every instant before this one
    #[arg(long, value_name = "INSTANT")]
    pub before: Option<String>,
    /// Forget the old versions of whole pages from this byte on
    #[arg(long, requires = "length")]
    pub offset: Option<Size>,
    /// So many bytes
    #[arg(long, requires = "offset")]
    pub length: Option<Size>,
    /// Erase what is forgotten from the medium too; this may copy most of what is stored
    #[arg(long)]
    pub erase: bool,
}
