//! Flags of `array`: what is done with the media of an array that nobody has open.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use flashlore_sim::config::Size;

use super::{ArrayBudgets, VolumeArgs};

/// What to do with the media of an array.
#[derive(Subcommand)]
pub enum ArrayCommand {
    /// Give an array a new fast medium in the place of one that is lost or fails
    ReplaceFast(ReplaceFastArgs),
    /// Copy an array to new media, of another size or with other machines, and use them from now on
    Rebuild(RebuildArgs),
    /// Give the disk image back that an array was made around; the array is no more
    Leave(LeaveArgs),
}

/// Flags of `array leave`.
#[derive(Args)]
#[command(after_help = "Example:\n  flashlore array leave debian\n\n\
                        The array must not be open, and was made with create --adopt. Everything that machine 0 holds goes\n\
                        home and is read there, what is behind the image in a file is cut off, and array.json goes. What is\n\
                        interrupted goes on when it is done again: until all is home the array is as it was. Blocks that\n\
                        cannot be read and other machines must be given up.")]
pub struct LeaveArgs {
    /// The array
    #[command(flatten)]
    pub volume: VolumeArgs,
    /// Accept that what other machines hold is lost, and blocks that cannot be read
    #[arg(long)]
    pub accept_loss: bool,
}

/// Flags of `array replace-fast`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  flashlore array replace-fast vms new-ssd.img\n  \
                        flashlore array replace-fast vms --affected\n  \
                        flashlore array replace-fast vms /dev/nvme1n1 --accept-loss\n\n\
                        The array must not be open. In write-through nothing is lost. With --ordered the array goes\n\
                        back to its last batch. Otherwise the blocks that need the fast medium are lost: reading them\n\
                        is an error until they are written or trimmed, and check --affected lists them. Whatever is\n\
                        lost must be accepted. A power loss leaves the old fast medium or the new one."
)]
pub struct ReplaceFastArgs {
    /// The array
    #[command(flatten)]
    pub volume: VolumeArgs,
    /// The new fast medium: a block device, or a file, which is made if it is not there
    #[arg(value_name = "NEW", required_unless_present = "affected")]
    pub new: Option<PathBuf>,
    /// Only list what would be lost or go back: machine and block, one a line
    #[arg(long, conflicts_with_all = ["new", "accept_loss", "overwrite"])]
    pub affected: bool,
    /// Accept that blocks are lost, or go back to the last batch
    #[arg(long)]
    pub accept_loss: bool,
    /// Use a medium that holds something, which is lost; never a part of another array or a volume
    #[arg(long)]
    pub overwrite: bool,
}

/// Flags of `array rebuild`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  flashlore array rebuild vms --fast new-ssd.img --slow new-hdd.img\n  \
                        flashlore array rebuild vms --fast /dev/nvme1n1 --slow /dev/sdc --size 16GiB --machines 8\n\n\
                        The array must not be open. It is copied, the first machine as it is and the others as deltas\n\
                        from it where these are short, and array.json names the new media only when all is there: an\n\
                        interrupted rebuild leaves the array as it was. The old media keep what they hold."
)]
pub struct RebuildArgs {
    /// The array
    #[command(flatten)]
    pub volume: VolumeArgs,
    /// The new fast medium: a block device, or a file, which is made if it is not there
    #[arg(long, value_name = "FILE")]
    pub fast: PathBuf,
    /// The new slow medium, likewise
    #[arg(long, value_name = "FILE")]
    pub slow: PathBuf,
    /// Bytes each machine shows from now on [default: as many as before]
    #[arg(long, value_name = "SIZE")]
    pub size: Option<Size>,
    /// How many machines there are from now on [default: as many as before]
    #[arg(long, value_name = "N")]
    pub machines: Option<u16>,
    /// How much of fast medium and RAM it takes
    #[command(flatten)]
    pub budgets: ArrayBudgets,
    /// Accept that what does not fit any more is lost: machines that are removed, and blocks behind the new size
    #[arg(long)]
    pub accept_loss: bool,
    /// Use media that hold something, which is lost
    #[arg(long)]
    pub overwrite: bool,
}
