//! A medium that was replaced by an older copy of itself is refused, and nothing else is.

use std::sync::Arc;

use flashlore_array::icash::ICash;
use flashlore_array::{ArrayError, Element};
use flashlore_medium::{Medium, MemoryMedium};

use crate::support::{Draw, Power, Setup, Trouble, Value, page};

type Images = (Vec<u8>, Vec<u8>);

fn bytes(medium: &MemoryMedium) -> Vec<u8> {
    let mut bytes = vec![0; medium.len() as usize];
    medium.read(0, &mut bytes).unwrap();
    bytes
}

/// Uses an array; what lies on the media while it is open, and after it was closed.
fn used(setup: &Setup, images: &Images, value: Value) -> (Images, Images) {
    let fast = Arc::new(MemoryMedium::from_bytes(images.0.clone()));
    let slow = Arc::new(MemoryMedium::from_bytes(images.1.clone()));
    let mut element = setup.open(fast.clone(), slow.clone()).unwrap();
    element.write(setup.lba(0), &page(value)).unwrap();
    element.flush().unwrap();
    let open = (bytes(&fast), bytes(&slow));
    element.write(setup.lba(1), &page(value)).unwrap();
    element.settle().unwrap();
    (open, (bytes(&fast), bytes(&slow)))
}

fn open(setup: &Setup, fast: &[u8], slow: &[u8]) -> (Result<ICash, ArrayError>, bool) {
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
                    opened.unwrap().check().unwrap();
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

/// Wherever the power is cut while the array is opened, used and closed, its media belong together.
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
            let ended = setup.open(fast, slow).and_then(|mut element| {
                element.write(setup.lba(0), &page(7 << 16))?;
                element.settle()
            });
            let left = power.survivors(&mut draw);
            let again = open(&setup, &left.0, &left.1).0;
            again.unwrap_or_else(|error| panic!("seed {seed}, cut at call {cut}: {error}"));
            if ended.is_ok() {
                break;
            }
            cut += 1;
        }
        assert!(cut > 10);
    }
}
