//! All elements together, I-CASH too, against a plain list of values. Budgets are tiny.

use std::sync::Arc;

use flashlore_array::icash::ICash;
use flashlore_array::{Element, Rival};
use flashlore_medium::MemoryMedium;
use proptest::prelude::*;

use crate::common::{SORTS, draw_options, rival};
use crate::support::{Draw, Op, Setup, Value, operations, page};

enum Any {
    ICash(Box<ICash>),
    Rival(Box<Rival>),
}

impl Any {
    fn element(&mut self) -> &mut dyn Element {
        match self {
            Any::ICash(element) => &mut **element,
            Any::Rival(element) => &mut **element,
        }
    }

    fn check(&self) -> Result<(), String> {
        match self {
            Any::ICash(element) => element.check(),
            Any::Rival(element) => element.check(),
        }
    }
}

struct All {
    setup: Setup,
    elements: Vec<(String, Any)>,
    model: Vec<Value>,
}

impl All {
    fn draw(draw: &mut Draw) -> All {
        let setup = Setup::draw(draw);
        let (fast, slow) = setup.images();
        let medium = |bytes| Arc::new(MemoryMedium::from_bytes(bytes));
        let icash = setup.open(medium(fast), medium(slow)).unwrap();
        let mut elements = vec![(
            "I-CASH".to_string(),
            Any::ICash(Box::new(icash.into_element())),
        )];
        for sort in SORTS {
            let options = draw_options(draw);
            let rival = rival(sort, &setup.shape.machines, &options);
            elements.push((format!("{sort:?} {options:?}"), Any::Rival(Box::new(rival))));
        }
        All {
            model: vec![0; setup.blocks()],
            elements,
            setup,
        }
    }

    fn run(&mut self, op: Op) {
        for (name, any) in &mut self.elements {
            let lba = |block| self.setup.lba(block);
            match op {
                Op::Write(block, value) => any.element().write(lba(block), &page(value)).unwrap(),
                Op::Trim(block) => any.element().trim(lba(block)).unwrap(),
                Op::Flush => any.element().flush().unwrap(),
                Op::Read(block) => {
                    let mut found = [1; 4096];
                    any.element().read(lba(block), &mut found).unwrap();
                    let expected = page(self.model[block]);
                    assert!(
                        found == expected,
                        "block {block} of {name} holds something else"
                    );
                }
            }
            if let Err(error) = any.check() {
                panic!("{name} after {op:?}: {error}");
            }
        }
        match op {
            Op::Write(block, value) => self.model[block] = value,
            Op::Trim(block) => self.model[block] = 0,
            Op::Read(_) | Op::Flush => {}
        }
    }
}

proptest! {
    // A history is its seed and its length: a shorter one with the same seed is the same at first.
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn all_hold_what_was_written(seed: u64, count in 1usize..500) {
        let mut draw = Draw::new(seed);
        let mut all = All::draw(&mut draw);
        let blocks = all.setup.blocks();
        for op in operations(&mut draw, count, blocks) {
            all.run(op);
        }
        (0..blocks).for_each(|block| all.run(Op::Read(block)));
    }
}

#[test]
fn addresses_that_no_machine_has_are_refused() {
    let mut all = All::draw(&mut Draw::new(1));
    for (name, any) in &mut all.elements {
        let mut page = [0; 4096];
        for lba in [u64::MAX, 1 << 55] {
            let found = any
                .element()
                .read(lba, &mut page)
                .map_err(|e| e.to_string());
            assert!(found.is_err_and(|e| e.contains("does not exist")), "{name}");
            assert!(any.element().write(lba, &page).is_err(), "{name}");
            assert!(any.element().trim(lba).is_err(), "{name}");
        }
        let statistics = any.element().statistics();
        assert_eq!(
            statistics.reads + statistics.writes + statistics.trims,
            0,
            "{name}"
        );
    }
}
