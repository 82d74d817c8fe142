//! A program whose global allocator this is: its tables keep their content, whatever is pushed out.

use std::path::Path;

use flashlore_paged::alloc::LEAST;
use flashlore_paged::{Paged, RegionError, start};

#[global_allocator]
static ALLOCATOR: Paged = Paged;

fn word(at: usize) -> u64 {
    (at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// One test: there is one scratch file in a process.
#[test]
fn tables_keep_their_content_below_a_limit() {
    // From before: it stays with the system, also when it grows.
    let mut early: Vec<u64> = (0..LEAST).map(word).collect();
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let pager = start(directory.path(), 24 << 20, 64 << 20).unwrap();
    assert!(matches!(
        start(Path::new("."), 1 << 20, 1 << 20),
        Err(RegionError::Open)
    ));
    early.extend((LEAST..2 * LEAST).map(word));
    let tables: Vec<Vec<u64>> = (0..6)
        .map(|table| (0..1 << 20).map(|at| word(at + table)).collect())
        .collect();
    let zeros = vec![0u64; 4 << 20];
    let mut shrinks: Vec<u64> = (0..1 << 18).map(word).collect();
    shrinks.truncate(10 * LEAST / 8);
    shrinks.shrink_to_fit();
    for (table, content) in tables.iter().enumerate() {
        assert!(
            (0..)
                .zip(content)
                .all(|(at, &found)| found == word(at + table))
        );
    }
    assert!(zeros.iter().all(|&found| found == 0));
    assert!((0..).zip(&early).all(|(at, &found)| found == word(at)));
    assert!((0..).zip(&shrinks).all(|(at, &found)| found == word(at)));
    // Nothing of the file is seen.
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    drop(tables);
    let again = vec![0u64; 5 << 20];
    assert!(again.iter().all(|&found| found == 0));
    let threads: Vec<_> = (0..4usize)
        .map(|thread| {
            std::thread::spawn(move || {
                for round in 0..20 {
                    let size = LEAST / 8 * (1 + (round * 7 + thread) % 30);
                    let table: Vec<u64> = (0..size).map(|at| word(at ^ thread)).collect();
                    assert!(
                        (0..)
                            .zip(&table)
                            .all(|(at, &found)| found == word(at ^ thread))
                    );
                }
            })
        })
        .collect();
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    drop(pager);
}
