//! Writing the superblocks, both copies of them.
//!
//! Invariant: one copy is durable before the other is written.

use flashlore_medium::{AlignedBuf, Medium};

use crate::error::VolumeError;
use crate::format::superblock::{MOST_EPOCHS, SUPERBLOCK_BYTES};
use crate::format::{Areas, EpochStart, Superblock};
use crate::image::{Image, read_with};
use crate::load;

/// Both copies, one after the other, each durable: the older one first. Answers the newer one.
pub(crate) fn write_superblock(
    medium: &dyn Medium,
    areas: &Areas,
    mut superblock: Superblock,
) -> Result<Superblock, VolumeError> {
    for _ in 0..2 {
        superblock.write += 1;
        let mut bytes = AlignedBuf::zeroed(SUPERBLOCK_BYTES);
        bytes.copy_from_slice(&superblock.encode());
        medium.write(areas.superblock(superblock.write % 2), &bytes)?;
        medium.sync()?;
    }
    Ok(superblock)
}

/// The superblock of a volume that is in use, and whose events go on after the last one that counts, in a new epoch.
pub(crate) fn next_epoch(image: &Image) -> Result<Superblock, VolumeError> {
    let epoch = image.superblock.epoch + 1;
    let after = image.state.sequence;
    let mut superblock = image.superblock.clone();
    superblock
        .epochs
        .retain(|e| e.after >= image.root.sequence && e.after != after);
    superblock.epochs.push(EpochStart { epoch, after });
    if superblock.epochs.len() > MOST_EPOCHS {
        return Err(VolumeError::Damaged(format!(
            "it was opened {MOST_EPOCHS} times and written to without reaching a checkpoint"
        )));
    }
    superblock.epoch = epoch;
    superblock.in_use = true;
    Ok(superblock)
}

/// Derives both superblocks from the rest of a volume, which is newer ([`VolumeError::OldSuperblocks`]): the journal
/// says after which event each epoch goes on. Answers the newest epoch.
///
/// # Errors
/// They are not older, or the rest does not make a volume; then nothing is written.
pub fn rebuild_superblocks(medium: &dyn Medium) -> Result<u32, VolumeError> {
    let mut superblock = load::superblock(medium)?;
    let newest = match read_with(medium, superblock.clone()) {
        Err(VolumeError::OldSuperblocks { newest, .. }) => newest,
        Err(other) => return Err(other),
        Ok(_) => return Err(VolumeError::NewSuperblocks),
    };
    let id = &superblock.identity;
    let areas = Areas::at(id, superblock.metadata)?;
    let root = load::root(medium, id, &areas)?;
    let tail = load::journal(medium, id, &areas, &root)?;
    for batch in &tail.batches {
        let known = superblock.epochs.iter().any(|e| e.epoch == batch.epoch);
        if batch.epoch > superblock.epoch && !known && batch.after >= root.sequence {
            // Of epochs that go on after one event the newest counts.
            superblock.epochs.retain(|e| e.after != batch.after);
            superblock.epochs.push(EpochStart {
                epoch: batch.epoch,
                after: batch.after,
            });
        }
    }
    superblock.epoch = newest;
    // How the newest session ended they do not know.
    superblock.in_use = true;
    read_with(medium, superblock.clone())?;
    write_superblock(medium, &areas, superblock)?;
    Ok(newest)
}
