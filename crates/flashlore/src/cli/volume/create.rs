//! Flags of `create`, `serve` and `mount`.

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

/// Flags of `serve`.
#[derive(Args)]
#[command(after_help = "Examples:\n  flashlore serve disk\n  \
                        flashlore serve disk --listen 127.0.0.1:10809\n  \
                        flashlore serve disk --memory 512MiB\n  \
                        flashlore serve disk --listen 0.0.0.0:10809 --tls-certificate cert.pem --tls-key key.pem\n\n\
                        Runs until SIGTERM or SIGINT, then answers what was asked, takes a checkpoint and ends.\n\
                        Exports: the volume by its directory's name (or no name), and NAME@INSTANT read-only,\n\
                        such as \"disk@10min ago\", disk@2026-01-01T12:00:00Z or disk@SNAPSHOT.")]
pub struct ServeArgs {
    /// The volume
    #[command(flatten)]
    pub volume: VolumeArgs,
    /// Where to listen: a path of a Unix socket, or HOST:PORT; may be given several times [default:
    /// nbd.sock in the directory]
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Vec<String>,
    /// The most memory to take, such as 256MiB: what is beyond it lies in a scratch file in the directory [default:
    /// whatever the volume needs, if the machine has it]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<Size>,
    /// Nobody may write
    #[arg(long)]
    pub read_only: bool,
    /// The server's certificate (PEM): connections must be encrypted
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_certificate: Option<PathBuf>,
    /// The key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub tls_key: Option<PathBuf>,
    /// The authority that clients' certificates must come from (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub tls_clients: Option<PathBuf>,
    /// Allow addresses that other machines can reach without encryption
    #[arg(long)]
    pub insecure: bool,
    /// The most clients at once
    #[arg(long, value_name = "N", default_value_t = 128)]
    pub connections: usize,
    /// How long a drain may take before connections are cut
    #[arg(long, value_name = "DURATION", default_value = "30s")]
    pub drain: Nanos,
    /// Wait so long before each read
    #[arg(
        long,
        value_name = "DURATION",
        help_heading = "Filters, for tests of clients"
    )]
    pub delay_reads: Option<Nanos>,
    /// Wait so long before each write, trim or write of zeroes
    #[arg(
        long,
        value_name = "DURATION",
        help_heading = "Filters, for tests of clients"
    )]
    pub delay_writes: Option<Nanos>,
    /// Wait so long before each flush
    #[arg(
        long,
        value_name = "DURATION",
        help_heading = "Filters, for tests of clients"
    )]
    pub delay_flushes: Option<Nanos>,
    /// Let this share of reads fail, such as 1%
    #[arg(
        long,
        value_name = "SHARE",
        help_heading = "Filters, for tests of clients"
    )]
    pub fail_reads: Option<flashlore_sim::config::Share>,
    /// Let this share of writes, trims and writes of zeroes fail
    #[arg(
        long,
        value_name = "SHARE",
        help_heading = "Filters, for tests of clients"
    )]
    pub fail_writes: Option<flashlore_sim::config::Share>,
    /// Let this share of flushes fail
    #[arg(
        long,
        value_name = "SHARE",
        help_heading = "Filters, for tests of clients"
    )]
    pub fail_flushes: Option<flashlore_sim::config::Share>,
    /// Which requests fail
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        help_heading = "Filters, for tests of clients"
    )]
    pub seed: u64,
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
