//! `array`: what is done with the media of an array that nobody has open.

use flashlore_array::icash::Loss;
use flashlore_serve::array::replace::ReplaceFast;
use flashlore_serve::moment::Time;

use super::{clocks, failed, home, human, mode};
use crate::cli::{ArrayCommand, ReplaceFastArgs};
use crate::error::CliError;
use crate::output::{print, tell};

const SECOND: u64 = 1_000_000_000;

pub fn array(command: &ArrayCommand) -> Result<(), CliError> {
    match command {
        ArrayCommand::ReplaceFast(args) => replace_fast(args),
    }
}

fn replace_fast(args: &ReplaceFastArgs) -> Result<(), CliError> {
    let (home, mode) = (home(&args.volume), mode(&args.volume));
    let Some(new) = &args.new else {
        let loss = home.loss_without_fast(mode);
        return print(&listed(&loss.map_err(failed(&args.volume))?));
    };
    let asked = ReplaceFast {
        new,
        accept_loss: args.accept_loss,
        overwrite: args.overwrite,
    };
    let replaced = home
        .replace_fast(asked, mode)
        .map_err(failed(&args.volume))?;
    tell(&format!(
        "{}: the fast medium is {} now, {} of it are used; {}",
        args.volume.directory.display(),
        replaced.fast.display(),
        human(replaced.bytes),
        told(&replaced.loss),
    ));
    Ok(())
}

/// Machine and block, one a line.
fn listed(loss: &Loss) -> String {
    let blocks: &[(u8, u32)] = match loss {
        Loss::Nothing => &[],
        Loss::SinceBatch { blocks, .. } | Loss::Blocks(blocks) => blocks,
    };
    let line = |(machine, block): &(u8, u32)| format!("{machine} {block}\n");
    blocks.iter().map(line).collect()
}

fn told(loss: &Loss) -> String {
    match loss {
        Loss::Nothing => "nothing is lost".to_owned(),
        Loss::Blocks(blocks) => format!(
            "{} blocks are lost: reading them is an error until they are written or trimmed, and check --affected lists \
             them",
            blocks.len()
        ),
        Loss::SinceBatch { blocks, taken } => format!(
            "{} blocks went back to what they held in the last batch{}",
            blocks.len(),
            taken.map_or(String::new(), age_of)
        ),
    }
}

/// When a batch was taken, in seconds since 1970, and how long ago that is.
fn age_of(taken: u32) -> String {
    let then = u64::from(taken) * SECOND;
    let ago = clocks().wall().saturating_sub(then) / SECOND;
    format!(", of {} ({ago} s ago)", Time(then))
}
