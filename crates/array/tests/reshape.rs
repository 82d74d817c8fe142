//! Arrays that are made around a disk image, that give it back, and that grow: cut at every call, they hold what they
//! held, and the image is never wrong.

use std::sync::Arc;

use flashlore_array::icash::format::Areas;
use flashlore_array::icash::{
    self, ICash, Mode, Shape, SlowAlone, TooBig, adopt, adopted_pieces, grow, grown_pieces,
};
use flashlore_array::index::{FrozenPlace, LogBlock};
use flashlore_array::{ArrayError, Element};
use flashlore_medium::{Medium, MemoryMedium, Piece, Pieced, end_of};

use crate::support::pages::draw_value;
use crate::support::without_fast::{bytes, memory};
use crate::support::{Attended, Draw, Op, Power, Setup, Trouble, Value, operations, page};

const ID: [u8; 16] = *b"identity of one.";
const BLOCK: usize = 4096;

/// Small arrays of all kinds.
fn setups(count: u64) -> impl Iterator<Item = (u64, Setup)> {
    (0..count).map(|seed| (seed, Setup::draw(&mut Draw::new(0x5EA5 + seed))))
}

/// The slow medium behind its pieces.
fn view(slow: Arc<dyn Medium>, pieces: &[Piece]) -> Arc<dyn Medium> {
    Arc::new(Pieced::new(slow, pieces).unwrap())
}

/// Runs operations on an element and on the values that it should hold.
fn run(setup: &Setup, element: &mut Attended, ops: &[Op], state: &mut [Value]) {
    for &op in ops {
        setup.apply(element, op, state);
    }
}

/// Demands that an element holds these values.
fn demand(setup: &Setup, element: &mut ICash, state: &[Value], how: &str) {
    element.check().unwrap_or_else(|e| panic!("{how}: {e}"));
    for (block, &value) in state.iter().enumerate() {
        let mut found = [1; BLOCK];
        let read = element.look(setup.lba(block), &mut found);
        read.unwrap_or_else(|e| panic!("{how}, block {block}: {e}"));
        assert!(found == page(value), "{how}, block {block}");
    }
}

/// An image of the first machine, with holes, and what it holds.
fn image(setup: &Setup, draw: &mut Draw) -> Vec<Value> {
    let blocks = setup.shape.machines[0].blocks;
    let mut one = || match draw.chance(70) {
        true => draw_value(draw),
        false => 0,
    };
    (0..blocks).map(|_| one()).collect()
}

fn content(values: &[Value]) -> Vec<u8> {
    values.iter().flat_map(|&value| page(value)).collect()
}

/// Both media before an image is adopted: what is behind it is not zeros.
fn before_adoption(setup: &Setup, values: &[Value]) -> (Vec<u8>, Vec<u8>) {
    let (fast, slow) = setup.sizes();
    let mut file = content(values);
    file.resize(slow, 0xE5);
    (vec![0xE5; fast], file)
}

/// Makes an array around the image of its first machine.
fn adopt_all(
    fast: Arc<dyn Medium>,
    slow: Arc<dyn Medium>,
    shape: &Shape,
) -> Result<(), ArrayError> {
    adopt(fast, slow, ID, shape, &mut |_, _| {})
}

/// What all machines hold when the first one has been adopted.
fn all_values(setup: &Setup, image: &[Value]) -> Vec<Value> {
    let mut state = image.to_vec();
    state.resize(setup.blocks(), 0);
    state
}

/// Adopting only reads the image: cut at every call, it is what it was; and whole, the array holds it.
#[test]
fn adopting_never_writes_to_the_image() {
    let (mut cuts, mut arrays) = (0, 0);
    for (seed, setup) in setups(24) {
        let mut draw = Draw::new(seed);
        let values = image(&setup, &mut draw);
        let before = before_adoption(&setup, &values);
        let pieces = adopted_pieces(&setup.shape).unwrap();
        for cut in 1.. {
            let power = Power::new(before.clone(), Trouble::CutBoth(cut));
            let (fast, slow) = power.media();
            let mut seen = (0, 0);
            let adopted = adopt(
                fast,
                view(slow, &pieces),
                ID,
                &setup.shape,
                &mut |read, of| seen = (read, of),
            );
            assert!(
                adopted.is_ok() || power.calls() >= cut,
                "it fails by itself: {adopted:?}"
            );
            let left = power.survivors(&mut draw);
            cuts += 1;
            let image = &before.1[..values.len() * BLOCK];
            assert!(left.1[..image.len()] == *image, "seed {seed}, cut {cut}");
            if adopted.is_ok() {
                assert_eq!(seen, (values.len() as u64, values.len() as u64));
                let slow = view(memory(&left.1), &pieces);
                let mut element = setup.open(memory(&left.0), slow).unwrap();
                let state = all_values(&setup, &values);
                demand(&setup, &mut element, &state, &format!("seed {seed}"));
                let is_hole = |block: usize| state[block] == 0;
                assert!(setup.has_right_holes(&element, is_hole));
                arrays += 1;
                break;
            }
        }
    }
    assert!(arrays == 24 && cuts > 24 * 10, "{arrays} {cuts}");
}

/// What the slow medium alone holds, of an array that writes home in order.
fn alone(setup: &Setup, slow: &[u8], pieces: &[Piece]) -> Option<Vec<u8>> {
    if setup.shape.journal_blocks == 0 {
        return None;
    }
    let mut alone = SlowAlone::open(view(memory(slow), pieces)).unwrap();
    let mut bytes = Vec::new();
    for block in 0..setup.blocks() {
        let mut page = [1; BLOCK];
        alone.read(setup.lba(block), &mut page).unwrap();
        bytes.extend_from_slice(&page);
    }
    Some(bytes)
}

/// An adopted image is used, and left: cut at every call the array goes on with what it held, and in the end the begin of
/// the slow medium is what the first machine held.
#[test]
fn a_machine_that_leaves_is_a_plain_image() {
    let (mut cuts, mut changed, mut alone_seen) = (0, 0, 0);
    for (seed, setup) in setups(24) {
        let mut draw = Draw::new(seed);
        let values = image(&setup, &mut draw);
        let before = before_adoption(&setup, &values);
        let pieces = adopted_pieces(&setup.shape).unwrap();
        let (fast, slow) = (memory(&before.0), memory(&before.1));
        let whole = view(slow.clone(), &pieces);
        adopt_all(fast.clone(), whole.clone(), &setup.shape).unwrap();
        let mut state = all_values(&setup, &values);
        let mut element = setup.open(fast.clone(), whole).unwrap();
        let ops = operations(&mut draw, 150, setup.blocks());
        run(&setup, &mut element, &ops, &mut state);
        element.flush().unwrap();
        drop(element);
        let used = (bytes(&*fast), bytes(&*slow));
        let image_bytes = values.len() * BLOCK;
        let expected = content(&state[..values.len()]);
        changed += u64::from(expected != before.1[..image_bytes]);
        let batch = alone(&setup, &used.1, &pieces);
        for cut in 1.. {
            let how = format!("seed {seed}, cut {cut}");
            let power = Power::new(used.clone(), Trouble::CutBoth(cut));
            let (fast, slow) = power.media();
            let leave = || {
                let mut element = setup.open(fast, view(slow, &pieces))?;
                let machine = setup.shape.machines[0].number;
                assert!(element.bring_home(machine, &mut |_, _| {})?.is_empty());
                element.close()
            };
            let left_it = leave();
            assert!(
                left_it.is_ok() || power.calls() >= cut,
                "it fails by itself: {left_it:?}"
            );
            let left = power.survivors(&mut draw);
            cuts += 1;
            if let Some(batch) = &batch {
                let found = alone(&setup, &left.1, &pieces).unwrap();
                let is_state = found == *batch || found == content(&state);
                assert!(is_state, "{how}: the slow medium alone is no state");
                alone_seen += 1;
            }
            let slow = view(memory(&left.1), &pieces);
            let mut element = setup.open(memory(&left.0), slow).unwrap();
            demand(&setup, &mut element, &state, &how);
            if left_it.is_ok() {
                assert!(left.1[..image_bytes] == expected, "{how}: another image");
                break;
            }
        }
    }
    assert!(
        cuts > 24 * 20 && changed >= 20 && alone_seen > 50,
        "{cuts} {changed} {alone_seen}"
    );
}

/// Whoever lets a machine leave hears which of its blocks cannot be read, and the array goes on.
#[test]
fn what_cannot_be_read_is_named_when_a_machine_leaves() {
    let (_, setup) = setups(40)
        .find(|(_, setup)| setup.shape.journal_blocks == 0 && setup.options.mode == Mode::WriteBack)
        .unwrap();
    let mut draw = Draw::new(7);
    let values: Vec<Value> = (0..setup.shape.machines[0].blocks)
        .map(|_| draw_value(&mut draw))
        .collect();
    let before = before_adoption(&setup, &values);
    let pieces = adopted_pieces(&setup.shape).unwrap();
    let (fast, slow) = (memory(&before.0), memory(&before.1));
    let whole = view(slow, &pieces);
    adopt_all(fast.clone(), whole.clone(), &setup.shape).unwrap();
    let mut element = setup.open(fast.clone(), whole.clone()).unwrap();
    for block in 0..values.len() {
        let value = draw_value(&mut draw);
        element.write(setup.lba(block), &page(value)).unwrap();
    }
    element.close().unwrap();
    // Everything but what is at home rots.
    let areas = Areas::of(&setup.shape);
    let log = areas.log_block(LogBlock(0));
    whole
        .write(
            log,
            &vec![0x77; (areas.frozen_place(FrozenPlace(0)) - log) as usize],
        )
        .unwrap();
    let mut rotten = bytes(&*fast);
    rotten[2 * BLOCK..].fill(0x77);
    let mut element = setup.open(memory(&rotten), whole).unwrap();
    let machine = setup.shape.machines[0].number;
    let unreadable = element.bring_home(machine, &mut |_, _| {}).unwrap();
    assert!(!unreadable.is_empty());
    for (block, _) in &unreadable {
        let read = element.look(setup.lba(block.index()), &mut [0; BLOCK]);
        assert!(read.is_err(), "block {block}");
    }
    element.check().unwrap();
}

/// A larger shape: machines grow or are added, the log and the journal grow.
fn larger(setup: &Setup, draw: &mut Draw) -> Shape {
    let shape = &setup.shape;
    let mut larger = shape.clone();
    for machine in &mut larger.machines {
        machine.blocks += draw.below(300) as u32;
    }
    for number in [9, 12] {
        let is_new = larger
            .machines
            .iter()
            .all(|machine| machine.number != number);
        if is_new && draw.chance(50) {
            let blocks = draw.between(1, 40) as u32;
            larger.machines.push(icash::Machine { number, blocks });
        }
    }
    larger.log_segments += draw.below(4) as u32;
    if shape.journal_blocks > 0 {
        larger.journal_blocks += draw.below(600) as u32;
    }
    let least = setup
        .options
        .least_log_segments(larger.segment_blocks, larger.journal_blocks);
    larger.log_segments = larger.log_segments.max(least);
    larger
}

/// The values at the block numbers of a larger array.
fn renumbered(from: &Setup, to: &Setup, state: &[Value]) -> Vec<Value> {
    let mut grown = vec![0; to.blocks()];
    let of_lba = |lba: u64| {
        (0..to.blocks())
            .find(|&block| to.lba(block) == lba)
            .unwrap()
    };
    for (block, &value) in state.iter().enumerate() {
        grown[of_lba(from.lba(block))] = value;
    }
    grown
}

/// An array that grows: cut at every call it is the old one or the new one, which holds the same; it goes on, and grows
/// again.
#[test]
fn an_array_that_grows_holds_what_it_held() {
    let (mut cuts, mut grown, mut more) = (0, 0, 0);
    for (seed, first) in setups(30) {
        let mut draw = Draw::new(seed ^ 0x6120);
        let images = first.images();
        let (fast, mut slow) = (memory(&images.0), memory(&images.1));
        let mut pieces = Vec::new();
        let mut setup = first;
        let mut state = vec![0; setup.blocks()];
        for step in 0..3 {
            let mut element = setup
                .open(fast.clone(), view(slow.clone(), &pieces))
                .unwrap();
            demand(
                &setup,
                &mut element,
                &state,
                &format!("seed {seed}, step {step}"),
            );
            let ops = operations(&mut draw, 120, setup.blocks());
            run(&setup, &mut element, &ops, &mut state);
            element.close().unwrap();
            let to = Setup {
                shape: larger(&setup, &mut draw),
                ..setup.clone()
            };
            more += to.blocks() - setup.blocks();
            // Whatever lies behind is not zeros.
            let end = slow.len();
            let new = grown_pieces(&pieces, &setup.shape, &to.shape, end).unwrap();
            let length = end_of(&new);
            let mut longer = bytes(&*slow);
            longer.resize(length.max(end) as usize, 0xE5);
            let closed = (bytes(&*fast), longer);
            let new_state = renumbered(&setup, &to, &state);
            for cut in 1.. {
                let how = format!("seed {seed}, step {step}, cut {cut}");
                let power = Power::new(closed.clone(), Trouble::CutBoth(cut));
                let (_, raw) = power.media();
                let done = grow(view(raw.clone(), &pieces), view(raw, &new), &to.shape);
                assert!(
                    done.is_ok() || power.calls() >= cut,
                    "it fails by itself: {done:?}"
                );
                let left = power.survivors(&mut draw);
                cuts += 1;
                let kept = left.1[..end as usize] == closed.1[..end as usize];
                assert!(kept, "{how}: what the old one needs was written");
                let mut old = setup
                    .open(memory(&left.0), view(memory(&left.1), &pieces))
                    .unwrap();
                demand(&setup, &mut old, &state, &format!("{how}, the old one"));
                if done.is_ok() {
                    let new = view(memory(&left.1), &new);
                    let mut element = to.open(memory(&left.0), new).unwrap();
                    demand(&to, &mut element, &new_state, &how);
                    break;
                }
            }
            slow = memory(&closed.1);
            grow(
                view(slow.clone(), &pieces),
                view(slow.clone(), &new),
                &to.shape,
            )
            .unwrap();
            (setup, state, pieces) = (to, new_state, new);
            grown += 1;
        }
    }
    assert!(
        grown == 90 && cuts > 900 && more > 5000,
        "{grown} {cuts} {more}"
    );
}

/// What is smaller or different is refused, an array that was not closed too, and nothing is written then.
#[test]
fn what_is_no_growth_is_refused() {
    let (_, setup) = setups(60)
        .find(|(_, setup)| setup.shape.machines.len() > 1 && setup.shape.journal_blocks > 0)
        .unwrap();
    let shape = setup.shape.clone();
    let refused = |change: &dyn Fn(&mut Shape)| {
        let mut other = shape.clone();
        change(&mut other);
        icash::check_growth(&shape, &other).unwrap_err().to_string()
    };
    for (change, why) in [
        (
            &(|s: &mut Shape| s.slots += 1) as &dyn Fn(&mut Shape),
            "data blocks",
        ),
        (&|s| s.frozen_blocks += 1, "frozen places"),
        (&|s| s.segment_blocks += 1, "blocks of a segment"),
        (&|s| s.log_segments -= 1, "fewer segments"),
        (&|s| s.journal_blocks -= 1, "another journal"),
        (&|s| s.journal_blocks = 0, "another journal"),
        (&|s| s.machines.truncate(1), "fewer machines"),
        (&|s| s.machines[1].blocks -= 1, "does not grow to machine"),
        (
            &|s| s.machines[0].number = 99,
            "does not grow to machine 99",
        ),
    ] {
        let text = refused(change);
        assert!(text.contains(why), "{text}: expected {why}");
    }
    let images = setup.images();
    let (fast, slow) = (memory(&images.0), memory(&images.1));
    let mut element = setup.open(fast, slow.clone()).unwrap();
    element.write(setup.lba(0), &page(1 << 16)).unwrap();
    element.flush().unwrap();
    drop(element);
    let before = bytes(&*slow);
    let beside = Arc::new(MemoryMedium::new(slow.len() as usize));
    let error = grow(slow.clone(), beside.clone(), &shape).unwrap_err();
    assert!(error.to_string().contains("not closed"), "{error}");
    assert!(bytes(&*slow) == before && bytes(&*beside).iter().all(|&byte| byte == 0));
}

/// A new fast medium for an array that has grown, in write-through: nothing is lost.
#[test]
fn a_grown_array_gets_a_new_fast_medium() {
    let mut arrays = 0;
    for (seed, mut setup) in setups(12) {
        (setup.options.mode, setup.options.too_big) = (Mode::WriteThrough, TooBig::Log);
        let mut draw = Draw::new(seed);
        let images = setup.images();
        let (fast, slow) = (memory(&images.0), memory(&images.1));
        let mut state = vec![0; setup.blocks()];
        let mut element = setup.open(fast, slow.clone()).unwrap();
        let ops = operations(&mut draw, 100, setup.blocks());
        run(&setup, &mut element, &ops, &mut state);
        element.close().unwrap();
        let to = Setup {
            shape: larger(&setup, &mut draw),
            ..setup.clone()
        };
        let pieces = grown_pieces(&[], &setup.shape, &to.shape, slow.len()).unwrap();
        let length = end_of(&pieces);
        let mut longer = bytes(&*slow);
        longer.resize(length as usize, 0xE5);
        let slow = memory(&longer);
        grow(slow.clone(), view(slow.clone(), &pieces), &to.shape).unwrap();
        let fast = memory(&vec![0xE5; to.sizes().0]);
        icash::make_fresh(fast.clone(), view(slow.clone(), &pieces)).unwrap();
        let mut element = to.open(fast, view(slow, &pieces)).unwrap();
        let state = renumbered(&setup, &to, &state);
        demand(&to, &mut element, &state, &format!("seed {seed}"));
        arrays += 1;
    }
    assert_eq!(arrays, 12);
}

/// An array on new media: the power is cut at every call while the old one is copied. If the copy says that it is done and
/// closed, it is there whatever the media lost.
#[test]
fn a_copy_that_was_closed_is_durable() {
    let (mut cuts, mut whole) = (0, 0);
    for (seed, setup) in setups(12) {
        let mut draw = Draw::new(seed ^ 0xC09);
        let state: Vec<Value> = (0..setup.blocks()).map(|_| draw_value(&mut draw)).collect();
        let empty = {
            let (fast, slow) = setup.sizes();
            (vec![0xE5; fast], vec![0xE5; slow])
        };
        for cut in 1.. {
            let power = Power::new(empty.clone(), Trouble::CutBoth(cut));
            let (fast, slow) = power.media();
            let copy = || {
                icash::create(fast.clone(), slow.clone(), ID, &setup.shape)?;
                let mut element = ICash::open(fast, slow, setup.options.clone())?;
                let mut first = 0;
                for machine in &setup.shape.machines {
                    let native = setup.shape.machines[0].number;
                    let mut read = |address: u64, to: &mut [u8; BLOCK]| {
                        *to = page(state[first + address as usize]);
                        Ok(())
                    };
                    element.create_image(native, machine.number, &mut read)?;
                    first += machine.blocks as usize;
                }
                element.close()
            };
            let done: Result<(), flashlore_array::ArrayError> = copy();
            assert!(
                done.is_ok() || power.calls() >= cut,
                "it fails by itself: {done:?}"
            );
            let left = power.survivors(&mut draw);
            cuts += 1;
            if done.is_ok() {
                let mut element = setup.open(memory(&left.0), memory(&left.1)).unwrap();
                demand(&setup, &mut element, &state, &format!("seed {seed}"));
                assert!(element.was_closed());
                whole += 1;
                break;
            }
        }
    }
    assert!(whole == 12 && cuts > 12 * 30, "{whole} {cuts}");
}

/// An image around which an array lies is not adopted with what describes that array.
#[test]
fn what_describes_an_array_is_no_part_of_an_image() {
    let (_, setup) = setups(1).next().unwrap();
    let values = image(&setup, &mut Draw::new(1));
    let before = before_adoption(&setup, &values);
    let pieces = adopted_pieces(&setup.shape).unwrap();
    let (fast, slow) = (memory(&before.0), memory(&before.1));
    adopt_all(fast, view(slow.clone(), &pieces), &setup.shape).unwrap();
    let mut shape = setup.shape.clone();
    shape.machines[0].blocks = (slow.len() / BLOCK as u64) as u32;
    let needed = icash::bytes_needed(&shape).unwrap();
    let mut longer = bytes(&*slow);
    longer.resize(needed.1 as usize, 0);
    let whole = view(memory(&longer), &adopted_pieces(&shape).unwrap());
    let fast = memory(&vec![0; needed.0 as usize]);
    let error = adopt_all(fast, whole, &shape).unwrap_err().to_string();
    assert!(error.contains("leave that array first"), "{error}");
}

/// The first machine only gave a block up and another one only wrote, before: in order, the slow medium alone never shows
/// the later of the two without the earlier one, also while the first machine leaves.
#[test]
fn a_machine_leaves_in_order() {
    let two = |setup: &Setup| setup.shape.machines.len() > 1 && setup.shape.journal_blocks > 0;
    let mut cuts = 0;
    for (seed, setup) in setups(120).filter(|(_, setup)| two(setup)).take(5) {
        let mut draw = Draw::new(seed);
        let images = setup.images();
        let (fast, slow) = (memory(&images.0), memory(&images.1));
        let other = setup.shape.machines[0].blocks as usize;
        let mut state = vec![0; setup.blocks()];
        let mut element = setup.open(fast.clone(), slow.clone()).unwrap();
        for block in [0, other] {
            setup.apply(
                &mut element,
                Op::Write(block, draw_value(&mut draw)),
                &mut state,
            );
        }
        element.close().unwrap();
        let batch = alone(&setup, &bytes(&*slow), &[]).unwrap();
        let mut element = setup.open(fast.clone(), slow.clone()).unwrap();
        for op in [
            Op::Write(other, draw_value(&mut draw)),
            Op::Flush,
            Op::Trim(0),
            Op::Flush,
        ] {
            setup.apply(&mut element, op, &mut state);
        }
        drop(element);
        let used = (bytes(&*fast), bytes(&*slow));
        for cut in 1.. {
            let power = Power::new(used.clone(), Trouble::CutBoth(cut));
            let (fast, slow) = power.media();
            let leave = || {
                let mut element = setup.open(fast, slow)?;
                element.bring_home(setup.shape.machines[0].number, &mut |_, _| {})?;
                element.close()
            };
            let done = leave();
            let left = power.survivors(&mut draw);
            let found = alone(&setup, &left.1, &[]).unwrap();
            let is_state = found == batch || found == content(&state);
            assert!(
                is_state,
                "seed {seed}, cut {cut}: the slow medium alone is no state"
            );
            cuts += 1;
            if done.is_ok() {
                break;
            }
        }
    }
    assert!(cuts > 50, "{cuts}");
}
