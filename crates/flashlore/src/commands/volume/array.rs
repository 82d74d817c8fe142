//! `array`: what is done with the media of an array that nobody has open.

use flashlore_array::icash::Loss;
use flashlore_array::index::Address;
use flashlore_serve::array::rebuild::Rebuild;
use flashlore_serve::array::replace::ReplaceFast;
use flashlore_serve::moment::Time;

use super::create::random;
use super::{clocks, failed, home, human, mode};
use crate::cli::{ArrayCommand, LeaveArgs, RebuildArgs, ReplaceFastArgs};
use crate::error::CliError;
use crate::output::{print, tell};
use crate::progress::Progress;

const SECOND: u64 = 1_000_000_000;

pub fn array(command: &ArrayCommand) -> Result<(), CliError> {
    match command {
        ArrayCommand::ReplaceFast(args) => replace_fast(args),
        ArrayCommand::Rebuild(args) => rebuild(args),
        ArrayCommand::Leave(args) => leave(args),
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

fn rebuild(args: &RebuildArgs) -> Result<(), CliError> {
    let asked = Rebuild {
        fast: args.fast.clone(),
        slow: args.slow.clone(),
        size: args.size.map(|size| size.0),
        machines: args.machines,
        fast_size: args.budgets.fast_size.map(|size| size.0),
        delta_ram: args.budgets.delta_ram.map(|size| size.0),
        accept_loss: args.accept_loss,
        overwrite: args.overwrite,
        identity: random()?,
    };
    let rebuilt = home(&args.volume).rebuild_array(&asked, mode(&args.volume));
    let rebuilt = rebuilt.map_err(failed(&args.volume))?;
    for (number, image) in rebuilt.machines.iter().enumerate() {
        tell(&format!(
            "machine {number}: {} blocks are deltas, {} compressed, {} whole, {} zeros",
            image.deltas, image.compressed, image.whole, image.zeros
        ));
    }
    tell(&format!(
        "{}: the array is on {} ({} used) and {} ({}) now; open it takes about {} of memory",
        args.volume.directory.display(),
        args.fast.display(),
        human(rebuilt.made.bytes.0),
        args.slow.display(),
        human(rebuilt.made.bytes.1),
        human(rebuilt.made.memory()),
    ));
    Ok(())
}

fn leave(args: &LeaveArgs) -> Result<(), CliError> {
    let progress = Progress::blocks("bringing blocks home");
    let left =
        home(&args.volume).leave_array(args.accept_loss, mode(&args.volume), &mut |done, of| {
            progress.at(done, of)
        });
    drop(progress);
    let left = left.map_err(failed(&args.volume))?;
    for block in &left.damaged {
        tell(&format!(
            "{}: block {block} could not be read; the image holds what lay there, older or damaged",
            left.image.display()
        ));
    }
    tell(&format!(
        "{}: it is a plain image of {} again{}; {} is not needed any more",
        left.image.display(),
        human(left.bytes),
        match left.was_used {
            true => format!(
                " and holds what machine 0 held{}",
                but_for(left.damaged.len())
            ),
            false => ", as it was".to_owned(),
        },
        left.fast.display(),
    ));
    Ok(())
}

/// What of an image is not what the machine held, as the end of a sentence.
fn but_for(damaged: usize) -> String {
    match damaged {
        0 => String::new(),
        1 => ", but for 1 block".to_owned(),
        _ => format!(", but for {damaged} blocks"),
    }
}

/// Machine and block, one a line.
fn listed(loss: &Loss) -> String {
    let blocks: &[(u8, Address)] = match loss {
        Loss::Nothing => &[],
        Loss::SinceBatch { blocks, .. } | Loss::Blocks(blocks) => blocks,
    };
    let line = |(machine, block): &(u8, Address)| format!("{machine} {block}\n");
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
