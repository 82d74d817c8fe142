//! The map as a cache of entries, with a directory in RAM of where each translation page lies.
//!
//! What a relocation costs: the entry of every logical page that names the unit changes. With one owner
//! a page that is one entry; where pages share objects the table kept here is CA-SSD's LPT, which names
//! physical pages, so it is one for each referring page. An entry in RAM becomes dirty; of the others the
//! translation page becomes *stale* and is written after the collection, once for all of them. Until
//! then the new locations are kept beside the cache. The page of a dirty entry that is dropped is stale
//! until it is written, too.
//!
//! Where values may be deltas, an entry is fused of two tables, as DeltaFTL's (EuroSys 2012, section
//! 3.3): the *pages* say where a value or its base lies and whether there is a delta, the *deltas* where
//! that lies. DeltaFTL keys the second by the base's location; here it is keyed by logical page, so that
//! several deltas can stand on one base, and a base that moves changes the first alone. What waits
//! in RAM to be packed has no place yet: its entry changes when it is programmed. A value that is materialized
//! changes the first table; what the second still says of it is not looked at.
//!
//! Pages of the first table are numbered from 0, those of the second behind them, those of journals last.
//!
//! Invariants: a stale page is in the queue; entries are dirty only in RAM ([`super::entries`]).

use std::collections::VecDeque;

use flashlore_flash::{Lpn, MapPageId, ObjectId, Ppn};

use super::entries::{Entries, Touched};
use super::journal::{Journal, JournalSlot};
use super::referrers::Referrers;
use super::{Access, CacheOptions, ENTRIES_PER_PAGE, EntryKind, MapCache, MapEntry, MapTable};

/// A map of which a part is in RAM.
#[derive(Debug, Clone)]
pub struct CachedMap<P> {
    entries: Entries,
    /// Translation pages of a table.
    table_pages: u32,
    /// Where translation pages lie.
    directory: Vec<Ppn>,
    stale: Vec<bool>,
    queue: VecDeque<MapPageId>,
    /// Pages in the queue that are stale.
    stale_pages: u32,
    /// Where owners are objects: who refers to them.
    referrers: Option<Referrers>,
    /// Where there are deltas: whose value is one from which base.
    bases: Option<Referrers>,
    /// Whose value waits in RAM to be packed: a bit a logical page.
    waiting: Vec<u64>,
    journal: Option<Journal>,
    /// What a translation page is said to hold.
    content: P,
}

impl<P> CachedMap<P> {
    /// An empty map of so many logical pages.
    pub fn new(exported: u32, options: CacheOptions, content: P) -> Self {
        let CacheOptions {
            entries,
            protected,
            kind,
            journal_pages,
        } = options;
        let table_pages = exported.div_ceil(ENTRIES_PER_PAGE);
        let pages = table_pages as usize * kind.tables();
        let slots = match journal_pages {
            0 => 0,
            most => Journal::slots(kind.tables(), most) as usize,
        };
        let shared = kind != EntryKind::Direct;
        CachedMap {
            entries: Entries::new(exported, entries, protected, kind.tables()),
            table_pages,
            directory: vec![Ppn::NONE; pages + slots],
            stale: vec![false; pages],
            queue: VecDeque::new(),
            stale_pages: 0,
            referrers: shared.then(|| Referrers::new(exported)),
            bases: (kind == EntryKind::Fused).then(|| Referrers::new(exported)),
            waiting: vec![
                0;
                if shared {
                    exported.div_ceil(64) as usize
                } else {
                    0
                }
            ],
            journal: (slots > 0).then(|| Journal::new(kind.tables(), journal_pages)),
            content,
        }
    }

    /// The translation page that has a table's part of an entry.
    fn page_of(&self, lpn: Lpn, table: MapTable) -> MapPageId {
        MapPageId(table as u32 * self.table_pages + lpn.0 / ENTRIES_PER_PAGE)
    }

    /// The table of a translation page, and the first logical page of which it has a part of the entry.
    fn first_entry_of(&self, page: MapPageId) -> (MapTable, Lpn) {
        let (table, page) = match page.0.checked_sub(self.table_pages) {
            None => (MapTable::Pages, page.0),
            Some(page) => (MapTable::Deltas, page),
        };
        (table, Lpn(page * ENTRIES_PER_PAGE))
    }

    /// The page in a slot of the journals.
    fn journal_page(&self, slot: JournalSlot) -> MapPageId {
        MapPageId(self.stale.len() as u32 + slot.0)
    }

    /// A table's part of an entry has a new value.
    fn part_changed(&mut self, lpn: Lpn, table: MapTable) {
        if let Some(journal) = &mut self.journal {
            journal.record(table);
        }
        if !self.entries.mark(lpn, table) {
            self.grow_stale(self.page_of(lpn, table));
        }
    }

    fn grow_stale(&mut self, page: MapPageId) {
        if !std::mem::replace(&mut self.stale[page.index()], true) {
            self.stale_pages += 1;
            self.queue.push_back(page);
        }
    }

    /// The pages of a table of which entries in RAM are newer are to be written.
    fn fold(&mut self, table: MapTable) {
        for first in (0..self.table_pages).map(|page| Lpn(page * ENTRIES_PER_PAGE)) {
            if self.entries.is_dirty(table, first) {
                self.grow_stale(self.page_of(first, table));
            }
        }
    }

    /// What is known of a logical page where owners are objects.
    fn entry(&self, lpn: Lpn) -> MapEntry {
        let of = |lists: &Option<Referrers>| lists.as_ref().and_then(|l| l.object_of(lpn));
        MapEntry {
            object: of(&self.referrers),
            base: of(&self.bases),
            waits: self.waiting[lpn.index() / 64] >> (lpn.0 % 64) & 1 == 1,
        }
    }

    fn set_waiting(&mut self, lpn: Lpn, waits: bool) {
        let word = &mut self.waiting[lpn.index() / 64];
        *word = *word & !(1 << (lpn.0 % 64)) | u64::from(waits) << (lpn.0 % 64);
    }

    /// The logical pages that refer to an object.
    fn referring(&self, object: ObjectId) -> Vec<Lpn> {
        let referrers = self.referrers.iter();
        referrers.flat_map(|r| r.of(object)).collect()
    }
}

impl<P: Clone> MapCache<P> for CachedMap<P> {
    const CACHED: bool = true;

    fn access(&mut self, lpn: Lpn) -> Access {
        let dropped = match self.entries.touch(lpn) {
            Touched::Hit => return Access::Hit,
            Touched::Loaded(dropped) => dropped,
        };
        let mut write_back = [None; 2];
        if let Some(dropped) = dropped {
            let newer = |&table: &MapTable| dropped.dirty[table as usize];
            for table in MapTable::ALL.into_iter().filter(newer) {
                let page = self.page_of(dropped.lpn, table);
                self.grow_stale(page);
                write_back[table as usize] = Some(page);
            }
        }
        Access::Miss {
            dropped: dropped.map(|dropped| dropped.lpn),
            write_back,
        }
    }

    fn pages_of(&mut self, lpn: Lpn) -> [Option<MapPageId>; 2] {
        let delta = self
            .bases
            .as_ref()
            .is_some_and(|b| b.object_of(lpn).is_some());
        let second = delta && !self.entry(lpn).waits;
        [
            Some(self.page_of(lpn, MapTable::Pages)),
            second.then(|| self.page_of(lpn, MapTable::Deltas)),
        ]
    }

    fn holds(&self, lpn: Lpn) -> bool {
        self.entries.holds(lpn)
    }

    fn changed(&mut self, lpn: Lpn) {
        self.part_changed(lpn, MapTable::Pages);
    }

    fn refers(&mut self, lpn: Lpn, entry: MapEntry) {
        let before = self.entry(lpn);
        if let Some(referrers) = &mut self.referrers {
            referrers.set(lpn, entry.object);
        }
        match &mut self.bases {
            Some(bases) => bases.set(lpn, entry.base),
            None => debug_assert!(entry.base.is_none(), "the map has no table of deltas"),
        }
        self.set_waiting(lpn, entry.waits);
        let has_place = entry.base.is_some() || !entry.waits;
        if has_place && entry.lies() != before.lies() {
            self.part_changed(lpn, MapTable::Pages);
        }
        if entry.base.is_some() && !entry.waits {
            self.part_changed(lpn, MapTable::Deltas);
        }
    }

    fn moved(&mut self, object: ObjectId) {
        let Some(referrers) = self.referrers.take() else {
            self.part_changed(object.as_page(), MapTable::Pages);
            return;
        };
        let bases = self.bases.take();
        let is_delta = |lpn| bases.as_ref().is_some_and(|b| b.object_of(lpn).is_some());
        for lpn in referrers.of(object) {
            self.set_waiting(lpn, false);
            let table = match is_delta(lpn) {
                true => MapTable::Deltas,
                false => MapTable::Pages,
            };
            self.part_changed(lpn, table);
        }
        for lpn in bases.iter().flat_map(|b| b.of(object)) {
            self.part_changed(lpn, MapTable::Pages);
        }
        self.referrers = Some(referrers);
        self.bases = bases;
    }

    fn waits(&mut self, object: ObjectId) {
        for lpn in self.referring(object) {
            self.set_waiting(lpn, true);
        }
    }

    fn materialized(&mut self, object: ObjectId) {
        for lpn in self.referring(object) {
            if let Some(bases) = &mut self.bases {
                bases.set(lpn, None);
            }
        }
        self.moved(object);
    }

    fn content_of(&self, _page: MapPageId) -> Option<P> {
        Some(self.content.clone())
    }

    fn pages(&self) -> u32 {
        self.directory.len() as u32
    }

    fn location(&self, page: MapPageId) -> Ppn {
        self.directory[page.index()]
    }

    fn place(&mut self, page: MapPageId, to: Ppn) {
        self.directory[page.index()] = to;
    }

    fn written(&mut self, page: MapPageId) {
        let (table, first) = self.first_entry_of(page);
        self.entries.clean(table, first);
        if std::mem::replace(&mut self.stale[page.index()], false) {
            self.stale_pages -= 1;
        }
    }

    fn due(&mut self) -> Option<MapPageId> {
        let (_, slot) = self.journal.as_ref()?.due()?;
        Some(self.journal_page(slot))
    }

    fn journalled(&mut self) {
        if let Some(journal) = &mut self.journal {
            journal.programmed();
        }
    }

    fn begin_fold(&mut self) -> bool {
        let table = self.journal.as_mut().and_then(Journal::begin_fold);
        if let Some(table) = table {
            self.fold(table);
        }
        table.is_some()
    }

    fn take_folded(&mut self) -> Option<MapPageId> {
        let journal = self.journal.as_mut().filter(|_| self.stale_pages == 0)?;
        let slot = journal.take_folded()?;
        Some(self.journal_page(slot))
    }

    fn stale(&self) -> u32 {
        self.stale_pages
    }

    fn is_stale(&self, page: MapPageId) -> bool {
        self.stale[page.index()]
    }

    fn first_stale(&mut self) -> Option<MapPageId> {
        while let Some(&page) = self.queue.front() {
            if self.stale[page.index()] {
                return Some(page);
            }
            self.queue.pop_front();
        }
        None
    }

    fn agrees(&self, lpn: Lpn, entry: MapEntry) -> bool {
        self.referrers.is_none() || self.entry(lpn) == entry
    }

    fn check(&self) -> Result<(), String> {
        self.entries.check()?;
        if let Some(journal) = &self.journal {
            journal.check((self.directory.len() - self.stale.len()) as u32)?;
        }
        let stale = self.stale.iter().filter(|&&s| s).count();
        let queued = self
            .queue
            .iter()
            .filter(|&&p| self.stale[p.index()])
            .count();
        if stale != self.stale_pages as usize || queued < stale {
            return Err(format!(
                "{stale} translation pages are stale, {} counted, {queued} queued",
                self.stale_pages
            ));
        }
        Ok(())
    }
}
