//! Tables against plain maps: random histories with a small cache, forks, growth and power cuts.

use std::collections::BTreeMap;
use std::iter;
use std::sync::Arc;

use flashlore_content::VolumeKey;
use flashlore_medium::{CrashMedium, Faults, FaultyMedium, Medium, MemoryMedium, Style};
use flashlore_metadata::{
    Access, Area, Empty, Fetch, MetadataError, PAGE_BYTES, Row, Shape, Slot, Store, Stored, TableId,
};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const KEY: VolumeKey = VolumeKey([7; 32]);
const AREA: Area = Area {
    at: 8192,
    slots: 1_500,
    tables: 12,
    user_bytes: 16,
};
/// Five pages of counts.
const MANY_SLOTS: Area = Area {
    slots: 10_000,
    ..AREA
};
/// Fewer than the pages that a history touches.
const FRAMES: usize = 40;

/// Trees of one, two and four levels.
const SHAPES: [Shape; 3] = [
    Shape {
        rows: 200,
        row_bytes: 16,
        empty: Empty::Zeros,
    },
    Shape {
        rows: 90_000,
        row_bytes: 32,
        empty: Empty::Ones,
    },
    Shape {
        rows: 300_000,
        row_bytes: 4_064,
        empty: Empty::Zeros,
    },
];

fn bytes_of(area: &Area) -> usize {
    (area.at + area.bytes()) as usize
}

/// What a store should hold: of each table its shape and the rows that were written.
#[derive(Debug, Clone, Default, PartialEq)]
struct Model {
    tables: Vec<(Shape, BTreeMap<u32, Vec<u8>>)>,
}

impl Model {
    fn row(&self, table: usize, row: u32) -> Vec<u8> {
        let (shape, rows) = &self.tables[table];
        let empty = match shape.empty {
            Empty::Zeros => 0,
            Empty::Ones => 255,
        };
        let written = rows.get(&row).cloned();
        written.unwrap_or_else(|| vec![empty; shape.row_bytes.into()])
    }
}

/// Reads what is missing until an answer is there.
fn fetching<R>(
    store: &mut Store,
    mut ask: impl FnMut(&mut Store) -> Result<R, Access>,
) -> Result<R, MetadataError> {
    for _ in 0..32 {
        let fetch = match ask(store) {
            Ok(answer) => return Ok(answer),
            Err(Access::Error(error)) => return Err(error),
            Err(Access::Absent(fetch)) => fetch,
        };
        let (medium, area, key) = store.place();
        let fetched = fetch.carry_out(&medium, &area, &key)?;
        match store.install(&fetched) {
            Ok(()) => {}
            Err(Access::Error(error)) => return Err(error),
            Err(Access::Absent(_)) => unreachable!("installing asks for nothing"),
        }
    }
    panic!("asked 32 times for one row");
}

fn get(store: &mut Store, table: usize, row: u32) -> Result<Vec<u8>, MetadataError> {
    let table = TableId(table as u32);
    fetching(store, |store| {
        store.row(table, Row(row)).map(<[u8]>::to_vec)
    })
}

fn set(store: &mut Store, table: usize, row: u32, bytes: &[u8]) -> Result<(), MetadataError> {
    let table = TableId(table as u32);
    fetching(store, |store| {
        store.row_mut(table, Row(row))?.copy_from_slice(bytes);
        Ok(())
    })
}

/// A new store of these tables, opened.
fn made(
    medium: Arc<dyn Medium>,
    area: Area,
    tables: &[(u8, Shape)],
    frames: usize,
) -> Result<Store, MetadataError> {
    Store::create(&medium, &area, &KEY, 1, tables, &1u64.to_le_bytes())?;
    medium.sync()?;
    Store::open(medium, area, KEY, frames).map(|(store, _)| store)
}

/// Counts the pointers of what the last commit made durable.
fn recount(store: &Store) -> Result<(), MetadataError> {
    let (medium, area, key) = store.place();
    let mut missing = Ok(());
    Stored::open(&medium, area, key)?.recount(|page| {
        if let Err(page) = page {
            missing = Err(page.error);
        }
    })?;
    missing
}

/// A store and what it should hold, now and since its last commits.
struct Run {
    store: Store,
    now: Model,
    /// As of the last durable commit, and as of the one that began after it.
    durable: Model,
    begun: Model,
    rng: Xoshiro256PlusPlus,
    forks: u32,
    evictions: u64,
}

impl Run {
    fn new(medium: Arc<dyn Medium>, seed: u64) -> Result<Run, MetadataError> {
        let shapes: Vec<(u8, Shape)> = (1..).zip(SHAPES).collect();
        let mut run = Run {
            store: made(medium, AREA, &shapes, FRAMES)?,
            now: Model::default(),
            durable: Model::default(),
            begun: Model::default(),
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            forks: 0,
            evictions: 0,
        };
        for shape in SHAPES {
            run.now.tables.push((shape, BTreeMap::new()));
        }
        run.commit()?;
        Ok(run)
    }

    fn below(&mut self, most: u32) -> u32 {
        ((u64::from(self.rng.next_u32()) * u64::from(most)) >> 32) as u32
    }

    /// A row of a table: few of them are used often, and they are spread over the whole table.
    fn any_row(&mut self) -> (usize, u32) {
        let tables = self.now.tables.len() as u32;
        let table = self.below(tables) as usize;
        let rows = self.now.tables[table].0.rows;
        let row = match self.below(3) {
            0 => self.below(rows),
            1 => self.below(40) * (rows / 40),
            _ => self.below(rows.min(60)),
        };
        (table, row)
    }

    fn write(&mut self) -> Result<(), MetadataError> {
        let (table, row) = self.any_row();
        let bytes = vec![self.rng.next_u32() as u8; self.now.tables[table].0.row_bytes.into()];
        match set(&mut self.store, table, row, &bytes) {
            Ok(()) => {}
            // Everything of the present is kept by the commit, and what only the one before needed is free then.
            Err(MetadataError::Full) => {
                self.commit()?;
                set(&mut self.store, table, row, &bytes)?;
            }
            Err(error) => return Err(error),
        }
        self.now.tables[table].1.insert(row, bytes);
        Ok(())
    }

    /// All rows of a page.
    fn write_page(&mut self) -> Result<(), MetadataError> {
        let (table, row) = self.any_row();
        let (shape, byte) = (self.now.tables[table].0, self.rng.next_u32() as u8);
        let first = row / shape.rows_per_page() * shape.rows_per_page();
        let rows = first..(first + shape.rows_per_page()).min(shape.rows);
        let used = rows.len() * usize::from(shape.row_bytes);
        let set_all = |store: &mut Store| {
            fetching(store, |store| {
                let page = store.rows_to_set(TableId(table as u32), Row(row))?;
                page.fill(shape.empty.byte());
                page[..used].fill(byte);
                Ok(())
            })
        };
        match set_all(&mut self.store) {
            Err(MetadataError::Full) => {
                self.commit()?;
                set_all(&mut self.store)?;
            }
            done => done?,
        }
        for row in rows {
            let bytes = vec![byte; shape.row_bytes.into()];
            self.now.tables[table].1.insert(row, bytes);
        }
        Ok(())
    }

    fn read(&mut self) -> Result<(), MetadataError> {
        let (table, row) = self.any_row();
        let found = match get(&mut self.store, table, row) {
            Err(MetadataError::Full) => {
                self.commit()?;
                get(&mut self.store, table, row)?
            }
            found => found?,
        };
        assert_eq!(
            found,
            self.now.row(table, row),
            "row {row} of table {table}"
        );
        Ok(())
    }

    /// A commit, in the course of which other rows change.
    fn commit(&mut self) -> Result<(), MetadataError> {
        let user = (self.store.commit() + 1).to_le_bytes();
        let root = self.store.begin_commit(&user)?;
        self.begun = self.now.clone();
        let more = if self.now.tables[0].1.is_empty() {
            0
        } else {
            self.below(4)
        };
        for _ in 0..more {
            let (table, row) = self.any_row();
            let bytes = vec![9; self.now.tables[table].0.row_bytes.into()];
            match set(&mut self.store, table, row, &bytes) {
                Ok(()) => {
                    self.now.tables[table].1.insert(row, bytes);
                }
                Err(MetadataError::Full) => {}
                Err(error) => return Err(error),
            }
        }
        let (medium, ..) = self.store.place();
        medium.sync()?;
        self.store.write_root(&root)?;
        medium.sync()?;
        self.store.end_commit();
        self.durable = self.begun.clone();
        Ok(())
    }

    fn fork(&mut self) -> Result<(), MetadataError> {
        if self.now.tables.len() == usize::from(AREA.tables) {
            return Ok(());
        }
        let table = self.below(self.now.tables.len() as u32);
        match self.store.fork(TableId(table)) {
            Ok(_) => {
                let copy = self.now.tables[table as usize].clone();
                self.now.tables.push(copy);
                self.forks += 1;
                Ok(())
            }
            Err(MetadataError::Full) => self.commit(),
            Err(error) => Err(error),
        }
    }

    fn grow(&mut self) -> Result<(), MetadataError> {
        let table = self.below(self.now.tables.len() as u32);
        let (shape, _) = self.now.tables[table as usize];
        let rows = shape.rows.saturating_mul(1 + self.below(3)).min(4_000_000);
        let grown = fetching(&mut self.store, |store| {
            store.grow(TableId(table), rows.max(shape.rows))
        });
        match grown {
            Ok(()) => {
                self.now.tables[table as usize].0.rows = rows.max(shape.rows);
                Ok(())
            }
            Err(MetadataError::Full) => self.commit(),
            Err(error) => Err(error),
        }
    }

    fn reopen(&mut self) -> Result<(), MetadataError> {
        let (medium, ..) = self.store.place();
        self.note_evictions();
        let (store, user) = Store::open(medium, AREA, KEY, FRAMES)?;
        assert_eq!(user, store.commit().to_le_bytes());
        self.store = store;
        self.now = self.durable.clone();
        Ok(())
    }

    fn note_evictions(&mut self) {
        self.evictions += self.store.cache_counters().written_for_room;
    }

    fn step(&mut self) -> Result<(), MetadataError> {
        match self.below(100) {
            0..52 => self.write(),
            52..60 => self.write_page(),
            60..86 => self.read(),
            86..91 => {
                let most = self.below(8) as usize;
                match self.store.clean(most) {
                    Err(MetadataError::Full) => self.commit(),
                    cleaned => cleaned.map(drop),
                }
            }
            91..97 => self.commit(),
            97 => self.fork(),
            98 => self.grow(),
            _ => self.reopen(),
        }
    }

    /// Everything is what it should be.
    fn check(&mut self) -> Result<(), MetadataError> {
        self.store.check().unwrap();
        self.commit()?;
        self.reopen()?;
        recount(&self.store)?;
        for table in 0..self.now.tables.len() {
            for row in self.now.tables[table].1.clone().into_keys() {
                assert_eq!(get(&mut self.store, table, row)?, self.now.row(table, row));
            }
        }
        self.store.check().unwrap();
        Ok(())
    }
}

#[test]
fn rows_are_what_was_written_last_whatever_was_evicted_forked_and_opened_anew() {
    let (mut forks, mut evictions) = (0, 0);
    for seed in 0..30 {
        let medium = Arc::new(MemoryMedium::new(bytes_of(&AREA)));
        let mut run = Run::new(medium, seed).unwrap();
        for step in 0..1_500 {
            run.step().unwrap();
            if step % 50 == 0 {
                run.store
                    .check()
                    .unwrap_or_else(|why| panic!("seed {seed}, step {step}: {why}"));
            }
        }
        run.check().unwrap();
        run.note_evictions();
        forks += run.forks;
        evictions += run.evictions;
    }
    assert!(forks > 100, "{forks} forks");
    assert!(
        evictions > 1_000,
        "{evictions} changed pages left the cache before a commit"
    );
}

/// What a medium held when its power was cut at a call, in several ways, is a commit as a whole.
#[test]
fn a_power_cut_at_any_call_leaves_a_commit_whole() {
    let styles = [
        Style::Nothing,
        Style::All,
        Style::Calls { percent: 50 },
        Style::Sectors { percent: 50 },
        Style::OneLost,
        Style::OneTorn,
    ];
    let (mut cuts, mut newer) = (0, 0);
    for seed in 0..6u64 {
        for cut in (3 + seed..).step_by(7) {
            let medium = Arc::new(CrashMedium::new(bytes_of(&AREA)));
            medium.cut_at(cut);
            let history = |run: &mut Run| (0..250).try_for_each(|_| run.step());
            let mut run = match Run::new(Arc::clone(&medium) as Arc<dyn Medium>, seed) {
                Ok(run) => run,
                // Before its first root there is nothing to come back to.
                Err(_) => continue,
            };
            match history(&mut run) {
                Ok(()) => break,
                Err(error) => assert!(
                    medium.calls() >= cut,
                    "seed {seed}: it failed without a cut: {error}"
                ),
            }
            for (number, style) in (0..).zip(styles) {
                let survived = MemoryMedium::from_bytes(
                    medium.survivors(seed * 1_000 + cut * 10 + number, style),
                );
                let opened = Store::open(Arc::new(survived), AREA, KEY, FRAMES);
                let (mut store, _) =
                    opened.unwrap_or_else(|e| panic!("seed {seed}, cut {cut}, {style:?}: {e}"));
                recount(&store)
                    .unwrap_or_else(|e| panic!("seed {seed}, cut {cut}, {style:?}: {e}"));
                let begun = holds(&mut store, &run.begun);
                assert!(
                    begun || holds(&mut store, &run.durable),
                    "seed {seed}, cut {cut}, {style:?}: neither commit is whole"
                );
                cuts += 1;
                newer += u32::from(begun && run.begun != run.durable);
            }
        }
    }
    assert!(
        cuts > 500 && newer > 10,
        "{cuts} cuts, {newer} of them with the newer root"
    );
}

/// Whether a store holds all rows that any state has as this one has them.
fn holds(store: &mut Store, model: &Model) -> bool {
    let shapes: Vec<Shape> = (0..store.tables())
        .map(|table| store.shape(TableId(table)))
        .collect();
    let expected: Vec<Shape> = model.tables.iter().map(|&(shape, _)| shape).collect();
    shapes == expected
        && (0..model.tables.len()).all(|table| {
            let rows = &model.tables[table].1;
            rows.iter()
                .all(|(&row, bytes)| get(store, table, row).unwrap() == *bytes)
        })
}

/// A store of one table, whose rows have the number of the commit that wrote them last.
fn committed(medium: &Arc<MemoryMedium>, area: Area, commits: u8) -> Store {
    let medium = Arc::clone(medium) as Arc<dyn Medium>;
    let mut store = made(Arc::clone(&medium), area, &[(1, SHAPES[1])], FRAMES).unwrap();
    for number in 1..=commits {
        for row in (0..90_000).step_by(usize::from(number) * 1_000) {
            set(&mut store, 0, row, &[number; 32]).unwrap();
        }
        store.commit_at_once(&[]).unwrap();
    }
    store
}

fn contents(store: &mut Store) -> Result<Vec<Vec<u8>>, MetadataError> {
    (0..90).map(|row| get(store, 0, row * 1_000)).collect()
}

#[test]
fn every_flipped_bit_is_noticed_or_is_in_what_nobody_needs() {
    let medium = Arc::new(MemoryMedium::new(bytes_of(&AREA)));
    let expected = contents(&mut committed(&medium, AREA, 4)).unwrap();
    let (mut noticed, mut older) = (0, 0);
    let bytes = Arc::try_unwrap(medium).ok().unwrap().into_bytes();
    let used: Vec<usize> = (0..bytes.len() / 512)
        .filter(|s| bytes[s * 512..][..512].iter().any(|&b| b != 0))
        .collect();
    for sector in used {
        let mut damaged = bytes.clone();
        let at = sector * 512 + (sector * 37) % 512;
        damaged[at] ^= 1 << (sector % 8);
        let opened = Store::open(
            Arc::new(MemoryMedium::from_bytes(damaged)),
            AREA,
            KEY,
            FRAMES,
        );
        let read = opened.and_then(|(mut store, _)| {
            let commit = store.commit();
            Ok((commit, contents(&mut store)?))
        });
        match read {
            Err(_) => noticed += 1,
            // The other root holds still.
            Ok((4, _)) => older += 1,
            Ok((_, found)) => assert_eq!(found, expected, "byte {at}"),
        }
    }
    assert!(
        noticed > 200 && older > 0,
        "{noticed} noticed, {older} at the root before"
    );
}

#[test]
fn an_older_page_put_back_into_its_slot_is_not_taken_for_the_present_one() {
    let area = Area { slots: 250, ..AREA };
    let medium = Arc::new(MemoryMedium::new(bytes_of(&area)));
    let mut store = committed(&medium, area, 2);
    // Row 0 again and again: sooner or later its leaf has the slot that it had before.
    let mut by_slot: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
    for round in 0..200u8 {
        set(&mut store, 0, 0, &[round; 32]).unwrap();
        let before = medium_bytes(&medium);
        store.commit_at_once(&[]).unwrap();
        let after = medium_bytes(&medium);
        for page in 0..before.len() / PAGE_BYTES {
            let range = page * PAGE_BYTES..(page + 1) * PAGE_BYTES;
            let (old, new) = (&before[range.clone()], &after[range]);
            // The leaf of rows: level 0, index 0.
            if old != new
                && new[..4] == *b"FLMP"
                && new[5] == 0
                && old[..4] == *b"FLMP"
                && old[5] == 0
            {
                by_slot.insert(page as u64 * PAGE_BYTES as u64, old.to_vec());
            }
        }
        let Some((&at, old)) = by_slot.iter().next() else {
            continue;
        };
        medium.write(at, old).unwrap();
        let opened = Store::open(Arc::clone(&medium) as Arc<dyn Medium>, area, KEY, FRAMES);
        let error = contents(&mut opened.unwrap().0).unwrap_err().to_string();
        assert!(
            error.contains("it is not the page that was written there last"),
            "{error}"
        );
        return;
    }
    panic!("no slot was used twice");
}

/// What a program wrote that was wrong has checksums that hold. Rows below such a page are neither read nor set.
#[test]
fn a_page_above_others_that_leads_to_a_slot_that_there_is_not_is_refused() {
    let shape = Shape {
        rows: 60_000,
        ..SHAPES[1]
    };
    let medium = Arc::new(MemoryMedium::new(bytes_of(&AREA)));
    let mut store = made(Arc::clone(&medium) as _, AREA, &[(1, shape)], FRAMES).unwrap();
    set(&mut store, 0, 0, &[3; 32]).unwrap();
    set(&mut store, 0, 50_000, &[4; 32]).unwrap();
    store.commit_at_once(&[]).unwrap();
    let seal = |page: &mut [u8], position: u64| {
        let sum = KEY.checksum(position, &[&page[..24], &page[32..]]);
        page[24..32].copy_from_slice(&sum.to_le_bytes());
        sum as u32
    };
    let root_at = AREA.root(2) as usize;
    let mut bytes = medium_bytes(&medium);
    let top = u32::from_le_bytes(*bytes[root_at + 40..].first_chunk().unwrap());
    let top_at = AREA.slot(Slot(top)) as usize;
    let page = &mut bytes[top_at..top_at + PAGE_BYTES];
    page[32..36].copy_from_slice(&AREA.slots.to_le_bytes());
    let check = seal(page, top.into());
    let root = &mut bytes[root_at..root_at + AREA.root_bytes()];
    root[44..48].copy_from_slice(&check.to_le_bytes());
    seal(root, AREA.root(2));
    let open = |bytes: &[u8]| {
        let medium = Arc::new(MemoryMedium::from_bytes(bytes.to_vec()));
        Store::open(medium, AREA, KEY, FRAMES).map(|(store, _)| store)
    };
    let set_page = |store: &mut Store| {
        fetching(store, |store| {
            store.rows_to_set(TableId(0), Row(0))?.fill(9);
            Ok(())
        })
    };
    for row in [0, 50_000] {
        let mut store = open(&bytes).unwrap();
        let refused = get(&mut store, 0, row).unwrap_err().to_string();
        assert!(refused.contains("a slot that there is not"), "{refused}");
        let refused = set_page(&mut store).unwrap_err().to_string();
        assert!(refused.contains("a slot that there is not"), "{refused}");
    }
    // A root that does so does not hold; the one before has a table that was never written.
    bytes[root_at + 40..root_at + 44].copy_from_slice(&AREA.slots.to_le_bytes());
    seal(
        &mut bytes[root_at..root_at + AREA.root_bytes()],
        AREA.root(2),
    );
    let mut store = open(&bytes).unwrap();
    assert_eq!(store.commit(), 1);
    set_page(&mut store).unwrap();
}

fn medium_bytes(medium: &Arc<MemoryMedium>) -> Vec<u8> {
    let mut bytes = vec![0; medium.len() as usize];
    medium.read(0, &mut bytes).unwrap();
    bytes
}

#[test]
fn a_page_that_was_read_before_it_changed_is_not_taken_over() {
    let medium = Arc::new(MemoryMedium::new(bytes_of(&AREA)));
    let (medium, ..) = committed(&medium, AREA, 2).place();
    let (mut store, _) = Store::open(medium, AREA, KEY, FRAMES).unwrap();
    // The pages above the leaf come into memory, not the leaf.
    set(&mut store, 0, 60_000, &[1; 32]).unwrap();
    let fetch = match store.row(TableId(0), Row(0)) {
        Err(Access::Absent(fetch)) => fetch,
        other => panic!("{other:?}"),
    };
    assert_eq!(fetch.node().level, 0);
    let (medium, area, key) = store.place();
    let before = fetch.carry_out(&medium, &area, &key).unwrap();
    set(&mut store, 0, 0, &[77; 32]).unwrap();
    // It changes, is written to another slot, and leaves.
    for row in (0..90_000).step_by(500).skip(1) {
        set(&mut store, 0, row, &[5; 32]).unwrap();
    }
    assert!(matches!(
        store.row(TableId(0), Row(0)),
        Err(Access::Absent(_))
    ));
    // The page above is there, and says where it lies now.
    get(&mut store, 0, 60_000).unwrap();
    store.install(&before).unwrap();
    assert_eq!(get(&mut store, 0, 0).unwrap(), [77; 32]);
}

/// Of each page of counts there are two copies, of which the root names one.
#[test]
fn a_copy_of_counts_that_cannot_be_read_matters_if_the_root_names_it() {
    let area = MANY_SLOTS;
    let medium = Arc::new(MemoryMedium::new(bytes_of(&area)));
    committed(&medium, area, 4);
    let bytes = medium_bytes(&medium);
    let opens = |page, copy| {
        let at = area.counts(page, copy);
        let faults = Faults {
            unreadable: iter::once(at..at + 4096).collect(),
            ..Faults::default()
        };
        let medium = FaultyMedium::new(MemoryMedium::from_bytes(bytes.clone()), faults);
        let opened = Store::open(Arc::new(medium), area, KEY, FRAMES);
        opened.and_then(|(store, _)| recount(&store)).is_ok()
    };
    let opened: Vec<_> = (0..area.count_pages())
        .map(|page| [opens(page, 0), opens(page, 1)])
        .collect();
    // Slots of the first page are in use, those of the others never were.
    assert!(
        opened[0] == [true, false] || opened[0] == [false, true],
        "{opened:?}"
    );
    assert!(
        opened[1..].iter().all(|copies| *copies == [true, true]),
        "{opened:?}"
    );
}

#[test]
fn counts_that_fall_far_from_those_that_rise_are_stored() {
    // Slots are taken in order, so what is given up lies in an earlier page of counts.
    let area = MANY_SLOTS;
    let medium = Arc::new(MemoryMedium::new(bytes_of(&area)));
    let mut store = committed(&medium, area, 1);
    for round in 0..60u8 {
        for row in (0..90_000).step_by(1_000) {
            set(&mut store, 0, row, &[round; 32]).unwrap();
        }
        store.commit_at_once(&[]).unwrap();
        let (medium, ..) = store.place();
        let (opened, _) = Store::open(medium, area, KEY, FRAMES).unwrap();
        recount(&opened).unwrap();
    }
}

#[test]
fn pages_of_many_rows_are_named_at_once_level_by_level() {
    let medium = Arc::new(MemoryMedium::new(bytes_of(&AREA)));
    let (medium, ..) = committed(&medium, AREA, 2).place();
    let (mut store, _) = Store::open(medium, AREA, KEY, FRAMES).unwrap();
    let (medium, area, key) = store.place();
    // Rows 0 and 1 share a leaf of 127 rows.
    let rows = [0, 1, 5_000, 89_000].map(|row| (TableId(0), Row(row)));
    let mut rounds = Vec::new();
    loop {
        let mut fetches: Vec<Fetch> = Vec::new();
        for (table, row) in rows {
            match store.glimpse(table, row) {
                Err(Access::Absent(fetch)) if !fetches.contains(&fetch) => fetches.push(fetch),
                found => assert!(!matches!(found, Err(Access::Error(_)))),
            }
        }
        if fetches.is_empty() {
            break;
        }
        rounds.push(fetches.len());
        for fetch in fetches {
            let fetched = fetch.carry_out(&medium, &area, &key).unwrap();
            store.install(&fetched).unwrap();
        }
    }
    // The two pages above, then the leaves: 709 of them are below a top and two pages.
    assert_eq!(rounds, [1, 2, 3]);
    assert!(
        rows.iter()
            .all(|&(table, row)| store.row(table, row).is_ok())
    );
}

/// Rows that nobody ever wrote are passed over, in memory and on the medium.
#[test]
fn the_first_page_that_was_written_is_found() {
    const LEAF: u32 = 127;
    let medium = Arc::new(MemoryMedium::new(bytes_of(&AREA))) as Arc<dyn Medium>;
    let mut store = made(Arc::clone(&medium), AREA, &[(1, SHAPES[1])], FRAMES).unwrap();
    let written = [3, 4, 300, 301, 600].map(|leaf| leaf * LEAF);
    for row in written {
        set(&mut store, 0, row + 5, &[1; 32]).unwrap();
    }
    for committed in [false, true] {
        if committed {
            store.commit_at_once(&[]).unwrap();
            (store, _) = Store::open(Arc::clone(&medium), AREA, KEY, FRAMES).unwrap();
            // Pages above the leaves say where there are any.
            let _ = get(&mut store, 0, 0).unwrap();
            let _ = get(&mut store, 0, 80_000).unwrap();
        }
        for from in (0..SHAPES[1].rows).step_by(61) {
            for most in [1, 500, u32::MAX] {
                let end = from.saturating_add(most).min(SHAPES[1].rows);
                let own = from / LEAF * LEAF;
                let next = written.iter().find(|&&row| row >= own);
                let expected = next.map_or(end, |&row| row.max(from).min(end));
                let found = store.first_written(TableId(0), Row(from), most);
                assert_eq!(found, Row(expected), "from {from}, {most}, {committed}");
            }
        }
    }
}

/// Of pages that are needed once none stays, and none of the others leaves for them; but for one that was changed.
#[test]
fn a_page_that_is_lent_pushes_none_out_and_is_given_back() {
    const LEAF: u32 = 127;
    let medium = Arc::new(MemoryMedium::new(bytes_of(&AREA)));
    let medium = medium as Arc<dyn Medium>;
    let mut store = made(Arc::clone(&medium), AREA, &[(1, SHAPES[1])], FRAMES).unwrap();
    for leaf in 0..700 {
        set(&mut store, 0, leaf * LEAF, &[1; 32]).unwrap();
    }
    store.commit_at_once(&[]).unwrap();
    for leaf in 0..2 * FRAMES as u32 {
        get(&mut store, 0, leaf * LEAF).unwrap();
    }
    let there = |store: &mut Store| -> Vec<u32> {
        let is_there = |leaf: &u32| store.glimpse(TableId(0), Row(leaf * LEAF)).is_ok();
        (0..700).filter(is_there).collect()
    };
    let before = there(&mut store);
    assert!(before.len() > FRAMES / 2, "{before:?}");
    for leaf in 400..500 {
        let row = (TableId(0), Row(leaf * LEAF));
        let Err(Access::Absent(fetch)) = store.glimpse(row.0, row.1) else {
            panic!("leaf {leaf} is in memory");
        };
        let fetched = fetch.carry_out(&medium, &AREA, &KEY).unwrap();
        let is_above = fetch.node().level > 0;
        assert_eq!(store.lend(&fetched), !is_above, "leaf {leaf}");
        if is_above {
            continue;
        }
        assert!(store.glimpse(row.0, row.1).is_ok());
        // Lent already: it is not lent again.
        assert!(!store.lend(&fetched));
        if leaf == 450 {
            set(&mut store, 0, leaf * LEAF, &[5; 32]).unwrap();
        }
        store.give_back(&fetched);
    }
    let mut after = there(&mut store);
    assert!(after.contains(&450));
    after.retain(|&leaf| leaf != 450);
    let lost = before.iter().filter(|leaf| !after.contains(leaf)).count();
    // Pages above those that were lent, and above the one that changed, need room.
    assert!(lost <= 3, "{before:?}, then {after:?}");
    assert!(after.iter().all(|leaf| before.contains(leaf)));
    assert_eq!(get(&mut store, 0, 450 * LEAF).unwrap(), [5; 32]);
    store.check().unwrap();
}

#[test]
fn the_cache_takes_what_it_was_given() {
    let medium = Arc::new(MemoryMedium::new(bytes_of(&AREA)));
    let mut store = committed(&medium, AREA, 4);
    let _ = contents(&mut store).unwrap();
    let pages = FRAMES.next_multiple_of(64) * PAGE_BYTES;
    let counts = AREA.slots as usize * 3;
    let most = pages + pages / 20 + counts + 32_768;
    assert!(store.heap_bytes() < most, "{} bytes", store.heap_bytes());
    let counters = store.cache_counters();
    assert!(
        counters.misses > 0 && counters.evicted_clean + counters.written_for_room > 0,
        "{counters:?}"
    );
}

#[test]
fn a_store_that_commits_when_it_wants_to_is_never_full() {
    let area = Area { slots: 400, ..AREA };
    let medium = Arc::new(MemoryMedium::new(bytes_of(&area)));
    let medium = Arc::clone(&medium) as Arc<dyn Medium>;
    let mut store = made(medium, area, &[(1, SHAPES[2])], 200).unwrap();
    let mut commits = 0;
    for round in 0..20_000u32 {
        if store.wants_commit() {
            store.commit_at_once(&[]).unwrap();
            commits += 1;
        }
        set(
            &mut store,
            0,
            round * 7 % 150 * 1_999,
            &[round as u8; 4_064],
        )
        .unwrap();
    }
    assert!(commits > 20, "{commits} commits");
    store.check().unwrap();
}

/// Pages that change again and again do not spread over all of an area that is much larger than they are.
#[test]
fn a_file_takes_what_the_tables_need_and_little_more() {
    let shape = Shape {
        rows: 2_000,
        row_bytes: 4_064,
        empty: Empty::Zeros,
    };
    let area = Area {
        slots: 20_000,
        ..AREA
    };
    let medium = Arc::new(MemoryMedium::new(bytes_of(&area)));
    let mut store = made(medium.clone(), area, &[(1, shape)], 300).unwrap();
    let mut draw = Xoshiro256PlusPlus::seed_from_u64(7);
    let write = |store: &mut Store, row: u32, value: u8| {
        set(store, 0, row, &[value; 4_064]).unwrap();
    };
    for round in 0..60u8 {
        for row in 0..if round == 0 { 2_000 } else { 100 } {
            let row = if round == 0 {
                row
            } else {
                draw.next_u32() % 2_000
            };
            write(&mut store, row, round + 1);
            if row % 100 == 0 {
                store.commit_at_once(&[]).unwrap();
            }
        }
        store.commit_at_once(&[]).unwrap();
        store.check().unwrap();
    }
    let bytes = medium_bytes(&medium);
    let slots = &bytes[bytes.len() - 20_000 * PAGE_BYTES..];
    let last = slots
        .chunks(PAGE_BYTES)
        .rposition(|page| page.iter().any(|&byte| byte != 0));
    assert!(last < Some(3_200), "2,005 pages lie as far as {last:?}");
}

#[test]
fn a_full_store_says_so_and_a_commit_makes_room() {
    let area = Area { slots: 40, ..AREA };
    let medium = Arc::new(MemoryMedium::new(bytes_of(&area)));
    let medium = Arc::clone(&medium) as Arc<dyn Medium>;
    let mut store = made(medium, area, &[(1, SHAPES[2])], 32).unwrap();
    let mut full = 0;
    for round in 0..200u32 {
        let row = round % 8;
        while let Err(error) =
            set(&mut store, 0, row, &[round as u8; 4_064]).and_then(|()| store.clean(1).map(drop))
        {
            assert!(matches!(error, MetadataError::Full), "{error}");
            full += 1;
            assert!(full < 200);
            store.commit_at_once(&[]).unwrap();
        }
        if round % 3 == 0 {
            store.commit_at_once(&[]).unwrap();
        }
    }
    store.commit_at_once(&[]).unwrap();
    store.check().unwrap();
    recount(&store).unwrap();
    // Eight rows, and what is above them.
    assert_eq!(store.free_slots(), 40 - 8 - 3);
}

#[test]
fn a_store_that_is_made_where_one_lay_begins_anew() {
    let medium = Arc::new(MemoryMedium::new(bytes_of(&AREA)));
    drop(committed(&medium, AREA, 4));
    let medium = medium as Arc<dyn Medium>;
    // Its number is below those of the roots that lay there.
    for number in [2, 3] {
        Store::create(&medium, &AREA, &KEY, number, &[(1, SHAPES[1])], b"new").unwrap();
        let (mut store, user) = Store::open(Arc::clone(&medium), AREA, KEY, FRAMES).unwrap();
        assert_eq!((store.commit(), &user[..]), (number, &b"new"[..]));
        assert!(
            contents(&mut store)
                .unwrap()
                .iter()
                .flatten()
                .all(|&byte| byte == SHAPES[1].empty.byte())
        );
        recount(&store).unwrap();
    }
}
