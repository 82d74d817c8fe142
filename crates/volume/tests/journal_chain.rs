//! A batch that an earlier life left behind in the journal never continues a later one, even where
//! it begins at the very byte where the later one ends.

use std::sync::Arc;

use flashlore_content::{PAGE_BYTES, VolumeKey};
use flashlore_medium::{MemoryMedium, SECTOR};
use flashlore_volume::format::{Areas, Batch, Entry};
use flashlore_volume::{Encoding, Identity, Policy, Volume, bytes_needed, create};

fn identity() -> Identity {
    Identity {
        policy: Policy::Plain,
        history: None,
        encoding: Encoding::default(),
        uuid: [1; 16],
        key: VolumeKey([9; 32]),
        created: 5,
        exported: 32,
        blocks: 16,
        pages_per_block: 4,
        units_per_page: 2,
        alignment: SECTOR as u32,
        index_entries: 0,
        journal_bytes: 64 << 10,
    }
}

/// Opens the volume in an image, writes one page and flushes for each value, and stops.
fn live(image: Vec<u8>, lpns: std::ops::Range<u32>) -> Vec<u8> {
    let medium = Arc::new(MemoryMedium::from_bytes(image));
    let (mut volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
    for lpn in lpns {
        volume.write(0, lpn, &[lpn as u8 + 1; PAGE_BYTES]).unwrap();
        volume.flush().unwrap();
    }
    drop(volume);
    Arc::into_inner(medium).unwrap().into_bytes()
}

/// Where the batches of a journal segment begin in an image, with what they say.
fn batches(image: &[u8], id: &Identity) -> Vec<(usize, Batch)> {
    let base = Areas::new(id).unwrap().journal(1) as usize;
    let segment = &image[base..base + id.journal_bytes as usize];
    let at = |offset: usize| {
        let found = Batch::decode(&segment[offset..], &id.key, offset as u64);
        found.map(|(batch, _)| (base + offset, batch))
    };
    (0..segment.len()).step_by(SECTOR).filter_map(at).collect()
}

#[test]
fn a_batch_of_an_earlier_life_does_not_continue_a_later_one() {
    let id = identity();
    let medium = MemoryMedium::new(bytes_needed(&id).unwrap() as usize);
    create(&medium, &id).unwrap();
    let empty = medium.into_bytes();
    // Four flushes fill a block; the fifth opens the next one and says so in its batch.
    let four = live(empty.clone(), 0..4);
    let five = live(empty, 0..5);
    let mark = batches(&four, &id).last().unwrap().0;
    let (late, batch) = batches(&five, &id)
        .into_iter()
        .find(|(at, _)| *at > mark)
        .unwrap();
    assert!(
        matches!(batch.entries[..], [Entry::Open { .. }]),
        "{batch:?}"
    );
    let left_behind = five[late..late + SECTOR].to_vec();

    // The power goes during the fifth flush: the mark of the fourth and the page are lost, the batch
    // is not. The next life writes a batch of the same length where the mark was.
    let mut cut = four;
    cut[mark..mark + SECTOR].fill(0);
    cut[late..late + SECTOR].copy_from_slice(&left_behind);
    let mut later = live(cut, 10..11);
    let last = batches(&later, &id);
    assert!(
        last.iter().any(|(at, b)| *at == mark && b.epoch == 2),
        "{last:?}"
    );

    // Its flush was acknowledged; its mark is lost, so that what was left behind is next again.
    later[late..late + SECTOR].copy_from_slice(&left_behind);
    let (mut volume, _) = Volume::open(MemoryMedium::from_bytes(later)).unwrap();
    for lpn in [0, 1, 2, 3, 10] {
        let mut page = [0; PAGE_BYTES];
        volume.read(lpn, &mut page).unwrap();
        assert!(page == [lpn as u8 + 1; PAGE_BYTES], "page {lpn}");
    }
}
