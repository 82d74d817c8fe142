//! Flags of `create`, `clone` and `mount`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use flashlore_sim::config::{Nanos, Size};

use super::{MemoryArgs, VolumeArgs};

/// What a volume does with the content of its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum VolumeSystem {
    /// Store every page
    Plain,
    /// Store one page per distinct value; bytes are compared before a page is shared
    CaSsd,
    /// The same, but pages with equal keyed 128-bit digests are taken for equal without comparing
    CaSsdTrusted,
    /// Compress each page by itself
    Compress,
    /// Store what is overwritten again and again as compressed deltas
    DeltaFtl,
    /// Keep superseded pages: back to any instant
    Bvssd,
    /// Distinct values, deltas, compression and history
    Combined,
    /// An array of an SSD and a disk: blocks that resemble each other become deltas (--fast, --slow)
    #[value(name = "i-cash")]
    ICash,
}

/// What happens when the least window would not be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnPressure {
    /// The window becomes shorter
    Shrink,
    /// Writes fail: no space
    Enospc,
}

/// Flags of `create`.
#[derive(Args)]
#[command(after_help = "Examples:\n  flashlore create disk --size 100GiB\n  \
                        flashlore create disk --size 100GiB --system ca-ssd --capacity 40GiB\n  \
                        flashlore create disk --size 10GiB --min-window 1h --on-pressure enospc\n  \
                        flashlore create array --system i-cash --fast ssd.img --slow /dev/sdb --size 100GiB\n  \
                        flashlore create vms --system i-cash --fast ssd.img --slow disk.img --size 8GiB --machines 5\n  \
                        flashlore create safe --system i-cash --fast ssd.img --slow disk.img --size 8GiB \
                        --mode write-through\n  \
                        flashlore create debian --system i-cash --fast ssd.img --adopt debian.raw")]
pub struct CreateArgs {
    /// The directory of the new volume or array; it must hold neither
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Bytes the volume, or each machine of an array, shows, such as 100GiB; with --adopt those of the image
    #[arg(long, required_unless_present = "adopt")]
    pub size: Option<Size>,
    /// What the content of pages is used for
    #[arg(long, value_enum, default_value = "combined")]
    pub system: VolumeSystem,
    /// Bytes of pages it can hold, old versions included [default: the size, and half as much again
    /// with a history]
    #[arg(long)]
    pub capacity: Option<Size>,
    /// The window of old versions to keep, such as 1h [default: whatever fits]
    #[arg(long, value_name = "DURATION")]
    pub min_window: Option<Nanos>,
    /// What happens when that window does not fit
    #[arg(long, value_enum, default_value = "shrink", requires = "min_window")]
    pub on_pressure: OnPressure,
    /// What an array lies on
    #[command(flatten)]
    pub array: ArrayArgs,
}

/// What the durable content of an array may depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ArrayMode {
    /// On both media; a flush makes all durable (default)
    WriteBack,
    /// On the slow medium alone, and no change is acknowledged before it is durable there
    WriteThrough,
}

/// Flags of an array.
#[derive(Args)]
#[command(next_help_heading = "Arrays (--system i-cash)")]
pub struct ArrayArgs {
    /// The fast medium, meant to be an SSD: a block device, or a file, which is made if it is not there
    #[arg(long, value_name = "FILE")]
    pub fast: Option<PathBuf>,
    /// The slow medium, meant to be a hard disk, likewise
    #[arg(long, value_name = "FILE")]
    pub slow: Option<PathBuf>,
    /// Make the array around this disk image, in its file or at the begin of this block device: it becomes what machine
    /// 0 holds, and is not written before that is used. `array leave` gives it back
    #[arg(long, value_name = "IMAGE", conflicts_with = "slow")]
    pub adopt: Option<PathBuf>,
    /// Virtual machines, at most 256, each a disk of --size bytes [default: 1]
    #[arg(long, value_name = "N")]
    pub machines: Option<u16>,
    /// How much of fast medium and RAM it takes
    #[command(flatten)]
    pub budgets: ArrayBudgets,
    /// Write blocks home in order, so that the slow medium alone holds a consistent older state
    #[arg(long)]
    pub ordered: bool,
    /// What may be durable on the fast medium alone
    #[arg(long, value_enum)]
    pub mode: Option<ArrayMode>,
    /// Let no write of a client reach the fast medium: what has no short delta goes to the log
    #[arg(long)]
    pub strict: bool,
    /// Use media that hold something, which is lost; of an adopted image that is what lies behind it, never the image
    #[arg(long)]
    pub overwrite: bool,
}

/// How much of fast medium and RAM an array takes.
#[derive(Args, Clone, Copy, Default)]
pub struct ArrayBudgets {
    /// Bytes of the fast medium that are used [default: a tenth of the bytes of all machines]
    #[arg(long, value_name = "SIZE")]
    pub fast_size: Option<Size>,
    /// RAM for deltas [default: a quarter of the bytes of the fast medium, at least 1 MiB]
    #[arg(long, value_name = "SIZE")]
    pub delta_ram: Option<Size>,
}

/// Flags of `clone`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  flashlore import vms debian.raw\n  flashlore clone vms 0 1\n  \
                        flashlore clone vms 0 2 --image debian-changed.raw\n\n\
                        Blocks are compared with those of NATIVE at the same addresses, and only deltas are\n\
                        stored where these are short. It works on a served array, too; nobody should write to\n\
                        either machine meanwhile."
)]
pub struct CloneArgs {
    /// The array
    #[command(flatten)]
    pub volume: VolumeArgs,
    /// The number of the machine that is compared with
    #[arg(value_name = "NATIVE")]
    pub native: u8,
    /// The number of the machine that is filled
    #[arg(value_name = "MACHINE")]
    pub machine: u8,
    /// Fill it with this raw image, rather than with what NATIVE holds
    #[arg(long, value_name = "FILE")]
    pub image: Option<PathBuf>,
    /// Fill a machine that holds something, which is lost
    #[arg(long)]
    pub overwrite: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Flags of `mount`.
#[derive(Args)]
#[command(after_help = "Example:\n  mkdir mnt\n  flashlore mount disk mnt &\n  \
                        losetup --find --show --direct-io=on mnt/disk\n\n\
                        Runs until somebody unmounts it, or SIGTERM or SIGINT; then takes a checkpoint and ends.\n\
                        Files: the volume by its directory's name; at/SNAPSHOT, and any other instant by its name,\n\
                        such as \"at/10min ago\", read-only; of an array its machines, NAME, NAME.1, ... A loop device\n\
                        needs a mount made by root.")]
pub struct MountArgs {
    /// The volume
    #[command(flatten)]
    pub volume: VolumeArgs,
    /// The directory to mount on
    #[arg(value_name = "MOUNTPOINT")]
    pub point: PathBuf,
    /// Its memory
    #[command(flatten)]
    pub memory: MemoryArgs,
    /// Nobody may write
    #[arg(long)]
    pub read_only: bool,
    /// An array whose fast medium is lost: mount what the slow one holds, read-only (made with --ordered)
    #[arg(long)]
    pub slow_alone: bool,
}
