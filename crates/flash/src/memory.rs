//! A back end that keeps every page in memory and takes no time.
//!
//! It is the medium of the correctness tests and the reference for what a page holds.

use crate::address::{BlockId, Owner, PageId, PlaneId, Ppn, Tag, Time};
use crate::geometry::Geometry;
use crate::nand::{Cause, Completion, Finished, Flash, OpId, Ready, Route, Stream, Unit};
use crate::tables::InMemory;

/// A unit was read that holds nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("flash unit {0} was read but holds nothing since its block was last erased")]
pub struct NothingStored(pub Ppn);

/// What a unit on the medium holds: its content and, out of band, its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored<P> {
    /// Whose it is.
    pub owner: Owner,
    /// The content.
    pub page: P,
}

/// Pages in memory.
#[derive(Debug, Clone)]
pub struct MemoryFlash<P> {
    geometry: Geometry,
    units: Vec<Option<Stored<P>>>,
    finished: Vec<Finished>,
}

impl<P: Clone> MemoryFlash<P> {
    /// An erased device.
    pub fn new(geometry: Geometry) -> Self {
        let units = vec![None; geometry.units() as usize];
        MemoryFlash {
            geometry,
            units,
            finished: Vec::new(),
        }
    }

    /// What a unit holds now, if anything.
    pub fn stored(&self, ppn: Ppn) -> Option<&Stored<P>> {
        self.units.get(ppn.index()).and_then(Option::as_ref)
    }
}

impl<P: Clone> Flash for MemoryFlash<P> {
    type Page = P;
    type Tables = InMemory;
    type Error = NothingStored;

    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn tables(&self) -> InMemory {
        InMemory
    }

    fn read(
        &mut self,
        ready: Ready,
        ppn: Ppn,
        _units: u32,
        _cause: Cause,
        _route: Route,
        _tag: Tag,
    ) -> Result<Completion, NothingStored> {
        self.stored(ppn).ok_or(NothingStored(ppn))?;
        let (Ready::At(at) | Ready::After(_, at)) = ready;
        Ok(Completion::instant(at))
    }

    fn content(&mut self, ppn: Ppn) -> Result<P, NothingStored> {
        let stored = self.stored(ppn).ok_or(NothingStored(ppn))?;
        Ok(stored.page.clone())
    }

    fn program(
        &mut self,
        ready: Ready,
        page: PageId,
        units: &[Unit<P>],
        _stream: Stream,
        _route: Route,
        _tags: &[Tag],
    ) -> Result<Completion, NothingStored> {
        let first = self.geometry.first_unit_of_page(page).index();
        for (slot, unit) in units.iter().enumerate() {
            self.units[first + slot] = match unit {
                Unit::New { owner, page } => Some(Stored {
                    owner: *owner,
                    page: page.clone(),
                }),
                Unit::Copy { owner, from } => {
                    let source = self.stored(*from).ok_or(NothingStored(*from))?;
                    Some(Stored {
                        owner: *owner,
                        page: source.page.clone(),
                    })
                }
                Unit::Pad => None,
            };
        }
        let (Ready::At(at) | Ready::After(_, at)) = ready;
        Ok(Completion::instant(at))
    }

    fn erase(
        &mut self,
        at: Time,
        block: BlockId,
        background: bool,
        tag: Tag,
    ) -> Result<Completion, NothingStored> {
        let first = self.geometry.first_unit(block).index();
        self.units[first..first + self.geometry.units_per_block() as usize].fill(None);
        if background {
            self.finished.push(Finished {
                tag,
                start: at,
                end: at,
            });
            return Ok(Completion::Later(OpId::NONE));
        }
        Ok(Completion::instant(at))
    }

    fn advance(&mut self, _until: Time, done: &mut Vec<Finished>) {
        done.append(&mut self.finished);
    }

    fn idle_since(&self, _plane: PlaneId) -> Option<Time> {
        Some(0)
    }

    fn next_event(&self) -> Option<Time> {
        self.finished.first().map(|f| f.end)
    }
}
