//! Flags of `resize`.

use clap::Args;
use flashlore_sim::config::Size;

use super::VolumeArgs;

/// Flags of `resize`.
#[derive(Args)]
#[command(after_help = "Examples:\n  flashlore resize disk --grow 200GiB\n  \
                        flashlore resize disk --capacity 400GiB\n  \
                        flashlore resize disk --grow 200GiB --capacity 250GiB\n\n\
                        The volume must not be open. Content, instants and snapshots stay; a power loss leaves the\n\
                        old size or the new one. More capacity is also room for more old versions, with entries to\n\
                        remember them. A volume cannot shrink.")]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true).args(["grow", "capacity"]))]
pub struct ResizeArgs {
    /// The volume
    #[command(flatten)]
    pub volume: VolumeArgs,
    /// Bytes the volume shows from now on, such as 200GiB
    #[arg(long, value_name = "SIZE")]
    pub grow: Option<Size>,
    /// Bytes of pages it can hold from now on, old versions included [default: more by as much as the
    /// size grows, and half as much again with a history]
    #[arg(long, value_name = "SIZE")]
    pub capacity: Option<Size>,
}
