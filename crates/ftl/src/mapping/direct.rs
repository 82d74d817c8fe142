//! Logical page number to physical unit: four bytes a page, no object table.

use flashlore_flash::hints::{on_large_pages, prefetch};
use flashlore_flash::{Lpn, Owner, Ppn};

use super::Mapping;

/// The map of a device without a content policy.
#[derive(Debug, Clone)]
pub struct Direct {
    units: Vec<Ppn>,
}

impl Direct {
    /// Nothing is mapped.
    pub fn new(exported: u32) -> Self {
        let mut units = on_large_pages(Vec::with_capacity(exported as usize));
        units.resize(exported as usize, Ppn::NONE);
        Direct { units }
    }

    /// A map as a recovery found it.
    pub fn restore(units: Vec<Ppn>) -> Self {
        Direct { units }
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
        self.units[lpn.index()]
    }

    /// Maps a page; answers where it lay before.
    #[inline(always)]
    pub fn replace(&mut self, lpn: Lpn, ppn: Ppn) -> Ppn {
        std::mem::replace(&mut self.units[lpn.index()], ppn)
    }

    /// Bytes held.
    pub fn heap_bytes(&self) -> usize {
        self.units.capacity() * size_of::<Ppn>()
    }
}

impl Mapping for Direct {
    #[inline(always)]
    fn unit_of(&self, lpn: Lpn) -> Ppn {
        self.get(lpn)
    }

    #[inline(always)]
    fn relocate(&mut self, owner: Owner, to: Ppn) {
        self.units[owner.as_page().index()] = to;
    }

    #[inline(always)]
    fn prefetch(&self, owner: Owner) {
        prefetch(&self.units, owner.as_page().index());
    }

    fn location(&self, owner: Owner) -> Option<Ppn> {
        self.units
            .get(owner.as_page().index())
            .copied()
            .filter(|p| p.is_some())
    }
}
