//! Logical page number to physical unit: four bytes a page, no object table.

use flashlore_flash::{Lpn, Owner, Ppn, Table, TableName, Tables};

use super::Mapping;

/// The map of a device without a content policy.
#[derive(Debug)]
pub struct Direct<S: Tables> {
    units: S::Of<Ppn>,
}

impl<S: Tables> Direct<S> {
    /// Nothing is mapped.
    pub fn new(tables: &S, exported: u32) -> Self {
        Direct {
            units: tables.filled(TableName::Map, Ppn::NONE, exported as usize),
        }
    }

    /// A map as a recovery found it, in a table in which nothing is mapped.
    pub fn restore(tables: &S, units: impl ExactSizeIterator<Item = Ppn>) -> Self {
        let mut map = Direct::new(tables, units.len() as u32);
        for (lpn, ppn) in units.enumerate() {
            if ppn.is_some() {
                map.units.set(lpn, ppn);
            }
        }
        map
    }

    /// Logical pages.
    pub fn len(&self) -> u32 {
        self.units.len() as u32
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// Where a page lies, [`Ppn::NONE`] if nowhere.
    #[inline(always)]
    pub fn get(&self, lpn: Lpn) -> Ppn {
        self.units.get(lpn.index())
    }

    /// Maps a page; answers where it lay before.
    #[inline(always)]
    pub fn replace(&mut self, lpn: Lpn, ppn: Ppn) -> Ppn {
        self.units
            .change(lpn.index(), |mapped| std::mem::replace(mapped, ppn))
    }

    /// Bytes held.
    pub fn heap_bytes(&self) -> usize {
        self.units.heap_bytes()
    }
}

impl<S: Tables> Mapping for Direct<S> {
    #[inline(always)]
    fn unit_of(&self, lpn: Lpn) -> Ppn {
        self.get(lpn)
    }

    #[inline(always)]
    fn relocate(&mut self, owner: Owner, to: Ppn) {
        self.units.set(owner.as_page().index(), to);
    }

    #[inline(always)]
    fn prefetch(&self, owner: Owner) {
        self.units.prefetch(owner.as_page().index());
    }

    fn location(&self, owner: Owner) -> Option<Ppn> {
        let at = owner.as_page().index();
        let mapped = (at < self.units.len()).then(|| self.units.get(at));
        mapped.filter(|p| p.is_some())
    }
}
