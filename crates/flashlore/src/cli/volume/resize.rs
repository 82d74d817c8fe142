//! Flags of `resize`.

use clap::Args;
use flashlore_sim::config::Size;

use super::VolumeArgs;

/// Flags of `resize`.
#[derive(Args)]
#[command(after_help = "Examples:\n  flashlore resize disk --grow 200GiB\n  \
                        flashlore resize disk --capacity 400GiB\n  \
                        flashlore resize disk --grow 200GiB --capacity 250GiB\n  \
                        flashlore resize vms --grow 16GiB --machines 8\n\n\
                        It must not be open. Content, instants and snapshots stay; a power loss leaves the old size\n\
                        or the new one. More capacity is also room for more old versions, with entries to remember\n\
                        them. Nothing shrinks: array rebuild copies an array to smaller media. The slow medium of an\n\
                        array becomes longer, if it is a file, or must have the room; the fast one stays as it is.")]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true).args(["grow", "capacity", "machines"]))]
pub struct ResizeArgs {
    /// The volume or array
    #[command(flatten)]
    pub volume: VolumeArgs,
    /// Bytes the volume, or each machine of the array, shows from now on, such as 200GiB
    #[arg(long, value_name = "SIZE")]
    pub grow: Option<Size>,
    /// Bytes of pages it can hold from now on, old versions included [default: more by as much as the
    /// size grows, and half as much again with a history]
    #[arg(long, value_name = "SIZE")]
    pub capacity: Option<Size>,
    /// How many machines the array has from now on
    #[arg(long, value_name = "N", conflicts_with = "capacity")]
    pub machines: Option<u16>,
    /// Write over what lies behind the array on its slow medium, which is lost
    #[arg(long, conflicts_with = "capacity")]
    pub overwrite: bool,
}
