//! Images of new virtual machines: stored as deltas from a native one, and equal to what they were made from.

use crate::support;

use std::sync::Arc;

use flashlore_array::Element;
use flashlore_array::icash::{Fill, Image, Machine, lba};
use flashlore_medium::MemoryMedium;
use support::{Attended, Draw, Power, Setup, Trouble, Value, page};

const BLOCKS: u32 = 60;

/// Two machines of 60 blocks, of which the native one holds similar pages, and a third one that is shorter.
fn setup(slots: u32, journal_blocks: u32) -> Setup {
    let mut setup = Setup::draw(&mut Draw::new(1));
    setup.options = flashlore_array::icash::Options::new(slots + 40, 2000);
    setup.options.flush_blocks = 4;
    (setup.shape.slots, setup.shape.frozen_blocks) = (slots, 0);
    setup.shape.journal_blocks = journal_blocks;
    let machine = |number, blocks| Machine { number, blocks };
    setup.shape.machines = vec![
        machine(0, BLOCKS),
        machine(1, BLOCKS),
        machine(2, BLOCKS / 2),
    ];
    let least = setup
        .options
        .least_log_segments(setup.shape.segment_blocks, journal_blocks);
    setup.shape.log_segments = least;
    setup
}

struct Pair {
    setup: Setup,
    fast: Arc<MemoryMedium>,
    slow: Arc<MemoryMedium>,
    element: Attended,
}

fn native_value(address: u32) -> Value {
    if address % 10 == 9 {
        0
    } else {
        (1000 + address) << 16 | 1
    }
}

/// The image differs a little from the native blocks, at some addresses much.
fn image_page(address: u32) -> [u8; 4096] {
    let mut content = page(native_value(address));
    match address % 10 {
        3 => content = page(5000 << 16 | address),
        5 => content[100..140].fill(7),
        _ => {}
    }
    content
}

impl Pair {
    fn new(setup: Setup) -> Pair {
        let (fast, slow) = setup.images();
        let fast = Arc::new(MemoryMedium::from_bytes(fast));
        let slow = Arc::new(MemoryMedium::from_bytes(slow));
        let mut element = setup.open(fast.clone(), slow.clone()).unwrap();
        for address in 0..BLOCKS {
            let content = page(native_value(address));
            element.write(lba(0, address.into()), &content).unwrap();
        }
        Pair {
            setup,
            fast,
            slow,
            element,
        }
    }

    fn holds(&mut self, machine: u8, blocks: u32, expected: impl Fn(u32) -> [u8; 4096]) {
        self.element.check().unwrap();
        for address in 0..blocks {
            let mut found = [1; 4096];
            self.element
                .read(lba(machine, address.into()), &mut found)
                .unwrap();
            assert!(
                found == expected(address),
                "machine {machine}, address {address}"
            );
        }
    }

    fn image(&mut self) -> Image {
        let mut read = |address: u64, content: &mut [u8; 4096]| {
            *content = image_page(address as u32);
            Ok(())
        };
        self.element.create_image(0, 1, &mut read).unwrap()
    }

    fn reopen(&mut self) {
        self.element.flush().unwrap();
        self.element = self
            .setup
            .open(self.fast.clone(), self.slow.clone())
            .unwrap();
        self.element.verify().unwrap();
    }
}

#[test]
fn an_image_is_stored_as_deltas_where_the_pool_has_the_native_blocks() {
    let mut pair = Pair::new(setup(100, 0));
    let image = pair.image();
    // Of ten blocks one is zeros and one is something else altogether.
    assert_eq!((image.zeros, image.deltas, image.whole), (6, 48, 6));
    assert!(image.delta_bytes < 48 * 60, "{image:?}");
    for _ in 0..2 {
        pair.holds(0, BLOCKS, |address| page(native_value(address)));
        pair.holds(1, BLOCKS, image_page);
        pair.reopen();
    }
    // Another one, over deltas that only the log has: no native place may be written before a record says so.
    let other = |address: u32| page((9000 + address) << 16);
    let mut read = |address: u64, content: &mut [u8; 4096]| {
        *content = other(address as u32);
        Ok(())
    };
    let image = pair.element.create_image(0, 1, &mut read).unwrap();
    assert_eq!(image.whole, u64::from(BLOCKS));
    pair.holds(1, BLOCKS, other);
    pair.reopen();
    pair.holds(1, BLOCKS, other);
}

/// Clones need their bases on the fast medium: whether a read of a client fills it makes no difference.
#[test]
fn native_blocks_are_copied_to_the_pool_for_an_image_whatever_reads_fill() {
    let deltas = [Fill::Read, Fill::SecondRead, Fill::Never].map(|fill| {
        let mut setup = setup(150, 0);
        setup.options.fill = fill;
        let mut pair = Pair::new(setup);
        let unreadable = pair.element.bring_home(0, &mut |_, _| {}).unwrap();
        assert!(unreadable.is_empty());
        pair.reopen();
        let image = pair.image();
        pair.holds(1, BLOCKS, image_page);
        image.deltas
    });
    assert!(deltas[0] > 30, "{deltas:?}");
    assert_eq!(deltas, [deltas[0]; 3]);
}

#[test]
fn a_clone_holds_what_the_native_machine_does_and_both_go_on_apart() {
    for journal_blocks in [0, 150] {
        let mut pair = Pair::new(setup(100, journal_blocks));
        let image = pair.element.clone_machine(0, 2).unwrap();
        assert_eq!((image.zeros, image.deltas, image.whole), (3, 27, 0));
        pair.element.write(lba(0, 4), &page(77 << 16)).unwrap();
        pair.element.write(lba(2, 6), &page(78 << 16)).unwrap();
        let native = |address| {
            if address == 4 {
                page(77 << 16)
            } else {
                page(native_value(address))
            }
        };
        let cloned = |address| {
            if address == 6 {
                page(78 << 16)
            } else {
                page(native_value(address))
            }
        };
        for _ in 0..2 {
            pair.holds(0, BLOCKS, native);
            pair.holds(2, BLOCKS / 2, cloned);
            pair.reopen();
        }
    }
}

#[test]
fn in_a_small_pool_the_rest_of_an_image_goes_home() {
    for journal_blocks in [0, 40] {
        let mut pair = Pair::new(setup(20, journal_blocks));
        let image = pair.image();
        assert_eq!(image.zeros + image.deltas + image.whole, u64::from(BLOCKS));
        assert!(image.deltas >= 10 && image.whole >= 20, "{image:?}");
        pair.holds(0, BLOCKS, |address| page(native_value(address)));
        pair.holds(1, BLOCKS, image_page);
        pair.reopen();
        pair.holds(1, BLOCKS, image_page);
        // Over what is there already.
        pair.image();
        pair.holds(1, BLOCKS, image_page);
        pair.holds(0, BLOCKS, |address| page(native_value(address)));
    }
}

/// Blocks of the machine that is made anew were references: they keep what deltas are based on, without an
/// address. They became associates that were references too.
#[test]
fn references_of_a_machine_that_is_made_anew_lose_their_addresses() {
    let mut setup = setup(100, 0);
    setup.options.scan_every = 20;
    let mut pair = Pair::new(setup);
    let old = |address: u32| page(7 << 16 | (1 + address % 2));
    for address in 0..BLOCKS / 2 {
        let content = old(address);
        pair.element
            .write(lba(2, address.into()), &content)
            .unwrap();
        pair.element
            .write(lba(1, address.into()), &content)
            .unwrap();
    }
    assert!(pair.element.counters().scan_references > 0);
    pair.element.clone_machine(0, 2).unwrap();
    assert!(pair.element.states().detached > 0);
    for _ in 0..2 {
        pair.holds(1, BLOCKS / 2, old);
        pair.holds(2, BLOCKS / 2, |address| page(native_value(address)));
        pair.reopen();
    }
}

#[test]
fn machines_that_do_not_exist_are_refused() {
    let mut pair = Pair::new(setup(20, 0));
    assert!(pair.element.clone_machine(9, 1).is_err());
    assert!(pair.element.clone_machine(0, 9).is_err());
    pair.holds(0, BLOCKS, |address| page(native_value(address)));
}

/// The power is cut at calls all over the making of a clone: the native machine loses nothing, and each block of the
/// clone is a block of the image or what it was.
#[test]
fn a_cut_while_an_image_is_made_leaves_whole_blocks() {
    let setup = setup(30, 0);
    let mut pair = Pair::new(setup.clone());
    pair.reopen();
    let Pair {
        fast,
        slow,
        element,
        ..
    } = pair;
    drop(element);
    let bytes = |medium: Arc<MemoryMedium>| Arc::into_inner(medium).unwrap().into_bytes();
    let images = (bytes(fast), bytes(slow));
    let make = |trouble| {
        let power = Power::new(images.clone(), trouble);
        let (fast, slow) = power.media();
        let is_made = setup.open(fast, slow).is_ok_and(|mut element| {
            let made = element.clone_machine(0, 1);
            made.is_ok() && element.flush().is_ok()
        });
        (power, is_made)
    };
    let (calm, is_made) = make(Trouble::Never);
    assert!(is_made);
    let mut draw = Draw::new(2);
    let mut partial = 0;
    for cut in 1..=calm.calls() {
        let (power, is_made) = make(Trouble::CutBoth(cut));
        assert!(!is_made);
        for _ in 0..6 {
            let images = power.survivors(&mut draw);
            let copied = copied_after(&setup, images, cut);
            partial += u32::from(copied > 0 && copied < 54);
        }
    }
    assert!(partial >= 5, "{partial} clones were partial");
}

#[test]
fn what_is_laid_in_is_at_home_and_can_be_read_after_a_reopening() {
    for journal_blocks in [0, 40] {
        let setup = setup(30, journal_blocks);
        let (fast, slow) = setup.images();
        let fast = Arc::new(MemoryMedium::from_bytes(fast));
        let slow = Arc::new(MemoryMedium::from_bytes(slow));
        let mut element = setup.open(fast.clone(), slow.clone()).unwrap();
        let content = |address: u32| page(native_value(address));
        let written = element.statistics().fast.writes;
        let mut pages = (0..BLOCKS).map(|address| (lba(1, address.into()), content(address)));
        element.lay_in(&mut pages).unwrap();
        element.check().unwrap();
        if journal_blocks == 0 {
            assert_eq!(element.statistics().fast.writes, written);
        }
        assert_eq!(element.statistics().writes, 0);
        element.flush().unwrap();
        drop(element);
        let mut element = setup.open(fast, slow).unwrap();
        let mut found = [0; 4096];
        for address in 0..BLOCKS {
            element.read(lba(1, address.into()), &mut found).unwrap();
            assert!(found == content(address), "block {address}");
            element.read(lba(0, address.into()), &mut found).unwrap();
            assert!(found == [0; 4096], "block {address} of the other machine");
        }
        let again = element.lay_in(&mut [(lba(1, 3), content(3))].into_iter());
        let why = again.unwrap_err().to_string();
        assert!(why.contains("holds something"), "{why}");
        element.check().unwrap();
    }
}

/// Opens what a cut left; answers how many blocks of the clone are there.
fn copied_after(setup: &Setup, (fast, slow): (Vec<u8>, Vec<u8>), cut: u64) -> u32 {
    let medium = |bytes| Arc::new(MemoryMedium::from_bytes(bytes));
    let mut element = setup.open(medium(fast), medium(slow)).unwrap();
    element.check().unwrap();
    let mut copied = 0;
    for address in 0..BLOCKS {
        let expected = page(native_value(address));
        let mut found = [1; 4096];
        element.read(lba(0, address.into()), &mut found).unwrap();
        assert!(
            found == expected,
            "native block {address} after a cut at {cut}"
        );
        element.read(lba(1, address.into()), &mut found).unwrap();
        assert!(
            found == expected || found == page(0),
            "block {address} after a cut at {cut}"
        );
        copied += u32::from(found == expected && expected != page(0));
    }
    copied
}
