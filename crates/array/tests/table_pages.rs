//! A table of which only some pages are in memory: the array does what it does with all of them there, a crash finds what
//! was durable, and a page that rots meanwhile is an error for its blocks alone.

use std::sync::Arc;

use flashlore_array::icash::ahead::Reach;
use flashlore_array::icash::{ICash, Machine, Options, Shape, create};
use flashlore_array::{ArrayError, Element};
use flashlore_medium::{Medium, MemoryMedium};

use crate::support::pages::{Value, draw_value, page};
use crate::support::without_fast::bytes;
use crate::support::{Draw, PAGE_MISSED};

/// Entries of a page of the table.
const ENTRIES: u32 = 254;
/// Bytes before the first page of the table: superblocks, and the roots, each twice.
const TABLE: u64 = 6 << 12;

type Media = [Arc<MemoryMedium>; 2];

fn shape() -> Shape {
    let machine = |number, blocks| Machine { number, blocks };
    Shape {
        machines: vec![machine(0, 5 * ENTRIES + 7), machine(1, 5 * ENTRIES)],
        slots: 60,
        log_segments: 40,
        segment_blocks: 16,
        journal_blocks: 0,
        frozen_blocks: 2 * ENTRIES,
    }
}

fn options(table_pages: u32) -> Options {
    Options {
        table_pages,
        scan_every: 40,
        scan_blocks: 40,
        flush_blocks: 4,
        write_back_batch: 16,
        ..Options::new(700, 900)
    }
}

fn made() -> Media {
    let (fast, slow) = flashlore_array::icash::bytes_needed(&shape()).unwrap();
    let media = [fast, slow].map(|bytes| Arc::new(MemoryMedium::new(bytes as usize)));
    create(media[0].clone(), media[1].clone(), [7; 16], &shape()).unwrap();
    media
}

fn open(media: &Media, table_pages: u32) -> Result<ICash, ArrayError> {
    ICash::open(media[0].clone(), media[1].clone(), options(table_pages))
}

fn lba(block: u32) -> u64 {
    let first = 5 * ENTRIES + 7;
    match block.checked_sub(first) {
        Some(address) => flashlore_array::icash::lba(1, address.into()),
        None => block.into(),
    }
}

/// Writes, trims, reads and flushes.
fn use_it(element: &mut ICash, seed: u64, steps: u32, held: &mut [Value]) {
    let mut draw = Draw::new(seed);
    for step in 0..steps {
        let block = draw.below(held.len() as u64) as u32;
        match draw.below(20) {
            0 => element.flush().unwrap(),
            1..3 => {
                element.trim(lba(block)).unwrap();
                held[block as usize] = 0;
            }
            3..9 => {
                let mut found = [1; 4096];
                element.read(lba(block), &mut found).unwrap();
                assert_eq!(found, page(held[block as usize]), "block {block}");
            }
            _ => {
                let value = draw_value(&mut draw);
                element.write(lba(block), &page(value)).unwrap();
                held[block as usize] = value;
            }
        }
        if step % 97 == 0 {
            element.check().unwrap();
        }
    }
}

fn holds(element: &mut ICash, held: &[Value]) {
    for (block, &value) in (0..).zip(held) {
        let mut found = [1; 4096];
        element.look(lba(block), &mut found).unwrap();
        assert_eq!(found, page(value), "block {block}");
    }
}

#[test]
fn with_few_pages_in_memory_an_array_does_the_same_but_for_checkpoints() {
    let all = 10 * ENTRIES as usize + 7;
    for (seed, few) in [(1, 1), (2, 2), (3, 5)] {
        let both = [few, u32::MAX].map(|table_pages| {
            let media = made();
            let mut held = vec![0; all];
            let mut element = open(&media, table_pages).unwrap();
            use_it(&mut element, seed, 3000, &mut held);
            let mut counters = element.counters().named();
            counters.retain(|(name, _)| *name != "checkpoints");
            let checkpoints = element.counters().checkpoints;
            element.flush().unwrap();
            // Its user is killed.
            drop(element);
            let mut element = open(&media, table_pages).unwrap();
            element.check().unwrap();
            holds(&mut element, &held);
            use_it(&mut element, seed + 10, 500, &mut held);
            element.close().unwrap();
            let mut element = open(&media, few).unwrap();
            holds(&mut element, &held);
            element.verify().unwrap();
            (counters, held, checkpoints, element.memory().table)
        });
        assert_eq!(both[0].0, both[1].0);
        assert_eq!(both[0].1, both[1].1);
        assert!(both[0].2 > 3 * both[1].2, "{} {}", both[0].2, both[1].2);
        assert!(both[0].3 < 4 * 4100 + 4096 * few as usize, "{}", both[0].3);
    }
}

/// Flips a bit in both copies of a page of the table.
fn rot(media: &Media, page: u64) {
    for copy in 0..2 {
        let offset = TABLE + (2 * page + copy) * 4096;
        let mut bytes = [0; 4096];
        media[1].read(offset, &mut bytes).unwrap();
        bytes[100] ^= 4;
        media[1].write(offset, &bytes).unwrap();
    }
}

#[test]
fn a_page_that_rots_is_an_error_for_its_blocks_and_nothing_is_written_any_more() {
    let media = made();
    let mut element = open(&media, 1).unwrap();
    let mut held = vec![0; 10 * ENTRIES as usize + 7];
    use_it(&mut element, 5, 3000, &mut held);
    element.flush().unwrap();
    let in_page = |page: u32| page * ENTRIES..(page + 1) * ENTRIES;
    let other = in_page(7).find(|&block| held[block as usize] != 0).unwrap();
    let mut found = [1; 4096];
    // Then the page that rots is not in memory.
    element.read(lba(other), &mut found).unwrap();
    rot(&media, 3);
    let looked = |element: &mut ICash| {
        let mut unreadable = 0;
        for block in in_page(3) {
            let mut found = [1; 4096];
            match element.look(lba(block), &mut found) {
                // It is remembered.
                Ok(()) => assert_eq!(found, page(held[block as usize]), "block {block}"),
                Err(error) => {
                    let told = "page 3 of the place table, at byte ";
                    assert!(error.to_string().contains(told), "{error}");
                    assert!(element.kept(lba(block)).is_err());
                    unreadable += 1;
                }
            }
        }
        assert!(unreadable > 100, "{unreadable}");
        for block in in_page(7).chain(in_page(9)) {
            let mut found = [1; 4096];
            element.look(lba(block), &mut found).unwrap();
            assert_eq!(found, page(held[block as usize]), "block {block}");
        }
    };
    looked(&mut element);
    // Nor does anything happen when others are looked for that could go home.
    while element.write_back_ahead(Reach::All, 1000).unwrap() > 0 {}
    looked(&mut element);
    assert_eq!(element.status().stopped, None);
    assert!(element.trim(lba(3 * ENTRIES + 9)).is_err());
    let before = (bytes(&*media[0]), bytes(&*media[1]));
    looked(&mut element);
    for refused in [
        element.write(lba(other), &page(1)),
        element.trim(lba(other)),
        element.flush(),
    ] {
        let refused = refused.unwrap_err().to_string();
        let told = "(page 3 of the place table, at byte ";
        assert!(refused.contains(told), "{refused}");
    }
    assert!(element.check().unwrap_err().contains(PAGE_MISSED));
    drop(element);
    assert!(before == (bytes(&*media[0]), bytes(&*media[1])));
    let refused = open(&media, 1).map(drop).unwrap_err().to_string();
    assert!(
        refused.contains("page 3 of the place table, at byte "),
        "{refused}"
    );
}

/// Whatever asks for a page first finds that it does not hold: what a write or a trim brought is refused.
#[test]
fn a_change_that_finds_a_lost_page_is_refused() {
    for change in [ICash::trim, |element: &mut ICash, lba| {
        element.write(lba, &page(9))
    }] {
        let media = made();
        let mut element = open(&media, 1).unwrap();
        let mut held = vec![0; 10 * ENTRIES as usize + 7];
        use_it(&mut element, 6, 3000, &mut held);
        element.flush().unwrap();
        element.read(lba(7 * ENTRIES), &mut [1; 4096]).unwrap();
        (0..7).for_each(|page| rot(&media, page));
        let refused = (0..7 * ENTRIES).find_map(|block| change(&mut element, lba(block)).err());
        let refused = refused.expect("its group cannot be recorded").to_string();
        assert!(refused.contains("of the place table"), "{refused}");
        assert!(element.flush().is_err());
        drop(element);
        let refused = open(&media, 4).map(drop).unwrap_err().to_string();
        assert!(refused.contains("of the place table"), "{refused}");
    }
}
