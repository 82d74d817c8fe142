//! Flags of `array`: what is done with the media of an array that nobody has open.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::VolumeArgs;

/// What to do with the media of an array.
#[derive(Subcommand)]
pub enum ArrayCommand {
    /// Give an array a new fast medium in the place of one that is lost or fails
    ReplaceFast(ReplaceFastArgs),
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
