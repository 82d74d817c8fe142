//! Flags of `create` and `mount`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use flashlore_sim::config::{Nanos, Size};

use super::VolumeArgs;

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
    /// Store what is overwritten again and again as compressed differences
    DeltaFtl,
    /// Keep superseded pages: back to any instant
    Bvssd,
    /// Distinct values, differences, compression and history
    Combined,
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
                        flashlore create disk --size 10GiB --min-window 1h --on-pressure enospc")]
pub struct CreateArgs {
    /// The directory of the new volume; it must not hold one
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Bytes the volume shows, such as 100GiB
    #[arg(long)]
    pub size: Size,
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
}

/// Flags of `mount`.
#[derive(Args)]
#[command(after_help = "Example:\n  mkdir mnt\n  flashlore mount disk mnt &\n  \
                        losetup --find --show --direct-io=on mnt/disk\n\n\
                        Runs until somebody unmounts it, or SIGTERM or SIGINT; then takes a checkpoint and ends.\n\
                        Files: the volume by its directory's name; at/SNAPSHOT, and any other instant by its name,\n\
                        such as \"at/10min ago\", read-only. A loop device needs a mount made by root.")]
pub struct MountArgs {
    /// The volume
    #[command(flatten)]
    pub volume: VolumeArgs,
    /// The directory to mount on
    #[arg(value_name = "MOUNTPOINT")]
    pub point: PathBuf,
    /// The most memory to take, such as 256MiB: what is beyond it lies in a scratch file in the directory [default:
    /// whatever the volume needs, if the machine has it]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<Size>,
    /// Nobody may write
    #[arg(long)]
    pub read_only: bool,
}
