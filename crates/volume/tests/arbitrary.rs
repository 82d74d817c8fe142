//! Arbitrary bytes over a valid volume never make anything panic; what the fuzzer does for hours, for
//! a moment.

use crate::exercise;
use crate::support;

use exercise::exercise;
use support::Draw;

/// One to four patches, often of few bytes and often of extreme ones.
fn input(draw: &mut Draw) -> Vec<u8> {
    let mut bytes = vec![draw.below(16) as u8];
    for _ in 0..1 + draw.below(4) {
        let part = if draw.below(2) == 0 {
            draw.below(8)
        } else {
            draw.below(256)
        };
        let at = if draw.below(2) == 0 {
            draw.below(160)
        } else {
            draw.below(8192)
        };
        let count = 1 + draw.below(9);
        bytes.extend([part as u8, at as u8, (at >> 8) as u8, count as u8]);
        let extreme = draw.below(3);
        bytes.extend((0..count).map(|_| match extreme {
            0 => 0xFF,
            1 => draw.below(3) as u8,
            _ => draw.below(256) as u8,
        }));
    }
    bytes
}

#[test]
fn arbitrary_bytes_over_a_volume_are_an_error_at_most() {
    let mut draw = Draw::new(77);
    let (mut opened, mut refused) = (0, 0);
    for _ in 0..3000 {
        let input = input(&mut draw);
        let result = std::panic::catch_unwind(|| exercise(&input));
        match result {
            Ok(true) => opened += 1,
            Ok(false) => refused += 1,
            Err(_) => panic!("the panic above comes from {input:?}"),
        }
    }
    println!("{opened} opened, {refused} refused");
    assert!(opened > 500 && refused > 500);
}

/// Inputs of the fuzzer that once made something panic.
#[test]
fn what_the_fuzzer_found_is_an_error_at_most() {
    // The row of an object that lies nowhere on the device.
    exercise(&[93, 7, 130, 128, 212, 130, 128, 0, 0, 0, 12, 212]);
    // A free row that is to be a delta from what there is not, and an old version that refers to it.
    exercise(&[
        44, 7, 4, 197, 23, 0, 0, 0, 255, 255, 255, 7, 1, 3, 0, 48, 64, 127,
    ]);
}
