//! What tells of a flush: what it wrote, and from the next flush on the mark that lies elsewhere. So damage of one
//! place never hides a flush that another one followed.

use std::ops::Range;
use std::sync::Arc;

use flashlore_content::PAGE_BYTES;
use flashlore_flash::Lpn;
use flashlore_medium::{CrashMedium, MemoryMedium, SECTOR, Style};
use flashlore_volume::format::Batch;
use flashlore_volume::{Volume, VolumeError, bytes_needed, create};

use super::killed::identity;
use crate::support::loaded::Loaded;
use crate::support::strike::Strike;

/// What a power loss leaves of a volume whose page 0 was given the values 1, 2 ... `flushes`, each with a flush of its
/// own, and with the trim of another page, of which the journal tells: nothing that was not synced.
fn after_flushes(flushes: u8) -> Vec<u8> {
    let id = identity("plain");
    let bytes = bytes_needed(&id).expect("there is such a volume") as usize;
    let medium = Arc::new(CrashMedium::new(bytes));
    create(&*medium, &id).expect("it is made");
    let (mut volume, _) = Volume::open(Arc::clone(&medium)).expect("it opens");
    for value in 1..=flushes {
        for lpn in [1, 0] {
            volume
                .write(0, Lpn(lpn), &[value; PAGE_BYTES])
                .expect("it writes");
        }
        volume.trim(0, Lpn(1)).expect("it trims");
        volume.flush().expect("it flushes");
    }
    medium.survivors(0, Style::Nothing)
}

/// Where the batch of each flush lies.
fn batches(image: &[u8]) -> Vec<Range<usize>> {
    let loaded = Loaded::of(&MemoryMedium::from_bytes(image.to_vec())).expect("it is sound");
    let mut end = loaded.areas.journal(loaded.root.checkpoint) as usize;
    let ranges = loaded.tail.batches.iter().map(|batch| {
        let begin = end;
        end += Batch::bytes(batch.entries.len(), batch.value_bytes(), SECTOR);
        begin..end
    });
    ranges.collect()
}

/// What page 0 holds once the batches are zeroed from one on, counted from the last; or why it is not opened.
fn without(image: &[u8], last: usize) -> Result<u8, VolumeError> {
    let batches = batches(image);
    let range = batches[batches.len() - last].start..batches[batches.len() - 1].end;
    let mut struck = image.to_vec();
    let (at, len) = (range.start, range.len());
    assert!(Strike::Zero { at, len }.on(&mut struck, &[]));
    let (mut volume, _) = Volume::open(Arc::new(MemoryMedium::from_bytes(struck)))?;
    let mut bytes = [0; PAGE_BYTES];
    volume.read(Lpn(0), &mut bytes)?;
    Ok(bytes[0])
}

#[test]
fn one_place_tells_of_the_last_flush_before_a_power_loss() {
    let found = without(&after_flushes(3), 1);
    assert!(matches!(found, Ok(2 | 3)), "{found:?}");
}

#[test]
fn a_flush_that_another_one_followed_is_told_elsewhere() {
    for flushes in 2..6 {
        let image = after_flushes(flushes);
        for last in 2..=usize::from(flushes) {
            let found = without(&image, last);
            let is_refused = matches!(found, Err(VolumeError::Damaged(_)));
            assert!(is_refused, "{last} of {flushes}: {found:?}");
        }
    }
}
