//! The map on demand: cached entries, and a directory in RAM of where each translation page lies.
//!
//! What a relocation costs: the entry of every logical page that names the unit changes. With one owner
//! a page that is one entry; where pages share objects the table kept here is CA-SSD's LPT, which names
//! physical pages, so it is one for each referring page. An entry in RAM becomes dirty; of the others the
//! translation page becomes *stale* and is written after the collection, once for all of them. Until
//! then the new locations are kept beside the cache. The page of a dirty entry that is dropped is stale
//! until it is written, too.
//!
//! Invariants: a stale page is in the queue; entries are dirty only in RAM ([`super::entries`]).

use std::collections::VecDeque;

use flashlore_flash::Ppn;

use super::entries::{Entries, Use};
use super::referrers::Referrers;
use super::{Access, ENTRIES_PER_PAGE, ENTRY_BYTES, MapKeeper};

/// A map of which a part is in RAM.
#[derive(Debug, Clone)]
pub struct Demand<P> {
    entries: Entries,
    /// Where translation pages lie.
    directory: Vec<Ppn>,
    stale: Vec<bool>,
    queue: VecDeque<u32>,
    /// Pages in the queue that are stale.
    stale_pages: u32,
    /// Where owners are objects: who refers to them.
    referrers: Option<Referrers>,
    /// What a translation page is said to hold.
    content: P,
}

impl<P> Demand<P> {
    /// An empty map of so many logical pages with so many bytes of RAM for entries. `shared`: owners
    /// are objects, which several pages may refer to, instead of logical pages.
    pub fn new(exported: u32, cache_bytes: u64, shared: bool, content: P) -> Self {
        let pages = exported.div_ceil(ENTRIES_PER_PAGE) as usize;
        let capacity = cache_bytes / u64::from(ENTRY_BYTES);
        Demand {
            entries: Entries::new(exported, u32::try_from(capacity).unwrap_or(u32::MAX)),
            directory: vec![Ppn::NONE; pages],
            stale: vec![false; pages],
            queue: VecDeque::new(),
            stale_pages: 0,
            referrers: shared.then(|| Referrers::new(exported)),
            content,
        }
    }

    fn entry_moved(&mut self, lpn: u32) {
        if !self.entries.mark(lpn) {
            self.grow_stale(lpn / ENTRIES_PER_PAGE);
        }
    }

    fn grow_stale(&mut self, page: u32) {
        if !std::mem::replace(&mut self.stale[page as usize], true) {
            self.stale_pages += 1;
            self.queue.push_back(page);
        }
    }
}

impl<P: Clone> MapKeeper<P> for Demand<P> {
    const DEMAND: bool = true;

    fn access(&mut self, lpn: u32) -> Access {
        match self.entries.touch(lpn) {
            Use::Hit => Access::Hit,
            Use::Loaded(Some((dropped, true))) => {
                let page = dropped / ENTRIES_PER_PAGE;
                self.grow_stale(page);
                Access::Miss {
                    write_back: Some(page),
                }
            }
            Use::Loaded(_) => Access::Miss { write_back: None },
        }
    }

    fn changed(&mut self, lpn: u32) {
        let cached = self.entries.mark(lpn);
        debug_assert!(cached, "entry {lpn} was not accessed before its change");
    }

    fn refers(&mut self, lpn: u32, object: Option<u32>) {
        if let Some(referrers) = &mut self.referrers {
            referrers.set(lpn, object);
        }
    }

    fn moved(&mut self, owner: u32) {
        let Some(referrers) = self.referrers.take() else {
            self.entry_moved(owner);
            return;
        };
        for lpn in referrers.of(owner) {
            self.entry_moved(lpn);
        }
        self.referrers = Some(referrers);
    }

    /// Numbers of translation pages run down from the largest owner, beyond all pages and objects.
    fn page_of_owner(&self, owner: u32) -> Option<u32> {
        Some(u32::MAX - 1 - owner).filter(|&page| page < self.directory.len() as u32)
    }

    fn unit_of_page(&self, page: u32) -> Option<(u32, P)> {
        Some((u32::MAX - 1 - page, self.content.clone()))
    }

    fn pages(&self) -> u32 {
        self.directory.len() as u32
    }

    fn location(&self, page: u32) -> Ppn {
        self.directory[page as usize]
    }

    fn place(&mut self, page: u32, to: Ppn) {
        self.directory[page as usize] = to;
    }

    fn written(&mut self, page: u32) {
        self.entries.clean(page);
        if std::mem::replace(&mut self.stale[page as usize], false) {
            self.stale_pages -= 1;
        }
    }

    fn stale(&self) -> u32 {
        self.stale_pages
    }

    fn is_stale(&self, page: u32) -> bool {
        self.stale[page as usize]
    }

    fn first_stale(&mut self) -> Option<u32> {
        while let Some(&page) = self.queue.front() {
            if self.stale[page as usize] {
                return Some(page);
            }
            self.queue.pop_front();
        }
        None
    }

    fn agrees(&self, lpn: u32, object: Option<u32>) -> bool {
        let referrers = self.referrers.as_ref();
        referrers.is_none_or(|r| r.object_of(lpn) == object)
    }

    fn check(&self) -> Result<(), String> {
        self.entries.check()?;
        let stale = self.stale.iter().filter(|&&s| s).count();
        let queued = self
            .queue
            .iter()
            .filter(|&&p| self.stale[p as usize])
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
