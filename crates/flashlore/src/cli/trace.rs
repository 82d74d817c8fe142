//! Flags of `trace`.

use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use flashlore_characterize::Codec;
use flashlore_sim::config::{Nanos, Share, Size};
use flashlore_trace::{ContentModel, DeltaModel, Format};

use super::run::{JoinBy, ReadArgs};

/// Look at traces, or convert them.
#[derive(Subcommand)]
pub enum TraceCommand {
    /// Print format, mix, sizes, footprint, span and content of a trace
    Info(InfoArgs),
    /// Write a trace in another format
    Convert(ConvertArgs),
    /// Print who writes what where, how often, and how soon again: locality of content and address
    Characterize(Box<CharacterizeArgs>),
    /// Make a profile whose workloads are like a trace, and say how well they are
    Fit(FitArgs),
    /// Write the synthetic workload of a profile
    Synth(SynthArgs),
    /// List the profiles that come with the program
    Profiles(ProfilesArgs),
}

/// Flags of `trace info`.
#[derive(Args)]
#[command(after_help = "Examples:\n  flashlore trace info mail.fiu.xz\n  \
                        flashlore trace info demo:maildir --json")]
pub struct InfoArgs {
    /// The trace
    pub trace: PathBuf,
    /// How it is read
    #[command(flatten)]
    pub read: ReadArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Flags of `trace convert`.
#[derive(Args)]
#[command(after_help = CONVERT_EXAMPLES)]
pub struct ConvertArgs {
    /// The trace
    #[arg(value_name = "IN")]
    pub input: PathBuf,
    /// The file to write
    #[arg(value_name = "OUT")]
    pub output: PathBuf,
    /// Replace a file that is there already
    #[arg(long)]
    pub force: bool,
    /// How it is read
    #[command(flatten)]
    pub read: ReadArgs,
    #[arg(long, value_name = "FORMAT", help = writable())]
    pub to: Option<Format>,
    /// Leave out the content and R_c where the output format has no place for them
    #[arg(long)]
    pub drop_content: bool,
    /// R_c of page writes, which a native trace carries: trace (as it is there),
    /// gaussian:mean=MEAN,std=DEVIATION[,seed=SEED] (drawn), or codec[:lz4|:copy] (what each page's
    /// bytes encode to, from the file of pages beside the trace or a profile with `[similarity]`)
    #[arg(long, value_name = "HOW", value_parser = rating, default_value = "trace")]
    pub delta: Rating,
}

/// Where a converted trace has R_c from.
#[derive(Debug, Clone, Copy)]
pub enum Rating {
    /// It has that of the trace, or what a model draws.
    Model(DeltaModel),
    /// From the bytes of pages.
    Bytes(Codec),
}

fn rating(text: &str) -> Result<Rating, String> {
    match text {
        "codec" | "codec:lz4" => Ok(Rating::Bytes(Codec::Lz4)),
        "codec:copy" => Ok(Rating::Bytes(Codec::Copy)),
        _ => text
            .parse()
            .map(Rating::Model)
            .map_err(|error| format!("{error}, or codec, codec:lz4, codec:copy")),
    }
}

/// Flags of `trace fit`.
#[derive(Args)]
#[command(after_help = FIT_EXAMPLES)]
pub struct FitArgs {
    /// The trace
    pub trace: PathBuf,
    /// The profile to write
    #[arg(short, long, value_name = "PROFILE")]
    pub output: PathBuf,
    /// Replace a file that is there already
    #[arg(long)]
    pub force: bool,
    /// Name of the profile [default: the trace's, up to its first dot]
    #[arg(long)]
    pub name: Option<String>,
    /// How far the amplification by collection, less 1, may be from the trace's, as a share of it
    #[arg(long, value_name = "SHARE", default_value = "0.1")]
    pub tolerance: Share,
    /// Seeds from which each fit is made; as many others check the one that is taken
    #[arg(long, value_name = "N", default_value = "8")]
    pub seeds: NonZeroU64,
    /// Fit only requests to this device of the trace; may be repeated
    #[arg(long, value_name = "NAME")]
    pub device: Vec<String>,
    /// How it is read
    #[command(flatten)]
    pub read: ReadArgs,
    /// Replays at a time [default: one a processor]
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const FIT_EXAMPLES: &str = "\
Examples:
  flashlore trace fit maildir.fiu.xz -o maildir.toml
  flashlore compare profile:maildir.toml,scale=4 --systems plain,ca-ssd
  flashlore trace fit homes.fiu.xz --seeds 16 --tolerance 0.05 --json -o homes.toml

The coarsest fit is taken whose replays are within the tolerance of the trace's. What a fit is stands
in docs/workloads.md.";

/// Flags of `trace synth`.
#[derive(Args)]
#[command(after_help = SYNTH_EXAMPLES)]
pub struct SynthArgs {
    /// The profile: a preset or a TOML file
    #[arg(value_name = "NAME|FILE")]
    pub profile: String,
    /// The file to write
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
    /// Replace files that are there already
    #[arg(long)]
    pub force: bool,
    #[arg(long, value_name = "FORMAT", help = writable())]
    pub to: Option<Format>,
    /// Factor on requests, footprint, duration and gaps
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pub scale: f64,
    /// Requests instead of the profile's number; the duration changes with them, the footprint does
    /// not
    #[arg(long, value_name = "N")]
    pub requests: Option<u64>,
    /// Seed of every draw
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Leave out the content where the output format has no place for it
    #[arg(long)]
    pub drop_content: bool,
    /// Write the bytes of the pages too, as `trace characterize --pages` reads them: for profiles with
    /// `[similarity]` and native output
    #[arg(long, value_name = "FILE")]
    pub pages: Option<PathBuf>,
}

const SYNTH_EXAMPLES: &str = "\
Examples:
  flashlore trace synth mail -o mail.parquet
  flashlore trace synth homes-7d --scale 0.1 --seed 2 -o homes.fiu
  flashlore trace synth my-profile.toml --requests 100000 -o my.txt --to disksim
  flashlore trace synth sysbench --scale 0.1 -o sysbench.parquet --pages sysbench.pages.zst

A profile need not be written to be replayed: `flashlore compare profile:mail,scale=0.1`.";

/// Flags of `trace profiles`.
#[derive(Args)]
#[command(after_help = "Examples:\n  flashlore trace profiles\n  flashlore trace profiles --json")]
pub struct ProfilesArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Help of the output's format.
fn writable() -> String {
    format!(
        "Format of the output: {} [default: by the ending of OUT: .parquet is native, others by \
         name]",
        Format::list(&Format::WRITABLE)
    )
}

const CONVERT_EXAMPLES: &str = "\
Examples:
  flashlore trace convert mail.fiu.xz mail.parquet
  flashlore trace convert prxy_0.csv.gz prxy_0.txt --to disksim
  flashlore trace convert mail.fiu.xz mail.msr --drop-content
  flashlore trace convert mail.fiu.xz rated.parquet --delta gaussian:mean=0.35,std=0.05
  flashlore trace convert sqlite-bytes.fiu.xz rated.parquet --delta codec

Native traces (Parquet) are replayed fastest and without being held in memory. Text is written
uncompressed.";

/// Flags of `trace characterize`.
#[derive(Args)]
#[command(after_help = CHARACTERIZE_EXAMPLES)]
pub struct CharacterizeArgs {
    /// Traces; each is looked at by itself, unless --join makes them one
    #[arg(required = true, value_name = "TRACE")]
    pub traces: Vec<PathBuf>,
    /// Give everything anew for each slice of trace time too [example: 1d]
    #[arg(long, value_name = "DURATION")]
    pub slice: Option<Nanos>,
    /// Follow this share of the pages and values only, for very long traces [example: 0.01]
    #[arg(long, value_name = "SHARE")]
    pub sample: Option<Share>,
    /// How long the trace takes to write this much; may be repeated [example: 60GiB]
    #[arg(long, value_name = "SIZE", value_delimiter = ',')]
    pub capacity: Vec<Size>,
    /// The bytes of the trace's distinct pages in order of first appearance, to see how they compress
    #[arg(long, value_name = "FILE", conflicts_with = "join")]
    pub pages: Option<PathBuf>,
    /// Memory that the pages of --pages may take
    #[arg(long, value_name = "SIZE", default_value = "8GiB", requires = "pages")]
    pub pages_memory: Size,
    /// Where the content of pages comes from, as in `compare`
    #[arg(
        long,
        value_name = "MODEL",
        value_parser = crate::input::content_model,
        default_value_t = ContentModel::FromTrace
    )]
    pub content: ContentModel,
    /// R_c of page writes: trace (the default; a trace may have none), or drawn:
    /// gaussian:mean=MEAN,std=DEVIATION[,seed=SEED]
    #[arg(long, value_name = "MODEL")]
    pub delta: Option<DeltaModel>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Write summary.json and tables as Parquet into this directory
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replace characteristics that are there already
    #[arg(long)]
    pub force: bool,
    /// Look only at requests to this device of the trace; may be repeated
    #[arg(long, value_name = "NAME")]
    pub device: Vec<String>,
    /// How they are read
    #[command(flatten)]
    pub read: ReadArgs,
    /// Make the traces one: one after another, or merged by their times
    #[arg(
        long,
        value_enum,
        value_name = "HOW",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "sequence"
    )]
    pub join: Option<JoinBy>,
}

const CHARACTERIZE_EXAMPLES: &str = "\
Examples:
  flashlore trace characterize mail.fiu.xz
  flashlore trace characterize homes.fiu.xz --slice 1d --capacity 4GiB --out homes
  flashlore trace characterize sqlite-bytes.fiu.xz --pages sqlite-bytes.pages.zst
  flashlore trace characterize tencent.csv.zst --sample 0.01 --json
  flashlore trace characterize prxy_0.csv.gz --content zipf:a=0.8,n=2000000

What each figure means stands in docs/workloads.md.";
