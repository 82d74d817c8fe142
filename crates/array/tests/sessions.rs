//! A medium that was replaced by an older copy of itself is refused, and nothing else is.

use std::sync::Arc;

use flashlore_array::icash::SlowAlone;
use flashlore_array::{ArrayError, Element};
use flashlore_medium::MemoryMedium;

use crate::support::without_fast::bytes;
use crate::support::{Attended, Draw, Power, Setup, Trouble, Value, page};

type Images = (Vec<u8>, Vec<u8>);

/// Uses an array; what lies on the media while it is open, and after it was closed.
fn used(setup: &Setup, images: &Images, value: Value) -> (Images, Images) {
    let fast = Arc::new(MemoryMedium::from_bytes(images.0.clone()));
    let slow = Arc::new(MemoryMedium::from_bytes(images.1.clone()));
    let mut element = setup.open(fast.clone(), slow.clone()).unwrap();
    element.write(setup.lba(0), &page(value)).unwrap();
    element.flush().unwrap();
    let open = (bytes(&fast), bytes(&slow));
    element.write(setup.lba(1), &page(value)).unwrap();
    element.close().unwrap();
    (open, (bytes(&fast), bytes(&slow)))
}

fn open(setup: &Setup, fast: &[u8], slow: &[u8]) -> (Result<Attended, ArrayError>, bool) {
    let media = [fast, slow].map(|bytes| Arc::new(MemoryMedium::from_bytes(bytes.to_vec())));
    let opened = setup.open(media[0].clone(), media[1].clone());
    let unchanged = bytes(&media[0]) == fast && bytes(&media[1]) == slow;
    (opened, unchanged)
}

#[test]
fn an_older_copy_of_one_medium_is_refused_and_nothing_is_written() {
    for seed in 0..8 {
        let setup = Setup::draw(&mut Draw::new(seed));
        let new = setup.images();
        let (open1, closed1) = used(&setup, &new, 5 << 16);
        let (open2, closed2) = used(&setup, &closed1, 6 << 16);
        let all = [&new, &open1, &closed1, &open2, &closed2];
        for (i, one) in all.iter().enumerate() {
            for (j, other) in all.iter().enumerate() {
                let (opened, unchanged) = open(&setup, &one.0, &other.1);
                if i == j {
                    let element = opened.unwrap();
                    element.check().unwrap();
                    // New, in use, closed, in use, closed.
                    assert_eq!(element.was_closed(), i % 2 == 0);
                    continue;
                }
                let error = opened.err().expect("an older copy").to_string();
                let (fast, slow) = (i, j);
                let told = format!("session {fast} of the array, the slow one of session {slow}");
                assert!(error.contains(&told), "{error}");
                assert!(unchanged);
            }
        }
    }
}

/// Right after an opening, which ends with a checkpoint, nothing else tells a copy from an array that was closed.
#[test]
fn copies_of_an_array_that_was_just_opened_are_told() {
    for seed in 0..8 {
        let setup = Setup::draw(&mut Draw::new(seed));
        let (_, closed) = used(&setup, &setup.images(), 5 << 16);
        let fast = Arc::new(MemoryMedium::from_bytes(closed.0));
        let slow = Arc::new(MemoryMedium::from_bytes(closed.1));
        let element = setup.open(fast.clone(), slow.clone()).unwrap();
        assert!(element.was_closed());
        let copies = (bytes(&fast), bytes(&slow));
        assert!(!open(&setup, &copies.0, &copies.1).0.unwrap().was_closed());
        let is_ordered = setup.shape.journal_blocks > 0;
        let alone =
            |slow: &[u8]| SlowAlone::open(Arc::new(MemoryMedium::from_bytes(slow.to_vec())));
        assert!(!is_ordered || !alone(&copies.1).unwrap().was_closed());
        element.close().unwrap();
        assert!(!is_ordered || alone(&bytes(&slow)).unwrap().was_closed());
        assert!(
            open(&setup, &bytes(&fast), &bytes(&slow))
                .0
                .unwrap()
                .was_closed()
        );
    }
}

/// Wherever the power is cut while the array is opened, used and closed, its media belong together, and tell whether it
/// was closed.
#[test]
fn media_whose_power_was_cut_are_of_one_session() {
    for seed in 0..3 {
        let mut draw = Draw::new(seed);
        let setup = Setup::draw(&mut draw);
        let (_, images) = used(&setup, &setup.images(), 5 << 16);
        let mut cut = 1;
        loop {
            let power = Power::new(images.clone(), Trouble::CutBoth(cut));
            let (fast, slow) = power.media();
            let mut is_used = false;
            let ended = setup.open(fast, slow).and_then(|mut element| {
                is_used = true;
                element.write(setup.lba(0), &page(7 << 16))?;
                element.flush()?;
                is_used = false;
                element.close()
            });
            let left = power.survivors(&mut draw);
            let again = open(&setup, &left.0, &left.1).0;
            let again =
                again.unwrap_or_else(|error| panic!("seed {seed}, cut at call {cut}: {error}"));
            assert!(
                !is_used || !again.was_closed(),
                "seed {seed}, cut at call {cut}"
            );
            assert!(ended.is_err() || again.was_closed(), "seed {seed}");
            if ended.is_ok() {
                break;
            }
            cut += 1;
        }
        assert!(cut > 10);
    }
}
