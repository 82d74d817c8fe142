//! Flags of `tune`.

use clap::Args;

use super::VolumeArgs;

/// Flags of `tune`.
#[derive(Args)]
#[command(after_help = "Examples:\n  flashlore tune vms\n  \
                        flashlore tune vms sequential-cutoff=16MiB dirty-target=20%\n\n\
                        Without values it shows what there is to change. What is changed counts at once, also while\n\
                        clients use the array, and stays in array.json. Of several values all are taken over, or none\n\
                        if one of them cannot be.")]
pub struct TuneArgs {
    /// The array
    #[command(flatten)]
    pub volume: VolumeArgs,
    /// What to change
    #[arg(value_name = "KEY=VALUE", value_parser = pair)]
    pub values: Vec<(String, String)>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text
        .split_once('=')
        .ok_or_else(|| format!("found {text:?}, expected a key, = and a value"))?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}
