//! Flags of `upgrade`.

use clap::Args;

use super::VolumeArgs;

/// Flags of `upgrade`.
#[derive(Args)]
#[command(after_help = "Examples:\n  flashlore upgrade disk\n\n\
                        It must not be open. Content, instants and snapshots stay; a power loss leaves the old format\n\
                        or the new one. A command that changes a volume does the same before anything else; one that\n\
                        only looks at it, such as info or export, asks for this. An older program does not open it\n\
                        afterwards. The file needs room for new tables beside the old ones.")]
pub struct UpgradeArgs {
    /// The volume
    #[command(flatten)]
    pub volume: VolumeArgs,
}
