//! Restored index entries against a naive model on a device that is not collected: the same hits, reads and
//! entries, in the same order; and under collection what is read is what was written.

use crate::common;

use std::collections::BTreeSet;

use common::{Medium, Random, medium};
use flashlore_content::{DedupOptions, PageTag, ValueLedger};
use flashlore_flash::{Cause, Geometry, Lpn, Tag, When};
use flashlore_ftl::{ContentFtl, FtlOptions, Unhashed};
use proptest::prelude::*;

type Ftl = ContentFtl<PageTag, Medium<PageTag>, ValueLedger>;

const PAGES: u32 = 60;

fn device(blocks: u32, entries: u32, degree: u32) -> Ftl {
    let geometry = Geometry::single_plane(blocks, 16, 4096).unwrap();
    let dedup = DedupOptions {
        index_entries: Some(entries),
        fingerprint_bits: 64,
        verify: false,
        bypass: None,
        out_of_line: false,
    };
    let medium = medium(&geometry);
    let ftl = ContentFtl::new(
        medium,
        FtlOptions::new(PAGES),
        dedup,
        ValueLedger::default(),
    )
    .unwrap();
    ftl.with_prefetch(degree)
}

/// A stored copy of a value.
#[derive(Debug, Clone)]
struct Copy {
    value: u32,
    /// Logical pages that refer to it.
    pages: BTreeSet<u32>,
    /// What it was stored for; nothing if it was not hashed.
    home: Option<u32>,
}

/// Copies, and an index that is a list of them, the one used last first.
#[derive(Debug, Default)]
struct Model {
    copies: Vec<Copy>,
    index: Vec<usize>,
    entries: usize,
    degree: u32,
    hits: u64,
    looked_up: u64,
    restored: u64,
}

impl Model {
    fn of(&self, page: u32) -> Option<usize> {
        self.copies
            .iter()
            .position(|copy| copy.pages.contains(&page))
    }

    fn enter(&mut self, copy: usize) {
        self.index.insert(0, copy);
        self.index.truncate(self.entries);
    }

    fn refer(&mut self, page: u32, copy: Option<usize>) {
        if let Some(old) = self.of(page).filter(|&old| Some(old) != copy) {
            self.copies[old].pages.remove(&page);
            if self.copies[old].pages.is_empty() {
                self.index.retain(|&entry| entry != old);
            }
        }
        if let Some(copy) = copy {
            self.copies[copy].pages.insert(page);
        }
    }

    fn write(&mut self, page: u32, value: u32, hashed: bool) {
        let known = |&entry: &usize| self.copies[entry].value == value;
        let found = self.index.iter().position(known).filter(|_| hashed);
        let Some(at) = found else {
            let home = hashed.then_some(page);
            let pages = BTreeSet::new();
            self.copies.push(Copy { value, pages, home });
            let copy = self.copies.len() - 1;
            if hashed {
                self.enter(copy);
            }
            return self.refer(page, Some(copy));
        };
        self.hits += 1;
        let copy = self.index.remove(at);
        self.index.insert(0, copy);
        let home = self.copies[copy].home;
        if let Some(home) = home.filter(|home| self.copies[copy].pages.contains(home)) {
            for next in home + 1..=(home + self.degree).min(PAGES - 1) {
                self.look_at(next);
            }
        }
        self.refer(page, Some(copy));
        let copy = &mut self.copies[copy];
        if copy.home.is_some_and(|home| !copy.pages.contains(&home)) {
            copy.home = Some(page);
        }
    }

    fn look_at(&mut self, page: u32) {
        let Some(copy) = self.of(page) else {
            return;
        };
        if self.index.contains(&copy) || self.copies[copy].home.is_none() {
            return;
        }
        self.looked_up += 1;
        let value = self.copies[copy].value;
        if !self
            .index
            .iter()
            .any(|&entry| self.copies[entry].value == value)
        {
            self.restored += 1;
            self.enter(copy);
        }
    }
}

/// Runs of values that are written again elsewhere, with others between.
fn next_write(random: &mut Random, run: &mut (u32, u32)) -> (u32, u32) {
    if random.below(5) == 0 {
        *run = (random.below(PAGES), random.below(40));
    } else {
        *run = ((run.0 + 1) % PAGES, (run.1 + 1) % 40);
    }
    *run
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn entries_are_restored_as_in_a_naive_model(
        seed in any::<u64>(),
        entries in 1u32..30,
        degree in 0u32..6,
        steps in 1u32..600,
    ) {
        let mut ftl = device(60, entries, degree);
        let mut model = Model { entries: entries as usize, degree, ..Model::default() };
        let (mut random, mut run) = (Random::new(seed), (0, 0));
        for step in 0..steps {
            let (page, value) = next_write(&mut random, &mut run);
            let when = When::now(u64::from(step));
            match random.below(20) {
                0 => {
                    ftl.trim(Lpn(page)).unwrap();
                    model.refer(page, None);
                }
                1 => {
                    let value = PageTag(value);
                    ftl.write_unhashed(when, Lpn(page), value, Unhashed::Off, Tag::NONE).unwrap();
                    model.write(page, value.0, false);
                }
                _ => {
                    ftl.write(when, Lpn(page), PageTag(value), Tag::NONE).unwrap();
                    model.write(page, value, true);
                }
            }
            let objects = ftl.objects();
            let held = ftl.dedup().index.objects(objects);
            let held: Vec<u32> = held.map(|object| objects.content(object).0).collect();
            let expected = model.index.iter().map(|&entry| model.copies[entry].value);
            prop_assert_eq!(held, expected.collect::<Vec<u32>>());
        }
        let counted = ftl.prefetch_counters();
        prop_assert_eq!(ftl.dedup_counters().hits, model.hits);
        prop_assert_eq!((counted.looked_up, counted.restored), (model.looked_up, model.restored));
        prop_assert_eq!(ftl.core().counters().page_reads_prefetch, model.looked_up);
        prop_assert_eq!(ftl.core().counters().victims, 0);
        ftl.check().map_err(TestCaseError::fail)?;
    }

    #[test]
    fn under_collection_what_is_read_is_what_was_written(seed in any::<u64>(), degree in 1u32..9) {
        let mut ftl = device(9, 12, degree);
        let (mut random, mut run) = (Random::new(seed), (0, 0));
        let mut stored = [None; PAGES as usize];
        for step in 0..1500u64 {
            let (page, value) = next_write(&mut random, &mut run);
            ftl.write(When::now(step), Lpn(page), PageTag(value), Tag::NONE).unwrap();
            stored[page as usize] = Some(PageTag(value));
        }
        prop_assert!(ftl.prefetch_counters().restored > 0);
        for page in 0..PAGES {
            let (found, _) = ftl.read(9999, Lpn(page), Cause::Host, Tag::NONE).unwrap();
            prop_assert_eq!(found, stored[page as usize]);
        }
        ftl.check().map_err(TestCaseError::fail)?;
    }
}

/// A run of values longer than the index is missed when it comes again, but for the first, which was written in
/// between. With one page ahead that brings each of the others back.
#[test]
fn a_run_longer_than_the_index_is_found_again() {
    for (degree, found) in [(0, 1), (1, 20), (2, 20)] {
        let mut ftl = device(60, 8, degree);
        let mut write = |page: u32, value: u32| {
            let when = When::now(0);
            ftl.write(when, Lpn(page), PageTag(value), Tag::NONE)
                .unwrap();
            ftl.dedup_counters().hits
        };
        for value in 0..20 {
            write(value, value);
            if value % 4 == 3 {
                write(50, 0);
            }
        }
        let before = write(50, 0);
        let mut after = before;
        for value in 0..20 {
            after = write(20 + value, value);
        }
        assert_eq!(after - before, found, "{degree} pages ahead");
    }
}
