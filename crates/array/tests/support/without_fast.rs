//! The fast medium is lost, and a new one takes its place: what must be there then.

use std::collections::BTreeSet;
use std::sync::Arc;

use flashlore_array::error::ContentError;
use flashlore_array::icash::{ICash, Loss, Mode, SlowAlone, lba, loss_without_fast, make_fresh};
use flashlore_array::{ArrayError, Element};
use flashlore_medium::{Medium, MemoryMedium};

use crate::support::pages::{Value, page};
use crate::support::{Draw, Power, Setup, Trouble};

/// What was seen of lost media.
#[derive(Debug, Default)]
pub struct WithoutFast {
    /// Arrays that lost nothing.
    pub whole: u64,
    /// Arrays in write-through among them that have something on the slow medium.
    pub write_through: u64,
    /// Arrays that went back to the last batch.
    pub back: u64,
    /// Arrays that lost blocks, and how many they lost.
    pub damaged: u64,
    pub lost_blocks: u64,
    pub cut: u64,
}

/// What is expected of each block: its content, or that it is lost.
type Expected = Vec<Option<[u8; 4096]>>;

pub fn memory(bytes: &[u8]) -> Arc<MemoryMedium> {
    Arc::new(MemoryMedium::from_bytes(bytes.to_vec()))
}

/// What a medium holds.
pub fn bytes(medium: &dyn Medium) -> Vec<u8> {
    let mut bytes = vec![0; medium.len() as usize];
    medium.read(0, &mut bytes).unwrap();
    bytes
}

/// The bytes of a fresh fast medium of the array on a slow one. Its slots hold what no array wrote.
pub fn fresh(setup: &Setup, slow: &[u8]) -> Vec<u8> {
    let (new, beside) = (memory(&vec![0xE5; setup.sizes().0]), memory(slow));
    make_fresh(new.clone(), beside.clone()).unwrap();
    assert!(
        Arc::into_inner(beside).unwrap().into_bytes() == slow,
        "the slow medium was written"
    );
    Arc::into_inner(new).unwrap().into_bytes()
}

/// Asks what is lost without the fast medium, and what each block holds then. `state` is what both media hold durably.
pub fn expected(setup: &Setup, slow: &[u8], state: &[Value]) -> (Loss, Expected) {
    let loss = loss_without_fast(memory(slow)).unwrap();
    let all: Expected = state.iter().map(|&value| Some(page(value))).collect();
    let expected = match &loss {
        Loss::Nothing => all,
        Loss::Blocks(lost) => {
            let lost: BTreeSet<u64> = { lost.iter() }
                .map(|&(machine, address)| lba(machine, address.into()))
                .collect();
            let one = |(block, content)| match lost.contains(&setup.lba(block)) {
                true => None,
                false => content,
            };
            all.into_iter().enumerate().map(one).collect()
        }
        Loss::SinceBatch { .. } => {
            let mut alone = SlowAlone::open(memory(slow)).unwrap();
            let mut read = |block| {
                let mut found = [1; 4096];
                alone.read(setup.lba(block), &mut found).unwrap();
                Some(found)
            };
            (0..setup.blocks()).map(&mut read).collect()
        }
    };
    (loss, expected)
}

/// Whether an element holds what is expected, and says of what is lost that it is.
pub fn demand(setup: &Setup, element: &mut ICash, expected: &Expected, how: &str) {
    element.check().unwrap_or_else(|e| panic!("{how}: {e}"));
    for (block, content) in expected.iter().enumerate() {
        let mut found = [1; 4096];
        let read = element.read(setup.lba(block), &mut found);
        match (content, read) {
            (Some(content), Ok(())) => assert!(found == *content, "{how}: block {block} differs"),
            (Some(_), Err(error)) => panic!("{how}: {error}"),
            (None, Ok(())) => panic!("{how}: block {block} is lost and was read"),
            (None, Err(error)) => assert!(
                matches!(
                    error,
                    ArrayError::Unreadable {
                        source: ContentError::Lost,
                        ..
                    }
                ),
                "{how}: {error}"
            ),
        }
    }
    element.check().unwrap_or_else(|e| panic!("{how}: {e}"));
}

impl WithoutFast {
    /// Takes the fast medium of an array away and gives it a new one. The opening is cut too; what is lost is written
    /// or trimmed in the end.
    pub fn try_it(
        &mut self,
        setup: &Setup,
        slow: &[u8],
        state: &[Value],
        draw: &mut Draw,
        how: &str,
    ) {
        let how = format!("{how}, then without the fast medium");
        let (loss, expected) = expected(setup, slow, state);
        if setup.options.mode == Mode::WriteThrough {
            assert_eq!(loss, Loss::Nothing, "{how}");
            self.write_through += u64::from(state.iter().any(|&value| value != 0));
        }
        match &loss {
            Loss::Nothing => self.whole += 1,
            Loss::SinceBatch { blocks, .. } => {
                assert!(!blocks.is_empty());
                self.back += 1;
            }
            Loss::Blocks(lost) => {
                (self.damaged, self.lost_blocks) =
                    (self.damaged + 1, self.lost_blocks + lost.len() as u64);
            }
        }
        let mut images = (fresh(setup, slow), slow.to_vec());
        let power = Power::new(images.clone(), Trouble::Never);
        let (fast, beside) = power.media();
        demand(
            setup,
            &mut setup.open(fast, beside).unwrap(),
            &expected,
            &how,
        );
        // However often the opening is cut.
        let calls = Power::new(images.clone(), Trouble::Never);
        let (fast, beside) = calls.media();
        drop(setup.open(fast, beside).unwrap());
        for _ in 0..2 {
            let cut = Trouble::CutBoth(draw.between(1, calls.calls()));
            let power = Power::new(images.clone(), cut);
            let (fast, beside) = power.media();
            drop(setup.open(fast, beside));
            images = power.survivors(draw);
            self.cut += 1;
        }
        let (fast, slow) = (memory(&images.0), memory(&images.1));
        let mut element = setup.open(fast.clone(), slow.clone()).unwrap();
        demand(setup, &mut element, &expected, &format!("{how}, cut"));
        repair(setup, &mut element, expected);
        element.close().unwrap();
        let mut bytes = vec![0; slow.len() as usize];
        slow.read(0, &mut bytes).unwrap();
        let mut again = setup.open(fast, slow).unwrap();
        again
            .verify()
            .unwrap_or_else(|e| panic!("{how}, repaired: {e}"));
    }
}

/// Writes what is lost, or trims it.
fn repair(setup: &Setup, element: &mut ICash, mut expected: Expected) {
    for (block, content) in expected.iter_mut().enumerate() {
        if content.is_some() {
            continue;
        }
        let value = (7 << 16 | block) as Value;
        *content = Some(page(if block % 2 == 0 { value } else { 0 }));
        match block % 2 {
            0 => element.write(setup.lba(block), &page(value)).unwrap(),
            _ => element.trim(setup.lba(block)).unwrap(),
        }
    }
    demand(setup, element, &expected, "repaired");
}
