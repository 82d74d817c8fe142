//! Flags of `serve` and `record`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use flashlore_sim::config::{Count, Nanos, Share};

use super::{MemoryArgs, VolumeArgs};

/// Flags of `serve`.
#[derive(Args)]
#[command(after_help = "Examples:\n  flashlore serve disk\n  \
                        flashlore serve disk --listen 127.0.0.1:10809 --metrics 9100\n  \
                        flashlore serve disk --memory 512MiB\n  \
                        flashlore serve disk --listen 0.0.0.0:10809 --tls-certificate cert.pem --tls-key key.pem\n\n\
                        Runs until SIGTERM or SIGINT, then answers what was asked, takes a checkpoint and ends.\n\
                        Exports: the volume by its directory's name ('_' for each '@' in it) or no name, and\n\
                        NAME@INSTANT read-only, such as \"disk@10min ago\", disk@2026-01-01T12:00:00Z\n\
                        or disk@SNAPSHOT.\n\
                        Of an array: its machines, NAME, NAME.1, NAME.2, ...")]
pub struct ServeArgs {
    /// How it is served
    #[command(flatten)]
    pub serving: ServingArgs,
}

/// Flags of `record`.
#[derive(Args)]
#[command(after_help = "Examples:\n  flashlore record disk mail.parquet\n  \
                        flashlore record disk mail.parquet --content mail.pages.zst\n  \
                        flashlore compare mail.parquet --systems plain,ca-ssd,delta-ftl,bvssd,combined \\\n      \
                        --set codec.ratio=codec\n\n\
                        Serves like `flashlore serve`, until SIGTERM or SIGINT; then the files are completed. After\n\
                        kill -9 there is no trace: a file .flashlore-* stays behind, which cannot be read.")]
pub struct RecordArgs {
    /// How it is served
    #[command(flatten)]
    pub serving: ServingArgs,
    /// The trace, in the native format; it must not exist
    #[arg(value_name = "TRACE", help_heading = None)]
    pub trace: PathBuf,
    /// Write the distinct pages too, as `compare` reads them: beside TRACE, with its name up to the first
    /// dot and .pages.zst
    #[arg(long, value_name = "FILE", help_heading = None)]
    pub content: Option<PathBuf>,
    /// The most distinct pages: when there are more the recording ends, and the volume goes on without it
    #[arg(
        long,
        value_name = "N",
        default_value = "16Mi",
        help_heading = None
    )]
    pub most_values: Count,
}

/// How a volume is served.
#[derive(Args)]
pub struct ServingArgs {
    /// The volume
    #[command(flatten)]
    pub volume: VolumeArgs,
    /// Where to listen: a path of a Unix socket, or HOST:PORT; may be given several times [default:
    /// nbd.sock in the directory]
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Vec<String>,
    /// Its memory
    #[command(flatten)]
    pub memory: MemoryArgs,
    /// Nobody may write
    #[arg(long)]
    pub read_only: bool,
    /// An array whose fast medium is lost: serve what the slow one holds, read-only (made with --ordered)
    #[arg(long)]
    pub slow_alone: bool,
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
    /// Answer GET / (a live page for browsers), /metrics (Prometheus) and /health at HOST:PORT, or at PORT of this
    /// machine alone
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<String>,
    /// The most clients at once; 8 more find a place if they come through a Unix socket
    #[arg(long, value_name = "N", default_value = "128")]
    pub connections: NonZeroUsize,
    /// How long a drain may take before connections are cut
    #[arg(long, value_name = "DURATION", default_value = "30s")]
    pub drain: Nanos,
    /// What stands between clients and volume
    #[command(flatten)]
    pub filters: FilterArgs,
}

/// Filters around a served volume.
#[derive(Args)]
#[command(next_help_heading = "Filters, for tests of clients")]
pub struct FilterArgs {
    /// Wait so long before each read
    #[arg(long, value_name = "DURATION")]
    pub delay_reads: Option<Nanos>,
    /// Wait so long before each write, trim or write of zeroes
    #[arg(long, value_name = "DURATION")]
    pub delay_writes: Option<Nanos>,
    /// Wait so long before each flush
    #[arg(long, value_name = "DURATION")]
    pub delay_flushes: Option<Nanos>,
    /// Let this share of reads fail, such as 1%
    #[arg(long, value_name = "SHARE")]
    pub fail_reads: Option<Share>,
    /// Let this share of writes, trims and writes of zeroes fail
    #[arg(long, value_name = "SHARE")]
    pub fail_writes: Option<Share>,
    /// Let this share of flushes fail
    #[arg(long, value_name = "SHARE")]
    pub fail_flushes: Option<Share>,
    /// Which requests fail
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
}
