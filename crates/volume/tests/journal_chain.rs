//! A batch that an earlier life left behind in the journal never continues a later one, even where
//! it begins at the very byte where the later one ends.

use std::sync::Arc;

use flashlore_content::{PAGE_BYTES, VolumeKey};
use flashlore_flash::Lpn;
use flashlore_medium::{MemoryMedium, SECTOR};
use flashlore_volume::format::{Areas, Batch};
use flashlore_volume::{Encoding, Identity, Policy, Volume, bytes_needed, create, load};

fn identity() -> Identity {
    Identity {
        version: flashlore_volume::format::superblock::VERSION,
        policy: Policy::Dedup,
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
        index_entries: 8,
        journal_bytes: 64 << 10,
    }
}

/// Opens the volume in an image, gives some of these pages one of two contents again and again, so many times, and
/// stops without a flush. The journal is written when enough entries have gathered.
fn shares(image: Vec<u8>, lpns: std::ops::Range<u32>, count: u32) -> Vec<u8> {
    let medium = Arc::new(MemoryMedium::from_bytes(image));
    let (mut volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
    let pages = lpns.end - lpns.start;
    for n in 0..count {
        let (lpn, value) = (lpns.start + n % pages, n / pages % 2);
        volume
            .write(0, Lpn(lpn), &[value as u8 + 1; PAGE_BYTES])
            .unwrap();
    }
    drop(volume);
    Arc::into_inner(medium).unwrap().into_bytes()
}

/// The batches of the journal as a recovery reads it, with the places behind them.
fn batches(image: &[u8]) -> Vec<(usize, Batch)> {
    let medium = MemoryMedium::from_bytes(image.to_vec());
    let superblock = load::superblock(&medium).unwrap();
    let id = &superblock.identity;
    let areas = Areas::new(id).unwrap();
    let root = load::root(&medium, id, &areas).unwrap();
    let tail = load::journal(&medium, id, &areas, &root).unwrap();
    let mut end = areas.journal(root.checkpoint) as usize;
    let behind = tail.batches.into_iter().map(|batch| {
        end += Batch::bytes(batch.entries.len(), batch.value_bytes(), SECTOR);
        (end, batch)
    });
    behind.collect()
}

#[test]
fn a_batch_of_an_earlier_life_does_not_continue_a_later_one() {
    let id = identity();
    let medium = Arc::new(MemoryMedium::new(bytes_needed(&id).unwrap() as usize));
    create(&*medium, &id).unwrap();
    let (mut volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
    for value in 0..2 {
        volume
            .write(0, Lpn(value), &[value as u8 + 1; PAGE_BYTES])
            .unwrap();
    }
    volume.flush().unwrap();
    drop(volume);
    let flushed = Arc::into_inner(medium).unwrap().into_bytes();
    let before = batches(&flushed).len();

    // The power goes after two more batches, of which the second reached the medium.
    let whole = shares(flushed.clone(), 20..28, 700);
    let all = batches(&whole);
    let [(first, _), (second, batch), ..] = &all[before..] else {
        panic!("{} batches after {before}", all.len());
    };
    assert!(batch.entries.len() > 100, "{batch:?}");
    let start = batches(&flushed).last().map_or(0, |&(end, _)| end);
    let mut cut = whole.clone();
    cut[start..*first].fill(0);
    assert_eq!(batches(&cut).len(), before);

    // The next life writes a batch that ends where the one left behind begins.
    let later = shares(cut, 10..18, 300);
    let found = batches(&later);
    assert_eq!(found[before].0, *first);
    assert!(*second > *first);
    assert_eq!(found.len(), before + 1, "what was left behind is taken");
    assert_eq!(found[before].1.epoch, 3);
    let (mut volume, _) = Volume::open(MemoryMedium::from_bytes(later)).unwrap();
    for lpn in 20..28 {
        let mut page = [1; PAGE_BYTES];
        volume.read(Lpn(lpn), &mut page).unwrap();
        assert!(page == [0; PAGE_BYTES], "page {lpn}");
    }
}
